"""Runs several variants and seeds with any engine and writes Runs to disk, on threads of this
process or on a cluster's workers (`runner`).

Existing results are reused: a seed in the user's store is taken from there (`seed_source`), and a
folder that has some of the requested seeds gets the rest.

Each seed is written as soon as it finishes. The files do not depend on the number of threads or
workers, nor on which finished first. A seed that the engine can't finish is left out and reported
when all others are done. A write error or a bug stops the work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn import _core, guest_programs, metrics
from sojourn.engine.estimate import check_bounds, expected_bytes, expected_s, seconds_of
from sojourn.engine.protocol import Engine, build_for, by_reason, check_all, fingerprint
from sojourn.engine.registry import find
from sojourn.engine.request import ClusterAt, Progress, cores, loaded, meta_of, seeds_of
from sojourn.engine.runner import POLL_S, Executor, ProgressMeter, Sink, Threads, work_off
from sojourn.engine.seed_source import SeedJob, Source
from sojourn.errors import UserError
from sojourn.records import (
    META,
    Meta,
    Run,
    check_room,
    check_vacant,
    write_index,
)
from sojourn.scenario import Scenario

NAMING = 10
"""If writing meta.json took t seconds, the next write begins at least 10 t, and at least POLL_S,
after this one began. With thousands of seeds, more frequent writes would take longer than the
seeds."""


@dataclass(frozen=True)
class Failure:
    """A seed that the engine could not finish."""

    run: str
    """The name of its Run."""
    seed: int
    error: UserError

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "run": self.run,
            "seed": self.seed,
            "error": self.error.problem,
            "hint": self.error.hint or None,
        }


class UnfinishedError(UserError):
    """The engine could not finish some of the seeds, `failed` of `asked`. The others were run and
    are kept in `runs`; some of these Runs may have no seed."""

    def __init__(self, failed: Sequence[Failure], asked: int, runs: Sequence[Run] = ()) -> None:
        lines = by_reason((f"{one.run}, seed {one.seed}", one.error.problem) for one in failed)
        hints = dict.fromkeys(one.error.hint for one in failed if one.error.hint)
        problem = "\n".join((f"{len(failed)} of {asked} runs failed", *lines))
        super().__init__(problem if asked > 1 else failed[0].error.problem, "; ".join(hints))
        self.failed = tuple(failed)
        self.asked = asked
        self.runs = tuple(runs)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. The finished seeds are kept."""

    def __init__(
        self,
        runs: Sequence[Run],
        missing: Sequence[tuple[Run, int]],
        failed: UnfinishedError | None = None,
        *,
        stored: bool = False,
    ) -> None:
        super().__init__()
        self.runs = tuple(runs)
        self.missing = tuple(missing)
        """(Run, seed) of each unfinished seed."""
        self.failed = failed
        """The seeds in `missing` that the engine could not finish."""
        self.stored = stored
        """The finished seeds are in the store: the same call takes them from there."""


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    seeds: int | Sequence[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    engine: str = "sim",
    jobs: int | None = None,
    cluster: ClusterAt | None = None,
    force: bool = False,
    fresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Runs one scenario: a Scenario, the path of its file, or the name of an example.

    >>> import sojourn
    >>> short = sojourn.load("home-uplink").with_(duration="3 s", warmup="1 s")
    >>> found = sojourn.run(short, seeds=2)
    >>> found.seeds
    (1, 2)

    Args:
        seeds: the number of seeds, counted up from the scenario's first, or a list of seeds.
        out: the folder of the Run; None: a temporary one that lives as long as the Run.
        engine: see `ENGINES`.
        jobs: threads; None: as many as there are cores.
        cluster: the scheduler of a Dask cluster whose workers run it in place of threads, as an
            address ("tcp://10.0.0.1:8786"), a `sojourn.ClusterAddress` or a `distributed.Client`
            (docs/cluster.md).
        force: replace a Run in `out`. Without `force`, a Run in `out` must have the same scenario,
            seeds and engine. It is kept, and its missing seeds are added.
        fresh: also run the seeds that the store already has.

    Raises:
        UserError: the engine can't run it, or its results can't be written.
        UnfinishedError: the engine could not finish some of the seeds. The others are in its
            `runs`.
        Interrupted: on Ctrl-C.
    """
    variants = loaded(scenario).variants()
    if len(variants) > 1:
        raise ValueError(
            f"the scenario sweeps over {len(variants)} variants: use sojourn.run_all, which gives a Run for each"
        )
    folders = None if out is None else [Path(out)]
    return _run(
        variants, folders, _How(engine, jobs, cluster, force, fresh, progress), seeds=seeds
    )[0]


def run_all(
    scenarios: Scenario | str | os.PathLike[str] | Sequence[Scenario],
    *,
    seeds: int | Sequence[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    engine: str | Engine = "sim",
    jobs: int | None = None,
    cluster: ClusterAt | None = None,
    force: bool = False,
    fresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> list[Run]:
    """Runs several scenarios, or all variants of one that sweeps. Each gets a Run and, in `out`, a
    folder.

    >>> import sojourn
    >>> short = sojourn.load("home-uplink").with_(duration="3 s", warmup="1 s")
    >>> runs = sojourn.run_all(sojourn.variants(short, ["pfifo", "fq_codel"]), seeds=1)
    >>> [found.name for found in runs]
    ['pfifo', 'fq_codel']

    `engine`: its name, or an engine. The other arguments and exceptions are those of `run`.
    """
    sweep: Mapping[str, Any] = {}
    if isinstance(scenarios, (Scenario, str, os.PathLike)):
        scenario = loaded(scenarios)
        variants, sweep = list(scenario.variants()), scenario.sweep
    else:
        variants = [variant for scenario in scenarios for variant in scenario.variants()]
    if not variants:
        return []
    names = folder_names([variant.label or variant.title for variant in variants])
    folders = None if out is None else [Path(out) / name for name in names]
    if out is not None and (Path(out) / META).exists():
        raise UserError(
            f"{out} is itself a Run, not a folder for {len(variants)}",
            "choose another folder with -o",
        )
    how = _How(engine, jobs, cluster, force, fresh, progress)
    parent = None if out is None else _Parent(Path(out), sweep)
    return _run(variants, folders, how, seeds=seeds, parent=parent)


def run_each(
    scenarios: Sequence[Scenario],
    folders: Sequence[Path],
    *,
    engine: str = "sim",
    jobs: int | None = None,
    cluster: ClusterAt | None = None,
    force: bool = False,
    fresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
    completed: Callable[[Run], None] | None = None,
) -> list[Run]:
    """Runs several scenarios, each with its own seeds and into its own folder. None of them may be
    a sweep.

    `completed` is called on this thread with each Run as soon as all its seeds have finished. The
    other arguments and exceptions are those of `run`.
    """
    return _run(scenarios, folders, _How(engine, jobs, cluster, force, fresh, progress, completed))


def run_more(
    runs: Sequence[Run],
    scenarios: Sequence[Scenario],
    seeds: Sequence[Sequence[int]],
    *,
    engine: str | Engine = "sim",
    jobs: int | None = None,
    cluster: ClusterAt | None = None,
    fresh: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> None:
    """Adds seeds to Runs: `seeds[i]` of `scenarios[i]` to `runs[i]`. Existing seeds stay.

    Args:
        engine: the engine of the Runs, its name or an engine.
        jobs: threads; None: as many as there are cores.
        cluster: see `run`.
        fresh: also run the seeds that the store already has.

    Raises:
        UserError: a Run is of another build of the engine, or of another scenario.
        UnfinishedError: the engine could not finish some of the seeds. The others are kept.
        Interrupted: on Ctrl-C. The finished seeds are kept.
    """
    runner = _engine(engine)
    for run, scenario in zip(runs, scenarios, strict=True):
        asked = run.meta.seeds_asked
        build = build_for(runner, scenario.realise(asked[0]))
        of_both = fingerprint(scenario.fingerprint(asked), build)
        if run.meta.fingerprint != of_both:
            raise UserError(
                f"{run.path} was made from another scenario, or by another build of the engine {runner.name}",
                "run it again, into another folder",
            )
    new = [
        [seed for seed in each if seed not in run.meta.seeds_asked]
        for run, each in zip(runs, seeds, strict=True)
    ]
    for run, scenario, each in zip(runs, scenarios, new, strict=True):
        all_asked = [*run.meta.seeds_asked, *each]
        build = build_for(runner, scenario.realise(all_asked[0]))
        run.ask(all_asked, fingerprint(scenario.fingerprint(all_asked), build))
    work = [
        job
        for run, scenario, each in zip(runs, scenarios, new, strict=True)
        for job in _jobs(run, scenario, each)
    ]
    if not work:
        return
    begun = [(scenario, each) for scenario, each in zip(scenarios, new, strict=True) if each]
    took = seconds_of(runner.name, [scenario.realise(each[0]) for scenario, each in begun])
    counted = [(one, len(each)) for one, (_, each) in zip(took, begun, strict=True)]
    how = _How(runner, jobs, cluster, False, fresh, progress)
    source = Source.of(runner, fresh)
    with _executor(source, how) as executor:
        expected = expected_s(counted, executor.slots)
        _work_off(executor, work, source, how, Progress(0, len(work), 0.0, expected_s=expected))


def check(scenarios: Iterable[Scenario], engine: str) -> None:
    """Refuses the scenarios if the engine can't run one of their variants, as `run_all` does before
    it starts.

    Raises:
        UserError: the engine can't run one, or can't be used here.
    """
    variants = (variant for scenario in scenarios for variant in scenario.variants())
    check_all(find(engine), (variant.realise(variant.seeds[0]) for variant in variants))


def folder_names(labels: Sequence[str]) -> list[str]:
    """Converts labels into names of folders: short, of plain characters, each different."""
    names: list[str] = []
    for label in labels:
        plain = re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.")[:60].rstrip("-.").lower() or "run"
        candidates = itertools.chain([plain], (f"{plain}-{n}" for n in itertools.count(2)))
        names.append(next(name for name in candidates if name not in names))
    return names


# --------------------------------------------------------------------------------------- the work


@dataclass(frozen=True)
class _How:
    """Options of all kinds of runs."""

    engine: str | Engine
    jobs: int | None
    cluster: ClusterAt | None
    force: bool
    fresh: bool
    progress: Callable[[Progress], None] | None
    completed: Callable[[Run], None] | None = None


@dataclass(frozen=True)
class _Parent:
    """The folder of several Runs."""

    path: Path
    sweep: Mapping[str, Any]
    """The sweep that the Runs belong to; empty: none."""

    def name_runs(self, folders: Sequence[Path]) -> None:
        """Records these folders as its Runs."""
        write_index(self.path, [folder.name for folder in folders], self.sweep)


def _run(
    variants: Sequence[Scenario],
    folders: Sequence[Path] | None,
    how: _How,
    *,
    seeds: int | Sequence[int] | None = None,
    parent: _Parent | None = None,
) -> list[Run]:
    engine = _engine(how.engine)
    asked = [seeds_of(variant, seeds) for variant in variants]
    # All seeds of a variant fill the same tables, of about the same size. So the first seed is
    # enough to check the variant and to estimate its cost.
    first = [variant.realise(each[0]) for variant, each in zip(variants, asked, strict=True)]
    check_all(engine, first)
    guest_programs.require(first)
    if how.cluster is not None and any(one.programs for one in first):
        raise UserError("a scenario with programs runs on this host only", "leave --cluster out")
    took = check_bounds(engine.name, first)
    places: Sequence[Path | None] = folders or [None] * len(variants)
    wanted = [
        _Wanted(meta_of(engine, variant, each, one), variant.to_toml(), place)
        for variant, each, one, place in zip(variants, asked, first, places, strict=True)
    ]
    begun = _begun(wanted, how) if not engine.alone else [None] * len(wanted)
    missing = [
        [seed for seed in each if run is None or seed not in run.seeds]
        for each, run in zip(asked, begun, strict=True)
    ]
    if folders is not None:
        for folder, each, run in zip(folders, wanted, begun, strict=True):
            if run is None:
                check_vacant(folder, each.text, force=how.force)
        sizes = (len(each) * expected_bytes(one) for each, one in zip(missing, first, strict=True))
        check_room(folders[0], sum(sizes))
    if not any(missing):
        # With no seed missing, the cluster is not contacted.
        how = dataclasses.replace(how, cluster=None)
    source = Source.of(engine, how.fresh)
    with _executor(source, how) as executor:
        runs = [run or _create(each, how.force) for run, each in zip(begun, wanted, strict=True)]
        if folders is not None and parent is not None:
            parent.name_runs(folders)
        work = [
            job
            for one, variant, each in zip(runs, variants, missing, strict=True)
            for job in _jobs(one, variant, each)
        ]
        counted = [(one, len(each)) for one, each in zip(took, missing, strict=True) if each]
        ahead = Progress(
            0,
            len(work),
            0.0,
            expected_s=expected_s(counted, executor.slots) if counted else None,
            stored=source.may_take,
            there=sum(map(len, asked)) - len(work),
        )
        completed = [one for one, each in zip(runs, missing, strict=True) if not each]
        try:
            _work_off(executor, work, source, how, ahead, completed)
        except (Interrupted, UnfinishedError) as stop:
            stop.runs = tuple(runs)
            # The index lists the Runs that have seeds.
            if folders is not None and parent is not None and any(one.seeds for one in runs):
                parent.name_runs(
                    [folder for folder, one in zip(folders, runs, strict=True) if one.seeds]
                )
            raise
    return runs


@contextlib.contextmanager
def _executor(source: Source, how: _How) -> Iterator[Executor[SeedJob]]:
    """The executor for the jobs."""
    executor: Executor[SeedJob]
    if how.cluster is not None:
        from sojourn.engine.cluster import connected

        executor = connected(how.cluster, source)
    else:
        executor = Threads(source.make, 1 if source.engine.alone else how.jobs or cores())
    try:
        yield executor
    finally:
        executor.close()


def _work_off(
    executor: Executor[SeedJob],
    jobs: Sequence[SeedJob],
    source: Source,
    how: _How,
    ahead: Progress,
    completed: Sequence[Run] = (),
) -> None:
    """`completed`: Runs that already have all seeds."""
    progress = how.progress or (lambda _: None)
    try:
        progress(ahead)
        if how.completed is not None:
            for run in completed:
                how.completed(run)
        work_off(executor, ProgressMeter(jobs, progress), _Folders(jobs, how.completed))
    except KeyboardInterrupt:
        missing = [(job.run, job.seed) for job in jobs if not job.kept]
        stored = source.store is not None
        raise Interrupted(_runs_of(jobs), missing, _unfinished(jobs), stored=stored) from None
    if error := _unfinished(jobs):
        raise error from error.failed[0].error


def _jobs(run: Run, scenario: Scenario, seeds: Sequence[int]) -> list[SeedJob]:
    about = metrics.about(run.meta, _core.CAUSES)
    return [SeedJob(scenario, seed, run, about) for seed in seeds]


def _runs_of(jobs: Sequence[SeedJob]) -> list[Run]:
    return list(dict.fromkeys(job.run for job in jobs))


def _unfinished(jobs: Sequence[SeedJob]) -> UnfinishedError | None:
    failed = [Failure(job.run.name, job.seed, job.error) for job in jobs if job.error is not None]
    return UnfinishedError(failed, len(jobs), _runs_of(jobs)) if failed else None


class _Folders(Sink[SeedJob]):
    """Writes each seed to the folder of its Run."""

    def __init__(self, jobs: Sequence[SeedJob], completed: Callable[[Run], None] | None) -> None:
        self._left = Counter(job.run for job in jobs)
        """Missing seeds of each Run."""
        self._completed = completed
        self._unnamed: dict[Run, None] = {}
        """Runs with seeds on disk that their meta.json does not name yet."""
        self._name_from_s = -math.inf

    def take(self, job: SeedJob) -> None:
        """See `Sink.take`."""
        result, run = job.future.result(), job.run
        run.add_seed(
            job.seed, result.packed, _core.CAUSES, result.cpu_ns, result.invalid, named=False
        )
        if result.numbers is not None:
            run.numbers[job.seed] = result.numbers
        job.taken = result.taken
        self._unnamed[run] = None
        self._left[run] -= 1

    def rest(self, last: bool) -> None:
        """See `Sink.rest`."""
        if self._completed is not None:
            for run in [run for run in self._unnamed if not self._left[run]]:
                run.name_seeds()
                del self._unnamed[run]
                self._completed(run)
        began_s = time.monotonic()
        if began_s >= self._name_from_s or last:
            self._name()
            took_s = time.monotonic() - began_s
            self._name_from_s = began_s + max(POLL_S, NAMING * took_s)

    def stopped(self) -> None:
        """See `Sink.stopped`."""
        self._name()

    def _name(self) -> None:
        for run in self._unnamed:
            run.name_seeds()
        self._unnamed.clear()


# -------------------------------------------------------------------------------- before the work


def _engine(which: str | Engine) -> Engine:
    return find(which) if isinstance(which, str) else which


@dataclass(frozen=True)
class _Wanted:
    """A requested Run."""

    meta: Meta
    text: str
    """The scenario as TOML."""
    folder: Path | None


def _begun(wanted: Sequence[_Wanted], how: _How) -> list[Run | None]:
    """The Runs that exist in their folders, complete or left by an interrupted call."""
    if how.force or how.fresh:
        return [None] * len(wanted)
    return [_left(each) for each in wanted]


def _left(wanted: _Wanted) -> Run | None:
    """The Run in the folder, without its damaged seeds. None unless its scenario, requested seeds
    and build are the same."""
    if wanted.folder is None or not (wanted.folder / META).is_file():
        return None
    run = Run.open(wanted.folder)
    asked = dataclasses.replace(
        run.meta, seeds=(), cpu_s={}, checksums={}, invalid=(), host=wanted.meta.host
    )
    if asked != wanted.meta or run.scenario_text != wanted.text:
        return None
    run.forget_damaged()
    if others := guest_programs.changed(run):
        raise UserError(
            f"{run.path}: {others[0]}, which a program of the Run read, has changed since",
            "run it into another folder with -o, or replace the Run with --force",
        )
    return run


def _create(wanted: _Wanted, force: bool) -> Run:
    if wanted.folder is None:
        return Run.create_temporary(wanted.meta, wanted.text)
    return Run.create(wanted.folder, wanted.meta, wanted.text, force=force)
