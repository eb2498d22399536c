"""The parts of a paper: studies that are run, numbers and claims that are judged, readings,
pictures.

A paper's folder states all of them as plain values (`folder` lists the files):

    Study     a scenario file with named variants: one of the source's experiments
    Number    a published value, its place in the source, and how ours is measured
    Claim     a sentence of the source, with a check
    Reading   a parameter that the source leaves open: the chosen value, why, and other readings
    Picture   a figure of the source, drawn from our Runs

Studies become Runs, Runs become `Evidence`, and `verdict` judges. This file neither runs nor draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from sojourn_papers.evidence import Estimate, Evidence, Measure, SearchResults, Swap, variant_of
from sojourn_papers.study import Study, Variant

Relation = Literal["=", "<", ">"]
"""How the source states a number: as a value, or as a bound."""


class Role(StrEnum):
    """The role of a published number or claim in the proof. Only a prediction can fail."""

    INPUT = "input"
    """We set it."""
    FITTED = "fitted"
    """A search found the value of a parameter that fits it, or the value was chosen to fit it."""
    DERIVED = "derived"
    """It follows from another number of the source."""
    PREDICTED = "predicted"
    """No parameter was set from it or chosen to fit it."""


@dataclass(frozen=True)
class Tolerance:
    """The largest distance from the published number that counts as reproduced, and its reason."""

    size: float
    because: str
    relative: bool = True
    """Whether `size` is a share of the published number; if not, it is in the number's unit."""

    def room(self, published: float) -> float:
        """The largest distance, in the number's unit."""
        return self.size * abs(published) if self.relative else self.size

    def allows(self, ours: float, published: float) -> bool:
        """Whether ours is near enough."""
        # Allow for rounding errors.
        return abs(ours - published) <= self.room(published) * (1 + 1e-9)

    def words(self, unit: str) -> str:
        """`± 10 %`, `± 0.05`, `± 2 ms`, or `± 1 points` for a percentage."""
        if self.relative:
            return f"± {100 * self.size:g} %"
        return f"± {self.size:g} {'points' if unit == '%' else unit}".rstrip()


@dataclass(frozen=True)
class Target:
    """A number as the source states it. It alone decides whether ours agrees."""

    published: float
    tolerance: Tolerance | None
    """None for a bound."""
    relation: Relation = "="

    def words(self, unit: str) -> str:
        """`4.73 ± 15 %`, or `< 40`."""
        if self.tolerance is None or self.relation != "=":
            return f"{self.relation} {self.published:g}"
        return f"{self.published:g} {self.tolerance.words(unit)}"

    def met(self, ours: float) -> bool:
        """Whether ours is within the tolerance, or on the stated side of the bound."""
        if self.relation == "<":
            return ours < self.published
        if self.relation == ">":
            return ours > self.published
        assert self.tolerance is not None, "a value without a tolerance"
        return self.tolerance.allows(ours, self.published)


@dataclass(frozen=True)
class Number:
    """A published number and how to measure ours."""

    id: str
    """Unique in the paper: "table/dt/delay"."""
    where: str
    """Its place in the source: "section III-A, the table, row DT, column aQd"."""
    what: str
    """Its name: "mean queueing delay, Drop-Tail"."""
    unit: str
    published: float | None
    """None: the value exists only in a picture that is lost; ours is shown alone."""
    variant: Variant
    measure: Measure | None = None
    tolerance: Tolerance | None = None
    """Needed wherever `published` is a value (relation "=")."""
    role: Role | None = None
    """Needed wherever `published` is a value."""
    role_because: str = ""
    """The reason of the role: what was set or fitted, or the number from which it follows. Required
    for all roles but predictions."""
    relation: Relation = "="
    against: tuple[str, ...] = ()
    """Numbers with which this one is ordered. If the value is not reproduced, the order may still
    hold."""
    reason: str = ""
    """Why it is not reproduced, found by experiment; shown only if it is not. What other readings
    give is in the matrix."""
    engines: str = ""
    """Why a kernel gives another value than the simulator, found by experiment; shown only if it
    does."""
    whole: Callable[[Evidence], Estimate] | None = None
    """Used instead of `measure` for a number computed from several variants ("90 % below RED")."""

    @property
    def target(self) -> Target:
        """The stated value or bound; only for a number with a published value."""
        assert self.published is not None, f"{self.id}: nothing is published"
        return Target(self.published, self.tolerance, self.relation)

    def ours(self, evidence: Evidence) -> Estimate:
        """Our value."""
        if self.whole is not None:
            return self.whole(evidence)
        assert self.measure is not None
        return evidence.estimate(self.variant, self.measure)


@dataclass(frozen=True)
class Finding:
    """The result of a check."""

    measured: Mapping[str, float]
    """The quantities that have thresholds, by name, with the unit in the name. A quantity whose
    Runs are missing is left out."""
    because: str = ""
    """Other measured values, as a sentence."""


@dataclass(frozen=True)
class Threshold:
    """A claim's condition on a quantity. `folder` reads it from published.toml."""

    words: str
    """`> 10`, `0.9 .. 1.1`, or `585 ± 15 %`, the tolerance of a published number."""
    met: Callable[[float], bool] = field(compare=False)


@dataclass(frozen=True)
class Claim:
    """A sentence of the source, in our words, and its check. The verdict follows from the
    quantities that the check measures and the thresholds, and from nothing else."""

    id: str
    where: str
    says: str
    check: Callable[[Evidence], Finding]
    asks: Mapping[str, Threshold]
    """The claim holds if all of these are met; by the name of the quantity."""
    partly: Mapping[str, Threshold] = field(default_factory=dict)
    """The claim's direction holds if all of these are met. Empty: it has no direction."""
    role: Role = Role.PREDICTED
    role_because: str = ""
    pictures: tuple[str, ...] = ()
    """Pictures that show it, by id."""
    must_hold: bool = False
    """Whether a reproduction in which it fails is broken: `sojourn reproduce` ends with 1 and the
    tests fail."""


@dataclass(frozen=True)
class Reading:
    """A parameter that the source leaves open or contradicts."""

    parameter: str
    source: str
    """The source's text: "not stated", "1500 B"."""
    chosen: str
    why: str
    others: str = ""
    """A remark on other readings, in addition to their values."""
    under: tuple[str, ...] = ()
    """The other readings, by their names in `Paper.swaps` and `Paper.stored`."""
    searched: bool = False
    """Whether a search found the value that fits the published numbers. Then their agreement is no
    independent proof."""


@dataclass(frozen=True)
class Picture:
    """A figure; `source` is the number of the source's figure that it redraws."""

    id: str
    title: str
    caption: str
    draw: Callable[[Evidence], Figure]
    source: str = ""
    """ "Figure 2"; empty: the source has no such figure."""


@dataclass(frozen=True)
class Grid:
    """A table of the source in its own layout."""

    title: str
    head: tuple[str, ...]
    """Names of its columns."""
    rows: Mapping[str, tuple[str, ...]]
    """By the name of the row, the id of the number in each column; empty without a number."""


@dataclass(frozen=True)
class Bar:
    """One delay of a paper, for the overview's picture."""

    label: str
    delay_ms: float
    kind: Literal["idle", "bloated", "cured"]
    cost: str = ""
    """The cost of the cure: "46.9 s for 45.7 s"."""
    published_ms: float | None = None
    """The source's value or bound. None: it states none."""


@dataclass(frozen=True)
class Paper:
    """A source document and its reproduction."""

    id: str
    title: str
    source: str
    """Authors, place, year."""
    about: str
    """Its system and its result, in our words: two or three sentences."""
    folder: Path
    studies: tuple[Study, ...]
    numbers: tuple[Number, ...]
    claims: tuple[Claim, ...]
    readings: tuple[Reading, ...]
    pictures: tuple[Picture, ...]
    story: Callable[[Evidence], Sequence[Bar]]
    story_axis: str = "delay"
    """The quantity of its bars in the overview: "ping RTT", "mean queueing delay"."""
    beside: str = "published"
    """The heading of the values beside ours: "model" if they are our evaluation of its
    equations."""
    grids: tuple[Grid, ...] = ()
    swaps: Mapping[str, Swap] = field(default_factory=dict)
    """Other readings that were run, by name: the replacements of variants."""
    no_difference: Swap = field(default_factory=dict)
    """The reading "no difference" (`readings`): one discipline's variants replace the others."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why other readings were not chosen, by their names in `swaps` or `stored`."""
    cite: Mapping[str, str] = field(default_factory=dict)
    """Its entry in a bibliography; see `bibliography`."""
    stored: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """Other readings that a search ran, by name: our values of numbers, by id."""
    search_studies: tuple[Study, ...] = ()
    """Studies that only its search runs."""
    searched: Callable[[bool], SearchResults] = lambda _quick: SearchResults()
    """The stored results of the search, for the full version or the quick one."""

    def __post_init__(self) -> None:
        for what, ids in (
            ("study", [one.id for one in self.studies]),
            ("number", [one.id for one in self.numbers]),
            ("claim", [one.id for one in self.claims]),
            ("picture", [one.id for one in self.pictures]),
        ):
            twice = {one for one in ids if ids.count(one) > 1}
            assert not twice, f"{self.id}: {what} {twice} twice"
        variants = {study[name] for study in self.studies for name in study.variants}
        searched = {study[name] for study in self.search_studies for name in study.variants}
        numbers = {number.id for number in self.numbers}
        pictures = {picture.id for picture in self.pictures}
        for number in self.numbers:
            assert number.variant in variants, f"{self.id}: {number.id}: no such variant"
            assert (number.measure is None) != (number.whole is None), (
                f"{self.id}: {number.id}: measured how?"
            )
            assert set(number.against) <= numbers, f"{self.id}: {number.id}: against what?"
            assert (number.role is None) == (number.published is None), (
                f"{self.id}: {number.id}: a published value has a role, and nothing else has"
            )
            stated = number.published is not None and number.relation == "="
            assert not stated or number.tolerance is not None, (
                f"{self.id}: {number.id}: no tolerance"
            )
        named = {*self.refused, *(name for one in self.readings for name in one.under)}
        nameless = named - set(self.swaps) - set(self.stored)
        assert not nameless, f"{self.id}: no such reading {nameless}"
        for name, swap in {**self.swaps, "no difference": self.no_difference}.items():
            others = {variant_of(one) for one in swap.values() if one}
            unknown_ = {*swap, *others} - variants - searched
            assert not unknown_, f"{self.id}: reading {name}: no such variant {unknown_}"
        for grid in self.grids:
            unknown = {id_ for ids in grid.rows.values() for id_ in ids if id_} - numbers
            assert not unknown, f"{self.id}: {grid.title}: no number {unknown}"
        for claim in self.claims:
            assert set(claim.pictures) <= pictures, f"{self.id}: {claim.id}: no such picture"
            assert claim.asks, f"{self.id}: {claim.id}: a claim has a threshold"
