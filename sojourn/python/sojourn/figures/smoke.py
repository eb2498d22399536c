"""Pings of days and months: the smoke of SmokePing (Tobias Oetiker, 2001) as nested bands, loss by
colour, traffic below.

A column is some seconds, minutes or hours wide, so that the columns fill the width. Its median is a
tick, black without loss and otherwise coloured by the lost share. Around it are bands, from all of
the column's RTTs to their middle fifth, lighter further from the median. SmokePing draws a grey
band from the i-th least to the i-th greatest of its 20 pings. With hundreds of pings in a column, a
band between two quantiles shows the same. Short spans also show the probes themselves. A span
without any probes is a shaded gap.

Below, on the same time axis, is the traffic of the interface: down above zero, up below it.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib.dates
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sojourn.arrays import Floats
from sojourn.digits import on_page
from sojourn.figures import pings, style
from sojourn.figures.series import Density, Line

LOSSES = (
    (0.0, "black", "none"),
    (0.01, "#E69F00", "< 1 %"),
    (0.05, "#D55E00", "< 5 %"),
    (0.25, "#c0392b", "< 25 %"),
    (1.0, "#7b0d1e", "more"),
)
"""For each limit of the lost share: the colour of the column's median, and its name in the legend.
Each colour is darker than the one before."""
GAP = "#f1f1f1"
DOWN, UP = style.BLUE, style.VERMILLION
PROBES = 6000
"""Up to this many probes are drawn one by one."""


@dataclass(frozen=True)
class Smoke:
    """One target's data. Times are seconds since the figure's start."""

    name: str
    density: Density
    probes: Line
    """Single probes (ms; NaN: lost); empty if they are no longer stored."""


@dataclass(frozen=True)
class Carried:
    """The traffic of an interface, in columns of equal time."""

    name: str
    column_s: float
    t: Floats
    """The beginning of each column, seconds since the figure's start."""
    down_mbps: Floats
    up_mbps: Floats
    down_most: Floats
    """The busiest second of each column."""
    up_most: Floats


@dataclass(frozen=True)
class Remark:
    """An event at a time, seconds since the figure's start."""

    t: float
    text: str


@style.drawn
def smoke(
    targets: Sequence[Smoke],
    carried: Sequence[Carried],
    remarks: Sequence[Remark],
    *,
    start_s: float,
    end_s: float,
    zone: datetime.tzinfo,
) -> Figure:
    """A panel for each target and one for each interface, over one span of time (s, UTC since
    1970), labelled in this time zone."""
    span = end_s - start_s
    heights = [2.1] * len(targets) + [1.1] * len(carried)
    figure = style.blank(11, 1.6 + sum(heights) + 0.3 * (len(heights) - 1))
    begins, ends = (datetime.datetime.fromtimestamp(t, zone) for t in (start_s, end_s))
    title = f"{', '.join(target.name for target in targets)}: {begins:%Y-%m-%d %H:%M} to {ends:%Y-%m-%d %H:%M} {ends.tzname()}"
    columns = sorted({target.density.column_s for target in targets})
    words = " or ".join(_span(column) for column in columns)
    top = style.heading(
        figure,
        title,
        f"each column {words}: median, further out lighter blue; its colour is the loss · grey: nothing was sent",
    )
    lossy = any(target.density.lost.any() for target in targets)
    panels = [
        row[0]
        for row in style.panels(
            figure,
            style.Margins(top=top + 0.22, right=0.8 if lossy else 0.3, bottom=0.65),
            heights,
            gap=0.3,
        )
    ]
    for axes, target in zip(panels, targets, strict=False):
        _target(axes, target, span)
    for axes, interface in zip(panels[len(targets) :], carried, strict=True):
        _traffic(axes, interface, span)
    for axes in panels:
        axes.set_xlim(0, span)
        for remark in remarks:
            axes.axvline(
                remark.t,
                color=style.MUTED,
                linewidth=0.6,
                linestyle=(0, (2, 2)),
                zorder=1,
                gid="remark",
            )
        _dates(axes, start_s, span, zone, named=axes is panels[-1])
    for remark in _apart(remarks, span):
        panels[0].annotate(
            remark.text, (remark.t, 1), xycoords=("data", "axes fraction"), xytext=(2, -8), textcoords="offset points",
            ha="left", va="top", size=6.5, color=style.MUTED, rotation=270, parse_math=False,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
        )  # fmt: skip
    return figure


def _target(axes: Axes, target: Smoke, span: float) -> None:
    columns = target.density
    sent, lost = int(columns.sent.sum()), int(columns.lost.sum())
    axes.set_ylabel("RTT [ms]")
    axes.annotate(
        target.name, (0, 1), xycoords="axes fraction", xytext=(0, 3), textcoords="offset points", ha="left", va="bottom",
        size=9, weight="bold", parse_math=False,
    )  # fmt: skip
    if sent == 0:
        style.note(axes, "nothing was sent")
        return
    _gaps(axes, columns, span)
    right = np.minimum(columns.t + columns.column_s, span)
    top, most = _top(columns)
    axes.set_ylim(0, top)
    pings.bands(axes, columns, right)
    probes = target.probes
    if probes.t.size <= PROBES:
        axes.plot(probes.t, probes.y, ".", color="#1d4567", markersize=2.2, gid="probes")

    share = columns.lost / np.maximum(columns.sent, 1)
    bounds = np.array([bound for bound, _, _ in LOSSES])
    which = np.searchsorted(bounds, share, side="left")
    for i, (_, colour, _) in enumerate(LOSSES):
        shown = (which == i) & np.isfinite(columns.median)
        ticks = np.stack(
            [np.column_stack((x, columns.median))[shown] for x in (columns.t, right)], axis=1
        )
        axes.add_collection(
            LineCollection(list(ticks), colors=colour, linewidths=1.6, gid=f"median {i}", zorder=3),
            autolim=False,
        )
    # A column without any reply has no median, so it is filled.
    dead = (columns.sent > 0) & (columns.lost == columns.sent)
    for begin, end in zip(columns.t[dead], right[dead], strict=True):
        axes.axvspan(
            begin, end, color=LOSSES[-1][1], alpha=0.45, linewidth=0, zorder=1, gid="all lost"
        )
    if lost:
        shown = columns.lost > 0
        axes.vlines(
            (columns.t + right)[shown] / 2, 1 - 0.02 - 0.11 * np.sqrt(share[shown]), 1, transform=axes.get_xaxis_transform(),
            color=style.LOST, linewidth=1.0, gid="lost",
        )  # fmt: skip
        keys = [Patch(color=colour, label=text) for _, colour, text in LOSSES]
        axes.legend(
            handles=keys, title="lost", loc="upper left", bbox_to_anchor=(1.0, 1.02), fontsize=7, title_fontsize=7,
            handlelength=1, handleheight=0.5, borderaxespad=0.3,
        )  # fmt: skip
    over = columns.rtt_ms[-1] > top
    if over.any():
        axes.plot(
            ((columns.t + right) / 2)[over], np.full(int(over.sum()), 0.985), "^", transform=axes.get_xaxis_transform(),
            color=style.MUTED, markersize=3, clip_on=False, gid="beyond",
        )  # fmt: skip
    text = f"{lost:,} of {sent:,} lost ({on_page(100 * lost / sent)} %)".replace(",", "\u202f")
    if np.isnan(most):
        axes.set_yticks([])
    else:
        middle = on_page(float(np.nanmedian(columns.median)))
        beyond = " (▲ beyond the axis)" if over.any() else ""
        text = (
            f"median of the medians {middle} ms, greatest RTT {on_page(most)} ms{beyond} · {text}"
        )
    style.corner(axes, text)


def _top(columns: Density) -> tuple[float, float]:
    """The end of the axis and the greatest RTT, ms. A few spikes that would flatten everything else
    are beyond the axis."""
    greatest = columns.rtt_ms[-1][np.isfinite(columns.rtt_ms[-1])]
    if greatest.size == 0:
        return 1.0, np.nan
    upper = columns.rtt_ms[-2]
    usual = float(np.quantile(upper[np.isfinite(upper)], 0.995))
    return 1.1 * min(float(greatest.max()), 3 * usual), float(greatest.max())


def _gaps(axes: Axes, columns: Density, span: float) -> None:
    """Shades the spans in which nothing was sent."""
    silent = columns.sent == 0
    edges = np.flatnonzero(np.diff(np.concatenate(([0], silent.astype(np.int8), [0]))))
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        left = columns.t[begin]
        axes.axvspan(
            left,
            min(columns.t[end - 1] + columns.column_s, span),
            color=GAP,
            linewidth=0,
            zorder=0,
            gid="gap",
        )


def _traffic(axes: Axes, carried: Carried, span: float) -> None:
    axes.set_ylabel("Mbit/s")
    if carried.t.size == 0:
        style.note(axes, f"no traffic of {carried.name} was recorded")
        return
    for mean, most, sign, colour, name in (
        (carried.down_mbps, carried.down_most, 1, DOWN, "down"),
        (carried.up_mbps, carried.up_most, -1, UP, "up"),
    ):
        x = np.column_stack((carried.t, np.minimum(carried.t + carried.column_s, span))).ravel()
        axes.fill_between(
            x, 0, np.repeat(sign * mean, 2), color=colour, linewidth=0, alpha=0.85, gid=name
        )
        # In a column of one second the mean is the busiest second.
        if carried.column_s > 1:
            axes.plot(
                x,
                np.repeat(sign * most, 2),
                color=colour,
                linewidth=0.5,
                alpha=0.7,
                gid=f"{name} most",
            )
    axes.axhline(0, color=style.INK, linewidth=0.5)
    axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    busiest = "; thin: the busiest second" if carried.column_s > 1 else ""
    style.corner(axes, f"{carried.name}: down above zero, up below{busiest}")


def _dates(axes: Axes, start_s: float, span: float, zone: datetime.tzinfo, *, named: bool) -> None:
    """Labels seconds since the start with times of day and dates."""
    begin = datetime.datetime.fromtimestamp(start_s, zone)
    end = datetime.datetime.fromtimestamp(start_s + span, zone)
    # Some of matplotlib.dates has no types.
    dates: Any = matplotlib.dates
    places = dates.AutoDateLocator(tz=zone, minticks=5, maxticks=10).tick_values(begin, end)
    stamps: list[datetime.datetime] = dates.num2date(places, zone)
    at = [stamp.timestamp() - start_s for stamp in stamps]
    inside = [(t, stamp) for t, stamp in zip(at, stamps, strict=True) if 0 <= t <= span]
    axes.set_xticks([t for t, _ in inside])
    if not named:
        axes.set_xticklabels([])
        return
    axes.set_xticklabels(_labels([stamp for _, stamp in inside], span))
    axes.set_xlabel(f"time ({end.tzname()})")


def _labels(stamps: Sequence[datetime.datetime], span: float) -> list[str]:
    """Times of day, with the date at its start; over weeks only the days."""
    if span > 8 * 86400:
        return [f"{stamp:%d %b}" for stamp in stamps]
    form = "%H:%M:%S" if span < 600 else "%H:%M"
    labels = []
    day = None
    for stamp in stamps:
        date = f"\n{stamp:%a %d %b}" if stamp.date() != day else ""
        labels.append(f"{stamp.strftime(form)}{date}")
        day = stamp.date()
    return labels


def _apart(remarks: Sequence[Remark], span: float) -> list[Remark]:
    """The remarks whose text has room. The others only have a line."""
    kept: list[Remark] = []
    for remark in remarks:
        if not kept or remark.t - kept[-1].t > span / 60:
            kept.append(remark)
    return kept


def _span(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
