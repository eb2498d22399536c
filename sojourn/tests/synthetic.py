"""Runs for tests of figures and reports, written as real Run folders, without an engine: a fluid
model of a bottleneck.

n flows share 20 Mbit/s. Under `pfifo` their windows grow to the limit of 1000 packets, a drop
halves them, and the sojourn is the backlog over the rate: bufferbloat. Under `codel` and `fq_codel`
the backlog stays at the target. The numbers are plausible, and drawn from a seeded generator, so
that a test can compute from the tables what a figure has to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.records import FlowInfo, LinkInfo, Meta, Run, nothing

CAUSES = [
    "limit",
    "target",
    "ce_threshold",
    "early",
    "forced",
    "overmemory",
    "wire",
    "blue",
    "ack_filter",
    "police",
]
SECOND = 1_000_000_000
Columns = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Shape:
    """The parameters of a synthetic Run."""

    qdisc: str = "pfifo limit 1000"
    flows: int = 4
    probes: int = 1
    seeds: tuple[int, ...] = (1, 2, 3)
    duration_s: int = 20
    warmup_s: int = 5
    interval_ms: int = 100
    ping_ms: int = 100
    rate_bps: int = 20_000_000
    title: str = "Downloads and a ping at 20 Mbit/s"
    label: str | None = None
    """None: the qdisc's kind."""
    scenario: str | None = None
    """None: this shape's scenario."""
    settings: tuple[tuple[str, str], ...] = ()


def run(path: Path, shape: Shape | None = None) -> Run:
    """Writes a Run of this shape into a new folder."""
    shape = shape or Shape()
    kind = shape.qdisc.split()[0]
    flows = [
        FlowInfo(f"bulk.{i + 1}", "bulk", "cubic", 0, ("bottleneck",)) for i in range(shape.flows)
    ]
    flows += [
        FlowInfo(
            f"ping.{i + 1}" if shape.probes > 1 else "ping", "ping", None, 1 + i, ("bottleneck",)
        )
        for i in range(shape.probes)
    ]
    meta = Meta(
        title=shape.title,
        label=kind if shape.label is None else shape.label,
        engine="sim",
        version="0.1.0",
        duration_ns=shape.duration_s * SECOND,
        warmup_ns=shape.warmup_s * SECOND,
        seeds_asked=shape.seeds,
        links=(
            LinkInfo("bottleneck", shape.qdisc, shape.rate_bps, 10_000_000),
            LinkInfo("back", "pfifo limit 1000", None),
        ),
        flows=tuple(flows),
        fingerprint="0123456789abcdef",
        host={"system": "Linux", "machine": "x86_64"},
        settings=dict(shape.settings),
    )
    text = (
        shape.scenario
        or f'title = "{shape.title}"\n[bottleneck]\nqdisc = "{shape.qdisc}"\nrate = "{shape.rate_bps} bit/s"\n'
    )
    made = Run.create(path, meta, text)
    for seed in shape.seeds:
        made.add_seed(seed, tables(shape, seed), CAUSES, cpu_ns=SECOND // 2)
    return Run.open(path)


def tables(shape: Shape, seed: int) -> dict[str, Columns]:
    """All tables of one seed."""
    rng = np.random.default_rng(seed)
    kind = shape.qdisc.split()[0]
    n = shape.duration_s * 1000 // shape.interval_ms
    t = (np.arange(n) + 1) * shape.interval_ms * 1_000_000
    tau = t / SECOND
    packet_s = 1500 * 8 / shape.rate_bps
    busy = shape.flows > 0
    bloated = kind in ("pfifo", "bfifo")

    # The backlog: a sawtooth below the limit, or noise about the target, after slow start.
    rise = np.minimum(tau / 2, 1)
    period = 6 + rng.uniform(-0.5, 0.5)
    saw = 0.72 + 0.28 * ((tau + rng.uniform(0, 1)) % period) / period
    target = 0.005 / packet_s * rise * rng.uniform(0.2, 1.9, n)
    level = 1000 * rise * saw if bloated else target
    backlog = np.round(level * busy).astype(np.int64)
    sojourn = backlog * packet_s * 1e9
    largest = np.round(sojourn * (1 + rng.uniform(0.0, 0.25 if bloated else 2.0, n))).astype(
        np.int64
    )
    share = (0.985 if bloated else 0.955) * busy
    sent_bytes = np.full(n, int(shape.rate_bps / 8 * shape.interval_ms / 1000 * share))
    sent = sent_bytes // 1514

    # Drops at the top of the saw, or one every 200 ms or so.
    if not busy:
        dropped_at = np.empty(0, np.int64)
    elif bloated:
        tops = t[np.flatnonzero(np.diff(saw) < -0.2)]
        dropped_at = np.sort((tops[:, None] + rng.integers(0, 80_000_000, (tops.size, 40))).ravel())
    else:
        dropped_at = np.sort(
            rng.integers(SECOND, max(shape.duration_s, 2) * SECOND, shape.duration_s * 5)
        )
    dropped_at = dropped_at[dropped_at < shape.duration_s * SECOND].astype(np.int64)
    per_interval = (
        np.bincount(np.minimum(dropped_at // (shape.interval_ms * 1_000_000), n - 1), minlength=n)
        if n
        else np.empty(0)
    )

    none = np.full(n, np.nan)
    state = dict.fromkeys(("limit", "count", "probability", "average", "flows"), none)
    if kind in ("pfifo", "bfifo", "codel", "fq_codel"):
        state["limit"] = np.full(
            n, {"pfifo": 1000.0, "bfifo": 1.5e6, "codel": 1000.0, "fq_codel": 10240.0}[kind]
        )
    if kind == "codel":
        state["count"] = np.round(rng.uniform(0, 6, n))
    if kind == "fq_codel":
        state["flows"] = np.full(n, float(min(shape.flows + 1, 1024)))
    if kind == "red":
        state["average"] = np.convolve(backlog * 1514.0, np.ones(8) / 8, "same")
        state["probability"] = np.full(n, 0.02)
    if kind == "adt":
        state["limit"] = 60 + 40 * np.sin(tau)
        state["average"] = np.full(n, 0.97 * shape.rate_bps)
    queue: Columns = {
        "t_ns": t, "link": np.zeros(n, np.int64), "backlog_packets": backlog, "backlog_bytes": backlog * 1514,
        "sojourn_mean_ns": np.where(sent > 0, sojourn, np.nan), "sojourn_max_ns": largest, "sent_packets": sent,
        "sent_bytes": sent_bytes, "dropped_packets": per_interval, "marked_packets": np.zeros(n, np.int64), **state,
    }  # fmt: skip

    weights = rng.dirichlet(np.full(shape.flows, 8.0)) if busy else np.empty(0)
    step = np.outer(weights, sent_bytes * 1448 / 1514) * rng.uniform(0.8, 1.2, (shape.flows, n))
    delivered = np.cumsum(step, axis=1).astype(np.int64)
    cwnd = np.outer(
        weights * shape.flows, (backlog + 60) * 1448 / max(shape.flows, 1)
    ) * rng.uniform(0.9, 1.1, (shape.flows, n))
    flow: Columns = {
        "t_ns": np.tile(t, shape.flows),
        "flow": np.repeat(np.arange(shape.flows), n),
        "cwnd_bytes": cwnd.ravel().astype(np.int64),
        "ssthresh_bytes": np.full(shape.flows * n, -1),
        "srtt_ns": np.tile((40_000_000 + sojourn).astype(np.int64), shape.flows),
        "inflight_bytes": cwnd.ravel().astype(np.int64),
        "delivered_bytes": delivered.ravel(),
        "retransmits": np.zeros(shape.flows * n, np.int64),
        "window_bytes": np.full(shape.flows * n, 6_000_000),
        "delay_max_ns": np.full(shape.flows * n, -1),
    }

    pings = shape.duration_s * 1000 // shape.ping_ms if shape.probes else 0
    ping_t = np.tile(np.arange(pings) * shape.ping_ms * 1_000_000, shape.probes)
    waits = sojourn if kind != "fq_codel" else np.minimum(sojourn, 600_000.0)
    at = np.minimum(ping_t // (shape.interval_ms * 1_000_000), max(n - 1, 0))
    rtt = (40_000_000 + (waits[at] if n else 0) * rng.uniform(0.9, 1.1, ping_t.size)).astype(
        np.int64
    )
    rtt[rng.uniform(size=rtt.size) < (0.02 if bloated and busy else 0.0)] = -1
    probe: Columns = {
        "t_ns": ping_t, "probe": np.repeat(shape.flows + np.arange(shape.probes), pings),
        "seq": np.tile(np.arange(pings), shape.probes), "rtt_ns": rtt, "forward_ns": np.where(rtt < 0, -1, rtt // 2),
    }  # fmt: skip

    after = t > shape.warmup_s * SECOND
    lower, upper, packets = _histogram(
        np.repeat(largest[after], 3) * np.tile([1.0, 0.9, 0.7], after.sum()),
        sent[after].mean() / 3 if after.any() else 0,
    )
    rlower, rupper, samples = _histogram(40e6 + sojourn[after], 10)
    rtt_table: Columns = {
        "flow": np.zeros(rlower.size, np.int64),
        "lower_ns": rlower,
        "upper_ns": rupper,
        "samples": samples,
    }
    sums = int(packets.sum())
    late_drops = int((dropped_at >= shape.warmup_s * SECOND).sum())
    measured = (shape.duration_s - shape.warmup_s) * SECOND
    links: Columns = {
        "link": np.array([0, 1]),
        "arrived_packets": np.array([sums + late_drops, sums]),
        "arrived_bytes": np.array([(sums + late_drops) * 1514, sums * 66]),
        "sent_packets": np.array([sums, sums]),
        "sent_bytes": np.array([sums * 1514, sums * 66]),
        "wire_bytes": np.array([int(shape.rate_bps / 8 * measured / SECOND * share), sums * 66]),
        "dropped_packets": np.array([late_drops, 0]),
        "marked_packets": np.array([0, 0]),
        "lost_packets": np.array([0, 0]),
        "sojourn_sum_ns": np.array([int((packets * (lower + upper) / 2).sum()), 0]),
        "sojourn_max_ns": np.array([int(largest[after].max()) if after.any() else 0, 0]),
        "backlog_mean_packets": np.array(
            [float(backlog[after].mean()) if after.any() else 0.0, 0.0]
        ),
        "backlog_mean_bytes": np.array(
            [float(backlog[after].mean()) * 1514 if after.any() else 0.0, 0.0]
        ),
        "backlog_max_packets": np.array([int(backlog.max()) if n else 0, 0]),
        "backlog_max_bytes": np.array([int(backlog.max()) * 1514 if n else 0, 0]),
        "busy_ns": np.array([int(measured * share), 0]),
        "capacity_bits": np.array([int(shape.rate_bps * measured / SECOND), -1]),
        "measured_ns": np.array([measured, measured]),
    }
    count = shape.flows + shape.probes
    got = np.zeros(count, np.int64)
    if busy and after.any():
        before = delivered[:, ~after][:, -1] if (~after).any() else 0
        got[: shape.flows] = delivered[:, -1] - before
    flows: Columns = {
        "flow": np.arange(count), "sent_packets": got // 1448, "sent_bytes": got, "delivered_bytes": got,
        "lost_packets": np.zeros(count, np.int64), "retransmits": np.zeros(count, np.int64),
        "timeouts": np.zeros(count, np.int64), "fast_recoveries": np.zeros(count, np.int64),
        "rtt_sum_ns": np.full(count, 400_000_000), "rtt_samples": np.full(count, 10),
        "rtt_min_ns": np.full(count, 40_000_000), "rtt_max_ns": np.full(count, 40_000_000),
        "base_rtt_ns": np.full(count, 40_000_000),
    }  # fmt: skip
    k = dropped_at.size
    made: dict[str, Columns] = {
        "queue": queue,
        "flow": flow,
        "probe": probe,
        "drops": {
            "t_ns": dropped_at, "link": np.zeros(k, np.int64), "flow": rng.integers(0, max(shape.flows, 1), k),
            "cause": np.full(k, 0 if bloated else 3 if kind == "red" else 1), "marked": np.zeros(k, np.int64),
            "bytes": np.full(k, 1514),
        },
        "sojourn": {"link": np.zeros(lower.size, np.int64), "lower_ns": lower, "upper_ns": upper, "packets": packets},
        "rtt": rtt_table if busy else {name: values[:0] for name, values in rtt_table.items()},
        "links": links,
        "flows": flows,
        "transfers": {name: np.empty(0, np.int64) for name in ("flow", "start_ns", "end_ns", "bytes")},
        "engine": {"events": np.array([1000]), "packets": np.array([sums]), "peak_entries": np.array([1100])},
    }  # fmt: skip
    for name, columns in made.items():
        # Newer columns of the engine: zeros; there is no driver's ring.
        length = len(next(iter(columns.values())))
        for column, none in nothing(name, length).items():
            absent = column.startswith(("ring_", "bql_"))
            columns.setdefault(column, none if absent else np.zeros(length, np.int64))
    return made


def _histogram(values: np.ndarray[Any, Any], each: float) -> tuple[np.ndarray[Any, Any], ...]:
    """Log-linear bins, 16 to the octave, as the engine's."""
    edges = np.unique(np.concatenate([np.arange(16) * 2**i for i in range(32)])).astype(np.int64)
    counts, _ = np.histogram(values, edges)
    used = np.flatnonzero(counts)
    return edges[used], edges[used + 1], np.round(counts[used] * each).astype(np.int64)


def pair(
    folder: Path, kinds: Sequence[str] = ("pfifo limit 1000", "fq_codel limit 10240p target 5ms")
) -> list[Run]:
    """Runs of one scenario under several disciplines."""
    return [run(folder / str(i), Shape(qdisc=kind)) for i, kind in enumerate(kinds)]
