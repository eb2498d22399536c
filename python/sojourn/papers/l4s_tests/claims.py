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
    BURSTY,
    CALL,
    CALL_MBPS,
    ENOUGH,
    FALLEN,
    FALLING,
    FIFO,
    GRID,
    GRID_MBPS,
    GRID_MS,
    PLAIN,
    REPLAY,
    RTT_MS,
    SCALED,
    SHARED,
    SPARED,
    STEP,
    STEPS_MS,
    TUNNEL,
    UNEQUAL,
    VIDEO,
    WINDOWS,
    behind,
    beside,
    call,
    cell,
    falls,
    plain,
    spared,
    through,
    windowed,
)
from sojourn.papers.paper import Finding
from sojourn.papers.said import each

SAYS = published.beside(__file__)
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
            1 / evidence.mean(UNEQUAL[f"Prague, dualpi2, {ends}"], m.ratio),
            1 / evidence.mean(PLAIN[plain(ends)], m.ratio),
        )
        for ends in APART_MS
        if evidence.has(PLAIN[plain(ends)], UNEQUAL[f"Prague, dualpi2, {ends}"])
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


def without_virtual_rtt(evidence: Evidence) -> str:
    """DCTCP, which has none, in Prague's place."""
    own = [rtt for rtt in RTT_MS if evidence.has(PLAIN[plain(f"{rtt} ms beside CUBIC")])]
    mine = [evidence.mean(PLAIN[plain(f"{rtt} ms beside CUBIC")], m.ratio) for rtt in own]
    known = [rtt for rtt in RTT_MS if evidence.has(SCALED["DCTCP", 50, rtt])]
    ratios = [evidence.mean(SCALED["DCTCP", 50, rtt], m.ratio) for rtt in known]
    told = f"DCTCP in its place, at 50 Mbit/s and {each(known)} ms: {each(ratios, 2)} times CUBIC's goodput"
    far = UNEQUAL["DCTCP, dualpi2, 160 and 10 ms"]
    if evidence.has(far):
        told += f"; at 160 and 10 ms the shorter has {1 / evidence.mean(far, m.ratio):.1f} times the longer's"
    if own:
        told += f"; version 0.7 without its virtual RTT, at {each(own)} ms: {each(mine, 2)}"
    return f"{told}."


def short_step(evidence: Evidence) -> str:
    """What a step that spares a packet or two gives at 10 Mbit/s."""
    told = []
    for packets in SPARED:
        runs = [STEP[spared(packets, rtt)] for rtt in RTT_MS]
        if evidence.has(*runs):
            ours = [
                f"{evidence.mean(one, m.prague_mbps):.2f} and {evidence.mean(one, m.other_mbps):.2f}"
                for one in runs
            ]
            told.append(f"with min_qlen_step {packets}, {', '.join(ours)}")
    if not told:
        return "the full version has a step that spares a packet or two"
    return (
        "a packet of 1500 B takes 1.2 ms at 10 Mbit/s, and Linux 7.3's step of 1 ms marks whatever had to "
        f"wait for one. Prague and CUBIC at {each(RTT_MS)} ms, Mbit/s: {'; '.join(told)}. Whether the "
        "dualpi2 of 2020 spared a packet is not known to us"
    )


def equal_caption(evidence: Evidence) -> str:
    """What RFC 9332's steady state says of it."""
    return (
        "Goodput of the flow in the short queue over CUBIC's. Lines: what the windows of RFC 9332, "
        "appendix C, give where CUBIC is like Reno, with a virtual RTT of 25 ms and without; hollow: "
        "published."
    )
