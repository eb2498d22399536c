"""User-defined queue disciplines and congestion controls: a class in a file of Python. Numba
compiles it, and the simulator calls it for each packet, or each ACK. The tutorial is docs/own.md.

```
from sojourn.own import DROP, MS, PASS, Discipline, Link, Packet

class Mine(Discipline):
    target: int = 5 * MS

    def dequeue(self, packet: Packet, link: Link) -> int:
        return DROP if packet.sojourn > self.target else PASS
```

`sojourn run FILE -q mine.py:Mine` runs it, and `congestion = "mine.py:Mine"` of a flow a congestion
control. A class may use a small part of Python (`language`); anything else is refused with its line.
`compiled` compiles it.
"""

from __future__ import annotations

__all__ = [
    "DROP",
    "MARK",
    "MS",
    "PASS",
    "US",
    "Ack",
    "Congestion",
    "CongestionControl",
    "Delivery",
    "Discipline",
    "Link",
    "Packet",
    "S",
]

PASS = 0
"""The packet passes."""
DROP = -1
"""The packet is dropped."""
MARK = 1 << 32
"""The packet is marked, or dropped if it is not ECN-capable. `enqueue` adds the number of a
queue."""

US = 1_000
"""ns."""
MS = 1_000_000
"""ns."""
S = 1_000_000_000
"""ns."""


class Packet:
    """The packet that a method decides on."""

    bytes: int
    """Length of the IP packet and the link's header."""
    flow: int
    """The number of its flow."""
    hash: int
    """32 bits, equal for the packets of a connection and nearly random otherwise."""
    ecn: int
    """1: it is ECN-capable."""
    ce: int
    """1: it is already marked (CE)."""
    dscp: int
    """Its codepoint."""
    enqueued: int
    """When it was enqueued, ns."""
    sojourn: int
    """How long it has waited, ns."""


class Link:
    """The link and its queues. Their counts do not include the packet that `enqueue` or `dequeue`
    decides on."""

    now: int
    """ns."""
    packets: int
    bytes: int
    mtu: int
    """Size of the largest packet, bytes."""
    rate: int
    """bit/s; 0: unlimited."""
    queue_packets: list[int]
    """Packets in each queue."""
    queue_bytes: list[int]


class Discipline:
    """The base class of a user-defined discipline. Its numbers are fields, annotated as `int`,
    `float`, `bool`, `list[int]` or `list[float]`, each with its first value. A scenario may set the
    fields that are single numbers: `mine.py:Mine target 10ms`. All methods are optional."""

    queues: int = 1
    """FIFO queues, which the engine keeps."""
    limit: int = 1000
    """Packets in all of them."""
    timer_start: int = 0
    """Time of the first call of `timer`, ns."""
    bypass: bool = False
    """At the root of a device, a packet that finds the queue empty bypasses it, as with Linux's
    codel: the class does not see that packet."""

    def enqueue(self, packet: Packet, link: Link) -> int:
        """A packet arrives: returns the number of its queue, plus `MARK` to mark it, or `DROP`."""
        return 0

    def overflow(self, link: Link) -> int:
        """More than `limit` packets wait: returns the queue that drops its oldest packet. Without
        this method, a packet that arrives while `limit` packets wait is dropped, and `enqueue` is
        not called."""
        raise NotImplementedError

    def choose(self, link: Link) -> int:
        """The transmitter is free: returns the queue to serve, one that has packets. A class with
        several queues needs this method."""
        raise NotImplementedError

    def dequeue(self, packet: Packet, link: Link) -> int:
        """The packet is at the head of the queue: returns `PASS`, `MARK` or `DROP`; after a drop,
        `choose` and `dequeue` are called again."""
        return PASS

    def idle(self, link: Link) -> None:
        """The transmitter is free and nothing waits; called once."""

    def timer(self, link: Link) -> int:
        """The requested time has come: returns the time of the next call, ns, later than now."""
        raise NotImplementedError

    def random(self) -> float:
        """A number from 0 to below 1, from the link's own random stream: the same seed gives the
        same numbers."""
        raise NotImplementedError


class Ack:
    """An ACK of new data."""

    now: int
    """ns."""
    acked: int
    """Segments that it newly acknowledges, cumulatively or by SACK."""
    rtt: int
    """The RTT that it measured, ns; 0: none."""
    srtt: int
    """Smoothed RTT (RFC 6298), ns; 0: none yet."""
    una: int
    """The first segment not acknowledged, after this ACK."""
    nxt: int
    """The next segment to be sent for the first time."""
    cwnd_limited: int
    """1: cwnd, not the application or the receiver, limits the sender. Only then may cwnd grow (RFC
    7661)."""
    open: int
    """1: no recovery, and no segment SACKed beyond a gap."""
    mss: int
    """Bytes of data in a segment."""


class Congestion:
    """A congestion signal; there is at most one in a window of data."""

    now: int
    """ns."""
    inflight: int
    """Segments outstanding."""
    mss: int
    """Bytes of data in a segment."""


class Delivery:
    """The delivery rate that an ACK shows. The measured segment is the last one sent of those that
    the ACK delivers (draft-cheng-iccrg-delivery-rate-estimation). 0 if there is no sample."""

    now: int
    """ns."""
    delivered: int
    """Segments delivered since the time just before the measured one was sent."""
    interval: int
    """The time in which they were sent, or the time in which they were acknowledged, whichever is
    longer, ns."""
    rate: int
    """`delivered` over `interval`, bits of data a second."""
    prior_delivered: int
    """Segments delivered in all when the measured one was sent. When this exceeds an earlier
    `total_delivered`, a round trip is over."""
    total_delivered: int
    """Segments delivered in all, including those of this ACK."""
    app_limited: int
    """1: the sender was short of data, so the path may deliver more."""
    acked: int
    """Segments that this ACK delivers."""
    losses: int
    """Segments that this ACK shows to be lost."""
    prior_inflight: int
    """Segments in flight before this ACK."""
    inflight: int
    """Segments in flight after this ACK."""
    rtt: int
    """The RTT that it measured, ns; 0: none."""
    repair: int
    """0: no recovery; 1: fast recovery; 2: after a timeout."""
    cwnd_limited: int
    """As in `Ack`."""
    mss: int
    """Bytes of data in a segment."""


class CongestionControl:
    """The base class of a user-defined congestion control. Its fields are like a discipline's. It
    sets `cwnd` and `ssthresh`, and may set `pacing_rate`. All methods are optional."""

    cwnd: float
    """Segments, at least 1. A scenario sets the first one: `tcp = { initial_window = 10 }`."""
    ssthresh: float
    """Segments; `math.inf` at first."""
    pacing_rate: int = 0
    """Bits of data a second; 0: not paced. A class with this field is paced."""

    def on_ack(self, ack: Ack) -> None:
        """An ACK of new data outside a recovery: cwnd may grow."""

    def on_loss(self, event: Congestion) -> None:
        """A loss was detected: sets ssthresh, to which the sender reduces cwnd. Without this
        method, ssthresh becomes half of cwnd, at least 2."""

    def on_ecn(self, event: Congestion) -> None:
        """An ECN echo; without this method it is handled like a loss."""

    def on_timeout(self, event: Congestion) -> None:
        """The retransmission timer expired: sets ssthresh. cwnd is 1 afterwards. Without this
        method it is handled like a loss."""

    def on_delivery(self, delivery: Delivery) -> None:
        """An ACK was processed, in a recovery too: sets cwnd, and pacing_rate. A class with this
        method sets cwnd itself, as BBR does: a loss does not reduce cwnd, and a timeout sets it to
        the segments in flight."""

    def random(self) -> float:
        """A number from 0 to below 1, from the connection's own random stream."""
        raise NotImplementedError
