"""What a process of ours would leave behind if it were killed, on disk, so that another one can remove it.

Each process has an entry: a file in the user's state folder, of JSON lines. The first says whose it is; then comes a line for each thing
that would outlive a kill -9, written before the thing is made, and one when it is gone. At the end of the process its entry goes.

    folder    a temporary folder: a Run that nobody keeps, the working folder of a guest
    half      what is being written beside the file or folder that it is to replace
    program   a process that carries out a plan, with all its group; written as soon as it has a number

Living is whoever holds the lock (flock) on his entry: the kernel takes it from a process however that ends, and from nobody else. A number
of a process would not do: it may be another's by now, and is nobody's in another container or on another machine with the same home. A
program holds no lock. It is known by its number, when it was started, on which boot and in which namespace, all of which must be as noted.

Whoever makes an entry removes first, without a word, what dead ones name; `sojourn netns clean` does the same and tells. Where there can
be no entry (a home that can't be written) work goes on without one: what is to be removed at its end still is.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

FORMAT = 1
LOCK = "lock"
PATIENCE_S = 10.0
"""For a program that was killed to be gone."""

Kind = Literal["folder", "half", "program"]


@dataclass(frozen=True)
class Thing:
    """Something that outlives a kill -9 of its maker."""

    kind: Kind
    name: str
    """A path, or a number of a process."""
    mark: str = ""
    """What the process is known by, beside its number."""

    def __str__(self) -> str:
        return f"process {self.name}" if self.kind == "program" else self.name


@dataclass(frozen=True)
class Entry:
    """A process and what it would leave behind."""

    file: Path
    pid: int
    command: str
    began_s: float
    """Time of day."""
    things: tuple[Thing, ...]
    living: bool
    """It holds its lock."""


@dataclass(frozen=True)
class Unreadable:
    """A file among the entries that is none."""

    file: Path
    why: str


@dataclass(frozen=True)
class Cleaned:
    """What became of the entries."""

    removed: tuple[Thing, ...]
    """What was there and is not any more."""
    left: tuple[tuple[Thing, str], ...]
    """What dead ones have left and can't be removed, and why."""
    living: tuple[Entry, ...]
    unreadable: tuple[Unreadable, ...]


# ------------------------------------------------------------------------------------------------ what is to be gone


def make_folder() -> Path:
    """A new temporary folder, for `remove_folder` to remove."""
    # Its name can be noted before it is made: 64 bits of luck meet nobody else's.
    folder = Path(tempfile.gettempdir()).resolve() / f"sojourn-{secrets.token_hex(8)}"
    thing = Thing("folder", str(folder))
    _note(thing)
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        _strike(thing)
        raise
    return folder


def remove_folder(folder: Path) -> None:
    """Removes a folder of `make_folder`, with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    _strike(Thing("folder", str(folder)))


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
    """A name for what is to replace the file or folder `final` in one step. What is still there at the end is removed."""
    half = final.with_name(f".{final.name}.{secrets.token_hex(8)}")
    thing = Thing("half", str(half.absolute()))
    _note(thing)
    try:
        yield half
    finally:
        _remove(half)
        _strike(thing)


@contextlib.contextmanager
def program(pid: int) -> Iterator[None]:
    """A process of ours, the leader of its group, is at work meanwhile."""
    thing = Thing("program", str(pid), _mark(pid))
    _note(thing)
    try:
        yield
    finally:
        _strike(thing)


# ------------------------------------------------------------------------------------------------------- processes


def started(pid: int) -> str:
    """When a process was started, in ticks since the boot: no other with its number has the same. Empty: there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = text.rpartition(")")[2].split()
    # A zombie does nothing any more. Field 22 of proc(5) is the start.
    return "" if fields[0] in "ZX" else fields[19]


def boot() -> str:
    """Which boot of which machine this is."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _mark(pid: int) -> str:
    """What a process is known by; empty: there is none, or no telling."""
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
        return f"{boot()} {space} {start}" if (start := started(pid)) else ""
    except OSError:
        return ""


# ------------------------------------------------------------------------------------------------------- this process


class _Own:
    """The entry of this process, from the first thing on."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._things: list[Thing] = []
        # Reentrant: a Run that is collected as garbage removes its folder wherever this thread happens to be.
        self._guard = threading.RLock()
        self._file: int | None = None
        with contextlib.suppress(OSError, ImportError, RuntimeError), _locked() as place:
            _clean(place)
            path = place / f"{self.pid}-{secrets.token_hex(4)}.jsonl"
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
            _take(file)
            head = {
                "format": FORMAT,
                "pid": self.pid,
                "command": shlex.join(sys.argv),
                "began_s": time.time(),
            }
            self._head_bytes = os.write(file, _line(head))
            self._file = file
            # Finalizers run in reverse order: after those of the Runs, which were made later.
            weakref.finalize(self, _end_entry, self.pid, path, file, self._things)

    def note(self, thing: Thing) -> None:
        """It will be there."""
        with self._guard:
            self._things.append(thing)
            self._write(asdict(thing))

    def strike(self, thing: Thing) -> None:
        """It is gone."""
        with self._guard:
            if thing not in self._things:
                return
            self._things.remove(thing)
            self._write({**asdict(thing), "gone": True})
            # Thousands of seeds make a file no longer.
            if not self._things and self._file is not None:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, self._head_bytes)

    def _write(self, words: dict[str, Any]) -> None:
        # One call is one line, also where others write. A kill -9 does not take from the kernel what it was given: no fsync.
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.write(self._file, _line(words))


_own: _Own | None = None
_owning = threading.RLock()


def _note(thing: Thing) -> None:
    global _own
    with _owning:
        # A child that was forked is a process of its own.
        if _own is None or _own.pid != os.getpid():
            _own = _Own()
        own = _own
    own.note(thing)


def _strike(thing: Thing) -> None:
    if _own is not None and _own.pid == os.getpid():
        _own.strike(thing)


def _end_entry(pid: int, path: Path, file: int, things: list[Thing]) -> None:
    # What is still there then has been forgotten: the entry stays, for others to see to it.
    if pid == os.getpid():
        with contextlib.suppress(OSError):
            if not things:
                path.unlink(missing_ok=True)
            os.close(file)


def _line(words: dict[str, Any]) -> bytes:
    return (json.dumps(words) + "\n").encode()


# ------------------------------------------------------------------------------------------------------- all processes


def place() -> Path:
    """The folder of the entries."""
    home = os.environ.get("XDG_STATE_HOME", "")
    # An XDG folder that is not absolute is to be ignored, says its specification.
    base = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state"
    return base / "sojourn" / "running"


def entries() -> tuple[list[Entry], list[Unreadable]]:
    """All there are; changes nothing.

    Raises:
        OSError: the folder can't be read.
    """
    if not place().exists():
        return [], []
    with _locked() as folder:
        return _entries(folder)


def clean() -> Cleaned:
    """Ends programs and removes files of processes that are gone.

    Raises:
        OSError: the folder can't be read or written.
    """
    if not place().exists():
        return Cleaned((), (), (), ())
    with _locked() as folder:
        return _clean(folder)


@contextlib.contextmanager
def _locked() -> Iterator[Path]:
    """The folder of the entries. Nobody else makes one or removes what they name meanwhile.

    Raises:
        OSError: it can't be written.
        ImportError: this system has no such locks.
    """
    import fcntl

    folder = place()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(lock)


def _take(file: int) -> bool:
    """Takes the lock of an entry, unless its process lives."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _entries(folder: Path) -> tuple[list[Entry], list[Unreadable]]:
    found: list[Entry] = []
    unreadable: list[Unreadable] = []
    for file in sorted(folder.glob("*.jsonl")):
        try:
            found.append(_read(file))
        except FileNotFoundError:
            # Its process has just ended.
            continue
        except OSError as error:
            unreadable.append(Unreadable(file, error.strerror or str(error)))
        except ValueError as error:
            unreadable.append(Unreadable(file, str(error)))
    return found, unreadable


def _read(file: Path) -> Entry:
    """The entry in a file. Raises OSError; ValueError: it is none, and why."""
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as stream:
        living = not _take(handle)
        content = stream.read()
    # What comes after the last end of a line was being written when its process was killed: nothing had been made by then.
    lines = content.split(b"\n")[:-1]
    entry = Entry(file, 0, "", 0.0, (), living)
    things: list[Thing] = []
    for number, line in enumerate(lines, start=1):
        try:
            words = json.loads(line)
            if number == 1:
                entry = _with_head(entry, **words)
                continue
            gone = words.pop("gone", False)
            thing = _thing(**words)
        except _VersionError:
            raise ValueError("another version of sojourn wrote it") from None
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            raise ValueError(f"line {number} is damaged") from None
        if not gone:
            things.append(thing)
        elif thing in things:
            things.remove(thing)
    return replace(entry, things=tuple(things))


class _VersionError(Exception):
    pass


def _with_head(entry: Entry, format: int, **words: Any) -> Entry:
    if format != FORMAT:
        raise _VersionError
    began_s = float(words["began_s"])
    # Raises what speaks against its being a time of day.
    time.localtime(began_s)
    return replace(entry, pid=int(words["pid"]), command=str(words["command"]), began_s=began_s)


def _thing(kind: Kind, name: str, mark: str) -> Thing:
    if kind not in get_args(Kind) or not isinstance(mark, str):
        raise ValueError
    if kind == "program":
        int(name)
    elif b"\0" in os.fsencode(name):
        raise ValueError
    return Thing(kind, name, mark)


def _clean(folder: Path) -> Cleaned:
    found, unreadable = _entries(folder)
    removed: list[Thing] = []
    left: list[tuple[Thing, str]] = []
    for entry in found:
        if entry.living:
            continue
        stays = False
        # Programs first: they write into the folders.
        for thing in sorted(entry.things, key=lambda each: each.kind != "program"):
            try:
                if _end(thing) if thing.kind == "program" else _remove_remains(thing):
                    removed.append(thing)
            except OSError as error:
                stays = True
                left.append((thing, error.strerror or str(error)))
        if not stays:
            entry.file.unlink(missing_ok=True)
    living = tuple(entry for entry in found if entry.living)
    return Cleaned(tuple(removed), tuple(left), living, tuple(unreadable))


def _end(thing: Thing) -> bool:
    """Ends a program and all its group; False: it has ended, or its number is another's. Raises OSError."""
    pid = int(thing.name)
    if not thing.mark or _mark(pid) != thing.mark:
        return False
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    due = time.monotonic() + PATIENCE_S
    while _mark(pid) == thing.mark:
        if time.monotonic() > due:
            raise OSError(f"it was killed, and has not ended within {PATIENCE_S:g} s")
        time.sleep(0.01)
    return True


_NAMES = {"folder": re.compile(r"sojourn-[0-9a-f]{16}"), "half": re.compile(r"\..+\.[0-9a-f]{16}")}
"""What we call them."""


def _remove_remains(thing: Thing) -> bool:
    """Removes a file or a folder; False: it is not there. Raises OSError: it can't be, or is not one that we would have made."""
    path = Path(thing.name)
    if not path.is_absolute() or not _NAMES[thing.kind].fullmatch(path.name):
        raise OSError("we give nothing such a name")
    try:
        what = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if what.st_uid != os.geteuid():
        raise OSError("it is another user's")
    if stat.S_ISDIR(what.st_mode):
        shutil.rmtree(path)
    else:
        path.unlink()
    return True


def _remove(path: Path) -> None:
    """Whatever is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
