"""Before and after: what changed from one measurement to another, with intervals. Pure.

Phases that both measurements have are compared. A load is compared by its goodput, and by the
median and the 95th percentile of the RTT less the median idle RTT. The idle line is compared by its
median RTT. Runs without phases, such as a simulator's, are compared by their RTT after the warm-up.

A change is significant if its 95 % interval excludes zero and it is large enough to matter to a
person (`LEAST_MS`, `LEAST_SHARE`). The second condition is needed because with enough samples any
two afternoons differ in the third digit. The interval's method is reported with it:

    paired    if each Run has three repeats or more, and the Runs took turns in time: Student's
              interval of the differences of the pairs
    repeats   if each Run has three repeats or more, one Run after the other: Welch's interval
    blocks    if a Run has fewer repeats: the block bootstrap within each Run. It does not show
              whether the line itself changed from one Run to the other
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sojourn.arrays import Floats
from sojourn.numbers import Known
from sojourn.records import Run
from sojourn_live.measure import intervals
from sojourn_live.measure.findings import per_repeat, pieces
from sojourn_live.measure.intervals import Interval
from sojourn_live.measure.phases import IDLE, WHOLE, Cut, Part, cut
from sojourn_live.outputs import BeforeAfterNumbers, ChangeBy, ChangeWord

LEAST_MS = 1.0
"""Delays that differ by less are alike, whatever their interval."""
LEAST_SHARE = 0.02
"""Goodputs and delays that differ by less than this share of the larger are alike."""

WORDS: dict[str, ChangeWord] = {
    "better": "better",
    "worse": "worse",
    "same": "no significant change",
    "unknown": "can't be said",
}


@dataclass(frozen=True)
class Change:
    """One quantity of one phase, before and after."""

    phase: str
    what: str
    unit: str
    better: Literal["less", "more"]
    before: float
    after: float
    difference: Interval
    """after - before"""
    verdict: str
    """"better", "worse", "same", "unknown"; see `WORDS`."""

    @property
    def share(self) -> float:
        """The difference as a share of the value before; NaN if that is 0."""
        return self.difference.value / abs(self.before) if self.before else math.nan


@dataclass(frozen=True)
class BeforeAfter:
    """Two measurements side by side."""

    before: str
    after: str
    by: ChangeBy
    """"paired", "repeats" or "blocks"."""
    repeats: tuple[int, int]
    targets: tuple[str, str]
    changes: tuple[Change, ...]

    @property
    def headline(self) -> Change | None:
        """The change with which the verdict begins: of the changes of the added delay's 95th
        percentile, the one with the largest value before or after."""
        delays = [change for change in self.changes if change.what in (ADDED_P95, RTT_P95)]
        known = [change for change in delays if not math.isnan(change.difference.value)]
        return max(known, key=lambda change: max(change.before, change.after), default=None)

    def to_dict(self) -> BeforeAfterNumbers:
        """Plain values; NaN becomes None."""

        def known(value: float) -> Known:
            return value if math.isfinite(value) else None

        return {
            "before": self.before,
            "after": self.after,
            "intervals": self.by,
            "repeats": list(self.repeats),
            "targets": list(self.targets),
            "changes": [
                {
                    "phase": change.phase,
                    "what": change.what,
                    "unit": change.unit,
                    "better": change.better,
                    "before": known(change.before),
                    "after": known(change.after),
                    "difference": known(change.difference.value),
                    "ci95": [known(change.difference.low), known(change.difference.high)],
                    "verdict": WORDS[change.verdict],
                }
                for change in self.changes
            ],
        }


ADDED_MEDIAN = "added delay, median"
ADDED_P95 = "added delay, 95 %"
RTT_MEDIAN = "RTT, median"
RTT_P95 = "RTT, 95 %"


def compare(before: Run, after: Run, names: tuple[str, str] | None = None) -> BeforeAfter:
    """The changes from one Run to the other."""
    one, other = cut(before), cut(after)
    by = _by(before, after)
    shared = [
        name
        for name in one.names
        if name in other.names and one.complete(name) and other.complete(name)
    ]
    changes = []
    for name in shared:
        changes += _delays(_Pair(one, other, name, by))
        if one.kind(name) != IDLE:
            changes += [
                found
                for direction in ("down", "up")
                if (found := _goodput(_Pair(one, other, name, by), direction))
            ]
    return BeforeAfter(
        *(names or (before.name, after.name)),
        by,
        (len(before.seeds), len(after.seeds)),
        (one.target or "", other.target or ""),
        tuple(changes),
    )


def began(run: Run) -> list[int]:
    """When each repeat began, ns since 1970; empty if it is not known."""
    facts = [run.meta.facts.get(str(seed)) for seed in run.seeds]
    return [fact["zero_ns"] for fact in facts if fact is not None]


def _by(before: Run, after: Run) -> ChangeBy:
    if min(len(before.seeds), len(after.seeds)) < intervals.LEAST_REPEATS:
        return "blocks"
    return "paired" if intervals.interleaved(began(before), began(after)) else "repeats"


@dataclass(frozen=True)
class _Pair:
    """A phase that both Runs have."""

    before: Cut
    after: Cut
    name: str
    by: ChangeBy


def _delays(pair: _Pair) -> list[Change]:
    whole = pair.before
    if whole.target is None or pair.after.target is None:
        return []
    kind = whole.kind(pair.name)
    if kind == IDLE:
        # The second idle phase shows how the load's queue drained, not the idle line.
        return [_delay(pair, RTT_MEDIAN, 50, added=False)] if pair.name == whole.idle else []
    added = kind != WHOLE and whole.idle is not None and pair.after.idle is not None
    names = (ADDED_MEDIAN, ADDED_P95) if added else (RTT_MEDIAN, RTT_P95)
    return [_delay(pair, name, q, added=added) for name, q in zip(names, (50, 95), strict=True)]


def _delay(pair: _Pair, what: str, q: float, *, added: bool) -> Change:
    statistic, median = intervals.percentile(q), intervals.percentile(50)

    def of(whole: Cut) -> tuple[list[Floats], list[Floats]]:
        return pieces(whole, pair.name), pieces(
            whole, whole.idle
        ) if added and whole.idle is not None else []

    def read(whole: Cut) -> Callable[[Part], float]:
        def value(part: Part) -> float:
            assert whole.target is not None, "`_delays` checked it"
            rtt = part.pings[whole.target].answered
            if rtt.size == 0:
                return math.nan
            base = 0.0
            if added and whole.idle is not None:
                # The base is the repeat's own idle RTT, so that a change of the line between
                # repeats has no effect.
                idle = [each for each in whole.of(whole.idle) if each.seed == part.seed]
                rest = idle[0].pings[whole.target].answered if idle else np.empty(0)
                base = float(np.median(rest)) if rest.size else math.nan
            return float(np.percentile(rtt, q)) - base

        return value

    if pair.by == "blocks":
        first, second = (
            _Sample(*of(whole), statistic, median) for whole in (pair.before, pair.after)
        )
        return _change(pair.name, what, "ms", "less", *_blocks(first, second))
    each = tuple(per_repeat(whole, pair.name, read(whole)) for whole in (pair.before, pair.after))
    return _change(pair.name, what, "ms", "less", *_repeats(pair.by, each[0], each[1]))


def _goodput(pair: _Pair, direction: str) -> Change | None:
    def series(whole: Cut) -> list[Floats]:
        return [part.goodput(direction)[1] for part in whole.of(pair.name)]

    first, second = series(pair.before), series(pair.after)
    if not all(any(piece.size for piece in pieces_) for pieces_ in (first, second)):
        return None
    what = f"goodput {direction}" if pair.before.kind(pair.name) != WHOLE else "goodput"
    if pair.by == "blocks":
        samples = (_Sample(each, [], intervals.mean, intervals.mean) for each in (first, second))
        return _change(pair.name, what, "Mbit/s", "more", *_blocks(*samples))
    each = [
        per_repeat(whole, pair.name, lambda part: part.mbps(direction))
        for whole in (pair.before, pair.after)
    ]
    return _change(pair.name, what, "Mbit/s", "more", *_repeats(pair.by, each[0], each[1]))


@dataclass(frozen=True)
class _Sample:
    plus: Sequence[Floats]
    minus: Sequence[Floats]
    statistic: intervals.Statistic
    base: intervals.Statistic


def _blocks(before: _Sample, after: _Sample) -> tuple[float, float, Interval]:
    rng = np.random.default_rng(intervals.SEED)
    values, drawn = [], []
    for sample in (before, after):
        plus, minus = (
            [piece for piece in side if piece.size] for side in (sample.plus, sample.minus)
        )
        if not plus or (sample.minus and not minus):
            return math.nan, math.nan, Interval(math.nan, math.nan, math.nan)
        values.append(intervals.over_blocks(plus, minus, sample.statistic, sample.base).value)
        drawn.append(intervals.distribution(plus, minus, sample.statistic, sample.base, rng))
    count = min(each.size for each in drawn)
    # The Runs are resampled independently, so differences of their draws are draws of the
    # difference.
    low, high = np.percentile(drawn[1][:count] - drawn[0][:count], [2.5, 97.5])
    return values[0], values[1], Interval(values[1] - values[0], float(low), float(high))


def _repeats(
    by: str, before: dict[int, float], after: dict[int, float]
) -> tuple[float, float, Interval]:
    one, other = list(before.values()), list(after.values())
    if not one or not other:
        return math.nan, math.nan, Interval(math.nan, math.nan, math.nan)
    if by == "paired" and len(one) == len(other):
        difference = intervals.paired(one, other)
    else:
        difference = intervals.welch(one, other)
    return math.fsum(one) / len(one), math.fsum(other) / len(other), difference


def _change(
    phase: str, what: str, unit: str, better: Literal["less", "more"], before: float, after: float, difference: Interval
) -> Change:  # fmt: skip
    return Change(
        phase,
        what,
        unit,
        better,
        before,
        after,
        difference,
        _verdict(unit, better, before, after, difference),
    )


def _verdict(unit: str, better: str, before: float, after: float, difference: Interval) -> str:
    if math.isnan(difference.low) or math.isnan(difference.high):
        return "unknown"
    least = LEAST_SHARE * max(abs(before), abs(after))
    least = max(least, LEAST_MS) if unit == "ms" else least
    if not difference.excludes_zero or abs(difference.value) < least:
        return "same"
    return "better" if (difference.value < 0) == (better == "less") else "worse"
