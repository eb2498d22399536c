"""The journal: the changes of an interface, on disk, so that another process can undo them after
kill -9 or the end of the session.

Each interface has a file under /run. A reboot empties /run, and also restores the kernel's default
queues. The file is written before anything is changed, and replaced as a whole. A process holds the
lock while it changes an interface or its file.

    applying -> applied -> confirmed          undone: the file is gone
         \\         \\--> rolled back          reported until the next --apply, --confirm or --undo
          \\------------> rolled back
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sojourn.errors import UserError
from sojourn.linux.rtnl import Former

FOLDER = Path("/run/sojourn")
FORMAT = 1


@dataclass(frozen=True)
class ShaperEntry:
    """An interface that was shaped."""

    interface: str
    wanted: Mapping[str, Any]
    """up_bps, down_bps, qdisc and link of the wanted shaper, for display."""
    commands: tuple[str, ...]
    ifb: str | None
    """The IFB that was created."""
    former: Former
    began_s: float
    """When it was applied, time of day."""
    within_s: float
    """The time in which the user must confirm, s."""
    state: str = "applying"
    deadline_s: float | None = None
    """The end of the time to confirm, on the clock of `now`."""
    watchdog: tuple[int, str] | None = None
    """The watchdog's process number and its start time, which distinguishes it from a later process
    with the same number."""
    why: str = ""
    """Why it was rolled back; "": it was not."""
    boot: str = ""
    format: int = FORMAT

    @property
    def watched(self) -> bool:
        """Whether its watchdog is alive."""
        return self.watchdog is not None and started(self.watchdog[0]) == self.watchdog[1]

    @property
    def open(self) -> bool:
        """Whether it is neither confirmed nor rolled back."""
        return self.state in ("applying", "applied")


def now() -> float:
    """Seconds since the boot. This clock runs while a laptop sleeps, and is never set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def process(pid: int) -> tuple[int, str]:
    """A process as an entry names it."""
    return pid, started(pid)


def started(pid: int) -> str:
    """The start time of a process in ticks since the boot, which no later process with its number
    shares. "": there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    # A zombie can't act any more. Field 22 of proc(5) is the start time.
    return "" if fields[0] in "ZX" else fields[19]


def boot() -> str:
    """Identifies the machine's present boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _file(interface: str) -> Path:
    # Interface names are unique within a namespace only.
    return FOLDER / f"{os.stat('/proc/thread-self/ns/net').st_ino}-{interface}.json"


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Holds the lock, so that no other process changes interfaces.

    Raises:
        UserError: the folder can't be written.
    """
    try:
        FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(FOLDER / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserError(
            f"can't write {FOLDER}, where the former state is kept: {error.strerror}",
            "run it as root; in a namespace of your own: mount -t tmpfs none /run",
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def load(interface: str) -> ShaperEntry | None:
    """The interface's entry. None: it was not shaped since the last boot."""
    file = _file(interface)
    try:
        stored = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    except PermissionError:
        raise UserError(f"can't read {file}", "run it as root") from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"can't read {file}: {error}", "inspect it; remove it to forget the former state"
        ) from None
    if stored.get("format") != FORMAT:
        raise UserError(f"{file} was written by another version", "undo it with that version")
    if stored["boot"] != boot():
        return None
    watchdog = stored["watchdog"] and (int(stored["watchdog"][0]), str(stored["watchdog"][1]))
    lists = {"commands": tuple(stored["commands"]), "watchdog": watchdog}
    return ShaperEntry(**{**stored, **lists, "former": Former.from_json(stored["former"])})


def save(entry: ShaperEntry) -> None:
    """Writes the entry to disk before it returns. Call it with the lock held."""
    file = _file(entry.interface)
    values = {**asdict(replace(entry, boot=boot())), "former": entry.former.to_json()}
    temporary = file.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as out:
        json.dump(values, out)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)


def forget(interface: str) -> None:
    """Removes the interface's entry. Call it with the lock held."""
    _file(interface).unlink(missing_ok=True)


def others(interface: str) -> list[str]:
    """Other interfaces of this namespace with an entry."""
    namespace = _file(interface).name.partition("-")[0]
    try:
        names = [file.stem.partition("-")[2] for file in FOLDER.glob(f"{namespace}-*.json")]
    except OSError:
        return []
    return sorted(name for name in names if name != interface)
