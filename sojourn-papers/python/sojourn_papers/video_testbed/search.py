"""The searches for the length of the senders' bursts, RED's parameters, and CoDel's limit.

sojourn reproduce --search video-testbed > searched.csv

No verdict uses the seeds of these searches. Bursts are chosen by Drop Tail's loss at 250 kbps, RED by
the cells of table 3, and CoDel by the conclusion's five numbers.
"""

from __future__ import annotations

from itertools import product
from math import ceil

from sojourn_papers.study import Study
from sojourn_papers.video_testbed import measures as m
from sojourn_papers.video_testbed.studies import BOTTLENECKS, BURSTS, shaped

LIMITS = (2, 3, 4, 5, 6, 8, 10, 20, 50, 1000)
"""CoDel's limits, packets."""


def _red(least: int, most: int, probability: float) -> str:
    burst = ceil((2 * least + most) / 3000) + 2
    return f"red limit 400000 min {least} max {most} avpkt 1000 burst {burst} probability {probability}"


REDS = tuple(
    _red(*one)
    for one in product((10000, 15000, 20000, 30000), (60000, 90000), (0.02, 0.05, 0.1, 0.3, 0.5))
)


def behind(words: str, kbps: int) -> str:
    """The name of a variant with this discipline."""
    return f"{kbps} {words}"


CODELS = Study(
    "codel-limits",
    "CoDel's limit",
    "testbed.toml",
    variants={
        behind(f"codel limit {limit}", kbps): shaped(kbps, f"codel limit {limit}")
        for limit in LIMITS
        for kbps in BOTTLENECKS
    },
    seeds=10,
    first_seed=101,
)
RED_SETTINGS = Study(
    "red-settings",
    "RED's thresholds and probability",
    "testbed.toml",
    variants={behind(words, kbps): shaped(kbps, words) for words in REDS for kbps in BOTTLENECKS},
    first_seed=101,
)
STUDIES = (BURSTS, CODELS, RED_SETTINGS)
MEASURES = {
    "least_ms": m.least_ms,
    "most_ms": m.most_ms,
    "mean_ms": m.mean_ms,
    "throughput_kbps": m.throughput_kbps,
    "sent_pings": m.sent_pings,
    "received_pings": m.received_pings,
    "ping_loss_percent": m.ping_loss_percent,
}
