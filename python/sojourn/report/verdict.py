"""The page's first sentences: what the numbers mean, in words, with what it cost and how sure it is.

Delay first, because bufferbloat is delay; then what was paid for it in goodput. What a few seeds can't tell apart is
said to be alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sojourn.figures import series
from sojourn.figures.quantities import QUANTITY, Measured
from sojourn.live.findings import judgement


def sentences(measured: Sequence[Measured], labels: Sequence[str]) -> list[str]:
    """The verdict on these Runs, as plain text."""
    key = _delay(measured)
    if key is None:
        return ["No packet was measured after the warm-up, so there is nothing to say about delay."]
    if len(measured) == 1:
        return _alone(measured[0], key)
    scenarios = len({one.run.meta.title for one in measured})
    if scenarios > 1:
        return [f"These Runs are of {scenarios} scenarios: side by side, but not in competition."]
    return _among(measured, labels, key)


def _delay(measured: Sequence[Measured]) -> str | None:
    for key in ("ping_p95", "sojourn_p95"):
        if any(not math.isnan(one.over_seeds(key)[0]) for one in measured):
            return key
    return None


def _alone(one: Measured, key: str) -> list[str]:
    number = series.number
    high, _ = one.over_seeds(key)
    base = _base(one)
    if key == "ping_p95" and base is not None:
        added = max(high - base, 0.0)
        said = [
            f"Under this load one ping in twenty takes {number(high)} ms or longer; through empty queues it takes "
            f"{number(base)} ms. The queues add {number(added)} ms: {judgement(added)}."
        ]
    else:
        said = [
            f"One packet in twenty waits {number(high)} ms or longer at the bottleneck: {judgement(high)}."
        ]
    used, _ = one.over_seeds("utilisation")
    goodput, _ = one.over_seeds("goodput")
    if not math.isnan(used):
        said.append(
            f"The bottleneck is {number(used)} % used and the flows get {number(goodput)} Mbit/s of goodput together."
        )
    return said


def _base(one: Measured) -> float | None:
    bases = [
        probe["base_rtt_ms"]
        for seed in one.summary.runs
        for probe in seed["probes"]
        if probe["base_rtt_ms"] > 0
    ]
    return max(bases) if bases else None


def _among(measured: Sequence[Measured], labels: Sequence[str], key: str) -> list[str]:
    number = series.number
    what = "ping RTT" if key == "ping_p95" else "sojourn time at the bottleneck"
    sample = "ping in twenty takes" if key == "ping_p95" else "packet in twenty waits"
    values = {
        i: one.over_seeds(key) for i, one in enumerate(measured) if not math.isnan(one.over_seeds(key)[0])
    }
    order = sorted(values, key=lambda i: values[i][0])
    best, worst = order[0], order[-1]
    low, high = values[best][0], values[worst][0]
    if high <= 1.1 * low:
        said = [
            f"The Runs hardly differ in delay: the 95th percentile of the {what} lies between {number(low)} and {number(high)} ms."
        ]
    else:
        times = f", {number(high / low)} times as much" if low > 0 else ""
        said = [
            f"{labels[best]} keeps delay lowest: one {sample} {number(low)} ms or longer. "
            f"Under {labels[worst]} it is {number(high)} ms{times}."
        ]
        alike = [labels[i] for i in order[1:] if _overlap(values[best], values[i])]
        if alike:
            said.append(
                f"With these seeds {' and '.join(alike)} can't be told apart from it: the 95 % intervals overlap."
            )
    said += _cost(measured, labels, best)
    if all(len(one.summary.runs) < 2 for one in measured):
        said.append("Each Run has one seed, so nothing here carries a confidence interval.")
    return said


def _overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return not math.isnan(one[1] + other[1]) and abs(one[0] - other[0]) <= one[1] + other[1]


def _cost(measured: Sequence[Measured], labels: Sequence[str], best: int) -> list[str]:
    goodput = [one.over_seeds("goodput")[0] for one in measured]
    seen = [i for i, value in enumerate(goodput) if not math.isnan(value)]
    if not seen or best not in seen:
        return []
    number, unit = series.number, QUANTITY["goodput"].unit
    top = max(seen, key=lambda i: goodput[i])
    if goodput[top] <= 0:
        return []
    lost = 1 - goodput[best] / goodput[top]
    if lost < 0.005:
        return [f"It costs no goodput: {number(goodput[best])} {unit}, as much as any."]
    return [
        f"Its goodput is {number(goodput[best])} {unit}, {number(100 * lost)} % less than the most, "
        f"{number(goodput[top])} {unit} under {labels[top]}."
    ]
