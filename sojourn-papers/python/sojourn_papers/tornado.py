"""Readings beside numbers on a page: the matrix, and a tornado plot for each number.

The matrix has a row for each reading and a column for each number, ours in each cell. A tornado plot
has a bar for each reading that changes a number, from what the chosen reading gives to what that one
gives, the longest first; the published value is the dotted line, its tolerance the grey band.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from sojourn.digits import on_page as shown
from sojourn.figures.style import shorten
from sojourn_papers.paper import Number
from sojourn_papers.readings import CHOSEN, ON_OTHER_SEEDS, Matrix, Under

LEFT, WIDTH, ROW, MARGIN = 300, 700, 18, 56
"""Pixels: for the readings' names, in all, for each bar, for a number at either side."""


LETTERS = 46
"""Of a name that fit to the left of the bars."""


def anchor(kind: str, id_: str) -> str:
    """The id by which a claim, a number or a figure is linked."""
    return f"{kind}-{'-'.join(id_.split())}"


def table(found: Matrix) -> str:
    """The matrix as a table; empty without other readings."""
    if not found.others and not found.claims:
        return ""
    head = "".join(f'<th scope="col">{_named(one)}</th>' for one in found.numbers)
    stated = "".join(f"<td>{_stated(one)}</td>" for one in found.numbers)
    shown_ = {
        **dict(found.readings()),
        **{name: {} for name in found.claims if name not in found.others},
    }
    body = "".join(_reading(name, under, found) for name, under in shown_.items())
    return (
        f"<p>{escape(least_contradicted(found))}</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Readings and numbers">'
        '<table class="grid matrix"><caption>Ours under each reading: ✓ within the tolerance of '
        "the published number. A reading has a number where it changes it and was run."
        f'</caption><thead><tr><td></td>{head}<th scope="col">fits</th>'
        '<th scope="col">of these as chosen</th><th scope="col">claims with another verdict</th></tr>'
        f'</thead><tbody><tr><th scope="row">published</th>{stated}<td></td><td></td><td></td></tr>{body}'
        "</tbody></table></div>"
    )


def least_contradicted(found: Matrix) -> str:
    """Which readings fit more of the numbers that they change than the chosen one does, and why they
    are not chosen."""
    again = ""
    if ON_OTHER_SEEDS in found.others:
        told = _told(found.fitting(ON_OTHER_SEEDS))
        again = f" The stored search has seeds of its own, on which the chosen one fits {told}."
    better = found.better()
    if not better:
        return (
            f"No other reading fits more of the numbers that it changes than the chosen one.{again}"
        )
    more = [
        f"{name} ({_told(each)}): {found.refused.get(name, NOT_REFUSED)}"
        for name, each in better.items()
    ]
    return (
        "More of the numbers that it changes than the chosen one fits, and is not chosen: "
        f"{' '.join(more)}{again}"
    )


NOT_REFUSED = "why is not said."


def _told(fitting: tuple[int, int, int]) -> str:
    fits, as_chosen, of = fitting
    return f"{fits} of {of}, as chosen {as_chosen}"


def _named(number: Number) -> str:
    """What it is and its unit, as a link to where it is judged."""
    unit = f" [{number.unit}]" if number.unit else ""
    return f'<a href="#{escape(anchor("number", number.id))}">{escape(number.what + unit)}</a>'


def _stated(number: Number) -> str:
    bound = "" if number.relation == "=" else f"{number.relation} "
    return f"{escape(bound)}{number.published:.10g}"


def _reading(name: str, under: Mapping[str, Under], found: Matrix) -> str:
    cells = "".join(_cell(under.get(one.id)) for one in found.numbers)
    fits = sum(one.fits for one in under.values())
    as_chosen = f"{found.fitting(name)[1]} of {len(under)}" if name in found.others else ""
    return (
        f'<tr><th scope="row">{escape(name)}</th>{cells}'
        f'<td class="count">{fits} of {len(under)}</td><td class="count">{as_chosen}</td>'
        f"<td>{escape(_claims(name, found))}</td></tr>"
    )


def _claims(name: str, found: Matrix) -> str:
    """Claims whose verdict is another one under a reading."""
    return ", ".join(f"{claim}: {word}" for claim, word in found.claims.get(name, {}).items())


def _cell(under: Under | None) -> str:
    if under is None:
        return "<td></td>"
    kind, sign = ("reproduced", "✓") if under.fits else ("not", "✗")
    return f'<td class="{kind}">{sign} {escape(shown(under.ours))}</td>'


def plots(found: Matrix) -> str:
    """A tornado plot for each number that other readings change."""
    drawn = [_plot(number, found) for number in found.numbers]
    return (
        f"<details><summary>A tornado plot for each number ({len(drawn)})</summary>"
        f'<div class="tornados">{"".join(drawn)}</div></details>'
        if drawn
        else ""
    )


def _plot(number: Number, found: Matrix) -> str:
    ours = found.chosen[number.id].ours
    others = {name: under[number.id] for name, under in found.others.items() if number.id in under}
    longest = sorted(others, key=lambda name: -abs(others[name].ours - ours))
    at = _scale(number, [ours, *(one.ours for one in others.values())])
    height = ROW * len(longest) + 26
    rows = "".join(_bar(i, name, others[name], at, ours) for i, name in enumerate(longest))
    said = f"{number.what} under other readings"
    return (
        f'<figure class="tornado"><figcaption>{_named(number)}</figcaption>'
        f'<svg role="img" aria-label="{escape(said)}" viewBox="0 0 {WIDTH} {height}">'
        f"{_band(number, at, height)}{rows}{_line(at(ours), height, 'chosen')}"
        f"{_line(at(number.published or 0.0), height, 'stated')}"
        f'<text x="{LEFT}" y="{height - 4}">{CHOSEN} '
        f"{escape(shown(ours))}, published {_stated(number)}</text></svg></figure>"
    )


class _Scale:
    """From a value to its place, pixels."""

    def __init__(self, low: float, high: float) -> None:
        self._low, self._per = low, (WIDTH - LEFT - 2 * MARGIN) / ((high - low) or 1.0)

    def __call__(self, value: float) -> float:
        place = LEFT + MARGIN + (value - self._low) * self._per
        return min(max(place, LEFT), float(WIDTH))


def _scale(number: Number, values: list[float]) -> _Scale:
    known = [*values, number.published or 0.0]
    return _Scale(min(known), max(known))


def _band(number: Number, at: _Scale, height: int) -> str:
    """What the tolerance allows."""
    if number.tolerance is None or number.published is None or number.relation != "=":
        return ""
    stated, room = number.published, number.tolerance.room(number.published)
    left, right = at(stated - room), at(stated + room)
    return f'<rect class="band" x="{left:.1f}" y="0" width="{max(right - left, 1):.1f}" height="{height - 18}"/>'


def _bar(i: int, name: str, under: Under, at: _Scale, ours: float) -> str:
    left, right = sorted((at(ours), at(under.ours)))
    y = ROW * i
    kind = "reproduced" if under.fits else "not"
    below = under.ours < ours
    end, side = (left - 4, "end") if below else (right + 4, "start")
    return (
        f'<text x="{LEFT - 4}" y="{y + 13}" text-anchor="end">{escape(shorten(name, LETTERS))}'
        f"<title>{escape(name)}</title></text>"
        f'<rect class="{kind}" x="{left:.1f}" y="{y + 3}" width="{max(right - left, 1):.1f}" '
        f'height="{ROW - 6}"/>'
        f'<text x="{end:.1f}" y="{y + 13}" text-anchor="{side}">{escape(shown(under.ours))}</text>'
    )


def _line(x: float, height: int, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 18}"/>'
