"""The measures.

share      the goodput of BBR's flows over that of all flows, percent
ping       the 95th percentile of the ping's RTT less its RTT without load, ms
queue      the mean backlog, packets
seen       the backlog when BBR measures the RTT, packets: the least in each of BBR's pauses
           (ProbeRTT), and the mean over the pauses
in flight  BBR's mean packets in flight, and its window, the cap on them
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sojourn import metrics
from sojourn_papers.bbr_shares import studies as s
from sojourn_papers.bbr_shares.model import IN_PROBE, share
from sojourn_papers.evidence import Estimate, Evidence, Seed

PAYLOAD = 1448
"""Bytes of a segment."""


def share_percent(seed: Seed) -> float:
    """BBR's share of the goodput of all flows, percent."""
    got = {"bbr": 0.0, "cubic": 0.0}
    for flow in seed.numbers["flows"]:
        kind = flow["name"].partition(".")[0]
        if kind in got:
            got[kind] += float(flow["goodput_mbps"])
    return 100 * metrics.ratio(got["bbr"], math.fsum(got.values()))


def queued_ms(seed: Seed) -> float:
    """Delay that queues add to the ping's RTT, 95th percentile, ms."""
    ping = seed.probe()
    return float(ping["rtt_ms"]["p95"]) - float(ping["base_rtt_ms"])


def queue_packets(seed: Seed) -> float:
    """The mean backlog, packets."""
    return float(_backlog(seed).mean())


def inflight_packets(seed: Seed) -> float:
    """BBR's mean packets in flight."""
    return float(_of_bbr(seed, "inflight_bytes").mean())


def window_packets(seed: Seed) -> float:
    """BBR's mean window, packets."""
    return float(_of_bbr(seed, "cwnd_bytes").mean())


def seen_packets(seed: Seed) -> float:
    """The mean over BBR's pauses of the least backlog in each, packets; NaN without a pause."""
    pausing = _of_bbr(seed, "inflight_bytes") < IN_PROBE + 1
    rows = zip(pausing, _backlog(seed), strict=True)
    least = [
        min(backlog for _, backlog in each)
        for paused, each in groupby(rows, key=lambda row: bool(row[0]))
        if paused
    ]
    return float(np.mean(least)) if least else math.nan


def _backlog(seed: Seed) -> NDArray[np.float64]:
    rows = seed.after_warmup("queue").filter(pl.col("link") == "down").sort("t_ns")
    return rows["backlog_packets"].to_numpy().astype(float)


def _of_bbr(seed: Seed, column: str) -> NDArray[np.float64]:
    rows = seed.after_warmup("flow").filter(pl.col("flow") == "bbr").sort("t_ns")
    return rows[column].to_numpy().astype(float) / PAYLOAD


def along(evidence: Evidence, version: str, bbrs: int, cubics: int) -> dict[float, Estimate]:
    """BBR's share by the depth of the FIFO, for the depths that were run."""
    study = s.DEPTH if bbrs == 1 else s.MANY
    return {
        depth: evidence.estimate(variant, share_percent)
        for depth in s.DEPTHS
        if evidence.has(variant := study[s.beside(version, bbrs, cubics, depth)])
    }


@dataclass(frozen=True)
class Assumed:
    """Measured values, at one depth, of the factors that the model assumes to be one."""

    share: float
    """BBR's share, from 0 to 1."""
    full: float
    """The mean backlog over the queue's limit."""
    seen: float
    """The backlog when BBR measures the RTT, over the sum of CUBIC's mean part of the backlog and
    BBR's four packets."""
    flown: float
    """Packets in flight over the window."""
    believed: float
    """The window over twice the product of BBR's rate and the RTT that it measured."""

    @property
    def kept(self) -> float:
        """Packets in flight over twice the product of BBR's rate and that RTT."""
        return self.flown * self.believed


def assumed(evidence: Evidence, cubics: int, depth: float) -> Assumed | None:
    """The measured factors; None if the depth was not run."""
    variant = s.PROBED[s.beside("BBR", 1, cubics, depth)]
    if not evidence.has(variant):
        return None
    own = evidence.mean(variant, share_percent) / 100
    queue, seen = (evidence.mean(variant, one) for one in (queue_packets, seen_packets))
    window, flown = (evidence.mean(variant, one) for one in (window_packets, inflight_packets))
    # A queue of `packets` packets makes the RTT (1 + packets / BDP) times as long.
    product = 2 * own * (s.BDP + seen)
    return Assumed(
        own,
        queue / round(depth * s.BDP),
        seen / ((1 - own) * queue + IN_PROBE),
        flown / window,
        window / product,
    )


def modelled(depth: float, one: Assumed, measured: Collection[str] = ()) -> float:
    """The model's share of one flow, percent. The factors named in `measured` (`full`, `seen`,
    `kept`) have their measured values."""
    return 100 * share(
        depth,
        s.BDP,
        s.RTT_S,
        full=one.full if "full" in measured else 1.0,
        seen=one.seen if "seen" in measured else 1.0,
        kept=one.kept if "kept" in measured else None,
    )
