"""Extracts the paragraphs and rows of docs/ about one discipline, for that discipline's own page.

A paragraph about a discipline begins with its name in bold. A row of a table has the name in its
first or second cell.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parent.parent


def section(page: str, title: str) -> str:
    """A section of a page in docs/, with the sections below it, without its heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(title)}$", text, re.M)
    if found is None:
        raise ValueError(f"docs/{page} has no section {title!r}")
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.M)
    return rest[: end.start()] if end else rest


def paragraphs(text: str) -> list[str]:
    """Blocks of lines between empty ones; fenced code stays whole."""
    blocks: list[list[str]] = [[]]
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if line or fenced:
            blocks[-1].append(line)
        else:
            blocks.append([])
    return ["\n".join(block) for block in blocks if block]


def led(text: str, name: str) -> list[str]:
    """The paragraphs that begin with `name` in bold, each with the blocks up to the next bold
    beginning or heading."""
    found: list[str] = []
    taking = False
    for block in paragraphs(text):
        if block.startswith("**"):
            taking = any(named(bold, name) for bold in re.findall(r"\*\*(.+?)\*\*", block))
        elif block.startswith("#"):
            taking = False
        if taking:
            found.append(block)
    return found


def rows(text: str, name: str) -> list[str]:
    """The tables of a text, reduced to the rows with `name` in the first or second cell."""
    found: list[str] = []
    for block in paragraphs(text):
        lines = block.splitlines()
        if not lines[0].startswith("|"):
            continue
        chosen = [row for row in lines[2:] if named("|".join(row.split("|")[1:3]), name)]
        if chosen:
            found.append("\n".join([*lines[:2], *chosen]))
    return found


def named(text: str, name: str) -> bool:
    """Whether a text names a discipline: pie is named by `pie` and `replay-pie`, not by `fq_pie`."""
    own = re.escape(name).replace("_", "[_-]")
    return re.search(rf"(?<!\w)(?<!fq-){own}(?!\w)(?!-(?:pie|codel|beside))", text) is not None


def moved(text: str, page: str, to: str) -> str:
    """Text of a page in docs/ with its links adapted to another folder of docs/, `to`."""

    def target(link: re.Match[str]) -> str:
        where, mark, anchor = link[2].partition("#")
        whole = posixpath.join(posixpath.dirname(page), where) if where else page
        return f"[{link[1]}]({posixpath.relpath(whole, to)}{mark}{anchor})"

    return re.sub(r"\[([^\[\]]*)\]\((?!\w+://)([^()\s]+)\)", target, text)


def gathered(page: str, title: str, name: str, to: str) -> Iterator[str]:
    """The paragraphs of a section about `name`, for a page in docs/`to`."""
    for block in led(section(page, title), name):
        yield moved(block, page, to)


def evidence(name: str, to: str) -> Iterator[str]:
    """The rows and paragraphs of docs/agreement.md about `name`, section by section."""
    text = (DOCS / "agreement.md").read_text(encoding="utf-8")
    for title in re.findall(r"^## (.+)$", text, re.M):
        of_section = section("agreement.md", title)
        found = [
            table for table in rows(of_section, name) if not table.startswith("| what | source |")
        ]
        found += [
            block
            for block in paragraphs(of_section)
            if block.startswith("**") and not block.endswith(":") and named(block, name)
        ]
        if found:
            yield f"### {title}\n"
            yield from (moved(block, "agreement.md", to) + "\n" for block in found)
