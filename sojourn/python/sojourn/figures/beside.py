"""Runs beside each other in two forms that users of flent know: stacked panels over time on the
same axes, and boxes of the distributions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.arrays import Floats
from sojourn.figures import over_time, series, style
from sojourn.figures.series import Line
from sojourn.records import Run

MOST_BESIDE = 6
"""The largest number of Runs in one row; more Runs are drawn in further figures."""
BOX = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles of a box: ends of the whiskers, ends of the box, the line in it."""


@style.drawn
def stacked(
    runs: Sequence[Run],
    seed: int | None = None,
    *,
    ax: Axes | None = None,
    paper: style.Paper | None = None,
) -> Figure:
    """A column for each Run (at most `MOST_BESIDE`), with panels on the same axes: goodput in each
    direction, ping RTT. The default seed is each Run's first."""
    runs = style.ordered(runs)[:MOST_BESIDE]
    series.check(runs)
    links = series.bottlenecks(runs)
    looks = style.looks(runs, links)
    rows = _rows(runs, links, seed)
    figure = style.blank(max(4.6, 1.1 + 2.1 * len(runs)), 1.5 * max(len(rows), 1) + 1.3)
    above = ""
    if peaks(runs, links, seed):
        above = f" · goodput {series.ABOVE_RATE}"
    top = style.heading(figure, series.title(runs), series.subtitle(runs, seed) + above)
    margins = style.Margins(top=top + 0.3, left=0.75, right=0.2, bottom=0.45)
    grid = style.panels(figure, margins, [1.0] * max(len(rows), 1), len(runs), gap=0.2)
    if not rows:
        style.note(grid[0][0], "nothing was measured")
    for axes, look in zip(grid[0], looks, strict=True):
        axes.set_title(style.shorten(look.label, 24), size=style.points(9), color=style.INK, pad=4)
    for panels, (name, lines) in zip(grid, rows.items(), strict=False):
        _row(panels, lines, looks, name)
    warmup, end = runs[0].meta.warmup_ns / 1e9, max(run.meta.duration_ns for run in runs) / 1e9
    for panels in grid:
        for axes in panels:
            axes.set_xlim(0, end)
            axes.tick_params(labelbottom=panels is grid[-1], labelleft=axes is panels[0])
    style.shade_warmup([axes for panels in grid for axes in panels], warmup, end)
    figure.align_ylabels([panels[0] for panels in grid])
    for axes in grid[-1]:
        axes.set_xlabel("time [s]")
    return figure


def peaks(runs: Sequence[Run], links: Sequence[str | None], seed: int | None = None) -> bool:
    """Whether the goodput of a Run exceeds its link's rate at some time, in this seed or the
    first."""
    return any(
        series.above_rate(run, run.seeds[0] if seed is None else seed, link)
        for run, link in zip(runs, links, strict=True)
    )


def _rows(
    runs: Sequence[Run], links: Sequence[str | None], seed: int | None
) -> dict[str, list[Line]]:
    """The title of each row, with a line for each Run; rows without data are left out."""
    names = series.ways(runs, links)
    titles = [*(f"{name} [Mbit/s]" for name in names), "ping RTT [ms]"]
    rows: dict[str, list[Line]] = {title: [] for title in titles}
    for run, link in zip(runs, links, strict=True):
        nth = run.seeds[0] if seed is None else seed
        goodputs = series.goodputs(run, nth)
        if series.is_measured(run):
            found = series.by_direction(run, goodputs)
            ways = tuple(found.get(word, series.EMPTY) for word in series.WAYS.values())
        else:
            ways = series.by_way(run, goodputs, link)
        probe = next(iter(series.answered(run)), None)
        ping = series.EMPTY if probe is None else series.pings(run, nth, probe)
        for lines, line in zip(rows.values(), (*ways, ping), strict=True):
            lines.append(line)
    return {name: lines for name, lines in rows.items() if any(line.t.size for line in lines)}


def _row(
    panels: Sequence[Axes], lines: Sequence[Line], looks: Sequence[style.Look], name: str
) -> None:
    panels[0].set_ylabel(name.replace(" [", "\n["))
    values = np.concatenate([line.y[np.isfinite(line.y)] for line in lines])
    goodput = name.startswith("Goodput")
    top = series.ceiling(Line(values, values)) or float(values.max(initial=1e-3))
    for axes, line, look in zip(panels, lines, looks, strict=True):
        drawn = series.thin(line, 600)
        axes.plot(drawn.t, drawn.y, color=look.colour, linewidth=0.9, gid=f"{name} {look.label}")
        if goodput or not values.size:
            axes.set_ylim(0, 1.06 * top)
        else:
            over_time.logarithmic(axes, values)


@style.drawn
def ping_lines(
    runs: Sequence[Run], *, ax: Axes | None = None, paper: style.Paper | None = None
) -> Figure:
    """The ping RTT of each Run over time, of its first seed, in one panel."""
    runs = style.ordered(runs)[:MOST_BESIDE]
    series.check(runs)
    looks = style.looks(runs, series.bottlenecks(runs))
    key = 0.16 * len(looks)
    figure = style.blank(4.2, 3.3 + key)
    top = style.heading(figure, series.title(runs), series.subtitle(runs))
    margins = style.Margins(top=top + 0.1, left=0.65, right=0.15, bottom=0.6 + key)
    [[axes]] = style.panels(figure, margins)
    values = np.empty(0)
    for run, look in zip(runs, looks, strict=True):
        if (probe := next(iter(series.answered(run)), None)) is not None:
            line = series.thin(series.pings(run, run.seeds[0], probe), 600)
            axes.plot(line.t, line.y, color=look.colour, label=style.shorten(look.label, 40))
            values = np.concatenate([values, line.y[np.isfinite(line.y)]])
    if not values.size:
        style.note(axes, "no ping was answered")
    else:
        over_time.logarithmic(axes, values)
        if style.compact():
            style.key(axes, [(look.label, {"color": look.colour}) for look in looks])
        else:
            figure.legend(loc="lower left", bbox_to_anchor=(0.1, 0), labelspacing=0.3)
    end = max(run.meta.duration_ns for run in runs) / 1e9
    axes.set(xlim=(0, end), xlabel="time [s]", ylabel="ping RTT [ms]")
    style.shade_warmup([axes], runs[0].meta.warmup_ns / 1e9, end)
    return figure


@style.drawn
def boxes(
    runs: Sequence[Run], *, ax: Axes | None = None, paper: style.Paper | None = None
) -> Figure:
    """Boxes of the ping RTT, and of the goodput of all flows in each interval: quartiles, the
    median, whiskers to the 5th and the 95th percentile. All seeds are pooled, without the
    warm-up."""
    runs = style.ordered(runs)
    series.check(runs)
    looks = style.looks(runs, series.bottlenecks(runs))
    shown = {
        "ping RTT [ms]": [_quantiles(series.ping_rtts(run).x) for run in runs],
        "goodput, all flows [Mbit/s]": [_quantiles(_goodputs(run)) for run in runs],
    }
    shown = {name: found for name, found in shown.items() if any(map(len, found))}
    count = max(len(shown), 1)
    rows = count if style.narrow() else 1
    figure = style.blank(1.6 + 3.6 * count, 4.4 * rows)
    about = "boxes: quartiles and median; whiskers: 5th and 95th percentile"
    top = style.heading(figure, series.title(runs), f"{series.subtitle(runs)} · {about}")
    names = max(len(style.shorten(look.label, 20)) for look in looks)
    margins = style.Margins(top=top + 0.25, left=0.75, right=0.2, bottom=0.35 + 0.05 * names)
    grid = style.panels(figure, margins, [1.0] * rows, count // rows, gap=0.5 + 0.05 * names)
    panels = [axes for row in grid for axes in row]
    if not shown:
        style.note(panels[0], "nothing was measured")
    for axes, (name, found) in zip(panels, shown.items(), strict=False):
        _boxes(axes, found, looks)
        axes.set_title(name, loc="left", size=style.points(9), color=style.INK, pad=5)
    return figure


def _boxes(axes: Axes, found: Sequence[Floats], looks: Sequence[style.Look]) -> None:
    for place, (quantiles, look) in enumerate(zip(found, looks, strict=True)):
        if not len(quantiles):
            continue
        low, first, median, third, high = map(float, quantiles)
        box = {"whislo": low, "q1": first, "med": median, "q3": third, "whishi": high}
        axes.bxp(
            [box],
            positions=[place],
            widths=0.55,
            showfliers=False,
            patch_artist=True,
            boxprops={"facecolor": look.colour, "alpha": 0.55, "edgecolor": look.colour},
            medianprops={"color": style.INK, "linewidth": 1.2},
            whiskerprops={"color": look.colour},
            capprops={"color": look.colour},
            manage_ticks=False,
        )
    together = np.concatenate([one for one in found if len(one)])
    if together.min() > 0:
        over_time.logarithmic(axes, together)
    else:
        axes.set_ylim(0, 1.08 * max(float(together.max()), 1e-3))
    axes.set_xlim(-0.6, len(looks) - 0.4)
    axes.set_xticks(
        range(len(looks)),
        [style.shorten(look.label, 20) for look in looks],
        rotation=30,
        ha="right",
        rotation_mode="anchor",
        parse_math=False,
    )
    axes.grid(False, axis="x")


def _quantiles(values: Floats) -> Floats:
    known = values[np.isfinite(values)]
    return np.quantile(known, BOX) if known.size else np.empty(0)


def _goodputs(run: Run) -> Floats:
    """The goodput of all flows together, in each interval after the warm-up, of all seeds."""
    found = []
    for seed in run.seeds:
        total = series.total(list(series.goodputs(run, seed).values()))
        found.append(total.y[total.t > run.meta.warmup_ns / 1e9])
    return np.concatenate(found) if found else np.empty(0)
