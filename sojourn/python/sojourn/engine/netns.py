"""This host's own kernel as an engine: carries out the plan of engine/kernel/ in network namespaces
of this host, in real time.

The guest's program does the same here as in a guest. It runs as root in namespaces of its own: the
real root, or any user in a user namespace if the kernel allows it. Everything it makes ends with
that one process. The names of its network namespaces are in a private mount namespace, and every
device is made inside one of them. The process dies with the thread that started it
(PR_SET_PDEATHSIG). Its input and output are files without names. So nothing is left behind, however
a run ends. Other files of a killed sojourn are recorded (sojourn/cleanup.py); the next sojourn or
`sojourn clean` removes them.

`namespaces` tests beforehand what the kernel has. `kernel/observed/real_time` checks the timing: a
run whose links or program were delayed is marked invalid. Runs go one after another.
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
"""Added to the program's own deadline."""


class Netns:
    """Runs scenarios on this host's kernel."""

    name = "netns"
    alone = True

    @functools.cached_property
    def _way(self) -> Way:
        return namespaces.way()

    @property
    def version(self) -> str:
        """The kernel's version. A run's tables also depend on real time."""
        return f"Linux {platform.release()} of this host {self._way.name}, in real time: not deterministic"

    @functools.cached_property
    def build(self) -> str:
        """Names this host's kernel, our program, and the code that writes plans and reads
        measurements. No two runs give the same tables."""
        return build("netns", f"{platform.release()} {platform.version()}")

    def for_programs(self) -> Netns:
        """This engine runs no programs: `check` reports that with the other features that it
        lacks."""
        return self

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        """The offloads. HZ is this host's own, and a program can't read it."""
        return {"offloads": plan.offloads(realised)}

    def check(self, realised: Realised) -> None:
        """Refuses features that Linux or this host's kernel lacks."""
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
        # Files without names disappear with their last descriptor, however this process ends.
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
    """Runs the program. `files`: the plan, the archive, the console."""
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
        # The root of a user namespace may not make /run/netns in the host's /run.
        there.command(f'{namespaces.OWN_RUN} && exec "$@"', words),
        Path("/"),
        {"PATH": PATH},
        console,
        limit_s,
        "make setup builds the program again",
        _prefer,
        (given.fileno(), measured.fileno()),
    )
    began: float | None = None

    def stopped() -> bool:
        nonlocal began
        if began is None and STARTED in _output(console):
            began = time.monotonic()
        passed = (
            0 if began is None else int((time.monotonic() - began) * 1e9) - planned["settle_ns"]
        )
        return not reached(max(0, min(passed, planned["duration_ns"])))

    status, usage, overdue = see_to_its_end(child, stopped)
    output = _output(console)
    if ENDED.search(output) and not overdue:
        return usage
    if stopped():
        raise Cancelled
    raise _ending(output, status, limit_s if overdue else None)


def _prefer(process: int) -> None:
    """Gives the program real-time priority: it sleeps most of the time, and on waking it must not
    wait for busy processes. Its children have ordinary priority."""
    # User namespaces lack this privilege; `doubts` reports whether it was needed.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(process, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def _output(console: IO[bytes]) -> str:
    # Reads at a position of its own: the program writes to the same open file.
    return os.pread(console.fileno(), 1 << 20, 0).decode("utf-8", "replace")


def _ending(output: str, status: int, overdue_s: float | None) -> GuestRunError:
    """The error of a run that ended early."""
    if overdue_s is not None:
        return GuestRunError(
            "hung",
            f"the run had not ended after {overdue_s:g} s, and was ended",
            "let it have the machine to itself",
            output,
        )
    if failure := GAVE_UP.search(output):
        return GuestRunError(
            "gave up",
            f"this host's kernel: {failure[1]}",
            namespaces.GUEST_INSTEAD.removeprefix("or "),
            "",
        )
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return GuestRunError("killed", f"the run was killed by {name}", "somebody ended it", output)
    if BEGUN not in output:
        return GuestRunError(
            "refused", "the run did not start", namespaces.GUEST_INSTEAD.removeprefix("or "), output
        )
    return GuestRunError(
        "gave up", "the run ended before it had written its results", "please report it", output
    )
