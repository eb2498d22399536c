"""The source's figures 2 to 5 from our Runs, RED's lead, our engine beside ns-2, and runs past the
start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sojourn.figures import style
from sojourn_papers import drawing, published, searched
from sojourn_papers.evidence import Estimate, Evidence, Measure
from sojourn_papers.paper import Bar
from sojourn_papers.red_droptail import measures as m
from sojourn_papers.red_droptail import search
from sojourn_papers.red_droptail import studies as s
from sojourn_papers.study import Variant

SAYS = published.beside(__file__)
LOOKS = {s.RED: drawing.look("red"), s.DROP_TAIL: drawing.look("pfifo")}
MARKERS = {s.RED: "o", s.DROP_TAIL: "s"}


@style.drawn
def throughput(evidence: Evidence, tp: int) -> Figure:
    """Figures 2 and 3."""
    figure, [[axes]] = drawing.sheet(
        f"Throughput of N flows at 45 Mbit/s, Tp = {tp} ms", evidence, s.THROUGHPUT
    )
    for queue in (s.DROP_TAIL, s.RED):
        stated = {n: SAYS[f"throughput/{tp}/{n}/{queue}"] for n in s.N}
        _line(axes, evidence, queue, s.over_n(s.THROUGHPUT, tp, queue), m.throughput_mbps, stated)
    [ns2] = [row for row in SAYS["ns2"]["main"] if (row["tp"], row["queue"]) == (tp, s.DROP_TAIL)]
    axes.plot(
        s.N,
        ns2["values"],
        linestyle="none",
        marker="x",
        color=style.MUTED,
        label="Drop-Tail, ns-2 under the same reading",
    )
    _over_n(axes, "throughput, sum over the flows [Mbit/s]")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")
    return figure


@style.drawn
def fairness(evidence: Evidence, tp: int) -> Figure:
    """Figures 4 and 5."""
    figure, [[axes]] = drawing.sheet(
        f"Fairness of 16 flows whose delays are spread by D, Tp = {tp} ms", evidence, s.FAIRNESS
    )
    for queue in (s.DROP_TAIL, s.RED):
        stated = {d: SAYS[f"fairness/{tp}/{d}/{queue}"] for d in s.D}
        _line(axes, evidence, queue, s.over_d(s.FAIRNESS, tp, queue), m.fairness, stated)
    _over_d(axes)
    axes.legend(loc="lower left")
    return figure


def _line(
    axes: Axes,
    evidence: Evidence,
    queue: str,
    along: Mapping[int, Variant],
    measure: Measure,
    stated: Mapping[int, float] | None = None,
) -> None:
    """A discipline over N or D. RED is drawn on top of Drop-Tail, so that its dashes show where the
    two coincide."""
    ours = evidence.over(along, measure)
    drawing.curve(axes, queue, ours, LOOKS[queue], published=stated, marker=MARKERS[queue])


@style.drawn
def lead(evidence: Evidence) -> Figure:
    """RED's throughput less Drop-Tail's, in percent."""
    figure, [panels] = drawing.sheet(
        "RED's lead in throughput over Drop-Tail", evidence, s.THROUGHPUT, columns=2, size=(10, 4.2)
    )
    for axes, tp in zip(panels, s.TP_THROUGHPUT, strict=True):
        axes.axhline(0, color=style.MUTED, linewidth=0.8)
        same = s.over_n(s.WITH_QUEUES, tp, "Drop-Tail, 30 places")
        if evidence.has(*same.values()):
            label = "Drop-Tail with RED's 30 places"
            drawing.curve(axes, label, _leads(evidence, tp, same), LOOKS[s.DROP_TAIL], marker="x")
        stated = {
            n: 100
            * (
                SAYS[f"throughput/{tp}/{n}/{s.RED}"] / SAYS[f"throughput/{tp}/{n}/{s.DROP_TAIL}"]
                - 1
            )
            for n in s.N
        }
        leads = _leads(evidence, tp, s.over_n(s.THROUGHPUT, tp, s.RED))
        drawing.curve(axes, "RED", leads, LOOKS[s.RED], published=stated)
        _over_n(axes, "lead over Drop-Tail [%]" if tp == s.TP_THROUGHPUT[0] else "")
        axes.set(title=f"Tp = {tp} ms", ylim=(-5, 9))
    panels[0].legend(loc="upper left")
    return figure


def _leads(evidence: Evidence, tp: int, along: Mapping[int, Variant]) -> dict[int, Estimate]:
    """RED's lead over Drop-Tail's throughput, %, seed by seed, since the same seed starts the flows
    at the same times."""
    tail = s.over_n(s.THROUGHPUT, tp, s.DROP_TAIL)
    return {
        n: evidence.compared(
            one, tail[n], m.throughput_mbps, lambda ours, theirs: 100 * (ours / theirs - 1)
        )
        for n, one in along.items()
    }


@style.drawn
def searched_leads(_: Evidence) -> Figure:
    """RED's mean lead in case 4 over its throughputs' distance from the source, for each
    setting."""
    figure = style.blank(10, 4.2)
    top = style.heading(
        figure,
        "RED's lead in fairness at Tp = 250 ms, and its price",
        searched.beside(search.__file__).made,
    )
    margins = style.Margins(top=top + 0.2, left=0.85, right=0.35, bottom=0.55)
    axes = style.panels(figure, margins)[0][0]
    (chosen, *others) = search.points(4)
    plain: dict[str, Any] = {"linestyle": "none", "color": LOOKS[s.RED][0]}
    x, y = ([100 * off for off, _ in others], [lead for _, lead in others])
    axes.plot(x, y, marker="o", markersize=3, label="a RED that the search tried", **plain)
    axes.plot(
        [100 * chosen[0]],
        [chosen[1]],
        marker="D",
        markersize=7,
        label="the chosen, automatic",
        **plain,
    )
    stated = search.trade(4).source
    drawing.level(axes, stated, f"published, {stated:.3f}")
    axes.set(
        xlabel="throughputs of cases 1 and 2 off the source's, rms [%]",
        ylabel="lead in Jain's index",
        xlim=(0, None),
    )
    axes.legend(loc="lower right")
    return figure


@style.drawn
def engine(evidence: Evidence) -> Figure:
    """Ours over ns-2's, row by row."""
    pairs = m.pairs(evidence)
    figure, [panels] = drawing.sheet(
        "Our engine beside ns-2.35 under the same readings",
        evidence,
        s.NS2,
        columns=2,
        size=(10, 4.4),
    )
    for axes, kind in zip(panels, ("throughput", "fairness"), strict=True):
        here = [pair for pair in pairs if pair.kind == kind]
        ends = [min(pair.ns2 for pair in here) * 0.9, max(pair.ns2 for pair in here) * 1.1]
        axes.plot(ends, ends, color=style.MUTED, linewidth=0.8)
        for queue in (s.DROP_TAIL, s.RED):
            rows = [pair for pair in here if pair.queue == queue]
            if not rows:
                continue
            axes.plot(
                [pair.ns2 for pair in rows],
                [pair.ours for pair in rows],
                linestyle="none",
                marker=MARKERS[queue],
                markersize=5,
                markerfacecolor="none",
                color=LOOKS[queue][0],
                label=f"{queue}, {len(rows)} rows",
            )
        if kind == "throughput":
            axes.set(xscale="log", yscale="log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(FixedLocator([0.5, 1, 2, 5, 10, 20]))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_locator(NullLocator())
        unit = " [Mbit/s]" if kind == "throughput" else " index"
        axes.set(xlabel=f"{kind}{unit}, ns-2", ylabel=f"{kind}{unit}, ours")
        axes.legend(loc="upper left")
    return figure


@style.drawn
def steady(evidence: Evidence) -> Figure:
    """Throughput and sojourn over N past the start."""
    tps = [tp for tp in s.TP_THROUGHPUT if evidence.has(s.STEADY[s.cell(tp, 32, s.RED)])]
    figure, rows = drawing.sheet(
        "Past the start: throughput and queueing delay of N flows, 300 packets of buffer",
        evidence,
        s.STEADY,
        rows=(1, 1),
        columns=len(tps),
        size=(10, 6),
    )
    for column, tp in enumerate(tps):
        for panels, measure, label in (
            (rows[0], m.throughput_mbps, "throughput [Mbit/s]"),
            (rows[1], m.sojourn_ms, "mean sojourn [ms]"),
        ):
            axes = panels[column]
            for queue in (s.DROP_TAIL, s.RED):
                _line(axes, evidence, queue, s.over_n(s.STEADY, tp, queue), measure)
            _over_n(axes, label if column == 0 else "")
            axes.set_ylim(0, 48 if measure is m.throughput_mbps else 62)
        rows[0][column].set(title=_when(evidence, tp, s.STEADY[s.cell(tp, 32, s.RED)]), xlabel="")
    rows[0][0].legend(loc="lower right")
    return figure


@style.drawn
def steady_fairness(evidence: Evidence) -> Figure:
    """Fairness over D past the start."""
    tps = [
        tp for tp in s.TP_FAIRNESS if evidence.has(s.STEADY_FAIRNESS[s.cell(tp, 16, s.RED, s.D[0])])
    ]
    figure, [panels] = drawing.sheet(
        "Past the start: fairness of 16 flows whose delays are spread by D",
        evidence,
        s.STEADY_FAIRNESS,
        columns=len(tps),
    )
    for axes, tp in zip(panels, tps, strict=True):
        for queue in (s.DROP_TAIL, s.RED):
            _line(axes, evidence, queue, s.over_d(s.STEADY_FAIRNESS, tp, queue), m.fairness)
        _over_d(axes)
        axes.set_title(_when(evidence, tp, s.STEADY_FAIRNESS[s.cell(tp, 16, s.RED, s.D[0])]))
        if tp != tps[0]:
            axes.set_ylabel("")
    panels[0].legend(loc="lower left")
    return figure


def _when(evidence: Evidence, tp: int, variant: Variant) -> str:
    meta = evidence.run(variant).meta
    return f"Tp = {tp} ms, {meta.measured_s:g} s after {meta.warmup_ns / 1e9:g} s of warm-up"


def _over_n(axes: Axes, label: str) -> None:
    axes.set(xlabel="N, flows", ylabel=label, xticks=s.N)


def _over_d(axes: Axes) -> None:
    axes.set(
        xlabel="D, step of one-way delay from flow to flow [ms]",
        ylabel="Jain's fairness index",
        xticks=s.D,
        xlim=(s.D[0] - 1, s.D[-1] + 1),
        ylim=(0, 1),
    )


def story(evidence: Evidence) -> Sequence[Bar]:
    """The delays of 32 flows past their start. The source measures no delay, but there the two
    disciplines differ."""
    tail, red = (s.STEADY[s.cell(80, 32, queue)] for queue in (s.DROP_TAIL, s.RED))
    carried = [evidence.mean(one, m.throughput_mbps) for one in (red, tail)]
    return [
        Bar("Drop-Tail, 300 packets", evidence.mean(tail, m.sojourn_ms), "bloated"),
        Bar(
            "adaptive RED",
            evidence.mean(red, m.sojourn_ms),
            "cured",
            f"{carried[0]:.1f} for {carried[1]:.1f} Mbit/s",
        ),
    ]
