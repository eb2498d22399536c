"""The cells of a sweep: one for each combination of the swept values, with its settings and
numbers. Pure.

The quantities are those of a judgement (`sojourn.judgement.quantities`), the deciding ones first:
what users feel (without that, the sojourn times), then the cost, then the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sojourn.errors import UserError
from sojourn.judgement import Judgement, judge, likeness
from sojourn.judgement.own_names import own_names
from sojourn.judgement.quantities import (
    AtLink,
    Quantity,
    backlogs_of,
    measure,
    under_study,
)
from sojourn.sweeps.axes import Setting, headings, written
from sojourn.units import nearest

if TYPE_CHECKING:
    from sojourn.engine import Summed
    from sojourn.judgement import Contest
    from sojourn.records import Meta, Run

ORDER = (
    *("ping_p95", "completion_mean", "completion_p95", "mos", "late", "goodput", "goodput_other"),
    *("own_goodput", "jain", "ping_loss", "utilisation", "sojourn_mean", "sojourn_p95", "ping_mean"),
    *("ping_p50", "sojourn_p50", "sojourn_p99", "drops", "drop_rate", "marks", "completed"),
    *("completion_p50", "completion_p99"),
    "ping_idle",
)  # fmt: skip
"""Keys of quantities without their flow, the most important first."""
ALL = "all"
"""Selects every quantity."""
MOST_LISTED = 16
"""The largest number of values of a key that are shown side by side."""
WITHOUT_SETTINGS = "run"
"""The key of Runs without recorded settings; its values are their labels."""
_UNITS = {"ms": "_ms", "Mbit/s": "_mbps", "%": "_percent"}


@dataclass(frozen=True)
class SweepCell:
    """One combination of the swept values."""

    settings: Mapping[str, Setting]
    label: str
    at: AtLink
    """The numbers of the cell."""
    contest: Contest | None = None
    """The contest of the cell; None: there is no judgement."""

    def values(self, key: str) -> tuple[float, float]:
        """The mean over seeds, and half of the 95 % interval (NaN: none)."""
        return self.at.over_seeds(key)

    def best(self, key: str) -> bool:
        """Whether it is better in this quantity than every other cell with the same link and
        traffic."""
        row = None if self.contest is None else self.contest.row(key)
        return row is not None and row.best == self.label


@dataclass(frozen=True)
class Grid:
    """The cells of a sweep, in the order of the sweep."""

    keys: tuple[str, ...]
    """The keys that vary."""
    cells: tuple[SweepCell, ...]
    quantities: tuple[Quantity, ...]
    """The quantities that some cell has, the most important first."""
    judgement: Judgement | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """The names of user-defined classes, by their words."""

    def written(self, value: Setting | None) -> str:
        """A swept value as text."""
        return written(self.names.get(value, value) if isinstance(value, str) else value)

    @property
    def headings(self) -> list[str]:
        """The heading of each key."""
        return headings(self.keys)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The keys that are choices of the operator or the hosts: the discipline, TCP."""
        return tuple(filter(likeness.is_choice, self.keys))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The other keys: properties of the line and its users."""
        return tuple(key for key in self.keys if key not in self.chosen)

    @property
    def drawn(self) -> tuple[str, ...]:
        """The conditions whose values were drawn together and form no grid: not every value of one
        is combined with all values of the others."""
        among = [key for key in self.conditions if len(self.distinct(key)) > 1]
        points = {self._at(cell, among) for cell in self.cells}
        rest = {
            key: {self._at(cell, [k for k in among if k != key]) for cell in self.cells}
            for key in among
        }
        found = [key for key in among if len(points) < len(self.distinct(key)) * len(rest[key])]
        # A key that alone has more values than anyone would list was drawn from a range.
        return tuple(found or (key for key in among if len(self.distinct(key)) > MOST_LISTED))

    @staticmethod
    def _at(cell: SweepCell, keys: Sequence[str]) -> tuple[Setting | None, ...]:
        return tuple(cell.settings.get(key) for key in keys)

    def distinct(self, key: str) -> list[Setting]:
        """The values of a key, each once, in their order."""
        return list(dict.fromkeys(c.settings[key] for c in self.cells if key in c.settings))

    def differing(self) -> list[Quantity]:
        """The quantities that differ between cells, for a short table; all if there is one cell."""
        if len(self.cells) == 1:
            return list(self.quantities)
        found = [one for one in self.quantities if _differs(one.key, self.cells)]
        return found or list(self.quantities[:1])

    def selected(self, names: Sequence[str]) -> list[Quantity]:
        """The quantities with these names: a key, a column, or a key without its flow.

        Raises:
            UserError: there is no such quantity.
        """
        found: dict[str, Quantity] = {}
        for name in names:
            these = [one for one in self.quantities if name in (ALL, *_names(one))]
            if not these:
                raise _unknown(name, [*(one.key for one in self.quantities), ALL])
            found |= {one.key: one for one in these}
        return list(found.values())


def check(names: Sequence[str]) -> None:
    """Refuses a column that no scenario has, before anything has run."""
    for name in names:
        head = name.partition(":")[0]
        if head != ALL and not any(head in (one, *_with_units(one)) for one in ORDER):
            raise _unknown(name, [*ORDER, ALL])


def _with_units(head: str) -> list[str]:
    return [head + suffix for suffix in _UNITS.values()]


def column(quantity: Quantity) -> str:
    """The name of a quantity's column, with its unit: "ping_p95_ms", "completion_mean_ms:web"."""
    head, colon, of = quantity.key.partition(":")
    return f"{head}{_UNITS.get(quantity.unit, '')}{colon}{of}"


def _unknown(name: str, known: Sequence[str]) -> UserError:
    guess = nearest(name, known)
    meant = f"did you mean {guess}? " if guess else ""
    return UserError(f"no column is called {name!r}", f"{meant}columns: {', '.join(known)}")


def _names(quantity: Quantity) -> tuple[str, ...]:
    return quantity.key, column(quantity), quantity.key.partition(":")[0]


def _differs(key: str, cells: Sequence[SweepCell]) -> bool:
    means = [cell.values(key)[0] for cell in cells]
    known = [mean for mean in means if not math.isnan(mean)]
    return bool(known) and (len(known) < len(means) or any(mean != known[0] for mean in known[1:]))


# ----------------------------------------------------------------------------------- construction


def of_runs(runs: Sequence[Run], link: str | None = None) -> Grid:
    """The cells of these Runs with a judgement, at this link or where most packets waited.

    Raises:
        RunError: a Run can't be read.
    """
    measured = measure(runs, link)
    found = judge(measured)
    contests = {run: contest for contest in found.contests for run in contest.runs}
    cells = [
        SweepCell(_settings(one.meta, label), label, one, contests[label])
        for one, label in zip(measured, found.runs, strict=True)
    ]
    return _grid(cells, found, own_names(runs))


def of_simulated(results: Sequence[Summed]) -> Grid:
    """The cells of simulations in memory."""
    metas = [one.meta for one in results]
    links = under_study(metas, [backlogs_of(one.meta, one.summary) for one in results])
    cells = [
        SweepCell(
            _settings(one.meta, one.meta.label), one.meta.label, AtLink(one.meta, at, one.summary)
        )
        for one, at in zip(results, links, strict=True)
    ]
    return _grid(cells, None, {})


def _settings(meta: Meta, label: str) -> Mapping[str, Setting]:
    return meta.settings or {WITHOUT_SETTINGS: label}


def _grid(cells: Sequence[SweepCell], found: Judgement | None, names: Mapping[str, str]) -> Grid:
    keys = tuple(dict.fromkeys(key for cell in cells for key in cell.settings))
    every: dict[str, Quantity] = {}
    for cell in cells:
        every = {**cell.at.quantities, **every}
    known = [
        one
        for one in every.values()
        if any(not math.isnan(cell.values(one.key)[0]) for cell in cells)
    ]
    felt = any(one.role == "felt" for one in known)
    ranked = tuple(sorted(known, key=lambda one: _rank(one, felt)))
    return Grid(keys, tuple(cells), ranked, found, names)


def _rank(quantity: Quantity, felt: bool) -> int:
    if not felt and quantity.role == "queue":
        return -1
    return ORDER.index(quantity.key.partition(":")[0])
