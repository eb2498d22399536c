"""Tunes a shaper on the line itself: measures the line without a shaper, predicts, tries the rates
in turn and chooses one. `prediction` does the computing.

The interface is shaped only during the measurements (`trial` of `apply`), and its former state is
restored in any case. Each rate is a Run with a seed for each repeat, written as soon as it is
measured. So `sojourn compare` and `report` read them like any others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sojourn.engine import folder_names
from sojourn.errors import UserError
from sojourn.linux.operations import WantedShape, plan
from sojourn.records import Run
from sojourn.records.measurement import MeasurementSettings, add
from sojourn.scenario.qdisc import write_rate
from sojourn_live.measure import findings, measurement, session
from sojourn_live.outputs import TunedDirection
from sojourn_live.shape import apply, prediction

SearchProgress = Callable[[str, float], None]
"""Called with the present step and the finished share of the work."""
NO_SHAPER = "no shaper"
KINDS = {"up": "upload", "down": "download"}


IDLE_NS = 2 * 10**9
PROBE_NS = 20 * 10**6
"""The interval of probes: short enough for a 95th percentile over a few seconds."""


@dataclass(frozen=True)
class SearchSettings:
    """The settings of the search, for all directions."""

    interface: str
    directions: tuple[str, ...]
    wanted: WantedShape
    """The shaper; its rates are ignored."""
    host: str
    port: int
    secret: str
    streams: int
    congestion: str | None
    """The load's congestion control; None: the host's default."""
    load_ns: int
    target_ms: float
    repeats: int
    rates: tuple[int, ...] = ()
    """The rates to try; empty: those around the predicted one."""


@dataclass(frozen=True)
class RateQuestion:
    """The settings of the search for one direction."""

    interface: str
    direction: str
    wanted: WantedShape
    """The shaper; its rates are ignored."""
    plan: session.SessionPlan
    """The plan of each measurement, with the phases idle and load."""
    target_ms: float
    repeats: int
    rates: tuple[int, ...] = ()
    """The rates to try; empty: those around the predicted one."""


@dataclass
class RateAnswer:
    """The result for one direction, complete or up to an interruption."""

    asked: RateQuestion
    line: prediction.LineModel
    line_bps: float
    """The line's rate as the shaper counts it."""
    unshaped: prediction.Point
    predicted: list[prediction.Point]
    """The first point is the line without a shaper."""
    tried: list[prediction.Point] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def round_line_bps(self) -> int:
        """The line's rate with three digits."""
        return prediction.round_bps(self.line_bps)

    @property
    def choice(self) -> prediction.RateChoice:
        """The rate to use."""
        return prediction.choose(self.tried, self.asked.target_ms)

    @property
    def predicted_choice(self) -> prediction.RateChoice:
        """The tried rate that the prediction alone would have chosen."""
        rates = {point.bps for point in self.tried}
        return prediction.choose(
            [point for point in self.predicted[1:] if point.bps in rates], self.asked.target_ms
        )

    @property
    def quality(self) -> prediction.Quality:
        """How good the prediction was."""
        return prediction.quality(self.predicted[1:], self.tried)

    def to_dict(self) -> TunedDirection:
        """One object of plain values."""
        choice, by_prediction, quality = self.choice, self.predicted_choice, self.quality
        predicted = sorted(self.predicted[1:], key=lambda point: point.bps)
        return {
            "direction": self.asked.direction,
            "target_ms": self.asked.target_ms,
            "line": {
                "bps": round(self.line_bps),
                "goodput_bps": round(self.line.goodput_bps),
                "base_rtt_ms": self.line.base_rtt_ns / 1e6,
                "buffer_bytes": round(self.line.buffer_bytes),
            },
            "no_shaper": {
                "measured": self.unshaped.to_dict(),
                "predicted": self.predicted[0].to_dict(),
            },
            "measured": [point.to_dict() for point in self.tried],
            "predicted": [point.to_dict() for point in predicted],
            "chosen_bps": choice.point.bps if choice.point else None,
            "sure": choice.sure,
            "why": choice.why,
            "foretold_bps": by_prediction.point.bps if by_prediction.point else None,
            "prediction": {
                "off_ms": [prediction.known(value) for value in quality.off_ms],
                "off_goodput": [prediction.known(value) for value in quality.off_goodput],
                "good": quality.good,
                "of": len(quality.pairs),
            },
            "notes": self.caveats,
            "interrupted": self.interrupted,
        }


def questions(settings: SearchSettings) -> list[RateQuestion]:
    """The settings for each direction."""
    return [
        RateQuestion(
            settings.interface,
            direction,
            settings.wanted,
            session.SessionPlan(
                settings.host,
                settings.port,
                settings.secret,
                streams=settings.streams,
                congestion=settings.congestion,
                phases=phases(direction, IDLE_NS, settings.load_ns),
                targets=(session.ProbeTarget("udp"),),
                probe_interval_ns=PROBE_NS,
                interface=settings.interface,
            ),
            settings.target_ms,
            settings.repeats,
            tuple(sorted(set(settings.rates))),
        )
        for direction in settings.directions
    ]


def tune(settings: SearchSettings, out: Path, report: SearchProgress) -> list[RateAnswer]:
    """Finds the rates of all directions, one after the other. After Ctrl-C it returns the results
    so far.

    Raises:
        UserError: the interface can't be shaped, or nothing could be measured.
        KeyboardInterrupt: Ctrl-C before the first result.
    """
    asked = questions(settings)
    for question in asked:
        check(question)
    results: list[RateAnswer] = []
    for number, question in enumerate(asked):
        way = question.direction

        def update(words: str, done: float, number: int = number, way: str = way) -> None:
            report(f"{way}: {words}", (number + min(done, 1.0)) / len(asked))

        results.append(carry_out(question, out, update))
        if results[-1].interrupted:
            break
    return results


def check(asked: RateQuestion) -> None:
    """Makes the checks of shaping before the measurements, so that they do not fail after them.

    Raises:
        UserError, UnitError: see `apply.apply`.
    """
    apply.demand(asked.interface)
    apply.refuse_if_shaped(asked.interface)
    interface, former = apply.look(asked.interface)
    wanted = prediction.with_rate(
        asked.wanted, asked.direction, asked.rates[0] if asked.rates else 10**6
    )
    apply.rehearse(plan(wanted, interface, former), former, wanted)


def carry_out(asked: RateQuestion, out: Path, report: SearchProgress) -> RateAnswer:
    """Measures, predicts, tries. After Ctrl-C it returns the result so far.

    Raises:
        UserError: nothing could be measured; the interface is restored.
        KeyboardInterrupt: Ctrl-C before the first result.
    """
    interface, _ = apply.look(asked.interface)
    steps = 1 + asked.repeats * (len(asked.rates) or len(prediction.STEPS))
    keep = _Runs(asked, out, lambda words, done: report(words, done / steps))
    if not keep.measure(NO_SHAPER, 1, 0):
        raise KeyboardInterrupt
    found = findings.find(keep.runs[NO_SHAPER])
    line = prediction.line_of(found, asked.direction)
    line_bps = prediction.rate_of(line, asked.wanted, interface.mtu)
    congestion, kind = _congestion(keep.runs[NO_SHAPER]), KINDS[asked.direction]
    load_ns = next(phase.duration_ns for phase in asked.plan.phases if phase.kind == kind)
    load = prediction.Load(asked.plan.streams, congestion, load_ns, asked.plan.probe_interval_ns)
    report("simulating", 1 / steps)
    predicted = prediction.predict(
        line, asked.wanted, interface, load, [None, *prediction.grid(line_bps)]
    )
    rates = list(asked.rates) or prediction.around(line_bps, predicted[1:], asked.target_ms)
    known = {point.bps for point in predicted[1:]}
    predicted += prediction.predict(
        line, asked.wanted, interface, load, [bps for bps in rates if bps not in known]
    )
    unshaped = prediction.measured(
        prediction.round_bps(line_bps), keep.runs[NO_SHAPER], asked.direction
    )
    if unshaped is None:
        raise UserError(
            "the line without a shaper can't be measured", "run sojourn measure to see why"
        )
    tuned = RateAnswer(
        asked,
        line,
        line_bps,
        unshaped,
        predicted,
        caveats=prediction.caveats(asked.wanted, congestion),
    )
    turns = prediction.order(sorted(rates), asked.repeats)
    with apply.trial(
        asked.interface, prediction.with_rate(asked.wanted, asked.direction, turns[0][1])
    ) as change:
        for number, (repeat, bps) in enumerate(turns):
            change(prediction.with_rate(asked.wanted, asked.direction, bps))
            if not keep.measure(write_rate(bps), repeat + 1, 1 + number):
                tuned.interrupted = True
                break
    for bps in sorted(rates):
        run = keep.runs.get(write_rate(bps))
        point = prediction.measured(bps, run, asked.direction) if run is not None else None
        if point is not None:
            tuned.tried.append(point)
    return tuned


class _Runs:
    """Measures into one Run per label."""

    def __init__(
        self, asked: RateQuestion, out: Path, report: Callable[[str, float], None]
    ) -> None:
        self.runs: dict[str, Run] = {}
        self._asked, self._out, self._report = asked, out, report

    def measure(self, label: str, repeat: int, step: int) -> bool:
        """Makes one measurement. Returns False after Ctrl-C."""

        def reached(now_ns: int, whole_ns: int, phase: str) -> bool:
            share = min(now_ns / whole_ns, 1.0) if whole_ns else 0.0
            self._report(f"{label}, repeat {repeat}, {phase or 'the queue drains'}", step + share)
            return True

        measured = session.measure(self._asked.plan, reached)
        facts = measured.facts
        if facts["outcome"] == "interrupted":
            return False
        if facts["outcome"] != "complete":
            raise UserError(
                f"measuring ended early: {facts['why']}", f"the Runs so far are in {self._out}"
            )
        if label not in self.runs:
            how = MeasurementSettings(
                repeats=1 if label == NO_SHAPER else self._asked.repeats,
                out=self._out / folder_names([f"{self._asked.direction} {label}"])[0],
                force=True,
                label=f"{self._asked.direction}, {label}",
            )
            self.runs[label] = measurement.start(self._asked.plan, facts, how)
        add(self.runs[label], repeat, measured.tables, facts)
        return True


def _congestion(run: Run) -> str:
    """The load's congestion control; "" if it is not known."""
    return next(
        (flow.congestion for flow in run.meta.flows if flow.kind == "bulk" and flow.congestion), ""
    )


def phases(direction: str, idle_ns: int, load_ns: int) -> tuple[session.PlannedPhase, ...]:
    """The phases of each measurement."""
    return session.PlannedPhase("idle", idle_ns), session.PlannedPhase(KINDS[direction], load_ns)


def together(results: Sequence[RateAnswer]) -> WantedShape | None:
    """The shaper with all chosen rates; None if a direction has none."""
    chosen = {answer.asked.direction: answer.choice.point for answer in results}
    if not chosen or any(point is None for point in chosen.values()):
        return None
    rates = {direction: point.bps for direction, point in chosen.items() if point is not None}
    return replace(results[0].asked.wanted, up_bps=rates.get("up"), down_bps=rates.get("down"))
