"""Several Runs side by side: one row each, the best value of each column, and a sentence that says who wins.

Pure: Runs' summaries in, text out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.cli import text

if TYPE_CHECKING:
    from sojourn.metrics import Numbers, Summary


@dataclass(frozen=True)
class Contender:
    """One row: a name and the numbers of its Run over the seeds."""

    name: str
    summary: Summary

    def queue(self, link: str) -> Numbers:
        """The numbers of this link's queue."""
        found: Numbers = next(queue for queue in self.summary.summary["queues"] if queue["link"] == link)
        return found

    def ping(self) -> Numbers | None:
        """The numbers of the probe that waits longest: the one that crosses the queue under study."""
        probes: list[Numbers] = self.summary.summary["probes"]
        return max(probes, key=lambda probe: _or_zero(probe["rtt_ms"]["p95"]["mean"]), default=None)


@dataclass(frozen=True)
class _Column:
    """How a number is read and shown, and which way is better (None: neither)."""

    title: str
    read: Callable[[Contender, str], Numbers | None]
    less: bool | None
    scale: float = 1.0
    count: bool = False


def _queue(title: str, *path: str, less: bool | None, scale: float = 1.0, count: bool = False) -> _Column:
    def read(contender: Contender, link: str) -> Numbers | None:
        entry = contender.queue(link)
        for key in path:
            entry = entry[key]
        return entry

    return _Column(title, read, less, scale, count)


def _ping(title: str, *path: str, less: bool | None) -> _Column:
    def read(contender: Contender, _: str) -> Numbers | None:
        entry = contender.ping()
        for key in path:
            entry = entry[key] if entry is not None else None
        return entry

    return _Column(title, read, less)


COLUMNS = (
    _queue("util %", "utilisation", less=False, scale=100),
    _Column("goodput Mbit/s", lambda contender, _: contender.summary.summary["goodput_mbps"], less=False),
    _queue("sojourn mean ms", "sojourn_ms", "mean", less=True),
    _queue("p50 ms", "sojourn_ms", "p50", less=True),
    _queue("p95 ms", "sojourn_ms", "p95", less=True),
    _queue("p99 ms", "sojourn_ms", "p99", less=True),
    _queue("drops", "dropped_packets", less=True, count=True),
    _queue("marks", "marked_packets", less=None, count=True),
    _queue("Jain", "jain", less=False),
    _ping("ping idle ms", "base_rtt_ms", less=None),
    _ping("loaded mean ms", "rtt_ms", "mean", less=True),
    _ping("p95 ms", "rtt_ms", "p95", less=True),
)


def busiest_link(contenders: Sequence[Contender]) -> str:
    """The link under study: where packets waited most, over all contenders, so that all are asked about the same one.

    Of the links whose disciplines differ: the longest queue may be elsewhere, where every contender has the same.
    """
    waited: dict[str, float] = {}
    qdiscs: dict[str, set[str]] = {}
    for contender in contenders:
        for queue in contender.summary.summary["queues"]:
            link = queue["link"]
            waited[link] = waited.get(link, 0.0) + _or_zero(queue["backlog_packets"]["mean"]["mean"])
            qdiscs.setdefault(link, set()).add(queue["qdisc"])
    compared = [link for link in waited if len(qdiscs[link]) > 1]
    return max(compared or waited, key=lambda link: waited[link])


def ranked(contenders: Sequence[Contender], link: str) -> list[Contender]:
    """Shortest delay first: of the ping's p95 where there is a ping, else of the queue's sojourn."""
    return sorted(contenders, key=lambda contender: (_delay(contender, link), contender.name))


def table(contenders: Sequence[Contender], link: str) -> str:
    """One row per contender; the best of each column carries a star."""
    shown = [column for column in COLUMNS if any(_known(column, each, link) for each in contenders)]
    columns = [_cells(column, contenders, link) for column in shown]
    rows = [[contender.name, *cells] for contender, *cells in zip(contenders, *columns, strict=True)]
    return text.table(["qdisc", *(column.title for column in shown)], rows)


def verdict(contenders: Sequence[Contender], link: str, baseline: str | None = None) -> str:
    """Who wins, over what, by how much, at what cost in goodput: one sentence.

    Compared with `baseline` (a name), or else with the contender with the longest delay.
    """
    order = ranked(contenders, link)
    winner, loser = order[0], order[-1]
    loser = next((each for each in order if each.name == baseline), loser)
    if len(order) < 2:
        return f"{winner.name}: nothing to compare with."
    best, worst = _delay(winner, link), _delay(loser, link)
    what = "the ping's p95" if winner.ping() is not None else "the p95 of the sojourn"
    if math.isinf(best):
        return f"No discipline wins: there is nothing to measure {what} by."
    if math.isinf(worst):
        return f"{winner.name} keeps {what} at {text.number(best)} ms; with {loser.name} there is none."
    if winner is loser:
        return f"No discipline does better than {winner.name}: {what} is {text.number(best)} ms."
    if worst - best < 0.05 * worst:
        return f"{winner.name} and {loser.name} differ little: {what} is {text.number(best)} and {text.number(worst)} ms."
    return f"{winner.name} cuts {what} from {text.number(worst)} ms ({loser.name}) to {text.number(best)} ms {_cost(winner, loser)}."


def _cost(winner: Contender, loser: Contender) -> str:
    had, has = (each.summary.summary["goodput_mbps"]["mean"] for each in (loser, winner))
    if not had > 0:
        return "(no goodput to compare)"
    percent = 100 * (had - has) / had
    if abs(percent) < 0.5:
        return "at the same goodput"
    if percent > 0:
        return f"for {percent:.0f} % of goodput"
    return (
        f"and gives {text.number(has / had)} times the goodput"
        if has > 1.5 * had
        else f"with {-percent:.0f} % more goodput"
    )


def _cells(column: _Column, contenders: Sequence[Contender], link: str) -> list[str]:
    entries = [column.read(contender, link) for contender in contenders]
    show = text.count if column.count else lambda entry: text.with_interval(entry, column.scale)
    cells = ["-" if entry is None else show(entry) for entry in entries]
    if column.less is None:
        return cells
    # Compared as they are shown: a difference that the reader can't see is none.
    shown = [
        math.nan
        if entry is None
        else float(f"{entry['mean'] * column.scale:.{text.decimals(entry['mean'] * column.scale)}f}")
        for entry in entries
    ]
    seen = [value for value in shown if not math.isnan(value)]
    if len(seen) < 2 or min(seen) == max(seen):
        return [f"{cell} " for cell in cells]
    best = min(seen) if column.less else max(seen)
    return [f"{cell}{text.BEST if value == best else ' '}" for cell, value in zip(cells, shown, strict=True)]


def _known(column: _Column, contender: Contender, link: str) -> bool:
    entry = column.read(contender, link)
    return entry is not None and not math.isnan(entry["mean"])


def _delay(contender: Contender, link: str) -> float:
    probe = contender.ping()
    entry = contender.queue(link)["sojourn_ms"] if probe is None else probe["rtt_ms"]
    delay = float(entry["p95"]["mean"])
    # Without a single answer there is no telling: it comes last.
    return math.inf if math.isnan(delay) else delay


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value
