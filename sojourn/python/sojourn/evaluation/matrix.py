"""The page of an evaluation: a matrix of all candidates and criteria, then each criterion with its
figure, its cells and its scenario.

    DIR/report.html                the page
    DIR/CRITERION/report.html      the page of that criterion's Runs; with time lines if there is
    one cell
    DIR/CRITERION/RUN              the Runs
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sojourn import report
from sojourn.digits import counted
from sojourn.digits import number as digits
from sojourn.errors import UserError
from sojourn.evaluation import phrases
from sojourn.evaluation.claim_results import ClaimResult, Conditions, Finding, Standing
from sojourn.evaluation.evaluate import Assessment, Evaluation
from sojourn.figures import style
from sojourn.figures.ellipses import Cloud, Panel, ellipses
from sojourn.records import write_whole
from sojourn.report import parts
from sojourn.sweeps.grid import SweepCell

PAGE = "report.html"
MOST_PANELS = 6
"""The largest number of panels of a figure: one for each cell's conditions."""
DELAY = "sojourn_mean"
"""The delay that the ellipses show."""
LEGEND: tuple[tuple[Standing, str], ...] = (
    ("holds", "the whole 95 % interval is within the threshold"),
    ("fails", "the whole 95 % interval is beyond the threshold"),
    ("unclear", "undecided with these seeds"),
    ("reported", "no threshold, or the baseline itself"),
)


def write(evaluation: Evaluation, folder: Path) -> Path:
    """Writes the page and returns its path.

    Raises:
        UserError: it can't be written there.
    """
    path = folder / PAGE
    try:
        write_whole(path, render(evaluation).encode())
    except OSError as error:
        raise UserError(
            f"can't write {path}: {error.strerror or error}", "choose another folder with -o"
        ) from None
    return path


def write_runs(assessment: Assessment, folder: Path) -> Path:
    """Writes the page of one criterion's Runs, beside them."""
    page = folder / assessment.criterion.name / PAGE
    return report.write(list(assessment.runs), page, lab_in=folder)


def render(evaluation: Evaluation) -> str:
    """The page as HTML."""
    head = evaluation.suite.head
    return parts.page(
        "sojourn.evaluation/matrix.html",
        ["sojourn.report/page.css", "sojourn.evaluation/matrix.css"],
        title=head.title,
        about=f"{head.about} {head.source}.",
        ranking=phrases.ranking(evaluation),
        # The number of claims that hold for each candidate, best first.
        sentences=[phrases.sentence(evaluation, each) for each in evaluation.candidates[1:]],
        candidates=[evaluation.called[each] for each in evaluation.candidates],
        legend=[(phrases.SIGNS[word], meaning) for word, meaning in LEGEND],
        criteria=[_criterion(evaluation, assessment) for assessment in evaluation.assessments],
        sources=_sources(evaluation),
        missing=evaluation.missing,
        facts=_facts(evaluation),
    )


# ------------------------------------------------------------------------------------- the matrix


def _sources(evaluation: Evaluation) -> list[str]:
    """The sources of the thresholds."""
    claims = [row[0].claim for assessment in evaluation.assessments for row in assessment.results]
    return list(dict.fromkeys(evaluation.suite.source(claim) for claim in claims if claim.judged))


def _claim(
    evaluation: Evaluation, assessment: Assessment, row: Sequence[ClaimResult]
) -> dict[str, Any]:
    """A claim in the deciding cell, for each candidate."""
    claim = row[0].claim
    asks = phrases.asks(assessment, claim, evaluation.called[evaluation.candidates[0]])
    short = re.split("[:,]", evaluation.suite.source(claim))[0]
    return {
        "name": phrases.name(assessment, claim),
        "note": [f"{asks} ({short})"] if asks else [],
        "fields": [_decisive(*each) for each in zip(evaluation.candidates, row, strict=True)],
    }


def _decisive(candidate: str, one: ClaimResult) -> dict[str, str | None]:
    found = one.decisive
    return _field(candidate, found, "" if found is None else phrases.where(found.conditions))


def _field(candidate: str, found: Finding | None, *small: str) -> dict[str, str | None]:
    """A field of the matrix; `found` None: the runs failed."""
    if found is None:
        return {"candidate": candidate, "number": None}
    number, half = phrases.number(found)
    return {
        "candidate": candidate,
        "standing": found.verdict,
        "sign": phrases.SIGNS[found.verdict],
        "number": number,
        "note": ", ".join(filter(None, (half, *small))),
    }


# ---------------------------------------------------------------------------------- one criterion


def _criterion(evaluation: Evaluation, assessment: Assessment) -> dict[str, Any]:
    one = assessment.criterion
    engine = assessment.runs[0].meta.engine
    by = () if engine == "sim" else ("-e", engine)
    again = ("sojourn", "evaluate", "--suite", evaluation.suite.word, "--only", one.name)
    return {
        "id": one.name,
        "title": f"{one.section} {one.title}",
        "force": one.force,
        "claims": [_claim(evaluation, assessment, row) for row in assessment.results],
        "runs": f"{quote(one.name)}/{PAGE}",
        "again": shlex.join((*again, *by, *evaluation.named)),
        "picture": _picture(evaluation, assessment),
        "cells": _cells(evaluation, assessment),
        "refused": parts.refused(assessment.runs),
        "scenario": assessment.runs[0].scenario_text,
    }


def _cells(evaluation: Evaluation, assessment: Assessment) -> list[dict[str, Any]]:
    """Every claim in every cell, if there are several cells."""
    if len(assessment.conditions) < 2:
        return []
    return [
        _row(evaluation, assessment, row, cell)
        for row in assessment.results
        for cell in assessment.conditions
    ]


def _row(
    evaluation: Evaluation, assessment: Assessment, row: Sequence[ClaimResult], cell: Conditions
) -> dict[str, Any]:
    """One claim in one cell."""
    claim = row[0].claim
    held = row[0].at(cell)
    reference = ""
    if claim.times_baseline and held is not None:
        reference = f"{evaluation.called[evaluation.candidates[0]]}: {digits(held.own)}"
    asks = phrases.asks(assessment, claim, evaluation.called[evaluation.candidates[0]])
    return {
        "name": phrases.where(cell),
        "note": [each for each in (phrases.name(assessment, claim), asks, reference) if each],
        "fields": [
            _field(candidate, each.at(cell))
            for candidate, each in zip(evaluation.candidates, row, strict=True)
        ],
    }


def _picture(evaluation: Evaluation, assessment: Assessment) -> dict[str, str]:
    """Delay against goodput, with an ellipse for each candidate."""
    conditions = assessment.conditions
    shown = conditions
    if len(conditions) > MOST_PANELS:
        step = (len(conditions) - 1) / (MOST_PANELS - 1)
        shown = [conditions[round(number * step)] for number in range(MOST_PANELS)]
    cells = {cell.label: cell for cell in assessment.grid.cells}
    panels = [
        Panel(
            phrases.where(each),
            [
                _cloud(evaluation, at, cells[found.label])
                for at, result in enumerate(assessment.results[0])
                if (found := result.at(each)) is not None
            ],
        )
        for each in shown
    ]
    one = assessment.criterion
    part = "" if shown == conditions else f", {len(shown)} of {len(conditions)} cells"
    subtitle = (
        "A point for each seed, the ellipse of one standard deviation, its marker at the median"
        + part
    )
    figure = ellipses(one.title, subtitle, "mean sojourn", panels)
    says = f"Delay and goodput of each candidate: {one.title}"
    return {
        "svg": parts.svg(figure, says),
        "subtitle": subtitle,
        "width": f"{figure.get_size_inches()[0]:.1f}in",
    }


def _cloud(evaluation: Evaluation, at: int, cell: SweepCell) -> Cloud:
    colour, marker = _looks(evaluation.candidates)[at]
    return Cloud(
        evaluation.called[evaluation.candidates[at]],
        colour,
        marker,
        cell.at.per_seed(DELAY),
        cell.at.per_seed("goodput"),
    )


def _looks(candidates: Sequence[str]) -> list[tuple[str, str]]:
    """The colour and marker of each candidate: the discipline's own colour if all disciplines
    differ, otherwise by turn. All are different while there are enough markers."""
    kinds = [each.partition(" ")[0] for each in candidates]
    apart = len(set(kinds)) == len(kinds)
    found: list[tuple[str, str]] = []
    for at, kind in enumerate(kinds):
        own = style.QDISCS.get(kind) if apart else None
        colour = style.flow_look(at)[0] if own is None else own[0]
        turn = at % len(style.MARKERS)
        markers = style.MARKERS[turn:] + style.MARKERS[:turn]
        free = (each for each in markers if (colour, each) not in found)
        found.append((colour, next(free, markers[0])))
    return found


# ------------------------------------------------------------------------------------------- rest


def _facts(evaluation: Evaluation) -> list[tuple[str, str]]:
    runs = [run for assessment in evaluation.assessments for run in assessment.runs]
    first = runs[0].meta
    builds = sorted({run.meta.engine_build or "not recorded" for run in runs})
    seeds = counted((len(run.meta.seeds) for run in runs), "seed")
    facts = [
        ("Engine", f"{first.engine} {first.version}"),
        ("Build of the engine", ", ".join(builds)),
        ("Runs", f"{len(runs)}, each with {seeds}"),
        ("Baseline", evaluation.candidates[0]),
        ("Candidates", ", ".join(evaluation.candidates[1:])),
    ]
    facts += [(f"Not evaluated: {names}", why) for why, names in phrases.left_out(evaluation)]
    return facts
