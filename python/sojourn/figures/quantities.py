"""The handful of numbers by which Runs are compared, each with its unit and which way is better.

One list for the bars, the table of the report and its verdict, so that they can't disagree. The numbers are those of
`sojourn.metrics`, at the bottleneck and over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from sojourn.figures import series
from sojourn.metrics import Numbers, Summary, mean_ci95, summary
from sojourn.records import Run


@dataclass(frozen=True)
class Quantity:
    """One number of a seed: what it is called, its unit, and how to read it."""

    key: str
    name: str
    unit: str
    better: Literal["less", "more"]
    read: Callable[[Numbers, Numbers | None], float]
    """From a seed's numbers, and those of the bottleneck's queue among them."""


def _ping(name: str) -> Callable[[Numbers, Numbers | None], float]:
    """The worst probe's: a mean over probes of different paths would mean nothing."""

    def read(seed: Numbers, _: Numbers | None) -> float:
        known = [probe["rtt_ms"][name] for probe in seed["probes"] if not math.isnan(probe["rtt_ms"][name])]
        return float(max(known)) if known else math.nan

    return read


def _queue(*path: str, scale: float = 1.0) -> Callable[[Numbers, Numbers | None], float]:
    def read(_: Numbers, queue: Numbers | None) -> float:
        value: Numbers | float | None = queue
        for key in path:
            value = value[key] if isinstance(value, dict) else None
        return scale * value if isinstance(value, (int, float)) else math.nan

    return read


def _ping_loss(seed: Numbers, _: Numbers | None) -> float:
    known = [probe["loss_rate"] for probe in seed["probes"] if not math.isnan(probe["loss_rate"])]
    return 100 * max(known) if known else math.nan


def _jain(seed: Numbers, queue: Numbers | None) -> float:
    """Among the flows that share the bottleneck; nothing to be fair about with one."""
    endless = [flow for flow in seed["flows"] if flow["kind"] == "bulk" and flow["congestion"] is not None]
    return float(queue["jain"]) if queue is not None and len(endless) > 1 else math.nan


QUANTITIES = (
    Quantity("ping_p95", "ping RTT, p95", "ms", "less", _ping("p95")),
    Quantity("ping_p50", "ping RTT, median", "ms", "less", _ping("p50")),
    Quantity("ping_loss", "pings lost", "%", "less", _ping_loss),
    Quantity("sojourn_p50", "sojourn, median", "ms", "less", _queue("sojourn_ms", "p50")),
    Quantity("sojourn_p95", "sojourn, p95", "ms", "less", _queue("sojourn_ms", "p95")),
    Quantity("sojourn_mean", "sojourn, mean", "ms", "less", _queue("sojourn_ms", "mean")),
    Quantity("goodput", "goodput, all flows", "Mbit/s", "more", lambda seed, _: float(seed["goodput_mbps"])),
    Quantity("utilisation", "utilisation", "%", "more", _queue("utilisation", scale=100)),
    Quantity("drop_rate", "packets dropped", "%", "less", _queue("drop_rate", scale=100)),
    Quantity("jain", "fairness (Jain)", "", "more", _jain),
)

QUANTITY = {quantity.key: quantity for quantity in QUANTITIES}


@dataclass(frozen=True)
class Measured:
    """A Run with its numbers."""

    run: Run
    link: str | None
    summary: Summary

    def per_seed(self, key: str) -> list[float]:
        """The quantity of each seed, NaN where it can't be said."""
        read = QUANTITY[key].read
        return [read(seed, self._queue(seed)) for seed in self.summary.runs]

    def over_seeds(self, key: str) -> tuple[float, float]:
        """Mean and half the width of the 95 % interval (NaN with one seed)."""
        found = mean_ci95(self.per_seed(key))
        return found["mean"], found["ci95"]

    def _queue(self, seed: Numbers) -> Numbers | None:
        return next((queue for queue in seed["queues"] if queue["link"] == self.link), None)


def measure(runs: Sequence[Run]) -> list[Measured]:
    """The numbers of each Run, at its bottleneck."""
    links = series.bottlenecks(runs)
    return [Measured(run, link, summary(run)) for run, link in zip(runs, links, strict=True)]


def known(measured: Sequence[Measured], keys: Sequence[str]) -> list[Quantity]:
    """Those quantities that at least one Run has."""
    return [QUANTITY[key] for key in keys if any(not math.isnan(one.over_seeds(key)[0]) for one in measured)]


def best(measured: Sequence[Measured], key: str) -> set[int]:
    """Which Runs are best by this quantity, to three digits; none when there is nothing to choose between."""
    rounded = [float(f"{one.over_seeds(key)[0]:.3g}") for one in measured]
    seen = [value for value in rounded if not math.isnan(value)]
    if len(seen) < 2 or min(seen) == max(seen):
        return set()
    top = min(seen) if QUANTITY[key].better == "less" else max(seen)
    return {i for i, value in enumerate(rounded) if value == top}
