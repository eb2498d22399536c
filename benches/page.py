"""Tables as text for a terminal and as Markdown for a page in docs/, where each has its place between
two comments.

What a benchmark measured for docs/performance.md is recorded as JSON, place by place, with the commit
and the date; docs/generate.py makes the page's tables of the record."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "docs" / "recorded" / "performance.json"

Table = Sequence[Sequence[str]]
"""Rows of cells; the first row is the head."""


class NoPlaceError(Exception):
    """A page lacks the comments that a table is put between."""


def as_text(table: Table) -> str:
    """Widths fitted; the first column to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    )


def as_markdown(table: Table) -> str:
    head, *rows = table
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def begin(name: str) -> str:
    return f"<!-- {name} -->"


def end(name: str) -> str:
    return f"<!-- end of {name} -->"


def between_comments(texts: dict[str, str]) -> str:
    """As they are in a page, for who puts them there by hand."""
    return "\n\n".join(f"{begin(name)}\n{text}\n{end(name)}" for name, text in texts.items())


def record(
    values: Mapping[str, str | Table], commit: str | None, date: str, file: Path = RECORD
) -> None:
    """Keeps what was measured for these places of the page; other places stay as they are."""
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name, value in values.items():
        form = "text" if isinstance(value, str) else "rows"
        kept[name] = {"commit": (commit or "unknown")[:10], "date": date[:10], form: value}
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def record_of(file: Path, numbers: object) -> None:
    """Keeps numbers with the commit and the day, which one place of a page names."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    kept = {"commit": commit[:10], "date": f"{datetime.now(UTC):%Y-%m-%d}", "numbers": numbers}
    # A line for each entry.
    text = json.dumps(kept, indent=1)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda one: f"[{' '.join(one[1].split())}]", text)
    file.write_text(text + "\n", encoding="utf-8")


def recorded(file: Path = RECORD) -> dict[str, str]:
    """The text of each place, of its record."""
    kept = json.loads(file.read_text(encoding="utf-8"))
    return {
        name: one["text"] if "text" in one else as_markdown(one["rows"])
        for name, one in kept.items()
    }


def filled(page: str, texts: Mapping[str, str]) -> str:
    """The page with each text between the comments of its name; what is outside them stays."""
    for name, text in texts.items():
        place = re.compile(f"{re.escape(begin(name))}\n.*?{re.escape(end(name))}", re.DOTALL)
        places = place.findall(page)
        if len(places) != 1:
            raise NoPlaceError(f"the page has no one place for {begin(name)} ... {end(name)}")
        page = page.replace(places[0], f"{begin(name)}\n{text}\n{end(name)}")
    return page
