"""Delay against goodput for each rate at which a shaper was tried: measured and predicted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sojourn.figures import style

LOG_FROM = 8
"""The axis is logarithmic if the delays differ by more than this factor."""
LOWEST = 0.8
"""The axis of goodput begins at this share of the lowest measured goodput."""
LEAST_MS = 0.3
"""A logarithmic axis ignores smaller delays when it chooses where to begin."""


@dataclass(frozen=True)
class Tried:
    """One rate. Delay and goodput are each (value, low, high), in ms and Mbit/s."""

    label: str
    delay: tuple[float, float, float]
    goodput: tuple[float, float, float]


@dataclass(frozen=True)
class Tuning:
    """The data of the figure."""

    title: str
    subtitle: str
    target_ms: float
    measured: Sequence[Tried]
    predicted: Sequence[Tried]
    """In order of their rates; a line joins them."""
    unshaped: tuple[Tried, Tried]
    """Without a shaper: measured, predicted."""
    chosen: str | None
    """The label of the chosen rate, one of those measured."""


@style.drawn
def tuning(what: Tuning) -> Figure:
    """Induced delay (95th percentile) against goodput: measured points with their 95 % intervals
    over the predicted line."""
    figure = style.blank(7.6, 5.2)
    top = style.heading(figure, what.title, what.subtitle)
    axes = style.panels(figure, style.Margins(top=top + 0.1, right=0.3, bottom=0.55))[0][0]
    axes.set_xlabel("what the load adds to the RTT, 95th percentile [ms]")
    axes.set_ylabel("goodput [Mbit/s]")
    every = [*what.measured, *what.predicted, *what.unshaped]
    delays = [
        value
        for one in every
        for value in (*one.delay, what.target_ms)
        if math.isfinite(value) and value > 0
    ]
    low = max(min(delays), LEAST_MS)
    if max(delays) / low > LOG_FROM:
        axes.set_xscale("log", nonpositive="clip")
        axes.set_xlim(low / 1.5, max(delays) * 1.7)
        axes.xaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, max(delays) * 1.2)
    goodputs = [
        one.goodput[0] for one in [*what.measured, *what.unshaped] if math.isfinite(one.goodput[0])
    ]
    # The prediction covers rates lower than those tried.
    axes.set_ylim(LOWEST * min(goodputs), max(goodputs) * 1.1)
    axes.axvspan(axes.get_xlim()[0], what.target_ms, color=style.GREEN, alpha=0.08, linewidth=0)
    axes.axvline(what.target_ms, color=style.GREEN, linewidth=1, gid="target")
    axes.text(
        what.target_ms, max(goodputs) * 1.09, f" target {what.target_ms:g} ms", color=style.GREEN, size=8, va="top"
    )  # fmt: skip
    _line(axes, what)
    _points(axes, what)
    axes.legend(loc="lower right", fontsize=8)
    return figure


def _line(axes: Axes, what: Tuning) -> None:
    x, y = ([getattr(one, name)[0] for one in what.predicted] for name in ("delay", "goodput"))
    colour = style.MUTED
    axes.plot(
        x, y, color=colour, marker=".", markersize=5, linewidth=1, label="predicted by the simulator", gid="predicted"
    )  # fmt: skip
    _, foretold = what.unshaped
    axes.plot(
        foretold.delay[0], foretold.goodput[0], marker="s", markersize=6, markerfacecolor="none", color=colour,
        linestyle="none", label="predicted, no shaper", gid="predicted unshaped",
    )  # fmt: skip


def _points(axes: Axes, what: Tuning) -> None:
    colour = style.BLUE
    for number, one in enumerate(what.measured):
        bars = [
            [[max(value - low, 0.0)], [max(high - value, 0.0)]]
            if math.isfinite(low + high)
            else None
            for value, low, high in (one.delay, one.goodput)
        ]
        axes.errorbar(
            one.delay[0], one.goodput[0], xerr=bars[0], yerr=bars[1], color=colour, marker="o", markersize=6,
            markeredgecolor="white", linewidth=1.2, capsize=2.5, label=None if number else "measured, 95 % interval",
        )  # fmt: skip
        chosen = one.label == what.chosen
        axes.annotate(
            f"{one.label} (chosen)" if chosen else one.label, (one.delay[0], one.goodput[0]),
            xytext=(8, 4), textcoords="offset points", size=8, ha="left", va="bottom", weight="bold" if chosen else "normal",
        )  # fmt: skip
        if chosen:
            axes.plot(
                one.delay[0], one.goodput[0], marker="o", markersize=13, markerfacecolor="none", color=style.INK,
                linestyle="none", gid="chosen",
            )  # fmt: skip
    unshaped, _ = what.unshaped
    axes.plot(
        unshaped.delay[0], unshaped.goodput[0], marker="s", markersize=6, color=style.VERMILLION, linestyle="none",
        label="measured, no shaper", gid="unshaped",
    )  # fmt: skip
