"""A sweep as a data frame: a row for each cell and seed, or for each cell.

Swept keys are the first columns, with the scenario's values. A key whose values are quantities has
a second column with the numbers: `bottleneck.rate` "5 Mbit/s" and `bottleneck.rate_mbps` 5.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import polars as pl

from sojourn.judgement.quantities import Quantity
from sojourn.sweeps.axes import Setting, scale, written
from sojourn.sweeps.grid import Grid, column

RowsPer: TypeAlias = Literal["seed", "cell"]


def frame(
    grid: Grid, by: RowsPer = "seed", shown: Sequence[Quantity] | None = None
) -> pl.DataFrame:
    """The data frame of a grid, with these quantities; None: all. Unknown values are null.

    By `seed`, a row has a column `seed` and the numbers of that seed. By `cell`, a row has `seeds`,
    `samples` (the number of different seeds), and for each quantity its mean over the samples and
    half of the 95 % interval (`_ci95`).
    """
    quantities = grid.quantities if shown is None else shown
    counts = [len(cell.at.summary.runs) if by == "seed" else 1 for cell in grid.cells]
    columns = _settings(grid, counts)
    columns += _by_seed(grid, quantities) if by == "seed" else _by_cell(grid, quantities)
    return pl.DataFrame(columns)


def _settings(grid: Grid, counts: Sequence[int]) -> list[pl.Series]:
    columns = []
    for key in grid.keys:
        values = [cell.settings.get(key) for cell in grid.cells]
        columns.append(_series(key, _repeated(values, counts)))
        known = [value for value in values if value is not None]
        read = scale(known) if len(known) == len(values) else None
        if read is not None and read.suffix:
            columns.append(
                pl.Series(f"{key}_{read.suffix}", _repeated(read.numbers, counts), pl.Float64)
            )
    return columns


def _series(key: str, values: Sequence[Setting | None]) -> pl.Series:
    """A column of values; of mixed types as text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and len(kinds) > 1:
        return pl.Series(key, [None if value is None else float(value) for value in values])
    if len(kinds) > 1:
        return pl.Series(key, [None if value is None else written(value) for value in values])
    return pl.Series(key, list(values))


def _repeated(values: Sequence[Any], counts: Sequence[int]) -> list[Any]:
    return [value for value, count in zip(values, counts, strict=True) for _ in range(count)]


def _by_seed(grid: Grid, quantities: Sequence[Quantity]) -> list[pl.Series]:
    seeds = [seed for cell in grid.cells for seed in cell.at.summary.seeds]
    columns = [pl.Series("seed", seeds, pl.Int64)]
    for one in quantities:
        values = [
            cell.at.of_seed(one.key, numbers)
            for cell in grid.cells
            for numbers in cell.at.summary.runs
        ]
        columns.append(_numbers(column(one), values))
    return columns


def _by_cell(grid: Grid, quantities: Sequence[Quantity]) -> list[pl.Series]:
    summaries = [cell.at.summary for cell in grid.cells]
    columns = [
        pl.Series("seeds", [len(each.seeds) for each in summaries], pl.Int64),
        pl.Series("samples", [each.samples for each in summaries], pl.Int64),
    ]
    for one in quantities:
        found = [cell.values(one.key) for cell in grid.cells]
        columns.append(_numbers(column(one), [mean for mean, _ in found]))
        columns.append(_numbers(f"{column(one)}_ci95", [half for _, half in found]))
    return columns


def _numbers(name: str, values: Sequence[float]) -> pl.Series:
    return pl.Series(name, [None if math.isnan(value) else value for value in values], pl.Float64)
