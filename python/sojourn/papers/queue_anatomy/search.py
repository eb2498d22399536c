"""The search for the limit of the servers' windows: each limit at the sizes that tell, with both ways
to take a timer, and at other rates.

sojourn reproduce --search queue-anatomy > searched.csv

It runs on seeds that judge nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sojourn.papers import searched
from sojourn.papers.evidence import SearchResults
from sojourn.papers.queue_anatomy import measures as m
from sojourn.papers.queue_anatomy.studies import LIMITS

STUDIES = (LIMITS,)
SEEDS = range(LIMITS.first_seed, LIMITS.first_seed + LIMITS.seeds)
MEASURES = {
    "rtt_s": m.rtt_s,
    "p95_s": m.p95_s,
    "drops": m.drops,
    "retransmissions": m.retransmissions,
    "throughput_mbps": m.throughput_mbps,
}


def rows() -> Iterator[Mapping[str, object]]:
    """A line for each limit, size and seed."""
    return searched.of_studies(Path(__file__).parent, STUDIES, MEASURES)


def results(quick: bool) -> SearchResults:
    """What was found, for the evidence."""
    return searched.results(__file__, STUDIES, MEASURES, quick)
