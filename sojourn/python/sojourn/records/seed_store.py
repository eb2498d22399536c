"""Finished seeds, kept for whoever asks for them again: a file for each, by the hash of all that
decides its tables.

    ~/.cache/sojourn/seeds/3f0a...   the tables of a seed (Parquet), its numbers, the CPU time it took
                           bound     how many bytes they may take together, if that was ever said
                           tickets   how much was put since they were last counted

A file has three parts: the SHA-256 of the second, in digits; a line of JSON; what that line lists.
One file, since a short run's eleven tables take longer to open than to read. It is written under
another name and renamed, so a reader has a whole one or none. What a crash of the machine tore, or a
disk spoilt, no sum fits: it is removed when it is asked for, and made anew. So nothing here waits
for the disk (fsync).

To count thousands of files takes longer than a short run. So a process takes a ticket for a 512th
of the bound before it puts that much, and whoever takes the 64th counts: of more than seven eighths
of the bound it removes what was not taken for longest. The sum passes the bound, for each other
process at work, by a ticket and the seed that it is just putting at most, whatever is killed. What is removed while another process reads it stays
until it is closed.

The store is one user's: a folder that others may write to, or that is another's, is not used.
Nothing depends on it. What can't be read is not there, and what can't be written is not kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sojourn import cleanup, places
from sojourn.errors import UserError
from sojourn.records.disk import SUMS, write_whole
from sojourn.records.run import Packed
from sojourn.records.schema import TABLES

FORMAT = 1
"""Of a file; part of every key."""
BOUND = 5 * 10**9
"""Bytes, unless told otherwise."""
LEAST_FREE = 10**9
"""Bytes of the disk: with less nothing is put."""
TICKETS = 64
"""Between two counts; each is for `BOUND / (8 * TICKETS)`."""
SHARES = 8
"""One of so many shares of the bound is left free by a count, and is the most that a seed may
take."""

_KEY = re.compile(r"[0-9a-f]{64}")
_FILES = {SUMS, *(f"{name}.parquet" for name in TABLES)}


@dataclass(frozen=True)
class StoredSeed:
    """What is kept of a seed."""

    packed: Packed
    cpu_ns: int
    """That it took when it was made."""
    numbers: Mapping[str, bytes] = field(default_factory=dict)
    """What was made of its tables, by what made it."""


@dataclass(frozen=True)
class Holding:
    """What a store has."""

    folder: Path
    entries: int
    bytes: int
    bound_bytes: int
    oldest_s: float | None
    """When the seed that was not taken for longest was last taken or put, in seconds since 1970;
    None: there is none."""
    unused: str
    """Why it is not used, in words; empty: it is."""


class SeedStore:
    """The store of this user.

    Raises:
        UserError: nobody knows where this user's files lie.
    """

    def __init__(self) -> None:
        try:
            self.folder = places.cache() / "seeds"
        except RuntimeError:
            raise UserError(
                "this user has no home folder, in which the store would lie",
                "set XDG_CACHE_HOME to a folder of yours",
            ) from None
        self.bound = _bound(self.folder)
        self.unused = _unused(self.folder, self.bound)
        self._room = 0
        """Bytes that may be put before there has to be another ticket."""
        self._threads = threading.Lock()

    @property
    def usable(self) -> bool:
        """Whether anything is taken or put."""
        return not self.unused

    def take(self, key: str) -> StoredSeed | None:
        """What is kept under this key; None: nothing, or nothing whole."""
        if self.unused:
            return None
        file = self.folder / key
        try:
            content = file.read_bytes()
            # It is in use: others go first.
            os.utime(file)
        except OSError:
            return None
        try:
            return _read(key, content)
        except (ValueError, KeyError, TypeError, RecursionError):
            with contextlib.suppress(OSError):
                file.unlink()
            return None

    def put(self, key: str, seed: StoredSeed) -> None:
        """Keeps a seed, if there is room for it."""
        parts = _written(key, seed)
        size = sum(map(len, parts))
        if self.unused or size > self.bound // SHARES:
            return
        try:
            self._reserve(size)
            if self.unused:
                return
            with cleanup.beside(self.folder / key) as temporary:
                with temporary.open("wb", buffering=1 << 20) as file:
                    file.writelines(parts)
                os.replace(temporary, self.folder / key)
        except OSError as error:
            # It would be so for the next one, too.
            self.unused = f"can't write there: {error.strerror or error}"

    def holds_any(self) -> bool:
        """Whether there is a seed, of whatever."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as there:
            return any(_KEY.fullmatch(each.name) for each in there)
        return False

    def holding(self) -> Holding:
        """What there is."""
        found = _entries(self.folder)
        oldest = min((each.used_ns for each in found), default=None)
        return Holding(
            self.folder,
            len(found),
            sum(each.size for each in found),
            self.bound,
            None if oldest is None else oldest / 1e9,
            self.unused,
        )

    def clear(self) -> int:
        """Removes every seed; how many.

        Raises:
            UserError: it can't.
        """
        return self._cut(0)

    def set_bound(self, size: int) -> int:
        """Says how many bytes all of them may take, and removes those that are too many; how many
        it removed. 0: nothing is kept, and nothing taken.

        Raises:
            UserError: it can't be written.
        """
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.folder / "bound", f"{size}\n".encode())
        except OSError as error:
            raise _refused(self.folder, error) from None
        self.bound, self.unused = size, _unused(self.folder, size)
        return self._cut(size)

    def _cut(self, most: int) -> int:
        if not self.folder.is_dir():
            return 0
        try:
            with _locked(self.folder) as tickets:
                removed = _shrink(self.folder, most)
                os.ftruncate(tickets, 0)
        except OSError as error:
            raise _refused(self.folder, error) from None
        return removed

    def _reserve(self, size: int) -> None:
        """Makes sure that the bound has room for so many bytes more."""
        ticket = max(1, self.bound // (SHARES * TICKETS))
        with self._threads:
            if size > self._room:
                more = -(-(size - self._room) // ticket)
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if shutil.disk_usage(self.folder).free < LEAST_FREE:
                    self.unused = f"less than {LEAST_FREE / 1e9:g} GB of its disk is free"
                    return
                with _locked(self.folder) as tickets:
                    if os.fstat(tickets).st_size + more > TICKETS:
                        _shrink(self.folder, self.bound - self.bound // SHARES)
                        os.ftruncate(tickets, 0)
                    os.write(tickets, b"." * more)
                self._room += more * ticket
            self._room -= size


# -------------------------------------------------------------------------------------- the files


def _written(key: str, seed: StoredSeed) -> list[bytes]:
    packed = seed.packed
    about = {
        "key": key,
        "cpu_ns": seed.cpu_ns,
        "checksum": packed.checksum,
        "numbers": [
            [maker, len(content), hashlib.sha256(content).hexdigest()]
            for maker, content in seed.numbers.items()
        ],
        "files": [[name, len(content)] for name, content in packed.files.items()],
    }
    line = json.dumps(about).encode() + b"\n"
    digits = hashlib.sha256(line).hexdigest().encode() + b"\n"
    return [digits, line, *seed.numbers.values(), *packed.files.values()]


def _read(key: str, content: bytes) -> StoredSeed:
    """Raises ValueError or what JSON of another shape gives: it is not whole."""
    digits, line, at = _head(content)
    _same(digits, line)
    about: dict[str, Any] = json.loads(line)
    _check(about["key"] == key)
    numbers: dict[str, bytes] = {}
    for maker, size, digest in about["numbers"]:
        numbers[maker] = content[at : at + size]
        _same(digest, numbers[maker])
        at += size
    files: dict[str, bytes] = {}
    for name, size in about["files"]:
        _check(name in _FILES)
        files[name] = content[at : at + size]
        at += size
    _check(at == len(content))
    _same(about["checksum"], files[SUMS])
    for listed in files[SUMS].decode().splitlines():
        digest, _, name = listed.partition("  ")
        _same(digest, files[name])
    return StoredSeed(Packed(files, about["checksum"]), about["cpu_ns"], numbers)


def _head(content: bytes) -> tuple[str, bytes, int]:
    """The sum of the line, the line, and where that ends."""
    begins = content.index(b"\n") + 1
    ends = content.index(b"\n", begins) + 1
    return content[: begins - 1].decode(), content[begins:ends], ends


def _same(digest: str, content: bytes) -> None:
    _check(hashlib.sha256(content).hexdigest() == digest)


def _check(holds: bool) -> None:
    if not holds:
        raise ValueError("it is damaged")


# ------------------------------------------------------------------------------------- the folder


@dataclass(frozen=True)
class _Entry:
    path: str
    size: int
    used_ns: int


def _entries(folder: Path) -> list[_Entry]:
    found = []
    with contextlib.suppress(OSError), os.scandir(folder) as there:
        for each in there:
            # Another process may have removed it.
            with contextlib.suppress(OSError):
                if _KEY.fullmatch(each.name):
                    stat = each.stat(follow_symlinks=False)
                    found.append(_Entry(each.path, stat.st_size, stat.st_mtime_ns))
    return found


def _shrink(folder: Path, most: int) -> int:
    """Removes seeds, those first that were not taken for longest, until they take so many bytes at
    most; how many."""
    found = sorted(_entries(folder), key=lambda each: each.used_ns)
    total = sum(each.size for each in found)
    removed = 0
    for each in found:
        if total <= most:
            break
        with contextlib.suppress(FileNotFoundError):
            os.unlink(each.path)
        total -= each.size
        removed += 1
    return removed


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[int]:
    """The file of the tickets, which one process has at a time."""
    file = os.open(folder / "tickets", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        # Where there are no such locks the bound is kept less exactly.
        with contextlib.suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _bound(folder: Path) -> int:
    try:
        return max(0, int((folder / "bound").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return BOUND


def _unused(folder: Path, bound: int) -> str:
    """Why a store is not used; empty: it is."""
    if bound == 0:
        return "its bound is 0"
    try:
        found = folder.stat()
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"can't read it: {error.strerror or error}"
    if hasattr(os, "geteuid"):
        if found.st_uid != os.geteuid():
            return "it is another user's"
        if found.st_mode & 0o022:
            return "others may write to it"
    return ""


def _refused(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"can't write to {folder}: {error.strerror or error}",
        "is it yours? XDG_CACHE_HOME says in which folder it lies",
    )
