"""Writes a page for each paper and an overview: claims, pictures, published numbers beside ours,
readings, and the Runs.

    DIR/index.html                 the overview: the story in one picture, every claim with its verdict
    DIR/PAPER/index.html           the paper, self-contained
    DIR/PAPER/figures/*.svg, *.csv its pictures and their data
    DIR/PAPER/rows.json            the paper's part of the output of `sojourn reproduce --json`
    DIR/PAPER/tolerances.toml      tolerances and thresholds, frozen on a date
    DIR/papers.bib, manifest.json  the bibliography; a list of all files, for `sojourn verify`
    DIR/PAPER/runs/STUDY/VARIANT   the Runs; in simulator/ the simulator's, if another engine ran

A verdict is shown as a word in a frame, not by colour alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

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
from sojourn_papers.paper import Claim, Number, Paper, Picture, Reading, Role
from sojourn_papers.readings import Matrix
from sojourn_papers.reproduction import Reproduction
from sojourn_papers.study import Study
from sojourn_papers.tornado import anchor
from sojourn_papers.verdict import ClaimRow, Row, ThresholdCheck, Verdict

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


def write(found: Sequence[Reproduction], folder: Path) -> Path:
    """Writes the pages, pictures and rows of these papers. Returns the overview's path."""
    pages = Pages(folder, [one.paper for one in found])
    for one in found:
        pages.add(one)
    pages.close()
    return pages.overview


class Pages:
    """The pages of papers in a folder. Each is written when its paper ends. The overview has the
    written ones, in the order of `papers`."""

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
        """Writes the page, pictures and rows of a paper, and rewrites the overview."""
        try:
            drawn = _write_paper(one, self.folder / one.paper.id)
            # There are thousands of files: hash them while the next paper runs, not at the end.
            self._sums |= self._summed(self._written(one))
            self._found[one.paper.id], self._drawn[one.paper.id] = one, drawn
            found = [self._found[each.id] for each in self._papers if each.id in self._found]
            write_whole(self.overview, _overview(found, self._drawn).encode())
        except OSError as error:
            raise _refused(self.folder, error) from None

    def close(self) -> None:
        """Writes the bibliography and the manifest of the written papers."""
        found = [self._found[each.id] for each in self._papers if each.id in self._found]
        bib = bibliography.bibtex(one.paper for one in found)
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
        """The names of a paper's files: its page, pictures, Runs."""
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
    """Refuses a folder in which a file that sojourn did not write would be overwritten."""
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
            what = "a page of sojourn" if mark == _MADE else "a file of sojourn"
            raise UserError(f"{path} is not {what}", "choose another folder with -o")


Pictures: TypeAlias = "Mapping[Picture, Mapping[str, Any]]"
"""The pictures that could be drawn, and their values for the template."""


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
    return _page(
        "sojourn_papers/paper.html",
        title=paper.title,
        about=paper.source,
        sentences=[paper.about, *_sentences([one])],
        claims=[_claims(one, pictures, "")],
        pictures=list(pictures.values()),
        beside=paper.beside.capitalize(),
        grids=_grids(one),
        seeds=counted((row.ours.seeds for row in one.rows), "seed"),
        frozen=_frozen(paper),
        left_out=one.left_out if one.evidence.quick else 0,
        numbers=_numbers(one, matrix),
        engines=_engines(one) if one.simulated else None,
        readings=[_reading(reading, matrix) for reading in paper.readings],
        matrix=tornado.table(matrix) or "",
        plots=tornado.plots(matrix) or "",
        studies=[_study(study, one) for study in paper.studies],
    )


def _claims(one: Reproduction, pictures: Pictures, page: str) -> dict[str, Any]:
    """The claims of a paper. `page`: the link to the paper's page; empty on that page itself."""
    return {
        "page": page,
        "title": one.paper.title,
        "claims": [
            _claim(row, [picture for picture in pictures if picture.id in row.claim.pictures])
            for row in one.claims
        ],
    }


def _claim(row: ClaimRow, pictures: Sequence[Picture]) -> dict[str, Any]:
    claim: Claim = row.claim
    return {
        "id": anchor("claim", claim.id),
        "says": claim.says,
        "where": claim.where,
        "verdict": _badge(row.verdict, claim.role, claim.role_because),
        "judged": list(map(_judged, row.judged)),
        "because": row.remarks,
        "seen": [
            (anchor("picture", picture.id), picture.source or picture.title) for picture in pictures
        ],
    }


def _judged(one: ThresholdCheck) -> str:
    """A quantity beside its threshold: `✓ least lead, ms: 3.1 (> 0)`."""
    sign = _SIGN[
        Verdict.NOT_RUN
        if one.ours is None
        else Verdict.REPRODUCED
        if one.met
        else Verdict.NOT_REPRODUCED
    ]
    return f"{sign} {one.found}"


def _badge(word: Verdict, role: Role | None = None, because: str = "") -> dict[str, Any]:
    """A verdict in its frame, with its role unless it is a prediction."""
    weak = role not in (None, Role.PREDICTED)
    return {
        "kind": _CLASS[word],
        "sign": _SIGN[word],
        "word": str(word),
        "weak": weak,
        "role": str(role) if weak else "",
        "because": because,
    }


def _grids(one: Reproduction) -> list[dict[str, Any]]:
    """The source's tables in their own layout: published over ours."""
    rows = {row.number.id: row for row in one.rows}
    return [
        {
            "title": grid.title,
            "beside": one.paper.beside,
            "head": grid.head,
            "rows": [
                (name, [_cell(rows.get(id_)) if id_ else None for id_ in ids])
                for name, ids in grid.rows.items()
            ],
        }
        for grid in one.paper.grids
    ]


def _cell(row: Row | None) -> dict[str, Any]:
    """The published number, and below it ours with the verdict's sign and colour; empty if it was
    not run."""
    if row is None:
        return {}
    return {
        **_badge(row.verdict),
        "weak": row.number.role is not Role.PREDICTED,
        "id": anchor("number", row.number.id),
        "said": ", ".join(filter(None, (str(row.verdict), row.number.role))),
        "published": published(row),
        "mean": _mean(row),
    }


def _mean(row: Row) -> str:
    """Our mean with the digits of the published number."""
    if row.number.published is None or math.isnan(row.ours.mean):
        return ours(row).partition(" ±")[0]
    return f"{row.ours.mean:.{max(verdict.decimals(row.number.published), 2)}f}"


def _numbers(one: Reproduction, matrix: Matrix) -> list[dict[str, Any]]:
    studies = {study.id: study for study in one.paper.studies}
    shown_ = []
    latest = ""
    for row in one.rows:
        study = row.number.variant.study
        heading = "" if study == latest else studies[study].what
        shown_.append({"study": heading, **_number(row, matrix)})
        latest = study
    return shown_


def _frozen(paper: Paper) -> dict[str, str] | None:
    """The dates of the frozen file, and its SHA-256."""
    kept = frozen.of(paper)
    if kept is None:
        return None
    return {
        "on": kept.on.isoformat(),
        "file": frozen.FILE,
        "sha256": kept.sha256,
        "tolerances": kept.tolerances.isoformat(),
        "changed": ", ".join(frozen.changed(paper, kept)),
    }


def _number(row: Row, matrix: Matrix) -> dict[str, Any]:
    number: Number = row.number
    unit = f" {number.unit}" if number.unit else ""
    why = ""
    if row.reason:
        why = " ".join(filter(None, (row.reason, matrix.elsewhere(number))))
    elif number.tolerance is not None and number.published is not None:
        why = f"{number.tolerance.words(number.unit)}: {number.tolerance.because}"
    if row.sample.words:
        why = f"{why} (computed from {row.sample.words} only)".strip()
    return {
        "id": anchor("number", number.id),
        "what": number.what,
        "where": number.where,
        "published": published(row) + (unit if number.published is not None else ""),
        "ours": ours(row) + unit,
        "difference": difference(row),
        "verdict": _badge(row.verdict, number.role, number.role_because),
        "why": why,
    }


def published(row: Row) -> str:
    """The published number: `23.8`, `< 40`, or `-` without one."""
    number = row.number
    if number.published is None:
        return "-"
    bound = "" if number.relation == "=" else f"{number.relation} "
    return f"{bound}{number.published:.10g}"


def ours(row: Row) -> str:
    """Our number: `24.1 ± 0.3`, with at least the decimals of the published one."""
    if math.isnan(row.ours.mean):
        return "-"
    spread = "" if math.isnan(row.ours.ci95) else f" ± {shown(row.ours.ci95)}"
    mean, digits = shown(row.ours.mean), verdict.decimals(row.number.published or 0)
    if len(mean.partition(".")[2]) < digits:
        mean = f"{row.ours.mean:.{digits}f}"
    return f"{mean}{spread}"


def difference(row: Row) -> str:
    """`+4 %`, or in the number's unit if the tolerance is in that unit; empty for bounds and for
    numbers that are not stated."""
    number = row.number
    if number.published is None or number.relation != "=" or math.isnan(row.difference):
        return ""
    if math.isnan(row.relative) or (number.tolerance is not None and not number.tolerance.relative):
        return f"{row.difference:+.3g} {'points' if number.unit == '%' else number.unit}".rstrip()
    return f"{100 * row.relative:+.3g} %"


def _engines(one: Reproduction) -> dict[str, Any]:
    """A kernel's numbers beside the simulator's; those that differ come first."""
    return {
        "sentence": engines.sentence(one),
        "engine": one.evidence.engine,
        "claims": [
            {
                "says": kernel.claim.says,
                "kernel": _badge(kernel.verdict),
                "simulator": _badge(simulator.verdict),
            }
            for kernel, simulator in engines.claims(one)
        ],
        "pairs": list(map(_pair, sorted(engines.pairs(one), key=lambda pair: not pair.differ))),
    }


def _pair(pair: Pair) -> dict[str, Any]:
    number = pair.number
    unit = f" [{number.unit}]" if number.unit else ""
    # Adding zero turns -0.0 into 0.0, so that a distance that rounds to zero gets a plus sign.
    apart = "-" if math.isnan(pair.distance) else f"{round(100 * pair.distance, 1) + 0.0:+.1f} %"
    return {
        "what": number.what + unit,
        "cells": [
            ("published", published(pair.kernel)),
            ("kernel", ours(pair.kernel)),
            ("simulator", ours(pair.simulator)),
            ("apart", apart),
        ],
        "differ": pair.differ,
        "why": number.engines or verdict.NO_REASON,
    }


def _reading(reading: Reading, matrix: Matrix) -> dict[str, Any]:
    others = ". ".join([*map(matrix.described, reading.under), *filter(None, [reading.others])])
    return {
        "parameter": reading.parameter,
        "searched": reading.searched,
        "cells": [
            ("the source", reading.source),
            ("chosen", reading.chosen),
            ("why", reading.why),
            ("other readings", others),
        ],
    }


def _study(study: Study, one: Reproduction) -> dict[str, Any]:
    runs = [run for variant, run in one.evidence.runs.items() if variant.study == study.id]
    lengths = sorted({(run.meta.duration_ns / 1e9, run.meta.warmup_ns / 1e9) for run in runs})
    length = ", ".join(
        f"{duration:g} s" + (f", {warmup:g} s of it warm-up" if warmup else "")
        for duration, warmup in lengths[:3]
    )
    return {
        "what": study.what,
        "scenario": study.scenario,
        "variants": len(runs),
        "seeds": " or ".join(map(str, sorted({len(run.seeds) for run in runs}))),
        "length": length + (" …" if len(lengths) > 3 else ""),
    }


# --------------------------------------------------------------------------------------- overview


def _overview(found: Sequence[Reproduction], drawn: Mapping[str, Pictures]) -> str:
    _, picture = parts.file_and_svg(
        story.draw(found), "Delay with empty queues, bloated and cured, in each paper's system"
    )
    names, papers = _counts(found)
    return _page(
        "sojourn_papers/overview.html",
        title="Bufferbloat, reproduced",
        about=", ".join(one.paper.id for one in found),
        sentences=[story.SENTENCE, *_sentences(found)],
        picture=picture,
        counted=names,
        found=papers,
        claims=[_claims(one, drawn[one.paper.id], f"./{one.paper.id}/index.html") for one in found],
    )


def _counts(found: Sequence[Reproduction]) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of the counts, and for each paper its counts of verdicts on numbers and claims."""
    names = ["predicted claims that hold", *(f"predicted: {word}" for word in _JUDGED)]
    names += [f"{role}: reproduced" for role in Role if role is not Role.PREDICTED]
    names.append(str(Verdict.NOT_STATED))
    papers = []
    for one in found:
        counts = verdict.by_role(one.rows)
        counts_ = [_of(verdict.by_role(one.claims)[Role.PREDICTED])]
        counts_ += [str(counts[Role.PREDICTED][word] or "-") for word in _JUDGED]
        counts_ += [_of(counts[role]) for role in Role if role is not Role.PREDICTED]
        counts_.append(str(sum(row.number.published is None for row in one.rows) or "-"))
        paper = one.paper
        papers.append(
            {"id": paper.id, "title": paper.title, "source": paper.source, "counts": counts_}
        )
    return names, papers


_JUDGED = (Verdict.REPRODUCED, Verdict.DIRECTION, Verdict.NOT_REPRODUCED)


def _of(counts: Counter[Verdict]) -> str:
    """`5 of 6`, or `-` without any."""
    return f"{counts[Verdict.REPRODUCED]} of {counts.total()}" if counts else "-"


# ----------------------------------------------------------------------------------------- pieces


def sentence(found: Sequence[Reproduction]) -> str:
    """The counts of verdicts on predicted numbers and claims, then on those with other roles."""
    numbers = verdict.by_role(row for one in found for row in one.rows)
    claims = verdict.by_role(row for one in found for row in one.claims)
    left_out = sum(row.verdict is Verdict.NOT_RUN for one in found for row in one.claims)
    in_part = [
        f"{count} of {len(rows)} {what}"
        for what, rows in (
            ("claims", [row.sample for one in found for row in one.claims]),
            ("numbers", [row.sample for one in found for row in one.rows]),
        )
        if (count := sum(bool(sample.missed) for sample in rows))
    ]
    rest = [
        f"{role} {what} {_of(tally)}"
        for what, roles in (("numbers", numbers), ("claims", claims))
        for role, tally in roles.items()
        if role is not Role.PREDICTED and tally
    ]
    said = [_counted(numbers, "number"), *map(_compared, found), _counted(claims, "claim")]
    if rest:
        said.append(
            "Inputs, fitted and derived values prove nothing. Reproduced among them: "
            f"{', '.join(rest)}."
        )
    if left_out:
        said.append(f"Claims not run here: {left_out}.")
    if in_part:
        said.append(
            f"Judged on a part of their variants, as stated beside them: {', '.join(in_part)}."
        )
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
    """How many predictions would be met if the disciplines did not differ."""
    fit, same, of = readings.no_difference(one.paper, one.evidence, one.rows)
    if not of:
        return ""
    return (
        f"Predictions of {one.paper.id} that compare disciplines: {fit} of {of} within the tolerance; "
        f"{same} if the disciplines did not differ."
    )


def _sentences(found: Sequence[Reproduction]) -> list[str]:
    said = [sentence(found)]
    refused = [
        f"{run.name} ({'; '.join(run.meta.invalid)})" for one in found for run in one.invalid
    ]
    if refused:
        said.insert(
            0, f"These Runs are invalid, so verdicts on them mean nothing: {', '.join(refused)}."
        )
    if any(one.evidence.quick for one in found):
        said.append(
            "This is the quick version: shorter runs and fewer seeds. Only the full version's "
            "verdicts count."
        )
    if any(one.evidence.engine != "sim" for one in found):
        said.append(
            f"The engine {found[0].evidence.engine} ran the part of each paper that it can run in "
            "minutes."
        )
    return said


def _page(template: str, **values: object) -> str:
    styles = ["sojourn.report/page.css", "sojourn_papers/page.css"]
    return parts.page(template, styles, made=f"{_MADE} {version('sojourn')}.", **values)
