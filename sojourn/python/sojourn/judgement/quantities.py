"""The numbers by which Runs are compared: name, unit, better direction, and role in a verdict.

The terminal, the bars, the page and the verdict share this list, so they can't disagree. The values
come from `sojourn.metrics`, at the link under study and over the samples.

    felt      by users of the line: pings, completion times of transfers, late packets of calls and
        video. They decide.
    queue     sojourn times at the link under study. They decide if nothing is felt.
    cost      goodput of each direction, and fairness: the price of a shorter delay
    context   the rest
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sojourn.metrics import LATE_MS, Summary, mean_ci95, summary
from sojourn.numbers import GroupNumbers, QueueNumbers, SeedNumbers
from sojourn.records import Meta, Run
from sojourn.traffic import is_greedy, is_kept

Role = Literal["felt", "queue", "cost", "context"]
Read = Callable[[SeedNumbers, QueueNumbers[float] | None], float]
"""Takes a seed's numbers, and the numbers of the queue under study."""


@dataclass(frozen=True)
class Quantity:
    """A number of a seed: its name, its unit, and how to read it."""

    key: str
    name: str
    unit: str
    better: Literal["less", "more", "neither"]
    read: Read
    role: Role = "context"
    of: str = ""
    """The owner of the number: "ping", a [[flow]] entry, a link."""
    short: str = ""
    """The heading of a narrow column, after the owner."""
    least: float = 0.0
    """Values that differ by less, in the quantity's unit, are alike, even if the interval excludes
    0."""
    count: bool = False
    """Whether the number is a count."""

    @property
    def most(self) -> float:
        """The largest value that a share can take."""
        return 100.0 if self.unit == "%" else 1.0 if self.key == "jain" else math.inf


def _ping(*path: str) -> Read:
    """Reads the worst probe, because a mean over probes of different paths has no meaning."""

    def read(seed: SeedNumbers, _: QueueNumbers[float] | None) -> float:
        known = [value for probe in seed["probes"] if not math.isnan(value := _at(probe, path))]
        return max(known) if known else math.nan

    return read


def _queue(*path: str, scale: float = 1.0) -> Read:
    return lambda _, queue: scale * _at(queue, path)


def _group(name: str, *path: str, scale: float = 1.0) -> Read:
    def read(seed: SeedNumbers, _: QueueNumbers[float] | None) -> float:
        found = next((group for group in seed["groups"] if group["name"] == name), None)
        return scale * _at(found, path)

    return read


def _at(entry: object, path: Sequence[str]) -> float:
    value = entry
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return float(value) if isinstance(value, (int, float)) else math.nan


def _jain(seed: SeedNumbers, queue: QueueNumbers[float] | None) -> float:
    """Jain's index of the flows that share the link under study; NaN with less than two."""
    endless = [
        flow for flow in seed["flows"] if is_greedy(flow["kind"]) and flow["congestion"] is not None
    ]
    return float(queue["jain"]) if queue is not None and len(endless) > 1 else math.nan


def _goodput(seed: SeedNumbers, queue: QueueNumbers[float] | None) -> float:
    return float(seed["goodput_mbps"] if queue is None else queue["goodput_mbps"])


def _goodput_other(seed: SeedNumbers, queue: QueueNumbers[float] | None) -> float:
    """The goodput of the flows that do not cross the link under study; NaN without such flows."""
    if queue is None:
        return math.nan
    rest = float(seed["goodput_mbps"] - queue["goodput_mbps"])
    return rest if rest > 1e-9 * seed["goodput_mbps"] else math.nan


NOWHERE = ("at the bottleneck", "elsewhere")


def ways(link: str | None, meta: Meta) -> tuple[str, str]:
    """The direction of flows across a link, and of all others: "up" and "down" of a dumbbell."""
    if link is None:
        return NOWHERE
    dumbbell = {"up": "down", "down": "up"}.get(link)
    other = dumbbell if dumbbell in {each.name for each in meta.links} else None
    return (f"at {link}" if dumbbell is None else link), other or NOWHERE[1]


def _fixed(link: str | None, ways: tuple[str, str]) -> tuple[Quantity, ...]:
    """The quantities that every scenario can have, in the order of a table."""
    here = link or "the bottleneck"
    way, other = ways
    return (
        Quantity("ping_idle", "idle ping RTT", "ms", "neither", _ping("base_rtt_ms"), of="ping", short="idle ms"),
        Quantity("ping_mean", "ping RTT mean", "ms", "less", _ping("rtt_ms", "mean"), "felt", "ping", "mean ms"),
        Quantity("ping_p50", "ping RTT median", "ms", "less", _ping("rtt_ms", "p50"), of="ping", short="p50 ms"),
        Quantity("ping_p95", "ping RTT p95", "ms", "less", _ping("rtt_ms", "p95"), "felt", "ping", "p95 ms"),
        Quantity("ping_loss", "pings lost", "%", "less", lambda seed, queue: 100 * _ping("loss_rate")(seed, queue),
                 "felt", "ping", "loss %", least=0.5),
        Quantity("goodput", f"goodput {way}", "Mbit/s", "more", _goodput, "cost",
                 of=here, short="Mbit/s"),
        Quantity("goodput_other", f"goodput {other}", "Mbit/s", "more", _goodput_other, "cost", other, "Mbit/s"),
        Quantity("jain", "fairness (Jain)", "", "more", _jain, "cost", short="Jain"),
        Quantity("utilisation", "utilisation", "%", "more", _queue("utilisation", scale=100), of=here, short="util %"),
        Quantity("sojourn_mean", "sojourn mean", "ms", "less", _queue("sojourn_ms", "mean"), "queue", of=here,
                 short="sojourn mean ms"),
        Quantity("sojourn_p50", "sojourn median", "ms", "less", _queue("sojourn_ms", "p50"), "queue", of=here,
                 short="p50 ms"),
        Quantity("sojourn_p95", "sojourn p95", "ms", "less", _queue("sojourn_ms", "p95"), "queue", of=here,
                 short="p95 ms"),
        Quantity("sojourn_p99", "sojourn p99", "ms", "less", _queue("sojourn_ms", "p99"), of=here, short="p99 ms"),
        Quantity("drops", "drops", "", "less", _queue("dropped_packets"), of=here, short="drops", count=True),
        Quantity("drop_rate", "packets dropped", "%", "less", _queue("drop_rate", scale=100), of=here, short="drops %"),
        Quantity("marks", "marks", "", "neither", _queue("marked_packets"), of=here, short="marks", count=True),
    )  # fmt: skip


QUANTITY = {quantity.key: quantity for quantity in _fixed(None, NOWHERE)}
RANKED_BY = "ping_p95"
"""Runs with pings are ranked by this quantity, and sentences name it first."""
OWN_GOODPUT = "own_goodput"
"""Prefix of the key of the goodput of one [[flow]] entry."""


def _own_goodputs(groups: Sequence[GroupNumbers[float]]) -> list[Quantity]:
    """The goodput of each [[flow]] entry, if there are several."""
    names = list(dict.fromkeys(group["name"] for group in groups))
    return [
        Quantity(
            f"{OWN_GOODPUT}:{name}",
            f"{name} goodput",
            "Mbit/s",
            "neither",
            _group(name, "goodput_mbps"),
            of=name,
            short="Mbit/s",
        )
        for name in names
        if len(names) > 1
    ]


def _of_group(group: GroupNumbers[float]) -> list[Quantity]:
    """The quantities that a user of this [[flow]] entry feels."""
    name = group["name"]
    found = []
    if "transfers" in group:
        # A kept connection has many requests, enough for the 99th percentile.
        more = ("p50", "p99") if is_kept(group["kind"]) else ()
        found += [
            Quantity(
                f"completion_{key}:{name}",
                f"{name} completion {key}",
                "ms",
                "less",
                _group(name, "transfers", "completion_ms", key),
                "context" if key in more else "felt",
                name,
                f"{key} ms",
            )
            for key in ("mean", "p95", *more)
        ]
        # With few completed transfers the completion times alone would mislead.
        read = _group(name, "transfers", "completed")
        found.append(
            Quantity(
                f"completed:{name}",
                f"{name} completed",
                "",
                "more",
                read,
                of=name,
                short="done",
                count=True,
            )
        )
    if "mos" in group:
        found.append(
            Quantity(
                f"mos:{name}",
                f"{name} MOS",
                "",
                "more",
                _group(name, "mos"),
                "felt",
                name,
                "MOS",
                least=0.1,
            )
        )
    if "late_rate" in group:
        found.append(
            Quantity(
                f"late:{name}",
                f"{name} later than {LATE_MS:.0f} ms",
                "%",
                "less",
                _group(name, "late_rate", scale=100),
                "felt",
                name,
                "late %",
                least=0.5,
            )
        )
    return found


@dataclass(frozen=True)
class AtLink:
    """A run and its numbers at one link; `Measured` is one on disk."""

    meta: Meta
    link: str | None
    summary: Summary

    @cached_property
    def quantities(self) -> dict[str, Quantity]:
        """The quantities of this scenario, by key: felt first, then cost, then the queue."""
        fixed = _fixed(self.link, ways(self.link, self.meta))
        groups = self.summary.runs[0]["groups"] if self.summary.runs else []
        own = [quantity for group in groups for quantity in _of_group(group)]
        own += _own_goodputs(groups)
        pings = [quantity for quantity in fixed if quantity.of == "ping"]
        return {
            quantity.key: quantity
            for quantity in (*pings, *own, *(each for each in fixed if each.of != "ping"))
        }

    @cached_property
    def _values(self) -> dict[str, list[float]]:
        return {}

    @cached_property
    def _means(self) -> dict[str, tuple[float, float]]:
        return {}

    def per_seed(self, key: str) -> list[float]:
        """The quantity of each sample, NaN if unknown; empty if the scenario does not have it."""
        if key not in self.quantities:
            return []
        if key not in self._values:
            self._values[key] = [self.of_seed(key, seed) for seed in self.summary.sampled]
        return self._values[key]

    def of_seed(self, key: str, seed: SeedNumbers) -> float:
        """The quantity in a seed's numbers; NaN if the scenario does not have it."""
        if key not in self.quantities:
            return math.nan
        return self.quantities[key].read(seed, self._queue(seed))

    def over_seeds(self, key: str) -> tuple[float, float]:
        """The mean and half the width of the 95 % interval (NaN with one sample)."""
        if key not in self._means:
            found = mean_ci95(self.per_seed(key))
            self._means[key] = found["mean"], found["ci95"]
        return self._means[key]

    def _queue(self, seed: SeedNumbers) -> QueueNumbers[float] | None:
        return next((queue for queue in seed["queues"] if queue["link"] == self.link), None)


@dataclass(frozen=True)
class Measured(AtLink):
    """A Run and its numbers at one link."""

    run: Run


def measure(runs: Sequence[Run], link: str | None = None) -> list[Measured]:
    """The numbers of each Run, at this link or at its bottleneck."""
    numbers = [summary(run) for run in runs]
    links: list[str | None] = [link] * len(runs)
    if link is None:
        # The numbers contain the backlogs. To read them from a table of each Run
        # would double the time.
        held = [backlogs_of(run.meta, each) for run, each in zip(runs, numbers, strict=True)]
        links = under_study([run.meta for run in runs], held)
    return [
        Measured(run.meta, at, each, run)
        for run, at, each in zip(runs, links, numbers, strict=True)
    ]


def known(measured: Sequence[AtLink], keys: Sequence[str] | None = None) -> list[Quantity]:
    """The quantities that at least one Run has, in the order of `keys` or of the first Run with
    them.

    A key that ends in ":" stands for that quantity of every [[flow]] entry.
    """
    every: dict[str, Quantity] = {}
    for one in measured:
        every = {
            **every,
            **{key: value for key, value in one.quantities.items() if key not in every},
        }
    wanted = (
        list(every)
        if keys is None
        else [
            key
            for prefix in keys
            for key in every
            if key == prefix or (prefix[-1] == ":" and key.startswith(prefix))
        ]
    )
    return [
        every[key]
        for key in wanted
        if any(not math.isnan(one.over_seeds(key)[0]) for one in measured)
    ]


# --------------------------------------------------------------------------- the link under study


def bottlenecks(runs: Sequence[Run]) -> list[str | None]:
    """The link under study of each Run: where most packets waited, on average over time and all
    seeds.

    Runs with the same links have the same link under study. Of the links whose disciplines differ,
    it is the one where most packets waited in all Runs together. With a good discipline the longest
    queue may be elsewhere. If hardly any packet waits on any link, a link with a policer is under
    study: packets beyond its rate are dropped and do not wait.
    """
    return under_study([run.meta for run in runs], [_backlogs(run) for run in runs])


def under_study(metas: Sequence[Meta], backlogs: Sequence[Mapping[str, float]]) -> list[str | None]:
    """As `bottlenecks`, from the mean backlog of each sampled link."""
    if len({tuple(sorted(backlog)) for backlog in backlogs}) == 1:
        compared = [
            link for link in backlogs[0] if len({meta.link(link).qdisc for meta in metas}) > 1
        ] or list(backlogs[0])
        together = {
            link: math.fsum(backlog[link] for backlog in backlogs) / len(backlogs)
            for link in compared
        }
        backlogs = [together] * len(metas)
    return [_most_waited(meta, backlog) for meta, backlog in zip(metas, backlogs, strict=True)]


def _most_waited(meta: Meta, backlog: Mapping[str, float]) -> str | None:
    def order(link: str) -> tuple[float, bool, float]:
        waits = backlog[link]
        return (waits if waits >= 1 else 0.0, meta.link(link).police is not None, waits)

    return max(backlog, key=order, default=None)


def bottleneck(run: Run) -> str | None:
    """The link under study of one Run."""
    return bottlenecks([run])[0]


def backlogs_of(meta: Meta, numbers: Summary) -> dict[str, float]:
    """The mean backlog of each sampled link, in packets, over the seeds of a Summary."""
    held = _links(meta)
    for name in held:
        means = [
            mean
            for seed in numbers.runs
            for queue in seed["queues"]
            if queue["link"] == name and not math.isnan(mean := queue["backlog_packets"]["mean"])
        ]
        held[name] = math.fsum(means) / len(means) if means else 0.0
    return held


def _backlogs(run: Run) -> dict[str, float]:
    """As `backlogs_of`, from the tables of a Run."""
    held = _links(run.meta)
    if run.seeds:
        import polars as pl

        means = run.table("links").group_by("link").agg(pl.col("backlog_mean_packets").mean())
        for link, mean in means.filter(pl.col("link").is_in(list(held))).iter_rows():
            held[str(link)] = float(mean or 0.0)
    return held


def _links(meta: Meta) -> dict[str, float]:
    """0 for each sampled link. Links with a rate limit come first, since `max` returns the first of
    equals."""
    links = sorted(
        (link for link in meta.links if link.sampled), key=lambda link: link.rate_bps is None
    )
    return dict.fromkeys([link.name for link in links], 0.0)
