"""A sweep as one table: a row for each cell, a column for each swept key, then the quantities, the
most important first. As text, Markdown, CSV, LaTeX, JSON or Parquet.

Without named columns, text, Markdown and LaTeX show those that fit the width; the other formats
show all. A number is its mean over seeds with half of its 95 % interval; CSV, JSON and Parquet have
two columns for it. No library that sojourn depends on writes Markdown or LaTeX.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sojourn.cli import text

if TYPE_CHECKING:
    from sojourn.judgement.quantities import Quantity
    from sojourn.numbers import MeanAndInterval
    from sojourn.sweeps.grid import Grid, SweepCell

LEAST_WIDTH = 80
"""The width of output to a file, and the least width of a terminal's."""


def rendered(grid: Grid, form: str, names: Sequence[str], width: int = LEAST_WIDTH) -> str:
    """The table in a format of `FORMATS`, with the named columns; without names, the format's
    default columns."""
    shown = grid.selected(names) if names else None
    return FORMATS[form](grid, shown, max(width, LEAST_WIDTH))


def parquet(grid: Grid, names: Sequence[str]) -> bytes:
    """The table as Parquet: the data frame of `sojourn.sweep`, a row for each cell."""
    from sojourn.sweeps.frames import frame

    file = io.BytesIO()
    frame(grid, "cell", grid.selected(names) if names else None).write_parquet(file)
    return file.getvalue()


def fitting(grid: Grid, width: int) -> list[Quantity]:
    """The quantities that differ between cells: as many as fit, the most important first, at least
    one."""
    shown: list[Quantity] = []
    for one in grid.differing():
        if shown and len(_ruler(grid, [*shown, one])) > width:
            break
        shown.append(one)
    return shown


def left_out(grid: Grid, shown: Sequence[Quantity]) -> list[str]:
    """The names of the quantities that differ and are not shown."""
    return [one.key for one in grid.differing() if one not in shown]


# ----------------------------------------------------------------------------------------- formats

_Shown = Sequence["Quantity"] | None


def _text(grid: Grid, shown: _Shown, width: int) -> str:
    quantities = fitting(grid, width) if shown is None else shown
    return text.table(*_cells(grid, quantities), left=len(grid.keys))


def _markdown(grid: Grid, shown: _Shown, width: int) -> str:
    quantities = fitting(grid, width) if shown is None else shown
    header, rows = _cells(grid, quantities)
    rule = ["---"] * len(grid.keys) + ["--:"] * len(quantities)
    lines = [[_of_markdown(cell) for cell in line] for line in (header, *rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def _of_markdown(cell: str) -> str:
    bare = cell.strip().replace("\\", "\\\\").replace("|", "\\|")
    return f"**{bare.removesuffix(text.BEST)}**" if bare.endswith(text.BEST) else bare


def _latex(grid: Grid, shown: _Shown, width: int) -> str:
    """A tabular with the rules of the package booktabs."""
    quantities = fitting(grid, width) if shown is None else shown
    header, rows = _cells(grid, quantities)
    lines = [" & ".join(map(_of_latex, line)) + r" \\" for line in (header, *rows)]
    columns = "l" * len(grid.keys) + "r" * len(quantities)
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            lines[0],
            r"\midrule",
            *lines[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def _of_latex(cell: str) -> str:
    bare = cell.strip()
    best = bare.endswith(text.BEST)
    escaped = "".join(_LATEX.get(sign, sign) for sign in bare.removesuffix(text.BEST))
    return rf"\textbf{{{escaped}}}" if best else escaped


def _csv(grid: Grid, shown: _Shown, _: int) -> str:
    from sojourn.sweeps.frames import frame

    return frame(grid, "cell", shown).write_csv().rstrip("\n")


def _json(grid: Grid, shown: _Shown, _: int) -> str:
    quantities = grid.quantities if shown is None else shown
    whole = {
        "keys": list(grid.keys),
        "columns": [
            {"key": one.key, "name": one.name, "unit": one.unit, "of": one.of, "better": one.better}
            for one in quantities
        ],
        "rows": [_object(cell, quantities) for cell in grid.cells],
    }
    return text.as_json(whole, "cells")


def _object(cell: SweepCell, shown: Sequence[Quantity]) -> dict[str, Any]:
    def finite(value: float) -> float | None:
        return None if math.isnan(value) else value

    numbers = {}
    for one in shown:
        mean, half = cell.values(one.key)
        numbers[one.key] = {"mean": finite(mean), "ci95": finite(half), "best": cell.best(one.key)}
    return {
        "label": cell.label,
        "settings": dict(cell.settings),
        "seeds": list(cell.at.summary.seeds),
        "samples": cell.at.summary.samples,
        "numbers": numbers,
    }


FORMATS: dict[str, Callable[[Grid, _Shown, int], str]] = {
    "table": _text,
    "md": _markdown,
    "csv": _csv,
    "latex": _latex,
    "json": _json,
}


# ------------------------------------------------------------------------------------------ pieces


def _cells(grid: Grid, shown: Sequence[Quantity]) -> tuple[list[str], list[list[str]]]:
    """The header and the rows. A number that is better than all its competitors has a star."""
    header = [*grid.headings, *(f"{_head(one)} " for one in shown)]
    rows = [
        [
            *(_short(grid.written(cell.settings.get(key))) for key in grid.keys),
            *(_number(cell, one) for one in shown),
        ]
        for cell in grid.cells
    ]
    return header, rows


def _head(quantity: Quantity) -> str:
    short = quantity.short or quantity.name
    return short if quantity.of in ("", *short.split()) else f"{quantity.of} {short}"


LONGEST = 24
"""Most characters of a setting: a trace that is written into the scenario is very long."""


def _short(setting: str) -> str:
    plain = re.sub(r"\s+", " ", setting)
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"


def _number(cell: SweepCell, quantity: Quantity) -> str:
    mean, half = cell.values(quantity.key)
    entry: MeanAndInterval[float] = {"mean": mean, "ci95": half}
    written = text.count(entry) if quantity.count else text.with_interval(entry, most=quantity.most)
    return written + (text.BEST if cell.best(quantity.key) else " ")


def _ruler(grid: Grid, shown: Sequence[Quantity]) -> str:
    return text.table(*_cells(grid, shown), left=len(grid.keys)).splitlines()[1]
