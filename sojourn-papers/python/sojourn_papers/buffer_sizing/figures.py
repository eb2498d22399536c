"""The report's figures 4 to 6 and 10 to 15 from our Runs."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn_papers import published
from sojourn_papers.buffer_sizing import measures as m
from sojourn_papers.buffer_sizing import model
from sojourn_papers.buffer_sizing import studies as s
from sojourn_papers.drawing import curve, sheet, stated_level, ticks
from sojourn_papers.evidence import Evidence
from sojourn_papers.paper import Bar

SAYS = published.beside(__file__)
_COLOURS = (style.VERMILLION, style.GREEN, style.BLUE)


@style.drawn
def single(evidence: Evidence) -> Figure:
    """Figures 4 to 6."""
    figure, rows = sheet(
        "The queue of one flow at 1000 packets a second and 142 ms",
        evidence,
        s.SINGLE,
        rows=(1, 1, 1),
        size=(10, 5.6),
        says="seed 1 shown",
        spread="",
    )
    for [axes], (size, variant), colour in zip(rows, s.ONE.items(), _COLOURS, strict=True):
        table = evidence.seeds(variant)[0].timeline()
        use = evidence.mean(variant, m.utilisation)
        axes.plot(table["t_ns"] / 1e9, table["backlog_packets"], color=colour, linewidth=0.9)
        stated_level(axes, size)
        style.corner(axes, f"buffer of {size} packets, {use:.2f} % of the link", style.INK)
        axes.set(ylabel="packets", ylim=(0, size * 1.15), xlim=(60, 400))
    for [axes] in rows[:-1]:
        axes.tick_params(labelbottom=False)
    rows[-1][0].set_xlabel("time [s]")
    return figure


@style.drawn
def least(evidence: Evidence) -> Figure:
    """Figure 11."""
    figure, [[axes]] = sheet(
        "The least buffer for a wanted utilisation", evidence, s.LEAST, size=(10, 4.4)
    )
    many = [n for n in s.MANY if evidence.has(s.BY_SIZE[n, 1])]
    for wanted, colour in zip((98.0, 99.5, 99.9), _COLOURS, strict=True):
        found = {n: m.least(evidence, n, wanted) for n in many}
        scaled = {n: one.mean * m.rule(n) for n, one in found.items()}
        axes.plot(
            list(scaled),
            list(scaled.values()),
            color=colour,
            marker="o",
            markersize=4,
            label=f"{wanted:g} %, ours",
        )
    for times, dash in ((1, style.DOTTED), (2, style.SHORT)):
        axes.plot(
            many,
            [times * m.rule(n) for n in many],
            color=style.INK,
            linestyle=dash,
            linewidth=0.9,
            marker="o",
            markersize=5,
            markerfacecolor="none",
            label=f"{'2 ' if times == 2 else ''}rate * RTT / sqrt(n), published",
        )
    ticks(axes, many)
    axes.set(xlabel="n, long-lived flows", ylabel="buffer [packets]", ylim=(0, None))
    axes.legend(loc="upper right")
    return figure


@style.drawn
def table(evidence: Evidence) -> Figure:
    """Figure 15."""
    figure, rows = sheet(
        "Utilisation over the buffer in rate * RTT / sqrt(n)",
        evidence,
        s.ROUTER,
        rows=(1, 1),
        columns=2,
        size=(10, 6),
    )
    panels = [axes for line in rows for axes in line]
    for axes, n in zip(panels, s.N, strict=True):
        ours = {share: s.TABLE[n, share] for share in s.SHARES}
        known = evidence.over(ours, m.utilisation)
        curve(axes, "utilisation", known, (style.VERMILLION, style.SOLID))
        for kind, label, marker in (("sim", "its ns-2", "s"), ("exp", "its router", "D")):
            axes.plot(
                s.SHARES,
                [SAYS[f"table/{n}/{share:g}/{kind}"] for share in s.SHARES],
                color=style.INK,
                linestyle=":",
                linewidth=0.8,
                marker=marker,
                markersize=5,
                markerfacecolor="none",
                label=f"published, {label}",
            )
        again = {share: SAYS["ns2"].get(f"{n}/{share:g}") for share in s.SHARES}
        axes.plot(
            [share for share, found in again.items() if found],
            [found for found in again.values() if found],
            linestyle="none",
            marker="x",
            color=style.BLUE,
            label="ns-2.35, our reading",
        )
        axes.set_ylim(80, 101)
        ticks(axes, s.SHARES)
        style.corner(axes, f"{n} flows", style.INK)
    for axes in rows[0]:
        axes.tick_params(labelbottom=False)
    for axes in rows[-1]:
        axes.set_xlabel("buffer [rate * RTT / sqrt(n)]")
    for line in rows:
        line[0].set_ylabel("utilisation [%]")
    panels[0].legend(loc="lower right")
    return figure


@style.drawn
def short(evidence: Evidence) -> Figure:
    """Figure 10."""
    figure, [[axes]] = sheet(
        "Short flows of one length: the mean queue", evidence, s.SHORT, size=(10, 4.2)
    )
    for mbps, colour in zip(s.RATES, _COLOURS, strict=True):
        along = {packets: s.QUEUES[packets, mbps] for packets in s.LENGTHS}
        curve(axes, f"{mbps} Mbit/s", evidence.over(along, m.mean_queue), (colour, style.SOLID))
    lengths = np.arange(2, 64)
    axes.plot(
        lengths,
        [model.mean_queue(int(one), s.LOAD) for one in lengths],
        color=style.INK,
        linestyle=":",
        label="the M/G/1 formula, published",
    )
    axes.set(xlabel="length of the flows [packets]", ylabel="mean queue [packets]", ylim=(0, None))
    axes.legend(loc="upper left")
    return figure


@style.drawn
def mix(evidence: Evidence) -> Figure:
    """Figures 13 and 14."""
    figure, [[use, time]] = sheet(
        "Short flows of 80 Mbit/s beside n long ones at 400 Mbit/s",
        evidence,
        s.MIX,
        columns=2,
        size=(10, 4),
    )
    for name, colour in ((s.WHOLE, style.VERMILLION), (s.ROOT, style.BLUE)):
        along = {n: s.MIXED[n, name] for n in s.BESIDE}
        curve(use, name, evidence.over(along, m.utilisation), (colour, style.SOLID))
        curve(time, name, evidence.over(along, m.completion_s), (colour, style.SOLID))
    for axes, title in ((use, "utilisation [%]"), (time, "completion of short flows [s]")):
        axes.set_title(title)
        ticks(axes, s.BESIDE)
        axes.set_xlabel("n, long-lived flows")
    stated_level(use, SAYS["mix/200/utilisation"], "published: over 95 %")
    use.set_ylim(85, 101)
    time.set_ylim(bottom=0)
    use.legend(loc="lower right")
    return figure


def story(evidence: Evidence) -> list[Bar]:
    """Delays of long and short flows with the whole product and with the rule's buffer."""
    bars = [
        Bar(
            "200 long flows, rate * RTT",
            evidence.mean(s.MIXED[200, s.WHOLE], m.delay_ms),
            "bloated",
        )
    ]
    use, full = (evidence.mean(s.MIXED[200, name], m.utilisation) for name in (s.ROOT, s.WHOLE))
    bars.append(
        Bar(
            "200 long flows, rate * RTT / sqrt(n)",
            evidence.mean(s.MIXED[200, s.ROOT], m.delay_ms),
            "cured",
            f"{use:.1f} % of the link for {full:.1f} %",
        )
    )
    return bars
