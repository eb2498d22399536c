"""An advice in three sentences, for a reader who decides but does not configure: what happens now,
what to do, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sojourn.advice.choice import Advice
from sojourn.advice.line import AS_IT_IS, AccessLine, mbps, shaped

_NOW = {
    "ping_p95": "one ping in twenty takes {} or more",
    "sojourn_p95": "one packet in twenty waits {} or more in the queue",
}
"""A sentence about the 95th percentile of a quantity. The first quantity that is known is taken."""
FELT = "web pages, calls and games wait as long"


def sentences(found: Advice, shaper: AccessLine | None) -> list[str]:
    """Three sentences about an advice. `shaper`: the line in front of which a shaper is set up; None:
    the discipline is set at the bottleneck itself."""
    key = next((key for key in _NOW if not math.isnan(_value(found, key, found.chosen))), None)
    now, after = (
        _time(_value(found, key, run)) if key else "" for run in (found.contest.baseline, found.chosen)
    )  # fmt: skip
    says = f"While the line is full, {_NOW[key].format(now)}" if key else "The line is full"
    idle = _value(found, "ping_idle", found.contest.baseline)
    if key == "ping_p95" and not math.isnan(idle):
        says += f", where an idle line takes {_time(idle)}"
    if found.chosen == found.contest.baseline:
        return [
            f"{says}.",
            f"Keep {_kept(found.chosen)}: no other queue discipline {'is shown to be' if found.undecided else 'is'} better for {found.goal.wanted}.",
            f"This is from {found.contest.seeds} simulated runs{_undecided(found)}.",
        ]
    return [
        f"{says}: {FELT}." if key == "ping_p95" else f"{says}.",
        f"{_what(found.chosen, shaper)}{f' changes that to {after}' if key else ''}.",
        f"{_price(found)}{_undecided(found)}.",
    ]


def _kept(words: str) -> str:
    return f"the line {words}" if words == AS_IT_IS else words


def _what(words: str, shaper: AccessLine | None) -> str:
    if shaper is None:
        return f"The queue discipline {words} at the bottleneck"
    rates = [f"{mbps(shaped(shaper.up_bps))} up"]
    if shaper.down_bps is not None:
        rates.append(f"{mbps(shaped(shaper.down_bps))} down")
    return f"The queue discipline {words} on your router, limited to {' and '.join(rates)},"


def _price(found: Advice) -> str:
    worse = [
        f"{each.name} goes from {each.reference:.3g} to {each.value:.3g} {each.unit}".rstrip()
        for each in found.gains
        if each.verdict == "worse"
    ]
    runs = f"In {found.contest.seeds} simulated runs"
    return f"{runs} its price is: {_listed(worse)}" if worse else f"{runs} it makes nothing worse"


def _undecided(found: Advice) -> str:
    if not found.undecided:
        return ""
    return f"; they do not decide whether {_listed(found.undecided, 'or')} would be as good"


def _value(found: Advice, key: str, run: str) -> float:
    row = found.contest.row(key)
    return math.nan if row is None else row.means[found.contest.runs.index(run)]


def _time(ms: float) -> str:
    return f"{ms / 1000:.2g} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.2g} ms"


def _listed(names: Sequence[str], last: str = "and") -> str:
    *most, end = names
    return f"{', '.join(most)} {last} {end}" if most else end
