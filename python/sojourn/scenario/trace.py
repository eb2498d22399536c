"""Traces: a link's rate, or a video's frames, from a file of two columns.

    # seconds  Mbit/s            # seconds  bytes
    0          20                0.00       14210
    1          12.5              0.04       2380

Columns are separated by spaces, tabs, commas or semicolons; lines that begin with # (and one line of column names) are skipped. Times count from
the first line's. A trace repeats: its last row lasts as long as the one before it. Reading one turns `trace = "file"` into the rows
themselves, so that a scenario is complete without the file.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from sojourn.scenario.errors import Key, Problem
from sojourn.units import format_duration, format_rate, format_size, quoted

MAX_BYTES = 16 * 2**20
MAX_ROWS = 200_000
"""Rows of a trace, a schedule, a video's frames."""

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?", re.ASCII)


def resolve_traces(document: Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], list[Problem]]:
    """The document with every `trace` replaced by its rows, and what was wrong."""
    problems: list[Problem] = []

    def resolved(table: Any, key: Key, rows: str) -> Any:
        if not isinstance(table, Mapping) or "trace" not in table:
            return table
        rest = {name: value for name, value in table.items() if name != "trace"}
        clash = next((name for name in (rows, "repeat") if name in rest), None)
        if clash:
            problems.append(Problem(f"trace and {clash} are both given", "keep one of them", (*key, "trace")))
            return rest
        try:
            return {**rest, **_read(table["trace"], folder, rows)}
        except _BadTraceError as error:
            problems.append(Problem(error.message, error.hint, (*key, "trace")))
            # The rate is said by the trace, wherever it went wrong: no second complaint about it.
            return {**rest, "rate": rest.get("rate", "1 Mbit/s")}

    values = dict(document)
    bottleneck = values.get("bottleneck")
    if isinstance(bottleneck, Mapping):
        bottleneck = dict(resolved(bottleneck, ("bottleneck",), "schedule"))
        for direction in ("up", "down"):
            if direction in bottleneck:
                bottleneck[direction] = resolved(bottleneck[direction], ("bottleneck", direction), "schedule")
        values["bottleneck"] = bottleneck
    if isinstance(values.get("link"), list):
        values["link"] = [
            resolved(link, ("link", index), "schedule") for index, link in enumerate(values["link"])
        ]
    if isinstance(values.get("flow"), list):
        values["flow"] = [
            resolved(flow, ("flow", index), "frames") if _is_video(flow) else flow
            for index, flow in enumerate(values["flow"])
        ]
    return values, problems


def _is_video(flow: object) -> bool:
    return isinstance(flow, Mapping) and flow.get("kind") == "video"


class _BadTraceError(Exception):
    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def _read(name: object, folder: Path, rows: str) -> dict[str, Any]:
    """`{rows: [[time, value], ...], "repeat": time}` in the words of a scenario."""
    pairs = _pairs(_text(name, folder), str(name))
    scale, write = (10**6, format_rate) if rows == "schedule" else (1, format_size)
    start = pairs[0][1]
    table = []
    for line, at, number in pairs:
        value = int((number * scale).to_integral_value())
        most = 10**13 if rows == "schedule" else 2**31
        if value > most or (rows == "frames" and value < 1):
            raise _BadTraceError(
                f"{name}, line {line}: {number} is out of range", f"the most is {write(most)}"
            )
        table.append([format_duration(at - start), write(value)])
    last = pairs[-1][1] - start
    step = last - (pairs[-2][1] - start) if len(pairs) > 1 else 10**9
    return {rows: table, "repeat": format_duration(last + step)}


def _text(name: object, folder: Path) -> str:
    if not isinstance(name, str) or not name or "\0" in name:
        raise _BadTraceError(f"{quoted(name)} is not a file name", 'write a path in quotes, like "lte.csv"')
    try:
        with (folder / name).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        hint = "the path counts from the scenario's folder"
        raise _BadTraceError(f"can't read {quoted(name)}: {error.strerror or error}", hint) from None
    if len(data) > MAX_BYTES:
        raise _BadTraceError(
            f"{quoted(name)} is larger than {format_size(MAX_BYTES)}", "give a shorter trace"
        )
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _BadTraceError(f"{quoted(name)} is not text (UTF-8)", "give two columns of numbers") from None


def _pairs(text: str, name: str) -> list[tuple[int, int, Decimal]]:
    """(line, ns, number), times rising."""
    pairs: list[tuple[int, int, Decimal]] = []
    headed = False
    for line, row in enumerate(text.splitlines(), start=1):
        fields = [field for field in re.split(r"[\s,;]+", row.strip()) if field]
        if not fields or fields[0].startswith("#"):
            continue
        if not all(_NUMBER.fullmatch(field) for field in fields[:2]) or len(fields) < 2:
            if not pairs and not headed and fields[0][0].isalpha():
                headed = True
                continue
            raise _BadTraceError(
                f"{name}, line {line}: {quoted(row.strip())} is not two numbers", "write a time and a value"
            )
        at = int((Decimal(fields[0]) * 10**9).to_integral_value())
        if at > 10**18:
            raise _BadTraceError(
                f"{name}, line {line}: a time of {fields[0]} s is too long", "times are in seconds"
            )
        if pairs and at <= pairs[-1][1]:
            raise _BadTraceError(
                f"{name}, line {line}: times must rise", "the first column is the time in seconds"
            )
        pairs.append((line, at, Decimal(fields[1])))
        if len(pairs) > MAX_ROWS:
            raise _BadTraceError(f"{name} has more than {MAX_ROWS} rows", "give a shorter trace")
    if not pairs:
        raise _BadTraceError(f"{name} has no rows", "write a time and a value on each line")
    return pairs
