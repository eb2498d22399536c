"""Pictures: shares by depth, and queues under a discipline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn_papers.bbr_shares import measures as m
from sojourn_papers.bbr_shares import studies as s
from sojourn_papers.bbr_shares.model import share
from sojourn_papers.drawing import legend, row_labels, sheet, ticks
from sojourn_papers.evidence import Evidence
from sojourn_papers.paper import Bar

COLOURS = {1: style.BLUE, 4: style.GREEN, 16: style.ORANGE}


def _panel(axes: Axes, evidence: Evidence, version: str, flows: Sequence[tuple[int, int]]) -> None:
    for bbrs, cubics in flows:
        there = m.along(evidence, version, bbrs, cubics)
        if there:
            axes.errorbar(
                list(there),
                [one.mean for one in there.values()],
                yerr=[one.ci95 for one in there.values()],
                color=COLOURS[cubics],
                marker="o",
                markersize=4,
                label=f"{bbrs} {version}, {cubics} CUBIC",
            )
        if bbrs > 1:
            _curve(axes, bbrs, COLOURS[cubics])
    if all(bbrs == 1 for bbrs, _ in flows):
        _curve(axes, 1, style.INK)
    axes.set_xscale("log")
    ticks(axes, s.DEPTHS)
    axes.set_ylim(0, 100)


def _curve(axes: Axes, flows: int, colour: str) -> None:
    depths = np.geomspace(1, 32, 60)
    values = [100 * share(float(depth), s.BDP, s.RTT_S, flows) for depth in depths]
    name = "the model, BBR" if flows == 1 else f"the model, {flows} BBR"
    axes.plot(depths, values, color=colour, linestyle=style.SHORT, linewidth=1, label=name)


@style.drawn
def depth(evidence: Evidence) -> Figure:
    """Above: one flow of BBR beside CUBIC. Below: as many flows of BBR as of CUBIC."""
    figure, rows = sheet(
        "What BBR gets beside CUBIC", evidence, s.DEPTH, rows=(1, 1), columns=2, size=(10, 7)
    )
    for axes, version in zip(rows[0], s.VERSIONS, strict=True):
        _panel(axes, evidence, version, [(1, cubics) for cubics in s.CUBICS])
    for axes, version in zip(rows[1], s.VERSIONS, strict=True):
        _panel(axes, evidence, version, [(flows, flows) for flows in s.SEVERAL])
    for row in rows:
        row[0].set_ylabel("BBR's share of the goodput [%]")
        for axes in row:
            legend(axes)
    for axes in rows[-1]:
        axes.set_xlabel("depth of the FIFO [BDP], logarithmic")
    return figure


@style.drawn
def assumptions(evidence: Evidence) -> Figure:
    """The model as it is, and with one or all of its assumed factors replaced by measured ones."""
    shown = [
        cubics for cubics in s.CUBICS if any(m.assumed(evidence, cubics, depth) for depth in s.DEEP)
    ]
    figure, [row] = sheet(
        "The model's assumptions, one by one", evidence, s.PROBED, columns=len(shown), size=(11, 4)
    )
    for axes, cubics in zip(row, shown, strict=True):
        found = {
            depth: one
            for depth in s.DEEP
            if (one := m.assumed(evidence, cubics, depth)) is not None
        }
        curves: dict[str, tuple[str, set[str]]] = {
            "the model": (style.INK, set()),
            "the queue as full as it is": (style.GREEN, {"full"}),
            "the RTT as measured": (style.ORANGE, {"seen"}),
            "in flight as it is": (style.BROWN, {"kept"}),
            "all three": (style.INDIGO, {"full", "seen", "kept"}),
        }
        for name, (colour, wanted) in curves.items():
            values = [m.modelled(depth, one, wanted) for depth, one in found.items()]
            axes.plot(
                list(found), values, color=colour, linestyle=style.SHORT, marker=".", label=name
            )
        axes.plot(
            list(found),
            [100 * one.share for one in found.values()],
            "o",
            color=style.BLUE,
            markersize=6,
            label="ours",
        )
        axes.set_xscale("log")
        ticks(axes, s.DEEP)
        axes.set(ylim=(0, 100), xlabel="depth of the FIFO [BDP], logarithmic")
        axes.set_title(f"beside {cubics} CUBIC", size=style.points(9))
    row[0].set_ylabel("BBR's share of the goodput [%]")
    legend(row[-1])
    return figure


@style.drawn
def laws(evidence: Evidence) -> Figure:
    """Queues under a discipline other than a FIFO."""
    figure, [[axes]] = sheet(
        "BBR beside CUBIC under AQM",
        evidence,
        s.LAW,
        size=(9, 3.6),
        margins=style.Margins(top=0.85, left=2.2, right=0.35, bottom=0.55),
    )
    names = [s.law(version, qdisc) for version in s.VERSIONS for qdisc in s.LAWS]
    there = [name for name in names if evidence.has(s.LAW[name])]
    for row, name in enumerate(there):
        axes.barh(row, evidence.mean(s.LAW[name], m.share_percent), color=style.BLUE, height=0.6)
    row_labels(axes, there)
    axes.set_xlim(0, 100)
    axes.axvline(50, color=style.INK, linewidth=0.8)
    axes.set_xlabel("BBR's share of the goodput [%]")
    return figure


def story(evidence: Evidence) -> Sequence[Bar]:
    """The queueing delay of a ping beside both."""
    deep = evidence.mean(s.DEPTH[s.beside("BBR", 1, 1, 8)], m.queued_ms)
    apart = evidence.mean(s.LAW[s.law("BBR", "fq_codel")], m.queued_ms)
    return (
        Bar("empty queues", 0.0, "idle"),
        Bar("BBR and CUBIC, a FIFO of 8 BDP", deep, "bloated"),
        Bar("the same through fq_codel", apart, "cured"),
    )
