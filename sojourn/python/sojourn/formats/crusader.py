"""crusader's raw results (`.crr`): goodput of each stream and the pings of its tests.

A file begins with two numbers: magic and version. Version 0 is bincode; versions 1 and 2 are
MessagePack in Snappy's frames (google/snappy, framing_format.txt and format_description.txt). Bytes
of a stream are counted from its beginning. A ping to the latency peer is a series of its own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sojourn.formats.content import Content
from sojourn.formats.file_series import Pings, Stream
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import IDLE, LEAST_IDLE_S, FileMeasurement

if TYPE_CHECKING:
    from sojourn.facts import SessionPhase

MAGIC = struct.pack("<Q", 0x5372AB82AE7C59CB)
VERSIONS = (0, 1, 2)
MOST_UNPACKED = 200_000_000
KINDS = {(True, False): "download", (False, False): "upload", (True, True): "both download", (False, True): "both upload"}  # fmt: skip


def _is_result(content: Content) -> bool:
    return content.first.startswith(MAGIC)


def _read(content: Content) -> FileMeasurement:
    try:
        version, data = struct.unpack_from("<Q", content.data, 8)[0], content.data[16:]
        if version not in VERSIONS:
            raise FileFormatError(f"it has version {version}, but only 0, 1 and 2 are read")
        return _measured(_version_0(data) if version == 0 else _document(data))
    except struct.error:
        raise FileFormatError("it ends too early") from None


def _document(data: bytes) -> Any:
    import msgspec

    try:
        raw: Any = msgspec.msgpack.decode(_frames(data))
    except msgspec.DecodeError as error:
        raise FileFormatError(f"it is not MessagePack: {error}") from None
    return raw


def _measured(raw: Any) -> FileMeasurement:
    streams = []
    spans: dict[str, tuple[float, float]] = {}
    for group in raw["stream_groups"]:
        kind = KINDS[bool(group["download"]), bool(group["both"])]
        for number, each in enumerate(group["streams"], 1):
            stream = Stream(f"{kind} {number}", "down" if group["download"] else "up")
            last_at, last = 0.0, 0
            for point in each["data"]:
                at, count = _seconds(point["time"]), point["bytes"]
                if count < last or at < last_at:
                    raise FileFormatError("a stream's count of bytes decreases")
                # A stream begins with its first bytes.
                if count:
                    stream.add(last_at, at, count - last)
                last_at, last = at, count
            streams.append(stream)
            if stream.t:
                span = "both" if group["both"] else kind
                first, end = spans.get(span, (stream.t[0], stream.t[-1]))
                spans[span] = min(first, stream.t[0]), max(end, stream.t[-1])
    server = _seconds(raw.get("server_latency", 0)) * 1e3
    pings = [_pings("crusader", raw["pings"])]
    if raw.get("peer_pings"):
        pings.append(_pings("latency peer", raw["peer_pings"]))
    notes = (
        [f"crusader's own RTT to the server before the test: {server:.4g} ms."] if server else []
    )
    if raw.get("server_overload"):
        notes.append("crusader says that the server was overloaded.")
    if raw.get("load_termination_timeout"):
        notes.append("crusader says that a load did not end in time.")
    kinds = sorted(spans, key=lambda kind: spans[kind])
    return FileMeasurement(
        program="crusader",
        version=str(raw.get("generated_by", "")).removeprefix("Crusader ").strip(),
        test=", ".join(kinds) or "latency",
        host="",
        began_s=None,
        streams=streams,
        pings=pings,
        phases=_phases(spans, max((ping.t for ping in pings[0].sent), default=0.0)),
        one_host=True,
        notes=notes,
    )


def _phases(spans: dict[str, tuple[float, float]], end: float) -> list[SessionPhase]:
    """The loads, one after the other, and the idle times around them."""
    phases: list[SessionPhase] = []
    at = 0.0
    for kind, (first, last) in [
        *sorted(spans.items(), key=lambda span: span[1]),
        (IDLE, (max(end, at), max(end, at))),
    ]:
        for name, start, stop in ((IDLE, at, first), (kind, max(first, at), last)):
            if stop - start >= (LEAST_IDLE_S if name == IDLE else 0.0) and stop > start:
                phases.append(
                    {
                        "name": name,
                        "kind": name,
                        "start_ns": round(start * 1e9),
                        "end_ns": round(stop * 1e9),
                        "complete": True,
                    }
                )
        at = max(at, last)
    return phases


def _pings(name: str, raw: list[Any]) -> Pings:
    found = Pings(name)
    for each in raw:
        latency = each["latency"]
        total = None if latency is None else _field(latency, "total", 0)
        up = None if latency is None else _field(latency, "up", 1)
        rtt = None if total is None else _seconds(total) * 1e3
        # Version 0 has no one-way delays and writes 0.
        forward = None if up is None or not _seconds(up) else _seconds(up) * 1e3
        found.add(_seconds(each["sent"]), each["index"], rtt, forward)
    found.sent.sort(key=lambda ping: (ping.t, ping.seq))
    return found


def _field(value: Any, name: str, place: int) -> Any:
    return value[name] if isinstance(value, dict) else value[place]


def _seconds(value: Any) -> float:
    """A Duration: its seconds and nanoseconds."""
    if isinstance(value, dict):
        return float(value["secs"]) + float(value["nanos"]) / 1e9
    if isinstance(value, list):
        return float(value[0]) + float(value[1]) / 1e9
    return float(value)


# ----------------------------------------------------------------------------------------- bincode


def _version_0(data: bytes) -> Any:
    """Reads bincode: numbers of fixed size, little-endian; a list's length precedes it; a byte says
    whether an optional value follows."""
    at = 0

    def take(form: str) -> Any:
        nonlocal at
        (value,) = struct.unpack_from(f"<{form}", data, at)
        at += struct.calcsize(f"<{form}")
        return value

    def duration() -> float:
        return float(take("Q") + take("I") / 1e9)

    def several(one: Callable[[], Any]) -> list[Any]:
        count = take("Q")
        if count > len(data):
            raise FileFormatError("it is damaged: a list is longer than the file")
        return [one() for _ in range(count)]

    def point() -> Any:
        return {"time": duration(), "bytes": take("Q")}

    def ping() -> Any:
        index, sent = take("Q"), duration()
        return {"index": index, "sent": sent, "latency": [duration(), 0] if take("B") else None}

    def group() -> Any:
        head = {"download": take("?"), "both": take("?")}
        return {**head, "streams": several(lambda: {"data": several(point)})}

    for _ in range(4):
        take("Q")
    raw: Any = {"start": duration(), "duration": duration()}
    raw["stream_groups"] = several(group)
    raw["pings"] = several(ping)
    return raw


# ------------------------------------------------------------------------------------------ Snappy


def _frames(data: bytes) -> bytes:
    """The content of Snappy's frames. Checksums are not verified."""
    parts = []
    at = total = 0
    while at < len(data):
        kind, size = data[at], int.from_bytes(data[at + 1 : at + 4], "little")
        body = data[at + 4 : at + 4 + size]
        if len(body) < size:
            raise FileFormatError("it ends within a frame")
        if kind == 0:
            parts.append(_unpacked(body[4:]))
        elif kind == 1:
            parts.append(body[4:])
        elif kind < 0x80:
            raise FileFormatError(f"it has a frame of kind {kind}")
        total += len(parts[-1]) if parts else 0
        if total > MOST_UNPACKED:
            raise FileFormatError(f"it has more than {MOST_UNPACKED // 10**6} MB")
        at += 4 + size
    return b"".join(parts)


def _unpacked(block: bytes) -> bytes:
    """A block: its length, then literals and copies of earlier bytes."""
    length = shift = at = 0
    while True:
        byte = block[at]
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if length > 1 << 16:
        raise FileFormatError("a block is longer than Snappy's frames allow")
    out = bytearray()
    while at < len(block):
        tag = block[at]
        at += 1
        if tag & 3 == 0:
            size = (tag >> 2) + 1
            if size > 60:
                width = size - 60
                size = int.from_bytes(block[at : at + width], "little") + 1
                at += width
            out += block[at : at + size]
            at += size
            continue
        if tag & 3 == 1:
            size, offset = (tag >> 2 & 7) + 4, tag >> 5 << 8 | block[at]
            at += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            size, offset = (tag >> 2) + 1, int.from_bytes(block[at : at + width], "little")
            at += width
        if not 0 < offset <= len(out):
            raise FileFormatError("a block copies bytes from before its start")
        start = len(out) - offset
        # A copy may overlap the bytes that it writes.
        while size > 0:
            piece = out[start : start + size]
            out += piece
            size -= len(piece)
        if len(out) > length:
            break
    if len(out) != length:
        raise FileFormatError("a block states another length than it has")
    return bytes(out)


FORMATS = (
    Format("crusader", "crusader", "crusader test HOST (the .crr file)", Yields.MEASUREMENT, _is_result, _read),
)  # fmt: skip
