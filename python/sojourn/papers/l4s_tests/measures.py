"""What is measured: goodputs of the two flows, their ratio, and their RTTs.

ratio      the goodput of the flow `prague` over that of the flow `other`
goodputs   of one of them, Mbit/s
RTTs       of one of them, as its TCP samples them, ms
"""

from __future__ import annotations

from functools import cache

from sojourn import metrics
from sojourn.papers.evidence import Measure, Seed

FLOWS = ("prague", "other")


@cache
def goodput(flow: str) -> Measure:
    """Of one flow, Mbit/s."""

    def measured(seed: Seed) -> float:
        return float(seed.flow(flow)["goodput_mbps"])

    return measured


@cache
def rtt_ms(flow: str) -> Measure:
    """Of one flow, as its TCP samples it, the mean, ms."""

    def measured(seed: Seed) -> float:
        return float(seed.flow(flow)["rtt_ms"]["mean"])

    return measured


prague_mbps, other_mbps = map(goodput, FLOWS)


def ratio(seed: Seed) -> float:
    """The first flow's goodput over the second one's."""
    return metrics.ratio(prague_mbps(seed), other_mbps(seed))
