"""`measure --every`: measurements at fixed times. Each is a Run in one folder and a line of a
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
"""Widths of the columns. They are fixed, because rows are printed one at a time."""
MeasuresInto = Callable[[Path], "MeasurementOutcome"]
"""Measures into this folder, or into the first unused one of folder-2, folder-3, ..."""
NAP_S = 30.0
"""The longest sleep. A clock step or a suspension of the host is noticed within this time."""


def header() -> str:
    return _line(HEADER)


def row(entry: MeasurementEntry) -> str:
    """An entry as a line of the table."""
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
    """Measures `times` times at fixed times, or until Ctrl-C, and prints a line for each. Exit
    status 1: no measurement succeeded.

    The first time is now, the others are whole multiples of `every_s` later by the wall clock.
    Times that pass during a measurement or while this host sleeps are skipped.
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
        # Without --times, Ctrl-C is the normal end of a series.
        if times is not None:
            raise click.exceptions.Exit(130) from None
        return 0 if good else 1
    work.say(f"wrote {folder}; the table again: sojourn history {folder}", quiet)
    return 0 if good else 1


def _one(
    folder: Path, t_ns: int, measured: MeasuresInto, *, first: bool
) -> tuple[MeasurementEntry | None, bool]:
    """One measurement or the reason of its failure, and whether it was interrupted. A failure at
    the first time, before the folder exists, is an error: most likely HOST or an option is
    wrong."""
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
