"""The lab's lessons: each has a question, a task, and an answer that the page checks by running.

`lessons.toml` contains them as data: scenario, disciplines, checks, and one solution.
sojourn/tests/test_lab.py checks that each lesson starts unsolved and that its solution solves it.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Check:
    """A bound for one of the page's numbers."""

    says: str
    """The check in words, with the bound and the unit."""
    number: str
    """The key in a list of a Summary's numbers, like `rtt_ms.p95`."""
    of: str | None = None
    """The list: queues, probes, groups; None: the Summary's own numbers."""
    name: str | None = None
    """The name or link of the entry in the list."""
    run: int = 0
    """The position of the run among those side by side, from 0."""
    below: float | None = None
    above: float | None = None

    @property
    def shown_in(self) -> tuple[str, float]:
        """The unit for people, and the factor to convert the number to it."""
        if "_ms" in self.number:
            return "ms", 1.0
        return ("Mbit/s", 1.0) if self.number.endswith("_mbps") else ("%", 100.0)


@dataclass(frozen=True)
class Lesson:
    """A lesson: one table of lessons.toml, with these keys."""

    title: str
    question: str
    task: str
    answer: str
    """The explanation, with its source."""
    text: str
    """The scenario at the start."""
    qdiscs: tuple[str, ...]
    link: str | None
    checks: tuple[Check, ...]
    changes: tuple[tuple[str, str], ...]
    """One solution: texts in the scenario and their replacements."""
    solved: tuple[str, ...] | None
    """The disciplines side by side in the solution; None: the same."""

    def plain(self) -> dict[str, Any]:
        """The lesson as the page's data."""
        return {
            **{name: getattr(self, name) for name in ("title", "question", "task", "answer")},
            "text": self.text,
            "qdiscs": list(self.qdiscs),
            "link": self.link,
            "checks": [
                {key: value for key, value in asdict(check).items() if value is not None}
                | dict(zip(("unit", "scale"), check.shown_in, strict=True))
                for check in self.checks
            ],
            "solution": {
                "text": [list(change) for change in self.changes],
                "qdiscs": None if self.solved is None else list(self.solved),
            },
        }


@functools.cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons, in their order."""
    source = (files(__package__) / "lessons.toml").read_text(encoding="utf-8")
    return tuple(_lesson(one) for one in tomllib.loads(source)["lesson"])


def _lesson(given: dict[str, Any]) -> Lesson:
    solution = given.pop("solution")
    checks = tuple(Check(**check) for check in given.pop("check"))
    return Lesson(
        **{"link": None, **given, "qdiscs": tuple(given.pop("qdiscs", ()))},
        checks=checks,
        changes=tuple((old, new) for old, new in solution.get("change", [])),
        solved=tuple(solution["qdiscs"]) if "qdiscs" in solution else None,
    )
