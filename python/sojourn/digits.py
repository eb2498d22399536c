"""Numbers as people read them: about three digits, and an uncertainty with as many decimals as what it belongs to."""

from __future__ import annotations

import math

MOST_DECIMALS = 4


def number(value: float, places: int | None = None) -> str:
    """About three digits: 812, 14.2, 0.97; "-" for what is not known, 0 for what four decimals do not show."""
    if math.isnan(value):
        return "-"
    shown = f"{value:.{decimals(value) if places is None else places}f}"
    return "0" if float(shown) == 0 and (places is None or places >= MOST_DECIMALS) else shown


def decimals(value: float) -> int:
    """How many decimals show about three digits; at most four."""
    size = abs(value)
    if value == 0:
        return 0
    steps = enumerate((99.95, 9.995, 0.0995, 0.00995))
    return next((places for places, least in steps if size >= least), MOST_DECIMALS)


def with_interval(mean: float, half: float) -> str:
    """`14.2 ±0.3`; without the second part where there is no interval."""
    if math.isnan(mean) or math.isnan(half):
        return number(mean)
    # A mean of nothing has no digits of its own.
    places = decimals(mean) if round(mean, MOST_DECIMALS) else decimals(half)
    return f"{number(mean, places)} ±{number(half, places)}"
