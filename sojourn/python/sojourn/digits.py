"""Numbers as text: three digits, and an uncertainty with as many decimals as its number.

`number` is for columns of a terminal, `three` for sentences, `on_page` for pages and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable

MOST_DECIMALS = 4


def counted(counts: Iterable[int], word: str) -> str:
    """`1 seed`, `5 seeds`, `3 or 5 seeds`: the different counts, with the word."""
    found = sorted(set(counts))
    return f"{' or '.join(map(str, found))} {word}{'' if found == [1] else 's'}"


def number(value: float, places: int | None = None) -> str:
    """About three digits: 812, 14.2, 0.97; "-" for an unknown value, 0 for one that four decimals
    do not show."""
    if math.isnan(value):
        return "-"
    shown = f"{value:.{decimals(value) if places is None else places}f}"
    return "0" if float(shown) == 0 and (places is None or places >= MOST_DECIMALS) else shown


def decimals(value: float) -> int:
    """The number of decimals that show about three digits; at most four."""
    size = abs(value)
    if value == 0:
        return 0
    steps = enumerate((99.95, 9.995, 0.0995, 0.00995))
    return next((places for places, least in steps if size >= least), MOST_DECIMALS)


def three(value: float, most: int = 3) -> str:
    """Three digits without an exponent, with at most `most` decimals: "0.970", "14.2", "1240"; "-"
    for an unknown value, "0" for one that the decimals do not show."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.{_places(value, most)}f}" if abs(value) >= 0.5 * 10**-most else "0"


def on_page(value: float) -> str:
    """Three digits, with a space between thousands: "0.970", "1 234"; "–" for an unknown value. The
    page's script (report/page.js) has the same rule."""
    if not math.isfinite(value):
        return "–"
    if abs(value) < 0.5e-6:
        return "0"
    return f"{value:,.{_places(value, 6)}f}".replace(",", "\u202f")


def _places(value: float, most: int) -> int:
    return max(0, min(most, 2 - math.floor(math.log10(abs(value)))))


def with_interval(mean: float, half: float, most: float = math.inf) -> str:
    """`14.2 ±0.3`; `14.2` without an interval.

    `most`: the largest value of a share. An interval that exceeds 0 or `most` is cut there, and its
    other end is shown: `0.15 ≤0.40`, `99.8 ≥99.2`.
    """
    if math.isnan(mean) or math.isnan(half):
        return number(mean)
    # A mean of 0 has no digits of its own.
    places = decimals(mean) if round(mean, MOST_DECIMALS) else decimals(half)
    below, above = sides(mean, half, most)
    short = [number(side, places) != number(half, places) for side in (below, above)]
    match short:
        case [False, False]:
            spread = f"±{number(half, places)}"
        case [True, False]:
            spread = f"≤{number(mean + above, places)}"
        case [False, True]:
            spread = f"≥{number(mean - below, places)}"
        case _:
            spread = f"0..{most:g}"
    return f"{number(mean, places)} {spread}"


def sides(mean: float, half: float, most: float = math.inf) -> tuple[float, float]:
    """The lengths of an interval below and above its mean; a share's is cut at 0 and `most`."""
    if math.isinf(most):
        return half, half
    return min(half, max(mean, 0.0)), min(half, max(most - mean, 0.0))


def rate(bps: int | None) -> str:
    """`20 Mbit/s`."""
    if bps is None:
        return "no limit"
    for unit, scale in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if bps >= scale:
            return f"{bps / scale:g} {unit}"
    return f"{bps} bit/s"
