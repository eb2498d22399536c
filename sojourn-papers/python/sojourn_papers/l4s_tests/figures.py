"""Pictures of the findings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn_papers import published
from sojourn_papers.drawing import grid_of_numbers, row_labels, sheet, stated_mark, ticks
from sojourn_papers.evidence import Evidence, Measure
from sojourn_papers.l4s_tests import measures as m
from sojourn_papers.l4s_tests import studies as s
from sojourn_papers.paper import Bar

SAYS = published.beside(__file__)
TARGET_MS = 15
VIRTUAL_MS = 25
MARKERS = {50: "o", 10: "s"}
"""By the rate of the link, Mbit/s."""
COLOURS = {"Prague": style.BLUE, s.VRTT: style.GREEN, "DCTCP": style.ORANGE}
SAID = {"Prague": "Prague of 2020", s.VRTT: f"Prague, {s.VRTT}", "DCTCP": "DCTCP"}


@style.drawn
def shared(evidence: Evidence) -> Figure:
    """Finding 1."""
    figure, [[axes]] = sheet(
        "One queue that marks: Prague beside another TCP",
        evidence,
        s.SHARED,
        size=(9, 5.8),
        margins=style.Margins(top=0.85, left=2.3, right=0.35, bottom=0.55),
    )
    names: list[str] = []
    for other in s.OTHERS:
        for queue in s.QUEUES:
            variant = s.SHARED[s.in_one(other, queue)]
            row = len(names)
            names.append(f"{other} · {queue}")
            stated_mark(axes, SAYS[f"shared/{other}/{queue}"], row, "published" if not row else "")
            if evidence.has(variant):
                ours = evidence.estimate(variant, m.ratio)
                axes.errorbar(
                    ours.mean, row, xerr=ours.ci95, fmt="o", color=style.BLUE, markersize=4
                )
    row_labels(axes, names)
    axes.set(xscale="log", xlim=(5, 100))
    ticks(axes, (5, 10, 20, 50, 100))
    axes.set_xlabel("goodput of Prague over the other's, logarithmic")
    axes.legend(loc="lower left")
    return figure


@style.drawn
def equal(evidence: Evidence) -> Figure:
    """Finding 3."""
    figure, [[axes]] = sheet("DualPI2 at equal RTTs", evidence, s.EQUAL, size=(9, 4.6))
    rtts = np.geomspace(8, 100, 60)
    theory = {
        "Prague": 0.85 * (rtts + TARGET_MS) / (1.22 * rtts),
        s.VRTT: (rtts + TARGET_MS) / (1.4 * np.maximum(rtts, VIRTUAL_MS)),
    }
    for name, ratios in theory.items():
        axes.plot(rtts, ratios, color=COLOURS[name], linewidth=1)
    shown = {
        **s.SCALED,
        **{
            (s.VRTT, mbps, rtt): s.SINCE[s.today(s.VRTT, one.name)]
            for (name, mbps, rtt), one in s.SCALED.items()
            if name == "Prague"
        },
    }
    for (name, mbps, rtt), variant in shown.items():
        marker = MARKERS[mbps]
        if evidence.has(variant):
            axes.plot(
                rtt, evidence.mean(variant, m.ratio), marker, color=COLOURS[name], markersize=6
            )
        if name == "Prague":
            stated = SAYS[f"equal/{mbps}/{rtt}/prague"] / SAYS[f"equal/{mbps}/{rtt}/cubic"]
            stated_mark(axes, rtt, stated, "", marker=marker)
    for name, colour in COLOURS.items():
        axes.plot([], [], color=colour, linewidth=3, label=SAID[name])
    for mbps, marker in MARKERS.items():
        words = f"{mbps} Mbit/s (hollow: published)"
        axes.plot([], [], marker, color=style.MUTED, markersize=6, label=words)
    axes.set_xscale("log")
    ticks(axes, (10, 20, 50, 80))
    axes.set(
        ylim=(0, 8),
        xlabel="RTT of both flows [ms], logarithmic",
        ylabel="goodput in the short queue over CUBIC's",
    )
    axes.legend(loc="upper left")
    return figure


@style.drawn
def bursty(evidence: Evidence) -> Figure:
    """Finding 8, and the two flows of issue 1."""
    figure, [[axes]] = sheet(
        "DualPI2 behind a bursty link",
        evidence,
        s.BURSTY,
        size=(9, 4.4),
        margins=style.Margins(top=0.85, left=2.6, right=0.35, bottom=0.55),
    )
    there = evidence.variants(s.BURSTY)
    for row, variant in enumerate(there):
        both = ((m.prague_mbps, "Prague"), (m.other_mbps, "CUBIC"))
        shown = both[:1] if "alone" in variant.name else both
        left = 0.0
        for measure, name in shown:
            mbps = evidence.mean(variant, measure)
            colour = COLOURS["Prague"] if name == "Prague" else COLOURS["DCTCP"]
            axes.barh(row, mbps, left=left, color=colour, height=0.6)
            left += mbps
    row_labels(axes, [variant.name for variant in there])
    axes.set(xlim=(0, m.LINK_MBPS), xlabel="goodput [Mbit/s]: Prague, then CUBIC")
    return figure


@style.drawn
def grid(evidence: Evidence) -> Figure:
    """RFC 9332's claims, by rate and RTT."""
    figure, [axes] = sheet(
        "Prague and CUBIC over DualPI2, by the link's rate and the RTT",
        evidence,
        s.GRID,
        columns=3,
        size=(11, 3.4),
        spread="",
    )
    panels: tuple[tuple[str, Measure, float], ...] = (
        ("Prague's goodput over CUBIC's", m.ratio, 1.0),
        ("short queue, mean [ms]", m.queued("mean"), 1.0),
        ("short queue, 99th percentile [ms]", m.queued("p99"), 2.0),
    )
    for panel, (name, measure, middle) in zip(axes, panels, strict=True):
        there = {
            (mbps, ms): evidence.mean(variant, measure)
            for mbps in s.GRID_MBPS
            for ms in s.GRID_MS
            if evidence.has(variant := s.GRID[s.cell(mbps, ms)])
        }
        fields = np.array(
            [[there.get((mbps, ms), np.nan) for ms in s.GRID_MS] for mbps in s.GRID_MBPS]
        )
        grid_of_numbers(
            panel,
            fields,
            _cell_text,
            # Beyond a factor of four the colour is the same, so that numbers stay legible.
            np.clip(np.log(fields / middle), -np.log(4), np.log(4)),
            cmap="PuOr_r",
            vmin=-np.log(12),
            vmax=np.log(12),
        )
        panel.set_xticks(range(len(s.GRID_MS)), [str(ms) for ms in s.GRID_MS])
        panel.set_yticks(range(len(s.GRID_MBPS)), [str(mbps) for mbps in s.GRID_MBPS])
        panel.set_xlabel("RTT [ms]")
        panel.set_title(name, size=style.points(9))
    axes[0].set_ylabel("Mbit/s")
    return figure


def _cell_text(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def story(evidence: Evidence) -> Sequence[Bar]:
    """The RTT of each flow under DualPI2, which separates them."""
    variant = s.SCALED["Prague", 50, 20]
    cubic, prague = (evidence.mean(variant, m.rtt_ms(flow)) for flow in ("other", "prague"))
    share = evidence.mean(variant, m.ratio)
    return (
        Bar("empty queues", 20.0, "idle"),
        Bar("CUBIC, the queue for classic TCP", cubic, "bloated"),
        Bar("Prague, the short queue", prague, "cured", f"{share:.1f} times CUBIC's goodput"),
    )
