"""One of several disciplines, by what is wanted.

The quantities of a goal are gone through in their order. In each, every candidate is held against
the best of those that are left: the one whose mean with its 95 % interval has the best bound, so
that a wide interval never makes a candidate look good. By the 95 % interval of the paired
difference (`sojourn.judgement`) a candidate is

    as good     the interval is within the margin of the quantity, both ways
    worse       the interval leaves out 0, and a part of it is beyond the margin
    undecided   neither; more seeds may tell

Only those that are as good are asked about the next quantity. Of those that are left at the end,
the discipline that is there already is chosen, or else the usual one (`USUAL_CHOICE`), or else the
one with the best bound in the first quantity.

A goal also has a price that is too high: who pays it is not chosen, unless all do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from sojourn.judgement import Judgement, judge
from sojourn.judgement.contest import Contest, Difference
from sojourn.judgement.quantities import Measured, Quantity, known, measure
from sojourn.metrics import Interval, paired
from sojourn.records import Run

MOST_COST = 0.25
"""Of the goodput that the best has, one way."""
MARGIN_SHARE = 0.05
"""Of the best: times and goodputs that differ by no more are as good as each other."""
MARGIN_MS = 1.0
"""Times that differ by no more are, too."""
MARGIN_POINTS = 1.0
"""So are shares in per cent that differ by no more, such as late packets of a call."""
MOST_SEEDS = 20
"""With which it is said that the seeds do not decide."""
USUAL_CHOICE = ("fq_codel", "cake")
"""Of equals: what Linux systems and OpenWrt ship with and people know, the most usual first."""
MOST_ADDED_MS = 100.0
"""At the 95th percentile of the pings, above the idle RTT: beyond this people talk over each other
(ITU-T G.114 has 150 ms one way for everything)."""


@dataclass(frozen=True)
class Goal:
    """What is wanted of a queue."""

    name: str
    keys: tuple[str, ...]
    """Quantities of `sojourn.judgement`, the first decides; one that ends in `:` stands for that of
    every [[flow]] entry. Those of the queue count where nothing is felt: no ping, no call."""
    wanted: str
    price: str
    """Who pays this is not chosen, in words."""
    affordable: Callable[[Measured, Sequence[Measured]], bool]


def _keeps_goodput(one: Measured, every: Sequence[Measured]) -> bool:
    for key in ("goodput", "goodput_other"):
        most = max((_mean(each, key) for each in every), default=math.nan)
        if _mean(one, key) < (1 - MOST_COST) * most:
            return False
    return True


def _keeps_short(one: Measured, _: Sequence[Measured]) -> bool:
    added = _mean(one, "ping_p95") - _mean(one, "ping_idle")
    return not added > MOST_ADDED_MS


def _mean(one: Measured, key: str) -> float:
    return one.over_seeds(key)[0]


_COST = f"more than {100 * MOST_COST:.0f} % of the goodput, one way"
_QUEUE = ("sojourn_p95",)
_PAID = ("goodput", "goodput_other")
GOALS = {
    goal.name: goal
    for goal in (
        Goal(
            "delay",
            ("ping_p95", "mos:", "late:", "completion_p95:", *_QUEUE, *_PAID),
            "the shortest delay under load",
            _COST,
            _keeps_goodput,
        ),
        Goal(
            "calls",
            ("mos:", "late:", "ping_loss", "ping_p95", *_QUEUE, *_PAID),
            "calls and video without gaps",
            _COST,
            _keeps_goodput,
        ),
        Goal(
            "goodput",
            (*_PAID, "ping_p95", *_QUEUE),
            "the most goodput",
            f"more than {MOST_ADDED_MS:.0f} ms that the load adds to a ping (p95)",
            _keeps_short,
        ),
    )
}
"""What can be wanted."""


@dataclass(frozen=True)
class Margin:
    """How far from the best a candidate may be and still be as good."""

    quantity: Quantity
    value: float
    """In its unit."""


@dataclass(frozen=True)
class Advice:
    """The discipline to use."""

    goal: Goal
    chosen: str
    """The label of its Run."""
    usual: bool
    """Whether it was chosen of equals because it is what people usually take."""
    as_good: tuple[str, ...]
    """Those that are shown to be as good in every quantity of the goal."""
    undecided: tuple[str, ...]
    """Those of which the seeds can't tell whether they are as good, better or worse."""
    decided: tuple[Quantity, ...]
    """The quantities by which others left the field."""
    margins: tuple[Margin, ...]
    """Of each quantity of the goal."""
    too_dear: tuple[str, ...]
    """Those that paid the goal's price; empty where all did."""
    judgement: Judgement
    """All of them, against the first Run."""

    @property
    def contest(self) -> Contest:
        """The one that they are in."""
        return self.judgement.contests[0]

    @property
    def gains(self) -> list[Difference]:
        """The chosen against the first Run, in what is felt and in what it costs."""
        return [
            each
            for each in self.contest.against(self.chosen, self.contest.baseline)
            if each.role in ("felt", "queue", "cost")
        ]


def choose(runs: Sequence[Run], goal: Goal, link: str | None = None) -> Advice:
    """One of these Runs, which have the same conditions; the first is what is there now.

    `link`: the one under study; None: where most packets waited.
    """
    measured = measure(runs, link)
    return by_numbers(measured, judge(measured, 0), goal)


def by_numbers(measured: Sequence[Measured], judgement: Judgement, goal: Goal) -> Advice:
    """The same of Runs with their numbers, and the judgement on them against the first."""
    names = judgement.runs
    field = [i for i, one in enumerate(measured) if goal.affordable(one, measured)]
    dear = [names[i] for i in range(len(measured)) if i not in field]
    if not field:
        field, dear = list(range(len(measured))), []
    decided, undecided, margins = list[Quantity](), list[int](), list[Margin]()
    asked = _asked(measured, goal)
    for quantity in asked:
        found = _compare(measured, field, quantity)
        margins.append(found.margin)
        undecided += found.undecided
        if len(found.as_good) + len(found.undecided) < len(field):
            decided.append(quantity)
        field = found.as_good
    best = _best(measured, field, asked[0])
    usual = min(field, key=lambda i: _usual(names[i]))
    chosen = 0 if 0 in field else usual if _usual(names[usual]) < _UNUSUAL else best
    return Advice(
        goal=goal,
        chosen=names[chosen],
        usual=chosen == usual != 0 and len(field) > 1 and _usual(names[chosen]) < _UNUSUAL,
        as_good=tuple(names[i] for i in field if i != chosen),
        undecided=tuple(names[i] for i in undecided),
        decided=tuple(decided),
        margins=tuple(margins),
        too_dear=tuple(dear),
        judgement=judgement,
    )


def _asked(measured: Sequence[Measured], goal: Goal) -> list[Quantity]:
    found = known(measured, goal.keys)
    felt = any(quantity.role == "felt" for quantity in found)
    return [quantity for quantity in found if not felt or quantity.role != "queue"]


_UNUSUAL = (len(USUAL_CHOICE), True)


def _usual(words: str) -> tuple[int, bool]:
    """Less for the more usual discipline, and for one with its defaults."""
    kind, _, parameters = words.partition(" ")
    if kind not in USUAL_CHOICE:
        return _UNUSUAL
    return USUAL_CHOICE.index(kind), bool(parameters)


@dataclass(frozen=True)
class _Compared:
    """A field in one quantity; who is in neither list is worse than the best."""

    margin: Margin
    as_good: list[int]
    undecided: list[int]


def _compare(measured: Sequence[Measured], field: Sequence[int], quantity: Quantity) -> _Compared:
    best = _best(measured, field, quantity)
    margin = _margin(quantity, _mean(measured[best], quantity.key))
    states = {
        i: "as good" if i == best else _state(measured[i], measured[best], quantity, margin)
        for i in field
    }
    return _Compared(
        Margin(quantity, margin),
        [i for i, state in states.items() if state == "as good"],
        [i for i, state in states.items() if state == "undecided"],
    )


def _state(
    one: Measured, best: Measured, quantity: Quantity, margin: float
) -> Literal["as good", "worse", "undecided"]:
    if math.isnan(_mean(best, quantity.key)):
        return "as good"  # The quantity is known of none.
    if math.isnan(_mean(one, quantity.key)):
        return "worse"  # No ping came back, say.
    here, there = one.per_seed(quantity.key), best.per_seed(quantity.key)
    if one.summary.seeds != best.summary.seeds or len(one.summary.seeds) < 2:
        return "undecided"
    # Nothing is random in a Run whose seeds are all the same: its one sample is that of each.
    samples = max(len(here), len(there))
    apart = paired(*(side if len(side) == samples else side * samples for side in (there, here)))
    if samples == 1:
        apart = Interval(apart.value, apart.value, apart.value)
    if -margin <= apart.low and apart.high <= margin:
        return "as good"
    return "worse" if (apart.low if quantity.better == "less" else -apart.high) > 0 else "undecided"


def _margin(quantity: Quantity, best: float) -> float:
    if quantity.unit == "%":
        return MARGIN_POINTS
    share = MARGIN_SHARE * abs(best)
    return max(MARGIN_MS, share) if quantity.unit == "ms" else share


def _best(measured: Sequence[Measured], field: Sequence[int], quantity: Quantity) -> int:
    """The candidate that is good even if it is as bad as its 95 % interval allows.

    No other is shown to be better than it: the interval of a difference is at least as wide as
    those of its two sides differ.
    """
    sign = 1 if quantity.better == "less" else -1

    def bound(i: int) -> tuple[bool, float]:
        mean, half = measured[i].over_seeds(quantity.key)
        return math.isnan(mean), sign * mean + (0 if math.isnan(half) else half)

    return min(field, key=bound)
