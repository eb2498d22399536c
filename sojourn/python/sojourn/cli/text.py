"""Tables and numbers as plain text, readable without colour and in any width."""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sojourn import digits
from sojourn.digits import decimals as decimals
from sojourn.digits import number as number
from sojourn.digits import rate as rate

if TYPE_CHECKING:
    from sojourn.numbers import MeanAndInterval


BEST = "*"


def as_json(whole: Mapping[str, Any], schema: str = "") -> str:
    """The output of --json: one indented object without NaN. `schema`: its name in
    `sojourn.outputs`."""
    if schema:
        from sojourn import outputs

        return outputs.as_json(schema, whole)
    return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)


RANGES = "≤a: the interval is from 0 to a; ≥a: from a to the largest value, 100 % or 1"
"""The meaning of the signs of `with_interval`."""


def with_interval(
    entry: "MeanAndInterval[float]", scale: float = 1.0, most: float = math.inf
) -> str:
    """`14.2 ±0.3` from {mean, ci95}; `14.2` for one seed. `most` as in `digits`."""
    return digits.with_interval(entry["mean"] * scale, entry["ci95"] * scale, most)


def percent(entry: "MeanAndInterval[float]") -> str:
    """`14.2 ±0.3` from a share, in percent."""
    return with_interval(entry, 100, 100)


def count(entry: "MeanAndInterval[float]") -> str:
    """A count: a whole number if it comes from one seed."""
    if math.isnan(entry["ci95"]) and not math.isnan(entry["mean"]):
        return f"{entry['mean']:.0f}"
    return with_interval(entry)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Aligned columns: the first `left` to the left, the others to the right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    return "\n".join(
        [line(header), "  ".join("-" * width for width in widths), *(line(row) for row in rows)]
    )


def fitted(
    header: Sequence[str], rows: Sequence[Sequence[str]], spared: Sequence[str], left: int = 1
) -> str:
    """The table, made to fit the terminal: columns of `spared` are left out in their order until
    the table fits. A line below names them. Output to a file has all columns."""
    width = shutil.get_terminal_size((10_000, 24)).columns
    removed: list[str] = []
    while True:
        kept = [i for i, name in enumerate(header) if name not in removed]
        cells = [[line[i] for i in kept] for line in (header, *rows)]
        shown = table(cells[0], cells[1:], sum(i < left for i in kept))
        more = [name for name in spared if name in header and name not in removed]
        if max(map(len, shown.splitlines())) <= width or not more:
            break
        removed.append(more[0])
    if not removed:
        return shown
    named = ", ".join(name for name in header if name in removed)
    return f"{shown}\nleft out, to fit {width} columns (--json has all): {named}"


def ranges(numbers: Sequence[int]) -> str:
    """`1-3, 7, 9-10` from whole numbers in ascending order."""
    spans: list[list[int]] = []
    for value in numbers:
        if spans and spans[-1][1] == value - 1:
            spans[-1][1] = value
        else:
            spans.append([value, value])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans) or "none"


def about_rate(bps: float) -> str:
    """`4.56 Mbit/s`: three significant digits."""
    return rate(int(float(f"{bps:.3g}")))
