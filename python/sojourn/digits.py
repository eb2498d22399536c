"""Numbers as people read them: about three digits, and an uncertainty with as many decimals as what it belongs to."""

from __future__ import annotations

import math


def number(value: float, places: int | None = None) -> str:
    """About three digits: 812, 14.2, 0.97; "-" for what is not known."""
    if math.isnan(value):
        return "-"
    return f"{value:.{decimals(value) if places is None else places}f}"


def decimals(value: float) -> int:
    """How many decimals show about three digits; at most four."""
    size = abs(value)
    if value == 0:
        return 0
    return next((places for places, least in enumerate((99.95, 9.995, 0.0995, 0.00995)) if size >= least), 4)


def with_interval(mean: float, half: float) -> str:
    """`14.2 ±0.3`; without the second part where there is no interval."""
    if math.isnan(mean) or math.isnan(half):
        return number(mean)
    return f"{number(mean)} ±{number(half, decimals(mean))}"
