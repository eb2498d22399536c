"""What is measured.

share      what the flows of BBR get of what all get, percent
ping       the 95th percentile of the ping's RTT less that without load, ms
"""

from __future__ import annotations

import math

from sojourn import metrics
from sojourn.papers.evidence import Seed


def share_percent(seed: Seed) -> float:
    """BBR's part of the goodput of all, percent."""
    got = {"bbr": 0.0, "cubic": 0.0}
    for flow in seed.numbers["flows"]:
        kind = flow["name"].partition(".")[0]
        if kind in got:
            got[kind] += float(flow["goodput_mbps"])
    return 100 * metrics.ratio(got["bbr"], math.fsum(got.values()))


def queued_ms(seed: Seed) -> float:
    """What queues add to the ping's RTT, the 95th percentile, ms."""
    ping = seed.probe()
    return float(ping["rtt_ms"]["p95"]) - float(ping["base_rtt_ms"])
