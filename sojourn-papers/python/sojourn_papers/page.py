"""One page per paper and one over all of them: claims, pictures, numbers beside numbers, readings,
what was run.

    DIR/index.html                 the overview: the story in one picture, every claim with its verdict
    DIR/PAPER/index.html           the paper, self-contained
    DIR/PAPER/figures/*.svg, *.csv its pictures and their data
    DIR/PAPER/rows.json            what `sojourn reproduce --json` prints of it
    DIR/PAPER/tolerances.toml      what counts as the same, as it stood on a date
    DIR/papers.bib, manifest.json  how to cite it; what all of it consists of, for `sojourn verify`
    DIR/PAPER/runs/STUDY/VARIANT   the Runs; in simulator/ the simulator's, where another engine ran

A verdict is a word in a frame, not a colour alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from markupsafe import Markup

from sojourn import bundles
from sojourn.digits import counted
from sojourn.digits import on_page as shown
from sojourn.errors import UserError
from sojourn.records import write_whole
from sojourn.report import parts
from sojourn_papers import (
    bibliography,
    engines,
    frozen,
    pictured,
    readings,
    story,
    tornado,
    verdict,
)
from sojourn_papers.engines import Pair
from sojourn_papers.paper import Claim, Grid, Number, Paper, Picture, Reading, Role
from sojourn_papers.readings import Matrix
from sojourn_papers.reproduction import Reproduction
from sojourn_papers.study import Study
from sojourn_papers.tornado import anchor
from sojourn_papers.verdict import ClaimRow, Judged, Row, Verdict

_MADE = "Made by sojourn"
BIB = "papers.bib"
_CLASS = {
    Verdict.REPRODUCED: "reproduced",
    Verdict.DIRECTION: "direction",
    Verdict.NOT_REPRODUCED: "not",
    Verdict.NOT_STATED: "unstated",
    Verdict.NOT_RUN: "unstated",
}
_SIGN = {
    Verdict.REPRODUCED: "✓",
    Verdict.DIRECTION: "↗",
    Verdict.NOT_REPRODUCED: "✗",
    Verdict.NOT_STATED: "·",
    Verdict.NOT_RUN: "–",
}


# A table wider than the window scrolls, also by keyboard.
_TABLE = '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table class="judged">'
_END = "</tbody></table></div>"


def write(found: Sequence[Reproduction], folder: Path) -> Path:
    """Writes the pages, pictures and rows of these papers; the overview's path."""
    pages = Pages(folder, [one.paper for one in found])
    for one in found:
        pages.add(one)
    pages.close()
    return pages.overview


class Pages:
    """The pages of papers in a folder, each written as its paper ends. The overview is of those
    that are written, in the order of these."""

    def __init__(self, folder: Path, papers: Sequence[Paper]) -> None:
        self.folder = folder
        self.overview = folder / "index.html"
        self._papers = papers
        self._found: dict[str, Reproduction] = {}
        self._drawn: dict[str, Pictures] = {}
        self._sums: dict[str, bundles.FileSum] = {}

    def __contains__(self, one: Reproduction) -> bool:
        return one.paper.id in self._drawn

    def add(self, one: Reproduction) -> None:
        """Writes the pages, pictures and rows of a paper, and the overview anew."""
        try:
            drawn = _write_paper(one, self.folder / one.paper.id)
            # Thousands of files: while the next paper runs, and not all of them at the end.
            self._sums |= self._summed(self._written(one))
            self._found[one.paper.id], self._drawn[one.paper.id] = one, drawn
            found = [self._found[each.id] for each in self._papers if each.id in self._found]
            write_whole(self.overview, _overview(found, self._drawn).encode())
        except OSError as error:
            raise _refused(self.folder, error) from None

    def close(self) -> None:
        """Writes how to cite what was written, and its manifest."""
        found = [self._found[each.id] for each in self._papers if each.id in self._found]
        bib = bibliography.whole(one.paper for one in found)
        runs = {
            run.path.relative_to(self.folder).as_posix(): run
            for one in found
            for run in one.runs
            if run.path.is_relative_to(self.folder)
        }
        try:
            write_whole(self.folder / BIB, bib.encode())
            files = self._sums | self._summed((self.overview.name, BIB))
            write_whole(self.folder / bundles.MANIFEST, bundles.of_files(files, runs).text())
        except OSError as error:
            raise _refused(self.folder, error) from None

    def _summed(self, names: Iterable[str]) -> dict[str, bundles.FileSum]:
        return {name: bundles.summed(self.folder / name) for name in names}

    def _written(self, one: Reproduction) -> Iterator[str]:
        """The names of the files of a paper: its page, pictures, Runs."""
        folder = self.folder / one.paper.id
        pages = ["index.html", "rows.json", *([frozen.FILE] if frozen.of(one.paper) else [])]
        yield from (f"{one.paper.id}/{name}" for name in pages)
        parts_ = [folder / "figures", *(run.path for run in one.runs)]
        for part in (each for each in parts_ if each.is_relative_to(self.folder)):
            within = part.relative_to(self.folder).as_posix()
            yield from (f"{within}/{name}" for name in bundles.files_in(part))


def _refused(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"can't write to {folder}: {error.strerror or error}", "choose another folder with -o"
    )


def check(papers: Sequence[Paper], folder: Path) -> None:
    """Refuses a folder in which something of somebody else's would be overwritten."""
    pages = (folder / "index.html", *(folder / paper.id / "index.html" for paper in papers))
    ours = {
        **dict.fromkeys(pages, _MADE),
        folder / BIB: bibliography.OURSELVES,
        folder / bundles.MANIFEST: bundles.SCHEMA,
    }
    for path, mark in ours.items():
        if path.is_dir() or (
            path.is_file() and mark not in path.read_text("utf-8", errors="replace")
        ):
            what = "a page of sojourn's" if mark == _MADE else "sojourn's"
            raise UserError(f"{path} is not {what}", "choose another folder with -o")


Pictures: TypeAlias = "Mapping[Picture, str]"
"""Those that could be drawn, as HTML."""


def _write_paper(one: Reproduction, folder: Path) -> Pictures:
    pictures = pictured.draw(one, folder)
    rows = json.dumps(one.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(folder / "rows.json", rows.encode())
    if (kept := frozen.of(one.paper)) is not None:
        write_whole(folder / frozen.FILE, kept.file.read_bytes())
    write_whole(folder / "index.html", _paper(one, pictures).encode())
    return pictures


# -------------------------------------------------------------------------------------- one paper


def _paper(one: Reproduction, pictures: Pictures) -> str:
    paper = one.paper
    matrix = readings.matrix(paper, one.evidence, one.rows, one.claims)
    others = _readings(one, matrix) + tornado.table(matrix) + tornado.plots(matrix)
    body = [
        _section("claims", "Claims", _claims([one], {paper.id: pictures}, links="")),
        _section("pictures", "Figures", "\n".join(pictures.values())),
        _section(
            "numbers",
            f"{paper.beside.capitalize()} beside ours",
            _grids(one) + _numbers(one, matrix),
        ),
        *([_section("engines", "Both engines", _engines(one))] if one.simulated else []),
        _section("readings", "How the source was read", others),
        _section("runs", "What was run", _studies(one)),
    ]
    return _page(
        paper.title,
        paper.source,
        [paper.about, *_sentences([one])],
        "\n".join(body),
        up=True,
    )


def _claims(found: Sequence[Reproduction], drawn: Mapping[str, Pictures], links: str) -> str:
    """The table of claims; `links` leads from the page to the folders of the papers, empty on a
    paper's own page."""
    rows = []
    for one in found:
        base = f"{links}{one.paper.id}/index.html" if links else ""
        if links:
            rows.append(
                f'</tbody><tbody><tr class="study"><th colspan="3" scope="rowgroup"><a href="{escape(base)}">{escape(one.paper.title)}</a></th></tr>'
            )
        pictures = drawn[one.paper.id]
        rows += [
            _claim(row, base, [picture for picture in pictures if picture.id in row.claim.pictures])
            for row in one.claims
        ]
    return (
        _TABLE.format("Claims") + '<thead><tr><th scope="col">The source says</th>'
        '<th scope="col">Verdict</th><th scope="col">Found</th></tr></thead><tbody>'
        + "\n".join(rows)
        + _END
    )


def _claim(row: ClaimRow, base: str, pictures: Sequence[Picture]) -> str:
    claim: Claim = row.claim
    seen = ", ".join(
        f'<a href="{escape(base)}#{escape(anchor("picture", picture.id))}">'
        f"{escape(picture.source or picture.title)}</a>"
        for picture in pictures
    )
    id_ = anchor("claim", claim.id)
    own = "" if base else f' id="{escape(id_)}"'
    link = f'<a href="{escape(base)}#{escape(id_)}">#</a>' if base else pictured.here(id_, "claim")
    return (
        f'<tr{own}><th scope="row"><p>{escape(claim.says)}</p>'
        f"<small>{escape(claim.where)} {link}</small></th>"
        f"<td>{_badge(row.verdict, *_role(claim.role, claim.role_because))}</td>"
        f"<td><ul>{''.join(map(_judged, row.judged))}</ul>"
        f"<p>{escape(row.because)}{f' ({seen})' if seen else ''}</p></td></tr>"
    )


def _judged(one: Judged) -> str:
    """A quantity beside its threshold: `✓ least lead, ms: 3.1 (> 0)`."""
    sign = _SIGN[
        Verdict.NOT_RUN
        if one.ours is None
        else Verdict.REPRODUCED
        if one.met
        else Verdict.NOT_REPRODUCED
    ]
    return f"<li>{sign} {escape(one.found)}</li>"


def _role(role: Role | None, because: str) -> tuple[str, str]:
    """The class of the badge and what stands beside it, where it is no prediction."""
    if role in (None, Role.PREDICTED):
        return "", ""
    return (
        " weak",
        f' <span class="role">{escape(str(role))}</span><small>{escape(because)}</small>',
    )


def _grids(one: Reproduction) -> str:
    """The source's tables in its own layout: published over ours."""
    rows = {row.number.id: row for row in one.rows}
    return "\n".join(_grid(grid, rows, one.paper.beside) for grid in one.paper.grids)


def _grid(grid: Grid, rows: Mapping[str, Row], beside: str) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in grid.head)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(_cell(rows.get(id_)) if id_ else "<td></td>" for id_ in ids)
        + "</tr>"
        for name, ids in grid.rows.items()
    )
    return (
        _TABLE.format(escape(grid.title)).replace("judged", "grid")
        + f"<caption>{escape(grid.title)}: {escape(beside)} over ours, dashed where it is no prediction"
        f"</caption><thead><tr><td></td>{head}</tr></thead><tbody>{body}{_END}"
    )


def _cell(row: Row | None) -> str:
    """One cell: published, and below it ours with the verdict's sign and colour."""
    if row is None:
        return "<td>-</td>"
    weak = "" if row.number.role is Role.PREDICTED else " weak"
    said = ", ".join(filter(None, (str(row.verdict), row.number.role)))
    return (
        f'<td><a href="#{escape(anchor("number", row.number.id))}" title="{escape(said)}">'
        f'{escape(published(row))}<span class="badge {_CLASS[row.verdict]}{weak}">'
        f"{_SIGN[row.verdict]} {escape(_mean(row))}</span></a></td>"
    )


def _mean(row: Row) -> str:
    """Ours, with the digits of the published number."""
    if row.number.published is None or math.isnan(row.ours.mean):
        return ours(row).partition(" ±")[0]
    return f"{row.ours.mean:.{max(verdict.decimals(row.number.published), 2)}f}"


def _numbers(one: Reproduction, matrix: Matrix) -> str:
    studies = {study.id: study for study in one.paper.studies}
    parts_: list[str] = []
    latest = ""
    for row in one.rows:
        if row.number.variant.study != latest:
            latest = row.number.variant.study
            parts_.append(
                f'</tbody><tbody><tr class="study"><th colspan="5" scope="rowgroup">{escape(studies[latest].what)}</th></tr>'
            )
        parts_.append(_number(row, matrix))
    seeds = counted((row.ours.seeds for row in one.rows), "seed")
    left_out = (
        f" {one.left_out} more numbers need the full version."
        if one.evidence.quick and one.left_out
        else ""
    )
    return (
        _TABLE.format("Numbers") + "<caption>Ours: mean over "
        f"{seeds} ± half the 95 % confidence interval; a warm-up, "
        f"where there is one, is left out. {_frozen(one.paper)} {_ROLES}{left_out}</caption>"
        '<thead><tr><th scope="col">What</th><th scope="col" class="number">'
        f"{escape(one.paper.beside.capitalize())}"
        '</th><th scope="col" class="number">Ours</th>'
        '<th scope="col" class="number">Difference</th><th scope="col">Verdict</th></tr></thead><tbody>'
        + "\n".join(parts_)
        + _END
    )


def _frozen(paper: Paper) -> str:
    """Since when the tolerances stand, and the sum of the file that says so."""
    kept = frozen.of(paper)
    if kept is None:
        return "How numbers and claims are judged is not frozen yet."
    said = (
        "Tolerances, measures, orders and the thresholds of claims were frozen on "
        f"{kept.on.isoformat()}, after the first runs, in "
        f'<a href="{frozen.FILE}">{frozen.FILE}</a>, SHA-256 <code>{kept.sha256}</code>; '
        f"the tolerances stand since {kept.tolerances.isoformat()}."
    )
    changed = frozen.changed(paper, kept)
    return said + (
        f" Judged otherwise than there: {escape(', '.join(changed))}." if changed else ""
    )


_ROLES = (
    "What has no role is a prediction. The others prove nothing: an input was set by us, a "
    "parameter was searched until a fitted one fits, a derived one follows from another number."
)


def _number(row: Row, matrix: Matrix) -> str:
    number: Number = row.number
    id_ = anchor("number", number.id)
    unit = f" {escape(number.unit)}" if number.unit else ""
    tolerance = ""
    if number.tolerance is not None and number.published is not None:
        tolerance = f"<small>{escape(number.tolerance.words(number.unit))}: {escape(number.tolerance.because)}</small>"
    reason = ""
    if row.reason:
        why = " ".join(filter(None, (row.reason, matrix.elsewhere(number))))
        reason = f"<small>{escape(why)}</small>"
    weak, role = _role(number.role, number.role_because)
    return (
        f'<tr id="{escape(id_)}"><th scope="row">{escape(number.what)}'
        f"<small>{escape(number.where)} {pictured.here(id_, 'number')}</small></th>"
        f'<td class="number" data-name="published">{escape(published(row))}'
        f"{unit if number.published is not None else ''}</td>"
        f'<td class="number" data-name="ours">{escape(ours(row))}{unit}</td>'
        f'<td class="number" data-name="difference">{escape(difference(row))}</td>'
        f"<td>{_badge(row.verdict, weak, role)}{reason or tolerance}</td></tr>"
    )


def published(row: Row) -> str:
    """The published number: `23.8`, `< 40`, `-` where there is none."""
    number = row.number
    if number.published is None:
        return "-"
    bound = "" if number.relation == "=" else f"{number.relation} "
    return f"{bound}{number.published:.10g}"


def ours(row: Row) -> str:
    """Our number: `24.1 ± 0.3`, with no fewer decimals than the published one."""
    if math.isnan(row.ours.mean):
        return "-"
    spread = "" if math.isnan(row.ours.ci95) else f" ± {shown(row.ours.ci95)}"
    mean, digits = shown(row.ours.mean), verdict.decimals(row.number.published or 0)
    if len(mean.partition(".")[2]) < digits:
        mean = f"{row.ours.mean:.{digits}f}"
    return f"{mean}{spread}"


def difference(row: Row) -> str:
    """`+4 %`, or in the number's unit where the tolerance is; empty for bounds and what isn't
    stated."""
    number = row.number
    if number.published is None or number.relation != "=" or math.isnan(row.difference):
        return ""
    if math.isnan(row.relative) or (number.tolerance is not None and not number.tolerance.relative):
        return f"{row.difference:+.3g} {'points' if number.unit == '%' else number.unit}".rstrip()
    return f"{100 * row.relative:+.3g} %"


def _engines(one: Reproduction) -> str:
    """A kernel's numbers beside the simulator's, those first that differ."""
    both = sorted(engines.pairs(one), key=lambda pair: not pair.differ)
    moved = [
        f"<li>{escape(kernel.claim.says)}: {escape(one.evidence.engine)} {_badge(kernel.verdict)}, "
        f"simulator {_badge(simulator.verdict)}</li>"
        for kernel, simulator in engines.claims(one)
    ]
    return (
        f"<p>{escape(engines.sentence(one))}</p><ul>{''.join(moved)}</ul>"
        + _TABLE.format("Both engines")
        + '<thead><tr><th scope="col">What</th><th scope="col" class="number">'
        f'{escape(one.paper.beside.capitalize())}</th><th scope="col" class="number">'
        f'{escape(one.evidence.engine.capitalize())}</th><th scope="col" class="number">Simulator</th>'
        '<th scope="col" class="number">Apart</th><th scope="col">Differ</th></tr></thead><tbody>'
        + "\n".join(map(_pair, both))
        + _END
    )


def _pair(pair: Pair) -> str:
    number = pair.number
    unit = f" [{number.unit}]" if number.unit else ""
    # Plus zero: a distance that rounds to none has no sign of its own.
    apart = "-" if math.isnan(pair.distance) else f"{round(100 * pair.distance, 1) + 0.0:+.1f} %"
    why = f"<small>{escape(number.engines or verdict.NO_REASON)}</small>" if pair.differ else ""
    cells = "".join(
        f'<td class="number" data-name="{name}">{escape(cell)}</td>'
        for name, cell in (
            ("published", published(pair.kernel)),
            ("kernel", ours(pair.kernel)),
            ("simulator", ours(pair.simulator)),
            ("apart", apart),
        )
    )
    return (
        f'<tr><th scope="row">{escape(number.what + unit)}</th>{cells}'
        f'<td data-name="differ">{"yes" if pair.differ else "no"}{why}</td></tr>'
    )


def _readings(one: Reproduction, matrix: Matrix) -> str:
    return (
        _TABLE.format("Readings")
        + '<thead><tr><th scope="col">Parameter</th><th scope="col">The source</th>'
        '<th scope="col">Chosen</th><th scope="col">Why</th><th scope="col">Other readings</th></tr></thead><tbody>'
        + "\n".join(_reading(reading, matrix) for reading in one.paper.readings)
        + _END
    )


def _reading(reading: Reading, matrix: Matrix) -> str:
    others = ". ".join([*map(matrix.told, reading.under), *filter(None, [reading.others])])
    found = (
        "<small>Found by search: its agreement is no independent proof.</small>"
        if reading.searched
        else ""
    )
    cells = "".join(
        f'<td data-name="{name}">{f"<p>{escape(text)}</p>" if text else ""}{more}</td>'
        for name, text, more in (
            ("the source", reading.source, ""),
            ("chosen", reading.chosen, found),
            ("why", reading.why, ""),
            ("other readings", others, ""),
        )
    )
    return f'<tr><th scope="row">{escape(reading.parameter)}</th>{cells}</tr>'


def _studies(one: Reproduction) -> str:
    rows = "".join(_study(study, one) for study in one.paper.studies)
    return (
        '<p class="hint">Every Run lies in the folder runs/ beside this page: <code>sojourn report</code> shows any of them.</p>'
        + _TABLE.format("Studies")
        + '<thead><tr><th scope="col">Study</th><th scope="col">Scenario</th>'
        '<th scope="col" class="number">Variants</th><th scope="col" class="number">Seeds</th><th scope="col" class="number">Length</th></tr></thead>'
        f"<tbody>{rows}{_END}"
    )


def _study(study: Study, one: Reproduction) -> str:
    runs = [run for variant, run in one.evidence.runs.items() if variant.study == study.id]
    lengths = sorted({(run.meta.duration_ns / 1e9, run.meta.warmup_ns / 1e9) for run in runs})
    length = ", ".join(
        f"{duration:g} s" + (f", {warmup:g} s of it warm-up" if warmup else "")
        for duration, warmup in lengths[:3]
    )
    length += " …" if len(lengths) > 3 else ""
    seeds = " or ".join(map(str, sorted({len(run.seeds) for run in runs})))
    return (
        f'<tr><th scope="row"><p>{escape(study.what)}</p></th>'
        f'<td data-name="scenario">{escape(study.scenario)}</td>'
        f'<td class="number" data-name="variants">{len(runs)}</td>'
        f'<td class="number" data-name="seeds">{seeds}</td>'
        f'<td class="number" data-name="length">{escape(length)}</td></tr>'
    )


# --------------------------------------------------------------------------------------- overview


def _overview(found: Sequence[Reproduction], drawn: Mapping[str, Pictures]) -> str:
    _, picture = parts.file_and_svg(
        story.draw(found), "Delay with empty queues, bloated and cured, in each paper's system"
    )
    body = [
        f'<div class="story">{picture}</div>',
        _section("papers", "Papers", _papers(found)),
        _section("claims", "Every claim, and what became of it", _claims(found, drawn, links="./")),
    ]
    return _page(
        "Bufferbloat, reproduced",
        ", ".join(one.paper.id for one in found),
        [story.SENTENCE, *_sentences(found)],
        "\n".join(body),
    )


def _papers(found: Sequence[Reproduction]) -> str:
    names = [f"predicted: {word}" for word in _JUDGED]
    names += [f"{role}: reproduced" for role in Role if role is not Role.PREDICTED]
    names.append(str(Verdict.NOT_STATED))
    rows = []
    for one in found:
        counts = verdict.by_role(one.rows)
        held = verdict.by_role(one.claims)[Role.PREDICTED]
        predicted = counts[Role.PREDICTED]
        shown_ = [str(predicted[word] or "-") for word in _JUDGED]
        shown_ += [_of(counts[role]) for role in Role if role is not Role.PREDICTED]
        shown_.append(str(sum(row.number.published is None for row in one.rows) or "-"))
        cells = "".join(
            f'<td class="number" data-name="{name}">{cell}</td>'
            for name, cell in zip(names, shown_, strict=True)
        )
        rows.append(
            f'<tr><th scope="row"><a href="{escape(one.paper.id)}/index.html">{escape(one.paper.title)}</a>'
            f"<small>{escape(one.paper.source)}</small></th>"
            '<td class="number" data-name="predicted claims that hold">'
            f"{_of(held)}</td>{cells}</tr>"
        )
    head = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in names)
    return (
        _TABLE.format("Papers")
        + '<thead><tr><th scope="col">Paper</th><th scope="col" class="number">predicted claims that hold</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}{_END}"
    )


_JUDGED = (Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT_REPRODUCED)


def _of(counts: Counter[Verdict]) -> str:
    """`5 of 6`, or `-` of none."""
    return f"{counts[Verdict.REPRODUCED]} of {counts.total()}" if counts else "-"


# ----------------------------------------------------------------------------------------- pieces


def sentence(found: Sequence[Reproduction]) -> str:
    """How many predictions got which verdict, numbers and claims; those of other roles stand beside
    them."""
    numbers = verdict.by_role(row for one in found for row in one.rows)
    claims = verdict.by_role(row for one in found for row in one.claims)
    left_out = sum(row.verdict is Verdict.NOT_RUN for one in found for row in one.claims)
    rest = [
        f"{role} {what} {_of(tally)}"
        for what, roles in (("numbers", numbers), ("claims", claims))
        for role, tally in roles.items()
        if role is not Role.PREDICTED and tally
    ]
    said = [_counted(numbers, "number"), *map(_compared, found), _counted(claims, "claim")]
    if rest:
        said.append(
            f"What was set, fitted or derived proves nothing; reproduced are {', '.join(rest)}."
        )
    if left_out:
        said.append(f"Claims that are not run here: {left_out}.")
    return " ".join(filter(None, said))


def _counted(roles: Mapping[Role, Counter[Verdict]], what: str) -> str:
    """`Predicted numbers: 10 of 14 reproduced, 1 in direction, 3 not.`"""
    tally = roles[Role.PREDICTED]
    if not tally:
        return ""
    return (
        f"Predicted {what}s: {_of(tally)} reproduced, {tally[Verdict.DIRECTION]} in direction, "
        f"{tally[Verdict.NOT_REPRODUCED]} not."
    )


def _compared(one: Reproduction) -> str:
    """What the predictions would be if the disciplines did not differ."""
    fit, same, of = readings.no_difference(one.paper, one.evidence, one.rows)
    if not of:
        return ""
    return (
        f"Of those of {one.paper.id} that compare disciplines {fit} of {of} are within the tolerance; "
        f"with no difference between the disciplines {same} would be."
    )


def _sentences(found: Sequence[Reproduction]) -> list[str]:
    said = [sentence(found)]
    refused = [
        f"{run.name} ({'; '.join(run.meta.invalid)})" for one in found for run in one.invalid
    ]
    if refused:
        said.insert(0, f"Invalid, so that verdicts on them say nothing: {', '.join(refused)}.")
    if any(one.evidence.quick for one in found):
        said.append(
            "This is the quick version: shorter runs and fewer seeds. The verdicts that count are "
            "those of the full one."
        )
    if any(one.evidence.engine != "sim" for one in found):
        said.append(
            f"Run on the engine {found[0].evidence.engine}: the part of each paper that it can "
            "run in minutes."
        )
    return said


def _badge(word: Verdict, weak: str = "", beside: str = "") -> str:
    """A verdict in its frame; `weak`: not a prediction's."""
    said = f"{_SIGN[word]} {escape(str(word))}"
    return f'<span class="badge {_CLASS[word]}{weak}">{said}</span>{beside}'


def _section(id_: str, heading: str, content: str) -> str:
    return f'<section aria-labelledby="{id_}"><h2 id="{id_}">{escape(heading)}</h2>\n{content}\n</section>'


def _page(title: str, about: str, verdict: Iterable[str], body: str, up: bool = False) -> str:
    return parts.page(
        "sojourn_papers/page.html",
        ["sojourn.report/page.css", "sojourn_papers/page.css"],
        title=title,
        about=about,
        up=up,
        sentences=verdict,
        body=Markup(body),
        made=f"{_MADE} {version('sojourn')}.",
    )
