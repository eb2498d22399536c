"""A Run small enough to be added up by hand: two TCP flows and a ping over 10 Mbit/s, 10 s of which
2 s are warm-up.

The queue sent 996 of 1000 packets and was busy half of the time. Half of the packets waited 0 to
10 ms and half 10 to 30 ms; the mean was 12 ms. Flow 1 got 3 Mbit/s, flow 2 got 1 Mbit/s.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sojourn.records import FlowInfo, LinkInfo, Meta, Run, nothing

MS = 1_000_000
S = 1_000_000_000
MBIT = 1_000_000
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
LIMIT, TARGET, EARLY = 0, 1, 3

Tables = dict[str, dict[str, np.ndarray[Any, Any]]]


def small_meta(kind: str = "bulk", seeds: Sequence[int] = (1, 2), label: str = "") -> Meta:
    return Meta(
        title="Two flows and a ping",
        label=label,
        engine="sim",
        version="0.1.0",
        duration_ns=10 * S,
        warmup_ns=2 * S,
        seeds_asked=tuple(seeds),
        links=(LinkInfo("bottleneck", "pfifo limit 40", 10 * MBIT, 10 * MS),),
        flows=(
            FlowInfo("first", kind, "cubic", 0, ("bottleneck",), finite=kind == "transfers"),
            FlowInfo("second", "bulk", "reno", 1, ("bottleneck",)),
            FlowInfo("ping", "ping", None, 2, ("bottleneck",)),
        ),
        fingerprint="f00d",
    )


def small_tables(kind: str = "bulk") -> Tables:
    """In an engine's form: links, flows and causes as numbers."""
    ints = {
        "queue": {
            "t_ns": [1 * S, 2 * S], "link": [0, 0], "backlog_packets": [3, 4], "backlog_bytes": [4500, 6000],
            "sojourn_max_ns": [30 * MS, 20 * MS], "sent_packets": [10, 20], "sent_bytes": [15000, 30000],
            "dropped_packets": [1, 0], "marked_packets": [0, 1],
            "ring_packets": [2, 3], "ring_bytes": [3000, 4500], "bql_limit_bytes": [1500, 3000],
        },
        "flow": {
            "t_ns": [1 * S, 1 * S], "flow": [0, 1], "cwnd_bytes": [14480, 28960], "ssthresh_bytes": [-1, 14480],
            "srtt_ns": [50 * MS, -1], "inflight_bytes": [1448, 0], "delivered_bytes": [1448, 0], "retransmits": [0, 0],
            "window_bytes": [65536, 65536], "delay_max_ns": [-1, -1],
        },
        "probe": {
            "t_ns": [1 * S, 3 * S, 4 * S, 5 * S, 6 * S, 7 * S], "probe": [2] * 6, "seq": list(range(6)),
            "rtt_ns": [90 * MS, 30 * MS, 40 * MS, -1, 50 * MS, 60 * MS],
            "forward_ns": [45 * MS, 15 * MS, 20 * MS, -1, 25 * MS, 30 * MS],
        },
        "drops": {
            "t_ns": [1 * S, 3 * S, 4 * S, 5 * S, 6 * S, 7 * S, 8 * S], "link": [0] * 7, "flow": [0, 0, 1, 0, 1, 0, 1],
            "cause": [EARLY, LIMIT, LIMIT, LIMIT, EARLY, TARGET, TARGET], "marked": [0, 0, 0, 0, 0, 1, 1], "bytes": [1500] * 7,
        },
        "sojourn": {
            "link": [0, 0], "lower_ns": [0, 10 * MS], "upper_ns": [10 * MS, 31 * MS], "packets": [498, 498],
        },
        "rtt": {"flow": [0, 1], "lower_ns": [40 * MS, 60 * MS], "upper_ns": [60 * MS, 80 * MS], "samples": [100, 50]},
        "links": {
            "link": [0], "arrived_packets": [1000], "arrived_bytes": [1_500_000], "sent_packets": [996],
            "sent_bytes": [1_494_000], "wire_bytes": [5_000_000], "dropped_packets": [4], "marked_packets": [2],
            "lost_packets": [0], "sojourn_sum_ns": [996 * 12 * MS], "sojourn_max_ns": [30 * MS],
            "backlog_max_packets": [40], "backlog_max_bytes": [60_000], "busy_ns": [4 * S],
            "capacity_bits": [80 * MBIT], "measured_ns": [8 * S], "ring_sent_packets": [993],
            "ring_sojourn_sum_ns": [993 * 3 * MS], "ring_sojourn_max_ns": [4 * MS], "ring_max_packets": [3],
            "bql_limit_bytes": [3000],
        },
        "flows": {
            "flow": [0, 1, 2], "sent_packets": [200, 70, 6], "sent_bytes": [300_000, 105_000, 504],
            "received_packets": [198, 70, 5], "delivered_bytes": [3_000_000, 1_000_000, 420], "lost_packets": [2, 0, 1],
            "retransmits": [2, 0, 0], "timeouts": [0, 0, 0], "fast_recoveries": [1, 0, 0],
            "rtt_sum_ns": [100 * 50 * MS, 50 * 70 * MS, 0], "rtt_samples": [100, 50, 0], "rtt_min_ns": [41 * MS, 61 * MS, -1],
            "rtt_max_ns": [59 * MS, 79 * MS, -1], "base_rtt_ns": [40 * MS, 60 * MS, 20 * MS],
        },
        "transfers": {
            "flow": [0, 0, 0], "start_ns": [1 * S, 3 * S, 5 * S], "end_ns": [3 * S, 3 * S + 200 * MS, 5 * S + 400 * MS],
            "bytes": [50_000] * 3,
        },
        "engine": {"events": [4000], "packets": [996], "peak_entries": [50]},
    }  # fmt: skip
    # Tables that are not set here are empty.
    tables: Tables = {
        name: nothing(name, len(next(iter(table.values()))))
        | {column: np.array(values) for column, values in table.items()}
        for name, table in ints.items()
    }
    tables["queue"]["sojourn_mean_ns"] = np.array([12.5 * MS, np.nan])
    tables["queue"]["limit"] = np.array([40.0, 40.0])
    tables["links"]["backlog_mean_packets"] = np.array([5.5])
    tables["links"]["backlog_mean_bytes"] = np.array([8250.0])
    tables["links"]["ring_mean_packets"] = np.array([2.5])
    if kind != "transfers":
        tables["transfers"] = {name: values[:0] for name, values in tables["transfers"].items()}
    return tables


def small_run(
    path: Path, kind: str = "bulk", seeds: Sequence[int] = (1, 2), label: str = ""
) -> Run:
    run = Run.create(path, small_meta(kind, seeds, label), 'title = "Two flows and a ping"\n')
    for seed in seeds:
        tables = small_tables(kind)
        # Each seed has a little more for the first flow, so that the mean differs from each value.
        tables["flows"]["delivered_bytes"] = tables["flows"]["delivered_bytes"] + np.array(
            [1000 * (seed - 1), 0, 0]
        )
        run.add_seed(seed, tables, CAUSES, cpu_ns=S // 4)
    return run
