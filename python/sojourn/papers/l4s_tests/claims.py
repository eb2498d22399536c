"""Checks of the findings, and sentences that hold numbers of our Runs."""

from __future__ import annotations

from sojourn.papers import published
from sojourn.papers.evidence import Evidence
from sojourn.papers.l4s_tests import measures as m
from sojourn.papers.l4s_tests.studies import (
    APART,
    APART_MS,
    BEHIND,
    BESIDE,
    BESIDE_READINGS,
    BOTH,
    BURSTY,
    CALL,
    CALL_MBPS,
    CALLED,
    CALLS,
    EACH,
    ENOUGH,
    EXACTLY,
    FALLEN,
    FALLING,
    FIFO,
    GRID,
    GRID_MBPS,
    GRID_MS,
    HALF_GAINS,
    LATE_MS,
    LATENESS,
    ONE,
    PARTLY,
    RENO,
    REPLAY,
    RIVAL_QUEUES,
    RIVALS,
    RTT_MS,
    SCALED,
    SHARED,
    SINCE,
    STEPS_MS,
    TUNNEL,
    UNEQUAL,
    VIDEO,
    VRTT,
    WINDOWS,
    behind,
    beside,
    call,
    called,
    cell,
    equal,
    falls,
    late,
    rivals,
    through,
    today,
    windowed,
)
from sojourn.papers.paper import Finding
from sojourn.papers.said import each

SAYS = published.beside(__file__)
TARGETS = published.targets(__file__)
UNEQUAL_160 = "Prague, dualpi2, 160 and 10 ms"
FULL_ONLY = "the full version has an experiment on it"
STARVED = 10
"""A ratio of goodputs beyond which one of the two has next to nothing."""


def unsafe(evidence: Evidence) -> Finding:
    """Every ratio in one queue."""
    ratios = [
        evidence.mean(one, m.ratio) for one in evidence.variants(SHARED) if one != SHARED[APART]
    ]
    return Finding(
        min(ratios) > STARVED,
        f"Prague has {min(ratios):.1f} to {max(ratios):.1f} times the other's goodput",
        partly=min(ratios) > 2,
    )


def apart(evidence: Evidence) -> Finding:
    """fq_codel with a queue each."""
    ratio = evidence.mean(SHARED[APART], m.ratio)
    return Finding(0.9 < ratio < 1.1, f"Prague has {ratio:.2f} times CUBIC's goodput")


def bias(evidence: Evidence) -> Finding:
    """The ratio at each RTT, of Prague and of DCTCP."""
    ratios = {at: evidence.mean(one, m.ratio) for at, one in SCALED.items() if evidence.has(one)}
    ours = [ratio for (name, _, _), ratio in ratios.items() if name == "Prague"]
    return Finding(
        min(ours) > 1,
        "; ".join(
            f"{name}, {mbps} Mbit/s, {rtt} ms: {ratio:.2f}"
            for (name, mbps, rtt), ratio in ratios.items()
        ),
        partly=max(ours) > 1,
    )


def unfair(evidence: Evidence) -> Finding:
    """Ratios of the shorter RTT's goodput to the longer's."""
    found = {one.name: 1 / evidence.mean(one, m.ratio) for one in evidence.variants(UNEQUAL)}
    scalable = found["Prague, dualpi2, 160 and 10 ms"]
    stated = "unequal/CUBIC, pfifo, 160 and 10 ms"
    classic = found.get(
        "CUBIC, pfifo, 160 and 10 ms", SAYS[f"{stated}/shorter"] / SAYS[f"{stated}/longer"]
    )
    return Finding(
        scalable > 2 * classic,
        "; ".join(f"{name}: {ratio:.1f}" for name, ratio in found.items()),
        partly=scalable > classic,
    )


def spikes(evidence: Evidence) -> Finding:
    """How long the RTT stays up after the rate has fallen, of Prague and of CUBIC."""
    found = {
        mbps: tuple(
            evidence.mean(FALLING[falls(flow, mbps)], m.late_s) for flow in ("Prague", "CUBIC")
        )
        for mbps in FALLEN
        if evidence.has(FALLING[falls("Prague", mbps)])
    }
    longer = [prague / max(cubic, 0.1) for prague, cubic in found.values()]
    told = "; ".join(
        f"to {mbps} Mbit/s: {prague:.1f} s, CUBIC {cubic:.1f} s"
        for mbps, (prague, cubic) in found.items()
    )
    return Finding(min(longer) >= 5, f"RTT above {m.LATE_MS} ms, {told}", partly=min(longer) > 2)


def underuse(evidence: Evidence) -> Finding:
    """What Prague alone has of the link behind bursts, by the step."""
    short, long = (
        evidence.mean(BURSTY[behind(bursts=True, step_ms=step, alone=True)], m.share_percent)
        for step in STEPS_MS
    )
    return Finding(
        short < 60 < 90 < long,
        f"with a step of {STEPS_MS[0]} ms {short:.0f} % of the link, of {STEPS_MS[1]} ms {long:.0f} %",
        partly=short < long,
    )


def turned(evidence: Evidence) -> Finding:
    """Prague's goodput over CUBIC's, with bursts and without."""
    found = {
        (bursts, step): evidence.mean(variant, m.ratio)
        for bursts in (True, False)
        for step in STEPS_MS
        if evidence.has(variant := BURSTY[behind(bursts, step, alone=False)])
    }
    told = "; ".join(
        f"{'bursts' if bursts else 'no bursts'}, step {step} ms: {ratio:.2f}"
        for (bursts, step), ratio in found.items()
    )
    with_, without = found[True, 1], found[False, 1]
    return Finding(with_ < 1 < without, told, partly=with_ < without)


def tunnelled(evidence: Evidence) -> Finding:
    """The ratio in one tunnel and apart, behind each discipline that separates flows."""
    found = {
        (queue, tunnel): evidence.mean(variant, m.ratio)
        for queue in BEHIND
        for tunnel in (True, False)
        if evidence.has(variant := TUNNEL[through(queue, tunnel)])
    }
    told = "; ".join(
        f"{through(queue, tunnel)}: {ratio:.2f}" for (queue, tunnel), ratio in found.items()
    )
    inside = [ratio for (_, tunnel), ratio in found.items() if tunnel]
    apart_ = [ratio for (_, tunnel), ratio in found.items() if not tunnel]
    alike = all(0.9 < ratio < 1.1 for ratio in apart_)
    return Finding(
        alike and min(inside) > STARVED,
        f"Prague's goodput over CUBIC's, {told}",
        partly=alike and min(inside) > 2,
    )


def through_fifo(evidence: Evidence) -> Finding:
    """Who has more of a FIFO."""
    prague, cubic = (evidence.mean(TUNNEL[FIFO], one) for one in (m.prague_mbps, m.other_mbps))
    return Finding(cubic > prague, f"CUBIC has {cubic:.1f} Mbit/s, Prague {prague:.1f}")


def independence(evidence: Evidence) -> Finding:
    """The ratio of the shorter RTT's goodput to the longer's, with a virtual RTT and without."""
    found = {
        ends: (
            1 / evidence.mean(SINCE[today(VRTT, at)], m.ratio),
            1 / evidence.mean(UNEQUAL[at], m.ratio),
        )
        for ends in APART_MS
        if evidence.has(SINCE[today(VRTT, at := f"Prague, dualpi2, {ends}")], UNEQUAL[at])
    }
    told = "; ".join(
        f"{ends}: {with_:.1f}, without {without:.1f}" for ends, (with_, without) in found.items()
    )
    fairer = [with_ < 0.95 * without for with_, without in found.values()]
    return Finding(
        all(fairer), f"the shorter's goodput over the longer's, {told}", partly=any(fairer)
    )


def between(evidence: Evidence) -> Finding:
    """The 99th percentile of the probe's RTT beside a call."""
    found = {
        mbps: evidence.mean(variant, m.probe_p99)
        for mbps in CALL_MBPS
        if evidence.has(variant := CALL[call("dualpi2", mbps)])
    }
    apart_ = evidence.mean(CALL[call("fq_codel", 5)], m.probe_p99)
    told = "; ".join(f"{mbps} Mbit/s: {ms:.1f} ms" for mbps, ms in found.items())
    return Finding(
        all(ms > 5 for mbps, ms in found.items() if mbps <= 10) and apart_ < 5,
        f"p99 of the RTT in the short queue, {told}; fq_codel, 5 Mbit/s: {apart_:.1f} ms",
        partly=max(found.values()) > 5,
    )


def backs_off(evidence: Evidence) -> Finding:
    """How much a transfer gives up beside a call, beyond what that takes."""
    found = {}
    for flow, videos in BESIDE.items():
        for video in videos[1:]:
            if evidence.has(VIDEO[beside(flow, video)], VIDEO[beside(flow, "alone")]):
                alone, with_ = (
                    evidence.mean(VIDEO[beside(flow, one)], m.prague_mbps)
                    for one in ("alone", video)
                )
                found[beside(flow, video)] = alone - with_ - (2.3 if flow == "Prague" else 1.8)
    told = "; ".join(f"{name}: {beyond:.1f}" for name, beyond in found.items())
    in_l = found[beside("Prague", "video in L")]
    classic = [beyond for name, beyond in found.items() if name.startswith("CUBIC")]
    in_c = found.get(beside("Prague", "video in C"), in_l)
    return Finding(
        in_l > 5 and in_c > 2 and all(beyond < in_c for beyond in classic),
        f"given up beyond the call's own rate, Mbit/s of 20, {told}",
        partly=in_l > 2,
    )


def replayed(evidence: Evidence) -> Finding:
    """CUBIC's goodput by the window."""
    told, hurt, healed = [], [], []
    for mbps, windows in WINDOWS.items():
        found = {
            window: evidence.mean(variant, m.other_mbps)
            for window in (*windows, ENOUGH)
            if evidence.has(variant := REPLAY[windowed(mbps, window)])
        }
        if 0 in found and len(found) > 1:
            hurt.append(found[32] / found[0])
            healed.append(found[ENOUGH] / found[0])
            values = ", ".join(f"{window or 'none'} {mine:.1f}" for window, mine in found.items())
            told.append(f"{mbps} Mbit/s: {values}")
    return Finding(
        max(hurt) < 0.75 and min(healed) > 0.9,
        f"CUBIC's goodput, Mbit/s, by the window, {'; '.join(told)}",
        partly=min(hurt) < 0.75,
    )


def _grid(evidence: Evidence) -> list[tuple[int, int]]:
    return [
        (mbps, ms) for mbps in GRID_MBPS for ms in GRID_MS if evidence.has(GRID[cell(mbps, ms)])
    ]


def _two_packets_ms(mbps: int) -> float:
    return 2 * 12 / mbps


def short_mean(evidence: Evidence) -> Finding:
    """The mean delay of the short queue in each cell."""
    found = {at: evidence.mean(GRID[cell(*at)], m.queued("mean")) for at in _grid(evidence)}
    late = [at for at, ms in found.items() if ms >= max(1.0, _two_packets_ms(at[0]))]
    worst = max(found, key=lambda at: found[at] / max(1.0, _two_packets_ms(at[0])))
    return Finding(
        not late,
        f"in {len(found) - len(late)} of {len(found)} cells; the longest beside its bound is {found[worst]:.2f} "
        f"ms, at {cell(*worst)}",
        partly=len(late) < len(found) / 4,
    )


def short_p99(evidence: Evidence) -> Finding:
    """Its 99th percentile in each cell."""
    found = {at: evidence.mean(GRID[cell(*at)], m.queued("p99")) for at in _grid(evidence)}
    late = [at for at, ms in found.items() if ms > max(2.0, 2 * _two_packets_ms(at[0]))]
    worst = max(found, key=lambda at: found[at])
    return Finding(
        not late,
        f"in {len(found) - len(late)} of {len(found)} cells; the longest is {found[worst]:.1f} ms, at {cell(*worst)}",
        partly=len(late) < len(found) / 4,
    )


def lossless(evidence: Evidence) -> Finding:
    """Prague's losses in each cell."""
    found = {at: evidence.mean(GRID[cell(*at)], m.lost_l) for at in _grid(evidence)}
    return Finding(
        max(found.values()) == 0,
        f"Prague loses {max(found.values()):.2g} % at most, in {len(found)} cells",
        partly=max(found.values()) < 0.1,
    )


def full(evidence: Evidence) -> Finding:
    """How much of the link is used in each cell."""
    found = {at: evidence.mean(GRID[cell(*at)], m.utilised_percent) for at in _grid(evidence)}
    worst = min(found, key=lambda at: found[at])
    good = sum(share > 95 for share in found.values())
    return Finding(
        good == len(found),
        f"above 95 % in {good} of {len(found)} cells; least {found[worst]:.1f} %, at {cell(*worst)}",
        partly=min(found.values()) > 80,
    )


def like_rates(evidence: Evidence) -> Finding:
    """The ratio of goodputs in each cell."""
    found = {at: evidence.mean(GRID[cell(*at)], m.ratio) for at in _grid(evidence)}
    low, high = min(found, key=lambda at: found[at]), max(found, key=lambda at: found[at])
    near = sum(0.5 <= ratio <= 2 for ratio in found.values())
    return Finding(
        near == len(found),
        f"within a factor of 2 in {near} of {len(found)} cells: from {found[low]:.2f} at {cell(*low)} to "
        f"{found[high]:.2f} at {cell(*high)}",
        partly=near > len(found) / 2,
    )


def with_virtual_rtt(evidence: Evidence) -> str:
    """Today's Prague, and DCTCP, in Prague's place."""
    told = []
    for name, runs in (
        (
            "with the virtual RTT of today",
            [SINCE[today(VRTT, equal("Prague", 50, rtt))] for rtt in RTT_MS],
        ),
        ("DCTCP in its place", [SCALED["DCTCP", 50, rtt] for rtt in RTT_MS]),
    ):
        if evidence.has(*runs):
            ratios = [evidence.mean(one, m.ratio) for one in runs]
            told.append(
                f"{name}, at 50 Mbit/s and {each(RTT_MS)} ms: {each(ratios, 2)} times CUBIC's goodput"
            )
    for name, one in (
        ("with it", SINCE[today(VRTT, UNEQUAL_160)]),
        ("of DCTCP", UNEQUAL["DCTCP, dualpi2, 160 and 10 ms"]),
    ):
        if evidence.has(one):
            told.append(
                f"at 160 and 10 ms the shorter has {1 / evidence.mean(one, m.ratio):.1f} times the longer's {name}"
            )
    return f"{'; '.join(told)}." if told else "The full version has them."


def other_steps(evidence: Evidence) -> str:
    """What other steps give at 10 Mbit/s."""
    told = []
    for which in (EACH, ONE, BOTH):
        runs = [SINCE[today(which, equal("Prague", 10, rtt))] for rtt in RTT_MS]
        if evidence.has(*runs):
            ours = [
                f"{evidence.mean(one, m.prague_mbps):.2f} and {evidence.mean(one, m.other_mbps):.2f}"
                for one in runs
            ]
            told.append(f"{which}, {', '.join(ours)}")
    if not told:
        return "The full version has others."
    return (
        "A packet of 1500 B takes 1.2 ms at 10 Mbit/s, and a step of 1 ms for each packet marks whatever "
        f"had to wait for one. Prague and CUBIC at {each(RTT_MS)} ms, Mbit/s: {'; '.join(told)}."
    )


def reno_beside(evidence: Evidence) -> str:
    """Reno under other readings, and in Linux itself."""
    told = []
    for name in RIVALS:
        for queue in RIVAL_QUEUES:
            both = [RENO[rivals(name, f"{other} with ECN", queue)] for other in ("Reno", "CUBIC")]
            if evidence.has(*both):
                ratios = [evidence.mean(one, m.ratio) for one in both]
                told.append(f"{name}, {queue}: {each(ratios, 1)}")
    if not told:
        return FULL_ONLY
    linux = "; ".join(
        f"{queue}: {each(ratios, 1)}, with offloads {each(offloaded, 1)}"
        for queue, (ratios, offloaded) in SAYS["linux"].items()
    )
    return (
        "no reading that was tried gives Reno half of what CUBIC has. Beside Reno and beside CUBIC with ECN the ratio is, "
        f"{'; '.join(told)}. Linux 6.12's own Reno and CUBIC, DCTCP in Prague's place, {linux}: as ours, and with "
        "offloads, which the tests had switched off, still less"
    )


def fit_late(evidence: Evidence, most_ms: float, end: str = "longer") -> int:
    """How many rates of one end of two flows of unequal RTTs in the short queue fit if packets leave their
    hosts up to so much late, as the search found."""
    measure = {"longer": m.prague_mbps, "shorter": m.other_mbps}[end]
    found = {
        at: evidence.mean(LATENESS[late(most_ms, at)], measure)
        for at in (f"Prague, dualpi2, {ends}" for ends in APART_MS)
    }
    return sum(TARGETS[f"unequal/{at}/{end}"].met(ours) for at, ours in found.items())


def exact_time(evidence: Evidence) -> str:
    """What other lateness has of the longer RTT beside the shorter; and with hosts that keep exact time."""
    told = ", ".join(f"{most:g} ms: {fit_late(evidence, most)} of 2" for most in LATE_MS)
    searched = f"Rates of the longer RTT that fit, by how late: {told} ({evidence.searched.made})."
    exact = [EXACTLY[f"Prague, dualpi2, {ends}"] for ends in APART_MS]
    if not evidence.has(*exact):
        return searched
    goodputs = [evidence.mean(one, m.prague_mbps) for one in exact]
    virtual = [
        evidence.mean(SINCE[today(VRTT, f"Prague, dualpi2, {ends}")], m.prague_mbps)
        for ends in APART_MS
    ]
    return (
        f"{searched} On time, two flows alone in the short queue meet a step that marks whole round trips of both "
        f"or none, and the longer RTT has, at {' and at '.join(APART_MS)}, {each(goodputs, 2)} Mbit/s. With time "
        f"as chosen and today's virtual RTT it has {each(virtual, 2)}."
    )


def one_minute(evidence: Evidence) -> str:
    """What single runs have through the FIFO."""
    at = UNEQUAL["Prague, pfifo, 160 and 10 ms"]
    seeds = sorted(evidence.estimate(at, m.prague_mbps).values)
    return (
        "the last minute of a run over a FIFO holds few losses, and who has them decides it: single runs have "
        f"{seeds[0]:.1f} to {seeds[-1]:.1f} Mbit/s, and the published is one run"
    )


def call_off(evidence: Evidence) -> str:
    """A probe beside the call without a token bucket, and beside a slower call."""
    if not evidence.has(
        *(CALLED[called(reading, at)] for reading in CALLS for at in CALL.variants)
    ):
        return FULL_ONLY
    told = []
    for reading in CALLS:
        runs = [CALLED[called(reading, call("dualpi2", mbps))] for mbps in CALL_MBPS]
        medians, tails = (
            [evidence.mean(one, which) for one in runs] for which in (m.probe_p50, m.probe_p99)
        )
        apart_ = evidence.mean(CALLED[called(reading, call("fq_codel", 5))], m.probe_p99)
        told.append(
            f"{reading}: medians {each(medians, 2)} ms, p99 {each(tails, 1)} ms, and {apart_:.1f} ms behind fq_codel"
        )
    return (
        "a lone probe passes a full token bucket at the wire's rate, and pays for its length without one; how Skype's rate "
        f"followed the link's is not known. At {each(CALL_MBPS)} Mbit/s, {'; '.join(told)}"
    )


def partly_in_l(evidence: Evidence) -> str:
    """Less of the call in the short queue."""
    at = beside("Prague", "video in L")
    less = BESIDE_READINGS[f"{PARTLY}: {at}"]
    if not evidence.has(less):
        return FULL_ONLY
    return (
        "by mistake the tests had in the short queue only the packets above 1024 B. With three quarters of the call there, and the "
        f"rest left out, Prague has {evidence.mean(less, m.prague_mbps):.2f} Mbit/s, for {evidence.mean(VIDEO[at], m.prague_mbps):.2f} with all of it"
    )


def cubic_beside(evidence: Evidence) -> str:
    """CUBIC beside the call with half of DualPI2's gains."""
    runs = [BESIDE_READINGS[f"{HALF_GAINS}: {beside('CUBIC', video)}"] for video in BESIDE["CUBIC"]]
    if not evidence.has(*runs):
        return FULL_ONLY
    return (
        "the versions of sch_dualpi2.c of 2019 have half of today's gains, as they divide by 127 for 64. With those CUBIC has, "
        f"{' and '.join(BESIDE['CUBIC'])}, {each([evidence.mean(one, m.prague_mbps) for one in runs], 2)} Mbit/s"
    )


def gains(evidence: Evidence) -> str:
    """Half of the gains, as a sentence."""
    return _sentence(cubic_beside(evidence))


def half_gains_refused(evidence: Evidence) -> str:
    """Why half of the gains is not the chosen reading."""
    return (
        "Of the L4STeam's repository the file is known to us at two other commits, one with and one "
        f"without. {gains(evidence)}"
    )


def call_refused(evidence: Evidence) -> str:
    """Why the call and its link are as chosen."""
    return f"The tests' link is an htb, and their capture has the chosen rate. {_sentence(call_off(evidence))}"


def partly_refused(evidence: Evidence) -> str:
    """Why all of the call is in the short queue."""
    return f"How large a part it was is not stored. {_sentence(partly_in_l(evidence))}"


def _sentence(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}."


def equal_caption(evidence: Evidence) -> str:
    """What RFC 9332's steady state says of it."""
    return (
        "Goodput of the flow in the short queue over CUBIC's. Lines, in the colours of the points: what the "
        "windows of RFC 9332, appendix C, give where CUBIC is like Reno, without a virtual RTT and with one "
        "of 25 ms; hollow: published."
    )
