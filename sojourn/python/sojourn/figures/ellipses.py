"""Delay against goodput: a point for each run, and the ellipse of each candidate's points.

RFC 7928 section 2.7 asks for this figure. The ellipse is the contour at one standard deviation of
the Gaussian of maximum likelihood (Winstein 2014); the marker is the median of each axis.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn.figures import style

COLUMNS = 3
"""The largest number of panels in a row."""
LOG_FROM = 8
"""The axis of delays is logarithmic if they differ by more than this factor."""
LEGEND_LINE = 0.165
"""The width of a candidate in the legend, inches."""
FEW_TICKS_FROM = 80
"""Above this factor a logarithmic axis has numbers only at powers of ten, because room is short."""
LEAST_SPAN = 0.8
"""The axis of goodput begins at the lowest goodput, or at this share of the highest one if that is
lower."""


@dataclass(frozen=True)
class Cloud:
    """The runs of one candidate: a delay in ms and a goodput in Mbit/s each."""

    label: str
    colour: str
    marker: str
    delays: Sequence[float]
    goodputs: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """The candidates under the same conditions."""

    title: str
    clouds: Sequence[Cloud]


@style.drawn
def ellipses(title: str, subtitle: str, delay: str, panels: Sequence[Panel]) -> Figure:
    """Delay against goodput, a panel for each condition and a colour for each candidate.

    Args:
        delay: the kind of delay, for the label of its axis.
    """
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    width, each = max(4.6, 2.9 * columns + 1.8), 2.3
    labels = list({cloud.label: cloud for panel in panels for cloud in panel.clouds}.values())
    legend = 0.8 + LEGEND_LINE * len(labels)
    figure = style.blank(width, max(1.3 + (each + 0.65) * rows, legend))
    top = style.heading(figure, title, subtitle)
    margins = style.Margins(top=top + 0.35, right=1.75, bottom=0.5)
    grid = style.panels(figure, margins, (1,) * rows, columns, 0.7)
    places = [axes for row in grid for axes in row]
    every = [
        value
        for panel in panels
        for cloud in panel.clouds
        for value in cloud.delays
        if value > 0 and math.isfinite(value)
    ]
    log = (min(every), max(every)) if every and max(every) > LOG_FROM * min(every) else None
    for axes, panel in zip(places, panels, strict=False):
        _panel(axes, panel, log)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    rates = [
        value
        for panel in panels
        for cloud in panel.clouds
        for value in cloud.goodputs
        if math.isfinite(value)
    ]
    if rates:
        # A minimal span, so that hundredths of a Mbit/s do not fill the panel.
        low = min(*rates, LEAST_SPAN * max(rates))
        for axes in places[: len(panels)]:
            axes.set_ylim(0.97 * low, 1.03 * max(rates))
    if every:
        span = (min(every) / 1.3, max(every) * 1.3) if log else (0, max(every) * 1.15)
        for axes in places[: len(panels)]:
            axes.set_xlim(*span)
    for number, axes in enumerate(places[: len(panels)]):
        if number + columns >= len(panels):
            axes.set_xlabel(f"{delay} [ms]")
        if number % columns == 0:
            axes.set_ylabel("goodput [Mbit/s]")
    handles = [
        Line2D([], [], marker=one.marker, linestyle="none", color=one.colour, markersize=5)
        for one in labels
    ]
    figure.legend(
        handles, [style.shorten(cloud.label, 22) for cloud in labels],
        loc="upper right", fontsize=8, bbox_to_anchor=(1, 1 - (top + 0.1) / figure.get_size_inches()[1]),
    )  # fmt: skip
    return figure


def _panel(axes: Axes, panel: Panel, log: tuple[float, float] | None) -> None:
    """`log`: the lowest and highest delay of all panels, if the axis is logarithmic."""
    lines = textwrap.wrap(panel.title, 36, max_lines=2, placeholder=" …")
    axes.set_title("\n".join(lines), size=7.5, loc="left", parse_math=False)
    if log:
        axes.set_xscale("log")
        low, high = log
        numbers = (1.0,) if high > FEW_TICKS_FROM * low else (1.0, 2.0, 5.0)
        axes.xaxis.set_major_locator(LogLocator(10, subs=numbers))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    for cloud in panel.clouds:
        points = np.array(
            [
                (x, y)
                for x, y in zip(cloud.delays, cloud.goodputs, strict=True)
                if math.isfinite(x + y) and (x > 0 or not log)
            ]
        )
        if not len(points):
            continue
        axes.plot(points[:, 0], points[:, 1], ".", color=cloud.colour, markersize=3, alpha=0.6)
        middle = np.median(points, axis=0)
        axes.plot(
            *middle, marker=cloud.marker, color=cloud.colour, markersize=6, markeredgecolor="white"
        )
        if len(points) > 2:
            _ellipse(axes, points, cloud.colour, log is not None)


def _ellipse(
    axes: Axes, points: np.ndarray[tuple[int, int], np.dtype[np.float64]], colour: str, log: bool
) -> None:
    """The ellipse of a cloud; on a logarithmic axis, that of the logarithms."""
    if log:
        points = np.column_stack((np.log10(points[:, 0]), points[:, 1]))
    x, y = contour(points)
    x = 10**x if log else x
    axes.fill(x, y, color=colour, alpha=0.18, linewidth=0)
    axes.plot(x, y, color=colour, linewidth=1)


def contour(
    points: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The ellipse at one standard deviation of the Gaussian of maximum likelihood.

    Args:
        points: (n, 2).

    Returns:
        (2, 73): x and y around it, the last point the first.
    """
    values, vectors = np.linalg.eigh(np.cov(points.T, bias=True))
    radii = np.sqrt(np.clip(values, 0, None))
    turn = np.linspace(0, 2 * np.pi, 73)
    circle = np.vstack((np.cos(turn), np.sin(turn)))
    return np.asarray(points.mean(axis=0)[:, None] + vectors @ (radii[:, None] * circle))
