"""A queue discipline of one's own: a class in a file of Python, which numba compiles and the simulator
asks about each packet. docs/own.md is the tutorial.

```
from sojourn.own import DROP, MS, PASS, Discipline, Link, Packet

class Mine(Discipline):
    target: int = 5 * MS

    def dequeue(self, packet: Packet, link: Link) -> int:
        return DROP if packet.sojourn > self.target else PASS
```

`sojourn run FILE -q mine.py:Mine` runs it. What a class may contain is a small part of Python
(`language`); what is beyond it is refused with its line. `compiled` compiles it.
"""

from __future__ import annotations

__all__ = ["DROP", "MARK", "MS", "PASS", "US", "Discipline", "Link", "Packet", "S"]

PASS = 0
"""The packet goes on."""
DROP = -1
"""The packet is dropped."""
MARK = 1 << 32
"""The packet is marked, or dropped where it is not ECN-capable. `enqueue` adds the number of a
queue."""

US = 1_000
"""ns."""
MS = 1_000_000
"""ns."""
S = 1_000_000_000
"""ns."""


class Packet:
    """The packet at hand."""

    bytes: int
    """The IP packet and the link's header."""
    flow: int
    """The number of its flow."""
    hash: int
    """32 bits, equal for the packets of a connection and all but random otherwise."""
    ecn: int
    """1: it may be marked."""
    ce: int
    """1: it carries CE already."""
    dscp: int
    """Its codepoint."""
    enqueued: int
    """When it was enqueued, ns."""
    sojourn: int
    """How long it has waited, ns."""


class Link:
    """The link and what waits at it. In `enqueue` the packet is not counted yet, in `dequeue` no
    more."""

    now: int
    """ns."""
    packets: int
    bytes: int
    mtu: int
    """Of the largest packet, bytes."""
    rate: int
    """bit/s; 0: unlimited."""
    queue_packets: list[int]
    """Of each queue."""
    queue_bytes: list[int]


class Discipline:
    """What a class of one's own begins from. Its numbers are its fields: annotated `int`, `float`,
    `bool`, `list[int]` or `list[float]`, each with its first value. A scenario may set those that
    are one number: `mine.py:Mine target 10ms`. None of the methods has to be written."""

    queues: int = 1
    """FIFO queues, which the engine keeps."""
    limit: int = 1000
    """Packets in all of them."""
    timer_start: int = 0
    """When `timer` is asked first, ns."""
    bypass: bool = False
    """At the root of a device a packet that finds the queue empty goes past it, as past Linux's codel:
    the class does not see that packet."""

    def enqueue(self, packet: Packet, link: Link) -> int:
        """A packet arrives: the number of its queue, `MARK` added to mark it, or `DROP`."""
        return 0

    def overflow(self, link: Link) -> int:
        """More than `limit` packets wait: the queue that loses its oldest. Without this method, what
        arrives at the limit is dropped, and `enqueue` is not asked."""
        raise NotImplementedError

    def choose(self, link: Link) -> int:
        """The transmitter is free: the queue to serve, one that has packets. A class with several
        queues has this method."""
        raise NotImplementedError

    def dequeue(self, packet: Packet, link: Link) -> int:
        """At the head of the queue is this packet: `PASS`, `MARK` or `DROP`; after a drop `choose` and
        `dequeue` are asked again."""
        return PASS

    def idle(self, link: Link) -> None:
        """The transmitter is free and nothing waits; told once."""

    def timer(self, link: Link) -> int:
        """It is the time that was asked for: the time of the next one, ns, later than now."""
        raise NotImplementedError

    def random(self) -> float:
        """A number from 0 to below 1, of the link's own random stream: the same seed gives the same
        numbers."""
        raise NotImplementedError
