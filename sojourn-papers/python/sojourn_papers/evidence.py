"""What the studies gave: Runs by study and variant, and numbers measured on them, seed by seed; and
what a search stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeVar

import polars as pl

from sojourn import metrics
from sojourn.numbers import FlowNumbers, ProbeNumbers, QueueNumbers, SeedNumbers
from sojourn.records import Run
from sojourn_papers.study import Study, Variant

Answer = TypeVar("Answer")
At = TypeVar("At")


class NotRun(Exception):  # noqa: N818  (a gap that is meant to be, not an error)
    """What was asked of the evidence is not there: the quick version and engines other than the
    simulator run a part of a paper."""


def some(values: Iterable[Answer]) -> list[Answer]:
    """The values, of which there is one at least.

    Raises:
        NotRun: there is none.
    """
    found = list(values)
    if not found:
        raise NotRun("none of them")
    return found


class Seed:
    """One seed of one Run, read when asked. Measures take one and give a number."""

    def __init__(self, run: Run, number: int) -> None:
        self.run = run
        self.number = number
        self._tables: dict[str, pl.DataFrame] = {}

    def table(self, name: str) -> pl.DataFrame:
        """One of its tables; see `sojourn.records.TABLES`."""
        if name not in self._tables:
            self._tables[name] = self.run.table(name, self.number)
        return self._tables[name]

    def after_warmup(self, name: str) -> pl.DataFrame:
        """The rows of a time line (`queue`, `flow`, `probe`, `drops`) after the warm-up."""
        return self.table(name).filter(pl.col("t_ns") > self.run.meta.warmup_ns)

    @cached_property
    def numbers(self) -> SeedNumbers:
        """Everything that `sojourn run --json` says of this seed."""
        made = self.run.numbers.get(self.number)
        if made is not None:
            return metrics.plain(self.run.meta, self.number, made)
        tables = {name: self.table(name) for name in metrics.NEEDED}
        return metrics.seed_summary(self.run.meta, self.number, tables)

    def queue(self, link: str = "down") -> QueueNumbers[float]:
        """The numbers of one link's queue."""
        return _named(((queue["link"], queue) for queue in self.numbers["queues"]), "link", link)

    def probe(self, name: str = "ping") -> ProbeNumbers[float]:
        """The numbers of one ping."""
        return _named(((probe["name"], probe) for probe in self.numbers["probes"]), "name", name)

    def flow(self, name: str) -> FlowNumbers[float]:
        """The numbers of one flow."""
        return _named(((flow["name"], flow) for flow in self.numbers["flows"]), "name", name)


_Entry = TypeVar("_Entry")


def _named(entries: Iterable[tuple[str, _Entry]], key: str, wanted: str) -> _Entry:
    known = dict(entries)
    if wanted in known:
        return known[wanted]
    raise KeyError(f"no {key} {wanted!r}; there are {', '.join(known)}")


Measure: TypeAlias = Callable[[Seed], float]
"""One number from one seed of one Run; NaN where it can't be said."""


@dataclass(frozen=True)
class Estimate:
    """A quantity over seeds: mean, half the width of its 95 % confidence interval, and the seeds'
    values."""

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


def estimated(values: Iterable[float]) -> Estimate:
    """The estimate that these values of the seeds make."""
    known = tuple(values)
    whole = metrics.mean_ci95(known)
    return Estimate(whole["mean"], whole["ci95"], known)


@dataclass(frozen=True)
class SearchResults:
    """What a search found on variants that a reproduction does not run again; see `searched`."""

    made: str = ""
    """How, in words."""
    known: Mapping[tuple[Variant, Measure], Estimate] = field(default_factory=dict)

    @cached_property
    def variants(self) -> frozenset[Variant]:
        """Those of which something is known."""
        return frozenset(variant for variant, _ in self.known)


Swap: TypeAlias = Mapping[Variant, Variant | None]
"""Another reading: which variant stands for which; None where the reading was not run."""


class Along(dict[At, Answer]):
    """What was measured along variants; asked for one that was not run it raises NotRun."""

    def __missing__(self, at: At) -> Answer:
        raise NotRun(f"the variant of {at}")


@dataclass
class Evidence:
    """The Runs of a paper's studies."""

    quick: bool
    """The short version with fewer seeds."""
    runs: Mapping[Variant, Run]
    """In the paper's order; only those that were run."""
    engine: str = "sim"
    searched: SearchResults = field(default_factory=SearchResults)
    """What is not run, as it was searched and stored."""
    used: set[Variant] = field(default_factory=set)
    """Those of which something was measured or read."""
    _seeds: dict[Variant, list[Seed]] = field(default_factory=dict)
    _known: dict[tuple[Variant, Measure], Estimate] = field(default_factory=dict)

    def asked(self, question: Callable[[Evidence], Answer]) -> Answer | None:
        """What a check or a figure makes of it; None where it needs what was not run here."""
        try:
            return question(self)
        except NotRun:
            return None

    def variants(self, study: Study) -> tuple[Variant, ...]:
        """The variants of a study that were run or searched."""
        there = (*self.runs, *(study[name] for name in study.variants if self._stored(study[name])))
        found = tuple(variant for variant in there if variant.study == study.id)
        if not found:
            raise NotRun(f"the study {study.id}")
        return found

    def has(self, *variants: Variant) -> bool:
        """Whether these were run: the quick version leaves some out."""
        return all(variant in self.runs or self._stored(variant) for variant in variants)

    def _stored(self, variant: Variant) -> bool:
        return variant in self.searched.variants

    def can_say(self, variant: Variant, measure: Measure) -> bool:
        """Whether this was run, or is what the search stored of it."""
        return variant in self.runs or (variant, measure) in self.searched.known

    def run(self, variant: Variant) -> Run:
        """The Run of a variant."""
        if variant not in self.runs:
            raise NotRun(str(variant))
        return self.runs[variant]

    def seeds(self, variant: Variant) -> list[Seed]:
        """Its seeds."""
        self.used.add(variant)
        if variant not in self._seeds:
            run = self.run(variant)
            self._seeds[variant] = [Seed(run, number) for number in run.seeds]
        return self._seeds[variant]

    def estimate(self, variant: Variant, measure: Measure) -> Estimate:
        """A measure over the seeds of a variant."""
        key = (variant, measure)
        self.used.add(variant)
        if key in self.searched.known:
            return self.searched.known[key]
        if key not in self._known:
            self._known[key] = estimated(measure(seed) for seed in self.seeds(variant))
        return self._known[key]

    def under(self, reading: Swap) -> Evidence:
        """What it would be under another reading, in which other variants stand for some of
        these."""
        return _Swapped(self.quick, self.runs, self.engine, self.searched, of=self, swap=reading)

    def mean(self, variant: Variant, measure: Measure) -> float:
        """The mean of a measure over the seeds of a variant."""
        return self.estimate(variant, measure).mean

    def over(self, variants: Mapping[At, Variant], measure: Measure) -> Along[At, Estimate]:
        """A measure along variants, by what tells them apart: those that were run."""
        return Along(
            (at, self.estimate(one, measure)) for at, one in variants.items() if self.has(one)
        )

    def means(self, variants: Mapping[At, Variant], measure: Measure) -> Along[At, float]:
        """As `over`, the means alone; there is one at least."""
        found = some(self.over(variants, measure).items())
        return Along((at, one.mean) for at, one in found)

    def compared(
        self, one: Variant, other: Variant, measure: Measure, how: Callable[[float, float], float]
    ) -> Estimate:
        """A number made of two variants, seed by seed: `how(one, other)`. Where one has fewer
        seeds, they are the first of the other's."""
        pairs = zip(
            self.estimate(one, measure).values, self.estimate(other, measure).values, strict=False
        )
        return estimated(how(a, b) for a, b in pairs)


@dataclass
class _Swapped(Evidence):
    """Evidence in which other variants stand for some. It keeps nothing itself. A question that needs
    what was run, and was not under the other reading, has no answer: never one of fewer points."""

    of: Evidence = field(kw_only=True)
    swap: Swap = field(kw_only=True)

    def _stands(self, variant: Variant) -> Variant:
        self.used.add(variant)
        other = self.swap.get(variant, variant)
        if other is None:
            raise NotRun(f"{variant} under another reading")
        return other

    def variants(self, study: Study) -> tuple[Variant, ...]:
        return tuple(filter(self.has, self.of.variants(study)))

    def has(self, *variants: Variant) -> bool:
        if not self.of.has(*variants):
            return False
        for one in map(self._stands, variants):
            if not self.of.has(one):
                raise NotRun(str(one))
        return True

    def can_say(self, variant: Variant, measure: Measure) -> bool:
        other = self.swap.get(variant, variant)
        return other is not None and self.of.can_say(other, measure)

    def run(self, variant: Variant) -> Run:
        return self.of.run(self._stands(variant))

    def seeds(self, variant: Variant) -> list[Seed]:
        return self.of.seeds(self._stands(variant))

    def estimate(self, variant: Variant, measure: Measure) -> Estimate:
        return self.of.estimate(self._stands(variant), measure)
