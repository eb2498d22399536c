"""The letter's four figures from our Runs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn_papers import published
from sojourn_papers.adt import measures as m
from sojourn_papers.adt import studies as s
from sojourn_papers.drawing import Look, curve, look, note, sheet, stated_level, ticks
from sojourn_papers.evidence import Evidence, Measure
from sojourn_papers.paper import Bar

SAYS = published.beside(__file__)
LOOKS: dict[str, Look] = {
    "Drop-Tail": look("pfifo"),
    "Adaptive RED": look("red"),
    "ADT": look("adt"),
}
PUBLISHED_MS = {
    name: SAYS[f"table/{row}/delay"]
    for name, row in (("Drop-Tail", "DT"), ("ADT", "ADT"), ("Adaptive RED", "ARED"))
}
MS_PER_PACKET = 0.06
"""1500 B at 200 Mbit/s."""


@style.drawn
def queue(evidence: Evidence) -> Figure:
    """Figure 1."""
    figure, rows = sheet(
        "Queue sizes for Drop-Tail, Adaptive RED and ADT",
        evidence,
        s.TABLE,
        rows=(1, 1, 1),
        size=(10, 6.4),
        says="seed 1 shown",
    )
    for [axes], (name, (colour, _)) in zip(rows, LOOKS.items(), strict=True):
        line = evidence.seeds(s.DISCIPLINES[name])[0].timeline()
        t = line["t_ns"].to_numpy() / 1e9
        axes.plot(
            t,
            line["backlog_packets"].to_numpy(),
            color=colour,
            linewidth=0.5,
            label=f"{name}: queue",
        )
        if name == "ADT":
            axes.plot(t, line["limit"].to_numpy(), color=style.INK, linewidth=1.1, label="q_adt")
        axes.axhline(
            PUBLISHED_MS[name] / MS_PER_PACKET,
            color=colour,
            linestyle=":",
            linewidth=1.2,
            label=f"published mean, {PUBLISHED_MS[name]:g} ms",
        )
        axes.set(ylim=(0, 520), xlim=(0, t[-1]), ylabel="packets")
        _key_above(axes)
    _only_last_labels([axes for [axes] in rows], "time [s]")
    return figure


@style.drawn
def users(evidence: Evidence) -> Figure:
    """Figure 2."""
    figure, rows = sheet(
        "ADT under N users: mean q_adt, loss rate, utilisation",
        evidence,
        s.BY_USERS,
        rows=(1.3, 1, 1),
        size=(10, 7.6),
    )
    [[top], [middle], [bottom]] = rows
    known = [count for count in s.USERS if evidence.has(s.WITH_USERS[count])]
    panels: tuple[tuple[Axes, str, Measure], ...] = (
        (top, "mean q_adt", m.limit),
        (middle, "loss rate", m.loss),
        (bottom, "utilisation", m.utilisation),
    )
    for axes, label, measure in panels:
        curve(axes, label, evidence.over(s.WITH_USERS, measure), LOOKS["ADT"])
        axes.set_xscale("log")
        ticks(axes, known)
    top.plot(
        known,
        [SAYS[f"figure2/{count}/limit"] for count in known],
        color=style.INK,
        linestyle=":",
        marker="o",
        markersize=6,
        markerfacecolor="none",
        linewidth=0.9,
        label="B T / sqrt(N), the curve of the source",
    )
    top.set_yscale("log")
    ticks(top, (10, 20, 50, 100, 200, 500, 1000), "y")
    top.set_ylabel("packets")
    top.legend(loc="upper right")
    middle.set_ylabel("loss rate [%]")
    bottom.set_ylabel("utilisation [%]")
    stated_level(bottom, 99, "u, wanted")
    bottom.legend(loc="lower right")
    _only_last_labels((top, middle, bottom), "N, TCP users (logarithmic)")
    return figure


@style.drawn
def changing(evidence: Evidence) -> Figure:
    """Figure 3."""
    figure, rows = sheet(
        "ADT while users come and go",
        evidence,
        s.CHANGING,
        rows=(0.7, 1, 1),
        size=(10, 7.2),
        says="seed 1 shown",
    )
    [[top], [middle], [bottom]] = rows
    seed = evidence.seeds(s.CHANGING.only)[0]
    line = seed.timeline()
    t = line["t_ns"].to_numpy() / 1e9
    colour = LOOKS["ADT"][0]
    top.plot(t, m.users(t, m.joining_s(seed)), color=style.INK)
    top.set_ylabel("active users")
    every = 10.0
    bins, busy = _utilisation(line, every)
    middle.plot(bins, busy, color=colour)
    stated_level(middle, 99, "u, wanted")
    middle.set(ylabel=f"utilisation [%],\nmeans of {every:g} s", ylim=(70, 101))
    middle.legend(loc="lower center")
    bottom.plot(t, line["limit"].to_numpy(), color=colour, label="q_adt")
    for packets, words, x in (
        (SAYS["figure3/many"], "many users: below", 0.13),
        (SAYS["figure3/few"], "few users: over", 0.5),
    ):
        stated_level(bottom, packets)
        said = f"published, {words} {packets:g}"
        note(bottom, said, (x, packets), (0, -10 if x < 0.5 else 3), of="row", ha="center")
    bottom.set_yscale("log")
    ticks(bottom, (20, 50, 100, 200, 500, 1000), "y")
    bottom.set_ylabel("q_adt [packets]")
    for axes in (top, middle, bottom):
        axes.set_xlim(0, t[-1])
    _only_last_labels((top, middle, bottom), "time [s]")
    return figure


@style.drawn
def parameters(evidence: Evidence) -> Figure:
    """Figure 4."""
    figure, [panels] = sheet(
        "Utilisation under other parameters of ADT",
        evidence,
        s.PARAMETERS,
        columns=2,
        size=(10, 4.0),
    )
    colours = dict(zip(s.FACTORS, (style.SKY, style.GREEN, style.VERMILLION), strict=True))
    dashes = dict(zip(s.FACTORS, (style.SHORT, style.SOLID, style.LONG), strict=True))
    for axes, count in zip(panels, s.FEW_MANY, strict=True):
        for factor in s.FACTORS:
            along = {period: s.SETTINGS[count, factor, period] for period in s.PERIODS_MS}
            busy = evidence.over(along, m.utilisation)
            if busy:
                curve(axes, f"c = {factor}", busy, (colours[factor], dashes[factor]))
        stated_level(axes, 99, "u, wanted")
        axes.set(ylim=(94, 100.5), xlabel="sample period [ms]")
        style.corner(axes, f"N = {count}", style.INK)
    panels[0].set_ylabel("utilisation in 5 minutes [%]")
    panels[0].legend(loc="lower right", ncols=2)
    panels[1].tick_params(labelleft=False)
    return figure


# ----------------------------------------------------------------------------------------- pieces


def _utilisation(line: pl.DataFrame, every: float) -> tuple[m.Floats, m.Floats]:
    """Utilisation of a link of 100 Mbit/s in intervals of `every` seconds, %: middles and means."""
    t = line["t_ns"].to_numpy() / 1e9
    which = np.ceil(t / every).astype(int) - 1
    sent = np.bincount(which, weights=line["sent_bytes"].to_numpy())
    middles: m.Floats = (np.arange(sent.size, dtype=np.float64) + 0.5) * every
    return middles, 100 * sent * 8 / (every * 100e6)


def _key_above(axes: Axes) -> None:
    """A legend in one line above the panel, where it covers no curve."""
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=3, borderaxespad=0.1)


def _only_last_labels(column: Iterable[Axes], label: str) -> None:
    """Labels the axis of time or N under the lowest panel only."""
    *others, last = column
    for axes in others:
        axes.tick_params(labelbottom=False)
    last.set_xlabel(label)


def story(evidence: Evidence) -> list[Bar]:
    """The delays under Drop-Tail, Adaptive RED and ADT."""
    full = evidence.mean(s.TABLE["Drop-Tail"], m.utilisation)
    bars = [
        Bar(
            "Drop-Tail, 500 packets",
            evidence.mean(s.TABLE["Drop-Tail"], m.backlog_ms),
            "bloated",
            published_ms=SAYS["table/DT/delay"],
        )
    ]
    for name, label, row in (
        ("Adaptive RED", "Adaptive RED", "ARED"),
        ("ADT", "Active Drop-Tail", "ADT"),
    ):
        busy, delay = (evidence.mean(s.TABLE[name], one) for one in (m.utilisation, m.backlog_ms))
        cost = f"{busy:.1f} % of the link for {full:.1f} %"
        bars.append(Bar(label, delay, "cured", cost, SAYS[f"table/{row}/delay"]))
    return bars
