"""The source's figures 2 to 5, 7, 8 and the one that is 7 again, from our Runs; and what they leave unseen.

Published values are hollow marks; of figures 2 to 5 and of CoDel the text has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn.papers.drawing import Look, curve, legend, look, sheet
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Estimate, Measure, Picture
from sojourn.papers.video_testbed import measures as m
from sojourn.papers.video_testbed import sweeps
from sojourn.papers.video_testbed.published import ROWS, Cells
from sojourn.papers.video_testbed.reading import BOTTLENECKS

_LOOKS: dict[str, Look] = {"Drop Tail": look("pfifo"), "RED": look("red"), "CoDel": look("codel")}
_CALLED = {"CoDel": "CoDel, limit 3"}
_PLAIN = "CoDel, tc's defaults"
_PLAIN_LOOK: Look = look("fq_codel")[0], style.DOTTED


# ------------------------------------------------------------------------------------------------ the cited figures


def _rates(evidence: Evidence) -> list[int]:
    return [rate for rate in sweeps.RATES if all(evidence.has("cited", f"{rate} {name}") for name in _LOOKS)]


def _over_rates(axes: Axes, evidence: Evidence, measure: Measure) -> None:
    rates = _rates(evidence)
    for name, drawn in _LOOKS.items():
        curve(
            axes,
            name,
            rates,
            [evidence.estimate("cited", f"{rate} {name}", measure) for rate in rates],
            drawn,
        )
    _rate_axis(axes, rates)
    legend(axes)


def _rate_axis(axes: Axes, rates: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(list(rates), [str(rate) for rate in rates])
    axes.minorticks_off()
    axes.set_xlabel("bottleneck [kbit/s], logarithmic")


@style.drawn
def _figure2(evidence: Evidence) -> Figure:
    figure, [[axes]] = sheet(
        "Loss under Drop Tail over that under RED",
        evidence,
        "cited",
        says="where RED loses more than 1 %",
        size=(7, 3.8),
    )
    rates = [
        rate for rate in _rates(evidence) if evidence.mean("cited", f"{rate} RED", m.queue_loss_percent) > 1
    ]
    ours = [
        evidence.compared(
            ("cited", f"{rate} Drop Tail"),
            ("cited", f"{rate} RED"),
            m.queue_loss_percent,
            m.above_percent,
        )
        for rate in rates
    ]
    curve(axes, "Drop Tail over RED", rates, ours, look("pfifo"))
    axes.axhline(20, color=style.INK, linestyle=":", linewidth=0.9, label="stated: 20 %")
    axes.axhline(0, color=style.MUTED, linewidth=0.6)
    _rate_axis(axes, rates)
    axes.set_ylabel("more packets lost [%]")
    legend(axes)
    return figure


@style.drawn
def _figure3(evidence: Evidence) -> Figure:
    figure, [[whole, close]] = sheet(
        "Packet loss over the bottleneck's rate", evidence, "cited", columns=2, says="film of 950 kbit/s"
    )
    _over_rates(whole, evidence, m.queue_loss_percent)
    whole.set_ylabel("packets lost [%]")
    _over_rates(close, evidence, m.queue_loss_percent)
    close.set_xlim(800, 5000)
    close.set_ylim(-0.4, 9)
    style.corner(close, "the same, from 1 Mbit/s")
    close.set_ylabel("")
    return figure


@style.drawn
def _figure4(evidence: Evidence) -> Figure:
    figure, [[axes]] = sheet(
        "Throughput over the bottleneck's rate", evidence, "cited", says="film of 950 kbit/s", size=(7, 3.8)
    )
    _over_rates(axes, evidence, m.carried_kbps)
    axes.set_yscale("log")
    axes.set_ylabel("throughput [kbit/s], logarithmic")
    return figure


@style.drawn
def _figure5(evidence: Evidence) -> Figure:
    figure, [[axes]] = sheet(
        "Latency over the bottleneck's rate",
        evidence,
        "cited",
        says="film of 950 kbit/s",
        size=(7, 3.8),
    )
    _over_rates(axes, evidence, m.queue_ms)
    rates = [rate for rate in sweeps.RATES if evidence.has("cited", f"{rate} Drop Tail small")]
    curve(
        axes, f"Drop Tail of {sweeps.SMALL} packets", rates,
        [evidence.estimate("cited", f"{rate} Drop Tail small", m.queue_ms) for rate in rates],
        (style.MUTED, style.LONG), marker="s",
    )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylabel("mean time in queue [ms], logarithmic")
    legend(axes)
    return figure


# --------------------------------------------------------------------------------------------- figures 7, 8 and 7


def _grouped(
    axes: Axes, evidence: Evidence, measure: Measure, cell: Callable[[Cells], float] | None, digits: int = 0
) -> None:
    """A group of bars for each bottleneck; published values as hollow marks over their bars."""
    groups = [(name, "testbed", f"{{}} {name}", drawn[0]) for name, drawn in _LOOKS.items()]
    groups.append((_PLAIN, "codel", "{} limit 1000", _PLAIN_LOOK[0]))
    width = 0.8 / len(groups)
    marked = False
    for i, (name, study, variant, colour) in enumerate(groups):
        for group, kbps in enumerate(BOTTLENECKS):
            if not evidence.has(study, variant.format(kbps)):
                continue
            ours: Estimate = evidence.estimate(study, variant.format(kbps), measure)
            at = group + (i - (len(groups) - 1) / 2) * width
            axes.bar(
                at, ours.mean, width * 0.92, color=colour, linewidth=0, yerr=ours.ci95, ecolor=style.INK,
                error_kw={"elinewidth": 0.8, "capsize": 2}, label=_CALLED.get(name, name) if group == 0 else None,
            )  # fmt: skip
            axes.annotate(
                f"{ours.mean:.{digits}f}", (at, ours.mean + ours.ci95), xytext=(0, 3), textcoords="offset points",
                ha="center", va="bottom", size=7, color=style.INK,
            )  # fmt: skip
            if cell is not None and name in ROWS:
                axes.plot(
                    [at - 0.42 * width], [cell(ROWS[name][kbps])], marker="D", markersize=6, markerfacecolor="none", color=style.INK,
                    linestyle="none", label=None if marked else "published",
                )  # fmt: skip
                marked = True
    axes.set_xticks(range(len(BOTTLENECKS)), [f"{kbps} kbps\n{8 * kbps} kbit/s" for kbps in BOTTLENECKS])
    axes.grid(axis="x", visible=False)


def _key(axes: Axes) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=5)


@style.drawn
def _figure7(evidence: Evidence) -> Figure:
    figure, [[axes]] = _single("Latency of the pings behind each bottleneck", evidence)
    _grouped(axes, evidence, m.mean_ms, lambda cells: cells.mean)
    axes.set_yscale("log")
    axes.set_ylim(1, 40_000)
    axes.set_ylabel("mean latency [ms], logarithmic")
    _key(axes)
    return figure


@style.drawn
def _figure8(evidence: Evidence) -> Figure:
    figure, [[axes]] = _single("Throughput behind each bottleneck", evidence)
    _grouped(axes, evidence, m.throughput_kbps, lambda cells: cells.throughput)
    axes.set_ylim(0, 2300)
    axes.set_ylabel("throughput [kbit/s]")
    _key(axes)
    return figure


@style.drawn
def _loss(evidence: Evidence) -> Figure:
    around = style.Margins(top=1.05, left=0.85, right=0.35, bottom=0.65)
    figure, [[pings], [film]] = sheet(
        "Packets lost behind each bottleneck", evidence, "testbed", rows=(1, 1), size=(9, 6.4), margins=around
    )
    _grouped(pings, evidence, m.ping_loss_percent, lambda cells: cells.lost)
    _grouped(film, evidence, m.film_loss_percent, None)
    pings.set_ylabel("pings lost [%]")
    film.set_ylabel("packets of the film lost [%]")
    for axes in (pings, film):
        axes.set_ylim(0, 58)
    pings.set_xticklabels([])
    _key(pings)
    return figure


def _single(title: str, evidence: Evidence) -> tuple[Figure, list[list[Axes]]]:
    around = style.Margins(top=1.05, left=0.85, right=0.35, bottom=0.65)
    return sheet(title, evidence, "testbed", size=(9, 4.2), margins=around)


# -------------------------------------------------------------------------------------- three tries, and one passage


@style.drawn
def _tries(evidence: Evidence) -> Figure:
    around = style.Margins(top=0.95, left=0.85, right=0.35, bottom=0.7)
    figure, [columns] = sheet(
        "Three tries, and what more of them say", evidence, "testbed", columns=3, size=(11, 4.2), margins=around,
        says="filled: tries 1 to 3; pale: further seeds; bar: mean and interval of all; hollow: published",
    )  # fmt: skip
    parts: tuple[tuple[str, Measure, Callable[[Cells], float] | None], ...] = (
        ("mean latency [ms], logarithmic", m.mean_ms, lambda cells: cells.mean),
        ("throughput, % of the link's", m.film_throughput_percent, None),
        ("pings lost [%]", m.ping_loss_percent, lambda cells: cells.lost),
    )
    for axes, (label, measure, cell) in zip(columns, parts, strict=True):
        for i, (name, drawn) in enumerate(_LOOKS.items()):
            for group, kbps in enumerate(BOTTLENECKS):
                at = 4 * group + i
                ours = evidence.estimate("testbed", f"{kbps} {name}", measure)
                values = np.array(ours.values)
                around_at = at + np.linspace(-0.22, 0.22, values.size)
                axes.plot(
                    around_at[3:], values[3:], "o", markersize=3, color=drawn[0], alpha=0.35, linewidth=0
                )
                axes.plot(
                    around_at[:3],
                    values[:3],
                    "o",
                    markersize=4,
                    color=drawn[0],
                    label=name if group == 0 else None,
                )
                axes.errorbar(
                    [at + 0.38],
                    [ours.mean],
                    yerr=[ours.ci95],
                    fmt="_",
                    color=style.INK,
                    elinewidth=0.9,
                    capsize=2,
                )
                if name in ROWS:
                    row = ROWS[name][kbps]
                    value = cell(row) if cell is not None else 100 * row.throughput / (8 * kbps)
                    axes.plot(
                        [at], [value], "D", markersize=7, markerfacecolor="none", color=style.INK, linewidth=0
                    )
        axes.set_xticks([1, 5, 9], [f"{kbps} kbps" for kbps in BOTTLENECKS])
        axes.grid(axis="x", visible=False)
        style.corner(axes, label)
    columns[0].set_yscale("log")
    columns[0].legend(loc="center left", bbox_to_anchor=(0, 0.29))
    return figure


@style.drawn
def _passage(evidence: Evidence) -> Figure:
    figure, rows = sheet(
        "The pings of the first try, behind 250 kbps",
        evidence,
        "testbed",
        rows=(1, 1, 1),
        size=(9, 6.2),
        says="seed 1",
    )
    for [axes], (name, drawn) in zip(rows, _LOOKS.items(), strict=True):
        seed = evidence.seeds("testbed", f"250 {name}")[0]
        sent, latency = m.pings(seed)
        known = np.isfinite(latency)
        seen = known & (latency < m.FORGETS_MS) & (sent + latency <= sent.max() + m.WAITS_MS)
        axes.plot(sent[seen] / 1e3, latency[seen], "o", markersize=3, color=drawn[0], label=name)
        unseen = known & ~seen
        if unseen.any():
            axes.plot(sent[unseen] / 1e3, latency[unseen], "o", markersize=4, markerfacecolor="none", color=drawn[0],
                      label="came home after the probe had gone")  # fmt: skip
        axes.plot(
            sent[~known] / 1e3,
            np.zeros(int((~known).sum())),
            "x",
            markersize=4,
            color=style.LOST,
            label="dropped",
        )
        axes.set_ylim(-0.06 * latency[known].max(), None)
        axes.set_ylabel("latency [ms]")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 0.97), ncols=3, borderpad=0)
        if axes is not rows[-1][0]:
            axes.set_xticklabels([])
    rows[-1][0].set_xlabel("time since the video began [s]")
    return figure


# -------------------------------------------------------------------------------------------------- the future work


@style.drawn
def _future(evidence: Evidence) -> Figure:
    around = style.Margins(top=1.1, left=0.85, right=0.35, bottom=0.55)
    figure, [[carried], [latency]] = sheet(
        "CoDel's target, limit and interval at 250 kbps",
        evidence,
        "future",
        rows=(1, 1),
        size=(9, 6.6),
        margins=around,
    )
    colours = (style.VERMILLION, style.ORANGE, style.BLUE, style.SKY, style.GREEN)
    for (setting, _), colour, dash in zip(sweeps.SETTINGS.items(), colours, style.DASHES, strict=False):
        targets = [
            target for target in sweeps.TARGETS_MS if evidence.has("future", sweeps.future(setting, target))
        ]
        if not targets:
            continue
        for axes, measure in ((carried, m.throughput_kbps), (latency, m.mean_ms)):
            ours = [
                evidence.estimate("future", sweeps.future(setting, target), measure) for target in targets
            ]
            curve(axes, setting, targets, ours, (colour, dash))
    for axes in (carried, latency):
        axes.axhline(0, linewidth=0)
        axes.set_xscale("log")
        axes.set_xticks(list(sweeps.TARGETS_MS), [str(target) for target in sweeps.TARGETS_MS])
        axes.minorticks_off()
    tail = evidence.mean("testbed", "250 Drop Tail", m.throughput_kbps)
    carried.axhline(tail, color=_LOOKS["Drop Tail"][0], linewidth=0.9)
    carried.annotate(
        "Drop Tail",
        (1, tail),
        xytext=(0, -3),
        textcoords="offset points",
        ha="left",
        va="top",
        size=7.5,
        color=_LOOKS["Drop Tail"][0],
    )
    carried.set_ylim(1600, 2030)
    carried.set_ylabel("throughput [kbit/s]")
    latency.set_yscale("log")
    latency.set_ylabel("mean latency [ms], logarithmic")
    latency.set_xlabel("target [ms], logarithmic")
    carried.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3)
    return figure


@style.drawn
def _overload(evidence: Evidence) -> Figure:
    around = style.Margins(top=0.95, left=0.85, right=0.35, bottom=0.55)
    figure, [[axes]] = sheet(
        "CoDel under datagrams at a constant rate above the link's", evidence, "overload", size=(9, 4.2), margins=around,
        says="seed 1; dotted: (x I)² packets, the closed form's longest queue",
    )  # fmt: skip
    known = [times for times in sweeps.OVERLOADS if evidence.has("overload", sweeps.overload(times))]
    for i, times in enumerate(known):
        colour, dash = style.flow_look(i)
        table = evidence.seeds("overload", sweeps.overload(times))[0].table("queue")
        table = table.filter(table["link"] == "down").sort("t_ns")
        axes.plot(
            table["t_ns"] / 1e9,
            table["backlog_packets"],
            color=colour,
            linestyle=dash,
            label=f"{times:g} times the link's rate",
        )
        axes.axhline(sweeps.predicted_peak_packets(times), color=colour, linestyle=":", linewidth=0.9)
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylim(0, None)
    axes.set_yticks([0, 5, 10, 100], ["0", "5", "10", "100"])
    axes.set_xlim(0, 12)
    axes.set_xlabel("time since the overload began [s]")
    axes.set_ylabel("backlog [packets]")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4)
    return figure


PICTURES = (
    Picture(
        "figure7", "Latency under CoDel, RED and Drop Tail",
        "Drop Tail keeps seconds, RED a few tenths, a CoDel of three packets hundredths. Published means of tables 2 and 3 as diamonds; CoDel's stood only in the picture.",
        _figure7, "Figure 7",
    ),
    Picture(
        "figure8", "Throughput under CoDel, RED and Drop Tail",
        "Drop Tail never leaves the link idle; a short queue has nothing left for the film's quiet scenes, and one of three packets not even for the time between two frames. Diamonds: published.",
        _figure8, "Figure 8",
    ),
    Picture(
        "loss", "Packets lost under CoDel, RED and Drop Tail",
        "What exceeds the link is lost under any discipline, so Drop Tail and RED differ little; only the queue of three packets loses much more of the film. Pings slip between two frames. Diamonds: published.",
        _loss, "Figure 7 (the second)",
    ),
    Picture(
        "tries", "Three tries beside proper statistics",
        "Three tries of Drop Tail lie anywhere between half full and full: the queue remembers the whole film. Published values are hollow diamonds.",
        _tries,
    ),
    Picture(
        "passage", "A hundred pings",
        "Drop Tail fills, and its latency is mostly how long it has been filling: the minimum says when the pings began, the mean how soon it was full. RED and CoDel follow the scenes.",
        _passage,
    ),
    Picture(
        "figure2", "Drop Tail's packet loss over RED's",
        "ns-2's RED counts bytes and loses fewer, larger packets. No published curve survives, only the 20 %.",
        _figure2, "Figure 2",
    ),
    Picture(
        "figure3", "Packet loss over the bottleneck",
        "Below 1 Mbit/s CoDel loses slightly less than Drop Tail, from there Drop Tail loses nothing and CoDel a little. The text has no values.",
        _figure3, "Figure 3",
    ),
    Picture(
        "figure4", "Throughput over the bottleneck",
        "The three differ by little, up to what the film offers. The text has no values.",
        _figure4, "Figure 4",
    ),
    Picture(
        "figure5", "Latency over the bottleneck",
        "CoDel is lowest where the link is full. Drop Tail is nowhere below it at low rates, even with five packets of buffer. The text has no values.",
        _figure5, "Figure 5",
    ),
    Picture(
        "future", "The future work: a larger target, a larger limit",
        "The limit wins the throughput back. A larger target buys a few kbit/s with its whole length in latency, and an interval of 500 ms somewhat more for seconds: both let CoDel become Drop Tail.",
        _future,
    ),
    Picture(
        "overload", "Why: CoDel and a load that does not answer",
        "The rate of drops grows with the square root of their count until it meets the excess; until then the queue grows, to the square of the excess. Each lively scene begins anew.",
        _overload,
    ),
)  # fmt: skip
