"""The facts of a measurement that are not in its tables, for each seed: the shape of `Meta.facts`.

Three kinds of measurement have facts: a session with sojourn's server (`SessionFacts`, made by
crates/live in session/facts.rs), a measurement of responsiveness (`RpmFacts`, crates/rpm in
facts.rs), and an imported file (`ImportedFacts`). `"rpm" in facts` and `"clock" in facts`
distinguish them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypeAlias, final

from msgspec import Meta
from typing_extensions import TypedDict

from sojourn import shapes
from sojourn.shapes import Count, Real, Whole

SessionOutcome: TypeAlias = Literal["complete", "interrupted", "partial"]
"""Interrupted: by Ctrl-C, or by the progress function."""


class SessionPhase(TypedDict):
    """A phase that began. Between two phases the load drains; that time belongs to neither."""

    name: str
    """The kind, with a number if a loaded kind repeats ("download 2"); both idle phases are
    "idle"."""
    kind: str
    start_ns: Count
    end_ns: Count
    complete: bool


Direction: TypeAlias = Literal["down", "up"]
"""Down: towards the client, which is the host under test."""


class SessionFlow(TypedDict):
    """A TCP connection or a probe."""

    name: str
    """"download-1", "both-up-1"; a probe's own name."""
    kind: Literal["bulk", "ping"]
    direction: Literal["", "down", "up"]
    """The direction of a connection; "" for a probe."""
    phase: Count | None
    """The number of the phase in `phases`; null: a probe."""
    group: Count
    """One for each phase and direction, and one for each probe."""
    congestion: str | None
    """Null: a probe; empty: unknown."""


class SessionLink(TypedDict):
    """A direction of an interface."""

    name: str
    interface: str
    direction: Literal["out", "in"]
    """Packets that the interface sends, or receives."""
    qdisc: str
    """The kinds of the disciplines from the root down, as "htb, bfifo"; "" for "in"."""


class ProbedPhase(TypedDict):
    """Requests of a probe, by the phase in which they were sent."""

    phase: Count
    sent: Count
    lost: Count
    lost_forward: Count | None
    lost_backward: Count | None


class SessionProbe(TypedDict):
    """A probe."""

    name: str
    """The name of its flow."""
    how: Literal["icmp", "udp"]
    address: str
    socket: str
    """"unprivileged", "raw" or "udp"."""
    sent: Count
    received: Count
    lost: Count
    late: Count
    """Replies after probe_timeout_ns."""
    duplicate: Count
    missed: Count
    """Slots without a request, because this host was suspended or too slow."""
    reasons: dict[str, Count]
    """Lost requests by reason."""
    lost_forward: Count | None
    """For probes by udp, from the server's counts; null: unknown."""
    lost_backward: Count | None
    phases: list[ProbedPhase]


class PhaseGoodput(TypedDict):
    """The bytes that receivers got between start_ns and end_ns of a phase."""

    phase: Count
    direction: Direction
    bytes: Whole
    bps: Whole


class SessionClock(TypedDict):
    """The server's clock minus this host's at t = 0."""

    offset_ns: Real | None
    drift_ppm: Real | None
    """The drift of the server's clock; positive: it runs faster."""
    error_ns: Real | None
    """The uncertainty of the offset: half the least RTT, and the scatter of the samples."""
    by: Literal["udp", "control", ""]
    """The source of the offset. "": unknown; then the server's samples are left out, since they
    can't be placed in time."""
    samples: Count
    stepped_ns: Real
    """The change of this host's time of day during the session, by a step or a slew. The times in
    the tables do not depend on it."""


class Lateness(TypedDict):
    """The delay of requests after their slots, ns."""

    sends: Count
    p50: Real
    p90: Real
    p99: Real
    max: Real
    priority: Literal["realtime", "raised", "normal"]


class UsedCongestion(TypedDict):
    """The congestion controls of a session."""

    asked: str | None
    """The control that was requested; null: each host's own."""
    client: str
    server: str


class SessionLoad(TypedDict):
    """The load of a session."""

    streams: Count
    congestion: UsedCongestion
    dscp: NotRequired[Count]
    """The DSCP of streams and probes."""


class ServerCaps(TypedDict, total=False):
    """The limits of a server's clients."""

    seconds: Count
    """Seconds of load for one source in an hour."""
    bytes: Count
    """Bytes for one source in an hour."""
    streams: Count
    """Streams of one load."""
    clients: Count
    """Clients at once."""


class SessionServer(TypedDict):
    """The server."""

    host: str
    """The name or address that was requested."""
    address: str
    port: Count
    version: str
    kernel: str
    caps: ServerCaps


class SessionClient(TypedDict):
    """The host that measured."""

    address: str | None
    interface: str | None
    """The interface to the server."""
    gateway: str | None
    version: str
    kernel: str


class ArrivedMarks(TypedDict):
    """Datagrams that arrived with a DS field."""

    ds: Count
    """The byte: DSCP in the upper bits, ECN in the lower two."""
    count: Count


class MarkedPath(TypedDict):
    """The fate of a DS field in one direction, without load."""

    direction: Direction
    ds: Count
    """The DS field as it was sent."""
    sent: Count
    arrived: list[ArrivedMarks]


class MarkedLoad(TypedDict):
    """The fate of ECN-capable datagrams in a phase."""

    phase: Count
    direction: Direction
    ds: Count
    sent: Count
    arrived: list[ArrivedMarks]


class MarkedTcp(TypedDict):
    """The ECN counts of the senders of a load."""

    phase: Count
    direction: Direction
    streams: Count
    ecn: Count
    """Streams that negotiated ECN."""
    delivered: Count
    """Delivered segments of all streams."""
    marked: Count
    """Segments that were acknowledged with ECE."""


class SessionMarks(TypedDict):
    """The fate of ECN and DSCP."""

    answered: bool
    """Whether the server answered any of these requests."""
    dscp: Count
    """The DSCP of the requests of `loads`."""
    path: list[MarkedPath]
    loads: list[MarkedLoad]
    tcp: list[MarkedTcp]


class AnyFacts(TypedDict):
    """The facts of any measurement."""

    format: Count
    outcome: SessionOutcome
    why: str
    """The reason, a sentence; "" if complete."""
    notes: list[str]
    """Sentences about values that could not be measured or are not as they should be."""
    zero_ns: Count
    """The time of day at t = 0, ns since 1970."""
    duration_ns: Count
    """t at the end."""
    phases: list[SessionPhase]
    """The phases, in order."""
    flows: list[SessionFlow]
    links: list[SessionLink]
    """Empty if no interface is watched."""


@final
class SessionFacts(AnyFacts):
    """The facts of a session with sojourn's server."""

    probes: list[SessionProbe]
    goodput: list[PhaseGoodput]
    clock: SessionClock
    lateness_ns: Lateness
    load: SessionLoad
    server: SessionServer
    client: SessionClient
    marks: NotRequired[SessionMarks | None]
    """Null: not requested."""


class RpmParameterFacts(TypedDict):
    """The draft's parameters, with the draft's names."""

    mad: Count
    id_ns: Count
    tmp: Annotated[float, Meta(ge=1e-9, le=1)]
    """The share of the samples that a trimmed mean uses: the best ones."""
    sdt: Real
    inp: Count
    inc: Count
    mnp: Count
    mps: Real
    ptc: Real
    stage_intervals: Count


class RpmInterval(TypedDict):
    """An interval of a stage."""

    t_ns: Count
    """Its end."""
    connections: Count
    """Connections with load at the end of the interval."""
    goodput_bps: list[Real]
    """The goodput in the interval, by direction."""
    moving_average_bps: list[Real]
    responsiveness: Real | None
    """Over the last MAD intervals (a parameter of the draft); null: too few samples."""


RpmConfidence: TypeAlias = Literal["low", "medium", "high"]


class RpmLoaded(TypedDict):
    """A stage: a measurement under load in one or more directions."""

    directions: list[Literal["download", "upload"]]
    start_ns: Count
    end_ns: Count
    window_start_ns: Count
    """From this time on, a probe's answer counts for the result."""
    window_end_ns: Count
    intervals: list[RpmInterval]
    goodput_confidence: RpmConfidence
    responsiveness_confidence: RpmConfidence
    unanswered: Count
    """Probes without an answer at the end: they are neither samples nor losses."""


class RpmDecided(TypedDict):
    """The algorithm's parameters and stages."""

    parameters: RpmParameterFacts
    small_url: str
    large_url: str
    upload_url: str
    tls_round_trips: Real
    """Round trips of a TLS handshake with this server."""
    loaded: list[RpmLoaded]


class RpmServerFacts(TypedDict):
    """The server."""

    host: str
    address: str
    port: Count


class RpmClientFacts(TypedDict):
    """The host that measured."""

    version: str


@final
class RpmFacts(AnyFacts):
    """The facts of a measurement of responsiveness."""

    server: RpmServerFacts
    client: RpmClientFacts
    rpm: RpmDecided


class ImportedServer(TypedDict):
    """The server. A value that the file lacks is empty."""

    host: str
    address: str


@final
class ImportedFacts(AnyFacts):
    """The facts of an imported file."""

    server: ImportedServer
    one_host: NotRequired[bool]
    """Whether all probes go to one host, by different protocols: such probes don't locate a
    queue."""


if TYPE_CHECKING:
    MeasurementFacts: TypeAlias = SessionFacts | RpmFacts | ImportedFacts
    """The facts of any measurement. Text from a server or a file has no control characters."""
else:
    MeasurementFacts = shapes.one_of(SessionFacts, RpmFacts, ImportedFacts)


def read(value: MeasurementFacts, place: str) -> MeasurementFacts:
    """Checks an object against the shape that its keys identify.

    Raises:
        ValueError: it does not fit. The sentence begins with the place.
    """
    if "rpm" in value:
        return shapes.read(RpmFacts, value, place)
    if "clock" in value:
        return shapes.read(SessionFacts, value, place)
    return shapes.read(ImportedFacts, value, place)
