"""The page of a sweep: the winner of each cell, small charts over the swept values, paired
differences, and the numbers.

It needs only a grid (`sojourn.sweeps.grid`) and its judgement. It reads no time lines, so thousands
of Runs make a small page. Every chart of one quantity has the same axes. The page has no script: an
element that belongs to a swept value has a mark, and CSS hides elements whose value is not ticked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from markupsafe import Markup

from sojourn.digits import decimals, number, sides, with_interval
from sojourn.figures import series, style
from sojourn.judgement import MOST_COST, Contest, words
from sojourn.judgement.contest import Difference
from sojourn.judgement.likeness import is_choice
from sojourn.judgement.quantities import Quantity
from sojourn.records import Run
from sojourn.report import multiples, parts
from sojourn.report.data import spans_decades
from sojourn.sweeps.axes import Setting, logarithmic, scale, written
from sojourn.sweeps.grid import Grid, SweepCell, of_runs

MOST_CHARTED = 4
"""The largest number of quantities with charts, the most important first."""
MOST_BOXES = 30
"""The largest number of values for which a key has check boxes."""

Settings = tuple[Setting | None, ...]

_WINS = (
    "better in something that users notice, worse in nothing that they notice,"
    f" and at most {100 * MOST_COST:.0f} % less goodput"
)
"""The definition of a winner (`sojourn.judgement`)."""


def is_sweep(runs: Sequence[Run]) -> bool:
    """Whether these are the cells of one sweep over conditions: rates, delays, numbers of flows."""
    keys = {tuple(run.meta.settings) for run in runs}
    if len(runs) < 2 or len(keys) != 1 or not next(iter(keys)):
        return False
    if any(series.is_measured(run) for run in runs):
        return False
    settings = {tuple(run.meta.settings.values()) for run in runs}
    titles = {run.meta.title for run in runs}
    return len(settings) == len(runs) and len(titles) == 1 and bool(_varying(runs))


def _varying(runs: Sequence[Run]) -> list[str]:
    return [
        key
        for key in runs[0].meta.settings
        if not is_choice(key) and len({run.meta.settings[key] for run in runs}) > 1
    ]


def render(runs: Sequence[Run], lab: str | None = None) -> str:
    """The page as HTML; `lab` is the address of the lab's page, relative to this one."""
    swept = _Swept(of_runs(runs), runs)
    return parts.page(
        "sojourn.report/swept.html",
        ["sojourn.report/page.css", "sojourn.report/swept.css"],
        title=series.title(runs),
        about=swept.about(),
        sentences=swept.sentences(),
        refused=parts.refused(runs),
        boxes=swept.filters(),
        contenders=swept.legend(),
        nobody=parts.stroke(style.MUTED, style.SOLID),
        winners=swept.winners(),
        intervals=swept.intervals(),
        charts=swept.charts(),
        pairs=swept.pairs(),
        numbers=swept.numbers(),
        lab=parts.changing(runs, lab),
        facts=swept.facts(),
        first=runs[0],
    )


@dataclass(frozen=True)
class _Contender:
    """The choices in one cell of every condition: a line of the charts."""

    chosen: Settings
    label: str
    colour: str
    dash: style.Dash


@dataclass(frozen=True)
class _Shown:
    """The presentation of a quantity in charts."""

    name: str
    unit: str
    most: float
    rates: Mapping[Setting | None, float] = field(default_factory=dict)
    """The divisor for each swept value, if the quantity is shown as a share; empty: it is not."""


class _Swept:
    """A grid, converted to the sections of the page."""

    def __init__(self, grid: Grid, runs: Sequence[Run]) -> None:
        self.grid = grid
        self.runs = runs
        self.conditions = [key for key in grid.conditions if len(grid.distinct(key)) > 1]
        self.across = self._horizontal()
        self.drawn = [key for key in grid.drawn if scale(grid.distinct(key)) is not None]
        """Conditions that were drawn at random, not listed: their cells are dots, not fields."""
        apart = self.drawn or [self.across]
        self.rest = [key for key in self.conditions if key not in apart]
        self.contenders = self._contenders()
        self.heading = {
            key: _named(key, heading) for key, heading in zip(grid.keys, grid.headings, strict=True)
        }
        self.boxes = self._boxes()

    def _horizontal(self) -> str:
        """The key of the horizontal axis: the numeric key with the most values."""
        keys = self.conditions
        return max(
            keys,
            key=lambda key: (
                scale(self.grid.distinct(key)) is not None,
                len(self.grid.distinct(key)),
            ),
        )

    def _contenders(self) -> list[_Contender]:
        first: dict[Settings, int] = {}
        for i, cell in enumerate(self.grid.cells):
            first.setdefault(self._of(cell, self.grid.chosen), i)
        cells = list(first.values())
        links = [self.grid.cells[i].at.link for i in cells]
        looks = style.looks([self.runs[i] for i in cells], links)
        plain = [(look.colour, look.dash) for look in looks]
        kinds = {style.qdisc_kind(self.runs[i], at) for i, at in zip(cells, links, strict=True)}
        if len(kinds) < len(cells):
            # Shades of one discipline are hard to distinguish where several lines cross.
            plain = [style.flow_look(i) for i in range(len(cells))]
        return [
            _Contender(chosen, ", ".join(map(self.grid.written, chosen)) or "all", *look)
            for chosen, look in zip(first, plain, strict=True)
        ]

    def _boxes(self) -> dict[str, dict[Setting | None, str]]:
        """A box for each value of the listed keys, by the name of its mark."""
        found: dict[str, dict[Setting | None, str]] = {}
        for k, key in enumerate(self.grid.keys):
            values = list(dict.fromkeys(cell.settings.get(key) for cell in self.grid.cells))
            if 1 < len(values) <= MOST_BOXES and key not in self.drawn:
                found[key] = {value: f"at-{k}-{i}" for i, value in enumerate(values)}
        return found

    def _marked(self, settings: Mapping[str, Setting | None]) -> str:
        """The marks of an element that belongs to these values."""
        return " ".join(
            self.boxes[key][value] for key, value in settings.items() if key in self.boxes
        )

    def _of(self, cell: SweepCell, keys: Sequence[str]) -> Settings:
        return tuple(cell.settings.get(key) for key in keys)

    def _text(self, keys: Sequence[str], values: Settings) -> str:
        """`count 4, up.rate 5 Mbit/s`."""
        return ", ".join(
            f"{self.heading[key]} {self.grid.written(value)}"
            for key, value in zip(keys, values, strict=True)
        )

    # ------------------------------------------------------------------------------------ heading

    def about(self) -> str:
        counts = {len(cell.at.summary.seeds) for cell in self.grid.cells}
        seeds = f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"
        values = ", ".join(
            f"{self.heading[key]} ({len(self.grid.distinct(key))})" for key in self.grid.keys
        )
        return (
            f"{series.subtitle(self.runs).partition(' · ')[0]} · {len(self.grid.cells)} cells: {values}"
            f" · {seeds} {'seed' if counts == {1} else 'seeds'}, the same in every cell"
        )

    def sentences(self) -> list[str]:
        assert self.grid.judgement is not None, "Runs are judged"
        if len(self.contenders) < 2:
            return [
                f"{len(self.grid.cells)} cells of one contender, so there is no competition. The charts show it"
                f" over {self.heading[self.across]}."
            ]
        return self.grid.judgement.sentences()[:1]

    # ------------------------------------------------------------------------------------ filters

    def filters(self) -> list[dict[str, Any]]:
        """The check boxes; elements of an unticked value are hidden."""
        return [
            {
                "heading": self.heading[key],
                "choices": [(self.grid.written(value), name) for value, name in values.items()],
            }
            for key, values in self.boxes.items()
        ]

    # ---------------------------------------------------------------------------------- heat maps

    def winners(self) -> dict[str, Any]:
        """A heat map for each combination of the keys that are neither its rows nor its columns;
        empty without competitors."""
        if len(self.contenders) < 2:
            return {}
        if self.drawn:
            hint = f"A dot is a point that was drawn at random, in the colour of its winner: {_WINS}. Grey: nobody wins."
            return {
                "hint": hint,
                "dots": self._winning_dots(),
                "maps": [],
                "verdicts": self._verdicts(),
            }
        down, *others = [*self.rest, ""]
        others = [key for key in others if key]
        maps = [
            self._heat(down, others, values)
            for values in dict.fromkeys(self._of(cell, others) for cell in self.grid.cells)
        ]
        key = self.grid.quantities[0]
        hint = (
            f"Each field names the winner: {_WINS}. The line below has the"
            f" {key.name} of the winner, and of the best other. The colour is the winner's; grey: nobody wins."
        )
        return {"hint": hint, "dots": [], "maps": maps, "verdicts": self._verdicts()}

    def _winning_dots(self) -> list[dict[str, Any]]:
        """For values drawn at random: a dot for each point in the plane of two keys, in the colour
        of its winner."""
        first, *others = self.drawn
        vertical: list[str | None] = [*others]
        quantity = self.grid.quantities[0]
        return [
            self._plane(first, other, quantity, values)
            for values in dict.fromkeys(self._of(cell, self.rest) for cell in self.grid.cells)
            for other in vertical or [None]
        ]

    def _plane(
        self, across: str, up: str | None, quantity: Quantity, rest: Settings
    ) -> dict[str, Any]:
        """`up`: the other key; None: there is none, and the height of a dot is the deciding
        quantity."""
        dots: dict[tuple[str, str], list[multiples.Spot]] = {}
        places, along = self._places(across)
        heights = None if up is None else self._places(up)
        best = self._best_by_point(quantity, rest)
        for cell, mean in best.values():
            contest = cell.contest
            won = contest is not None and contest.winner is not None
            at = mean if heights is None else heights[0][cell.settings[up or across]]
            who = self._contender(cell) if won else None
            look = (who.label, who.colour) if who else ("nobody wins", style.MUTED)
            spot = multiples.Spot(places[cell.settings[across]], at, math.nan, math.nan)
            dots.setdefault(look, []).append(spot)
        curves = [
            multiples.Curve(label, colour, style.SOLID, tuple(spots), joined=False)
            for (label, colour), spots in dots.items()
        ]
        if heights is None:
            known = [mean for _, mean in best.values()]
            span = multiples.span_of(known, min(known) > 0 and _wide(known))
        else:
            span = heights[1]
        vertical = f"{quantity.name}, {quantity.unit}" if up is None else self._unit(up)
        caption = "; ".join(filter(None, (self._text(self.rest, rest), vertical)))
        chart = multiples.chart(f"Winners, {caption}", curves, along, span, self._unit(across))
        return self._figure(rest, caption, chart)

    def _figure(self, rest: Settings, caption: str, chart: Markup) -> dict[str, Any]:
        """A chart at these values of the keys that are not axes."""
        marks = self._marked(dict(zip(self.rest, rest, strict=True)))
        return {"marks": marks, "caption": caption, "chart": chart}

    def _best_by_point(
        self, quantity: Quantity, rest: Settings
    ) -> dict[Settings, tuple[SweepCell, float]]:
        """For each point with these values: the winner (without one, the first cell) and its
        deciding number."""
        found: dict[Settings, tuple[SweepCell, float]] = {}
        for cell in self.grid.cells:
            mean = cell.values(quantity.key)[0]
            point = self._of(cell, self.conditions)
            won = cell.contest is not None and cell.contest.winner == cell.label
            if (
                self._of(cell, self.rest) == rest
                and math.isfinite(mean)
                and (won or point not in found)
            ):
                found[point] = cell, mean
        return found

    def _verdicts(self) -> list[tuple[str, str]]:
        """The verdict for each link and traffic."""
        assert self.grid.judgement is not None, "Runs are judged"
        return [
            (contest.conditions, " ".join(words.of_contest(contest)))
            for contest in self.grid.judgement.contests
            if len(contest.runs) > 1
        ]

    def _heat(self, down: str, others: Sequence[str], values: Settings) -> dict[str, Any]:
        columns = self.grid.distinct(self.across)
        lines: Sequence[Setting | None] = self.grid.distinct(down) if down else [None]
        rows = []
        for line in lines:
            own = {down: line} if down else {}
            fixed = {**dict(zip(others, values, strict=True)), **own}
            fields = [self._field({**fixed, self.across: value}) for value in columns]
            name = f"{self.heading[down]} {self.grid.written(line)}" if down else ""
            rows.append({"marks": self._marked(own), "name": name, "fields": fields})
        return {
            "marks": self._marked(dict(zip(others, values, strict=True))),
            "caption": self._text(others, values),
            "across": self.heading[self.across],
            "columns": [
                (self.grid.written(value), self._marked({self.across: value})) for value in columns
            ],
            "rows": rows,
        }

    def _field(self, fixed: dict[str, Setting | None]) -> dict[str, str]:
        cells = [
            cell
            for cell in self.grid.cells
            if all(cell.settings.get(key) == value for key, value in fixed.items())
        ]
        contest = cells[0].contest if cells else None
        field = {"marks": self._marked({self.across: fixed[self.across]}), "winner": ""}
        if contest is None:
            return field | {"why": "–", "note": "not run"}
        field["note"] = self._note(cells, contest)
        winner = next((cell for cell in cells if cell.label == contest.winner), None)
        if winner is None:
            return field | {"why": "one sample" if contest.by == "one sample" else "no winner"}
        who = self._contender(winner)
        return field | {"winner": who.label, "colour": parts.themed(who.colour)}

    def _note(self, cells: Sequence[SweepCell], contest: Contest) -> str:
        """`23 ms, pfifo 832`: the best of these cells and the next, in the deciding quantity."""
        quantity = self.grid.quantities[0]
        ranked = sorted(
            (cell for cell in cells if not math.isnan(cell.values(quantity.key)[0])),
            key=lambda cell: (cell.label != contest.winner, cell.values(quantity.key)[0]),
        )
        unit = f" {quantity.unit}" if quantity.unit else ""
        texts = [f"{number(cell.values(quantity.key)[0])}{unit}" for cell in ranked[:1]]
        texts += [
            f"{self._contender(cell).label} {number(cell.values(quantity.key)[0])}"
            for cell in ranked[1:2]
        ]
        return ", ".join(texts)

    def _contender(self, cell: SweepCell) -> _Contender:
        chosen = self._of(cell, self.grid.chosen)
        return next(one for one in self.contenders if one.chosen == chosen)

    # ------------------------------------------------------------------------------------- charts

    def intervals(self) -> str:
        """The legend of the intervals in the charts."""
        if not any(cell.at.summary.samples > 1 for cell in self.grid.cells):
            return "One sample a cell: no intervals."
        shown = "Whiskers" if self.drawn else "Bands and whiskers"
        return f"{shown}: the 95 % interval of the mean over seeds."

    def charts(self) -> list[dict[str, Any]]:
        """The charts of the most important quantities that differ."""
        return [self._charts_of(one) for one in self.grid.differing()[:MOST_CHARTED]]

    def legend(self) -> list[dict[str, Any]]:
        """Each contender and its line."""
        return [
            {
                "marks": self._marked(dict(zip(self.grid.chosen, one.chosen, strict=True))),
                "stroke": parts.stroke(one.colour, one.dash),
                "label": one.label,
            }
            for one in self.contenders
        ]

    def _charts_of(self, quantity: Quantity) -> dict[str, Any]:
        """The charts of a quantity with a linear axis. If that would crowd small values, also
        charts with a logarithmic axis, and a box to choose."""
        shown = self._as_share(quantity) or _Shown(quantity.name, quantity.unit, quantity.most)
        means = [self._value(cell, quantity, shown) for cell in self.grid.cells]
        known = [mean for mean, _ in means if math.isfinite(mean)]
        # The means set the axis of a share: intervals of few seeds would hide the differences.
        ends = [
            min(end, shown.most)
            for mean, half in means
            for end in ((mean,) if shown.rates else (mean + half, mean))
            if math.isfinite(end)
        ]
        better = {"less": ", less is better", "more": ", more is better"}.get(quantity.better, "")
        axis = ", the axis does not begin at 0" if shown.rates else ""
        label = f"{shown.unit}{better}{axis}".removeprefix(", ")
        up = multiples.span_of(ends, log=False, from_0=not shown.rates)
        steps = multiples.span_of(ends, log=True) if logarithmic(known) else None
        return {
            "name": shown.name,
            "label": label,
            "linear": self._multiples(quantity, shown, up),
            "log": [] if steps is None else self._multiples(quantity, shown, steps),
            "wide": steps is not None and _wide(known),
        }

    def _as_share(self, quantity: Quantity) -> _Shown | None:
        """Goodput over the rate of its own link would be one diagonal that hides all differences.
        So it is shown as a share of that rate."""
        read = scale(self.grid.distinct(self.across))
        links = {cell.at.link for cell in self.grid.cells}
        owner = self.across.removesuffix(".rate").split(".")
        if (
            quantity.key != "goodput"
            or self.drawn
            or read is None
            or read.unit != "Mbit/s"
            or not self.across.endswith(".rate")
            or not (owner == ["bottleneck"] or links == {owner[-1]})
        ):
            return None
        rates: dict[Setting | None, float] = dict(
            zip(self.grid.distinct(self.across), read.numbers, strict=True)
        )
        means = [
            cell.values(quantity.key)[0] / rates[cell.settings[self.across]]
            for cell in self.grid.cells
        ]
        most = math.inf if max(means) > 1 else 100.0
        return _Shown(f"{quantity.name}, share of the rate", "%", most, rates)

    def _value(self, cell: SweepCell, quantity: Quantity, shown: _Shown) -> tuple[float, float]:
        """The mean in a cell and half its interval, as the charts show them."""
        mean, half = cell.values(quantity.key)
        if not shown.rates:
            return mean, half
        rate = shown.rates[cell.settings[self.across]]
        return 100 * mean / rate, 100 * half / rate

    def _multiples(
        self, quantity: Quantity, shown: _Shown, up: multiples.Span
    ) -> list[dict[str, Any]]:
        figures = [
            self._chart(quantity, shown, key, rest, up)
            for rest in dict.fromkeys(self._of(cell, self.rest) for cell in self.grid.cells)
            for key in self.drawn or [self.across]
        ]
        return [figure for figure in figures if figure is not None]

    def _chart(
        self, quantity: Quantity, shown: _Shown, key: str, rest: Settings, up: multiples.Span
    ) -> dict[str, Any] | None:
        """A chart over one key, at these values of the others; None if no number is known there."""
        places, across = self._places(key)
        curves = [self._curve(one, key, rest, quantity, shown, places) for one in self.contenders]
        curves = [curve for curve in curves if curve.points]
        if not curves:
            return None
        caption = self._text(self.rest, rest)
        named = ", ".join(filter(None, (shown.name, caption)))
        chart = multiples.chart(named, curves, across, up, self._unit(key))
        return self._figure(rest, caption, chart)

    def _curve(
        self,
        one: _Contender,
        key: str,
        rest: Settings,
        quantity: Quantity,
        shown: _Shown,
        places: dict[Setting, float],
    ) -> multiples.Curve:
        spots = [
            _spot(places[cell.settings[key]], *self._value(cell, quantity, shown), shown.most)
            for cell in self.grid.cells
            if self._of(cell, self.rest) == rest and self._of(cell, self.grid.chosen) == one.chosen
        ]
        known = sorted(
            (spot for spot in spots if math.isfinite(spot.mean)), key=lambda spot: spot.x
        )
        return multiples.Curve(
            one.label,
            one.colour,
            one.dash,
            tuple(known),
            joined=not self.drawn,
            marks=self._marked(dict(zip(self.grid.chosen, one.chosen, strict=True))),
        )

    def _places(self, key: str) -> tuple[dict[Setting, float], multiples.Span]:
        """The place of each swept value on the horizontal axis, and the axis. A value that is not a
        number is placed by its position in the list."""
        values = self.grid.distinct(key)
        read = scale(values)
        if read is None:
            places = {value: float(i) for i, value in enumerate(values)}
            ticks = [(place, self.grid.written(value)) for value, place in places.items()]
            return places, multiples.Span(-0.3, len(values) - 0.7, False, tuple(ticks))
        places = dict(zip(values, read.numbers, strict=True))
        log = logarithmic(read.numbers)
        if key in self.drawn:
            return places, multiples.span_of(read.numbers, log)
        least, most = min(read.numbers), max(read.numbers)
        room = 1.06 if log else 0.04 * (most - least)
        low, high = (least / room, most * room) if log else (least - room, most + room)
        ticks = [(place, f"{place:g}") for place in sorted(places.values())]
        return places, multiples.Span(low, high, log, tuple(ticks))

    def _unit(self, key: str) -> str:
        read = scale(self.grid.distinct(key))
        unit = f", {read.unit}" if read is not None and read.unit else ""
        log = ", logarithmic" if read is not None and logarithmic(read.numbers) else ""
        return f"{self.heading[key]}{unit}{log}"

    # -------------------------------------------------------------------------------- differences

    def pairs(self) -> dict[str, Any]:
        """The differences of each contender from its cell's baseline, in the deciding quantity and
        in goodput; empty without comparisons."""
        assert self.grid.judgement is not None, "Runs are judged"
        keys = [self.grid.quantities[0].key, "goodput"]
        found = [
            (contest, each)
            for key in dict.fromkeys(keys)
            for contest in self.grid.judgement.contests
            for each in contest.differences
            if each.key == key and math.isfinite(each.difference.value)
        ]
        if not found:
            return {}
        how = {contest.by for contest, _ in found}
        paired = (
            "Seeds are shared, so each difference is one of pairs (Student's t)."
            if how == {"paired"}
            else "One sample: no interval."
            if how == {"one sample"}
            else "Intervals are Welch's where seeds differ, otherwise of pairs."
        )
        tables = [
            self._pairs_of(list(each)) for _, each in groupby(found, key=lambda one: one[1].key)
        ]
        return {"how": paired, "tables": tables}

    def _pairs_of(self, found: Sequence[tuple[Contest, Difference]]) -> dict[str, Any]:
        cells = {cell.label: cell for cell in self.grid.cells}
        name, unit = found[0][1].name, found[0][1].unit
        who = ", ".join(self.heading[key] for key in self.grid.chosen)
        return {
            "name": name,
            "set": [*(self.heading[key] for key in self.conditions), who, "against"],
            "difference": f"difference, {unit}".removesuffix(", "),
            "rows": [self._pair(cells[each.run], cells[each.against], each) for _, each in found],
        }

    def _pair(self, run: SweepCell, against: SweepCell, each: Difference) -> dict[str, Any]:
        apart = each.difference
        reference = abs(each.reference)
        low, value, high = (
            100 * end / reference if reference else math.nan
            for end in (apart.low, apart.value, apart.high)
        )
        places = decimals(apart.value)
        change = _signed(apart.value, places)
        if math.isfinite(apart.low + apart.high):
            change += f" ({_signed(apart.low, places)} to {_signed(apart.high, places)})"
        who = self._contender(run)
        return {
            "marks": self._marked(run.settings),
            "set": [self.grid.written(run.settings.get(key)) for key in self.conditions],
            "who": who.label,
            "against": self._contender(against).label,
            "change": change,
            "bar": multiples.interval(low, value, high, who.colour) if reference else "",
            "verdict": each.verdict,
        }

    # ------------------------------------------------------------------------------------ numbers

    def numbers(self) -> dict[str, Any]:
        """A row for each cell."""
        shown = self.grid.differing()
        return {
            "starred": any(cell.best(one.key) for cell in self.grid.cells for one in shown),
            "set": [self.heading[key] for key in self.grid.keys],
            "columns": [(one.name, one.unit) for one in shown],
            "rows": [
                {
                    "marks": self._marked(cell.settings),
                    "set": [self.grid.written(cell.settings.get(key)) for key in self.grid.keys],
                    "cells": [
                        (with_interval(*cell.values(one.key), one.most), cell.best(one.key))
                        for one in shown
                    ],
                }
                for cell in self.grid.cells
            ],
        }

    # -------------------------------------------------------------------------------------- facts

    def _values(self, key: str) -> str:
        """The values of a swept key: all of them, or the ends of many drawn ones."""
        values = self.grid.distinct(key)
        read = scale(values)
        if key not in self.drawn or read is None:
            return ", ".join(map(written, values))
        ranked = [value for _, value in sorted(zip(read.numbers, values, strict=True))]
        return f"{len(values)} drawn, {written(ranked[0])} to {written(ranked[-1])}"

    def facts(self) -> list[tuple[str, str]]:
        """The facts about the sweep: names and values."""
        meta = self.runs[0].meta
        builds = sorted({run.meta.engine_build or "not recorded" for run in self.runs})
        return [
            ("Engine", f"{meta.engine} {meta.version}"),
            ("Build of the engine", ", ".join(builds)),
            ("Seeds", ", ".join(map(str, meta.seeds))),
            (
                "Duration",
                f"{meta.duration_ns / 1e9:g} s, of which {meta.warmup_ns / 1e9:g} s warm-up",
            ),
            *((key, self._values(key)) for key in self.grid.keys),
        ]


def _named(key: str, heading: str) -> str:
    """The heading of a key; for a flow or a link with its name: `upload rtt`."""
    table, *words = key.split(".")
    return " ".join(words) if table in ("flow", "link") and len(words) == 2 else heading


def _spot(x: float, mean: float, half: float, most: float) -> multiples.Spot:
    """A mean with the ends of its interval; a share's interval is cut at 0 and `most`."""
    below, above = sides(mean, half, most) if math.isfinite(mean + half) else (half, half)
    return multiples.Spot(x, mean, mean - below, mean + above)


def _signed(value: float, places: int) -> str:
    """A number with its sign and this many decimals."""
    shown = number(abs(value), places)
    return shown if float(shown) == 0 else f"{'−' if value < 0 else '+'}{shown}"


def _wide(known: Sequence[float]) -> bool:
    import numpy as np

    return spans_decades([np.asarray(known)])
