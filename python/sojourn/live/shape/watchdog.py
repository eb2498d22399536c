"""`python -m sojourn.live.shape.watchdog IFACE`: puts an interface back unless it is confirmed in
time. Started by live/shape/apply, never by hand.

It says that it is ready, and waits to be told that the shaper is applied. If whoever is to tell
ends first, or the time passes, or it is itself asked to end, it puts back what the journal says. It
looks at the journal: that a person has confirmed is written there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from dataclasses import replace

from sojourn.errors import UserError
from sojourn.live.shape import apply, journal

LOOK_EVERY_S = 0.25


class _AskedToEndError(Exception):
    pass


def main() -> None:
    """The process."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit((__doc__ or "").splitlines()[0])
    name = sys.argv[1]
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for asked in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked, _end)
    why = "the process that applied it was ended in the middle"
    try:
        with socket.socket(fileno=apply.WATCHDOG_FD) as owner:
            owner.sendall(apply.READY)
            with contextlib.suppress(ConnectionError):
                owner.recv(1)
        if _wait(name):
            return
        why = "it was not confirmed in time"
    except _AskedToEndError:
        why = "the process that watched over it was asked to end"
    _roll_back(name, why)


def _wait(name: str) -> bool:
    """Whether there is nothing to do: it was confirmed, or undone. Else the time is over, or it was
    never applied as a whole."""
    # Whoever applies holds the lock until it is told or has ended.
    with journal.locked():
        entry = journal.load(name)
    while entry is not None and entry.state == "applied" and entry.deadline_s is not None:
        left = entry.deadline_s - journal.now()
        if left <= 0:
            return False
        time.sleep(min(left, LOOK_EVERY_S))
        entry = journal.load(name)
    return entry is None or not entry.open


def _roll_back(name: str, why: str) -> None:
    with journal.locked():
        entry = journal.load(name)
        # Confirmed at the last moment, or another's by now.
        if entry is None or not entry.open or entry.watchdog != journal.process(os.getpid()):
            return
        if entry.state == "applying":
            why = "the process that applied it was ended in the middle"
        try:
            differs = apply.put_back(entry)
        except UserError as error:
            differs = error.problem
        journal.save(
            replace(entry, state="rolled back", why=f"{why}; {differs}" if differs else why)
        )


def _end(*_: object) -> None:
    raise _AskedToEndError


if __name__ == "__main__":
    main()
