"""What a measurement says beside its tables, a seed at a time: the shape of `Meta.facts`.

Three kinds of measurement bring facts: a session with our server (`SessionFacts`, made by
crates/live in session/facts.rs), one of responsiveness (`RpmFacts`, crates/rpm in facts.rs), and a
file of flent's (`ImportedFacts`). `"rpm" in facts` and `"clock" in facts` tell them apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, TypeAlias, final

from msgspec import Meta
from typing_extensions import TypedDict

from sojourn import shapes
from sojourn.shapes import Count, Real, Whole

SessionOutcome: TypeAlias = Literal["complete", "interrupted", "partial"]
"""Interrupted: by Ctrl-C, or since the progress function said so."""


class SessionPhase(TypedDict):
    """A phase that began. Between two phases the load drains, which belongs to neither."""

    name: str
    """Its kind, numbered where a loaded kind comes twice ("download 2"); both idles are "idle"."""
    kind: str
    start_ns: Count
    end_ns: Count
    complete: bool


class SessionFlow(TypedDict):
    """A TCP connection or a probe."""

    name: str
    """"download-1", "both-up-1"; of a probe its own."""
    kind: Literal["bulk", "ping"]
    direction: Literal["", "down", "up"]
    """Of a connection."""
    phase: Count | None
    """Its number in `phases`; null: a probe."""
    group: Count
    """One for each phase and direction, and for each probe."""
    congestion: str | None
    """Null: a probe; empty: not known."""


class SessionLink(TypedDict):
    """A direction of an interface."""

    name: str
    interface: str
    direction: Literal["out", "in"]
    """What the interface sends, or receives."""
    qdisc: str
    """The kinds from the root down, as "htb, bfifo"; "" for "in"."""


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
    """That of its flow."""
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
    """Slots in which nothing was sent, since this host stood still."""
    reasons: dict[str, Count]
    """Why requests were lost, and how many."""
    lost_forward: Count | None
    """Of probes by udp, by what the server heard; null: not known."""
    lost_backward: Count | None
    phases: list[ProbedPhase]


class PhaseGoodput(TypedDict):
    """What the receivers got between start_ns and end_ns of a phase."""

    phase: Count
    direction: Literal["down", "up"]
    bytes: Whole
    bps: Whole


class SessionClock(TypedDict):
    """The server's clock less ours at t = 0."""

    offset_ns: Real | None
    drift_ppm: Real | None
    """How fast it gains."""
    error_ns: Real | None
    """How far off the offset may be: half the least RTT and what the samples scatter."""
    by: Literal["udp", "control", ""]
    """"": not known; the server's samples could not be placed, and are left out."""
    samples: Count
    stepped_ns: Real
    """How far our time of day was stepped or slewed meanwhile; no time in the tables follows it."""


class Lateness(TypedDict):
    """How long after their slots requests were sent, ns."""

    sends: Count
    p50: Real
    p90: Real
    p99: Real
    max: Real
    priority: Literal["realtime", "raised", "normal"]


class UsedCongestion(TypedDict):
    """Congestion controls of a session."""

    asked: str | None
    """Null: each host's own."""
    client: str
    server: str


class SessionLoad(TypedDict):
    """How the load was made."""

    streams: Count
    congestion: UsedCongestion
    dscp: NotRequired[Count]
    """The codepoint of streams and probes."""


class ServerCaps(TypedDict, total=False):
    """The most that a server's clients may ask for."""

    seconds: Count
    """Of load of one source in an hour."""
    bytes: Count
    """Of one source in an hour."""
    streams: Count
    """Of one load."""
    clients: Count
    """At once."""


class SessionServer(TypedDict):
    """Who answered."""

    host: str
    """As it was asked for."""
    address: str
    port: Count
    version: str
    kernel: str
    caps: ServerCaps


class SessionClient(TypedDict):
    """Who measured."""

    address: str | None
    interface: str | None
    """On the way to the server."""
    gateway: str | None
    version: str
    kernel: str


class ArrivedMarks(TypedDict):
    """Datagrams that came with a DS field."""

    ds: Count
    """The byte: DSCP above, ECN below."""
    count: Count


class MarkedPath(TypedDict):
    """What became of a DS field one way, without load."""

    direction: Literal["down", "up"]
    ds: Count
    """As it was sent."""
    sent: Count
    arrived: list[ArrivedMarks]


class MarkedLoad(TypedDict):
    """What became of ECN-capable datagrams in a phase."""

    phase: Count
    direction: Literal["down", "up"]
    ds: Count
    sent: Count
    arrived: list[ArrivedMarks]


class MarkedTcp(TypedDict):
    """What ECN told the senders of a load."""

    phase: Count
    direction: Literal["down", "up"]
    streams: Count
    ecn: Count
    """Those that agreed on ECN."""
    delivered: Count
    """Segments of all streams."""
    marked: Count
    """Those acknowledged with ECE."""


class SessionMarks(TypedDict):
    """What became of ECN and DSCP."""

    answered: bool
    """Whether the server answered any of these requests."""
    dscp: Count
    """Of the requests of `loads`."""
    path: list[MarkedPath]
    loads: list[MarkedLoad]
    tcp: list[MarkedTcp]


class AnyFacts(TypedDict):
    """Of any measurement."""

    format: Count
    outcome: SessionOutcome
    why: str
    """A sentence; "" if complete."""
    notes: list[str]
    """On what could not be measured or is not as it should be, a sentence each."""
    zero_ns: Count
    """The time of day at t = 0, ns since 1970."""
    duration_ns: Count
    """t at the end."""
    phases: list[SessionPhase]
    """In order."""
    flows: list[SessionFlow]
    links: list[SessionLink]
    """None where no interface is watched."""


@final
class SessionFacts(AnyFacts):
    """Of a session with our server."""

    probes: list[SessionProbe]
    goodput: list[PhaseGoodput]
    clock: SessionClock
    lateness_ns: Lateness
    load: SessionLoad
    server: SessionServer
    client: SessionClient
    marks: NotRequired[SessionMarks | None]
    """Null: it was not asked for."""


class RpmParameterFacts(TypedDict):
    """The draft's parameters under the draft's names."""

    mad: Count
    id_ns: Count
    tmp: Annotated[float, Meta(ge=1e-9, le=1)]
    """The share of the samples, the best, that a trimmed mean is of."""
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
    """That carried load at its end."""
    goodput_bps: list[Real]
    """In it, by direction."""
    moving_average_bps: list[Real]
    responsiveness: Real | None
    """Over the last MAD intervals; null: too few samples."""


RpmConfidence: TypeAlias = Literal["low", "medium", "high"]


class RpmLoaded(TypedDict):
    """A stage: what was measured under load in one direction or several."""

    directions: list[Literal["download", "upload"]]
    start_ns: Count
    end_ns: Count
    window_start_ns: Count
    """From when on a probe's answer counts for the result."""
    window_end_ns: Count
    intervals: list[RpmInterval]
    goodput_confidence: RpmConfidence
    responsiveness_confidence: RpmConfidence
    unanswered: Count
    """Probes under way at the end: they are no samples, and no losses either."""


class RpmDecided(TypedDict):
    """What the algorithm did."""

    parameters: RpmParameterFacts
    small_url: str
    large_url: str
    upload_url: str
    tls_round_trips: Real
    """Of a TLS handshake with this server."""
    loaded: list[RpmLoaded]


class RpmServerFacts(TypedDict):
    """Who answered."""

    host: str
    address: str
    port: Count


class RpmClientFacts(TypedDict):
    """Who measured."""

    version: str


@final
class RpmFacts(AnyFacts):
    """Of a measurement of responsiveness."""

    server: RpmServerFacts
    client: RpmClientFacts
    rpm: RpmDecided


class ImportedServer(TypedDict):
    """Who answered, as far as the file says."""

    host: str
    address: str


@final
class ImportedFacts(AnyFacts):
    """Of a file of flent's."""

    server: ImportedServer


if TYPE_CHECKING:
    MeasurementFacts: TypeAlias = SessionFacts | RpmFacts | ImportedFacts
    """Of any measurement. What a server or a file says in them has no control characters."""
else:
    MeasurementFacts = shapes.one_of(SessionFacts, RpmFacts, ImportedFacts)


def read(value: MeasurementFacts, place: str) -> MeasurementFacts:
    """What an object says, if it has the shape that its keys tell.

    Raises:
        ValueError: it has not. The sentence begins with the place.
    """
    if "rpm" in value:
        return shapes.read(RpmFacts, value, place)
    if "clock" in value:
        return shapes.read(SessionFacts, value, place)
    return shapes.read(ImportedFacts, value, place)
