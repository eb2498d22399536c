"""The source's measures: the duration of the upload, and the pings sent during it.

The window of every measure is the upload, from its first byte to its last ACK. The idle pings are
those before it. A seed whose upload did not end within the run gives NaN, so that no verdict
depends on half an upload."""

from __future__ import annotations

import math
import operator
from functools import cache
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sojourn import metrics
from sojourn_papers.evidence import Estimate, Evidence, Measure, Seed
from sojourn_papers.home_upload.studies import AFTER, BEFORE

Milliseconds = NDArray[np.float64]
"""RTTs of pings in the order sent; NaN: no reply."""


# ---------------------------------------------------------------------------------------- windows


def upload_ns(seed: Seed) -> tuple[int, int] | None:
    """First byte and last ACK of the upload; None if it did not end within the run."""
    transfers = seed.table("transfers")
    if transfers.is_empty():
        return None
    upload = transfers.row(0, named=True)
    return upload["start_ns"], upload["end_ns"]


def cut(probe: pl.DataFrame, start_ns: int, end_ns: int) -> Milliseconds:
    """The pings that were sent in start <= t < end."""
    sent = probe.filter((pl.col("t_ns") >= start_ns) & (pl.col("t_ns") < end_ns)).sort("seq")
    return sent["rtt_ns"].cast(pl.Float64).fill_null(math.nan).to_numpy() / 1e6


def pings(seed: Seed) -> Milliseconds:
    """The pings sent during the upload."""
    window = upload_ns(seed)
    return cut(seed.table("probe"), *window) if window else np.empty(0)


def idle_pings(seed: Seed) -> Milliseconds:
    """The pings sent before the upload."""
    window = upload_ns(seed)
    return cut(seed.table("probe"), 0, window[0]) if window else np.empty(0)


# ---------------------------------------------------------------------------------- of some pings


def median(rtts: Milliseconds) -> float:
    """The median of the replies."""
    replies = rtts[np.isfinite(rtts)]
    return float(np.median(replies)) if replies.size else math.nan


def spread(rtts: Milliseconds) -> float:
    """From the 5th to the 95th percentile of the replies: the middle nine tenths."""
    replies = rtts[np.isfinite(rtts)]
    return float(np.subtract(*np.percentile(replies, (95, 5)))) if replies.size else math.nan


def loss(rtts: Milliseconds) -> float:
    """Pings without a reply, per cent."""
    return 100 * metrics.ratio(int(np.isnan(rtts).sum()), rtts.size)


# --------------------------------------------------------------------------------------- measures


def upload_s(seed: Seed) -> float:
    """Length of the upload."""
    window = upload_ns(seed)
    return (window[1] - window[0]) / 1e9 if window else math.nan


def median_ms(seed: Seed) -> float:
    """Median RTT of the pings during the upload."""
    return median(pings(seed))


def spread_ms(seed: Seed) -> float:
    """Spread of the pings during the upload."""
    return spread(pings(seed))


def apart(seed: Seed) -> float:
    """The 5th percentile of the RTTs during the upload, divided by the 95th of the RTTs before it.
    Above 1 the two bands do not overlap in a graph."""
    during, before = (one[np.isfinite(one)] for one in (pings(seed), idle_pings(seed)))
    if not during.size or not before.size:
        return math.nan
    return float(np.percentile(during, 5) / np.percentile(before, 95))


def worst_ms(seed: Seed) -> float:
    """The longest RTT of a ping during the upload."""
    replies = pings(seed)
    return float(np.nanmax(replies)) if np.isfinite(replies).any() else math.nan


def loss_percent(seed: Seed) -> float:
    """Pings lost during the upload, per cent."""
    return loss(pings(seed))


def idle_median_ms(seed: Seed) -> float:
    """Median RTT of the pings before the upload."""
    return median(idle_pings(seed))


def idle_spread_ms(seed: Seed) -> float:
    """Spread of the pings before the upload."""
    return spread(idle_pings(seed))


def pings_a_second(seed: Seed) -> float:
    """Pings sent each second of the upload."""
    return metrics.ratio(pings(seed).size, upload_s(seed))


def longer(evidence: Evidence) -> Estimate:
    """How much longer the upload takes with the cure, s. What is not known about the file
    and the application is the same in both uploads, so it cancels out."""
    return evidence.compared(AFTER, BEFORE, upload_s, operator.sub)


def _steady(seed: Seed, link: str) -> pl.DataFrame:
    """Rows of a link's time line that lie entirely within the upload."""
    window = upload_ns(seed)
    table = seed.table("queue").filter(pl.col("link") == link)
    if window is None:
        return table.clear()
    # A row covers the interval that ends at its time.
    rows = table.sort("t_ns").with_columns(since=pl.col("t_ns").shift(1, fill_value=0))
    return rows.filter((pl.col("since") >= window[0]) & (pl.col("t_ns") <= window[1]))


@cache
def standing_ms(link: str) -> Measure:
    """Mean sojourn in the queue of a link during the upload, ms."""

    def measured(seed: Seed) -> float:
        rows = _steady(seed, link).filter(pl.col("sent_packets") > 0)
        total = _sum(rows["sojourn_mean_ns"] * rows["sent_packets"])
        return metrics.ratio(total, _sum(rows["sent_packets"])) / 1e6

    return measured


def shaped_kbytes(seed: Seed) -> float:
    """Data that passes wlan0 in a second of the upload, kB as htb counts them: with 14 bytes of
    Ethernet on each packet."""
    rows = _steady(seed, "wlan0")
    seconds = _sum(rows["t_ns"] - rows["since"]) / 1e9
    return metrics.ratio(_sum(rows["sent_bytes"] + 14 * rows["sent_packets"]), seconds) / 1e3


def _sum(column: pl.Series) -> float:
    return float(cast(float, column.sum()))
