"""The plan of a session and its result, as plain values that exist on any system."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.errors import UserError
from sojourn_live.defaults import PORT, USUAL_LOADS

if TYPE_CHECKING:
    from sojourn.arrays import Tables
    from sojourn.facts import SessionFacts

MS = 10**6
S = 10**9


class LiveError(UserError):
    """Nothing could be measured. `problem` names the cause and the place, `hint` the remedy."""


@dataclass(frozen=True)
class PlannedPhase:
    """A span of time with one kind of load."""

    kind: str
    """idle, download, upload or both."""
    duration_ns: int


@dataclass(frozen=True)
class ProbeTarget:
    """A target of probes."""

    how: str
    """icmp, or udp: our own echo, which only the server answers."""
    address: str = "server"
    """An address or a host's name; "server"; "gateway": the first router on the way to the server;
    "hop 2": the second, and so on up to 8."""
    name: str = ""
    """The probe's name; "": `how` and `address`."""


STANDARD = tuple(PlannedPhase(kind, (5 if kind == "idle" else 10) * S) for kind in USUAL_LOADS)
WHERE = (
    ProbeTarget("udp"),
    ProbeTarget("icmp"),
    ProbeTarget("icmp", "gateway"),
    ProbeTarget("icmp", "hop 2"),
)


@dataclass(frozen=True)
class SessionPlan:
    """The settings of a session. Times are in ns."""

    host: str
    """The host of `sojourn serve`: a name or an address."""
    port: int = PORT
    secret: str = dataclasses.field(default="", repr=False)
    """The secret that the server requires; "": none. The client proves that it has it and never
    sends it. No Run contains it."""
    family: int | None = None
    """4 or 6: IPv4 or IPv6 only; None: whichever answers."""
    streams: int = 4
    """TCP connections in each loaded direction."""
    congestion: str | None = None
    """Congestion control of both senders by the kernel's name; None: each host's default."""
    dscp: int = 0
    """The codepoint of streams and probes, both ways (RFC 2474)."""
    ecn: bool = False
    """Whether to test if ECN and DSCP survive the path, and if a queue marks."""
    phases: tuple[PlannedPhase, ...] = STANDARD
    targets: tuple[ProbeTarget, ...] = WHERE
    probe_interval_ns: int = 50 * MS
    """Time between two requests to a target."""
    probe_bytes: int = 64
    """Size of a request after the IP header (icmp) or the UDP header (udp)."""
    probe_timeout_ns: int = 3 * S
    """A request without a reply for this long is lost."""
    interface: str | None = None
    """The interface whose qdisc and counters are read; None: the interface of the route to the
    server; "": none."""
    sample_ns: int = 100 * MS
    """Time between two samples of the tables `flow` and `queue`."""
    patience_ns: int = 10 * S
    """A server that does not answer for this long counts as gone."""

    def to_json(self) -> str:
        """The JSON argument of `_live.measure`."""
        return json.dumps(dataclasses.asdict(self))


@dataclass(frozen=True)
class Session:
    """The result of a session, complete or up to its early end."""

    tables: Tables
    """Each table is a dict of equally long columns. Names, units, and -1 (NaN in reals) for none
    are as `records.TABLES` declares, so `records.Run.add_seed` takes them. The numbers in the
    columns `flow` and `probe` are indices of `facts["flows"]`, those of `link` of `facts["links"]`.
    Times are ns since the session began, on this host's monotonic clock; the server's times are
    converted to it.

        probe      a row per request, in order of t_ns within a probe. rtt_ns -1: lost. forward_ns:
                   for probes by udp alone: the delay from here to the server, never below 0. Only
                   its rise above the least one is accurate (see facts["clock"]). The way back is
                   rtt_ns - forward_ns. Requests still on the way when the session ended are left
                   out.
        flow       a row per TCP connection and sample_ns: delivered_bytes as its receiver counted
                   them, since the connection began. The other columns are its sender's TCP_INFO
                   nearest in time, -1 where there is none within sample_ns.
        flows      a row per entry of facts["flows"]: totals. For probes sent_packets,
                   received_packets and lost_packets count requests, replies and requests without a
                   reply; TCP's columns are 0, and bytes are not counted (-1). base_rtt_ns: the
                   least RTT seen (TCP: the kernel's min_rtt), -1 if none was.
        queue      a row per entry of facts["links"] and sample_ns: its root qdisc, which counts for
                   all below it. sojourn_mean_ns NaN, sojourn_max_ns -1: the kernel does not report
                   them. A link with direction "in" has its interface's counters only.
        links      a row per entry of facts["links"]: totals of the session. Values that the kernel
                   does not report (sojourn, busy_ns, capacity_bits) are -1.
        engine     one row: packets is the number of data segments delivered; events and
                   peak_entries are -1.
        drops, sojourn, rtt, transfers: without rows.
    """
    facts: SessionFacts
