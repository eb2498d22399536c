"""The page of an evaluation: all candidates against all criteria in one matrix, and below it each
criterion with its figure, its cells and what was run.

    DIR/report.html                the page
    DIR/CRITERION/report.html      the page of that criterion's Runs, with time lines where it is one cell
    DIR/CRITERION/RUN              the Runs
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from sojourn import report
from sojourn.digits import counted
from sojourn.digits import number as digits
from sojourn.errors import UserError
from sojourn.evaluation import phrases
from sojourn.evaluation.evaluate import Assessment, Evaluation
from sojourn.evaluation.judged import Conditions, Finding, Judged, Standing
from sojourn.figures import style
from sojourn.figures.ellipses import Cloud, Panel, ellipses
from sojourn.records import write_whole
from sojourn.report import parts
from sojourn.sweeps.grid import SweepCell

PAGE = "report.html"
MOST_PANELS = 6
"""Conditions in one figure."""
DELAY = "sojourn_mean"
"""The column that is the delay of the ellipses."""


def write(whole: Evaluation, folder: Path) -> Path:
    """Writes the page; its path.

    Raises:
        UserError: it can't be written there.
    """
    path = folder / PAGE
    try:
        write_whole(path, render(whole).encode())
    except OSError as error:
        raise UserError(
            f"can't write {path}: {error.strerror or error}", "choose another folder with -o"
        ) from None
    return path


def write_runs(assessment: Assessment, folder: Path) -> Path:
    """The page of one criterion's Runs, beside them."""
    page = folder / assessment.criterion.name / PAGE
    return report.write(list(assessment.runs), page, lab_in=folder)


def render(whole: Evaluation) -> str:
    """The page as text."""
    sections = [
        parts.section("matrix", "All criteria", _matrix(whole)),
        *(_criterion(whole, assessment) for assessment in whole.assessments),
        parts.section("missing", "Not run yet", _missing(whole)),
        parts.section("run", "What was run", _facts(whole)),
    ]
    body = "\n".join(filter(None, sections))
    head = whole.suite.head
    return parts.template("swept.html").substitute(
        title=escape(head.title),
        about=escape(f"{head.about} {head.source}."),
        verdict=_verdict(whole),
        css=parts.text("page.css")
        + parts.text("matrix.css", "sojourn.evaluation")
        + parts.colours(body),
        sections=body,
    )


def _verdict(whole: Evaluation) -> str:
    """How many claims hold for each, best first; which do not, folded away."""
    said = [phrases.sentence(whole, candidate) for candidate in whole.candidates[1:]]
    return (
        f"<p>{escape(phrases.ranking(whole))}</p><details><summary>What does not hold, by candidate</summary>"
        + "\n".join(f"<p>{escape(sentence)}</p>" for sentence in said)
        + "</details>"
    )


# ------------------------------------------------------------------------------------- the matrix


def _matrix(whole: Evaluation) -> str:
    heads = "".join(
        f'<th scope="col">{escape(whole.called[each])}</th>' for each in whole.candidates
    )
    rows = []
    for assessment in whole.assessments:
        one = assessment.criterion
        rows.append(
            f'<tr class="criterion"><th scope="colgroup" colspan="{len(whole.candidates) + 1}">'
            f'<a href="#{escape(one.name)}">{escape(one.section)} {escape(one.title)}</a>'
            f"<small>{escape(one.force)}</small></th></tr>"
        )
        rows += [_claim(whole, assessment, row) for row in assessment.judged]
    legend: tuple[tuple[Standing, str], ...] = (
        ("holds", "the whole 95 % interval is within the threshold"),
        ("fails", "the whole interval is beyond it"),
        ("unclear", "these seeds can't tell"),
        ("reported", "no threshold, or the baseline itself"),
    )
    signs = "".join(
        f'<li><strong class="sign">{phrases.SIGNS[word]}</strong>&nbsp;{escape(said)}</li>'
        for word, said in legend
    )
    return (
        f'<ul class="signs">{signs}</ul>'
        '<p class="hint">Each field is of the cell of its criterion that decides: the one furthest beyond the'
        " threshold, or nearest to it. A number with × is a share of the baseline's in the same cell, seed by"
        " seed.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="All criteria and candidates">'
        f'<table class="evaluated by-candidate"><thead><tr><td></td>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>{_sources(whole)}'
    )


def _sources(whole: Evaluation) -> str:
    """Whose each threshold is."""
    claims = [row[0].claim for assessment in whole.assessments for row in assessment.judged]
    told = dict.fromkeys(whole.suite.source(claim) for claim in claims if claim.judged)
    items = "".join(f"<li>{escape(each)}</li>" for each in told)
    return f"<details><summary>Whose the thresholds are</summary><ul>{items}</ul></details>"


def _claim(whole: Evaluation, assessment: Assessment, row: Sequence[Judged]) -> str:
    fields = "".join(map(_decisive, whole.candidates, row))
    return f"<tr>{_asked(whole, assessment, row[0])}{fields}</tr>"


def _asked(whole: Evaluation, assessment: Assessment, one: Judged) -> str:
    claim = one.claim
    asks = phrases.asks(assessment, claim, whole.called[whole.candidates[0]])
    short = re.split("[:,]", whole.suite.source(claim))[0]
    told = f"<small>{escape(asks)} ({escape(short)})</small>" if asks else ""
    return f'<th scope="row">{escape(phrases.name(assessment, claim))}{told}</th>'


def _decisive(candidate: str, one: Judged) -> str:
    found = one.decisive
    return _field(candidate, found, "" if found is None else phrases.where(found.conditions))


def _field(candidate: str, found: Finding | None, *small: str) -> str:
    """None: its runs failed."""
    name = f'data-name="{escape(candidate)}"'
    if found is None:
        return f'<td class="unknown" {name}>–</td>'
    number, half = phrases.number(found)
    told = ", ".join(filter(None, (half, *small)))
    return (
        f'<td class="{found.verdict}" {name}><span class="sign" title="{found.verdict}">{phrases.SIGNS[found.verdict]}</span>'
        f" {escape(number)}<small>{escape(told)}</small></td>"
    )


# ---------------------------------------------------------------------------------- one criterion


def _criterion(whole: Evaluation, assessment: Assessment) -> str:
    one = assessment.criterion
    link = f"{quote(one.name)}/{PAGE}"
    engine = assessment.runs[0].meta.engine
    by = () if engine == "sim" else ("-e", engine)
    again = shlex.join(
        ("sojourn", "evaluate", "--suite", whole.suite.word, "--only", one.name, *by, *whole.named)
    )
    scenario = assessment.runs[0].scenario_text
    return (
        f'<section aria-labelledby="{escape(one.name)}">'
        f'<h2 id="{escape(one.name)}">{escape(one.section)} {escape(one.title)}</h2>'
        f'<p class="hint">{escape(one.force)} · <a href="{link}">its Runs</a> · <code>{escape(again)}</code></p>'
        f"{_picture(whole, assessment)}{_cells(whole, assessment)}{parts.refusals(assessment.runs)}"
        f"<details><summary>The scenario of the first cell</summary>"
        f'<pre tabindex="0" aria-label="Scenario">{escape(scenario)}</pre></details></section>'
    )


def _cells(whole: Evaluation, assessment: Assessment) -> str:
    """Every claim in every cell, where there are several."""
    if len(assessment.conditions) < 2:
        return ""
    heads = "".join(
        f'<th scope="col">{escape(whole.called[each])}</th>' for each in whole.candidates
    )
    rows = "".join(
        _row(whole, assessment, row, cell)
        for row in assessment.judged
        for cell in assessment.conditions
    )
    return (
        "<details><summary>Every cell</summary>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Every cell of this criterion">'
        f'<table class="evaluated by-candidate"><thead><tr><td></td>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></details>"
    )


def _row(whole: Evaluation, assessment: Assessment, row: Sequence[Judged], cell: Conditions) -> str:
    """One claim in one cell."""
    claim = row[0].claim
    held = row[0].at(cell)
    reference = ""
    if claim.times_baseline and held is not None:
        reference = f"{whole.called[whole.candidates[0]]}: {digits(held.own)}"
    asks = phrases.asks(assessment, claim, whole.called[whole.candidates[0]])
    told = "".join(
        f"<small>{escape(each)}</small>"
        for each in (phrases.name(assessment, claim), asks, reference)
        if each
    )
    fields = "".join(
        _field(candidate, each.at(cell))
        for candidate, each in zip(whole.candidates, row, strict=True)
    )
    return f'<tr><th scope="row">{escape(phrases.where(cell))}{told}</th>{fields}</tr>'


def _picture(whole: Evaluation, assessment: Assessment) -> str:
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
                _cloud(whole, at, cells[found.label])
                for at, judged in enumerate(assessment.judged[0])
                if (found := judged.at(each)) is not None
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
    says = f"Delay against goodput of each candidate: {one.title}"
    caption = f"<figcaption><p>{escape(subtitle)}. Up and left is better.</p></figcaption>"
    wide = f"max-width: {figure.get_size_inches()[0]:.1f}in"
    return f'<figure class="shown" style="{wide}">{parts.svg(figure, says)}{caption}</figure>'


def _cloud(whole: Evaluation, at: int, cell: SweepCell) -> Cloud:
    colour, marker = _looks(whole.candidates)[at]
    return Cloud(
        whole.called[whole.candidates[at]],
        colour,
        marker,
        cell.at.per_seed(DELAY),
        cell.at.per_seed("goodput"),
    )


def _looks(candidates: Sequence[str]) -> list[tuple[str, str]]:
    """Colour and marker of each: a discipline's own colour, if all differ, else by turn. As long as
    there are markers, no two are alike."""
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


def _missing(whole: Evaluation) -> str:
    if not whole.missing:
        return ""
    rows = "".join(
        f'<tr><th scope="row">{escape(one.section)} {escape(one.title)}<small>{escape(one.force)}</small></th>'
        f'<td style="white-space: normal">{escape(one.needs)}</td></tr>'
        for one in whole.missing
    )
    return (
        '<p class="hint">Sections of the document that sojourn can\'t run, and what they need.</p>'
        f'<table class="evaluated"><tbody>{rows}</tbody></table>'
    )


def _facts(whole: Evaluation) -> str:
    runs = [run for assessment in whole.assessments for run in assessment.runs]
    first = runs[0].meta
    builds = sorted({run.meta.engine_build or "not recorded" for run in runs})
    seeds = counted((len(run.meta.seeds) for run in runs), "seed")
    facts = [
        ("Engine", f"{first.engine} {first.version}"),
        ("Build of the engine", ", ".join(builds)),
        ("Runs", f"{len(runs)}, each with {seeds}"),
        ("Baseline", whole.candidates[0]),
        ("Candidates", ", ".join(whole.candidates[1:])),
    ]
    facts += [(f"Not evaluated: {those}", why) for why, those in phrases.left_out(whole)]
    return parts.facts(facts)
