"""What a paper is made of: studies that are run, numbers and claims that are judged, readings, pictures.

A paper's folder states all of it as plain values:

    Study     a scenario file with named variants: one of the source's experiments
    Number    a published value, where it stands in the source, and how ours is measured
    Claim     a sentence of the source, with a check
    Reading   a parameter that the source leaves open: what was chosen, why, what other readings give
    Picture   a figure of the source, drawn from our Runs

Studies become Runs, Runs give `Evidence`, and `verdict` judges. Nothing here runs or draws anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from matplotlib.figure import Figure

from sojourn.scenario import Scenario, load

if TYPE_CHECKING:
    from sojourn.papers.evidence import Evidence, Seed

Measure: TypeAlias = "Callable[[Seed], float]"
"""One number from one seed of one Run; NaN where it can't be said."""

Relation = Literal["=", "<", ">"]
"""How the source states a number: as a value, or as a bound."""


@dataclass(frozen=True)
class Study:
    """One experiment of the source: a scenario file of the paper's folder, and its variants by name."""

    id: str
    what: str
    """What it is, in a line: "1000 TCP flows at 200 Mbit/s (section III-A)"."""
    scenario: str
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})
    """Name -> what differs from the file, by dotted key, as `Scenario.with_` takes it."""
    seeds: int = 5
    quick: Mapping[str, Any] = field(default_factory=dict)
    """What the quick version changes beside."""
    quick_variants: Collection[str] | None = None
    """The variants that the quick version runs; None: all."""
    quick_seeds: int = 3
    kernel_variants: Mapping[str, Mapping[str, Any]] | Collection[str] | None = ()
    """The variants that are run on the real kernel too; None: all. A guest takes a hundred times as long. A mapping says what differs there."""
    kernel_seeds: int = 3

    def scenarios(self, folder: Path, quick: bool, engine: str = "sim") -> dict[str, Scenario]:
        """The scenarios to run, by the variant's name."""
        base = load(folder / self.scenario)
        wanted = [self.quick_variants] if quick else []
        if engine != "sim":
            wanted.append(self.kernel_variants)
        kept = [name for name in self.variants if all(some is None or name in some for some in wanted)]
        seeds = self.quick_seeds if quick else self.seeds
        if engine != "sim":
            seeds = min(seeds, self.kernel_seeds)
        there = self.kernel_variants if engine != "sim" and isinstance(self.kernel_variants, Mapping) else {}
        return {
            name: base.with_(
                {**self.variants[name], **(self.quick if quick else {}), **there.get(name, {})},
                seeds=list(range(1, seeds + 1)),
                label=name,
            )
            for name in kept
        }


@dataclass(frozen=True)
class Tolerance:
    """How far ours may lie from the published number and still be called reproduced, and why that far."""

    size: float
    because: str
    relative: bool = True
    """`size` is a share of the published number; else in the number's own unit."""

    def allows(self, ours: float, published: float) -> bool:
        """Whether ours is near enough."""
        room = self.size * abs(published) if self.relative else self.size
        # Not narrower than the arithmetic is exact.
        return abs(ours - published) <= room * (1 + 1e-9)

    def words(self, unit: str) -> str:
        """`± 10 %`, `± 0.05`, `± 2 ms`, `± 1 points` of a percentage."""
        if self.relative:
            return f"± {100 * self.size:g} %"
        return f"± {self.size:g} {'points' if unit == '%' else unit}".rstrip()


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
    study: str
    variant: str
    measure: Measure
    tolerance: Tolerance | None = None
    """Needed wherever `published` is a value (relation "=")."""
    relation: Relation = "="
    against: tuple[str, ...] = ()
    """Numbers that this one stands to in an order: where the value isn't reproduced, the order may still hold."""
    reason: str = ""
    """Why it is not reproduced, found by experiment; shown only if it is not."""
    whole: Callable[[Evidence], Estimate] | None = None
    """For a number made of several variants ("90 % below RED"): ours as a whole, instead of `measure` on one variant."""


@dataclass(frozen=True)
class Finding:
    """What a check found: whether the claim holds, and the numbers that say so."""

    holds: bool
    because: str
    partly: bool = False
    """It does not hold as stated, but in direction."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the source, in our words, and its check."""

    id: str
    where: str
    says: str
    check: Callable[[Evidence], Finding]
    pictures: tuple[str, ...] = ()
    """Pictures that show it, by id."""
    must_hold: bool = False
    """A reproduction in which it fails is broken: `sojourn reproduce` ends with 1 and the tests fail."""


@dataclass(frozen=True)
class Reading:
    """A parameter that the source leaves open or contradicts."""

    parameter: str
    source: str
    """What the source says: "not stated", "1500 B"."""
    chosen: str
    why: str
    others: str | Callable[[Evidence], str] = ""
    """What other readings give: measured, so written from the evidence."""
    searched: bool = False
    """Found by a search for what fits the published numbers, so their agreement is no independent proof."""

    def what_others_give(self, evidence: Evidence) -> str:
        """`others` as a sentence."""
        if isinstance(self.others, str):
            return self.others
        return evidence.asked(self.others) or f"not run on the engine {evidence.engine}"


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
class Bar:
    """One delay of the story of a paper, for the overview's picture."""

    label: str
    delay_ms: float
    kind: Literal["idle", "bloated", "cured"]
    cost: str = ""
    """What it cost: "46.9 s for 45.7 s"."""


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

    def __post_init__(self) -> None:
        for what, ids in (
            ("study", [one.id for one in self.studies]),
            ("number", [one.id for one in self.numbers]),
            ("claim", [one.id for one in self.claims]),
            ("picture", [one.id for one in self.pictures]),
        ):
            twice = {one for one in ids if ids.count(one) > 1}
            assert not twice, f"{self.id}: {what} {twice} twice"
        variants = {(study.id, name) for study in self.studies for name in study.variants}
        numbers = {number.id for number in self.numbers}
        pictures = {picture.id for picture in self.pictures}
        for number in self.numbers:
            assert (number.study, number.variant) in variants, f"{self.id}: {number.id}: no such variant"
            assert set(number.against) <= numbers, f"{self.id}: {number.id}: against what?"
            stated = number.published is not None and number.relation == "="
            assert not stated or number.tolerance is not None, f"{self.id}: {number.id}: no tolerance"
        for claim in self.claims:
            assert set(claim.pictures) <= pictures, f"{self.id}: {claim.id}: no such picture"


@dataclass(frozen=True)
class Estimate:
    """A quantity over seeds: mean, half the width of its 95 % confidence interval, and the seeds' values."""

    mean: float
    ci95: float
    """NaN with one seed."""
    values: tuple[float, ...]

    @property
    def known(self) -> tuple[float, ...]:
        """The values of the seeds in which it could be measured."""
        return tuple(value for value in self.values if not math.isnan(value))

    @property
    def seeds(self) -> int:
        """In how many seeds it could be measured."""
        return len(self.known)

    @property
    def sem(self) -> float:
        """Standard error of the mean, sigma / sqrt(n); NaN with one value."""
        if self.seeds < 2:
            return math.nan
        spread = math.fsum((value - self.mean) ** 2 for value in self.known) / (self.seeds - 1)
        return math.sqrt(spread / self.seeds)
