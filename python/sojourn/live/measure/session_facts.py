"""The shape of `Session.facts`: what a session returns beside its tables. crates/live makes it
(session/result.rs)."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict


class SessionPhase(TypedDict):
    """A phase that began. Between two phases the load drains; that time belongs to neither."""

    name: str
    """Its kind, with a number where a loaded kind occurs twice ("download 2"); both idles are
    "idle"."""
    kind: str
    start_ns: int
    end_ns: int
    complete: bool


class SessionFlow(TypedDict):
    """A TCP connection or a probe."""

    name: str
    """"download-1", "both-up-1"; a probe's own name."""
    kind: Literal["bulk", "ping"]
    direction: Literal["", "down", "up"]
    """Of a connection."""
    phase: int | None
    """Its number in `phases`; None: a probe."""
    group: int
    """A number for each phase and direction, and for each probe."""
    congestion: str | None
    """None: a probe."""


class ProbedPhase(TypedDict):
    """Requests of a probe, by the phase in which they were sent."""

    phase: int | None
    sent: int
    lost: int
    lost_forward: int | None
    lost_backward: int | None


class SessionProbe(TypedDict):
    """A probe."""

    name: str
    """The name of its flow."""
    how: str
    address: str
    socket: str
    """"unprivileged", "raw" or "udp"."""
    sent: int
    received: int
    lost: int
    late: int
    """Replies after probe_timeout_ns."""
    duplicate: int
    missed: int
    """Slots in which nothing was sent because this host stood still."""
    reasons: dict[str, int]
    """Why requests were lost, and how many."""
    lost_forward: int | None
    """Requests of a udp probe that the server did not receive; None: not known."""
    lost_backward: int | None
    phases: list[ProbedPhase]


class SessionLink(TypedDict):
    """A direction of an interface."""

    name: str
    interface: str
    direction: Literal["out", "in"]
    """"out": what the interface sends; "in": what it receives."""
    qdisc: str
    """The kinds from the root down, such as "htb, bfifo"; "" for "in"."""


class PhaseGoodput(TypedDict):
    """What the receivers got between start_ns and end_ns of a phase."""

    phase: int
    direction: Literal["down", "up"]
    bytes: int
    bps: int


class SessionClock(TypedDict):
    """The server's clock less ours at t = 0."""

    offset_ns: float | None
    drift_ppm: float | None
    """How fast it gains on ours."""
    error_ns: float | None
    """Bound of the offset's error: half the least RTT, plus the samples' scatter."""
    by: Literal["udp", "control", ""]
    """"": not known; the server's samples could not be converted to our clock and are left out."""
    samples: int
    stepped_ns: float
    """How far our time of day was stepped or slewed meanwhile. No time in the tables is
    affected."""


class Lateness(TypedDict):
    """How long after their slots requests were sent, ns."""

    sends: int
    p50: int
    p90: int
    p99: int
    max: int
    priority: Literal["realtime", "raised", "normal"]


class SessionFacts(TypedDict):
    """What a session returns beside its tables."""

    format: int
    outcome: Literal["complete", "interrupted", "partial"]
    """Interrupted: by Ctrl-C, or by the progress function."""
    why: str
    """A sentence; "" if complete."""
    notes: list[str]
    """What could not be measured or is unusual, a sentence each."""
    zero_ns: int
    """The time of day at t = 0, since 1970."""
    duration_ns: int
    """t at the end."""
    phases: list[SessionPhase]
    """In order."""
    flows: list[SessionFlow]
    probes: list[SessionProbe]
    links: list[SessionLink]
    goodput: list[PhaseGoodput]
    clock: SessionClock
    lateness_ns: Lateness
    load: dict[str, Any]
    """streams, congestion {asked, client, server}: as asked."""
    server: dict[str, Any]
    """host, address, port, version, kernel, caps"""
    client: dict[str, Any]
    """address, interface, gateway, version, kernel"""
