"""Runs side by side: bars with 95 % intervals, and delay against goodput, the trade-off of a queue
discipline.

The ellipse is that of Winstein and Balakrishnan (TCP ex Machina, SIGCOMM 2013), which RFC 7928 §2.6
adopts. It is one standard deviation of the Gaussian fitted to the seeds' points, tilted by their
covariance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sojourn.arrays import Floats
from sojourn.digits import on_page, sides
from sojourn.figures import series, style
from sojourn.judgement import quantities
from sojourn.judgement.quantities import Measured, Quantity
from sojourn.records import Run

SHOWN = (
    *("goodput", "goodput_other", "utilisation", "sojourn_p50", "sojourn_p95"),
    *("ping_p95", "completion_mean:", "mos:", "late:", "drop_rate"),
)


@style.drawn
def bars(
    runs: Sequence[Run], *, ax: Axes | None = None, paper: style.Paper | None = None
) -> Figure:
    """Goodput, utilisation, sojourn, ping and drops of each Run: means over seeds with 95 %
    intervals."""
    runs = style.ordered(runs)
    series.check(runs)
    measured = quantities.measure(runs)
    looks = style.looks(runs, [one.link for one in measured])
    shown = quantities.known(measured, SHOWN)
    columns = min(1 if style.narrow() else 3, max(len(shown), 1))
    rows = max(-(-len(shown) // columns), 1)
    names = max(len(style.shorten(look.label, 34)) for look in looks)
    left = 0.3 + 0.066 * names
    each = 0.24 * len(runs) + 0.34
    figure = style.blank(max(9.8, left + 8.4), rows * (each + 0.55) + 1.25)
    top = style.heading(
        figure,
        series.title(runs),
        f"{series.subtitle(runs)} · bars: mean over seeds; whiskers: its 95 % confidence interval",
    )
    grid = style.panels(
        figure,
        style.Margins(top=top + 0.3, left=left, right=0.3, bottom=0.35),
        [1] * rows,
        columns,
        gap=0.55,
    )
    cells = [axes for row in grid for axes in row]
    if not shown:
        style.note(cells[0], "nothing was measured")
    for i, (axes, quantity) in enumerate(zip(cells, shown, strict=False)):
        _bars(axes, quantity, measured, looks, first=i % columns == 0)
    for axes in cells[max(len(shown), 1) :]:
        axes.remove()
    return figure


def _bars(
    axes: Axes,
    quantity: Quantity,
    measured: Sequence[Measured],
    looks: Sequence[style.Look],
    *,
    first: bool,
) -> None:
    arrow = "less is better" if quantity.better == "less" else "more is better"
    unit = f" [{quantity.unit}]" if quantity.unit else ""
    axes.set_title(
        f"{quantity.name}{unit}", loc="left", size=style.points(9), color=style.INK, pad=5
    )
    axes.annotate(
        arrow, (1, 1), xycoords="axes fraction", xytext=(0, 6), textcoords="offset points", ha="right", size=style.points(7),
        color=style.MUTED,
    )  # fmt: skip
    values = [one.over_seeds(quantity.key) for one in measured]
    places = np.arange(len(values))
    means = np.array([mean for mean, _ in values])
    spread = np.nan_to_num(np.array([ci for _, ci in values]))
    axes.barh(
        places,
        np.nan_to_num(means),
        height=0.62,
        color=[look.colour for look in looks],
        alpha=0.85,
        gid=quantity.key,
    )
    for place, mean, ci in zip(places, means, spread, strict=True):
        if np.isnan(mean):
            axes.annotate("not measured", (0, place), xytext=(4, 0), textcoords="offset points", size=style.points(7), va="center", color=style.MUTED)  # fmt: skip
            continue
        below, above = sides(mean, ci, quantity.most)
        if ci > 0:
            axes.errorbar(
                mean,
                place,
                xerr=[[min(below, mean)], [above]],
                color=style.INK,
                linewidth=0.9,
                capsize=2.2,
                capthick=0.9,
            )
        axes.annotate(
            on_page(mean), (mean + above, place), xytext=(4, 0), textcoords="offset points", size=style.points(7.5), va="center",
            color=style.INK,
        )  # fmt: skip
    most = float(np.nanmax(means + spread)) if np.isfinite(means).any() else 1.0
    axes.set_xlim(0, (most or 1.0) * 1.22)
    percent = quantity.unit == "%" and most > 60
    axes.xaxis.set_major_locator(FixedLocator([0, 25, 50, 75, 100]) if percent else MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(len(values) - 0.45, -0.55)
    axes.grid(False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_yticks(
        places,
        [style.shorten(look.label, 34) if first else "" for look in looks],
        parse_math=False,
        color=style.INK,
    )


# --------------------------------------------------------------------------------------- tradeoff


@dataclass(frozen=True)
class Contour:
    """An ellipse: centre, full axes, tilt in degrees."""

    x: float
    y: float
    width: float
    height: float
    tilt: float


def one_sigma(x: Sequence[float], y: Sequence[float]) -> Contour | None:
    """The 1-sigma contour of the Gaussian with the points' mean and covariance; None for fewer than
    three points."""
    points = np.array([x, y], dtype=np.float64)
    points = points[:, np.isfinite(points).all(axis=0)]
    if points.shape[1] < 3:
        return None
    spread, axes = np.linalg.eigh(np.cov(points))
    spread = np.sqrt(np.maximum(spread, 0))
    tilt = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
    centre = points.mean(axis=1)
    return Contour(
        float(centre[0]), float(centre[1]), 2 * float(spread[1]), 2 * float(spread[0]), tilt
    )


@style.drawn
def tradeoff(
    runs: Sequence[Run], *, ax: Axes | None = None, paper: style.Paper | None = None
) -> Figure:
    """Mean sojourn at the bottleneck against goodput: a point for each Run, its seeds as dots, and
    their 1-sigma ellipse."""
    runs = style.ordered(runs)
    series.check(runs)
    measured = quantities.measure(runs)
    looks = style.looks(runs, [one.link for one in measured])
    figure = style.blank(7.6, 5.4)
    top = style.heading(
        figure,
        series.title(runs),
        f"{series.subtitle(runs)} · large: mean over seeds; dots: seeds; ellipse: 1 sigma over seeds",
    )
    axes = style.panels(figure, style.Margins(top=top + 0.1, right=0.3, bottom=0.55))[0][0]
    axes.set_xlabel("mean sojourn at the bottleneck [ms]")
    at = "" if style.narrow() else "at the bottleneck "
    axes.set_ylabel(f"goodput {at}[Mbit/s]")
    x = [one.per_seed("sojourn_mean") for one in measured]
    y = [one.per_seed("goodput") for one in measured]
    pairs = [
        (a, b)
        for xs, ys in zip(x, y, strict=True)
        for a, b in zip(xs, ys, strict=True)
        if np.isfinite([a, b]).all()
    ]
    if not pairs:
        style.note(axes, "no packet was measured")
        return figure
    _scale(axes, np.array(pairs))
    ends = []
    for xs, ys, look in zip(x, y, looks, strict=True):
        if not np.isfinite([xs, ys]).all(axis=0).any():
            continue
        centre = float(np.nanmean(xs)), float(np.nanmean(ys))
        contour = one_sigma(xs, ys)
        if contour is not None:
            axes.add_patch(
                Ellipse(
                    (contour.x, contour.y), contour.width, contour.height, angle=contour.tilt, facecolor=look.colour,
                    alpha=0.25, edgecolor=look.colour, gid=f"ellipse {look.label}",
                )
            )  # fmt: skip
        if len(xs) > 1:
            axes.plot(
                xs, ys, linestyle="none", marker=".", markersize=4, color=look.colour, alpha=0.6, markeredgewidth=0,
                gid=f"seeds {look.label}",
            )  # fmt: skip
        axes.plot(
            *centre, marker=look.marker, markersize=8, color=look.colour, markeredgecolor="white", linestyle="none",
            gid=f"run {look.label}",
        )  # fmt: skip
        ends.append((look, centre))
    _better(axes)
    _names(axes, ends)
    return figure


def _scale(axes: Axes, points: Floats) -> None:
    delay, goodput = points[:, 0], points[:, 1]
    positive = delay[delay > 0]
    if positive.size and positive.max() / positive.min() > 8:
        axes.set_xscale("log", nonpositive="clip")
        axes.set_xlim(positive.min() / 2.2, positive.max() * 2.6)
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, max(float(delay.max()) * 1.35, 1e-3))
    low, high = float(goodput.min()), float(goodput.max())
    # Goodputs that differ by little are drawn on an axis that does not begin at 0. Others are drawn
    # from 0.
    room = max(high - low, 0.02 * high, 1e-3)
    axes.set_ylim(max(0.0, low - 0.6 * room) if low > 0.5 * high else 0.0, high + 0.45 * room)


def _better(axes: Axes) -> None:
    axes.annotate(
        "", xy=(0.03, 0.97), xytext=(0.10, 0.88), xycoords="axes fraction", textcoords="axes fraction",
        arrowprops={"arrowstyle": "-|>", "color": style.MUTED, "linewidth": 1.4, "mutation_scale": 12},
    )  # fmt: skip
    axes.annotate(
        "better",
        (0.105, 0.875),
        xycoords="axes fraction",
        size=style.points(8.5),
        color=style.MUTED,
        ha="left",
        va="top",
    )


MOST_NAMES = 12
"""Up to this many names are always drawn, even if two touch."""


def _names(axes: Axes, ends: Sequence[tuple[style.Look, tuple[float, float]]]) -> None:
    """Writes each Run's name beside its point: right, left, above or below, where it covers
    nothing.

    A name without room among dozens of points is left out; the bars have all names.
    """
    point = axes.figure.dpi / 72
    at = {look.label: axes.transData.transform(centre) for look, centre in ends}
    covered = [
        _Box(x - 5 * point, x + 5 * point, y - 5 * point, y + 5 * point) for x, y in at.values()
    ]
    for look, centre in ends:
        x, y = at[look.label]
        text = style.shorten(look.label, 40)
        # A character of size 8 is about 5 points wide.
        wide, high = 5.0 * len(text) * point, 10 * point
        # Beside the point first, then above and below it, at growing distances.
        tried = [
            (x + dx * point - wide * left, y + dy * point)
            for away in (0, 11, 22, 33, 44)
            for dx, dy, left in (
                (8, away, 0),
                (-8, away, 1),
                (8, -away, 0),
                (-8, -away, 1),
                (0, 11 + away, 0.5),
            )
        ]
        boxes = [
            _Box(left, left + wide, middle - high / 2, middle + high / 2) for left, middle in tried
        ]
        inside = [
            box
            for box in boxes
            if axes.bbox.x0 < box.left
            and box.right < axes.bbox.x1
            and axes.bbox.y0 < box.low
            and box.high < axes.bbox.y1
        ]
        free = [box for box in inside if not any(box.meets(other) for other in covered)]
        if not free and len(ends) > MOST_NAMES:
            continue
        box = (free or inside or boxes)[0]
        covered.append(box)
        axes.annotate(
            text, centre, xytext=((box.left - x) / point, ((box.low + box.high) / 2 - y) / point),
            textcoords="offset points", ha="left", va="center", size=style.points(8), color=look.colour, parse_math=False,
        )  # fmt: skip


@dataclass(frozen=True)
class _Box:
    left: float
    right: float
    low: float
    high: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.low < other.high
            and other.low < self.high
        )
