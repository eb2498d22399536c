"""The measures: delay in the queue packet by packet, the link's utilisation, and the sources'
losses.

    delay        from enqueue to dequeue, of sent packets, ms; percentiles are over packets
    utilisation  bits sent over the bits that the link could have carried, %
    fairness     Jain's index of the sources' loss rates: packets the queue dropped over sent ones
    megabytes    data that left the queue, MB

The article has the same measures. Its delays are those of sent packets, without the dropped ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from statistics import median

import polars as pl

from sojourn import metrics
from sojourn_papers.codel import studies as s
from sojourn_papers.evidence import Estimate, Evidence, Measure, Seed, estimated
from sojourn_papers.study import Variant

# ------------------------------------------------------------------------------- one link, one seed


@cache
def delay_ms(share: float, link: str = "down") -> Measure:
    """The percentile of the delay for this share of the packets, ms."""

    def measured(seed: Seed) -> float:
        bins = seed.table("sojourn").filter(pl.col("link") == link)
        return metrics.histogram_quantile(bins, "packets", share) / 1e6

    return measured


median_ms = delay_ms(0.5)
quartile_ms = delay_ms(0.75)


@cache
def utilisation(link: str = "down") -> Measure:
    """Utilisation of the link, %."""

    def measured(seed: Seed) -> float:
        row = seed.link(link)
        return 100 * metrics.utilisation(row["wire_bytes"], row["capacity_bits"])

    return measured


busy = utilisation()


@cache
def loss(link: str = "down") -> Measure:
    """Packets that the queue dropped over those that arrived, %."""

    def measured(seed: Seed) -> float:
        row = seed.link(link)
        return 100 * metrics.ratio(row["dropped_packets"], row["arrived_packets"])

    return measured


@cache
def megabytes(link: str = "down") -> Measure:
    """Data that left the queue, MB."""

    def measured(seed: Seed) -> float:
        return float(seed.link(link)["sent_bytes"]) / 1e6

    return measured


@cache
def drop_fairness(link: str = "down") -> Measure:
    """Jain's index of the loss rates of the sources on this link: dropped over sent packets. NaN
    without a drop."""

    def measured(seed: Seed) -> float:
        drops = seed.after_warmup("drops").filter(
            (pl.col("link") == link) & (pl.col("marked") == 0)
        )
        lost = dict(drops.group_by("flow").len().iter_rows())
        flows = seed.table("flows").filter(pl.col("sent_packets") > 0)
        names = {flow.name for flow in seed.run.meta.flows if link in flow.path}
        sent = {
            name: packets
            for name, packets in flows.select("flow", "sent_packets").iter_rows()
            if name in names
        }
        return of_shares(lost, sent)

    return measured


def of_shares(lost: Mapping[str, int], sent: Mapping[str, int]) -> float:
    """Jain's index of the sources' loss rates, lost over sent packets. NaN if none was lost."""
    shares = [lost.get(name, 0) / packets for name, packets in sent.items()]
    return metrics.jain(shares) if any(shares) else math.nan


down_loss, up_loss = loss("down"), loss("up")
down_median, up_median = delay_ms(0.5, "down"), delay_ms(0.5, "up")
down_volume, up_volume = megabytes("down"), megabytes("up")
down_fairness, up_fairness = drop_fairness("down"), drop_fairness("up")


# ------------------------------------------------------------------------------- the link that steps


def longest_s(seed: Seed) -> float:
    """The longest delay, s."""
    return float(seed.link()["sojourn_max_ns"]) / 1e9


def full_ms(seed: Seed) -> float:
    """The longest delay, ms."""
    return 1e3 * longest_s(seed)


def at_95_ms(seed: Seed) -> float:
    """The delay that is not exceeded in 95 % of the time, ms. It is the 95th percentile of the mean
    delays of intervals of 100 ms, without intervals in which no packet left."""
    means = seed.timeline()["sojourn_mean_ns"].drop_nulls().quantile(0.95, "linear")
    return math.nan if means is None else float(means) / 1e6


def reaction_ms(seed: Seed) -> float:
    """Time from a step to a lower rate to the queue's first drop, ms: the longest of the three
    steps."""
    drops = seed.table("drops").filter(pl.col("link") == "down")["t_ns"].sort()
    waits = [first_after(drops, 1e9 * step) for step in s.FALLS_S]
    return max(waits) / 1e6


def first_after(times: pl.Series, t_ns: float) -> float:
    """Time from `t_ns` to the next of `times`; infinite if there is none."""
    later = times.filter(times >= t_ns)
    return float(later[0]) - t_ns if len(later) else math.inf


@cache
def between_ms(start_s: float, end_s: float) -> Measure:
    """Mean delay of the packets that left in start < t <= end, ms."""

    def measured(seed: Seed) -> float:
        rows = seed.timeline().filter(
            (pl.col("t_ns") > 1e9 * start_s)
            & (pl.col("t_ns") <= 1e9 * end_s)
            & (pl.col("sent_packets") > 0)
        )
        total = (rows["sojourn_mean_ns"] * rows["sent_packets"]).sum()
        return metrics.ratio(float(total), float(rows["sent_packets"].sum())) / 1e6

    return measured


@cache
def carried_mb(start_s: float, end_s: float) -> Measure:
    """Data that left the queue in start < t <= end, MB."""

    def measured(seed: Seed) -> float:
        rows = seed.timeline().filter(
            (pl.col("t_ns") > 1e9 * start_s) & (pl.col("t_ns") <= 1e9 * end_s)
        )
        return float(rows["sent_bytes"].sum()) / 1e6

    return measured


def fewer(evidence: Evidence, queue: str) -> Estimate:
    """How much less the link carries with ten packets of buffer than with 830, under the same
    queue, %."""
    return evidence.compared(
        s.STEPPED[queue, s.SMALL],
        s.STEPPED[queue, s.LARGE],
        down_volume,
        lambda few, all_: 100 * (1 - few / all_),
    )


def of_codel(evidence: Evidence, queue: str) -> Estimate:
    """Data carried under Tail Drop with ten packets over that under CoDel with 830, %."""
    return evidence.compared(
        s.STEPPED[queue, s.SMALL],
        s.STEPPED[s.CODEL, s.LARGE],
        down_volume,
        lambda few, all_: 100 * few / all_,
    )


def of_ftps(evidence: Evidence, mbps: float, name: str = s.CODEL) -> Estimate:
    """The median delay of FTPs at one rate, ms: each run has a median delay, and this is the median
    of the runs with all RTTs and numbers of FTPs."""
    return median_of(
        evidence,
        [
            variant
            for at, variant in s.SETTINGS.items()
            if (at.queue, at.mbps) == (name, mbps) and at.load != s.MIX and evidence.has(variant)
        ],
    )


def median_of(evidence: Evidence, variants: Sequence[Variant]) -> Estimate:
    """The median of the variants' median delays, ms, for each seed. A seed that a variant lacks is
    left out: variants under another reading may have fewer seeds."""
    each = [evidence.estimate(one, median_ms).values for one in variants]
    return estimated(median(found) for found in zip(*each, strict=False))


def pooled(evidence: Evidence, name: str) -> Estimate:
    """The median of the median delays of figure 6's runs with one discipline, ms."""
    runs = [s.SLOW[one] for one in s.SLOW.variants if one.startswith(name)]
    return median_of(evidence, [one for one in runs if evidence.has(one)])
