"""The packets of a capture, sent again by a scenario, each flow in its direction.

The scenario has a flow for each direction of each conversation, the largest first; the smallest
ones share one flow in each direction. The packets of each flow are in a capture that is written
beside the scenario and named by its SHA-256. It is open loop: packets are sent when they were
captured, whatever the queue does. Packets above the MTU, which segmentation offload made, are cut
at the MTU.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, replace
from ipaddress import ip_address

import numpy as np

from sojourn.formats import packets
from sojourn.formats.content import Content
from sojourn.formats.file_series import counted, unique_names
from sojourn.formats.format import FileFormatError
from sojourn.formats.packets import Ends, Int64s, Packets
from sojourn.formats.texts import GUESSED_DELAY, TO_RUN, Texts
from sojourn.records import pcapng
from sojourn.sanitize import plain, toml

MOST_FLOWS = 100
"""The most flows that are kept apart. Smaller ones are merged into one for each direction."""
MOST_KEPT = 450_000
"""Packets of a scenario, whose text in a Run has at most 16 MiB: 35 bytes a packet."""
MOST_OF_A_FLOW = 200_000
"""Packets of one of its flows."""
LONGEST_NS = 6 * 3600 * 10**9
MTU, LEAST = 1500, 41
FOLDER = ".packets"
"""The ending of the folder of the packets. A file in it is named by the SHA-256 of its content."""
RAW_IP = 101
QUEUE_SHARE = 0.9
"""The guessed rate of the link as a share of the busiest tenth of a second."""
BIN_NS = 100_000_000
CODEPOINTS = ("not-ECT", "ECT(1)", "ECT(0)", "CE")


def read_packets(content: Content) -> tuple[Packets, list[str]]:
    """The packets of a capture, and notes on those that were not read.

    Raises:
        FileFormatError: none was read.
    """
    with content.stream() as stream:
        found = packets.read(stream, content.span_ns)
    unread = [
        f"{counted(count, 'frame', 'frames')} of {name}"
        for name, count in found.unread.most_common(8)
    ]
    if not found.flows and content.span_ns is not None:
        raise FileFormatError("it has no packet of IP in the time that --time names")
    if not found.flows:
        raise FileFormatError(
            f"it has no packet of IP that can be read: {', '.join(unread) or 'it is empty'}"
        )
    span_ns = int(found.t_ns[-1]) - int(found.t_ns[0])
    if span_ns > LONGEST_NS:
        raise FileFormatError(
            f"its first and last packets are {span_ns / 3.6e12:.4g} hours apart; at most {LONGEST_NS / 3.6e12:g} hours are read: {packets.CHOOSE}"
        )
    return found, [f"Not read: {', '.join(unread)}."] if unread else []


def home(found: Packets) -> tuple[set[str], str]:
    """The addresses on this side, and a sentence on how they were chosen.

    If private addresses exchange packets with public ones, this side is these private addresses.
    Otherwise it is the address with the most bytes (if two have the same, the one that sent first)
    and the peers of its peers. In other conversations it is the end whose address shares more
    leading bits with that address.
    """
    private = {
        address
        for ends in found.flows
        for address, other in ((ends.source, ends.target), (ends.target, ends.source))
        if _private(address) and not _private(other)
    }
    if private:
        return private, "Private addresses are this side of the line"
    sizes = np.bincount(found.flow, found.size, len(found.flows))
    by_address: Counter[str] = Counter()
    peers: dict[str, set[str]] = {}
    for ends, size in zip(found.flows, sizes, strict=True):
        for address, other in ((ends.source, ends.target), (ends.target, ends.source)):
            by_address[address] += int(size)
            peers.setdefault(address, set()).add(other)
    # A multicast, broadcast or unspecified address is not the address of one host.
    hosts = {each: size for each, size in by_address.items() if not _of_many(each)}
    most = max((hosts or by_address).values())
    senders = [found.flows[number].source for number in found.flow[:1000].tolist()]
    likely = [address for address, size in (hosts or by_address).items() if size == most]
    chosen = next((address for address in senders if address in likely), likely[0])
    sides: dict[str, bool] = {}
    for address in sorted(peers, key=lambda each: (each != chosen, -_alike(each, chosen))):
        if address in sides:
            continue
        waiting = [(address, True)]
        while waiting:
            each, ours = waiting.pop()
            if each not in sides:
                sides[each] = ours
                waiting += [(other, not ours) for other in peers[each]]
    return {
        address for address, ours in sides.items() if ours
    }, f"{chosen} is taken for this side of the line"


def _alike(one: str, other: str) -> int:
    """The bits that two addresses have in common at their beginning."""
    first, second = ip_address(one), ip_address(other)
    if first.version != second.version:
        return -1
    return first.max_prefixlen - (int(first) ^ int(second)).bit_length()


def is_up(ends: Ends, ours: set[str]) -> bool:
    """Whether these packets come from this side. If a host talks to itself, the client is the end
    with the higher port."""
    if ends.source == ends.target:
        return ends.source_port >= ends.target_port
    return ends.source in ours


def _of_many(address: str) -> bool:
    parsed = ip_address(address)
    return parsed.is_multicast or parsed.is_unspecified or address == "255.255.255.255"


def _private(address: str) -> bool:
    parsed = ip_address(address)
    return parsed.is_private and not parsed.is_loopback and not parsed.is_multicast


def texts(content: Content) -> Texts:
    """The scenario and the capture of its packets.

    Raises:
        FileFormatError: it is damaged, has no packet of IP, or too many.
    """
    found, notes = read_packets(content)
    kept = int(pieces(found.size).sum())
    if kept > MOST_KEPT:
        raise FileFormatError(
            f"it has {kept} packets, and a scenario keeps {MOST_KEPT}: {packets.CHOOSE}"
        )
    ours, sentence = home(found)
    notes.append(f"{sentence}: the packets from there go up.")
    flows = _chosen(found, ours)
    start = int(found.t_ns[0])
    span_s = (int(found.t_ns[-1]) - start) / 1e9
    big = int((found.size > MTU).sum())
    if big:
        notes.append(
            f"{big} packets are larger than {MTU} bytes, by segmentation offload: each is cut into packets of {MTU}."
        )
    marked = np.bincount(found.ds & 3, minlength=4)
    if marked[1:].any():
        counts = ", ".join(
            f"{count} {name}" for name, count in zip(CODEPOINTS, marked, strict=True) if count
        )
        notes.append(
            f"ECN of the packets: {counts}. They are sent as not-ECT: a queue drops what it would mark."
        )
    notes.append(
        "Open loop: packets are sent when they were captured. A TCP of the capture does not slow down when the queue is full, and has already adapted to its own line."
    )
    rate = _rate(found, flows)
    notes.append(
        f"The line is a guess: {' and '.join(f'{bps / 1e6:.4g} Mbit/s {way}' for way, bps in rate.items())}, {QUEUE_SHARE:.0%} of the busiest 100 ms, and {GUESSED_DELAY} each way."
    )
    parts = _parts(found, flows, notes)
    written = [_written(found, part, start) for part in parts]
    files = [f"{FOLDER}/{hashlib.sha256(data).hexdigest()}.pcapng" for data in written]
    text = _scenario(content, found, parts, files, rate, span_s)
    taken = [
        f"{len(found.t_ns)} packets of {len(found.flows)} flows over {span_s:.4g} s, {sum(way == 'up' for _, way, _ in flows)} up and {sum(way == 'down' for _, way, _ in flows)} down"
    ]
    binary = dict(zip(files, written, strict=True))
    return Texts({".toml": text}, taken, notes, binary, use=TO_RUN)


_Flow = tuple[str, str, Int64s]
"""A name, a direction, and the rows of its packets."""


def _chosen(found: Packets, ours: set[str]) -> list[_Flow]:
    sizes = np.bincount(found.flow, found.size, len(found.flows))
    order = np.argsort(-sizes, kind="stable")
    rows = rows_of(found)
    flows: list[_Flow] = []
    rest: dict[str, list[Int64s]] = {"up": [], "down": []}
    for number in order:
        ends = found.flows[int(number)]
        way = "up" if is_up(ends, ours) else "down"
        if len(flows) < MOST_FLOWS:
            flows.append((plain(str(ends)), way, rows[int(number)]))
        else:
            rest[way].append(rows[int(number)])
    for way, parts in rest.items():
        if parts:
            flows.append((f"{len(parts)} smaller flows {way}", way, np.sort(np.concatenate(parts))))
    return flows


def rows_of(found: Packets) -> list[Int64s]:
    """The rows of each flow's packets."""
    order = np.argsort(found.flow, kind="stable")
    ends = np.cumsum(np.bincount(found.flow, minlength=len(found.flows)))
    return np.split(order, ends[:-1])


def _rate(found: Packets, flows: list[_Flow]) -> dict[str, int]:
    """A guess of the link's rate in each direction, in bit/s: the capture fills it at its busiest."""
    rates = {}
    for way in ("down", "up"):
        own = [rows for _, each, rows in flows if each == way]
        rows = np.concatenate(own) if own else np.zeros(0, np.int64)
        bins = (
            np.bincount((found.t_ns[rows] - found.t_ns[0]) // BIN_NS, found.size[rows])
            if rows.size
            else np.zeros(1)
        )
        rates[way] = max(round(float(bins.max()) * 8 * QUEUE_SHARE * 1e9 / BIN_NS), 100_000)
    return rates


@dataclass(frozen=True)
class _Part:
    """The packets of a flow, or a part of them in time."""

    name: str
    way: str
    rows: Int64s


def _parts(found: Packets, flows: list[_Flow], notes: list[str]) -> list[_Part]:
    """The entries of the scenario: flows with more packets than an entry has are sent in parts."""
    parts = []
    divided = 0
    for name, (_, way, rows) in zip(
        unique_names([name for name, _, _ in flows]), flows, strict=True
    ):
        first = np.cumsum(pieces(found.size[rows])) - 1
        several = np.split(
            rows, np.searchsorted(first, np.arange(MOST_OF_A_FLOW, first[-1] + 1, MOST_OF_A_FLOW))
        )
        divided += len(several) > 1
        parts += [
            _Part(name if number == 1 else f"{name} {number}", way, each)
            for number, each in enumerate(several, 1)
        ]
    if divided:
        notes.append(
            f"{counted(divided, 'flow', 'flows')} of more than {MOST_OF_A_FLOW} packets: each is sent in parts, one after the other, which a queue that separates flows tells apart."
        )
    names = unique_names([part.name for part in parts])
    return [replace(part, name=name) for part, name in zip(parts, names, strict=True)]


def _scenario(
    content: Content, found: Packets, parts: list[_Part], files: list[str], rate: dict[str, int], span_s: float
) -> str:  # fmt: skip
    lines = [
        f"# The packets of {plain(content.path.name)}, sent again: open loop.", f"duration = {toml(f'{span_s + 1:.6g} s')}",
        'warmup = "0 s"', "", "[bottleneck]", f"delay = {toml(GUESSED_DELAY)}", 'qdisc = "fq_codel"',
    ]  # fmt: skip
    lines += [f"{way}.rate = {toml(f'{bps} bit/s')}" for way, bps in rate.items()]
    first = int(found.t_ns[0])
    for part, file in zip(parts, files, strict=True):
        dscp = int(np.bincount(found.ds[part.rows] >> 2).argmax())
        lines += [
            "", "[[flow]]", 'kind = "capture"', f"name = {toml(part.name)}", f"direction = {toml(part.way)}",
            f"file = {toml('{stem}' + file)}", f"start = {toml(f'{int(found.t_ns[part.rows[0]]) - first} ns')}",
        ]  # fmt: skip
        if dscp:
            lines.append(f"dscp = {dscp}")
    return "\n".join([*lines, ""])


_BLOCK = np.dtype(
    [
        ("kind", "<u4"), ("size", "<u4"), ("interface", "<u4"), ("high", "<u4"), ("low", "<u4"), ("kept", "<u4"), ("length", "<u4"),
        ("version", "u1"), ("ds", "u1"), ("total", ">u2"), ("zero", ">u4"), ("ttl", "u1"), ("protocol", "u1"), ("rest", "V10"),
        ("again", "<u4"),
    ]
)  # fmt: skip
"""An enhanced packet block of pcapng with an IP header."""


def _written(found: Packets, part: _Part, start: int) -> bytes:
    """The times, lengths and DS fields of a part's packets as a capture."""
    counts = pieces(found.size[part.rows])
    at = np.repeat(found.t_ns[part.rows] - start, counts)
    # The last piece of a packet has what the whole ones leave.
    left = found.size[part.rows] - (counts - 1) * MTU
    size = np.full(at.size, MTU)
    size[np.cumsum(counts) - 1] = np.maximum(left, LEAST)
    blocks = np.zeros(at.size, _BLOCK)
    blocks["kind"], blocks["size"], blocks["again"] = 6, _BLOCK.itemsize, _BLOCK.itemsize
    blocks["high"], blocks["low"] = at >> 32, at & 0xFFFFFFFF
    blocks["kept"], blocks["length"], blocks["total"] = 20, size, size
    blocks["version"], blocks["ttl"], blocks["protocol"] = 0x45, 64, packets.UDP
    blocks["ds"] = np.repeat(found.ds[part.rows], counts)
    return pcapng.section() + pcapng.interface(part.name, None, RAW_IP) + blocks.tobytes()


def pieces(sizes: Int64s) -> Int64s:
    """The number of packets into which each packet is cut, which segmentation offload made."""
    counts: Int64s = np.maximum(-(-sizes // MTU), 1)
    return counts
