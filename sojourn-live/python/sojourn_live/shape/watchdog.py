"""`python -m sojourn_live.shape.watchdog IFACE` restores an interface unless it is confirmed.

shape/apply.py starts it; it is not for use by hand. It reports that it is ready, and waits for the
message that the shaper is applied. The journal has the interface's former state. The watchdog
restores that state if the sender ends before the message, if the time to confirm passes, or if the
watchdog receives SIGTERM or SIGINT. A user's confirmation is written to the journal, so the
watchdog reads the journal first.
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
from sojourn_live.shape import apply, journal

LOOK_EVERY_S = 0.25


class _TerminatedError(Exception):
    pass


def main() -> None:
    """Runs the watchdog."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit((__doc__ or "").splitlines()[0])
    name = sys.argv[1]
    os.chdir("/")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    why = "the process that applied it was ended in the middle"
    try:
        with socket.socket(fileno=apply.WATCHDOG_FD) as owner:
            owner.sendall(apply.READY)
            with contextlib.suppress(ConnectionError):
                owner.recv(1)
        if _wait(name):
            return
        why = "it was not confirmed in time"
    except _TerminatedError:
        why = "the watchdog was terminated"
    _roll_back(name, why)


def _wait(name: str) -> bool:
    """Waits until the shaper is decided. True: it was confirmed or undone. False: the time to
    confirm is over, or the shaper was never completely applied."""
    # The applying process holds the lock until it has sent the message or has ended.
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
        # The shaper was confirmed at the last moment, or a new one has another watchdog.
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
    raise _TerminatedError


if __name__ == "__main__":
    main()
