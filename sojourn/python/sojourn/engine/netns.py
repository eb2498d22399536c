"""This host's own kernel as an engine: the plan of engine/kernel/, carried out in namespaces of
this host, in real time.

The guest's program does the same here as in a guest, as a root that has namespaces of its own: root
itself, or any user in a user namespace where the kernel lets him. All that it makes hangs on that
one process: its network namespaces have names in a mount namespace that nobody else sees, every
device is made inside one of them, and it dies with the thread that started it (PR_SET_PDEATHSIG).
What it reads and writes are files without names. So nothing of it is left however a run ends. What
else a killed sojourn leaves, whatever its engine, is noted (sojourn/cleanup.py) for the next one,
or `sojourn clean`, to remove.

What the kernel has is tried beforehand (`namespaces`). Real time is watched
(`kernel/observed/real_time`): a run whose links or whose program were held up is marked invalid. Runs
go one after another.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from sojourn.engine import namespaces
from sojourn.engine.kernel.engine import build, outcome
from sojourn.engine.kernel.guest.boot import (
    BEGUN,
    ENDED,
    GAVE_UP,
    Child,
    see_to_its_end,
)
from sojourn.engine.kernel.guest.endings import GuestError, GuestRunError
from sojourn.engine.kernel.plan import guest_plan as plan
from sojourn.engine.kernel.program import program
from sojourn.engine.namespaces import Way
from sojourn.engine.protocol import Cancelled, Outcome
from sojourn.linux.programs import PATH
from sojourn.scenario.realised import Realised

STARTED = "@START"
GRACE_S = 10.0
"""Beyond the program's own deadline."""


class Netns:
    """Scenarios on this host's kernel."""

    name = "netns"
    alone = True

    @functools.cached_property
    def _way(self) -> Way:
        return namespaces.way()

    @property
    def version(self) -> str:
        """The kernel; a run's tables depend on the moment as well."""
        return f"Linux {platform.release()} of this host {self._way.name}, in real time: not deterministic"

    @functools.cached_property
    def build(self) -> str:
        """Names this host's kernel, our program, and what plans and reads its measurements. No two
        runs give the same tables."""
        return build("netns", f"{platform.release()} {platform.version()}")

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        """Offloads; HZ is this host's own, which nobody is told."""
        return {"offloads": plan.offloads(realised)}

    def check(self, realised: Realised) -> None:
        """Refuses what Linux has no word for, and what this host's kernel does not have."""
        planned = plan.plan(realised, plan.this_host())
        missing = list(namespaces.missing(realised, planned.plan, self._way))
        if missing:
            hints = dict.fromkeys(each.hint for each in missing)
            raise GuestError(
                "\n".join(f"{each.where}: {each.why}" for each in missing),
                "; ".join([*hints, namespaces.GUEST_INSTEAD]),
            )

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        """See `Engine.tables`."""
        from sojourn.engine.kernel.observed import real_time, selfcheck

        planned = plan.plan(realised, plan.this_host()).plan
        # Files without names: whatever happens to us, they go with their last descriptor.
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as measured,
            tempfile.TemporaryFile() as console,
        ):
            given.write(json.dumps(planned).encode())
            given.flush()
            usage = _carry_out(self._way, planned, (given, measured, console), reached)
            file = Path(f"/proc/self/fd/{measured.fileno()}")
            cpu_ns = round((usage.ru_utime + usage.ru_stime) * 1e9)
            return outcome(
                realised,
                file,
                lambda archive: [
                    *selfcheck.doubts(realised, archive, "host"),
                    *real_time.doubts(realised, archive),
                ],
                cpu_ns,
            )


# ---------------------------------------------------------------------------------------- one run


def _carry_out(
    there: Way,
    planned: Mapping[str, Any],
    files: tuple[IO[bytes], IO[bytes], IO[bytes]],
    reached: Callable[[int], bool],
) -> resource.struct_rusage:
    """Runs the program; `files`: the plan, the archive, what it says."""
    given, measured, console = files
    words = [str(program())]
    words += [
        "--plan",
        f"/proc/self/fd/{given.fileno()}",
        "--out",
        f"/proc/self/fd/{measured.fileno()}",
    ]
    limit_s = planned["deadline_ns"] / 1e9 + GRACE_S
    child = Child(
        # A user namespace's root may not make /run/netns in the host's /run.
        there.command(f'{namespaces.OWN_RUN} && exec "$@"', words),
        Path("/"),
        {"PATH": PATH},
        console,
        limit_s,
        "make setup builds the program anew",
        _prefer,
        (given.fileno(), measured.fileno()),
    )
    began: float | None = None

    def stopped() -> bool:
        nonlocal began
        if began is None and STARTED in _said(console):
            began = time.monotonic()
        passed = (
            0 if began is None else int((time.monotonic() - began) * 1e9) - planned["settle_ns"]
        )
        return not reached(max(0, min(passed, planned["duration_ns"])))

    status, usage, overdue = see_to_its_end(child, stopped)
    said = _said(console)
    if ENDED.search(said) and not overdue:
        return usage
    if stopped():
        raise Cancelled
    raise _ending(said, status, limit_s if overdue else None)


def _prefer(process: int) -> None:
    """The program sleeps nearly all of the time; when it wakes up it is not to wait for whoever
    computes. What it starts is ordinary."""
    # User namespaces have no such privilege; `doubts` tells whether it was needed.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(process, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def _said(console: IO[bytes]) -> str:
    # By its descriptor: the program writes at the place of its own.
    return os.pread(console.fileno(), 1 << 20, 0).decode("utf-8", "replace")


def _ending(said: str, status: int, overdue_s: float | None) -> GuestRunError:
    """How a run ended that did not come to its end."""
    if overdue_s is not None:
        return GuestRunError(
            "hung",
            f"the run had not ended after {overdue_s:g} s, and was ended",
            "leave the machine to it",
            said,
        )
    if found := GAVE_UP.search(said):
        return GuestRunError(
            "gave up",
            f"this host's kernel: {found[1]}",
            namespaces.GUEST_INSTEAD.removeprefix("or "),
            "",
        )
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return GuestRunError("killed", f"the run was killed by {name}", "somebody ended it", said)
    if BEGUN not in said:
        return GuestRunError(
            "refused", "the run did not start", namespaces.GUEST_INSTEAD.removeprefix("or "), said
        )
    return GuestRunError(
        "gave up", "the run ended before it had written its results", "please report it", said
    )
