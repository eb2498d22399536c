"""The searches for the length of the senders' bursts, RED's parameters, and CoDel's limit.

sojourn reproduce --search video-testbed > searched.csv

No verdict uses the seeds of these searches. Bursts are chosen by Drop Tail's loss at 250 kbps, RED by
the cells of table 3, and CoDel by the conclusion's five numbers. The chosen rate's ten films give
another reading of the tables: their three best films.
"""

from __future__ import annotations

from itertools import product
from math import ceil

from sojourn_papers import searched
from sojourn_papers.evidence import Estimate, estimated
from sojourn_papers.study import Study
from sojourn_papers.video_testbed import measures as m
from sojourn_papers.video_testbed.studies import BOTTLENECKS, BURSTS, WIRE, burst, shaped

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
BEST = 3


def by_number() -> dict[str, dict[str, Estimate]]:
    """The mean over the three films with the least mean latency, for each of the tables' numbers,
    by the number's id."""
    films: dict[str, list[searched.Row]] = {}
    for row in searched.beside(__file__).rows:
        films.setdefault(row["variant"], []).append(row)
    found = {}
    for name in ("Drop Tail", "RED"):
        for kbps in BOTTLENECKS:
            ten = films[burst(name, kbps, WIRE)]
            best = sorted(ten, key=lambda row: float(row["mean_ms"]))[:BEST]
            for column, at in _COLUMNS.items():
                found[f"{name}/{kbps}/{at}"] = estimated(float(row[column]) for row in best)
    return {"three best of ten films": found}


_COLUMNS = {
    "least_ms": "least",
    "most_ms": "most",
    "mean_ms": "mean",
    "throughput_kbps": "throughput",
    "received_pings": "received",
    "ping_loss_percent": "lost",
}
"""Columns of the search, and their names in the tables' numbers."""
