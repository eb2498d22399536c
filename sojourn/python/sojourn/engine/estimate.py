"""Estimates what running a scenario takes, and which engines can run it, before anything runs.

The number of packets follows from rates and lengths. A flow with a rate of its own sends at that
rate. Greedy flows share evenly what is left of the slowest link on their path. CPU time and disk
follow from packets, runs and rows. All of it is approximate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sojourn.engine.registry import GUESTS, find, stands_for, why_not
from sojourn.errors import UserError
from sojourn.records import free_memory
from sojourn.scenario import Scenario
from sojourn.scenario.qdisc import Police, Shaper
from sojourn.scenario.realised import (
    Bulk,
    Draw,
    Flow,
    Link,
    ModelFrames,
    Ping,
    ProgramTraffic,
    Realised,
    Requests,
    Stream,
    TraceFrames,
    Transfers,
    Udp,
    Video,
)
from sojourn.scenario.tcp import MTU, PROFILES

PACKETS_PER_CPU_S = 2_000_000
"""Packets in a CPU second of the simulator: docs/performance.md has 0.9 to 5 million."""
RUN_CPU_S = 0.01
"""CPU time to set up a run, write its tables and compute its numbers, s."""
FLOW_CPU_S = 0.3e-3
"""CPU time for each flow of a run, s: to realise it, and to write, read and add up its rows.
Measured with 1000, 10 000 and 100 000 flows."""
STEP_CPU_S = 40e-9
"""CPU time for each step of a link's rate, s."""
UPDATE_CPU_S = 4e-9
"""CPU time, s, for each update of a controller whose update interval is one microsecond."""
FLOW_MEMORY_BYTES = 37_000
"""Memory for each flow, while a Run is made and summarised."""
ROW_MEMORY_BYTES = 250
"""Memory for each row of a time line, which has up to thirty columns."""
FEW_MEMORY_BYTES = 50_000_000
"""An estimate below this is not compared with the free memory, since Python alone takes as much."""
MOST_CPU_S = 7 * 86400.0
"""Upper bound for one seed. A scenario that takes longer is a mistake."""
TAKES: dict[str, tuple[float, float, float]] = {
    "sim": (RUN_CPU_S, 0.0, PACKETS_PER_CPU_S),
    "kernel-uml": (0.45, 0.01, 90_000),
    "kernel-qemu": (6.0, 0.2, 3_300),
    "kernel-7.3": (0.45, 0.01, 120_000),
    "netns": (5.0, 1.0, math.inf),
}
"""CPU seconds of a run, CPU seconds for each simulated second, packets in a CPU second. Measured at
1 to 1000 Mbit/s with 1 to 64 flows; accurate within a third. `kernel-qemu` records packets by taps.
It takes ten times as long as `kernel-uml` took with taps (docs/kernel.md). `netns` runs in real
time, so it mostly waits."""
ROW_BYTES = 40
"""A row of a time line in Parquet: measured 8 to 30 bytes."""
HEADER_ROWS = 2
"""A packet's headers take as much as this many rows of other tables."""
FOLDER_BYTES = 500_000
"""The other tables of a seed: totals, histograms, drops."""
TYPICAL_PACKET_BYTES = 700
"""A mean between full packets and acknowledgements."""
_KERNELS = ("kernel", "kernel-7.3", "netns")
"""`kernel` is the better of its two guests."""


@dataclass(frozen=True)
class Fit:
    """Whether an engine can run a scenario."""

    engine: str
    refused: int
    """Variants that the engine refuses."""
    problems: tuple[str, ...]
    """Features that the engine lacks, each with its place in the scenario."""
    hint: str
    not_ready: str | None
    """Why the engine can't be used on this host yet, or the features that this host's kernel lacks;
    None: nothing is missing."""


@dataclass(frozen=True)
class Cost:
    """Estimated cost of running scenarios."""

    runs: int
    packets: int
    """Data packets delivered, over all runs."""
    cpu_s: float
    """CPU seconds of the simulator."""
    guest_cpu_s: float
    """CPU seconds of the kernel's guest that is built, over all runs."""
    table_bytes: int
    """Size on disk; an upper estimate."""
    memory_bytes: int
    """Memory of the largest run."""


def fits(variants: Sequence[Scenario]) -> list[Fit]:
    """Whether `sim`, `kernel`, `kernel-7.3` and `netns` can run these scenarios."""
    realised = [variant.realise(variant.seeds[0]) for variant in variants]
    return [_simulator(realised), *(_kernel(name, realised) for name in _KERNELS)]


def cost(variants: Sequence[Scenario], seeds: int) -> Cost:
    """Cost of running each of these scenarios with `seeds` seeds."""
    realised = [variant.realise(variant.seeds[0]) for variant in variants]
    runs = len(realised) * seeds
    packets = seeds * sum(map(expected_packets, realised))
    sim, guest = (
        seeds * sum(run_s(name, one) for one in realised) for name in ("sim", "kernel-uml")
    )
    written = seeds * sum(map(expected_bytes, realised))
    memory = max(map(expected_memory, realised), default=0)
    return Cost(runs, packets, sim, guest, written, memory)


def run_s(engine: str, realised: Realised) -> float:
    """Seconds that a run takes on a processor of its own."""
    own, second, packets_per_s = TAKES.get(engine, TAKES["kernel-uml"])
    length_s = int(realised.duration_ns) / 1e9
    took = own + second * length_s + expected_packets(realised) / packets_per_s
    took += FLOW_CPU_S * len(realised.flows)
    return took + (_idle_s(realised) if engine == "sim" else 0.0)


def _idle_s(realised: Realised) -> float:
    """Simulator time that does not depend on packets: steps of a rate and updates of a
    controller."""
    steps, updates = 0.0, 0.0
    for link in realised.links:
        passes = realised.duration_ns / link.rate_period_ns if link.rate_period_ns else 1.0
        steps += passes * max(0, len(link.rate) - (link.rate_period_ns is None))
        if link.qdisc.kind == "dualpi2":
            period = link.qdisc.params.get("tupdate_ns") or 16_000_000
            updates += realised.duration_ns / max(1_000, float(str(period)))
    return STEP_CPU_S * steps + UPDATE_CPU_S * updates


def check_bounds(engine: str, realised: Sequence[Realised]) -> list[float]:
    """Returns the seconds that a run of each takes.

    Raises:
        UserError: one would take longer than `MOST_CPU_S`, or more memory than is free.
    """
    each = seconds_of(engine, realised)
    if (most := max(each, default=0.0)) > MOST_CPU_S:
        raise UserError(
            f"one seed would take about {most / 86400:.0f} days",
            "a shorter duration, slower links, or a schedule with longer steps",
        )
    need = max(map(expected_memory, realised), default=0)
    if need > FEW_MEMORY_BYTES and (free := free_memory()) is not None and need > free:
        raise UserError(
            f"the run would take about {need / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free here",
            "fewer flows (count), a shorter duration, or longer intervals in [record]",
        )
    return each


def seconds_of(engine: str, realised: Sequence[Realised]) -> list[float]:
    """Seconds that a run of each takes on a processor of its own."""
    name = stands_for(engine) or engine
    return [run_s(name, one) for one in realised]


def expected_s(runs: Sequence[tuple[float, int]], threads: int) -> float:
    """Seconds that all runs take on these threads. `runs`: the seconds of each scenario's run and
    its number of seeds."""
    threads = min(threads, sum(count for _, count in runs))
    return max(sum(took * count for took, count in runs) / threads, *(took for took, _ in runs))


def _simulator(realised: Sequence[Realised]) -> Fit:
    simulator, refused, hint = find("sim"), 0, ""
    lines: dict[str, None] = {}
    for one in realised:
        try:
            simulator.check(one)
        except UserError as error:
            refused, hint = refused + 1, error.hint
            lines |= dict.fromkeys(error.problem.splitlines())
    return Fit("sim", refused, tuple(lines), hint, None)


def _kernel(name: str, realised: Sequence[Realised]) -> Fit:
    # Imported here because it is slow to import and the simulator does not need it.
    from sojourn.engine.kernel.plan.fits import PlanError, kernel_of, problems_of, this_kernel
    from sojourn.engine.kernel.plan.program_plan import absent

    kernel = this_kernel() if name == "netns" else kernel_of(GUESTS[name])
    wrong = [problems for one in realised if (problems := list(problems_of(one, *kernel)))]
    error = PlanError([problem for problems in wrong for problem in problems])
    programs = any(one.programs for one in realised)
    not_ready = why_not(name, programs=programs)
    if name == "kernel" and (lacking := {each: None for one in realised for each in absent(one)}):
        no_program = f"this host has no program {', '.join(lacking)}"
        not_ready = no_program if not_ready is None else f"{not_ready}; {no_program}"
    if not_ready is None and name == "netns":
        not_ready = _lacking([one for one in realised if not any(problems_of(one, *kernel))])
    return Fit(name, len(wrong), tuple(error.problem.splitlines()), error.hint, not_ready)


def _lacking(realised: Sequence[Realised]) -> str | None:
    """Features of these scenarios that this host's own kernel lacks, as `netns` finds them before a
    run; None: it has all."""
    engine = find("netns")
    lines: dict[str, None] = {}
    hints: dict[str, None] = {}
    for one in realised:
        try:
            engine.check(one)
        except UserError as error:
            lines |= dict.fromkeys(error.problem.splitlines())
            hints |= dict.fromkeys(error.hint.split("; "))
    return "; ".join([*lines, *hints]) or None


# ---------------------------------------------------------------------------------------- packets


def expected_packets(realised: Realised) -> int:
    """Estimate of the data packets that a run delivers; pings count their requests."""
    duration_s = realised.duration_ns / 1e9
    left = [capacity_bps(link, realised.duration_ns) for link in realised.links]
    greedy: list[tuple[Flow, Bulk | ProgramTraffic, float, float]] = []
    sharing = [0] * len(left)
    packets = 0.0
    for flow in realised.flows:
        end_s = duration_s if flow.stop_ns is None else min(duration_s, flow.stop_ns / 1e9)
        seconds = max(0.0, end_s - flow.start_ns / 1e9)
        bps, size = _own_rate(flow, realised)
        if not isinstance(flow.traffic, Bulk | ProgramTraffic):
            packets += min(bps, *(left[link] for link in flow.path)) * seconds / (8 * size)
            for link in flow.path:
                left[link] = max(0.0, left[link] - bps * seconds / duration_s)
        else:
            greedy.append((flow, flow.traffic, seconds, size))
            for link in flow.path:
                sharing[link] += 1
    for flow, traffic, seconds, size in greedy:
        bps = min(left[link] / sharing[link] for link in flow.path)
        if isinstance(traffic, ProgramTraffic):
            tcp, size_bytes = PROFILES["linux"], None
        else:
            tcp, size_bytes = traffic.tcp, traffic.bytes
            bps = min(bps, traffic.mean_bps(round(seconds * 1e9)))
        # A flow that no link limits is limited by its window.
        bps = min(bps, 8 * tcp.receive_buffer_max / _propagation_s(flow, realised))
        sent = bps * seconds / (8 * size)
        packets += sent if size_bytes is None else min(sent, math.ceil(size_bytes / tcp.mss))
    return round(packets)


def capacity_bps(link: Link, duration_ns: int) -> float:
    """Mean rate of a link over the run, bit/s; infinite without a limit."""
    rate = mean_rate_bps(link, duration_ns)
    limit = slower([] if rate is None else [rate], link.shaper, link.police)
    return math.inf if limit is None else float(limit)


def mean_rate_bps(link: Link, duration_ns: int) -> int | None:
    """Mean over the run of a link's own rate, without its shaper or policer; None: it has no
    limit."""
    if not link.rate:
        return None
    period = link.rate_period_ns or duration_ns
    ends = [*(step.at_ns for step in link.rate[1:]), period]

    def bits(until_ns: int) -> int:
        """Integral of the rate over one pass of the schedule, bit/s times ns."""
        return sum(
            step.bps * max(0, min(end, until_ns) - step.at_ns)
            for step, end in zip(link.rate, ends, strict=True)
        )

    passes, rest = divmod(duration_ns, period)
    return (passes * bits(period) + bits(rest)) // duration_ns


def slower(rate: list[int], *limits: Shaper | Police | None) -> int | None:
    """The slowest of a link's transmitter, shaper and policer, bit/s; None where there is none."""
    return min([*rate, *(each.bps for each in limits if each)], default=None)


def _own_rate(flow: Flow, realised: Realised) -> tuple[float, float]:
    """The rate at which a flow sends by itself, bit/s (infinite if only its path limits it), and
    its packet size in bytes."""
    match flow.traffic:
        case Ping(interval_ns=interval, packet_bytes=size):
            return 8e9 * size / interval, size
        case Udp(bps=bps, packet_bytes=size, on_ns=None):
            return bps, size
        case Udp(bps=bps, packet_bytes=size, on_ns=Draw(mean=on), off_ns=Draw(mean=off)):
            return bps * on / max(1.0, on + off), size
        case Video(frames=ModelFrames(bps=bps), payload_bytes=size):
            return bps, size
        case Video(frames=TraceFrames(frames=frames, period_ns=period), payload_bytes=size):
            return 8e9 * sum(bytes_ for _, bytes_ in frames) / period, size
        case Transfers(bytes=Draw(mean=size), pause_ns=Draw(mean=pause), objects=objects, tcp=tcp):
            number = objects or 1
            round_s = pause / 1e9 + 2 * number * _propagation_s(flow, realised)
            return 8 * number * size / round_s, min(size, tcp.mss) + tcp.header_bytes
        case Requests(
            request_bytes=Draw(mean=request),
            bytes=Draw(mean=size),
            pause_ns=Draw(mean=pause),
            tcp=tcp,
        ):
            # Both ends begin with ten segments and double them in each round.
            rounds = 1 + sum(math.log2(1 + each / tcp.mss / 10) for each in (request, size))
            round_s = pause / 1e9 + rounds * _propagation_s(flow, realised)
            return 8 * size / round_s, min(size, tcp.mss) + tcp.header_bytes
        case Stream(ladder_bps=ladder, tcp=tcp):
            return ladder[-1], tcp.mss + tcp.header_bytes
        case Bulk(tcp=tcp):
            return math.inf, tcp.mss + tcp.header_bytes
        case ProgramTraffic():
            # The program's traffic is not known, so this is an upper estimate.
            return math.inf, MTU
    raise AssertionError(f"no kind of traffic: {flow.kind}")


def _propagation_s(flow: Flow, realised: Realised) -> float:
    """Round-trip propagation delay, s; at least 0.1 ms."""
    links = (*flow.path, *flow.back)
    own = flow.path_extra_ns + flow.back_extra_ns
    ns: int = own + sum(realised.links[link].delay_ns for link in links)
    return max(1e-4, ns / 1e9)


# ------------------------------------------------------------------------------------------- disk


def expected_bytes(realised: Realised) -> int:
    """Upper estimate of what one seed takes on disk."""
    return FOLDER_BYTES + _rows(realised) * ROW_BYTES


def expected_memory(realised: Realised) -> int:
    """Estimate of the memory that a run takes while its tables are made."""
    return FLOW_MEMORY_BYTES * len(realised.flows) + ROW_MEMORY_BYTES * _rows(realised)


def _rows(realised: Realised) -> int:
    """Rows of the time lines, and of packets if they are recorded."""
    duration_ns, record = realised.duration_ns, realised.record
    rows = len(realised.links) * duration_ns // max(1, record.queue_ns)
    rows += len(realised.flows) * duration_ns // max(1, record.flow_ns)
    rows += sum(
        duration_ns // max(1, flow.traffic.interval_ns)
        for flow in realised.flows
        if isinstance(flow.traffic, Ping)
    )
    if record.packets or record.headers:
        bits = sum(
            slower([max(step.bps for step in link.rate)] if link.rate else [], link.shaper) or 0
            for link in realised.links
        )
        packets = bits * duration_ns // 10**9 // (8 * TYPICAL_PACKET_BYTES)
        rows += packets * (record.packets + HEADER_ROWS * record.headers)
    return int(rows)
