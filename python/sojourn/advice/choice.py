"""One of several disciplines, by what is wanted.

The quantities of a goal are gone through in their order. In each, whatever is worse than the best
leaves the field, by the 95 % interval of the paired difference (`sojourn.judgement`). Those that
are left at the end are as good as each other for all that these seeds can tell; the one with the
best mean of the first quantity stands for them.

A goal also has a price that is too high: who pays it does not stand for choice, unless all do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sojourn.judgement import Judgement, judge
from sojourn.judgement.contest import Contest, Difference
from sojourn.judgement.quantities import Measured, Quantity, known, measure
from sojourn.records import Run

MOST_COST = 0.25
"""Of the goodput that the best has, one way."""
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
    """Who pays this does not stand for choice, in words."""
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
class Advice:
    """The discipline to use."""

    goal: Goal
    chosen: str
    """The label of its Run."""
    as_good: tuple[str, ...]
    """Those that the seeds can't tell from it, in any quantity of the goal."""
    decided: tuple[Quantity, ...]
    """The quantities by which others left the field."""
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
    names = judge(measured, 0).runs
    field = [i for i, one in enumerate(measured) if goal.affordable(one, measured)]
    dear = [names[i] for i in range(len(measured)) if i not in field]
    if not field:
        field, dear = list(range(len(measured))), []
    decided, asked = [], _asked(measured, goal)
    for quantity in asked:
        left = _left(measured, field, quantity, names)
        if len(left) < len(field):
            decided.append(quantity)
        field = left
    chosen = _best(measured, field, asked[0])
    return Advice(
        goal,
        names[chosen],
        tuple(names[i] for i in field if i != chosen),
        tuple(decided),
        tuple(dear),
        judge(measured, 0),
    )


def _asked(measured: Sequence[Measured], goal: Goal) -> list[Quantity]:
    found = known(measured, goal.keys)
    felt = any(quantity.role == "felt" for quantity in found)
    return [quantity for quantity in found if not felt or quantity.role != "queue"]


def _best(measured: Sequence[Measured], field: Sequence[int], quantity: Quantity) -> int:
    sign = 1 if quantity.better == "less" else -1
    means = {i: sign * _mean(measured[i], quantity.key) for i in field}
    return min(field, key=lambda i: (math.isnan(means[i]), means[i]))


def _left(
    measured: Sequence[Measured], field: Sequence[int], quantity: Quantity, names: Sequence[str]
) -> list[int]:
    """Those that are not worse than the best of the field."""
    best = _best(measured, field, quantity)
    [contest] = judge(measured, best).contests
    worse = {
        each.run
        for each in contest.differences
        if each.key == quantity.key and each.verdict == "worse"
    }
    return [i for i in field if names[i] not in worse]
