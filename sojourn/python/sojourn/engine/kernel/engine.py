"""The real Linux kernel as an engine: a plan, a guest that carries it out in virtual time, tables
from what it measured.

Each seed is a guest of its own, in a folder of its own that goes when its tables are made. What a
guest measured but can't be trusted (records lost, a processor too busy to keep time, a self-check
that failed) is handed on with the reasons, and its Run is marked invalid.

What reads measurements (`observed`) is imported once there are some: `sojourn check` and `sojourn
list` ask an engine what it can run, and need neither numpy nor polars for the answer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sojourn import _core, cleanup
from sojourn.engine.kernel.guest import awake, boot, guests
from sojourn.engine.kernel.guest.endings import GuestError
from sojourn.engine.kernel.plan import fits
from sojourn.engine.kernel.plan import guest_plan as plan
from sojourn.engine.kernel.program import program
from sojourn.engine.protocol import NotReadyError, Outcome
from sojourn.scenario.realised import Realised

if TYPE_CHECKING:
    from sojourn.engine.kernel.observed.archive import Archive
    from sojourn.engine.recording import Recording

_Read = TypeVar("_Read")

SOURCES = (
    ("linux", "tc.py"),
    ("engine", "netns.py"),
    ("scenario", "linux.py"),
    ("scenario", "tcp.py"),
)
"""What decides the tables beside this folder."""
LEAST_WALL_S = 600.0
WALL_PER_SECOND = 60.0
"""Of the run: the slowest guest takes a tenth of that at 200 Mbit/s."""


def outcome(
    realised: Realised, file: Path, doubts: Callable[[Archive], Sequence[str]], cpu_ns: int
) -> Outcome:
    """The tables of the archive in this file, and why they can't be trusted: by themselves, or
    because of these doubts.

    Raises:
        GuestError: it is not whole.
    """
    from sojourn.engine.kernel.observed import archive
    from sojourn.engine.kernel.observed.tables import tables

    measured = archive.Archive.read(file)
    return Outcome(
        tables(realised, measured), cpu_ns, (*archive.doubts(measured), *doubts(measured))
    )


def build(*parts: str) -> str:
    """These parts, our program and the sources of plan and tables as one name of 16 digits.

    Raises:
        GuestError: the program has not been built.
    """
    return hashlib.sha256("\n".join((*parts, _program(), _sources())).encode()).hexdigest()[:16]


def _program() -> str:
    return hashlib.sha256(program().read_bytes()).hexdigest()


@cache
def _sources() -> str:
    """Of the Python between a realised scenario and a guest's plan, and between its archive and the
    tables."""
    root = files("sojourn")
    kernel = Path(str(root.joinpath("engine", "kernel")))
    others = [Path(str(root.joinpath(*parts))) for parts in SOURCES]
    total = hashlib.sha256(" ".join((_core.TC, *_core.CAUSES)).encode())
    for file in sorted([*kernel.rglob("*.py"), *others], key=lambda each: (each.name, each)):
        total.update(f"{file.name}\n".encode() + file.read_bytes())
    return total.hexdigest()


class KernelEngine:
    """Scenarios in a guest. `adapting`: one whose red adapts where it is told to (awake.py)."""

    alone = False

    def __init__(self, name: str, guest: guests.Name | None, *, adapting: bool = False) -> None:
        self.name = name
        self._wanted = guest
        self._adapting = adapting
        self._added = awake.library() if adapting else {}

    @cached_property
    def _guest(self) -> guests.Guest:
        return guests.choose(self._wanted)

    @property
    def version(self) -> str:
        """The kernel's package and the guest's kind."""
        return f"{self._guest.source} ({self._guest.kind})"

    @cached_property
    def build(self) -> str:
        """Names the kernel, its file system, our program in it, and what plans and reads its
        measurements."""
        return build(
            "kernel", self._guest.fingerprint, *((awake.name(),) if self._adapting else ())
        )

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        """Offloads, and HZ: the built kernel's by its configuration, Debian's own alike."""
        return {
            "offloads": plan.offloads(realised),
            "HZ": "250",
            **(awake.CONDITION if self._adapting else {}),
        }

    def check(self, realised: Realised) -> None:
        """Refuses what Linux has no word for."""
        try:
            guest = self._guest
        except NotReadyError:
            # What no guest can run is refused for that reason: to make one would not help.
            if problems := list(fits.problems_of(realised, *fits.kernel_of(self._wanted))):
                raise fits.PlanError(problems) from None
            raise
        plan.plan(realised, plan.machine_of(guest))

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        """See `Engine.tables`."""
        planned = plan.plan(realised, plan.machine_of(self._guest))

        def read(file: Path, cpu_ns: int) -> Outcome:
            return outcome(
                realised, file, lambda measured: self._doubts(realised, measured), cpu_ns
            )

        return self._measured(realised, planned, reached, read)

    def recordings(
        self, realised: Realised, reached: Callable[[int], bool]
    ) -> tuple[list[Recording], int]:
        """What each congested link's queue did to each packet (recording.py), and the CPU time in
        ns that it took.

        Raises:
            GuestError: the guest has no simulated cards, or what was recorded can't be trusted.
        """
        if not self._guest.has_simnic:
            raise GuestError(
                f"{self.name} keeps a link's rate by htb, whose times no link of ours has",
                "record with -e kernel-uml: sojourn kernel setup makes it",
            )
        from sojourn.engine.kernel.observed import archive
        from sojourn.engine.kernel.observed import recorded as recording

        packets = sum(map(recording.expected_packets, realised.links)) * realised.duration_ns / 1e9
        planned = plan.recorded(realised, plan.machine_of(self._guest), packets)

        def read(file: Path, cpu_ns: int) -> tuple[list[Recording], int]:
            measured = archive.Archive.read(file)
            if found := archive.doubts(measured):
                raise GuestError(f"what was recorded can't be trusted: {'; '.join(found)}")
            return recording.recordings(realised, planned.plan, measured, self.version), cpu_ns

        return self._measured(realised, planned, reached, read)

    def _measured(
        self,
        realised: Realised,
        planned: plan.Planned,
        reached: Callable[[int], bool],
        read: Callable[[Path, int], _Read],
    ) -> _Read:
        """What is read from the archive of a guest that carried out the plan, given the CPU time in
        ns that it took."""
        added = {"plan.json": json.dumps(planned.plan).encode(), **self._added}
        overlay = guests.overlay(program(), added)
        seconds = realised.duration_ns / 1e9
        with cleanup.temporary_folder() as folder:
            one = boot.Boot(
                folder,
                overlay,
                seed=realised.seed,
                memory_mb=planned.memory_mb,
                pairs=planned.pairs,
                queues=planned.queues,
                wall_limit_s=max(LEAST_WALL_S, WALL_PER_SECOND * seconds),
            )
            booted = boot.run(self._guest, one, reached)
            return read(booted.archive, round(booted.cpu_s * 1e9))

    def _doubts(self, realised: Realised, measured: Archive) -> list[str]:
        from sojourn.engine.kernel.observed import archive, selfcheck

        found = list(selfcheck.doubts(realised, measured, self._guest.kind))
        if (
            self._guest.kind != "uml"
            and (busy := archive.busy_share(measured)) > selfcheck.MOST_BUSY
        ):
            hint = "slower links, fewer flows, or the guest uml, which has no such limit"
            found.append(f"the guest's processor was {busy:.0%} busy, which delays packets: {hint}")
        return found
