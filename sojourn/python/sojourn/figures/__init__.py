"""Figures: one function per figure, Runs in, a matplotlib Figure out.

    from sojourn import Run, figures

    figures.save(figures.timeline(Run.open("runs/home")), "home.svg")

`save` writes PNG, SVG or PDF, and PGF if LaTeX is installed. The same Runs give the same bytes. For
a paper each function takes `paper=figures.ONE_COLUMN`; with `ax` it draws into a panel of another
figure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from matplotlib.figure import Figure

from sojourn.figures import series
from sojourn.figures.beside import boxes, ping_lines, stacked
from sojourn.figures.coexistence import can_map, coexistence
from sojourn.figures.comparison import bars, tradeoff
from sojourn.figures.distribution import cdf, cdf_by_phase
from sojourn.figures.over_time import timeline
from sojourn.figures.pings import density
from sojourn.figures.style import FORMATS, ONE_COLUMN, TWO_COLUMNS, FormatError, Paper, save
from sojourn.records import Run, holding

__all__ = [
    "FORMATS",
    "ONE_COLUMN",
    "TWO_COLUMNS",
    "FormatError",
    "Paper",
    "all_for",
    "bars",
    "boxes",
    "cdf",
    "cdf_by_phase",
    "coexistence",
    "density",
    "ping_lines",
    "save",
    "stacked",
    "timeline",
    "tradeoff",
]


def all_for(runs: Sequence[Run], *, paper: Paper | None = None) -> dict[str, Figure]:
    """Every figure that these Runs can fill, by a name for a file: "timeline-fq_codel",
    "cdf-sojourn". With `paper`, for a paper."""
    series.check(runs)
    with holding(runs):
        return _all_for(runs, paper)


def _all_for(runs: Sequence[Run], paper: Paper | None) -> dict[str, Figure]:
    # A paper's names and order are for all Runs together. A figure of one Run takes only the sizes.
    one = paper.with_(labels={}, colours={}, order=()) if paper is not None else None
    found: dict[str, Figure] = {}
    for run, link in zip(runs, series.bottlenecks(runs), strict=True):
        found[_free(f"timeline-{slug(run.name)}", found)] = timeline(run, link=link, paper=one)
        for probe in series.answered(run)[:1]:
            found[_free(f"density-{slug(run.name)}", found)] = density(run, probe, paper=one)
        if series.is_measured(run):
            found[_free(f"cdf-phases-{slug(run.name)}", found)] = cdf_by_phase(run, paper=one)
    if all(map(series.is_measured, runs)):
        if len(runs) > 1:
            for name in series.phase_names(runs):
                found[_free(f"cdf-ping-{slug(name)}", found)] = cdf(runs, "ping", name, paper=paper)
        return found
    found["cdf-sojourn"] = cdf(runs, "sojourn", paper=paper)
    if any(series.probes(run) for run in runs):
        found["cdf-ping"] = cdf(runs, "ping", paper=paper)
    if any(series.sampled(run) for run in runs):
        found["cdf-rtt"] = cdf(runs, "rtt", paper=paper)
    if any(series.completions(run).samples for run in runs):
        found["cdf-completion"] = cdf(runs, "completion", paper=paper)
    if any(series.one_way(run).samples for run in runs):
        found["cdf-one-way"] = cdf(runs, "one_way", paper=paper)
    if len(runs) > 1:
        found["bars"] = bars(runs, paper=paper)
        found["boxes"] = boxes(runs, paper=paper)
        found["stacked"] = stacked(runs, paper=paper)
        found["tradeoff"] = tradeoff(runs, paper=paper)
    if can_map(runs):
        found["coexistence"] = coexistence(runs, paper=paper)
    return found


def slug(text: str) -> str:
    """A name for a file: letters, digits, dots, underscores, dashes."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:60] or "run"


def _free(name: str, taken: dict[str, Figure]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free
