"""Swept keys and their values: the heading of a key, and its values as numbers. Pure.

A value is text as in the scenario: "5 Mbit/s". Drawings and computations need the number. The name
of its column has the unit: `bottleneck.rate_mbps`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sojourn.units import UnitError, parse_duration, parse_probability, parse_rate, parse_size

Setting = str | int | float | bool


@dataclass(frozen=True)
class Scale:
    """The values of a key as numbers."""

    unit: str
    """The unit for people: "Mbit/s"; empty: a plain number."""
    suffix: str
    """The unit in the name of a column: "mbps"."""
    numbers: tuple[float, ...]
    """The numbers, in the order of the values."""


def scale(values: Sequence[Setting]) -> Scale | None:
    """The values as numbers of one unit; None: they are not all of one kind."""
    if not values or any(isinstance(value, bool) for value in values):
        return None
    if all(isinstance(value, int | float) for value in values):
        return Scale("", "", tuple(map(float, values)))
    for unit, suffix, read in _QUANTITIES:
        try:
            return Scale(unit, suffix, tuple(read(value) for value in values))
        except UnitError:
            continue
    return None


def _share(value: Setting) -> float:
    if not str(value).endswith("%"):
        raise UnitError(f"{value} is not a share")
    return 100 * parse_probability(value)


_QUANTITIES: tuple[tuple[str, str, Callable[[Setting], float]], ...] = (
    ("Mbit/s", "mbps", lambda value: parse_rate(value, zero=True) / 1e6),
    ("ms", "ms", lambda value: parse_duration(value) / 1e6),
    ("kB", "kb", lambda value: parse_size(value) / 1e3),
    ("%", "percent", _share),
)


def headings(keys: Sequence[str]) -> list[str]:
    """The last words of each key, as many as make it different from the others: "rate",
    "bulk.count"."""
    return [_heading(key, [other for other in keys if other != key]) for key in keys]


def _heading(key: str, others: Sequence[str]) -> str:
    words = key.split(".")
    for length in range(1, len(words)):
        short = words[-length:]
        if all(other.split(".")[-length:] != short for other in others):
            return ".".join(short)
    return key


def logarithmic(numbers: Sequence[float]) -> bool:
    """Whether these numbers spread so widely that a linear axis would crowd the small ones."""
    known = [number for number in numbers if math.isfinite(number)]
    return bool(known) and min(known) > 0 and max(known) > 8 * min(known)


def written(value: Setting | None) -> str:
    """A value as text in a cell of a table."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
