"""Chooses one of several disciplines by a goal.

The quantities of a goal are compared in their order. In each quantity, every remaining candidate is
compared with the best one: the candidate whose 95 % interval has the best worse end. So a wide
interval never makes a candidate look good. By the 95 % interval of the paired difference
(`sojourn.judgement`) a candidate is

    as good     the interval is within the margin of the quantity on both sides
    worse       the interval excludes 0, and a part of it is beyond the margin
    undecided   neither; more seeds may decide

Only candidates that are as good reach the next quantity. From the candidates left at the end, the
discipline in place is chosen. If it is not among them, the usual one (`USUAL_CHOICE`) is chosen, or
else the one with the best bound in the first quantity.

Each goal has a limit on the cost. A candidate beyond it is not chosen, unless all are.
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
"""The largest loss of goodput in one direction, as a share of the best candidate's."""
MARGIN_SHARE = 0.05
"""Times and goodputs within this share of the best are as good."""
MARGIN_MS = 1.0
"""Times within this many ms of the best are as good, too."""
MARGIN_POINTS = 1.0
"""Shares in per cent, such as a call's late packets, within this many points are as good."""
MOST_SEEDS = 20
"""With this many seeds, candidates that are still undecided stay so."""
USUAL_CHOICE = ("fq_codel", "cake")
"""The most usual of equal candidates first: Linux systems and OpenWrt ship them."""
MOST_ADDED_MS = 100.0
"""The largest increase of the pings' 95th percentile over the idle RTT. With more delay people talk
over each other (ITU-T G.114 allows 150 ms one way for the whole path)."""


@dataclass(frozen=True)
class Goal:
    """The goal of a choice."""

    name: str
    keys: tuple[str, ...]
    """Quantities of `sojourn.judgement`; the first decides. A key that ends in `:` stands for that
    quantity of every [[flow]] entry. The quantities of the queue decide if users feel nothing: no
    ping, no call."""
    wanted: str
    price: str
    """The cost, in words, that excludes a candidate."""
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
"""The goals by name."""


@dataclass(frozen=True)
class Margin:
    """The largest distance from the best at which a candidate is as good."""

    quantity: Quantity
    value: float
    """In the quantity's unit."""


@dataclass(frozen=True)
class Advice:
    """The recommended discipline."""

    goal: Goal
    chosen: str
    """The label of its Run."""
    usual: bool
    """Whether it was chosen among equals because it is the usual choice."""
    as_good: tuple[str, ...]
    """The candidates that are as good in every quantity of the goal."""
    undecided: tuple[str, ...]
    """The candidates of which the seeds do not show whether they are as good, better or worse."""
    decided: tuple[Quantity, ...]
    """The quantities that excluded candidates."""
    margins: tuple[Margin, ...]
    """The margin of each quantity of the goal."""
    too_dear: tuple[str, ...]
    """The candidates beyond the goal's cost; empty if all are."""
    judgement: Judgement
    """The judgement on all candidates, with the first Run as baseline."""

    @property
    def contest(self) -> Contest:
        """The contest of all candidates."""
        return self.judgement.contests[0]

    @property
    def gains(self) -> list[Difference]:
        """The chosen discipline compared with the first Run, in the felt quantities and the
        cost."""
        return [
            each
            for each in self.contest.against(self.chosen, self.contest.baseline)
            if each.role in ("felt", "queue", "cost")
        ]


def choose(runs: Sequence[Run], goal: Goal, link: str | None = None) -> Advice:
    """Chooses one of these Runs, which have the same conditions. The first Run has the discipline
    in place.

    `link`: the link under study; None: where most packets waited.
    """
    measured = measure(runs, link)
    return by_numbers(measured, judge(measured, 0), goal)


def by_numbers(measured: Sequence[Measured], judgement: Judgement, goal: Goal) -> Advice:
    """As `choose`, from Runs with their numbers and the judgement on them."""
    names = judgement.runs
    field = [i for i, one in enumerate(measured) if goal.affordable(one, measured)]
    dear = [names[i] for i in range(len(measured)) if i not in field]
    if not field:
        field, dear = list(range(len(measured))), []
    decided, undecided, margins = list[Quantity](), list[int](), list[Margin]()
    quantities = _quantities(measured, goal)
    for quantity in quantities:
        found = _compare(measured, field, quantity)
        margins.append(found.margin)
        undecided += found.undecided
        if len(found.as_good) + len(found.undecided) < len(field):
            decided.append(quantity)
        field = found.as_good
    best = _best(measured, field, quantities[0])
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


def _quantities(measured: Sequence[Measured], goal: Goal) -> list[Quantity]:
    found = known(measured, goal.keys)
    felt = any(quantity.role == "felt" for quantity in found)
    return [quantity for quantity in found if not felt or quantity.role != "queue"]


_UNUSUAL = (len(USUAL_CHOICE), True)


def _usual(words: str) -> tuple[int, bool]:
    """The rank of a discipline: less is more usual; defaults come before parameters."""
    kind, _, parameters = words.partition(" ")
    if kind not in USUAL_CHOICE:
        return _UNUSUAL
    return USUAL_CHOICE.index(kind), bool(parameters)


@dataclass(frozen=True)
class _Compared:
    """The candidates in one quantity. A candidate in neither list is worse than the best."""

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
        return "as good"  # No candidate has the quantity.
    if math.isnan(_mean(one, quantity.key)):
        return "worse"  # For example, no ping came back.
    here, there = one.per_seed(quantity.key), best.per_seed(quantity.key)
    if one.summary.seeds != best.summary.seeds or len(one.summary.seeds) < 2:
        return "undecided"
    # A Run whose seeds are all the same has one sample, which stands for each seed.
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
    """The best candidate if each candidate is as bad as its 95 % interval allows.

    No other candidate is shown to be better: the interval of a difference is at least as wide as
    the difference of the two intervals' widths.
    """
    sign = 1 if quantity.better == "less" else -1

    def bound(i: int) -> tuple[bool, float]:
        mean, half = measured[i].over_seeds(quantity.key)
        return math.isnan(mean), sign * mean + (0 if math.isnan(half) else half)

    return min(field, key=bound)
