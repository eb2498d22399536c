"""Collects the pages of the site.

The tree of pages is that of the repository, so links between its Markdown files work on the site.
Pages made from declarations are added. This module runs no simulation; blocks.py does.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path

import commands
import congestion
import disciplines
import drawings
import gallery
import programs
import schemas

ROOT = Path(__file__).parent.parent.parent
RUN = ("README.md", "docs/")
"""A test runs the blocks of these pages."""
PLAYED = ("docs/learn/", "docs/concepts/", "docs/gallery/", "docs/qdiscs/", "docs/congestion/")
"""Folders of pages whose blocks are run when the site is made, for their outputs and figures."""

OPENED = ".html"
"""The ending of files that the page links to, instead of showing them."""

_MADE: tuple[Callable[[], Mapping[str, str]], ...] = (
    disciplines.pages,
    congestion.pages,
    commands.pages,
    schemas.pages,
    programs.pages,
    gallery.pages,
)


def written() -> dict[str, str]:
    """The pages written by hand: path in the repository, and text."""
    found = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(each for name in ("history", "learn", "concepts") for each in (ROOT / "docs" / name).glob("*.md")),
    ]  # fmt: skip
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in sorted(found)}


def pages() -> dict[str, str]:
    """Every page of the site as Markdown, by its path. A link to a file that is not a page is
    replaced by its text."""
    texts = dict(written())
    texts["index.md"] = (Path(__file__).parent / "index.md").read_text(encoding="utf-8")
    for make in _MADE:
        texts |= make()
    return {path: linked(path, text, texts) for path, text in texts.items()}


def is_run(path: str) -> bool:
    """Whether the page is written by hand, for users of the present sojourn."""
    return path.startswith(RUN) and not path.startswith("docs/history/")


def is_played(path: str) -> bool:
    return path.startswith(PLAYED)


_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")


def links(text: str) -> Iterator[re.Match[str]]:
    """Links and images outside of code."""
    inert = [found.span() for found in re.finditer(r"^```.*?^```|`[^`\n]+`", text, re.M | re.S)]
    for link in _LINK.finditer(text):
        if not any(start < link.start() < end for start, end in inert):
            yield link


def linked(path: str, text: str, texts: Mapping[str, str]) -> str:
    """The text without links to files that are not pages, and with drawings inserted."""
    done, at = [], 0
    for link in links(text):
        where, _, _ = link["target"].partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), where))
        if link["image"]:
            new = _image(link, target)
        elif "://" in link["target"] or not where or target.endswith(".md"):
            continue
        else:
            new = link["text"] if "`" in link["text"] else f"`{link['text']}`"
        done += [text[at : link.start()], new]
        at = link.end()
    return "".join([*done, text[at:]])


def _image(link: re.Match[str], target: str) -> str:
    """A drawing of docs/concepts as HTML, or another picture as Markdown."""
    if target.startswith("docs/concepts/"):
        svg = drawings.inline((ROOT / target).read_text(encoding="utf-8"))
        return f'<div class="drawing">\n{svg}\n</div>\n'
    return picture(link["target"], link["text"])


def picture(file: str, text: str) -> str:
    """The Markdown of a figure of a run, or of a link to a whole page."""
    if file.endswith(OPENED):
        return f'<p><a class="opened" href="{escape(file)}">{escape(text)}</a></p>'
    image = f"```{{image}} {file}\n:alt: {text}\n:class: figure\n```"
    # On a phone the figure scrolls in this box, and the text around it does not.
    return f"````{{container}} scrolls\n{image}\n````"


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as forges and the site's generator make them."""
    found: set[str] = set()
    code = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for heading in re.findall(r"^#{1,4} +(.+?) *$", code, re.M):
        slug = slugged(heading)
        number, free = 0, slug
        while free in found:
            number += 1
            free = f"{slug}-{number}"
        found.add(free)
    return found


def slugged(heading: str) -> str:
    """A heading as an anchor: lower case, no punctuation, dashes for blanks."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
