"""Compares Runs and gives the verdict that the terminal, the page and Python show. Pure.

    found = sojourn.compare(runs)
    found.contests[0].winner                # the label of a Run, or None
    print("\\n".join(found.sentences()))

Runs compete only if link, rate, RTT, traffic and engine are the same (`likeness`). In each such
contest every pair of Runs is compared in every quantity (`quantities`), by the 95 % interval of the
difference:

    paired      simulations by one engine of the same seeds share their rng: Student's t over the
        differences by seed
    Welch       all other pairs
    one sample  a side has one seed, or its seeds are all the same run: no interval, and nobody is
        better

A Run is better in a quantity if the interval excludes 0 and the difference is not negligible
(`LEAST_SHARE`). It beats another Run if it is better in something that users feel and worse in
nothing that they feel. That must not cost more than `MOST_COST` of the goodput of either direction.
The winner beats all others. Without anything that users feel (no ping, no transfer, no call), the
sojourn times of all packets decide, mean and quantiles alike. The mean alone would not do: under
fair queueing a few packets wait long so that most do not.

Each quantity has its own interval: of twenty comparisons without any effect, one is expected to
show an effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sojourn import hypertext
from sojourn.judgement import likeness, words
from sojourn.judgement.contest import By, Contest, ContestRow, Difference, Verdict
from sojourn.judgement.own_names import own_names
from sojourn.judgement.quantities import RANKED_BY, Measured, Quantity, known, measure
from sojourn.metrics import Interval, paired, welch
from sojourn.records import Run

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Contest", "ContestRow", "Difference", "Judgement", "compare", "judge"]

LEAST_SHARE = 0.02
"""Values that differ by less, as a share of the larger one, are alike, even if the interval
excludes 0."""
MOST_COST = 0.25
"""A Run that loses more than this share of its goodput, in one direction, does not win by a shorter
delay."""


@dataclass(frozen=True, repr=False)
class Judgement:
    """The verdict on some Runs."""

    runs: tuple[str, ...]
    """Labels, all different, in the order of the Runs."""
    contests: tuple[Contest, ...]

    def sentences(self) -> list[str]:
        """The verdict in words, as on the terminal and the page."""
        return words.sentences(self.contests)

    def __repr__(self) -> str:
        return f"<Judgement of {', '.join(self.runs)}>"

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """Plain values, NaN as None: `judgement` in `sojourn compare --json`."""
        return {"runs": list(self.runs), "contests": [_plain(contest) for contest in self.contests]}

    def to_frame(self) -> pl.DataFrame:
        """A row for each Run and quantity: conditions, run, key, quantity, unit, mean, ci95 (null:
        no interval), best."""
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "conditions": contest.conditions,
                    "run": run,
                    "key": row.quantity.key,
                    "quantity": row.quantity.name,
                    "unit": row.quantity.unit,
                    "mean": row.means[i],
                    "ci95": row.ci95[i],
                    "best": row.best == run,
                }
                for contest in self.contests
                for row in contest.rows
                for i, run in enumerate(contest.runs)
            ]
        ).fill_nan(None)

    def _repr_html_(self) -> str:
        """For a notebook: the words, then a table for each contest."""
        verdict = hypertext.paragraphs(self.sentences())
        return "".join((verdict, *map(words.html_table, self.contests)))


def _plain(contest: Contest) -> dict[str, Any]:
    def finite(value: Any) -> Any:
        return None if isinstance(value, float) and not math.isfinite(value) else value

    rows = [
        {
            **{
                name: getattr(row.quantity, name)
                for name in ("key", "name", "unit", "of", "role", "better")
            },
            "values": {
                run: {"mean": finite(mean), "ci95": finite(ci95)}
                for run, mean, ci95 in zip(contest.runs, row.means, row.ci95, strict=True)
            },
            "best": row.best,
        }
        for row in contest.rows
    ]
    differences = []
    for each in contest.differences:
        plain = {
            key: finite(value)
            for key, value in asdict(each).items()
            # These two only control how the difference is written.
            if key not in ("difference", "count")
        }
        apart = {key: finite(value) for key, value in asdict(each.difference).items()}
        differences.append({**plain, "difference": apart})
    simple = {
        name: getattr(contest, name)
        for name in (
            "conditions",
            "link",
            "called",
            "seeds",
            "samples",
            "same",
            "by",
            "baseline",
            "winner",
        )
    }
    return {
        **simple,
        "runs": list(contest.runs),
        "front": list(contest.front),
        "beaten": {run: list(by) for run, by in contest.beaten.items()},
        "strengths": {run: list(names) for run, names in contest.strengths.items()},
        "rows": rows,
        "differences": differences,
    }


# ---------------------------------------------------------------------------------------- judging


def compare(
    runs: Iterable[Run], *, link: str | None = None, baseline: Run | None = None
) -> Judgement:
    """Compares Runs by their numbers at one link, and gives the verdict.

    Runs with the same link, rate, RTT, traffic and engine compete. Start from any Runs:

    >>> from sojourn import compare, load, run_all, variants
    >>> home = load("home-uplink").with_(duration="3 s", warmup="1 s")
    >>> runs = run_all(variants(home, ["pfifo", "fq_codel"]), seeds=3)
    >>> found = compare(runs)
    >>> found.contests[0].winner
    'fq_codel'
    >>> print(found)  # doctest: +ELLIPSIS
    fq_codel wins. Against pfifo: ...

    Args:
        link: the link to compare at; None: where most packets waited.
        baseline: the Run that the others are compared with; None: a plain FIFO, or the worst Run.

    Raises:
        RunError: a Run has no finished seed.
    """
    each = list(runs)
    for run in each:
        if not run.seeds:
            run.table("links")  # Raises: no seed has finished.
    first = None if baseline is None else next(i for i, run in enumerate(each) if run is baseline)
    return judge(measure(each, link), first)


def judge(measured: Sequence[Measured], baseline: int | None = None) -> Judgement:
    """The verdict on Runs with their numbers. `baseline`: the position of the Run that the others
    are compared with."""
    runs = [one.run for one in measured]
    names, own = likeness.labels(runs), own_names(runs)
    groups = likeness.alike(runs)
    headings = likeness.headings([runs[members[0]] for members in groups])
    contests = []
    for members, apart in zip(groups, headings, strict=True):
        labels = [names[i] for i in members]
        competing = len(groups) > 1 and len(members) > 1
        short = likeness.choices([runs[i] for i in members], own) if competing else labels
        first = members.index(baseline) if baseline in members else None
        contests.append(
            _contest([measured[i] for i in members], _Names(labels, short, apart), first)
        )
    return Judgement(tuple(names), tuple(contests))


@dataclass(frozen=True)
class _Field:
    """The Runs of one contest with every pair compared."""

    measured: Sequence[Measured]
    shown: Sequence[Quantity]
    deciding: Sequence[Quantity]
    verdicts: dict[tuple[str, int, int], Verdict]
    intervals: dict[tuple[str, int, int], Interval]

    def beats(self, a: int, b: int) -> bool:
        """Whether a beats b, as the head of this file defines it."""
        found = [self.verdicts[quantity.key, a, b] for quantity in self.deciding]
        return "better" in found and "worse" not in found and not self.dear(a, b)

    def dear(self, a: int, b: int) -> bool:
        """Whether a loses more goodput against b than `MOST_COST` allows."""
        for key in ("goodput", "goodput_other"):
            if self.verdicts.get((key, a, b)) == "worse":
                paid = -self.intervals[key, a, b].value
                if paid > MOST_COST * self.measured[b].over_seeds(key)[0]:
                    return True
        return False

    def best(self, key: str, among: Sequence[int]) -> int | None:
        """The Run that is better than every other of these."""
        return next(
            (
                a
                for a in among
                if len(among) > 1
                and all(self.verdicts[key, a, b] == "better" for b in among if b != a)
            ),
            None,
        )


@dataclass(frozen=True)
class _Names:
    labels: Sequence[str]
    short: Sequence[str]
    conditions: str


def _contest(measured: Sequence[Measured], called: _Names, chosen: int | None) -> Contest:
    names = called.labels
    shown = known(measured)
    felt = [quantity for quantity in shown if quantity.role == "felt"]
    deciding = felt or [quantity for quantity in shown if quantity.role == "queue"]
    everyone = range(len(measured))
    intervals = {
        (quantity.key, a, b): _apart(quantity.key, measured[a], measured[b])
        for quantity in shown
        for a in everyone
        for b in everyone
        if a != b
    }
    verdicts = {
        (quantity.key, a, b): _verdict(
            quantity, measured[a], measured[b], intervals[quantity.key, a, b]
        )
        for quantity in shown
        for a in everyone
        for b in everyone
        if a != b
    }
    field = _Field(measured, shown, deciding, verdicts, intervals)
    order = _ranked(measured, names, deciding)
    base = _baseline(measured, order) if chosen is None else chosen
    front = [a for a in order if not any(field.beats(b, a) for b in everyone if b != a)]
    winner = next(
        (a for a in order if len(order) > 1 and all(field.beats(a, b) for b in everyone if b != a)),
        None,
    )
    rows = []
    for quantity in shown:
        found = [measured[i].over_seeds(quantity.key) for i in order]
        best = field.best(quantity.key, order)
        rows.append(
            ContestRow(
                quantity,
                tuple(mean for mean, _ in found),
                tuple(ci95 for _, ci95 in found),
                None if best is None else names[best],
            )
        )
    weighed = [*deciding, *(quantity for quantity in shown if quantity.role == "cost")]
    fewest = min(measured, key=lambda one: (one.summary.samples, len(one.summary.seeds)))
    return Contest(
        conditions=called.conditions,
        link=measured[0].link,
        runs=tuple(names[i] for i in order),
        called=dict(zip(names, called.short, strict=True)),
        seeds=len(fewest.summary.seeds),
        samples=fewest.summary.samples,
        same=_same([one.run for one in measured]),
        by=_by(measured),
        rows=tuple(rows),
        baseline=names[base],
        winner=None if winner is None else names[winner],
        front=tuple(names[i] for i in front),
        beaten={
            names[a]: tuple(names[b] for b in order if b != a and field.beats(b, a))
            for a in order
            if a not in front
        },
        strengths={
            names[i]: tuple(each.name for each in weighed if field.best(each.key, front) == i)
            for i in front
        },
        differences=tuple(
            _difference(field, names, quantity, i, base)
            for i in order
            if i != base
            for quantity in shown
        ),
    )


def _ranked(
    measured: Sequence[Measured], names: Sequence[str], deciding: Sequence[Quantity]
) -> list[int]:
    """The order of the Runs: by the p95 of the pings, or by the first deciding quantity without
    pings; unknown values last."""
    key = next(
        (each.key for each in deciding if each.key == RANKED_BY),
        deciding[0].key if deciding else "",
    )
    values = [one.over_seeds(key)[0] for one in measured]
    return sorted(
        range(len(measured)),
        key=lambda i: (math.isnan(values[i]), values[i] if values[i] == values[i] else 0, names[i]),
    )


def _baseline(measured: Sequence[Measured], order: Sequence[int]) -> int:
    fifos = [
        i
        for i in order
        if measured[i].link is not None
        and measured[i].run.meta.link(measured[i].link or "").qdisc.startswith(("pfifo", "bfifo"))
    ]
    return fifos[-1] if fifos and len(fifos) < len(order) else order[-1]


def _difference(
    field: _Field, names: Sequence[str], quantity: Quantity, a: int, b: int
) -> Difference:
    return Difference(
        key=quantity.key,
        name=quantity.name,
        unit=quantity.unit,
        of=quantity.of,
        role=quantity.role,
        run=names[a],
        against=names[b],
        value=field.measured[a].over_seeds(quantity.key)[0],
        reference=field.measured[b].over_seeds(quantity.key)[0],
        difference=field.intervals[quantity.key, a, b],
        verdict=field.verdicts[quantity.key, a, b],
        count=quantity.count,
    )


def _paired(one: Measured, other: Measured) -> bool:
    return one.run.meta.engine == other.run.meta.engine and one.summary.seeds == other.summary.seeds


def _same(runs: Sequence[Run]) -> bool:
    first = runs[0]
    return (
        len(runs) > 1
        and all(
            run.path.absolute() == first.path.absolute()
            # A Run of format 1 has no checksums.
            or (run.seeds == first.seeds and run.meta.checksums == first.meta.checksums != {})
            for run in runs[1:]
        )
    )


def _by(measured: Sequence[Measured]) -> By:
    if min(one.summary.samples for one in measured) < 2:
        return "one sample"
    return "paired" if all(_paired(measured[0], one) for one in measured) else "Welch"


def _apart(key: str, one: Measured, other: Measured) -> Interval:
    """one - other, with the interval that the seeds allow."""
    here, there = one.per_seed(key), other.per_seed(key)
    if min(one.summary.samples, other.summary.samples) > 1:
        if _paired(one, other):
            return paired(there, here) if len(there) == len(here) else _NOTHING
        sides = [[value for value in side if not math.isnan(value)] for side in (there, here)]
        return welch(*sides) if all(sides) else _NOTHING
    return Interval(one.over_seeds(key)[0] - other.over_seeds(key)[0], math.nan, math.nan)


_NOTHING = Interval(math.nan, math.nan, math.nan)


def _verdict(quantity: Quantity, one: Measured, other: Measured, apart: Interval) -> Verdict:
    if quantity.better == "neither":
        return "neither"
    if math.isnan(apart.low):
        return "unknown"
    larger = max(abs(each.over_seeds(quantity.key)[0]) for each in (one, other))
    if not apart.excludes_zero or abs(apart.value) < max(quantity.least, LEAST_SHARE * larger):
        return "alike"
    return "better" if (apart.value < 0) == (quantity.better == "less") else "worse"
