"""The source's figures 2 to 5, 7, 8 and its second figure 7 from our Runs, and figures of
quantities that it does not show.

Published values are hollow marks; the text has none for figures 2 to 5 and for CoDel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn_papers import drawing, published
from sojourn_papers.evidence import Evidence, Measure
from sojourn_papers.paper import Bar
from sojourn_papers.study import Variant
from sojourn_papers.video_testbed import measures as m
from sojourn_papers.video_testbed import studies as s

SAYS = published.beside(__file__)
_LOOKS: dict[str, drawing.Look] = {
    "Drop Tail": drawing.look("pfifo"),
    "RED": drawing.look("red"),
    "CoDel": drawing.look("codel"),
}
_CALLED = {"CoDel": f"CoDel, {s.FEW_SETTING}"}
_PLAIN = "CoDel, tc's defaults"
_PLAIN_LOOK: drawing.Look = drawing.look("fq_codel")[0], style.DOTTED


# ------------------------------------------------------------------------------ the cited figures


def _over_rates(axes: Axes, evidence: Evidence, measure: Measure) -> None:
    for name, drawn in _LOOKS.items():
        ours = evidence.over(s.CITED_BY[name], measure)
        drawing.curve(axes, name, ours, drawn)
    _rate_axis(axes, list(ours))
    drawing.legend(axes)


def _rate_axis(axes: Axes, rates: Sequence[int]) -> None:
    axes.set_xscale("log")
    drawing.ticks(axes, rates)
    axes.set_xlabel("bottleneck [kbit/s], logarithmic")


@style.drawn
def figure2(evidence: Evidence) -> Figure:
    figure, [[axes]] = drawing.sheet(
        "Loss under Drop Tail over that under RED",
        evidence,
        s.CITED,
        says="where RED loses more than 1 %",
        size=(7, 3.8),
    )
    tail, red = s.CITED_BY["Drop Tail"], s.CITED_BY["RED"]
    ours = {
        rate: evidence.compared(tail[rate], red[rate], m.queue_loss_percent, m.above_percent)
        for rate, lost in evidence.means(red, m.queue_loss_percent).items()
        if lost > 1
    }
    drawing.curve(axes, "Drop Tail over RED", ours, drawing.look("pfifo"))
    stated = SAYS["cited/figure 2"]
    drawing.stated_level(axes, stated, f"stated: {stated} %")
    axes.axhline(0, color=style.MUTED, linewidth=0.6)
    _rate_axis(axes, list(ours))
    axes.set_ylabel("more packets lost [%]")
    drawing.legend(axes)
    return figure


@style.drawn
def figure3(evidence: Evidence) -> Figure:
    figure, [[whole, close]] = drawing.sheet(
        "Packet loss over the bottleneck's rate",
        evidence,
        s.CITED,
        columns=2,
        says="film of 950 kbit/s",
    )
    _over_rates(whole, evidence, m.queue_loss_percent)
    whole.set_ylabel("packets lost [%]")
    _over_rates(close, evidence, m.queue_loss_percent)
    close.set(xlim=(800, 5000), ylim=(-0.4, 9))
    style.corner(close, "the same, from 1 Mbit/s")
    close.set_ylabel("")
    return figure


@style.drawn
def figure4(evidence: Evidence) -> Figure:
    figure, [[axes]] = drawing.sheet(
        "Throughput over the bottleneck's rate",
        evidence,
        s.CITED,
        says="film of 950 kbit/s",
        size=(7, 3.8),
    )
    _over_rates(axes, evidence, m.carried_kbps)
    axes.set(yscale="log", ylabel="throughput [kbit/s], logarithmic")
    return figure


@style.drawn
def figure5(evidence: Evidence) -> Figure:
    figure, [[axes]] = drawing.sheet(
        "Latency over the bottleneck's rate",
        evidence,
        s.CITED,
        says="film of 950 kbit/s",
        size=(7, 3.8),
    )
    _over_rates(axes, evidence, m.queue_ms)
    small = evidence.over(s.SMALL_BY["Drop Tail"], m.queue_ms)
    drawing.curve(
        axes, f"Drop Tail of {s.SMALL} packets", small, (style.MUTED, style.LONG), marker="s"
    )
    axes.set(yscale="log", ylabel="mean time in queue [ms], logarithmic")
    drawing.legend(axes)
    return figure


# ----------------------------------------------------------------------------- figures 7, 8 and 7


_HOLLOW: dict[str, Any] = {
    "marker": "D",
    "markerfacecolor": "none",
    "color": style.INK,
    "linestyle": "none",
}


def _grouped(
    axes: Axes, evidence: Evidence, measure: Measure, column: str | None = None, digits: int = 0
) -> None:
    """A group for each bottleneck, with the published column."""
    groups = [(_CALLED.get(name, name), s.BEHIND[name], drawn[0]) for name, drawn in _LOOKS.items()]
    groups.append((_PLAIN, s.DEFAULTS, _PLAIN_LOOK[0]))
    series = [
        drawing.Series(
            name,
            colour,
            [
                evidence.estimate(variants[kbps], measure) if evidence.has(variants[kbps]) else None
                for kbps in s.BOTTLENECKS
            ],
            [SAYS.get(f"{name}/{kbps}/{column}") for kbps in s.BOTTLENECKS],
        )
        for name, variants, colour in groups
    ]
    names = [f"{kbps} kbps, {8 * kbps} kbit/s" for kbps in s.BOTTLENECKS]
    drawing.grouped(axes, names, series, lambda value: f"{value:.{digits}f}")


def _key(axes: Axes) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=6)


@style.drawn
def figure7(evidence: Evidence) -> Figure:
    figure, [[axes]] = _single("Latency of the pings behind each bottleneck", evidence)
    _grouped(axes, evidence, m.mean_ms, "mean")
    axes.set(yscale="log", ylim=(1, 40_000), ylabel="mean latency [ms], logarithmic")
    _key(axes)
    return figure


@style.drawn
def figure8(evidence: Evidence) -> Figure:
    figure, [[axes]] = _single("Throughput behind each bottleneck", evidence)
    _grouped(axes, evidence, m.throughput_kbps, "throughput")
    axes.set(ylim=(0, 2300), ylabel="throughput [kbit/s]")
    _key(axes)
    return figure


@style.drawn
def loss(evidence: Evidence) -> Figure:
    around = style.Margins(top=1.05, left=0.85, right=0.35, bottom=0.65)
    figure, [[pings], [film]] = drawing.sheet(
        "Packets lost behind each bottleneck",
        evidence,
        s.TESTBED,
        rows=(1, 1),
        size=(9, 6.4),
        margins=around,
    )
    _grouped(pings, evidence, m.ping_loss_percent, "lost")
    _grouped(film, evidence, m.film_loss_percent)
    pings.set_ylabel("pings lost [%]")
    film.set_ylabel("packets of the film lost [%]")
    for axes in (pings, film):
        axes.set_ylim(0, 58)
    pings.tick_params(labelbottom=False)
    _key(pings)
    return figure


def _single(title: str, evidence: Evidence) -> tuple[Figure, list[list[Axes]]]:
    around = style.Margins(top=1.05, left=0.85, right=0.35, bottom=0.65)
    return drawing.sheet(title, evidence, s.TESTBED, size=(9, 4.2), margins=around)


# ------------------------------------------------------------------- three tries, and one passage


@style.drawn
def tries(evidence: Evidence) -> Figure:
    around = style.Margins(top=0.95, left=0.85, right=0.35, bottom=0.7)
    figure, [columns] = drawing.sheet(
        "Three tries, and what more of them say",
        evidence,
        s.TESTBED,
        columns=3,
        size=(11, 4.2),
        margins=around,
        says="filled: tries 1 to 3; pale: further seeds; bar: mean and interval of all; hollow: published",
    )
    parts: tuple[tuple[str, Measure, str, bool], ...] = (
        ("mean latency [ms], logarithmic", m.mean_ms, "mean", False),
        ("throughput, % of the link's", m.film_throughput_percent, "throughput", True),
        ("pings lost [%]", m.ping_loss_percent, "lost", False),
    )
    for axes, (label, measure, column, of_link) in zip(columns, parts, strict=True):
        for i, (name, drawn) in enumerate(_LOOKS.items()):
            for group, kbps in enumerate(s.BOTTLENECKS):
                at = group + 0.28 * (i - 1)
                _tried(
                    axes,
                    evidence,
                    s.BEHIND[name][kbps],
                    measure,
                    at,
                    drawn[0],
                    name,
                )
                stated = SAYS.get(f"{name}/{kbps}/{column}")
                if stated is not None:
                    value = 100 * stated / (8 * kbps) if of_link else stated
                    axes.plot([at], [value], markersize=7, label=f"{name}, published", **_HOLLOW)
        axes.set_xticks(range(len(s.BOTTLENECKS)), [f"{kbps} kbps" for kbps in s.BOTTLENECKS])
        axes.grid(axis="x", visible=False)
        style.corner(axes, label)
    columns[0].set_yscale("log")
    handles, labels = columns[0].get_legend_handles_labels()
    first = [labels.index(name) for name in _LOOKS]
    columns[0].legend(
        [handles[at] for at in first], list(_LOOKS), loc="center left", bbox_to_anchor=(0, 0.29)
    )
    return figure


def _tried(
    axes: Axes,
    evidence: Evidence,
    variant: Variant,
    measure: Measure,
    at: float,
    colour: str,
    name: str,
) -> None:
    """The first three seeds, the further ones, and the mean of all."""
    ours = evidence.estimate(variant, measure)
    values = np.array(ours.values)
    beside = at + np.linspace(-0.06, 0.06, values.size)
    pale: dict[str, Any] = {"markersize": 3, "alpha": 0.35, "linewidth": 0}
    axes.plot(beside[3:], values[3:], "o", color=colour, label=f"{name}, further seeds", **pale)
    axes.plot(beside[:3], values[:3], "o", markersize=4, color=colour, label=name)
    bar: dict[str, Any] = {"fmt": "_", "color": style.INK, "elinewidth": 0.9, "capsize": 2}
    axes.errorbar([at + 0.11], [ours.mean], yerr=[ours.ci95], label=f"{name}, mean of all", **bar)


@style.drawn
def passage(evidence: Evidence) -> Figure:
    figure, rows = drawing.sheet(
        "The pings of the first try, behind 250 kbps",
        evidence,
        s.TESTBED,
        rows=(1, 1, 1),
        size=(9, 6.2),
        says="seed 1",
    )
    for [axes], (name, drawn) in zip(rows, _LOOKS.items(), strict=True):
        seed = evidence.seeds(s.BEHIND[name][250])[0]
        sent, latency = m.pings(seed)
        known = np.isfinite(latency)
        seen = known & (latency < m.FORGETS_MS) & (sent + latency <= sent.max() + m.WAITS_MS)
        axes.plot(sent[seen] / 1e3, latency[seen], "o", markersize=3, color=drawn[0], label=name)
        unseen = known & ~seen
        if unseen.any():
            hollow: dict[str, Any] = {"markersize": 4, "markerfacecolor": "none", "color": drawn[0]}
            label = "came home after the probe had gone"
            axes.plot(sent[unseen] / 1e3, latency[unseen], "o", label=label, **hollow)
        axes.plot(
            sent[~known] / 1e3,
            np.zeros(int((~known).sum())),
            "x",
            markersize=4,
            color=style.LOST,
            label="dropped",
        )
        axes.set(ylim=(-0.06 * latency[known].max(), None), ylabel="latency [ms]")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=3, borderpad=0)
        if axes is not rows[-1][0]:
            axes.set_xticklabels([])
    rows[-1][0].set_xlabel("time since the video began [s]")
    return figure


# -------------------------------------------------------------------------------- the future work


@style.drawn
def future(evidence: Evidence) -> Figure:
    around = style.Margins(top=1.1, left=0.85, right=0.35, bottom=0.55)
    figure, [[carried], [latency]] = drawing.sheet(
        "CoDel's target, limit and interval at 250 kbps",
        evidence,
        s.FUTURE,
        rows=(1, 1),
        size=(9, 6.6),
        margins=around,
    )
    colours = (style.VERMILLION, style.ORANGE, style.BLUE, style.SKY, style.GREEN)
    for (setting, along), colour, dash in zip(s.SWEPT.items(), colours, style.DASHES, strict=False):
        for axes, measure in ((carried, m.throughput_kbps), (latency, m.mean_ms)):
            ours = evidence.over(along, measure)
            if ours:
                drawing.curve(axes, setting, ours, (colour, dash))
    for axes in (carried, latency):
        axes.axhline(0, linewidth=0)
        axes.set_xscale("log")
        drawing.ticks(axes, s.TARGETS_MS)
    tail = evidence.mean(s.BEHIND["Drop Tail"][250], m.throughput_kbps)
    colour = _LOOKS["Drop Tail"][0]
    carried.axhline(tail, color=colour, linewidth=0.9)
    drawing.note(carried, "Drop Tail", (1, tail), (0, -3), size=7.5, colour=colour, va="top")
    carried.set(ylim=(1600, 2030), ylabel="throughput [kbit/s]")
    latency.set(
        yscale="log", ylabel="mean latency [ms], logarithmic", xlabel="target [ms], logarithmic"
    )
    carried.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3)
    return figure


@style.drawn
def overload(evidence: Evidence) -> Figure:
    around = style.Margins(top=0.95, left=0.85, right=0.35, bottom=0.55)
    figure, [[axes]] = drawing.sheet(
        "CoDel under datagrams at a constant rate above the link's",
        evidence,
        s.OVERLOAD,
        size=(9, 4.2),
        margins=around,
        says="seed 1; dotted: (x I)² packets, the closed form's longest queue",
    )
    known = {times: one for times, one in s.OVERLOADED.items() if evidence.has(one)}
    for i, (times, one) in enumerate(known.items()):
        colour, dash = style.flow_look(i)
        table = evidence.seeds(one)[0].timeline()
        axes.plot(
            table["t_ns"] / 1e9,
            table["backlog_packets"],
            color=colour,
            linestyle=dash,
            label=f"{times:g} times the link's rate",
        )
        axes.axhline(s.predicted_peak_packets(times), color=colour, linestyle=":", linewidth=0.9)
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(0, None)
    axes.set_yticks([0, 5, 10, 100], ["0", "5", "10", "100"])
    axes.set(xlim=(0, 12), xlabel="time since the overload began [s]", ylabel="backlog [packets]")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4)
    return figure


def story(evidence: Evidence) -> Sequence[Bar]:
    """The delay of the bottleneck of 2 Mbit/s under each discipline."""
    full = evidence.mean(s.BEHIND["Drop Tail"][250], m.throughput_kbps)

    def cured(label: str, variant: Variant, published_ms: float | None = None) -> Bar:
        latency, carried = (evidence.mean(variant, one) for one in (m.mean_ms, m.throughput_kbps))
        cost = f"{carried:.0f} kbit/s for {full:.0f}"
        return Bar(label, latency, "cured", cost, published_ms)

    return (
        Bar(
            "no bottleneck",
            evidence.mean(s.TRIES["1"], m.mean_ms),
            "idle",
            published_ms=SAYS["unshaped/1/latency"],
        ),
        Bar(
            "Drop Tail, 2 Mbit/s",
            evidence.mean(s.BEHIND["Drop Tail"][250], m.mean_ms),
            "bloated",
            published_ms=SAYS["Drop Tail/250/mean"],
        ),
        cured("RED", s.BEHIND["RED"][250], SAYS["RED/250/mean"]),
        cured("CoDel, tc's defaults", s.DEFAULTS[250]),
        cured(_CALLED["CoDel"], s.BEHIND["CoDel"][250]),
    )
