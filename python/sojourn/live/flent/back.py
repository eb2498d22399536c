"""A flent file as a Run: any test with `Ping (ms) ..` and `TCP upload .. | download ..` series, an
idle phase, the load, an idle phase.

Of a file that we wrote the phases are those it names. What a file says is checked before anything
is made of it: it may come from anywhere.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import itertools
import json
import math
import zlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.arrays import Columns, Floats, Json, Tables
from sojourn.errors import UserError
from sojourn.facts import ImportedFacts, SessionFlow, SessionLink, SessionPhase
from sojourn.foreign import plain
from sojourn.live.flent.form import DELAY_S, MSS, STEP_S, TIME, VERSION, S
from sojourn.live.measure import measurement
from sojourn.live.measure.phases import IDLE
from sojourn.records import Run, names_of, nothing

COMPUTED = ("avg", "sum", "fairness", "totals")
MOST_S, MOST_MS, MOST_MBPS, MOST_COUNT = 1e6, 1e7, 1e6, 1e15
"""No time of a series, no RTT, no goodput and no counter is larger."""
LARGEST_FILE = 100_000_000
"""Bytes, packed or not: flent's are below 20 MB."""
MOST_SERIES = 2000
MOST_VALUES = 3_000_000
"""Values and keys of a file: a Python object each, some 100 bytes. An hour of 20 pings a second to
five targets has half as many."""


def read(path: Path, how: measurement.MeasurementSettings | None = None) -> Run:
    """A flent file as a Run, engine "flent"."""
    raw = _load(path)
    try:
        session, title, asked = (
            _session(raw),
            _title(raw["metadata"]),
            _asked(path, raw["metadata"]),
        )
    except (
        KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, OSError, MemoryError
    ) as error:  # fmt: skip
        raise _damaged(path, f"{type(error).__name__}: {error}") from None
    if not session.facts["flows"]:
        raise UserError(
            f"{path} has neither pings nor TCP streams",
            "sojourn reads flent's series `Ping (ms) ..` and `TCP ..`",
        )
    how = how or measurement.MeasurementSettings()
    version = str(raw["metadata"].get("FLENT_VERSION", ""))
    run = measurement.create(title, version, asked, how, f"{_hash(raw):016x}", engine="flent")
    measurement.add(run, 1, session.tables, session.facts)
    return run


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
    """A number of the file, which no measurement has beyond these bounds. ValueError where it
    is."""
    number = float(value)
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least:g} and {most:g}")
    return number


def _hash(raw: Json) -> int:
    """A fingerprint of the file's content."""
    return int.from_bytes(
        hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).digest()[:8], "big"
    )


@dataclass(frozen=True)
class _Session:
    tables: Tables
    facts: ImportedFacts


def _damaged(path: Path, why: str) -> UserError:
    return UserError(
        f"{path} is not a flent file that can be read: {why}",
        "sojourn reads version 4, which flent 2.3.0 writes",
    )


def _load(path: Path) -> Json:
    try:
        with path.open("rb") as file:
            packed = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise UserError(
            f"can't read {path}: {error.strerror or error}", "give a .flent.gz file"
        ) from None
    try:
        if packed[:2] == b"\x1f\x8b":
            with gzip.open(io.BytesIO(packed)) as stream:
                text = stream.read(LARGEST_FILE + 1)
        elif packed[:3] == b"BZh":
            text = bz2.BZ2Decompressor().decompress(packed, LARGEST_FILE + 1)
        else:
            text = packed
        if len(text) > LARGEST_FILE:
            raise ValueError(f"it is larger than {LARGEST_FILE // 10**6} MB")
        # At least as many as there are: those in a text count as well.
        if sum(map(text.count, (b",", b":", b"[", b"{"))) > MOST_VALUES:
            raise ValueError(f"it has more than {MOST_VALUES / 1e6:g} million values")
        raw = json.loads(text)
    except (OSError, EOFError, ValueError, RecursionError, MemoryError, zlib.error) as error:
        raise _damaged(path, str(error) or "it takes more memory than there is") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("metadata"), dict):
        raise _damaged(path, "it has no metadata")
    if raw.get("version") != VERSION:
        raise UserError(
            f"{path} has version {raw.get('version')!r} of flent's format; sojourn reads {VERSION}",
            "flent 2.3.0 writes that version",
        )
    return raw


def _session(raw: Json) -> _Session:
    metadata, x = raw["metadata"], np.asarray(raw["x_values"], dtype=np.float64)
    t0 = (
        datetime.strptime(metadata.get("T0") or metadata["TIME"], TIME)
        .replace(tzinfo=UTC)
        .timestamp()
    )
    if t0 < 0:
        raise ValueError("it began before 1970")
    series = [
        (name, _points(name, raw, x, t0))
        for name in raw["results"]
        if name.startswith(("Ping (ms) ", "TCP upload", "TCP download")) and not _is_computed(name)
    ]
    pings = [(name, points) for name, points in series if name.startswith("Ping") and points]
    streams = [(name, points) for name, points in series if name.startswith("TCP") and points]
    meta = metadata.get("SERIES_META") or {}
    lab = metadata.get("LAB") or {}
    mss = int(_real(lab.get("mss", MSS), 1e6, 1))
    flows = _flows([name for name, _ in streams], [name for name, _ in pings], meta, lab)
    ends = [_real(x[-1], MOST_S)] + [
        max(point["t"] for point in points) for _, points in series if points
    ]
    qdisc = [
        name for name in raw["raw_values"] if name.startswith("qdisc_stats_") and "::" not in name
    ]
    tables = {
        **{name: nothing(name) for name in (*measurement.EMPTY, "queue", "links")},
        "engine": nothing("engine", 1),
        "flow": _flow_table([points for _, points in streams], mss),
        "probe": _probe_table([points for _, points in pings], len(streams)),
    }
    if qdisc:
        tables["queue"] = _queue_table([raw["raw_values"][name] for name in qdisc], t0)
        tables["links"] = nothing("links", len(qdisc)) | {"link": np.arange(len(qdisc))}
    tables["flows"] = _totals(tables, len(flows))
    facts: ImportedFacts = {
        "format": 1,
        "outcome": "complete",
        "why": "",
        "notes": [],
        "zero_ns": round(t0 * 1e6) * 1000,
        "duration_ns": int(max(ends) * S),
        "phases": _phases_in(metadata, {flow["direction"] for flow in flows} - {""}),
        "flows": flows,
        "links": _links(qdisc, meta),
        "server": {"host": str(metadata.get("HOST", "")), "address": ""},
    }
    return _Session(tables, facts)


def _flows(
    streams: Sequence[str], pings: Sequence[str], meta: Json, lab: Json
) -> list[SessionFlow]:
    targets = [
        str((lab.get("targets") or {}).get(name, name.removeprefix("Ping (ms) "))) for name in pings
    ]
    names = _different([*streams, *targets])
    flows: list[SessionFlow] = [
        {
            "name": names[i], "kind": "bulk", "direction": "up" if name.startswith("TCP upload") else "down", "phase": 1,
            "group": i, "congestion": str((meta.get(name) or {}).get("CONG_CONTROL") or "unknown"),
        }
        for i, name in enumerate(streams)
    ]  # fmt: skip
    return flows + [
        {
            "name": name,
            "kind": "ping",
            "direction": "",
            "phase": None,
            "group": len(streams) + i,
            "congestion": None,
        }
        for i, name in enumerate(names[len(streams) :])
    ]


def _different(told: Sequence[str]) -> list[str]:
    """Names as a Run has them: without control characters, and none twice."""
    if len(told) > MOST_SERIES:
        raise ValueError(f"it has more than {MOST_SERIES} series")
    names: list[str] = []
    for name in map(plain, told):
        candidates = itertools.chain(
            [name or "unnamed"], (f"{name} {n}" for n in itertools.count(2))
        )
        names.append(next(one for one in candidates if one not in names))
    return names


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
        for name, meta in zip(_different(names), about, strict=True)
    ]


def _is_computed(name: str) -> bool:
    return name.rsplit(" ", 1)[-1] in COMPUTED


def _points(name: str, raw: Json, x: Floats, t0: float) -> list[Json]:
    """A series' raw points, t in seconds since T0; of a series without, its column."""
    points = raw["raw_values"].get(name) or []
    found = [{**point, "t": _real(float(point["t"]) - t0, MOST_S, -MOST_S)} for point in points]
    if not found:
        found = [
            {"t": _real(at, MOST_S), "val": value}
            for at, value in zip(x, raw["results"][name], strict=True)
            if value is not None
        ]
    found = [point for point in found if point["t"] >= 0]
    return sorted(found, key=lambda point: float(point["t"]))


def _phases_in(metadata: Json, directions: Set[str]) -> list[SessionPhase]:
    told = (metadata.get("LAB") or {}).get("phases")
    if told:
        return [
            {
                "name": str(phase["name"]), "kind": str(phase["kind"]), "start_ns": int(_real(phase["start_ns"], MOST_S * S)),
                "end_ns": int(_real(phase["end_ns"], MOST_S * S, phase["start_ns"])),
                "complete": bool(phase["complete"]),
            }
            for phase in told
        ]  # fmt: skip
    length = _real(metadata["LENGTH"], MOST_S)
    whole = _real(metadata.get("TOTAL_LENGTH") or length + 2 * DELAY_S, MOST_S)
    load = {
        frozenset({"up"}): "upload",
        frozenset({"down"}): "download",
        frozenset({"up", "down"}): "both",
    }
    kind = load.get(frozenset(directions), IDLE)
    spans = [
        (IDLE, 0.0, DELAY_S),
        (kind, DELAY_S, DELAY_S + length),
        (IDLE, DELAY_S + length, whole),
    ]
    return [
        {"name": name, "kind": name, "start_ns": int(a * S), "end_ns": int(b * S), "complete": True}
        for name, a, b in spans
        if b > a
    ]


def _flow_table(streams: Sequence[Sequence[Mapping[str, Any]]], mss: int) -> Columns:
    """Rows where goodput was told; cwnd and smoothed RTT are the latest told by then."""
    rows: list[list[float]] = []
    for number, points in enumerate(streams):
        delivered, before = 0.0, None
        cwnd, rtt = -1.0, -1.0
        goodput = [point for point in points if point.get("val") is not None]
        state = [point for point in points if "tcp_rtt" in point or "tcp_cwnd" in point]
        at = 0
        for point in goodput:
            t = float(point["t"])
            while at < len(state) and float(state[at]["t"]) <= t:
                if "tcp_cwnd" in state[at]:
                    cwnd = _real(state[at]["tcp_cwnd"], MOST_COUNT / mss) * mss
                if "tcp_rtt" in state[at]:
                    rtt = _real(state[at]["tcp_rtt"], MOST_MS) * 1e6
                at += 1
            took = _real(point.get("dur") or (t - before if before is not None else STEP_S), MOST_S)
            if before is None:
                # Where counting begins: nothing had arrived.
                rows.append([(t - took) * S, number, -1, -1, 0])
            delivered += _real(point["val"], MOST_MBPS) * took * 1e6 / 8
            before = t
            rows.append([t * S, number, cwnd, rtt, delivered])
    return _table("flow", ("t_ns", "flow", "cwnd_bytes", "srtt_ns", "delivered_bytes"), rows)


def _probe_table(pings: Sequence[Sequence[Mapping[str, Any]]], first: int) -> Columns:
    rows = [
        (
            float(point["t"]) * S,
            first + number,
            _real(point.get("seq", i), MOST_COUNT),
            -1
            if point.get("lost") or point.get("val") is None
            else _real(point["val"], MOST_MS) * 1e6,
            -1 if point.get("owd_up") is None else _real(max(point["owd_up"], 0), MOST_MS) * 1e6,
        )
        for number, points in enumerate(pings)
        for i, point in enumerate(points)
    ]
    return _table("probe", ("t_ns", "probe", "seq", "rtt_ns", "forward_ns"), rows)


def _table(name: str, columns: Sequence[str], rows: Sequence[Sequence[float]]) -> Columns:
    """These columns, rounded; there is nothing in the others."""
    table = nothing(name, len(rows))
    if rows:
        for column, values in zip(columns, np.asarray(rows).T, strict=True):
            table[column] = np.round(values).astype(np.int64)
    return table


_QDISC = {
    "backlog_bytes": "backlog_bytes", "backlog_packets": "backlog_pkts", "dropped_packets": "dropped",
    "marked_packets": "ecn_mark",
}  # fmt: skip


def _queue_table(series: Sequence[Sequence[Mapping[str, Any]]], t0: float) -> Columns:
    tables = []
    for number, told in enumerate(series):
        points = sorted(
            (point for point in told if float(point["t"]) >= t0),
            key=lambda point: float(point["t"]),
        )
        table = nothing("queue", len(points))
        table["t_ns"] = np.round([(float(point["t"]) - t0) * S for point in points]).astype(
            np.int64
        )
        table["link"] = np.full(len(points), number)
        for ours, theirs in _QDISC.items():
            counts = [_real(point.get(theirs, -1), MOST_COUNT, -1) for point in points]
            table[ours] = np.array(counts, dtype=np.float64).astype(np.int64)
        for ours, theirs in (("sent_bytes", "sent_bytes"), ("sent_packets", "sent_pkts")):
            if any(theirs in point for point in points):
                counted = np.array([_real(point.get(theirs, 0), MOST_COUNT) for point in points])
                table[ours] = np.diff(counted, prepend=counted[:1]).astype(np.int64)
        delays = [
            math.nan if point.get("delay") is None else _real(point["delay"], MOST_MS)
            for point in points
        ]
        table["sojourn_mean_ns"] = np.array(delays, dtype=np.float64) * 1e6
        tables.append(table)
    return {name: np.concatenate([table[name] for table in tables]) for name in names_of("queue")}


def _totals(tables: Tables, count: int) -> Columns:
    """What the file's samples add up to; it has no counters of packets."""
    table = nothing("flows", count) | {"flow": np.arange(count)}
    flow, probe = tables["flow"], tables["probe"]
    for i in range(count):
        mine = flow["flow"] == i
        if mine.any():
            table["delivered_bytes"][i] = int(flow["delivered_bytes"][mine].max())
        rtt = probe["rtt_ns"][probe["probe"] == i]
        if not rtt.size:
            continue
        table["sent_packets"][i] = rtt.size
        table["received_packets"][i] = int((rtt >= 0).sum())
        table["lost_packets"][i] = int((rtt < 0).sum())
        if (rtt >= 0).any():
            table["base_rtt_ns"][i] = int(rtt[rtt >= 0].min())
    return table
