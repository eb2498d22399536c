"""The store of finished seeds: a file for each, named by the hash of all that decides its tables.

    ~/.cache/sojourn/seeds/3f0a...   the tables of a seed (Parquet), its numbers, the CPU time it took
                           bound     the limit for all of them, bytes, if one was set
                           tickets   the number of tickets taken since the last count

A file has three parts: the SHA-256 of the second, in digits; a line of JSON; the contents that the
line lists. It is one file, since a short run's eleven tables take longer to open than to read. It
is written under another name and renamed, so a reader gets a complete file or none. A file damaged
by a crash of the machine or a bad disk fails its sum: it is removed when it is requested, and the
seed is run again. So no write has to wait for the disk (fsync).

Counting thousands of files takes longer than a short run. So a process takes a ticket for a 512th
of the bound before it stores that much, and the process that takes the 64th ticket counts. If the
total exceeds seven eighths of the bound, it evicts the least recently used seeds. Each other
running process can exceed the bound by at most a ticket and the seed that it is storing, even if
processes are killed. A file that is removed while another process reads it stays until it is
closed.

The store belongs to one user. A folder that others may write to, or that others own, is not
used. Nothing depends on it. A file that can't be read counts as missing, and a seed that can't be
written is not stored.
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
"""Format of a file; part of every key."""
BOUND = 5 * 10**9
"""Default limit, bytes."""
LEAST_FREE = 10**9
"""Free bytes of the disk; with less, nothing is stored."""
TICKETS = 64
"""Tickets between two counts; each is for `BOUND / (8 * TICKETS)`."""
SHARES = 8
"""The bound is divided into this many shares. A count leaves one share free, and a seed may take
one share at most."""

_KEY = re.compile(r"[0-9a-f]{64}")
_FILES = {SUMS, *(f"{name}.parquet" for name in TABLES)}


@dataclass(frozen=True)
class StoredSeed:
    """A seed in the store."""

    packed: Packed
    cpu_ns: int
    """CPU time of its run."""
    numbers: Mapping[str, bytes] = field(default_factory=dict)
    """The numbers computed from its tables, by the hash of the links, the flows and the code that
    computed them."""


@dataclass(frozen=True)
class Holding:
    """The state of a store."""

    folder: Path
    entries: int
    bytes: int
    bound_bytes: int
    oldest_s: float | None
    """When the least recently used seed was last read or written, in seconds since 1970; None: the
    store is empty."""
    unused: str
    """Why it is not used; empty: it is used."""


class SeedStore:
    """The store of this user.

    Raises:
        UserError: this user's cache folder is not known.
    """

    def __init__(self) -> None:
        try:
            self.folder = places.cache() / "seeds"
        except RuntimeError:
            raise UserError(
                "this user has no home folder, where the store of seeds would be",
                "set XDG_CACHE_HOME to a folder that you can write to",
            ) from None
        self.bound = _bound(self.folder)
        self.unused = _unused(self.folder, self.bound)
        self._room = 0
        """Bytes that may be stored before the next ticket is needed."""
        self._threads = threading.Lock()

    @property
    def usable(self) -> bool:
        """Whether the store is used."""
        return not self.unused

    def take(self, key: str) -> StoredSeed | None:
        """Returns the seed under this key; None: it is missing or damaged."""
        if self.unused:
            return None
        file = self.folder / key
        try:
            content = file.read_bytes()
            # Marks it as recently used: others are evicted first.
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
        """Stores a seed, if there is room for it."""
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
            # The next write would fail, too.
            self.unused = f"can't write there: {error.strerror or error}"

    def holds_any(self) -> bool:
        """Whether there is any seed."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as there:
            return any(_KEY.fullmatch(each.name) for each in there)
        return False

    def holding(self) -> Holding:
        """The state of the store."""
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
        """Removes every seed; returns their number.

        Raises:
            UserError: a file can't be removed.
        """
        return self._cut(0)

    def set_bound(self, size: int) -> int:
        """Sets the limit for all seeds, bytes, and evicts seeds down to it; returns how many it
        evicted. 0: nothing is stored or read.

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
        """Reserves room for `size` more bytes within the bound."""
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
    """Parses a file. Raises ValueError, KeyError, TypeError or RecursionError if it is damaged."""
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
    """The sum of the line, the line, and the position after it."""
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
    """Evicts the least recently used seeds until the store is at most `most` bytes; returns how
    many it evicted."""
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
    """Opens the file of the tickets, which one process at a time may use."""
    file = os.open(folder / "tickets", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        # On a system without such locks the bound is kept less exactly.
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
    """Why a store is not used; empty: it is used."""
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
            return "it belongs to another user"
        if found.st_mode & 0o022:
            return "others may write to it"
    return ""


def _refused(folder: Path, error: OSError) -> UserError:
    return UserError(
        f"can't write to {folder}: {error.strerror or error}",
        "can you write to it? it is in XDG_CACHE_HOME, or in ~/.cache",
    )
