"""Checks of the findings, and sentences that hold numbers of our Runs."""

from __future__ import annotations

from sojourn.papers import published
from sojourn.papers.evidence import Evidence
from sojourn.papers.l4s_tests import measures as m
from sojourn.papers.l4s_tests.studies import (
    APART,
    BURSTY,
    FALLEN,
    FALLING,
    RTT_MS,
    SCALED,
    SHARED,
    SPARED,
    STEP,
    STEPS_MS,
    UNEQUAL,
    behind,
    falls,
    spared,
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


def without_virtual_rtt(evidence: Evidence) -> str:
    """DCTCP, which has none, in Prague's place."""
    known = [rtt for rtt in RTT_MS if evidence.has(SCALED["DCTCP", 50, rtt])]
    ratios = [evidence.mean(SCALED["DCTCP", 50, rtt], m.ratio) for rtt in known]
    told = f"DCTCP in its place, at 50 Mbit/s and {each(known)} ms: {each(ratios, 2)} times CUBIC's goodput"
    far = UNEQUAL["DCTCP, dualpi2, 160 and 10 ms"]
    if evidence.has(far):
        told += f"; at 160 and 10 ms the shorter has {1 / evidence.mean(far, m.ratio):.1f} times the longer's"
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
