"""The source's figures 2 to 5 from our Runs, RED's lead, our engine beside ns-2, and what comes past the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from sojourn import metrics
from sojourn.figures import style
from sojourn.papers import drawing
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Estimate, Measure, Picture
from sojourn.papers.red_droptail import ns2
from sojourn.papers.red_droptail.cases import DROP_TAIL, RED, TP_FAIRNESS, TP_THROUGHPUT, D, N, cell
from sojourn.papers.red_droptail.measures import fairness, sojourn_ms, throughput_mbps
from sojourn.papers.red_droptail.published import FAIRNESS, QUEUES, THROUGHPUT

LOOKS = {RED: drawing.look("red"), DROP_TAIL: drawing.look("pfifo")}
MARKERS = {RED: "o", DROP_TAIL: "s"}


@style.drawn
def figure2(evidence: Evidence) -> Figure:
    """Throughput over N at Tp = 80 ms."""
    return _throughput(evidence, 80)


@style.drawn
def figure3(evidence: Evidence) -> Figure:
    """Throughput over N at Tp = 250 ms."""
    return _throughput(evidence, 250)


def _throughput(evidence: Evidence, tp: int) -> Figure:
    figure, [[axes]] = drawing.sheet(
        f"Throughput of N flows at 45 Mbit/s, Tp = {tp} ms", evidence, "throughput"
    )
    _both(
        axes,
        N,
        lambda n, queue: evidence.estimate("throughput", cell(tp, n, queue), throughput_mbps),
        THROUGHPUT[tp],
    )
    axes.plot(
        N,
        ns2.MAIN_WITHIN_10_MS[tp, DROP_TAIL],
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
def figure4(evidence: Evidence) -> Figure:
    """Fairness over D at Tp = 75 ms."""
    return _fairness(evidence, 75)


@style.drawn
def figure5(evidence: Evidence) -> Figure:
    """Fairness over D at Tp = 250 ms."""
    return _fairness(evidence, 250)


def _fairness(evidence: Evidence, tp: int) -> Figure:
    figure, [[axes]] = drawing.sheet(
        f"Fairness of 16 flows whose delays are spread by D, Tp = {tp} ms", evidence, "fairness"
    )
    _both(
        axes,
        D,
        lambda d, queue: evidence.estimate("fairness", cell(tp, 16, queue, d), fairness),
        FAIRNESS[tp],
    )
    _over_d(axes)
    axes.legend(loc="lower left")
    return figure


def _both(
    axes: Axes,
    xs: Sequence[int],
    ours: Callable[[int, str], Estimate],
    published: Mapping[int, Sequence[float | None]],
) -> None:
    """Both disciplines over N or D. RED over Drop-Tail: where they coincide, its dashes show on the solid line."""
    for queue in (DROP_TAIL, RED):
        at = QUEUES.index(queue)
        drawing.curve(
            axes,
            queue,
            xs,
            [ours(x, queue) for x in xs],
            LOOKS[queue],
            published=[published[x][at] for x in xs],
            marker=MARKERS[queue],
        )


@style.drawn
def lead(evidence: Evidence) -> Figure:
    """RED's throughput less Drop-Tail's, in percent."""
    figure, [panels] = drawing.sheet(
        "RED's lead in throughput over Drop-Tail", evidence, "throughput", columns=2, size=(10, 4.2)
    )
    for axes, tp in zip(panels, TP_THROUGHPUT, strict=True):
        axes.axhline(0, color=style.MUTED, linewidth=0.8)
        same = [cell(tp, n, "Drop-Tail, 30 places") for n in N]
        if all(evidence.has("queues", name) for name in same):
            drawing.curve(
                axes,
                "Drop-Tail with RED's 30 places",
                N,
                [
                    _lead(evidence, "queues", name, cell(tp, n, DROP_TAIL))
                    for name, n in zip(same, N, strict=True)
                ],
                LOOKS[DROP_TAIL],
                marker="x",
            )
        drawing.curve(
            axes,
            "RED",
            N,
            [_lead(evidence, "throughput", cell(tp, n, RED), cell(tp, n, DROP_TAIL)) for n in N],
            LOOKS[RED],
            published=[100 * (THROUGHPUT[tp][n][0] / THROUGHPUT[tp][n][1] - 1) for n in N],
        )
        _over_n(axes, "lead over Drop-Tail [%]" if tp == TP_THROUGHPUT[0] else "")
        axes.set_title(f"Tp = {tp} ms")
        axes.set_ylim(-5, 9)
    panels[0].legend(loc="upper left")
    return figure


def _lead(evidence: Evidence, study: str, name: str, tail: str) -> Estimate:
    """Seed by seed, since the same seed starts the flows at the same times."""
    ours = evidence.estimate(study, name, throughput_mbps).values
    theirs = evidence.estimate("throughput", tail, throughput_mbps).values
    values = tuple(100 * (a / b - 1) for a, b in zip(ours, theirs, strict=True))
    whole = metrics.mean_ci95(values)
    return Estimate(whole["mean"], whole["ci95"], values)


@style.drawn
def engine(evidence: Evidence) -> Figure:
    """Ours over ns-2's, row by row."""
    pairs = ns2.pairs(evidence)
    figure, [panels] = drawing.sheet(
        "Our engine beside ns-2.35 under the same readings", evidence, "ns2", columns=2, size=(10, 4.4)
    )
    for axes, kind in zip(panels, ("throughput", "fairness"), strict=True):
        here = [pair for pair in pairs if pair.kind == kind]
        ends = [min(pair.ns2 for pair in here) * 0.9, max(pair.ns2 for pair in here) * 1.1]
        axes.plot(ends, ends, color=style.MUTED, linewidth=0.8)
        for queue in (DROP_TAIL, RED):
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
            axes.set_xscale("log")
            axes.set_yscale("log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(FixedLocator([0.5, 1, 2, 5, 10, 20]))
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                axis.set_minor_locator(NullLocator())
        unit = " [Mbit/s]" if kind == "throughput" else " index"
        axes.set_xlabel(f"{kind}{unit}, ns-2")
        axes.set_ylabel(f"{kind}{unit}, ours")
        axes.legend(loc="upper left")
    return figure


@style.drawn
def steady(evidence: Evidence) -> Figure:
    """Throughput and sojourn over N past the start."""
    tps = [tp for tp in TP_THROUGHPUT if evidence.has("steady", cell(tp, 32, RED))]
    figure, rows = drawing.sheet(
        "Past the start: throughput and queueing delay of N flows, 300 packets of buffer",
        evidence,
        "steady",
        rows=(1, 1),
        columns=len(tps),
        size=(10, 6),
    )
    for column, tp in enumerate(tps):
        ns = [n for n in N if evidence.has("steady", cell(tp, n, RED))]
        for panels, measure, label in (
            (rows[0], throughput_mbps, "throughput [Mbit/s]"),
            (rows[1], sojourn_ms, "mean sojourn [ms]"),
        ):
            axes = panels[column]
            for queue in (DROP_TAIL, RED):
                _ours(axes, evidence, "steady", queue, ns, [cell(tp, n, queue) for n in ns], measure)
            _over_n(axes, label if column == 0 else "")
            axes.set_ylim(0, 48 if measure is throughput_mbps else 62)
        rows[0][column].set_title(_when(evidence, "steady", tp, cell(tp, 32, RED)))
        rows[0][column].set_xlabel("")
    rows[0][0].legend(loc="lower right")
    return figure


@style.drawn
def steady_fairness(evidence: Evidence) -> Figure:
    """Fairness over D past the start."""
    tps = [tp for tp in TP_FAIRNESS if evidence.has("steady-fairness", cell(tp, 16, RED, D[0]))]
    figure, [panels] = drawing.sheet(
        "Past the start: fairness of 16 flows whose delays are spread by D",
        evidence,
        "steady-fairness",
        columns=len(tps),
    )
    for axes, tp in zip(panels, tps, strict=True):
        for queue in (DROP_TAIL, RED):
            names = [cell(tp, 16, queue, d) for d in D]
            _ours(axes, evidence, "steady-fairness", queue, D, names, fairness)
        _over_d(axes)
        axes.set_title(_when(evidence, "steady-fairness", tp, cell(tp, 16, RED, D[0])))
        if tp != tps[0]:
            axes.set_ylabel("")
    panels[0].legend(loc="lower left")
    return figure


def _ours(
    axes: Axes, evidence: Evidence, study: str, queue: str, x: object, names: list[str], measure: Measure
) -> None:
    assert isinstance(x, list | tuple)
    estimates = [evidence.estimate(study, name, measure) for name in names]
    drawing.curve(axes, queue, x, estimates, LOOKS[queue], marker=MARKERS[queue])


def _when(evidence: Evidence, study: str, tp: int, name: str) -> str:
    meta = evidence.run(study, name).meta
    return f"Tp = {tp} ms, {meta.measured_s:g} s after {meta.warmup_ns / 1e9:g} s of warm-up"


def _over_n(axes: Axes, label: str) -> None:
    axes.set_xlabel("N, flows")
    axes.set_ylabel(label)
    axes.set_xticks(N)


def _over_d(axes: Axes) -> None:
    axes.set_xlabel("D, step of one-way delay from flow to flow [ms]")
    axes.set_ylabel("Jain's fairness index")
    axes.set_xticks(D)
    axes.set_xlim(D[0] - 1, D[-1] + 1)
    axes.set_ylim(0, 1)


PICTURES = (
    Picture(
        "figure2",
        "Throughput over N at Tp = 80 ms",
        "Throughput grows with N until and beyond the first losses at N = 8, and RED can't be told from Drop-Tail. Hollow marks: published; crosses: ns-2, run by us.",
        figure2,
        "Figure 2",
    ),
    Picture(
        "figure3",
        "Throughput over N at Tp = 250 ms",
        "Above 8 flows the buffer overflows and throughput levels off; RED stays a little above Drop-Tail. Hollow marks: published; crosses: ns-2, run by us.",
        figure3,
        "Figure 3",
    ),
    Picture(
        "figure4",
        "Fairness over D at Tp = 75 ms",
        "The wider the spread, the less fair; RED and Drop-Tail give the same. Hollow marks: published.",
        figure4,
        "Figure 4",
    ),
    Picture(
        "figure5",
        "Fairness over D at Tp = 250 ms",
        "Nothing is dropped in these runs, so both queues give the same index; the published ones part. Hollow marks: published.",
        figure5,
        "Figure 5",
    ),
    Picture(
        "lead",
        "RED's lead, and what it comes from",
        "RED's lead over Drop-Tail in percent, hollow marks as published. Drop-Tail with RED's 30 places instead of ns-2's 29 has the same lead: it is one packet of buffer.",
        lead,
    ),
    Picture(
        "engine",
        "Our engine beside ns-2",
        "Each mark is one row that both ran; on the line they agree. The few off it are runs in which single losses in slow start decide. No published values.",
        engine,
    ),
    Picture(
        "steady",
        "Throughput and queueing delay past the start",
        "Past the start Drop-Tail fills link and buffer; adaptive RED keeps the sojourn at 5 ms or less and pays for it at Tp = 250 ms. No published values: the source has none.",
        steady,
    ),
    Picture(
        "steady-fairness",
        "Fairness past the start",
        "Past the start RED is fairer than Drop-Tail where delays are spread widely, which is what the source says. No published values.",
        steady_fairness,
    ),
)
