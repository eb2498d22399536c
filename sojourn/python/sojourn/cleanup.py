"""What a process of ours would leave behind on disk if it were killed, so that another one can
remove it.

Each process has a folder in the user's state folder, with a file `owner` that it keeps locked
(flock), and a symbolic link to each thing that would outlive a kill -9: temporary folders, and what
is being written beside the file or folder that it is to replace. The link is made before the thing
and removed after it. The kernel takes a lock from a process however that ends, so a folder whose
lock is free is a dead process's: whoever makes a folder first removes, without a word, what the
links of dead ones lead to; `sojourn clean` does the same and tells.

Processes need no note: guests, and what makes one, die with the thread that started them
(PR_SET_PDEATHSIG), and what of one was stopped at that moment ends when its folder is removed.
Where there can be no folder (a home that can't be written) work goes on without one: what is to be
removed at its end still is.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
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
"""What we call temporary folders, and what is half written."""
UML = "linux-um"
"""The kernel of the built guest, as a program."""
_TOKEN = 16
"""Hexadecimal digits at the end of such a name: 64 random bits meet nobody else's."""


@dataclass(frozen=True)
class Cleaned:
    """What became of what processes would leave."""

    removed: tuple[Path, ...]
    left: tuple[tuple[Path, str], ...]
    """What dead ones have left and can't be removed, and why."""
    living: tuple[str, ...]
    """Processes that live, each with its number and command; this one too."""


def make_folder() -> Path:
    """A new temporary folder, for `remove_folder` to remove."""
    folder = Path(tempfile.gettempdir()).resolve() / f"sojourn-{secrets.token_hex(_TOKEN // 2)}"
    _note(folder)
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        _strike(folder)
        raise
    return folder


def remove_folder(folder: Path) -> None:
    """Removes a folder of `make_folder`, with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    _strike(folder)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A temporary folder, gone at the end."""
    folder = make_folder()
    try:
        yield folder
    finally:
        remove_folder(folder)


@contextlib.contextmanager
def beside(final: Path) -> Iterator[Path]:
    """A name for what is to replace the file or folder `final` in one step. What is still there at
    the end is removed."""
    half = final.with_name(f".{final.name}.{secrets.token_hex(_TOKEN // 2)}").absolute()
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
    """The folder of the processes' folders."""
    return places.state() / "running"


def clean() -> Cleaned:
    """Removes what processes that are gone have left.

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
            # One that has just ended has taken its folder along.
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
    """Removes a file or a folder; False: it is not there. Raises OSError: it can't be, or is not
    one that we would have made."""
    if not thing.is_absolute() or not _OURS.fullmatch(thing.name):
        raise OSError("we give nothing such a name")
    try:
        found = thing.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if found.st_uid != os.geteuid():
        raise OSError("it is another user's")
    if thing.is_dir() and not thing.is_symlink():
        _end_guests(thing)
        shutil.rmtree(thing)
    else:
        thing.unlink()
    return True


def _end_guests(folder: Path) -> None:
    """Ends what is left of a guest there. A UML tries its host's ptrace as it begins, with children
    that stop themselves; one that is killed then leaves such a child behind."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            guest = Path(os.readlink(process / "exe")).name == UML
            if guest and Path(os.readlink(process / "cwd")).is_relative_to(folder):
                os.kill(int(process.name), signal.SIGKILL)


def _locked(folder: Path) -> int | None:
    """The lock of a process's folder, held until it is closed; None: its process lives, or another
    one is cleaning up.

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
        # Whoever held it has removed it meanwhile.
        os.close(lock)
        return None
    return lock


def _end(folder: Path) -> None:
    """Removes a process's folder by whoever has its lock, unless a link is left."""
    if {each.name for each in folder.iterdir()} <= {OWNER}:
        (folder / OWNER).unlink(missing_ok=True)
        folder.rmdir()


class _Own:
    """The folder of this process, from the first thing on."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.folder: Path | None = None
        with contextlib.suppress(OSError, ImportError, RuntimeError):
            clean()
            lock = None
            while lock is None:
                folder = place() / secrets.token_hex(_TOKEN // 2)
                folder.mkdir(mode=0o700, parents=True)
                # Before it is locked another one may take it for a dead process's.
                with contextlib.suppress(FileNotFoundError):
                    lock = _locked(folder)
            os.write(lock, f"process {self.pid}: {shlex.join(sys.argv)}".encode(errors="replace"))
            self.folder = folder
            # Finalizers run in reverse order: after those of the Runs, which were made later.
            weakref.finalize(self, _end_own, self.pid, folder, lock)

    def link(self, thing: Path) -> Path | None:
        return self.folder / thing.name[-_TOKEN:] if self.folder is not None else None


def _end_own(pid: int, folder: Path, lock: int) -> None:
    # What is still there then has been forgotten: its link stays, for others to see to it.
    if pid == os.getpid():
        with contextlib.suppress(OSError):
            _end(folder)
        os.close(lock)


_own: _Own | None = None
_owning = threading.RLock()


def _note(thing: Path) -> None:
    global _own
    with _owning:
        # A child that was forked is a process of its own.
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
