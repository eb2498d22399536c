"""Finds and removes the files that a killed process leaves on disk.

Each process has a folder in the user's state folder. It contains a file `owner`, which the process
keeps locked (flock), and a symbolic link to each file or folder that would outlive a kill -9. These
are temporary folders, and half-written files beside those that they will replace. A link is made
before its target and removed after it. The kernel releases the lock of a process however the
process ends, so a folder with a free lock belongs to a dead process. Each process that makes its
folder first removes the targets of dead processes' links, silently; `sojourn clean` does the same
and prints them.

Processes need no such record. Guests, and builds of guests, die with the thread that started them
(PR_SET_PDEATHSIG). A child that was stopped at that moment is killed when the guest's folder is
removed. If the process's own folder can't be made (a home that can't be written), the process works
without it and removes its files at the end.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sojourn import places

OWNER = "owner"
_OURS = re.compile(r"(sojourn-|\..+\.)[0-9a-f]{16}")
"""Matches the names of temporary folders and half-written files."""
UML = "linux-um"
"""The program of the built guest's kernel."""
_TOKEN = 16
"""Hexadecimal digits at the end of such a name: 64 random bits avoid collisions."""


@dataclass(frozen=True)
class Cleaned:
    """The result of `clean`."""

    removed: tuple[Path, ...]
    left: tuple[tuple[Path, str], ...]
    """Files of dead processes that can't be removed, with the reason."""
    living: tuple[str, ...]
    """Running processes, this one too, each with its number and command."""


def make_folder() -> Path:
    """Makes a temporary folder, for `remove_folder` to remove."""
    folder = Path(tempfile.gettempdir()).resolve() / f"sojourn-{os.urandom(_TOKEN // 2).hex()}"
    _note(folder)
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        _strike(folder)
        raise
    return folder


def remove_folder(folder: Path) -> None:
    """Removes a folder of `make_folder` and its content."""
    shutil.rmtree(folder, ignore_errors=True)
    _strike(folder)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A temporary folder, which is removed at the end."""
    folder = make_folder()
    try:
        yield folder
    finally:
        remove_folder(folder)


@contextlib.contextmanager
def beside(final: Path) -> Iterator[Path]:
    """A name for a file or folder that will replace `final` in one step. It is removed at the end
    if it still exists."""
    half = final.with_name(f".{final.name}.{os.urandom(_TOKEN // 2).hex()}").absolute()
    _note(half)
    try:
        yield half
    finally:
        if half.is_dir():
            shutil.rmtree(half, ignore_errors=True)
        else:
            half.unlink(missing_ok=True)
        _strike(half)


def place() -> Path:
    """The folder that contains the folders of the processes."""
    return places.state() / "running"


def clean() -> Cleaned:
    """Removes the files of processes that have ended.

    Raises:
        OSError: the folder can't be read or written.
    """
    removed: list[Path] = []
    left: list[tuple[Path, str]] = []
    living: list[str] = []
    for folder in sorted(place().iterdir()) if place().exists() else ():
        if not folder.is_dir():
            continue
        try:
            lock = _locked(folder)
            if lock is None:
                living.append((folder / OWNER).read_text(errors="replace"))
                continue
        except OSError as error:
            # The process has just ended and removed its folder.
            if folder.exists():
                left.append((folder, error.strerror or str(error)))
            continue
        try:
            for link in sorted(folder.iterdir()):
                if link.name == OWNER:
                    continue
                thing = folder
                try:
                    thing = Path(os.readlink(link))
                    if _removed(thing):
                        removed.append(thing)
                    link.unlink()
                except OSError as error:
                    left.append((thing, error.strerror or str(error)))
            _end(folder)
        finally:
            os.close(lock)
    return Cleaned(tuple(removed), tuple(left), tuple(living))


def _removed(thing: Path) -> bool:
    """Removes a file or a folder; False: it does not exist. Raises OSError if it can't be removed,
    or if sojourn would not have made it."""
    if not thing.is_absolute() or not _OURS.fullmatch(thing.name):
        raise OSError("sojourn makes no file or folder with such a name")
    try:
        found = thing.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if found.st_uid != os.geteuid():
        raise OSError("it belongs to another user")
    if thing.is_dir() and not thing.is_symlink():
        _end_guests(thing)
        shutil.rmtree(thing)
    else:
        thing.unlink()
    return True


def _end_guests(folder: Path) -> None:
    """Kills the processes that a guest has left in a folder. At its start user-mode Linux tests the
    host's ptrace with children that stop themselves. If it is killed at that moment, such a child
    remains."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            guest = Path(os.readlink(process / "exe")).name == UML
            if guest and Path(os.readlink(process / "cwd")).is_relative_to(folder):
                os.kill(int(process.name), signal.SIGKILL)


def _locked(folder: Path) -> int | None:
    """Locks a process's folder, until the lock is closed; None: its process runs, or another
    process is cleaning up.

    Raises:
        OSError: it can't be opened.
        ImportError: this system has no such locks.
    """
    import fcntl

    lock = os.open(folder / OWNER, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    if os.fstat(lock).st_nlink == 0:
        # The process that held the lock has removed the folder meanwhile.
        os.close(lock)
        return None
    return lock


def _end(folder: Path) -> None:
    """Removes a process's folder, whose lock the caller holds, unless a link is left."""
    if {each.name for each in folder.iterdir()} <= {OWNER}:
        (folder / OWNER).unlink(missing_ok=True)
        folder.rmdir()


class _Own:
    """The folder of this process, made with its first link."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.folder: Path | None = None
        with contextlib.suppress(OSError, ImportError, RuntimeError):
            clean()
            lock = None
            while lock is None:
                folder = place() / os.urandom(_TOKEN // 2).hex()
                folder.mkdir(mode=0o700, parents=True)
                # Until the folder is locked, another process may take it for a dead process's
                # folder.
                with contextlib.suppress(FileNotFoundError):
                    lock = _locked(folder)
            os.write(lock, f"process {self.pid}: {shlex.join(sys.argv)}".encode(errors="replace"))
            self.folder = folder
            # Finalizers run in reverse order, so this one runs after those of the Runs, which were
            # made later.
            weakref.finalize(self, _end_own, self.pid, folder, lock)

    def link(self, thing: Path) -> Path | None:
        return self.folder / thing.name[-_TOKEN:] if self.folder is not None else None


def _end_own(pid: int, folder: Path, lock: int) -> None:
    # A link that is left belongs to a forgotten file; another process will remove it.
    if pid == os.getpid():
        with contextlib.suppress(OSError):
            _end(folder)
        os.close(lock)


_own: _Own | None = None
_owning = threading.RLock()


def _note(thing: Path) -> None:
    global _own
    with _owning:
        # A forked child needs a folder of its own.
        if _own is None or _own.pid != os.getpid():
            _own = _Own()
        link = _own.link(thing)
    if link is not None:
        with contextlib.suppress(OSError):
            link.symlink_to(thing)


def _strike(thing: Path) -> None:
    if _own is not None and _own.pid == os.getpid() and (link := _own.link(thing)) is not None:
        with contextlib.suppress(OSError):
            link.unlink(missing_ok=True)
