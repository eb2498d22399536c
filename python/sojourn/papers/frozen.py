"""Tolerances as they stood on a date: `tolerances.toml` in a paper's folder.

    # adt: what counts as the same, by number. A change is a new file with a new date.
    frozen = 2026-11-23
    [judged]
    "table/DT/loss" = "4.73 ± 15 %"

The page prints the SHA-256 of the file, so that whoever reads a verdict can tell that the tolerance
was not made for it. What published.toml has otherwise is named on the page, and a test refuses it.

    python -m sojourn.papers.frozen adt 2026-11-23    the file, on standard output
"""

from __future__ import annotations

import hashlib
import json
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from sojourn.papers.paper import Number, Paper

FILE = "tolerances.toml"


@dataclass(frozen=True)
class Frozen:
    """The file."""

    file: Path
    on: date
    sha256: str
    judged: Mapping[str, str]
    """What counts as the same, in words, by the number's id."""


def of(paper: Paper) -> Frozen | None:
    """The paper's file; None: nobody has frozen its tolerances."""
    file = paper.folder / FILE
    if not file.is_file():
        return None
    content = file.read_bytes()
    said = tomllib.loads(content.decode())
    return Frozen(file, said["frozen"], hashlib.sha256(content).hexdigest(), said["judged"])


def judged(paper: Paper) -> dict[str, str]:
    """What counts as the same now."""
    return {one.id: _words(one) for one in paper.numbers if one.published is not None}


def changed(paper: Paper, frozen: Frozen) -> list[str]:
    """The numbers, by id, that are judged otherwise than was frozen."""
    now = judged(paper)
    return sorted(id_ for id_ in {*now, *frozen.judged} if now.get(id_) != frozen.judged.get(id_))


def text(paper: Paper, on: date) -> str:
    """The file that freezes them as they are now."""
    lines = [
        f"{json.dumps(id_)} = {json.dumps(said, ensure_ascii=False)}"
        for id_, said in judged(paper).items()
    ]
    head = (
        f"# {paper.id}: what counts as the same, by number. A change is a new file with a new date."
    )
    return "\n".join([head, f"frozen = {on.isoformat()}", "[judged]", *lines, ""])


def _words(number: Number) -> str:
    """`4.73 ± 15 %`, or `< 40`."""
    if number.tolerance is None or number.relation != "=":
        return f"{number.relation} {number.published:g}"
    return f"{number.published:g} {number.tolerance.words(number.unit)}"


if __name__ == "__main__":
    from sojourn import papers

    print(text(papers.load(sys.argv[1]), date.fromisoformat(sys.argv[2])), end="")
