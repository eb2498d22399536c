"""Runs papers: every study's variants and seeds together. Each paper is judged when its last run
ends, on a separate thread, while the next paper's runs continue.

The Runs of a paper lie in DIR/PAPER/runs/STUDY/VARIANT, so that `sojourn report` opens any of them.
The same call continues a stopped one: it reuses the Runs in the folder and the seeds in the store.
With `redraw` nothing is run: the Runs are judged again.

Another engine than the simulator runs a part of a paper. The simulator then runs the same
scenarios, into DIR/PAPER/simulator, so that the page has both engines' numbers side by side."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sojourn import cleanup
from sojourn.engine import (
    ClusterAt,
    Engine,
    Interrupted,
    Progress,
    UnfinishedError,
    find,
    fingerprint,
    folder_names,
    run_each,
)
from sojourn.errors import UserError
from sojourn.records import Run
from sojourn.scenario import Scenario
from sojourn_papers import verdict
from sojourn_papers.evidence import Evidence, SearchResults
from sojourn_papers.paper import Paper
from sojourn_papers.study import Variant
from sojourn_papers.verdict import ClaimRow, Row, Verdict

SIMULATOR = "sim"


@dataclass(frozen=True)
class Reproduction:
    """A paper, rerun and judged."""

    paper: Paper
    evidence: Evidence
    rows: list[Row]
    claims: list[ClaimRow]
    simulated: Reproduction | None = None
    """The same scenarios on the simulator, if another engine ran them."""

    @property
    def broken(self) -> list[ClaimRow]:
        """Claims that must hold and do not: the reproduction itself is wrong."""
        return [
            row
            for row in self.claims
            if row.claim.must_hold and row.verdict is Verdict.NOT_REPRODUCED
        ]

    @property
    def invalid(self) -> list[Run]:
        """Runs whose numbers must not be used."""
        simulated = self.simulated.invalid if self.simulated else []
        return [run for run in self.evidence.runs.values() if run.meta.invalid] + simulated

    @property
    def runs(self) -> list[Run]:
        """All Runs of the paper, by either engine."""
        simulated = self.simulated.runs if self.simulated else []
        return [*self.evidence.runs.values(), *simulated]

    @property
    def left_out(self) -> int:
        """The number of numbers that the quick version, or another engine, leaves out."""
        return len(self.paper.numbers) - len(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: the runs, and every row of the tables."""
        runs = list(self.evidence.runs.values())
        same = {row.number.id: row.ours for row in self.simulated.rows} if self.simulated else {}
        readings = [{**asdict(one), "under": list(one.under)} for one in self.paper.readings]
        return {
            "paper": self.paper.id,
            "title": self.paper.title,
            "source": self.paper.source,
            "quick": self.evidence.quick,
            "engine": sorted({run.meta.engine for run in runs}),
            "version": sorted({run.meta.version for run in runs}),
            "invalid": [f"{run.name}: {why}" for run in self.invalid for why in run.meta.invalid],
            "claims": [row.to_dict() for row in self.claims],
            "numbers": [row.to_dict(same.get(row.number.id)) for row in self.rows],
            "numbers_left_out": self.left_out,
            "readings": readings,
        }


class Stopped(KeyboardInterrupt):
    """Ctrl-C. `finished`: the papers whose Runs were all finished. `counts`: for each paper, the
    finished Runs and all Runs."""

    def __init__(
        self,
        finished: Sequence[Reproduction],
        counts: Mapping[str, tuple[int, int]],
        *,
        stored: bool = False,
    ) -> None:
        super().__init__()
        self.finished = tuple(finished)
        self.counts = counts
        self.stored = stored
        """Whether the finished seeds are in the store."""


class ReproductionUnfinishedError(UnfinishedError):
    """Some runs failed. `finished`: the papers without a failed run. `left_out`: the names of the
    other papers."""

    def __init__(
        self, stop: UnfinishedError, finished: Sequence[Reproduction], left_out: Sequence[str]
    ) -> None:
        super().__init__(stop.failed, stop.asked, stop.runs)
        self.finished = tuple(finished)
        self.left_out = tuple(left_out)


@dataclass(frozen=True)
class _Job:
    paper: Paper
    variant: Variant
    scenario: Scenario
    folder: Path
    simulated: Path
    """The folder of the simulator's Run of the same scenario, if another engine runs it."""


def reproduce(
    papers: Sequence[Paper],
    *,
    quick: bool = False,
    engine: str = "sim",
    out: Path | None = None,
    jobs: int | None = None,
    cluster: ClusterAt | None = None,
    force: bool = False,
    fresh: bool = False,
    redraw: bool = False,
    progress: Callable[[Progress], None] | None = None,
    finished: Callable[[Reproduction], None] | None = None,
) -> list[Reproduction]:
    """Runs and judges papers. `out`: the folder of their Runs; None: a temporary one that lives as
    long as the result.

    `quick`: shorter runs and fewer seeds. `engine`: engines other than the simulator run a part of
    each paper. `redraw`: use the Runs in `out`. `jobs`: threads. `cluster`: see `engine.run`.
    `force`: replace Runs in `out`. `fresh`: also run seeds that the store has. `finished` is called
    with each paper when it ends.

    Raises:
        UserError: an engine can't run a paper, or a Run can't be written or reopened.
        ReproductionUnfinishedError: some runs failed.
        Stopped: on Ctrl-C.
    """
    what, how = _What(quick, engine), _How(jobs, cluster, force, fresh, redraw, progress, finished)
    if out is not None:
        return _reproduce(papers, what, out, how)
    root = cleanup.make_folder()
    try:
        found = _reproduce(papers, what, root, how)
    except (Stopped, ReproductionUnfinishedError) as stop:
        # The finished papers' Runs are read later, when they are shown.
        _remove_with(stop.finished, root)
        raise
    except BaseException:
        cleanup.remove_folder(root)
        raise
    _remove_with(found, root)
    return found


@dataclass(frozen=True)
class _What:
    quick: bool
    engine: str


@dataclass(frozen=True)
class _How:
    jobs: int | None
    cluster: ClusterAt | None
    force: bool
    fresh: bool
    redraw: bool
    progress: Callable[[Progress], None] | None
    finished: Callable[[Reproduction], None] | None


def _reproduce(papers: Sequence[Paper], what: _What, root: Path, how: _How) -> list[Reproduction]:
    # The last paper's page is drawn while nothing runs any more, so the paper with the fewest
    # figures is last.
    in_turn = sorted(papers, key=lambda paper: -len(paper.pictures))
    work = [job for paper in in_turn for job in _jobs(paper, what, root / paper.id)]
    for paper in papers:
        if not any(job.paper is paper for job in work):
            raise UserError(
                f"nothing of the paper {paper.id} can be run on the engine {what.engine}",
                "run it on sim",
            )
    with _Judge(work, what, how.finished) as judge:
        # The simulator needs much less time than a kernel, so its progress is not shown.
        quiet = replace(how, progress=None)
        if what.engine != SIMULATOR:
            same = [replace(job, folder=job.simulated) for job in work]
            _each(papers, same, SIMULATOR, quiet, judge, judge.simulated)
        _each(papers, work, what.engine, how, judge, judge.whole)
        return judge.given(papers)


def _each(
    papers: Sequence[Paper],
    work: Sequence[_Job],
    engine: str,
    how: _How,
    judge: _Judge,
    whole: Callable[[Run], None],
) -> None:
    """Runs, or reopens, all of the work. `whole` is called with each Run."""
    if how.redraw:
        for run in [_reopened(job, find(engine)) for job in work]:
            whole(run)
        return
    try:
        run_each(
            [job.scenario for job in work],
            [job.folder for job in work],
            engine=engine,
            jobs=how.jobs,
            cluster=how.cluster,
            force=how.force,
            fresh=how.fresh,
            progress=how.progress,
            completed=whole,
        )
    except (Interrupted, UnfinishedError) as stop:
        counts = {paper.id: (0, 0) for paper in papers}
        for job, run in zip(work, stop.runs, strict=True):
            done, asked = counts[job.paper.id]
            counts[job.paper.id] = done + len(run.seeds), asked + len(run.meta.seeds_asked)
        # No local name here: the traceback would keep the judged papers, and so a temporary folder.
        if isinstance(stop, Interrupted):
            raise Stopped(judge.given(papers), counts, stored=stop.stored) from None
        left_out = [paper.id for paper in papers if counts[paper.id][0] < counts[paper.id][1]]
        raise ReproductionUnfinishedError(stop, judge.given(papers), left_out) from None


class _Judge:
    """Judges each paper when its last Run is finished, on one separate thread: matplotlib can't
    draw on two, and the thread that starts runs must not wait."""

    def __init__(
        self,
        work: Sequence[_Job],
        what: _What,
        finished: Callable[[Reproduction], None] | None,
    ) -> None:
        self._jobs = {job.folder: job for job in work}
        self._left = Counter(job.paper.id for job in work)
        self._runs: dict[Path, Run] = {}
        self._simulated: dict[Path, Run] = {}
        self._what = what
        self._finished = finished or (lambda _: None)
        self._desk = ThreadPoolExecutor(1, thread_name_prefix="judge")
        self._under_way: dict[str, Future[Reproduction]] = {}

    def __enter__(self) -> _Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self._desk.shutdown(cancel_futures=True)

    def whole(self, run: Run) -> None:
        """Takes a Run whose seeds have all finished. If the judging of a paper has failed, raises
        its error."""
        self._runs[run.path] = run
        paper = self._jobs[run.path].paper
        self._left[paper.id] -= 1
        if not self._left[paper.id]:
            self._under_way[paper.id] = self._desk.submit(self._judged, paper)
        for future in self._under_way.values():
            if future.done():
                future.result()

    def simulated(self, run: Run) -> None:
        """Takes the simulator's Run of a scenario that another engine runs."""
        self._simulated[run.path] = run

    def _judged(self, paper: Paper) -> Reproduction:
        its = [job for job in self._jobs.values() if job.paper is paper]
        runs = {job.variant: self._runs[job.folder] for job in its}
        found = _judged(paper, _evidence(paper, runs, self._what))
        if self._what.engine != SIMULATOR:
            same = {job.variant: self._simulated[job.simulated] for job in its}
            found = replace(found, simulated=_judged(paper, Evidence(self._what.quick, same)))
        self._finished(found)
        return found

    def given(self, papers: Sequence[Paper]) -> list[Reproduction]:
        """Waits for the judging. Returns its results in the order of the papers, and drops its own
        references to them."""
        under_way, self._under_way = self._under_way, {}
        found = {name: future.result() for name, future in under_way.items()}
        self._runs = {}
        return [found[paper.id] for paper in papers if paper.id in found]


def _jobs(paper: Paper, what: _What, folder: Path) -> list[_Job]:
    jobs = []
    for study in paper.studies:
        scenarios = study.scenarios(paper.folder, what.quick, what.engine)
        names = folder_names([variant.name for variant in scenarios])
        jobs += [
            _Job(
                paper,
                variant,
                scenario,
                folder / "runs" / study.id / name,
                folder / "simulator" / study.id / name,
            )
            for (variant, scenario), name in zip(scenarios.items(), names, strict=True)
        ]
    return jobs


def _evidence(paper: Paper, runs: Mapping[Variant, Run], what: _What) -> Evidence:
    # Searches were made on the simulator.
    searched = paper.searched(what.quick) if what.engine == SIMULATOR else SearchResults()
    return Evidence(what.quick, runs, what.engine, searched)


def _judged(paper: Paper, evidence: Evidence) -> Reproduction:
    return Reproduction(
        paper, evidence, verdict.rows(paper, evidence), verdict.claims(paper, evidence)
    )


def _reopened(job: _Job, engine: Engine) -> Run:
    if not job.folder.is_dir():
        raise UserError(
            f"{job.folder} is not there: the paper needs this Run, and it was not kept",
            "run it again without --redraw, and with --quick if these Runs were made with --quick",
        )
    run = Run.open(job.folder)
    if run.meta.engine_build != engine.build:
        raise UserError(
            f"{job.folder} was made by another build of the engine {engine.name}",
            "run it again without --redraw",
        )
    wanted = fingerprint(job.scenario.fingerprint(), engine.build)
    if run.meta.fingerprint != wanted or set(run.seeds) != set(run.meta.seeds_asked):
        raise UserError(
            f"{job.folder} lacks seeds, or was made from another scenario",
            "run it again without --redraw, and with --quick if these Runs were made with --quick",
        )
    return run


def _remove_with(found: Sequence[Reproduction], folder: Path) -> None:
    """Removes a temporary folder with the last of the results."""
    if not found:
        cleanup.remove_folder(folder)
    left = len(found)

    def gone() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            cleanup.remove_folder(folder)

    for one in found:
        weakref.finalize(one, gone)
