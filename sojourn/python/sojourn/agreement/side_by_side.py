"""Compares simulator and kernel: takes two Summaries of one scenario and returns a row with a
verdict for each number.

A difference is (sim - kernel) / kernel of the means over the seeds. Its 95 % interval is the root
of the sum of the squares of both sides' intervals. A verdict is the first that applies:

    within      no further apart than the tolerance
    step        further, but by no more than the number's own step
    noise       further, but the interval of the difference overlaps the tolerance: more seeds may
                decide
    beyond      none of these, or only one side has the number

A step is the smallest change of a number by one packet or one event. For a percentile it is a
packet's time at the link's rate. For a count (of packets, timeouts or transfers, or a ring's most)
it is 1. For goodput it is a full packet in the measured time. Means and Jain's index have none. A
number that neither side has, or that both count as 0, has no row.

This module uses no engine, no clock and no disk.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

from sojourn.arrays import Json
from sojourn.metrics import Summary, mean_ci95
from sojourn.numbers import (
    GroupNumbers,
    MeanAndInterval,
    OverSeeds,
    Percentiles,
    QueueNumbers,
    Times,
)
from sojourn.traffic import is_greedy, is_kept

TOLERANCE = 0.05
FULL_PACKET_BYTES = 1514
"""A full packet of Linux at a queue; steps of queues are multiples of its time."""
STEP_SLACK = 1.01
"""Histograms have bins, so a step of one packet may appear a little larger."""

NumberVerdict = Literal["within", "step", "noise", "beyond"]
VERDICTS: tuple[NumberVerdict, ...] = get_args(NumberVerdict)


@dataclass(frozen=True)
class Case:
    """The properties of a scenario on which a mechanism may depend."""

    qdisc: str
    """The discipline in tc's syntax."""
    rate_bps: int | None
    congestions: frozenset[str]
    flows: int
    """TCP flows."""
    base_rtt_ms: float
    """The smallest base RTT of the flows."""
    setting: str = ""
    """The kernel's configuration, if there is more than one (`Sides.setting`)."""

    @property
    def kind(self) -> str:
        """The discipline, with options that make another algorithm of it: `red adaptive, awake`."""
        words = self.qdisc.split()
        kind = f"{words[0]} adaptive" if "adaptive" in words else words[0]
        return f"{kind}, {self.setting}" if self.setting else kind

    @property
    def name(self) -> str:
        """`10 red adaptive reno 11 ms x4`: Mbit/s, discipline, congestion control, base RTT,
        flows."""
        rate = "-" if self.rate_bps is None else f"{self.rate_bps / 1e6:g}"
        congestion = "+".join(sorted(self.congestions)) or "-"
        return f"{rate} {self.kind} {congestion} {self.base_rtt_ms:.0f} ms x{self.flows}"

    @property
    def packet_ms(self) -> float:
        """A full packet's time on the wire; 0 where nothing limits the rate."""
        return FULL_PACKET_BYTES * 8e3 / self.rate_bps if self.rate_bps else 0.0


@dataclass(frozen=True)
class NumberRow:
    """One number on both sides."""

    place: str
    """A queue's link; the name of a ping or group of flows; "" for all flows."""
    metric: str
    unit: str
    sim: float
    sim_ci95: float
    kernel: float
    kernel_ci95: float
    difference: float
    """(sim - kernel) / kernel; infinite if only the kernel's is 0, NaN if a side was not
    measured."""
    ci95: float
    """Half the width of its interval; NaN with one seed."""
    verdict: NumberVerdict


@dataclass(frozen=True)
class Comparison:
    """One scenario on both sides."""

    title: str
    label: str
    case: Case
    seeds: int
    samples: int
    """Samples of the side that has more: 1 if all seeds of both sides gave the same
    (`Summary.samples`)."""
    rows: tuple[NumberRow, ...]

    @property
    def agrees(self) -> bool:
        """Whether no number is beyond the tolerance."""
        return all(row.verdict != "beyond" for row in self.rows)

    @property
    def decided(self) -> bool:
        """Whether every number is within the tolerance or a step beyond it, so that more seeds are
        not needed."""
        return all(row.verdict in ("within", "step") for row in self.rows)

    @property
    def scatters(self) -> bool:
        """Whether seeds differ on a side. If nothing is random, all seeds are one sample."""
        return self.samples > 1

    def to_dict(self) -> Json:
        """One object of plain values; NaN and infinity become None."""
        case = {
            "name": self.case.name,
            **asdict(self.case),
            "congestions": sorted(self.case.congestions),
            "base_rtt_ms": _finite(self.case.base_rtt_ms),
        }
        rows = [{key: _finite(value) for key, value in asdict(row).items()} for row in self.rows]
        scenario = {"title": self.title, "label": self.label, "case": case, "seeds": self.seeds}
        return {**scenario, "agrees": self.agrees, "rows": rows}


# -------------------------------------------------------------------------------------- comparing


def compare(
    sim: Summary,
    kernel: Summary,
    rates: Mapping[str, int | None],
    *,
    tolerance: float = TOLERANCE,
    setting: str = "",
) -> Comparison:
    """Compares every number that both sides should share. `rates`: bit/s of each link, None if it
    has no limit. `setting`: see `Sides`.

    Raises:
        ValueError: the Summaries are of different scenarios.
    """
    a, b = sim.summary, kernel.summary
    for part in ("queues", "flows", "groups", "probes"):
        names = [[entry.get("link", entry.get("name")) for entry in side[part]] for side in (a, b)]
        if names[0] != names[1]:
            raise ValueError(f"two scenarios: their {part} are {names[0]} and {names[1]}")
    tcp = [flow for flow in a["flows"] if flow["congestion"] is not None]
    places = _congested(a, b)

    def case(place: int) -> Case:
        # The kernel's discipline; where a mechanism applies, the simulator ran another.
        queue = b["queues"][place]
        return Case(
            qdisc=queue["qdisc"],
            rate_bps=rates[queue["link"]],
            congestions=frozenset(flow["congestion"] or "" for flow in tcp),
            flows=len(tcp),
            base_rtt_ms=min((flow["base_rtt_ms"]["mean"] for flow in tcp), default=math.nan),
            setting=setting,
        )

    measures = _measures(sim, kernel, {place: case(place).packet_ms for place in places})
    rows = tuple(row for measure in measures if (row := _judged(measure, tolerance)) is not None)
    samples = max(sim.samples, kernel.samples)
    return Comparison(kernel.title, kernel.label, case(places[0]), len(sim.seeds), samples, rows)


def _congested(a: OverSeeds, b: OverSeeds) -> list[int]:
    """Positions of the links under study: the one with the longest queue, and every other link that
    dropped, marked or lost packets."""

    def waited(place: int) -> float:
        return sum(_number(side["queues"][place]["backlog_packets"]["mean"]) for side in (a, b))

    def refused(place: int) -> float:
        queues = [side["queues"][place] for side in (a, b)]
        counts = [
            (queue["dropped_packets"], queue["marked_packets"], queue["lost_packets"])
            for queue in queues
        ]
        return sum(_number(count) for each in counts for count in each)

    everywhere = range(len(a["queues"]))
    busiest = max(everywhere, key=waited)
    return [busiest, *(place for place in everywhere if place != busiest and refused(place) > 0)]


_OF_TCP: tuple[Literal["retransmits"], Literal["timeouts"]] = ("retransmits", "timeouts")
_Times = Times[MeanAndInterval[float]] | Percentiles[MeanAndInterval[float]]
_NONE: MeanAndInterval[float] = {"mean": math.nan, "ci95": math.nan}


@dataclass(frozen=True)
class _Measure:
    """A number of both sides, before it is judged."""

    place: str
    metric: str
    unit: str
    step: float
    """In `unit`."""
    sim: MeanAndInterval[float]
    kernel: MeanAndInterval[float]
    counted: bool = False
    """Whether it is a count: 0 on both sides means that there was nothing to count."""


def _measures(sim: Summary, kernel: Summary, packet_ms: Mapping[int, float]) -> Iterator[_Measure]:
    """The numbers to compare. `packet_ms`: packet times of the links under study, by position, the
    busiest first."""
    a, b = sim.summary, kernel.summary
    first = next(iter(packet_ms.values()))
    packet_mbps = FULL_PACKET_BYTES * 8 / 1e6 / (sim.duration_s - sim.warmup_s)
    yield _Measure("", "goodput", "Mbit/s", packet_mbps, a["goodput_mbps"], b["goodput_mbps"])
    yield from _shares(a, b, packet_mbps)
    for place, step_ms in packet_ms.items():
        yield from _of_queue(a["queues"][place], b["queues"][place], step_ms)
    for one, other in zip(a["probes"], b["probes"], strict=True):
        yield from _times(one["name"], "ping", one["rtt_ms"], other["rtt_ms"], first)
    for group, counterpart in zip(a["groups"], b["groups"], strict=True):
        yield from _transfers(group, counterpart, first)
    if any(flow["congestion"] is not None for flow in a["flows"]):
        for key in _OF_TCP:
            yield _count("", key, _of_tcp(sim, key), _of_tcp(kernel, key))
    yield from _flow_rtts(sim, kernel)


def _shares(a: OverSeeds, b: OverSeeds, packet_mbps: float) -> Iterator[_Measure]:
    """The shares of flows: the goodput of each [[flow]] entry if there are several, and Jain's
    index if endless TCP flows share."""
    if len(a["groups"]) > 1:
        for one, other in zip(a["groups"], b["groups"], strict=True):
            numbers = (one["goodput_mbps"], other["goodput_mbps"])
            yield _Measure(one["name"], "group goodput", "Mbit/s", packet_mbps, *numbers)
    if sum(is_greedy(flow["kind"]) and flow["congestion"] is not None for flow in a["flows"]) > 1:
        yield _Measure("", "jain", "", 0.0, a["jain"], b["jain"])


def _of_queue(
    one: QueueNumbers[MeanAndInterval[float]],
    other: QueueNumbers[MeanAndInterval[float]],
    packet_ms: float,
) -> Iterator[_Measure]:
    """The numbers of one link: its discipline, its wire, and its ring if it has one."""
    link = one["link"]
    yield _Measure(link, "utilisation", "", 0.0, one["utilisation"], other["utilisation"])
    yield from _times(link, "sojourn", one["sojourn_ms"], other["sojourn_ms"], packet_ms)
    yield _count(link, "drops", one["dropped_packets"], other["dropped_packets"])
    yield _count(link, "marks", one["marked_packets"], other["marked_packets"])
    yield _count(link, "wire losses", one["lost_packets"], other["lost_packets"])
    ours, theirs = (side["ring"]["packets"] if side["ring"] else None for side in (one, other))
    if ours or theirs:
        ours, theirs = (each or {"mean": _NONE, "max": _NONE} for each in (ours, theirs))
        yield _Measure(link, "ring mean", "packets", 0.0, ours["mean"], theirs["mean"])
        yield _Measure(link, "ring max", "packets", 1.0, ours["max"], theirs["max"])


def _times(
    place: str, what: str, one: _Times, other: _Times, packet_ms: float
) -> Iterator[_Measure]:
    yield _Measure(place, f"{what} mean", "ms", 0.0, one["mean"], other["mean"])
    yield _Measure(place, f"{what} p50", "ms", packet_ms, one["p50"], other["p50"])
    yield _Measure(place, f"{what} p95", "ms", packet_ms, one["p95"], other["p95"])
    yield _Measure(place, f"{what} p99", "ms", packet_ms, one["p99"], other["p99"])


def _transfers(
    one: GroupNumbers[MeanAndInterval[float]],
    other: GroupNumbers[MeanAndInterval[float]],
    packet_ms: float,
) -> Iterator[_Measure]:
    """The number of completed transfers of a group, and their times."""
    if "transfers" not in one:
        return
    place, ours, theirs = one["name"], one["transfers"], other["transfers"]
    yield _count(place, "transfers", ours["completed"], theirs["completed"])
    took, theirs_took = ours["completion_ms"], theirs["completion_ms"]
    yield _Measure(place, "completion mean", "ms", 0.0, took["mean"], theirs_took["mean"])
    yield _Measure(place, "completion p95", "ms", packet_ms, took["p95"], theirs_took["p95"])
    if is_kept(one["kind"]):
        yield _Measure(place, "completion p50", "ms", packet_ms, took["p50"], theirs_took["p50"])
        yield _Measure(place, "completion p99", "ms", packet_ms, took["p99"], theirs_took["p99"])


def _count(
    place: str, metric: str, one: MeanAndInterval[float], other: MeanAndInterval[float]
) -> _Measure:
    return _Measure(place, metric, "", 1.0, one, other, counted=True)


def _of_tcp(side: Summary, key: Literal["retransmits", "timeouts"]) -> MeanAndInterval[float]:
    """A count over all TCP flows together."""
    return mean_ci95(
        sum(flow[key] for flow in run["flows"] if flow["congestion"] is not None)
        for run in side.sampled
    )


def _flow_rtts(sim: Summary, kernel: Summary) -> Iterator[_Measure]:
    """Means over TCP's RTT samples and over the flows of each congestion control."""

    def mean(side: Summary, control: str | None) -> MeanAndInterval[float]:
        known = (
            [f["rtt_ms"]["mean"] for f in run["flows"] if f["congestion"] == control]
            for run in side.sampled
        )
        return mean_ci95(math.fsum(values) / len(values) for values in known)

    for control in dict.fromkeys(flow["congestion"] for flow in sim.summary["flows"]):
        if control is None:
            continue
        theirs = mean(kernel, control)
        # A kernel that reports its smoothed RTT only (the guest `qemu`, `netns`) has no samples.
        if not math.isnan(theirs["mean"]):
            yield _Measure(control, "flow rtt", "ms", 0.0, mean(sim, control), theirs)


def _judged(measure: _Measure, tolerance: float) -> NumberRow | None:
    """The row of a number; None if neither side has it."""
    sim, kernel = measure.sim["mean"], measure.kernel["mean"]
    if (math.isnan(sim) and math.isnan(kernel)) or (measure.counted and sim == kernel == 0):
        return None
    apart = abs(sim - kernel)
    # If all seeds of a side give the same, that side adds nothing to the interval.
    halves = [
        each["ci95"] for each in (measure.sim, measure.kernel) if not math.isnan(each["ci95"])
    ]
    half = math.hypot(*halves) if halves else math.nan
    verdict: NumberVerdict = "beyond"
    if apart <= tolerance * abs(kernel):
        verdict = "within"
    elif apart <= measure.step * STEP_SLACK:
        verdict = "step"
    elif apart - half <= tolerance * abs(kernel):
        verdict = "noise"
    return NumberRow(
        place=measure.place,
        metric=measure.metric,
        unit=measure.unit,
        sim=sim,
        sim_ci95=measure.sim["ci95"],
        kernel=kernel,
        kernel_ci95=measure.kernel["ci95"],
        difference=_ratio(sim - kernel, kernel),
        ci95=_ratio(half, abs(kernel)),
        verdict=verdict,
    )


def _ratio(part: float, total: float) -> float:
    if math.isnan(part) or math.isnan(total):
        return math.nan
    if total == 0:
        return 0.0 if part == 0 else math.copysign(math.inf, part)
    return part / total


def _number(entry: MeanAndInterval[float]) -> float:
    mean: float = entry["mean"]
    return 0.0 if math.isnan(mean) else mean


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ----------------------------------------------------------------------------------- many of them


@dataclass(frozen=True)
class Digest:
    """One number over many scenarios."""

    group: str
    metric: str
    verdicts: Mapping[NumberVerdict, int]
    median: float
    """Median of the absolute differences."""
    worst: float
    """The largest difference, with its sign. If some differences are neither a step nor noise, it
    is the largest of these."""
    worst_case: str

    def to_dict(self) -> Json:
        """One object of plain values."""
        return {
            **{key: _finite(value) for key, value in asdict(self).items()},
            "verdicts": dict(self.verdicts),
        }


def digest(
    comparisons: Sequence[Comparison],
    group: Callable[[Comparison], str] = lambda one: one.case.kind,
) -> list[Digest]:
    """The agreement of each number, in groups (by default one for each queue discipline), in order
    of first appearance."""
    found: dict[tuple[str, str], list[tuple[NumberRow, Comparison]]] = {}
    for one in comparisons:
        for row in one.rows:
            found.setdefault((group(one), row.metric), []).append((row, one))
    return [_digested(name, metric, entries) for (name, metric), entries in found.items()]


def verdicts(comparisons: Sequence[Comparison]) -> dict[NumberVerdict, int]:
    """The count of each verdict."""
    counts: dict[NumberVerdict, int] = dict.fromkeys(VERDICTS, 0)
    for one in comparisons:
        for row in one.rows:
            counts[row.verdict] += 1
    return counts


def _digested(name: str, metric: str, entries: Sequence[tuple[NumberRow, Comparison]]) -> Digest:
    def size(entry: tuple[NumberRow, Comparison]) -> float:
        return -1.0 if math.isnan(entry[0].difference) else abs(entry[0].difference)

    counts: dict[NumberVerdict, int] = dict.fromkeys(VERDICTS, 0)
    for row, _ in entries:
        counts[row.verdict] += 1
    decisive = [entry for entry in entries if entry[0].verdict in ("within", "beyond")] or entries
    row, case = max(decisive, key=size)
    known = [size(entry) for entry in entries if not math.isnan(entry[0].difference)]
    middle = statistics.median(known) if known else math.nan
    return Digest(name, metric, counts, middle, row.difference, case.label or case.title)
