"""The code blocks of a page, and what becomes of them when the page is made.

A page shows a file, a command or a program. Comments around a block, which a reader of the Markdown
does not see, say what to do with it:

    <!-- file: home.toml -->          before a block: it is this file, in the page's folder
    <!-- folder: in: tests/line -->   before: the page's folder has one of the repository as `in`
    <!-- checked -->                  before: it is not run, its options alone are checked
    <!-- guest -->                    before: it needs the kernel's guest, and is run where one is ready
    <!-- output -->                   behind: here the page has what the block printed
    <!-- figure: cdf.svg: a text -->  behind: here the page has a file that the block wrote

Blocks of `sh` are commands of sojourn, a line each. Those of `python` are programs that share their
names within a page. All run in one folder, in the order of the page.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
COLUMNS = "110"
"""Characters of a line of output."""

_FENCE = re.compile(
    r"^(?P<before>(?:<!--[^\n]*-->\n)*)```(?P<language>\w+)\n(?P<text>.*?)^```\n"
    r"(?P<behind>(?:\n?<!-- (?:output|figure)[^\n]*-->\n)*)",
    re.DOTALL | re.MULTILINE,
)
_COMMENT = re.compile(r"<!-- (?P<name>[a-z]+)(?:: (?P<value>.*?))? -->")


class BlockError(Exception):
    """A block that does not do what its page says: the page, the line, and why."""


@dataclass(frozen=True)
class Block:
    """A fenced block with what its comments say."""

    language: str
    text: str
    before: dict[str, str]
    behind: Sequence[tuple[str, str]]
    line: int
    span: tuple[int, int]

    @property
    def file(self) -> str | None:
        return self.before.get("file")

    @property
    def runs(self) -> bool:
        """Whether it does something when the page is made."""
        return self.language in ("sh", "python") and "checked" not in self.before

    @property
    def guest(self) -> bool:
        return "guest" in self.before

    def commands(self) -> Iterator[list[str]]:
        """The words of each command of a block of `sh`."""
        for line in self.text.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


@dataclass
class Outcome:
    """What a block printed; None: it was not run."""

    said: str | None = None
    """Markdown in place of the comments behind it."""


@dataclass
class Player:
    """Runs the blocks of one page."""

    page: str
    folder: Path
    guest: bool = False
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def play(self, block: Block) -> Outcome:
        """Carries a block out, in `folder`."""
        if block.file is not None:
            (self.folder / block.file).write_text(block.text, encoding="utf-8")
            return Outcome("")
        if not block.runs or (block.guest and not self.guest):
            return Outcome()
        if "folder" in block.before:
            name, _, source = block.before["folder"].partition(": ")
            shutil.copytree(ROOT / source, self.folder / name)
        said = io.StringIO()
        with _inside(self.folder), contextlib.redirect_stdout(said):
            if block.language == "python":
                self._python(block)
            else:
                for words in block.commands():
                    self._command(words, block)
        return Outcome(said.getvalue().rstrip("\n"))

    def _python(self, block: Block) -> None:
        # Lines count as in the page.
        text = "\n" * block.line + block.text
        try:
            exec(compile(text, self.page, "exec"), self.names)
        except Exception as error:
            raise BlockError(f"{self.page}, line {block.line}: {error!r}") from error

    def _command(self, words: Sequence[str], block: Block) -> None:
        from sojourn.cli import status

        if words[0] != "sojourn":
            raise BlockError(f"{self.page}, line {block.line}: {words[0]} is no command of ours")
        talk = io.StringIO()
        with contextlib.redirect_stderr(talk):
            code = status(words[1:])
        if code:
            raise BlockError(
                f"{self.page}, line {block.line}: exit status {code}: {talk.getvalue()}"
            )


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """In a folder, with lines of one width wherever it runs."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = COLUMNS
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def find(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [
        Block(
            found["language"],
            found["text"],
            {each["name"]: each["value"] or "" for each in _COMMENT.finditer(found["before"])},
            [(each["name"], each["value"] or "") for each in _COMMENT.finditer(found["behind"])],
            page.count("\n", 0, found.start("text")),
            found.span("behind"),
        )
        for found in _FENCE.finditer(page)
    ]


def fill(page: str, outcomes: Sequence[Outcome], picture: Callable[[str, str], str]) -> str:
    """The page with outputs and figures in place of the comments behind its blocks.

    `picture` makes the Markdown of a figure, of its file and its text.
    """
    blocks = find(page)
    done, at = [], 0
    for block, outcome in zip(blocks, outcomes, strict=True):
        done += [page[at : block.span[0]], _filled(block, outcome, picture)]
        at = block.span[1]
    return "".join([*done, page[at:]])


def _filled(block: Block, outcome: Outcome, picture: Callable[[str, str], str]) -> str:
    parts = []
    for name, value in block.behind:
        if outcome.said is None:
            parts.append("\n*Not run: no guest was ready where this page was made.*\n")
            break
        if name == "output":
            parts.append(f"\n```text\n{outcome.said}\n```\n")
        else:
            file, _, text = value.partition(": ")
            parts.append("\n" + picture(file, text) + "\n")
    return "".join(parts)
