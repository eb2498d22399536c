"""What a judgement says of Runs that compete: a row for each quantity, and each Run's differences
against the others."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from sojourn.judgement.quantities import Quantity
from sojourn.metrics import Interval

Verdict = Literal["better", "worse", "alike", "unknown", "neither"]
By = Literal["paired", "Welch", "one sample"]


@dataclass(frozen=True)
class Difference:
    """One quantity of a Run against that of another."""

    key: str
    name: str
    unit: str
    of: str
    role: str
    run: str
    against: str
    value: float
    reference: float
    """That of `against`."""
    difference: Interval
    """value - reference, in the unit; NaN ends: no interval."""
    verdict: Verdict
    """Of `run`: better, worse; alike: by no more than chance or than anybody cares; unknown: no
    interval; neither: no way is better."""
    count: bool = False
    """Whether it is a number of things."""

    @property
    def share(self) -> float:
        """The difference as a share of the reference; NaN of nothing."""
        return self.difference.value / abs(self.reference) if self.reference else math.nan

    def turned(self) -> Difference:
        """The same, of `against` against `run`."""
        apart = self.difference
        opposite: dict[Verdict, Verdict] = {"better": "worse", "worse": "better"}
        return replace(
            self,
            run=self.against,
            against=self.run,
            value=self.reference,
            reference=self.value,
            difference=Interval(-apart.value, -apart.high, -apart.low),
            verdict=opposite.get(self.verdict, self.verdict),
        )


@dataclass(frozen=True)
class ContestRow:
    """One quantity of every Run of a contest, in their order."""

    quantity: Quantity
    means: tuple[float, ...]
    ci95: tuple[float, ...]
    best: str | None
    """The Run that is better than every other; None: no interval says so of any."""


@dataclass(frozen=True)
class Contest:
    """Runs that are alike but for what was chosen."""

    conditions: str
    """What sets it apart from the other contests: "rate 5 Mbit/s"; empty where it is the only
    one."""
    link: str | None
    """The one under study."""
    runs: tuple[str, ...]
    """Their labels, best first: by the first quantity that decides."""
    called: dict[str, str]
    """What to call each here: its label, or, beside other contests, what was chosen: "fq_codel"."""
    seeds: int
    """Of the Run that has fewest."""
    samples: int
    """Those of its seeds that tell something; 1: one sample."""
    same: bool
    """Whether all its Runs have the same tables: nothing differs."""
    by: By
    """How differences have their intervals; mixed pairs count as the weaker."""
    rows: tuple[ContestRow, ...]
    baseline: str
    """What the others are measured against: a plain FIFO, or else the Run that does worst; or as it
    was asked."""
    winner: str | None
    """Beats every other; None: nobody does, or there is one Run or one sample."""
    front: tuple[str, ...]
    """The Runs that no other beats."""
    beaten: dict[str, tuple[str, ...]]
    """Of each that is not in `front`: the Runs that beat it."""
    strengths: dict[str, tuple[str, ...]]
    """Of each in `front`: the quantities in which it is better than every other of them."""
    differences: tuple[Difference, ...]
    """Of every other Run against the baseline, in every quantity."""

    def row(self, key: str) -> ContestRow | None:
        """The row of this quantity."""
        return next((row for row in self.rows if row.quantity.key == key), None)

    def against(self, run: str, other: str) -> list[Difference]:
        """The differences of `run` against `other`, one of which is the baseline."""
        return [each for each in self.differences if (each.run, each.against) == (run, other)] or [
            each.turned() for each in self.differences if (each.run, each.against) == (other, run)
        ]
