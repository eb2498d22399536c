"""goresponsiveness (`networkQuality` written in Go): the CSV of its logs (`--logger-filename`).

A run writes a file for each series. Goodput is that of a direction (`-throughput-download-`) or of
its connections (`-granular-`). Probes are on new connections (`-foreign-`) or on those of the load
(`-self-`). A probe on a new connection takes three round trips; its RTT here is a third. The times
of a goodput are the ends of intervals. They are local and without a time zone. The text that it
prints has totals only.
"""

from __future__ import annotations

import csv
import itertools
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sojourn.formats.content import Content
from sojourn.formats.file_series import Pings, Stream, checked
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import FileMeasurement

if TYPE_CHECKING:
    from sojourn.facts import Direction

TIME = "Time of the generation of the data point."
TRIPS = "The number of round trips measured by this data point."
TOOK = "The duration for this measurement."
KIND = "The type of the probe."
RATE = "Instantaneous throughput (B/s)."
CONNECTION = "Position of connection (ID)."
WAY = "Direction of Throughput."
WAYS: dict[str, Direction] = {"Download": "down", "Upload": "up"}
KINDS = {
    "Foreign": "HTTP/2 request",
    "SelfUp": "HTTP/2 request in the upload",
    "SelfDown": "HTTP/2 request in the download",
}
"""The names of the probes."""
INTERVAL_S = 0.1
"""The first interval of a goodput, if it is the only one: the program's default."""
_PRINTED = re.compile(r"^\tRPM: \d+ \((?:P\d+|Single-Sided)", re.M)


def _is_csv(content: Content) -> bool:
    return content.head.startswith((f"{TIME}, {TRIPS}", f"{TIME}, {RATE}"))


def _read_csv(content: Content) -> FileMeasurement:
    rows = [[cell.strip() for cell in row] for row in csv.reader(content.lines) if row]
    names = rows[0]
    named = [dict(zip(names, row, strict=False)) for row in rows[1:]]
    if not named:
        raise FileFormatError("it has no rows")
    times = [_time(row[TIME], number) for number, row in enumerate(named, 2)]
    began = min(times)
    notes = ["The times have no time zone: they are taken for UTC."]
    streams: list[Stream] = []
    pings: list[Pings] = []
    if RATE in names:
        ends = sorted(set(times))
        # The first interval is as long as the second.
        began -= ends[1] - ends[0] if len(ends) > 1 else INTERVAL_S
        streams = _streams(content, named, [at - began for at in times])
        notes.append("The file has goodput only: the probes are in files of their own.")
    else:
        pings = _pings(named, [at - began for at in times])
        notes.append("The file has probes only: the goodput is in files of their own.")
    return FileMeasurement(
        program="goresponsiveness", version="", test="goodput" if streams else "probes", host="", began_s=began, streams=streams,
        pings=pings, one_host=True, notes=notes,
    )  # fmt: skip


def _pings(rows: list[dict[str, str]], times: list[float]) -> list[Pings]:
    found: dict[str, Pings] = {}
    for row, at in sorted(zip(rows, times, strict=True), key=lambda each: each[1]):
        kind = row[KIND]
        if kind not in KINDS:
            raise FileFormatError(f"a probe is of the type {kind[:40]!r}")
        target = found.setdefault(kind, Pings(KINDS[kind], losses_known=False))
        trips = checked(float(row[TRIPS]), "a number of round trips", 100, 1)
        target.add(at, len(target.sent), float(row[TOOK]) * 1e3 / trips)
    return list(found.values())


def _streams(content: Content, rows: list[dict[str, str]], times: list[float]) -> list[Stream]:
    known = next((way for word, way in WAYS.items() if word.lower() in content.name.lower()), None)
    found: dict[tuple[str, str], Stream] = {}
    ends = sorted({0.0, *times})
    took = {at: at - before for before, at in itertools.pairwise(ends)}
    for row, at in sorted(zip(rows, times, strict=True), key=lambda each: each[1]):
        way = WAYS.get(row.get(WAY, ""), known)
        if way is None:
            raise FileFormatError(
                "it does not contain the direction of the goodput, and its name has neither download nor upload"
            )
        place = row.get(CONNECTION, "")
        name = f"{'download' if way == 'down' else 'upload'}{f' {place}' if place else ''}"
        stream = found.setdefault((way, place), Stream(name, way))
        start = at - took[at]
        stream.add(start, at, checked(float(row[RATE]), "a goodput in B/s", 1e12) * took[at])
    return list(found.values())


def _time(text: str, row: int) -> float:
    try:
        return datetime.strptime(text, "%m-%d-%Y-%H-%M-%S.%f").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise FileFormatError(f"row {row}: {text[:40]!r} is not a time") from None


def _is_text(content: Content) -> bool:
    return _PRINTED.search(content.head) is not None


def _read_text(_content: Content) -> FileMeasurement:
    raise FileFormatError(
        "it has totals only, so it shows nothing over time: `networkQuality --logger-filename FILE.csv` writes each probe"
    )


FORMATS = (
    Format("goresponsiveness-csv", "goresponsiveness", "networkQuality --logger-filename FILE.csv", Yields.MEASUREMENT, _is_csv, _read_csv),
    Format("goresponsiveness-text", "goresponsiveness", "networkQuality > FILE", Yields.MEASUREMENT, _is_text, _read_text, refused=True),
)  # fmt: skip
