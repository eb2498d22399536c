"""The measures: goodputs of the two flows, their ratio, and their RTTs.

ratio      the goodput of the flow `prague` over that of the flow `other`
goodputs   of one of the two flows, Mbit/s
RTTs       of one of the two flows, as its TCP samples them, ms
probe      percentiles of the RTT of the ping `probe`, ms; and the queues' part of it
utilised   the part of the time for which the link sends, percent
lost       dropped packets of the flow `prague`, or of the flow `other`, percent
share      the goodput of the flow `prague` over the rate of the link, percent
late       the time for which the SRTT of the flow `prague` is above 100 ms, s
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import polars as pl

from sojourn import metrics
from sojourn_papers.evidence import Measure, Seed

FLOWS = ("prague", "other")


@cache
def goodput(flow: str) -> Measure:
    """Goodput of one flow, Mbit/s."""

    def measured(seed: Seed) -> float:
        return float(seed.flow(flow)["goodput_mbps"])

    return measured


@cache
def rtt_ms(flow: str) -> Measure:
    """Mean RTT of one flow, as its TCP samples it, ms."""

    def measured(seed: Seed) -> float:
        return float(seed.flow(flow)["rtt_ms"]["mean"])

    return measured


LATE_MS = 100
"""20 ms above the path of finding 7."""
LINK_MBPS = 50


def late_s(seed: Seed) -> float:
    """The time for which the flow's SRTT is above `LATE_MS`, s, by rows 100 ms apart."""
    rows = seed.after_warmup("flow").filter(pl.col("flow") == "prague")
    late = rows.filter(pl.col("srtt_ns") > LATE_MS * 1_000_000).height
    return 0.1 * late


def share_percent(seed: Seed) -> float:
    """The first flow's goodput over the rate of the link of 50 Mbit/s, percent."""
    return 100 * prague_mbps(seed) / LINK_MBPS


prague_mbps, other_mbps = map(goodput, FLOWS)


@cache
def probe(what: Literal["mean", "p50", "p95", "p99"]) -> Measure:
    """A percentile of the probe's RTT, or its mean, ms."""

    def measured(seed: Seed) -> float:
        return float(seed.probe("probe")["rtt_ms"][what])

    return measured


probe_p50, probe_p95, probe_p99 = probe("p50"), probe("p95"), probe("p99")


@cache
def queued(what: Literal["mean", "p99"]) -> Measure:
    """Delay that queues add to the probe's RTT, mean or percentile, ms."""

    def measured(seed: Seed) -> float:
        return probe(what)(seed) - float(seed.probe("probe")["base_rtt_ms"])

    return measured


def utilised_percent(seed: Seed) -> float:
    """The part of the time for which the link sends, percent."""
    return 100 * float(seed.queue("down")["utilisation"])


def lost_percent(flow: str) -> Measure:
    """Packets of a flow that were dropped, percent."""

    def measured(seed: Seed) -> float:
        return 100 * float(seed.flow(flow)["loss_rate"])

    return measured


lost_l = lost_percent("prague")


def ratio(seed: Seed) -> float:
    """The first flow's goodput over the second one's."""
    return metrics.ratio(prague_mbps(seed), other_mbps(seed))
