"""Which pages the site has, and from what each is made.

The tree of pages is that of the repository: a link between two Markdown files there is a link
between two pages here. Pages that follow from declarations are made beside them. Nothing is
simulated here: blocks.py does that, for whoever makes the site.
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
"""Where the pages are whose blocks a test runs."""
PLAYED = ("docs/learn/", "docs/concepts/", "docs/gallery/", "docs/qdiscs/", "docs/congestion/")
"""Folders whose pages have blocks that are run when the site is made, for what they print and draw."""

OPENED = ".html"
"""What a block wrote and a reader opens by itself."""

_MADE: tuple[Callable[[], Mapping[str, str]], ...] = (
    disciplines.pages,
    congestion.pages,
    commands.pages,
    schemas.pages,
    programs.pages,
    gallery.pages,
)


def written() -> dict[str, str]:
    """The pages that somebody wrote: path in the repository, and text."""
    found = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(each for name in ("history", "learn", "concepts") for each in (ROOT / "docs" / name).glob("*.md")),
    ]  # fmt: skip
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in sorted(found)}


def pages() -> dict[str, str]:
    """Every page of the site as Markdown, by its path. Links to what is no page are its name."""
    texts = dict(written())
    texts["index.md"] = (Path(__file__).parent / "index.md").read_text(encoding="utf-8")
    for make in _MADE:
        texts |= make()
    return {path: linked(path, text, texts) for path, text in texts.items()}


def is_run(path: str) -> bool:
    """Whether somebody wrote the page for users, of sojourn as it is now."""
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
    """The text with links to what is no page taken out, and drawings put in."""
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
    """A drawing as part of the page; a picture with a class of its own."""
    if target.startswith("docs/concepts/"):
        svg = drawings.inline((ROOT / target).read_text(encoding="utf-8"))
        return f'<div class="drawing">\n{svg}\n</div>\n'
    return picture(link["target"], link["text"])


def picture(file: str, text: str) -> str:
    """A figure of a run; of a whole page the way to it."""
    if file.endswith(OPENED):
        return f'<p><a class="opened" href="{escape(file)}">{escape(text)}</a></p>'
    image = f"```{{image}} {file}\n:alt: {text}\n:class: figure\n```"
    # On a phone it scrolls in this box, and the text around it does not.
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
