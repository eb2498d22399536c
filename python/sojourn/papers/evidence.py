"""What the studies gave: Runs by study and variant, and numbers measured on them, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import polars as pl

from sojourn import metrics
from sojourn.numbers import Flow, Probe, Queue, SeedNumbers
from sojourn.papers.paper import Estimate, Measure
from sojourn.records import Run

Answer = TypeVar("Answer")


class NotRun(KeyError):  # noqa: N818  (a gap that is meant to be, not an error)
    """What was asked of the evidence is not there: engines other than the simulator run a part of a paper."""


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
        needed = ("links", "flows", "sojourn", "rtt", "probe", "drops", "transfers", "engine")
        return metrics.seed_summary(self.run.meta, self.number, {name: self.table(name) for name in needed})

    def queue(self, link: str = "down") -> Queue[float]:
        """The numbers of one link's queue."""
        return _named(((queue["link"], queue) for queue in self.numbers["queues"]), "link", link)

    def probe(self, name: str = "ping") -> Probe[float]:
        """The numbers of one ping."""
        return _named(((probe["name"], probe) for probe in self.numbers["probes"]), "name", name)

    def flow(self, name: str) -> Flow[float]:
        """The numbers of one flow."""
        return _named(((flow["name"], flow) for flow in self.numbers["flows"]), "name", name)


_Entry = TypeVar("_Entry")


def _named(entries: Iterable[tuple[str, _Entry]], key: str, wanted: str) -> _Entry:
    known = dict(entries)
    if wanted in known:
        return known[wanted]
    raise KeyError(f"no {key} {wanted!r}; there are {', '.join(known)}")


@dataclass
class Evidence:
    """The Runs of a paper's studies."""

    quick: bool
    """The short version with fewer seeds."""
    runs: Mapping[str, Mapping[str, Run]]
    """Study -> variant -> Run, in the paper's order; only those that were run."""
    engine: str = "sim"
    _seeds: dict[tuple[str, str], list[Seed]] = field(default_factory=dict)
    _known: dict[tuple[str, str, Measure], Estimate] = field(default_factory=dict)

    def asked(self, question: Callable[[Evidence], Answer]) -> Answer | None:
        """What a check, a sentence or a figure makes of it; None where it needs what this engine does not run."""
        try:
            return question(self)
        except NotRun:
            if self.engine == "sim":
                raise
            return None

    def variants(self, study: str) -> tuple[str, ...]:
        """The variants of a study that were run; another engine than the simulator may not run the study at all."""
        if self.engine != "sim" and not self.runs[study]:
            raise NotRun(f"{study} was not run")
        return tuple(self.runs[study])

    def has(self, study: str, variant: str) -> bool:
        """Whether a variant was run: the quick version leaves some out."""
        return variant in self.variants(study)

    def run(self, study: str, variant: str = "") -> Run:
        """The Run of a variant."""
        if variant not in self.runs[study]:
            raise NotRun(f"{study}/{variant} was not run")
        return self.runs[study][variant]

    def seeds(self, study: str, variant: str = "") -> list[Seed]:
        """Its seeds."""
        key = (study, variant)
        if key not in self._seeds:
            run = self.run(study, variant)
            self._seeds[key] = [Seed(run, number) for number in run.seeds]
        return self._seeds[key]

    def estimate(self, study: str, variant: str, measure: Measure) -> Estimate:
        """A measure over the seeds of a variant."""
        key = (study, variant, measure)
        if key not in self._known:
            values = tuple(measure(seed) for seed in self.seeds(study, variant))
            whole = metrics.mean_ci95(values)
            self._known[key] = Estimate(whole["mean"], whole["ci95"], values)
        return self._known[key]

    def compared(
        self,
        one: tuple[str, str],
        other: tuple[str, str],
        measure: Measure,
        how: Callable[[float, float], float],
    ) -> Estimate:
        """A number made of two variants, each (study, variant), seed by seed: `how(one, other)`."""
        pairs = zip(self.estimate(*one, measure).values, self.estimate(*other, measure).values, strict=True)
        values = tuple(how(a, b) for a, b in pairs)
        whole = metrics.mean_ci95(values)
        return Estimate(whole["mean"], whole["ci95"], values)

    def mean(self, study: str, variant: str, measure: Measure) -> float:
        """The mean of a measure over the seeds of a variant."""
        return self.estimate(study, variant, measure).mean
