"""A phase of one repeat as a flent file.

flent's files have five idle seconds on either side of the load. They are filled with the last five
seconds of the idle phase before the load and the first five of the idle phase after it. If there is
no such phase, that side is empty. The test's name decides which of flent's plots open the file:

    download, upload    tcp_ndown, tcp_nup: series `TCP download::1` .., their avg, sum and fairness
    both                rrul_be with four streams each way (`TCP upload BE` .. `BE4`), else
                        rrul_be_nflows. `rrul`, on request, names the same four unmarked streams
                        BE, BK, CS5 and EF

Pings are raw samples, lost ones included. Streams have goodput, cwnd and smoothed RTT. The local
link's qdisc is `qdisc_stats_localhost`. Other data is under `metadata.LAB`, which flent ignores.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sojourn.arrays import Floats, Json
from sojourn.facts import MeasurementFacts
from sojourn.metrics import jain
from sojourn.records import Phase, Run, RunError, write_whole
from sojourn_live.flent.form import DELAY_S, MSS, STEP_S, TIME, VERSION, S
from sojourn_live.measure.phases import IDLE, Cut, Part, Pings, cut

QDISC = "qdisc_stats_localhost"
WORD = {"up": "upload", "down": "download"}
_CLASSES = {"rrul": (" BE", " BK", " CS5", " EF"), "rrul_be": (" BE", " BE2", " BE3", " BE4")}
_PINGS = {"rrul": "UDP BE", "rrul_be": "UDP BE1", "rrul_be_nflows": "UDP BE"}


@dataclass(frozen=True)
class FlentChoice:
    """The part of a Run to export, and the flent test whose name the file gets."""

    phase: str | None = None
    """The phase; None: the first finished one of both, upload, download."""
    seed: int | None = None
    """The seed; None: the first one."""
    test: str = "auto"


def export(run: Run, path: Path, choice: FlentChoice | None = None) -> Path:
    """Writes a phase as `.flent.gz` (or `.flent`, unpacked)."""
    check_name(path)
    text = json.dumps(document(run, choice), allow_nan=False).encode()
    packed = gzip.compress(text, mtime=0) if path.name.endswith(".gz") else text
    try:
        write_whole(path, packed)
    except OSError as error:
        raise RunError(
            f"can't write {path}: {error.strerror or error}", "choose another file"
        ) from None
    return path


def check_name(path: Path) -> None:
    """Refuses a name that flent would not recognise as one of its files."""
    if not path.name.endswith((".flent.gz", ".flent")):
        raise RunError(f"{path}: flent does not open such a name", "end it in .flent.gz")


def document(run: Run, choice: FlentChoice | None = None) -> Json:
    """The file's content."""
    choice = choice or FlentChoice()
    whole = cut(run)
    part = _chosen(whole, choice)
    test = _test(part, choice.test)
    facts = _facts(run, part.seed)
    zero_ns = facts["zero_ns"]
    start = part.phase.start_ns / S - DELAY_S
    length = part.seconds
    spans = _spans(run.meta.phases_of(part.seed), part.phase, start)
    steps = math.floor((length + 2 * DELAY_S) / STEP_S + 1e-9)
    grid: Floats = np.arange(steps + 1, dtype=np.float64) * STEP_S
    window = _Window(start, grid, zero_ns / S, spans)
    series = _Series({}, {}, {})
    targets = _add_pings(series, run, part, test, window)
    _add_streams(series, part, test, window)
    interface = _add_qdisc(series, run, part, window)
    began = datetime.fromtimestamp(zero_ns / S + start, UTC).strftime(TIME)
    counts = {
        way: sum(stream.direction == way for stream in part.streams) for way in ("up", "down")
    }
    parameters: Json = {f"{WORD[way]}_streams": count for way, count in counts.items() if count}
    if interface is not None:
        parameters |= {"qdisc_stats_hosts": "localhost", "qdisc_stats_interfaces": interface}
    host = facts["server"]["host"] or "unknown"
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
            "LOCAL_HOST": (facts["client"]["address"] or "") if "clock" in facts else "",
            "TIME": began,
            "T0": began,
            "LENGTH": round(length, 6),
            "TOTAL_LENGTH": round(length + 2 * DELAY_S, 6),
            "STEP_SIZE": STEP_S,
            "TEST_PARAMETERS": parameters,
            "FLENT_VERSION": "2.3.0",
            "IP_VERSION": 6 if ":" in facts["server"]["address"] else 4,
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
                        "name": span.phase.name, "kind": span.phase.kind, "complete": span.phase.complete,
                        "start_ns": round(span.x_s * S), "end_ns": round((span.x_s + span.end_s - span.start_s) * S),
                    }
                    for span in spans
                ],
            },
        },
    }  # fmt: skip


@dataclass(frozen=True)
class _Span:
    """An exported span of the seed's time: the load, or the idle time before or after it."""

    phase: Phase
    start_s: float
    """Its start on the seed's clock."""
    end_s: float
    x_s: float
    """Its start on flent's axis."""


def _spans(phases: Sequence[Phase], load: Phase, start_s: float) -> list[_Span]:
    """The load and the idle phases nearest to it, `start_s` being x = 0."""
    begin, end = load.start_ns / S, load.end_ns / S
    before = [phase for phase in phases if phase.kind == IDLE and phase.end_ns <= load.start_ns]
    after = [phase for phase in phases if phase.kind == IDLE and phase.start_ns >= load.end_ns]
    spans = [_Span(load, begin, end, DELAY_S)]
    for phase in before[-1:]:
        length = min((phase.end_ns - phase.start_ns) / S, DELAY_S)
        spans.insert(0, _Span(phase, phase.end_ns / S - length, phase.end_ns / S, DELAY_S - length))
    for phase in after[:1]:
        length = min((phase.end_ns - phase.start_ns) / S, DELAY_S)
        spans.append(_Span(phase, phase.start_ns / S, phase.start_ns / S + length, end - start_s))
    return spans


@dataclass(frozen=True)
class _Window:
    """The exported spans and their positions on flent's axis."""

    start_s: float
    """The time of x = 0 on the seed's clock."""
    grid: Floats
    epoch_s: float
    """Time of day at 0 of the seed's clock."""
    spans: Sequence[_Span]

    def x(self, t_s: Floats) -> Floats:
        """Times of the seed's clock on flent's axis; NaN: not exported. A phase's end belongs to
        the next phase."""
        x = np.full(t_s.shape, np.nan)
        for span in self.spans:
            inside = (t_s >= span.start_s) & (t_s < span.end_s)
            x[inside] = t_s[inside] - span.start_s + span.x_s
        return x

    def column(self, x: Floats, values: Floats) -> list[float | None]:
        """The mean of the values around each step; null without a value."""
        inside = np.isfinite(x) & np.isfinite(values)
        at = np.round(x[inside] / STEP_S).astype(np.int64)
        known = at < self.grid.size
        at, values = at[known], values[inside][known]
        sums = np.bincount(at, values, self.grid.size)
        counts = np.bincount(at, minlength=self.grid.size)
        return [
            round(float(total / n), 6) if n else None for total, n in zip(sums, counts, strict=True)
        ]

    def epoch(self, x_s: float) -> float:
        """A time of flent's axis as the time of day, to the microsecond, which is its form in the
        file."""
        return round(self.epoch_s + self.start_s + x_s, 6)


@dataclass(frozen=True)
class _Series:
    results: dict[str, list[float | None]]
    raw: dict[str, list[Json]]
    meta: dict[str, Json]

    def add(
        self, name: str, units: str, column: list[float | None], raw: list[Json], **meta: Any
    ) -> None:
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

    def computed(
        self, name: str, units: str, of: Sequence[str], how: Callable[[Sequence[float]], float]
    ) -> None:
        """Adds a series that flent computes from others, step by step."""
        rows = zip(*(self.results[each] for each in of), strict=True)
        column: list[float | None] = []
        for row in rows:
            known = [value for value in row if value is not None]
            column.append(round(how(known), 6) if known else None)
        self.add(name, units, column, [], RUNNER="computed")


def _chosen(whole: Cut, choice: FlentChoice) -> Part:
    seed = whole.run.seeds[0] if choice.seed is None else choice.seed
    if seed not in whole.run.seeds:
        raise RunError(
            f"{whole.run.path}: there is no repeat {seed}",
            f"repeats: {', '.join(map(str, whole.run.seeds))}",
        )
    loads = {part.phase.name: part for part in whole.parts if part.seed == seed and part.phase.kind in ("download", "upload", "both")}  # fmt: skip
    if not loads:
        raise RunError(
            f"{whole.run.path} has no loaded phase",
            "flent's tests have a load: measure with --phase download, upload or both",
        )
    if choice.phase is None:
        order = ("both", "upload", "download")
        return min(
            loads.values(), key=lambda part: (not part.phase.complete, order.index(part.phase.kind))
        )
    if choice.phase not in loads:
        raise RunError(
            f"{whole.run.path} has no load {choice.phase!r}", f"loads: {', '.join(loads)}"
        )
    return loads[choice.phase]


def _test(part: Part, asked: str) -> str:
    counts = {
        way: sum(stream.direction == way for stream in part.streams) for way in ("up", "down")
    }
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
            f"the phase {part.phase.name!r} ({streams}) can't be exported as {asked}",
            f"possible: {', '.join(fitting)}",
        )
    return asked


def _facts(run: Run, seed: int) -> MeasurementFacts:
    facts = run.meta.facts.get(str(seed))
    if facts is None:
        raise RunError(
            f"{run.path} has no time of day", "only measurements can be exported as .flent"
        )
    return facts


def _add_pings(series: _Series, run: Run, part: Part, test: str, window: _Window) -> dict[str, str]:
    """Adds the pings of all targets. Pings to the server get the names that the test's plots look
    for. Returns the target of each series."""
    facts = _facts(run, part.seed)
    probes = {probe["name"]: probe for probe in facts["probes"]} if "probes" in facts else {}
    answered = [name for name, pings in _all_pings(run, part.seed).items() if pings.answered.size]
    server = probes[answered[0]]["address"] if answered and answered[0] in probes else None
    at_server = [
        name for name in answered if name not in probes or probes[name]["address"] == server
    ]
    icmp = next(
        (name for name in at_server if name in probes and probes[name]["how"] == "icmp"), None
    )
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
        x = window.x(pings.t_s)
        runner = "IRTT" if name in probes and probes[name]["how"] == "udp" else "ping"
        series.add(
            title,
            "ms",
            window.column(x, pings.rtt_ms),
            _raw_pings(pings, x, window, numbered=part.pings[name].losses_known),
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


def _raw_pings(pings: Pings, x: Floats, window: _Window, *, numbered: bool) -> list[Json]:
    """The raw points. With `numbered` they have numbers without a gap, so that only the marked ones
    count as lost."""
    found = []
    for i in np.flatnonzero(np.isfinite(x)):
        point: Json = {"t": window.epoch(float(x[i]))}
        if numbered:
            point["seq"] = int(i)
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
        # All samples of the load are exported. The last sample, at the load's end, covers the time
        # before it.
        x = stream.t_s - window.start_s
        took = np.diff(np.concatenate(([part.phase.start_ns / S], stream.t_s)))
        raw: list[Json] = []
        for i, at in enumerate(x):
            point: Json = {
                "t": window.epoch(float(at)),
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
            name, "Mbits/s", window.column(x, stream.mbps), raw, RUNNER="netperf_demo", CONG_CONTROL=stream.congestion,
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
    value = jain(shares)
    return 1.0 if math.isnan(value) else value


def _add_qdisc(series: _Series, run: Run, part: Part, window: _Window) -> str | None:
    """Adds the qdisc of the local link. Returns its interface, or None without such a link."""
    link = next((link for link in run.meta.links if link.sampled), None)
    if link is None:
        return None
    table = run.table("queue", part.seed).filter(pl.col("link") == link.name).sort("t_ns")
    t = table["t_ns"].to_numpy() / S
    x = window.x(t)
    inside = np.isfinite(x)
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
        key: np.cumsum(np.where(inside, np.nan_to_num(_nan(table[column])), 0))
        for key, column in (("sent_bytes", "sent_bytes"), ("sent_pkts", "sent_packets"))
        if table[column].count()
    }
    raw: list[Json] = []
    for i in np.flatnonzero(inside):
        point: Json = {"t": window.epoch(float(x[i]))}
        point |= {
            key: float(column[i])
            for key, column in (values | sent).items()
            if np.isfinite(column[i])
        }
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
        series.add(f"{QDISC}::{key}", "packets", window.column(x, values[key]), [], RUNNER="null")
    return interface


def _nan(column: pl.Series) -> Floats:
    return np.asarray(column.cast(pl.Float64).fill_null(np.nan).to_numpy())
