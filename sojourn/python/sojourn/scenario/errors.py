"""What is wrong with a scenario: every problem at once, each with its place, its key, and what to
write instead.

home.toml:3:12: duration: a duration needs a unit; 60 is a bare number
     3 | duration = 60
       |            ^
hint: write "60 s"
"""

from collections.abc import Sequence

from sojourn._core import Problem
from sojourn.errors import UserError

MOST_TOLD = 50
"""Problems written out in the message; `ScenarioError.problems` has all."""

__all__ = ["Problem", "ScenarioError"]


class ScenarioError(UserError, ValueError):
    """A scenario that can't be used: every problem of it, each with its place and its hint in the
    text."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        told = [str(problem) for problem in problems[:MOST_TOLD]]
        if len(problems) > MOST_TOLD:
            told.append(f"... and {len(problems) - MOST_TOLD} more problems")
        super().__init__("\n".join(told))
        self.problems = tuple(problems)

    def told(self) -> str:
        """As the command line prints it: all problems, `error:` before each."""
        return "\n".join(f"error: {problem}" for problem in self.problems)
