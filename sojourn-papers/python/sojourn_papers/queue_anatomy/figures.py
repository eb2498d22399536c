"""The source's figures 3 to 9 from our Runs, the readings side by side, and what explains them.

Bars are the standard error of the mean in figures where the source has it. The source's pictures
are lost; the few values of its text are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sojourn.figures import style
from sojourn_papers import drawing, formats, published
from sojourn_papers.evidence import Estimate, Evidence, Measure
from sojourn_papers.paper import Bar
from sojourn_papers.queue_anatomy import measures as m
from sojourn_papers.queue_anatomy import studies as s
from sojourn_papers.study import Study, Variant

SAYS = published.beside(__file__)

RATE = s.one_interface_mbps(contended=True)
_SAYS_RATE = f"thirty files at {RATE:.2f} Mbit/s"
_LOOKS: dict[str, drawing.Look] = {
    s.MAIN: (style.BLUE, style.SOLID),
    s.UNLIMITED: (style.PURPLE, style.SHORT),
    s.OTHER: drawing.look("pfifo"),
    s.BELIEVED: (style.GREEN, style.LONG),
}
_MARKERS = {s.MAIN: "o", s.UNLIMITED: "v", s.OTHER: "s", s.BELIEVED: "^"}
_SIGNS = {"o": "●", "v": "▼", "s": "■", "^": "▲"}
_SEM = "standard error"
_SIZES = (style.BLACK, style.BLUE, style.GREEN, style.ORANGE, style.VERMILLION)
"""Colours of rings, from small to large."""


def _with_sem(estimate: Estimate) -> Estimate:
    return replace(estimate, ci95=estimate.sem)


# -------------------------------------------------------------------------------- figures 3 and 4


_PANELS: tuple[tuple[str, Measure], ...] = (
    ("mean RTT [s]", m.rtt_s),
    ("dropped packets", m.drops),
    ("retransmissions", m.retransmissions),
)


def _three(
    axes: Sequence[Axes], evidence: Evidence, lines: Mapping[str, Mapping[int, Variant]], what: str
) -> list[str]:
    """RTT, drops and retransmissions over a queue's size: a line for each look, its variants by
    size. Returns the looks that were drawn."""
    run = {
        drawn: [size for size, one in along.items() if evidence.has(one)]
        for drawn, along in lines.items()
    }
    known = sorted({size for some in run.values() for size in some})
    for panel, (label, measure) in zip(axes, _PANELS, strict=True):
        for drawn, some in run.items():
            ours = evidence.over(lines[drawn], measure)
            at = {known.index(size): _with_sem(ours[size]) for size in some}
            drawing.curve(panel, drawn, at, _LOOKS[drawn], marker=_MARKERS[drawn])
        panel.set_xticks(range(len(known)), [str(size) for size in known])
        panel.set(xlim=(-0.3, len(known) - 0.7), ylim=(0, None), xlabel=f"{what} [packets]")
        drawing.note(panel, label, (0, 1), (-30, 4), of="panel", size=8.5, va="bottom")
        if panel is not axes[0]:
            panel.yaxis.set_major_formatter(lambda value, _: f"{value / 1e3:g}k" if value else "0")
    return [drawn for drawn, some in run.items() if some]


def _key(axes: Axes, words: Mapping[str, str]) -> None:
    """A key of the lines, under the panels."""
    for i, (drawn, meaning) in enumerate(words.items()):
        key = f"{_SIGNS[_MARKERS[drawn]]} {meaning}"
        drawing.note(axes, key, (0, 0), (-30 + 280 * i, -46), of="panel", colour=_LOOKS[drawn][0])


_ROOM = style.Margins(top=0.95, left=0.6, right=0.2, bottom=0.85)


def _abreast(title: str, evidence: Evidence, study: Study, says: str) -> tuple[Figure, list[Axes]]:
    """Three panels with room for their labels between them, and for a key below."""
    figure, [axes] = drawing.sheet(
        title, evidence, study, columns=3, size=(11, 3.9), says=says, spread=_SEM, margins=_ROOM
    )
    grid = axes[0].get_gridspec()
    assert grid is not None
    grid.update(wspace=0.24)
    return figure, axes


@style.drawn
def figure3(evidence: Evidence) -> Figure:
    figure, axes = _abreast("Over the ring's size, qdisc 1000", evidence, s.RING, _SAYS_RATE)
    drawn = _three(axes, evidence, {reading: s.over_rings(reading) for reading in s.QDISC}, "ring")
    drawing.level(
        axes[0], SAYS["rtt/4096"], f"stated: above {SAYS['rtt/4096']:g} s past 4000", right=False
    )
    axes[0].set_ylim(0, 15)
    _key(axes[0], {reading: s.READING[reading] for reading in drawn})
    return figure


@style.drawn
def figure4(evidence: Evidence) -> Figure:
    figure, axes = _abreast("Over the qdisc's size, ring 512", evidence, s.QDISC_SIZE, _SAYS_RATE)
    drawn = _three(
        axes, evidence, {reading: s.over_qdiscs(reading) for reading in s.QDISC}, "qdisc"
    )
    _key(axes[0], {reading: s.READING[reading] for reading in drawn})
    return figure


@style.drawn
def narrow_windows(evidence: Evidence) -> Figure:
    figure, axes = _abreast(
        "Over the qdisc's size with windows of at most 64 kB",
        evidence,
        s.LIMITS,
        f"ring 512, {_SAYS_RATE}",
    )
    lines = {
        s.MAIN: s.qdiscs_within(s.NARROW_WINDOW),
        s.BELIEVED: s.qdiscs_within(s.NARROW_WINDOW, believed=True),
    }
    _three(axes, evidence, lines, "qdisc")
    axes[0].set_ylim(0, 1.6)
    _key(axes[0], {s.MAIN: "F-RTO and undo, as Linux", s.BELIEVED: "TCP believes every timer"})
    return figure


# -------------------------------------------------------------------------------- figures 5 and 6


def _surface(
    evidence: Evidence,
    title: str,
    measure: Measure,
    shown: Callable[[float], str],
    unit: str,
    logarithmic: bool,
) -> Figure:
    """Ring by qdisc with a number in each field, for the two readings side by side."""
    rings = [
        ring
        for ring in s.RINGS
        if any(evidence.has(one) for one in s.over_qdiscs(s.MAIN, ring).values())
    ]
    qdiscs = [
        qdisc
        for qdisc in s.over_qdiscs(s.MAIN)
        if all(evidence.has(s.sized(s.MAIN, ring, qdisc)) for ring in rings)
    ]
    figure, [axes] = drawing.sheet(
        title,
        evidence,
        s.SURFACE,
        columns=2,
        size=(10.5, 4.6),
        says="ring 512: of figure 4",
        margins=style.Margins(top=1.05, left=0.8, right=0.3, bottom=0.6),
    )
    fields = {
        reading: np.array(
            [
                [evidence.mean(s.sized(reading, ring, qdisc), measure) for qdisc in qdiscs]
                for ring in rings
            ]
        )
        for reading in s.BOTH
    }
    drawn = {
        reading: np.log10(values) if logarithmic else values for reading, values in fields.items()
    }
    # A linear scale begins at zero, so that colours differ as much as their numbers.
    low = min(values.min() for values in drawn.values()) if logarithmic else 0.0
    high = max(values.max() for values in drawn.values())
    for panel, reading in zip(axes, s.BOTH, strict=True):
        # Pale enough for dark figures on every field.
        scale: dict[str, Any] = {"vmin": low, "vmax": high + 0.9 * (high - low)}
        scale["cmap"] = "YlOrRd" if logarithmic else "YlGnBu"
        drawing.grid_of_numbers(panel, fields[reading], shown, drawn[reading], **scale)
        panel.set_xticks(range(len(qdiscs)), [str(qdisc) for qdisc in qdiscs])
        panel.set_yticks(range(len(rings)), [str(ring) for ring in rings])
        panel.set_xlabel("qdisc [packets]")
        drawing.note(
            panel,
            f"{s.READING[reading]}, {unit}",
            (0, 1),
            (0, 5),
            of="panel",
            size=8.5,
            colour=_LOOKS[reading][0],
        )
    axes[0].set_ylabel("ring [packets]")
    return figure


@style.drawn
def figure5(evidence: Evidence) -> Figure:
    return _surface(
        evidence,
        "Mean RTT over ring and qdisc",
        m.rtt_s,
        lambda value: f"{value:.2f}" if value < 1.995 else f"{value:.1f}",
        "s",
        True,
    )


@style.drawn
def figure6(evidence: Evidence) -> Figure:
    return _surface(
        evidence,
        "Throughput of all copies over ring and qdisc",
        m.throughput_mbps,
        lambda value: f"{value:.2f}",
        "Mbit/s",
        False,
    )


# --------------------------------------------------------------------------------------- figure 7


@style.drawn
def figure7(evidence: Evidence) -> Figure:
    figure, [axes] = drawing.sheet(
        "The window that receivers advertise",
        evidence,
        s.WINDOW,
        columns=2,
        size=(10, 3.9),
        says="the thirty files of the first seed",
        spread="",
    )
    for panel, ring in zip(axes, (512, 4096), strict=True):
        table = (
            evidence.seeds(s.WINDOW[f"ring {ring}"])[0]
            .table("flow")
            .filter(pl.col("window_bytes").is_not_null())
        )
        for (_, *_), part in table.partition_by("flow", as_dict=True).items():
            panel.plot(
                part["delivered_bytes"] / 2**20,
                part["window_bytes"] / 2**20,
                color=style.BLUE,
                linewidth=0.7,
                alpha=0.5,
            )
        drawing.stated_level(panel, SAYS["window"])
        panel.set(ylim=(0, 4.6), xlabel="sequence number [MB of 2^20 bytes]")
        style.corner(panel, f"ring {ring}; dotted: stated, {SAYS['window']:g} MB")
    axes[0].set_ylabel("advertised window [MB]")
    return figure


# -------------------------------------------------------------------------------- figures 8 and 9


def _pooled(evidence: Evidence, variant: Variant) -> NDArray[np.float64]:
    return np.sort(np.concatenate([m.rtts_s(seed) for seed in evidence.seeds(variant)]))


def _cdf(evidence: Evidence, bql: bool, stated: float) -> Figure:
    """Both readings in one panel: colours are rings, the FIFO is dotted."""
    title = f"RTT {'with' if bql else 'without'} BQL, 5000 packets in ring and qdisc"
    says = "pings of all seeds together; lines: pings pass the files; dots: one FIFO"
    around = style.Margins(top=0.95, left=0.85, right=2.3, bottom=0.55)
    figure, [[axes]] = drawing.sheet(
        title, evidence, s.BQL, size=(10, 4.2), says=says, spread="", margins=around
    )
    for reading, dash in ((s.MAIN, style.SOLID), (s.OTHER, style.DOTTED)):
        for i, ring in enumerate(s.BQL_RINGS):
            variant = s.over_bql(reading, bql)[ring]
            if not evidence.has(variant):
                continue
            values = _pooled(evidence, variant)
            # Enough points for a smooth step line, few enough for a small file.
            at = np.linspace(0, values.size - 1, 300).astype(int)
            axes.plot(
                values[at],
                (at + 1) / values.size,
                color=_SIZES[i],
                linestyle=dash,
                linewidth=1.3 if reading == s.MAIN else 1.6,
                label=f"{ring} + {s.TOTAL - ring}" if reading == s.MAIN else None,
                drawstyle="steps-post",
            )
    drawing.stated_mark(axes, stated, 0.95, "stated, 2048 + 2952")
    axes.set(
        xscale="log",
        xlim=(3e-3, 30),
        ylim=(0, 1.02),
        xlabel="RTT [s], logarithmic",
        ylabel="share of pings",
    )
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.01, 1.0), title="ring + qdisc", title_fontsize=8
    )
    return figure


@style.drawn
def figure8(evidence: Evidence) -> Figure:
    return _cdf(evidence, False, SAYS["p95/2048"])


@style.drawn
def figure9(evidence: Evidence) -> Figure:
    return _cdf(evidence, True, SAYS["p95/2048 BQL"] / 1e3)


# ------------------------------------------------------------------------------------------- ours


@style.drawn
def timers(evidence: Evidence) -> Figure:
    rings = (80, 512, 4096)
    figure, [[counts, rates]] = drawing.sheet(
        "Retransmissions and throughput, if TCP believes its timers or not",
        evidence,
        s.OTHERS,
        columns=2,
        size=(10, 3.9),
        says=f"pfifo_fast of 1000, windows of {s.SEGMENTS} segments, {_SAYS_RATE}",
    )
    cases: tuple[tuple[str, str, str, Callable[[int], Variant]], ...] = (
        ("F-RTO and undo", style.BLUE, style.SKY, s.over_rings(s.MAIN).__getitem__),
        ("believed", style.GREEN, style.ORANGE, lambda ring: s.other_tcp(s.BELIEVED, ring)),
    )
    for shift, (case, dark, pale, variant) in zip((-0.2, 0.2), cases, strict=True):
        for i, ring in enumerate(rings):
            again, share, rate = (
                evidence.estimate(variant(ring), measure)
                for measure in (m.retransmissions, m.needless, m.throughput_mbps)
            )
            for_nothing = again.mean * share.mean
            counts.bar(
                i + shift,
                again.mean - for_nothing,
                width=0.36,
                color=dark,
                label=f"{case}: of lost packets" if i == 0 else None,
            )
            counts.bar(
                i + shift,
                for_nothing,
                bottom=again.mean - for_nothing,
                width=0.36,
                color=pale,
                label=f"{case}: of packets still queued" if i == 0 else None,
            )
            rates.bar(
                i + shift,
                rate.mean,
                width=0.36,
                color=dark,
                yerr=drawing.half(rate),
                error_kw={"elinewidth": 0.8},
                label=case if i == 0 else None,
            )
            drawing.note(
                counts,
                f"{100 * share.mean:.0f} %",
                (i + shift, again.mean),
                (0, 3),
                size=7.5,
                ha="center",
            )
            top = (i + shift, rate.mean + drawing.half(rate))
            drawing.note(rates, f"{rate.mean:.2f}", top, (0, 3), size=7.5, ha="center")
    for panel in (counts, rates):
        panel.set_xticks(range(len(rings)), [f"ring {ring}" for ring in rings])
        panel.grid(axis="x", visible=False)
    counts.yaxis.set_major_formatter(lambda value, _: f"{value / 1e3:g}k" if value else "0")
    counts.set(
        ylim=(None, 1.15 * counts.get_ylim()[1]), ylabel="retransmissions (written: % needless)"
    )
    counts.legend(loc="upper left")
    rates.set(ylim=(0, 6.5), ylabel="throughput [Mbit/s]")
    rates.legend(loc="upper left", ncols=2)
    return figure


@style.drawn
def cures(evidence: Evidence) -> Figure:
    figure, [[axes]] = drawing.sheet(
        "Disciplines above a ring of 4096, without and with BQL",
        evidence,
        s.CURE,
        size=(9, 4),
        says="mean RTT of the pings",
    )
    words = {
        "fifo": "FIFO, 904",
        "bands": "pfifo_fast, 904",
        "codel": "CoDel",
        "fq_codel": "fq_codel",
    }
    series = [
        drawing.Series(
            f"{'with' if bql else 'without'} BQL",
            style.BLUE if bql else style.VERMILLION,
            [evidence.estimate(s.cure(discipline, bql), m.rtt_s) for discipline in s.CURES],
        )
        for bql in (False, True)
    ]
    drawing.grouped(axes, [words[discipline] for discipline in s.CURES], series, formats.time)
    axes.set(yscale="log", ylim=(0.02, 50), ylabel="mean RTT [s], logarithmic")
    axes.legend(loc="upper right", ncols=2)
    return figure


@style.drawn
def coexistence(evidence: Evidence) -> Figure:
    figure, [shares, delays] = drawing.sheet(
        "Five flows of LEDBAT, Vegas or CUBIC beside five of CUBIC",
        evidence,
        s.COEXISTENCE,
        rows=(1.5, 1),
        size=(9, 5.4),
        says="10 Mbit/s, 50 ms",
    )
    colours = {"LEDBAT": style.BLUE, "Vegas": style.GREEN, "CUBIC": style.MUTED}
    for panel, measure, shown in (
        (shares[0], m.low_share, lambda share: f"{share:.{0 if share >= 9.5 else 1}f}"),
        (delays[0], m.ping_ms, lambda ms: f"{ms:.0f}"),
    ):
        series = [
            drawing.Series(
                low,
                colours[low],
                [
                    evidence.estimate(s.COEXISTENCE[f"{low}, {qdisc}"], measure)
                    for qdisc in s.COEXISTENCE_QDISCS
                ],
            )
            for low in s.LOW
        ]
        drawing.grouped(panel, list(s.COEXISTENCE_QDISCS), series, shown)
    drawing.stated_level(shares[0], 50)
    shares[0].set(ylabel="share of goodput [%]", ylim=(0, 72))
    shares[0].legend(loc="upper left", ncols=3)
    style.corner(shares[0], "dotted: as much as CUBIC")
    delays[0].set(yscale="log", ylim=(10, 3000), ylabel="ping RTT [ms], log.")
    return figure


@style.drawn
def rates(evidence: Evidence) -> Figure:
    figure, [axes] = drawing.sheet(
        "Mean RTT over the rate, which is not stated", evidence, s.RATES, columns=2, size=(10, 4)
    )
    speeds = {"4 Mbit/s": 4.0, "10 Mbit/s": 10.0, "100 Mbit/s": 100.0, "1 Gbit/s": 1000.0}
    for panel, reading in zip(axes, s.BOTH, strict=True):
        for ring, colour, dash in (
            (4096, style.VERMILLION, style.SOLID),
            (s.DEFAULT_RING, style.BLUE, style.LONG),
        ):
            along = {speeds[rate]: s.at_rate(rate, reading, ring) for rate in s.SPEEDS}
            along[RATE] = s.over_rings(reading)[ring]
            drawing.curve(
                panel,
                f"ring {ring}",
                evidence.over(dict(sorted(along.items())), m.rtt_s),
                (colour, dash),
            )
            packets = ring + s.DEFAULT_QDISC if reading == s.OTHER else min(ring, 30 * s.SEGMENTS)
            x = np.array([4.0, 1000.0])
            panel.plot(
                x,
                packets * s.SEGMENT_BYTES * 8 / (x * 1e6),
                color=colour,
                linestyle=":",
                linewidth=0.8,
                label=f"{packets} packets" + (" of files" if reading == s.OTHER else ""),
            )
        panel.set(xscale="log", yscale="log", xlim=(3.4, 1300), ylim=(3e-3, 25))
        drawing.ticks(panel, (4, 10, 100, 1000))
        panel.set_xlabel("rate [Mbit/s], logarithmic")
        panel.axhline(SAYS["rtt/4096"], color=style.INK, linestyle=(0, (1, 3)), linewidth=0.9)
        style.corner(panel, s.READING[reading], _LOOKS[reading][0])
        drawing.legend(panel)
    axes[0].set_ylabel("mean RTT [s], logarithmic")
    return figure


def story(evidence: Evidence) -> Sequence[Bar]:
    """The delays of two rings, and of the cures of the larger one."""
    default = evidence.mean(s.over_rings(s.MAIN)[s.DEFAULT_RING], m.throughput_mbps)

    def cured(label: str, discipline: str) -> Bar:
        rtt, rate = (
            evidence.mean(s.cure(discipline, True), one) for one in (m.rtt_ms, m.throughput_mbps)
        )
        return Bar(label, rtt, "cured", f"{rate:.2f} Mbit/s for {default:.2f}")

    large, usual = (
        evidence.mean(s.over_rings(s.MAIN)[ring], m.rtt_ms) for ring in (4096, s.DEFAULT_RING)
    )
    return (
        Bar("ring 4096, qdisc 1000", large, "bloated", published_ms=1e3 * SAYS["rtt/4096"]),
        Bar("defaults: ring 512, qdisc 1000", usual, "bloated"),
        cured("ring 4096 with BQL, CoDel", "codel"),
        cured("ring 4096 with BQL, pfifo_fast", "bands"),
    )
