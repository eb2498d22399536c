"""A judgement in sentences and as a table in HTML. Every word follows from the data of a
Contest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from sojourn import hypertext
from sojourn.digits import decimals, number, with_interval
from sojourn.judgement.contest import Contest, Difference
from sojourn.judgement.quantities import RANKED_BY, Quantity
from sojourn.metrics import RANDOM_START

_Of = TypeVar("_Of", Quantity, Difference)

MOST_CONTESTS = 12
"""With at most this many contests each has its sentences; with more, only the wins are counted."""
MOST_NAMED = 4
"""The largest number of quantities named for a Run that is best for several."""
LEAST_COUNT = 0.02
"""Counts of finished transfers that differ by more, as a share of the larger one, are printed with
the completion times."""


def sentences(contests: Sequence[Contest]) -> list[str]:
    """The verdict: the sentences of each contest, in their order."""
    if len(contests) == 1:
        return of_contest(contests[0])
    verdict = []
    competing = [contest for contest in contests if len(contest.runs) > 1]
    if len(competing) > 1:
        verdict.append(_tally(competing))
    if len(competing) <= MOST_CONTESTS:
        verdict += [
            f"{contest.conditions}: {' '.join(of_contest(contest))}" for contest in competing
        ]
    alone = [contest for contest in contests if len(contest.runs) == 1]
    if alone:
        names = _and([_alone(contest) for contest in alone[:MOST_CONTESTS]])
        more = f" and {len(alone) - MOST_CONTESTS} more" if len(alone) > MOST_CONTESTS else ""
        verdict.append(
            f"Not compared, because no other Run has the same link and traffic: {names}{more}."
            if competing
            else f"No two of these Runs have the same link and traffic, so nothing is compared: {names}{more}."
        )
    return verdict


def _alone(contest: Contest) -> str:
    """The contest's only Run, with its conditions unless the name contains them."""
    [run] = contest.runs
    return run if contest.conditions in run else f"{run} ({contest.conditions})"


def _tally(contests: Sequence[Contest]) -> str:
    won = Counter(
        contest.called[contest.winner] for contest in contests if contest.winner is not None
    )
    undecided = len(contests) - sum(won.values())
    (first, times), *others = won.most_common() or [("Nobody", len(contests))]
    parts = [f"{run} wins {count}" for run, count in others]
    parts += (
        [f"{undecided} {'has' if undecided == 1 else 'have'} no winner"]
        if undecided and won
        else []
    )
    total = f"{first} wins {'any' if not won else times} of {len(contests)} comparisons"
    return f"{'; '.join([f'{total} between Runs of the same link and traffic', *parts])}."


def of_contest(contest: Contest) -> list[str]:
    """The winner, its gains and its cost; or why there is no winner."""
    if len(contest.runs) == 1:
        return [f"{contest.called[contest.runs[0]]}: nothing to compare with."]
    if not any(row.quantity.role in ("felt", "queue") for row in contest.rows):
        return ["No winner: no packet was measured after the warm-up."]
    if contest.same:
        return [
            f"No winner: {_and([contest.called[run] for run in contest.runs])} gave equal tables."
        ]
    if contest.by == "one sample":
        return [*_one_sample(contest)]
    if contest.winner is not None:
        return _won(contest, contest.winner)
    return _undecided(contest)


# --------------------------------------------------------------------------------------- verdicts


def _won(contest: Contest, winner: str) -> list[str]:
    called = contest.called
    wins = f"{called[winner]} wins" + (
        " against each of the others" if len(contest.runs) > 2 else ""
    )
    reference = contest.baseline if contest.baseline != winner else contest.runs[-1]
    found = contest.against(winner, reference)
    return [
        f"{wins}. Against {called[reference]}: {'; '.join(_in_full(_headlines(found), found))}.",
        _price(found),
    ]


def _price(found: Sequence[Difference]) -> str:
    """The sentence on everything else that became better or worse."""
    headlines = {each.key for each in _headlines(found)}
    rest = [each for each in found if each.key not in headlines]
    worse = [each for each in rest if each.verdict == "worse" and each.role != "context"]
    felt = [each for each in rest if each.verdict == "better" and each.role == "felt"]
    paid = [each for each in rest if each.verdict == "better" and each.role == "cost"]
    price = (
        f"Worse: {'; '.join(_in_full(worse, found))}."
        if worse
        else "Nothing that users notice got worse, and no goodput fell."
    )
    # A user's first quantity is among the headlines with its interval; the user's others are brief.
    gains = [*map(_briefly, felt), *map(_with_interval, paid)]
    return f"{price} Better too: {'; '.join(gains)}." if gains else price


def _undecided(contest: Contest) -> list[str]:
    called = contest.called
    front = [called[run] for run in contest.front]
    beaten = "".join(
        f" {called[run]} does worse than {_and([called[other] for other in by])}."
        for run, by in contest.beaten.items()
    )
    strengths = {called[run]: names for run, names in contest.strengths.items() if names}
    among = f"No winner among {_and(front)}"
    if len(front) == 1:
        best = front[0]
        why = f"No winner: no other Run beats {best}, but {best} does not beat every other Run."
    elif not strengths:
        apart = f"No winner: {_and(front)} can't be told apart."
        why = apart if len(front) == 2 else f"{among}: none of them is best for anything."
    elif len(front) == 2:
        parts = [f"{run} is better for {_few(names)}" for run, names in strengths.items()]
        why = f"No winner: {'; '.join(parts)}."
    else:
        parts = [f"{run} is best for {_few(names)}." for run, names in strengths.items()]
        why = " ".join([f"{among}.", *parts])
    verdict = [f"{why}{beaten}"]
    for run in contest.front:
        if run != contest.baseline and (
            changed := _changed(contest.against(run, contest.baseline))
        ):
            verdict.append(f"{called[run]} against {called[contest.baseline]}. {changed}")
    return verdict


def _changed(found: Sequence[Difference]) -> str:
    felt = any(each.role == "felt" for each in found)
    weighed = [
        each for each in found if each.role in (("felt", "cost") if felt else ("queue", "cost"))
    ]
    parts = [
        f"{word}: {'; '.join(_in_full(changes, found))}."
        for word, verdict in (("Better", "better"), ("Worse", "worse"))
        if (changes := [each for each in weighed if each.verdict == verdict])
    ]
    return " ".join(parts)


def _one_sample(contest: Contest) -> list[str]:
    rows = [
        row
        for row in contest.rows
        if row.quantity in _leading([row.quantity for row in contest.rows])
    ]
    rows += [
        row
        for row in contest.rows
        if _headline(row.quantity.key) == "completed" and _differs(min(row.means), max(row.means))
    ]
    rows = rows or [row for row in contest.rows if row.quantity.role == "queue"]
    numbers = [
        f"{row.quantity.name} "
        + ", ".join(
            f"{number(mean)}{_unit(row.quantity.unit)} with {contest.called[run]}"
            for run, mean in zip(contest.runs, row.means, strict=True)
            if not math.isnan(mean)
        )
        for row in rows
    ]
    why = (
        alike_seeds(contest.seeds)
        if contest.seeds > 1
        else "One seed is one sample. More seeds can decide: run again with --seeds 5."
    )
    return [
        f"No winner: with one sample a difference may be chance. Its numbers: {'; '.join(numbers)}.",
        why,
    ]


def alike_seeds(seeds: int) -> str:
    """The sentence for seeds that all gave the same tables."""
    return (
        f"All {seeds} seeds gave the same Run, since nothing in the scenario is random: one sample, no interval."
        f" With {RANDOM_START} on a flow the seeds differ."
    )


# ----------------------------------------------------------------------------------------- pieces


def _headline(key: str) -> str:
    return key.partition(":")[0]


def _headlines(found: Sequence[Difference]) -> list[Difference]:
    """The first quantity that became better for each user; without users, all of the queue that
    became better."""
    better = [each for each in found if each.verdict == "better"]
    return _leading(better) or [each for each in better if each.role == "queue"]


def _leading(quantities: Sequence[_Of]) -> list[_Of]:
    """The first felt quantity of each user, in their order. For pings it is the quantity that ranks
    the Runs."""
    first: dict[str, _Of] = {}
    felt = [each for each in quantities if each.role == "felt"]
    for each in sorted(felt, key=lambda each: each.key != RANKED_BY):
        first.setdefault(each.of, each)
    return list(first.values())


def _in_full(changes: Sequence[Difference], found: Sequence[Difference]) -> list[str]:
    """Each change with its interval.

    A completion time is of finished transfers only. So the first completion time of each flow entry
    also has the number of finished transfers, if that differs.
    """
    counts = {each.of: each for each in found if _headline(each.key) == "completed"}
    parts = []
    for one in changes:
        many = counts.pop(one.of, None) if _headline(one.key).startswith("completion") else None
        differ = many is not None and _differs(many.value, many.reference)
        words = _with_interval(one)
        parts.append(f"{words}, {_briefly(many)}" if many is not None and differ else words)
    return parts


def _differs(value: float, reference: float) -> bool:
    """Whether two counts differ enough to be printed."""
    return abs(value - reference) > LEAST_COUNT * max(abs(value), abs(reference))


def _with_interval(one: Difference) -> str:
    """`ping RTT p95 from 803 to 22.2 ms (-781, 95 % interval -797 to -765)`."""
    apart = one.difference
    # Shares from 0 to 100 % differ by at most 100 points.
    low, high = (
        (max(apart.low, -100.0), min(apart.high, 100.0))
        if one.unit == "%"
        else (apart.low, apart.high)
    )
    whole = one.count and apart.value == round(apart.value)
    ends = [number(end, 0 if whole else decimals(apart.value)) for end in (low, high)]
    points = " points" if one.unit == "%" else ""
    share = (
        f"{'+' if apart.value > 0 else ''}{100 * one.share:.0f} %, "
        if one.role == "cost" and one.unit
        else ""
    )
    return (
        f"{_briefly(one)}"
        f" ({share}{'+' if apart.value > 0 else ''}{_shown(one, apart.value)}{points}, 95 % interval {ends[0]} to {ends[1]})"
    )


def _briefly(one: Difference) -> str:
    """`ping RTT p95 from 803 to 22.2 ms`."""
    return (
        f"{one.name} from {_shown(one, one.reference)} to {_shown(one, one.value)}{_unit(one.unit)}"
    )


def _shown(one: Difference, value: float) -> str:
    """A value or a difference. A whole count has no decimals: 97, not 97.0."""
    return number(value, 0) if one.count and value == round(value) else number(value)


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""


def _few(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    more = len(names) - MOST_NAMED
    return _and([*names[:MOST_NAMED], f"{more} more"] if more > 1 else names)


def _and(parts: Sequence[str]) -> str:
    return "".join(parts) if len(parts) < 2 else f"{', '.join(parts[:-1])} and {parts[-1]}"


# ------------------------------------------------------------------------------------------- HTML


def html_table(contest: Contest, shown: Sequence[str] | None = None) -> str:
    """The rows of a contest as columns, a line for each Run; the best of each column is bold."""
    rows = [row for row in contest.rows if shown is None or row.quantity.key in shown]
    head = ["Run", *(f"{row.quantity.name} {row.quantity.unit}" for row in rows)]
    lines = []
    for i, run in enumerate(contest.runs):
        cells = [with_interval(row.means[i], row.ci95[i], row.quantity.most) for row in rows]
        best = [row.best == run for row in rows]
        lines.append(
            [run, *(hypertext.strong(c) if b else c for c, b in zip(cells, best, strict=True))]
        )
    return hypertext.table(head, lines, contest.conditions)
