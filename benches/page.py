"""Formats tables as text for a terminal and as Markdown for docs/.

A page has a place for each table, between two comments. Benchmarks record their results for
docs/performance.md as JSON, place by place, with commit and date. docs/generate.py writes the
page's tables from that record."""

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
"""Rows of cells; the first row is the header."""


class NoPlaceError(Exception):
    """A page lacks the two comments that enclose a table."""


def as_text(table: Table) -> str:
    """Formats with fitted widths: the first column is left-aligned, numbers are right-aligned."""
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
    """Returns the texts between their comments, to be pasted into a page by hand."""
    return "\n\n".join(f"{begin(name)}\n{text}\n{end(name)}" for name, text in texts.items())


def record(
    values: Mapping[str, str | Table], commit: str | None, date: str, file: Path = RECORD
) -> None:
    """Records the text of these places. Other places keep theirs."""
    entries = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name, value in values.items():
        form = "text" if isinstance(value, str) else "rows"
        entries[name] = {"commit": (commit or "unknown")[:10], "date": date[:10], form: value}
    file.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def record_of(file: Path, numbers: object) -> None:
    """Records numbers with the commit and the date, which one place of a page names."""
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    entries = {"commit": commit[:10], "date": f"{datetime.now(UTC):%Y-%m-%d}", "numbers": numbers}
    # One line per entry.
    text = json.dumps(entries, indent=1)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda entry: f"[{' '.join(entry[1].split())}]", text)
    file.write_text(text + "\n", encoding="utf-8")


def recorded(file: Path = RECORD) -> dict[str, str]:
    """Returns the recorded text of each place."""
    entries = json.loads(file.read_text(encoding="utf-8"))
    return {
        name: entry["text"] if "text" in entry else as_markdown(entry["rows"])
        for name, entry in entries.items()
    }


def filled(page: str, texts: Mapping[str, str]) -> str:
    """Returns the page with each text between the comments of its name; the rest is unchanged."""
    for name, text in texts.items():
        place = re.compile(f"{re.escape(begin(name))}\n.*?{re.escape(end(name))}", re.DOTALL)
        places = place.findall(page)
        if len(places) != 1:
            raise NoPlaceError(
                f"the page must have exactly one place for {begin(name)} ... {end(name)}"
            )
        page = page.replace(places[0], f"{begin(name)}\n{text}\n{end(name)}")
    return page
