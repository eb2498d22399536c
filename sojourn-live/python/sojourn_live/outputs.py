"""The shapes of the output of live lines' verbs under `--json`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from typing_extensions import TypedDict

from sojourn.facts import MeasurementFacts, RpmServerFacts, SessionOutcome
from sojourn.numbers import Known

# ---------------------------------------------------------------------------------- measurements


class KnownInterval(TypedDict):
    """A number with its 95 % interval."""

    value: Known
    low: Known
    high: Known


class SpreadNumbers(TypedDict):
    """RTTs of one target in one phase, ms."""

    sent: int
    """Probes sent."""
    lost: int | None
    """Null: not known."""
    min: Known
    p10: Known
    median: Known
    mean: Known
    p90: Known
    p95: Known
    max: Known


class InducedNumbers(TypedDict):
    """Delay that the load adds to the idle RTT's median, ms."""

    median: KnownInterval
    p95: KnownInterval


class MeasuredPhase(TypedDict):
    """A phase, by the RTTs of the verdict's target."""

    phase: str
    kind: str
    """idle, download, upload, both"""
    complete: bool
    spread: SpreadNumbers
    mbps: dict[str, Known]
    """Goodput by direction, "down" and "up"."""
    retransmits: int | None
    """Segments that TCP retransmitted; null: not known."""
    induced: InducedNumbers | None
    """Null: the phase is idle, or no idle phase was measured."""


class StandingQueue(TypedDict):
    """The standing queue of one direction."""

    direction: str
    phase: str
    ms: Known
    bytes: Known
    mbps: Known
    overflowed: bool | None
    """Whether TCP retransmitted in this phase, which shows that the queue was full. Null: not
    known."""


class QueuePlace(TypedDict):
    """The targets whose delay rises in a phase."""

    phase: str
    rises: dict[str, Known]
    """Added delay (median) by target, the nearest first, ms."""
    after: str | None
    """The last target whose delay does not rise; null: the delay of the nearest target rises."""
    nearest: str | None
    """The nearest target whose delay rises; null: none does."""


class ScoreGrade(TypedDict):
    """The result of a score."""

    word: str
    """A letter or class; empty: the score has none."""
    number: Known
    unit: str


class MeasuredScore(TypedDict):
    """One score."""

    name: str
    overall: ScoreGrade | None
    """Grade of the whole measurement."""
    phases: dict[str, ScoreGrade]
    """Grade of each load."""
    source: str


class FieldOutcomeNumbers(TypedDict):
    """A DS field that was sent in one direction, without load."""

    direction: str
    """up, down"""
    field: str
    """ECT(0), EF"""
    is_ecn: bool
    sent: int
    arrived: dict[str, int]
    """Packets by the name of the field that they arrived with."""
    fate: Literal["kept", "changed", "mixed", "lost", "unknown"]


class MarkedPhaseNumbers(TypedDict):
    """Marks in a loaded phase, in a direction that it loads."""

    phase: str
    direction: str
    probes: int
    """ECN-capable probes that arrived."""
    probes_marked: int
    streams: int
    """TCP connections whose ECN counters are known."""
    streams_ecn: int
    """The connections among them that negotiated ECN."""
    segments: int
    segments_marked: int


class PathMarksNumbers(TypedDict):
    """Whether ECN and DSCP survive the path."""

    answered: bool
    path: list[FieldOutcomeNumbers]
    loads: list[MarkedPhaseNumbers]


class FindingsNumbers(TypedDict):
    """The findings of a measurement."""

    title: str
    label: str
    engine: str
    """live, or flent"""
    version: str
    target: str | None
    """The target of the RTTs; null: no target answered."""
    repeats: int
    asked: int
    """Repeats that were to be measured."""
    by: Literal["repeats", "blocks"]
    """The samples of a 95 % interval: whole repeats, or blocks of time within a phase."""
    rows: list[MeasuredPhase]
    others: dict[str, dict[str, SpreadNumbers]]
    """RTTs of all targets, by target and phase. The key `target` names one of these."""
    buffers: list[StandingQueue]
    places: list[QueuePlace]
    scores: list[MeasuredScore]
    marks: PathMarksNumbers | None
    """Null: measured without --ecn."""
    facts: list[MeasurementFacts]
    """Facts of each repeat: of a session, a measurement of responsiveness, or an imported file."""
    induced_p95_ms: Known
    """The most that a load adds at the 95th percentile. `--fail-above` compares it."""


class MeasureOutput(FindingsNumbers):
    """`sojourn measure`."""

    schema: str


ChangeBy: TypeAlias = Literal["paired", "repeats", "blocks"]
ChangeWord: TypeAlias = Literal["better", "worse", "no significant change", "can't be said"]


class MeasuredChange(TypedDict):
    """A quantity of a phase, before and after."""

    phase: str
    what: str
    unit: str
    better: Literal["less", "more"]
    before: Known
    after: Known
    verdict: ChangeWord
    difference: Known
    """after - before."""
    ci95: list[Known]
    """The 95 % interval of the difference: both ends."""


class BeforeAfterNumbers(TypedDict):
    """Two measurements side by side."""

    before: str
    after: str
    intervals: ChangeBy
    """The method of the intervals."""
    repeats: list[int]
    """Repeats of each measurement."""
    targets: list[str]
    """Target of each measurement; empty: no target answered."""
    changes: list[MeasuredChange]


class ChangesOutput(TypedDict):
    """`sojourn compare` of measurements."""

    schema: str
    comparisons: list[BeforeAfterNumbers]
    """The first measurement compared with each of the others."""


class HistoryEntry(TypedDict):
    """One measurement of the series, or its failure."""

    t_ns: int
    """When it began, since 1970."""
    run: str
    """The name of the Run's folder; empty: there is none."""
    why: str
    """Why nothing was measured, or why the measurement ended early; empty: neither."""
    idle_ms: Known
    """Median RTT of the idle line."""
    added_ms: dict[str, Known]
    """95th percentile of the RTT under a load less the idle median, by the load's kind."""
    mbps: dict[str, Known]
    """Goodput by direction, "down" and "up"."""
    grade: str
    """DSLReports's grade; empty: there is none."""


class HistoryOutput(TypedDict):
    """`sojourn history`."""

    schema: str
    measurements: list[HistoryEntry]
    """In order of time."""


class PeerPhaseNumbers(TypedDict):
    """A load of ours, as measured here and at a peer."""

    phase: str
    our_rise_ms: Known
    """Median RTT under the load, above the idle median."""
    peer_rise_ms: Known
    peer_probes: int
    """Answered probes of the peer in this phase."""
    whose: Literal["shared", "own", "none", "unknown"]
    """The place of the queue: on the shared path, in our own part, no queue, not known."""


class PeerOutput(TypedDict):
    """`sojourn peer`."""

    schema: str
    target: str
    """The target of our RTTs."""
    peer_target: str
    phases: list[PeerPhaseNumbers]


# -------------------------------------------------------------------------------- responsiveness


class RpmScore(TypedDict):
    """Round trips per minute."""

    rpm: Known
    foreign: Known
    """RPM of new connections."""
    loaded: Known
    """RPM of the load's own connections."""


class RpmParametersGiven(TypedDict):
    """The draft's parameters under the draft's names."""

    mad: int
    id_ns: int
    tmp: float
    sdt: float
    inp: int
    inc: int
    mnp: int
    mps: float
    ptc: float
    stage_intervals: int


_Class = TypedDict("_Class", {"class": str})


class RpmStage(_Class):
    """The result of one stage of one repeat: a direction, or both at once."""

    seed: int
    """The repeat."""
    phase: str
    """download, upload or both"""
    complete: bool
    draft: RpmScore
    """By draft-ietf-ippm-responsiveness-09; `class` is its class."""
    go: RpmScore
    """By goresponsiveness's trimmed mean."""
    go_p90: RpmScore
    """By goresponsiveness's P90."""
    goodput_mbps: dict[str, Known]
    """By direction: the moving average over the last MAD intervals."""
    goodput_confidence: Literal["Low", "Medium", "High"]
    confidence: Literal["Low", "Medium", "High"]
    """Confidence of the responsiveness."""
    intervals: int
    connections: int
    """Connections that carried load at the end."""
    round_trips: dict[str, Known]
    """Trimmed means, ms, by kind of probe: foreign-tcp, foreign-tls, foreign-http, self."""
    samples: dict[str, int]
    """The number of samples of each trimmed mean, before the trimming."""
    lost: int
    """Failed probes of the whole stage."""
    unanswered: int
    """Probes under way at the end of the stage."""


class RpmOutput(TypedDict):
    """`sojourn rpm measure`."""

    schema: str
    title: str
    draft: str
    """The draft of the formulas and parameters."""
    server: RpmServerFacts
    outcome: SessionOutcome
    """Outcome of the last repeat."""
    why: str
    """Why the last repeat ended early, a sentence; empty: it is complete."""
    parameters: RpmParametersGiven
    idle_ms: dict[str, Known]
    """Median round trips before any load, by kind of foreign probe."""
    results: list[RpmStage]


# --------------------------------------------------------------------------------------- monitor


class MonitoredRtt(TypedDict):
    """RTTs of a target, ms."""

    min: Known
    p10: Known
    median: Known
    mean: Known
    p90: Known
    p99: Known
    max: Known


class MonitoredTarget(TypedDict):
    """A target since the monitor began."""

    name: str
    address: str
    sent: int
    received: int
    loss_rate: Known
    last_loss: str | None
    """Why the latest lost probe was lost; null: no probe was lost."""
    rtt_ms: MonitoredRtt


class MonitorOutput(TypedDict):
    """`sojourn monitor`, at its end."""

    schema: str
    targets: list[MonitoredTarget]
    not_sent: int
    """Probes that were not sent because this program ran late by at least one interval."""


# --------------------------------------------------------------------------------- shape and tune


ShapeState: TypeAlias = Literal[
    "planned", "not shaped", "applying", "applied", "confirmed", "rolled back"
]


class ShapedInterface(TypedDict):
    """An interface, shaped or to be shaped."""

    interface: str
    state: ShapeState
    up_bps: int | None
    """Rate that it may send at; null: this direction is not shaped."""
    down_bps: int | None
    """Rate that it may receive at."""
    qdisc: str | None
    link: str | None
    """Null: nothing is added to a packet's length."""
    commands: list[str]
    """Commands of ip and tc, or the configuration of the router that --for names."""
    notes: list[str]
    """Notes on the planned shaper."""
    watched: bool
    """Whether a process will roll the shaper back unless it is confirmed."""
    why: str
    """Why it was rolled back, or how the interface differs from its expected state; empty:
    neither."""


class ShapeOutput(ShapedInterface):
    """`sojourn shape`."""

    schema: str


class TunePoint(TypedDict):
    """A rate that was tried, on the line or in the simulator."""

    bps: int
    """The rate; without a shaper, the line's."""
    added_p95_ms: Known
    added_p95_ms_ci95: list[Known]
    """Both ends."""
    goodput_mbps: Known


class TunedLine(TypedDict):
    """The line by the first measurement."""

    bps: int
    goodput_bps: int
    base_rtt_ms: float
    buffer_bytes: int


class Unshaped(TypedDict):
    """The line without a shaper."""

    measured: TunePoint
    predicted: TunePoint


class PredictionQuality(TypedDict):
    """How good the prediction was, at the rates that were tried."""

    off_ms: list[Known]
    """Errors of the delay: predicted less measured."""
    off_goodput: list[Known]
    """Errors of the goodput, as a share of the measured value."""
    good: int
    """Delays that were predicted closely."""
    of: int


class TunedDirection(TypedDict):
    """The result for one direction."""

    direction: str
    target_ms: float
    line: TunedLine
    no_shaper: Unshaped
    measured: list[TunePoint]
    predicted: list[TunePoint]
    chosen_bps: int | None
    """Null: no tried rate is good enough."""
    sure: bool
    """Whether the chosen rate's whole interval is below the target."""
    why: str
    foretold_bps: int | None
    """The tried rate that the prediction alone would have chosen."""
    prediction: PredictionQuality
    notes: list[str]
    interrupted: bool


class TuneOutput(TypedDict):
    """`sojourn tune`."""

    schema: str
    interface: str
    host: str
    results: list[TunedDirection]
