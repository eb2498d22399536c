"""The declaration of tables, `TABLES`, and an engine's columns as a DataFrame.

crates/tables declares every table: `_core.TABLES` is that declaration, and nothing here repeats it.

Every column has its unit in its name. Columns are integers, with two exceptions: reals (means, the
disciplines' own state, and sums that may pass 2^63 in a run of years) and names (strings). A
missing value is null on disk. In an engine's columns it is -1 (integers) or NaN (reals).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn._core import TABLES, ColumnSchema, TableSchema

# The import of polars and numpy takes longer than a short run, so only code that reads tables
# imports them.
if TYPE_CHECKING:
    import numpy as np
    import polars as pl

__all__ = [
    "NONE",
    "ON_REQUEST",
    "TABLES",
    "ColumnSchema",
    "Names",
    "TableSchema",
    "columns",
    "dtype",
    "frame",
    "names_of",
    "nothing",
]

NONE = -1
"""The missing value in an engine's column of integers."""

ON_REQUEST = ("packets", "headers")
"""Tables that a Run has only if `[record]` requests them, under the same name."""

_NUMBERS = ("integer", "real")
"""Kinds of columns; the others are names."""


def dtype(column: ColumnSchema) -> type[pl.DataType]:
    """The type of a column on disk: Int64, Float64, or String for names."""
    import polars as pl

    kinds: dict[str, type[pl.DataType]] = {"integer": pl.Int64, "real": pl.Float64}
    return kinds.get(column.kind, pl.String)


def names_of(table: str) -> tuple[str, ...]:
    """The names of a table's columns, in their order."""
    return tuple(column.name for column in TABLES[table].columns)


def nothing(table: str, rows: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """A table of `rows` rows in which every value is missing, in an engine's form."""
    import numpy as np

    return {
        column.name: np.full(rows, np.nan)
        if column.kind == "real"
        else np.full(rows, NONE, dtype=np.int64)
        for column in TABLES[table].columns
    }


@dataclass(frozen=True)
class Names:
    """The names for the numbers in an engine's columns of links, flows and causes."""

    links: Sequence[str]
    flows: Sequence[str]
    causes: Sequence[str]

    def of(self, column: ColumnSchema) -> Sequence[str]:
        """The names that a column's numbers index."""
        return {"link": self.links, "flow": self.flows, "cause": self.causes}[column.kind]


def frame(name: str, columns: Mapping[str, np.ndarray[Any, Any]], names: Names) -> pl.DataFrame:
    """One of an engine's tables as a DataFrame: its columns as declared, with names for links,
    flows and causes."""
    import polars as pl

    expected = set(names_of(name))
    if set(columns) != expected:
        differing = sorted(set(columns) ^ expected)
        raise ValueError(f"the engine's table {name!r} is not as declared: {', '.join(differing)}")
    # One query for all columns: a query for each would cost more than its work.
    given = pl.DataFrame({column.name: columns[column.name] for column in TABLES[name].columns})
    return given.select(
        _cells(column, given[column.name].dtype, names) for column in TABLES[name].columns
    )


def _cells(column: ColumnSchema, given: pl.DataType, names: Names) -> pl.Expr:
    import polars as pl

    cell = pl.col(column.name)
    if column.kind not in _NUMBERS:
        listed = pl.lit(pl.Series(column.name, names.of(column), dtype=pl.String))
        return listed.gather(cell.cast(pl.UInt32)).alias(column.name)
    if given.is_float():
        return cell.fill_nan(None).cast(dtype(column))
    # Unsigned integers have no -1 to compare with.
    signed = given.is_signed_integer()
    return (pl.when(cell != NONE).then(cell) if signed else cell).cast(dtype(column))


def columns(name: str, table: pl.DataFrame, names: Names) -> dict[str, np.ndarray[Any, Any]]:
    """The reverse of `frame`: a table in the core's form."""
    return {
        column.name: _array(column, table[column.name], names) for column in TABLES[name].columns
    }


def _array(column: ColumnSchema, series: pl.Series, names: Names) -> np.ndarray[Any, Any]:
    import polars as pl

    if column.kind in _NUMBERS:
        if series.null_count():
            series = series.fill_null(math.nan if column.kind == "real" else NONE)
        return series.to_numpy()
    return series.cast(pl.Enum(names.of(column))).to_physical().cast(pl.UInt32).to_numpy()
