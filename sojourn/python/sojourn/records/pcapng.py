"""A Run's packets as a capture file, pcapng, for Wireshark and tcptrace.

A capture has an interface for each link. Its packets have the time of the run, in ns, at which they
leave the link's queue, as tcpdump records a device's egress. Headers are those of the table
`headers`, without the data behind them; checksums assume data of zeros. A flow's source has the
address 10.0.x.y and its far end 10.1.x.y, whatever their hosts in the scenario. Each connection of
a flow has a port of its own, up to 256 of them. Packets are in Ethernet frames, whatever the link:
every program reads those, while libpcap 1.10.3 reads no file with several interfaces of bare IP.

Formats: draft-ietf-opsawg-pcapng (section header, interface description and enhanced packet
blocks), RFC 791, RFC 9293 §3.1, RFC 7323 §3, RFC 2018 §§2-3, RFC 9768 §3.2.3, RFC 768, RFC 792.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sojourn.records.run import Run

_Bytes = NDArray[np.uint8]
_Numbers = NDArray[np.int64]

_ETHERNET = 1
_ICMP, _TCP, _UDP = 1, 6, 17
_FRAME_BYTES, _IP_BYTES, _TCP_BYTES, _MOST_OPTIONS = 14, 20, 20, 40
_SOURCE, _FAR = 10 << 24, 10 << 24 | 1 << 16
_PORT, _FAR_PORT = 40_000, 5001
_IDLE_WINDOW, _SYN_WINDOW = 502, 64_240
"""The receive windows written for the source: the model has none."""
_SYN = 2
_NOP = 1
_HEAD = 28
"""Bytes of an enhanced packet block before its packet."""
_CHUNK = 100_000


def capture(run: Run, seed: int) -> bytes:
    """Returns one seed of a Run as a capture. Raises RunError if its headers were not recorded."""
    table = run.table("headers", seed)
    names = [link.name for link in run.meta.links]
    numbered = table.with_columns(
        link=pl.col("link").cast(pl.String).replace_strict(names, range(len(names)), return_dtype=pl.Int64),
        flow=pl.col("flow").cast(pl.String).replace_strict(
            [flow.name for flow in run.meta.flows],
            range(len(run.meta.flows)),
            return_dtype=pl.Int64,
        ),
    )  # fmt: skip
    parts = [_section(run, seed)]
    parts += [interface(link.name, link.rate_bps) for link in run.meta.links]
    parts += [_blocks(chunk) for chunk in numbered.iter_slices(_CHUNK)]
    return b"".join(parts)


def block(kind: int, body: bytes) -> bytes:
    """A block; the length of its body is a multiple of four."""
    size = 12 + len(body)
    return struct.pack("<II", kind, size) + body + struct.pack("<I", size)


def option(code: int, value: bytes) -> bytes:
    """An option of a block, padded."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(*options: bytes) -> bytes:
    """The first block of a file."""
    ended = (*options, option(0, b"")) if options else ()
    return block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + b"".join(ended))


def _section(run: Run, seed: int) -> bytes:
    comment = f"{run.meta.title}, seed {seed}".encode()
    made_by = f"sojourn {run.meta.version}, engine {run.meta.engine}".encode()
    return section(option(1, comment), option(4, made_by))


def interface(name: str, rate_bps: int | None, link_type: int = _ETHERNET) -> bytes:
    """An interface whose times are ns."""
    options = option(2, name.encode()) + option(9, b"\x09")
    if rate_bps is not None:
        options += option(8, struct.pack("<Q", rate_bps))
    return block(1, struct.pack("<HHI", link_type, 0, 0) + options + option(0, b""))


class _Columns:
    """The table's columns as numbers, and whether they are null."""

    def __init__(self, table: pl.DataFrame) -> None:
        self.table = table

    def __getitem__(self, name: str) -> _Numbers:
        return self.table[name].cast(pl.Int64).fill_null(0).to_numpy()

    def has(self, name: str) -> NDArray[np.bool_]:
        return self.table[name].is_not_null().to_numpy()


def _blocks(table: pl.DataFrame) -> bytes:
    """Enhanced packet blocks, one for each row."""
    columns = _Columns(table)
    packets, headers = _packets(columns)
    ends = _HEAD + _FRAME_BYTES
    rows = np.zeros((table.height, ends + packets.shape[1] + 2 + 4), dtype=np.uint8)
    rows[:, ends : ends + packets.shape[1]] = packets
    rows[:, _HEAD:ends] = _frames(packets)
    captured, length = _FRAME_BYTES + headers, _FRAME_BYTES + columns["bytes"]
    padded = (captured + 3) & ~3
    time, total = columns["t_ns"], padded + _HEAD + 4
    head = [np.full_like(time, 6), total, columns["link"], time >> 32, time, captured, length]
    for n, values in enumerate(head):
        rows[:, 4 * n : 4 * n + 4] = _little(values)
    everyone = np.arange(table.height)[:, None]
    rows[everyone, _HEAD + padded[:, None] + np.arange(4)] = _little(total)
    return rows[np.arange(rows.shape[1]) < total[:, None]].tobytes()


def _little(values: _Numbers) -> _Bytes:
    return values.astype("<u4").view(np.uint8).reshape(-1, 4)


def _big(values: _Numbers, width: int) -> _Bytes:
    """The last bytes of each number."""
    return values.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - width :]


def _frames(packets: _Bytes) -> _Bytes:
    """Ethernet headers, with addresses that follow from IP's."""
    frames = np.zeros((len(packets), _FRAME_BYTES), dtype=np.uint8)
    frames[:, [0, 6]] = 2
    frames[:, 2:6], frames[:, 8:12] = packets[:, 16:20], packets[:, 12:16]
    frames[:, 12] = 8
    return frames


def _packets(columns: _Columns) -> tuple[_Bytes, _Numbers]:
    """The headers of each packet from IP on, and their lengths in bytes."""
    protocol, length = columns["protocol"], columns["bytes"]
    packets = np.zeros((len(length), _IP_BYTES + _TCP_BYTES + _MOST_OPTIONS), dtype=np.uint8)
    tcp = protocol == _TCP
    room = np.where(tcp, length - columns["payload_bytes"] - _IP_BYTES - _TCP_BYTES, 0)
    room = room.clip(0, _MOST_OPTIONS) & ~3
    captured = np.where(tcp, _IP_BYTES + _TCP_BYTES + room, _IP_BYTES + 8)
    back, flow = columns["reply"] == 1, columns["flow"]
    addresses = (_SOURCE + 1 + flow, _FAR + 1 + flow)
    ends = [np.where(back, addresses[1 - n], addresses[n]) for n in (0, 1)]
    _ip(packets, columns, ends)
    port = _PORT + columns["connection"]
    ports = [np.where(back, _FAR_PORT, port), np.where(back, port, _FAR_PORT)]
    above = packets[:, _IP_BYTES:]
    for n, each in enumerate(ports):
        above[:, 2 * n : 2 * n + 2] = _big(each, 2)
    _udp(above, columns, np.flatnonzero(protocol == _UDP))
    _icmp(above, columns, np.flatnonzero(protocol == _ICMP))
    _tcp(above, columns, room, np.flatnonzero(tcp))
    # A pseudo header: addresses, protocol, length (RFC 9293 §3.1).
    pseudo = packets[:, 12:20].view(">u2").sum(axis=1, dtype=np.int64) + protocol + length - 20
    above[tcp, 16:18] = _checksum(above[tcp], pseudo[tcp])
    return packets, captured


def _checksum(headers: _Bytes, more: _Numbers | int = 0) -> _Bytes:
    """The ones' complement of the sum of 16-bit words (RFC 1071)."""
    total = np.ascontiguousarray(headers).view(">u2").sum(axis=1, dtype=np.int64) + more
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    return _big(~total & 0xFFFF, 2)


def _ip(packets: _Bytes, columns: _Columns, ends: list[_Numbers]) -> None:
    packets[:, 0] = 0x45
    packets[:, 1] = columns["ds"]
    packets[:, 2:4] = _big(columns["bytes"], 2)
    packets[:, 6] = 0x40  # Don't fragment.
    packets[:, 8] = 64
    packets[:, 9] = columns["protocol"]
    packets[:, 12:16], packets[:, 16:20] = (_big(each, 4) for each in ends)
    packets[:, 10:12] = _checksum(packets[:, :_IP_BYTES])


def _udp(above: _Bytes, columns: _Columns, rows: _Numbers) -> None:
    above[rows, 4:6] = _big(columns["payload_bytes"][rows] + 8, 2)


def _icmp(above: _Bytes, columns: _Columns, rows: _Numbers) -> None:
    echo = above[rows]
    echo[:] = 0
    echo[:, 0] = np.where(columns["reply"][rows] == 1, 0, 8)
    echo[:, 4:6] = _big(columns["flow"][rows] + 1, 2)
    echo[:, 6:8] = _big(columns["seq"][rows], 2)
    echo[:, 2:4] = _checksum(echo)
    above[rows] = echo


def _tcp(above: _Bytes, columns: _Columns, room: _Numbers, rows: _Numbers) -> None:
    idle = np.where(columns["flags"] & _SYN, _SYN_WINDOW, _IDLE_WINDOW)
    window = np.where(columns.has("window"), columns["window"], idle)
    flags = columns["flags"] | (_TCP_BYTES + room) // 4 << 12
    above[rows, 4:8] = _big(columns["seq"][rows], 4)
    above[rows, 8:12] = _big(columns["ack"][rows], 4)
    above[rows, 12:14] = _big(flags[rows], 2)
    above[rows, 14:16] = _big(window[rows], 2)
    until = _TCP_BYTES + room
    at = np.full(len(room), _TCP_BYTES)
    for here, option in _options(columns):
        # An option that does not fit into the packet is left out.
        fits = rows[here[rows] & (at[rows] + option.shape[1] <= until[rows])]
        above[fits[:, None], at[fits][:, None] + np.arange(option.shape[1])] = option[fits]
        at[fits] += option.shape[1]
    padding = (np.arange(above.shape[1]) >= at[:, None]) & (
        np.arange(above.shape[1]) < until[:, None]
    )
    padding[np.setdiff1d(np.arange(len(above)), rows)] = False
    above[padding] = _NOP


def _options(columns: _Columns) -> Iterator[tuple[NDArray[np.bool_], _Bytes]]:
    """For each option, the packets that have it, and its bytes in each."""

    def option(kind: int, *fields: tuple[str, int], nops: int = 0) -> _Bytes:
        size = 2 + sum(width for _, width in fields)
        parts: list[Any] = [_big(columns[name], width) for name, width in fields]
        head = np.array([*[_NOP] * nops, kind, size], dtype=np.uint8)
        return np.hstack([np.tile(head, (columns.table.height, 1)), *parts])

    # In Linux's layout: aligned to four bytes where there is room.
    syn, timed = columns["flags"] & _SYN != 0, columns.has("tsval")
    stamps = (("tsval", 4), ("tsecr", 4))
    yield columns.has("mss"), option(2, ("mss", 2))
    yield timed & syn, option(8, *stamps)
    yield timed & ~syn, option(8, *stamps, nops=2)
    yield columns.has("scale"), option(3, ("scale", 1), nops=1)
    yield columns["sack_permitted"] == 1, option(4)
    alone = ~columns.has("accecn_e1b") & ~columns.has("accecn_e0b")
    blocks = [(f"sack{n}_left", f"sack{n}_right") for n in (1, 2, 3, 4)]
    for many in (1, 2, 3, 4):
        last = columns.has(f"sack{many}_left")
        further = columns.has(f"sack{many + 1}_left") if many < 4 else np.zeros_like(last)
        fields = [(edge, 4) for pair in blocks[:many] for edge in pair]
        yield last & ~further & alone, option(5, *fields, nops=2)
        yield last & ~further & ~alone, option(5, *fields)
    counters = ("accecn_e1b", "accecn_ceb", "accecn_e0b")
    # Without the counter of ECT(1), the others are in the reverse order.
    first = columns.has(counters[0])
    for kind, order, here in ((174, counters, first), (172, counters[::-1], ~first)):
        for many in (1, 2, 3):
            last = here & columns.has(order[many - 1])
            further = columns.has(order[many]) if many < 3 else np.zeros_like(last)
            yield last & ~further, option(kind, *((name, 3) for name in order[:many]))
