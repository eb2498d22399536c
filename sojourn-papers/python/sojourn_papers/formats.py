"""Formats of numbers, times and lists of them in pages, figures and claims of papers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sojourn.digits import on_page as number


def time(seconds: float) -> str:
    """`9.76 s`, `341 ms`."""
    return f"{number(seconds)} s" if seconds >= 0.9995 else f"{number(1e3 * seconds)} ms"


def each(values: Iterable[float], places: int = 0) -> str:
    """`167, 234, 447`."""
    return ", ".join(f"{value:.{places}f}" for value in values)


def at(values: Mapping[Any, float], places: int = 0, unit: str = "") -> str:
    """`512: 1.26 s, 4096: 9.76 s`: keys and values."""
    end = f" {unit}" if unit else ""
    return ", ".join(f"{key}: {value:.{places}f}{end}" for key, value in values.items())


def names(values: Iterable[Any]) -> str:
    """`16, 32 and 64`."""
    *most, last = map(str, values)
    return f"{', '.join(most)} and {last}" if most else last


def times(values: Mapping[Any, float]) -> str:
    """`512: 1.26 s, 80: 197 ms`: keys and seconds."""
    return ", ".join(f"{key}: {time(value)}" for key, value in values.items())
