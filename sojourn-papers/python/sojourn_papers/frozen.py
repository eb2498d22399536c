"""Tolerances and thresholds, frozen on a date: `tolerances.toml` in a paper's folder.

    # adt: how numbers and claims are judged. A change is a new file with a new date.
    frozen = 2026-11-26
    tolerances = 2026-11-23
    [judged]
    "table/DT/loss" = "4.73 ± 15 %: loss of table/DT"
    [claims]
    "price" = "utilisation lost, points: 0.5 .. 2.5"

The entry of a number has the published value with its tolerance, the measure, the variant, and the
numbers with which its order is compared. The entry of a claim has its thresholds. `tolerances` is
the date of the last change of a tolerance. The page prints the SHA-256 of the file, so that a
reader of a verdict can check that its terms are older than the result. The page names differences
between this file and published.toml, and a test refuses them.

    python -m sojourn_papers.frozen adt 2026-11-26    writes the file
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

from sojourn_papers.paper import Claim, Number, Paper, Threshold

FILE = "tolerances.toml"


@dataclass(frozen=True)
class Frozen:
    """The content of the file."""

    file: Path
    on: date
    tolerances: date
    """The date of the last change of a tolerance; no later than `on`."""
    sha256: str
    judged: Mapping[str, str]
    """How each published number is judged, as text, by its id."""
    claims: Mapping[str, str]
    """How each claim is judged, by its id."""


def of(paper: Paper) -> Frozen | None:
    """The paper's file; None if it has none."""
    file = paper.folder / FILE
    if not file.is_file():
        return None
    content = file.read_bytes()
    table = tomllib.loads(content.decode())
    on = table["frozen"]
    return Frozen(
        file,
        on,
        table.get("tolerances", on),
        hashlib.sha256(content).hexdigest(),
        table["judged"],
        table.get("claims", {}),
    )


def judged(paper: Paper) -> dict[str, str]:
    """How the numbers are judged now."""
    return {one.id: _number(one) for one in paper.numbers if one.published is not None}


def claims(paper: Paper) -> dict[str, str]:
    """How the claims are judged now."""
    return {one.id: _claim(one) for one in paper.claims}


def changed(paper: Paper, frozen: Frozen) -> list[str]:
    """The ids of numbers and claims that are judged differently from the frozen file."""
    return sorted(
        {*_changed(judged(paper), frozen.judged), *_changed(claims(paper), frozen.claims)}
    )


def _changed(now: Mapping[str, str], then: Mapping[str, str]) -> list[str]:
    return [id_ for id_ in {*now, *then} if now.get(id_) != then.get(id_)]


def text(paper: Paper, on: date) -> str:
    """The text of a file with the present tolerances and thresholds."""
    before = of(paper)
    same = before is not None and all(
        before.judged.get(id_, "").partition(": ")[0] == words.partition(": ")[0]
        for id_, words in judged(paper).items()
    )
    since = before.tolerances if before is not None and same else on
    return "\n".join(
        [
            f"# {paper.id}: how numbers and claims are judged. A change is a new file with a new date.",
            f"frozen = {on.isoformat()}",
            f"tolerances = {since.isoformat()}",
            "[judged]",
            *_lines(judged(paper)),
            "[claims]",
            *_lines(claims(paper)),
            "",
        ]
    )


def write(paper: Paper, on: date) -> Path:
    """Writes the file into the paper's folder, with the present tolerances and thresholds."""
    file = paper.folder / FILE
    file.write_text(text(paper, on), encoding="utf-8")
    return file


def _lines(table: Mapping[str, str]) -> list[str]:
    return [
        f"{json.dumps(id_, ensure_ascii=False)} = {json.dumps(words, ensure_ascii=False)}"
        for id_, words in table.items()
    ]


def _number(number: Number) -> str:
    """`4.73 ± 15 %: loss of table/DT, beside table/ADT/loss`."""
    how = number.measure or number.whole
    of_what = f"{_named(how)} of {number.variant}" if number.measure else _named(how)
    beside = f", beside {', '.join(number.against)}" if number.against else ""
    return f"{number.target.words(number.unit)}: {of_what}{beside}"


def _named(how: object) -> str:
    """A function's name, and its arguments except the evidence."""
    if isinstance(how, partial):
        function, of_ = how.args
        return f"{function.__name__} {' '.join(map(str, of_))}"
    return str(getattr(how, "__name__", how))


def _claim(claim: Claim) -> str:
    """`least lead, ms: > 3; in part: > 0`."""

    def all_of(asked: Mapping[str, Threshold]) -> str:
        return ", ".join(f"{what}: {threshold.words}" for what, threshold in asked.items())

    return all_of(claim.asks) + (f"; in part, {all_of(claim.partly)}" if claim.partly else "")


if __name__ == "__main__":
    import sojourn_papers as papers

    print(write(papers.load(sys.argv[1]), date.fromisoformat(sys.argv[2])))
