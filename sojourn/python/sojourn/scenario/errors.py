"""The errors of a scenario: all its problems, each with its place, its key, and what to write
instead.

home.toml:3:12: duration: a duration needs a unit; 60 is a bare number
     3 | duration = 60
       |            ^
hint: write "60 s"
"""

from collections.abc import Sequence

from sojourn._core import Problem
from sojourn.errors import UserError

MOST_PRINTED = 50
"""The largest number of problems in the message; `ScenarioError.problems` has all."""

__all__ = ["Problem", "ScenarioError"]


class ScenarioError(UserError, ValueError):
    """A scenario that can't be used, with all its problems."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = [str(problem) for problem in problems[:MOST_PRINTED]]
        if len(problems) > MOST_PRINTED:
            lines.append(f"... and {len(problems) - MOST_PRINTED} more problems")
        super().__init__("\n".join(lines))
        self.problems = tuple(problems)

    def message(self) -> str:
        """All problems, with `error:` before each."""
        return "\n".join(f"error: {problem}" for problem in self.problems)
