"""The real Linux kernel as an engine: a plan, a guest that carries it out in virtual time, and the
tables of its archive.

Each seed has a guest of its own and a folder of its own, which is removed when its tables are made.
A measurement may be invalid: records were lost, a processor was too busy to keep time, or a
self-check failed. Its tables are returned with the reasons, and its Run is marked invalid.

`observed` reads measurements and is imported only then: `sojourn check` and `sojourn list` only ask
an engine what it can run, which needs neither numpy nor polars.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from sojourn import _core, cleanup, guest_programs
from sojourn.engine.kernel.guest import awake, boot, guests
from sojourn.engine.kernel.guest.endings import GuestError
from sojourn.engine.kernel.plan import fits, program_plan
from sojourn.engine.kernel.plan import guest_plan as plan
from sojourn.engine.kernel.program import program
from sojourn.engine.kernel.releases import PROGRAMS, USUAL
from sojourn.engine.protocol import NotReadyError, Outcome
from sojourn.errors import UserError
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
"""Files that decide the tables, in addition to those of this folder."""
LEAST_WALL_S = 600.0
WALL_PER_SECOND = 60.0
"""Limit of wall-clock time for each second of the run. The slowest guest takes a tenth of it at 200
Mbit/s."""


def outcome(
    realised: Realised, file: Path, doubts: Callable[[Archive], Sequence[str]], cpu_ns: int
) -> Outcome:
    """Returns the tables of the archive in this file. The reasons not to trust them are the
    archive's own and those that `doubts` finds.

    Raises:
        GuestError: the archive is incomplete.
    """
    from sojourn.engine.kernel.observed import archive
    from sojourn.engine.kernel.observed.tables import tables

    measured = archive.Archive.read(file)
    return Outcome(
        tables(realised, measured), cpu_ns, (*archive.doubts(measured), *doubts(measured))
    )


def build(*parts: str) -> str:
    """Hashes these parts, the guest's program, and the sources that make plan and tables, to a name
    of 16 digits.

    Raises:
        GuestError: the program has not been built.
    """
    return hashlib.sha256("\n".join((*parts, _program(), _sources())).encode()).hexdigest()[:16]


def _program() -> str:
    return hashlib.sha256(program().read_bytes()).hexdigest()


@cache
def _sources() -> str:
    """Hashes the Python sources that make a guest's plan from a realised scenario, and those that
    make the tables from the guest's archive."""
    root = files("sojourn")
    kernel = Path(str(root.joinpath("engine", "kernel")))
    others = [Path(str(root.joinpath(*parts))) for parts in SOURCES]
    total = hashlib.sha256(" ".join((_core.TC, *_core.CAUSES)).encode())
    for file in sorted([*kernel.rglob("*.py"), *others], key=lambda each: (each.name, each)):
        total.update(f"{file.name}\n".encode() + file.read_bytes())
    return total.hexdigest()


def _files(realised: Realised, measured: Archive) -> dict[str, bytes]:
    """The files that a Run keeps of the programs."""
    folders = [folder for _, folder in program_plan.seen(realised.program_sees)]
    return guest_programs.files_of(
        realised,
        measured.index["programs"],
        measured.printed,
        guest_programs.read_paths(measured.read_of_host, folders, program_plan.LINKS),
    )


class KernelEngine:
    """Runs scenarios in a guest. `adapting`: in this guest RED adapts if the scenario asks for it,
    which tc alone does not achieve (awake.py)."""

    alone = False

    def __init__(self, name: str, guest: guests.Name | None, *, adapting: bool = False) -> None:
        self.name = name
        self._wanted = guest
        self._adapting = adapting
        self._for_programs: KernelEngine | None = None
        self._added = awake.library() if adapting else {}

    @cached_property
    def _guest(self) -> guests.Guest:
        return guests.choose(self._wanted)

    def for_programs(self) -> KernelEngine:
        """The engine of the same name with the guest for programs.

        Raises:
            UserError: this engine runs no programs.
        """
        if self._wanted == PROGRAMS.guest:
            return self
        if self._wanted not in (None, USUAL.guest) or self._adapting:
            raise UserError(
                f"the engine {self.name} runs no programs",
                f"-e kernel runs them, in a guest of their own: {PROGRAMS.setup}",
            )
        if self._for_programs is None:
            self._for_programs = KernelEngine(self.name, PROGRAMS.guest)
        return self._for_programs

    @property
    def version(self) -> str:
        """The kernel's package and the guest's kind."""
        return f"{self._guest.source} ({self._guest.kind})"

    @cached_property
    def build(self) -> str:
        """Identifies the kernel, its file system, the guest's program, and the code that writes
        plans and reads measurements."""
        return build(
            "kernel", self._guest.fingerprint, *((awake.name(),) if self._adapting else ())
        )

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        """The offloads, and HZ, which is the same in the built kernel and in Debian's."""
        return {
            "offloads": plan.offloads(realised),
            "HZ": "250",
            **(awake.CONDITION if self._adapting else {}),
            **(program_plan.conditions() if realised.programs else {}),
        }

    def check(self, realised: Realised) -> None:
        """Refuses features that Linux lacks."""
        if realised.programs and self._wanted != PROGRAMS.guest:
            self.for_programs().check(realised)
            return
        try:
            guest = self._guest
        except NotReadyError:
            # A scenario that no guest can run is refused for that reason: making a guest would not
            # help.
            if problems := list(fits.problems_of(realised, *fits.kernel_of(self._wanted))):
                raise fits.PlanError(problems) from None
            raise
        plan.plan(realised, plan.machine_of(guest))
        if lacking := program_plan.absent(realised):
            raise UserError(
                f"this host has no program {', '.join(lacking)}",
                "install it, or name its folder in [programs] sees, and in the PATH of the program's env",
            )

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        """See `Engine.tables`."""
        if realised.programs and self._wanted != PROGRAMS.guest:
            return self.for_programs().tables(realised, reached)
        planned = plan.plan(realised, plan.machine_of(self._guest))

        def read(file: Path, cpu_ns: int) -> Outcome:
            files: dict[str, bytes] = {}

            def doubts(measured: Archive) -> list[str]:
                if realised.programs:
                    files.update(_files(realised, measured))
                return self._doubts(realised, measured)

            return dataclasses.replace(outcome(realised, file, doubts, cpu_ns), files=files)

        return self._measured(realised, planned, reached, read)

    def recordings(
        self, realised: Realised, reached: Callable[[int], bool]
    ) -> tuple[list[Recording], int]:
        """Returns recordings of what each congested link's queue did to each packet (recording.py),
        and the CPU time in ns.

        Raises:
            GuestError: the guest has no simulated cards, the scenario has programs, or the
                recordings are invalid.
        """
        if realised.programs:
            raise GuestError(
                "a recording for replay has no programs of the host",
                "write bulk, udp or ping in their place",
            )
        if not self._guest.has_simnic:
            raise GuestError(
                f"{self.name} limits a link's rate by htb, whose timing the simulator's links do not have",
                "record with -e kernel-uml: sojourn kernel setup makes it",
            )
        from sojourn.engine.kernel.observed import archive
        from sojourn.engine.kernel.observed import recorded as recording

        packets = sum(map(recording.expected_packets, realised.links)) * realised.duration_ns / 1e9
        planned = plan.recorded(realised, plan.machine_of(self._guest), packets)

        def read(file: Path, cpu_ns: int) -> tuple[list[Recording], int]:
            measured = archive.Archive.read(file)
            if doubts := archive.doubts(measured):
                raise GuestError(f"the recording is invalid: {'; '.join(doubts)}")
            return recording.recordings(realised, planned.plan, measured, self.version), cpu_ns

        return self._measured(realised, planned, reached, read)

    def _measured(
        self,
        realised: Realised,
        planned: plan.Planned,
        reached: Callable[[int], bool],
        read: Callable[[Path, int], _Read],
    ) -> _Read:
        """Runs the plan in a guest and returns `read` of its archive. `read` also gets the CPU time
        in ns."""
        guest_programs.require([realised])
        added = {"plan.json": json.dumps(planned.plan).encode(), **self._added}
        overlay = guests.overlay(program(), added)
        seconds = realised.duration_ns / 1e9
        with cleanup.temporary_folder() as folder:
            if realised.programs:
                program_plan.lay_out(folder, realised.program_sees)
            start = boot.Boot(
                folder,
                overlay,
                seed=realised.seed,
                memory_mb=planned.memory_mb,
                pairs=planned.pairs,
                queues=planned.queues,
                arguments=program_plan.arguments(realised),
                wall_limit_s=max(LEAST_WALL_S, WALL_PER_SECOND * seconds),
            )
            booted = boot.run(self._guest, start, reached)
            return read(booted.archive, round(booted.cpu_s * 1e9))

    def _doubts(self, realised: Realised, measured: Archive) -> list[str]:
        from sojourn.engine.kernel.observed import archive, selfcheck

        doubts = list(selfcheck.doubts(realised, measured, self._guest.kind))
        if (
            self._guest.kind != "uml"
            and (busy := archive.busy_share(measured)) > selfcheck.MOST_BUSY
        ):
            hint = "slower links, fewer flows, or the guest uml, which has no such limit"
            doubts.append(
                f"the guest's processor was {busy:.0%} busy, which delays packets: {hint}"
            )
        return doubts
