"""The series of a measurement: streams and pings over time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sojourn.formats.format import FileFormatError
from sojourn.sanitize import plain

if TYPE_CHECKING:
    from sojourn.facts import Direction

S = 1e9
MOST_S, MOST_MS, MOST_BYTES, MOST_COUNT = 1e8, 1e7, 1e15, 1e15
"""The largest time, RTT and number of bytes (or other counter) of a file: 3 years, 3 hours, 1
PB."""


def counted(count: int, one: str, more: str) -> str:
    """`1 stream`, `2 streams`, and "" for none."""
    return f"{count} {one if count == 1 else more}" if count else ""


def unique_names(names: Iterable[str], between: str = " ") -> list[str]:
    """Names without control characters, and none twice: a second "a" becomes "a 2"."""
    unique: list[str] = []
    used: set[str] = set()
    for name in map(plain, names):
        candidates = itertools.chain(
            [name or "unnamed"], (f"{name}{between}{n}" for n in itertools.count(2))
        )
        unique.append(next(each for each in candidates if each not in used))
        used.add(unique[-1])
    return unique


def checked(value: float, what: str, most: float, least: float = 0.0) -> float:
    """A number of a file.

    Raises:
        FileFormatError: it is not between `least` and `most`.
    """
    number = float(value)
    if not least <= number <= most:
        raise FileFormatError(f"{what} of {number:g} is not between {least:g} and {most:g}")
    return number


@dataclass
class Stream:
    """A load in one direction: a TCP connection, or a stream of datagrams."""

    name: str
    direction: Direction
    """"up": from the client, which is the host under test; "down": to it."""
    t: list[float] = field(default_factory=list)
    """Seconds since the measurement began. The first is the beginning of the stream."""
    delivered: list[float] = field(default_factory=list)
    """Bytes from the beginning up to each time."""
    cwnd: list[float] = field(default_factory=list)
    """Bytes at each time; NaN or missing: not known. The same holds for the lists below."""
    srtt_ms: list[float] = field(default_factory=list)
    inflight: list[float] = field(default_factory=list)
    """Bytes that were sent and not acknowledged."""
    retransmits: list[float] = field(default_factory=list)
    """Segments retransmitted from the beginning up to each time."""
    congestion: str = "unknown"
    sent_packets: int | None = None
    """The datagrams of the whole stream; None: not known."""
    lost_packets: int | None = None

    def add(
        self, start: float, end: float, size: float, *, cwnd: float = math.nan, srtt_ms: float = math.nan,
        retransmits: float = math.nan,
    ) -> None:  # fmt: skip
        """Adds an interval in which `size` bytes were delivered and `retransmits` segments sent
        again. If there is a gap before it, nothing was delivered in the gap.

        Raises:
            FileFormatError: the interval ends before it begins, or overlaps the previous one.
        """
        checked(end, "the end of an interval", MOST_S, start)
        checked(size, "a number of bytes", MOST_BYTES)
        if not self.t:
            self._append(start, 0.0, math.nan, math.nan, 0.0)
        elif start < self.t[-1] - 0.05:
            raise FileFormatError(
                f"an interval of {self.name} begins before the previous one has ended"
            )
        elif start > self.t[-1] + 0.05:
            self._append(start, self.delivered[-1], math.nan, math.nan, self.retransmits[-1])
        self._append(
            max(end, self.t[-1]), self.delivered[-1] + size, cwnd, srtt_ms, self.retransmits[-1] + retransmits
        )  # fmt: skip

    def _append(
        self, t: float, delivered: float, cwnd: float, srtt_ms: float, retransmits: float
    ) -> None:
        self.t.append(t)
        self.delivered.append(delivered)
        self.cwnd.append(cwnd)
        self.srtt_ms.append(srtt_ms)
        self.retransmits.append(retransmits)


@dataclass(frozen=True)
class Ping:
    """A probe."""

    t: float
    """When it was sent, in seconds since the measurement began."""
    seq: int
    rtt_ms: float = math.nan
    """NaN: it was lost."""
    forward_ms: float = math.nan
    """The part of the RTT from the client to the target; NaN: not known."""


@dataclass
class Pings:
    """The probes of a target."""

    name: str
    sent: list[Ping] = field(default_factory=list)
    losses_known: bool = True
    """Whether lost probes are among them."""

    def add(
        self, t: float, seq: int, rtt_ms: float | None, forward_ms: float | None = None
    ) -> None:
        """Adds a probe; `rtt_ms` None: it was lost.

        Raises:
            FileFormatError: a value is out of bounds.
        """
        if rtt_ms is not None:
            checked(rtt_ms, "an RTT in ms", MOST_MS)
        if forward_ms is not None and not 0 <= forward_ms <= (
            MOST_MS if rtt_ms is None else rtt_ms
        ):
            forward_ms = None
        self.sent.append(
            Ping(
                checked(t, "a time", MOST_S, -MOST_S),
                int(checked(seq, "a sequence number", MOST_COUNT)),
                math.nan if rtt_ms is None else float(rtt_ms),
                math.nan if forward_ms is None else float(forward_ms),
            )
        )
