"""The verdicts: pure functions from a published number and ours to a word and its reason.

    reproduced               within the number's tolerance, or on the stated side of a bound
    direction holds          not within the tolerance, but in the source's order with the compared
                             numbers
    not reproduced           neither; the reason beside it was found by experiment
    not stated in the text   the value exists only in a lost picture: ours is shown alone
    not run here             a claim needs a quantity whose Runs this version or engine leaves
                             out

A claim's verdict follows from the quantities that its check measured and its thresholds.

The tolerance does not grow with our uncertainty: an interval that is wide because seeds are few
proves nothing. An order holds only if the interval of the paired differences of the seeds excludes
zero, and the difference is not zero at the precision of the published number. If the source has two
equal numbers, ours must differ by at most the tolerance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sojourn import metrics
from sojourn.digits import on_page
from sojourn_papers.evidence import Estimate, Evidence, Sample
from sojourn_papers.paper import Claim, Finding, Number, Paper, Role, Threshold


class Verdict(StrEnum):
    """The verdict on a number or a claim."""

    REPRODUCED = "reproduced"
    DIRECTION = "direction holds"
    NOT_REPRODUCED = "not reproduced"
    NOT_STATED = "not stated in the text"
    NOT_RUN = "not run here"


NO_REASON = "no reason found"


@dataclass(frozen=True)
class Row:
    """A number, judged."""

    number: Number
    ours: Estimate
    verdict: Verdict
    reason: str
    sample: Sample = field(default_factory=Sample)
    """The variants from which ours was computed."""

    @property
    def difference(self) -> float:
        """Our value less the published one, in the number's unit; NaN without a published value."""
        return math.nan if self.number.published is None else self.ours.mean - self.number.published

    @property
    def relative(self) -> float:
        """The difference as a share of the published number; NaN if that is 0 or unknown."""
        return self.difference / abs(self.number.published) if self.number.published else math.nan

    def to_dict(self, simulated: Estimate | None = None) -> dict[str, Any]:
        """Plain values; NaN becomes None. `simulated`: the simulator's value, if another engine
        ran."""
        number = self.number
        return {
            "id": number.id,
            "where": number.where,
            "what": number.what,
            "unit": number.unit,
            "relation": number.relation,
            "published": number.published,
            "role": str(number.role) if number.role else None,
            "role_because": number.role_because,
            "ours": _plain(self.ours),
            "simulator": _plain(simulated) if simulated else None,
            "difference": _known(self.difference),
            "relative_difference": _known(self.relative),
            "tolerance": number.tolerance.words(number.unit) if number.tolerance else None,
            "tolerance_because": number.tolerance.because if number.tolerance else None,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "variants": self.sample.run,
            "variants_left_out": self.sample.missed,
            "study": number.variant.study,
            "variant": number.variant.name,
        }


@dataclass(frozen=True)
class ClaimRow:
    """A claim, judged."""

    claim: Claim
    verdict: Verdict
    measured: Mapping[str, float]
    because: str
    sample: Sample
    """The variants from which it was judged; none if it is not run here."""

    @property
    def judged(self) -> Sequence[ThresholdCheck]:
        """The checks that the verdict follows from: all thresholds of the claim, and if one of them
        is not met, also those of its direction."""
        asked = [self._check(what, one, "all") for what, one in self.claim.asks.items()]
        if self.verdict in (Verdict.REPRODUCED, Verdict.NOT_RUN):
            return asked
        return asked + [
            self._check(what, one, "direction")
            for what, one in self.claim.partly.items()
            if self.claim.asks.get(what) != one
        ]

    def _check(self, what: str, threshold: Threshold, needed: str) -> ThresholdCheck:
        ours = self.measured.get(what)
        return ThresholdCheck(
            what, threshold.words, ours, ours is not None and threshold.met(ours), needed
        )

    @property
    def found(self) -> str:
        """A sentence: `least lead, ms: 3.1 (asked > 0). Other measured values`."""
        checks = "; ".join(check.found for check in self.judged)
        return ". ".join(filter(None, (checks, self.remarks)))

    @property
    def remarks(self) -> str:
        """The other measured values, and on how many of its variants the claim was judged."""
        part = f"Judged on {self.sample.words} only" if self.sample.words else ""
        return ". ".join(filter(None, (self.because, part)))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "id": self.claim.id,
            "where": self.claim.where,
            "says": self.claim.says,
            "verdict": str(self.verdict),
            "role": str(self.claim.role),
            "role_because": self.claim.role_because,
            "judged": [one.to_dict() for one in self.judged],
            "because": self.because,
            "variants": self.sample.run,
            "variants_left_out": self.sample.missed,
            "must_hold": self.claim.must_hold,
        }


@dataclass(frozen=True)
class ThresholdCheck:
    """A quantity, compared with its threshold."""

    what: str
    threshold: str
    ours: float | None
    """None: not run here."""
    met: bool
    needed: str
    """The part of the claim that requires it: "all", the whole claim; "direction", its direction only."""

    @property
    def found(self) -> str:
        """`least lead, ms: 3.1 (asked > 0)`."""
        ours = "not run here" if self.ours is None else on_page(self.ours)
        part = "in part, " if self.needed == "direction" else ""
        return f"{self.what}: {ours} ({part}asked {self.threshold})"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        ours = None if self.ours is None else _known(self.ours)
        return {
            "what": self.what,
            "threshold": self.threshold,
            "ours": ours,
            "met": self.met,
            "needed": self.needed,
        }


def rows(paper: Paper, evidence: Evidence) -> list[Row]:
    """The judged numbers of the paper whose variants were run."""
    present = [number for number in paper.numbers if number.variant in evidence.runs]
    noted = {number.id: evidence.noted(number.ours) for number in present}
    ours = {id_: estimate for id_, (estimate, _) in noted.items()}
    known = {number.id: number for number in present}
    found = []
    for number in present:
        others = [(known[id_], ours[id_]) for id_ in number.against if id_ in known]
        verdict = judge(number, ours[number.id], others)
        reason = _reason(number, verdict)
        found.append(Row(number, ours[number.id], verdict, reason, noted[number.id][1]))
    return found


def by_role(rows: Iterable[Row | ClaimRow]) -> dict[Role, Counter[Verdict]]:
    """Counts of verdicts on published numbers, or claims, by role, without those that were not run
    here."""
    found: dict[Role, Counter[Verdict]] = {role: Counter() for role in Role}
    for row in rows:
        role = row.number.role if isinstance(row, Row) else row.claim.role
        if role is not None and row.verdict is not Verdict.NOT_RUN:
            found[role][row.verdict] += 1
    return found


def _reason(number: Number, verdict: Verdict) -> str:
    """Why a number is not reproduced; a number whose direction holds needs no reason."""
    if verdict is Verdict.NOT_REPRODUCED:
        return number.reason or NO_REASON
    return number.reason if verdict is Verdict.DIRECTION else ""


def claims(paper: Paper, evidence: Evidence) -> list[ClaimRow]:
    """The paper's claims, checked."""
    return [checked(claim, evidence) for claim in paper.claims]


def checked(claim: Claim, evidence: Evidence) -> ClaimRow:
    """A judged claim. It is "not run here" if a quantity with a threshold is missing."""
    found, sample = evidence.noted(lambda noted: noted.asked(claim.check))
    finding = found or Finding({})
    verdict = _verdict(claim, finding.measured)
    if verdict is Verdict.NOT_RUN:
        sample = Sample()
    return ClaimRow(claim, verdict, finding.measured, finding.because, sample)


def _verdict(claim: Claim, measured: Mapping[str, float]) -> Verdict:
    def met(asked: Mapping[str, Threshold]) -> bool:
        return all(threshold.met(measured[what]) for what, threshold in asked.items())

    if {*claim.asks, *claim.partly} - set(measured):
        return Verdict.NOT_RUN
    if met(claim.asks):
        return Verdict.REPRODUCED
    return Verdict.DIRECTION if claim.partly and met(claim.partly) else Verdict.NOT_REPRODUCED


def judge(number: Number, ours: Estimate, others: Sequence[tuple[Number, Estimate]]) -> Verdict:
    """The verdict on one number. `others`: the numbers that it is ordered with, and our values."""
    if number.published is None:
        return Verdict.NOT_STATED
    if math.isnan(ours.mean):
        return Verdict.NOT_REPRODUCED
    if number.target.met(ours.mean):
        return Verdict.REPRODUCED
    if others and all(_same_order(number, ours, other, theirs) for other, theirs in others):
        return Verdict.DIRECTION
    return Verdict.NOT_REPRODUCED


def _same_order(number: Number, ours: Estimate, other: Number, theirs: Estimate) -> bool:
    if number.published is None or other.published is None:
        return False
    published = number.published - other.published
    if published == 0:
        return number.tolerance is not None and number.tolerance.allows(ours.mean, theirs.mean)
    low, high = difference(ours, theirs)
    seen = max(decimals(number.published), decimals(other.published))
    if round(ours.mean - theirs.mean, seen) == 0:
        return False
    return low > 0 if published > 0 else high < 0


def decimals(stated: float) -> int:
    """The decimals of a published number."""
    return len(f"{stated:.10g}".partition(".")[2])


def difference(one: Estimate, other: Estimate) -> tuple[float, float]:
    """The 95 % interval of the mean difference, `one` less `other`.

    The same seeds draw the same start times and RTTs, so differences are taken seed by seed. One
    seed has no interval: NaN, which is neither above zero nor below.
    """
    count = min(len(one.values), len(other.values))
    apart = [a - b for a, b in zip(one.values[:count], other.values[:count], strict=True)]
    interval = metrics.mean_ci95(apart)
    return interval["mean"] - interval["ci95"], interval["mean"] + interval["ci95"]


def _plain(ours: Estimate) -> dict[str, float | None]:
    return {"mean": _known(ours.mean), "ci95": _known(ours.ci95), "seeds": ours.seeds}


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
