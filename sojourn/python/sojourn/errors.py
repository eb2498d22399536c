"""The error that a user can act on: what is wrong, where, and what to do.

`UserError` is the only such error. A subclass derives from it directly, and exists only if some
code must distinguish it. The command line prints its `message` and exits with 2. Any other
exception is a bug and shows its traceback.
"""

import sys


class UserError(Exception):
    """An error that the user can correct."""

    def __init__(self, problem: str, hint: str = "", place: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        """The problem, and where it is."""
        self.hint = hint
        """What to do or to write instead; "" if there is no advice."""
        self.place = place
        """The place of the error, such as `--last`, if `problem` doesn't contain it. A caller may
        set it later."""

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}" if self.place else self.problem

    def message(self) -> str:
        """The lines that the command line prints: `error: ...`, then `hint: ...`."""
        return f"error: {self}\nhint: {self.hint}" if self.hint else f"error: {self}"


def install_extra(name: str) -> str:
    """The command that adds an extra of sojourn ("own", "cluster") to this installation.

    sojourn is not on PyPI. So the command calls the pip of sojourn's environment, which finds
    sojourn already installed.
    """
    return f"{sys.executable} -m pip install 'sojourn[{name}]'"
