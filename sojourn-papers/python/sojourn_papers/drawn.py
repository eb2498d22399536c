"""The data of a figure's panels as CSV, in the units of their axes.

    panel,series,x,y,low,high
    dropped packets,"RED, ours",512,1210,1198,1222

Lines, bars and fields are read back from the figure itself, so that picture and data can't differ.
`low` and `high` are the ends of a bar around a mean. If an axis has names instead of numbers, the
nearest name is written. Fields (`drawing.grid_of_numbers`) have the name of their row as series.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from sojourn_papers import drawing

HEAD = ("panel", "series", "x", "y", "low", "high")
Cell = str | float
Row = tuple[str, str, Cell, Cell, Cell, Cell]
Ends = dict[tuple[str, str], tuple[float, float]]
"""The ends of the bar around a point, by the point."""
Look = tuple[str, str, str]
"""Colour, dash and marker; bars have a colour only."""


def as_csv(figure: Figure) -> str:
    """The data of every panel."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(HEAD)
    named = _labels(figure)
    for number, axes in enumerate(figure.axes, 1):
        table.writerows(_panel(axes, number, named))
    return out.getvalue()


def _labels(figure: Figure) -> dict[Look, str]:
    """The label of each look: the first of several lines or bars has the label for all."""
    found: dict[Look, str] = {}
    for axes in figure.axes:
        artists: list[BarContainer | Line2D] = [*_bars(axes), *axes.lines]
        for artist in artists:
            if label := _label(artist):
                found.setdefault(_look(artist), label)
    return found


def _bars(axes: Axes) -> list[BarContainer]:
    return [one for one in axes.containers if isinstance(one, BarContainer)]


def _look(artist: BarContainer | Line2D) -> Look:
    if isinstance(artist, Line2D):
        return to_hex(artist.get_color()), str(artist.get_linestyle()), str(artist.get_marker())
    return to_hex(artist.patches[0].get_facecolor()), "bar", ""


def _panel(axes: Axes, number: int, named: Mapping[Look, str]) -> Iterator[Row]:
    name = axes.get_ylabel() or _above(axes) or f"panel {number}"
    panel = " ".join(name.split())
    ends = _ends(axes)
    for image in axes.images:
        yield from _fields(axes, panel, image)
    for bar in _bars(axes):
        yield from _bar(axes, panel, bar, ends, _label(bar) or named.get(_look(bar), ""))
    errors = [one for one in axes.containers if isinstance(one, ErrorbarContainer)]
    caps = {cap for one in errors for cap in one.lines[1]}
    for line in axes.lines:
        if line not in caps:
            label = _label(line) or named.get(_look(line), "")
            yield from _line(axes, panel, line, ends, label)


def _above(axes: Axes) -> str:
    """The text above a panel without a label."""
    above = [one for one in axes.texts if getattr(one, "xycoords", "") == "axes fraction"]
    return above[0].get_text() if above else ""


def _line(axes: Axes, panel: str, line: Line2D, ends: Ends, label: str) -> Iterator[Row]:
    """A line's points; for a level across the panel, its value only."""
    xs, ys = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    across_x, across_y = (
        not one for one in line.get_transform().contains_branch_seperately(axes.transData)
    )
    if across_x or across_y:
        x = "" if across_x else _at(axes.xaxis, xs[0])
        y = "" if across_y else float(ys[0])
        yield panel, label or "level", x, y, "", ""
        return
    for place in zip(xs.tolist(), ys.tolist(), strict=True):
        low, high = ends.get(_key(*place), ("", ""))
        yield panel, label, _at(axes.xaxis, place[0]), _at(axes.yaxis, place[1]), low, high


def _bar(axes: Axes, panel: str, bars: BarContainer, ends: Ends, label: str) -> Iterator[Row]:
    for one in bars.patches:
        x, y = one.get_x() + one.get_width() / 2, one.get_y() + one.get_height()
        if bars.orientation == "horizontal":
            x, y = one.get_x() + one.get_width(), one.get_y() + one.get_height() / 2
        low, high = ends.get(_key(x, y), ("", ""))
        yield panel, label, _at(axes.xaxis, x), _at(axes.yaxis, y), low, high


def _fields(axes: Axes, panel: str, image: AxesImage) -> Iterator[Row]:
    """A field for each row and column."""
    fields = drawing.FIELDS.get(image)
    if fields is None:
        return
    for (row, column), value in np.ndenumerate(fields):
        yield panel, str(_at(axes.yaxis, row)), _at(axes.xaxis, column), float(value), "", ""


def _ends(axes: Axes) -> Ends:
    """The ends of the bars around means, vertical and horizontal."""
    found: Ends = {}
    for collection in axes.collections:
        if not isinstance(collection, LineCollection):
            continue
        for (x0, y0), (x1, y1) in (part for part in collection.get_segments() if len(part) == 2):
            if x0 == x1:
                found[_key(x0, (y0 + y1) / 2)] = float(y0), float(y1)
            elif y0 == y1:
                found[_key((x0 + x1) / 2, y0)] = float(x0), float(x1)
    return found


def _key(x: float, y: float) -> tuple[str, str]:
    """A key for a point that ignores rounding errors in the last digits."""
    return f"{x:.9g}", f"{y:.9g}"


def _at(axis: Axis, value: float) -> Cell:
    """A value, or the name that the axis has there."""
    locator, named = axis.get_major_locator(), axis.get_major_formatter()
    if not isinstance(locator, FixedLocator):
        return float(value)
    names = {
        float(place): named(float(place), at) for at, place in enumerate(axis.get_majorticklocs())
    }
    near = min(names, key=lambda place: abs(place - value), default=math.inf)
    if abs(near - value) >= 0.5 or not names[near] or names[near] == f"{near:g}":
        return float(value)
    return names[near]


def _label(artist: BarContainer | Line2D) -> str:
    """The artist's label, unless matplotlib made it, which begins with an underscore."""
    text = str(artist.get_label())
    return "" if text.startswith("_") else text
