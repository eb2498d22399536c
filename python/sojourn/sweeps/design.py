"""Points of a sweep that is no grid: drawn between two ends of each key. Pure, but for luck that is
handed in as a seed.

A grid of five keys with five values is 3125 cells. Fifty points that are spread over the same space
say more of each key. `latin` (McKay, Beckman, Conover 1979) cuts each key's range into as many
strata as there are points and puts one point into each; `random` draws each point by itself.

Each key has a random stream of its own, named by the key, so a further key moves no point of the
others. A range whose ends differ by more than a factor of eight is drawn on a logarithmic scale.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np

from sojourn.errors import UserError
from sojourn.sweeps.axes import Setting, logarithmic, scale
from sojourn.units import format_duration, format_rate, format_size

Design: TypeAlias = Literal["latin", "random"]
DIGITS = 4
"""Of a drawn number: a value that people can read, and write into a scenario."""


def points(
    ranges: Mapping[str, Sequence[Setting]], count: int, design: Design = "latin", seed: int = 1
) -> list[dict[str, Setting]]:
    """So many points, each with a value for every key between the two ends of its range.

    Two whole numbers are a range of whole numbers; else the ends are quantities of one kind, and so
    are the values.

    Raises:
        UserError: a range is none.
    """
    if count < 1:
        raise UserError(f"samples={count}: at least one is needed", "write samples=50")
    if design not in ("latin", "random"):
        raise UserError(f"no design is called {design!r}", "designs: latin, random")
    columns = {key: _drawn(key, ends, count, design, seed) for key, ends in ranges.items()}
    return [{key: values[i] for key, values in columns.items()} for i in range(count)]


def _drawn(
    key: str, ends: Sequence[Setting], count: int, design: Design, seed: int
) -> list[Setting]:
    read = scale(ends) if len(ends) == 2 else None
    if read is None or not read.numbers[0] < read.numbers[1]:
        raise UserError(
            f"{key}: {list(ends)!r} is no range",
            'write the lower and the upper end, of one quantity: ("1 Mbit/s", "100 Mbit/s")',
        )
    low, high = read.numbers
    whole = all(isinstance(end, int) for end in ends)
    return [
        _value(_between(share, low, high, whole), read.unit, whole)
        for share in shares(count, design, np.random.default_rng([seed, zlib.crc32(key.encode())]))
    ]


def shares(count: int, design: Design, luck: np.random.Generator) -> list[float]:
    """Places in a range, 0 to 1."""
    within = luck.random(count)
    if design == "random":
        return [float(share) for share in within]
    return [float(share) for share in (luck.permutation(count) + within) / count]


def _between(share: float, low: float, high: float, whole: bool) -> float:
    """The number at this share of a range."""
    if logarithmic((low, high)):
        found = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    elif whole:
        # Each whole number has a share of its own, the ends too.
        return float(min(math.floor(low + share * (high - low + 1)), high))
    else:
        found = low + share * (high - low)
    rounded = float(f"{found:.{DIGITS}g}")
    return min(max(rounded, low), high)


_WRITTEN: dict[str, Callable[[float], str]] = {
    "Mbit/s": lambda number: format_rate(round(number * 1e6)),
    "ms": lambda number: format_duration(round(number * 1e6)),
    "kB": lambda number: format_size(round(number * 1e3)),
    "%": lambda number: f"{number:.{DIGITS}g} %",
}


def _value(number: float, unit: str, whole: bool) -> Setting:
    """As a scenario says it."""
    if unit:
        return _WRITTEN[unit](number)
    return round(number) if whole else number
