"""The measures of one seed: the source's two quantities, and quantities that explain them.

By the source's definition throughput is received data over the connection time. Data is counted
like in ns-2's trace, in IP bytes (headers included, 7 % of a packet of 552 B). Connection time is
the length of the run: all flows start within 10 ms of 3.5 s, so the time of each connection is the
same within 0.3 %. Throughput is summed over the flows, since the published numbers grow with N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import polars as pl

from sojourn import metrics
from sojourn_papers import published
from sojourn_papers.evidence import Estimate, Evidence, Seed
from sojourn_papers.red_droptail import studies as s

BOTTLENECK = "down"


def received_bytes(seed: Seed) -> list[float]:
    """IP bytes that reached each flow's receiver; 0 for a flow that never sent."""
    flows = seed.table("flows")
    return [
        received * sent_bytes / sent if sent else 0.0
        for received, sent, sent_bytes in flows.select(
            "received_packets", "sent_packets", "sent_bytes"
        ).rows()
    ]


def throughput_mbps(seed: Seed) -> float:
    """Throughput of all receivers together, Mbit/s."""
    return math.fsum(received_bytes(seed)) * 8 / seed.run.meta.measured_s / 1e6


def fairness(seed: Seed) -> float:
    """Jain's index of the flows' throughputs."""
    return metrics.jain(received_bytes(seed))


def dropped_packets(seed: Seed) -> float:
    """Packets that the bottleneck dropped."""
    return float(seed.link()["dropped_packets"])


def dropped_early(seed: Seed) -> float:
    """Packets that RED dropped before the buffer was full."""
    drops = seed.after_warmup("drops").filter(pl.col("link") == BOTTLENECK)
    return float(drops.filter(pl.col("cause") != "limit").height)


def drop_share(seed: Seed) -> float:
    """Dropped packets over those that arrived."""
    link = seed.link()
    return metrics.ratio(link["dropped_packets"], link["arrived_packets"])


def utilisation(seed: Seed) -> float:
    """Share of the bottleneck's time that carried a packet."""
    link = seed.link()
    return metrics.utilisation(link["wire_bytes"], link["capacity_bits"])


def sojourn_ms(seed: Seed) -> float:
    """Mean sojourn at the bottleneck, ms."""
    link = seed.link()
    return metrics.ratio(link["sojourn_sum_ns"], link["sent_packets"]) / 1e6


def backlog_max_packets(seed: Seed) -> float:
    """The longest queue, packets."""
    return float(seed.link()["backlog_max_packets"])


def notified_in_proportion(seed: Seed) -> float:
    """Correlation, over the flows, of a flow's share of the packets with its share of the drops;
    NaN without drops."""
    flows = seed.table("flows").select("flow", "sent_packets")
    drops = (
        seed.after_warmup("drops")
        .filter(pl.col("link") == BOTTLENECK)
        .group_by("flow")
        .len("drops")
    )
    joined = flows.join(drops, on="flow", how="left").with_columns(pl.col("drops").fill_null(0))
    return correlation(
        [float(x) for x in joined["sent_packets"].to_list()],
        [float(x) for x in joined["drops"].to_list()],
    )


def correlation(xs: list[float], ys: list[float]) -> float:
    """Pearson's r; NaN if one of the two doesn't vary."""
    mean_x, mean_y = math.fsum(xs) / len(xs), math.fsum(ys) / len(ys)
    both = math.fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    spread = math.sqrt(
        math.fsum((x - mean_x) ** 2 for x in xs) * math.fsum((y - mean_y) ** 2 for y in ys)
    )
    return metrics.ratio(both, spread)


# ------------------------------------------------------------------------------------ RED's lead


def lead(kind: str, red: float, tail: float) -> float:
    """RED's lead over Drop-Tail: the quotient of throughputs, the difference of indices."""
    return red / tail if kind == "throughput" else red - tail


def lead_of(evidence: Evidence, kind: str, tp: str, at: str) -> Estimate:
    """The lead in one row of a table, seed by seed: the same seed starts the flows at the same
    times under both. `at`: N or D."""
    study, measure, n, d = (
        (s.THROUGHPUT, throughput_mbps, int(at), 0)
        if kind == "throughput"
        else (s.FAIRNESS, fairness, 16, int(at))
    )
    red, tail = (study[s.cell(int(tp), n, queue, d)] for queue in (s.RED, s.DROP_TAIL))
    return evidence.compared(red, tail, measure, partial(lead, kind))


# ----------------------------------------------------------------------------- ours beside ns-2's


@dataclass(frozen=True)
class Pair:
    """One row that ns-2 also ran: its number and ours."""

    reading: str
    kind: str
    """throughput, fairness"""
    queue: str
    ns2: float
    ours: float

    @property
    def off(self) -> float:
        """Our number over ns-2's, less 1."""
        return self.ours / self.ns2 - 1


def pairs(evidence: Evidence) -> list[Pair]:
    """All rows that were run."""
    found = []
    for kind, measure in (("throughput", throughput_mbps), ("fairness", fairness)):
        cells = [(n, 0) for n in s.N] if kind == "throughput" else [(16, d) for d in s.D]
        for row in published.beside(__file__)["ns2"][kind]:
            for (n, d), ns2 in zip(cells, row["values"], strict=True):
                variant = s.NS2[s.checked(row["reading"], s.cell(row["tp"], n, row["queue"], d))]
                if evidence.has(variant):
                    ours = evidence.mean(variant, measure)
                    found.append(Pair(row["reading"], kind, row["queue"], ns2, ours))
    return [pair for pair in found if not math.isnan(pair.ours)]


def agreement(evidence: Evidence, queue: str) -> tuple[int, float, float]:
    """The number of rows of this queue, and the median and the largest of their absolute relative
    differences."""
    off = sorted(abs(pair.off) for pair in pairs(evidence) if pair.queue == queue)
    return len(off), off[len(off) // 2], off[-1]
