"""How much a scenario asks for: what a flow would send into memory, or without the clock ever going on, is refused.

Datagrams, video and pings come however full the network is, and each may become a row of a table; a TCP flow is held back by its
round trip alone, and does not leave the first instant where there is none. What is only slow is nobody's mistake.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sojourn.scenario.errors import Key, Problem
from sojourn.scenario.laws import Draw, Spread
from sojourn.scenario.topology import Link, Way
from sojourn.units import format_duration, format_rate, format_size

if TYPE_CHECKING:
    from sojourn.scenario.model import Flow, OnOff, Scenario, Udp, Video

MAX_PACKETS = 100_000_000
"""Packets that an entry's flows send by themselves."""
MAX_DROPPED = 5_000_000
"""Rows of `drops`: some 100 bytes each while they are written down."""
VIDEO_HEADERS = 40
"""IP, UDP and RTP."""
MAX_PINGS = 20_000_000
"""Rows of `probe`, as of a time line (check.MAX_ROWS)."""
MAX_FRAME = 1_000_000
"""Packets of a frame, all sent in one instant: 40 MB."""
LEAST_ROUND = 1_000
"""ns: the shortest round trip of TCP where no rate holds it back."""
UNLIKELY = 4.0
"""Standard deviations: one normal number in 30 000 is further above its mean."""


def check_amount(
    flow: "Flow", scenario: "Scenario", way: Way, links: tuple[Link, ...], key: Key
) -> Iterator[Problem]:
    """What is too much of one entry, with the key to change."""
    span = _span(flow, scenario.duration)
    match flow.kind:
        case "bulk" | "transfers":
            yield from _clocked(flow, scenario, way, links)
        case "udp":
            yield from _datagrams(flow, span, key)
        case "onoff":
            yield from _periods(flow, span, key)
        case "ping":
            pings = flow.count * (span // flow.interval)
            if pings > MAX_PINGS:
                least = format_duration(-(-flow.count * span // MAX_PINGS))
                hint = f'write "{least}" or more'
                yield Problem(f"that makes {pings} pings; the most is {MAX_PINGS}", hint, (*key, "interval"))
        case "video":
            yield from _video(flow, span, key)


def check_dropped(
    flows: "Sequence[Flow]", ways: Sequence[Way], links: tuple[Link, ...], duration: int
) -> Iterator[Problem]:
    """What sends by itself more than its way carries: each packet that is dropped is a row.

    Each entry is taken alone on its way, at the fastest that each link ever is, so that what is refused is dropped for certain.
    """
    dropped = [_dropped(flow, way, links, duration) for flow, way in zip(flows, ways, strict=True)]
    if sum(dropped) > MAX_DROPPED:
        most = max(range(len(flows)), key=lambda index: dropped[index])
        what = f"some {sum(dropped):.3g} packets would be dropped, more than the most that a run notes, {MAX_DROPPED}"
        hint = "write a lower rate, larger packets, or a shorter run"
        yield Problem(what, hint, ("flow", most, "rate"))


def _dropped(flow: "Flow", way: Way, links: tuple[Link, ...], duration: int) -> float:
    """Packets of the entry that no link of its way can carry, or that wires lose, at least."""
    span = _span(flow, duration)
    match flow.kind:
        case "udp":
            packets, size = _udp_packets(flow, span), flow.packet
        case "onoff":
            packets, size = _onoff_packets(flow, span), flow.packet
        case "video":
            packets, size = _video_packets(flow, span), flow.payload + VIDEO_HEADERS
        case _:
            return 0.0
    left = packets
    for line in (links[index].line for index in way.path):
        rates = [max(bps for _, bps in line.steps)] if line.steps else []
        rates += [line.shaper.bps] if line.shaper is not None else []
        if rates:
            left = min(left, min(rates) * duration / 8e9 / size)
        left *= 1 - line.loss.mean
    return packets - left


def _span(flow: "Flow", duration: int) -> int:
    """For how long a flow of the entry sends at most, ns."""
    end = duration if flow.stop is None else min(duration, _most(flow.stop, flow.count))
    return max(0, end - flow.start.least)


def _most(spread: Spread, count: int) -> int:
    return max(spread.values) * (count - 1 if spread.law == "every" else 1)


def _clocked(flow: "Flow", scenario: "Scenario", way: Way, links: tuple[Link, ...]) -> Iterator[Problem]:
    lines = [links[index].line for index in (*way.path, *way.back)]
    if flow.access is not None or any(line.steps or line.shaper is not None for line in lines):
        return
    shortest = way.delay(links) if flow.rtt is None else flow.rtt.least
    if shortest + flow.jitter < LEAST_ROUND:
        link = links[way.path[0]]
        hint = f"write a rate, or delays that make {format_duration(LEAST_ROUND)} at least"
        what = "TCP over links without a rate whose round trip takes no time: the clock would stand still"
        yield Problem(what, hint, _rate_key(link, scenario))


def _rate_key(link: Link, scenario: "Scenario") -> Key:
    """Where a link's rate is written."""
    if scenario.bottleneck is not None:
        own = getattr(scenario.bottleneck, link.name)
        if own is not None and own.rate is not None:
            return (*link.key, link.name, "rate")
    return (*link.key, "rate")


def _too_many(packets: float, key: Key, hint: str) -> Iterator[Problem]:
    if packets > MAX_PACKETS:
        yield Problem(f"that makes {packets:.3g} packets; the most is {MAX_PACKETS}", hint, key)


def _udp_packets(flow: "Udp | OnOff", span: int) -> float:
    return flow.count * span / 1e9 * flow.rate / 8 / flow.packet


def _onoff_packets(flow: "OnOff", span: int) -> float:
    # Each on period begins with a packet, however short it is.
    on, off = max(1.0, _mean(flow.on)), _mean(flow.off)
    return flow.count * span / (on + off) + _udp_packets(flow, span) * on / (on + off)


def _video_packets(flow: "Video", span: int) -> float:
    if flow.frames is not None:
        repeats = span / flow.repeat if flow.repeat else 1.0
        return flow.count * repeats * sum(math.ceil(size / flow.payload) for _, size in flow.frames)
    if flow.rate is None:
        return 0.0
    return flow.count * span / 1e9 * (flow.fps + flow.rate / 8 / flow.payload)


def _datagrams(flow: "Udp", span: int, key: Key) -> Iterator[Problem]:
    packets = _udp_packets(flow, span)
    yield from _too_many(packets, (*key, "rate"), _slower(flow.rate, packets, "larger packets"))


def _periods(flow: "OnOff", span: int, key: Key) -> Iterator[Problem]:
    periods = flow.count * span / (max(1.0, _mean(flow.on)) + _mean(flow.off))
    if periods > MAX_PACKETS:
        least = format_duration(math.ceil(flow.count * span / MAX_PACKETS))
        hint = f"write on and off that make {least} or more together"
        yield from _too_many(periods, (*key, "on"), hint)
        return
    packets = _onoff_packets(flow, span)
    yield from _too_many(packets, (*key, "rate"), _slower(flow.rate, packets, "larger packets"))


def _mean(draw: Draw) -> float:
    return sum(draw.values) / len(draw.values)


def _video(flow: "Video", span: int, key: Key) -> Iterator[Problem]:
    if flow.frames is not None:
        largest = float(max(size for _, size in flow.frames))
        where = "frames"
    elif flow.rate is not None:
        mean = flow.rate / 8 / flow.fps
        # crates/sim, traffic.rs: an I frame of a group, and what chance makes of it.
        sigma = math.sqrt(math.log(1 + flow.cv**2))
        intra = flow.i_ratio * flow.gop * mean / (flow.i_ratio + flow.gop - 1)
        largest = intra * math.exp(UNLIKELY * sigma - sigma**2 / 2)
        where = "rate"
    else:
        return
    if largest / flow.payload > MAX_FRAME:
        what = f"a frame may have {largest / flow.payload:.3g} packets; the most is {MAX_FRAME}"
        payload = format_size(min(65_000, math.ceil(largest / MAX_FRAME)))
        yield Problem(what, f'write payload = "{payload}" or more, or smaller frames', (*key, where))
        return
    packets = _video_packets(flow, span)
    hint = "write larger payloads or a shorter run"
    yield from _too_many(
        packets, (*key, where), hint if flow.rate is None else _slower(flow.rate, packets, "larger payloads")
    )


def _slower(rate: int, packets: float, other: str) -> str:
    least = format_rate(max(1, int(rate * MAX_PACKETS / max(packets, 1))))
    return f'write rate = "{least}" or less, {other}, or a shorter run'
