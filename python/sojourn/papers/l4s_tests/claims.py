"""Checks of the findings, and sentences that hold numbers of our Runs."""

from __future__ import annotations

from sojourn.papers import published
from sojourn.papers.evidence import Evidence
from sojourn.papers.l4s_tests import measures as m
from sojourn.papers.l4s_tests.studies import (
    APART,
    RTT_MS,
    SCALED,
    SHARED,
    SPARED,
    STEP,
    UNEQUAL,
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
