"""The words for claims and findings, on the terminal and the page."""

from __future__ import annotations

import math

from sojourn.digits import number as digits
from sojourn.digits import with_interval
from sojourn.evaluation.claim_results import ClaimResult, Conditions, Finding, Standing
from sojourn.evaluation.evaluate import Assessment, Evaluation
from sojourn.evaluation.suite import Claim
from sojourn.judgement.quantities import Quantity
from sojourn.sweeps.axes import headings, written

SIGNS: dict[Standing, str] = {
    "holds": "✓",
    "fails": "✗",
    "unclear": "?",
    "reported": "·",
    "unknown": "–",
}


def quantity(assessment: Assessment, key: str) -> Quantity | None:
    """The quantity of a column, from the first cell that has it."""
    cells = (cell.at.quantities for cell in assessment.grid.cells)
    return next((known[key] for known in cells if key in known), None)


def name(assessment: Assessment, claim: Claim) -> str:
    """The name of a claim's number: "sojourn p95", "goodput of II over I"."""
    first = quantity(assessment, claim.of)
    title = claim.of if first is None else first.name
    if claim.over is not None:
        second = quantity(assessment, claim.over)
        return f"{title} over {claim.over if second is None else second.name}"
    return f"harm to {claim.of.partition(':')[2] or claim.of}" if claim.harm else title


def asks(assessment: Assessment, claim: Claim, baseline: str) -> str:
    """A claim's threshold: "at most 0.5 × pfifo's", "at most 80 ms"; empty if there is none."""
    if claim.harm:
        return f"at most {baseline}'s"
    if claim.between is not None:
        return f"{digits(claim.between[0])} to {digits(claim.between[1])}"
    known = quantity(assessment, claim.of)
    unit = known.unit if known is not None and claim.over is None else ""
    after = f" × {baseline}'s" if claim.times_baseline else f" {unit}".rstrip()
    if claim.at_most is not None:
        return f"at most {claim.at_most:g}{after}"
    if claim.at_least is not None:
        return f"at least {claim.at_least:g}{after}"
    return ""


def number(found: Finding) -> tuple[str, str]:
    """`0.42 ×` and `±0.03`; `31 ms` and `±2`; a dash for an unknown number."""
    if math.isnan(found.number.value):
        return "–", ""
    half = (found.number.high - found.number.low) / 2
    mean, _, spread = with_interval(found.number.value, half).partition(" ")
    return f"{mean} {found.unit}".rstrip(), spread


def where(conditions: Conditions) -> str:
    """A cell's conditions: "count 4, rate 5 Mbit/s"; empty if the criterion has one cell."""
    heads = headings(list(conditions))
    return ", ".join(
        f"{head} {written(value)}" for head, value in zip(heads, conditions.values(), strict=True)
    )


def counts(found: list[ClaimResult]) -> dict[Standing, int]:
    """The number of claims with each verdict."""
    words = [each.verdict for each in found]
    return {word: words.count(word) for word in SIGNS}


def sentence(evaluation: Evaluation, candidate: str) -> str:
    """`fq_codel: 20 of 24 claims hold; fails: 5.1.1 goodput`."""
    found = evaluation.of(candidate)
    count = counts(found)
    thresholds = count["holds"] + count["fails"] + count["unclear"]
    if not thresholds:
        return f"{evaluation.called[candidate]}: the baseline: its numbers are shown without a verdict."
    parts = [f"{evaluation.called[candidate]}: {count['holds']} of {thresholds} claims hold"]
    for verdict, word in (
        ("fails", "fails"),
        ("unclear", "undecided with these seeds"),
        ("unknown", "no number"),
    ):
        names = [
            f"{assessment.criterion.section} {name(assessment, row[0].claim)}"
            for assessment in evaluation.assessments
            for row in assessment.results
            if row[evaluation.candidates.index(candidate)].verdict == verdict
        ]
        if names:
            parts.append(f"{word}: {', '.join(dict.fromkeys(names))}")
    return "; ".join(parts) + "."


def ranking(evaluation: Evaluation) -> str:
    """`Claims that hold, of 29 with a threshold: pie 21, cake 21, codel 19.`"""
    found = {name: counts(evaluation.of(name)) for name in evaluation.candidates[1:]}
    thresholds = {one["holds"] + one["fails"] + one["unclear"] for one in found.values()}
    best = sorted(found, key=lambda each: -found[each]["holds"])
    scores = ", ".join(f"{evaluation.called[each]} {found[each]['holds']}" for each in best)
    count, baseline = max(thresholds, default=0), evaluation.called[evaluation.candidates[0]]
    return f"Claims that hold, of {count} with a threshold: {scores}. The baseline is {baseline}."


def left_out(evaluation: Evaluation) -> list[tuple[str, str]]:
    """The reasons why candidates of the suite are not evaluated, each with its candidates."""
    reasons: dict[str, list[str]] = {}
    for one in evaluation.left_out:
        reasons.setdefault(one.why, []).append(one.candidate)
    return [(why, ", ".join(candidates)) for why, candidates in reasons.items()]
