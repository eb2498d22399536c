"""How a guest can fail, as two errors.

`GuestError`: something must be repaired before a guest can run (a package, a permission, room on
the disk). `GuestRunError`: a guest ran and did not finish. Both are UserErrors, so the command line
prints them in two lines and exits with 2.
"""

from typing import Literal

from sojourn.errors import UserError

Ending = Literal["hung", "panicked", "out of memory", "killed", "refused", "gave up"]
"""How a guest fails.

    hung           it was still running at the limit of wall-clock time
    panicked       its kernel panicked
    out of memory  it had too little memory
    killed         by a signal that was not ours
    refused        the host did not let it start
    gave up        its program printed `@FAIL`, or ended without the closing mark
"""

TAIL_LINES = 12


class GuestError(UserError):
    """A guest can't be made or started here."""


class GuestRunError(UserError):
    """A guest was started and did not finish."""

    def __init__(self, ending: Ending, problem: str, hint: str, console: str) -> None:
        self.ending: Ending = ending
        self.console = console
        tail = last_lines(console)
        super().__init__(f"{problem}\n{tail}" if tail else problem, hint)


def last_lines(console: str, count: int = TAIL_LINES) -> str:
    """The end of a console, indented, under a heading; nothing if it is empty."""
    lines = [line.rstrip() for line in console.splitlines() if line.strip()]
    if not lines:
        return ""
    return "\n".join(["its console ends:", *(f"  | {line}" for line in lines[-count:])])
