"""What a session says beside its tables: the shape of `Session.facts`, made by crates/live
(session/result.rs)."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict


class SessionPhase(TypedDict):
    """A phase that began. Between two phases the load drains, which belongs to neither."""

    name: str
    """Its kind, numbered where a loaded kind comes twice ("download 2"); both idles are "idle"."""
    kind: str
    start_ns: int
    end_ns: int
    complete: bool


class SessionFlow(TypedDict):
    """A TCP connection or a probe."""

    name: str
    """"download-1", "both-up-1"; of a probe its own."""
    kind: Literal["bulk", "ping"]
    direction: Literal["", "down", "up"]
    """Of a connection."""
    phase: int | None
    """Its number in `phases`; None: a probe."""
    group: int
    """One for each phase and direction, and for each probe."""
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
    """That of its flow."""
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
    """Slots in which nothing was sent, since this host stood still."""
    reasons: dict[str, int]
    """Why requests were lost, and how many."""
    lost_forward: int | None
    """Of probes by udp, by what the server heard; None: not known."""
    lost_backward: int | None
    phases: list[ProbedPhase]


class SessionLink(TypedDict):
    """A direction of an interface."""

    name: str
    interface: str
    direction: Literal["out", "in"]
    """What the interface sends, or receives."""
    qdisc: str
    """The kinds from the root down, as "htb, bfifo"; "" for "in"."""


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
    """How fast it gains."""
    error_ns: float | None
    """How far off the offset may be: half the least RTT and what the samples scatter."""
    by: Literal["udp", "control", ""]
    """"": not known; the server's samples could not be placed, and are left out."""
    samples: int
    stepped_ns: float
    """How far our time of day was stepped or slewed meanwhile; no time in the tables follows it."""


class Lateness(TypedDict):
    """How long after their slots requests were sent, ns."""

    sends: int
    p50: int
    p90: int
    p99: int
    max: int
    priority: Literal["realtime", "raised", "normal"]


class SessionFacts(TypedDict):
    """What a session says beside its tables."""

    format: int
    outcome: Literal["complete", "interrupted", "partial"]
    """Interrupted: by Ctrl-C, or since the progress function said so."""
    why: str
    """A sentence; "" if complete."""
    notes: list[str]
    """On what could not be measured or is not as it should be, a sentence each."""
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
