"""A contest of Runs as tables, with a row for each Run: first the users' quantities, then those of
the queue.

Pure: a judgement in, text out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from sojourn.cli import text

if TYPE_CHECKING:
    from sojourn.judgement import Contest, ContestRow
    from sojourn.numbers import MeanAndInterval

MOST_WIDTH = 120
LEAST_WIDTH = 80
QUEUE = (
    "utilisation",
    "sojourn_mean",
    "sojourn_p50",
    "sojourn_p95",
    "sojourn_p99",
    "drops",
    "marks",
)
BEST = re.compile(rf"(?<=  )[^\s*]+(?: [^\s*]+)*{re.escape(text.BEST)}")
"""Matches the winners in `tables`: a number, its interval and the star."""
LEFT_OUT = ("ping_p50", "completed", "drop_rate", "own_goodput")
"""Columns that only the page shows."""


def width() -> int:
    """The width of tables and sentences: the terminal's, within these bounds; without a terminal,
    the upper bound. A wider table is split into several, each with the names."""
    columns = shutil.get_terminal_size((MOST_WIDTH, 24)).columns
    return max(LEAST_WIDTH, min(columns, MOST_WIDTH))


def tables(contest: Contest) -> str:
    """The tables. A number that is better than every other in its column has a star."""
    rows = [row for row in contest.rows if row.quantity.key.partition(":")[0] not in LEFT_OUT]
    rows = [
        row
        for row in rows
        if row.quantity.key != "ping_loss" or any(mean > 0 for mean in row.means)
    ]
    rows = [
        row for row in rows if row.quantity.key != "marks" or any(mean > 0 for mean in row.means)
    ]
    felt = [row for row in rows if row.quantity.key not in QUEUE]
    queue = [row for row in rows if row.quantity.key in QUEUE]
    parts = [part for rows in (felt, queue) for part in _parted(contest, rows)]
    return "\n\n".join(
        text.table([_name(contest, each), *_heads(each)], _lines(contest, each)) for each in parts
    )


def _name(contest: Contest, rows: Sequence[ContestRow]) -> str:
    return f"queue at {contest.link}" if rows[0].quantity.key in QUEUE and contest.link else "users"


def _heads(rows: Sequence[ContestRow]) -> list[str]:
    """The headings. The first column of each flow or group also has its name."""
    heads = []
    for of, group in groupby(rows, lambda row: row.quantity.of):
        each = [row.quantity.short for row in group]
        inside = rows[0].quantity.key in QUEUE
        heads += [each[0] if inside or not of else f"{of} {each[0]}", *each[1:]]
    return [f"{head} " for head in heads]


def _lines(contest: Contest, rows: Sequence[ContestRow]) -> list[list[str]]:
    columns = [_cells(contest, row) for row in rows]
    return [
        [contest.called[run], *cells] for run, *cells in zip(contest.runs, *columns, strict=True)
    ]


def _cells(contest: Contest, row: ContestRow) -> list[str]:
    cells = []
    for run, mean, half in zip(contest.runs, row.means, row.ci95, strict=True):
        entry: MeanAndInterval[float] = {"mean": mean, "ci95": half}
        shown = (
            text.count(entry)
            if row.quantity.count
            else text.with_interval(entry, most=row.quantity.most)
        )
        cells.append(f"{shown}{text.BEST if row.best == run else ' '}")
    return cells


def _parted(contest: Contest, rows: Sequence[ContestRow]) -> list[list[ContestRow]]:
    """Splits the rows into as few parts as fit the width."""
    parts: list[list[ContestRow]] = []
    for row in rows:
        if parts:
            tried = [*parts[-1], row]
            widest = text.table(
                [_name(contest, tried), *_heads(tried)], _lines(contest, tried)
            ).splitlines()[1]
            if len(widest) <= width():
                parts[-1] = tried
                continue
        parts.append([row])
    return parts
