"""A table of a line over time: rates in each direction, delay or RTT, loss, by the names of its
columns. CSV, tabs, semicolons or blanks.

It becomes a trace for each quantity and a scenario that uses them. crates/scenario/src/columns.rs
reads the traces that a scenario names. There the scenario's key implies the quantity and its unit;
directions, RTTs, losses and dates do not occur. Here the names of the columns must contain them.
Both readers give a name with a unit the same meaning, which a test compares.

A column's unit is part of its name (`dl_mbps`, `rtt_ms`) or given (`Content.units`). Without a unit
the file is refused, unless it is a known public dataset.
Times are seconds or milliseconds from a beginning, seconds or milliseconds since 1970, or dates.
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sojourn.formats.content import HEAD, Content
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.texts import GUESSED_DELAY, PORT, TO_RUN, Texts, line_scenario

if TYPE_CHECKING:
    from sojourn.facts import Direction

_TIMES = re.compile(
    r"(time|timestamp|ts|t|elapsed|date|datetime|utc)(_?(s|sec|seconds|ms|msec|us|usec|ns|utc|iso|local))?$"
)
_TIME_UNITS = {"ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6, "ns": 1e-9}
_BYTES = re.compile(
    r"(?<![A-Za-z])[kKMG]?B(?:ps|/s|_per_s)(?![A-Za-z])|(?<![A-Za-z])[kKMG]?[Bb]ytes"
)
"""A unit of bytes. Only the case of its letters distinguishes it from one of bits."""
_DAY = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}$")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$")
_COMMA = re.compile(r"-?\d+,\d+")
"""A number with a comma, in a file whose fields are separated by semicolons."""
_RATE = re.compile(
    r"(?P<before>down|download|downlink|dl|rx|up|upload|uplink|ul|tx)?_?(?P<what>rate|bandwidth|throughput|bitrate|capacity|goodput|speed|bw)?_?(?P<unit>[kmg]?bps|[kmg]bits?(?:_?per_?s|_?s)?)?_?(?P<after>down|up|dl|ul)?$"
)
_DELAY = re.compile(r"(delay|latency|owd|rtt|ping)(_avg|_mean)?(_?(us|ms|s))?$")
_LOSS = re.compile(r"(packet_?)?loss(_?(rate|pct|percent|ratio))?$")
_DOWN = ("down", "download", "downlink", "dl", "rx")
_UP = ("up", "upload", "uplink", "ul", "tx")
_RATE_UNITS = {"": math.nan, "b": 1e-6, "k": 1e-3, "m": 1.0, "g": 1e3}
"""In Mbit/s."""
_DELAY_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
"""In ms."""
UNITS = {f"{prefix}bps": scale for prefix, scale in zip(("", "k", "m", "g"), (1e-6, 1e-3, 1.0, 1e3), strict=True)} | _DELAY_UNITS  # fmt: skip
"""The units that can be given, each with its factor to Mbit/s or ms."""
_DATES = ("%Y.%m.%d_%H.%M.%S", "%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%d/%m/%Y %H:%M:%S")
KBITS = frozenset({"dl_bitrate", "ul_bitrate", "cellid", "state"})
"""Columns of the 5G dataset of University College Cork, whose bitrates are in kbit/s."""
MOST_ROWS = 200_000


@dataclass(frozen=True)
class _Column:
    quantity: str
    """"time", "down", "up", "delay", "rtt" or "loss"."""
    scale: float = 1.0
    """The factor to seconds, Mbit/s, ms or a share of 1; NaN: the name has no unit."""
    rank: int = 0
    """Of two columns of one quantity, the one of the higher rank is read. A name with a direction and
    a unit has a higher rank than `speed`."""


def _plain_name(name: str) -> str:
    return re.sub(
        r"[^a-z0-9]+", "_", name.strip().lower().replace("bit/s", "bps").replace("b/s", "bps")
    ).strip("_")


def _meaning(name: str) -> _Column | None:
    """The meaning of a column, by its name; None: it is not one of these quantities."""
    plain = _plain_name(name)
    if found := _TIMES.match(plain):
        return _Column("time", _TIME_UNITS.get(found[3] or "", 1.0))
    if found := _DELAY.match(plain):
        kind = "rtt" if found[1] in ("rtt", "ping") else "delay"
        return _Column(kind, _DELAY_UNITS.get(found[4] or "", math.nan))
    if found := _LOSS.match(plain):
        return _Column("loss", 0.01 if found[3] in ("pct", "percent") else 1.0)
    found = _RATE.match(plain)
    if not found or not (found["what"] or found["unit"]):
        return None
    way = found["before"] or found["after"] or "down"
    unit = (found["unit"] or "")[:1]
    return _Column(
        "up" if way in _UP else "down",
        _RATE_UNITS.get(unit if found["unit"] else "", math.nan)
        * (8 if _BYTES.search(name) else 1),
        rank=bool(found["before"] or found["after"]) + bool(found["unit"]),
    )


def _header(content: Content) -> list[str] | None:
    """The names of the columns, if the first line has any."""
    lines = [line for line in content.head.splitlines() if line.strip()]
    if len(lines) < 2:
        return None
    names = _cells(lines[0].lstrip("# "))
    if len(names) < 2 or len(_cells(lines[1])) < 2:
        return None
    return names


def _cells(line: str) -> list[str]:
    for separator in ("\t", ";", ","):
        if separator in line:
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
            if separator != ";":
                return cells
            return [cell.replace(",", ".") if _COMMA.fullmatch(cell) else cell for cell in cells]
    return line.split()


def _is_table(content: Content) -> bool:
    names = _header(content)
    if names is None:
        return False
    meanings = [found.quantity for found in map(_meaning, names) if found]
    return "time" in meanings and bool({"down", "up", "delay", "rtt"} & set(meanings))


def _read(content: Content) -> Texts:
    names = _header(content)
    if names is None:
        raise FileFormatError("its first line does not name its columns")
    rows = [_cells(line) for line in content.lines if line.strip()][1:]
    days = _days(names, rows)
    columns, left_out = _columns(
        ["" if at == days else name for at, name in enumerate(names)], content.units
    )
    if len(rows) > MOST_ROWS:
        raise FileFormatError(f"it has more than {MOST_ROWS} rows: give a shorter part of it")
    place = columns["time"][0]
    cells = [row[place] if len(row) > place else "" for row in rows]
    if days is not None:
        cells = [
            f"{row[days]} {cell}" if len(row) > days else ""
            for row, cell in zip(rows, cells, strict=True)
        ]
    times = _times(cells, columns["time"][1])
    series = {
        quantity: _series(rows, times, at, column, names[at])
        for quantity, (at, column) in columns.items()
        if quantity != "time"
    }
    series = {quantity: values for quantity, values in series.items() if values}
    return trace_texts(
        content, series, {quantity: names[at] for quantity, (at, _) in columns.items()}, left_out
    )


def _days(names: Sequence[str], rows: Sequence[Sequence[str]]) -> int | None:
    """The place of a column of days in front of one of times of day; None: there is none."""
    row = rows[0] if rows else []
    places = [
        at
        for at, name in enumerate(names[: len(row)])
        if (found := _meaning(name)) and found.quantity == "time"
    ]
    days = [at for at in places if _DAY.match(row[at])]
    clocks = [at for at in places if _CLOCK.match(row[at])]
    return days[0] if days and clocks and days[0] < clocks[0] else None


def _columns(
    names: Sequence[str], units: Mapping[str, str]
) -> tuple[dict[str, tuple[int, _Column]], list[str]]:
    """The place and the meaning of each quantity's column, and notes on the others."""
    for name in units:
        if name not in names:
            raise FileFormatError(f"it has no column {name!r}: its columns are {', '.join(names)}")
    plain = {_plain_name(name) for name in names}
    chosen: dict[str, tuple[int, _Column]] = {}
    unread = []
    notes = []
    meanings = [_meaning(name) for name in names]
    best: dict[str, tuple[int, int]] = {}
    for at, found in enumerate(meanings):
        if found is not None:
            place = (found.rank, -at)
            best[found.quantity] = max(best.get(found.quantity, place), place)
    for at, (name, found) in enumerate(zip(names, meanings, strict=True)):
        if not name:
            continue
        if found is None or best[found.quantity] != (found.rank, -at):
            if name in units:
                raise FileFormatError(f"its column {name!r} is not read, so it takes no unit")
            unread.append(name)
            continue
        if name in units:
            found = _given(found, name, units[name])
        elif found.quantity in ("down", "up") and _BYTES.search(name):
            notes.append(f"{name} is in bytes: each has eight bits.")
        elif math.isnan(found.scale):
            if found.quantity in ("down", "up") and plain >= KBITS:
                found = _Column(found.quantity, 1e-3)
                notes.append(f"{name} is in kbit/s, as in the 5G dataset that has such columns.")
            else:
                example = "mbps" if found.quantity in ("down", "up") else "ms"
                raise FileFormatError(
                    f"its column {name!r} has no unit: rename it to {name}_{example}, or give --unit {name}={example}"
                )
        chosen[found.quantity] = (at, found)
    if unread:
        notes.append(f"Columns that were not read: {', '.join(unread)}.")
    return chosen, notes


def _given(column: _Column, name: str, unit: str) -> _Column:
    """The column with a unit that its name does not have."""
    rate = column.quantity in ("down", "up")
    takes = [each for each in UNITS if (each in _DELAY_UNITS) != rate]
    if column.quantity in ("time", "loss"):
        takes = []
    if unit not in takes:
        wanted = f"one of {', '.join(takes)}" if takes else "no unit of these"
        kind = _KINDS[column.quantity]
        raise FileFormatError(f"its column {name!r} is {kind}: it takes {wanted}, not {unit}")
    if not math.isnan(column.scale) and column.scale != UNITS[unit]:
        raise FileFormatError(f"its column {name!r} has a unit in its name that is not {unit}")
    return _Column(column.quantity, UNITS[unit])


_KINDS = {"time": "a time", "down": "a rate", "up": "a rate", "delay": "a delay", "rtt": "an RTT", "loss": "a loss"}  # fmt: skip


def _times(cells: Sequence[str], column: _Column) -> list[float]:
    """Times in seconds from the first."""
    scale = column.scale
    try:
        values = [float(cell) for cell in cells]
        if values and values[0] > 1e11:
            scale = 1e-3
    except ValueError:
        values, scale = [_date(cell, row) for row, cell in enumerate(cells, 2)], 1.0
    if not values:
        raise FileFormatError("it has no rows")
    times = [(value - values[0]) * scale for value in values]
    for row, (before, after) in enumerate(itertools.pairwise(times), 3):
        if not after >= before:
            raise FileFormatError(f"row {row} is earlier than the row before it")
    return times


def _date(cell: str, row: int) -> float:
    try:
        found = datetime.fromisoformat(cell)
    except ValueError:
        for form in _DATES:
            try:
                found = datetime.strptime(cell, form)
                break
            except ValueError:
                continue
        else:
            raise FileFormatError(f"row {row}: {cell[:40]!r} is not a time") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _series(
    rows: Sequence[Sequence[str]], times: Sequence[float], at: int, column: _Column, name: str
) -> list[tuple[float, float]]:
    """A quantity over time. Rows without a value are left out; rows of one time are averaged."""
    by_time: dict[float, list[float]] = {}
    for number, (row, t) in enumerate(zip(rows, times, strict=True), 2):
        cell = row[at] if at < len(row) else ""
        if cell in ("", "-", "nan", "NaN", "NA", "null", "None"):
            continue
        try:
            value = float(cell) * column.scale
        except ValueError:
            raise FileFormatError(
                f"row {number}: {cell[:40]!r} in column {name} is not a number"
            ) from None
        if not 0 <= value <= 1e6:
            raise FileFormatError(f"row {number}: {cell} in column {name} can't be true")
        by_time.setdefault(t, []).append(value)
    return [(t, sum(values) / len(values)) for t, values in by_time.items()]


def trace_texts(
    content: Content, series: Mapping[str, list[tuple[float, float]]], names: Mapping[str, str], notes: list[str]
) -> Texts:  # fmt: skip
    """The traces of a line and a scenario of them.

    `series`: for "down", "up" (Mbit/s), "delay", "rtt" (ms) and "loss" times in s and values.
    `names`: the name of each in the file.
    """
    traces = {way: series[way] for way in ("down", "up") if way in series}
    delay = series.get("delay")
    if delay is None and "rtt" in series:
        delay = [(t, rtt / 2) for t, rtt in series["rtt"]]
        notes.append(f"Half of {names['rtt']} is the delay in each direction.")
    elif "rtt" in series:
        notes.append(f"{names['rtt']} was not read: {names['delay']} is the delay.")
    if delay is not None:
        traces["delay"] = delay
    if not any(len(values) > 1 for values in traces.values()):
        raise FileFormatError("it has fewer than two rows with a rate or a delay")
    if "loss" in series:
        mean = sum(value for _, value in series["loss"]) / len(series["loss"])
        notes.append(
            f"{names['loss']} was not read (its mean is {100 * mean:.3g} %): a scenario's loss is one law for the whole run."
        )
    span = max(values[-1][0] for values in traces.values())
    files = {".toml": _scenario(content, traces, span, notes)}
    for quantity, values in traces.items():
        unit = "delay_ms" if quantity == "delay" else "rate_mbps"
        lines = [f"time_s,{unit}", *(f"{t:.6f},{value:.6g}" for t, value in values)]
        files[f".{quantity}.trace"] = "\n".join(lines) + "\n"
    taken = [f"{names.get(quantity, names.get('rtt', ''))}: {len(values)} rows over {span:.4g} s as {quantity}, mean {sum(value for _, value in values) / len(values):.4g} {'ms' if quantity == 'delay' else 'Mbit/s'}" for quantity, values in traces.items()]  # fmt: skip
    return Texts(files, taken, notes, use=TO_RUN)


def _scenario(
    content: Content, traces: Mapping[str, list[tuple[float, float]]], span: float, notes: list[str]
) -> str:
    """A scenario with a download, an upload and a ping over the line. Its file and the traces share
    a stem."""
    keys: dict[str, object] = {"qdisc": "fq_codel"}
    if "delay" in traces:
        keys["delay_trace"] = "{stem}.delay.trace"
    else:
        keys["delay"] = GUESSED_DELAY
        notes.append(f"The file has no delay: {GUESSED_DELAY} in each direction is a guess.")
    ways: tuple[Direction, ...] = ("down", "up")
    for way in ways:
        if way in traces:
            keys[f"{way}.trace"] = f"{{stem}}.{way}.trace"
        else:
            keys[f"{way}.rate"] = PORT
            notes.append(f"The file has no rate {way}: {PORT} is a guess.")
    return line_scenario(
        f"The line of {content.path.name}.", keys, [way for way in ways if way in traces] or ["down"],
        duration_s=max(min(span, 60.0), 1.0), connections=1,
    )  # fmt: skip


def _is_unnamed(content: Content) -> bool:
    """Whether it has only numbers, and no line that names its columns."""
    lines = [line for line in content.head.splitlines() if line.strip() and line[0] != "#"]
    if len(content.first) == HEAD:
        lines = lines[:-1]
    rows = [_cells(line) for line in lines[:100]]
    return (
        len(rows) > 1
        and len({len(row) for row in rows}) == 1
        and all(_NUMBER.fullmatch(cell) for row in rows for cell in row)
        # A single column of whole numbers may be a trace of Mahimahi, or anything else.
        and (len(rows[0]) > 1 or any("." in row[0] for row in rows))
    )


_NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")


def _read_unnamed(_content: Content) -> Texts:
    raise FileFormatError(
        'its columns have no names: put a line in front that names them, like time_s,dl_mbps,rtt_ms. A scenario takes a file of two columns, seconds and Mbit/s, as it is: down.trace = "FILE"'
    )


FORMATS = (
    Format("line-columns", "a table", "numbers in columns without names", Yields.TRACE, _is_unnamed, _read_unnamed, refused=True),
    Format("line-table", "a table", "a table with columns like time, dl_mbps, ul_mbps, rtt_ms", Yields.TRACE, _is_table, _read, takes_units=True),
)  # fmt: skip
