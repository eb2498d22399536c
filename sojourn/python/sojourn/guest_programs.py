"""Programs of the host that a scenario runs in the kernel's guest, on nodes or as the ends of
flows. This module handles the permission to run them, and the records that a Run keeps of them.

A scenario with programs is code. It runs only after `allow_programs()`, which is called for
`--allow-programs` or after an answer on the terminal. The guest confines the programs
(crates/guest, programs.rs).

A seed's folder has the output of each program (`NAME.out`) and `programs.json`. This file says how
each program ended, and what they read of the host. It has the SHA-256 of each file that they opened
and of the listing of each folder that they listed, and the targets of the links that they followed.
Of each path that they looked up it says whether the path exists, and its mode, owner, size and time.
A program in the guest sees nothing else of a file (engine/kernel/linux/README.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import sanitize
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.records import Run
    from sojourn.scenario.realised import Realised

RECORD = "programs.json"
"""The file in a seed's folder that describes its programs."""
OUTPUT = ".out"
"""The suffix of the files with what they printed."""
MOST_OUTPUT_BYTES = 16 << 20
"""The most bytes that the programs of a run may print together (crates/guest, programs.rs)."""
MOST_RECORD_BYTES = 64 << 20
MOST_COMMANDS = 10
"""The most commands that a refusal shows."""

_allowed = False


def allow_programs() -> None:
    """Allows this process to run the programs of scenarios."""
    global _allowed
    _allowed = True


def allowed() -> bool:
    """Whether this process may run the programs of scenarios."""
    return _allowed


def commands(runs: Iterable[Realised]) -> list[str]:
    """The different programs of these runs: "node home: sh rate.sh", "host at net: iperf3 -s"."""
    lines = (
        sanitize.plain(
            f"{'node' if program.end is None else 'host at'} {program.node}: {program.command}"
        )
        for run in runs
        for program in run.programs
    )
    return list(dict.fromkeys(lines))


def shown(lines: Sequence[str], most: int = MOST_COMMANDS) -> str:
    """These programs, each indented on a line, with the number of those left out."""
    more = [f"and {len(lines) - most} more"] if len(lines) > most else []
    return "\n".join(f"  {line}" for line in [*lines[:most], *more])


def require(runs: Iterable[Realised]) -> None:
    """Refuses runs with programs unless they are allowed.

    Raises:
        UserError: they are not allowed. The message shows the commands.
    """
    if _allowed or not (lines := commands(runs)):
        return
    raise UserError(
        f"the scenario runs programs of this host in the guest:\n{shown(lines)}",
        "allow it with --allow-programs (Python: sojourn.allow_programs()), if you trust the scenario",
    )


# -------------------------------------------------------------------------------------- the record


@dataclass(frozen=True)
class Ended:
    """How a program ended."""

    name: str
    node: str
    command: str
    started_ns: int | None
    """None: it was not started."""
    status: int | None
    """Its exit status; None: it had not ended, or a signal ended it."""
    signal: int | None
    output: str
    """What it printed, as a file of the seed's folder."""
    output_bytes: int

    @property
    def how(self) -> str:
        """How it ended, in words."""
        if self.started_ns is None:
            return "not started"
        if self.signal is not None:
            return f"ended by signal {self.signal}"
        return "running at the end" if self.status is None else f"status {self.status}"


@dataclass(frozen=True)
class ProgramRecord:
    """What a seed's folder has of its programs."""

    programs: tuple[Ended, ...]
    files: Mapping[str, str]
    """The SHA-256 of each file of the host that they opened; empty: the file could not be read
    after the run."""
    links: Mapping[str, str]
    """The symbolic links that they followed, each with its target."""
    folders: Mapping[str, str]
    """The SHA-256 of the listing of each folder of the host that they listed."""
    paths: Mapping[str, str]
    """Each path of the host that they looked up, as `_looked_up` describes it; empty: the path did
    not exist."""


def files_of(
    realised: Realised,
    ended: Sequence[Mapping[str, Any]],
    printed: Mapping[str, bytes],
    read: Iterable[tuple[str, str]],
) -> dict[str, bytes]:
    """The files of a seed's folder. `ended`: the guest's record of how each program ended, in their
    order. `read`: what they read of the host, a letter of `_READ` and a path for each."""
    programs = [
        {
            "name": program.name,
            "node": program.node,
            "command": program.command,
            "started_ns": each["started_ns"],
            "status": each["status"],
            "signal": each["signal"],
            "output": program.name + OUTPUT,
            "output_bytes": len(printed[program.name]),
        }
        for program, each in zip(realised.programs, ended, strict=True)
    ]
    things = sorted(set(read))
    record: dict[str, Any] = {"programs": programs}
    for wanted, (key, describe) in _READ.items():
        record[key] = {_written(path): describe(path) for kind, path in things if kind == wanted}
    text = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
    return {
        RECORD: text.encode(),
        **{name + OUTPUT: content for name, content in printed.items()},
    }


def _sum(path: str) -> str:
    """The SHA-256 of a regular file; empty: it can't be read. A record may come from anywhere and
    name a device without an end, so only regular files are read."""
    digest = hashlib.sha256()
    try:
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                return ""
            left = about.st_size
            while left > 0 and (part := file.read(min(left, 1 << 20))):
                digest.update(part)
                left -= len(part)
    except OSError:
        return ""
    return digest.hexdigest()


def _target(path: str) -> str:
    try:
        return _written(os.readlink(path))
    except OSError:
        return ""


def _written(path: str) -> str:
    """A path in a record: one with a backslash, a control character or bytes that are no UTF-8 has
    Python's escapes."""
    if path.isprintable() and "\\" not in path:
        return path
    return path.encode("unicode_escape").decode()


def _meant(written: str) -> str:
    """The inverse of `_written`.

    Raises:
        ValueError: an escape is not whole.
    """
    return written.encode("ascii").decode("unicode_escape") if "\\" in written else written


def _listing(path: str) -> str:
    """The SHA-256 of the names in a folder, each with its kind; empty: it can't be listed."""
    try:
        with os.scandir(os.fsencode(path)) as entries:
            lines = sorted((entry.name, _kind(entry)) for entry in entries)
    except OSError:
        return ""
    return hashlib.sha256(b"".join(name + b"\0" + kind for name, kind in lines)).hexdigest()


def _kind(entry: os.DirEntry[bytes]) -> bytes:
    if entry.is_symlink():
        return b"link"
    if entry.is_dir(follow_symlinks=False):
        return b"folder"
    return b"file" if entry.is_file(follow_symlinks=False) else b"other"


def _looked_up(path: str) -> str:
    """What a program sees of a path without opening it: its mode and owner, and of anything but a folder
    its size and time, "100644 0:0 1234 1700000000.000000000"; empty: there is nothing."""
    try:
        about = os.lstat(path)
    except (OSError, ValueError):
        return ""
    shown = f"{about.st_mode:o} {about.st_uid}:{about.st_gid}"
    if stat.S_ISDIR(about.st_mode):
        return shown
    return f"{shown} {about.st_size} {about.st_mtime_ns // 10**9}.{about.st_mtime_ns % 10**9:09}"


_READ: Mapping[str, tuple[str, Callable[[str], str]]] = {
    "f": ("files", _sum),
    "l": ("links", _target),
    "d": ("folders", _listing),
    "s": ("paths", _looked_up),
}
"""What the guest's kernel lists, by its letter: the key in the record, and what is recorded."""


def read(run: Run, seed: int) -> ProgramRecord | None:
    """What a Run keeps of the programs of a seed; None: the scenario had none.

    Raises:
        RunError: the file is damaged.
    """
    text = run.file(RECORD, seed, MOST_RECORD_BYTES)
    if text is None:
        return None
    from sojourn.records.disk import damaged

    try:
        found = sanitize.plain_values(sanitize.read_json(text))
        programs = tuple(Ended(**each) for each in found["programs"])
        # A record of an older version has files and links alone.
        things = {
            key: {_meant(path): value for path, value in dict(found.get(key, {})).items()}
            for key, _ in _READ.values()
        }
        for each in programs:
            if not re.fullmatch(r"[^/\0]+", each.output) or type(each.output_bytes) is not int:
                raise ValueError
    except (ValueError, KeyError, TypeError):
        raise damaged(run.path / f"seed-{seed}" / RECORD, "it does not describe programs") from None
    return ProgramRecord(programs, **things)


def output_of(run: Run, seed: int, program: Ended) -> str:
    """What a program printed."""
    content = run.file(program.output, seed, MOST_OUTPUT_BYTES)
    return sanitize.plain((content or b"").decode(errors="replace"), lines=True)


def changed(run: Run) -> list[str]:
    """The paths of this host that a program of the Run read and that have changed since: files,
    links, folders' listings, and paths that it only looked up."""
    found: dict[str, None] = {}
    records = [record for seed in run.seeds if (record := read(run, seed)) is not None]
    for key, describe in _READ.values():
        # Seeds mostly read the same.
        now = cache(describe)
        for record in records:
            then: Mapping[str, str] = getattr(record, key)
            found |= {path: None for path, value in then.items() if now(path) != value}
    return list(found)


def read_paths(lines: str, folders: Sequence[Path], mark: str) -> list[tuple[str, str]]:
    """The paths that the guest's kernel lists: "f .../MARK/0/bin/sh" is bin/sh in the first
    folder."""
    paths = []
    for line in lines.splitlines():
        kind, _, path = line.partition(" ")
        inside = re.search(rf"/{mark}/(\d+)(/.*)?\Z", _unescaped(path), re.DOTALL)
        if inside is not None:
            folder = folders[int(inside[1])]
            paths.append((kind, (str(folder) + (inside[2] or "")).rstrip("/") or "/"))
    return paths


def _unescaped(path: str) -> str:
    """The path itself: the kernel writes a newline and a backslash in it as octal numbers."""
    return re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), path)
