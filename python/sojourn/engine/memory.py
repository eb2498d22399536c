"""Simulations in memory: no folder, no file, an answer as soon as the last seed has run.

For what asks again and again: a slider, a search, a notebook. The tables stay where the core wrote
them; a DataFrame, an array or the Summary is made when it is asked for.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import cached_property
from typing import TYPE_CHECKING

from sojourn import _core, metrics
from sojourn.engine.asked import Progress, cores, loaded, meta_of, seeds_of
from sojourn.engine.protocol import Cancelled
from sojourn.engine.registry import find
from sojourn.errors import UserError
from sojourn.records import TABLES, Meta, Names, frame
from sojourn.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

    from sojourn.arrays import Columns

POLL_S = 0.05
"""How often progress is told, and how soon a cancelled simulation ends."""


class Simulated:
    """What a simulation gave: the tables of each seed, and their Summary. Nothing is on disk."""

    def __init__(self, meta: Meta, tables: Mapping[int, _core.SeedTables]) -> None:
        self.meta = meta
        """What was run, as the meta.json of a Run has it."""
        self._tables = tables

    def __repr__(self) -> str:
        return f"<Simulated {self.meta.label or self.meta.title!r}, {len(self.seeds)} seeds>"

    @property
    def seeds(self) -> tuple[int, ...]:
        """Ascending."""
        return self.meta.seeds

    def tables(self) -> tuple[str, ...]:
        """Names of the tables; `packets` only if the scenario asks for it."""
        return tuple(name for name in TABLES if name in self._tables[self.seeds[0]])

    def table(self, name: str, seed: int | None = None) -> pl.DataFrame:
        """A table of one seed, or of all of them with a first column `seed`: what `Run.table` gives
        of a Run of the same scenario."""
        import polars as pl

        if seed is not None:
            return frame(name, self.arrays(name, seed), self._names)
        return pl.concat(
            self.table(name, one).select(pl.lit(one, dtype=pl.Int64).alias("seed"), pl.all())
            for one in self.seeds
        )

    def arrays(self, name: str, seed: int) -> Columns:
        """A table of one seed as the core wrote it, as numpy arrays by column: numbers for the
        names of links, flows and causes, -1 or NaN for what there is none of."""
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
        """The numbers of each seed and over the seeds, as `sojourn.summary` gives them of a Run."""
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

    The GIL is released while it runs, so other threads go on. With one seed, or one job, it runs on
    the calling thread.

    Args:
        seeds: how many, counted up from the scenario's own, or which.
        jobs: threads; None: as many as there are cores.
        progress: called on this thread about every 50 ms, not before the first 50; False cancels.

    Raises:
        UserError: the simulator can't run it.
        Cancelled: `progress` said so.
    """
    variants = loaded(scenario).variants()
    if len(variants) > 1:
        raise ValueError(
            f"the scenario sweeps over {len(variants)} variants: simulate each of its variants()"
        )
    work = _Work(variants[0], seeds_of(variants[0], seeds), progress)
    threads = min(jobs or cores(), len(work.seeds))
    outcomes = work.here() if threads <= 1 else work.on_threads(threads)
    asked = tuple(sorted(work.seeds))
    meta = dataclasses.replace(
        work.meta,
        seeds=asked,
        cpu_s={str(seed): outcomes[seed][1] / 1e9 for seed in asked},
    )
    return Simulated(meta, {seed: outcomes[seed][0] for seed in asked})


_Outcome = tuple[_core.SeedTables, int]
"""Tables, and the CPU time that they took, ns."""


class _Work:
    """The seeds of one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        seeds: Sequence[int],
        progress: Callable[[Progress], bool | None] | None,
    ) -> None:
        self.engine = find("sim")
        self.scenario = scenario
        self.seeds = seeds
        self.progress = progress
        self.stop = threading.Event()
        self.reached_ns = dict.fromkeys(seeds, 0)
        first = scenario.realise(seeds[0])
        self.engine.check(first)
        self.meta = meta_of(self.engine, scenario, seeds, first)

    def here(self) -> dict[int, _Outcome]:
        """Seed after seed on this thread."""
        return {seed: self._run(seed, self._told) for seed in self.seeds}

    def on_threads(self, threads: int) -> dict[int, _Outcome]:
        """All seeds on so many threads, while this one tells how far they are."""
        pool = ThreadPoolExecutor(threads, thread_name_prefix="sojourn")
        try:
            futures: dict[int, Future[_Outcome]] = {
                seed: pool.submit(self._run, seed, lambda: not self.stop.is_set())
                for seed in self.seeds
            }
            left = set(futures.values())
            while left:
                done, left = wait(left, POLL_S, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
                if left and not self._told():
                    raise Cancelled("stopped before its end")
            return {seed: future.result() for seed, future in futures.items()}
        finally:
            self.stop.set()
            pool.shutdown(cancel_futures=True)

    def _run(self, seed: int, going_on: Callable[[], bool]) -> _Outcome:
        def reached(now_ns: int) -> bool:
            self.reached_ns[seed] = now_ns
            return going_on()

        if self.stop.is_set():
            raise Cancelled("stopped before its end")
        outcome = self.engine.tables(self.scenario.realise(seed), reached)
        self.reached_ns[seed] = self.scenario.duration
        tables = outcome.tables
        if not isinstance(tables, _core.SeedTables):
            tables = _core.SeedTables(tables)
        return tables, outcome.cpu_ns

    def _told(self) -> bool:
        """Tells how far it is; whether it is to go on."""
        if self.progress is None:
            return True
        reached = list(self.reached_ns.values())
        finished = sum(now == self.scenario.duration for now in reached)
        fraction = sum(reached) / (len(reached) * self.scenario.duration)
        return self.progress(Progress(finished, len(reached), fraction)) is not False
