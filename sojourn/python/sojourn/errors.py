"""What the person at the keyboard can act on: what is wrong, where, and what to do.

`UserError` is the only such error. A class of its own derives from it directly, and exists only
where some code tells it from the others. The command line prints what `told` returns and exits with
2; any other exception is a bug, with a traceback.
"""

import sys


class UserError(Exception):
    """Something that its reader can mend."""

    def __init__(self, problem: str, hint: str = "", place: str | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        """What is wrong, and with what."""
        self.hint = hint
        """What to do or to write instead; "" if there is nothing to say."""
        self.place = place
        """Where it was written, such as `--last`, if `problem` doesn't say so. Whoever knows may
        set it later."""

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}" if self.place else self.problem

    def told(self) -> str:
        """As the command line prints it: `error: ...`, and `hint: ...` on a line of its own."""
        return f"error: {self}\nhint: {self.hint}" if self.hint else f"error: {self}"


def install_extra(name: str) -> str:
    """The command that installs an extra of sojourn's ("own", "cluster") where this sojourn is.

    sojourn is not on PyPI. Only the pip of its own environment finds it, as installed already.
    """
    return f"{sys.executable} -m pip install 'sojourn[{name}]'"
