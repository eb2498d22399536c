"""The measures: the paper's five columns, and q_adt and the queue over time.

    utilisation     bits that the bottleneck sent over the bits that it could have carried, %
    loss            packets dropped at the bottleneck over those that arrived, %
    delay           mean time from enqueue to dequeue, over all packets, ms
    fairness        Jain's index over the goodput of all TCP users
    goodput         application data that arrived, each byte once, counted at the size of full
                    packets (1500 B for 1460 B of data), over the link's capacity, %: a link full
                    of useful packets has 100 %

The warm-up, in which ADT comes down from the whole buffer, is left out.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sojourn import metrics
from sojourn_papers.adt.studies import CHANGING
from sojourn_papers.evidence import Estimate, Evidence, Seed
from sojourn_papers.measured import delay_ms as delay_ms
from sojourn_papers.measured import loss as loss
from sojourn_papers.measured import utilisation as utilisation

Floats = NDArray[np.float64]

PACKET = 1500
"""Bytes, header included."""
HEADER = 40


# -------------------------------------------------------------------------------- the five columns


def backlog_ms(seed: Seed) -> float:
    """Mean backlog after the warm-up, with each packet counted as 1500 B, ms. The source counts so:
    its 500 packets are 30 ms."""
    line = seed.timeline().filter(pl.col("t_ns") > seed.run.meta.warmup_ns)
    return _mean(line["backlog_packets"]) * PACKET * 8e3 / _rate(seed)


def longest_ms(seed: Seed) -> float:
    """The longest queueing delay, ms."""
    return float(seed.link()["sojourn_max_ns"]) / 1e6


def fairness(seed: Seed) -> float:
    """Jain's index over all TCP users, in both directions if there are two."""
    return metrics.jain(seed.table("flows")["delivered_bytes"].to_list())


def goodput(seed: Seed) -> float:
    """Useful packets from left to right (not "backward") over the capacity, %."""
    forward = seed.table("flows").filter(~pl.col("flow").str.starts_with("backward"))
    data = float(forward["delivered_bytes"].sum()) * 8
    return 100 * metrics.ratio(data * PACKET / (PACKET - HEADER), seed.link()["capacity_bits"])


def ack_share(seed: Seed) -> float:
    """Share of ACKs in the bytes that left the bottleneck, %: all bytes that are not data packets
    from left to right."""
    forward = seed.table("flows").filter(~pl.col("flow").str.starts_with("backward"))
    return 100 * (
        1
        - metrics.ratio(
            float(forward["received_packets"].sum()) * PACKET, seed.link()["sent_bytes"]
        )
    )


def timeouts_per_loss(seed: Seed) -> float:
    """Timeouts of TCP for each packet that the bottleneck dropped, %."""
    return 100 * metrics.ratio(
        float(seed.table("flows")["timeouts"].sum()), seed.link()["dropped_packets"]
    )


# -------------------------------------------------------------------------------------- over time


def limit(seed: Seed) -> float:
    """Mean q_adt after the warm-up, packets."""
    return _mean(seed.timeline().filter(pl.col("t_ns") > seed.run.meta.warmup_ns)["limit"])


def swing(seed: Seed) -> float:
    """Standard deviation of q_adt after the warm-up over its mean, %."""
    line = seed.timeline().filter(pl.col("t_ns") > seed.run.meta.warmup_ns)["limit"].to_numpy()
    return float(100 * line.std() / line.mean())


def halving_s(seed: Seed) -> float:
    """Time that q_adt takes from 400 to 200 packets when it first falls, s; NaN if it does not
    reach 200."""
    line = seed.timeline()
    return first_below(line, 200) - first_below(line, 400)


def doubling_s(seed: Seed) -> float:
    """Time that q_adt takes to rise from 150 to 300 packets, s; NaN if it does not reach 300."""
    line = seed.timeline()
    return first_above(line, 300) - first_above(line, 150)


def first_above(line: pl.DataFrame, packets: float) -> float:
    """The first time at which q_adt is above this, s; NaN if never."""
    above = line.filter(pl.col("limit") > packets)
    return float(above["t_ns"][0]) / 1e9 if above.height else float("nan")


def first_below(line: pl.DataFrame, packets: float) -> float:
    """The first time at which q_adt is below this, s; NaN if never."""
    below = line.filter(pl.col("limit") < packets)
    return float(below["t_ns"][0]) / 1e9 if below.height else float("nan")


# --------------------------------------------------------------------------------------- figure 3


def joining_s(seed: Seed) -> float:
    """The time in which users join, s: 490 users, one every 2 s, in a run of 2200 s; the quick
    version is shorter in proportion."""
    return 980 / 2200 * seed.run.meta.duration_ns / 1e9


def users(t: Floats, joining: float) -> Floats:
    """Active users of figure 3 at time t: 10, one more in each 490th of `joining`, then one
    fewer."""
    step = joining / 490
    joined: Floats = np.clip(np.floor(t / step) + 1, 0, 490)
    left: Floats = np.clip(np.floor((t - joining) / step) + 1, 0, 490)
    active: Floats = 10.0 + joined - left
    return active


def limit_with_many(seed: Seed) -> float:
    """The least q_adt while at least 450 users are active, packets."""
    line, count = _with_users(seed)
    return float(line["limit"].to_numpy()[count >= 450].min())


def limit_with_few(seed: Seed) -> float:
    """The largest q_adt after all but 20 users have left, packets. (When they arrive, q_adt begins
    with the whole buffer.)"""
    line, count = _with_users(seed)
    half = line["t_ns"].to_numpy() / 1e9 > joining_s(seed)
    return float(line["limit"].to_numpy()[half & (count <= 20)].max())


def most_of_all_draws(evidence: Evidence) -> Estimate:
    """The largest `limit_with_few` of all seeds. The source ran one draw of ten users' RTTs, and
    each seed is another: the question is whether any draw reaches the published value."""
    draws = evidence.estimate(CHANGING.only, limit_with_few).values
    return Estimate(max(draws), math.nan, draws)


def changing_utilisation(seed: Seed) -> float:
    """Utilisation while 50 users or more are active, %."""
    line, count = _with_users(seed)
    busy = line.filter(pl.Series(count >= 50))
    interval = float(line["t_ns"][1] - line["t_ns"][0]) / 1e9
    return 100 * metrics.ratio(
        float(busy["sent_bytes"].sum()) * 8, _rate(seed) * interval * busy.height
    )


def _with_users(seed: Seed) -> tuple[pl.DataFrame, Floats]:
    line = seed.timeline()
    return line, users(line["t_ns"].to_numpy() / 1e9, joining_s(seed))


# ----------------------------------------------------------------------------------------- pieces


def _rate(seed: Seed) -> int:
    rate = seed.run.meta.link("down").rate_bps
    assert rate is not None, "the bottleneck of every scenario here has a rate"
    return rate


def _mean(column: pl.Series) -> float:
    mean = column.mean()
    assert isinstance(mean, float), "q_adt is known at every sample"
    return mean
