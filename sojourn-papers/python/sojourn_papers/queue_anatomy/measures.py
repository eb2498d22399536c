"""The source's measures: RTT by ping, dropped packets, retransmissions and throughput during the
copies.

A Run continues for a while after the last copy, when pings meet empty queues, so all measures over
time end with the last copy. A retransmission is needless (the source: erroneous) if no packet was
lost for it. Their number is retransmissions less lost packets.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sojourn_papers.evidence import Estimate, Evidence, Seed
from sojourn_papers.queue_anatomy import studies as s
from sojourn_papers.queue_anatomy.studies import name
from sojourn_papers.study import Variant

HANDFUL = 10
"""A negligible number of retransmissions, among 700 000 segments."""


def copies(seed: Seed) -> pl.DataFrame:
    """The time at which each file was complete: `flow`, `bytes`, `end_ns`."""
    # The engine records a transfer again for each late duplicate of its last ACK: the first record
    # counts.
    return (
        seed.table("transfers")
        .group_by("flow")
        .agg(pl.col("bytes").first(), pl.col("end_ns").min())
    )


def end_s(seed: Seed) -> float:
    """The time at which the last copy was complete, s; NaN if one is not."""
    done = copies(seed)
    wanted = sum(flow.finite for flow in seed.run.meta.flows)
    if done.height < wanted:
        return math.nan
    return float(done["end_ns"].to_numpy().max()) / 1e9


def rtts_s(seed: Seed) -> NDArray[np.float64]:
    """RTTs of the pings sent during the copies, s; lost ones are left out."""
    end = end_s(seed) * 1e9
    sent = seed.table("probe").filter((pl.col("probe") == "ping") & (pl.col("t_ns") < end))
    return sent["rtt_ns"].drop_nulls().to_numpy() / 1e9


def rtt_s(seed: Seed) -> float:
    """Mean RTT of the pings, s: figures 3(a), 4(a) and 5."""
    found = rtts_s(seed)
    return float(found.mean()) if found.size else math.nan


def rtt_ms(seed: Seed) -> float:
    """Mean RTT of the pings, ms."""
    return 1e3 * rtt_s(seed)


def median_s(seed: Seed) -> float:
    """Median of the RTT, s."""
    found = rtts_s(seed)
    return float(np.median(found)) if found.size else math.nan


def p95_s(seed: Seed) -> float:
    """95th percentile of the RTT, s: figures 8 and 9."""
    found = rtts_s(seed)
    return float(np.quantile(found, 0.95)) if found.size else math.nan


def p95_ms(seed: Seed) -> float:
    """95th percentile of the RTT, ms."""
    return 1e3 * p95_s(seed)


def _files(seed: Seed, column: str) -> float:
    rows = seed.table("flows").filter(pl.col("flow").str.starts_with("file"))
    return float(rows[column].to_numpy().sum())


def drops(seed: Seed) -> float:
    """Packets that the router's qdisc dropped: figures 3(b) and 4(b)."""
    return float(seed.link()["dropped_packets"])


def retransmissions(seed: Seed) -> float:
    """Segments that the servers retransmitted: figures 3(c) and 4(c)."""
    return _files(seed, "retransmits")


def needless(seed: Seed) -> float:
    """Retransmissions without a lost packet, as a share of all; 0 if there are fewer than `HANDFUL`,
    because their share means nothing."""
    again = retransmissions(seed)
    return max(0.0, again - _files(seed, "lost_packets")) / again if again >= HANDFUL else 0.0


def timeouts(seed: Seed) -> float:
    """Retransmission timeouts of all files."""
    return _files(seed, "timeouts")


def copied_gb(seed: Seed) -> float:
    """Data copied in all, GB."""
    return float(copies(seed)["bytes"].to_numpy().sum()) / 1e9


def throughput_mbps(seed: Seed) -> float:
    """Throughput of all copies together, until the last is complete, Mbit/s: figure 6."""
    return 8e3 * copied_gb(seed) / end_s(seed)


def in_ring(seed: Seed) -> float:
    """Mean packets in the ring during the copies."""
    return _while_copying(seed, "ring_mean_packets")


def _while_copying(seed: Seed, column: str) -> float:
    # The table has the mean over the whole Run. After the last copy the queues are empty.
    link = seed.link()
    return float(link[column] * link["measured_ns"]) / (1e9 * end_s(seed))


def in_qdisc_percent(seed: Seed) -> float:
    """Share of the waiting packets that wait in the qdisc, %: a discipline acts on these only."""
    link = seed.link()
    ring, qdisc = float(link["ring_mean_packets"]), float(link["backlog_mean_packets"])
    return 100 * qdisc / (ring + qdisc)


def widest_mb(seed: Seed) -> float:
    """The widest window that a receiver advertised, MB: figure 7. A MB here is 2^20 bytes, as
    windows are powers of two."""
    return float(seed.table("flow")["window_bytes"].drop_nulls().to_numpy().max()) / 2**20


def widest_of_all_mb(evidence: Evidence, variant: Variant | None = None) -> Estimate:
    """The widest window of all seeds instead of their mean: the largest size that it grows to. It
    has no interval."""
    seeds = evidence.estimate(variant or s.WINDOW[f"ring {s.DEFAULT_RING}"], widest_mb)
    return replace(seeds, mean=max(seeds.known, default=math.nan), ci95=math.nan)


def held_back(seed: Seed) -> float:
    """Share of the samples of copies under way in which the advertised window was full to within a
    segment."""
    table = seed.table("flow").filter(
        pl.col("window_bytes").is_not_null() & (pl.col("inflight_bytes") > 0)
    )
    return float((table["inflight_bytes"] + 1448 > table["window_bytes"]).to_numpy().mean())


def low_share(seed: Seed) -> float:
    """The five low-priority flows' share of all goodput, %: a half is their fair share."""
    table = seed.table("flows")
    low, cubic = (
        float(
            table.filter(pl.col("flow").str.starts_with(name))["delivered_bytes"].to_numpy().sum()
        )
        for name in ("low", "cubic")
    )
    return 100 * low / (low + cubic)


def ping_ms(seed: Seed) -> float:
    """Mean RTT of the ping after the warm-up, ms. It is for the coexistence study, which does not
    end with the copies."""
    return float(seed.probe()["rtt_ms"]["mean"])


# ------------------------------------------------------------------------------ from two variants


def more_percent(one: float, other: float) -> float:
    """How much more one is than the other, %."""
    return 100 * (one / other - 1)


def apart_percent(one: float, other: float) -> float:
    """The distance of two numbers, % of the larger."""
    return 100 * abs(one - other) / max(one, other)


def less(one: float, other: float) -> float:
    """`one` less `other`."""
    return one - other


def more_at_4096(evidence: Evidence, reading: str = s.MAIN) -> Estimate:
    """How much longer the RTT is with the largest ring than with the default one, %."""
    along = s.over_rings(reading)
    return evidence.compared(along[4096], along[s.DEFAULT_RING], rtt_s, more_percent)


def qdisc_apart(evidence: Evidence, reading: str = s.MAIN) -> Estimate:
    """With BQL, how much longer the 95th percentile is with the longest qdisc than with the
    shortest, ms."""
    along = s.over_bql(reading, True)
    return evidence.compared(along[80], along[4096], p95_ms, less)


def throughput_apart(evidence: Evidence, reading: str = s.MAIN) -> Estimate:
    """The distance of the throughputs with the smallest and the largest ring, %, at the qdisc where
    it is largest."""
    pairs = [tuple(s.RING[name(reading, ring, s.DEFAULT_QDISC)] for ring in (80, 4096))]
    if reading in s.BOTH and any(variant.study == s.SURFACE.id for variant in evidence.runs):
        pairs += [
            (s.sized(reading, 80, qdisc), s.sized(reading, 4096, qdisc))
            for qdisc in s.QDISCS
            if evidence.has(s.SURFACE[name(s.MAIN, 4096, qdisc)])
        ]
    known = [
        evidence.compared(small, large, throughput_mbps, apart_percent) for small, large in pairs
    ]
    return max(known, key=lambda one: one.mean)
