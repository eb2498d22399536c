"""`sojourn evaluate`: queue disciplines against RFC 7928, congestion controls against RFC 9743, or
either against the user's criteria."""

from __future__ import annotations

import contextlib
import math
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sojourn.cli import options, text, work
from sojourn.defaults import SUITES
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.evaluation.claim_results import Finding
    from sojourn.evaluation.evaluate import Assessment, Evaluation, Stage
    from sojourn.evaluation.suite import Suite
    from sojourn.scenario import Scenario

WIDTH = 80


@click.command()
@click.argument("candidates", nargs=-1, metavar="[QDISC|CC]...")
@click.option(
    "--suite",
    metavar="NAME|DIR",
    help=f"{', '.join(sorted(each.name for each in SUITES.iterdir()))}, or a folder with criteria of your own. [default: by the"
    " kind of the candidates]",
)
@click.option(
    "--only",
    multiple=True,
    metavar="CRITERION",
    help="Run only this criterion, by its name or section: --only 6.2. May be repeated.",
)
@click.option("--quick", is_flag=True, help="Run half of the seeds.")
@click.option(
    "--seeds",
    type=click.IntRange(2, work.MOST_SEEDS),
    metavar="N",
    help="Seeds of each cell, the same for every candidate. [default: the suite's]",
)
@options.block(
    options.OutputOptions,
    out="Folder of Runs and page. [default: runs/evaluate-SUITE; with --json nothing is written]",
)
@options.block(options.ExecutionOptions)
@options.block(options.ProgramOptions)
@options.block(options.ClusterOptions)
@options.block(options.StoreOptions)
@options.block(options.TalkOptions)
def evaluate(
    candidates: tuple[str, ...],
    suite: str | None,
    only: tuple[str, ...],
    quick: bool,
    seeds: int | None,
    output: options.OutputOptions,
    execution: options.ExecutionOptions,
    program: options.ProgramOptions,
    cluster: options.ClusterOptions,
    store: options.StoreOptions,
    talk: options.TalkOptions,
) -> None:
    """Evaluate queue disciplines or congestion controls against the criteria of a document.

    Queue disciplines are evaluated against RFC 7928, congestion controls against RFC 9743. Each
    criterion is a scenario that all candidates run, with the same seeds and the same buffer, beside
    a baseline (pfifo, cubic). Each number has its interval and its threshold. Each threshold has
    its source; where the document sets none, the threshold is sojourn's own. Without candidates,
    all that the engine has are run: its disciplines, or its congestion controls with --suite
    rfc9743.

    \b
    sojourn evaluate                                  all disciplines, RFC 7928
    sojourn evaluate fq_codel "codel target 20ms"     two of them
    sojourn evaluate reno vegas                       RFC 9743
    sojourn evaluate --suite rfc9743                  all congestion controls
    sojourn evaluate --only 6.2 --only 8.2.6 pie      some criteria

    Exit status 1 if a Run is invalid or runs failed. A claim that fails is a result, not an error.
    """
    from sojourn.engine import Interrupted
    from sojourn.evaluation import entrants
    from sojourn.evaluation import suite as suites
    from sojourn.evaluation.evaluate import How
    from sojourn.evaluation.evaluate import evaluate as run

    where = cluster.wanted(execution)
    found = suites.read(suite or entrants.suite_of(candidates))
    if only:
        found = found.only(only)
    from sojourn.evaluation import matrix

    work.permit(_with_programs(found, execution.engine), execution.engine, program.allowed)
    work.print_doubts(candidates if found.head.of == "qdisc" else (), talk.quiet)
    folder = output.out
    if folder is None and not talk.as_json:
        folder = work.unused(Path("runs") / f"evaluate-{found.name}")
    count = seeds or (found.head.quick_seeds if quick else found.head.seeds)
    how = How(
        count, folder, execution.engine, execution.jobs, output.force, store.fresh, cluster=where
    )
    ended: list[Assessment] = []

    def kept(one: Assessment) -> None:
        if folder is not None:
            matrix.write_runs(one, folder)
        ended.append(one)

    try:
        with work.progress(talk.quiet, _step) as progress:
            evaluation = run(found, candidates, how, progress, kept)
    except (Interrupted, KeyboardInterrupt) as stop:
        if ended:
            work.say(f"\ncomplete: {', '.join(one.criterion.name for one in ended)}")
        if isinstance(stop, Interrupted):
            work.interrupted(stop, kept=folder is not None)
        raise
    stops = [stop for assessment in evaluation.assessments for stop in assessment.failed]
    failed = work.failed(stops)
    if talk.as_json:
        work.show(text.as_json(_plain(evaluation, execution.engine, failed), "evaluate"))
    else:
        _show(evaluation)
    if folder is not None:
        page = matrix.write(evaluation, folder)
        work.say(f"wrote {page}, and the Runs of each criterion beside it", talk.quiet)
    runs = [run for assessment in evaluation.assessments for run in assessment.runs]
    if work.invalid(runs) or failed:
        raise click.exceptions.Exit(work.INVALID)


def _with_programs(suite: Suite, engine: str) -> list[Scenario]:
    """The scenarios with programs that the engine can run. The others are listed as not run."""
    from sojourn.engine import check

    found = []
    for criterion in suite.criteria:
        for one in filter(None, (suite.scenario(criterion), suite.alone(criterion))):
            if work.has_programs(one.document()):
                with contextlib.suppress(UserError):
                    check([one], engine)
                    found.append(one)
    return found


def _step(p: Stage) -> work.Step:
    """The progress over all criteria. Each criterion counts as equally long."""
    at = f"{p.criterion.name} ({p.number + 1} of {p.count})"
    if p.runs is None:
        return work.Step(f"{at}: its page", (p.number + 1) / p.count)
    inner = work.simulated(p.runs)
    done = p.number + 1 == p.count and inner.done
    words, news = f"{at}: {inner.words}", "\n".join(p.runs.news)
    return work.Step(words, (p.number + p.runs.fraction) / p.count, done, news)


# ------------------------------------------------------------------------------------- for people


def _show(evaluation: Evaluation) -> None:
    """Prints a sign for each claim and candidate, the list of claims, and a sentence for each
    candidate."""
    from sojourn.evaluation import phrases

    claims = [
        (assessment, row) for assessment in evaluation.assessments for row in assessment.results
    ]
    baseline = evaluation.called[evaluation.candidates[0]]
    longest = max(map(len, evaluation.called.values()))
    work.show(f"{evaluation.suite.head.title}\n")
    fit = max(1, (WIDTH - longest) // 3)
    for begin in range(0, len(claims), fit):
        part = claims[begin : begin + fit]
        numbers = "".join(f"{number:>3}" for number in range(begin + 1, begin + 1 + len(part)))
        work.show(f"{'':{longest}}{numbers}")
        for at, candidate in enumerate(evaluation.candidates):
            signs = "".join(f"  {phrases.SIGNS[row[at].verdict]}" for _, row in part)
            work.show(f"{evaluation.called[candidate]:{longest}}{signs}")
        work.show("")
    work.show("✓ holds  ✗ fails  ? undecided with these seeds  · reported, no threshold\n")
    for number, (assessment, row) in enumerate(claims, 1):
        asks = phrases.asks(assessment, row[0].claim, baseline)
        condition = f": {asks}" if asks else ""
        line = f"{assessment.criterion.section} {assessment.criterion.name}, {phrases.name(assessment, row[0].claim)}{condition}"
        work.show(
            textwrap.fill(line, WIDTH, initial_indent=f"{number:>3} ", subsequent_indent="    ")
        )
    work.show("")
    for candidate in evaluation.candidates[1:]:
        work.show(textwrap.fill(phrases.sentence(evaluation, candidate), WIDTH))
    for missing in evaluation.missing:
        line = f"not run: {missing.section} {missing.title}: needs {missing.needs}"
        work.show(textwrap.fill(line, WIDTH, subsequent_indent="  "))
    for why, names in phrases.left_out(evaluation):
        line = f"not evaluated: {names}: {why}"
        work.show(textwrap.fill(line, WIDTH, subsequent_indent="  "))


# --------------------------------------------------------------------------------------- for JSON


def _plain(evaluation: Evaluation, engine: str, failed: list[dict[str, Any]]) -> dict[str, Any]:
    from sojourn.evaluation import phrases

    suite = evaluation.suite
    return {
        "suite": suite.name,
        "title": suite.head.title,
        "engine": engine,
        "candidates": list(evaluation.candidates),
        "verdict": [phrases.sentence(evaluation, each) for each in evaluation.candidates[1:]],
        "criteria": [
            {
                "name": assessment.criterion.name,
                "section": assessment.criterion.section,
                "force": assessment.criterion.force,
                "title": assessment.criterion.title,
                "claims": [
                    {
                        "of": row[0].claim.of,
                        "over": row[0].claim.over,
                        "asks": phrases.asks(assessment, row[0].claim, evaluation.candidates[0]),
                        "source": suite.source(row[0].claim),
                        "candidates": [
                            {
                                "candidate": name,
                                "verdict": one.verdict,
                                "cells": [_cell(each) for each in one.findings],
                            }
                            for name, one in zip(evaluation.candidates, row, strict=True)
                        ],
                    }
                    for row in assessment.results
                ],
            }
            for assessment in evaluation.assessments
        ],
        "missing": [
            {"section": one.section, "force": one.force, "title": one.title, "needs": one.needs}
            for one in evaluation.missing
        ],
        "left_out": [{"candidate": one.candidate, "why": one.why} for one in evaluation.left_out],
        "failed": failed,
    }


def _cell(found: Finding) -> dict[str, Any]:
    return {
        "conditions": dict(found.conditions),
        "run": found.label,
        "value": _known(found.number.value),
        "low": _known(found.number.low),
        "high": _known(found.number.high),
        "unit": found.unit,
        "own": _known(found.own),
        "reference": _known(found.reference),
        "verdict": found.verdict,
    }


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
