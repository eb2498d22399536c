"""`.flent.gz`, version 4, as flent 2.3.0 reads and writes it: a phase of a measurement out, one of flent's tests in.

Out goes one phase of one repeat, with five seconds on either side as flent has them (what was on the line then is what was: where another
load came before, its pings are there). The test it is filed under decides which of flent's plots open it:

    download, upload    tcp_ndown, tcp_nup: series `TCP download::1` .., their avg, sum and fairness
    both                rrul_be with four streams each way (`TCP upload BE` .. `BE4`), else rrul_be_nflows; `rrul` if asked
                        for by name, which calls the same four unmarked streams BE, BK, CS5 and EF

Pings are raw samples, lost ones included; streams carry goodput, cwnd and smoothed RTT; the local link's qdisc is `qdisc_stats_localhost`.
What flent has no place for is under `metadata.LAB`, which it ignores.

In comes any test with `Ping (ms) ..` and `TCP upload .. | download ..` series: an idle phase, the load, an idle phase.
"""

from __future__ import annotations

import bz2
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sojourn.live import measurement
from sojourn.live.phases import IDLE, Cut, Part, Pings, cut
from sojourn.records import TABLES, Run, RunError, write_whole

Floats = NDArray[np.float64]
Json = dict[str, Any]

VERSION = 4
STEP_S = 0.2
DELAY_S = 5.0
"""Flent's idle time on either side of the load."""
MSS = 1448
"""Bytes to one of flent's packets of cwnd."""
QDISC = "qdisc_stats_localhost"
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
S = 1e9

TESTS = ("auto", "rrul", "rrul_be", "rrul_be_nflows", "tcp_nup", "tcp_ndown")
_CLASSES = {"rrul": (" BE", " BK", " CS5", " EF"), "rrul_be": (" BE", " BE2", " BE3", " BE4")}
_PINGS = {"rrul": "UDP BE", "rrul_be": "UDP BE1", "rrul_be_nflows": "UDP BE"}
COMPUTED = ("avg", "sum", "fairness", "totals")
LARGEST_FILE = 1_000_000_000
"""Bytes, unpacked: more is no measurement."""


# ----------------------------------------------------------------------------------------------------------------- out


@dataclass(frozen=True)
class Choice:
    """Which part of a Run goes out, and as what."""

    phase: str | None = None
    """None: both, else upload, else download, whichever was finished."""
    seed: int | None = None
    """None: the first."""
    test: str = "auto"


def export(run: Run, path: Path, choice: Choice | None = None) -> Path:
    """Writes a phase as `.flent.gz` (or `.flent`, unpacked)."""
    check_name(path)
    text = json.dumps(document(run, choice), allow_nan=False).encode()
    packed = gzip.compress(text, mtime=0) if path.name.endswith(".gz") else text
    try:
        write_whole(path, packed)
    except OSError as error:
        raise RunError(f"can't write {path}: {error.strerror or error}", "choose another file") from None
    return path


def check_name(path: Path) -> None:
    """Refuses a name under which flent would not take the file for one of its own."""
    if not path.name.endswith((".flent.gz", ".flent")):
        raise RunError(f"{path}: flent opens no file of that name", "end it in .flent.gz")


def document(run: Run, choice: Choice | None = None) -> Json:
    """The file's content."""
    choice = choice or Choice()
    whole = cut(run)
    part = _chosen(whole, choice)
    test = _test(part, choice.test)
    zero_ns = _zero_ns(run, part.seed)
    start = part.phase.start_ns / S - DELAY_S
    length = part.seconds
    steps = math.floor((length + 2 * DELAY_S) / STEP_S + 1e-9)
    grid: Floats = np.arange(steps + 1, dtype=np.float64) * STEP_S
    window = _Window(start, grid, zero_ns / S)
    series = _Series({}, {}, {})
    targets = _add_pings(series, run, part, test, window)
    _add_streams(series, part, test, window)
    interface = _add_qdisc(series, run, part, window)
    began = datetime.fromtimestamp(zero_ns / S + start, UTC).strftime(TIME)
    counts = {way: sum(stream.direction == way for stream in part.streams) for way in ("up", "down")}
    parameters: Json = {f"{WORD[way]}_streams": count for way, count in counts.items() if count}
    if interface is not None:
        parameters |= {"qdisc_stats_hosts": "localhost", "qdisc_stats_interfaces": interface}
    facts = run.meta.facts.get(str(part.seed), {})
    host = facts.get("server", {}).get("host", "") or "unknown"
    return {
        "version": VERSION,
        "x_values": [round(float(x), 6) for x in grid],
        "results": series.results,
        "raw_values": series.raw,
        "metadata": {
            "NAME": test,
            "TITLE": f"{run.name} {part.phase.name}",
            "NOTE": f"measured by sojourn {run.meta.version}, not by netperf: phase {part.phase.name!r} of {run.meta.title}. "
            "No stream and no ping carries a DSCP mark.",
            "HOST": host,
            "HOSTS": [host],
            "LOCAL_HOST": facts.get("client", {}).get("address", ""),
            "TIME": began,
            "T0": began,
            "LENGTH": round(length, 6),
            "TOTAL_LENGTH": round(length + 2 * DELAY_S, 6),
            "STEP_SIZE": STEP_S,
            "TEST_PARAMETERS": parameters,
            "FLENT_VERSION": "2.3.0",
            "IP_VERSION": 6 if ":" in str(facts.get("server", {}).get("address", "")) else 4,
            "FAILED_RUNNERS": 0,
            "SERIES_META": series.meta,
            "LAB": {
                "program": "sojourn",
                "version": run.meta.version,
                "title": run.meta.title,
                "label": run.name,
                "seed": part.seed,
                "targets": targets,
                "mss": MSS,
                "phases": [
                    {
                        "name": phase.name, "kind": phase.kind, "complete": phase.complete,
                        "start_ns": int(phase.start_ns - start * S), "end_ns": int(phase.end_ns - start * S),
                    }
                    for phase in run.meta.phases_of(part.seed)
                    if phase.start_ns >= start * S and phase.end_ns <= (start + grid[-1]) * S
                ],
            },
        },
    }  # fmt: skip


WORD = {"up": "upload", "down": "download"}


@dataclass(frozen=True)
class _Window:
    """The span that goes out."""

    start_s: float
    """Of the seed's clock: x = 0."""
    grid: Floats
    epoch_s: float
    """Time of day at 0 of the seed's clock."""

    def column(self, t_s: Floats, values: Floats) -> list[float | None]:
        """Means of what lies around each step; null where nothing does."""
        at = np.round((t_s - self.start_s) / STEP_S).astype(np.int64)
        inside = (at >= 0) & (at < self.grid.size) & np.isfinite(values)
        sums = np.bincount(at[inside], values[inside], self.grid.size)
        counts = np.bincount(at[inside], minlength=self.grid.size)
        return [round(float(total / n), 6) if n else None for total, n in zip(sums, counts, strict=True)]

    def inside(self, t_s: Floats) -> NDArray[np.bool_]:
        """Which of these times lie in the window."""
        x = t_s - self.start_s
        return np.asarray((x >= 0) & (x <= self.grid[-1]))

    def epoch(self, t_s: float) -> float:
        """A time of the seed's clock as flent writes it, to the microsecond."""
        return round(self.epoch_s + t_s, 6)


@dataclass(frozen=True)
class _Series:
    results: dict[str, list[float | None]]
    raw: dict[str, list[Json]]
    meta: dict[str, Json]

    def add(self, name: str, units: str, column: list[float | None], raw: list[Json], **meta: Any) -> None:
        values = [value for value in column if value is not None]
        self.results[name] = column
        self.raw[name] = raw
        self.meta[name] = {
            "UNITS": units,
            "MEAN_VALUE": math.fsum(values) / len(values) if values else None,
            "MIN_VALUE": min(values, default=None),
            "MAX_VALUE": max(values, default=None),
            "IDX": len(self.meta),
            **meta,
        }

    def computed(self, name: str, units: str, of: Sequence[str], how: Any) -> None:
        """A series of flent's own making: of the others, step by step."""
        rows = zip(*(self.results[each] for each in of), strict=True)
        column: list[float | None] = []
        for row in rows:
            known = [value for value in row if value is not None]
            column.append(round(how(known), 6) if known else None)
        self.add(name, units, column, [], RUNNER="computed")


def _chosen(whole: Cut, choice: Choice) -> Part:
    seed = whole.run.seeds[0] if choice.seed is None else choice.seed
    if seed not in whole.run.seeds:
        raise RunError(
            f"{whole.run.path}: there is no repeat {seed}", f"repeats: {', '.join(map(str, whole.run.seeds))}"
        )
    loads = {part.phase.name: part for part in whole.parts if part.seed == seed and part.phase.kind in ("download", "upload", "both")}  # fmt: skip
    if not loads:
        raise RunError(f"{whole.run.path} has no loaded phase", "flent's tests are of loads: measure one")
    if choice.phase is None:
        order = ("both", "upload", "download")
        return min(loads.values(), key=lambda part: (not part.phase.complete, order.index(part.phase.kind)))
    if choice.phase not in loads:
        raise RunError(f"{whole.run.path}: no load is called {choice.phase!r}", f"loads: {', '.join(loads)}")
    return loads[choice.phase]


def _test(part: Part, asked: str) -> str:
    counts = {way: sum(stream.direction == way for stream in part.streams) for way in ("up", "down")}
    four = counts["up"] == counts["down"] == 4
    fitting = {
        "download": ["tcp_ndown"],
        "upload": ["tcp_nup"],
        "both": [*(["rrul_be", "rrul"] if four else []), "rrul_be_nflows"],
    }[part.phase.kind]
    if asked == "auto":
        return fitting[0]
    if asked not in fitting:
        streams = f"{counts['down']} streams down and {counts['up']} up"
        raise RunError(
            f"the phase {part.phase.name!r} ({streams}) is no {asked}", f"it can be: {', '.join(fitting)}"
        )
    return asked


def _zero_ns(run: Run, seed: int) -> int:
    facts = run.meta.facts.get(str(seed), {})
    if "zero_ns" not in facts:
        raise RunError(f"{run.path} does not say when it began", "only measurements go out as .flent")
    return int(facts["zero_ns"])


def _add_pings(series: _Series, run: Run, part: Part, test: str, window: _Window) -> dict[str, str]:
    """All targets; the server's take the names that the test's plots look for. Which series is whose."""
    told = {probe["name"]: probe for probe in run.meta.facts.get(str(part.seed), {}).get("probes", [])}
    answered = [name for name, pings in _all_pings(run, part.seed).items() if pings.answered.size]
    server = told[answered[0]]["address"] if answered and answered[0] in told else None
    at_server = [name for name in answered if name not in told or told[name]["address"] == server]
    icmp = next((name for name in at_server if told.get(name, {}).get("how") == "icmp"), None)
    udp = next((name for name in at_server if name != icmp), None)
    names: dict[str, str] = {}
    if test in _PINGS and udp is not None:
        names[f"Ping (ms) {_PINGS[test]}"] = udp
    first = icmp or udp
    if first is not None:
        names["Ping (ms) ICMP"] = first
    for name in answered:
        if name not in names.values():
            names[f"Ping (ms) to {name}"] = name
    every = _all_pings(run, part.seed)
    for title, name in names.items():
        pings = every[name]
        inside = window.inside(pings.t_s)
        runner = "IRTT" if told.get(name, {}).get("how") == "udp" else "ping"
        series.add(
            title,
            "ms",
            window.column(pings.t_s, pings.rtt_ms),
            _raw_pings(pings, inside, window),
            RUNNER=runner,
        )
    if test in _PINGS and names:
        main = [title for title in names if not title.startswith("Ping (ms) to ")]
        series.computed("Ping (ms) avg", "ms", main, lambda known: math.fsum(known) / len(known))
    return names


def _all_pings(run: Run, seed: int) -> dict[str, Pings]:
    """Every target's probes of a whole repeat."""
    table = run.table("probe", seed).sort("t_ns")
    found = {}
    for flow in run.meta.flows:
        if flow.kind == "ping":
            mine = table.filter(pl.col("probe") == flow.name)
            rtt, forward = (_nan(mine[name]) / 1e6 for name in ("rtt_ns", "forward_ns"))
            found[flow.name] = Pings(mine["t_ns"].to_numpy() / S, rtt, forward)
    return found


def _raw_pings(pings: Pings, inside: NDArray[np.bool_], window: _Window) -> list[Json]:
    found = []
    for i in np.flatnonzero(inside):
        point: Json = {"t": window.epoch(float(pings.t_s[i])), "seq": int(i)}
        rtt, forward = float(pings.rtt_ms[i]), float(pings.forward_ms[i])
        if math.isnan(rtt):
            point["lost"] = True
        else:
            point["val"] = round(rtt, 6)
            if not math.isnan(forward):
                point |= {"owd_up": round(forward, 6), "owd_down": round(rtt - forward, 6)}
        found.append(point)
    return found


def _add_streams(series: _Series, part: Part, test: str, window: _Window) -> None:
    names: dict[str, list[str]] = {"up": [], "down": []}
    for stream in part.streams:
        number = len(names[stream.direction]) + 1
        if test in _CLASSES:
            tail = _CLASSES[test][number - 1]
        else:
            tail = f" BE::{number}" if test == "rrul_be_nflows" else f"::{number}"
        name = f"TCP {WORD[stream.direction]}{tail}"
        names[stream.direction].append(name)
        took = np.diff(np.concatenate(([part.phase.start_ns / S], stream.t_s)))
        raw: list[Json] = []
        for i, t in enumerate(stream.t_s):
            point: Json = {
                "t": window.epoch(float(t)),
                "val": round(float(stream.mbps[i]), 6),
                "dur": round(float(took[i]), 6),
            }
            raw.append(point)
            ss: Json = {"t": point["t"]}
            if np.isfinite(stream.srtt_ms[i]):
                ss["tcp_rtt"] = round(float(stream.srtt_ms[i]), 6)
            if np.isfinite(stream.cwnd_bytes[i]):
                ss["tcp_cwnd"] = round(float(stream.cwnd_bytes[i]) / MSS, 3)
            if len(ss) > 1:
                raw.append(ss)
        series.add(
            name, "Mbits/s", window.column(stream.t_s, stream.mbps), raw, RUNNER="netperf_demo", CONG_CONTROL=stream.congestion,
            TCP_RETRANSMIT=stream.retransmits, TCP_MSS=MSS, DATA_TOS="0x00",
        )  # fmt: skip
    for way, mine in names.items():
        if not mine:
            continue
        word = f"TCP {WORD[way]}"
        series.computed(f"{word} avg", "Mbits/s", mine, lambda known: math.fsum(known) / len(known))
        series.computed(f"{word} sum", "Mbits/s", mine, math.fsum)
        if not test.startswith("rrul"):
            series.computed(f"{word} fairness", "Idx", mine, _jain)
    if test.startswith("rrul"):
        series.computed("TCP totals", "Mbits/s", names["up"] + names["down"], math.fsum)


def _jain(shares: Sequence[float]) -> float:
    from sojourn.metrics import jain

    value = jain(shares)
    return 1.0 if math.isnan(value) else value


def _add_qdisc(series: _Series, run: Run, part: Part, window: _Window) -> str | None:
    """The local link's egress; its interface, or None where none was seen."""
    link = next((link for link in run.meta.links if link.sampled), None)
    if link is None:
        return None
    table = run.table("queue", part.seed).filter(pl.col("link") == link.name).sort("t_ns")
    t = table["t_ns"].to_numpy() / S
    inside = window.inside(t)
    if not inside.any():
        return None
    values = {
        key: _nan(table[column])
        for key, column in (
            ("backlog_bytes", "backlog_bytes"), ("backlog_pkts", "backlog_packets"), ("dropped", "dropped_packets"),
            ("ecn_mark", "marked_packets"),
        )
    }  # fmt: skip
    sent = {
        key: np.cumsum(np.nan_to_num(_nan(table[column])))
        for key, column in (("sent_bytes", "sent_bytes"), ("sent_pkts", "sent_packets"))
    }
    raw: list[Json] = []
    for i in np.flatnonzero(inside):
        point: Json = {"t": window.epoch(float(t[i]))}
        point |= {key: float(column[i]) for key, column in (values | sent).items() if np.isfinite(column[i])}
        raw.append(point)
    interface = link.name.split()[0]
    series.add(
        QDISC,
        "misc",
        [None] * window.grid.size,
        raw,
        RUNNER="tc",
        sojourn_link=link.name,
        sojourn_qdisc=link.qdisc,
    )
    for key in ("dropped", "ecn_mark"):
        series.add(f"{QDISC}::{key}", "packets", window.column(t, values[key]), [], RUNNER="null")
    return interface


def _nan(column: pl.Series) -> Floats:
    return np.asarray(column.cast(pl.Float64).fill_null(np.nan).to_numpy())


# ------------------------------------------------------------------------------------------------------------------ in


def read(path: Path, how: measurement.How | None = None) -> Run:
    """A flent file as a Run, engine "flent"."""
    raw = _load(path)
    try:
        session = _session(raw)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise _damaged(path, f"{type(error).__name__}: {error}") from None
    if not session.facts["flows"]:
        raise RunError(
            f"{path} has neither pings nor TCP streams",
            "sojourn reads flent's series `Ping (ms) ..` and `TCP ..`",
        )
    metadata = raw["metadata"]
    how = how or measurement.How()
    began = session.facts["zero_ns"] / S
    asked = [
        ("file", path.name),
        ("test", str(metadata["NAME"])),
        ("host", str(metadata.get("HOST", ""))),
        ("began", datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")),
        ("length_s", float(metadata["LENGTH"])),
    ]
    title = f"flent {metadata['NAME']} to {metadata.get('HOST') or 'unknown'}" + (
        f": {metadata['TITLE']}" if metadata.get("TITLE") else ""
    )
    version = str(metadata.get("FLENT_VERSION", ""))
    run = measurement.create(title, version, asked, how, f"{hash_of(raw):016x}", engine="flent")
    measurement.add(run, 1, session.tables, session.facts)
    return run


def hash_of(raw: Json) -> int:
    """A fingerprint of the file's content."""
    import hashlib

    return int.from_bytes(hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).digest()[:8], "big")


@dataclass(frozen=True)
class _Session:
    tables: measurement.Tables
    facts: Json


def _damaged(path: Path, why: str) -> RunError:
    return RunError(
        f"{path} is not a flent file that can be read: {why}",
        "sojourn reads version 4, which flent 2.3.0 writes",
    )


def _load(path: Path) -> Json:
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise RunError(f"can't read {path}: {error.strerror or error}", "give a .flent.gz file") from None
    try:
        if packed[:2] == b"\x1f\x8b":
            import io

            with gzip.open(io.BytesIO(packed)) as stream:
                text = stream.read(LARGEST_FILE)
        elif packed[:3] == b"BZh":
            text = bz2.BZ2Decompressor().decompress(packed, LARGEST_FILE)
        else:
            text = packed
        raw = json.loads(text)
    except (OSError, EOFError, ValueError, RecursionError, gzip.zlib.error) as error:  # type: ignore[attr-defined]
        raise _damaged(path, str(error)) from None
    if not isinstance(raw, dict) or not isinstance(raw.get("metadata"), dict):
        raise _damaged(path, "it has no metadata")
    if raw.get("version") != VERSION:
        raise RunError(
            f"{path} has version {raw.get('version')!r} of flent's format; sojourn reads {VERSION}",
            "flent 2.3.0 writes that version",
        )
    return raw


def _session(raw: Json) -> _Session:
    metadata, x = raw["metadata"], np.asarray(raw["x_values"], dtype=np.float64)
    t0 = datetime.strptime(metadata.get("T0") or metadata["TIME"], TIME).replace(tzinfo=UTC).timestamp()
    series = [
        (name, _points(name, raw, x, t0))
        for name in raw["results"]
        if name.startswith(("Ping (ms) ", "TCP upload", "TCP download")) and not _is_computed(name)
    ]
    pings = [(name, points) for name, points in series if name.startswith("Ping") and points]
    streams = [(name, points) for name, points in series if name.startswith("TCP") and points]
    meta = metadata.get("SERIES_META") or {}
    lab = metadata.get("LAB") or {}
    mss = int(lab.get("mss", MSS))
    flows = [
        {
            "name": name, "kind": "bulk", "direction": "up" if name.startswith("TCP upload") else "down", "phase": 1,
            "group": i, "congestion": str((meta.get(name) or {}).get("CONG_CONTROL") or "unknown"),
        }
        for i, (name, _) in enumerate(streams)
    ]  # fmt: skip
    names = [str((lab.get("targets") or {}).get(name, name.removeprefix("Ping (ms) "))) for name, _ in pings]
    flows += [
        {
            "name": name,
            "kind": "ping",
            "direction": "",
            "phase": None,
            "group": len(streams) + i,
            "congestion": None,
        }
        for i, name in enumerate(names)
    ]
    ends = [float(x[-1])] + [max(point["t"] for point in points) for _, points in series if points]
    qdisc = [name for name in raw["raw_values"] if name.startswith("qdisc_stats_") and "::" not in name]
    links = [
        {
            "name": str((meta.get(name) or {}).get("sojourn_link") or name.removeprefix("qdisc_stats_")), "interface": "",
            "direction": "out", "qdisc": str((meta.get(name) or {}).get("sojourn_qdisc") or "unknown"),
        }
        for name in qdisc
    ]  # fmt: skip
    tables = {
        **{name: measurement.nothing(name) for name in (*measurement.EMPTY, "queue", "links")},
        "engine": {name: np.array([0]) for name in ("events", "packets", "peak_entries")},
        "flow": _flow_table([points for _, points in streams], mss),
        "probe": _probe_table([points for _, points in pings], len(streams)),
    }
    if qdisc:
        tables["queue"] = _queue_table([raw["raw_values"][name] for name in qdisc], t0)
        tables["links"] = measurement.nothing("links", len(qdisc)) | {"link": np.arange(len(qdisc))}
    tables["flows"] = _totals(tables, len(flows))
    facts = {
        "format": 1,
        "outcome": "complete",
        "why": "",
        "notes": [],
        "zero_ns": round(t0 * 1e6) * 1000,
        "duration_ns": int(max(ends) * S),
        "phases": _phases_in(metadata, {flow["direction"] for flow in flows} - {""}),
        "flows": flows,
        "probes": [],
        "links": links,
        "server": {"host": str(metadata.get("HOST", "")), "address": ""},
    }
    return _Session(tables, facts)


def _is_computed(name: str) -> bool:
    return name.rsplit(" ", 1)[-1] in COMPUTED


def _points(name: str, raw: Json, x: Floats, t0: float) -> list[Json]:
    """A series' raw points, t in seconds since T0; of a series without, its column."""
    points = raw["raw_values"].get(name) or []
    found = [{**point, "t": float(point["t"]) - t0} for point in points]
    if not found:
        found = [
            {"t": float(at), "val": float(value)}
            for at, value in zip(x, raw["results"][name], strict=True)
            if value is not None
        ]
    found = [point for point in found if point["t"] >= 0 and math.isfinite(point["t"])]
    return sorted(found, key=lambda point: float(point["t"]))


def _phases_in(metadata: Json, directions: set[str]) -> list[Json]:
    told = (metadata.get("LAB") or {}).get("phases")
    if told:
        return [
            {
                "name": str(phase["name"]), "kind": str(phase["kind"]), "start_ns": int(phase["start_ns"]), "end_ns": int(phase["end_ns"]),
                "complete": bool(phase["complete"]),
            }
            for phase in told
        ]  # fmt: skip
    length = float(metadata["LENGTH"])
    whole = float(metadata.get("TOTAL_LENGTH") or length + 2 * DELAY_S)
    load = {frozenset({"up"}): "upload", frozenset({"down"}): "download", frozenset({"up", "down"}): "both"}
    kind = load.get(frozenset(directions), IDLE)
    spans = [(IDLE, 0.0, DELAY_S), (kind, DELAY_S, DELAY_S + length), (IDLE, DELAY_S + length, whole)]
    return [
        {"name": name, "kind": name, "start_ns": int(a * S), "end_ns": int(b * S), "complete": True}
        for name, a, b in spans
        if b > a
    ]


def _flow_table(streams: Sequence[Sequence[Mapping[str, Any]]], mss: int) -> measurement.Columns:
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
                cwnd = float(state[at].get("tcp_cwnd", cwnd / mss)) * mss
                rtt = float(state[at].get("tcp_rtt", rtt / 1e6)) * 1e6
                at += 1
            took = float(point.get("dur") or (t - before if before is not None else STEP_S))
            if before is None:
                # Where counting begins: nothing had arrived.
                rows.append([(t - took) * S, number, -1, -1, 0])
            delivered += float(point["val"]) * took * 1e6 / 8
            before = t
            rows.append([t * S, number, cwnd, rtt, delivered])
    table = measurement.nothing("flow", len(rows))
    if rows:
        for name, column in zip(
            ("t_ns", "flow", "cwnd_bytes", "srtt_ns", "delivered_bytes"), np.asarray(rows).T, strict=True
        ):
            table[name] = np.round(column).astype(np.int64)
    return table


def _probe_table(pings: Sequence[Sequence[Mapping[str, Any]]], first: int) -> measurement.Columns:
    rows = [
        (
            float(point["t"]) * S,
            first + number,
            int(point.get("seq", i)),
            -1 if point.get("lost") or point.get("val") is None else float(point["val"]) * 1e6,
            -1 if point.get("owd_up") is None else float(point["owd_up"]) * 1e6,
        )
        for number, points in enumerate(pings)
        for i, point in enumerate(points)
    ]
    table = measurement.nothing("probe", len(rows))
    if rows:
        for name, column in zip(
            ("t_ns", "probe", "seq", "rtt_ns", "forward_ns"), np.asarray(rows).T, strict=True
        ):
            table[name] = np.round(column).astype(np.int64)
    return table


_QDISC = {
    "backlog_bytes": "backlog_bytes", "backlog_packets": "backlog_pkts", "dropped_packets": "dropped",
    "marked_packets": "ecn_mark",
}  # fmt: skip


def _queue_table(series: Sequence[Sequence[Mapping[str, Any]]], t0: float) -> measurement.Columns:
    tables = []
    for number, told in enumerate(series):
        points = sorted(
            (point for point in told if float(point["t"]) >= t0), key=lambda point: float(point["t"])
        )
        table = measurement.nothing("queue", len(points))
        table["t_ns"] = np.round([(float(point["t"]) - t0) * S for point in points]).astype(np.int64)
        table["link"] = np.full(len(points), number)
        for ours, theirs in _QDISC.items():
            table[ours] = np.array([int(point.get(theirs, -1)) for point in points], dtype=np.int64)
        for ours, theirs in (("sent_bytes", "sent_bytes"), ("sent_packets", "sent_pkts")):
            counted = np.array([float(point.get(theirs, 0)) for point in points])
            table[ours] = np.diff(counted, prepend=counted[:1]).astype(np.int64)
        delays = np.array([float(point.get("delay", math.nan)) for point in points])
        table["sojourn_mean_ns"] = delays * 1e6
        tables.append(table)
    return {
        column.name: np.concatenate([table[column.name] for table in tables]) for column in TABLES["queue"]
    }


def _totals(tables: measurement.Tables, count: int) -> measurement.Columns:
    table = {column.name: np.zeros(count, dtype=np.int64) for column in TABLES["flows"]}
    table["flow"] = np.arange(count)
    flow, probe = tables["flow"], tables["probe"]
    for i in range(count):
        mine = flow["flow"] == i
        if mine.any():
            table["delivered_bytes"][i] = int(flow["delivered_bytes"][mine].max())
        rtt = probe["rtt_ns"][probe["probe"] == i]
        table["sent_packets"][i] = rtt.size
        table["received_packets"][i] = int((rtt >= 0).sum())
        table["lost_packets"][i] = int((rtt < 0).sum())
        if (rtt >= 0).any():
            table["base_rtt_ns"][i] = int(rtt[rtt >= 0].min())
    return table
