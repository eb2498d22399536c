"""The rate of a shaper: predicted from a measured line in the simulator, then tried on the line.
Pure except for the runs.

A shaper slower than the line keeps the queue at the shaper, where the discipline acts on it. The
slower the shaper, the more reliable this is, but the less goodput is left. So the search looks for
the fastest rate at which the load adds at most a given delay to the RTT. The first measurement
gives a model of the line: its rate, its base RTT and the depth of the modem's queue. The simulator
then predicts delay and goodput at each rate:

    up      home --[shaper, discipline]--> modem --[line: bfifo of that depth]--> net
    down    net --[line: bfifo of that depth]--> modem --[shaper, discipline]--> home

The rates tried on the line are those around the best prediction. They are tried in turn, forth and
back, so that any change of the line affects all of them. A rate is good enough if the whole 95 %
interval of its added delay is below the target.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sojourn.engine import Simulated, simulate
from sojourn.errors import UserError
from sojourn.linux.operations import LEAST_BPS, WantedShape, doubts
from sojourn.linux.rtnl import Interface
from sojourn.linux.simulated import shaper_and_leaf
from sojourn.records import Run
from sojourn.scenario import Scenario, loads
from sojourn.scenario.framing import wire_bytes
from sojourn.scenario.linux import CONGESTION, nearest
from sojourn.scenario.qdisc import LINK_LAYERS, LinkLayer
from sojourn_live.measure.findings import Findings, find
from sojourn_live.measure.intervals import LEAST_REPEATS, Interval, over_repeats
from sojourn_live.measure.phases import cut
from sojourn_live.outputs import TunePoint

FRACTIONS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.84, 0.87, 0.9, 0.925, 0.95, 0.97, 0.985, 1.0, 1.03)
"""Rates of the prediction, as shares of the measured rate."""
STEPS = (-2, -1, 0, 1, 2)
"""The number of rates to try: the predicted one and its neighbours."""
STEP = 0.05
"""The distance between neighbouring rates, as a share of the measured rate."""
LOWEST = 0.5
"""The middle of the tried rates if no predicted rate meets the target, as a share of the measured
rate."""
FASTEST = 1.05
SEEDS = 3
IDLE_NS = 2 * 10**9
TCP_HEADERS = 52
"""IPv4 and TCP with timestamps, bytes."""
LEAST_BUFFER = 10 * 1514
FAST_BPS = 10**10
"""Rate of links that are not the bottleneck."""
CLOSE_MS = 5.0
CLOSE_SHARE = 0.3
"""A prediction within 5 ms or within this share of the measured value is good."""


@dataclass(frozen=True)
class LineModel:
    """The line by the first measurement."""

    direction: str
    """`up` or `down`."""
    goodput_bps: float
    """The rate of application bytes (goodput)."""
    base_rtt_ns: int
    buffer_bytes: float
    """Depth of the modem's queue, as Linux counts packets."""
    added_ms: Interval
    """Delay that the load adds to the idle RTT at the 95th percentile, without a shaper."""


@dataclass(frozen=True)
class Load:
    """The load of each measurement."""

    streams: int
    congestion: str | None
    load_ns: int
    probe_ns: int


@dataclass(frozen=True)
class Point:
    """Delay and goodput at one rate."""

    bps: int
    goodput_mbps: Interval
    added_ms: Interval
    """Delay that the load adds to the idle RTT at the 95th percentile."""

    def to_dict(self) -> TunePoint:
        """As plain values; what is not known becomes None."""
        delay, goodput = self.added_ms, self.goodput_mbps
        return {
            "bps": self.bps,
            "added_p95_ms": known(delay.value),
            "added_p95_ms_ci95": [known(delay.low), known(delay.high)],
            "goodput_mbps": known(goodput.value),
        }


def known(value: float) -> float | None:
    """A number for JSON: None if it is not known."""
    return value if math.isfinite(value) else None


# --------------------------------------------------------------------------------------- the line


def line_of(found: Findings, direction: str) -> LineModel:
    """The model of the line from a measurement without a shaper.

    Raises:
        UserError: there was no reply, or hardly any goodput.
    """
    kind = {"up": "upload", "down": "download"}[direction]
    row = next((row for row in found.rows if row.kind == kind), None)
    idle = next((row for row in found.rows if row.kind == "idle"), None)
    if row is None or idle is None or row.induced is None or math.isnan(row.induced.p95.value):
        raise UserError(
            "the delay of this line can't be measured: no probe was answered",
            "run sojourn measure to see why",
        )
    goodput = row.mbps[direction] * 1e6
    if not goodput * wire_share(None, 1500) >= LEAST_BPS:
        raise UserError(
            f"the line is too slow to shape: {goodput / 1e3:.3g} kbit/s {direction}",
            "check the line first",
        )
    depths = (buffer.bytes for buffer in found.buffers if buffer.direction == direction)
    depth = next(depths, math.nan)
    return LineModel(
        direction,
        goodput,
        round(idle.spread.min * 1e6),
        max(LEAST_BUFFER, depth) if not math.isnan(depth) else LEAST_BUFFER,
        row.induced.p95,
    )


def wire_share(link: LinkLayer | None, mtu: int) -> float:
    """Bits that a shaper counts for each bit of goodput, in full packets."""
    link = link or LINK_LAYERS["linux"]
    [size] = wire_bytes(link, np.array([mtu]))
    return int(size) / (mtu - TCP_HEADERS)


def rate_of(line: LineModel, wanted: WantedShape, mtu: int) -> float:
    """The line's rate in bit/s, as the shaper counts it."""
    return line.goodput_bps * wire_share(wanted.link, mtu)


def with_rate(wanted: WantedShape, direction: str, bps: int) -> WantedShape:
    """The same shaper at a rate, in this direction only."""
    up, down = (bps if direction == way else None for way in ("up", "down"))
    return replace(wanted, up_bps=up, down_bps=down)


# ------------------------------------------------------------------------------------- prediction


def substitute(wanted: WantedShape) -> WantedShape:
    """The same shaper; a discipline that the simulator lacks is replaced."""
    near = nearest(wanted.qdisc.partition(" ")[0])
    return wanted if near is None else replace(wanted, qdisc=near)


def known_congestion(name: str | None) -> str:
    """The host's congestion control if the simulator has it, else CUBIC. Prague is in a patched
    Linux only."""
    record = CONGESTION.get(name or "")
    known = record is not None and record.simulated and (record.in_linux or record.name == "prague")
    return record.name if record is not None and known else "cubic"


def caveats(wanted: WantedShape, congestion: str) -> list[str]:
    """Doubts about the qdisc's options, and differences between the simulated and the real line."""
    found = doubts(wanted)
    if substitute(wanted) != wanted:
        near = substitute(wanted).qdisc
        kind = wanted.qdisc.partition(" ")[0]
        found.append(f"the simulator has no {kind}: predicted with htb and {near}")
    if (known := known_congestion(congestion)) != congestion:
        found.append(f"the simulator has no {congestion}: predicted with {known}")
    return found


def scenario(
    line: LineModel, wanted: WantedShape, interface: Interface, load: Load, bps: int | None
) -> Scenario:
    """The line with a shaper at this rate, or without one. The load begins after `IDLE_NS`."""
    shaper, leaf = "none", "pfifo limit 1000"
    if bps is not None:
        asked = with_rate(substitute(wanted), line.direction, bps)
        shaper, leaf = shaper_and_leaf(asked, replace(interface, speed_bps=None))
    layer = (wanted.link or LINK_LAYERS["linux"]).text
    rate = round(rate_of(line, wanted, interface.mtu))
    half = max(line.base_rtt_ns // 2, 1)
    before, after = ("home", "net") if line.direction == "up" else ("net", "home")
    shaped = f'rate = "{FAST_BPS} bit/s"\ndelay = "0 s"\nqdisc = "{leaf}"\nshaper = "{shaper}"\nlink_layer = "linux"'
    narrow = f'rate = "{rate} bit/s"\ndelay = "{half} ns"\nqdisc = "bfifo limit {round(line.buffer_bytes)}"\nlink_layer = "{layer}"'
    first, second = (shaped, narrow) if line.direction == "up" else (narrow, shaped)
    names = ("shaper", "line") if line.direction == "up" else ("line", "shaper")
    congestion = known_congestion(load.congestion)
    return loads(f"""
title = "A shaper at {bps or "no"} bit/s in front of a line"
duration = "{IDLE_NS + load.load_ns} ns"
[[link]]
name = "{names[0]}"
from = "{before}"
to = "modem"
duplex = false
{first}
[[link]]
name = "{names[1]}"
from = "modem"
to = "{after}"
duplex = false
{second}
[[link]]
name = "back"
from = "{after}"
to = "{before}"
duplex = false
rate = "{FAST_BPS} bit/s"
delay = "{half} ns"
[[flow]]
kind = "bulk"
count = {load.streams}
from = "{before}"
to = "{after}"
congestion = "{congestion}"
start = "{IDLE_NS} ns"
[[flow]]
kind = "ping"
from = "home"
to = "net"
interval = "{load.probe_ns} ns"
start = "uniform 0 ns .. {load.probe_ns} ns"
""")


def predict(
    line: LineModel,
    wanted: WantedShape,
    interface: Interface,
    load: Load,
    rates: Sequence[int | None],
) -> list[Point]:
    """The simulator's prediction for each rate. The rate None stands for no shaper; its point has
    the line's own rate."""
    own = round(rate_of(line, wanted, interface.mtu))
    points = []
    for bps in rates:
        simulated = simulate(scenario(line, wanted, interface, load, bps), seeds=SEEDS)
        points.append(_point(simulated, own if bps is None else bps, load))
    return points


def _point(simulated: Simulated, bps: int, load: Load) -> Point:
    added, goodput = [], []
    for seed in simulated.seeds:
        probes = simulated.table("probe", seed)
        t, rtt = (
            probes["t_ns"].to_numpy(),
            probes["rtt_ns"].cast(float).fill_null(math.nan).to_numpy() / 1e6,
        )
        idle, loaded = rtt[t < IDLE_NS], rtt[t >= IDLE_NS]
        loaded = loaded[np.isfinite(loaded)]
        added.append(
            float(np.percentile(loaded, 95) - np.nanmedian(idle)) if loaded.size else math.nan
        )
        delivered = simulated.table("flows", seed)["delivered_bytes"].sum()
        goodput.append(int(delivered) * 8e3 / load.load_ns)
    return Point(bps, _spread(goodput), _spread(added))


def _spread(values: Sequence[float]) -> Interval:
    # Least and greatest over the seeds: a prediction's spread is not a confidence interval.
    known = [value for value in values if not math.isnan(value)]
    return (
        Interval(statistics.fmean(known), min(known), max(known))
        if known
        else Interval(*[math.nan] * 3)
    )


def around(line_bps: float, predicted: Iterable[Point], target_ms: float) -> list[int]:
    """The rates to try, slowest first: the fastest rate that is predicted to meet the target, and
    its neighbours."""
    found = choose(list(predicted), target_ms).point
    middle = found.bps / line_bps if found else LOWEST
    middle = min(middle, FASTEST - STEPS[-1] * STEP)
    return [round_bps((middle + step * STEP) * line_bps) for step in STEPS]


def round_bps(bps: float) -> int:
    """The rate with three digits, as a person would write it, and never below the least rate."""
    scale = int(10 ** max(0, math.floor(math.log10(bps)) - 2))
    return max(LEAST_BPS, round(bps / scale) * scale)


def grid(line_bps: float) -> list[int]:
    """The rates of the prediction."""
    return [round_bps(share * line_bps) for share in FRACTIONS]


# ----------------------------------------------------------------------------------------- trying


def order(rates: Sequence[int], repeats: int) -> list[tuple[int, int]]:
    """(repeat, rate) in turns, forth and back: 1 2 3, 3 2 1, 1 2 3."""
    return [
        (repeat, bps)
        for repeat in range(repeats)
        for bps in (rates if repeat % 2 == 0 else list(reversed(rates)))
    ]


def measured(bps: int, run: Run, direction: str) -> Point | None:
    """The point of a measurement at this rate; None: the measurement gave no result."""
    whole = cut(run)
    name = whole.first({"up": "upload", "down": "download"}[direction])
    if name is None:
        return None
    row = next(row for row in find(run).rows if row.phase == name)
    if row.induced is None:
        return None
    goodput = [part.mbps(direction) for part in whole.of(name)]
    if len(goodput) < LEAST_REPEATS:
        return Point(bps, Interval(statistics.fmean(goodput), math.nan, math.nan), row.induced.p95)
    return Point(bps, over_repeats(goodput), row.induced.p95)


@dataclass(frozen=True)
class RateChoice:
    """The rate to use."""

    point: Point | None
    """None: no tried rate is good enough."""
    sure: bool
    """Whether the rate's whole interval is below the target."""
    why: str


def choose(points: Sequence[Point], target_ms: float) -> RateChoice:
    """The fastest rate whose whole interval is below the target. If there is none, the fastest rate
    whose mean is below the target.

    A rate counts only if the means of all slower tried rates are below the target, too. Otherwise
    one lucky measurement would win although a slower rate was bad.
    """
    best: Point | None = None
    surest: Point | None = None
    for point in sorted(points, key=lambda point: point.bps):
        if not point.added_ms.value <= target_ms:
            break
        best = point
        if point.added_ms.high <= target_ms:
            surest = point
    if surest is not None:
        return RateChoice(
            surest, True, "the whole 95 % interval of the added delay is below the target"
        )
    if best is not None:
        return RateChoice(
            best,
            False,
            "the mean of the added delay is below the target, but its 95 % interval, which more --repeats would narrow, reaches above the target",
        )
    return RateChoice(
        None, False, "even at the slowest rate that was tried the delay is above the target"
    )


@dataclass(frozen=True)
class Quality:
    """How good a prediction was."""

    pairs: tuple[tuple[Point, Point], ...]
    """(predicted, measured) for each rate."""

    @property
    def off_ms(self) -> list[float]:
        """Errors of the delay: predicted less measured."""
        return [one.added_ms.value - other.added_ms.value for one, other in self.pairs]

    @property
    def off_goodput(self) -> list[float]:
        """Errors of the goodput, as a share of the measured value."""
        return [
            one.goodput_mbps.value / other.goodput_mbps.value - 1
            if other.goodput_mbps.value
            else math.nan
            for one, other in self.pairs
        ]

    @property
    def good(self) -> int:
        """The number of delays that were predicted closely."""
        return sum(close(one.added_ms.value, other.added_ms.value) for one, other in self.pairs)


def close(predicted_ms: float, measured_ms: float) -> bool:
    """Whether a prediction is within 5 ms or 30 %."""
    return abs(predicted_ms - measured_ms) <= max(CLOSE_MS, CLOSE_SHARE * measured_ms)


def quality(predicted: Sequence[Point], tried: Sequence[Point]) -> Quality:
    """The quality over all rates that have a predicted and a measured point."""
    by_rate = {point.bps: point for point in predicted}
    return Quality(tuple((by_rate[point.bps], point) for point in tried if point.bps in by_rate))
