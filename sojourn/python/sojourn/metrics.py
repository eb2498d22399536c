"""Numbers from tables: the Summary of a Run, and the formulas. crates/metrics computes them; this
module adds the types.

The warm-up is always left out: the engine's totals and histograms exclude it, and time lines are
cut at its end. T is the duration without the warm-up. Rates are fractions (0..1), times ms, goodput
Mbit/s (10^6). An unknown number (no sample, no rate limit) is NaN here and null in JSON.

    utilisation   bits on the wire / bits the link could have carried in T
    goodput       bytes delivered to the receiving application in T, times 8, / T
    sojourn       mean: sum / packets, exact to a double. p50, p95, p99: from the histogram, linear inside a bin. max: exact.
                  Of the ring: the time from the queue discipline to the last bit on the wire
    drop_rate     dropped / arrived packets, at the queue
    loss_rate     losses at the endpoints: lost / (lost + received) packets, without packets still under way; a ping
                  counts as received if its reply is received
    jain          (sum x)^2 / (n sum x^2) over the goodput x of the endless TCP flows (Jain, Chiu, Hawe 1984)
    late_rate     datagrams that arrived more than LATE_MS after they were sent, or never / all datagrams
    mean, ci95    over seeds: mean, and half the width of its 95 % confidence interval, t(0.975, n-1) s / sqrt(n)

Seeds are samples only if chance makes them differ. If nothing in a scenario is random, the tables
of all its seeds are equal. Then they are one sample (`Summary.samples`), and one sample has no
interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast, overload

from sojourn import _core, hypertext
from sojourn.digits import with_interval
from sojourn.records import Meta, Names, Run, RunError, columns

# These imports are slow, and the summary of a Run that was just made does not need them.
if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from sojourn.arrays import Json
    from sojourn.numbers import MeanAndInterval, OverSeeds, SeedNumbers

    Integers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

LATE_MS = _core.LATE_MS
"""The bound of one-way delay above which a packet counts as late. A shorter delay hardly impairs a
call (ITU-T G.114, 2003), and the playout does not wait for later packets."""
NEEDED = ("links", "flows", "sojourn", "rtt", "probe", "drops", "transfers", "engine")
"""The tables from which numbers are computed."""
RANDOM_START = 'start = "uniform 0 s .. 1 s"'
"""The setting of a [[flow]] that makes seeds differ if nothing else in the scenario is random."""


@dataclass(frozen=True)
class Summary:
    """The output of `sojourn run --json`: the scenario, the numbers of each seed, and those over
    the seeds."""

    engine: str
    version: str
    title: str
    label: str
    duration_s: float
    warmup_s: float
    seeds: tuple[int, ...]
    fingerprint: str
    runs: list[SeedNumbers]
    """The numbers of each seed."""
    summary: OverSeeds
    """The same shape, with {mean, ci95} over the samples for each number; ci95 is NaN for one
    sample."""
    samples: int
    """The number of different seeds: all of them, or 1 if they have the same tables."""
    invalid: tuple[str, ...] = ()
    """Why the numbers must not be used; empty: no reason is known."""
    engine_build: str | None = None
    """The build of the engine; None: not recorded."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """For a variant of a sweep: each key that varies, with its value."""

    @property
    def sampled(self) -> list[SeedNumbers]:
        """The runs that are samples: one per seed, or the first if all are the same."""
        return self.runs[: self.samples]

    def _repr_html_(self) -> str:
        """For a notebook: the numbers of queues, flows and probes over the seeds."""
        numbers = self.summary
        queues = [
            [
                each["link"],
                each["qdisc"],
                _text(each["utilisation"], 100),
                _text(each["goodput_mbps"]),
            ]
            + [_text(each["sojourn_ms"][name]) for name in ("mean", "p95", "p99")]
            + [_text(each["dropped_packets"])]
            for each in numbers["queues"]
        ]
        groups = [
            [each["name"], each["kind"], each["congestion"] or "", _text(each["goodput_mbps"])]
            for each in numbers["groups"]
        ]
        probes = [
            [each["name"], _text(each["loss_rate"], 100)]
            + [_text(each["rtt_ms"][name]) for name in ("mean", "p50", "p95")]
            for each in numbers["probes"]
        ]
        head = ["link", "qdisc", "util %", "goodput Mbit/s"]
        head += ["sojourn mean ms", "p95 ms", "p99 ms", "dropped"]
        seeds = f"{len(self.seeds)} {'seed' if len(self.seeds) == 1 else 'seeds'}"
        refused = "; ".join(self.invalid)
        parts = [
            hypertext.lines(
                self.title,
                self.label,
                f"{self.engine} {self.version}; {self.duration_s:g} s, {self.warmup_s:g} s warm-up left out;"
                f" {seeds}" + (", mean ± half the 95 % interval" if self.samples > 1 else ""),
                f"INVALID: the numbers must not be used: {refused}" if refused else "",
            ),
            hypertext.table(head, queues),
        ]
        if groups:
            parts.append(hypertext.table(["flows", "kind", "TCP", "goodput Mbit/s"], groups))
        if probes:
            parts.append(hypertext.table(["ping", "loss %", "mean ms", "p50 ms", "p95 ms"], probes))
        return "".join(parts)

    def to_dict(self) -> Json:
        """One object of plain values; NaN becomes None."""
        return {
            "engine": self.engine,
            "version": self.version,
            "engine_build": self.engine_build,
            "title": self.title,
            "label": self.label,
            "settings": dict(self.settings),
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
    """The numbers of a Run, or of each of several Runs.

    >>> import sojourn
    >>> run = sojourn.run(sojourn.load("home-uplink").with_(duration="3 s", warmup="1 s"), seeds=2)
    >>> numbers = sojourn.summary(run)
    >>> sorted(numbers.summary["probes"][0]["rtt_ms"]["p95"])
    ['ci95', 'mean']
    """
    if not isinstance(run, Run):
        return [summary(each) for each in run]
    runs, alike = _kept(run) if set(run.seeds) <= set(run.numbers) else _read(run)
    return of_seeds(run.meta, runs, alike)


def _kept(run: Run) -> tuple[list[SeedNumbers], bool]:
    """The numbers of each seed from this process's memory, and whether all tables are equal. The
    checksums show that the tables have not changed since."""
    run.check_sums(NEEDED)
    sums = [[run.sums(seed)[name] for name in NEEDED] for seed in run.seeds]
    runs = [plain(run.meta, seed, run.numbers[seed]) for seed in run.seeds]
    return runs, all(each == sums[0] for each in sums)


def _read(run: Run) -> tuple[list[SeedNumbers], bool]:
    """As `_kept`, from the tables on disk."""
    first: dict[str, pl.DataFrame] = {}
    runs = []
    alike = True
    for seed in run.seeds:
        tables = {name: run.table(name, seed) for name in NEEDED}
        first = first or tables
        alike = alike and all(tables[name].equals(first[name]) for name in NEEDED)
        found = _numbers(run.meta, seed, tables)
        runs.append(plain(run.meta, seed, found))
        # Without sums a later change of the tables could not be detected.
        if run.meta.format > 1:
            run.numbers[seed] = found
    return runs, alike


def of_seeds(meta: Meta, runs: list[SeedNumbers], alike: bool) -> Summary:
    """The Summary from the numbers of the seeds. `alike`: the tables of all seeds are equal."""
    samples = min(1, len(runs)) if alike else len(runs)
    return Summary(
        engine=meta.engine,
        version=meta.version,
        title=meta.title,
        label=meta.label,
        duration_s=meta.duration_ns / 1e9,
        warmup_s=meta.warmup_ns / 1e9,
        seeds=meta.seeds,
        fingerprint=meta.fingerprint,
        runs=runs,
        summary=over_seeds(runs[:samples]) if runs else cast("OverSeeds", {}),
        samples=samples,
        invalid=meta.invalid,
        engine_build=meta.engine_build,
        settings=meta.settings,
    )


def seed_summary(meta: Meta, seed: int, tables: Mapping[str, pl.DataFrame]) -> SeedNumbers:
    """The numbers of one seed, from the tables in `NEEDED`.

    Raises:
        RunError: a value is null although its column does not allow nulls.
    """
    return plain(meta, seed, _numbers(meta, seed, tables))


def _numbers(meta: Meta, seed: int, tables: Mapping[str, pl.DataFrame]) -> _core.Numbers:
    causes = sorted(set(tables["drops"]["cause"].to_list()))
    names = Names([link.name for link in meta.links], [flow.name for flow in meta.flows], causes)
    given = {name: columns(name, tables[name], names) for name in NEEDED}
    try:
        return _core.SeedTables(given).numbers(about(meta, causes))
    except ValueError as error:
        raise RunError(f"seed {seed}: {error}", "the Run is damaged: run it again") from None


def _text(number: MeanAndInterval[float], times: float = 1) -> str:
    """A number with its interval; "–" if unknown."""
    mean, half = (times * number["mean"], times * number["ci95"])
    return "–" if math.isnan(mean) else with_interval(mean, half)


def plain(meta: Meta, seed: int, found: _core.Numbers) -> SeedNumbers:
    """The numbers of one seed as plain values, from those in the core's memory."""
    whole = {"seed": seed, **found.plain(), "cpu_s": meta.cpu_s[str(seed)]}
    return cast("SeedNumbers", whole)


def about(meta: Meta, causes: Sequence[str]) -> str:
    """The description of the Run that the core needs for its numbers, as JSON."""
    links = {link.name: number for number, link in enumerate(meta.links)}
    whole = {
        "duration_ns": meta.duration_ns,
        "warmup_ns": meta.warmup_ns,
        "links": [{"name": link.name, "qdisc": link.qdisc} for link in meta.links],
        "flows": [
            {
                "name": flow.name,
                "kind": flow.kind,
                "congestion": flow.congestion,
                "group": flow.group,
                "path": [links[name] for name in flow.path],
                "finite": flow.finite,
            }
            for flow in meta.flows
        ],
        "causes": list(causes),
    }
    return json.dumps(whole)


# --------------------------------------------------------------------------------------- formulas


def ratio(part: float, whole: float) -> float:
    """part / whole; NaN if whole is 0."""
    return part / whole if whole else math.nan


def utilisation(wire_bytes: int, capacity_bits: float | None) -> float:
    """Bits on the wire over the bits that the link could have carried, at most 1; NaN for a link
    without a rate limit."""
    return _core.utilisation(wire_bytes, capacity_bits)


def mean_rates(run: Run) -> dict[str, float]:
    """The mean rate of each link whose rate varies, over the measured time of all seeds, bit/s.
    `LinkInfo.rate_bps` is the rate at the start."""
    links = run.table("links").select("link", "capacity_bits", "measured_ns").drop_nulls()
    carried: dict[str, float] = {}
    measured: dict[str, float] = {}
    for link, bits, ns in links.iter_rows():
        carried[link] = carried.get(link, 0.0) + bits
        measured[link] = measured.get(link, 0.0) + ns / 1e9
    means = {link: bits / measured[link] for link, bits in carried.items() if measured[link]}
    first = {link.name: link.rate_bps or math.inf for link in run.meta.links}
    return {
        link: mean
        for link, mean in means.items()
        if not math.isclose(first[link], mean, rel_tol=1e-3)
    }


def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index: 1 if all shares are equal, 1/n if one has everything; NaN without
    shares."""
    return _core.jain([float(share) for share in shares])


def histogram_quantile(histogram: pl.DataFrame, counts: str, q: float) -> float:
    """The q-quantile of a histogram with columns lower_ns, upper_ns and `counts`, linear inside a
    bin; NaN if empty.

    For example, let the bins 0..10 and 10..30 ns have 3 and 1 samples. Then 2 of the 4 samples are
    below the median, which is 0 + 10 * 2/3.
    """
    return _core.histogram_quantile(*_bins(histogram, counts), q)


def late_rate(histogram: pl.DataFrame | None, lost: float, bound_ms: float = LATE_MS) -> float:
    """The share of packets that took longer than the bound, linear inside a bin, or were lost; NaN
    without packets.

    For example, of 90 packets that took 100 to 200 ms and 10 lost ones, 45 + 10 are late: 0.55.
    """
    import numpy as np

    none = np.empty(0, dtype=np.int64)
    lower, upper, counts = (none, none, none) if histogram is None else _bins(histogram, "samples")
    return _core.late_rate(lower, upper, counts, lost, bound_ms)


def _bins(histogram: pl.DataFrame, counts: str) -> tuple[Integers, Integers, Integers]:
    import polars as pl

    lower, upper, counted = (
        histogram[name].cast(pl.Int64).to_numpy() for name in ("lower_ns", "upper_ns", counts)
    )
    return lower, upper, counted


def distribution(values: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
    """min, mean, p50, p95, p99 and max of samples (quantiles linear between samples); NaN without
    samples."""
    return _core.distribution(values)


# ------------------------------------------------------------------------------------- over seeds


def over_seeds(runs: Sequence[SeedNumbers]) -> OverSeeds:
    """The seeds' numbers in the same shape, each as {mean, ci95}. Entries of lists are matched by
    position."""
    return cast(
        "OverSeeds",
        _core.over_seeds(
            [{key: value for key, value in run.items() if key != "seed"} for run in runs]
        ),
    )


def mean_ci95(values: Iterable[float]) -> MeanAndInterval[float]:
    """The mean and half the width of its 95 % confidence interval (Student's t), without NaN
    values.

    For example, 3, 4, 5 have the mean 4, s = 1 and t(0.975, 2) = 4.303, so ci95 = 4.303 / sqrt(3) =
    2.484.
    """
    mean, ci95 = _core.mean_ci95([float(value) for value in values])
    return {"mean": mean, "ci95": ci95}


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval (NaN: unknown)."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0


def over_repeats(values: Sequence[float]) -> Interval:
    """The mean of repeats with Student's t interval. Repeats 3, 4 and 5 give 4, from 1.516 to
    6.484."""
    found = mean_ci95(values)
    return Interval(found["mean"], found["mean"] - found["ci95"], found["mean"] + found["ci95"])


def welch(before: Sequence[float], after: Sequence[float]) -> Interval:
    """after - before of independent repeats: Welch's interval, its degrees of freedom rounded down.

    For example, 1, 2, 3 before and 11, 12, 13 after give 10. Both variances are 1, so the standard
    error is sqrt(2/3), there are 4 degrees of freedom, and the ends are 10 ± 2.776 * 0.8165.
    """
    return Interval(
        *_core.welch([float(value) for value in before], [float(value) for value in after])
    )


def paired(before: Sequence[float], after: Sequence[float]) -> Interval:
    """after - before of paired repeats; a pair with a NaN is left out."""
    return over_repeats([b - a for a, b in zip(before, after, strict=True)])


def student_t975(degrees: int) -> float:
    """The 0.975 quantile of Student's t distribution for whole degrees of freedom.

    Raises:
        ValueError: `degrees` is less than one.
    """
    if degrees < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    return _core.student_t975(degrees)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_without_nan(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
