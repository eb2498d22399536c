"""Runs a suite: runs each criterion with every candidate, and judges a criterion's claims as soon as
its runs have ended."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sojourn.engine import ClusterAt, Progress, UnfinishedError, check, run_all
from sojourn.errors import UserError
from sojourn.evaluation import claim_results, entrants
from sojourn.evaluation.claim_results import ClaimResult, Conditions
from sojourn.evaluation.entrants import LeftOut
from sojourn.evaluation.suite import Criterion, Missing, Suite
from sojourn.judgement.own_names import shortened
from sojourn.records import Run
from sojourn.scenario import Scenario
from sojourn.sweeps.grid import Grid, of_runs

ALONE = "alone"
"""The folder of the Runs without a candidate, beside the other Runs of a criterion."""


@dataclass(frozen=True)
class Assessment:
    """One criterion with every candidate."""

    criterion: Criterion
    grid: Grid
    runs: tuple[Run, ...]
    results: tuple[tuple[ClaimResult, ...], ...]
    """A row for each claim, with the candidates in their order."""
    failed: tuple[UnfinishedError, ...] = ()

    @property
    def conditions(self) -> list[Conditions]:
        """The conditions of the cells, each once, in their order."""
        found: list[Conditions] = []
        for cell in (cell for each in self.results[0] for cell in each.findings):
            if cell.conditions not in found:
                found.append(cell.conditions)
        return found


@dataclass(frozen=True)
class Evaluation:
    """A suite with these candidates."""

    suite: Suite
    named: tuple[str, ...]
    """The candidates that the caller named; empty: the suite's own."""
    candidates: tuple[str, ...]
    """The baseline, then the others."""
    assessments: tuple[Assessment, ...]
    missing: tuple[Missing, ...]
    """Sections that were not run: those the suite lists as missing, and those the engine can't
    run."""
    left_out: tuple[LeftOut, ...] = ()
    """Candidates of the suite that the engine can't run, if the caller named none."""

    @property
    def called(self) -> dict[str, str]:
        """The printed name of each candidate: a user-defined class without its file, if that is
        unambiguous."""
        return shortened(self.candidates)

    def of(self, candidate: str) -> list[ClaimResult]:
        """All claims on a candidate, in the order of the suite."""
        place = self.candidates.index(candidate)
        return [row[place] for assessment in self.assessments for row in assessment.results]


@dataclass(frozen=True)
class How:
    """How to run: the arguments of `sojourn.run_all`."""

    seeds: int
    out: Path | None = None
    engine: str = "sim"
    jobs: int | None = None
    force: bool = False
    fresh: bool = False
    cluster: ClusterAt | None = None


@dataclass(frozen=True)
class Stage:
    """The progress of an evaluation: criterion `number` of `count`, and the progress of its runs
    (None: all have ended)."""

    criterion: Criterion
    number: int
    count: int
    runs: Progress | None


def evaluate(
    suite: Suite,
    words: Sequence[str],
    how: How,
    progress: Callable[[Stage], None],
    ended: Callable[[Assessment], None] = lambda _: None,
) -> Evaluation:
    """Runs the suite on these candidates, or on its own if there are none.

    `ended` is called with each criterion whose runs have ended.

    Raises:
        UserError: a scenario, a candidate or a folder is wrong.
        Interrupted: on Ctrl-C; criteria that had ended are kept.
    """
    chosen = entrants.chosen(suite, words)
    left_out: tuple[LeftOut, ...] = ()
    # Errors in any criterion are reported before the first one runs.
    able, unable = _sorted_out(suite, how.engine, chosen)
    if not words:
        chosen, left_out = entrants.all_of(suite, able, how.engine)
    work = [(one, entrants.contending(suite, one, chosen)) for one in able]
    check([variant for _, variants in work for variant in variants], how.engine)
    assessments = []
    for number, (criterion, variants) in enumerate(work):

        def show(p: Progress, one: Criterion = criterion, number: int = number) -> None:
            progress(Stage(one, number, len(work), p))

        assessment = _assessed(suite, criterion, variants, chosen, how, show)
        assessments.append(assessment)
        progress(Stage(criterion, number, len(work), None))
        ended(assessment)
    return Evaluation(
        suite,
        tuple(words),
        tuple(chosen),
        tuple(assessments),
        (*suite.missing, *unable),
        left_out,
    )


def _sorted_out(
    suite: Suite, engine: str, chosen: Sequence[str]
) -> tuple[list[Criterion], list[Missing]]:
    """The criteria that this engine can run with any candidate, and the others.

    Raises:
        UserError: the engine can run none of them.
    """
    able: list[Criterion] = []
    unable: list[Missing] = []
    refusals: list[UserError] = []
    for one in suite.criteria:
        try:
            check(filter(None, (suite.scenario(one), suite.alone(one))), engine)
        except UserError as refused:
            refusals.append(refused)
            why = "; ".join(refused.problem.splitlines())
            needs = f"another engine than {engine}: {why}"
            unable.append(Missing(one.section, one.force, one.title, needs))
        else:
            able.append(one)
    if not able:
        # A wrong candidate is reported before an engine that can't run the criteria.
        contending = (entrants.contending(suite, one, chosen) for one in suite.criteria)
        check(itertools.chain.from_iterable(contending), engine)
        raise refusals[0]
    return able, unable


def _assessed(
    suite: Suite,
    criterion: Criterion,
    variants: Sequence[Scenario],
    chosen: Sequence[str],
    how: How,
    progress: Callable[[Progress], None],
) -> Assessment:
    stops: list[UnfinishedError] = []

    def run(what: Scenario | Sequence[Scenario], *folder: str) -> list[Run]:
        out = None if how.out is None else how.out.joinpath(criterion.name, *folder)
        try:
            return run_all(
                what,
                seeds=how.seeds,
                out=out,
                engine=how.engine,
                jobs=how.jobs,
                cluster=how.cluster,
                force=how.force,
                fresh=how.fresh,
                progress=progress,
            )
        except UnfinishedError as stop:
            stops.append(stop)
            runs = [run for run in stop.runs if run.seeds]
            if not runs:
                raise
            return runs

    link = criterion.link or suite.head.link
    runs = run(variants)
    grid = of_runs(runs, link)
    solo = suite.alone(criterion)
    alone = None if solo is None else of_runs(run(solo, ALONE), link)
    at = entrants.place(suite, criterion)
    values = entrants.values(suite, criterion, suite.scenario(criterion), chosen)
    rows = tuple(
        tuple(claim_results.judge(claim, grid, at, value, values[0], alone) for value in values)
        for claim in criterion.claims
    )
    return Assessment(criterion, grid, tuple(runs), rows, tuple(stops))
