"""The data of a judgement on Runs that compete: a row for each quantity, and the differences
between Runs."""

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
    """One quantity of a Run compared with that of another Run."""

    key: str
    name: str
    unit: str
    of: str
    role: str
    run: str
    against: str
    value: float
    reference: float
    """The value of `against`."""
    difference: Interval
    """value - reference, in the unit; NaN ends: no interval."""
    verdict: Verdict
    """The verdict on `run`. alike: within chance, or negligible; unknown: no interval; neither: no
    direction is better."""
    count: bool = False
    """Whether the quantity is a count."""

    @property
    def share(self) -> float:
        """The difference as a share of the reference; NaN if the reference is 0."""
        return self.difference.value / abs(self.reference) if self.reference else math.nan

    def turned(self) -> Difference:
        """The same difference, of `against` compared with `run`."""
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
    """One quantity of every Run of a contest, in the order of the Runs."""

    quantity: Quantity
    means: tuple[float, ...]
    ci95: tuple[float, ...]
    best: str | None
    """The Run that is better than every other; None: there is none."""


@dataclass(frozen=True)
class Contest:
    """Runs that differ only in their choices."""

    conditions: str
    """How this contest differs from the others: "rate 5 Mbit/s"; empty if there is only one."""
    link: str | None
    """The link under study."""
    runs: tuple[str, ...]
    """The labels of the Runs, best first by the first deciding quantity."""
    called: dict[str, str]
    """The name of each Run here: its label; or only its choices ("fq_codel"), if there are several
    contests."""
    seeds: int
    """The number of seeds of the Run with fewest."""
    samples: int
    """The number of different seeds; 1: one sample."""
    same: bool
    """Whether all Runs have the same tables."""
    by: By
    """The kind of the intervals; of mixed pairs the weaker kind."""
    rows: tuple[ContestRow, ...]
    baseline: str
    """The Run that the others are compared with: a plain FIFO, or the Run that does worst, or the
    one that the caller chose."""
    winner: str | None
    """The Run that beats every other; None: there is none, or there is one Run or one sample."""
    front: tuple[str, ...]
    """The Runs that no other Run beats."""
    beaten: dict[str, tuple[str, ...]]
    """For each Run not in `front`: the Runs that beat it."""
    strengths: dict[str, tuple[str, ...]]
    """For each Run in `front`: the quantities in which it is better than every other Run there."""
    differences: tuple[Difference, ...]
    """Every other Run compared with the baseline, in every quantity."""

    def row(self, key: str) -> ContestRow | None:
        """The row of this quantity."""
        return next((row for row in self.rows if row.quantity.key == key), None)

    def against(self, run: str, other: str) -> list[Difference]:
        """The differences of `run` compared with `other`; one of them is the baseline."""
        return [each for each in self.differences if (each.run, each.against) == (run, other)] or [
            each.turned() for each in self.differences if (each.run, each.against) == (other, run)
        ]
