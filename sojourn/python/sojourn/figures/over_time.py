"""One Run over time: the goodput of the flows, the queue, and the drops and marks. A measurement's
phases are shaded and named.

The panels share a time axis: goodput, sojourn and ping, backlog with the discipline's own state,
drops and marks by cause, cwnd. So a cause is above or below its effect. The warm-up is shaded and
named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sojourn.arrays import Floats
from sojourn.digits import on_page
from sojourn.figures import series, style
from sojourn.figures.series import Line
from sojourn.metrics import mean_rates
from sojourn.records import Run

FEW = 8
"""Up to this many flows are drawn one by one. More are drawn as a median and a band."""

BUCKETS = 1500
"""Columns to which a line is thinned: about the pixels of a printed figure."""

STRIPES = 1200
"""The largest number of ticks of one cause that can be distinguished in a panel."""


@style.drawn
def timeline(
    run: Run,
    seed: int | None = None,
    link: str | None = None,
    *,
    ax: Axes | None = None,
    paper: style.Paper | None = None,
) -> Figure:
    """The time line of one seed at one link. The defaults are the first seed and the bottleneck."""
    series.check([run])
    seed = run.seeds[0] if seed is None else seed
    link = series.bottleneck(run) if link is None else link
    view = _View(run, seed, link)

    stack: list[tuple[float, Callable[[Axes, _View], None]]] = [(1.25, _goodput)]
    if len(view.goodputs) > FEW:
        stack.append((0.9, _goodput_spread))
    if link is not None:
        stack += [(1.45, _sojourn), (1.45, _backlog)]
        if view.state is not None and view.state.own is not None:
            stack.append((0.55, _own_state))
        stack.append((0.28 + 0.13 * max(len(view.losses), 2), _losses))
    elif series.probes(run):
        stack.append((1.45, _sojourn))
    if view.cwnds:
        stack.append((1.25, _cwnd))

    heights = [height for height, _ in stack]
    figure = style.blank(10, sum(heights) * 1.12 + 0.24 * len(stack) + 1.2)
    subtitle = series.subtitle([run], seed)
    if link is not None and len(run.meta.links) > 1:
        subtitle += f" · link {link}"
    top = style.heading(figure, series.title([run]), subtitle)
    rows = style.panels(
        figure, style.Margins(top=top + 0.12, left=0.8, right=1.55, bottom=0.5), heights, gap=0.24
    )
    axes = [row[0] for row in rows]
    end = run.meta.duration_ns / 1e9
    for panel, (_, draw) in zip(axes, stack, strict=True):
        panel.set_xlim(0, end)
        if panel is not axes[-1]:
            panel.tick_params(labelbottom=False)
        draw(panel, view)
    axes[-1].set_xlabel("time [s]")
    style.shade_warmup(axes, run.meta.warmup_ns / 1e9, end)
    style.shade_phases(axes, series.spans(run, seed))
    figure.align_ylabels(axes)
    return figure


class _View:
    """The data that the panels share: one seed of one Run, at one link."""

    def __init__(self, run: Run, seed: int, link: str | None) -> None:
        self.run = run
        self.seed = seed
        self.link = link
        self.queue = series.queue(run, seed, link)
        self.goodputs = series.goodputs(run, seed)
        self.cwnds = series.cwnds(run, seed)
        self.measured = series.is_measured(run)
        if self.measured:
            # Connections begin and end with the phases, so each direction's sum is shown.
            self.goodputs = series.by_direction(run, self.goodputs)
            self.cwnds = series.by_direction(run, self.cwnds)
        self.losses = series.losses(run, seed, link)
        self.state = series.state(self.queue, run.meta.link(link)) if link is not None else None
        names = [flow.name for flow in series.carriers(run)]
        self.looks = {name: style.flow_look(i) for i, name in enumerate(names)}
        self.looks |= {
            word: (style.phase_colour(word), style.SOLID) for word in series.WAYS.values()
        }


@dataclass(frozen=True)
class _Pen:
    colour: str
    dash: style.Dash = style.SOLID
    width: float = 1.2


def _plot(axes: Axes, line: Line, pen: _Pen, name: str) -> None:
    thinned = series.thin(line, BUCKETS)
    # A line so dense that it would fill its panel is drawn thinner, which leaves its shape visible.
    width = pen.width * (0.55 if thinned.t.size > BUCKETS else 1)
    axes.plot(thinned.t, thinned.y, color=pen.colour, linestyle=pen.dash, linewidth=width, gid=name)


def _end(line: Line) -> tuple[float, float] | None:
    known = np.flatnonzero(np.isfinite(line.y))
    if known.size == 0:
        return None
    # The level at the end is the middle of the last thirtieth, so that a label is not put on a
    # momentary spike.
    last = known[-max(known.size // 30, 1) :]
    return float(line.t[known[-1]]), float(np.median(line.y[last]))


def _label_ends(axes: Axes, ends: Mapping[str, tuple[Line, str]]) -> None:
    right = axes.get_xlim()[1]
    labels = []
    for text, (line, colour) in ends.items():
        end = _end(line)
        if end is not None:
            labels.append((style.shorten(text, 24), right, end[1], colour))
    style.direct_labels(axes, labels)


# ----------------------------------------------------------------------------------------- panels


def _goodput(axes: Axes, view: _View) -> None:
    axes.set_ylabel("goodput\n[Mbit/s]")
    if not view.goodputs:
        style.note(axes, "no flow carries data")
        return
    total = series.total(list(view.goodputs.values()))
    ends: dict[str, tuple[Line, str]] = {}
    if len(view.goodputs) <= FEW:
        for name, line in view.goodputs.items():
            colour, dash = view.looks[name]
            _plot(axes, line, _Pen(colour, dash), f"goodput {name}")
            ends[name] = (line, colour)
    # A measurement's directions don't share a link, so their sum means nothing.
    if len(view.goodputs) > 1 and not view.measured:
        _plot(axes, total, _Pen(style.INK, width=1.5), "goodput total")
        ends[f"all {len(view.goodputs)} flows"] = (total, style.INK)
    if view.state is not None and view.state.estimate is not None:
        _plot(axes, view.state.estimate, _Pen(style.MUTED, style.DOTTED), "estimate")
        ends["adt's estimate"] = (view.state.estimate, style.MUTED)
    called, rate = _rate_of_all(view)
    if rate is not None:
        axes.axhline(rate, color=style.MUTED, linewidth=0.8, linestyle=style.LONG, gid="rate")
        ends[f"{called} {on_page(rate)}"] = (Line(np.array([0.0]), np.array([rate])), style.MUTED)
    most = max(float(np.nanmax(total.y, initial=0.0)), rate or 0.0)
    top = series.ceiling(total, rate)
    axes.set_ylim(0, max(1.06 * (top or most), 1e-3))
    if top is not None:
        peaks = f"peaks up to {on_page(most)}"
        style.corner(axes, peaks if style.narrow() else f"{peaks}: {series.PEAKS}")
    _label_ends(axes, ends)


def _rate_of_all(view: _View) -> tuple[str, float | None]:
    """The name and the value of the link's rate, Mbit/s; the mean if the rate varies. The value is
    None if a flow that carries data does not cross the link, because the sum of all flows is then
    not a share of the rate."""
    if view.link is None or view.measured:
        return "rate", None
    mean = mean_rates(view.run).get(view.link)
    rate = view.run.meta.link(view.link).rate_bps if mean is None else mean
    crossing = all(view.link in flow.path for flow in series.carriers(view.run))
    called = "rate" if mean is None else "mean rate"
    return called, rate / 1e6 if rate is not None and crossing else None


def _goodput_spread(axes: Axes, view: _View) -> None:
    axes.set_ylabel("each flow\n[Mbit/s]")
    _band(axes, view.goodputs, "goodput")
    axes.set_ylim(0, max(axes.get_ylim()[1], 1e-3))


def _cwnd(axes: Axes, view: _View) -> None:
    axes.set_ylabel("cwnd, all\n[kB]" if view.measured else "cwnd [kB]")
    if len(view.cwnds) > FEW:
        _band(axes, view.cwnds, "cwnd")
        axes.set_ylim(bottom=0)
        return
    ends: dict[str, tuple[Line, str]] = {}
    for name, line in view.cwnds.items():
        colour, dash = view.looks[name]
        _plot(axes, line, _Pen(colour, dash), f"cwnd {name}")
        ends[name] = (line, colour)
    axes.autoscale_view()
    axes.set_ylim(bottom=0)
    _label_ends(axes, ends)


def _band(axes: Axes, lines: Mapping[str, Line], what: str) -> None:
    """The median of many flows, and the band of 80 % of them."""
    t, (low, median, high) = series.quantiles(list(lines.values()), (0.1, 0.5, 0.9))
    low, high = series.thin(Line(t, low), BUCKETS // 2), series.thin(Line(t, high), BUCKETS // 2)
    grid = np.union1d(low.t, high.t)
    bottom, top = np.interp(grid, low.t, low.y), np.interp(grid, high.t, high.y)
    axes.fill_between(
        grid, bottom, top, color=style.SKY, alpha=0.45, linewidth=0, gid=f"{what} band"
    )
    middle = Line(t, median)
    _plot(axes, middle, _Pen(style.BLUE), f"{what} median")
    axes.autoscale_view()
    ends = {
        "90 % are below": (Line(grid, top), "#2f86b8"),
        f"median of {len(lines)}": (middle, style.BLUE),
        "10 % are below": (Line(grid, bottom), "#2f86b8"),
    }
    _label_ends(axes, ends)


def _sojourn(axes: Axes, view: _View) -> None:
    ends: dict[str, tuple[Line, str]] = {}
    remarks = []
    everything = []
    for i, probe in enumerate(series.answered(view.run)[:4]):
        line = series.pings(view.run, view.seed, probe)
        everything.append(line.y)
        colour = (style.VERMILLION, style.PURPLE, style.ORANGE, "#8a7a00")[i]
        dots = series.thin(line, BUCKETS)
        axes.plot(
            dots.t, dots.y, linestyle="none", marker=".", markersize=2.6, color=colour, markeredgewidth=0,
            gid=f"rtt {probe}", rasterized=dots.t.size > 5000,
        )  # fmt: skip
        ends[f"{probe}" if view.measured else f"{probe}: RTT"] = (line, colour)
        lost = line.t[np.isnan(line.y)]
        if lost.size:
            axes.plot(
                lost, np.full(lost.size, 0.97), linestyle="none", marker="x", markersize=3.5, markeredgewidth=0.8,
                color=style.LOST, transform=axes.get_xaxis_transform(), gid=f"lost {probe}",
            )  # fmt: skip
            remarks.append(f"× lost: {lost.size}")
    if view.link is not None:
        mean = series.column(view.queue, "sojourn_mean_ns", 1e-6)
        largest = series.column(view.queue, "sojourn_max_ns", 1e-6)
        everything += [mean.y, largest.y]
        _plot(axes, largest, _Pen(style.SKY, width=0.8), "sojourn max")
        _plot(axes, mean, _Pen(style.BLUE, width=1.3), "sojourn mean")
        if not view.measured or np.isfinite(mean.y).any():
            ends |= {"sojourn: largest": (largest, "#2f86b8"), "sojourn: mean": (mean, style.BLUE)}
        for name, line in series.two_queues(view.queue).items():
            everything.append(line.y)
            _plot(axes, line, _Pen(style.TWO_QUEUES[name], width=1.0), name)
            # An empty queue is below a logarithmic axis. The label is at its median while not
            # empty.
            waited = line.y[line.y > 0]
            usual = float(np.median(waited)) if waited.size else 0.0
            ends[name] = (Line(line.t, np.maximum(line.y, usual)), style.TWO_QUEUES[name])
    words = "sojourn, ping\n[ms]" if len(everything) > 2 or view.link is None else "sojourn [ms]"
    axes.set_ylabel("RTT [ms]" if view.measured else words)
    values = np.concatenate(everything) if everything else np.empty(0)
    values = values[np.isfinite(values) & (values > 0)]
    if values.size == 0:
        axes.set_ylim(0, 1)
        style.note(axes, "no packet waited in the queue")
        return
    logarithmic(axes, values)
    _label_ends(axes, ends)
    if remarks:
        style.corner(axes, "  ".join(remarks), style.LOST)


def logarithmic(axes: Axes, values: Floats) -> None:
    """Sets a logarithmic y axis if the values span more than a factor of 30, otherwise a linear one
    from 0."""
    low, high = float(np.quantile(values, 0.02)), float(values.max())
    if high / low > 30:
        axes.set_yscale("log", nonpositive="clip")
        axes.set_ylim(max(low / 1.5, high / 1e5), high * 1.6)
        axes.yaxis.set_major_locator(
            LogLocator(10, subs=(1.0, 2.0, 5.0) if high / low < 300 else (1.0, 3.0))
        )
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_ylim(0, high * 1.08)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _backlog(axes: Axes, view: _View) -> None:
    state = view.state
    assert state is not None
    in_bytes = state.in_bytes
    backlog = (
        series.column(view.queue, "backlog_bytes", 1e-3)
        if in_bytes
        else series.column(view.queue, "backlog_packets")
    )
    unit = "kB" if in_bytes else "packets"
    axes.set_ylabel(f"backlog\n[{unit}]")
    thinned = series.thin(backlog, BUCKETS)
    axes.fill_between(thinned.t, thinned.y, color=style.SKY, alpha=0.35, linewidth=0)
    _plot(axes, backlog, _Pen(style.BLUE, width=0.9), "backlog")
    ends: dict[str, tuple[Line, str]] = {"backlog": (backlog, style.BLUE)}
    for i, (name, line) in enumerate(state.same_unit.items()):
        colour = (style.VERMILLION, style.GREEN)[i % 2]
        _plot(axes, line, _Pen(colour, style.SOLID if i == 0 else style.LONG, 1.4), name)
        ends[name] = (line, colour)
    axes.autoscale_view()
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.0))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    if backlog.t.size == 0:
        style.note(axes, "the queue was not recorded")
    remarks = []
    for name, level in state.levels.items():
        # A limit far above the backlog would flatten the curve, so it is written as a remark
        # instead.
        if level <= 1.6 * axes.get_ylim()[1]:
            axes.set_ylim(0, max(axes.get_ylim()[1], 1.1 * level))
            axes.axhline(
                level, color=style.MUTED, linewidth=0.8, linestyle=style.SHORT, gid=f"level {name}"
            )
            ends[f"{name} {on_page(level)} {unit}"] = (
                Line(np.array([0.0]), np.array([level])),
                style.MUTED,
            )
        else:
            remarks.append(f"{name} {on_page(level)} {unit}, off the scale")
    _label_ends(axes, ends)
    if remarks:
        style.corner(axes, " · ".join(remarks))


def _own_state(axes: Axes, view: _View) -> None:
    """The discipline's counters with a unit of their own, just below the backlog."""
    assert view.state is not None
    assert view.state.own is not None
    name, line = view.state.own
    axes.set_ylabel(name.replace(" ", "\n", 1) if name.startswith("maximum") else name)
    _plot(axes, line, _Pen(style.VERMILLION, width=1.0), f"state {name}")
    axes.autoscale_view()
    axes.set_ylim(0, max(axes.get_ylim()[1], 1e-3))
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=not name.startswith("maximum")))
    _label_ends(axes, {_SAYS.get(name, name): (line, style.VERMILLION)})


_SAYS = {"count": "drops in this state", "flows": "with packets"}


def _losses(axes: Axes, view: _View) -> None:
    axes.set_ylabel("drops,\nmarks")
    axes.grid(False, axis="y")
    axes.set_yticks([])
    rows = view.losses
    axes.set_ylim(max(len(rows), 1), 0)
    if not rows:
        style.note(axes, "none")
        return
    labels = []
    right = axes.get_xlim()[1]
    for row, one in enumerate(rows):
        colour = style.CAUSES.get(one.cause, style.MUTED)
        ticks, weight = _stripes(one.t, right)
        segments = [np.array([(t, row + 0.12), (t, row + 0.88)]) for t in ticks]
        # If a tick stands for several events, the darker stripe shows more of them.
        axes.add_collection(
            LineCollection(
                segments, colors=colour, linewidths=0.7, alpha=weight, rasterized=len(segments) > 400, gid=one.name,
                linestyles="solid",
            ),
            autolim=False,
        )  # fmt: skip
        labels.append(
            (
                f"{one.name}  {on_page(one.t.size) if one.t.size >= 1000 else one.t.size}",
                right,
                row + 0.5,
                colour,
            )
        )
    # A paper's figure has no room beside its panels.
    inside: dict[str, Any] = {"backgroundcolor": "#ffffffcc"} if style.compact() else {}
    for text, x, y, colour in labels:
        axes.annotate(
            text, (0 if inside else x, y), xytext=(4, 0), textcoords="offset points", size=style.points(7.5),
            va="center", color=colour, annotation_clip=False, **inside,
        )  # fmt: skip


def _stripes(t: Floats, end: float) -> tuple[Floats, Floats]:
    if t.size <= STRIPES:
        return t, np.ones(t.size)
    which = np.minimum((t / end * STRIPES).astype(np.int64), STRIPES - 1)
    columns, counts = np.unique(which, return_counts=True)
    return (columns + 0.5) * end / STRIPES, 0.25 + 0.75 * counts / counts.max()
