"""The source's three equations, and the data that it puts into them.

    (1)  latency    = receive time - send time
    (2)  throughput = bytes that the client received / time from the first to the last packet sent
    (3)  loss       = (transmitted - received) / transmitted

Tables 2 and 3 put pings into (1) and (3), so their latency is a round trip, and the video into (2).
We also measure (1) and (3) on the video's own packets, because a viewer gets these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sojourn import metrics
from sojourn_papers.evidence import Best, Estimate, Evidence, Measure, Seed, Swap, estimated
from sojourn_papers.video_testbed.studies import (
    BEHIND,
    BOTTLENECKS,
    BURSTS,
    CITED_BY,
    FILLED,
    WIRE,
    burst,
)

Milliseconds = NDArray[np.float64]

FORGETS_MS = 10_000.0
"""fping drops the entry of a sequence number after 10 s, and ignores a later reply."""
WAITS_MS = 2_000.0
"""fping's longest wait for the replies of its last ping; then it prints its summary and ends."""


# -------------------------------------------------------------------------------------- equations


def latency_ms(sent_ns: float, received_ns: float) -> float:
    """Equation 1."""
    return (received_ns - sent_ns) / 1e6


def rate_kbps(received_bytes: float, seconds: float) -> float:
    """Equation 2, kbit/s (1000)."""
    return metrics.ratio(8 * received_bytes / 1e3, seconds)


def loss_percent(transmitted: float, received: float) -> float:
    """Equation 3, per cent."""
    return 100 * metrics.ratio(transmitted - received, transmitted)


# ------------------------------------------------------------------------------------------ pings


def counted(sent_ms: Milliseconds, latency: Milliseconds) -> Milliseconds:
    """The latencies that fping reports. NaN in `latency` are dropped pings. fping misses late
    replies and replies after its end."""
    if sent_ms.size == 0:
        return latency
    end = sent_ms.max() + WAITS_MS
    seen = np.isfinite(latency) & (latency < FORGETS_MS) & (sent_ms + latency <= end)
    reported: Milliseconds = latency[seen]
    return reported


def pings(seed: Seed) -> tuple[Milliseconds, Milliseconds]:
    """The time of sending and the latency of each ping, ms, in the order sent; NaN: dropped."""
    table = seed.table("probe").sort("seq")
    sent = table["t_ns"].cast(pl.Float64).to_numpy()
    received = sent + table["rtt_ns"].cast(pl.Float64).fill_null(math.nan).to_numpy()
    return sent / 1e6, np.array([latency_ms(*pair) for pair in zip(sent, received, strict=True)])


def _replies(seed: Seed) -> Milliseconds:
    return counted(*pings(seed))


def least_ms(seed: Seed) -> float:
    """Least latency of the pings."""
    return float(np.min(_replies(seed), initial=math.inf))


def most_ms(seed: Seed) -> float:
    """Largest latency of the pings."""
    return float(np.max(_replies(seed), initial=0.0))


def mean_ms(seed: Seed) -> float:
    """Mean latency of the pings."""
    replies = _replies(seed)
    return float(replies.mean()) if replies.size else math.nan


def sent_pings(seed: Seed) -> float:
    """Sent pings: the column xmt."""
    return float(pings(seed)[0].size)


def received_pings(seed: Seed) -> float:
    """Replies that the probe counted: the column rcv."""
    return float(_replies(seed).size)


def ping_loss_percent(seed: Seed) -> float:
    """Equation 3 on the pings as the probe counts them: the column %loss."""
    return loss_percent(sent_pings(seed), received_pings(seed))


# ------------------------------------------------------------------------------------------ video


def throughput_kbps(seed: Seed) -> float:
    """Equation 2 on all frames that the shaped link carried to the client, with their Ethernet
    header."""
    row = seed.link()
    return rate_kbps(row["wire_bytes"], row["measured_ns"] / 1e9)


def _film(seed: Seed) -> pl.DataFrame:
    return seed.table("flows").filter(pl.col("flow") != "ping")


def film_loss_percent(seed: Seed) -> float:
    """Equation 3 on the packets of the film."""
    sent, lost = (
        cast(int, _film(seed)[column].sum()) for column in ("sent_packets", "lost_packets")
    )
    return loss_percent(sent, sent - lost)


def film_throughput_percent(seed: Seed) -> float:
    """Utilisation of the link's rate, per cent."""
    return 100 * float(seed.queue("down")["utilisation"])


def dropped_for_age_percent(seed: Seed) -> float:
    """Share of CoDel's drops that are due to a packet's age and not to a full queue, per cent."""
    causes = seed.queue("down")["drops"]
    return 100 * metrics.ratio(causes.get("target", 0), sum(causes.values()))


def queue_loss_percent(seed: Seed) -> float:
    """Dropped over arrived packets at the bottleneck, per cent."""
    return 100 * float(seed.queue("down")["drop_rate"])


def carried_kbps(seed: Seed) -> float:
    """Equation 2 on the application's bytes, kbit/s."""
    return 1e3 * float(seed.numbers["goodput_mbps"])


def queue_ms(seed: Seed) -> float:
    """Mean sojourn in the bottleneck's queue."""
    return float(seed.queue("down")["sojourn_ms"]["mean"])


def peak_packets(seed: Seed) -> float:
    """Largest backlog of the bottleneck, packets."""
    return float(seed.queue("down")["backlog_packets"]["max"])


# ------------------------------------------------------------------------------------ comparisons


def below_percent(one: float, other: float) -> float:
    """Distance of the first below the second, per cent of the second."""
    return 100 * (1 - one / other)


def above_percent(one: float, other: float) -> float:
    """Distance of the first above the second, per cent of the second."""
    return -below_percent(one, other)


def points(one: float, other: float) -> float:
    """First less second, in percentage points."""
    return one - other


def averaged(each: list[Estimate]) -> Estimate:
    """The mean of several estimates, seed by seed."""
    return estimated(
        math.fsum(some) / len(some) for some in zip(*(one.values for one in each), strict=True)
    )


def over_bottlenecks(
    evidence: Evidence, one: str, other: str, measure: Measure, how: Callable[[float, float], float]
) -> Estimate:
    """A comparison of two disciplines, as the mean over the three bottlenecks."""
    return averaged(
        [
            evidence.compared(BEHIND[one][kbps], BEHIND[other][kbps], measure, how)
            for kbps in BOTTLENECKS
        ]
    )


def latency_below_red(evidence: Evidence) -> Estimate:
    """CoDel's latency below RED's, %."""
    return over_bottlenecks(evidence, "CoDel", "RED", mean_ms, below_percent)


def carried_above(evidence: Evidence, name: str) -> Estimate:
    """A discipline's throughput above CoDel's, %."""
    return over_bottlenecks(evidence, name, "CoDel", throughput_kbps, above_percent)


def lost_below(evidence: Evidence, name: str) -> Estimate:
    """A discipline's loss of pings below CoDel's, points: equation 3 as the tables have it."""
    return over_bottlenecks(evidence, "CoDel", name, ping_loss_percent, points)


def loss_above_red(evidence: Evidence) -> Estimate:
    """Drop Tail's loss above RED's where the film fills the link, %."""
    tail, red = CITED_BY["Drop Tail"], CITED_BY["RED"]
    return averaged(
        [
            evidence.compared(tail[rate], red[rate], queue_loss_percent, above_percent)
            for rate in FILLED
            if evidence.has(red[rate])
        ]
    )


# ------------------------------------------------------------------------ a reading, for the matrix

_BEST = "three best of ten films"
_BEHIND = [variant for along in BEHIND.values() for variant in along.values()]
SWAPS: dict[str, Swap] = {
    _BEST: {variant: Best(variant, 3, mean_ms) for variant in _BEHIND},
    f"{_BEST}, of the search": {
        **dict.fromkeys(_BEHIND),
        **{
            BEHIND[name][kbps]: Best(BURSTS[burst(name, kbps, WIRE)], 3, mean_ms)
            for name in ("Drop Tail", "RED")
            for kbps in BOTTLENECKS
        },
    },
}
"""The source's "three best results", understood as those with the least mean latency."""
