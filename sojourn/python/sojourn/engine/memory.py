"""Simulations in memory, without folders or files.

This module is for callers that run many simulations: a slider, a search, a notebook. The tables
stay where the core wrote them. A DataFrame, an array or the Summary is made on request.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from sojourn import _core, metrics
from sojourn.engine.estimate import check_bounds
from sojourn.engine.protocol import Cancelled, check_all
from sojourn.engine.registry import find
from sojourn.engine.request import Progress, cores, loaded, meta_of, seeds_of
from sojourn.engine.runner import (
    CallingThread,
    Executor,
    Job,
    ProgressMeter,
    Sink,
    Threads,
    work_off,
)
from sojourn.errors import UserError
from sojourn.records import TABLES, Meta, Names, frame
from sojourn.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

    from sojourn.arrays import Columns

POLL_S = 0.05
"""Interval of progress reports, and the delay until a cancelled simulation ends."""


class Simulated:
    """The result of a simulation: the tables of each seed and their Summary. Nothing is on disk."""

    def __init__(self, meta: Meta, tables: Mapping[int, _core.SeedTables]) -> None:
        self.meta = meta
        """The Meta, as in the meta.json of a Run."""
        self._tables = tables

    def __repr__(self) -> str:
        return f"<Simulated {self.meta.label or self.meta.title!r}, {len(self.seeds)} seeds>"

    @property
    def seeds(self) -> tuple[int, ...]:
        """Ascending."""
        return self.meta.seeds

    def tables(self) -> tuple[str, ...]:
        """Names of the tables; includes `packets` only if the scenario records packets."""
        return tuple(name for name in TABLES if name in self._tables[self.seeds[0]])

    def table(self, name: str, seed: int | None = None) -> pl.DataFrame:
        """Returns a table of one seed, or of all seeds with a first column `seed`. The table equals
        `Run.table` of a Run of the same scenario."""
        import polars as pl

        if seed is not None:
            return frame(name, self.arrays(name, seed), self._names)
        return pl.concat(
            self.table(name, one).select(pl.lit(one, dtype=pl.Int64).alias("seed"), pl.all())
            for one in self.seeds
        )

    def arrays(self, name: str, seed: int) -> Columns:
        """Returns a table of one seed as the core wrote it: numpy arrays by column. Links, flows
        and causes are numbers, not names; a missing value is -1 or NaN."""
        if name not in TABLES:
            raise UserError(f"there is no table {name!r}", f"tables are: {', '.join(TABLES)}")
        if seed not in self._tables:
            ran = ", ".join(map(str, self.seeds))
            raise UserError(f"seed {seed} was not simulated", f"simulated: {ran}")
        tables = self._tables[seed]
        if name not in tables:
            raise UserError(
                f"{name} were not recorded",
                f"set `{name} = true` under [record] in the scenario",
            )
        return tables[name]

    @cached_property
    def summary(self) -> metrics.Summary:
        """The numbers of each seed and over the seeds, as `sojourn.summary` returns them for a
        Run."""
        about = metrics.about(self.meta, _core.CAUSES)
        first = self._tables[self.seeds[0]]
        runs = [
            metrics.plain(self.meta, seed, self._tables[seed].numbers(about)) for seed in self.seeds
        ]
        alike = all(self._tables[seed].equals(first, metrics.NEEDED) for seed in self.seeds[1:])
        return metrics.of_seeds(self.meta, runs, alike)

    @cached_property
    def _names(self) -> Names:
        links = [link.name for link in self.meta.links]
        return Names(links, [flow.name for flow in self.meta.flows], _core.CAUSES)


def simulate(
    scenario: Scenario | str | os.PathLike[str],
    *,
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], bool | None] | None = None,
) -> Simulated:
    """Runs one scenario on the simulator, in memory: a Scenario, the path of its file, or the name
    of an example.

    The GIL is released during the run, so other threads continue. With one seed, or one job, the
    run uses the calling thread.

    >>> import sojourn
    >>> short = sojourn.load("home-uplink").with_(duration="3 s", warmup="1 s")
    >>> simulated = sojourn.simulate(short, seeds=2)
    >>> simulated.summary.samples
    2

    Args:
        seeds: the number of seeds, counted up from the scenario's first, or a list of seeds.
        jobs: threads; None: as many as there are cores.
        progress: called on this thread about every 50 ms, first after 50 ms; False cancels.

    Raises:
        UserError: the simulator can't run it.
        Cancelled: `progress` returned False.
    """
    variants = loaded(scenario).variants()
    if len(variants) > 1:
        raise ValueError(
            f"the scenario sweeps over {len(variants)} variants: simulate each of its variants()"
        )
    asked = tuple(sorted(seeds_of(variants[0], seeds)))
    meta = _metas(variants, asked)[0]
    outcomes: dict[int, _Outcome] = {}
    jobs_of = [_Job(variants[0], seed) for seed in asked]
    _work_off(jobs_of, lambda job, outcome: outcomes.update({job.seed: outcome}), progress, jobs)
    meta = dataclasses.replace(
        meta,
        seeds=asked,
        cpu_s={str(seed): outcomes[seed][1] / 1e9 for seed in asked},
    )
    return Simulated(meta, {seed: outcomes[seed][0] for seed in asked})


@dataclasses.dataclass(frozen=True)
class Summed:
    """The result of a variant in memory: only its numbers."""

    meta: Meta
    summary: metrics.Summary


class Interruption(KeyboardInterrupt):
    """Ctrl-C. The numbers of the finished seeds are kept."""

    def __init__(self, finished: Sequence[Summed]) -> None:
        super().__init__()
        self.finished = tuple(finished)


def simulate_all(
    scenarios: Scenario | Sequence[Scenario],
    *,
    seeds: int | Sequence[int] | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], bool | None] | None = None,
) -> list[Summed]:
    """Runs every variant of one or several scenarios, sweeps included, in memory. Keeps their
    numbers and frees the tables. The arguments are those of `simulate`. The default seeds are those
    of the first scenario.

    Raises:
        UserError: the simulator can't run a variant.
        Cancelled: `progress` returned False.
        Interruption: on Ctrl-C.
    """
    several = [scenarios] if isinstance(scenarios, Scenario) else scenarios
    variants = [variant for scenario in several for variant in scenario.variants()]
    asked = seeds_of(several[0], seeds)
    sums = [_Sums(meta) for meta in _metas(variants, asked)]
    jobs_of = [_Job(variant, seed, i) for i, variant in enumerate(variants) for seed in asked]
    try:
        _work_off(
            jobs_of,
            lambda job, outcome: sums[job.variant].add(job.seed, outcome),
            progress,
            jobs,
        )
    except KeyboardInterrupt:
        raise Interruption([each.summed() for each in sums if each.numbers]) from None
    return [each.summed() for each in sums]


class _Sums:
    """The numbers of a variant's finished seeds."""

    def __init__(self, meta: Meta) -> None:
        self.meta = meta
        self.numbers: dict[int, _core.Numbers] = {}
        self._about = metrics.about(meta, _core.CAUSES)
        self._cpu_s: dict[str, float] = {}
        self._first: _core.SeedTables | None = None
        """The tables of the first seed, kept until all seeds have finished: the others are compared
        with them."""
        self._alike = True

    def add(self, seed: int, outcome: _Outcome) -> None:
        tables, cpu_ns = outcome
        self.numbers[seed] = tables.numbers(self._about)
        self._cpu_s[str(seed)] = cpu_ns / 1e9
        if self._first is None:
            self._first = tables
        else:
            self._alike = self._alike and tables.equals(self._first, metrics.NEEDED)
        if len(self.numbers) == len(self.meta.seeds_asked):
            self._first = None

    def summed(self) -> Summed:
        seeds = tuple(sorted(self.numbers))
        meta = dataclasses.replace(self.meta, seeds=seeds, cpu_s=self._cpu_s)
        runs = [metrics.plain(meta, seed, self.numbers[seed]) for seed in seeds]
        return Summed(meta, metrics.of_seeds(meta, runs, self._alike))


def _metas(variants: Sequence[Scenario], seeds: Sequence[int]) -> list[Meta]:
    """The Meta of each variant. Refuses a variant that the simulator can't run."""
    engine = find("sim")
    first = [variant.realise(seeds[0]) for variant in variants]
    check_all(engine, first)
    check_bounds(engine.name, first)
    return [
        meta_of(engine, variant, seeds, realised)
        for variant, realised in zip(variants, first, strict=True)
    ]


# --------------------------------------------------------------------------------------- the work

_Outcome = tuple[_core.SeedTables, int]
"""Tables, and the CPU time of the run, ns."""


@dataclasses.dataclass(eq=False)
class _Job(Job[_Outcome]):
    """One seed of one variant."""

    variant: int = 0


class _Memory(Sink[_Job]):
    """Passes on the result of each seed. A seed that fails stops the work."""

    def __init__(self, taken: Callable[[_Job, _Outcome], None]) -> None:
        self._taken = taken

    def take(self, job: _Job) -> None:
        """See `Sink.take`."""
        self._taken(job, job.future.result())

    def failed(self, job: _Job) -> None:
        """See `Sink.failed`."""
        assert job.error is not None
        raise job.error


def _work_off(
    jobs: Sequence[_Job],
    taken: Callable[[_Job, _Outcome], None],
    progress: Callable[[Progress], bool | None] | None,
    threads: int | None,
) -> None:
    """Runs all jobs on this many threads; None: as many as there are cores. Calls `taken` with each
    result on the calling thread."""
    engine = find("sim")

    def make(job: _Job, reached: Callable[[int], bool]) -> _Outcome:
        outcome = engine.tables(job.scenario.realise(job.seed), reached)
        tables = outcome.tables
        if not isinstance(tables, _core.SeedTables):
            tables = _core.SeedTables(tables)
        return tables, outcome.cpu_ns

    def report(p: Progress) -> None:
        if progress is not None and p.finished < p.runs and progress(p) is False:
            raise Cancelled("stopped before its end")

    meter = ProgressMeter(jobs, report, every_s=POLL_S, at_once=False)
    threads = min(threads or cores(), len(jobs))
    executor: Executor[_Job] = (
        Threads(make, threads) if threads > 1 else CallingThread(make, meter.report)
    )
    try:
        work_off(executor, meter, _Memory(taken))
    finally:
        executor.close()
