"""Small charts as SVG (chart.html): lines over a swept value with 95 % bands. All charts of one
quantity have the same axes. Pure.

They are not drawn by matplotlib, so that each keeps its size: on a telephone the charts are
stacked, and their text stays readable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sojourn import hypertext
from sojourn.digits import on_page
from sojourn.figures import style
from sojourn.report import parts

WIDTH, HEIGHT = 330.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 12.0, 8.0, 38.0
LEAST_GAP = 12.0
"""The least gap between the labels of an axis, px."""
LETTER = 6.4
"""The width of a letter of a label, px."""


@dataclass(frozen=True)
class Spot:
    """A mean over seeds at one place of the horizontal axis."""

    x: float
    mean: float
    low: float
    high: float
    """The ends of the 95 % interval; NaN: none."""


@dataclass(frozen=True)
class Curve:
    """A contender over the swept value."""

    label: str
    colour: str
    dash: style.Dash
    points: tuple[Spot, ...]
    joined: bool = True
    """Joined by a line, with the intervals as a band; otherwise each point is a dot."""
    marks: str = ""
    """The marks of the swept values that this curve belongs to."""


@dataclass(frozen=True)
class Span:
    """An axis: from the least value to the largest."""

    low: float
    high: float
    log: bool
    ticks: tuple[tuple[float, str], ...]
    """Positions and their labels."""

    def place(self, value: float, start: float, end: float) -> float:
        """The position of a value between two ends, px."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = (math.log10(max(each, 1e-9)) for each in (low, high, value))
        share = 0.5 if high == low else (at - low) / (high - low)
        return start + min(max(share, 0.0), 1.0) * (end - start)


def span_of(values: Sequence[float], log: bool, *, from_0: bool = True) -> Span:
    """An axis for these values, with round ticks. A linear axis begins at 0, or at the least
    value."""
    known = [value for value in values if math.isfinite(value)]
    if log:
        low = 10 ** math.floor(math.log10(min(known)))
        high = max(known) * 1.15
        steps = [low * 10**n for n in range(int(math.log10(high / low)) + 1)]
        if len(steps) < 3:
            steps = [step * n for step in steps for n in (1, 2, 5)]
        ticks = [step for step in steps if low <= step <= high]
        return Span(low, high, True, tuple((tick, f"{tick:g}") for tick in ticks))
    low = min(0.0, *known) if from_0 else min(known)
    high = max(max(known) * 1.05 if from_0 else max(known), low + 1e-9)
    step = _round_step((high - low) / 4)
    if not from_0:
        low, high = step * math.floor(low / step), step * math.ceil(high / step)
    first = math.ceil(low / step)
    ticks = [n * step for n in range(first, math.floor(high / step) + 1)]
    return Span(low, high, False, tuple((tick, _plain(tick, step)) for tick in ticks))


def _round_step(about: float) -> float:
    scale = 10.0 ** math.floor(math.log10(about))
    return next(scale * n for n in (1, 2, 5, 10) if scale * n >= about)


def _plain(tick: float, step: float) -> str:
    places = max(0, -math.floor(math.log10(step)))
    return f"{tick:.{places}f}"


Placed = Callable[[float], float]
"""Converts a value to its position, px."""

FRAME = {
    "width": f"{WIDTH:.0f}",
    "height": f"{HEIGHT:.0f}",
    "left": f"{LEFT:.0f}",
    "left_of": f"{LEFT - 6:.0f}",
    "right": f"{WIDTH - RIGHT:.0f}",
    "middle": f"{(LEFT + WIDTH - RIGHT) / 2:.0f}",
    "bottom": f"{HEIGHT - BOTTOM:.0f}",
    "tick": f"{HEIGHT - BOTTOM + 4:.0f}",
    "below": f"{HEIGHT - BOTTOM + 17:.0f}",
    "unit": f"{HEIGHT - 4:.0f}",
}
"""The fixed positions in every chart, px."""


def chart(title: str, curves: Sequence[Curve], across: Span, up: Span, unit: str) -> Markup:
    """One chart. `title` is for screen readers; `unit` is below the horizontal axis."""

    def x(value: float) -> float:
        return across.place(value, LEFT, WIDTH - RIGHT)

    def y(value: float) -> float:
        return up.place(value, HEIGHT - BOTTOM, TOP)

    rows = [(f"{y(value):.1f}", f"{y(value) + 4:.1f}", label) for value, label in up.ticks]
    drawn = [_drawn(curve, x, y) for curve in curves]
    values = (title, unit, FRAME, rows, _ticks(across, x), drawn)
    return hypertext.part("sojourn.report/chart.html", "chart", *values)


def _ticks(across: Span, x: Placed) -> list[tuple[str, str, str]]:
    """The ticks of the horizontal axis: position, position of the label, label. A label that would
    touch its neighbour has no position."""
    ticks = []
    free = 0.0
    for value, label in across.ticks:
        half = LETTER * len(label) / 2
        at = min(max(x(value), half), WIDTH - half)
        fits = at - half >= free
        ticks.append((f"{x(value):.1f}", f"{at:.1f}" if fits else "", label))
        free = at + half + LEAST_GAP if fits else free
    return ticks


def _drawn(curve: Curve, x: Placed, y: Placed) -> dict[str, Any]:
    known = [point for point in curve.points if math.isfinite(point.mean)]
    path = " ".join(f"{x(point.x):.1f},{y(point.mean):.1f}" for point in known)
    return {
        "marks": curve.marks,
        "stroke": parts.stroke(curve.colour, curve.dash),
        "band": _band(curve, x, y),
        "path": path if curve.joined else None,
        "dots": [_dot(curve.label, point, x, y) for point in known],
    }


def _band(curve: Curve, x: Placed, y: Placed) -> str:
    """The area of the 95 % intervals: its corners."""
    points = [point for point in curve.points if math.isfinite(point.high)]
    if len(points) < 2 or not curve.joined:
        return ""
    above = [f"{x(point.x):.1f},{y(point.high):.1f}" for point in points]
    below = [f"{x(point.x):.1f},{y(point.low):.1f}" for point in reversed(points)]
    return " ".join(above + below)


def _dot(label: str, point: Spot, x: Placed, y: Placed) -> dict[str, Any]:
    """A mean and the ends of its interval, with a text for both."""
    interval = math.isfinite(point.high)
    text = f"{label}: {on_page(point.mean)}"
    return {
        "x": f"{x(point.x):.1f}",
        "y": f"{y(point.mean):.1f}",
        "ends": (f"{y(point.low):.1f}", f"{y(point.high):.1f}") if interval else None,
        "text": f"{text}, {on_page(point.low)} to {on_page(point.high)}" if interval else text,
    }


FOREST = 150.0
"""The width of a difference's bar, px."""


def interval(low: float, value: float, high: float, colour: str) -> Markup:
    """An interval in percent as a bar from -100 to 100, with 0 in the middle; longer ones are
    cut."""
    axis = Span(-100.0, 100.0, False, ())
    left, at, right = (f"{axis.place(each, 4.0, FOREST - 4):.1f}" for each in (low, value, high))
    ends = (left, right) if math.isfinite(low + high) else None
    values = (f"{FOREST:.0f}", f"{FOREST / 2:.0f}", ends, at, parts.themed(colour))
    return hypertext.part("sojourn.report/chart.html", "interval", *values)
