"""The search for the modem's buffer: each size without the shaper.

sojourn reproduce --search home-upload > searched.csv

It runs on seeds that judge nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sojourn.papers import searched
from sojourn.papers.evidence import SearchResults
from sojourn.papers.home_upload import measures as m
from sojourn.papers.home_upload.studies import BUFFER

STUDIES = (BUFFER,)
SEEDS = range(BUFFER.first_seed, BUFFER.first_seed + BUFFER.seeds)
MEASURES = {
    "upload_s": m.upload_s,
    "median_ms": m.median_ms,
    "spread_ms": m.spread_ms,
    "worst_ms": m.worst_ms,
    "loss_percent": m.loss_percent,
    "idle_median_ms": m.idle_median_ms,
    "idle_spread_ms": m.idle_spread_ms,
    "pings_a_second": m.pings_a_second,
}


def rows() -> Iterator[Mapping[str, object]]:
    """A line for each buffer and seed."""
    return searched.of_studies(Path(__file__).parent, STUDIES, MEASURES)


def results(quick: bool) -> SearchResults:
    """What was found, for the evidence."""
    return searched.results(__file__, STUDIES, MEASURES, quick)
