"""The source's two graphs in its own shape, and what lies behind them: where the queue stands, and how the readings were found."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sojourn import figures
from sojourn.figures import style
from sojourn.papers.drawing import Look, curve, legend, look, sheet
from sojourn.papers.evidence import Evidence
from sojourn.papers.home_upload import measures as m
from sojourn.papers.home_upload.experiments import (
    KILOBYTES,
    LINE,
    PACKETS,
    PER_CENT,
    SHAPER,
    WITH,
    WITHOUT,
    kilobytes,
    packets,
    per_cent,
)
from sojourn.papers.home_upload.published import (
    BLOATED_MS,
    CURED_MS,
    IDLE_MS,
    LOSS_PERCENT,
    WITH_S,
    WITHOUT_S,
)
from sojourn.papers.paper import Measure, Picture

_MODEM: Look = look("pfifo")
_WIFI: Look = look("fq_codel")
_TOP_MS = 200
"""The same scale in both graphs."""


# ------------------------------------------------------------------------------------------------- the source's graphs


def _published_line(axes: Axes, level: float, text: str) -> None:
    """A published value that holds for the whole panel."""
    axes.axhline(level, color=style.INK, linestyle=":", linewidth=0.9)
    axes.annotate(
        text, (1, level), xycoords=("axes fraction", "data"), xytext=(-2, 2), textcoords="offset points",
        ha="right", va="bottom", size=7.5, color=style.INK,
    )  # fmt: skip


def _graph(evidence: Evidence, variant: str, median: float) -> Figure:
    seed = evidence.seeds("upload", variant)[0]
    figure = figures.density(seed.run, "ping", seed.number)
    axes = figure.axes[0]
    axes.set_ylim(0, _TOP_MS)
    window = m.upload_ns(seed)
    assert window is not None, "the upload ends within the run"
    start, end = (t / 1e9 for t in window)
    axes.hlines(median, start, end, color=style.VERMILLION, linestyle=":", linewidth=1.2, zorder=3)
    axes.annotate(
        f"published median: {median:g} ms", (end, median), xytext=(5, 0), textcoords="offset points",
        ha="left", va="center", size=7.5, color=style.VERMILLION,
    )  # fmt: skip
    axes.annotate(
        f"upload, {m.upload_s(seed):.1f} s", (start, 0.95), xycoords=("data", "axes fraction"), xytext=(4, 0), textcoords="offset points",
        size=7.5, color=style.MUTED, va="center",
    )  # fmt: skip
    for moment in (start, end):
        axes.axvline(moment, color=style.MUTED, linewidth=0.6)
    return figure


@style.drawn
def _without(evidence: Evidence) -> Figure:
    return _graph(evidence, WITHOUT, BLOATED_MS)


@style.drawn
def _with(evidence: Evidence) -> Figure:
    return _graph(evidence, WITH, CURED_MS)


# -------------------------------------------------------------------------------------------------- where the queue is


@style.drawn
def _queues(evidence: Evidence) -> Figure:
    figure = style.blank(10, 3.6)
    runs = evidence.run("upload", WITHOUT).meta
    top = style.heading(
        figure,
        "Backlog of the two queues in series",
        f"engine {runs.engine} · seed {runs.seeds[0]} · looked at every 250 ms",
    )
    [[left, right]] = style.panels(figure, style.Margins(top=top + 0.2, left=0.85, bottom=0.55), columns=2)
    for axes, variant in ((left, WITHOUT), (right, WITH)):
        table = evidence.seeds("upload", variant)[0].table("queue")
        for link, name, (colour, dash) in (("modem", "modem", _MODEM), ("wlan0", "laptop, wlan0", _WIFI)):
            rows = table.filter(pl.col("link") == link)
            axes.plot(
                rows["t_ns"] / 1e9,
                rows["backlog_packets"],
                color=colour,
                linestyle=dash,
                linewidth=0.9,
                label=name,
            )
        style.corner(axes, "no shaper" if variant == WITHOUT else variant)
        axes.set_xlabel("time [s]")
        axes.set_xlim(0, runs.duration_ns / 1e9)
        axes.set_ylim(0, 18)
        axes.set_yticks(range(0, 17, 4))
    left.set_ylabel("backlog [packets]")
    left.legend(loc="upper left", ncols=2)
    return figure


@style.drawn
def _rates(evidence: Evidence) -> Figure:
    figure, [[delay, time]] = sheet(
        "What the rate of the shaper does",
        evidence,
        "rates",
        columns=2,
        says=f"line of {LINE // 1000} kbit/s",
        size=(10, 4),
    )
    shares = [share for share in PER_CENT if evidence.has("rates", per_cent(share))]

    def drawn(axes: Axes, name: str, measure: Measure, with_look: Look, marker: str = "o") -> None:
        curve(
            axes,
            name,
            shares,
            [evidence.estimate("rates", per_cent(share), measure) for share in shares],
            with_look,
            marker=marker,
        )

    drawn(delay, "median ping RTT", m.median_ms, (style.INK, style.SOLID))
    drawn(delay, "mean sojourn in the modem", m.standing_ms("modem"), _MODEM, "s")
    drawn(delay, "mean sojourn at wlan0", m.standing_ms("wlan0"), _WIFI, "^")
    drawn(time, "upload time", m.upload_s, (style.INK, style.SOLID))
    at = 100 * SHAPER / LINE
    for axes, cured, bloated, unit in ((delay, CURED_MS, BLOATED_MS, "ms"), (time, WITH_S, WITHOUT_S, "s")):
        axes.plot(
            [at],
            [cured],
            marker="D",
            markersize=7,
            markerfacecolor="none",
            color=style.INK,
            linestyle="none",
            label=f"published: {cured:g} {unit} at 125kbps",
        )
        axes.axhline(
            bloated,
            color=style.INK,
            linestyle=":",
            linewidth=0.9,
            label=f"published: {bloated:g} {unit} without a shaper",
        )
        axes.axvline(100, color=style.MUTED, linewidth=0.6)
        axes.set_xlabel("rate of the shaper [% of the line's]")
    delay.set_ylim(-5, 215)
    delay.set_ylabel("delay [ms]")
    time.set_ylabel("upload time [s]")
    time.set_ylim(40, 66)
    delay.legend(loc="upper left")
    time.legend(loc="upper right")
    return figure


# -------------------------------------------------------------------------------------------------------- the searches


@style.drawn
def _buffer(evidence: Evidence) -> Figure:
    figure, [[delay, lost]] = sheet(
        "The search for the modem's buffer", evidence, "buffer", columns=2, says="no shaper", size=(10, 4)
    )
    kinds = (
        ("counted in packets", packets, PACKETS, 1.518, _MODEM, "o"),
        ("counted in bytes", kilobytes, KILOBYTES, 1.0, look("bfifo"), "s"),
    )
    for axes, measure in ((delay, m.median_ms), (lost, m.loss_percent)):
        for name, variant, limits, each, drawn, marker in kinds:
            run = [limit for limit in limits if evidence.has("buffer", variant(limit))]
            curve(
                axes,
                name,
                [each * limit for limit in run],
                [evidence.estimate("buffer", variant(limit), measure) for limit in run],
                drawn,
                marker=marker,
            )
        axes.set_xscale("log")
        _ticks(axes, (12, 20, 50, 100, 200, 400))
        axes.set_xlabel("buffer [kB], logarithmic")
        axes.axvline(1.518 * 14, color=style.MUTED, linewidth=0.6)
    delay.set_yscale("log")
    delay.set_yticks([100, 200, 500, 1000, 2000], ["100", "200", "500", "1000", "2000"])
    delay.minorticks_off()
    delay.set_ylabel("median ping RTT [ms], logarithmic")
    lost.set_ylabel("pings lost [%]")
    lost.set_ylim(-0.2, 5)
    _published_line(delay, BLOATED_MS, f"published: {BLOATED_MS:g} ms")
    _published_line(lost, LOSS_PERCENT, f"published: {LOSS_PERCENT:g} %")
    style.corner(delay, "grey: the 14 packets chosen")
    delay.legend(loc="upper left")
    legend(lost)
    return figure


def _ticks(axes: Axes, at: Sequence[float]) -> None:
    axes.set_xticks(list(at), [f"{one:g}" for one in at])
    axes.minorticks_off()


@style.drawn
def _parts(evidence: Evidence) -> Figure:
    tried = [("disciplines", name) for name in evidence.variants("disciplines")]
    rows = [("upload", WITHOUT), *tried, ("upload", WITH)]
    published = {("upload", WITHOUT): BLOATED_MS, ("upload", WITH): CURED_MS}
    figure, [[axes]] = sheet(
        "Which part of the cure does it",
        evidence,
        "disciplines",
        says="behind htb rate 125kbps unless it says otherwise",
        size=(10, 3.6),
        margins=style.Margins(top=0.75, left=2.4, right=2.2, bottom=0.55),
    )
    for at, row in enumerate(rows):
        _bar(axes, evidence, row, at, published.get(row))
    names = {WITHOUT: "nothing", WITH: "fq_codel of May 2012"}
    axes.set_yticks(range(len(rows)), [names.get(variant, variant) for _, variant in rows])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xscale("log")
    axes.set_xlim(IDLE_MS / 2, 6000)
    _ticks(axes, (10, 20, 50, 100, 200, 500, 1000, 5000))
    axes.set_xlabel("median ping RTT during the upload [ms], logarithmic")
    axes.legend(loc="lower right")
    return figure


def _bar(axes: Axes, evidence: Evidence, row: tuple[str, str], at: int, published: float | None) -> None:
    delay = evidence.estimate(*row, m.median_ms)
    colour = {WITHOUT: style.VERMILLION, WITH: style.BLUE}.get(row[1], style.SKY)
    axes.barh(
        at, delay.mean, height=0.66, color=colour, linewidth=0, xerr=delay.ci95, ecolor=style.INK,
        error_kw={"elinewidth": 0.8, "capsize": 2},
    )  # fmt: skip
    end = delay.mean + delay.ci95
    if published is not None:
        axes.plot(
            [published], [at], marker="D", markersize=6, markerfacecolor="white", color=style.INK, linestyle="none",
            label="published" if row[1] == WITHOUT else None,
        )  # fmt: skip
        end = max(end, published)
    lost, seconds = (evidence.mean(*row, one) for one in (m.loss_percent, m.upload_s))
    axes.annotate(
        f"{delay.mean:,.0f} ms · {lost:.1f} % of pings lost · {seconds:.1f} s".replace(",", "\u202f"), (end, at),
        xytext=(8, 0), textcoords="offset points", ha="left", va="center", size=8, annotation_clip=False,
    )  # fmt: skip


PICTURES = (
    Picture(
        "without", "Normal bufferbloat", "Ten pings a second, idle, during the upload, idle again. The upload fills the modem's buffer: the ping rises sevenfold and swings with the sender's window. Dotted: the published median.",
        _without, "First graph",
    ),
    Picture(
        "with", "Bufferbloat and CoDel", "The same upload through htb and fq_codel at the laptop, on the same scale: the ping waits for the packet that is being sent and for no other. Dotted: the published median.",
        _with, "Second graph",
    ),
    Picture(
        "queues", "The queue moves", "Without the shaper the modem's queue stands and the laptop's is empty; with it the modem's is empty and fq_codel holds the laptop's short. CoDel takes about 3 s to bring down what slow start leaves.", _queues,
    ),
    Picture(
        "rates", "The shaper's rate decides where the queue is", "Below the line's rate the queue is at wlan0, under fq_codel, and each per cent less costs a per cent of time. Above it the queue goes back to the modem, and the cure is gone. The source was at 97.7 %.", _rates,
    ),
    Picture(
        "parts", "Neither half of the cure works alone", "fq_codel without a shaper has no queue to manage; a shaper before a plain queue only builds a longer one. Linux's rule from September 2012 dropped pings at this rate unless the target was raised.", _parts,
    ),
    Picture(
        "buffer", "How the modem's buffer was found", "14 packets give the published median. A buffer of the same size that counts bytes loses no ping, because a ping fits where a segment does not.", _buffer,
    ),
)  # fmt: skip
