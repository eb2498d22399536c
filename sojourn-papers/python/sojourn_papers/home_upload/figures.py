"""The source's two graphs in their own form, and what explains them: the place of the queue, and
the search for the readings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn import figures
from sojourn.figures import style
from sojourn_papers import drawing, published
from sojourn_papers.drawing import look
from sojourn_papers.evidence import Evidence
from sojourn_papers.home_upload import measures as m
from sojourn_papers.home_upload import studies as s
from sojourn_papers.paper import Bar
from sojourn_papers.study import Variant

SAYS = published.beside(__file__)
BLOATED_MS, CURED_MS = SAYS["without/median"], SAYS["with/median"]

_MODEM = look("pfifo")
_WIFI = look("fq_codel")
_TOP_MS = 200
"""The same scale in both graphs."""


# ---------------------------------------------------------------------------- the source's graphs


def _graph(evidence: Evidence, variant: Variant, median: float) -> Figure:
    seed = evidence.seeds(variant)[0]
    figure = figures.density(seed.run, "ping", seed.number)
    axes = figure.axes[0]
    axes.set_ylim(0, _TOP_MS)
    window = m.upload_ns(seed)
    assert window is not None, "the upload ends within the run"
    start, end = (t / 1e9 for t in window)
    axes.hlines(median, start, end, color=style.VERMILLION, linestyle=":", linewidth=1.2, zorder=3)
    drawing.note(
        axes,
        f"published median: {median:g} ms",
        (end, median),
        (5, 0),
        size=7.5,
        colour=style.VERMILLION,
        va="center",
    )
    length = f"upload, {m.upload_s(seed):.1f} s"
    drawing.note(
        axes, length, (start, 0.95), (4, 0), of="column", size=7.5, colour=style.MUTED, va="center"
    )
    for moment in (start, end):
        axes.axvline(moment, color=style.MUTED, linewidth=0.6)
    return figure


@style.drawn
def unshaped(evidence: Evidence) -> Figure:
    return _graph(evidence, s.BEFORE, BLOATED_MS)


@style.drawn
def shaped(evidence: Evidence) -> Figure:
    return _graph(evidence, s.AFTER, CURED_MS)


# ----------------------------------------------------------------------------- where the queue is


@style.drawn
def queues(evidence: Evidence) -> Figure:
    figure = style.blank(10, 3.6)
    runs = evidence.run(s.BEFORE).meta
    top = style.heading(
        figure,
        "Backlog of the two queues in series",
        f"engine {runs.engine} · seed {runs.seeds[0]} · looked at every 250 ms",
    )
    [[left, right]] = style.panels(
        figure, style.Margins(top=top + 0.2, left=0.85, bottom=0.55), columns=2
    )
    for axes, variant in ((left, s.BEFORE), (right, s.AFTER)):
        table = evidence.seeds(variant)[0].table("queue")
        for link, name, (colour, dash) in (
            ("modem", "modem", _MODEM),
            ("wlan0", "laptop, wlan0", _WIFI),
        ):
            rows = table.filter(pl.col("link") == link)
            axes.plot(
                rows["t_ns"] / 1e9,
                rows["backlog_packets"],
                color=colour,
                linestyle=dash,
                linewidth=0.9,
                label=name,
            )
        style.corner(axes, variant.name)
        axes.set(
            xlabel="time [s]",
            xlim=(0, runs.duration_ns / 1e9),
            ylim=(0, 18),
            yticks=range(0, 17, 4),
        )
    left.set_ylabel("backlog [packets]")
    left.legend(loc="upper left", ncols=2)
    return figure


@style.drawn
def rates(evidence: Evidence) -> Figure:
    figure, [[delay, time]] = drawing.sheet(
        "What the rate of the shaper does",
        evidence,
        s.RATES,
        columns=2,
        says=f"line of {s.LINE // 1000} kbit/s",
        size=(10, 4),
    )
    ink = (style.INK, style.SOLID)
    for axes, name, measure, with_look, marker in (
        (delay, "median ping RTT", m.median_ms, ink, "o"),
        (delay, "mean sojourn in the modem", m.standing_ms("modem"), _MODEM, "s"),
        (delay, "mean sojourn at wlan0", m.standing_ms("wlan0"), _WIFI, "^"),
        (time, "upload time", m.upload_s, ink, "o"),
    ):
        drawing.curve(axes, name, evidence.over(s.BY_RATE, measure), with_look, marker=marker)
    at = 100 * s.SHAPER / s.LINE
    for axes, cured, bloated, unit in (
        (delay, CURED_MS, BLOATED_MS, "ms"),
        (time, SAYS["with/upload"], SAYS["without/upload"], "s"),
    ):
        drawing.stated_mark(axes, at, cured, f"published: {cured:g} {unit} at 125kbps")
        drawing.stated_level(axes, bloated, f"published: {bloated:g} {unit} without a shaper")
        axes.axvline(100, color=style.MUTED, linewidth=0.6)
        axes.set_xlabel("rate of the shaper [% of the line's]")
    delay.set(ylim=(-5, 215), ylabel="delay [ms]")
    time.set(ylabel="upload time [s]", ylim=(40, 66))
    delay.legend(loc="upper left")
    time.legend(loc="upper right")
    return figure


# ----------------------------------------------------------------------------------- the searches


@style.drawn
def buffer(evidence: Evidence) -> Figure:
    figure, [[delay, lost]] = drawing.sheet(
        "The search for the modem's buffer",
        evidence,
        s.BUFFER,
        columns=2,
        says="no shaper",
        size=(10, 4),
    )
    kinds = (
        ("counted in packets", s.IN_PACKETS, 1.518, _MODEM, "o"),
        ("counted in bytes", s.IN_KILOBYTES, 1.0, look("bfifo"), "s"),
    )
    for axes, measure in ((delay, m.median_ms), (lost, m.loss_percent)):
        for name, variants, each, drawn, marker in kinds:
            along = {each * limit: variant for limit, variant in variants.items()}
            drawing.curve(axes, name, evidence.over(along, measure), drawn, marker=marker)
        axes.set_xscale("log")
        drawing.ticks(axes, (12, 20, 50, 100, 200, 400))
        axes.set_xlabel("buffer [kB], logarithmic")
        axes.axvline(1.518 * s.MODEM_PACKETS, color=style.MUTED, linewidth=0.6)
    delay.set_yscale("log")
    drawing.ticks(delay, (100, 200, 500, 1000, 2000), "y")
    delay.set_ylabel("median ping RTT [ms], logarithmic")
    lost.set(ylabel="pings lost [%]", ylim=(-0.2, 5))
    drawing.level(delay, BLOATED_MS, f"published: {BLOATED_MS:g} ms")
    drawing.level(lost, SAYS["without/loss"], f"published: {SAYS['without/loss']:g} %")
    style.corner(delay, f"grey: the {s.MODEM_PACKETS} packets chosen")
    delay.legend(loc="upper left")
    drawing.legend(lost)
    return figure


@style.drawn
def parts(evidence: Evidence) -> Figure:
    rows = (s.BEFORE, *evidence.variants(s.DISCIPLINES), s.AFTER)
    figure, [[axes]] = drawing.sheet(
        "Which part of the cure does it",
        evidence,
        s.DISCIPLINES,
        says="behind htb rate 125kbps unless it says otherwise",
        size=(10, 3.6),
        margins=style.Margins(top=0.75, left=2.4, right=2.2, bottom=0.55),
    )
    for at, row in enumerate(rows):
        _bar(axes, evidence, row, at)
    names = {s.BEFORE: "nothing", s.AFTER: "fq_codel of May 2012"}
    axes.set_yticks(range(len(rows)), [names.get(variant, variant.name) for variant in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xscale="log", xlim=(SAYS["without/idle"] / 2, 6000))
    drawing.ticks(axes, (10, 20, 50, 100, 200, 500, 1000, 5000))
    axes.set_xlabel("median ping RTT during the upload [ms], logarithmic")
    style.corner(axes, "hollow: published")
    return figure


def _bar(axes: Axes, evidence: Evidence, row: Variant, at: int) -> None:
    delay = evidence.estimate(row, m.median_ms)
    colour = {s.BEFORE: style.VERMILLION, s.AFTER: style.BLUE}.get(row, style.SKY)
    look: dict[str, Any] = {"fmt": "o", "markersize": 7, "elinewidth": 0.9, "capsize": 2}
    axes.errorbar(delay.mean, at, xerr=delay.ci95, color=colour, label="ours", **look)
    end = delay.mean + delay.ci95
    stated = {s.BEFORE: BLOATED_MS, s.AFTER: CURED_MS}.get(row)
    if stated is not None:
        hollow: dict[str, Any] = {
            "marker": "D",
            "markersize": 6,
            "markerfacecolor": "white",
            "linestyle": "none",
        }
        axes.plot([stated], [at], color=style.INK, label="published", **hollow)
        end = max(end, stated)
    lost, seconds = (evidence.mean(row, one) for one in (m.loss_percent, m.upload_s))
    said = f"{delay.mean:,.0f} ms · {lost:.1f} % of pings lost · {seconds:.1f} s".replace(
        ",", "\u202f"
    )
    drawing.note(axes, said, (end, at), (8, 0), va="center")


def story(evidence: Evidence) -> Sequence[Bar]:
    """The delays of the idle line, the upload, and the upload behind the shaper."""
    before, after = (evidence.mean(how, m.upload_s) for how in (s.BEFORE, s.AFTER))
    cost = f"upload {after:.1f} s for {before:.1f}"
    return (
        Bar(
            "idle line",
            evidence.mean(s.BEFORE, m.idle_median_ms),
            "idle",
            published_ms=SAYS["without/idle"],
        ),
        Bar(
            "upload at 1 Mbit/s",
            evidence.mean(s.BEFORE, m.median_ms),
            "bloated",
            published_ms=SAYS["without/median"],
        ),
        Bar(
            "htb + fq_codel",
            evidence.mean(s.AFTER, m.median_ms),
            "cured",
            cost,
            published_ms=SAYS["with/median"],
        ),
    )
