"""Finds the Runs that need more seeds until a number is precise enough.

A number is precise enough if half of its 95 % interval is at most a given share of its mean. Runs
that compete keep the same seeds, so that they can be compared seed by seed. If one of them needs
more, the number of seeds is doubled for every Run of its contest. Each round may find the interval
narrow by chance and stop, so doubling keeps the rounds few. Even so, an interval found in this way
misses the true value more often than once in twenty times.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.defaults import SEEDS_END
from sojourn.records import Run
from sojourn.sweeps.grid import SweepCell, of_runs


@dataclass(frozen=True)
class Precision:
    """The wanted precision of a number."""

    key: str
    """The name of a column, as in `--columns`."""
    share: float
    """The largest half interval, as a share of the mean."""
    most: int
    """The most seeds of a Run."""


@dataclass(frozen=True)
class Lacking:
    """A Run that needs more seeds."""

    run: Run
    widest: float
    """The widest half interval of its numbers, as a share of the mean; infinite: no interval yet.
    Below the wanted share, only competing Runs need more seeds."""
    seeds: tuple[int, ...]
    """The seeds to add; empty: the Run has the largest number already."""


def lacking(runs: Sequence[Run], wanted: Precision, link: str | None = None) -> list[Lacking]:
    """The Runs that need more seeds, in their order.

    Raises:
        UserError: no Run has such a number.
    """
    grid = of_runs(runs, link)
    keys = [quantity.key for quantity in grid.selected([wanted.key])]
    widths = [max((_width(cell, key) for key in keys), default=0.0) for cell in grid.cells]
    contests = [id(cell.contest) for cell in grid.cells]
    wide = {
        contest for contest, width in zip(contests, widths, strict=True) if width > wanted.share
    }
    return [
        Lacking(run, width, as_many_again(run, wanted.most))
        for run, width, contest in zip(runs, widths, contests, strict=True)
        if contest in wide
    ]


def _width(cell: SweepCell, key: str) -> float:
    """Half of the interval as a share of the mean. It is 0 if more seeds can't narrow it: the
    number is unknown, is 0, or is the same for all seeds because nothing is random."""
    mean, half = cell.values(key)
    seeds = len(cell.at.summary.seeds)
    if math.isnan(mean) or (seeds > 1 and cell.at.summary.samples == 1):
        return 0.0
    if math.isnan(half):
        return math.inf if seeds == 1 else 0.0
    return half / abs(mean) if mean else 0.0


def as_many_again(run: Run, most: int) -> tuple[int, ...]:
    """The seeds that double the number requested for a Run, but no more than `most` in all."""
    count = len(run.meta.seeds_asked)
    first = max(run.meta.seeds_asked) + 1
    return tuple(range(first, min(first + min(count, most - count), SEEDS_END)))
