"""Numbers from tables: pure functions, and the Summary they make of a Run.

Everything leaves the warm-up out: the engine's totals and histograms already do, time lines are cut here. T is what
remains, duration less warm-up. Rates are fractions (0..1), times ms, goodput Mbit/s (10^6). What can't be said (no
sample, no rate limit) is NaN here and null in JSON.

    utilisation   bits on the wire / bits the link could have carried in T
    goodput       bytes handed to the receiving application in T, times 8, / T
    sojourn       mean: sum / packets, exact to a double. p50, p95, p99: from the histogram, linear inside a bin. max: exact
                  in the queue discipline; the ring's own is from there to the last bit on the wire
    drop_rate     dropped / arrived packets, at the queue
    loss_rate     what the endpoints missed: lost / (lost + received) packets, so of those whose end is known; a ping is
                  received when its reply is
    jain          (sum x)^2 / (n sum x^2) over the goodput x of the endless TCP flows (Jain, Chiu, Hawe 1984)
    late_rate     datagrams that came later than LATE_MS after they were sent, or never / all of them
    mean, ci95    over seeds: mean, and half the width of its 95 % confidence interval, t(0.975, n-1) s / sqrt(n)

Seeds are samples only if chance made them differ. Where nothing in a scenario is random, the tables of all its seeds are
equal: then they are one sample (`Summary.samples`), and one sample has no interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, overload

import numpy as np
import polars as pl

from sojourn.records import FlowInfo, LinkInfo, Meta, Run

Numbers = dict[str, Any]
"""A JSON object: strings, numbers, lists and objects of them."""

QUANTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}

LATE_MS = 150.0
"""One way. Up to here a call is hardly impaired (ITU-T G.114, 2003); what comes later, its playout does not wait for."""
NEEDED = ("links", "flows", "sojourn", "rtt", "probe", "drops", "transfers", "engine")
"""The tables that numbers are made of."""
RANDOM_START = 'start = "uniform 0 s .. 1 s"'
"""What makes the seeds of a scenario differ in which nothing is random, as a [[flow]] says it."""


@dataclass(frozen=True)
class Summary:
    """What `sojourn run --json` prints: what was run, the numbers of each seed, and the same over the seeds."""

    engine: str
    version: str
    title: str
    label: str
    duration_s: float
    warmup_s: float
    seeds: tuple[int, ...]
    fingerprint: str
    runs: list[Numbers]
    """One per seed: seed, queues, flows, groups, probes, jain, goodput_mbps, cpu_s, packets."""
    summary: Numbers
    """The same shape, each number replaced by {mean, ci95} over the samples; ci95 is NaN of one."""
    samples: int
    """How many of the seeds tell something: all of them, or 1 if they gave the same tables."""
    invalid: tuple[str, ...] = ()
    """Why the numbers are not to be used; none: nothing is known against them."""
    engine_build: str | None = None
    """Names the build of the engine; None: not recorded."""

    @property
    def sampled(self) -> list[Numbers]:
        """The runs that are samples: one per seed, or the first if all are the same."""
        return self.runs[: self.samples]

    def to_dict(self) -> Numbers:
        """As one object of plain values; NaN becomes None."""
        return {
            "engine": self.engine,
            "version": self.version,
            "engine_build": self.engine_build,
            "title": self.title,
            "label": self.label,
            "duration_s": self.duration_s,
            "warmup_s": self.warmup_s,
            "seeds": list(self.seeds),
            "samples": self.samples,
            "fingerprint": self.fingerprint,
            "invalid": list(self.invalid),
            "runs": _without_nan(self.runs),
            "summary": _without_nan(self.summary),
        }

    def to_json(self, indent: int | None = 2) -> str:
        """As JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)


@overload
def summary(run: Run) -> Summary: ...
@overload
def summary(run: Iterable[Run]) -> list[Summary]: ...
def summary(run: Run | Iterable[Run]) -> Summary | list[Summary]:
    """The numbers of a Run; of several Runs, those of each."""
    if not isinstance(run, Run):
        return [summary(each) for each in run]
    meta = run.meta
    first: dict[str, pl.DataFrame] = {}
    runs = []
    alike = True
    for seed in run.seeds:
        tables = {name: run.table(name, seed) for name in NEEDED}
        first = first or tables
        alike = alike and all(tables[name].equals(first[name]) for name in NEEDED)
        runs.append(seed_summary(meta, seed, tables))
    samples = min(1, len(runs)) if alike else len(runs)
    return Summary(
        engine=meta.engine,
        version=meta.version,
        title=meta.title,
        label=meta.label,
        duration_s=meta.duration_ns / 1e9,
        warmup_s=meta.warmup_ns / 1e9,
        seeds=run.seeds,
        fingerprint=meta.fingerprint,
        runs=runs,
        summary=over_seeds(runs[:samples]) if runs else {},
        samples=samples,
        invalid=meta.invalid,
        engine_build=meta.engine_build,
    )


def seed_summary(meta: Meta, seed: int, tables: Mapping[str, pl.DataFrame]) -> Numbers:
    """The numbers of one seed."""
    # Cut up once: looking a thousand flows up in a table of all of them takes longer than the run.
    rows = {row["flow"]: _seen(row) for row in tables["flows"].iter_rows(named=True)}
    rtts = _by(tables["rtt"], "flow")
    transfers = _by(tables["transfers"].filter(pl.col("start_ns") >= meta.warmup_ns), "flow")
    flows = [_flow(meta, info, rows[info.name], rtts.get(info.name)) for info in meta.flows]
    for info, flow in zip(meta.flows, flows, strict=True):
        if info.finite:
            flow["transfers"] = _transfers(transfers.get(info.name))
    return {
        "seed": seed,
        "queues": [_queue(meta, info, tables, flows) for info in meta.links],
        "flows": flows,
        "groups": _groups(meta, flows, rows, rtts, transfers),
        "probes": [_probe(meta, info, rows[info.name], tables) for info in meta.flows if info.kind == "ping"],
        "jain": jain(_endless(meta, flows)),
        "goodput_mbps": sum(flow["goodput_mbps"] for flow in flows if flow["kind"] != "ping"),
        "cpu_s": meta.cpu_s[str(seed)],
        "packets": tables["engine"]["packets"].item(),
    }


def _by(table: pl.DataFrame, key: str) -> dict[str, pl.DataFrame]:
    """The rows of each name."""
    return {str(name): part for (name,), part in table.partition_by(key, as_dict=True).items()}


# ------------------------------------------------------------------------------------------------------- one entry


def _queue(meta: Meta, info: LinkInfo, tables: Mapping[str, pl.DataFrame], flows: list[Numbers]) -> Numbers:
    row = _seen(tables["links"].filter(pl.col("link") == info.name).row(0, named=True))
    histogram = tables["sojourn"].filter(pl.col("link") == info.name)
    events = tables["drops"].filter((pl.col("link") == info.name) & (pl.col("t_ns") >= meta.warmup_ns))
    crossing = {flow.name for flow in meta.flows if info.name in flow.path}
    here = [flow for flow in flows if flow["name"] in crossing]
    return {
        "link": info.name,
        "qdisc": info.qdisc,
        "utilisation": utilisation(row["wire_bytes"], row["capacity_bits"]),
        "arrived_packets": row["arrived_packets"],
        "dropped_packets": row["dropped_packets"],
        "marked_packets": row["marked_packets"],
        "drop_rate": ratio(row["dropped_packets"], row["arrived_packets"]),
        "lost_packets": row["lost_packets"],
        "drops": by_cause(events.filter(pl.col("marked") == 0)),
        "marks": by_cause(events.filter(pl.col("marked") == 1)),
        "sojourn_ms": {
            "mean": ratio(row["sojourn_sum_ns"], row["sent_packets"]) / 1e6,
            **_quantiles_ms(histogram, "packets", None, row["sojourn_max_ns"]),
            "max": row["sojourn_max_ns"] / 1e6 if row["sent_packets"] else math.nan,
        },
        "backlog_packets": {"mean": float(row["backlog_mean_packets"]), "max": row["backlog_max_packets"]},
        "ring": _ring(row),
        "goodput_mbps": sum(flow["goodput_mbps"] for flow in here if flow["kind"] != "ping"),
        "jain": jain(_endless(meta, here)),
    }


_ABSENT = ("capacity_bits", "ring_", "bql_")
"""Columns whose null says that there is no such thing, not that it was not seen."""


def _seen(row: Numbers) -> Numbers:
    """A row with NaN for what the engine did not see: a live host's kernel does not say how long packets waited."""
    return {
        key: math.nan if value is None and not key.startswith(_ABSENT) else value
        for key, value in row.items()
    }


def _ring(row: Numbers) -> Numbers | None:
    """The driver's ring below the queue, where there is one."""
    sent = row["ring_sent_packets"]
    if sent is None:
        return None
    return {
        "sojourn_ms": {
            "mean": ratio(row["ring_sojourn_sum_ns"], sent) / 1e6,
            "max": row["ring_sojourn_max_ns"] / 1e6 if sent else math.nan,
        },
        "packets": {"mean": row["ring_mean_packets"], "max": row["ring_max_packets"]},
        "bql_limit_bytes": row["bql_limit_bytes"],
    }


def _flow(meta: Meta, info: FlowInfo, row: Numbers, histogram: pl.DataFrame | None) -> Numbers:
    measured = row["rtt_samples"] > 0
    return {
        "name": info.name,
        "kind": info.kind,
        "congestion": info.congestion,
        "goodput_mbps": goodput_mbps(row["delivered_bytes"], meta.measured_s),
        "delivered_bytes": row["delivered_bytes"],
        "sent_packets": row["sent_packets"],
        "loss_rate": ratio(row["lost_packets"], row["lost_packets"] + row["received_packets"]),
        "retransmits": row["retransmits"],
        "timeouts": row["timeouts"],
        "base_rtt_ms": row["base_rtt_ns"] / 1e6,
        "rtt_ms": {
            "min": row["rtt_min_ns"] / 1e6 if measured else math.nan,
            "mean": ratio(row["rtt_sum_ns"], row["rtt_samples"]) / 1e6,
            **_quantiles_ms(histogram, "samples", row["rtt_min_ns"], row["rtt_max_ns"]),
            "max": row["rtt_max_ns"] / 1e6 if measured else math.nan,
        },
    }


def _groups(
    meta: Meta,
    flows: Sequence[Numbers],
    rows: Mapping[str, Numbers],
    rtts: Mapping[str, pl.DataFrame],
    transfers: Mapping[str, pl.DataFrame],
) -> list[Numbers]:
    """The data flows of each [[flow]] entry as one: what its users got. Samples are pooled, goodputs added."""
    members: dict[int, list[int]] = {}
    for number, info in enumerate(meta.flows):
        if info.kind != "ping":
            members.setdefault(info.group, []).append(number)
    groups = []
    for numbers in members.values():
        infos = [meta.flows[number] for number in numbers]
        names, first = [info.name for info in infos], infos[0]
        group: Numbers = {
            "name": first.name if len(names) == 1 else first.name.rpartition(".")[0] or first.name,
            "flows": len(names),
            "kind": first.kind,
            "congestion": first.congestion,
            "goodput_mbps": math.fsum(flows[number]["goodput_mbps"] for number in numbers),
        }
        if first.finite:
            done = [transfers[name] for name in names if name in transfers]
            group["transfers"] = _transfers(pl.concat(done) if done else None)
        if first.congestion is None:
            came = [rtts[name] for name in names if name in rtts]
            lost = sum(rows[name]["lost_packets"] for name in names)
            group["late_rate"] = late_rate(pl.concat(came) if came else None, lost)
        groups.append(group)
    return groups


def _transfers(table: pl.DataFrame | None) -> Numbers:
    """Transfers that began after the warm-up and were completed, and how long they took."""
    if table is None:
        return {"completed": 0, "completion_ms": distribution(np.empty(0))}
    took_ms = (table["end_ns"] - table["start_ns"]).to_numpy() / 1e6
    return {"completed": table.height, "completion_ms": distribution(took_ms)}


def _probe(meta: Meta, info: FlowInfo, row: Numbers, tables: Mapping[str, pl.DataFrame]) -> Numbers:
    table = tables["probe"].filter((pl.col("probe") == info.name) & (pl.col("t_ns") >= meta.warmup_ns))
    answered = table.filter(pl.col("rtt_ns").is_not_null())
    # Requests still under way at the end are neither received nor lost: the engine leaves them out of the table.
    sent, received = table.height, answered.height
    return {
        "name": info.name,
        "sent": sent,
        "received": received,
        "loss_rate": ratio(sent - received, sent),
        "base_rtt_ms": row["base_rtt_ns"] / 1e6,
        "rtt_ms": distribution(answered["rtt_ns"].to_numpy() / 1e6),
    }


def _endless(meta: Meta, flows: Iterable[Numbers]) -> list[float]:
    """Goodput of the TCP flows that send all the time: those whose shares can be compared."""
    return [
        flow["goodput_mbps"] for flow in flows if flow["kind"] == "bulk" and flow["congestion"] is not None
    ]


# ---------------------------------------------------------------------------------------------------------- formulas


def ratio(part: float, whole: float) -> float:
    """part / whole; NaN when there is no whole."""
    return part / whole if whole else math.nan


def utilisation(wire_bytes: int, capacity_bits: float | None) -> float:
    """Bits on the wire over the bits the link could have carried; NaN for a link without a rate limit.

    A packet counts when its transmission begins, so the last one may reach beyond the end, and a shaper lets its burst and
    what framing it does not charge through on top of its rate: hence the bound.
    """
    if not capacity_bits:
        return math.nan
    return min(1.0, wire_bytes * 8 / capacity_bits)


def goodput_mbps(delivered_bytes: int, measured_s: float) -> float:
    """Application bytes as Mbit/s (10^6)."""
    return ratio(delivered_bytes * 8 / 1e6, measured_s)


def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index: 1 when all shares are equal, 1/n when one has everything; NaN without any share."""
    return ratio(sum(shares) ** 2, len(shares) * sum(x * x for x in shares))


def by_cause(events: pl.DataFrame) -> dict[str, int]:
    """Number of drops or marks of each cause, in the causes' alphabetical order."""
    counts = events.group_by("cause").len().sort("cause")
    return dict(zip(counts["cause"].to_list(), counts["len"].to_list(), strict=True))


def histogram_quantile(histogram: pl.DataFrame, counts: str, q: float) -> float:
    """The q-quantile of a histogram with columns lower_ns, upper_ns and `counts`, linear inside a bin; NaN if empty.

    Two bins, 0..10 and 10..30 ns, with 3 and 1 samples: the median is where 2 of the 4 lie below, 0 + 10 * 2/3.
    """
    lower, upper, count = (histogram[name].to_numpy() for name in ("lower_ns", "upper_ns", counts))
    order = np.argsort(lower, kind="stable")
    order = order[count[order] > 0]
    if order.size == 0:
        return math.nan
    below = np.cumsum(count[order], dtype=np.float64)
    wanted = q * below[-1]
    bin_ = int(np.searchsorted(below, wanted, side="left"))
    at = order[bin_]
    share = (wanted - (below[bin_] - count[at])) / count[at]
    return float(lower[at] + (upper[at] - lower[at]) * share)


def late_rate(histogram: pl.DataFrame | None, lost: float, bound_ms: float = LATE_MS) -> float:
    """The share of packets that took longer than the bound, linear inside a bin, or were lost; NaN without a packet.

    Of 90 that took 100 to 200 ms and 10 that were lost 45 + 10 are late: 0.55.
    """
    bound = bound_ms * 1e6
    came = late = 0.0
    if histogram is not None and not histogram.is_empty():
        lower, upper, count = (histogram[name].to_numpy() for name in ("lower_ns", "upper_ns", "samples"))
        above = np.clip((upper - bound) / (upper - lower), 0.0, 1.0)
        came, late = float(count.sum()), float((count * above).sum())
    return ratio(late + lost, came + lost)


def _quantiles_ms(
    histogram: pl.DataFrame | None, counts: str, least_ns: float | None, most_ns: float | None
) -> dict[str, float]:
    """p50, p95 and p99 of a histogram in ms, between the least and the largest sample; NaN without a sample."""
    if histogram is None:
        return dict.fromkeys(QUANTILES, math.nan)
    return {
        name: _between(histogram_quantile(histogram, counts, q), least_ns, most_ns) / 1e6
        for name, q in QUANTILES.items()
    }


def distribution(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """min, mean, p50, p95, p99 and max of samples (quantiles linear between samples); NaN without a sample."""
    if values.size == 0:
        return dict.fromkeys(("min", "mean", "p50", "p95", "p99", "max"), math.nan)
    return {
        "min": float(values.min()),
        "mean": float(values.mean()),
        **{name: float(np.quantile(values, q)) for name, q in QUANTILES.items()},
        "max": float(values.max()),
    }


def _between(value: float, least: float | None, most: float | None) -> float:
    # A bin begins below the least sample in it and reaches beyond the largest. (NaN stays NaN, and as a bound it bounds
    # nothing: max and min keep their first argument.)
    if least is not None:
        value = max(value, least)
    return value if most is None else min(value, most)


# --------------------------------------------------------------------------------------------------------- over seeds


def over_seeds(runs: Sequence[Numbers]) -> Numbers:
    """The seeds' numbers in the same shape, each as {mean, ci95}. Entries of lists are matched by position."""
    merged: Numbers = _merge([{key: value for key, value in run.items() if key != "seed"} for run in runs])
    return merged


def _merge(values: list[Any]) -> Any:
    first = values[0]
    if isinstance(first, dict):
        # A cause that did not occur under some seed occurred 0 times there.
        keys = dict.fromkeys(key for value in values for key in value)
        return {key: _merge([value.get(key, 0) for value in values]) for key in keys}
    if isinstance(first, list):
        return [_merge(list(entries)) for entries in zip(*values, strict=True)]
    if isinstance(first, str) or first is None:
        return first
    return mean_ci95(values)


def mean_ci95(values: Iterable[float]) -> dict[str, float]:
    """Mean and half the width of its 95 % confidence interval (Student's t); NaN values are left out.

    3, 4, 5: mean 4, s = 1, t(0.975, 2) = 4.303, so ci95 = 4.303 / sqrt(3) = 2.484.
    """
    known = [float(value) for value in values if not math.isnan(value)]
    if not known:
        return {"mean": math.nan, "ci95": math.nan}
    mean = math.fsum(known) / len(known)
    if len(known) < 2:
        return {"mean": mean, "ci95": math.nan}
    variance = math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1)
    return {"mean": mean, "ci95": student_t975(len(known) - 1) * math.sqrt(variance / len(known))}


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval (NaN: not known)."""

    value: float
    low: float
    high: float

    @property
    def tells(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low > 0 or self.high < 0


def over_repeats(values: Sequence[float]) -> Interval:
    """The mean of repeats with Student's t interval. 3, 4, 5: 4, from 1.516 to 6.484."""
    found = mean_ci95(values)
    return Interval(found["mean"], found["mean"] - found["ci95"], found["mean"] + found["ci95"])


def welch(before: Sequence[float], after: Sequence[float]) -> Interval:
    """after - before of independent repeats: Welch's interval, its degrees of freedom rounded down.

    1, 2, 3 and 11, 12, 13: 10; both variances 1, so the standard error is sqrt(2/3) and there are 4 degrees of
    freedom: 10 -+ 2.776 * 0.8165.
    """
    one, other = (np.asarray(values, dtype=np.float64) for values in (before, after))
    difference = float(other.mean() - one.mean())
    if min(one.size, other.size) < 2:
        return Interval(difference, math.nan, math.nan)
    shares = [float(values.var(ddof=1)) / values.size for values in (one, other)]
    together = sum(shares)
    if together == 0:
        return Interval(difference, difference, difference)
    spread = sum(share**2 / (values.size - 1) for share, values in zip(shares, (one, other), strict=True))
    # At equal variances the quotient is whole but for rounding.
    freedom = max(math.floor(together**2 / spread + 1e-9), 1)
    half = student_t975(freedom) * math.sqrt(together)
    return Interval(difference, difference - half, difference + half)


def paired(before: Sequence[float], after: Sequence[float]) -> Interval:
    """after - before of repeats that belong together in pairs; pairs of which one is NaN are left out."""
    return over_repeats([b - a for a, b in zip(before, after, strict=True)])


@cache
def student_t975(degrees: int) -> float:
    """The 0.975 quantile of Student's t distribution, by bisection of its closed form for whole degrees of freedom."""
    if degrees < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    low, high = 0.0, 16.0  # t(0.975, 1) = 12.706 is the largest.
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_central(middle, degrees) < 0.95 else (low, middle)
    return (low + high) / 2


def _student_central(t: float, degrees: int) -> float:
    """P(-t < T < t): Abramowitz and Stegun 26.7.3 (odd degrees of freedom) and 26.7.4 (even)."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine2 = math.cos(angle) ** 2
    odd = degrees % 2
    term = math.cos(angle) if odd else 1.0
    total = 0.0
    for k in range(1 + odd, degrees, 2):
        total += term
        term *= cosine2 * k / (k + 1)
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_nan(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
