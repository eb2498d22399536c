"""What is measured: goodputs of the two flows and their ratio, delays and marks of the two queues.

ratio      the goodput of the flow `prague` over that of the flow `other`
goodputs   of one of them, Mbit/s
delays     from enqueue to dequeue at the bottleneck, of all packets, ms
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


prague_mbps, other_mbps = map(goodput, FLOWS)


def ratio(seed: Seed) -> float:
    """The first flow's goodput over the second one's."""
    return metrics.ratio(prague_mbps(seed), other_mbps(seed))
