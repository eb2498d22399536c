"""The published numbers and claims under other readings: a matrix.

A reading is run with variants that replace those of the chosen one (`Paper.swaps`), or a search ran
it and its results are stored (`Paper.stored`). Each number and claim is evaluated under each
reading. A number fits by its tolerance alone; orders are not judged here.

"No difference" is a reading, too: one discipline replaces the others (`Paper.no_difference`). A
number that also fits under it proves nothing about the discipline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sojourn.digits import on_page
from sojourn_papers.evidence import Estimate, Evidence, NotRun, Swap, variant_of
from sojourn_papers.paper import Number, Paper, Role
from sojourn_papers.verdict import ClaimRow, Row, Verdict, checked

CHOSEN = "as chosen"
ON_OTHER_SEEDS = f"{CHOSEN}, on the search's seeds"
"""The chosen reading in a stored search, with which the search's other readings are compared."""


@dataclass(frozen=True)
class Under:
    """A published number under a reading."""

    ours: float
    fits: bool
    """Whether it is within the number's tolerance, or on the stated side of its bound."""


@dataclass(frozen=True)
class Matrix:
    """Readings and the numbers that at least one of them changes."""

    numbers: Sequence[Number]
    chosen: Mapping[str, Under]
    """By the number's id."""
    others: Mapping[str, Mapping[str, Under]]
    """By reading, then by the number's id, without the numbers that the reading does not change."""
    searched: frozenset[str] = frozenset()
    """Readings that were run on the search's seeds."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why a reading was not chosen, by its name."""
    claims: Mapping[str, Mapping[str, Verdict]] = field(default_factory=dict)
    """By reading, then by the claim's id: the verdicts that differ under the reading."""

    def fitting(self, name: str) -> tuple[int, int, int]:
        """Counts of the numbers that a reading changes: those that fit under it, those that fit as
        chosen, and all. A reading of a search is compared with the chosen one on the search's
        seeds, if that is stored."""
        own = self.others[name]
        same = self.others.get(ON_OTHER_SEEDS, {}) if name in self.searched else {}
        chosen = {**self.chosen, **same} if name != ON_OTHER_SEEDS else self.chosen
        as_chosen = sum(chosen[id_].fits for id_ in own)
        return sum(one.fits for one in own.values()), as_chosen, len(own)

    def better(self) -> dict[str, tuple[int, int, int]]:
        """Readings that fit more of the numbers that they change than the chosen one does."""
        found = {name: self.fitting(name) for name in self.others if name != ON_OTHER_SEEDS}
        return {name: each for name, each in found.items() if each[0] > each[1]}

    def described(self, name: str) -> str:
        """`a steady film: fits 1 of 3 numbers that it changes, 2 as chosen; the claim X is not
        reproduced`."""
        if name not in self.others and name not in self.claims:
            return f"{name}: not run here, or it changes no judged number"
        said = []
        if name in self.others:
            fits, as_chosen, of = self.fitting(name)
            numbers = "number" if of == 1 else "numbers"
            said.append(f"fits {fits} of {of} {numbers} that it changes, {as_chosen} as chosen")
        said += [f"{claim} is {word}" for claim, word in self.claims.get(name, {}).items()]
        return f"{name}: {'; '.join(said)}"

    def elsewhere(self, number: Number) -> str:
        """A sentence on the other readings that fit a number, or on the nearest one; empty if none
        changes it."""
        ours = {
            name: under[number.id]
            for name, under in self.others.items()
            if number.id in under and name != ON_OTHER_SEEDS
        }
        if not ours:
            return ""
        fits = [f"{name} ({on_page(one.ours)})" for name, one in ours.items() if one.fits]
        if fits:
            return f"Other readings fit it: {', '.join(fits)}."
        stated = number.target.published
        near = min(ours, key=lambda name: abs(ours[name].ours - stated))
        return f"Of {len(ours)} other readings the nearest: {near} ({on_page(ours[near].ours)})."

    def readings(self) -> Iterator[tuple[str, Mapping[str, Under]]]:
        """All readings, the chosen one first."""
        yield CHOSEN, self.chosen
        yield from self.others.items()


def matrix(
    paper: Paper, evidence: Evidence, rows: Sequence[Row], claims: Sequence[ClaimRow] = ()
) -> Matrix:
    """The matrix of the readings that were run or stored. `rows` are the paper's judged numbers,
    `claims` its judged claims."""
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
    changing = {name: found for name, found in others.items() if found}
    moved = {id_ for found in changing.values() for id_ in found}
    numbers = [row.number for row in stated if row.number.id in moved]
    chosen = {row.number.id: _judged(row.number, row.ours) for row in stated}
    only_searched = {study[name] for study in paper.search_studies for name in study.variants}
    searched = {
        name
        for name, swap in paper.swaps.items()
        if {variant_of(one) for one in swap.values() if one} & only_searched
    }
    return Matrix(
        numbers,
        {one.id: chosen[one.id] for one in numbers},
        changing,
        frozenset(searched | set(paper.stored)),
        paper.refused,
        {
            name: changed
            for name, swap in paper.swaps.items()
            if (changed := _claims(evidence, swap, claims))
        },
    )


def no_difference(paper: Paper, evidence: Evidence, rows: Sequence[Row]) -> tuple[int, int, int]:
    """Counts of the predicted numbers that compare disciplines: those that fit, those that would
    fit if the disciplines did not differ, and all."""
    predicted = [row for row in rows if row.number.role is Role.PREDICTED]
    rival = _swapped(evidence, paper.no_difference, predicted)
    compared = [row for row in predicted if row.number.id in rival]
    same = sum(row.number.target.met(rival[row.number.id].mean) for row in compared)
    return sum(row.number.target.met(row.ours.mean) for row in compared), same, len(compared)


def _claims(evidence: Evidence, swap: Swap, claims: Sequence[ClaimRow]) -> dict[str, Verdict]:
    other = evidence.under(swap)
    found = {row.claim.id: checked(row.claim, other).verdict for row in claims}
    return {
        row.claim.id: found[row.claim.id]
        for row in claims
        if found[row.claim.id] not in (row.verdict, Verdict.NOT_RUN)
    }


def _swapped(evidence: Evidence, swap: Swap, rows: Sequence[Row]) -> dict[str, Estimate]:
    """The numbers that a reading changes, under that reading, which was run."""
    other = evidence.under(swap)
    found = {}
    for number in (row.number for row in rows):
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
