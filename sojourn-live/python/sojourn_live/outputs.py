"""The shapes of what verbs of live lines print under `--json`."""

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
    """Probes."""
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
    """What the load adds to the idle RTT's median, ms."""

    median: KnownInterval
    p95: KnownInterval


class MeasuredPhase(TypedDict):
    """A phase, seen by the target that the verdict is of."""

    phase: str
    kind: str
    """idle, download, upload, both"""
    complete: bool
    spread: SpreadNumbers
    mbps: dict[str, Known]
    """Goodput by direction, "down" and "up"."""
    retransmits: int | None
    """Segments that TCP sent again; null: not known."""
    induced: InducedNumbers | None
    """Null: an idle phase, or no idle one to compare with."""


class StandingQueue(TypedDict):
    """The queue that stands in front of one direction."""

    direction: str
    phase: str
    ms: Known
    bytes: Known
    mbps: Known
    overflowed: bool | None
    """TCP had to send again in this phase: it was as long as it gets. Null: not known."""


class QueuePlace(TypedDict):
    """Which target's delay rises in a phase."""

    phase: str
    rises: dict[str, Known]
    """Added delay (median) by target, the nearest first, ms."""
    after: str | None
    """The last target whose delay does not rise; null: the nearest already does."""
    nearest: str | None
    """The nearest whose delay rises; null: it rises nowhere."""


class ScoreGrade(TypedDict):
    """What a score gives."""

    word: str
    """A letter or class; empty: it has none."""
    number: Known
    unit: str


class MeasuredScore(TypedDict):
    """One score."""

    name: str
    overall: ScoreGrade | None
    """Of the whole measurement."""
    phases: dict[str, ScoreGrade]
    """Of each load."""
    source: str


class FieldFateNumbers(TypedDict):
    """A DS field that was sent one way, without load."""

    direction: str
    """up, down"""
    field: str
    """ECT(0), EF"""
    is_ecn: bool
    sent: int
    arrived: dict[str, int]
    """The fields with which they came, and how many each."""
    fate: Literal["kept", "changed", "mixed", "lost", "unknown"]


class MarkedPhaseNumbers(TypedDict):
    """What was marked under load, in a direction that is loaded."""

    phase: str
    direction: str
    probes: int
    """ECN-capable ones that arrived."""
    probes_marked: int
    streams: int
    """TCP connections that told."""
    streams_ecn: int
    """Those that agreed on ECN."""
    segments: int
    segments_marked: int


class PathMarksNumbers(TypedDict):
    """What became of ECN and DSCP."""

    answered: bool
    path: list[FieldFateNumbers]
    loads: list[MarkedPhaseNumbers]


class FindingsNumbers(TypedDict):
    """What a measurement says."""

    title: str
    label: str
    engine: str
    """live, or flent"""
    version: str
    target: str | None
    """Whose RTTs the numbers are of; null: nobody answered."""
    repeats: int
    asked: int
    """Repeats."""
    by: Literal["repeats", "blocks"]
    """What the intervals are over."""
    rows: list[MeasuredPhase]
    others: dict[str, dict[str, SpreadNumbers]]
    """By target, the Run's own included, and phase."""
    buffers: list[StandingQueue]
    places: list[QueuePlace]
    scores: list[MeasuredScore]
    marks: PathMarksNumbers | None
    """Null: it was not asked for (--ecn)."""
    facts: list[MeasurementFacts]
    """Of each repeat: a session's, a measurement of responsiveness's, or an imported file's."""
    induced_p95_ms: Known
    """The most that a load adds at the 95th percentile: what `--fail-above` looks at."""


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
    """Its 95 % interval: both ends."""


class BeforeAfterNumbers(TypedDict):
    """Two measurements side by side."""

    before: str
    after: str
    intervals: ChangeBy
    """How they were made."""
    repeats: list[int]
    """Of each."""
    targets: list[str]
    """Of each; empty: nobody answered."""
    changes: list[MeasuredChange]


class ChangesOutput(TypedDict):
    """`sojourn compare` of measurements."""

    schema: str
    comparisons: list[BeforeAfterNumbers]
    """Each but the first against the first."""


class HistoryEntry(TypedDict):
    """A time of measuring."""

    t_ns: int
    """When it began, since 1970."""
    run: str
    """The name of the Run's folder; empty: there is none."""
    why: str
    """Why nothing was measured, or why the measurement ended early; empty: neither."""
    idle_ms: Known
    """Median RTT of the idle line."""
    added_ms: dict[str, Known]
    """What a load adds to that at the 95th percentile, by the load's kind."""
    mbps: dict[str, Known]
    """Goodput by direction, "down" and "up"."""
    grade: str
    """DSLReports's; empty: it can't be given."""


class HistoryOutput(TypedDict):
    """`sojourn history`."""

    schema: str
    measurements: list[HistoryEntry]
    """In order of time."""


class PeerPhaseNumbers(TypedDict):
    """A load of ours, as a peer saw it."""

    phase: str
    our_rise_ms: Known
    """Median RTT under the load, above the idle median."""
    peer_rise_ms: Known
    peer_probes: int
    """Answered ones in this phase."""
    whose: Literal["shared", "own", "none", "unknown"]
    """Where the queue is: on the way that both share; in what is ours alone; there is none."""


class PeerOutput(TypedDict):
    """`sojourn peer`."""

    schema: str
    target: str
    """Whose RTTs ours are."""
    peer_target: str
    phases: list[PeerPhaseNumbers]


# -------------------------------------------------------------------------------- responsiveness


class RpmScore(TypedDict):
    """Round trips per minute."""

    rpm: Known
    foreign: Known
    """Of new connections."""
    loaded: Known
    """On the load's own connections."""


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
    """What one stage of one repeat came to: a direction, or both at once."""

    seed: int
    """The repeat."""
    phase: str
    """download, upload or both"""
    complete: bool
    draft: RpmScore
    """By draft-ietf-ippm-responsiveness-09; `class` is its class."""
    go: RpmScore
    """As goresponsiveness's trimmed mean."""
    go_p90: RpmScore
    """As goresponsiveness's P90."""
    goodput_mbps: dict[str, Known]
    """By direction: the moving average over the last MAD intervals."""
    goodput_confidence: Literal["Low", "Medium", "High"]
    confidence: Literal["Low", "Medium", "High"]
    """The responsiveness's."""
    intervals: int
    connections: int
    """That carried load in the end."""
    round_trips: dict[str, Known]
    """Trimmed means, ms, by kind of probe: foreign-tcp, foreign-tls, foreign-http, self."""
    samples: dict[str, int]
    """How many each is of, before the trimming."""
    lost: int
    """Probes of the whole stage that failed."""
    unanswered: int
    """Probes under way at its end."""


class RpmOutput(TypedDict):
    """`sojourn rpm measure`."""

    schema: str
    title: str
    draft: str
    """Whose formulas and parameters these are."""
    server: RpmServerFacts
    outcome: SessionOutcome
    """Of the last repeat."""
    why: str
    """A sentence; empty if complete."""
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
    """Why the latest lost probe was lost; null: none was."""
    rtt_ms: MonitoredRtt


class MonitorOutput(TypedDict):
    """`sojourn monitor`, at its end."""

    schema: str
    targets: list[MonitoredTarget]
    not_sent: int
    """Probes, since this host stood still."""


# --------------------------------------------------------------------------------- shape and tune


ShapeState: TypeAlias = Literal[
    "planned", "not shaped", "applying", "applied", "confirmed", "rolled back"
]


class ShapedInterface(TypedDict):
    """An interface, shaped or to be shaped."""

    interface: str
    state: ShapeState
    up_bps: int | None
    """What it may send; null: left alone, or not shaped."""
    down_bps: int | None
    """What it may receive."""
    qdisc: str | None
    link: str | None
    """Null: nothing is added to a packet's length."""
    commands: list[str]
    """Of ip and tc."""
    notes: list[str]
    """Of what is planned."""
    watched: bool
    """A process is there that takes it back unless it is confirmed."""
    why: str
    """Why it was rolled back, or how the interface differs from what it should be; empty: it was
    not, or does not."""


class ShapeOutput(ShapedInterface):
    """`sojourn shape`."""

    schema: str


class TunePoint(TypedDict):
    """A rate that was tried, on the line or in the simulator."""

    bps: int
    """Without a shaper: the line's."""
    added_p95_ms: Known
    added_p95_ms_ci95: list[Known]
    """Both ends."""
    goodput_mbps: Known


class TunedLine(TypedDict):
    """What the first measurement found."""

    bps: int
    goodput_bps: int
    base_rtt_ms: float
    buffer_bytes: int


class Unshaped(TypedDict):
    """Without a shaper."""

    measured: TunePoint
    predicted: TunePoint


class PredictionQuality(TypedDict):
    """How good the prediction was, at the rates that were tried."""

    off_ms: list[Known]
    """Of the delay: predicted less measured."""
    off_goodput: list[Known]
    """As a share of the measured one."""
    good: int
    """Delays that were predicted closely."""
    of: int


class TunedDirection(TypedDict):
    """A direction."""

    direction: str
    target_ms: float
    line: TunedLine
    no_shaper: Unshaped
    measured: list[TunePoint]
    predicted: list[TunePoint]
    chosen_bps: int | None
    """Null: none of those tried."""
    sure: bool
    """The chosen rate's whole interval is below the target."""
    why: str
    foretold_bps: int | None
    """What the prediction would have chosen."""
    prediction: PredictionQuality
    notes: list[str]
    interrupted: bool


class TuneOutput(TypedDict):
    """`sojourn tune`."""

    schema: str
    interface: str
    host: str
    results: list[TunedDirection]
