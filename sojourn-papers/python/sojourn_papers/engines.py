"""Compares two engines: each number and claim of a paper from a kernel's Runs and from the
simulator's Runs of the same scenarios.

Two means differ if they lie more than `APART` apart and their 95 % intervals do not overlap. One
seed has no interval, so for it the distance alone decides. The reasons of differences were found by
experiment; published.toml has them (`engines` of a number).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn_papers.paper import Number
from sojourn_papers.reproduction import Reproduction
from sojourn_papers.verdict import ClaimRow, Row

APART = 0.05
"""A share of the simulator's mean."""


@dataclass(frozen=True)
class Pair:
    """A number by both engines."""

    kernel: Row
    simulator: Row

    @property
    def number(self) -> Number:
        """The measured number."""
        return self.kernel.number

    @property
    def distance(self) -> float:
        """The kernel's mean less the simulator's, as a share of the simulator's."""
        simulator = self.simulator.ours.mean
        return (self.kernel.ours.mean - simulator) / abs(simulator) if simulator else math.nan

    @property
    def differ(self) -> bool:
        """Whether the engines differ, or only one could measure it."""
        kernel, simulator = self.kernel.ours, self.simulator.ours
        if math.isnan(kernel.mean) or math.isnan(simulator.mean):
            return math.isnan(kernel.mean) != math.isnan(simulator.mean)
        known = sum(half for half in (kernel.ci95, simulator.ci95) if not math.isnan(half))
        return abs(kernel.mean - simulator.mean) > max(APART * abs(simulator.mean), known)


def pairs(one: Reproduction) -> list[Pair]:
    """The numbers that both engines measured."""
    if one.simulated is None:
        return []
    same = {row.number.id: row for row in one.simulated.rows}
    return [Pair(row, same[row.number.id]) for row in one.rows if row.number.id in same]


def sentence(one: Reproduction) -> str:
    """A sentence on how many numbers differ; empty if only the simulator ran."""
    if one.simulated is None:
        return ""
    both = pairs(one)
    differ = sum(pair.differ for pair in both)
    return (
        f"The engine {one.evidence.engine} and the simulator ran the same scenarios and seeds. {differ} of "
        f"{len(both)} numbers differ (means more than {100 * APART:g} % apart, with intervals that "
        f"do not overlap). {len(claims(one))} of {len(one.claims)} claims have another verdict."
    )


def claims(one: Reproduction) -> Sequence[tuple[ClaimRow, ClaimRow]]:
    """The claims whose verdicts by the kernel and by the simulator differ."""
    if one.simulated is None:
        return []
    both = zip(one.claims, one.simulated.claims, strict=True)
    return [
        (kernel, simulator) for kernel, simulator in both if kernel.verdict != simulator.verdict
    ]
