"""The numbers of a measurement: delay in each phase, what the load adds, how deep the buffers are
and where, every score. Pure.

    induced delay   percentile of the RTT under load - median of the idle RTT, ms
    standing queue  largest running median of three RTTs under load - least RTT of all, because a
                    single late reply is not a queue. In bytes: that time at the direction's rate,
                    with the headers of full segments
    where           the nearest target whose delay rises by at least half as much as the farthest
                    one's

All repeats are pooled, except for intervals (`intervals`).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import polars as pl

from sojourn.arrays import Floats
from sojourn.facts import MeasurementFacts
from sojourn.records import Run
from sojourn.records.measurement import ENGINE
from sojourn_live.measure import intervals, marks, responsiveness, scores
from sojourn_live.measure.intervals import Interval
from sojourn_live.measure.phases import IDLE, WHOLE, Cut, Part, cut
from sojourn_live.outputs import FindingsNumbers

HEADERS = {4: 14 + 20 + 32, 6: 14 + 40 + 32}
"""By IP version: the bytes of the headers of Ethernet, IP, and TCP with timestamps."""
SEGMENT = 1448
"""The payload of a full segment, bytes, if the measurement does not have it: that of Ethernet."""
RISES = 0.5
"""A target shares a queue with the farthest target if its delay rises by at least this share of the
farthest one's."""
LEAST_RISE_MS = 5.0
"""If the delay of the farthest target rises by less, no queue is located."""


@dataclass(frozen=True)
class Spread:
    """RTTs of one target in one phase, ms; NaN without a reply."""

    sent: int
    lost: int | None
    """None: not known."""
    min: float
    p10: float
    median: float
    mean: float
    p90: float
    p95: float
    max: float

    @property
    def loss(self) -> float:
        """The share of probes without an answer; NaN: not known."""
        return self.lost / self.sent if self.sent and self.lost is not None else math.nan


@dataclass(frozen=True)
class Induced:
    """What the load adds to the RTT, ms."""

    median: Interval
    p95: Interval


@dataclass(frozen=True)
class PhaseRow:
    """One phase, by the RTTs of the Run's target."""

    phase: str
    kind: str
    complete: bool
    spread: Spread
    mbps: Mapping[str, float]
    """Goodput by direction; NaN where nothing was sent that way."""
    retransmits: int | None
    """Segments that TCP retransmitted; None: not known."""
    induced: Induced | None
    """None: the phase is idle, or no idle phase was measured."""


@dataclass(frozen=True)
class Buffer:
    """The standing queue of one direction."""

    direction: str
    phase: str
    ms: float
    bytes: float
    mbps: float
    overflowed: bool | None
    """Whether TCP retransmitted in this phase, which shows that the queue was full. If it did not,
    the buffer may be deeper than the standing queue. None: not known."""


@dataclass(frozen=True)
class Place:
    """Which targets' delays rise in a phase."""

    phase: str
    rises: Mapping[str, float]
    """Induced delay (median) by target, the nearest first, ms."""
    after: str | None
    """The last target whose delay does not rise; None: the delay of the nearest target rises."""
    nearest: str | None
    """The nearest target whose delay rises; None: none does."""


@dataclass(frozen=True)
class Grade:
    """The result of a score: a letter or class ("": none), and the number from which it follows
    (NaN: none)."""

    word: str
    number: float = math.nan
    unit: str = ""


@dataclass(frozen=True)
class Score:
    """One score: its grade for the whole measurement, its grades for single loads, or both."""

    name: str
    overall: Grade | None
    phases: Mapping[str, Grade]
    """By the phase's name."""
    source: str


@dataclass(frozen=True)
class Findings:
    """Everything that is computed from a measurement."""

    title: str
    label: str
    engine: str
    version: str
    target: str | None
    repeats: int
    asked: int
    by: str
    """The unit of the intervals: "repeats" or "blocks"."""
    rows: tuple[PhaseRow, ...]
    others: Mapping[str, Mapping[str, Spread]]
    """By target (including the Run's own) and phase."""
    buffers: tuple[Buffer, ...]
    places: tuple[Place, ...]
    scores: tuple[Score, ...]
    marks: marks.PathMarks | None
    """Whether ECN and DSCP survive; None: measured without `--ecn`."""
    facts: tuple[MeasurementFacts, ...]
    """One for each repeat."""

    @property
    def worst(self) -> PhaseRow | None:
        """The load that adds the most delay at the 95th percentile."""
        known = [
            row
            for row in self.rows
            if row.induced is not None and not math.isnan(row.induced.p95.value)
        ]
        return max(
            known, key=lambda row: row.induced.p95.value if row.induced else 0.0, default=None
        )

    @property
    def induced_p95_ms(self) -> float:
        """The most delay that a load adds at the 95th percentile, ms: the number that
        `--fail-above` bounds. NaN: not known."""
        worst = self.worst
        return (
            worst.induced.p95.value if worst is not None and worst.induced is not None else math.nan
        )

    def to_dict(self) -> FindingsNumbers:
        """Plain values; NaN becomes None."""
        values = {**dataclasses.asdict(self), "induced_p95_ms": self.induced_p95_ms}
        return cast(FindingsNumbers, _plain(values))


def find(run: Run) -> Findings:
    """All findings of a Run."""
    whole = cut(run)
    by = "repeats" if len(run.seeds) >= intervals.LEAST_REPEATS else "blocks"
    facts = tuple(run.meta.facts[str(seed)] for seed in run.seeds if str(seed) in run.meta.facts)
    return Findings(
        title=run.meta.title,
        label=run.meta.label,
        engine=run.meta.engine,
        version=run.meta.version,
        target=whole.target,
        repeats=len(run.seeds),
        asked=len(run.meta.seeds_asked),
        by=by,
        rows=tuple(_row(whole, name, by) for name in whole.names),
        others={
            target: {name: spread(whole, name, target) for name in whole.names}
            for target in whole.targets
        },
        buffers=tuple(buffers(whole)),
        places=() if one_path(run) else tuple(places(whole)),
        scores=tuple(all_scores(whole)),
        marks=marks.find(facts),
        facts=facts,
    )


# ----------------------------------------------------------------------------------------- phases


def spread(whole: Cut, name: str, target: str) -> Spread:
    """The RTTs of a target in a phase, all repeats pooled."""
    pings = [part.pings[target] for part in whole.of(name)]
    sent, lost = sum(each.sent for each in pings), counted(each.lost for each in pings if each.sent)
    rtt = whole.rtts(name, target)
    if rtt.size == 0:
        return Spread(sent, lost, *[math.nan] * 7)
    p10, median, p90, p95 = (float(np.percentile(rtt, q)) for q in (10, 50, 90, 95))
    return Spread(
        sent, lost, float(rtt.min()), p10, median, float(rtt.mean()), p90, p95, float(rtt.max())
    )


def counted(counts: Iterable[int | None]) -> int | None:
    """The sum of the counts; None if one of them is not known."""
    known = list(counts)
    return None if None in known else sum(filter(None, known))


def _row(whole: Cut, name: str, by: str) -> PhaseRow:
    parts = whole.of(name)
    empty = Spread(0, 0, *[math.nan] * 7)
    return PhaseRow(
        phase=name,
        kind=whole.kind(name),
        complete=whole.complete(name),
        spread=spread(whole, name, whole.target) if whole.target is not None else empty,
        mbps={
            direction: _mean([part.mbps(direction) for part in parts])
            for direction in ("down", "up")
        },
        retransmits=_sent_again(parts),
        induced=induced(whole, name, by),
    )


def induced(whole: Cut, name: str, by: str) -> Induced | None:
    """What this phase's load adds to the median idle RTT, with intervals over repeats or over
    blocks of time."""
    if whole.kind(name) in (IDLE, WHOLE) or whole.idle is None or whole.target is None:
        return None
    loaded, idle = pieces(whole, name), pieces(whole, whole.idle)
    if not any(piece.size for piece in loaded) or not any(piece.size for piece in idle):
        return None
    median = intervals.percentile(50)
    found = []
    for q in (50, 95):
        statistic = intervals.percentile(q)
        if by == "repeats":
            each = per_repeat(whole, name, lambda part, q=q: _percentile(part, whole.target, q))
            rest = per_repeat(whole, whole.idle, lambda part: _percentile(part, whole.target, 50))
            shared = sorted(set(each) & set(rest))
            found.append(intervals.over_repeats([each[seed] - rest[seed] for seed in shared]))
        else:
            found.append(intervals.over_blocks(loaded, idle, statistic, median))
    return Induced(*found)


def pieces(whole: Cut, name: str) -> list[Floats]:
    """RTTs of the Run's target in each repeat of a phase, ms, in order of sending."""
    return (
        [part.pings[whole.target].answered for part in whole.of(name)]
        if whole.target is not None
        else []
    )


def per_repeat(whole: Cut, name: str, read: Any) -> dict[int, float]:
    """A number for each repeat that has the phase, by seed."""
    values = {part.seed: float(read(part)) for part in whole.of(name)}
    return {seed: value for seed, value in values.items() if not math.isnan(value)}


def _percentile(part: Part, target: str | None, q: float) -> float:
    rtt = part.pings[target].answered if target is not None else np.empty(0)
    return float(np.percentile(rtt, q)) if rtt.size else math.nan


# ---------------------------------------------------------------------------------------- buffers


def buffers(whole: Cut) -> list[Buffer]:
    """The standing queue of each direction that was loaded alone in a phase. If both directions
    were only loaded together, the one-way delays distinguish them."""
    if whole.target is None:
        return []
    rtts = [part.pings[whole.target].answered for part in whole.parts]
    rtts = [each for each in rtts if each.size]
    if not rtts:
        return []
    # The least RTT of all phases is taken for the RTT through empty queues.
    base = float(np.concatenate(rtts).min())
    found = []
    for direction, kind in (("down", "download"), ("up", "upload")):
        own = whole.first(kind)
        if own is not None:
            standing = max(
                (_standing(part.pings[whole.target].answered) for part in whole.of(own)),
                default=math.nan,
            )
            found.append(_buffer(whole, own, direction, standing - base))
        elif (both := whole.first("both")) is not None:
            depth = max(
                (_one_way(part, whole.target, direction) for part in whole.of(both)),
                default=math.nan,
            )
            found.append(_buffer(whole, both, direction, depth))
    return [buffer for buffer in found if not math.isnan(buffer.ms)]


def _buffer(whole: Cut, name: str, direction: str, ms: float) -> Buffer:
    rates = [_settled(part, direction) for part in whole.of(name)]
    mbps = _mean(rates)
    ms = max(ms, 0.0) if not math.isnan(ms) else math.nan
    return Buffer(
        direction,
        name,
        ms,
        ms / 1e3 * mbps * 1e6 / 8 * _wire(whole, direction),
        mbps,
        _overflowed(whole.of(name), direction),
    )


def _wire(whole: Cut, direction: str) -> float:
    """Ethernet bytes per payload byte in the segments sent this way. A queue's depth is counted
    in Ethernet bytes, goodput in payload bytes."""
    run = whole.run
    names = [
        flow.name for flow in run.meta.flows if flow.kind != "ping" and flow.direction == direction
    ]
    segments = sent = 0
    version = 4
    # Runs of other engines count other bytes as sent.
    for seed in run.seeds if run.meta.engine == ENGINE else ():
        totals = run.table("flows", seed).filter(
            pl.col("flow").is_in(names) & (pl.col("sent_bytes") > 0)
        )
        segments += int(totals["sent_packets"].sum())
        sent += int(totals["sent_bytes"].sum())
        facts = run.meta.facts.get(str(seed))
        version = 6 if facts is not None and ":" in facts["server"]["address"] else 4
    return 1 + HEADERS[version] / (sent / segments if segments else SEGMENT)


def _sent_again(parts: Sequence[Part], direction: str | None = None) -> int | None:
    """Segments retransmitted by the streams of these phases; None if one count is not known."""
    each = _retransmits(parts, direction)
    return counted(each) if each else None


def _retransmits(parts: Sequence[Part], direction: str | None = None) -> list[int | None]:
    """Segments retransmitted by each stream."""
    return [
        stream.retransmits
        for part in parts
        for stream in part.streams
        if direction in (None, stream.direction)
    ]


def _overflowed(parts: Sequence[Part], direction: str) -> bool | None:
    """Whether any stream retransmitted; None: no stream with a known count did, and some counts are
    not known."""
    known = _retransmits(parts, direction)
    return any(known) or (None if not known or None in known else False)


def _standing(rtt: Floats) -> float:
    """The largest running median of three. For 20, 180, 20, 90, 95, 92 it is 92."""
    if rtt.size < 3:
        return float(rtt.max()) if rtt.size else math.nan
    return float(np.median(np.lib.stride_tricks.sliding_window_view(rtt, 3), axis=1).max())


def _one_way(part: Part, target: str, direction: str) -> float:
    pings = part.pings[target]
    forward = pings.forward_ms if direction == "up" else pings.rtt_ms - pings.forward_ms
    known = forward[np.isfinite(forward)]
    return _standing(known) - float(known.min()) if known.size else math.nan


def _settled(part: Part, direction: str) -> float:
    """A direction's rate after its start: the median of the goodput in each second of the phase's
    second half."""
    t, mbps = part.goodput(direction)
    if t.size == 0:
        return math.nan
    half = (part.phase.start_ns + part.phase.end_ns) / 2e9
    t, mbps = t[t > half], mbps[t > half]
    if t.size == 0:
        return part.mbps(direction)
    seconds = np.floor(t - t[0]).astype(np.int64)
    sums, counts = np.bincount(seconds, mbps), np.bincount(seconds)
    return float(np.median(sums[counts > 0] / counts[counts > 0]))


# ------------------------------------------------------------------------------------------ where


def one_path(run: Run) -> bool:
    """Whether all probes of a Run go to one host, so that they don't locate a queue."""
    return responsiveness.measured(run) or any(
        facts.get("one_host") for facts in run.meta.facts.values()
    )


def places(whole: Cut) -> list[Place]:
    """The place of each load's queue, if several targets show it. A load in both directions has two
    queues, so such a load is used only if neither direction was measured alone."""
    if whole.idle is None:
        return []
    idle = {
        target: float(np.median(rtt))
        for target in whole.targets
        if (rtt := whole.rtts(whole.idle, target)).size
    }
    order = sorted(idle, key=lambda target: (_hops(whole.run, target), idle[target]))
    alone = [name for name in whole.loads if whole.kind(name) != "both"]
    found = []
    for name in alone or whole.loads:
        rises = {
            target: float(np.median(rtt)) - idle[target]
            for target in order
            if (rtt := whole.rtts(name, target)).size
        }
        if len(rises) > 1 and whole.complete(name):
            found.append(_place(name, rises))
    return found


ELSEWHERE, SERVER = 100, 1000


def _hops(run: Run, target: str) -> int:
    """A target's distance in routers, if the session knows it. Equal distances are ordered by idle
    RTT."""
    for fact in run.meta.facts.values():
        if "probes" not in fact:
            continue
        probe = next((probe for probe in fact["probes"] if probe["name"] == target), None)
        if probe is None:
            continue
        if probe["address"] == fact["server"]["address"]:
            return SERVER
        if probe["address"] == fact["client"]["gateway"]:
            return 1
        hop = re.match(r"hop (\d+)", target)
        return int(hop[1]) if hop else ELSEWHERE
    return ELSEWHERE


def _place(name: str, rises: Mapping[str, float]) -> Place:
    order = list(rises)
    far = rises[order[-1]]
    if far < LEAST_RISE_MS:
        return Place(name, rises, None, None)
    at = next(i for i, target in enumerate(order) if rises[target] >= RISES * far)
    return Place(name, rises, order[at - 1] if at else None, order[at])


# ----------------------------------------------------------------------------------------- scores


def all_scores(whole: Cut) -> list[Score]:
    """Every score for which there are samples."""
    names = {kind: name for kind in LOADS if (name := whole.first(kind)) is not None}
    rtts = {kind: rtt for kind, name in names.items() if (rtt := whole.rtts(name)).size}
    idle = whole.rtts(whole.idle)
    found: list[Score] = []
    if idle.size and ("download" in rtts or "upload" in rtts):
        none = np.empty(0)
        letter, increase = scores.dslreports(
            idle, rtts.get("download", none), rtts.get("upload", none)
        )
        found.append(
            Score("DSLReports", Grade(letter, increase, "ms"), {}, "dslreports.com/faq/17930")
        )
    if idle.size and rtts:
        for which, scale, source in (
            ("code", scores.LIBREQOS_CODE, "latencyGradeThresholds.json"),
            ("README", scores.LIBREQOS_README, "README"),
        ):
            graded = scores.libreqos(idle, rtts, scale)
            letters = {names[kind]: Grade(letter) for kind, letter in graded.phases.items()}
            found.append(
                Score(
                    f"LibreQoS, {which}",
                    Grade(graded.grade),
                    letters,
                    f"LibreQoS bufferbloat test, {source}",
                )
            )
    found += (
        _measured_rpms(whole.run)
        if responsiveness.measured(whole.run)
        else _rpms(whole, list(names.values()))
    )
    gaming = {names[kind]: Grade("", scores.qoo(rtt), "of 100") for kind, rtt in rtts.items()}
    if gaming:
        found.append(Score("QoO, gaming", None, gaming, "goresponsiveness, qualityattenuation.go"))
    return found


LOADS = ("download", "upload", "both")


def _measured_rpms(run: Run) -> list[Score]:
    """The scores of a measurement of responsiveness, from real HTTP requests: means over its
    repeats."""
    results = responsiveness.results(run)
    formulas: dict[str, tuple[Callable[[responsiveness.RpmResult], float], str]] = {
        "RPM, draft-09": (lambda result: result.draft.rpm, f"{scores.DRAFT} §4.3"),
        "RPM, goresponsiveness": (lambda result: result.go.rpm, "goresponsiveness, rpm/calculations.go"),
        "RPM, goresponsiveness P90": (lambda result: result.go_p90.rpm, "goresponsiveness, rpm/calculations.go"),
    }  # fmt: skip
    found = []
    for title, (of, source) in formulas.items():
        means = {
            phase: _mean([of(result) for result in results if result.phase == phase])
            for phase in dict.fromkeys(result.phase for result in results)
        }
        grades = {
            phase: Grade(scores.rpm_class(mean), mean, "RPM")
            for phase, mean in means.items()
            if not math.isnan(mean)
        }
        if grades:
            found.append(Score(title, None, grades, source))
    return found


def _rpms(whole: Cut, names: Sequence[str]) -> list[Score]:
    """RPMs of each load from substitutes for HTTP: echoes for new connections, TCP's smoothed RTT
    for loaded ones.

    A new connection takes a round trip for TCP and one for its GET. The draft allows the smoothed
    RTT where no GET can be sent on the load's connections (§4.2). Echoes and smoothed RTTs contain
    no time of an HTTP server, so the RPMs are upper bounds.
    """
    formulas: dict[str, tuple[float, Callable[[Floats, Floats], float], str]] = {
        "RPM, draft-09": (
            scores.INTERVAL_S, lambda echo, loaded: scores.rpm_draft09(echo, [], echo, loaded).rpm, f"{scores.DRAFT} §4.3",
        ),
        "RPM, goresponsiveness": (
            1.0, lambda echo, loaded: scores.rpm_go(3 * echo, loaded).rpm, "goresponsiveness, rpm/calculations.go",
        ),
        "RPM, goresponsiveness P90": (
            1.0, lambda echo, loaded: scores.rpm_go_p90(3 * echo, loaded).rpm, "goresponsiveness, rpm/calculations.go",
        ),
    }  # fmt: skip
    found = []
    for title, (interval_s, formula, source) in formulas.items():
        grades = {}
        for name in names:
            sides = [
                _last(whole, part, scores.MOVING_AVERAGE_DISTANCE * interval_s)
                for part in whole.of(name)
            ]
            echo, loaded = (np.concatenate(side) for side in zip(*sides, strict=True))
            score = formula(echo, loaded) if echo.size and loaded.size else math.nan
            if not math.isnan(score):
                grades[name] = Grade(scores.rpm_class(score), score, "RPM")
        if grades:
            found.append(Score(title, None, grades, f"{source}; estimate: no HTTP was sent"))
    return found


def _last(whole: Cut, part: Part, seconds: float) -> tuple[Floats, Floats]:
    """Echo RTTs and smoothed RTTs of the last seconds of a phase, ms."""
    if whole.target is None:
        return np.empty(0), np.empty(0)
    since = part.phase.end_ns / 1e9 - seconds
    pings = part.pings[whole.target]
    echo = pings.rtt_ms[(pings.t_s >= since) & np.isfinite(pings.rtt_ms)]
    loaded = [
        stream.srtt_ms[(stream.t_s >= since) & np.isfinite(stream.srtt_ms)]
        for stream in part.streams
    ]
    return echo, np.concatenate(loaded) if loaded else np.empty(0)


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
