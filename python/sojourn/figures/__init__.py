"""Figures: one function per figure, Runs in, a matplotlib Figure out.

    from sojourn import Run, figures

    figures.save(figures.timeline(Run.open("runs/home")), "home.svg")

`save` writes PNG, SVG or PDF. Drawn again from the same Runs, a file has the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from matplotlib.figure import Figure

from sojourn.figures import series
from sojourn.figures.comparison import bars, tradeoff
from sojourn.figures.distribution import cdf, cdf_by_phase
from sojourn.figures.over_time import timeline
from sojourn.figures.pings import density
from sojourn.figures.style import FORMATS, FormatError, save
from sojourn.records import Run, holding

__all__ = [
    "FORMATS",
    "FormatError",
    "all_for",
    "bars",
    "cdf",
    "cdf_by_phase",
    "density",
    "save",
    "timeline",
    "tradeoff",
]


def all_for(runs: Sequence[Run]) -> dict[str, Figure]:
    """Every figure that these Runs can fill, by a name that can be a file's: "timeline-fq_codel",
    "cdf-sojourn"."""
    series.check(runs)
    with holding(runs):
        return _all_for(runs)


def _all_for(runs: Sequence[Run]) -> dict[str, Figure]:
    found: dict[str, Figure] = {}
    for run, link in zip(runs, series.bottlenecks(runs), strict=True):
        found[_free(f"timeline-{slug(run.name)}", found)] = timeline(run, link=link)
        for probe in series.answered(run)[:1]:
            found[_free(f"density-{slug(run.name)}", found)] = density(run, probe)
        if series.is_measured(run):
            found[_free(f"cdf-phases-{slug(run.name)}", found)] = cdf_by_phase(run)
    if all(map(series.is_measured, runs)):
        if len(runs) > 1:
            for name in series.phase_names(runs):
                found[_free(f"cdf-ping-{slug(name)}", found)] = cdf(runs, "ping", name)
        return found
    found["cdf-sojourn"] = cdf(runs, "sojourn")
    if any(series.probes(run) for run in runs):
        found["cdf-ping"] = cdf(runs, "ping")
    if any(series.sampled(run) for run in runs):
        found["cdf-rtt"] = cdf(runs, "rtt")
    if len(runs) > 1:
        found["bars"] = bars(runs)
        found["tradeoff"] = tradeoff(runs)
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
