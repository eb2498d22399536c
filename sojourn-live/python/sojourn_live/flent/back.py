"""A flent file as a Run: an idle phase, the load, an idle phase.

The pings, streams and qdiscs of any test are imported. A note names the other series.

    `Ping (ms) ..`, `VoIP` of irtt    a target of probes
    `TCP ..`, `SCTP ..`               a stream; without a direction in its name it is an upload, as
                                      in all of flent's tests
    `TCP ..::tcp_rtt`, `::tcp_cwnd`   the state of a stream's sender
    `qdisc_stats_..`                  a link

The program netperf samples each stream by its own clock. To add streams up, each stream's delivered
bytes are interpolated at common times, `GRID_S` apart. A ping of flent has the time of its reply;
here the time is that of sending. A lost ping is a gap in `seq`.

A file that we wrote names its phases, and its samples are not interpolated.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.arrays import Columns, Floats, Json, Tables
from sojourn.errors import UserError
from sojourn.facts import Direction, ImportedFacts, SessionFlow, SessionLink, SessionPhase
from sojourn.formats import Content, open_file
from sojourn.formats.content import MOST_VALUES
from sojourn.formats.file_series import Ping, Pings, counted, unique_names
from sojourn.formats.measured import IDLE, MOST_SERIES
from sojourn.formats.run_tables import (
    StreamTotals,
    empty_tables,
    probe_table,
    session_flows,
    table,
    totals_table,
)
from sojourn.records import NONE, Run, names_of, nothing
from sojourn.records.measurement import MeasurementSettings, add, create
from sojourn_live.flent import load
from sojourn_live.flent.form import DELAY_S, MSS, STEP_S, S

MOST_S, MOST_MS, MOST_MBPS, MOST_COUNT = 1e6, 1e7, 1e6, 1e15
"""Bounds of a series' times, of an RTT, of a goodput and of a counter."""
MOST_NAMED = 8
"""The most series that a note names."""
GRID_S = 0.1
"""Time between two samples of a stream, as in our own sessions."""
EARLY_S = 1.0
"""A load that begins earlier than this before the end of flent's DELAY belongs to a test without
idle time."""
UNSAMPLED_STEPS = 1.5
"""A stream whose samples begin or end at most this many STEP_SIZEs from the start or the end of the
load is continued to there."""
LONGEST_S = 36_000
"""The longest duration of a stream, s."""


@dataclass(frozen=True)
class FlentMeasurement:
    """The measurement of a flent file."""

    tables: Tables
    facts: ImportedFacts
    title: str
    version: str
    asked: Sequence[tuple[str, object]]
    fingerprint: str

    def run(self, _content: Content, settings: MeasurementSettings | None = None) -> Run:
        """The Run of the measurement, with the engine "flent"."""
        run = create(
            self.title,
            self.version,
            self.asked,
            settings or MeasurementSettings(),
            self.fingerprint,
            engine="flent",
        )
        add(run, 1, self.tables, self.facts)
        return run


def read(path: Path, how: MeasurementSettings | None = None) -> Run:
    """A flent file as a Run, with the engine "flent"."""
    content = open_file(path)
    return measurement(content).run(content, how)


def measurement(content: Content) -> FlentMeasurement:
    """The measurement of a flent file.

    Raises:
        UserError: it can't be read, or has neither pings nor streams.
    """
    path, raw = content.path, load.content(content)
    try:
        file = load.modern(raw)
        metadata = file["metadata"]
        tables, facts = _session(file)
        found = FlentMeasurement(
            tables,
            facts,
            _title(metadata),
            str(metadata.get("FLENT_VERSION", "")),
            _asked(path, metadata),
            f"{_hash(raw):016x}",
        )
    except (
        KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, OSError, MemoryError
    ) as error:  # fmt: skip
        raise load.damaged(path, f"{type(error).__name__}: {error}") from None
    if not facts["flows"]:
        raise UserError(
            f"{path} has neither pings nor streams with samples",
            "sojourn reads flent's series `Ping (ms) ..`, `TCP ..` and `SCTP ..`; this file has: "
            + (_names(list(file["results"])) or "no series"),
        )
    return found


def _title(metadata: Json) -> str:
    return f"flent {metadata['NAME']} to {metadata.get('HOST') or 'unknown'}" + (
        f": {metadata['TITLE']}" if metadata.get("TITLE") else ""
    )


def _asked(path: Path, metadata: Json) -> list[tuple[str, object]]:
    return [
        ("file", path.name),
        ("test", str(metadata["NAME"])),
        ("host", str(metadata.get("HOST", ""))),
        ("began", str(metadata.get("T0") or metadata["TIME"])),
        ("length_s", _real(metadata["LENGTH"], MOST_S)),
    ]


def _real(value: Any, most: float, least: float = 0.0) -> float:
    """A number of the file. Raises ValueError if it is outside the bounds of any measurement."""
    number = float(value)
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least:g} and {most:g}")
    return number


def _hash(raw: Json) -> int:
    """A fingerprint of the file's content."""
    return int.from_bytes(
        hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).digest()[:8], "big"
    )


@dataclass
class _Doubts:
    """Impossible values. They are left out, and a note has their number."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    """The number of impossible values by series and quantity."""
    firsts: dict[tuple[str, str], float] = field(default_factory=dict)

    def number(
        self, series: str, quantity: str, value: Any, most: float, least: float = 0.0
    ) -> float | None:
        """The value, or None if it is outside these bounds."""
        number = float(value)
        if least <= number <= most:
            return number
        key = (series, quantity)
        self.counts[key] = self.counts.get(key, 0) + 1
        self.firsts.setdefault(key, number)
        return None

    def notes(self) -> list[str]:
        """A sentence for each quantity."""
        return [
            f"{count} impossible value{'s' * (count > 1)} of {quantity} in {series} "
            f"{'are' if count > 1 else 'is'} left out, the first: {self.firsts[series, quantity]:g}."
            for (series, quantity), count in self.counts.items()
        ]


# ---------------------------------------------------------------------------------- kinds of series

_COMPUTED = re.compile(r"[ :](avg|sum|total|totals|fairness|induced_delay)$")
_STREAM = re.compile(r"(TCP|SCTP)\b")
_LOAD = re.compile(r"(TCP|SCTP|UDP) (upload|download)\b|TCP ")
_STATE = re.compile(r"::tcp_\w+$")
_QDISC = re.compile(r"qdisc[_-]stats")


@dataclass(frozen=True)
class _Sorted:
    """The names of a file's series by kind."""

    pings: list[str]
    streams: list[str]
    qdiscs: list[str]
    others: list[str]
    empty: list[str]
    """Pings and streams without a sample."""
    loads: list[str]
    """Series of the load, imported or not."""


def _sorted(file: Json, points: Mapping[str, list[Json]]) -> _Sorted:
    values = file["raw_values"]
    found = _Sorted([], [], [], [], [], [])
    for name in points:
        if _COMPUTED.search(name) or _STATE.search(name):
            continue
        if _LOAD.match(name):
            found.loads.append(name)
        voip = name == "VoIP" and any("owd_up" in point for point in values.get(name) or [])
        if name.startswith("Ping (ms)") or voip:
            (found.pings if points[name] else found.empty).append(name)
        elif _STREAM.match(name):
            (found.streams if points[name] else found.empty).append(name)
        elif _QDISC.match(name):
            if "::" not in name and points[name]:
                found.qdiscs.append(name)
        else:
            found.others.append(name.split("::")[0])
    return found


def _direction(name: str) -> Direction:
    return "down" if re.match(r"\w+ download\b", name) else "up"


def _is_ours(metadata: Json) -> bool:
    return bool((metadata.get("LAB") or {}).get("program") == "sojourn")


def _points(name: str, file: Json, x: Floats, t0: float, doubts: _Doubts) -> list[Json]:
    """A series' raw points in order, t in seconds since T0. A series without raw points has those
    of its column."""
    found: list[Json] = []
    for point in file["raw_values"].get(name) or []:
        t = doubts.number(name, "time", float(point["t"]) - t0, MOST_S, -MOST_S)
        if t is not None and t >= 0:
            found.append({**point, "t": t})
    if not found:
        found = [
            {"t": _real(at, MOST_S), "val": value}
            for at, value in zip(x, file["results"].get(name) or [], strict=False)
            if value is not None
        ]
    return sorted(found, key=lambda point: float(point["t"]))


def _step(metadata: Json) -> float:
    return _real(metadata.get("STEP_SIZE") or STEP_S, MOST_S)


def _check_times(file: Json, x: Floats) -> None:
    """Refuses a file without raw values whose x values are not one `STEP_SIZE` apart: in flent's
    tests that iterate, x is the number of the iteration and not a time."""
    if any(file["raw_values"].values()) or x.size < 2:
        return
    step = _step(file["metadata"])
    if abs(float(np.median(np.diff(x))) - step) > step / 100:
        raise ValueError("its x values are numbers of iterations, not times")


# ----------------------------------------------------------------------------------------- session


def _session(file: Json) -> tuple[Tables, ImportedFacts]:
    metadata, x = file["metadata"], np.asarray(file["x_values"], dtype=np.float64)
    t0, known_zone = load.began(file)
    if t0 < 0:
        raise ValueError("it began before 1970")
    _check_times(file, x)
    doubts = _Doubts()
    names = dict.fromkeys([*file["results"], *file["raw_values"]])
    if len(names) > MOST_SERIES:
        raise ValueError(f"it has more than {MOST_SERIES} series")
    points = {
        name: _points(name, file, x, t0, doubts)
        for name in names
        if not _COMPUTED.search(name) and not _STATE.search(name)
    }
    what = _sorted(file, points)
    meta = metadata.get("SERIES_META") or {}
    lab = metadata.get("LAB") or {}
    ours = _is_ours(metadata)
    pinged = {name: _pinged(name, points[name], doubts, ours=ours) for name in what.pings}
    # The verdict uses the first target. A target whose losses are known comes first, then one whose
    # RTTs are not means over netperf's requests.
    pings = sorted(
        what.pings, key=lambda name: 0 if pinged[name].losses_known else 1 + ("ICMP" not in name)
    )
    curves = {
        name: _curve(name, points[name], _state(name, file, points[name], x), meta.get(name) or {}, lab, doubts)
        for name in what.streams
    }  # fmt: skip
    ends = [_real(x[-1], MOST_S)] if x.size else []
    ends += [points[name][-1]["t"] for name in (*what.pings, *what.streams)]
    phases = _phases_in(metadata, what.loads, list(curves.values()), max(ends, default=0.0))
    if not (ours and _together(list(curves.values()))):
        start, end = (
            next((phase[key] / S for phase in phases if phase["kind"] != IDLE), 0.0)
            for key in ("start_ns", "end_ns")
        )
        reach = UNSAMPLED_STEPS * _step(metadata)
        curves = {name: curve.on_grid(start, end, reach) for name, curve in curves.items()}
    flows = _flows(what.streams, pings, meta, lab)
    streams = [curves[name] for name in what.streams]
    targets = [pinged[name] for name in pings]
    tables = empty_tables() | {
        "flow": _flow_table(streams, phases),
        "probe": probe_table(targets, len(streams)),
        "flows": totals_table(
            [StreamTotals(float(each.delivered[-1]), each.retransmits) for each in streams], targets
        ),
    }
    if what.qdiscs:
        tables["queue"] = _queue_table({name: points[name] for name in what.qdiscs}, doubts)
        tables["links"] = nothing("links", len(what.qdiscs)) | {"link": np.arange(len(what.qdiscs))}
    facts: ImportedFacts = {
        "format": 1,
        "outcome": "complete",
        "why": "",
        "notes": [
            *_notes(what, [name for name in pings if not pinged[name].losses_known], meta),
            *([] if known_zone else [NO_ZONE]),
            *doubts.notes(),
        ],
        "zero_ns": round(t0 * 1e6) * 1000,
        "duration_ns": int(max(ends, default=0.0) * S),
        "phases": phases,
        "flows": flows,
        "links": _links(what.qdiscs, meta),
        "server": {"host": str(metadata.get("HOST", "")), "address": ""},
    }
    return tables, facts


NO_ZONE = "The file doesn't have a time zone: its local time is taken for UTC."


def _notes(what: _Sorted, unknown: Sequence[str], meta: Json) -> list[str]:
    """Sentences on the imported series and on those left out."""
    ways = [_direction(name) for name in what.streams]
    taken = [
        counted(ways.count("down"), "stream down", "streams down"),
        counted(ways.count("up"), "stream up", "streams up"),
        counted(len(what.pings), "series of pings", "series of pings"),
        counted(len(what.qdiscs), "qdisc", "qdiscs"),
    ]
    notes = [f"Imported from the file: {', '.join(filter(None, taken))}."]
    if what.others:
        notes.append(f"Not imported: {_names(what.others)}.")
    if what.empty:
        notes.append(f"Without a sample in the file: {_names(what.empty)}.")
    if unknown:
        notes.append(
            f"Lost probes of {_names(unknown)} are not known: the file has no sequence numbers."
        )
    swapped = [name for name in what.streams if _swapped(name, meta.get(name) or {})]
    if swapped:
        notes.append(
            f"Directions are taken from the series' names; netperf's commands have the opposite ones for {_names(swapped)}."
        )
    return notes


def _names(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    rest = len(distinct) - MOST_NAMED
    return ", ".join(distinct[:MOST_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _swapped(name: str, about: Json) -> bool:
    """Whether netperf's command has the opposite direction, as with flent's --swap-up-down."""
    other = {"up": "TCP_MAERTS", "down": "TCP_STREAM"}[_direction(name)]
    return other in str(about.get("COMMAND") or about.get("command") or "")


def _flows(
    streams: Sequence[str], pings: Sequence[str], meta: Json, lab: Json
) -> list[SessionFlow]:
    targets = [
        str((lab.get("targets") or {}).get(name, name.removeprefix("Ping (ms)").lstrip(" :")))
        for name in pings
    ]
    congestion = [str((meta.get(name) or {}).get("CONG_CONTROL") or "unknown") for name in streams]
    directions = map(_direction, streams)
    return session_flows(
        [*streams, *targets], list(zip(directions, congestion, strict=True)), load_phase=1
    )


def _links(series: Sequence[str], metas: Json) -> list[SessionLink]:
    about = [metas.get(name) or {} for name in series]
    names = [
        str(meta.get("sojourn_link") or name.removeprefix("qdisc_stats_"))
        for name, meta in zip(series, about, strict=True)
    ]
    return [
        {
            "name": name,
            "interface": "",
            "direction": "out",
            "qdisc": str(meta.get("sojourn_qdisc") or "unknown"),
        }
        for name, meta in zip(unique_names(names), about, strict=True)
    ]


# ------------------------------------------------------------------------------------------ phases


def _phases_in(
    metadata: Json, loads: Sequence[str], curves: Sequence[_Curve], end_s: float
) -> list[SessionPhase]:
    ours = (metadata.get("LAB") or {}).get("phases")
    if ours:
        return [
            {
                "name": str(phase["name"]), "kind": str(phase["kind"]), "start_ns": int(_real(phase["start_ns"], MOST_S * S)),
                "end_ns": int(_real(phase["end_ns"], MOST_S * S, phase["start_ns"])),
                "complete": bool(phase["complete"]),
            }
            for phase in ours
        ]  # fmt: skip
    length = _real(metadata["LENGTH"], MOST_S)
    whole = _real(metadata.get("TOTAL_LENGTH") or max(end_s, length), MOST_S)
    kinds: dict[Set[str], str] = {
        frozenset({"up"}): "upload",
        frozenset({"down"}): "download",
        frozenset({"up", "down"}): "both",
    }
    kind = kinds.get(frozenset(map(_direction, loads)), IDLE)
    if kind == IDLE:
        spans = [(IDLE, 0.0, max(whole, end_s))]
    else:
        start, end = _load_span(length, curves)
        spans = [(IDLE, 0.0, start), (kind, start, end), (IDLE, end, max(whole, end_s))]
    return [
        {"name": name, "kind": name, "start_ns": round(a * S), "end_ns": round(b * S), "complete": True}
        for name, a, b in spans
        if b > a and (name != IDLE or b - a > EARLY_S or len(spans) == 1)
    ]  # fmt: skip


def _load_span(length: float, curves: Sequence[_Curve]) -> tuple[float, float]:
    """Start and end of the load on flent's axis. The load starts with the first stream: after
    `DELAY_S`, or at once in tests without idle time (`tcp_2up_square`). It lasts for LENGTH, or as
    long as the streams if they exceed LENGTH by more than `EARLY_S`."""
    sampled = [curve.t for curve in curves if curve.t.size > 1]
    began = min((t[0] for t in sampled), default=DELAY_S)
    ended = max((t[-1] for t in sampled), default=0.0)
    start = 0.0 if began < DELAY_S - EARLY_S else began
    # Without pings, time 0 is the end of the first sample.
    end = start + length + min(began, 0.0)
    return start, ended if ended > end + EARLY_S else end


# ----------------------------------------------------------------------------------------- streams


@dataclass(frozen=True)
class _Curve:
    """A stream's delivered bytes at each time, and its sender's state."""

    t: Floats
    delivered: Floats
    """Bytes."""
    state_t: Floats
    cwnd: Floats
    """Bytes; NaN: not known."""
    rtt: Floats
    """ns; NaN: not known."""
    retransmits: float
    """Retransmissions of the whole stream; NaN: not known."""

    def on_grid(self, start_s: float, end_s: float, reach_s: float) -> _Curve:
        """The curve at multiples of `GRID_S` after `start_s`, from the last multiple before the
        stream began to the first one after it ended."""
        t, delivered = self._reaching(start_s, end_s, reach_s)
        if t[-1] - t[0] > LONGEST_S:
            raise ValueError(f"a stream lasts longer than {LONGEST_S} s")
        first = math.floor((t[0] - start_s) / GRID_S + 1e-6)
        last = math.ceil((t[-1] - start_s) / GRID_S - 1e-6)
        grid = start_s + np.arange(first, last + 1) * GRID_S
        grid = grid[grid >= 0]
        return dataclasses.replace(self, t=grid, delivered=np.interp(grid, t, delivered))

    def _reaching(self, start_s: float, end_s: float, reach_s: float) -> tuple[Floats, Floats]:
        """The curve, continued at the stream's mean rate to the start and the end of the load, if
        these are at most `reach_s` away: netperf reports no partial intervals."""
        t, delivered = self.t, self.delivered
        mean = delivered[-1] / max(t[-1] - t[0], 1e-9)
        early, late = t[0] - start_s, end_s - t[-1]
        if 0 < late <= reach_s:
            t = np.append(t, end_s)
            delivered = np.append(delivered, delivered[-1] + mean * late)
        if 0 < early <= reach_s:
            t = np.insert(t, 0, start_s)
            delivered = np.insert(delivered + mean * early, 0, 0)
        return t, delivered

    def latest(self, values: Floats) -> Floats:
        """The latest known state at each time."""
        known = np.isfinite(values)
        if not known.any():
            return np.full(self.t.size, np.nan)
        at = np.searchsorted(self.state_t[known], self.t, side="right") - 1
        return np.where(at >= 0, values[known][at], np.nan)


def _together(curves: Sequence[_Curve]) -> bool:
    """Whether streams were sampled at the same times, at the usual interval. Some may begin later
    or end earlier."""
    if not curves:
        return True
    t = np.unique(np.concatenate([curve.t for curve in curves]))
    apart = np.diff(t)
    return not apart.size or bool(
        apart.max() <= 2 * np.median(apart)
        and all(
            np.searchsorted(t, curve.t[-1]) - np.searchsorted(t, curve.t[0]) == curve.t.size - 1
            for curve in curves
        )
    )


def _state(name: str, file: Json, points: Sequence[Json], x: Floats) -> list[Json]:
    """The samples of a stream's sender, from its raw points or from separate columns."""
    found = [point for point in points if "tcp_rtt" in point or "tcp_cwnd" in point]
    if found:
        return found
    columns = {key: file["results"].get(f"{name}::{key}") or [] for key in ("tcp_rtt", "tcp_cwnd")}
    return [
        {"t": float(at), key: value}
        for key, column in columns.items()
        for at, value in zip(x, column, strict=False)
        if value is not None
    ]


def _curve(
    name: str, points: Sequence[Json], state: Sequence[Json], about: Json, lab: Json, doubts: _Doubts
) -> _Curve:  # fmt: skip
    t: list[float] = []
    delivered: list[float] = []
    for point in points:
        if point.get("val") is None:
            continue
        mbps = doubts.number(name, "goodput", point["val"], MOST_MBPS)
        dur = doubts.number(name, "dur", point.get("dur") or 0.0, MOST_S)
        if mbps is None or dur is None:
            continue
        at = float(point["t"])
        took = dur or (at - t[-1] if t else STEP_S)
        if not t:
            t, delivered = [at - took], [0.0]
        elif at - took - t[-1] > took / 2:
            # flent dropped samples here. Data is not known to have arrived in this gap.
            t.append(at - took)
            delivered.append(delivered[-1])
        delivered.append(delivered[-1] + mbps * took * 1e6 / 8)
        t.append(at)
    mss = int(_real(about.get("TCP_MSS") or lab.get("mss") or MSS, 1e6, 1))
    ordered = sorted(state, key=lambda point: float(point["t"]))

    def of(key: str, most: float, scale: float) -> Floats:
        values = (
            None if point.get(key) is None else doubts.number(name, key, point[key], most)
            for point in ordered
        )
        return np.array([math.nan if value is None else value * scale for value in values])

    again = about.get("TCP_RETRANSMIT")
    retransmits = None if again is None else doubts.number(name, "TCP_RETRANSMIT", again, MOST_COUNT)  # fmt: skip
    return _Curve(
        np.array(t if t else [0.0]),
        np.array(delivered if t else [0.0]),
        np.array([float(point["t"]) for point in ordered]),
        of("tcp_cwnd", MOST_COUNT / mss, mss),
        of("tcp_rtt", MOST_MS, 1e6),
        math.nan if retransmits is None else retransmits,
    )


def _flow_table(curves: Sequence[_Curve], phases: Sequence[SessionPhase]) -> Columns:
    """The table `flow`. cwnd and smoothed RTT are the latest known. A stream's retransmissions are
    known only in total, so the total is put at the end of the load."""
    loads = [phase for phase in phases if phase["kind"] != IDLE]
    end = loads[-1]["end_ns"] if loads else math.inf
    rows = []
    for number, curve in enumerate(curves):
        again = np.full(curve.t.size, math.nan)
        again[max(int(np.searchsorted(curve.t * S, end, side="right")) - 1, 0)] = curve.retransmits
        columns = (
            curve.t * S, np.full(curve.t.size, number), curve.latest(curve.cwnd), curve.latest(curve.rtt),
            curve.delivered, again,
        )  # fmt: skip
        rows.append(np.column_stack(columns))
    names = ("t_ns", "flow", "cwnd_bytes", "srtt_ns", "delivered_bytes", "retransmits")
    return table("flow", names, np.concatenate(rows) if rows else [])


# ------------------------------------------------------------------------------------------- pings


def _pinged(name: str, points: Sequence[Json], doubts: _Doubts, *, ours: bool) -> Pings:
    sent: list[Ping] = []
    for i, point in enumerate(points):
        t = float(point["t"])
        numbered = doubts.number(name, "seq", point.get("seq", i), MOST_COUNT)
        seq = i if numbered is None else int(numbered)
        forward = point.get("owd_up")
        if forward is not None:
            forward = doubts.number(name, "owd_up", max(float(forward), 0), MOST_MS)
        forward_ms = math.nan if forward is None else forward
        if point.get("lost") or point.get("val") is None:
            sent.append(Ping(t, seq, forward_ms=forward_ms))
            continue
        rtt = doubts.number(name, "RTT", point["val"], MOST_MS)
        if rtt is not None:
            sent.append(Ping(t if ours else max(t - rtt / 1e3, 0.0), seq, rtt, forward_ms))
    all_numbered = bool(points) and all("seq" in point for point in points)
    if (
        all_numbered
        and not ours
        and not any("lost" in point or "owd_up" in point for point in points)
    ):
        sent = _with_gaps(sent)
    return Pings(name, sorted(sent, key=lambda ping: (ping.t, ping.seq)), all_numbered)


SEQUENCE = 2**16
"""ICMP sequence numbers begin again at 0 after this many."""


def _with_gaps(answered: Sequence[Ping]) -> list[Ping]:
    """All probes. A number that is missing between the first and the last answer is a lost probe;
    lost probes are placed evenly between their neighbours. The first of duplicate answers
    counts."""
    numbered: dict[int, Ping] = {}
    highest = None
    for ping in answered:
        seq = ping.seq
        if highest is not None:
            # Of all numbers that are `seq` modulo 2^16, the one closest to the highest so far.
            seq += round((highest - seq) / SEQUENCE) * SEQUENCE
        highest = seq if highest is None else max(highest, seq)
        numbered.setdefault(seq, dataclasses.replace(ping, seq=seq))
    known = sorted(numbered)
    if known and known[-1] - known[0] > MOST_VALUES:
        raise ValueError(f"more than {MOST_VALUES / 1e6:g} million pings are missing")
    missing = sorted(set(range(known[0], known[-1])) - set(known)) if known else []
    if not missing:
        return list(numbered.values())
    times = np.interp(missing, known, [numbered[seq].t for seq in known])
    lost = [Ping(float(t), seq) for t, seq in zip(times, missing, strict=True)]
    return [*numbered.values(), *lost]


# ------------------------------------------------------------------------------------------ qdiscs

_COUNTS = {
    "backlog_bytes": "backlog_bytes", "backlog_packets": "backlog_pkts", "dropped_packets": "dropped",
    "marked_packets": "ecn_mark",
}  # fmt: skip


def _queue_table(series: Mapping[str, Sequence[Json]], doubts: _Doubts) -> Columns:
    tables = []
    for number, (name, points) in enumerate(series.items()):

        def of(key: str, most: float, name: str = name, points: Sequence[Json] = points) -> Floats:
            values = (
                None if point.get(key) is None else doubts.number(name, key, point[key], most)
                for point in points
            )
            return np.array([math.nan if value is None else value for value in values])

        table = nothing("queue", len(points))
        table["t_ns"] = np.round([point["t"] * S for point in points]).astype(np.int64)
        table["link"] = np.full(len(points), number)
        for ours, theirs in _COUNTS.items():
            table[ours] = _integers(of(theirs, MOST_COUNT))
        for ours, theirs in (("sent_bytes", "sent_bytes"), ("sent_packets", "sent_pkts")):
            counted = of(theirs, MOST_COUNT)
            if np.isfinite(counted).any():
                grown = np.diff(counted, prepend=counted[:1])
                # A counter that shrank was reset.
                table[ours] = _integers(np.where(grown < 0, math.nan, grown))
        table["sojourn_mean_ns"] = of("delay", MOST_MS) * 1e6
        tables.append(table)
    return {name: np.concatenate([table[name] for table in tables]) for name in names_of("queue")}


def _integers(values: Floats) -> np.ndarray[Any, Any]:
    return np.where(np.isfinite(values), values, NONE).astype(np.int64)
