"""The distribution of waiting times: a curve for each Run, or for each phase of one Run. Seeds are
pooled; the 95th and 99th percentiles are marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

from sojourn.digits import on_page
from sojourn.figures import series, style
from sojourn.figures.series import Distribution
from sojourn.records import Run

What = Literal["sojourn", "rtt", "ping", "completion", "one_way"]

WORDS: dict[str, str] = {
    "sojourn": "sojourn time at the bottleneck",
    "rtt": "RTT as TCP samples it",
    "ping": "ping RTT",
    "completion": "completion time of transfers",
    "one_way": "one-way delay of video, calls and other datagrams",
}

MARKED = (0.5, 0.95, 0.99)


def distribution(run: Run, what: What, link: str | None) -> Distribution:
    """The distribution of one Run, without the warm-up, all seeds pooled; sojourn times are those
    of this link."""
    if what == "sojourn":
        return series.sojourns(run, link)
    of = {"rtt": series.rtts, "ping": series.ping_rtts, "completion": series.completions}
    return of.get(what, series.one_way)(run)


@style.drawn
def cdf(
    runs: Sequence[Run],
    what: What = "sojourn",
    phase: str | None = None,
    *,
    ax: Axes | None = None,
    paper: style.Paper | None = None,
) -> Figure:
    """Cumulative distributions, one curve for each Run. They are of sojourn times, of TCP's RTT
    samples, of ping RTTs (of one phase), of transfers' completion times, or of the one-way delays
    of video and calls."""
    runs = style.ordered(runs)
    series.check(runs)
    links = series.bottlenecks(runs)
    if phase is not None:
        found = [series.ping_rtts(run, phase=phase) for run in runs]
    else:
        found = [distribution(run, what, link) for run, link in zip(runs, links, strict=True)]
    during = f" during {phase}" if phase is not None else ""
    return _drawn(runs, f"{WORDS[what]}{during}", found, style.looks(runs, links))


@style.drawn
def cdf_by_phase(
    run: Run,
    probe: str | None = None,
    *,
    ax: Axes | None = None,
    paper: style.Paper | None = None,
) -> Figure:
    """Cumulative distributions of a measurement's ping RTTs, one curve for each phase. The default
    target is the first."""
    series.check([run])
    probe = next(iter(series.answered(run)), None) if probe is None else probe
    names = series.phase_names([run])
    found = [series.ping_rtts(run, probe, name) for name in names]
    return _drawn(
        [run], f"RTT to {probe}" if probe is not None else WORDS["ping"], found, phase_looks(names)
    )


def phase_looks(names: Sequence[str]) -> list[style.Look]:
    """The looks of a measurement's phases."""
    looks = []
    for name in names:
        idle = name.startswith("idle")
        nth = sum(earlier.startswith(name.split(" ")[0]) for earlier in names[: names.index(name)])
        colour = style.INK if idle else style.phase_colour(name)
        looks.append(
            style.Look(name, colour, style.DASHES[nth % len(style.DASHES)], "osD^"[nth % 4])
        )
    return looks


def _drawn(
    runs: Sequence[Run], words: str, found: Sequence[Distribution], looks: Sequence[style.Look]
) -> Figure:
    figure = style.blank(8.4, 4.6 + 0.17 * max(len(looks) - 4, 0))
    top = style.heading(figure, series.title(runs), f"CDF of the {words} · {series.subtitle(runs)}")
    key = 0.42 + 0.19 * len(looks)
    axes = style.panels(figure, style.Margins(top=top + 0.1, right=0.4, bottom=0.42 + key))[0][0]
    axes.set_ylabel("share of samples")
    axes.set_xlabel(f"{words} [ms]")
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))

    seen = [one for one in found if one.samples]
    if not seen:
        style.note(axes, "no sample")
        return figure
    positive = np.concatenate([one.x[one.x > 0] for one in seen])
    least, most = (float(positive.min()), float(positive.max())) if positive.size else (0.5, 1.0)
    low = min(max(one.quantile(0.01), least) for one in seen)
    logarithmic = most / low > 8
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xlim(max(low / 1.5, most / 1e5), most * 1.3)
        axes.xaxis.set_major_locator(
            LogLocator(10, subs=(1.0, 2.0, 5.0) if most / low < 1e3 else (1.0,))
        )
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, most * 1.05)
    floor = axes.get_xlim()[0]
    for level in MARKED[1:]:
        axes.axhline(level, color=style.MUTED, linewidth=0.6, linestyle=style.DOTTED)
    for one, look in zip(found, looks, strict=True):
        if not one.samples:
            continue
        x, fraction = one.drawn(floor if logarithmic else 0.0)
        axes.plot(
            x,
            fraction,
            color=look.colour,
            linestyle=look.dash,
            linewidth=1.6,
            gid=f"cdf {look.label}",
        )
        at = [one.quantile(level) for level in MARKED[1:]]
        axes.plot(
            np.maximum(at, floor), MARKED[1:], linestyle="none", marker=look.marker, markersize=4.5, color=look.colour,
            markeredgecolor="white", markeredgewidth=0.5, gid=f"marks {look.label}",
        )  # fmt: skip
    for level in MARKED[1:]:
        axes.annotate(
            f"p{level * 100:.0f}", (1, level), xycoords=("axes fraction", "data"), xytext=(3, 0),
            textcoords="offset points", size=style.points(7), color=style.MUTED, va="bottom" if level > 0.97 else "top",
        )  # fmt: skip
    if style.compact():
        style.key(axes, [(look.label, _line(look)) for look in looks])
    else:
        _table(figure, found, looks)
    return figure


def _line(look: style.Look) -> dict[str, str | style.Dash]:
    return {"color": look.colour, "linestyle": look.dash}


def _table(figure: Figure, found: Sequence[Distribution], looks: Sequence[style.Look]) -> None:
    """The key, which also has the numbers: a row for each Run with its percentiles in ms."""
    width, height = figure.get_size_inches()
    columns = [4.6, 5.4, 6.2, 7.0, 8.1]
    base = 0.12 + 0.19 * len(looks)

    def write(x: float, y: float, text: str, colour: str, align: str) -> None:
        figure.text(
            x / width,
            y / height,
            text,
            size=style.points(8),
            color=colour,
            ha=align,
            va="center",
            parse_math=False,
        )

    for x, text in zip(columns, ["p50", "p95", "p99", "largest", "samples"], strict=True):
        write(x, base, text + (" [ms]" if text == "p50" else ""), style.MUTED, "right")
    for i, (one, look) in enumerate(zip(found, looks, strict=True)):
        y = base - 0.19 * (i + 1) + 0.02
        figure.add_artist(
            Line2D(
                [0.8 / width, 1.25 / width], [y / height] * 2, color=look.colour, linestyle=look.dash, linewidth=1.6,
                marker=look.marker, markersize=4, markevery=[1], markeredgecolor="white", markeredgewidth=0.4,
            )
        )  # fmt: skip
        write(1.35, y, style.shorten(look.label, 40), style.INK, "left")
        numbers = [one.quantile(level) for level in MARKED] + [one.quantile(1.0)]
        for x, value in zip(
            columns,
            [*map(on_page, numbers), f"{one.samples:,}".replace(",", "\u202f")],
            strict=True,
        ):
            write(x, y, value, style.INK, "right")
