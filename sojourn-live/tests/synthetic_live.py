"""Measurements for tests from a fluid model of a home line: sessions in the form of
`sojourn_live.measure.session`, without a network.

The line has a rate and a buffer in each direction. Under load its queue fills the buffer as TCP
would, then follows a sawtooth below it. Pings to the server wait in it, those to the gateway do
not. All values are from a seeded generator, so that a test can compute the expected results."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.records import Run, names_of, nothing
from sojourn.records.measurement import MeasurementSettings, add, create

S, MS = 10**9, 10**6
Columns = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Line:
    """The line and its load."""

    down_mbps: float = 50.0
    up_mbps: float = 10.0
    down_buffer: int = 125_000
    up_buffer: int = 125_000
    """Bytes: 20 ms and 100 ms of queue."""
    base_ms: float = 20.0
    gateway_ms: float = 1.0
    queue_at_gateway: bool = False
    """Whether the uplink's queue is before the gateway (Wi-Fi), so that its pings wait, too."""
    streams: int = 4
    phases: tuple[tuple[str, int], ...] = (
        ("idle", 4),
        ("download", 8),
        ("upload", 8),
        ("both", 8),
        ("idle", 4),
    )
    drain_s: float = 0.5
    probe_ms: int = 50
    loss: float = 0.0
    """Share of lost pings under load."""
    noise_ms: float = 0.2
    interface: bool = True
    seed: int = 1
    zero_ns: int = 1_800_000_000 * S
    outcome: str = "complete"
    cut_s: float | None = None
    """The time at which the session ends early."""
    notes: tuple[str, ...] = field(default_factory=tuple)


@dataclass(frozen=True)
class Session:
    """Stands in for `sojourn_live.measure.session.Session`."""

    tables: dict[str, Columns]
    facts: dict[str, Any]


def session(line: Line) -> Session:
    """The session that measures this line."""
    rng = np.random.default_rng(line.seed)
    phases = _phases(line)
    end = phases[-1]["end_ns"]
    flows: list[dict[str, Any]] = []
    rows: list[Columns] = []
    group = 0
    grid = np.arange(1, end // (100 * MS) + 1) * 100 * MS
    queues = {way: np.zeros(grid.size) for way in ("down", "up")}
    for index, phase in enumerate(phases):
        for way in _ways(phase["kind"]):
            inside = (grid > phase["start_ns"]) & (grid <= phase["end_ns"])
            tau = (grid[inside] - phase["start_ns"]) / S
            mbps = line.down_mbps if way == "down" else line.up_mbps
            deep = (line.down_buffer if way == "down" else line.up_buffer) * 8 / mbps / 1e3
            # The queue fills within two seconds, then follows a sawtooth from 70 % to the full
            # depth.
            level = np.minimum(tau / 2, 0.7 + 0.3 * ((tau + rng.uniform(0, 2)) % 2.5) / 2.5)
            full = np.flatnonzero(inside)[(tau > 2.9) & (tau < 3.6)]
            queues[way][inside] = deep * level
            queues[way][full] = deep
            name = "" if phase["kind"] != "both" else f"-{way}"
            for i in range(line.streams):
                number = len(flows)
                flows.append(
                    {
                        "name": f"{phase['name']}{name}-{i + 1}".replace(" ", "-"), "kind": "bulk", "direction": way, "phase": index,
                        "group": group, "congestion": "cubic",
                    }
                )  # fmt: skip
                share = mbps * 1e6 / 8 * 0.1 / line.streams / 1.0456
                got = np.cumsum(np.full(tau.size, share) * rng.uniform(0.9, 1.1, tau.size)).astype(
                    np.int64
                )
                srtt = (line.base_ms + queues[way][inside]) * MS
                rows.append(
                    {
                        "t_ns": grid[inside], "flow": np.full(tau.size, number), "delivered_bytes": got,
                        "srtt_ns": srtt.astype(np.int64), "cwnd_bytes": (mbps * 125 * srtt / MS / line.streams).astype(np.int64),
                        "inflight_bytes": (mbps * 120 * srtt / MS / line.streams).astype(np.int64), "ssthresh_bytes": np.full(tau.size, -1),
                        "retransmits": (tau // 2.5).astype(np.int64), "window_bytes": np.full(tau.size, 4_000_000),
                        "delay_max_ns": np.full(tau.size, -1),
                    }
                )  # fmt: skip
            group += 1
    flow: Columns = {
        name: np.concatenate([row[name] for row in rows]) if rows else np.empty(0, np.int64)
        for name in names_of("flow")
    }
    probe, probes = _probes(line, rng, phases, grid, queues, flows, group)
    links: list[dict[str, Any]] = []
    if line.interface:
        links = [
            {"name": "eth0 out", "interface": "eth0", "direction": "out", "qdisc": "htb, bfifo"},
            {"name": "eth0 in", "interface": "eth0", "direction": "in", "qdisc": ""},
        ]
    tables = {
        "probe": probe,
        "flow": flow,
        "flows": _flows(flows, flow, probes),
        "queue": _queue(line, grid, queues["up"], flow, flows) if links else nothing("queue"),
        "links": _links(grid, queues["up"]) if links else nothing("links"),
        "engine": {name: np.array([0]) for name in ("events", "packets", "peak_entries")},
        **{name: nothing(name) for name in ("drops", "sojourn", "rtt", "transfers")},
    }
    facts = {
        "format": 1,
        "outcome": line.outcome,
        "why": "" if line.outcome == "complete" else "the server went away",
        "notes": list(line.notes),
        "zero_ns": line.zero_ns,
        "duration_ns": end,
        "phases": phases,
        "flows": flows,
        "probes": probes,
        "links": links,
        "goodput": [],
        "clock": {
            "offset_ns": 12_000_000, "drift_ppm": 3.2, "error_ns": 40_000, "by": "udp", "samples": 640, "stepped_ns": 0,
        },
        "lateness_ns": {"sends": 1920, "p50": 20_000, "p90": 60_000, "p99": 140_000, "max": 900_000, "priority": "raised"},
        "load": {"streams": line.streams, "congestion": {"asked": None, "client": "cubic", "server": "cubic"}},
        "server": {"host": "lab.example", "address": "192.0.2.9", "port": 5510, "version": "0.1.0", "kernel": "6.1", "caps": {}},
        "client": {"address": "192.0.2.2", "interface": "eth0", "gateway": "192.0.2.1", "version": "0.1.0", "kernel": "6.1"},
    }  # fmt: skip
    return Session(tables, facts)


def _phases(line: Line) -> list[dict[str, Any]]:
    found, now, kinds = [], 0.2, []
    for kind, seconds in line.phases:
        kinds.append(kind)
        times = kinds.count(kind)
        name = kind if times == 1 or kind == "idle" else f"{kind} {times}"
        end = now + seconds
        complete = line.cut_s is None or end <= line.cut_s
        if not complete:
            end = float(line.cut_s or 0)
        found.append(
            {
                "name": name,
                "kind": kind,
                "start_ns": int(now * S),
                "end_ns": int(end * S),
                "complete": complete,
            }
        )
        if not complete:
            break
        now = end + (line.drain_s if kind != "idle" else 0.0)
    return found


def _ways(kind: str) -> tuple[str, ...]:
    return {"download": ("down",), "upload": ("up",), "both": ("down", "up")}.get(kind, ())


def _probes(
    line: Line, rng: np.random.Generator, phases: list[dict[str, Any]], grid: np.ndarray[Any, Any],
    queues: dict[str, np.ndarray[Any, Any]], flows: list[dict[str, Any]], group: int,
) -> tuple[Columns, list[dict[str, Any]]]:  # fmt: skip
    t = np.arange(0, phases[-1]["end_ns"], line.probe_ms * MS)
    at = np.minimum(np.searchsorted(grid, t), grid.size - 1)
    columns: dict[str, list[np.ndarray[Any, Any]]] = {name: [] for name in names_of("probe")}
    probes = []
    for name, how, base, waits in (
        ("server udp", "udp", line.base_ms, True),
        ("server icmp", "icmp", line.base_ms + 0.1, True),
        ("gateway", "icmp", line.gateway_ms, False),
    ):
        up = queues["up"][at] if waits or line.queue_at_gateway else np.zeros(t.size)
        down = queues["down"][at] if waits else np.zeros(t.size)
        forward = base / 2 + up + rng.exponential(line.noise_ms / 2, t.size)
        back = base / 2 + down + rng.exponential(line.noise_ms / 2, t.size)
        gone = (rng.uniform(size=t.size) < line.loss) & (up + down > 1)
        rtt = np.where(gone, -1, ((forward + back) * MS).astype(np.int64))
        columns["t_ns"].append(t)
        columns["probe"].append(np.full(t.size, len(flows)))
        columns["seq"].append(np.arange(t.size))
        columns["rtt_ns"].append(rtt)
        columns["forward_ns"].append(
            np.where(gone, -1, (forward * MS).astype(np.int64))
            if how == "udp"
            else np.full(t.size, -1)
        )
        flows.append(
            {
                "name": name,
                "kind": "ping",
                "direction": "",
                "phase": None,
                "group": group,
                "congestion": None,
            }
        )
        group += 1
        probes.append(
            {
                "name": name, "how": how, "address": "192.0.2.1" if name == "gateway" else "192.0.2.9",
                "socket": "udp" if how == "udp" else "unprivileged", "sent": int(t.size), "received": int((~gone).sum()),
                "lost": int(gone.sum()), "late": 0, "duplicate": 0, "missed": 0, "reasons": {}, "lost_forward": None,
                "lost_backward": None, "phases": [],
            }
        )  # fmt: skip
    return {name: np.concatenate(parts) for name, parts in columns.items()}, probes


def _flows(flows: list[dict[str, Any]], flow: Columns, probes: list[dict[str, Any]]) -> Columns:
    made = {name: np.zeros(len(flows), np.int64) for name in names_of("flows")}
    made["flow"] = np.arange(len(flows))
    counted = {probe["name"]: probe for probe in probes}
    for i, one in enumerate(flows):
        mine = flow["flow"] == i
        if mine.any():
            made["delivered_bytes"][i] = flow["delivered_bytes"][mine][-1]
            made["retransmits"][i] = flow["retransmits"][mine][-1]
        elif one["name"] in counted:
            made["sent_packets"][i] = counted[one["name"]]["sent"]
            made["received_packets"][i] = counted[one["name"]]["received"]
            made["lost_packets"][i] = counted[one["name"]]["lost"]
            made["base_rtt_ns"][i] = 20 * MS
    return made


def _queue(
    line: Line,
    grid: np.ndarray[Any, Any],
    up_ms: np.ndarray[Any, Any],
    flow: Columns,
    flows: list[dict[str, Any]],
) -> Columns:
    """Tables of the local link: its egress has the uplink's queue, its ingress has counters
    only."""
    made = nothing("queue", grid.size * 2)
    held = (up_ms / 1e3 * line.up_mbps * 1e6 / 8).astype(np.int64)
    made["t_ns"] = np.tile(grid, 2)
    made["link"] = np.repeat([0, 1], grid.size)
    made["backlog_bytes"] = np.concatenate([held, np.full(grid.size, -1)])
    made["backlog_packets"] = np.concatenate([held // 1514, np.full(grid.size, -1)])
    made["sent_packets"] = np.full(2 * grid.size, 82)
    made["sent_bytes"] = np.full(2 * grid.size, 125_000)
    made["dropped_packets"] = np.concatenate(
        [(up_ms > 0) * (grid // (100 * MS) % 25 == 0), np.full(grid.size, -1)]
    )
    return made


def _links(grid: np.ndarray[Any, Any], up_ms: np.ndarray[Any, Any]) -> Columns:
    made = nothing("links", 2)
    made["link"] = np.array([0, 1])
    for name in ("arrived_packets", "sent_packets"):
        made[name] = np.array([82 * grid.size, 82 * grid.size])
    for name in ("arrived_bytes", "sent_bytes", "wire_bytes"):
        made[name] = np.array([125_000 * grid.size] * 2)
    made["dropped_packets"] = np.array([12, -1])
    made["backlog_mean_packets"] = np.array([float(up_ms.mean()), np.nan])
    made["measured_ns"] = np.full(2, int(grid[-1]))
    return made


def run(path: Path | None, *lines: Line, label: str = "") -> Run:
    """A Run of these repeats."""
    return of_sessions(*[session(line) for line in lines or (Line(),)], path=path, label=label)


def of_sessions(*sessions: Session, path: Path | None = None, label: str = "") -> Run:
    """A Run of sessions."""
    how = MeasurementSettings(repeats=len(sessions), out=path, label=label)
    made = create(
        "Measurement of lab.example, 4 streams cubic", "0.1.0",
        [("host", "lab.example"), ("phases", ["idle 4 s"])], how, f"{sessions[0].facts['zero_ns']:x}",
    )  # fmt: skip
    for i, one in enumerate(sessions):
        add(made, i + 1, one.tables, one.facts)
    return made if path is None else Run.open(path)
