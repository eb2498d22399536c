"""The measures: the link's utilisation, its mean queue, the completion time of short flows, and
from these the least buffer for a wanted utilisation.

    utilisation    bits that the bottleneck sent over the bits that it could have carried, %
    queue          mean over time, packets
    completion     from the first packet of a short flow to the acknowledgement of its last, s
    period         from one loss of a single flow to its next, s
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from sojourn import metrics
from sojourn_papers.buffer_sizing import model
from sojourn_papers.buffer_sizing import studies as s
from sojourn_papers.evidence import Estimate, Evidence, Seed, estimated
from sojourn_papers.measured import delay_ms as delay_ms
from sojourn_papers.measured import loss as loss
from sojourn_papers.measured import utilisation as utilisation

APART_S = 1.0
"""Drops less than this apart are one loss for the flow."""


def mean_queue(seed: Seed) -> float:
    """Mean queue of the bottleneck, packets."""
    return float(seed.link()["backlog_mean_packets"])


def least_queue(seed: Seed) -> float:
    """The least queue at a sample after the warm-up, packets."""
    rows = seed.after_warmup("queue").filter(pl.col("link") == "down")
    return float(rows["backlog_packets"].to_numpy().min())


def period_s(seed: Seed) -> float:
    """Mean time from one loss of a single flow to the next, s; NaN with fewer than two."""
    times = seed.after_warmup("drops").filter(pl.col("link") == "down")["t_ns"].sort().to_list()
    return mean_gap([t / 1e9 for t in times])


def mean_gap(times_s: Sequence[float]) -> float:
    """Mean time between losses, s: drops less than a second apart are one."""
    firsts = [
        at
        for before, at in zip((-math.inf, *times_s), times_s, strict=False)
        if at - before > APART_S
    ]
    return metrics.ratio(firsts[-1] - firsts[0], len(firsts) - 1) if len(firsts) > 1 else math.nan


def completion_s(seed: Seed) -> float:
    """Mean completion time of the flows that began after the warm-up, s."""
    done = seed.table("transfers").filter(pl.col("start_ns") > seed.run.meta.warmup_ns)
    total = float((done["end_ns"] - done["start_ns"]).sum())
    return metrics.ratio(total, done.height) / 1e9


def at_a_time(seed: Seed) -> float:
    """Mean number of flows under way: the users less those in a pause. A pause takes a second, so
    by Little's law the users in a pause are those that begin one in a second."""
    done = seed.table("transfers").filter(pl.col("end_ns") > seed.run.meta.warmup_ns)
    seconds = (seed.run.meta.duration_ns - seed.run.meta.warmup_ns) / 1e9
    return len(seed.run.meta.flows) - done.height / seconds * s.PARETO_PAUSE_S


# ------------------------------------------------------------------------------- of several variants


def least(evidence: Evidence, n: int, wanted: float) -> Estimate:
    """The least buffer with which n flows use this much of the link, in rate * RTT / sqrt(n)."""
    runs = {share: s.BY_SIZE[n, share] for share in s.SIZES if evidence.has(s.BY_SIZE[n, share])}
    by_seed = zip(
        *(evidence.estimate(one, utilisation).values for one in runs.values()), strict=True
    )
    return estimated(crossing(list(runs), values, wanted) for values in by_seed)


def rule(n: int) -> float:
    """Rate * RTT / sqrt(n) in figure 11, packets."""
    return s.PRODUCT_80 / math.sqrt(n)


def crossing(at: Sequence[float], values: Sequence[float], wanted: float) -> float:
    """The place at which a line through these points first reaches `wanted`; NaN if it does not."""
    if values[0] >= wanted:
        return at[0]
    for i in range(1, len(at)):
        if values[i] >= wanted:
            part = (wanted - values[i - 1]) / (values[i] - values[i - 1])
            return at[i - 1] + part * (at[i] - at[i - 1])
    return math.nan


def longer(evidence: Evidence, mbps: int) -> Estimate:
    """How much longer flows of 14 packets take with the small buffer than with an endless one,
    %."""
    return evidence.compared(
        s.SMALL[mbps],
        s.QUEUES[14, mbps],
        completion_s,
        lambda small, full: 100 * (small / full - 1),
    )


def by_equation(evidence: Evidence, n: int, share: float) -> Estimate:
    """Equation 6, which does not depend on the seed."""
    # Take the seeds from a study that no other reading replaces. Otherwise the matrix would show each
    # reading as changing this number.
    seeds = evidence.estimate(s.ONE[142], utilisation).values
    return estimated(model.utilisation(n, share) for _ in seeds)
