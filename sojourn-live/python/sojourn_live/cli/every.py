"""`measure --every`: measurements at fixed times, each a Run in one folder and a line of a
table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import text, work
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn_live.measure.measurement import MeasurementOutcome
    from sojourn_live.measure.over_days import MeasurementEntry

HEADER = (
    "time",
    "idle ms",
    "download adds",
    "upload adds",
    "both add",
    "down Mbit/s",
    "up Mbit/s",
    "grade",
)
WIDTHS = (19, 7, 13, 11, 8, 11, 9, 5)
"""Of the columns: rows are printed one at a time."""
MeasuresInto = Callable[[Path], "MeasurementOutcome"]
"""Measures into this folder, or the first of those numbered after it that does not exist."""
NAP_S = 30.0
"""The longest sleep: a clock that is stepped, or a host that was suspended, is noticed after it."""


def header() -> str:
    return _line(HEADER)


def row(entry: MeasurementEntry) -> str:
    """A time of measuring as a line of the table."""
    when = f"{datetime.fromtimestamp(entry.t_ns / 1e9):%Y-%m-%d %H:%M:%S}"
    if not entry.run:
        return f"{when}  failed: {entry.why}"
    nothing = float("nan")
    cells = [
        when,
        text.number(entry.idle_ms),
        *(
            text.number(entry.added_ms.get(load, nothing))
            for load in ("download", "upload", "both")
        ),
        *(text.number(entry.mbps.get(way, nothing)) for way in ("down", "up")),
        entry.grade or "-",
    ]
    return _line(cells) + (f"  cut short: {entry.why}" if entry.why else "")


def _line(cells: Sequence[str]) -> str:
    first, *rest = (cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True))
    return "  ".join([first.strip().ljust(WIDTHS[0]), *rest])


def measure(
    folder: Path, every_s: float, times: int | None, measured: MeasuresInto, quiet: bool
) -> int:
    """Measures at fixed times, so often or until Ctrl-C, and prints a line of each. Exit status 1:
    none could be measured.

    Times are of the clock on the wall: the first is now, the others whole multiples of `every_s`
    later. Those that pass while something is measured, or while this host sleeps, are left out.
    """
    from sojourn.records import META
    from sojourn_live.measure import over_days as kept

    if (folder / META).is_file():
        raise UserError(f"{folder} is a Run, not a folder of them", "choose another folder with -o")
    work.show(header())
    begun = due = time.time()
    done = good = 0
    try:
        while True:
            entry, interrupted = _one(folder, int(due * 1e9), measured, first=done == 0)
            if entry is not None:
                work.show(row(entry))
                done, good = done + 1, good + (entry.why == "")
            if interrupted:
                raise KeyboardInterrupt
            if times is not None and done >= times:
                break
            due = kept.next_slot(begun, every_s, time.time())
            while (left := due - time.time()) > 0:
                time.sleep(min(left, NAP_S))
    except KeyboardInterrupt:
        work.say(f"stopped; the table again: sojourn history {folder}", quiet)
        # Without a number of times this is how a series ends.
        if times is not None:
            raise click.exceptions.Exit(130) from None
        return 0 if good else 1
    work.say(f"wrote {folder}; the table again: sojourn history {folder}", quiet)
    return 0 if good else 1


def _one(
    folder: Path, t_ns: int, measured: MeasuresInto, *, first: bool
) -> tuple[MeasurementEntry | None, bool]:
    """One measurement, or why there is none; whether it was interrupted. Nothing at the start of a
    new folder is a wrong word."""
    from sojourn_live.measure import over_days as kept
    from sojourn_live.measure.session import LiveError

    try:
        outcome = measured(folder / kept.name(t_ns))
    except LiveError as error:
        if first and not folder.exists():
            raise
        return kept.failed(folder, t_ns, error.problem), False
    if outcome.run is None:
        return None, outcome.interrupted
    kept.index(folder)
    return kept.entry(outcome.run), outcome.interrupted
