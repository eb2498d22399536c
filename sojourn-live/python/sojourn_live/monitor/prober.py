"""Monitors a line for days: stores probes at fixed times, and the traffic of the interface.

`_live.Prober` probes on its own thread, in Rust. About twice a second this file takes its samples,
converts their times to times of day, reads the counters of the interface that leads to the targets,
and commits. No step is urgent: the kernel has already stamped the replies.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import time
import urllib.parse
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sojourn import linux_only as linux_only
from sojourn.errors import UserError
from sojourn_live import _live
from sojourn_live.monitor import rtt_histogram
from sojourn_live.monitor.daytime import DayTime, Jump
from sojourn_live.monitor.store import Event, ProbeSamples, Store

S = 10**9
LATELY_NS = 60 * S
"""The span of "lately" on the terminal."""
EXPIRE_EVERY_NS = 60 * S
TIMEOUT = _live.LOSSES.index("no reply")


@dataclass(frozen=True)
class Aim:
    """A target, and how it is probed."""

    name: str
    """The target as the user wrote it."""
    address: str
    port: int | None = None
    """Port of a UDP echo; None: ICMP echo."""


def aim(written: str) -> Aim:
    """Parses a target: `192.0.2.1`, `example.net`, or `udp:HOST:PORT` for a UDP echo server.

    Raises UserError if it has another form or no address.
    """
    if "://" in written:
        host = urllib.parse.urlsplit(written).hostname
        raise UserError(
            f"{written!r} is a URL, not a host",
            f"write {host}" if host else "write a host's name or address",
        )
    if not written.startswith("udp:"):
        return Aim(written, _address(written, socket.SOCK_RAW))
    host, colon, port = written.removeprefix("udp:").rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UserError(
            f"{written!r} is not udp:HOST:PORT", "write a port from 1 to 65535: udp:192.0.2.1:7"
        )
    return Aim(written, _address(host, socket.SOCK_DGRAM), int(port))


def _address(host: str, kind: socket.SocketKind) -> str:
    try:
        found = socket.getaddrinfo(host, None, type=kind)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a host's name"
        raise UserError(
            f"can't find {host!r}: {reason}",
            "check the name and this host's DNS, or give an IP address",
        ) from None
    address = str(found[0][4][0]).partition("%")[0]
    parsed = ipaddress.ip_address(address)
    if parsed.version == 6 and parsed.is_link_local:
        raise UserError(
            f"{host!r} is a link-local address",
            "give another address of the host: link-local ones are not supported",
        )
    return address


@dataclass
class Watched:
    """Counts of one target since the start."""

    aim: Aim
    id: int
    sent: int = 0
    lost: int = 0
    sum_ns: int = 0
    rtt: rtt_histogram.RttHistogram = rtt_histogram.EMPTY
    why: str = ""
    """Why the latest lost probe was lost; "": none was."""
    lately: deque[tuple[int, int]] = field(default_factory=deque)
    """Probes of the last minute: when sent (ns, monotonic), RTT (ns; -1: lost)."""

    def take(
        self, sent_ns: NDArray[np.int64], rtt_ns: NDArray[np.int64], loss: NDArray[np.int64]
    ) -> None:
        """Counts probes."""
        back = rtt_ns[rtt_ns >= 0]
        self.sent += rtt_ns.size
        self.lost += rtt_ns.size - back.size
        self.sum_ns += int(back.sum())
        self.rtt = rtt_histogram.merged((self.rtt, rtt_histogram.of(back)))
        if (loss >= 0).any():
            self.why = _live.LOSSES[int(loss[loss >= 0][-1])]
        self.lately.extend(zip(sent_ns.tolist(), rtt_ns.tolist(), strict=True))

    def forget(self, before_ns: int) -> None:
        """Removes probes sent before this time from `lately`."""
        while self.lately and self.lately[0][0] < before_ns:
            self.lately.popleft()


class Monitor:
    """Probes, and stores the samples. Call `step` about twice a second and `close` at the end. The
    store stays open."""

    def __init__(
        self,
        store: Store,
        aims: Sequence[Aim],
        *,
        interval_ns: int,
        timeout_ns: int,
        interface: str | None = None,
        day: DayTime | None = None,
    ) -> None:
        """Starts probing. The traffic of `interface` is recorded; the default is the interface that
        leads to the first target.

        Raises UserError without the privilege to probe, or if there is no such interface.
        """
        self._store = store
        self._day = day or DayTime()
        self._interface = _Interface(store, interface, aims[0].address)
        try:
            self._prober = _live.Prober(
                [(each.address, each.port) for each in aims],
                interval_ns,
                timeout_ns,
                identifier=os.getpid() % 0xFFFF + 1,
            )
        except PermissionError as error:
            raise UserError(
                str(error),
                "as root, once: sysctl -w net.ipv4.ping_group_range='0 2147483647'; or probe by udp:HOST:PORT",
            ) from None
        except OSError as error:
            raise UserError(f"can't probe: {error}", "check the address") from None
        self.watched = [
            Watched(each, store.target(each.name, each.address, interval_ns)) for each in aims
        ]
        self._slept_until = 0
        self._second_of_slots = max(S // interval_ns, 1)
        self.missed = 0
        """The number of probes to all targets that were not sent because this host stood still."""
        self._expired_ns = self._day.monotonic_ns
        store.expire(self._day.now_ns / S, self._expired_ns / S)
        names = ", ".join(
            each.name if each.name == each.address else f"{each.name} ({each.address})"
            for each in aims
        )
        self._record("start", f"{names} every {interval_ns / 1e6:g} ms")

    @property
    def interface(self) -> str | None:
        """The interface whose traffic is recorded; None: there is no route to the first target."""
        return self._interface.name

    def step(self) -> None:
        """Stores the finished samples and the traffic, and commits."""
        jump = self._day.look()
        if jump is not None:
            self._record_jump(jump)
        self._take()
        self._interface.look(self._day, jumped=jump is not None)
        now = self._day.monotonic_ns
        self._store.commit()
        if now - self._expired_ns >= EXPIRE_EVERY_NS:
            self._expired_ns = now
            self._store.expire(self._day.now_ns / S, now / S)

    def close(self) -> None:
        """Ends probing and commits the finished samples. Probes still under way are not samples."""
        self._prober.stop()
        self._take()
        self._record("stop", "")
        self._store.commit()

    def totals(self) -> list[dict[str, int]]:
        """The totals of `_live.Prober.counts`."""
        return self._prober.counts()

    def _take(self) -> None:
        columns = self._prober.take()
        # A suspended machine receives no replies to probes that were on the way. The line did not
        # lose them.
        slept = (columns["loss"] == TIMEOUT) & (columns["sent_ns"] < self._slept_until)
        if slept.any():
            columns = {name: column[~slept] for name, column in columns.items()}
        if columns["target"].size:
            ids = np.array([watched.id for watched in self.watched], dtype=np.int64)
            self._store.add(
                ProbeSamples(
                    ids[columns["target"]],
                    self._day.of(columns["sent_ns"]),
                    columns["sequence"],
                    columns["rtt_ns"],
                    columns["loss"],
                    columns["lateness_ns"],
                )
            )
        for i, watched in enumerate(self.watched):
            own = columns["target"] == i
            if own.any():
                watched.take(*(columns[name][own] for name in ("sent_ns", "rtt_ns", "loss")))
            watched.forget(self._day.monotonic_ns - LATELY_NS)
        self._count_missed()

    def _count_missed(self) -> None:
        missed = sum(count["missed"] for count in self._prober.counts())
        more = missed - self.missed
        self.missed = missed
        # An event is recorded if at least as many probes are missing as one target gets in a
        # second.
        if more >= self._second_of_slots:
            self._record("stood still", f"this host stood still: {more} probes were not sent")

    def _record_jump(self, jump: Jump) -> None:
        if jump.slept_ns:
            self._slept_until = self._day.jumped_at
            self._record("suspended", f"this host was suspended for {jump.slept_ns / S:.1f} s")
        if jump.stepped_ns:
            self._record("step", f"the clock was stepped by {jump.stepped_ns / S:+.3f} s")

    def _record(self, kind: str, text: str) -> None:
        self._store.event(Event(self._day.now_ns, kind, text))


class _Interface:
    """The counters of the named interface, or of the one that leads to a target."""

    def __init__(self, store: Store, named: str | None, towards: str) -> None:
        self._store = store
        self._named = named
        self._towards = towards
        self._ids: dict[str, int] = {}
        self._second: int | None = None
        self._before: tuple[int, int, int, int] | None = None
        index = self._index()
        if index is None and named is not None:
            have = ", ".join(name for _, name in socket.if_nameindex())
            raise UserError(f"there is no interface {named!r}", f"interfaces here: {have}")
        self.name: str | None = socket.if_indextoname(index) if index is not None else None

    def _index(self) -> int | None:
        try:
            if self._named is not None:
                return socket.if_nametoindex(self._named)
            return _live.route_device(self._towards)
        except OSError:
            return None

    def look(self, day: DayTime, *, jumped: bool) -> None:
        """Reads the counters once in each new second, and stores the bytes since the previous
        reading."""
        if jumped:
            self._before = None
        second = day.now_ns // S
        if second == self._second:
            return
        self._second = second
        before, self._before = self._before, None
        try:
            index = self._index()
            if index is None:
                self.name = None
                return
            self.name = socket.if_indextoname(index)
            now = time.monotonic_ns()
            received, sent = _live.device_bytes(index)
        except OSError:
            return
        self._before = (index, now, received, sent)
        # The interface is another one, or it was created again and counts from 0.
        if before is None or before[0] != index or received < before[2] or sent < before[3]:
            return
        if self.name not in self._ids:
            self._ids[self.name] = self._store.interface(self.name)
        took = now - before[1]
        self._store.add_traffic(
            day.now_ns - took // 2,
            self._ids[self.name],
            received - before[2],
            sent - before[3],
            took,
        )
