"""Draws numbers with the eight block characters: sparklines of one line, and charts of several
lines."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

EIGHTHS = "▁▂▃▄▅▆▇█"


def eighth(value: float, top: float) -> str:
    """The bar for one value of a sparkline. `top`: the greatest value of the sparkline, at least
    0."""
    return EIGHTHS[min(int(value * len(EIGHTHS) / top), len(EIGHTHS) - 1)] if top else EIGHTHS[0]


def sparkline(values: Sequence[float]) -> str:
    """A bar for each value, from 0 to the greatest; a blank for what is not known (NaN)."""
    top = max((value for value in values if not math.isnan(value)), default=0)
    return "".join(" " if math.isnan(value) else eighth(value, top) for value in values)


def chart(values: Sequence[float], top: float, height: int) -> list[str]:
    """The lines of a chart, uppermost first: a column for each value, from 0 to `top`."""
    filled = [
        0 if math.isnan(value) or not top else math.ceil(value * height * len(EIGHTHS) / top)
        for value in values
    ]
    return [
        "".join(_cell(eighths - line * len(EIGHTHS)) for eighths in filled)
        for line in reversed(range(height))
    ]


def _cell(eighths: int) -> str:
    return EIGHTHS[min(eighths, len(EIGHTHS)) - 1] if eighths > 0 else " "


def drawable() -> bool:
    """Whether stdout is a terminal that can show block characters."""
    try:
        EIGHTHS.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return sys.stdout.isatty()
