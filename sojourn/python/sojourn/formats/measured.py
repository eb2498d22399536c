"""A measurement that another program made, and the Run that it becomes.

A reader returns `FileMeasurement`: streams with the bytes delivered by each time, and pings with
their RTTs. `tables` and `facts` make the tables and facts of a Run. The Run's engine is the name of
the program. Values that the program does not give are null.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sojourn.formats.file_series import Pings, S, Stream, counted
from sojourn.formats.format import FileFormatError

if TYPE_CHECKING:
    from sojourn.arrays import Tables
    from sojourn.facts import ImportedFacts, SessionPhase
    from sojourn.formats.content import Content
    from sojourn.records import Run
    from sojourn.records.measurement import MeasurementSettings

MOST_SERIES = 2000
IDLE = "idle"
LOST_S = 1e-6
"""The time that a lost probe takes."""
LEAST_IDLE_S = 0.5
"""Time before or after the load that is shorter than this is not a phase."""


@dataclass
class FileMeasurement:
    """A measurement of a line, read from a file."""

    program: str
    """Its name, which is also the engine of the Run."""
    version: str
    """The program's version; "": the file does not say."""
    test: str
    """The kind of test, as "TCP upload"."""
    host: str
    """The server or target of the test; "": the file does not say."""
    began_s: float | None
    """The time of day at t = 0, seconds since 1970; None: the file does not say."""
    streams: list[Stream] = field(default_factory=list)
    pings: list[Pings] = field(default_factory=list)
    phases: list[SessionPhase] = field(default_factory=list)
    """Empty: the times at which the streams send decide (`_phases`)."""
    one_host: bool = False
    """Whether all pings go to one host, by different protocols: such pings don't locate a queue."""
    notes: list[str] = field(default_factory=list)
    """A sentence for each part of the file that was left out or is not exact."""

    def run(self, content: Content, settings: MeasurementSettings | None = None) -> Run:
        """The Run of this measurement. `content`: the file that it was read from.

        Raises:
            UserError: the folder of `settings` is not empty, and not a Run that may be replaced.
            FileFormatError: the measurement is empty.
        """
        from sojourn.records.measurement import MeasurementSettings, add, create

        self._check()
        began = time.gmtime(self._began_s(content))
        title = f"{self.program} {self.test}" + (f" to {self.host}" if self.host else "")
        asked = [
            ("file", content.path.name),
            ("program", self.program),
            ("version", self.version),
            ("test", self.test),
            ("host", self.host),
            ("began", time.strftime("%Y-%m-%dT%H:%M:%SZ", began)),
        ]
        when = time.strftime("%Y-%m-%d %H:%M", began)
        fingerprint = hashlib.sha256(content.data).hexdigest()[:16]
        settings = settings or MeasurementSettings()
        run = create(
            f"{title}, {when} UTC", self.version, asked, settings, fingerprint, engine=self.program
        )
        add(run, 1, self.tables(), self.facts(content))
        return run

    def _began_s(self, content: Content) -> float:
        return content.modified() if self.began_s is None else self.began_s

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
            # A lost probe at the end is within the last phase.
            ping.t + (LOST_S if math.isnan(ping.rtt_ms) else ping.rtt_ms / 1e3)
            for pings in self.pings
            for ping in pings.sent
        ]
        return max(ends, default=0.0)

    def tables(self) -> Tables:
        """The tables of a Run."""
        from sojourn.formats.run_tables import tables

        return tables(self.streams, self.pings)

    def facts(self, content: Content) -> ImportedFacts:
        """The facts of a Run."""
        from sojourn.formats.run_tables import session_flows

        notes = [f"Read from {content.path.name}: {self._taken()}.", *self.notes]
        if self.began_s is None:
            notes.append(
                "The file does not say when the test began: the time of the file's last change is shown."
            )
        unknown = [pings.name for pings in self.pings if not pings.losses_known]
        if unknown:
            notes.append(f"Lost probes of {', '.join(unknown[:8])} are not known.")
        end_s = self.duration_s()
        phases = self.phases or _phases(self.streams, end_s)
        return {
            "format": 1,
            "outcome": "complete",
            "why": "",
            "notes": notes,
            "zero_ns": round(self._began_s(content) * 1e6) * 1000,
            "duration_ns": int(end_s * S),
            "phases": phases,
            "flows": session_flows(
                [*(each.name for each in self.streams), *(each.name for each in self.pings)],
                [(stream.direction, stream.congestion) for stream in self.streams],
                next((i for i, phase in enumerate(phases) if phase["kind"] != IDLE), 0),
            ),
            "links": [],
            "server": {"host": self.host, "address": ""},
            "one_host": self.one_host,
        }

    def _taken(self) -> str:
        ways = [stream.direction for stream in self.streams]
        parts = [
            counted(ways.count("down"), "stream down", "streams down"),
            counted(ways.count("up"), "stream up", "streams up"),
            counted(sum(len(pings.sent) for pings in self.pings), "probe", "probes")
            + (f" to {counted(len(self.pings), 'target', 'targets')}" if self.pings else ""),
        ]
        return ", ".join(filter(None, parts))


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
