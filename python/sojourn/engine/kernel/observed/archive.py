"""What a guest measured: its archive, read.

A tar of columns and an index that names them (crates/guest, results.rs). Nothing is concluded here;
`doubts` says what the measurement itself has lost.
"""

import json
import math
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.arrays import Ints
from sojourn.engine.kernel.guest.endings import GuestError

FORMAT = 2
"""Of the archive."""
NEVER = -1
"""No such time, no such number."""
MOST_STEP_NS = 100_000
"""A clock of the day that others set drifts by a few ns; the taps' times are its."""
_TYPES = {"i64": "<i8", "i32": "<i4", "u8": "u1", "f64": "<f8"}


@dataclass(frozen=True)
class Archive:
    """What a guest measured."""

    index: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, Ints]]
    """Whole numbers; sums that may pass 64 bits are reals."""
    blob: bytes = b""
    """The disciplines' own numbers, as the kernel lays them out."""
    check: "Archive | None" = None
    """Of the self-check that came before."""

    @classmethod
    def read(cls, path: Path) -> "Archive":
        """The archive in this file.

        Raises:
            GuestError: it is not there, or not whole.
        """
        try:
            with tarfile.open(path, "r:") as tar:
                files = {member.name: _content(tar, member) for member in tar.getmembers()}
            index = json.loads(files["index.json"])
            if index["format"] != FORMAT:
                raise GuestError(
                    f"{path} has the format {index['format']}, and this is for {FORMAT}",
                    "the guest's program is of another version: sojourn kernel setup --again",
                )
            found = cls._of(index, files)
        except (OSError, tarfile.TarError, KeyError, ValueError, TypeError) as error:
            raise GuestError(
                f"{path} is no whole archive of results: {error}", "run it again"
            ) from None
        return found

    @classmethod
    def _of(cls, index: Mapping[str, Any], files: Mapping[str, bytes]) -> "Archive":
        """The part of an archive that this index describes; the self-check's files have `check/` in
        front."""
        tables = {name: _table(name, about, files) for name, about in index["tables"].items()}
        check = None
        if "check" in index:
            inside = {
                name.removeprefix("check/"): text
                for name, text in files.items()
                if name.startswith("check/")
            }
            check = cls._of(index["check"], inside)
        return cls(index, tables, files.get("qdisc/blob", b""), check)

    def rows(self, table: str, key: str, value: int) -> dict[str, Ints]:
        """The rows of a table in which a column has this value."""
        columns = self.tables[table]
        chosen = columns[key] == value
        return {name: column[chosen] for name, column in columns.items()}


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    content = b"" if stream is None else stream.read()
    if len(content) != member.size:
        raise ValueError(f"{member.name} is cut off")
    return content


def _table(name: str, about: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Ints]:
    table = {}
    for column in about["columns"]:
        values = np.frombuffer(files[f"{name}/{column['name']}"], dtype=_TYPES[column["type"]])
        if len(values) != about["rows"]:
            raise ValueError(f"{name}/{column['name']} has {len(values)} rows of {about['rows']}")
        table[column["name"]] = values if column["type"] == "f64" else values.astype(np.int64)
    return table


def doubts(archive: Archive) -> list[str]:
    """Why what was measured may not be right: each a sentence. None: nothing was lost on the
    way."""
    found = []
    index = archive.index
    for tap in index["taps"]:
        for stage in tap["stages"]:
            if stage["lost_records"]:
                found.append(
                    f"link {tap['link']}: {stage['name']!r} lost {stage['lost_records']} packets' records"
                )
            if stage["unexpected"]:
                found.append(
                    f"link {tap['link']}: {stage['unexpected']} packets at {stage['name']!r} came from nowhere"
                )
    for flow in index["flows"]:
        if flow["error"]:
            found.append(f"flow {flow['name']!r}: {flow['error']} ({flow['errors']} times)")
    if abs(index["clock_stepped_ns"]) > MOST_STEP_NS:
        found.append(f"the clock was set by {index['clock_stepped_ns']} ns during the run")
    return found


def busy_share(archive: Archive) -> float:
    """How much of the measured time the guest's processors were busy; NaN where the kernel does not
    say."""
    about = archive.index["processor"]
    if not about["start"] or not about["end"]:
        return math.nan
    spent = {word: ticks - about["start"][word] for word, ticks in about["end"].items()}
    idle = spent["idle"] + spent["iowait"]
    total = sum(spent.values())
    return 1 - idle / total if total else math.nan
