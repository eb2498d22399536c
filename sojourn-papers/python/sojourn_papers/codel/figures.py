"""The article's figures 5 to 9 and its table from our Runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn.figures import style
from sojourn_papers import published
from sojourn_papers.codel import claims
from sojourn_papers.codel import measures as m
from sojourn_papers.codel import studies as s
from sojourn_papers.drawing import curve, level, look, note, sheet, stated_level, ticks
from sojourn_papers.evidence import Evidence, Measure
from sojourn_papers.paper import Bar

SAYS = published.beside(__file__)
LOOKS = {s.CODEL: look("codel"), s.RED: look("red"), s.TAIL: look("pfifo")}
LEAST = 0.1
"""The value at which a median delay of 0 is drawn on a logarithmic axis, ms."""
MARKERS = {s.CODEL: "o", s.RED: "s", s.TAIL: "^"}


# ------------------------------------------------------------------------------------ static links


@style.drawn
def rates(evidence: Evidence) -> Figure:
    """Figure 5."""
    figure, [[delay, use]] = sheet(
        "CoDel and RED over links of 3 to 100 Mbit/s",
        evidence,
        s.STATIC,
        columns=2,
        size=(10, 4.4),
        spread="",
    )
    for axes, measure in ((delay, m.median_ms), (use, m.busy)):
        for at, name in enumerate((s.CODEL, s.RED)):
            groups = [claims.group(evidence, measure, name, mbps=one) for one in s.MBPS]
            _marks(axes, name, s.MBPS, groups, 0.96 + 0.08 * at)
        axes.set_xscale("log")
        ticks(axes, s.MBPS)
        axes.set_xlabel("rate of the link [Mbit/s], logarithmic")
    _delay_axis(delay)
    use.set_title("utilisation [%]")
    use.legend(loc="lower left")
    return figure


@style.drawn
def rtts(evidence: Evidence) -> Figure:
    """Figure 8."""
    figure, [[delay, use]] = sheet(
        "CoDel, RED and Tail Drop over RTTs of 10 to 500 ms",
        evidence,
        s.STATIC,
        columns=2,
        size=(10, 4.4),
        spread="",
    )
    for axes, measure in ((delay, m.median_ms), (use, m.busy)):
        _over_rtt(axes, evidence, measure, s.QUEUES)
    _delay_axis(delay)
    use.set_title("utilisation [%]")
    use.legend(loc="lower left")
    return figure


@style.drawn
def drop_shares(evidence: Evidence) -> Figure:
    """Figure 9."""
    figure, [[axes]] = sheet(
        "Jain's index over the sources' shares of drops",
        evidence,
        s.STATIC,
        size=(10, 4),
        spread="",
    )
    _over_rtt(axes, evidence, m.down_fairness, (s.CODEL, s.RED))
    axes.set_ylim(0, 1.03)
    axes.legend(loc="lower left")
    return figure


def _over_rtt(axes: Axes, evidence: Evidence, measure: Measure, names: Sequence[str]) -> None:
    for at, name in enumerate(names):
        groups = [claims.group(evidence, measure, name, rtt_ms=one) for one in s.RTT_MS]
        _marks(axes, name, s.RTT_MS, groups, 0.95 + 0.06 * at)
    axes.set_xscale("log")
    ticks(axes, s.RTT_MS)
    axes.set_xlabel("RTT [ms], logarithmic")


def _marks(
    axes: Axes, name: str, along: Sequence[float], groups: Sequence[Sequence[float]], beside: float
) -> None:
    """A mark for each Run, shifted on the logarithmic axis by the factor `beside`, and a line through
    the medians."""
    colour, dash = LOOKS[name]
    known = [[max(value, LEAST) for value in group if not np.isnan(value)] for group in groups]
    for at, group in zip(along, known, strict=True):
        axes.plot(
            [at * beside] * len(group),
            group,
            linestyle="none",
            marker=MARKERS[name],
            markersize=3,
            color=colour,
            alpha=0.5,
        )
    places = [(at * beside, median(group)) for at, group in zip(along, known, strict=True) if group]
    axes.plot(*zip(*places, strict=True), color=colour, linestyle=dash, label=f"{name}, median")


def _delay_axis(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    axes.set_title("median delay [ms], logarithmic")
    level(axes, SAYS["target_ms"], f"target: {SAYS['target_ms']:g} ms")


# -------------------------------------------------------------------------------------- slow links


@style.drawn
def slow_links(evidence: Evidence) -> Figure:
    """Figure 6."""
    figure, [[delay, use]] = sheet(
        "CoDel and RED on links of 128 kbit/s to 1.5 Mbit/s",
        evidence,
        s.SLOW,
        columns=2,
        size=(10, 4.4),
        spread="",
    )
    looks = {(s.CODEL, 1500): style.SOLID, (s.CODEL, 500): style.SHORT}
    for axes, measure in ((delay, m.median_ms), (use, m.busy)):
        for name in (s.CODEL, s.RED):
            for packet in s.MTU:
                values = [
                    median(
                        evidence.mean(s.SLOW[s.slow(name, kbps, rtt, packet)], measure)
                        for rtt in s.SLOW_RTT_MS
                    )
                    for kbps in s.SLOW_KBPS
                ]
                axes.plot(
                    s.SLOW_KBPS,
                    values,
                    color=LOOKS[name][0],
                    linestyle=looks.get((s.CODEL, packet), style.SOLID),
                    marker=MARKERS[name],
                    markersize=4,
                    label=f"{name}, MTU {packet}",
                )
        axes.set_xscale("log")
        ticks(axes, s.SLOW_KBPS)
        axes.set_xlabel("rate of the link [kbit/s], logarithmic")
    _delay_axis(delay)
    low, high = SAYS["red_slow_ms"]
    delay.axhspan(low, high, color=LOOKS[s.RED][0], alpha=0.12, linewidth=0)
    note(
        delay,
        f"published, RED: {low:g} to {high:g} ms",
        (1, high),
        (-4, -4),
        of="row",
        size=7.5,
        ha="right",
        va="top",
    )
    use.set(title="utilisation [%]", ylim=(90, 100.5))
    use.legend(loc="lower right")
    return figure


@style.drawn
def web(evidence: Evidence) -> Figure:
    """The runs of figure 6 with web connections only."""
    figure, [[use, lost]] = sheet(
        "Web connections alone at 512 kbit/s, under CoDel",
        evidence,
        s.WEB,
        columns=2,
        size=(10, 3.8),
    )
    for axes, measure, label, stated in (
        (use, m.busy, "utilisation [%]", SAYS["web_busy"]),
        (lost, m.down_loss, "packets dropped [%]", SAYS["web_drops"]),
    ):
        curve(axes, s.CODEL, evidence.over(s.BY_READERS, measure), LOOKS[s.CODEL])
        level(axes, stated, f"published: {stated:g} %")
        axes.set_xscale("log")
        ticks(axes, list(s.BY_READERS))
        axes.set(xlabel="readers, logarithmic", title=label, ylim=(0, None))
    return figure


# -------------------------------------------------------------------------------- the link that steps


@style.drawn
def steps(evidence: Evidence, packets: int) -> Figure:
    """Figure 7, left and right."""
    figure, [[delay], [carried]] = sheet(
        f"The link that steps, {packets} packets of buffer",
        evidence,
        s.DEGRADED,
        rows=(1.4, 1),
        size=(10, 6.4),
        says="seed 1 shown",
        spread="",
    )
    for name in (s.TAIL, s.RED, s.CODEL):
        line = evidence.seeds(s.STEPPED[name, packets])[0].timeline()
        t = line["t_ns"].to_numpy() / 1e9
        longest = line["sojourn_max_ns"].cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e6
        colour = LOOKS[name][0]
        delay.plot(t, np.maximum(longest, LEAST), color=colour, linewidth=0.7, label=name)
        carried.plot(t, np.cumsum(line["sent_bytes"].to_numpy()) / 1e6, color=colour, label=name)
    delay.set_yscale("log")
    delay.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
    delay.set_ylabel("delay [ms], logarithmic")
    stated_level(delay, SAYS["target_ms"], f"CoDel's target, {SAYS['target_ms']:g} ms")
    carried.set(ylabel="carried [MB]", xlabel="time [s]")
    delay.tick_params(labelbottom=False)
    for axes in (delay, carried):
        axes.set_xlim(0, 300)
        for at in s.STEPS_S:
            axes.axvline(at, color=style.MUTED, linewidth=0.5)
    for at, mbps in zip((0, *s.STEPS_S), (100, 10, 1, 50, 1, 100), strict=True):
        note(
            delay, f"{mbps}", (at + 25, 1), (0, 2), of="column", size=7.5, ha="center", va="bottom"
        )
    delay.set_ylim(bottom=LEAST / 5)
    delay.legend(loc="lower left", ncols=4)
    return figure


# -------------------------------------------------------------------------------------- the home line


@style.drawn
def edge(evidence: Evidence) -> Figure:
    """The table."""
    figure, [panels] = sheet(
        "A home line of 512 kbit/s and of 1.5 Mbit/s",
        evidence,
        s.EDGE,
        columns=3,
        size=(10, 3.8),
        margins=style.Margins(top=0.95, left=1.6, right=0.3, bottom=0.55),
    )
    rows = [
        (kbps, way, name)
        for kbps in s.EDGE_KBPS
        for way in ("down", "up")
        for name in (s.CODEL, s.TAIL)
    ]
    kinds: tuple[tuple[str, Callable[[str], Measure], str], ...] = (
        ("packets dropped [%]", m.loss, "drops"),
        ("median delay [ms]", lambda way: m.delay_ms(0.5, way), "median"),
        ("total [MB]", m.megabytes, "volume"),
    )
    for axes, (label, measure, key) in zip(panels, kinds, strict=True):
        for at, (kbps, way, name) in enumerate(rows):
            ours = evidence.estimate(s.LINES[name, kbps], measure(way))
            axes.barh(
                at,
                ours.mean,
                xerr=0 if np.isnan(ours.ci95) else ours.ci95,
                height=0.7,
                color=LOOKS[name][0],
                linewidth=0,
                error_kw={"elinewidth": 0.8, "capsize": 2},
            )
            stated = SAYS[f"table/{kbps}/{way}/{name}/{key}"]
            axes.plot(
                [stated],
                [at],
                marker="D",
                markersize=5,
                markerfacecolor="white",
                color=style.INK,
                linestyle="none",
                clip_on=False,
            )
        axes.set_yticks(range(len(rows)), [f"{kbps} {way}, {name}" for kbps, way, name in rows])
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set(xlabel=label, xlim=(0, None))
    for axes in panels[1:]:
        axes.tick_params(labelleft=False)
    return figure


def story(evidence: Evidence) -> list[Bar]:
    """The delays of the stepping link under Tail Drop, RED and CoDel."""
    full = evidence.mean(s.STEPPED[s.TAIL, s.LARGE], m.down_volume)
    bars = [
        Bar(
            "Tail Drop, 830 packets",
            evidence.mean(s.STEPPED[s.TAIL, s.LARGE], m.median_ms),
            "bloated",
        )
    ]
    for name, stated in ((s.RED, None), (s.CODEL, SAYS["steps/median"])):
        delay, volume = (
            evidence.mean(s.STEPPED[name, s.LARGE], one) for one in (m.median_ms, m.down_volume)
        )
        cost = f"{volume:.0f} MB for {full:.0f}"
        bars.append(Bar(name, delay, "cured", cost, stated))
    return bars
