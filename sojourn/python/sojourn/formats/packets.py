"""The headers of a capture's packets, pcap or pcapng, read as a stream.

Link types: Ethernet with VLAN tags, MPLS labels and PPPoE, Linux's cooked frames of both versions, bare
IP, BSD loopback, PPP, IEEE 802.11 with and without radiotap, Apple's PKTAP, Solaris' ipnet. Frames of
other types are counted. The headers read are IP's, and one of these: TCP's; UDP's with the unencrypted
bits of QUIC; an ICMP echo's.

Formats: draft-ietf-opsawg-pcapng, draft-ietf-opsawg-pcap, tcpdump.org/linktypes.html, RFC 791, RFC 8200,
RFC 9293, RFC 7323, RFC 3032 (MPLS), RFC 2516 (PPPoE), RFC 9000 section 17 and RFC 9369 (QUIC).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from sojourn.formats.content import PCAP, PCAPNG
from sojourn.formats.format import FileFormatError

Int64s = NDArray[np.int64]
_Frames = NDArray[np.uint8]

LONGEST_NAME = 55
"""A scenario's names have at most 64 characters; five are left for a number (`unique_names`)."""
KEPT = 192
"""The number of bytes that are read of each frame, from its beginning."""
CHUNK = 50_000
MOST_PACKETS = 2_000_000
CHOOSE = "choose a part of it, --time 0s..60s"
LONGEST_BLOCK = 16 << 20
ICMP, TCP, UDP, ICMP6 = 1, 6, 17, 58
FIN, SYN, RST, ACK = 1, 2, 4, 16
QUIC_VERSIONS = (1, 0x6B3343CF)
LONG_HEADER, SPIN_0, SPIN_1 = 1, 2, 3
_V4, _V6 = 0x0800, 0x86DD
_BY_VERSION = -1
"""Stands for an EtherType if the frame has none: the first four bits of the packet are the version
of IP."""
UNREAD = {
    8: "SLIP", 104: "Cisco HDLC", 227: "CAN", 117: "OpenBSD pflog", 119: "IEEE 802.11 with a Prism header", 163: "IEEE 802.11 with an AVS header",
    189: "USB of Linux", 192: "PPI", 195: "IEEE 802.15.4", 201: "Bluetooth", 220: "USB of Linux", 230: "IEEE 802.15.4 without FCS",
    242: "IP over InfiniBand", 249: "USBPcap", 253: "netlink",
}  # fmt: skip
"""Link types that are not read."""


@dataclass(frozen=True)
class Ends:
    """A flow: source, destination, protocol and ports. Of an ICMP echo both ports are its identifier."""

    source: str
    target: str
    protocol: int
    source_port: int
    target_port: int

    @property
    def back(self) -> Ends:
        """The flow in the other direction."""
        return Ends(self.target, self.source, self.protocol, self.target_port, self.source_port)

    def __str__(self) -> str:
        """A name of at most `LONGEST_NAME` characters: without the source, if IPv6 makes it longer."""
        names = {TCP: "TCP", UDP: "UDP", ICMP: "ICMP", ICMP6: "ICMP"}
        name = names.get(self.protocol, f"protocol {self.protocol}")
        if self.protocol in (TCP, UDP):
            short = f"{name} {self.source_port} to {self.target}:{self.target_port}"
            long = f"{name} {self.source}:{self.source_port} to {self.target}:{self.target_port}"
        else:
            # An IPv4 address alone would end the name in `.N`, as the names of numbered flows do.
            short = f"{name} to {self.target} packets"
            long = f"{name} {self.source} to {self.target} packets"
        return long if len(long) <= LONGEST_NAME else short


@dataclass
class Packets:
    """The packets of a capture in order of time. Each array has one value for each packet."""

    flows: list[Ends] = field(default_factory=list)
    t_ns: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    flow: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """The place of the packet's flow in `flows`."""
    size: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """Bytes of the IP packet."""
    ds: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """The byte with DSCP and ECN."""
    payload: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """Bytes behind the header of TCP or UDP; 0 for other protocols."""
    flags: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    seq: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """The sequence number of TCP, or of an ICMP echo."""
    ack: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    tsval: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """The value of TCP's timestamp option; -1: none."""
    tsecr: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    echo: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """1: an ICMP echo request; 2: a reply; 0: neither."""
    quic: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    """A UDP datagram that may be QUIC: `LONG_HEADER` of a known version, or a short header by its spin
    bit, `SPIN_0` or `SPIN_1`; 0: neither. Any other protocol's datagram may look like a short header."""
    unread: Counter[str] = field(default_factory=Counter)
    """Frames that were not read, by the name of their link type or the reason."""


COLUMNS = (
    "t_ns",
    "flow",
    "size",
    "ds",
    "payload",
    "flags",
    "seq",
    "ack",
    "tsval",
    "tsecr",
    "echo",
    "quic",
)


def read(stream: BinaryIO, span_ns: tuple[int, int] | None = None) -> Packets:
    """The packets of a capture. `span_ns`: only those between these two times, counted from the
    first packet.

    Raises:
        FileFormatError: it is damaged, or has more packets than `MOST_PACKETS`.
    """
    found = Packets()
    parts: dict[str, list[Int64s]] = {name: [] for name in COLUMNS}
    numbers: dict[bytes, int] = {}
    count = 0
    for link, times, lengths, frames in _chunks(stream, span_ns, found.unread):
        count += len(times)
        if count > MOST_PACKETS:
            raise FileFormatError(f"it has more than {MOST_PACKETS} packets: {CHOOSE}")
        decoded = _decoded(link, frames, lengths, found.unread)
        if decoded is None:
            continue
        rows, keys, columns = decoded
        columns["t_ns"] = times[rows]
        columns["flow"] = _numbered(keys, numbers, found.flows)
        for name in COLUMNS:
            parts[name].append(columns[name])
    if parts["t_ns"]:
        order = np.argsort(np.concatenate(parts["t_ns"]), kind="stable")
        for name in COLUMNS:
            setattr(found, name, np.concatenate(parts[name])[order])
    return found


def _numbered(keys: NDArray[np.uint8], numbers: dict[bytes, int], flows: list[Ends]) -> Int64s:
    """The number of each packet's flow."""
    if not len(keys):
        return np.zeros(0, np.int64)
    packed = np.ascontiguousarray(keys).view(f"V{keys.shape[1]}").ravel()
    unique, inverse = np.unique(packed, return_inverse=True)
    known = np.zeros(len(unique), np.int64)
    for place, each in enumerate(unique):
        key = each.tobytes()
        if key not in numbers:
            numbers[key] = len(flows)
            source, target = (_address(key[at : at + 16]) for at in (0, 16))
            flows.append(Ends(source, target, key[32], *struct.unpack(">HH", key[33:37])))
        known[place] = numbers[key]
    return known[inverse.ravel()]


def _address(packed: bytes) -> str:
    mapped = IPv6Address(packed).ipv4_mapped
    return str(mapped if mapped is not None else ip_address(packed))


# -------------------------------------------------------------------------------------- the file

_Chunk = tuple[int, Int64s, Int64s, _Frames]
"""A link type; times in ns; lengths on the wire; the first `KEPT` bytes of each frame."""


class _Gathered:
    """Frames of one link type that are decoded together."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.lengths: list[int] = []
        self.frames = bytearray()

    def add(self, at_ns: int, length: int, frame: bytes) -> None:
        self.times.append(at_ns)
        self.lengths.append(length)
        self.frames += frame[:KEPT].ljust(KEPT, b"\0")

    def chunk(self, link: int) -> _Chunk:
        frames = np.frombuffer(bytes(self.frames), np.uint8).reshape(-1, KEPT)
        times, lengths = (np.array(values, np.int64) for values in (self.times, self.lengths))
        return link, times, lengths, frames


def _chunks(
    stream: BinaryIO, span_ns: tuple[int, int] | None, unread: Counter[str]
) -> Iterator[_Chunk]:
    gathered: dict[int, _Gathered] = {}
    first_ns: int | None = None
    for link, at_ns, length, frame in _frames(stream, unread):
        first_ns = at_ns if first_ns is None else first_ns
        if span_ns is not None and not span_ns[0] <= at_ns - first_ns <= span_ns[1]:
            continue
        of_link = gathered.setdefault(link, _Gathered())
        of_link.add(at_ns, length, frame)
        if len(of_link.times) >= CHUNK:
            yield of_link.chunk(link)
            gathered[link] = _Gathered()
    for link, of_link in gathered.items():
        if of_link.times:
            yield of_link.chunk(link)


_Frame = tuple[int, int, int, bytes]
"""Link type, time in ns, length on the wire, captured bytes."""


def _frames(stream: BinaryIO, unread: Counter[str]) -> Iterator[_Frame]:
    magic = stream.read(4)
    try:
        if magic == PCAPNG:
            yield from _pcapng(stream, unread)
        else:
            yield from _pcap(stream, *PCAP[magic])
    except struct.error:
        raise FileFormatError("it has a block that is too short") from None


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise FileFormatError("it ends within a packet")
    return data


def _pcap(stream: BinaryIO, order: str, unit_ns: int, size: int) -> Iterator[_Frame]:
    """`size`: bytes of a packet's header."""
    link = struct.unpack(f"{order}I", _exactly(stream, 20)[16:])[0] & 0xFFFF
    record = struct.Struct(f"{order}IIII")
    while header := stream.read(size):
        if len(header) < size:
            raise FileFormatError("it ends within a packet")
        seconds, rest, kept, length = record.unpack_from(header)
        if kept > LONGEST_BLOCK:
            raise FileFormatError(f"it has a packet of {kept} bytes")
        yield link, seconds * 10**9 + rest * unit_ns, length, _exactly(stream, kept)


def _pcapng(stream: BinaryIO, unread: Counter[str]) -> Iterator[_Frame]:
    order = "<"
    interfaces: list[_Interface] = []
    kind = struct.unpack("<I", PCAPNG)[0]
    while True:
        size_bytes = _exactly(stream, 4)
        if kind == 0x0A0D0D0A:
            byte_order = _exactly(stream, 4)
            order = "<" if byte_order == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces, already = [], 12
        else:
            already = 8
        (size,) = struct.unpack(f"{order}I", size_bytes)
        if size < already + 4 or size % 4 or size > LONGEST_BLOCK:
            raise FileFormatError(f"it has a block of {size} bytes")
        body = _exactly(stream, size - already)[:-4]
        if kind == 1:
            interfaces.append(_interface(body, order))
        elif kind == 3:
            unread["simple packet blocks, which have no times"] += 1
        elif kind in (2, 6):
            # The older block has a counter of drops behind a shorter number.
            head = f"{order}IIIII" if kind == 6 else f"{order}HxxIIII"
            number, high, low, kept, length = struct.unpack_from(head, body)
            if number >= len(interfaces):
                raise FileFormatError("a packet names an interface that the file does not describe")
            link, units, offset_s = interfaces[number]
            at_ns = ((high << 32 | low) * 10**9) // units + offset_s * 10**9
            yield link, at_ns, length, body[20 : 20 + kept]
        next_kind = stream.read(4)
        if not next_kind:
            return
        if len(next_kind) < 4:
            raise FileFormatError("it ends within a block")
        # The type of a section's block is the same in both byte orders.
        (kind,) = struct.unpack(f"{order}I" if next_kind != PCAPNG else "<I", next_kind)


_Interface = tuple[int, int, int]
"""A link type, the units of its times in a second, and the seconds to add to them."""


def _interface(body: bytes, order: str) -> _Interface:
    link, units, offset_s, at = struct.unpack_from(f"{order}H", body)[0], 10**6, 0, 8
    while at + 4 <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, at)
        if code == 0:
            break
        if code == 9 and size >= 1:
            power = body[at + 4]
            units = 2 ** (power & 0x7F) if power & 0x80 else 10 ** min(power, 18)
        elif code == 14 and size == 8:
            (offset_s,) = struct.unpack_from(f"{order}q", body, at + 4)
        at += 4 + (size + 3 & ~3)
    return link, units, offset_s


# ----------------------------------------------------------------------------------- the headers


def _u16(frames: _Frames, at: Int64s) -> Int64s:
    rows = np.arange(len(frames))
    at = np.minimum(at, KEPT - 2)
    return frames[rows, at].astype(np.int64) << 8 | frames[rows, at + 1]


def _u32(frames: _Frames, at: Int64s) -> Int64s:
    return _u16(frames, at) << 16 | _u16(frames, at + 2)


def _u8(frames: _Frames, at: Int64s) -> Int64s:
    return frames[np.arange(len(frames)), np.minimum(at, KEPT - 1)].astype(np.int64)


def _slices(frames: _Frames, at: Int64s, size: int) -> _Frames:
    columns = np.minimum(at[:, None] + np.arange(size), KEPT - 1)
    sliced: _Frames = frames[np.arange(len(frames))[:, None], columns]
    return sliced


def _layers(link: int, frames: _Frames) -> tuple[Int64s, Int64s] | None:
    """Where IP may begin in each frame, and its EtherType; None: the link type is not read."""
    at = np.zeros(len(frames), np.int64)
    by_version = np.full(len(frames), _BY_VERSION, np.int64)
    if link == 1:
        return at + 14, _u16(frames, at + 12)
    if link == 113:
        return at + 16, _u16(frames, at + 14)
    if link == 276:
        return at + 20, _u16(frames, at)
    if link in (12, 101, 228, 229):
        return at, by_version
    if link in (0, 108):
        return at + 4, by_version
    if link == 226:
        return at + 24, by_version
    if link in (9, 50, 51):
        at = np.where(_u16(frames, at) == 0xFF03, at + 2, at) + (6 if link == 51 else 0)
        return at + 2, _ppp(_u16(frames, at))
    if link in (105, 127):
        start = (
            at
            if link == 105
            else frames[:, 2].astype(np.int64) | frames[:, 3].astype(np.int64) << 8
        )
        return _wireless(frames, start)
    return None


def _ppp(protocol: Int64s) -> Int64s:
    """EtherTypes of PPP's protocols."""
    return np.select([protocol == 0x21, protocol == 0x57], [_V4, _V6], 0)


def _wireless(frames: _Frames, at: Int64s) -> tuple[Int64s, Int64s]:
    """Data frames of IEEE 802.11 that are not encrypted, by their LLC header."""
    first, flags = _u8(frames, at), _u8(frames, at + 1)
    data = (first & 0x0C == 0x08) & (flags & 0x40 == 0)
    four = flags & 3 == 3
    qos = first & 0x80 != 0
    at = at + 24 + np.where(four, 6, 0) + np.where(qos, 2, 0)
    llc = _u32(frames, at) >> 8 == 0xAAAA03
    return at + 8, np.where(data & llc, _u16(frames, at + 6), 0)


def _decoded(
    link: int, frames: _Frames, lengths: Int64s, unread: Counter[str]
) -> tuple[Int64s, NDArray[np.uint8], dict[str, Int64s]] | None:
    """The rows that are IP, the key of each one's flow, and its columns."""
    rows = np.arange(len(frames))
    if link in (149, 258):
        return _behind_pktap(frames, lengths, unread)
    layers = _layers(link, frames)
    if layers is None:
        unread[f"{UNREAD.get(link, 'unknown')} ({link})"] += len(frames)
        return None
    at, kind = layers
    for _ in range(3):
        tagged = np.isin(kind, (0x8100, 0x88A8, 0x9100))
        at, kind = np.where(tagged, at + 4, at), np.where(tagged, _u16(frames, at + 2), kind)
    session = kind == 0x8864
    at, kind = np.where(session, at + 8, at), np.where(session, _ppp(_u16(frames, at + 6)), kind)
    for _ in range(4):
        labelled = np.isin(kind, (0x8847, 0x8848))
        last = _u8(frames, at + 2) & 1 == 1
        at, kind = np.where(labelled, at + 4, at), np.where(labelled & last, _BY_VERSION, kind)
    version = _u8(frames, at) >> 4
    is4 = ((kind == _V4) | (kind == _BY_VERSION)) & (version == 4)
    is6 = ((kind == _V6) | (kind == _BY_VERSION)) & (version == 6)
    ip = is4 | is6
    if not ip.all():
        unread["other protocols than IP"] += int((~ip).sum())
    rows = rows[ip]
    keys, columns = _ip(frames[ip], at[ip], is4[ip], lengths[ip])
    return rows, keys, columns


def _behind_pktap(
    frames: _Frames, lengths: Int64s, unread: Counter[str]
) -> tuple[Int64s, NDArray[np.uint8], dict[str, Int64s]] | None:
    """Frames behind Apple's header, which has its length and the link type of the frame."""
    head = frames[:, 0].astype(np.int64) | frames[:, 1].astype(np.int64) << 8
    links = frames[:, 8].astype(np.int64) | frames[:, 9].astype(np.int64) << 8
    found = []
    for link, size in {*zip(links.tolist(), head.tolist(), strict=True)}:
        if size >= KEPT - 40 or link in (149, 258):
            continue
        here = np.flatnonzero((links == link) & (head == size))
        inner = np.pad(frames[here, size:], ((0, 0), (0, size)))
        decoded = _decoded(link, inner, lengths[here] - size, unread)
        if decoded is not None:
            found.append((here[decoded[0]], decoded[1], decoded[2]))
    if not found:
        return None
    return (
        np.concatenate([rows for rows, _, _ in found]),
        np.concatenate([keys for _, keys, _ in found]),
        {name: np.concatenate([each[name] for _, _, each in found]) for name in found[0][2]},
    )


EXTENSIONS = (0, 43, 60)
"""IPv6's headers between IP and the transport, with a length in units of 8 bytes."""


def _ip(
    frames: _Frames, at: Int64s, is4: NDArray[np.bool_], lengths: Int64s
) -> tuple[NDArray[np.uint8], dict[str, Int64s]]:
    count = len(frames)
    word = _u16(frames, at)
    ds = np.where(is4, word & 0xFF, word >> 4 & 0xFF)
    length_field = np.where(is4, _u16(frames, at + 2), _u16(frames, at + 4) + 40)
    # In a packet that segmentation offload has not cut yet, the length field may be 0.
    missing = np.where(is4, length_field == 0, length_field == 40)
    size = np.where(missing, lengths - at, length_field)
    protocol = np.where(is4, _u8(frames, at + 9), _u8(frames, at + 6))
    above = at + np.where(is4, (word >> 8 & 15) * 4, 40)
    fragment = np.where(is4, _u16(frames, at + 6) & 0x1FFF, 0) != 0
    for _ in range(3):
        extended = ~is4 & np.isin(protocol, EXTENSIONS)
        following, units = _u8(frames, above), _u8(frames, above + 1)
        protocol = np.where(extended, following, protocol)
        above = np.where(extended, above + 8 * (units + 1), above)
    whole = ~fragment & (above < KEPT - 20)
    tcp, udp = whole & (protocol == TCP), whole & (protocol == UDP)
    echo4 = whole & is4 & (protocol == ICMP) & np.isin(_u8(frames, above), (0, 8))
    echo6 = whole & ~is4 & (protocol == ICMP6) & np.isin(_u8(frames, above), (128, 129))
    echoed = echo4 | echo6
    request = np.isin(_u8(frames, above), (8, 128))
    ports = [
        np.select([tcp | udp, echoed], [_u16(frames, above + 2 * n), _u16(frames, above + 4)], 0) for n in (0, 1)
    ]  # fmt: skip
    mapped = np.zeros((count, 16), np.uint8)
    mapped[:, 10:12] = 0xFF
    addresses = []
    for offset4, offset6 in ((12, 8), (16, 24)):
        four = mapped.copy()
        four[:, 12:] = _slices(frames, at + offset4, 4)
        addresses.append(np.where(is4[:, None], four, _slices(frames, at + offset6, 16)))
    key = np.zeros((count, 37), np.uint8)
    key[:, :16], key[:, 16:32], key[:, 32] = addresses[0], addresses[1], protocol
    for n in (0, 1):
        key[:, 33 + 2 * n], key[:, 34 + 2 * n] = ports[n] >> 8, ports[n] & 0xFF
    header = (_u8(frames, above + 12) >> 4) * 4
    tsval, tsecr = _timestamps(frames, above, header, tcp)
    zero = np.zeros(count, np.int64)
    return key, {
        "size": size,
        "ds": ds,
        "payload": np.select(
            [tcp, udp], [np.maximum(size - (above - at) - each, 0) for each in (header, 8)], 0
        ),
        "flags": np.where(tcp, _u8(frames, above + 13), zero),
        "seq": np.select([tcp, echoed], [_u32(frames, above + 4), _u16(frames, above + 6)], 0),
        "ack": np.where(tcp, _u32(frames, above + 8), zero),
        "tsval": tsval,
        "tsecr": tsecr,
        "echo": np.where(echoed, np.where(request, 1, 2), zero),
        "quic": np.where(udp & (size >= above - at + 8 + 20), _quic(frames, above + 8), zero),
    }


def _quic(frames: _Frames, at: Int64s) -> Int64s:
    """The kind of QUIC packet that begins here, of at least 20 bytes (RFC 9000 sections 17.2 and
    17.3.1)."""
    first = _u8(frames, at)
    known = np.isin(_u32(frames, at + 1), QUIC_VERSIONS)
    short = np.where(first & 0x20, SPIN_1, SPIN_0)
    return np.select(
        [(first & 0xC0 == 0xC0) & known, first & 0xC0 == 0x40], [LONG_HEADER, short], 0
    )


def _timestamps(
    frames: _Frames, above: Int64s, header: Int64s, tcp: NDArray[np.bool_]
) -> tuple[Int64s, Int64s]:
    """TCP's timestamps; -1 where there are none."""
    value = np.full(len(frames), -1, np.int64)
    echo = value.copy()
    at = above + 20
    end = np.minimum(above + header, KEPT - 10)
    active = tcp.copy()
    for _ in range(40):
        active &= at < end
        if not active.any():
            break
        kind, size = _u8(frames, at), _u8(frames, at + 1)
        stamp = active & (kind == 8) & (size == 10)
        value[stamp] = _u32(frames, at + 2)[stamp]
        echo[stamp] = _u32(frames, at + 6)[stamp]
        active &= ~stamp & (kind != 0)
        at = np.where(kind == 1, at + 1, at + np.maximum(size, 2))
    return value, echo
