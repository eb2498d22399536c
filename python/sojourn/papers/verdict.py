"""The verdicts: pure functions from a published number and ours to a word and its reason.

    reproduced               within the number's tolerance, or on the stated side of a bound
    direction holds          not within it, but it stands to the numbers it is compared with as in the source
    not reproduced           neither; the reason beside it was found by experiment
    not stated in the text   the value exists only in a lost picture: ours is shown alone

The tolerance does not grow with our uncertainty: an interval that is wide because seeds are few
proves nothing. An order holds only if the paired difference of the seeds has an interval that
leaves out zero; where the source shows two equal numbers, ours must differ by no more than the
tolerance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sojourn import metrics
from sojourn.papers.evidence import Estimate, Evidence
from sojourn.papers.paper import Claim, Finding, Number, Paper, Role, Sentence


class Verdict(StrEnum):
    """What is said of a number or a claim."""

    REPRODUCED = "reproduced"
    DIRECTION = "direction holds"
    NOT_REPRODUCED = "not reproduced"
    NOT_STATED = "not stated in the text"


NO_REASON = "no reason found"


@dataclass(frozen=True)
class Row:
    """A number, judged."""

    number: Number
    ours: Estimate
    verdict: Verdict
    reason: str

    @property
    def difference(self) -> float:
        """Ours less the published one, in the number's unit; NaN without a published value."""
        return math.nan if self.number.published is None else self.ours.mean - self.number.published

    @property
    def relative(self) -> float:
        """The difference as a share of the published number; NaN where that is 0 or unknown."""
        return self.difference / abs(self.number.published) if self.number.published else math.nan

    def to_dict(self) -> dict[str, Any]:
        """As plain values; NaN becomes None."""
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
            "ours": {
                "mean": _known(self.ours.mean),
                "ci95": _known(self.ours.ci95),
                "seeds": self.ours.seeds,
            },
            "difference": _known(self.difference),
            "relative_difference": _known(self.relative),
            "tolerance": number.tolerance.words(number.unit) if number.tolerance else None,
            "tolerance_because": number.tolerance.because if number.tolerance else None,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "study": number.variant.study,
            "variant": number.variant.name,
        }


@dataclass(frozen=True)
class ClaimRow:
    """A claim, judged."""

    claim: Claim
    verdict: Verdict
    because: str

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "id": self.claim.id,
            "where": self.claim.where,
            "says": self.claim.says,
            "verdict": str(self.verdict),
            "because": self.because,
            "must_hold": self.claim.must_hold,
        }


def rows(paper: Paper, evidence: Evidence) -> list[Row]:
    """The paper's numbers, judged: those whose variants were run."""
    present = [number for number in paper.numbers if number.variant in evidence.runs]
    ours = {number.id: number.ours(evidence) for number in present}
    known = {number.id: number for number in present}
    found = []
    for number in present:
        others = [(known[id_], ours[id_]) for id_ in number.against if id_ in known]
        verdict = judge(number, ours[number.id], others)
        found.append(Row(number, ours[number.id], verdict, _reason(number, verdict, evidence)))
    return found


def by_role(rows: Iterable[Row]) -> dict[Role, Counter[Verdict]]:
    """How many published numbers of each role got which verdict."""
    found: dict[Role, Counter[Verdict]] = {role: Counter() for role in Role}
    for row in rows:
        if row.number.role is not None:
            found[row.number.role][row.verdict] += 1
    return found


def _reason(number: Number, verdict: Verdict, evidence: Evidence) -> str:
    """Why it is off, where it is; a number whose direction holds need not say."""
    if verdict is Verdict.NOT_REPRODUCED or (verdict is Verdict.DIRECTION and number.reason != ""):
        return worded(number.reason, evidence) or NO_REASON
    return ""


def worded(said: Sentence, evidence: Evidence) -> str:
    """The words themselves, or what they are from the evidence."""
    return said if isinstance(said, str) else evidence.said(said)


def claims(paper: Paper, evidence: Evidence) -> list[ClaimRow]:
    """The paper's claims, checked: on another engine than the simulator those whose studies it
    runs."""
    checked = ((claim, evidence.asked(claim.check)) for claim in paper.claims)
    return [_judged(claim, finding) for claim, finding in checked if finding is not None]


def _judged(claim: Claim, finding: Finding) -> ClaimRow:
    if finding.holds:
        verdict = Verdict.REPRODUCED
    else:
        verdict = Verdict.DIRECTION if finding.partly else Verdict.NOT_REPRODUCED
    return ClaimRow(claim, verdict, finding.because)


def judge(number: Number, ours: Estimate, others: Sequence[tuple[Number, Estimate]]) -> Verdict:
    """The verdict on one number; `others` are those it stands to in an order, with ours."""
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
    return low > 0 if published > 0 else high < 0


def difference(one: Estimate, other: Estimate) -> tuple[float, float]:
    """The 95 % interval of the mean of one less the other.

    The same seeds draw the same start times and RTTs, so differences are taken seed by seed. One
    seed tells no interval: NaN, which is neither above zero nor below.
    """
    count = min(len(one.values), len(other.values))
    apart = [a - b for a, b in zip(one.values[:count], other.values[:count], strict=True)]
    whole = metrics.mean_ci95(apart)
    return whole["mean"] - whole["ci95"], whole["mean"] + whole["ci95"]


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
