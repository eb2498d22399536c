"""What a paper is made of: studies that are run, numbers and claims that are judged, readings,
pictures.

A paper's folder states all of it as plain values (`folder` says in which file):

    Study     a scenario file with named variants: one of the source's experiments
    Number    a published value, where it stands in the source, and how ours is measured
    Claim     a sentence of the source, with a check
    Reading   a parameter that the source leaves open: what was chosen, why, what other readings give
    Picture   a figure of the source, drawn from our Runs

Studies become Runs, Runs give `Evidence`, and `verdict` judges. Nothing here runs or draws
anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal

from matplotlib.figure import Figure

from sojourn_papers.evidence import Estimate, Evidence, Measure, SearchResults, Swap
from sojourn_papers.study import Study, Variant

Relation = Literal["=", "<", ">"]
"""How the source states a number: as a value, or as a bound."""


class Role(StrEnum):
    """What the agreement of a published number or claim with ours can prove. Only a prediction can
    fail."""

    INPUT = "input"
    """We set it."""
    FITTED = "fitted"
    """A parameter was searched until it fits, or chosen for it among others."""
    DERIVED = "derived"
    """It follows from another number of the source."""
    PREDICTED = "predicted"
    """Nothing was set or chosen by it."""


@dataclass(frozen=True)
class Tolerance:
    """How far ours may lie from the published number and still be called reproduced, and why that
    far."""

    size: float
    because: str
    relative: bool = True
    """`size` is a share of the published number; else in the number's own unit."""

    def room(self, published: float) -> float:
        """How far ours may lie from it, in its unit."""
        return self.size * abs(published) if self.relative else self.size

    def allows(self, ours: float, published: float) -> bool:
        """Whether ours is near enough."""
        # Not narrower than the arithmetic is exact.
        return abs(ours - published) <= self.room(published) * (1 + 1e-9)

    def words(self, unit: str) -> str:
        """`± 10 %`, `± 0.05`, `± 2 ms`, `± 1 points` of a percentage."""
        if self.relative:
            return f"± {100 * self.size:g} %"
        return f"± {self.size:g} {'points' if unit == '%' else unit}".rstrip()


@dataclass(frozen=True)
class Target:
    """What the source states of a number: the one place that says whether ours agrees."""

    published: float
    tolerance: Tolerance | None
    """None of a bound."""
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
    """Where it stands in the source: "section III-A, the table, row DT, column aQd"."""
    what: str
    """What it is: "mean queueing delay, Drop-Tail"."""
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
    """What was set, searched, or follows from what; needed of all but predictions."""
    relation: Relation = "="
    against: tuple[str, ...] = ()
    """Numbers that this one stands to in an order: where the value isn't reproduced, the order may
    still hold."""
    reason: str = ""
    """Why it is not reproduced, found by experiment; shown only if it is not. What other readings
    give is in the matrix."""
    engines: str = ""
    """Why a kernel gives another value than the simulator, found by experiment; shown only if it
    does."""
    whole: Callable[[Evidence], Estimate] | None = None
    """For a number made of several variants ("90 % below RED"): ours as a whole, instead of
    `measure` on one variant."""

    @property
    def target(self) -> Target:
        """What ours is compared with; of a number with a published value."""
        assert self.published is not None, f"{self.id}: nothing is published"
        return Target(self.published, self.tolerance, self.relation)

    def ours(self, evidence: Evidence) -> Estimate:
        """Ours."""
        if self.whole is not None:
            return self.whole(evidence)
        assert self.measure is not None
        return evidence.estimate(self.variant, self.measure)


@dataclass(frozen=True)
class Finding:
    """What a check measured."""

    measured: Mapping[str, float]
    """The quantities that thresholds ask for, by name, with the unit in the name. A quantity whose
    Runs are missing is missing."""
    because: str = ""
    """What else was measured, as a sentence."""


@dataclass(frozen=True)
class Threshold:
    """What a claim asks of a quantity. It is data: `folder` reads it from published.toml."""

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
    """It holds if all of these are met; by the name of the quantity."""
    partly: Mapping[str, Threshold] = field(default_factory=dict)
    """Its direction holds if all of these are met. Empty: it has none."""
    role: Role = Role.PREDICTED
    role_because: str = ""
    pictures: tuple[str, ...] = ()
    """Pictures that show it, by id."""
    must_hold: bool = False
    """A reproduction in which it fails is broken: `sojourn reproduce` ends with 1 and the tests
    fail."""


@dataclass(frozen=True)
class Reading:
    """A parameter that the source leaves open or contradicts."""

    parameter: str
    source: str
    """What the source says: "not stated", "1500 B"."""
    chosen: str
    why: str
    others: str = ""
    """What is to be said of other readings, beside what they give."""
    under: tuple[str, ...] = ()
    """The other readings, by their names in `Paper.swaps` and `Paper.stored`."""
    searched: bool = False
    """Found by a search for what fits the published numbers, so their agreement is no independent
    proof."""


@dataclass(frozen=True)
class Picture:
    """A figure, by the source's number where it redraws one."""

    id: str
    title: str
    caption: str
    draw: Callable[[Evidence], Figure]
    source: str = ""
    """ "Figure 2"; empty: ours alone."""


@dataclass(frozen=True)
class Grid:
    """A table of the source in its own layout."""

    title: str
    head: tuple[str, ...]
    """Names of its columns."""
    rows: Mapping[str, tuple[str, ...]]
    """By the name of the row: the number in each column, by id; empty where it has none."""


@dataclass(frozen=True)
class Bar:
    """One delay of the story of a paper, for the overview's picture."""

    label: str
    delay_ms: float
    kind: Literal["idle", "bloated", "cured"]
    cost: str = ""
    """What it cost: "46.9 s for 45.7 s"."""
    published_ms: float | None = None
    """What the source has; of a bound, the bound. None: it states none."""


@dataclass(frozen=True)
class Paper:
    """A source document and its reproduction."""

    id: str
    title: str
    source: str
    """Authors, place, year."""
    about: str
    """What it built and found, in our words: two or three sentences."""
    folder: Path
    studies: tuple[Study, ...]
    numbers: tuple[Number, ...]
    claims: tuple[Claim, ...]
    readings: tuple[Reading, ...]
    pictures: tuple[Picture, ...]
    story: Callable[[Evidence], Sequence[Bar]]
    story_axis: str = "delay"
    """What the bars of its story are: "ping RTT", "mean queueing delay"."""
    beside: str = "published"
    """What ours stands beside: "model" where the numbers are our evaluation of its equations."""
    grids: tuple[Grid, ...] = ()
    swaps: Mapping[str, Swap] = field(default_factory=dict)
    """Other readings that were run, by name: which variants stand for which."""
    no_difference: Swap = field(default_factory=dict)
    """Which variant stands for which if the disciplines that are compared did not differ."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why other readings are not the chosen one, by their names in `swaps` or `stored`."""
    cite: Mapping[str, str] = field(default_factory=dict)
    """Its entry in a bibliography; see `bibliography`."""
    stored: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """Other readings that were searched, by name: what they give for numbers, by id."""
    search_studies: tuple[Study, ...] = ()
    """Those that its search alone runs."""
    searched: Callable[[bool], SearchResults] = lambda _quick: SearchResults()
    """What was searched on variants, of the full version or the quick one."""

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
            unknown_ = {*swap, *swap.values()} - variants - searched - {None}
            assert not unknown_, f"{self.id}: reading {name}: no such variant {unknown_}"
        for grid in self.grids:
            unknown = {id_ for ids in grid.rows.values() for id_ in ids if id_} - numbers
            assert not unknown, f"{self.id}: {grid.title}: no number {unknown}"
        for claim in self.claims:
            assert set(claim.pictures) <= pictures, f"{self.id}: {claim.id}: no such picture"
            assert claim.asks, f"{self.id}: {claim.id}: a claim has a threshold"
