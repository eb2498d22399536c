"""The search for the length of the senders' bursts: each rate of the senders under Drop Tail and RED.

sojourn reproduce --search video-testbed > searched.csv

It runs on seeds that judge nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sojourn.papers import searched
from sojourn.papers.evidence import SearchResults
from sojourn.papers.video_testbed import measures as m
from sojourn.papers.video_testbed.studies import BURSTS

STUDIES = (BURSTS,)
SEEDS = range(BURSTS.first_seed, BURSTS.first_seed + BURSTS.seeds)
MEASURES = {
    "least_ms": m.least_ms,
    "most_ms": m.most_ms,
    "mean_ms": m.mean_ms,
    "throughput_kbps": m.throughput_kbps,
    "sent_pings": m.sent_pings,
    "received_pings": m.received_pings,
    "ping_loss_percent": m.ping_loss_percent,
}


def rows() -> Iterator[Mapping[str, object]]:
    """A line for each discipline, bottleneck, rate of the senders and seed."""
    return searched.of_studies(Path(__file__).parent, STUDIES, MEASURES)


def results(quick: bool) -> SearchResults:
    """What was found, for the evidence."""
    return searched.results(__file__, STUDIES, MEASURES, quick)
