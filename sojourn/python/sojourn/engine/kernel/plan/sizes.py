"""Sizes of packets, time after a run's end, memory of a guest. No I/O."""

import math
from collections.abc import Sequence

from sojourn.engine.kernel.graph import has_queue
from sojourn.scenario.realised import (
    Bulk,
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
from sojourn.scenario.tcp import MTU

LONGEST_LINGER_NS = 5 * 10**9
_NAMESPACE_KB = 1200
"""The memory needed for each namespace. A namespace itself takes a quarter of this. But the kernel
allows only half as many namespaces as threads, and two threads for each MB of memory: 64 kB of
stack each, in an eighth of the memory (fork.c, ucount.c)."""
_PACKET_KB = 2.5
"""A full packet in the kernel."""
_ROW_BYTES = 160
"""A packet with a row, in the traffic program and once more in the archive."""
_HEADERS_BYTES = 400
"""A packet with recorded headers at a link: raw, in columns, and in the archive."""


_PROGRAM_PACKET_BYTES = 400.0
"""A lower estimate of the mean packet of programs, whose packets may have any size."""
_EMPTY_OF_A_TRANSFER = 4.5
"""The packets of a transfer in addition to its full ones: SYN, ACK, FIN, ACK, and half of the last
data packet."""


def mtu(flows: Sequence[Flow]) -> int:
    """The MTU of every device, so that no packet is fragmented."""
    return max([MTU, *(flow.packet_bytes[0] for flow in flows)])


def linger_ns(links: Sequence[Link], flows: Sequence[Flow]) -> int:
    """Time after the run's end in which the packets that senders still have (about two windows)
    arrive: a few round trips through full queues.

    The taps are closed only after this time. If packets still arrived, one tap might have recorded
    a packet that another tap never sees.
    """
    extra = max((flow.path_extra_ns + flow.back_extra_ns for flow in flows), default=0)
    waits = sorted((_longest_wait(link) + link.delay_ns for link in links), reverse=True)
    return int(min(LONGEST_LINGER_NS, 5 * 10**8 + 4 * (extra + sum(waits[:4]))))


def _longest_wait(link: Link) -> int:
    """Time to drain a full queue at the link's lowest rate above 0, ns; 0 where nothing waits."""
    rates = [step.bps for step in link.rate if step.bps]
    rates += [link.shaper.bps] if link.shaper else []
    return int(_most_packets(link) * MTU * 8 * 10**9 // min(rates)) if rates else 0


def _most_packets(link: Link) -> int:
    """The most packets that its queue can hold, with any of its parameters."""
    return max(qdisc.packets for qdisc in (link.qdisc, *(step for _, step in link.qdisc_steps)))


def memory_mb(realised: Realised, namespaces: int, rows: bool) -> int:
    """Upper estimate of a guest's memory: packets in queues and on wires, namespaces, and a row of
    each packet if `rows`."""
    packets = rates = with_headers = 0.0
    extra = max((flow.path_extra_ns for flow in realised.flows), default=0)
    for number, link in enumerate(realised.links):
        rate = max((step.bps for step in link.rate), default=0)
        on_wires = rate / 8 / MTU * (link.delay_ns + extra) / 1e9
        in_queue = min(_longest_wait(link) / 1e9 * rate / 8 / MTU, 100_000)
        packets += on_wires + in_queue
        if rows and has_queue(link) and link.sampled:
            rates += _seen_a_second(number, realised) * realised.duration_ns / 1e9
        if realised.record.headers:
            with_headers += _seen_a_second(number, realised) * realised.duration_ns / 1e9
    need = (_NAMESPACE_KB * namespaces + _PACKET_KB * packets) / 1024
    need += (rates * _ROW_BYTES + with_headers * _HEADERS_BYTES) / 2**20
    return 192 + 64 * int(need / 64 + 1)


def _seen_a_second(number: int, realised: Realised) -> float:
    """Upper estimate of the packets per second that arrive at a link's queue.

    A source without congestion control sends at its own rate. TCP sends at the rate of the slowest
    link on its path, and half as much again for losses. It causes as many acknowledgements, however
    slow the way back.
    """
    links = realised.links
    sent = 0.0
    forth: dict[int, float] = {}
    back: dict[int, float] = {}
    for flow in realised.flows:
        ways = [rates for rates, way in ((forth, flow.path), (back, flow.back)) if number in way]
        traffic = flow.traffic
        if not isinstance(traffic, Bulk | Transfers | Requests | Stream | ProgramTraffic):
            sent += len(ways) * _sent_a_second(traffic)
            continue
        passed = [at for at in flow.path if _most_bps(links[at])] or [number]
        narrow = min(passed, key=lambda at: _most_bps(links[at]))
        for rates in ways:
            rates[narrow] = min(rates.get(narrow, MTU), _mean_packet(traffic))
    return sent + sum(
        share * _most_bps(links[at]) / 8 / size
        for share, rates in ((1.5, forth), (1.0, back))
        for at, size in rates.items()
    )


def _most_bps(link: Link) -> int:
    """The link's highest rate; 0: no limit."""
    rate: int = max((step.bps for step in link.rate), default=0)
    shaped: int = link.shaper.bps if link.shaper else rate
    return min(rate, shaped) if rate else shaped


def _sent_a_second(traffic: Ping | Udp | Video) -> float:
    """Packets per second of a ping or a stream; for one with pauses, while it is on."""
    match traffic:
        case Ping(interval_ns=interval):
            return 1e9 / interval
        case Udp(bps=bps, packet_bytes=size):
            return bps / 8 / size
        case Video(frames=ModelFrames(bps=bps, fps=fps), payload_bytes=size):
            # The last packet of a frame may be small.
            return bps / 8 / size + fps
        case Video(frames=TraceFrames(frames=rows, period_ns=period), payload_bytes=size):
            return sum(math.ceil(row[1] / size) for row in rows) / (period / 1e9)
    raise AssertionError(f"no kind of traffic: {traffic}")


def _mean_packet(traffic: Bulk | Transfers | Requests | Stream | ProgramTraffic) -> float:
    """Lower estimate of the mean size of a flow's IP packets from source to target, bytes. Each
    transfer begins and ends with some empty packets."""
    if isinstance(traffic, ProgramTraffic):
        return _PROGRAM_PACKET_BYTES
    tcp = traffic.tcp
    if isinstance(traffic, Bulk):
        return float(tcp.mss + tcp.header_bytes)
    size = (
        traffic.ladder_bps[0] * traffic.segment_ns / 8e9
        if isinstance(traffic, Stream)
        else traffic.bytes.mean
    )
    return size / (size / tcp.mss + _EMPTY_OF_A_TRANSFER) + tcp.header_bytes
