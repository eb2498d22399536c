"""The data of figures and report from a Run's tables: plain arrays, in units for people.

Times are seconds, sojourn times and RTTs milliseconds, rates Mbit/s (10^6 bit/s). A null in a table
is NaN here and leaves a gap in a line. Nothing is averaged or smoothed. A figure shows the tables'
values. With more points than pixels it shows the least and the largest of every few (`thin`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sojourn.arrays import Floats
from sojourn.digits import counted
from sojourn.judgement import quantities
from sojourn.judgement.quantities import bottleneck as bottleneck
from sojourn.judgement.quantities import bottlenecks as bottlenecks
from sojourn.records import FlowInfo, LinkInfo, Run, RunError


@dataclass(frozen=True)
class Line:
    """One quantity over time."""

    t: Floats
    """Seconds."""
    y: Floats


EMPTY = Line(np.empty(0), np.empty(0))


# --------------------------------------------------------------------------------------- choosing


def probes(run: Run) -> list[str]:
    """Names of the pings."""
    return [flow.name for flow in run.meta.flows if flow.probe]


def answered(run: Run) -> list[str]:
    """Names of the pings; those without any reply come last."""
    if not run.seeds:
        return probes(run)
    table = run.table("probe")
    heard = set(table.filter(pl.col("rtt_ns").is_not_null())["probe"].unique().to_list())
    return sorted(probes(run), key=lambda name: name not in heard)


def carriers(run: Run) -> list[FlowInfo]:
    """The flows that carry data: all except pings."""
    return [flow for flow in run.meta.flows if not flow.probe]


def sampled(run: Run) -> list[str]:
    """Names of flows with RTTs in the `rtt` table. Other flows have one-way delays there."""
    others = {flow.name for flow in run.meta.flows if flow.one_way}
    names = run.table("rtt")["flow"].unique(maintain_order=True).to_list() if run.seeds else []
    return [name for name in names if name not in others]


# -------------------------------------------------------------------------------- lines over time


def queue(run: Run, seed: int, link: str | None) -> pl.DataFrame:
    """The `queue` table of one link; without rows if there is no link."""
    table = run.table("queue", seed)
    return table.clear() if link is None else table.filter(pl.col("link") == link).sort("t_ns")


def column(table: pl.DataFrame, name: str, scale: float = 1.0) -> Line:
    """A column of a table with `t_ns`, over time; NaN where the table has null."""
    y = table[name].cast(pl.Float64).fill_null(np.nan).to_numpy().astype(np.float64) * scale
    return Line(table["t_ns"].to_numpy() / 1e9, y)


def two_queues(table: pl.DataFrame) -> dict[str, Line]:
    """For a discipline with a short queue and a classic one: the waiting time of the oldest packet
    of each, ms; for others nothing."""
    lines = {
        "queue L": column(table, "l4s_delay_ns", 1e-6),
        "queue C": column(table, "classic_delay_ns", 1e-6),
    }
    return {name: line for name, line in lines.items() if np.isfinite(line.y).any()}


def throughput(table: pl.DataFrame) -> Line:
    """Mbit/s that left the queue in each interval, from one link's `queue` table; NaN for intervals
    without counters."""
    sent = table["sent_bytes"]
    line = _rate(table["t_ns"].to_numpy(), np.cumsum(sent.fill_null(0).to_numpy()))
    return Line(line.t, np.where(sent.is_null().to_numpy(), np.nan, line.y))


def goodputs(run: Run, seed: int) -> dict[str, Line]:
    """Mbit/s of each data flow in each interval, from delivered_bytes."""
    table = run.table("flow", seed)
    return {
        name: _rate(
            part["t_ns"].to_numpy(),
            part["delivered_bytes"].to_numpy(),
            since_0=not is_measured(run),
        )
        for name, part in _by_flow(run, table)
    }


WAYS = {"down": "download", "up": "upload"}
"""A measurement's directions, and the names of their loads."""


def by_direction(run: Run, lines: Mapping[str, Line]) -> dict[str, Line]:
    """Lines of a measurement's connections, summed for each direction: "download", "upload", with a
    gap where nothing was sent."""
    summed = {}
    for direction, word in WAYS.items():
        mine = [line for name, line in lines.items() if run.meta.flow(name).direction == direction]
        if mine:
            summed[word] = gaps(total(mine))
    return summed


def gaps(line: Line) -> Line:
    """A line with a gap between samples that are much further apart than usual. So no line is drawn
    through times without measurements."""
    if line.t.size < 3:
        return line
    apart = np.diff(line.t)
    after = np.flatnonzero(apart > 5 * np.median(apart)) + 1
    return Line(
        np.insert(line.t, after, (line.t[after - 1] + line.t[after]) / 2),
        np.insert(line.y, after, np.nan),
    )


def by_way(run: Run, lines: Mapping[str, Line], link: str | None) -> tuple[Line, Line]:
    """Lines of a simulation's flows, summed over those that cross a link, and over the others."""
    crossing = {flow.name for flow in run.meta.flows if link in flow.path}
    here = [line for name, line in lines.items() if name in crossing]
    return total(here), total([line for name, line in lines.items() if name not in crossing])


def above_rate(run: Run, seed: int, link: str | None) -> set[str]:
    """The sums of goodput that exceed, at some time, the most that their links carried in an
    interval: "there" (flows across this link), "back" (all other flows), "goodput" (all flows).
    Empty for a measurement."""
    if is_measured(run):
        return set()
    flows = goodputs(run, seed)
    there, back = by_way(run, flows, link)
    found = {"there": there, "back": back, "goodput": total(list(flows.values()))}
    most = _most_carried(run, seed, link)
    return {
        way
        for way, line in found.items()
        if float(np.nanmax(line.y, initial=0.0)) > 1.02 * most[way]
    }


def _most_carried(run: Run, seed: int, link: str | None) -> dict[str, float]:
    """The most that the links carried in any interval, Mbit/s, summed for each name of
    `above_rate`. Of a flow's path only the slowest sampled link counts. The sum is infinite if a
    flow crosses no sampled link."""
    table = run.table("queue", seed)
    most = {
        str(key[0]): float(
            _rate(ordered["t_ns"].to_numpy(), ordered["sent_bytes"].cum_sum().to_numpy()).y.max()
        )
        for key, part in table.partition_by("link", as_dict=True).items()
        if not (ordered := part.sort("t_ns"))["sent_bytes"].has_nulls()
    }
    found: dict[str, dict[str, float]] = {"there": {}, "back": {}, "goodput": {}}
    for flow in carriers(run):
        least, name = min((most.get(name, math.inf), name) for name in flow.path or ("",))
        for way in ("there" if link in flow.path else "back", "goodput"):
            found[way][name] = least
    return {way: sum(links.values()) for way, links in found.items()}


def ways(runs: Sequence[Run], links: Sequence[str | None]) -> tuple[str, str]:
    """The names for the goodput across the compared links, and for that of all other flows; for
    measurements those of downloads and uploads."""
    found = {
        ("down", "up") if is_measured(run) else quantities.ways(link, run.meta)
        for run, link in zip(runs, links, strict=True)
    }
    here, elsewhere = found.pop() if len(found) == 1 else quantities.NOWHERE
    return f"Goodput {here}", f"Goodput {elsewhere}"


def is_measured(run: Run) -> bool:
    """Whether the Run is a measurement: it has phases, its flows begin and end with them, and it
    has no warm-up."""
    return bool(run.meta.phases)


def spans(run: Run, seed: int) -> list[tuple[str, float, float]]:
    """The phases of one seed: name, begin and end in seconds."""
    return [
        (phase.name, phase.start_ns / 1e9, phase.end_ns / 1e9) for phase in run.meta.phases_of(seed)
    ]


def phase_names(runs: Sequence[Run]) -> list[str]:
    """Names of the phases that any of these Runs has, in order."""
    return list(dict.fromkeys(phase.name for run in runs for phase in run.meta.phases))


def cwnds(run: Run, seed: int) -> dict[str, Line]:
    """cwnd of each TCP flow, kB (1000 bytes). A flow without a known cwnd is left out."""
    table = run.table("flow", seed)
    tcp = {flow.name for flow in run.meta.flows if flow.congestion is not None}
    lines = {
        name: column(part, "cwnd_bytes", 1e-3) for name, part in _by_flow(run, table) if name in tcp
    }
    return {name: line for name, line in lines.items() if np.isfinite(line.y).any()}


def pings(run: Run, seed: int, probe: str) -> Line:
    """RTTs of one probe in ms at the time of sending; NaN if lost."""
    return column(
        run.table("probe", seed).filter(pl.col("probe") == probe).sort("t_ns"), "rtt_ns", 1e-6
    )


def idle_rtt(run: Run, seed: int, probe: str) -> float | None:
    """The RTT of a probe without queues, ms: for a simulation that of its path, for a measurement
    the median of its first idle phase; None: unknown."""
    if is_measured(run):
        idle = next(
            (phase.name for phase in run.meta.phases_of(seed) if phase.kind == "idle"), None
        )
        found = NOTHING if idle is None else ping_rtts(run, probe, idle)
        return found.quantile(0.5) if found.samples else None
    row = run.table("flows", seed).filter(pl.col("flow") == probe)["base_rtt_ns"]
    return row[0] / 1e6 if len(row) and row[0] is not None else None


def one_way_lines(run: Run, seed: int) -> dict[str, Line]:
    """The one-way delays of each flow of datagrams (video, calls), ms: the largest of each sample;
    NaN if none arrived."""
    lines = {
        name: column(part, "delay_max_ns", 1e-6)
        for name, part in _by_flow(run, run.table("flow", seed))
        if run.meta.flow(name).one_way
    }
    return {name: line for name, line in lines.items() if np.isfinite(line.y).any()}


def largest(lines: Sequence[Line]) -> Line:
    """The largest of several lines, at every time that any of them has."""
    if not lines:
        return EMPTY
    times = np.unique(np.concatenate([line.t for line in lines]))
    found = np.full(times.size, np.nan)
    for line in lines:
        at = np.searchsorted(times, line.t)
        found[at] = np.fmax(found[at], line.y)
    return Line(times, found)


def _by_flow(run: Run, table: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    parts = {str(key[0]): part for key, part in table.partition_by("flow", as_dict=True).items()}
    return [
        (flow.name, parts[flow.name].sort("t_ns")) for flow in carriers(run) if flow.name in parts
    ]


def _rate(t_ns: NDArray[np.int64], total_bytes: NDArray[np.int64], *, since_0: bool = True) -> Line:
    if t_ns.size == 0:
        return EMPTY
    # The first interval begins at 0, when nothing had been delivered. For a connection that began
    # later, its first interval is taken to be as long as its second.
    began = 0 if since_0 or t_ns.size < 2 else max(2 * int(t_ns[0]) - int(t_ns[1]), 0)
    before = np.concatenate(([began], t_ns[:-1]))
    took = (t_ns - before) / 1e9
    delivered = np.diff(total_bytes, prepend=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mbps = np.where(took > 0, delivered * 8 / took / 1e6, 0.0)
    return Line(t_ns / 1e9, mbps)


def total(lines: Sequence[Line]) -> Line:
    """The sum of several lines, at every time that any of them has. A missing value counts as 0."""
    if not lines:
        return EMPTY
    times = np.unique(np.concatenate([line.t for line in lines]))
    summed = np.zeros(times.size)
    for line in lines:
        np.add.at(summed, np.searchsorted(times, line.t), np.nan_to_num(line.y))
    return Line(times, summed)


def ceiling(goodput: Line, rate_mbps: float | None = None) -> float | None:
    """A good end for an axis of goodput, Mbit/s; None: the largest value.

    Segments that waited behind a lost one reach the application at once when the hole is filled.
    That makes a peak far above any link's rate, beside which everything else would look flat.
    """
    known = goodput.y[np.isfinite(goodput.y)]
    if known.size == 0:
        return None
    usual = max(float(np.quantile(known, 0.98)), rate_mbps or 0.0)
    return 1.4 * usual if known.max() > 1.6 * usual > 0 else None


PEAKS = "data that waited behind a lost segment is delivered at once"
"""The explanation of the peaks above the ceiling."""
ABOVE_RATE = f"above the link's rate: {PEAKS}"


def quantiles(lines: Sequence[Line], levels: Sequence[float]) -> tuple[Floats, Floats]:
    """Quantiles over several lines at each of their common times: times, and one row for each
    level."""
    times = np.unique(np.concatenate([line.t for line in lines]))
    table = np.full((len(lines), times.size), np.nan)
    for row, line in zip(table, lines, strict=True):
        row[np.searchsorted(times, line.t)] = line.y
    seen = ~np.all(np.isnan(table), axis=0)
    return times[seen], np.nanquantile(table[:, seen], levels, axis=0) if seen.any() else np.empty(
        (len(levels), 0)
    )


# --------------------------------------------------------------------------- a discipline's state


_STATE_WORDS = {
    "limit": "limit",
    "count": "count",
    "probability": "maximum probability",
    "average": "average queue",
    "flows": "flows",
}


@dataclass(frozen=True)
class State:
    """The discipline's own state, to be drawn over its backlog."""

    in_bytes: bool
    """Whether limit, average and thresholds count bytes. The backlog is then shown in kB."""
    same_unit: dict[str, Line]
    """Lines in the backlog's unit, by label."""
    levels: dict[str, float]
    """Constant levels in the backlog's unit: RED's thresholds, a fifo's limit."""
    own: tuple[str, Line] | None
    """A line with a unit of its own: count, flows."""
    estimate: Line | None
    """adt's estimate of the throughput, Mbit/s."""


def state(table: pl.DataFrame, link: LinkInfo) -> State:
    """The discipline's state, from the `queue` table of its link."""
    words = link.qdisc.split()
    kind = words[0] if words else ""
    held = {name: column(table, name) for name in _STATE_WORDS}
    held = {name: line for name, line in held.items() if np.isfinite(line.y).any()}
    estimate = None
    if kind == "adt" and "average" in held:
        average = held.pop("average")
        estimate = Line(average.t, average.y / 1e6)
    in_bytes = counts_bytes(table, kind)
    scale = 1e-3 if in_bytes else 1.0
    same: dict[str, Line] = {}
    levels: dict[str, float] = {}
    for name in ("limit", "average"):
        if name not in held:
            continue
        line = Line(held[name].t, held[name].y * scale)
        finite = line.y[np.isfinite(line.y)]
        if name == "limit" and finite.min() == finite.max():
            levels[name] = float(finite[0])
        else:
            same[_STATE_WORDS[name]] = line
    if kind == "red":
        for threshold in ("min", "max"):
            size = _tc_size(words, threshold)
            if size is not None:
                levels[threshold] = size * scale
    own = next(
        (
            (_STATE_WORDS[name], held[name])
            for name in ("flows", "count", "probability")
            if name in held
        ),
        None,
    )
    if (
        own is not None
        and own[0] == "maximum probability"
        and np.nanmin(own[1].y) == np.nanmax(own[1].y)
    ):
        # RED's max_p is a parameter unless it adapts.
        own = None
    return State(in_bytes, same, levels, own, estimate)


def counts_bytes(table: pl.DataFrame, kind: str) -> bool:
    """Whether the discipline's limit and average are in bytes. They are for bfifo. For RED, which
    may count bytes or packets, the size of the average decides."""
    if kind == "bfifo":
        return True
    if kind != "red":
        return False
    average = table["average"].drop_nulls()
    if average.is_empty() or average.max() == 0:
        return False
    # RED's average follows the backlog, so it is nearer to the backlog in its own unit.
    mean = float(np.asarray(average).mean())
    distance = [
        abs(np.log((mean + 1) / (float(table[name].to_numpy().mean()) + 1)))
        for name in ("backlog_packets", "backlog_bytes")
    ]
    return bool(distance[1] < distance[0])


_SIZES = {"": 1, "b": 1, "p": 1, "k": 1024, "kb": 1024, "m": 1024**2, "mb": 1024**2}


def _tc_size(words: Sequence[str], key: str) -> float | None:
    """The size after `key` in tc's syntax; tc's kb is 1024 bytes."""
    for word, value in pairwise(words):
        match = re.fullmatch(r"([0-9.]+)([a-z]*)", value.lower())
        if word == key and match and match[2] in _SIZES:
            return float(match[1]) * _SIZES[match[2]]
    return None


# ------------------------------------------------------------------------------------------ drops


@dataclass(frozen=True)
class Losses:
    """Drops or marks of one cause."""

    cause: str
    marked: bool
    t: Floats
    """The times, seconds, ascending."""

    @property
    def name(self) -> str:
        """Its label in the figure: "drop: limit"."""
        return f"{'mark' if self.marked else 'drop'}: {self.cause}"


def losses(run: Run, seed: int, link: str | None) -> list[Losses]:
    """Drops and marks on a link by cause, the commonest first."""
    table = run.table("drops", seed).filter(pl.col("link") == (link or ""))
    if table.is_empty():
        return _counted(run, seed, link)
    parts = table.partition_by("cause", "marked", as_dict=True)
    found = [
        Losses(str(key[0]), bool(key[1]), np.sort(part["t_ns"].to_numpy()) / 1e9)
        for key, part in parts.items()
    ]
    return sorted(found, key=lambda one: (one.marked, -one.t.size, one.cause))


def _counted(run: Run, seed: int, link: str | None) -> list[Losses]:
    """Losses from the queue's counters, if single drops were not observed. All losses of
    an interval are drawn at its end."""
    table = queue(run, seed, link)
    t = table["t_ns"].to_numpy() / 1e9
    found = []
    for column_, marked in (("dropped_packets", False), ("marked_packets", True)):
        counts = table[column_].fill_null(0).to_numpy()
        if counts.sum() > 0:
            found.append(Losses("cause not told", marked, np.repeat(t, counts)))
    return found


# ---------------------------------------------------------------------------------- distributions


@dataclass(frozen=True)
class Distribution:
    """A cumulative distribution, pooled over seeds: at least `fraction[i]` of the samples are at
    most `x[i]` ms."""

    x: Floats
    fraction: Floats
    samples: int

    def quantile(self, level: float) -> float:
        """The x that a share `level` of the samples does not exceed."""
        if self.samples == 0:
            return float("nan")
        return float(np.interp(level, self.fraction, self.x))

    def drawn(self, least: float) -> tuple[Floats, Floats]:
        """The curve from fraction 0, with x at least `least`, for a logarithmic axis."""
        return np.maximum(self.x, least), self.fraction


NOTHING = Distribution(np.empty(0), np.empty(0), 0)


def sojourns(run: Run, link: str | None) -> Distribution:
    """Sojourn times on a link, from the histogram."""
    if not run.seeds:
        return NOTHING
    return _binned(run.table("sojourn").filter(pl.col("link") == link), "packets")


def completions(run: Run) -> Distribution:
    """The completion times of transfers that began after the warm-up."""
    if not run.seeds:
        return NOTHING
    table = run.table("transfers").filter(pl.col("start_ns") >= run.meta.warmup_ns)
    return _staircase((table["end_ns"] - table["start_ns"]).to_numpy())


def one_way(run: Run) -> Distribution:
    """One-way delays of the packets of all flows without TCP (video, calls), from the
    histograms."""
    if not run.seeds:
        return NOTHING
    others = {flow.name for flow in carriers(run) if flow.one_way}
    return _binned(run.table("rtt").filter(pl.col("flow").is_in(others)), "samples")


def rtts(run: Run) -> Distribution:
    """TCP's RTT samples of all flows together, from the histograms."""
    if not run.seeds:
        return NOTHING
    return _binned(run.table("rtt").filter(pl.col("flow").is_in(sampled(run))), "samples")


def ping_rtts(run: Run, probe: str | None = None, phase: str | None = None) -> Distribution:
    """RTTs of one probe, or of all, after the warm-up or of one phase. Lost pings are left out.

    A measurement's targets are at different distances, so its default is the first target alone.
    """
    if not run.seeds:
        return NOTHING
    table = run.table("probe").filter(
        pl.col("rtt_ns").is_not_null() & (pl.col("t_ns") >= run.meta.warmup_ns)
    )
    if probe is None and is_measured(run):
        probe = next(iter(answered(run)), None)
    if probe is not None:
        table = table.filter(pl.col("probe") == probe)
    if phase is not None:
        inside = pl.lit(False)
        for one in run.meta.phases:
            if one.name == phase:
                here = (
                    (pl.col("seed") == one.seed)
                    & (pl.col("t_ns") >= one.start_ns)
                    & (pl.col("t_ns") < one.end_ns)
                )
                inside = inside | here
        table = table.filter(inside)
    return _staircase(table["rtt_ns"].to_numpy())


def _staircase(times_ns: NDArray[np.int64]) -> Distribution:
    """The distribution of times: the fraction jumps at each."""
    values = np.sort(times_ns) / 1e6
    if values.size == 0:
        return NOTHING
    fractions = np.arange(values.size + 1) / values.size
    return Distribution(np.repeat(values, 2), np.repeat(fractions, 2)[1:-1], values.size)


def _binned(table: pl.DataFrame, count: str) -> Distribution:
    bins = (
        table.group_by("lower_ns", "upper_ns")
        .agg(pl.col(count).sum())
        .filter(pl.col(count) > 0)
        .sort("lower_ns", "upper_ns")
    )
    if bins.is_empty():
        return NOTHING
    counts = bins[count].to_numpy()
    lower, upper = bins["lower_ns"].to_numpy() / 1e6, bins["upper_ns"].to_numpy() / 1e6
    up_to = np.cumsum(counts) / counts.sum()
    before = np.concatenate(([0.0], up_to[:-1]))
    # Samples are taken to be evenly spread within a bin; between bins the curve is flat.
    x = np.column_stack((lower, upper)).ravel()
    return Distribution(x, np.column_stack((before, up_to)).ravel(), int(counts.sum()))


# --------------------------------------------------------------------------------------- thinning


def thin(line: Line, buckets: int) -> Line:
    """At most two points of each of `buckets` equal spans of time: the least and the largest, in
    their order.

    A column of pixels shows the range of a line in it. That range survives, and with it every
    spike. Means or every n-th point would hide exactly what this laboratory studies. A line with at
    most two points a bucket is returned unchanged. In a thinned line a bucket with a gap keeps one
    NaN.
    """
    n = line.t.size
    if n <= 2 * buckets:
        return line
    first, last = float(line.t[0]), float(line.t[-1])
    span = (last - first) or 1.0
    which = np.minimum(((line.t - first) / span * buckets).astype(np.int64), buckets - 1)
    starts = np.flatnonzero(np.diff(which, prepend=-1))
    gap = np.isnan(line.y)
    kept = np.zeros(n, dtype=bool)
    for fill, extreme in ((np.inf, np.minimum), (-np.inf, np.maximum)):
        y = np.where(gap, fill, line.y)
        best = extreme.reduceat(y, starts)
        of_bucket = np.repeat(best, np.diff(np.append(starts, n)))
        hits = np.flatnonzero((y == of_bucket) & ~gap)
        _, firsts = np.unique(which[hits], return_index=True)
        kept[hits[firsts]] = True
    lost = np.flatnonzero(gap)
    _, firsts = np.unique(which[lost], return_index=True)
    kept[lost[firsts]] = True
    return Line(line.t[kept], line.y[kept])


# ---------------------------------------------------------------------------------------- density


@dataclass(frozen=True)
class Density:
    """Pings in columns of equal time: the quantiles of each column."""

    column_s: float
    t: Floats
    """The beginning of each column, seconds."""
    levels: Floats
    """Quantiles, ascending and symmetric about 0.5."""
    rtt_ms: Floats
    """One row for each level; NaN without a reply."""
    sent: NDArray[np.int64]
    lost: NDArray[np.int64]

    @property
    def median(self) -> Floats:
        """The middle row."""
        return np.asarray(self.rtt_ms[len(self.levels) // 2])


COLUMNS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
DENSITY_LEVELS = np.linspace(0, 1, 11)


def density(line: Line, duration_s: float, most: int = 720) -> Density:
    """Columns of one second, as in the graph by Plenz; longer ones if there would be more than
    `most` columns."""
    width = next((float(s) for s in COLUMNS_S if duration_s / s <= most), duration_s / most)
    columns = max(int(np.ceil(duration_s / width)), 1)
    which = np.minimum((line.t / width).astype(np.int64), columns - 1)
    rtt = np.full((DENSITY_LEVELS.size, columns), np.nan)
    back = np.isfinite(line.y)
    order = np.lexsort((line.y[back], which[back]))
    sorted_rtt, sorted_which = line.y[back][order], which[back][order]
    starts = np.flatnonzero(np.diff(sorted_which, prepend=-1))
    for start, end in pairwise(np.append(starts, sorted_rtt.size)):
        rtt[:, sorted_which[start]] = np.quantile(sorted_rtt[start:end], DENSITY_LEVELS)
    return Density(
        width,
        np.arange(columns, dtype=np.float64) * width,
        DENSITY_LEVELS,
        rtt,
        np.bincount(which, minlength=columns),
        np.bincount(which[~back], minlength=columns),
    )


# ------------------------------------------------------------------------------------------ words


def subtitle(runs: Sequence[Run], seed: int | None = None) -> str:
    """Engine, seeds, length and warm-up, for the line under a figure's title."""
    first = runs[0].meta
    engines = ", ".join(
        dict.fromkeys(f"{run.meta.engine} {run.meta.version}".strip() for run in runs)
    )
    word = "repeat" if all(map(is_measured, runs)) else "seed"
    if seed is not None:
        seeds = f"{word} {seed}"
    else:
        seeds = counted((len(run.seeds) for run in runs), word)
    warmups = {run.meta.warmup_ns for run in runs}
    # A measurement's duration is exact to the nanosecond: round it.
    duration_ns = round(first.duration_ns, -8) if is_measured(runs[0]) else first.duration_ns
    parts = [engines, seeds, f"{seconds(duration_ns)}"]
    if len(warmups) == 1 and first.warmup_ns > 0:
        parts.append(f"the first {seconds(first.warmup_ns)} are warm-up, left out of all totals")
    return " · ".join(parts)


def title(runs: Sequence[Run]) -> str:
    """The scenario in a sentence: its title, with the label if a single Run of a comparison is
    shown."""
    titles = list(dict.fromkeys(run.meta.title for run in runs))
    text = "; ".join(titles[:3]) + (f" and {len(titles) - 3} more" if len(titles) > 3 else "")
    if len(runs) == 1 and runs[0].meta.label and runs[0].meta.label not in text:
        return f"{text}: {runs[0].meta.label}"
    return text


def seconds(ns: int) -> str:
    """A duration for people: "60 s", "90 min"."""
    if ns >= 3600 * 10**9 and ns % (60 * 10**9) == 0:
        return f"{ns // (60 * 10**9)} min"
    return f"{ns / 1e9:g} s"


def check(runs: Sequence[Run]) -> None:
    """Refuses Runs without a finished seed, because there is nothing to draw."""
    if not runs:
        raise RunError("no Run was given", "give at least one folder that `sojourn run -o` wrote")
    for run in runs:
        if not run.seeds:
            raise RunError(f"{run.path}: no seed has finished", "run it again")
