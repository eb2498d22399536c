"""A capture as a measurement: RTTs, bytes in flight and retransmissions of its conversations.

The place of the capture divides the RTT of a TCP conversation into two halves: from here to the far
end and back, and from here to the near end and back. With timestamps (RFC 7323) a half is the time from
the first packet with a value to the first packet that echoes it. The RTT is the sum of a far half and
the near half that follows it. So it includes a queue on either side; the near half includes the queue
in front of this place. Without timestamps only the far half is measured: the time from a segment to the
ACK that covers it, for segments that were not retransmitted (Karn). For an ICMP echo, too, only the half
from here is measured.

QUIC's client inverts the spin bit in each round trip and its server reflects it (RFC 9000 section
17.4). So a half is the time from an edge in one direction to the next edge in the other direction. If a
sender pauses, the half contains its pause (RFC 9312 section 4.2).

A stream is the data that a sender sent. TCP's data are counted by sequence numbers: a segment below the
highest sequence number so far was retransmitted or overtaken. QUIC's data are the bytes of its
datagrams, in which retransmissions are not visible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sojourn.arrays import Floats
from sojourn.formats import packets, resent
from sojourn.formats.content import Content
from sojourn.formats.file_series import Ping, Pings, Stream
from sojourn.formats.format import FileFormatError
from sojourn.formats.measured import IDLE, LEAST_IDLE_S, FileMeasurement
from sojourn.formats.packets import Ends, Int64s, Packets

if TYPE_CHECKING:
    from sojourn.facts import Direction, SessionPhase

MOST_STREAMS = 64
"""The most streams, the largest first. The others count only for the phases."""
MOST_TARGETS = 8
LEAST_BYTES = 10_000
GRID_NS = 100_000_000
BIN_NS = 500_000_000
BUSY = 0.3
"""A direction is loaded while it carries at least this share of its highest rate (the 95th
percentile of half seconds)."""
NEAR_QUEUE_NS = 5_000_000
"""If the median of a bulk upload's near half exceeds the minimum by more than this, the queue is on
this side of the capture."""
MOST_PHASES = 20
_HTTPS = 443
_LEAST_EDGES = 8
"""The fewest edges of the spin bit: four round trips."""
LOST_AFTER_NS = 10**9
"""An echo request in the last second may still be answered."""


@dataclass(frozen=True)
class _Conversation:
    """A connection of TCP or QUIC: the rows of its packets in each direction."""

    ends: Ends
    """From the near end."""
    out: Int64s
    back: Int64s

    @property
    def name(self) -> str:
        """Its far end."""
        quic = "" if self.ends.protocol == packets.TCP else " QUIC"
        return f"{self.ends.target}:{self.ends.target_port}{quic}"


def measurement(content: Content) -> FileMeasurement:
    """A measurement of the line on which the capture was made.

    Raises:
        UserError: it can't be unpacked.
        FileFormatError: it is not a capture, or has neither TCP, QUIC nor a ping.
    """
    if not content.is_capture:
        raise FileFormatError("it is not a capture: give pcapng or pcap, as tcpdump writes it")
    found, notes = resent.read_packets(content)
    ours, sentence = resent.home(found)
    notes.append(f"{sentence}: the packets from there go up.")
    zero = int(found.t_ns[0])
    rows = resent.rows_of(found)
    conversations = _conversations(found, rows, ours)
    streams: list[Stream] = []
    wholes: list[Pings] = []
    halves: list[Pings] = []
    near_queue = False
    for one in conversations:
        far, near = _halves(found, one)
        whole = _joined(far, near)
        for way, sent, acks in (("up", one.out, one.back), ("down", one.back, one.out)):
            to: Direction = "up" if way == "up" else "down"
            if one.ends.protocol == packets.TCP:
                stream = _stream(found, sent, acks, to, zero)
            else:
                stream = _datagrams(found, sent, to, zero)
            if stream is not None and len(streams) < MOST_STREAMS:
                stream.name = f"{one.name} {way}"
                stream.srtt_ms = _on_times(whole, stream.t, zero)
                streams.append(stream)
                if way == "up" and len(near[2]):
                    waited_ns = float(np.median(near[2])) - float(near[2].min())
                    near_queue |= waited_ns > NEAR_QUEUE_NS
        name = one.name
        if len(wholes) < MOST_TARGETS and len(whole[0]):
            wholes.append(_pings(name, whole, zero))
            halves.append(_pings(f"{name}, from here to {one.ends.target}", far, zero))
            halves.append(_pings(f"{name}, from here to {one.ends.source}", near, zero))
        elif len(halves) < 2 * MOST_TARGETS and len(far[0]):
            halves.append(_pings(f"{name}, from here to {one.ends.target}", far, zero))
    echoes = _echoes(found, rows, ours, zero)
    if not (streams or wholes or halves or echoes):
        raise FileFormatError("it has neither a connection of TCP or QUIC nor a ping")
    # A ping that passed the queue before it was captured doesn't show it: a conversation does.
    targets = [*wholes, *echoes, *halves] if near_queue and wholes else [*echoes, *wholes, *halves]
    if near_queue and echoes:
        notes.append(
            "The queue is on this side of the capture: pings are seen when they have passed it, so their RTTs don't include it. The conversations' RTTs do."
        )
    notes += _added(wholes) + _filled(found, conversations, wholes, zero) + _ecn(found, ours)
    return FileMeasurement(
        program="capture", version="", test=f"{len(found.t_ns)} packets", host="", began_s=zero / 1e9, streams=streams,
        pings=targets, phases=_phases(found, ours), one_host=True, notes=notes,
    )  # fmt: skip


def _conversations(found: Packets, rows: Sequence[Int64s], ours: set[str]) -> list[_Conversation]:
    """Connections of TCP and QUIC, the largest first."""
    numbers = {ends: number for number, ends in enumerate(found.flows)}
    none = np.zeros(0, np.int64)
    seen: dict[Ends, _Conversation] = {}
    quic = _quic_flows(found)
    for number, ends in enumerate(found.flows):
        if ends.protocol != packets.TCP and not {ends, ends.back} & quic:
            continue
        near = ends if ends.source in ours else ends.back
        if near in seen:
            continue
        other = numbers.get(ends.back)
        pair = (rows[number], none if other is None else rows[other])
        out, back = pair if near == ends else pair[::-1]
        seen[near] = _Conversation(near, out, back)
    return sorted(
        seen.values(),
        key=lambda one: -int(found.payload[one.out].sum() + found.payload[one.back].sum()),
    )


def _quic_flows(found: Packets) -> set[Ends]:
    """The flows of QUIC: those with a long header, and those at QUIC's usual port in which every
    packet may be QUIC. The second kind began before the capture, so it has no long header."""
    flows = set()
    count = len(found.flows)
    long = np.bincount(found.flow[found.quic == packets.LONG_HEADER], minlength=count)
    # Packets below 20 bytes are not looked at.
    other = np.bincount(found.flow[(found.quic == 0) & (found.payload >= 20)], minlength=count)
    short = np.bincount(found.flow[found.quic > packets.LONG_HEADER], minlength=count)
    for number, ends in enumerate(found.flows):
        usual = _HTTPS in (ends.source_port, ends.target_port)
        if long[number] or (usual and short[number] and not other[number]):
            flows.add(ends)
    return flows


def _unwrapped(values: Int64s) -> Int64s:
    """Unwraps sequence numbers, which are modulo 2^32."""
    steps = np.diff(values, prepend=values[:1])
    line: Int64s = values[:1] + np.cumsum((steps + 2**31) % 2**32 - 2**31)
    return line


_Samples = tuple[Int64s, Int64s, Int64s]
"""When each began, when it ended, and the time in between, ns; in order of beginning."""
_NONE: _Samples = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def _halves(found: Packets, one: _Conversation) -> tuple[_Samples, _Samples]:
    """From here to the far end and back, and from here to the near end and back."""
    if one.ends.protocol == packets.TCP:
        return _half(found, one.out, one.back), _half(found, one.back, one.out)
    return _by_spin_bit(found, one)


def _by_spin_bit(found: Packets, one: _Conversation) -> tuple[_Samples, _Samples]:
    edges = sorted(
        (at, side, value) for side, rows in enumerate((one.out, one.back)) for at, value in _edges(found, rows)
    )  # fmt: skip
    # Either end may be the client. With the wrong one nearly every second edge is out of turn.
    unused, halves = min(
        (_in_turn(edges, client) for client in (0, 1)), key=lambda followed: followed[0]
    )
    used = len(edges) - unused
    # An endpoint that does not spin sets the bit at random: then as many edges are out of turn as
    # in turn.
    if used < _LEAST_EDGES or unused > used / 4:
        return _NONE, _NONE
    far, near = (np.array(half, np.int64).reshape(-1, 2) for half in halves)
    return _ordered(far[:, 0], far[:, 1]), _ordered(near[:, 0], near[:, 1])


def _edges(found: Packets, rows: Int64s) -> list[tuple[int, int]]:
    """The times at which the spin bit of one direction changed, each with the new value."""
    rows = rows[found.quic[rows] > packets.LONG_HEADER]
    values = found.quic[rows] - packets.SPIN_0
    changed = np.flatnonzero(np.diff(values)) + 1
    return list(zip(found.t_ns[rows[changed]].tolist(), values[changed].tolist(), strict=True))


def _in_turn(
    edges: Sequence[tuple[int, int, int]], client: int
) -> tuple[int, tuple[list[tuple[int, int]], list[tuple[int, int]]]]:
    """Counts the edges out of turn, for example of packets that were overtaken. Also returns two
    lists of (begin, end): from an edge of the near side (0) to the next edge of the far side (1),
    and from the far side to the near side."""
    halves: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    unused = 0
    last: tuple[int, int, int] | None = None
    for edge in edges:
        at, side, value = edge
        if last is None:
            last = edge
        # The server takes the client's value, the client inverts the server's.
        elif side != last[1] and (value == last[2]) == (side != client):
            halves[last[1]].append((last[0], at))
            last = edge
        else:
            unused += 1
    return unused, halves


def _half(found: Packets, sent: Int64s, replies: Int64s) -> _Samples:
    """Times from packets here to their replies here."""
    if not sent.size or not replies.size:
        return _NONE
    if (found.tsval[sent] >= 0).any() and (found.tsecr[replies] >= 0).any():
        return _by_timestamps(found, sent, replies)
    return _by_numbers(found, sent, replies)


def _by_timestamps(found: Packets, sent: Int64s, replies: Int64s) -> _Samples:
    sent = sent[found.tsval[sent] >= 0]
    replies = replies[(found.tsecr[replies] >= 0) & (found.flags[replies] & packets.ACK != 0)]
    # Data is answered by an ACK, and an ACK by data if the sender waited for it.
    asks = found.payload[sent] > 0
    if found.payload[replies].sum() > 10 * found.payload[sent].sum():
        asks |= True
        replies = replies[found.payload[replies] > 0]
    values, first = np.unique(found.tsval[sent], return_index=True)
    echoes, reply = np.unique(found.tsecr[replies], return_index=True)
    _, here, there = np.intersect1d(values, echoes, assume_unique=True, return_indices=True)
    begins, ends = found.t_ns[sent[first[here]]], found.t_ns[replies[reply[there]]]
    good = asks[first[here]] & (ends >= begins)
    return _ordered(begins[good], ends[good])


def _by_numbers(found: Packets, sent: Int64s, replies: Int64s) -> _Samples:
    data = sent[found.payload[sent] > 0]
    acks = replies[found.flags[replies] & packets.ACK != 0]
    if not data.size or not acks.size:
        return _NONE
    first = found.seq[data[0]]
    seq = _unwrapped(found.seq[data]) - first
    ack = np.maximum.accumulate(_unwrapped(np.append(first, found.ack[acks]))[1:] - first)
    end = seq + found.payload[data]
    highest = np.maximum.accumulate(end)
    again = seq < np.append(seq[:1], highest[:-1])
    # Leaves out retransmitted segments, and segments whose ACK had to wait until a hole was filled.
    after_hole = np.zeros(len(data), bool)
    for place in np.flatnonzero(again).tolist():
        after_hole[np.searchsorted(highest, seq[place], side="right") : place + 1] = True
    good = ~again & ~after_hole
    at = np.searchsorted(ack, end[good])
    known = at < len(ack)
    begins, ends = found.t_ns[data[good][known]], found.t_ns[acks[at[known]]]
    return _ordered(begins[ends >= begins], ends[ends >= begins])


def _ordered(begins: Int64s, ends: Int64s) -> _Samples:
    order = np.argsort(begins, kind="stable")
    return begins[order], ends[order], (ends - begins)[order]


def _joined(far: _Samples, near: _Samples) -> _Samples:
    """The whole RTT: each far half with the near half that begins where it ends."""
    if not far[0].size or not near[0].size:
        return _NONE
    at = np.searchsorted(near[0], far[1])
    known = at < len(near[0])
    begins, ends, next_at = far[0][known], far[1][known], at[known]
    # The near half may begin a little later, where ACKs share a timestamp.
    close = near[0][next_at] - ends < far[2][known]
    whole = far[2][known][close] + near[2][next_at[close]]
    return begins[close], begins[close] + whole, whole


def _pings(name: str, samples: _Samples, zero: int) -> Pings:
    begins, _, took = samples
    found = Pings(name, losses_known=False)
    found.sent = [
        Ping((at - zero) / 1e9, seq, rtt / 1e6)
        for seq, (at, rtt) in enumerate(zip(begins.tolist(), took.tolist(), strict=True))
    ]
    return found


def _echoes(found: Packets, rows: Sequence[Int64s], ours: set[str], zero: int) -> list[Pings]:
    """The pings from this side, the series with the most probes first."""
    numbers = {ends: number for number, ends in enumerate(found.flows)}
    targets = []
    last = int(found.t_ns[-1])
    for number, ends in enumerate(found.flows):
        asked = rows[number][found.echo[rows[number]] == 1]
        if not asked.size:
            continue
        other = numbers.get(ends.back)
        back = np.zeros(0, np.int64) if other is None else rows[other]
        answers = back[found.echo[back] == 2]
        seqs = _unwrapped(found.seq[asked] << 16) >> 16
        times = dict(zip(seqs.tolist(), found.t_ns[asked].tolist(), strict=True))
        rtts: dict[int, int] = {}
        if answers.size:
            replied = _unwrapped(found.seq[answers] << 16) >> 16
            shift = round((int(seqs[0]) - int(replied[0])) / 2**16) * 2**16
            for seq, at in zip(
                (replied + shift).tolist(), found.t_ns[answers].tolist(), strict=True
            ):
                if at >= times.get(seq, at + 1):
                    rtts.setdefault(seq, at - times[seq])
        target = Pings(
            f"{ends.target} ICMP" if ends.source in ours else f"{ends.source} ICMP to here"
        )
        for seq, at in sorted(times.items(), key=lambda item: item[1]):
            rtt = rtts.get(seq)
            if rtt is not None or last - at > LOST_AFTER_NS:
                target.add((at - zero) / 1e9, max(seq, 0), None if rtt is None else rtt / 1e6)
        if target.sent:
            targets.append(target)
    return sorted(targets, key=lambda target: -len(target.sent))[:MOST_TARGETS]


def _stream(found: Packets, sent: Int64s, acks: Int64s, way: Direction, zero: int) -> Stream | None:
    """The data of one direction every 100 ms; None: there is too little."""
    data = sent[found.payload[sent] > 0]
    if data.size < 2 or found.payload[data].sum() < LEAST_BYTES:
        return None
    first = found.seq[data[0]]
    seq = _unwrapped(found.seq[data]) - first
    highest = np.maximum.accumulate(seq + found.payload[data])
    again = np.cumsum(seq < np.append(seq[:1], highest[:-1]))
    times = found.t_ns[data]
    grid = np.arange(times[0], times[-1] + GRID_NS, GRID_NS)
    at = np.searchsorted(times, grid, side="right") - 1
    covering = acks[found.flags[acks] & packets.ACK != 0]
    if covering.size:
        ack = np.maximum.accumulate(_unwrapped(np.append(first, found.ack[covering]))[1:] - first)
        latest = np.searchsorted(found.t_ns[covering], grid, side="right") - 1
        covered = np.where(latest >= 0, ack[np.maximum(latest, 0)], 0)
        inflight = np.maximum(highest[at] - covered, 0).astype(float).tolist()
    else:
        inflight = []
    stream = Stream("", way)
    stream.t = ((grid - zero) / 1e9).tolist()
    stream.delivered = highest[at].astype(float).tolist()
    stream.delivered[0] = 0.0
    stream.retransmits = again[at].astype(float).tolist()
    stream.inflight = inflight
    return stream


def _datagrams(found: Packets, sent: Int64s, way: Direction, zero: int) -> Stream | None:
    """The bytes of one direction's datagrams every 100 ms; None: they are too few."""
    if sent.size < 2 or found.payload[sent].sum() < LEAST_BYTES:
        return None
    times = found.t_ns[sent]
    grid = np.arange(times[0], times[-1] + GRID_NS, GRID_NS)
    at = np.searchsorted(times, grid, side="right") - 1
    stream = Stream("", way)
    stream.t = ((grid - zero) / 1e9).tolist()
    stream.delivered = np.cumsum(found.payload[sent])[at].astype(float).tolist()
    stream.delivered[0] = 0.0
    stream.retransmits = [math.nan] * len(stream.t)
    return stream


def _on_times(samples: _Samples, times: Sequence[float], zero: int) -> list[float]:
    """The latest sample at each time, in ms."""
    begins, _, took = samples
    if not begins.size:
        return []
    at = np.searchsorted(begins - zero, np.asarray(times) * 1e9, side="right") - 1
    latest: Floats = np.where(at >= 0, took[np.maximum(at, 0)] / 1e6, np.nan)
    return [float(each) for each in latest]


def _phases(found: Packets, ours: set[str]) -> list[SessionPhase]:
    """Spans of time by the directions that are loaded. Empty: there are too many."""
    up = np.array([resent.is_up(ends, ours) for ends in found.flows])[found.flow]
    bins = (found.t_ns - found.t_ns[0]) // BIN_NS
    end = (int(found.t_ns[-1]) - int(found.t_ns[0])) / 1e9
    loaded = []
    for way in (up, ~up):
        carried = np.bincount(bins[way], found.size[way], int(bins[-1]) + 1)
        most = np.percentile(carried, 95)
        # Pings and ACKs alone load nothing: 100 kbit/s.
        loaded.append((carried >= BUSY * most) & (carried > 6250))
    if loaded[0].any() and loaded[1].any():
        sizes = [found.size[way].sum() for way in (up, ~up)]
        small = int(np.argmin(sizes))
        if sizes[small] < sizes[1 - small] / 10:
            # These are the ACKs of the other direction.
            loaded[small][:] = False
    kinds = np.select(
        [loaded[0] & loaded[1], loaded[0], loaded[1]], ["both", "upload", "download"], IDLE
    ).tolist()
    spans: list[tuple[str, float, float]] = []
    for number, kind in enumerate(kinds):
        last = min((number + 1) * BIN_NS / 1e9, end)
        if spans and spans[-1][0] == kind:
            spans[-1] = (kind, spans[-1][1], last)
        else:
            spans.append((kind, number * BIN_NS / 1e9, last))
    spans = [span for span in spans if span[2] - span[1] >= LEAST_IDLE_S]
    if len(spans) > MOST_PHASES:
        return []
    return [
        {"name": name, "kind": name, "start_ns": round(first * 1e9), "end_ns": round(last * 1e9), "complete": True}
        for name, first, last in spans
    ]  # fmt: skip


def _added(targets: Sequence[Pings]) -> list[str]:
    """Returns a sentence for each conversation: the least RTT, and by how much the means over 100 ms
    exceed it. These means weigh equal times equally; a fast sender has more samples than a slow one."""
    sentences = []
    for target in targets:
        times = np.array([ping.t + ping.rtt_ms / 1e3 for ping in target.sent])
        rtts = np.array([ping.rtt_ms for ping in target.sent])
        bins = ((times - times.min()) * 1e9 // GRID_NS).astype(np.int64)
        counts = np.bincount(bins)
        means = np.bincount(bins, rtts)[counts > 0] / counts[counts > 0]
        base = float(rtts.min())
        sentences.append(
            f"{target.name}: the least RTT is {base:.4g} ms. The means over 100 ms exceed it by {means.mean() - base:.4g} ms on average, and by {np.percentile(means, 95) - base:.4g} ms at their 95th percentile."
        )
    return sentences


LEAST_ADDED_MS = 5.0
"""A queue is long while it adds at least this delay, and half of the most that it adds (the 95th
percentile of the means of 100 ms)."""
SHOWN_SPANS, SHOWN_FLOWS = 3, 3


def _filled(
    found: Packets, conversations: Sequence[_Conversation], wholes: Sequence[Pings], zero: int
) -> list[str]:
    """Returns a sentence on when the queue was long, and on the conversations that filled it."""
    bins = int(found.t_ns[-1] - zero) // GRID_NS + 1
    sums, counts = np.zeros(bins), np.zeros(bins)
    for target in wholes:
        rtts = np.array([ping.rtt_ms for ping in target.sent])
        ends = np.array([ping.t + ping.rtt_ms / 1e3 for ping in target.sent])
        at = np.clip((ends * 1e9 // GRID_NS).astype(np.int64), 0, bins - 1)
        np.add.at(sums, at, rtts - rtts.min())
        np.add.at(counts, at, 1)
    if not counts.any():
        return []
    added = np.divide(sums, counts, out=np.zeros(bins), where=counts > 0)
    least = max(float(np.percentile(added[counts > 0], 95)) / 2, LEAST_ADDED_MS)
    full = added >= least
    if not full.any():
        return [f"No queue was long: as a mean of 100 ms the RTT was never {LEAST_ADDED_MS:g} ms above its least."]  # fmt: skip
    edges = np.flatnonzero(np.diff(np.concatenate(([0], full.astype(np.int8), [0]))))
    spans = sorted(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True), key=lambda span: span[0] - span[1])  # fmt: skip
    when = [f"{a / 10:.1f} to {b / 10:.1f} s" for a, b in sorted(spans[:SHOWN_SPANS])]
    more = f" and {len(spans) - SHOWN_SPANS} shorter times" if len(spans) > SHOWN_SPANS else ""
    sizes: dict[str, dict[str, int]] = {"up": {}, "down": {}}
    for one in conversations:
        for way, rows in (("up", one.out), ("down", one.back)):
            inside = rows[full[(found.t_ns[rows] - zero) // GRID_NS]]
            sizes[way][one.name] = sizes[way].get(one.name, 0) + int(found.size[inside].sum())
    way = max(sizes, key=lambda each: sum(sizes[each].values()))
    total = sum(sizes[way].values())
    largest = sorted(sizes[way].items(), key=lambda item: -item[1])[:SHOWN_FLOWS]
    shares = ", ".join(f"{name} {size / total:.0%}" for name, size in largest if size)
    return [
        f"A queue added at least {least:.4g} ms to the least RTT for {full.sum() / 10:.1f} s: {', '.join(when)}{more}. Bytes {way} in that time: {shares}."
    ]


def _ecn(found: Packets, ours: set[str]) -> list[str]:
    up = np.array([resent.is_up(ends, ours) for ends in found.flows])[found.flow]
    notes = []
    for name, rows in (("up", up), ("down", ~up)):
        counts = np.bincount(found.ds[rows] & 3, minlength=4)
        if counts[1:].any():
            listed = ", ".join(
                f"{count} {code}"
                for code, count in zip(resent.CODEPOINTS, counts, strict=True)
                if count
            )
            notes.append(f"ECN of packets {name}: {listed}.")
    return notes
