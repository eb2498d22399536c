"""What is wrong with a scenario: every problem at once, each with its place, its key, and what to write instead.

home.toml:3:12: duration: a duration needs a unit; 60 is a bare number
     3 | duration = 60
       |            ^
hint: write "60 s"
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from sojourn.errors import UserError

MOST_TOLD = 50
"""Problems written out in the message; `ScenarioError.problems` has all."""

Key = tuple[str | int, ...]
"""Where a value is in the document: ("flow", 0, "rtt")."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    message: str
    hint: str = ""
    key: Key = ()
    file: str = ""
    line: int | None = None
    """From 1; None where there is no text (a missing file, a scenario made in Python)."""
    column: int | None = None
    """From 1, in characters."""
    source: str = ""
    """The line itself."""

    @property
    def dotted(self) -> str:
        """`flow.0.rtt`."""
        return ".".join(str(part) for part in self.key)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line is not None else self.file
        parts: tuple[str, ...] = (place, self.dotted, self.message)
        if self.key and self.message.startswith(f"{self.key[-1]} is missing"):
            around = ".".join(str(part) for part in self.key[:-1])
            parts = (place, f"{around}.{self.message}" if around else self.message)
        text = ": ".join(part for part in parts if part)
        if self.line is not None and self.column is not None and self.source:
            text += _excerpt(self.source, self.line, self.column)
        return f"{text}\nhint: {self.hint}" if self.hint else text


class ScenarioError(UserError, ValueError):
    """A scenario that can't be used: every problem of it, each with its place and its hint in the text."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        told = [str(problem) for problem in problems[:MOST_TOLD]]
        if len(problems) > MOST_TOLD:
            told.append(f"... and {len(problems) - MOST_TOLD} more problems")
        super().__init__("\n".join(told))
        self.problems = tuple(problems)

    def told(self) -> str:
        """As the command line prints it: all problems, `error:` before each."""
        return "\n".join(f"error: {problem}" for problem in self.problems)


class CheckError(ValueError):
    """Several problems found by one check of the model; `Source.locate` gives them their places."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class Source:
    """The text a scenario was read from, and where in it each value stands."""

    name: str = ""
    text: str | None = None
    places: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    folder: Path | None = None
    """Where relative paths in it start."""

    @cached_property
    def lines(self) -> list[str]:
        """The text's lines, of which there is at least one."""
        return (self.text or "").split("\n")

    def locate(self, problem: Problem, offset: int = 0) -> Problem:
        """The problem with its place: of its key, or of the nearest table around it that the text has."""
        if self.text is None:
            return problem
        place, found = (1, 1), 0
        for length in range(len(problem.key), 0, -1):
            known = self.places.get(".".join(str(part) for part in problem.key[:length]))
            if known is not None:
                place, found = known, length
                break
        exact = found == len(problem.key)
        located = self.at(problem, place, offset if exact else 0)
        # Of a key that the text does not have no line is the wrong one.
        return located if found else replace(located, source="")

    def at(self, problem: Problem, place: tuple[int, int], offset: int = 0) -> Problem:
        """The problem at this place, or `offset` characters into the string that begins there."""
        line = min(max(place[0], 1), len(self.lines))
        source = self.lines[line - 1].rstrip("\r")
        column = min(max(place[1], 1), len(source) + 1)
        # An offset only counts characters of the file in a plain string: one quote, no escapes.
        rest = source[column - 1 :]
        if offset and rest[:1] in ("'", '"') and rest[:3] not in ("'''", '"""') and "\\" not in rest:
            column = min(column + 1 + offset, len(source) + 1)
        return Problem(problem.message, problem.hint, problem.key, self.name, line, column, source)

    def at_name(self, problem: Problem) -> Problem:
        """The problem at the last key's own name rather than at its value: for keys that should not be there."""
        located = self.locate(problem)
        if located.line is None or located.column is None or not problem.key:
            return located
        before = located.source[: located.column - 1]
        start = before.rfind(str(problem.key[-1]))
        if start < 0:
            return located
        return self.at(problem, (located.line, start + 1))


def _excerpt(source: str, line: int, column: int) -> str:
    """The line with a caret below; of a very long line the part around the caret."""
    start = max(0, column - 70) if len(source) > 120 else 0
    shown = source[start : start + 120].replace("\t", " ")
    shown = "".join(char if char.isprintable() else "�" for char in shown)
    return f"\n{line:6} | {shown}\n       | {' ' * (column - 1 - start)}^"
