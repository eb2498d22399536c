"""The real Linux kernel as an engine: a plan, a guest that carries it out in virtual time, tables from what it measured.

Each seed is a guest of its own, in a folder of its own that goes when its tables are made. What a guest measured but can't be
trusted (records lost, a processor too busy to keep time) is refused, not handed on.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from sojourn.engine.engines import Realised, Tables
from sojourn.engine.kernel import archive, boot, guests, plan, recording
from sojourn.engine.kernel.errors import GuestError
from sojourn.engine.kernel.tables import tables
from sojourn.engine.replay import Recording

Read = TypeVar("Read")

PROGRAM = "sojourn-guest"
"""The guest's first program (crates/guest), beside this file in an installed sojourn."""
MOST_BUSY = 0.5
"""A guest whose processor takes time and is busier than this has begun to delay packets itself."""
LEAST_WALL_S = 600.0
WALL_PER_SECOND = 60.0
"""Of the run: the slowest guest takes a tenth of that at 200 Mbit/s."""


def program() -> Path:
    """The program that makes a plan's traffic and measures it.

    Raises:
        GuestError: it has not been built.
    """
    found = Path(str(files("sojourn.engine.kernel").joinpath(PROGRAM)))
    if not found.is_file():
        raise GuestError(
            f"{PROGRAM}, the guest's program, is not there",
            "make setup builds it; by hand: cargo build --release -p guest, and copy it beside engine/kernel/engine.py",
        )
    return found


def trusted(
    realised: Realised, file: Path, doubts: Callable[[archive.Archive], Sequence[str]], hint: str
) -> Tables:
    """The tables of the archive in this file.

    Raises:
        GuestError: it is not whole, or can't be trusted: by itself, or because of these doubts, which `hint` is to remove.
    """
    measured = archive.Archive.read(file)
    found = [*archive.doubts(measured), *doubts(measured)]
    if found:
        raise GuestError(f"what was measured can't be trusted: {'; '.join(found)}", hint)
    return tables(realised, measured)


class Kernel:
    """Scenarios in a guest."""

    alone = False

    def __init__(self, name: str, guest: guests.Name | None) -> None:
        self.name = name
        self._guest = guests.choose(guest)

    @property
    def version(self) -> str:
        """The kernel's package and the guest's kind."""
        return f"{self._guest.source} ({self._guest.kind})"

    def fingerprint(self, scenario: str) -> str:
        """Of scenario, kernel, its file system and our program."""
        parts = (scenario, self._guest.fingerprint, hashlib.sha256(program().read_bytes()).hexdigest())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def check(self, realised: Realised) -> None:
        """Refuses what Linux has no word for."""
        plan.plan(dict(realised), plan.machine_of(self._guest))

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> tuple[Tables, int]:
        """See `Engine.tables`."""
        planned = plan.plan(dict(realised), plan.machine_of(self._guest))
        hint = "slower links or fewer flows; the guest uml has no such limit"
        return self._measured(
            realised, planned, reached, lambda file: trusted(realised, file, self._doubts, hint)
        )

    def recordings(self, realised: Realised, reached: Callable[[int], bool]) -> tuple[list[Recording], int]:
        """What each congested link's queue did to each packet (recording.py), and the CPU time in ns that it took.

        Raises:
            GuestError: the guest has no simulated cards, or what was recorded can't be trusted.
        """
        if not self._guest.has_simnic:
            raise GuestError(
                f"{self.name} keeps a link's rate by htb, whose times no link of ours has",
                "record with -e kernel-uml: sojourn kernel setup --guest uml makes it",
            )
        planned = plan.plan(dict(realised), plan.machine_of(self._guest))
        devices = recording.traced_devices(realised, planned.plan)
        packets = sum(recording.expected_packets(realised, link) for link in devices)
        planned = plan.traced(planned, list(devices.values()), packets)

        def read(file: Path) -> list[Recording]:
            measured = archive.Archive.read(file)
            if found := archive.doubts(measured):
                raise GuestError(f"what was recorded can't be trusted: {'; '.join(found)}")
            return recording.recordings(realised, planned.plan, measured, self.version)

        return self._measured(realised, planned, reached, read)

    def _measured(
        self,
        realised: Realised,
        planned: plan.Planned,
        reached: Callable[[int], bool],
        read: Callable[[Path], Read],
    ) -> tuple[Read, int]:
        """What is read from the archive of a guest that carried out the plan, and the CPU time in ns that it took."""
        overlay = guests.overlay(program(), {"plan.json": json.dumps(planned.plan).encode()})
        seconds = realised["duration_ns"] / 1e9
        with tempfile.TemporaryDirectory(prefix="sojourn-") as folder:
            one = boot.Boot(
                Path(folder),
                overlay,
                seed=realised["seed"],
                memory_mb=planned.memory_mb,
                pairs=planned.pairs,
                wall_limit_s=max(LEAST_WALL_S, WALL_PER_SECOND * seconds),
            )
            booted = boot.run(self._guest, one, lambda: not reached(0))
            return read(booted.archive), round(booted.cpu_s * 1e9)

    def _doubts(self, measured: archive.Archive) -> list[str]:
        busy = archive.busy_share(measured)
        if self._guest.kind == "uml" or math.isnan(busy) or busy <= MOST_BUSY:
            return []
        return [f"the guest's processor was {busy:.0%} busy, which delays packets"]
