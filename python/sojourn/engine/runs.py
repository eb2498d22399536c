"""Runs of several variants and seeds, each on a thread of its own, into Runs on disk, by any engine.

One run is one serial chain of events, so it takes one core; runs are independent of each other, so they go in
parallel. The simulator lets go of the GIL and a guest is a process, hence threads suffice: this thread hands out the work,
writes each seed as soon as it is finished, tells how far all of them are, and listens for Ctrl-C. Nothing that is written
depends on how many threads there were or which was first.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import platform
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sojourn import _core
from sojourn.engine.engines import Cancelled, Engine, Outcome, find, fingerprint
from sojourn.records import (
    META,
    FlowInfo,
    LinkInfo,
    Meta,
    Run,
    RunError,
    check_room,
    check_vacant,
    write_index,
)
from sojourn.scenario import Scenario, load
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.shaper import Shaper

POLL_S = 0.1
"""How often progress is told. Ctrl-C is heard at once."""
ROW_BYTES = 40
"""A row of a time line in Parquet: measured 8 to 30."""
FOLDER_BYTES = 500_000
"""Everything else of a seed: totals, histograms, drops."""
TYPICAL_PACKET_BYTES = 700
"""Between full packets and acknowledgements."""
PACKAGES = ("sojourn", "numpy", "polars")
"""Whose versions a Run keeps: what makes its tables and writes them."""


@dataclass(frozen=True)
class Progress:
    """How far the work is."""

    finished: int
    """Seeds."""
    runs: int
    """Seeds in all."""
    fraction: float
    """Of the work: by simulated time and, the more the runs, by how many are written down."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C. The seeds that had finished are kept."""

    def __init__(self, runs: Sequence[Run], missing: Sequence[tuple[Run, int]]) -> None:
        super().__init__()
        self.runs = tuple(runs)
        self.missing = tuple(missing)
        """(Run, seed) of each that did not finish."""


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    seeds: int | Sequence[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    engine: str = "sim",
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Runs one scenario: a Scenario, the path of its file, or the name of an example.

    `seeds`: how many, counted up from the scenario's own, or which. `out`: the folder of the Run; None: a temporary one
    that lives as long as the Run. `engine`: see `ENGINES`. `jobs`: threads; None: as many as there are cores. `force`: replace a Run in `out`.
    """
    variants = _loaded(scenario).variants()
    if len(variants) > 1:
        raise ValueError(
            f"the scenario sweeps over {len(variants)} variants: use sojourn.run_all, which gives a Run for each"
        )
    folders = None if out is None else [Path(out)]
    return _run(variants, folders, _How(engine, jobs, force, progress), seeds=seeds)[0]


def run_all(
    scenarios: Scenario | str | os.PathLike[str] | Sequence[Scenario],
    *,
    seeds: int | Sequence[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    engine: str | Engine = "sim",
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> list[Run]:
    """Runs several scenarios, or all variants of one that sweeps; a Run each, in `out` a folder each.

    `engine`: its name, or itself. The other arguments are those of `run`.
    """
    if isinstance(scenarios, (Scenario, str, os.PathLike)):
        variants = list(_loaded(scenarios).variants())
    else:
        variants = [variant for scenario in scenarios for variant in scenario.variants()]
    if not variants:
        return []
    names = folder_names([variant.label or variant.title for variant in variants])
    folders = None if out is None else [Path(out) / name for name in names]
    if out is not None and (Path(out) / META).exists():
        raise RunError(
            f"{out} is itself a Run, not a folder for {len(variants)}", "choose another folder with -o"
        )
    return _run(variants, folders, _How(engine, jobs, force, progress), seeds=seeds, parent=out)


def run_each(
    scenarios: Sequence[Scenario],
    folders: Sequence[Path],
    *,
    engine: str = "sim",
    jobs: int | None = None,
    force: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> list[Run]:
    """Runs several scenarios, each with its own seeds and into its own folder, none of them a sweep.

    The other arguments are those of `run`.
    """
    return _run(scenarios, folders, _How(engine, jobs, force, progress))


def run_more(
    runs: Sequence[Run],
    scenarios: Sequence[Scenario],
    seeds: Sequence[Sequence[int]],
    *,
    engine: str | Engine = "sim",
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> None:
    """Adds seeds to Runs: to each these, of the scenario that it is of. What it has stays.

    Args:
        engine: by which the Runs were made, its name or itself.
        jobs: threads; None: as many as there are cores.

    Raises:
        RunError: a Run was made by another build of the engine, or of another scenario.
        Interrupted: Ctrl-C. The seeds that had finished are kept.
    """
    found = _engine(engine)
    for run, scenario in zip(runs, scenarios, strict=True):
        of_both = fingerprint(scenario.fingerprint(run.meta.seeds_asked), found.build)
        if run.meta.fingerprint != of_both:
            raise RunError(
                f"{run.path} is not of this scenario by this build of the engine {found.name}",
                "run it again, into another folder",
            )
    new = [
        [seed for seed in each if seed not in run.meta.seeds_asked]
        for run, each in zip(runs, seeds, strict=True)
    ]
    for run, scenario, each in zip(runs, scenarios, new, strict=True):
        asked = [*run.meta.seeds_asked, *each]
        run.ask(asked, fingerprint(scenario.fingerprint(asked), found.build))
    work = [
        _Job(run, scenario, seed)
        for run, scenario, each in zip(runs, scenarios, new, strict=True)
        for seed in each
    ]
    if work:
        _work_off(found, work, 1 if found.alone else jobs or cores(), progress or (lambda _: None))


def folder_names(labels: Sequence[str]) -> list[str]:
    """Labels as names of folders: short, of plain characters, each different."""
    names: list[str] = []
    for label in labels:
        plain = re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.")[:60].rstrip("-.").lower() or "run"
        candidates = itertools.chain([plain], (f"{plain}-{n}" for n in itertools.count(2)))
        names.append(next(name for name in candidates if name not in names))
    return names


# ------------------------------------------------------------------------------------------------------- the work


@dataclass
class _Job:
    """One seed of one variant."""

    run: Run
    scenario: Scenario
    seed: int
    reached_ns: int = 0
    """Simulated time, written by the job's thread, read by the main one."""
    future: Future[Outcome] = field(default_factory=Future)
    written: bool = False


@dataclass(frozen=True)
class _How:
    """How to run, whatever is run."""

    engine: str | Engine
    jobs: int | None
    force: bool
    progress: Callable[[Progress], None] | None


def _run(
    variants: Sequence[Scenario],
    folders: Sequence[Path] | None,
    how: _How,
    *,
    seeds: int | Sequence[int] | None = None,
    parent: str | os.PathLike[str] | None = None,
) -> list[Run]:
    engine = _engine(how.engine)
    asked = [_seeds(variant, seeds) for variant in variants]
    # Seeds differ in what is drawn, not in shape: the first shows what will be written, and how much.
    first = [variant.realise(each[0]) for variant, each in zip(variants, asked, strict=True)]
    for realised in first:
        engine.check(realised)
    if folders is not None:
        for folder in folders:
            check_vacant(folder, force=how.force)
        needed = sum(len(each) * expected_bytes(one) for each, one in zip(asked, first, strict=True))
        check_room(folders[0], needed)
    places: Sequence[Path | None] = folders or [None] * len(variants)
    runs = [
        _create(engine, variant, each, one, place, how.force)
        for variant, each, one, place in zip(variants, asked, first, places, strict=True)
    ]
    if folders is not None and parent is not None:
        write_index(Path(parent), [folder.name for folder in folders])
    work = [
        _Job(one, variant, seed)
        for one, variant, each in zip(runs, variants, asked, strict=True)
        for seed in each
    ]
    _work_off(engine, work, 1 if engine.alone else how.jobs or cores(), how.progress or (lambda _: None))
    return runs


def _work_off(
    engine: Engine, jobs: Sequence[_Job], threads: int, progress: Callable[[Progress], None]
) -> None:
    stop = threading.Event()
    done: queue.SimpleQueue[_Job] = queue.SimpleQueue()
    pool = ThreadPoolExecutor(max(1, min(threads, len(jobs))), thread_name_prefix="sojourn")
    try:
        for job in jobs:
            job.future = pool.submit(_run_one, engine, job, stop)
            job.future.add_done_callback(functools.partial(_announce, done, job))
        told = -math.inf
        finished = 0
        while finished < len(jobs):
            with contextlib.suppress(queue.Empty):
                _write(done.get(timeout=POLL_S))
                finished += 1
            if time.monotonic() - told >= POLL_S or finished == len(jobs):
                told = time.monotonic()
                progress(_progress(jobs, finished))
    except KeyboardInterrupt:
        _abandon(pool, stop, jobs)
        runs = list(dict.fromkeys(job.run for job in jobs))
        raise Interrupted(runs, [(job.run, job.seed) for job in jobs if not job.written]) from None
    except BaseException:
        _abandon(pool, stop, jobs)
        raise
    pool.shutdown()


def _progress(jobs: Sequence[_Job], finished: int) -> Progress:
    simulated = sum(job.reached_ns for job in jobs) / sum(job.scenario.duration for job in jobs)
    # To set up and write down a run costs something, too: of one run nothing to speak of, of thousands about half of all.
    share = 0.5 * len(jobs) / (len(jobs) + 20)
    return Progress(finished, len(jobs), (1 - share) * simulated + share * finished / len(jobs))


def _write(job: _Job) -> None:
    result = job.future.result()
    job.run.add_seed(job.seed, result.tables, _core.CAUSES, result.cpu_ns, result.invalid)
    job.written = True
    # The tables are on disk: of thousands of seeds no more than a few are in memory.
    job.future = Future()


def _abandon(pool: ThreadPoolExecutor, stop: threading.Event, jobs: Sequence[_Job]) -> None:
    """Stops every run, and keeps those that were finished but not yet written."""
    stop.set()
    pool.shutdown(cancel_futures=True)
    for job in jobs:
        future = job.future
        if not job.written and future.done() and not future.cancelled() and future.exception() is None:
            # A disk that was full once may be so again: what stopped the work is what is told.
            with contextlib.suppress(RunError):
                _write(job)


def _announce(done: queue.SimpleQueue[_Job], job: _Job, _: Future[Outcome]) -> None:
    done.put(job)


def _run_one(engine: Engine, job: _Job, stop: threading.Event) -> Outcome:
    """The body of a thread."""

    def reached(now_ns: int) -> bool:
        job.reached_ns = now_ns
        return not stop.is_set()

    if stop.is_set():
        raise Cancelled
    outcome = engine.tables(job.scenario.realise(job.seed), reached)
    job.reached_ns = job.scenario.duration
    return outcome


# ------------------------------------------------------------------------------------------------- before the work


def _engine(which: str | Engine) -> Engine:
    return find(which) if isinstance(which, str) else which


def _loaded(scenario: Scenario | str | os.PathLike[str]) -> Scenario:
    return scenario if isinstance(scenario, Scenario) else load(Path(scenario))


def _seeds(scenario: Scenario, asked: int | Sequence[int] | None) -> list[int]:
    if asked is None:
        return list(scenario.seeds)
    first = scenario.seeds[0]
    seeds = list(range(first, first + asked)) if isinstance(asked, int) else list(dict.fromkeys(asked))
    if not seeds:
        raise ValueError(f"seeds={asked!r}: at least one is needed")
    return seeds


def _create(
    engine: Engine,
    scenario: Scenario,
    seeds: Sequence[int],
    realised: Mapping[str, Any],
    folder: Path | None,
    force: bool,
) -> Run:
    links = [link["name"] for link in realised["links"]]
    meta = Meta(
        title=scenario.title,
        label=scenario.label,
        engine=engine.name,
        version=engine.version,
        duration_ns=realised["duration_ns"],
        warmup_ns=realised["warmup_ns"],
        seeds_asked=tuple(seeds),
        links=tuple(
            LinkInfo(
                name=link["name"],
                qdisc=Qdisc.from_params(link["qdisc"]).text,
                rate_bps=slower([step["bps"] for step in link["rate"][:1]], link["shaper"]),
                delay_ns=link["delay_ns"],
                sampled=link["sampled"],
                shaper=Shaper(**link["shaper"]).text if link["shaper"] else None,
                ring=link["ring"]["descriptors"] if link["ring"] else None,
                bql=link["ring"] is not None and link["ring"]["bql"],
            )
            for link in realised["links"]
        ),
        flows=tuple(
            FlowInfo(
                name=flow["name"],
                kind=flow["traffic"]["kind"],
                congestion=flow["traffic"].get("tcp", {}).get("congestion"),
                group=flow["group"],
                path=tuple(links[index] for index in flow["path"]),
                finite=flow["traffic"].get("bytes") is not None,
            )
            for flow in realised["flows"]
        ),
        fingerprint=fingerprint(scenario.fingerprint(seeds), engine.build),
        engine_build=engine.build,
        conditions=engine.conditions(realised),
        host={
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
    )
    if folder is None:
        return Run.create_temporary(meta, scenario.to_toml())
    return Run.create(folder, meta, scenario.to_toml(), force=force)


def expected_bytes(realised: Mapping[str, Any]) -> int:
    """Roughly what one seed takes on disk, rather too much: rows of the time lines, and packets where they are kept."""
    duration_ns, record = realised["duration_ns"], realised["record"]
    rows = len(realised["links"]) * duration_ns // max(1, record["queue_ns"])
    rows += len(realised["flows"]) * duration_ns // max(1, record["flow_ns"])
    rows += sum(
        duration_ns // max(1, flow["traffic"]["interval_ns"])
        for flow in realised["flows"]
        if flow["traffic"]["kind"] == "ping"
    )
    if record["packets"]:
        bits = sum(
            slower([max(step["bps"] for step in link["rate"])] if link["rate"] else [], link["shaper"]) or 0
            for link in realised["links"]
        )
        rows += bits * duration_ns // 10**9 // (8 * TYPICAL_PACKET_BYTES)
    return FOLDER_BYTES + int(rows) * ROW_BYTES


def slower(rate: list[int], shaper: Mapping[str, Any] | None) -> int | None:
    """The slower of a link's transmitter and its shaper, bit/s; None where there is neither."""
    return min([*rate, *([shaper["bps"]] if shaper else [])], default=None)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
