"""Pictures: shares by depth, and queues with a law."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn.papers.bbr_shares import measures as m
from sojourn.papers.bbr_shares.model import share
from sojourn.papers.bbr_shares.studies import (
    BDP,
    CUBICS,
    DEPTH,
    DEPTHS,
    LAW,
    LAWS,
    MANY,
    RTT_S,
    SEVERAL,
    VERSIONS,
    beside,
    law,
)
from sojourn.papers.drawing import legend, row_labels, sheet, ticks
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Bar
from sojourn.papers.study import Study

COLOURS = {1: style.BLUE, 4: style.GREEN, 16: style.ORANGE}


def _panel(
    axes: Axes, evidence: Evidence, study: Study, version: str, flows: Sequence[tuple[int, int]]
) -> None:
    for bbrs, cubics in flows:
        there = [
            (depth, evidence.estimate(variant, m.share_percent))
            for depth in DEPTHS
            if evidence.has(variant := study[beside(version, bbrs, cubics, depth)])
        ]
        if there:
            axes.errorbar(
                [depth for depth, _ in there],
                [one.mean for _, one in there],
                yerr=[one.ci95 for _, one in there],
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
    ticks(axes, DEPTHS)
    axes.set_ylim(0, 100)
    axes.set_xlabel("depth of the FIFO [BDP], logarithmic")


def _curve(axes: Axes, flows: int, colour: str) -> None:
    depths = np.geomspace(1, 32, 60)
    values = [100 * share(float(depth), BDP, RTT_S, flows) for depth in depths]
    name = "the model, BBR" if flows == 1 else f"the model, {flows} BBR"
    axes.plot(depths, values, color=colour, linestyle=style.SHORT, linewidth=1, label=name)


@style.drawn
def depth(evidence: Evidence) -> Figure:
    """One flow of BBR, and as many as of CUBIC."""
    figure, rows = sheet(
        "What BBR gets beside CUBIC", evidence, DEPTH, rows=(1, 1), columns=2, size=(10, 7)
    )
    for axes, version in zip(rows[0], VERSIONS, strict=True):
        _panel(axes, evidence, DEPTH, version, [(1, cubics) for cubics in CUBICS])
    for axes, version in zip(rows[1], VERSIONS, strict=True):
        _panel(axes, evidence, MANY, version, [(flows, flows) for flows in SEVERAL])
    for row in rows:
        row[0].set_ylabel("BBR's share of the goodput [%]")
        for axes in row:
            legend(axes)
    return figure


@style.drawn
def laws(evidence: Evidence) -> Figure:
    """Queues with a law."""
    figure, [[axes]] = sheet(
        "BBR beside CUBIC through queues with a law",
        evidence,
        LAW,
        size=(9, 3.6),
        margins=style.Margins(top=0.85, left=2.2, right=0.35, bottom=0.55),
    )
    names = [law(version, qdisc) for version in VERSIONS for qdisc in LAWS]
    there = [name for name in names if evidence.has(LAW[name])]
    for row, name in enumerate(there):
        axes.barh(row, evidence.mean(LAW[name], m.share_percent), color=style.BLUE, height=0.6)
    row_labels(axes, there)
    axes.set_xlim(0, 100)
    axes.axvline(50, color=style.INK, linewidth=0.8)
    axes.set_xlabel("BBR's share of the goodput [%]")
    return figure


def story(evidence: Evidence) -> Sequence[Bar]:
    """What the queue does to a ping beside both."""
    deep = evidence.mean(DEPTH[beside("BBR", 1, 1, 8)], m.queued_ms)
    apart = evidence.mean(LAW[law("BBR", "fq_codel")], m.queued_ms)
    return (
        Bar("empty queues", 0.0, "idle"),
        Bar("BBR and CUBIC, a FIFO of 8 BDP", deep, "bloated"),
        Bar("the same through fq_codel", apart, "cured"),
    )
