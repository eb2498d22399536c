"""Tables as text for a terminal and as Markdown for docs/performance.md, where each has its place
between two comments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

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


def put(file: Path, tables: dict[str, str]) -> None:
    """Each text between the comments of its name; what is outside them stays. All or none."""
    page = file.read_text(encoding="utf-8")
    for name, text in tables.items():
        place = re.compile(f"{re.escape(begin(name))}\n.*?{re.escape(end(name))}", re.DOTALL)
        places = place.findall(page)
        if len(places) != 1:
            raise NoPlaceError(f"{file} has no one place for {begin(name)} ... {end(name)}")
        page = page.replace(places[0], f"{begin(name)}\n{text}\n{end(name)}")
    file.write_text(page, encoding="utf-8")
