"""What other readings make of the published numbers: a matrix of readings and numbers.

A reading is run as variants that stand for those of the chosen one (`Paper.swaps`), or was searched
and stored (`Paper.stored`). A number is asked for under each; whether it fits is a matter of its
tolerance alone, as no order is judged here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sojourn.papers.evidence import Estimate, Evidence, NotRun, Swap
from sojourn.papers.paper import Number, Paper
from sojourn.papers.verdict import Row

CHOSEN = "as chosen"
ON_OTHER_SEEDS = f"{CHOSEN}, on the search's seeds"
"""The chosen reading in a stored search: what the others of it are to be compared with."""


@dataclass(frozen=True)
class Under:
    """A published number under a reading."""

    ours: float
    fits: bool
    """Within the tolerance of the number, or on the stated side of its bound."""


@dataclass(frozen=True)
class Matrix:
    """Readings and the numbers that at least one of them changes."""

    numbers: Sequence[Number]
    chosen: Mapping[str, Under]
    """By the number's id."""
    others: Mapping[str, Mapping[str, Under]]
    """By reading, then by the number's id; a number that a reading leaves as it is has none."""
    searched: frozenset[str] = frozenset()
    """Readings that were run on the search's seeds."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why a reading is not the chosen one, by its name."""

    def fitting(self, name: str) -> tuple[int, int, int]:
        """Of the numbers that a reading changes: how many fit, how many of them as chosen, and how
        many there are. What was searched is compared with the chosen one on the same seeds, where
        that is stored."""
        own = self.others[name]
        same = self.others.get(ON_OTHER_SEEDS, {}) if name in self.searched else {}
        chosen = {**self.chosen, **same} if name != ON_OTHER_SEEDS else self.chosen
        as_chosen = sum(chosen[id_].fits for id_ in own)
        return sum(one.fits for one in own.values()), as_chosen, len(own)

    def better(self) -> dict[str, tuple[int, int, int]]:
        """Readings that fit more of the numbers that they change than the chosen one does."""
        found = {name: self.fitting(name) for name in self.others if name != ON_OTHER_SEEDS}
        return {name: each for name, each in found.items() if each[0] > each[1]}

    def readings(self) -> Iterator[tuple[str, Mapping[str, Under]]]:
        """All, the chosen one first."""
        yield CHOSEN, self.chosen
        yield from self.others.items()


def matrix(paper: Paper, evidence: Evidence, rows: Sequence[Row]) -> Matrix:
    """The matrix of what was run and stored; `rows` are the paper's numbers, judged."""
    stated = [row for row in rows if row.number.published is not None]
    asked = {
        **{name: _swapped(evidence, swap, stated) for name, swap in paper.swaps.items()},
        **paper.stored,
    }
    others = {
        name: {
            row.number.id: _judged(row.number, estimates[row.number.id])
            for row in stated
            if row.number.id in estimates
        }
        for name, estimates in asked.items()
    }
    told = {name: found for name, found in others.items() if found}
    moved = {id_ for found in told.values() for id_ in found}
    numbers = [row.number for row in stated if row.number.id in moved]
    chosen = {row.number.id: _judged(row.number, row.ours) for row in stated}
    only_searched = {study[name] for study in paper.search_studies for name in study.variants}
    searched = {name for name, swap in paper.swaps.items() if set(swap.values()) & only_searched}
    return Matrix(
        numbers,
        {one.id: chosen[one.id] for one in numbers},
        told,
        frozenset(searched | set(paper.stored)),
        {
            name: why if isinstance(why, str) else why(evidence)
            for name, why in paper.refused.items()
        },
    )


def _swapped(evidence: Evidence, swap: Swap, rows: Sequence[Row]) -> dict[str, Estimate]:
    """Each number under a reading that was run; without those that it does not touch."""
    other = evidence.under(swap)
    found = {}
    for number in (row.number for row in rows):
        if number.measure is not None:
            stands = swap.get(number.variant)
            if stands is not None and evidence.can_say(stands, number.measure):
                found[number.id] = evidence.estimate(stands, number.measure)
            continue
        other.used.clear()
        try:
            ours = number.ours(other)
        except NotRun:
            continue
        if other.used & set(swap):
            found[number.id] = ours
    return {id_: one for id_, one in found.items() if not math.isnan(one.mean)}


def _judged(number: Number, ours: Estimate) -> Under:
    return Under(ours.mean, not math.isnan(ours.mean) and number.target.met(ours.mean))
