"""The lab's lessons: each a question, a thing to do, and an answer that the page checks by running.

`lessons.toml` has them, as data: scenario, disciplines, what to reach, and one way there, by which
sojourn/tests/test_lab.py holds that a lesson isn't solved as it begins and is solved by its own solution.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Check:
    """A number of the page's that has to be below or above a bound."""

    says: str
    """In words, with the bound and the unit."""
    number: str
    """The key below one of the lists of a Summary's numbers, like `rtt_ms.p95`."""
    of: str | None = None
    """The list: queues, probes, groups; None: of the whole."""
    name: str | None = None
    """Which of that list, by name or link."""
    run: int = 0
    """Which of those that stand side by side, from 0."""
    below: float | None = None
    above: float | None = None

    @property
    def shown_in(self) -> tuple[str, float]:
        """The unit in which people read the number, and by what it is multiplied for it."""
        if "_ms" in self.number:
            return "ms", 1.0
        return ("Mbit/s", 1.0) if self.number.endswith("_mbps") else ("%", 100.0)


@dataclass(frozen=True)
class Lesson:
    """See lessons.toml."""

    title: str
    question: str
    task: str
    answer: str
    """What it taught, with its source."""
    text: str
    """The scenario at the start."""
    qdiscs: tuple[str, ...]
    link: str | None
    checks: tuple[Check, ...]
    changes: tuple[tuple[str, str], ...]
    """One way to reach it: each text with what takes its place in the scenario."""
    solved: tuple[str, ...] | None
    """And the disciplines side by side then; None: the same."""

    def plain(self) -> dict[str, Any]:
        """As the page takes it."""
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
    """All of them, in their order."""
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
