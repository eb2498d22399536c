"""The results of the studies: Runs by study and variant, numbers measured on them seed by seed, and
stored results of searches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import polars as pl

from sojourn import metrics
from sojourn.numbers import FlowNumbers, ProbeNumbers, QueueNumbers, SeedNumbers
from sojourn.records import Run
from sojourn_papers.study import Study, Variant

Answer = TypeVar("Answer")
At = TypeVar("At")


class NotRun(Exception):  # noqa: N818  (an intended gap, not an error)
    """A needed Run is missing: the quick version and engines other than the simulator run a part of
    a paper."""


def some(values: Iterable[Answer]) -> list[Answer]:
    """The values as a list with at least one element.

    Raises:
        NotRun: there are no values.
    """
    found = list(values)
    if not found:
        raise NotRun("none of them")
    return found


class Seed:
    """One seed of one Run, read on demand. A measure takes a seed and returns a number."""

    def __init__(self, run: Run, number: int) -> None:
        self.run = run
        self.number = number
        self._tables: dict[str, pl.DataFrame] = {}

    def table(self, name: str) -> pl.DataFrame:
        """A table of the seed; see `sojourn.records.TABLES`."""
        if name not in self._tables:
            self._tables[name] = self.run.table(name, self.number)
        return self._tables[name]

    def after_warmup(self, name: str) -> pl.DataFrame:
        """The rows of a time line (`queue`, `flow`, `probe`, `drops`) after the warm-up."""
        return self.table(name).filter(pl.col("t_ns") > self.run.meta.warmup_ns)

    def link(self, name: str = "down") -> dict[str, Any]:
        """A link's row of the table `links`."""
        return self.table("links").row(by_predicate=pl.col("link") == name, named=True)

    def timeline(self, link: str = "down") -> pl.DataFrame:
        """A link's rows of the table `queue`, in order."""
        return self.table("queue").filter(pl.col("link") == link).sort("t_ns")

    @cached_property
    def numbers(self) -> SeedNumbers:
        """The numbers that `sojourn run --json` prints for this seed."""
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
"""A function from one seed of one Run to a number; NaN if it is not known."""


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
        """The values of the seeds in which the quantity could be measured."""
        return tuple(value for value in self.values if not math.isnan(value))

    @property
    def seeds(self) -> int:
        """The number of seeds in which the quantity could be measured."""
        return len(self.known)

    @property
    def sem(self) -> float:
        """Standard error of the mean, sigma / sqrt(n); NaN with one value."""
        if self.seeds < 2:
            return math.nan
        spread = math.fsum((value - self.mean) ** 2 for value in self.known) / (self.seeds - 1)
        return math.sqrt(spread / self.seeds)


def estimated(values: Iterable[float]) -> Estimate:
    """The estimate from the values of the seeds."""
    known = tuple(values)
    interval = metrics.mean_ci95(known)
    return Estimate(interval["mean"], interval["ci95"], known)


@dataclass(frozen=True)
class SearchResults:
    """Results of a search on variants that a reproduction does not run again; see `searched`."""

    made: str = ""
    """How the search was made, as text."""
    known: Mapping[tuple[Variant, Measure], Estimate] = field(default_factory=dict)

    @cached_property
    def variants(self) -> frozenset[Variant]:
        """The variants with a known result."""
        return frozenset(variant for variant, _ in self.known)


@dataclass(frozen=True)
class Best:
    """The `count` seeds of a variant in which a measure is least."""

    variant: Variant
    count: int
    by: Measure


Swap: TypeAlias = Mapping[Variant, Variant | Best | None]
"""Another reading: each variant's replacement; None: the reading was not run for it."""


@dataclass(frozen=True)
class Sample:
    """The variants from which a quantity was computed. The quick version, and engines other than
    the simulator, leave some out."""

    run: int = 0
    """The variants that were used."""
    missed: int = 0
    """The further variants that it would have used, if they had been run."""

    @property
    def words(self) -> str:
        """`6 of 12 variants`; empty if none was missed."""
        return f"{self.run} of {self.run + self.missed} variants" if self.missed else ""


class Along(dict[At, Answer]):
    """Measured values along variants. A variant that was not run raises NotRun."""

    def __missing__(self, at: At) -> Answer:
        raise NotRun(f"the variant of {at}")


@dataclass
class Evidence:
    """The Runs of a paper's studies."""

    quick: bool
    """The short version with fewer seeds."""
    runs: Mapping[Variant, Run]
    """The variants that were run, in the paper's order."""
    engine: str = "sim"
    searched: SearchResults = field(default_factory=SearchResults)
    """Stored results of a search for variants that are not run."""
    used: set[Variant] = field(default_factory=set)
    """The variants that were measured or read."""
    missed: set[Variant] = field(default_factory=set)
    """The variants that would have been measured, too, if they had been run."""
    _seeds: dict[Variant, list[Seed]] = field(default_factory=dict)
    _known: dict[tuple[Variant, Measure], Estimate] = field(default_factory=dict)

    def asked(self, question: Callable[[Evidence], Answer]) -> Answer | None:
        """The answer of a check or a figure; None if it needs variants that were not run here."""
        try:
            return question(self)
        except NotRun:
            return None

    def noted(self, question: Callable[[Evidence], Answer]) -> tuple[Answer, Sample]:
        """The answer, and the variants from which it was computed."""
        self.used.clear()
        self.missed.clear()
        answer = question(self)
        return answer, Sample(len(self.used), len(self.missed))

    def variants(self, study: Study) -> tuple[Variant, ...]:
        """The variants of a study that were run, here or by a search."""
        found = tuple(study[name] for name in study.variants if self.has(study[name]))
        if not found:
            raise NotRun(f"the study {study.id}")
        return found

    def has(self, *variants: Variant) -> bool:
        """Whether all of these were run, here or by a search: the quick version leaves some out."""
        missing = {one for one in variants if one not in self.runs and not self._stored(one)}
        self.missed |= missing
        return not missing

    def _stored(self, variant: Variant) -> bool:
        return variant in self.searched.variants

    def can_say(self, variant: Variant, measure: Measure) -> bool:
        """Whether the variant was run, or the search stored this measure of it."""
        return variant in self.runs or (variant, measure) in self.searched.known

    def run(self, variant: Variant) -> Run:
        """The Run of a variant."""
        if variant not in self.runs:
            raise NotRun(str(variant))
        return self.runs[variant]

    def seeds(self, variant: Variant) -> list[Seed]:
        """The seeds of a variant."""
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
        """The evidence under another reading, which replaces some variants by others."""
        return _Swapped(self.quick, self.runs, self.engine, self.searched, of=self, swap=reading)

    def mean(self, variant: Variant, measure: Measure) -> float:
        """The mean of a measure over the seeds of a variant."""
        return self.estimate(variant, measure).mean

    def over(self, variants: Mapping[At, Variant], measure: Measure) -> Along[At, Estimate]:
        """A measure along the variants that were run, by their keys."""
        return Along(
            (at, self.estimate(one, measure)) for at, one in variants.items() if self.has(one)
        )

    def means(self, variants: Mapping[At, Variant], measure: Measure) -> Along[At, float]:
        """The means of `over`, at least one."""
        found = some(self.over(variants, measure).items())
        return Along((at, one.mean) for at, one in found)

    def compared(
        self, one: Variant, other: Variant, measure: Measure, how: Callable[[float, float], float]
    ) -> Estimate:
        """A number computed from two variants, seed by seed: `how(one, other)`. If one has fewer
        seeds, they are paired with the first ones of the other."""
        pairs = zip(
            self.estimate(one, measure).values, self.estimate(other, measure).values, strict=False
        )
        return estimated(how(a, b) for a, b in pairs)


@dataclass
class _Swapped(Evidence):
    """Evidence in which other variants replace some. It stores nothing itself. If a needed variant
    was run, but its replacement was not, there is no answer, rather than one from fewer points."""

    of: Evidence = field(kw_only=True)
    swap: Swap = field(kw_only=True)

    def _stands(self, variant: Variant) -> Variant | Best:
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
            if not self.of.has(variant_of(one)):
                raise NotRun(str(one))
        return True

    def can_say(self, variant: Variant, measure: Measure) -> bool:
        other = self.swap.get(variant, variant)
        return other is not None and self.of.can_say(variant_of(other), measure)

    def run(self, variant: Variant) -> Run:
        return self.of.run(variant_of(self._stands(variant)))

    def seeds(self, variant: Variant) -> list[Seed]:
        other = self._stands(variant)
        seeds = self.of.seeds(variant_of(other))
        return [seeds[at] for at in self._best(other)] if isinstance(other, Best) else seeds

    def estimate(self, variant: Variant, measure: Measure) -> Estimate:
        other = self._stands(variant)
        found = self.of.estimate(variant_of(other), measure)
        if isinstance(other, Best):
            return estimated(found.values[at] for at in self._best(other))
        return found

    def _best(self, best: Best) -> list[int]:
        """The places of the best seeds among all seeds of the variant."""
        values = self.of.estimate(best.variant, best.by).values
        if len(values) <= best.count:
            raise NotRun(f"more than {best.count} seeds of {best.variant}")
        return sorted(sorted(range(len(values)), key=values.__getitem__)[: best.count])


def variant_of(one: Variant | Best) -> Variant:
    """The variant that is run."""
    return one.variant if isinstance(one, Best) else one
