"""Reads the archive of a guest's run.

The archive is a tar of columns and an index that names them (crates/guest, results.rs). This file
does not interpret them. `doubts` lists the records that the measurement itself lost.
"""

import json
import math
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.arrays import Ints
from sojourn.engine.kernel.guest.endings import GuestError

FORMAT = 2
"""The archive's format, from its index."""
NEVER = -1
"""Stands for a time or a number that does not exist."""
MOST_STEP_NS = 100_000
"""The most by which the host's clock may be stepped during a run, ns. Other programs may step this
clock, from which the taps take their times. A clock that is not stepped drifts by a few ns only."""
_TYPES = {"i64": "<i8", "i32": "<i4", "u8": "u1", "f64": "<f8"}


@dataclass(frozen=True)
class Archive:
    """The tables of a guest's run, the index and the self-check."""

    index: Mapping[str, Any]
    tables: Mapping[str, Mapping[str, Ints]]
    """Integers; reals for sums that may exceed 64 bits."""
    blob: bytes = b""
    """The disciplines' own statistics (xstats), as the kernel lays them out."""
    check: "Archive | None" = None
    """The archive of the self-check that ran first."""
    printed: Mapping[str, bytes] = field(default_factory=dict)
    """What each program printed, by its name."""
    read_of_host: str = ""
    """What programs read of the host's files, as the guest's kernel lists it."""

    @classmethod
    def read(cls, path: Path) -> "Archive":
        """Reads an archive from a file.

        Raises:
            GuestError: the file is missing or incomplete.
        """
        try:
            with tarfile.open(path, "r:") as tar:
                files = {member.name: _content(tar, member) for member in tar.getmembers()}
            index = json.loads(files["index.json"])
            if index["format"] != FORMAT:
                raise GuestError(
                    f"{path} has format {index['format']}; this sojourn reads format {FORMAT}",
                    "the guest's program is of another version: sojourn kernel setup --again",
                )
            archive = cls._of(index, files)
        except (OSError, tarfile.TarError, KeyError, ValueError, TypeError) as error:
            raise GuestError(
                f"{path} is not a complete archive of results: {error}", "run it again"
            ) from None
        return archive

    @classmethod
    def _of(cls, index: Mapping[str, Any], files: Mapping[str, bytes]) -> "Archive":
        """The part of an archive that this index describes. The self-check's files begin with
        `check/`."""
        tables = {name: _table(name, about, files) for name, about in index["tables"].items()}
        check = None
        if "check" in index:
            inside = {
                name.removeprefix("check/"): text
                for name, text in files.items()
                if name.startswith("check/")
            }
            check = cls._of(index["check"], inside)
        printed = {
            name.removeprefix("programs/"): text
            for name, text in files.items()
            if name.startswith("programs/")
        }
        read_of_host = files.get("hostfs_read", b"").decode(errors="surrogateescape")
        return cls(index, tables, files.get("qdisc/blob", b""), check, printed, read_of_host)

    def rows(self, table: str, key: str, value: int) -> dict[str, Ints]:
        """The rows in which a column has this value."""
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
    """Reasons not to trust the measurement, each a sentence. Empty: nothing was lost on the way."""
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
                    f"link {tap['link']}: {stage['unexpected']} packets at {stage['name']!r} have no earlier record"
                )
    if index["lost_headers"]:
        found.append(f"the headers of {index['lost_headers']} packets were lost")
    for flow in index["flows"]:
        if flow["error"]:
            found.append(f"flow {flow['name']!r}: {flow['error']} ({flow['errors']} times)")
    if abs(index["clock_stepped_ns"]) > MOST_STEP_NS:
        found.append(f"the clock was stepped by {index['clock_stepped_ns']} ns during the run")
    return found


def busy_share(archive: Archive) -> float:
    """The share of the measured time in which the guest's processors were busy; NaN if the kernel
    does not report it."""
    about = archive.index["processor"]
    if not about["start"] or not about["end"]:
        return math.nan
    spent = {word: ticks - about["start"][word] for word, ticks in about["end"].items()}
    idle = spent["idle"] + spent["iowait"]
    total = sum(spent.values())
    return 1 - idle / total if total else math.nan
