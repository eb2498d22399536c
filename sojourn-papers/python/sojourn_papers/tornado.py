"""The matrix of readings and numbers on a page, and a tornado plot for each number.

The matrix has a row for each reading and a column for each number, with our value in each cell. A
tornado plot has a bar for each reading that changes the number, the longest first. A bar extends
from the value of the chosen reading to that of the other reading. The published value is the dotted
line, its tolerance the grey band.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from sojourn import hypertext
from sojourn.digits import on_page as shown
from sojourn.figures.style import shorten
from sojourn_papers.paper import Number
from sojourn_papers.readings import CHOSEN, ON_OTHER_SEEDS, Matrix, Under

LEFT, WIDTH, ROW, MARGIN = 300, 700, 18, 56
"""Pixels: width of the readings' names, total width, height of a bar, width of a number at either
side."""


LETTERS = 46
"""The longest name that fits to the left of the bars."""


def anchor(kind: str, id_: str) -> str:
    """The HTML id of a claim, a number or a figure, for links."""
    return f"{kind}-{'-'.join(id_.split())}"


def table(found: Matrix) -> Markup | None:
    """The matrix as a table; None without other readings."""
    if not found.others and not found.claims:
        return None
    under = {
        **dict(found.readings()),
        **{name: {} for name in found.claims if name not in found.others},
    }
    numbers = [{**_named(one), "published": _stated(one)} for one in found.numbers]
    rows = [_reading(name, each, found) for name, each in under.items()]
    made = (least_contradicted(found), numbers, rows)
    return hypertext.part("sojourn_papers/tornado.html", "table", *made)


def least_contradicted(found: Matrix) -> str:
    """A sentence on the readings that fit more of the numbers that they change than the chosen one
    does, and why they are not chosen."""
    again = ""
    if ON_OTHER_SEEDS in found.others:
        counts = _counts(found.fitting(ON_OTHER_SEEDS))
        again = f" The stored search has seeds of its own, on which the chosen one fits {counts}."
    better = found.better()
    if not better:
        return (
            f"No other reading fits more of the numbers that it changes than the chosen one.{again}"
        )
    more = [
        f"{name} ({_counts(each)}): {found.refused.get(name, NOT_REFUSED)}"
        for name, each in better.items()
    ]
    return (
        "Readings that fit more of the numbers that they change than the chosen one, and why they "
        f"were not chosen: {' '.join(more)}{again}"
    )


NOT_REFUSED = "no reason is given."


def _counts(fitting: tuple[int, int, int]) -> str:
    fits, as_chosen, of = fitting
    return f"{fits} of {of}, as chosen {as_chosen}"


def _named(number: Number) -> dict[str, str]:
    """The number's name with its unit, and the id of its row, where it is judged."""
    unit = f" [{number.unit}]" if number.unit else ""
    return {"id": anchor("number", number.id), "name": number.what + unit}


def _stated(number: Number) -> str:
    bound = "" if number.relation == "=" else f"{number.relation} "
    return f"{bound}{number.published:.10g}"


def _reading(name: str, under: Mapping[str, Under], found: Matrix) -> dict[str, Any]:
    fits = sum(one.fits for one in under.values())
    return {
        "name": name,
        "cells": [_cell(under.get(one.id)) for one in found.numbers],
        "fits": f"{fits} of {len(under)}",
        "as_chosen": f"{found.fitting(name)[1]} of {len(under)}" if name in found.others else "",
        "claims": _claims(name, found),
    }


def _claims(name: str, found: Matrix) -> str:
    """The claims whose verdict differs under a reading."""
    return ", ".join(f"{claim}: {word}" for claim, word in found.claims.get(name, {}).items())


def _cell(under: Under | None) -> dict[str, str] | None:
    if under is None:
        return None
    kind, sign = ("reproduced", "✓") if under.fits else ("not", "✗")
    return {"kind": kind, "sign": sign, "ours": shown(under.ours)}


def plots(found: Matrix) -> Markup | None:
    """A tornado plot for each number that other readings change."""
    drawn = [_plot(number, found) for number in found.numbers]
    return hypertext.part("sojourn_papers/tornado.html", "plots", drawn) if drawn else None


def _plot(number: Number, found: Matrix) -> dict[str, Any]:
    ours = found.chosen[number.id].ours
    others = {name: under[number.id] for name, under in found.others.items() if number.id in under}
    longest = sorted(others, key=lambda name: -abs(others[name].ours - ours))
    at = _scale(number, [ours, *(one.ours for one in others.values())])
    height = ROW * len(longest) + 26
    return {
        "number": _named(number),
        "said": f"{number.what} under other readings",
        "left": LEFT,
        "width": WIDTH,
        "height": height,
        "foot": height - 18,
        "band": _band(number, at),
        "bars": [_bar(i, name, others[name], at, ours) for i, name in enumerate(longest)],
        "chosen": f"{at(ours):.1f}",
        "stated": f"{at(number.published or 0.0):.1f}",
        "words": f"{CHOSEN} {shown(ours)}, published {_stated(number)}",
    }


class _Scale:
    """Converts a value to its place in pixels."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._per = low, (WIDTH - LEFT - 2 * MARGIN) / ((high - low) or 1.0)

    def __call__(self, value: float) -> float:
        place = LEFT + MARGIN + (value - self._low) * self._per
        return min(max(place, LEFT), float(WIDTH))


def _scale(number: Number, values: list[float]) -> _Scale:
    known = [*values, number.published or 0.0]
    return _Scale(min(known), max(known))


def _band(number: Number, at: _Scale) -> tuple[str, str] | None:
    """The band of the tolerance: its left end and its width, pixels."""
    if number.tolerance is None or number.published is None or number.relation != "=":
        return None
    stated, room = number.published, number.tolerance.room(number.published)
    left, right = at(stated - room), at(stated + room)
    return f"{left:.1f}", f"{max(right - left, 1):.1f}"


def _bar(i: int, name: str, under: Under, at: _Scale, ours: float) -> dict[str, Any]:
    left, right = sorted((at(ours), at(under.ours)))
    below = under.ours < ours
    end, side = (left - 4, "end") if below else (right + 4, "start")
    return {
        "y": ROW * i,
        "name": name,
        "short": shorten(name, LETTERS),
        "kind": "reproduced" if under.fits else "not",
        "x": f"{left:.1f}",
        "width": f"{max(right - left, 1):.1f}",
        "height": ROW - 6,
        "end": f"{end:.1f}",
        "side": side,
        "ours": shown(under.ours),
    }
