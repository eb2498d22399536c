"""A measurement that another program made, and the Run that it becomes.

A reader returns `FileMeasurement`: streams with the bytes that they had delivered by then, and pings with
their RTTs. `tables` and `facts` are the tables and facts of a Run, whose engine is the program's
name. Values that the program does not give are null.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from sojourn.arrays import Columns, Floats, Tables
from sojourn.facts import ImportedFacts, SessionFlow, SessionPhase
from sojourn.formats.format import FileFormatError
from sojourn.records import NONE, Run, nothing
from sojourn.records.measurement import EMPTY, MeasurementSettings, add, create
from sojourn.sanitize import plain

Direction: TypeAlias = Literal["up", "down"]
S = 1e9
MOST_S, MOST_MS, MOST_BYTES, MOST_COUNT = 1e8, 1e7, 1e15, 1e15
"""No time, RTT, number of bytes or counter of a file is larger: 3 years, 3 hours, 1 PB."""
MOST_SERIES = 2000
IDLE = "idle"
LEAST_IDLE_S = 0.5
"""Time before or after the load that is shorter than this is not a phase."""


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
    """From or to the host under test, which is the client."""
    t: list[float] = field(default_factory=list)
    """Seconds since the measurement began. The first is where the stream began."""
    delivered: list[float] = field(default_factory=list)
    """Bytes from the beginning up to each time."""
    cwnd: list[float] = field(default_factory=list)
    """Bytes at each time; NaN or missing: not known. The same holds for the lists below."""
    srtt_ms: list[float] = field(default_factory=list)
    retransmits: list[float] = field(default_factory=list)
    """Segments retransmitted from the beginning up to each time."""
    congestion: str = "unknown"
    sent_packets: int | None = None
    """Datagrams of the whole stream."""
    lost_packets: int | None = None

    def add(
        self, start: float, end: float, size: float, *, cwnd: float = math.nan, srtt_ms: float = math.nan,
        retransmits: float = math.nan,
    ) -> None:  # fmt: skip
        """Adds an interval in which `size` bytes were delivered and `retransmits` segments sent
        again. A gap before it delivered nothing.

        Raises:
            FileFormatError: the interval is not one, or lies before the one before it.
        """
        checked(end, "the end of an interval", MOST_S, start)
        checked(size, "a number of bytes", MOST_BYTES)
        if not self.t:
            self._append(start, 0.0, math.nan, math.nan, 0.0)
        elif start < self.t[-1] - 0.05:
            raise FileFormatError(
                f"an interval of {self.name} begins before the one before it has ended"
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
            FileFormatError: a value can't be true.
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


@dataclass
class FileMeasurement:
    """What a file says of a line."""

    program: str
    """As the engine of the Run."""
    version: str
    """The program's; "": the file does not say."""
    test: str
    """What it did, as "TCP upload"."""
    host: str
    """Its server or target; "": the file does not say."""
    began_s: float | None
    """The time of day at t = 0, seconds since 1970; None: the file does not say."""
    streams: list[Stream] = field(default_factory=list)
    pings: list[Pings] = field(default_factory=list)
    phases: list[SessionPhase] = field(default_factory=list)
    """Empty: those that the streams make (`_phases`)."""
    notes: list[str] = field(default_factory=list)
    """What a reader of the Run must know: what was left out or is not exact, a sentence each."""

    def run(self, path: Path, data: bytes, settings: MeasurementSettings | None = None) -> Run:
        """The Run of this measurement. `path` and `data`: the file that it was read from.

        Raises:
            UserError: the folder of `settings` is not empty, and not a Run that may be replaced.
            FileFormatError: the measurement is empty.
        """
        self._check()
        began = time.gmtime(path.stat().st_mtime if self.began_s is None else self.began_s)
        title = f"{self.program} {self.test}" + (f" to {self.host}" if self.host else "")
        asked = [
            ("file", path.name),
            ("program", self.program),
            ("version", self.version),
            ("test", self.test),
            ("host", self.host),
            ("began", time.strftime("%Y-%m-%dT%H:%M:%SZ", began)),
        ]
        when = time.strftime("%Y-%m-%d %H:%M", began)
        fingerprint = hashlib.sha256(data).hexdigest()[:16]
        settings = settings or MeasurementSettings()
        run = create(
            f"{title}, {when} UTC", self.version, asked, settings, fingerprint, engine=self.program
        )
        add(run, 1, self.tables(), self.facts(path))
        return run

    def _check(self) -> None:
        if len(self.streams) + len(self.pings) > MOST_SERIES:
            raise FileFormatError(f"it has more than {MOST_SERIES} streams and targets")
        self.streams = [stream for stream in self.streams if len(stream.t) > 1]
        self.pings = [pings for pings in self.pings if pings.sent]
        if not self.streams and not self.pings:
            raise FileFormatError("it has neither a ping nor an interval of a stream")

    def duration_s(self) -> float:
        """When the last stream or probe ended."""
        ends = [stream.t[-1] for stream in self.streams]
        ends += [
            ping.t + (0 if math.isnan(ping.rtt_ms) else ping.rtt_ms / 1e3)
            for pings in self.pings
            for ping in pings.sent
        ]
        return max(ends, default=0.0)

    def tables(self) -> Tables:
        """The tables of a Run."""
        streams = _on_common_times(self.streams)
        tables: Tables = {
            **{name: nothing(name) for name in (*EMPTY, "queue", "links")},
            "engine": nothing("engine", 1),
            "flow": _flow_table(streams),
            "probe": _probe_table(self.pings, len(streams)),
        }
        return tables | {"flows": _totals(streams, self.pings)}

    def facts(self, path: Path) -> ImportedFacts:
        """The facts of a Run."""
        notes = [f"Taken of {path.name}: {self._taken()}.", *self.notes]
        if self.began_s is None:
            notes.append("The file does not say when it began: its own time is shown.")
        unknown = [pings.name for pings in self.pings if not pings.losses_known]
        if unknown:
            notes.append(f"Lost probes of {', '.join(unknown[:8])} are not known.")
        began = path.stat().st_mtime if self.began_s is None else self.began_s
        end_s = self.duration_s()
        return {
            "format": 1,
            "outcome": "complete",
            "why": "",
            "notes": notes,
            "zero_ns": round(began * 1e6) * 1000,
            "duration_ns": int(end_s * S),
            "phases": self.phases or _phases(self.streams, end_s),
            "flows": _flows(self.streams, self.pings),
            "links": [],
            "server": {"host": self.host, "address": ""},
        }

    def _taken(self) -> str:
        ways = [stream.direction for stream in self.streams]
        parts = [
            _counted(ways.count("down"), "stream down", "streams down"),
            _counted(ways.count("up"), "stream up", "streams up"),
            _counted(sum(len(pings.sent) for pings in self.pings), "probe", "probes")
            + (f" to {_counted(len(self.pings), 'target', 'targets')}" if self.pings else ""),
        ]
        return ", ".join(filter(None, parts))


def _counted(count: int, one: str, more: str) -> str:
    return f"{count} {one if count == 1 else more}" if count else ""


def _phases(streams: Sequence[Stream], end_s: float) -> list[SessionPhase]:
    """The load, from the first stream's beginning to the last one's end, with an idle phase before
    and after it. Without streams all is idle."""
    spans: list[tuple[str, float, float]] = [(IDLE, 0.0, end_s)]
    if streams:
        ways = {stream.direction for stream in streams}
        kind = "both" if len(ways) > 1 else {"up": "upload", "down": "download"}[ways.pop()]
        start = min(stream.t[0] for stream in streams)
        end = max(stream.t[-1] for stream in streams)
        spans = [(IDLE, 0.0, start), (kind, start, end), (IDLE, end, end_s)]
    return [
        {"name": name, "kind": name, "start_ns": round(a * S), "end_ns": round(b * S), "complete": True}
        for name, a, b in spans
        if b > a and (name != IDLE or b - a >= LEAST_IDLE_S or len(spans) == 1)
    ]  # fmt: skip


def _flows(streams: Sequence[Stream], pings: Sequence[Pings]) -> list[SessionFlow]:
    names = unique_names([*(each.name for each in streams), *(each.name for each in pings)])
    flows: list[SessionFlow] = []
    for number, (stream, name) in enumerate(zip(streams, names, strict=False)):
        flows.append(
            {
                "name": name, "kind": "bulk", "direction": stream.direction, "phase": None, "group": number,
                "congestion": stream.congestion,
            }
        )  # fmt: skip
    for number, name in enumerate(names[len(streams) :], len(streams)):
        flows.append(
            {
                "name": name,
                "kind": "ping",
                "direction": "",
                "phase": None,
                "group": number,
                "congestion": None,
            }
        )
    return flows


def unique_names(names: Iterable[str]) -> list[str]:
    """Names without control characters, and none twice: a second "a" becomes "a 2"."""
    unique: list[str] = []
    used: set[str] = set()
    for name in map(plain, names):
        candidates = itertools.chain(
            [name or "unnamed"], (f"{name} {n}" for n in itertools.count(2))
        )
        unique.append(next(each for each in candidates if each not in used))
        used.add(unique[-1])
    return unique


@dataclass(frozen=True)
class _Curve:
    """A stream at times that all streams share."""

    stream: Stream
    t: Floats
    delivered: Floats


def _on_common_times(streams: Sequence[Stream]) -> list[_Curve]:
    """Each stream at the times of all streams between its own first and last one, so that their
    goodputs can be added. Between two of its own times a stream delivers at a steady rate."""
    if not streams:
        return []
    every = np.unique(np.concatenate([np.round(stream.t, 3) for stream in streams]))
    curves = []
    for stream in streams:
        t, delivered = np.asarray(stream.t), np.asarray(stream.delivered)
        own = every[(every >= round(t[0], 3)) & (every <= round(t[-1], 3))]
        curves.append(_Curve(stream, own, np.interp(own, t, delivered)))
    return curves


def _latest(curve: _Curve, values: Sequence[float]) -> Floats:
    """A state of the sender at each time of the curve: the latest one known by then."""
    known = np.full(len(curve.stream.t), np.nan)
    known[: len(values)] = values
    at = np.flatnonzero(np.isfinite(known))
    if not at.size:
        return np.full(curve.t.size, np.nan)
    own = np.asarray(curve.stream.t)[at]
    last = np.searchsorted(own, curve.t + 5e-4, side="right") - 1
    return np.where(last >= 0, known[at][np.maximum(last, 0)], np.nan)


def _flow_table(curves: Sequence[_Curve]) -> Columns:
    names = ("t_ns", "flow", "cwnd_bytes", "srtt_ns", "delivered_bytes", "retransmits")
    rows = [
        np.column_stack(
            (
                curve.t * S,
                np.full(curve.t.size, number),
                _latest(curve, curve.stream.cwnd),
                _latest(curve, curve.stream.srtt_ms) * 1e6,
                curve.delivered,
                _latest(curve, curve.stream.retransmits),
            )
        )
        for number, curve in enumerate(curves)
    ]
    return table("flow", names, np.concatenate(rows) if rows else [])


def _probe_table(targets: Sequence[Pings], first: int) -> Columns:
    rows = [
        (ping.t * S, number, ping.seq, ping.rtt_ms * 1e6, ping.forward_ms * 1e6)
        for number, pings in enumerate(targets, first)
        for ping in sorted(pings.sent, key=lambda ping: (ping.t, ping.seq))
    ]
    return table("probe", ("t_ns", "probe", "seq", "rtt_ns", "forward_ns"), rows)


def table(name: str, columns: Sequence[str], rows: Sequence[Sequence[float]] | Floats) -> Columns:
    """A table of these columns, rounded to whole numbers, NaN as null. Its other columns are
    null."""
    made = nothing(name, len(rows))
    if len(rows):
        for column, values in zip(columns, np.asarray(rows, dtype=np.float64).T, strict=True):
            made[column] = np.round(np.where(np.isnan(values), NONE, values)).astype(np.int64)
    return made


def _totals(curves: Sequence[_Curve], targets: Sequence[Pings]) -> Columns:
    """The totals of each stream and of each target."""
    count = len(curves) + len(targets)
    totals = nothing("flows", count) | {"flow": np.arange(count)}
    for i, curve in enumerate(curves):
        stream = curve.stream
        totals["delivered_bytes"][i] = round(stream.delivered[-1])
        if math.isfinite(stream.retransmits[-1]):
            totals["retransmits"][i] = round(stream.retransmits[-1])
        if stream.sent_packets is not None:
            totals["sent_packets"][i] = stream.sent_packets
        if stream.lost_packets is not None:
            totals["lost_packets"][i] = stream.lost_packets
    for i, pings in enumerate(targets, len(curves)):
        rtts = [ping.rtt_ms for ping in pings.sent if not math.isnan(ping.rtt_ms)]
        totals["received_packets"][i] = len(rtts)
        if pings.losses_known:
            totals["sent_packets"][i] = len(pings.sent)
            totals["lost_packets"][i] = len(pings.sent) - len(rtts)
        if rtts:
            totals["base_rtt_ns"][i] = round(min(rtts) * 1e6)
    return totals
