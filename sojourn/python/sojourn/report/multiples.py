"""Small charts as SVG text: lines over a swept value with their 95 % bands, all of one quantity on
the same axes. Pure.

They are drawn here and not by matplotlib, because on a page each keeps its size: on a telephone one
stands below the other, and its type stays readable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from sojourn.digits import on_page
from sojourn.figures import style
from sojourn.report import data, parts

WIDTH, HEIGHT = 330.0, 210.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 12.0, 8.0, 38.0
LEAST_GAP = 12.0
"""Between the labels of an axis, px."""
LETTER = 6.4
"""How wide a letter of a label is, px."""


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
    """One of those that compete, over the swept value."""

    label: str
    colour: str
    dash: style.Dash
    points: tuple[Spot, ...]
    joined: bool = True
    """By a line, with the intervals as a band; else each is a dot of its own."""
    mark: str = ""
    """Attributes of what is drawn of it."""


@dataclass(frozen=True)
class Span:
    """An axis: from the least value to the largest."""

    low: float
    high: float
    log: bool
    ticks: tuple[tuple[float, str], ...]
    """Places and what is written there."""

    def place(self, value: float, start: float, end: float) -> float:
        """Where a value is between two ends, px."""
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = (math.log10(max(each, 1e-9)) for each in (low, high, value))
        share = 0.5 if high == low else (at - low) / (high - low)
        return start + min(max(share, 0.0), 1.0) * (end - start)


def span_of(values: Sequence[float], log: bool, *, from_0: bool = True) -> Span:
    """An axis for these values, with round ticks; a linear one begins at 0, or where the values
    do."""
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


def chart(title: str, curves: Sequence[Curve], across: Span, up: Span, unit: str) -> str:
    """One chart; `title` names it for who can't see it, `unit` stands below the horizontal axis."""
    inside = (LEFT, WIDTH - RIGHT)

    def x(value: float) -> float:
        return across.place(value, *inside)

    def y(value: float) -> float:
        return up.place(value, HEIGHT - BOTTOM, TOP)

    drawn = [*_grid(up, y), *_ticks(across, x)]
    drawn += [_group(curve, _band(curve, x, y)) for curve in curves]
    drawn += [_group(curve, "".join(_line(curve, x, y))) for curve in curves]
    drawn.append(
        f'<text x="{(inside[0] + inside[1]) / 2:.0f}" y="{HEIGHT - 4:.0f}" text-anchor="middle" '
        f'class="unit">{escape(unit)}</text>'
    )
    return (
        f'<svg class="multiple" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" '
        f'aria-label="{escape(title)}">{"".join(drawn)}</svg>'
    )


def _grid(up: Span, y: Callable[[float], float]) -> list[str]:
    drawn = []
    for value, label in up.ticks:
        at = y(value)
        drawn.append(
            f'<line class="grid" x1="{LEFT:.0f}" x2="{WIDTH - RIGHT:.0f}" y1="{at:.1f}" y2="{at:.1f}"/>'
            f'<text x="{LEFT - 6:.0f}" y="{at + 4:.1f}" text-anchor="end">{escape(label)}</text>'
        )
    return drawn


def _ticks(across: Span, x: Callable[[float], float]) -> list[str]:
    """Labels of the horizontal axis; one that would touch its neighbour is left out."""
    drawn = []
    free = 0.0
    for value, label in across.ticks:
        half = LETTER * len(label) / 2
        at = min(max(x(value), half), WIDTH - half)
        drawn.append(
            f'<line class="tick" x1="{x(value):.1f}" x2="{x(value):.1f}" '
            f'y1="{HEIGHT - BOTTOM:.0f}" y2="{HEIGHT - BOTTOM + 4:.0f}"/>'
        )
        if at - half < free:
            continue
        free = at + half + LEAST_GAP
        drawn.append(
            f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 17:.0f}" text-anchor="middle">{escape(label)}</text>'
        )
    return drawn


def _group(curve: Curve, drawn: str) -> str:
    return f"<g{curve.mark}>{drawn}</g>" if curve.mark and drawn else drawn


def _band(curve: Curve, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    """The 95 % intervals as an area."""
    those = [point for point in curve.points if math.isfinite(point.high)]
    if len(those) < 2 or not curve.joined:
        return ""
    above = [f"{x(point.x):.1f},{y(point.high):.1f}" for point in those]
    below = [f"{x(point.x):.1f},{y(point.low):.1f}" for point in reversed(those)]
    return (
        f'<polygon class="band" points="{" ".join(above + below)}" '
        f'style="fill: {parts.themed(curve.colour)}"/>'
    )


def _line(curve: Curve, x: Callable[[float], float], y: Callable[[float], float]) -> list[str]:
    those = [point for point in curve.points if math.isfinite(point.mean)]
    colour = parts.themed(curve.colour)
    pattern = " ".join(map(str, data.dash(curve.dash)))
    path = " ".join(f"{x(point.x):.1f},{y(point.mean):.1f}" for point in those)
    line = (
        f'<polyline points="{path}" style="stroke: {colour}" stroke-dasharray="{pattern}" '
        'fill="none" stroke-width="1.8"/>'
    )
    drawn = [line] if curve.joined else []
    for point in those:
        said = f"{curve.label}: {on_page(point.mean)}"
        at = x(point.x)
        if math.isfinite(point.high):
            said += f", {on_page(point.low)} to {on_page(point.high)}"
            ends = (y(point.low), y(point.high))
            drawn.append(
                f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{ends[0]:.1f}" y2="{ends[1]:.1f}" style="stroke: {colour}"/>'
            )
        drawn.append(
            f'<circle cx="{at:.1f}" cy="{y(point.mean):.1f}" r="3.2" style="fill: {colour}">'
            f"<title>{escape(said)}</title></circle>"
        )
    return drawn


def swatch(curve_colour: str, dash: style.Dash) -> str:
    """A short piece of a line, for a legend."""
    pattern = " ".join(map(str, data.dash(dash)))
    return (
        '<svg width="28" height="8" aria-hidden="true"><line x1="0" y1="4" x2="28" y2="4" '
        f'style="stroke: {parts.themed(curve_colour)}" stroke-width="2.4" stroke-dasharray="{pattern}"/></svg>'
    )


FOREST = 150.0
"""Width of a difference's interval, px."""


def interval(low: float, value: float, high: float, colour: str) -> str:
    """An interval of percent between -100 and 100 as a bar, with 0 in the middle; what reaches
    further is cut there."""
    whole = Span(-100.0, 100.0, False, ())
    left, at, right = (whole.place(each, 4.0, FOREST - 4) for each in (low, value, high))
    middle = FOREST / 2
    drawn = f'<line class="tick" x1="{middle:.0f}" x2="{middle:.0f}" y1="1" y2="15"/>'
    if math.isfinite(low + high):
        drawn += f'<line x1="{left:.1f}" x2="{right:.1f}" y1="8" y2="8" stroke-width="3" style="stroke: {parts.themed(colour)}"/>'
    drawn += f'<circle cx="{at:.1f}" cy="8" r="3.6" style="fill: {parts.themed(colour)}"/>'
    return f'<svg class="forest" width="{FOREST:.0f}" height="16" aria-hidden="true">{drawn}</svg>'
