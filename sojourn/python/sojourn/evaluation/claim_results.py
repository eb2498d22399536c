"""Decides whether a candidate meets a claim, in each cell of the criterion's scenario and over all
cells. Pure.

A claim holds if the whole 95 % interval is within the threshold. It fails if the whole interval is
beyond the threshold. Otherwise the seeds do not decide. Each seed is compared with the same seed of
the baseline in the same cell. A threshold is widened by a negligible difference: 2 % of the
threshold, or the quantity's least difference (`judgement`). The mean of a ratio is the ratio of the
sums. Its interval is the ratio estimator's: z = x - r y, divided by the mean of y.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sojourn.evaluation.suite import Claim
from sojourn.judgement import LEAST_SHARE
from sojourn.judgement.quantities import AtLink
from sojourn.metrics import Interval, mean_ci95, over_repeats
from sojourn.sweeps.axes import Setting
from sojourn.sweeps.grid import Grid, SweepCell

Conditions: TypeAlias = Mapping[str, Setting]
"""The keys of a cell that the criterion sweeps, with their values, without the candidate's key."""
Standing: TypeAlias = Literal["holds", "fails", "unclear", "reported", "unknown"]
"""reported: no threshold, or the baseline itself; unknown: no number."""
WORST: tuple[Standing, ...] = ("fails", "unclear", "unknown", "holds", "reported")


@dataclass(frozen=True)
class Finding:
    """One claim on one candidate in one cell."""

    conditions: Conditions
    label: str
    """The label of the Run."""
    number: Interval
    """In `unit`: the number, its share of the baseline's, a ratio, or a harm."""
    unit: str
    own: float
    """The candidate's mean, in the column's unit."""
    reference: float
    """The baseline's mean; NaN if the threshold does not depend on it."""
    verdict: Standing
    strain: float
    """The number as a share of the threshold: above 1 is beyond; NaN without a threshold."""


@dataclass(frozen=True)
class ClaimResult:
    """One claim on one candidate, in all cells."""

    claim: Claim
    candidate: str
    findings: tuple[Finding, ...]

    def at(self, conditions: Conditions) -> Finding | None:
        """The finding in the cell with these conditions; None: the runs of the cell failed."""
        return next((each for each in self.findings if each.conditions == conditions), None)

    @property
    def verdict(self) -> Standing:
        """The worst verdict of the cells."""
        found = {each.verdict for each in self.findings}
        return next((word for word in WORST if word in found), "unknown")

    @property
    def decisive(self) -> Finding | None:
        """The cell that decides: among those with the verdict, the one with the highest strain."""
        cells = [each for each in self.findings if each.verdict == self.verdict]
        return max(cells, key=lambda each: (not math.isnan(each.strain), each.strain), default=None)


def judge(
    claim: Claim,
    grid: Grid,
    at: str,
    candidate: str,
    baseline: str,
    alone: Grid | None = None,
) -> ClaimResult:
    """Decides one claim on one candidate.

    Args:
        grid: the criterion's cells.
        at: the key of the scenario that has the candidate.
        candidate, baseline: the values of that key.
        alone: the cells without a candidate, for `harm`.
    """
    findings = []
    for cell in grid.cells:
        if cell.settings.get(at) != candidate:
            continue
        conditions = {key: value for key, value in cell.settings.items() if key != at}
        held = next(
            (other for other in grid.cells if other.settings == {**cell.settings, at: baseline}),
            None,
        )
        solo = None if alone is None else _solo(alone, conditions)
        findings.append(_finding(claim, cell, conditions, held, solo))
    return ClaimResult(claim, candidate, tuple(findings))


def _solo(alone: Grid, conditions: Conditions) -> AtLink | None:
    """The cell without a candidate whose swept keys have the values of these conditions."""
    for cell in alone.cells:
        if all(conditions.get(key, value) == value for key, value in cell.settings.items()):
            return cell.at
    return None


def _finding(
    claim: Claim,
    cell: SweepCell,
    conditions: Conditions,
    held: SweepCell | None,
    solo: AtLink | None,
) -> Finding:
    quantity = cell.at.quantities.get(claim.of)
    own = cell.at.per_seed(claim.of)
    base = [] if held is None else held.at.per_seed(claim.of)
    mean = _mean(own)
    itself = held is cell

    def finding(
        number: Interval,
        unit: str,
        verdict: Standing,
        strain: float = math.nan,
        of: float = math.nan,
    ) -> Finding:
        return Finding(conditions, cell.label, number, unit, mean, of, verdict, strain)

    if quantity is None or math.isnan(mean):
        return finding(_NONE, "", "unknown")
    if claim.harm:
        return _harmed(finding, own, base, solo, itself)
    if claim.over is not None:
        number = ratio(own, cell.at.per_seed(claim.over))
        return finding(number, "", *_bounded(claim, number, 0.0))
    if not claim.times_baseline:
        number = over_repeats(own)
        return finding(number, quantity.unit, *_bounded(claim, number, quantity.least))
    reference = _mean(base)
    number = ratio(own, base)
    if itself:
        return finding(over_repeats(own), quantity.unit, "reported", of=reference)
    factor = claim.at_most if claim.at_most is not None else claim.at_least
    assert factor is not None
    sign = 1 if claim.at_most is not None else -1
    beyond = [sign * (x - factor * y) for x, y in _pairs(own, base)]
    slack = max(quantity.least, LEAST_SHARE * abs(factor * reference))
    strain = _strain(mean, factor * reference, sign)
    return finding(number, "×", _decided(over_repeats(beyond), slack), strain, reference)


_NONE = Interval(math.nan, math.nan, math.nan)


def _harmed(
    finding: Callable[..., Finding],
    own: Sequence[float],
    base: Sequence[float],
    solo: AtLink | None,
    itself: bool,
) -> Finding:
    """The share of the legacy flows' goodput that the candidate takes, compared with the share that
    the baseline takes."""
    alone = math.nan if solo is None else solo.over_seeds("goodput")[0]
    if not alone > 0:
        return finding(_NONE, "%", "unknown")
    lost = [100 * max(0.0, 1 - each / alone) for each in own]
    accepted = [100 * max(0.0, 1 - each / alone) for each in base]
    reference = _mean(accepted)
    if itself:
        return finding(over_repeats(lost), "%", "reported", of=reference)
    beyond = over_repeats([x - y for x, y in _pairs(lost, accepted)])
    strain = _share(_mean(lost), reference)
    verdict = _decided(beyond, 100 * LEAST_SHARE)
    return finding(over_repeats(lost), "%", verdict, strain, reference)


def _bounded(claim: Claim, number: Interval, least: float) -> tuple[Standing, float]:
    """The verdict and the strain for thresholds that do not depend on the baseline."""
    low, high = _ends(claim)
    if low is None and high is None:
        return "reported", math.nan
    verdicts, strains = [], []
    for end, sign in ((low, -1), (high, 1)):
        if end is None:
            continue
        slack = max(least, LEAST_SHARE * abs(end))
        beyond = sorted((sign * (number.low - end), sign * (number.high - end)))
        verdicts.append(_decided(Interval(sign * (number.value - end), *beyond), slack))
        strains.append(_strain(number.value, end, sign))
    return next(word for word in WORST if word in verdicts), max(strains)


def _ends(claim: Claim) -> tuple[float | None, float | None]:
    if claim.between is not None:
        return claim.between[0], claim.between[1]
    return claim.at_least, claim.at_most


def _decided(beyond: Interval, slack: float) -> Standing:
    """The verdict on a number that is this far beyond the threshold."""
    if math.isnan(beyond.value):
        return "unknown"
    if beyond.high <= slack:
        return "holds"
    return "fails" if beyond.low > slack else "unclear"


def ratio(above: Sequence[float], below: Sequence[float]) -> Interval:
    """The ratio of two means of the same seeds, with its interval.

    The ratio of (2, 4) to (1, 2) is 2 with the interval 2 to 2, because each seed has that ratio.
    """
    pairs = _pairs(above, below)
    known = [(x, y) for x, y in pairs if not math.isnan(x + y)]
    divisor = _mean([y for _, y in known])
    if not known or not divisor:
        return _NONE
    value = _mean([x for x, _ in known]) / divisor
    half = mean_ci95([(x - value * y) / divisor for x, y in known])["ci95"]
    return Interval(value, value - half, value + half)


def _pairs(one: Sequence[float], other: Sequence[float]) -> list[tuple[float, float]]:
    """Pairs of values by seed. If all seeds of one side are the same, its one sample stands for
    each seed."""
    if len(one) == 1 or len(other) == 1:
        length = max(len(one), len(other))
        one, other = (list(side) * length if len(side) == 1 else side for side in (one, other))
    return list(zip(one, other, strict=True)) if len(one) == len(other) else []


def _mean(values: Sequence[float]) -> float:
    known = [each for each in values if not math.isnan(each)]
    return math.fsum(known) / len(known) if known else math.nan


def _strain(value: float, end: float, sign: int) -> float:
    """A number as a share of its threshold, an upper one (`sign` 1) or a lower one."""
    return _share(value, end) if sign > 0 else _share(end, value)


def _share(value: float, of: float) -> float:
    """value / of; 1 for equal values, also for 0 / 0."""
    if value == of:
        return 1.0
    return value / of if of else math.inf
