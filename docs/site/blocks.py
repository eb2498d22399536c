"""Runs the code blocks of a page, when the page is made or tested.

A block is a file, a command, a program or an output. Comments around the block, which a reader of
the page does not see, control how it is run:

    <!-- file: home.toml -->          before a block: write it to this file, in the page's folder
    <!-- folder: in: tests/line -->   before: copy a folder or file of the repository there, as `in`
    <!-- not run: REASON -->          before: don't run it, only check its options
    <!-- guest -->                    before: run it only if the kernel's guest is ready
    <!-- line -->                     before: it needs a line: a host in front of it, and one beyond it
    <!-- long -->                     before: it takes a minute or more; `make test-long` runs it
    <!-- short: --only 5.1 -->        before: options to add to its commands for short simulations
    <!-- exit: 2 -->                  before: its last command exits with this status
    <!-- after: home-uplink -->       before TOML: append it to this example or file
    <!-- excerpt: FILE -->            before TOML: its tables are in this file of the repository
    <!-- printed -->                  before text: the output of the block above
    <!-- printed: a part -->          before text: lines of the output of the block above
    <!-- output -->                   behind: the site inserts the block's output here
    <!-- figure: cdf.svg: a text -->  behind: the site inserts a file that the block wrote here

A block of `sh` has commands of sojourn, one per line, and make targets (`make demo`) that consist
of such commands. Blocks of `python` are programs that share their names within a page. Blocks of
`toml` are scenarios that load; blocks of `json` are valid JSON. All run in one folder, in the order
of the page. `text` is for everything else in the form of code; none of its lines begins with a
command of sojourn.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
COLUMNS = "110"
"""The width of an output, in characters."""

LANGUAGES = ("sh", "python", "toml", "json", "text")
OURS = ("sojourn", "make")
"""The programs whose commands are run."""

_FENCE = re.compile(
    r"^(?P<before>(?:<!--[^\n]*-->\n)*)```(?P<language>[^`\n]*)\n(?P<text>.*?)^```\n"
    r"(?P<behind>(?:\n?<!-- (?:output|figure)[^\n]*-->\n)*)",
    re.DOTALL | re.MULTILINE,
)
_INDENTED = re.compile(r"(?<=\n\n)(?: {4}[^\n]*\n|\n(?= {4}))+")
_COMMENT = re.compile(r"<!-- (?P<name>not run|[a-z]+)(?:: (?P<value>.*?))? -->")
_BEFORE = frozenset(
    (
        "file",
        "folder",
        "not run",
        "guest",
        "line",
        "long",
        "short",
        "exit",
        "after",
        "excerpt",
        "printed",
    )
)


def _is_ours(line: str) -> bool:
    return (
        line.removeprefix("$ ").removeprefix("sudo ").startswith(tuple(f"{each} " for each in OURS))
    )


class BlockError(Exception):
    """A block that does not do what its page says: the page, the line, and why."""


@dataclass(frozen=True)
class Block:
    """A fenced block with its comments."""

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
        """Whether it is run when the page is made."""
        return self.language in ("sh", "python") and "not run" not in self.before

    @property
    def waits(self) -> bool:
        """Whether the block runs only if a guest, a line or enough time is available."""
        return any(each in self.before for each in ("guest", "line", "long"))

    @property
    def tried(self) -> bool:
        """Whether the block is run, compared, written or read, not only searched for commands."""
        return (
            self.runs or self.printed or self.file is not None or self.language in ("toml", "json")
        )

    @property
    def status(self) -> int:
        """The exit status of its last command."""
        return int(self.before.get("exit", 0))

    @property
    def printed(self) -> bool:
        """Whether the block is the output of another block."""
        return "printed" in self.before

    @property
    def ours(self) -> list[str]:
        """Lines that begin with a command of sojourn or make, in any language."""
        if self.printed:
            return []
        return [line for line in self.text.splitlines() if _is_ours(line)]

    def commands(self) -> Iterator[list[str]]:
        """The words of each command in a block of `sh`."""
        for line in self.text.replace("\\\n", " ").splitlines():
            for command in line.split(" && "):
                if words := shlex.split(command, comments=True):
                    yield words


@dataclass
class Outcome:
    """The result of a block."""

    text: str | None = None
    """Its output, which replaces the comments behind the block; None: it was not run."""


@dataclass
class Player:
    """Runs the blocks of one page."""

    page: str
    folder: Path
    guest: bool = False
    """Whether the kernel's guest is ready."""
    long: bool = False
    """Whether blocks that take a minute or more are run."""
    short: bool = False
    """Whether to shorten simulations to some seconds. Only the first line of an output is compared
    then."""
    line: Callable[[Sequence[str], Path], int] | None = None
    """Runs a command of sojourn on a host in front of a line, in a folder, and returns its exit
    status. It starts `serve` on the host beyond the line."""
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    output: str | None = ""
    """The output of the last block; None: it was not run."""

    def play(self, block: Block) -> Outcome:
        """Runs a block in `folder`."""
        if block.printed:
            self._compare(block)
            return Outcome("")
        if block.file is not None:
            (self.folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / block.file).write_text(block.text, encoding="utf-8")
            return Outcome("")
        if block.language in ("toml", "json"):
            self._read(block)
            return Outcome("")
        if block.language not in ("sh", "python"):
            return Outcome()
        self.output = None
        if not block.runs or self._lacks(block):
            return Outcome()
        if "folder" in block.before:
            name, _, source = block.before["folder"].partition(": ")
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            copy(ROOT / source, self.folder / name)
        stdout, stderr = io.StringIO(), io.StringIO()
        with _inside(self.folder), contextlib.redirect_stdout(stdout):
            if block.language == "python":
                self._python(block)
            else:
                with contextlib.redirect_stderr(stderr):
                    codes = [self._command(words, block) for words in block.commands()]
                if any(codes[:-1]) or codes[-1:] != [block.status]:
                    raise self._error(block, f"exit status {codes}: {stderr.getvalue()}")
        # The text of an error is on stderr.
        errors = stderr.getvalue() if block.status else ""
        self.output = (stdout.getvalue() + errors).rstrip("\n")
        return Outcome(self.output)

    def _lacks(self, block: Block) -> bool:
        return (
            ("guest" in block.before and not self.guest)
            or ("long" in block.before and not self.long)
            or ("line" in block.before and self.line is None)
        )

    def _python(self, block: Block) -> None:
        # The numbers of lines are those of the page.
        text = "\n" * block.line + block.text
        try:
            exec(compile(text, self.page, "exec"), self.names)
        except Exception as error:
            raise self._error(block, repr(error)) from error

    def _command(self, words: Sequence[str], block: Block) -> int:
        """The exit status of a command."""
        from sojourn.cli import status

        if words[0] == "make":
            codes = [self._command(recipe, block) for recipe in recipe(tuple(words[1:]))]
            return next(filter(None, codes), 0)
        if words[0] == "sudo" and "line" in block.before:
            words = words[1:]
        if words[0] != "sojourn":
            raise self._error(block, f"{words[0]} is not a command of sojourn or make")
        if "line" in block.before and self.line is not None:
            return self.line(words[1:], self.folder)
        return status([*words[1:], *(self._shorter(words[1:], block) if self.short else ())])

    def _shorter(self, words: Sequence[str], block: Block) -> Sequence[str]:
        """Options that shorten what a command simulates."""
        verb, *rest = words
        if "short" in block.before:
            return shlex.split(block.before["short"])
        if verb in ("run", "compare", "advise") and not any(Path(each).is_dir() for each in rest):
            seeds = {"run": ("--seeds", "1"), "compare": ("--seeds", "2")}.get(verb, ())
            less = () if "--until" in rest else seeds
            return ("--set", "duration=5 s", "--set", "warmup=1 s", *less)
        return ("--quick", "--seeds", "2") if verb == "evaluate" else ()

    def _read(self, block: Block) -> None:
        """Reads a scenario or JSON that the page shows."""
        from sojourn.errors import UserError
        from sojourn.scenario import load

        try:
            if block.language == "json":
                json.loads(block.text)
            elif "excerpt" in block.before:
                whole = tomllib.loads((ROOT / block.before["excerpt"]).read_text(encoding="utf-8"))
                for key, entries in tomllib.loads(block.text).items():
                    if lacking := [each for each in entries if each not in whole[key]]:
                        raise ValueError(f"{block.before['excerpt']} has no {key} {lacking}")
            else:
                base = self._base(block.before["after"]) if "after" in block.before else ""
                file = self.folder / "shown.toml"
                file.write_text(f"{base}\n{block.text}", encoding="utf-8")
                load(file)
        except (UserError, ValueError) as error:
            raise self._error(block, str(error)) from error

    def _base(self, name: str) -> str:
        """The text that a fragment follows: a file of the page, or of the repository."""
        files = [self.folder / name, ROOT / name, ROOT / "scenarios" / f"{name}.toml"]
        return next(file for file in files if file.is_file()).read_text(encoding="utf-8")

    def _compare(self, block: Block) -> None:
        """Compares the output that the page shows with the output of this run."""
        if self.output is None:
            return
        now, shown = self.output.splitlines(), block.text.splitlines()
        if block.before["printed"]:
            same = set(shown) <= set(now)
        elif self.short:
            same = now[:1] == shown[:1]
        else:
            same = now == shown
        if not same:
            raise self._error(block, f"now it prints\n{self.output}")

    def _error(self, block: Block, why: str) -> BlockError:
        return BlockError(f"{self.page}, line {block.line}: {why}")


@functools.cache
def recipe(target: tuple[str, ...]) -> list[list[str]]:
    """The commands of sojourn that make runs for a target after the build."""
    built = (f"--old-file=.venv/{mark}" for mark in (".installed", ".dev", ".guided"))
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *built, *target],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    commands = [shlex.split(line) for line in done.stdout.splitlines()]
    return [[Path(program).name, *rest] for program, *rest in commands]


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Changes into a folder, with a fixed width of lines and a separate home folder, because a page
    may fill or clear the store. It uses the guests that the user has built."""
    from sojourn import places

    home, guests = folder / ".home", places.cache() / "kernel"
    cache = home / ".cache" / "sojourn"
    cache.mkdir(parents=True, exist_ok=True)
    if guests.is_dir() and not (cache / "kernel").exists():
        (cache / "kernel").symlink_to(guests.resolve())
    ours = {"COLUMNS": COLUMNS, "HOME": str(home), "XDG_CACHE_HOME": str(cache.parent)}
    theirs = {name: os.environ.get(name) for name in (*ours, "XDG_DATA_HOME", "XDG_CONFIG_HOME")}
    for name in theirs:
        os.environ.pop(name, None)
    os.environ |= ours
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        for name, value in theirs.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def find(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [
        Block(
            found["language"],
            found["text"],
            _before(found["before"]),
            [(each["name"], each["value"] or "") for each in _COMMENT.finditer(found["behind"])],
            page.count("\n", 0, found.start("text")),
            found.span("behind"),
        )
        for found in _FENCE.finditer(page)
    ]


def _before(comments: str) -> dict[str, str]:
    settings = {}
    for line in comments.splitlines():
        comment = _COMMENT.fullmatch(line)
        if comment is None or comment["name"] not in _BEFORE:
            raise BlockError(f"this comment before a block is not known: {line}")
        settings[comment["name"]] = comment["value"] or ""
    return settings


def indented(page: str) -> list[str]:
    """Commands of sojourn and make in indented blocks, which are never run."""
    bare = _FENCE.sub("", page)
    lines = [line.strip() for found in _INDENTED.finditer(bare) for line in found[0].splitlines()]
    return [line for line in lines if _is_ours(line)]


def reprinted(page: str, block: Block, output: str) -> str:
    """The page with `output` in place of a block's text."""
    head, tail = page.split(block.text, 1)
    return f"{head}{output}\n{tail}"


def fill(page: str, outcomes: Sequence[Outcome], picture: Callable[[str, str], str]) -> str:
    """The page with outputs and figures in place of the comments behind its blocks.

    `picture` makes the Markdown of a figure from its file and its text.
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
        if outcome.text is None:
            parts.append("\n*Not run: no guest was ready when this page was made.*\n")
            break
        if name == "output":
            parts.append(f"\n```text\n{outcome.text}\n```\n")
        else:
            file, _, text = value.partition(": ")
            parts.append("\n" + picture(file, text) + "\n")
    return "".join(parts)
