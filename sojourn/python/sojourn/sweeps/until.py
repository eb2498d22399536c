"""Which Runs need more seeds for a number to be known well enough.

A number is known well enough if half of its 95 % interval is at most a share of its mean. Runs that
compete keep the same seeds, so that they can still be compared seed by seed: where one of them needs
more, all of its contest get more, as many again as they have. Few looks are better than many. Each
look may find the interval narrow by chance, and then nothing more is run: so the interval of what was
stopped in this way leaves out the truth more often than once in twenty times.
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
    """How well a number is to be known."""

    key: str
    """A column's name, as `--columns` takes it."""
    share: float
    """Half of the interval over the mean, at most."""
    most: int
    """Seeds of a Run."""


@dataclass(frozen=True)
class Lacking:
    """A Run that is to have more seeds."""

    run: Run
    widest: float
    """Half of the interval over the mean, of the number that is known least; infinite: no interval
    yet. Below the share wanted: only those that it competes with lack some."""
    seeds: tuple[int, ...]
    """Those to add; none: it has the most already."""


def lacking(runs: Sequence[Run], wanted: Precision, link: str | None = None) -> list[Lacking]:
    """The Runs that need more seeds, in their order.

    Raises:
        UserError: none of them has such a number.
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
    """Half of the interval over the mean. 0 where more seeds tell no more: the number can't be
    said, is 0, or is the same for all seeds, in which nothing is random."""
    mean, half = cell.values(key)
    seeds = len(cell.at.summary.seeds)
    if math.isnan(mean) or (seeds > 1 and cell.at.summary.samples == 1):
        return 0.0
    if math.isnan(half):
        return math.inf if seeds == 1 else 0.0
    return half / abs(mean) if mean else 0.0


def as_many_again(run: Run, most: int) -> tuple[int, ...]:
    """Seeds to add to a Run: as many as were asked for, up to the most."""
    asked = run.meta.seeds_asked
    first = max(asked) + 1
    return tuple(range(first, min(first + min(len(asked), most - len(asked)), SEEDS_END)))
