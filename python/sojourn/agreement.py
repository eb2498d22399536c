"""Simulator and kernel side by side: two Summaries of one scenario in, a row for each number out, with a verdict.

A difference is (sim - kernel) / kernel of the means over the seeds; its 95 % interval is the root of the sum of the squares of both
sides' intervals. A row is the first of these that holds:

    within      no further apart than the tolerance
    step        further, but by no more than the queue's own step: one packet's time for a percentile, one packet for a count
    noise       further, but the interval of the difference reaches into the tolerance: more seeds would tell
    explained   further, and a mechanism is known to make it: in such cases, of this number, of this sign, no larger
    beyond      none of these, or only one side has the number

Pure: no engine, no clock, no disk.
"""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args

from sojourn.metrics import Numbers, Summary, mean_ci95

TOLERANCE = 0.05
FULL_PACKET_BYTES = 1514
"""Of Linux at a queue; what a queue's steps are counted in."""
STEP_SLACK = 1.01
"""Histograms have bins: a step of one packet may read as a little more."""

Verdict = Literal["within", "step", "noise", "explained", "beyond"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Case:
    """What of a scenario a mechanism may depend on."""

    qdisc: str
    """In tc's words."""
    rate_bps: int | None
    congestions: frozenset[str]
    flows: int
    """TCP's."""
    base_rtt_ms: float
    """The least among them."""

    @property
    def kind(self) -> str:
        """The discipline, with what makes another algorithm of it: `red adaptive`."""
        words = self.qdisc.split()
        return f"{words[0]} adaptive" if "adaptive" in words else words[0]

    @property
    def name(self) -> str:
        """`10 red adaptive reno 11 ms x4`: Mbit/s, discipline, congestion control, base RTT, flows."""
        rate = "-" if self.rate_bps is None else f"{self.rate_bps / 1e6:g}"
        congestion = "+".join(sorted(self.congestions)) or "-"
        return f"{rate} {self.kind} {congestion} {self.base_rtt_ms:.0f} ms x{self.flows}"

    @property
    def packet_ms(self) -> float:
        """A full packet's time on the wire; 0 where nothing limits the rate."""
        return FULL_PACKET_BYTES * 8e3 / self.rate_bps if self.rate_bps else 0.0


@dataclass(frozen=True)
class Where:
    """Cases in which a mechanism was shown to act, and what it does there."""

    cases: tuple[str, ...]
    """Patterns of `Case.name`: `10 codel * 11 ms x16`."""
    numbers: Mapping[str, tuple[float, float]]
    """Metric: from where to where the difference may be."""


@dataclass(frozen=True)
class Explanation:
    """A mechanism that is known, by experiment, to make simulator and kernel differ."""

    name: str
    mechanism: str
    evidence: str
    """The experiment that showed it."""
    where: tuple[Where, ...]

    def covers(self, case: Case, metric: str, difference: float) -> bool:
        """Whether it makes such a difference in such a case."""
        for place in self.where:
            low, high = place.numbers.get(metric, (math.inf, -math.inf))
            if low <= difference <= high and any(fnmatchcase(case.name, each) for each in place.cases):
                return True
        return False


def explanations(text: str) -> tuple[Explanation, ...]:
    """Those of a file like standing/explained.toml."""
    return tuple(
        Explanation(
            name=entry["name"],
            mechanism=entry["mechanism"],
            evidence=entry["evidence"],
            where=tuple(
                Where(
                    tuple(place["cases"]),
                    {metric: (float(low), float(high)) for metric, (low, high) in place["numbers"].items()},
                )
                for place in entry["where"]
            ),
        )
        for entry in tomllib.loads(text)["explanation"]
    )


@dataclass(frozen=True)
class Row:
    """One number on both sides."""

    place: str
    """Of a queue its link; of pings their name; of all flows nothing."""
    metric: str
    unit: str
    sim: float
    sim_ci95: float
    kernel: float
    kernel_ci95: float
    difference: float
    """(sim - kernel) / kernel; infinite where only the kernel has none, NaN where a side was not measured."""
    ci95: float
    """Half the width of its interval; NaN with one seed."""
    verdict: Verdict
    explanation: str | None = None
    """Its name."""


@dataclass(frozen=True)
class Comparison:
    """One scenario on both sides."""

    title: str
    label: str
    case: Case
    seeds: int
    samples: int
    """Of the side that has more: 1 where the seeds of both gave the same (`Summary.samples`)."""
    rows: tuple[Row, ...]

    @property
    def agrees(self) -> bool:
        """Every number is within the tolerance, or its difference is explained."""
        return all(row.verdict != "beyond" for row in self.rows)

    @property
    def scatters(self) -> bool:
        """Seeds differ on some side. Where nothing is drawn at random they do not, and are one sample."""
        return self.samples > 1

    def to_dict(self) -> Numbers:
        """As one object of plain values; what is not a number becomes None."""
        case = {
            "name": self.case.name,
            **asdict(self.case),
            "congestions": sorted(self.case.congestions),
            "base_rtt_ms": _finite(self.case.base_rtt_ms),
        }
        rows = [{key: _finite(value) for key, value in asdict(row).items()} for row in self.rows]
        whole = {"title": self.title, "label": self.label, "case": case, "seeds": self.seeds}
        return {**whole, "agrees": self.agrees, "rows": rows}


# ------------------------------------------------------------------------------------------------------ comparing


def compare(
    sim: Summary,
    kernel: Summary,
    rates: Mapping[str, int | None],
    *,
    tolerance: float = TOLERANCE,
    known: Sequence[Explanation] = (),
) -> Comparison:
    """Every number that both sides should share. `rates`: bit/s of each link, None where nothing limits it.

    Raises:
        ValueError: they are not of one scenario.
    """
    a, b = sim.summary, kernel.summary
    for part in ("queues", "flows", "probes"):
        names = [[entry.get("link", entry.get("name")) for entry in side[part]] for side in (a, b)]
        if names[0] != names[1]:
            raise ValueError(f"two scenarios: their {part} are {names[0]} and {names[1]}")
    tcp = [flow for flow in a["flows"] if flow["congestion"] is not None]
    places = _congested(a, b)

    def case(place: int) -> Case:
        queue = a["queues"][place]
        return Case(
            qdisc=queue["qdisc"],
            rate_bps=rates[queue["link"]],
            congestions=frozenset(flow["congestion"] for flow in tcp),
            flows=len(tcp),
            base_rtt_ms=min((flow["base_rtt_ms"]["mean"] for flow in tcp), default=math.nan),
        )

    judged = (
        _judged(measure, case(place), tolerance, known) for place, measure in _measures(sim, kernel, places)
    )
    rows = tuple(row for row in judged if row is not None)
    samples = max(sim.samples, kernel.samples)
    return Comparison(sim.title, sim.label, case(places[0]), len(sim.seeds), samples, rows)


def _congested(a: Numbers, b: Numbers) -> list[int]:
    """Positions of the links under study: that where packets wait most, and every other that dropped or marked."""

    def waited(place: int) -> float:
        return sum(_number(side["queues"][place]["backlog_packets"]["mean"]) for side in (a, b))

    def refused(place: int) -> float:
        names = ("dropped_packets", "marked_packets")
        return sum(_number(side["queues"][place][name]) for side in (a, b) for name in names)

    everywhere = range(len(a["queues"]))
    busiest = max(everywhere, key=waited)
    return [busiest, *(place for place in everywhere if place != busiest and refused(place) > 0)]


@dataclass(frozen=True)
class _Measure:
    """A number of both sides, before it is judged."""

    place: str
    metric: str
    unit: str
    kind: Literal["mean", "percentile", "count"]
    sim: Numbers
    kernel: Numbers


def _measures(sim: Summary, kernel: Summary, places: Sequence[int]) -> Iterator[tuple[int, _Measure]]:
    """What is compared, each with the place of the link whose packets it is told in."""
    a, b, first = sim.summary, kernel.summary, places[0]
    yield first, _Measure("", "goodput", "Mbit/s", "mean", a["goodput_mbps"], b["goodput_mbps"])
    for place in places:
        one, other = a["queues"][place], b["queues"][place]
        link = one["link"]
        yield place, _Measure(link, "utilisation", "", "mean", one["utilisation"], other["utilisation"])
        for measure in _times(link, "sojourn", one["sojourn_ms"], other["sojourn_ms"]):
            yield place, measure
        for metric, key in (("drops", "dropped_packets"), ("marks", "marked_packets")):
            yield place, _Measure(link, metric, "", "count", one[key], other[key])
    for one, other in zip(a["probes"], b["probes"], strict=True):
        for measure in _times(one["name"], "ping", one["rtt_ms"], other["rtt_ms"]):
            yield first, measure
    if any(flow["congestion"] is not None for flow in a["flows"]):
        yield first, _Measure("", "retransmits", "", "count", _retransmits(sim), _retransmits(kernel))


def _times(place: str, what: str, one: Numbers, other: Numbers) -> Iterator[_Measure]:
    yield _Measure(place, f"{what} mean", "ms", "mean", one["mean"], other["mean"])
    for name in ("p50", "p95", "p99"):
        yield _Measure(place, f"{what} {name}", "ms", "percentile", one[name], other[name])


def _retransmits(side: Summary) -> Numbers:
    """Of all TCP flows together."""
    return mean_ci95(
        sum(flow["retransmits"] for flow in run["flows"] if flow["congestion"] is not None)
        for run in side.sampled
    )


def _judged(measure: _Measure, case: Case, tolerance: float, known: Sequence[Explanation]) -> Row | None:
    """The row; None where neither side has such a number."""
    sim, kernel = measure.sim["mean"], measure.kernel["mean"]
    if math.isnan(sim) and math.isnan(kernel):
        return None
    apart = abs(sim - kernel)
    # A side whose seeds are all the same adds nothing to the interval.
    halves = [each["ci95"] for each in (measure.sim, measure.kernel) if not math.isnan(each["ci95"])]
    half = math.hypot(*halves) if halves else math.nan
    difference = _ratio(sim - kernel, kernel)
    step = {"mean": 0.0, "percentile": case.packet_ms, "count": 1.0}[measure.kind]
    verdict: Verdict = "beyond"
    because = None
    if apart <= tolerance * abs(kernel):
        verdict = "within"
    elif apart <= step * STEP_SLACK:
        verdict = "step"
    elif apart - half <= tolerance * abs(kernel):
        verdict = "noise"
    else:
        because = next((each.name for each in known if each.covers(case, measure.metric, difference)), None)
        verdict = "explained" if because else "beyond"
    return Row(
        place=measure.place,
        metric=measure.metric,
        unit=measure.unit,
        sim=sim,
        sim_ci95=measure.sim["ci95"],
        kernel=kernel,
        kernel_ci95=measure.kernel["ci95"],
        difference=difference,
        ci95=_ratio(half, abs(kernel)),
        verdict=verdict,
        explanation=because,
    )


def _ratio(part: float, whole: float) -> float:
    if math.isnan(part) or math.isnan(whole):
        return math.nan
    if whole == 0:
        return 0.0 if part == 0 else math.copysign(math.inf, part)
    return part / whole


def _number(entry: Numbers) -> float:
    mean: float = entry["mean"]
    return 0.0 if math.isnan(mean) else mean


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


# ---------------------------------------------------------------------------------------------------- many of them


@dataclass(frozen=True)
class Digest:
    """One number over many scenarios."""

    group: str
    metric: str
    verdicts: Mapping[Verdict, int]
    median: float
    """Of the differences' sizes."""
    worst: float
    """The largest difference, with its sign, of those that neither steps nor noise explain, if there are any."""
    worst_case: str

    def to_dict(self) -> Numbers:
        """As one object of plain values."""
        return {
            **{key: _finite(value) for key, value in asdict(self).items()},
            "verdicts": dict(self.verdicts),
        }


def digest(
    comparisons: Sequence[Comparison], group: Callable[[Comparison], str] = lambda one: one.case.kind
) -> list[Digest]:
    """How far each number agrees, in groups (by default one for each queue discipline), in the order in which they come."""
    found: dict[tuple[str, str], list[tuple[Row, Comparison]]] = {}
    for one in comparisons:
        for row in one.rows:
            found.setdefault((group(one), row.metric), []).append((row, one))
    return [_digested(name, metric, entries) for (name, metric), entries in found.items()]


def verdicts(comparisons: Sequence[Comparison]) -> dict[Verdict, int]:
    """How many numbers of them have each verdict."""
    counts: dict[Verdict, int] = dict.fromkeys(VERDICTS, 0)
    for one in comparisons:
        for row in one.rows:
            counts[row.verdict] += 1
    return counts


def _digested(name: str, metric: str, entries: Sequence[tuple[Row, Comparison]]) -> Digest:
    def size(entry: tuple[Row, Comparison]) -> float:
        return -1.0 if math.isnan(entry[0].difference) else abs(entry[0].difference)

    counts: dict[Verdict, int] = dict.fromkeys(VERDICTS, 0)
    for row, _ in entries:
        counts[row.verdict] += 1
    told = [entry for entry in entries if entry[0].verdict not in ("step", "noise")] or entries
    row, case = max(told, key=size)
    known = [size(entry) for entry in entries if not math.isnan(entry[0].difference)]
    middle = statistics.median(known) if known else math.nan
    return Digest(name, metric, counts, middle, row.difference, case.label or case.title)
