"""What ns-2.35 itself answers under seven readings, and how near our engine comes.

Measured once with Debian's ns-2.35 (Agent/TCP/Newreno, TCPSink, DropTail, RED, access links of 1 Gbit/s), so that a number which is not
reproduced can be told from an engine that errs: where ours is ns-2's and not the source's, the reading is at fault.
S0 is our main reading with all starts at once; R1 and R2 came closest in throughput, F1 to F4 in fairness, in a search
made before. In R1 to F4 RED is as ns-2.35 has it, limit and thresholds in bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from sojourn.papers.evidence import Evidence
from sojourn.papers.red_droptail.cases import DROP_TAIL, RED, D, N, cell, checked
from sojourn.papers.red_droptail.measures import fairness, throughput_mbps

THROUGHPUT: dict[tuple[str, int, str], tuple[float, ...]] = {
    ("R1", 80, DROP_TAIL): (2.008, 3.8977, 7.3222, 10.2733, 12.7511, 14.7556, 16.2867, 17.9291),
    ("R1", 250, DROP_TAIL): (0.3514, 0.7029, 1.2282, 1.5761, 1.8057, 1.9169, 1.9837, 2.0508),
    ("R1", 80, RED): (2.008, 3.8977, 4.9722, 5.7158, 6.2116, 6.5983, 6.8444, 6.8376),
    ("R1", 250, RED): (0.3514, 0.7029, 1.2282, 1.5761, 1.8057, 1.9169, 1.9837, 2.0508),
    ("R2", 80, DROP_TAIL): (2.3162, 4.3564, 7.8849, 10.7453, 12.9657, 14.7541, 16.0426, 17.4234),
    ("R2", 250, DROP_TAIL): (0.4002, 0.8004, 1.2809, 1.6973, 1.9217, 2.1461, 2.2426, 2.3874),
    ("R2", 80, RED): (2.3162, 4.0564, 7.8849, 10.0013, 11.0297, 11.5261, 12.6066, 12.9874),
    ("R2", 250, RED): (0.4002, 0.8004, 1.2809, 1.6973, 1.9217, 2.1461, 2.2426, 2.3874),
    ("S0", 80, RED): (1.895, 3.663, 6.056, 8.569, 11.021, 13.53, 16.039, 20.477),
    ("S0", 80, DROP_TAIL): (1.895, 3.663, 6.058, 8.572, 10.997, 13.506, 15.848, 19.152),
    ("S0", 250, RED): (0.482, 0.861, 1.102, 1.315, 1.521, 1.743, 1.965, 2.35),
    ("S0", 250, DROP_TAIL): (0.482, 0.823, 1.068, 1.28, 1.482, 1.704, 1.926, 2.256),
}
"""Mbit/s for N = 2, 4, 8, 12, 16, 20, 24, 32, by reading, Tp in ms and queue."""

FAIRNESS: dict[tuple[str, int, str], tuple[float, ...]] = {
    ("F1", 75, DROP_TAIL): (0.6861, 0.5396, 0.4254),
    ("F1", 250, DROP_TAIL): (0.7921, 0.6905, 0.5976),
    ("F1", 75, RED): (0.6861, 0.5396, 0.4254),
    ("F1", 250, RED): (0.7921, 0.6905, 0.5976),
    ("F2", 75, DROP_TAIL): (0.6914, 0.566, 0.4573),
    ("F2", 250, DROP_TAIL): (0.6532, 0.5616, 0.4937),
    ("F2", 75, RED): (0.6923, 0.5651, 0.4573),
    ("F2", 250, RED): (0.6532, 0.5616, 0.4937),
    ("F3", 75, DROP_TAIL): (0.6694, 0.5419, 0.4331),
    ("F3", 250, DROP_TAIL): (0.7604, 0.635, 0.5143),
    ("F3", 75, RED): (0.7769, 0.5403, 0.4331),
    ("F3", 250, RED): (0.7518, 0.635, 0.5143),
    ("F4", 75, DROP_TAIL): (0.7303, 0.6231, 0.5448),
    ("F4", 250, DROP_TAIL): (0.715, 0.6397, 0.5578),
    ("F4", 75, RED): (0.7342, 0.6231, 0.5448),
    ("F4", 250, RED): (0.715, 0.6397, 0.5578),
    ("S0", 75, RED): (0.691, 0.547, 0.438),
    ("S0", 75, DROP_TAIL): (0.691, 0.547, 0.438),
    ("S0", 250, RED): (0.807, 0.664, 0.545),
    ("S0", 250, DROP_TAIL): (0.807, 0.664, 0.545),
}
"""Jain's index of 16 flows for D = 10, 15, 20."""

MAIN_WITHIN_10_MS: dict[tuple[int, str], tuple[float, ...]] = {
    (80, RED): (1.894, 3.764, 7.107, 8.917, 10.887, 13.465, 15.773, 20.587),
    (80, DROP_TAIL): (1.894, 3.764, 7.065, 8.887, 10.855, 13.438, 15.714, 20.374),
    (250, RED): (0.482, 0.944, 1.681, 1.606, 1.635, 1.850, 1.994, 2.314),
    (250, DROP_TAIL): (0.482, 0.936, 1.631, 1.564, 1.593, 1.810, 1.952, 2.272),
}
"""Mbit/s under the main reading, mean of ns-2's seeds 1 to 5."""


@dataclass(frozen=True)
class Pair:
    """One row: ns-2's number and ours."""

    reading: str
    kind: str
    """throughput, fairness"""
    queue: str
    ns2: float
    ours: float

    @property
    def off(self) -> float:
        """Ours over ns-2's, less 1."""
        return self.ours / self.ns2 - 1


def pairs(evidence: Evidence) -> list[Pair]:
    """All rows that were run."""
    return [pair for pair in _all(evidence) if not math.isnan(pair.ours)]


def _all(evidence: Evidence) -> Iterator[Pair]:
    for (reading, tp, queue), values in THROUGHPUT.items():
        for n, value in zip(N, values, strict=True):
            name = checked(reading, cell(tp, n, queue))
            if evidence.has("ns2", name):
                yield Pair(reading, "throughput", queue, value, evidence.mean("ns2", name, throughput_mbps))
    for (reading, tp, queue), values in FAIRNESS.items():
        for d, value in zip(D, values, strict=True):
            name = checked(reading, cell(tp, 16, queue, d))
            if evidence.has("ns2", name):
                yield Pair(reading, "fairness", queue, value, evidence.mean("ns2", name, fairness))


def agreement(evidence: Evidence, queue: str) -> tuple[int, float, float]:
    """How many rows of this queue, and the median and the largest of their relative differences, without sign."""
    off = sorted(abs(pair.off) for pair in pairs(evidence) if pair.queue == queue)
    return len(off), off[len(off) // 2], off[-1]
