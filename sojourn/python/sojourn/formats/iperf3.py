"""iperf3: its JSON (`-J`, `--json-stream`) and its text; TCP and UDP, reverse and
bidirectional.

Up is from the client to the server. For an upload, the client's file has the bytes that the sender
wrote in each interval and the receiver's total. If the file has the server's output
(`--get-server-output`), the reader uses the server's intervals; otherwise a note gives the total.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sojourn.formats.content import Content
from sojourn.formats.file_series import Stream
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import FileMeasurement

if TYPE_CHECKING:
    from sojourn.arrays import Json
    from sojourn.facts import Direction


def _is_json(content: Content) -> bool:
    raw = content.json
    return (
        isinstance(raw, dict)
        and isinstance(raw.get("start"), dict)
        and ("intervals" in raw or "error" in raw)
        and str(raw["start"].get("version", "iperf 3")).startswith("iperf 3")
    )


def _read_json(content: Content) -> FileMeasurement:
    return _measured(content.json)


def _is_json_stream(content: Content) -> bool:
    return re.match(r'\s*\{\s*"event"\s*:\s*"(start|interval|error)"', content.head) is not None


def _read_json_stream(content: Content) -> FileMeasurement:
    whole: dict[str, Any] = {"intervals": [], "end": {}}
    for number, line in enumerate(content.lines, 1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except ValueError as error:
            raise FileFormatError(f"line {number} is not JSON: {error}") from None
        if event["event"] == "interval":
            whole["intervals"].append(event["data"])
        else:
            whole[event["event"]] = event["data"]
    return _measured(whole)


def _measured(raw: Json) -> FileMeasurement:
    start = raw["start"]
    intervals = raw["intervals"]
    if not intervals:
        raise FileFormatError(f"it has no intervals: {raw.get('error', 'it was interrupted')}")
    test = start["test_start"]
    server = "accepted_connection" in start
    udp = test["protocol"] == "UDP"
    streams: dict[int, Stream] = {}
    omitted = 0
    for interval in intervals:
        for each in interval["streams"]:
            if each.get("omitted"):
                omitted += 1
                continue
            up = bool(each.get("sender", not test.get("reverse"))) != server
            stream = streams.setdefault(
                each["socket"],
                Stream("", "up" if up else "down", congestion=_congestion(raw, sends=up != server)),
            )
            _add(stream, each)
    notes = [f"{omitted} omitted intervals (--omit) are left out."] if omitted else []
    if test.get("omit"):
        _shift(streams.values())
    if udp:
        notes += _datagrams(raw, streams, server=server)
    else:
        notes += _receivers(raw, streams, server=server)
    _name(streams.values(), test["protocol"])
    if raw.get("error"):
        notes.append(f"iperf3 ended with an error: {raw['error']}")
    host = start.get("connecting_to", {}).get("host") or (
        start["connected"][0]["remote_host"] if start.get("connected") else ""
    )
    return FileMeasurement(
        program="iperf3", version=str(start.get("version", "")).removeprefix("iperf "),
        test=_test(test["protocol"], [stream.direction for stream in streams.values()], server=server), host=str(host),
        began_s=float(start["timestamp"]["timesecs"]), streams=list(streams.values()), notes=notes,
    )  # fmt: skip


def _add(stream: Stream, interval: Json) -> None:
    rtt = interval.get("rtt")
    stream.add(
        interval["start"], interval["end"], interval["bytes"], cwnd=interval.get("snd_cwnd", math.nan),
        srtt_ms=math.nan if not rtt else rtt / 1e3, retransmits=interval.get("retransmits", math.nan),
    )  # fmt: skip


def _shift(streams: Iterable[Stream]) -> None:
    """Moves t = 0 to the end of the omitted intervals. (iperf3 before 3.17 does so itself.)"""
    first = min((stream.t[0] for stream in streams), default=0.0)
    for stream in streams:
        stream.t = [t - first for t in stream.t]


def _congestion(raw: Json, *, sends: bool) -> str:
    """The sender's congestion control; iperf3 gives it at the end. `sends`: whether the end that
    wrote the file was the sender."""
    end = raw.get("end", {})
    return str(end.get("sender_tcp_congestion" if sends else "receiver_tcp_congestion") or end.get("sender_tcp_congestion") or "unknown")  # fmt: skip


def _receivers(raw: Json, streams: dict[int, Stream], *, server: bool) -> list[str]:
    """Uses the receiver's intervals if the file has the server's output; otherwise adds a note with
    the receiver's total. Returns the notes."""
    sent = {
        socket: stream for socket, stream in streams.items() if (stream.direction == "up") != server
    }
    if not sent:
        return []
    theirs = _server_streams(raw)
    if len(theirs) == len(sent):
        for stream, their in zip(sent.values(), theirs, strict=True):
            again = stream.retransmits[-1]
            stream.t, stream.delivered, stream.cwnd, stream.srtt_ms = (
                their.t,
                their.delivered,
                [],
                [],
            )
            stream.retransmits = [*[math.nan] * (len(their.t) - 1), again]
        return ["Uploads are what the server received in each interval."]
    ends = raw.get("end", {}).get("streams", [])
    got = sum(
        each["receiver"]["bytes"] for each in ends if each.get("receiver", {}).get("socket") in sent
    )
    wrote = sum(stream.delivered[-1] for stream in sent.values())
    if server or not got:
        return [
            "The intervals count the bytes that the sender wrote: the file has no count of the receiver."
        ]
    return [
        f"Uploads are what the sender wrote in each interval, {wrote / 1e6:.4g} MB in all; the receiver got {got / 1e6:.4g} MB."
    ]


def _datagrams(raw: Json, streams: dict[int, Stream], *, server: bool) -> list[str]:
    """Counts the datagrams of each stream. Bytes sent are reduced by the share that was lost."""
    notes = []
    for end in (each["udp"] for each in raw.get("end", {}).get("streams", []) if "udp" in each):
        stream = streams.get(end["socket"])
        if stream is None or not end["packets"]:
            continue
        stream.sent_packets, stream.lost_packets = end["packets"], end["lost_packets"]
        notes.append(
            f"UDP {stream.direction}: {end['lost_packets']} of {end['packets']} datagrams lost, jitter {end['jitter_ms']:.3g} ms."
        )
        if (stream.direction == "up") != server:
            arrived = 1 - end["lost_packets"] / end["packets"]
            stream.delivered = [size * arrived for size in stream.delivered]
            notes.append(
                "A UDP upload is the data sent in each interval, less the share that was lost in the whole test."
            )
    return notes


def _server_streams(raw: Json) -> list[Stream]:
    """The streams that the server received, if the file has its output."""
    other = raw.get("server_output_json")
    if isinstance(other, dict):
        theirs: dict[int, Stream] = {}
        for interval in other.get("intervals", []):
            for each in interval["streams"]:
                if not each.get("sender", False) and not each.get("omitted"):
                    _add(theirs.setdefault(each["socket"], Stream("", "up")), each)
        return list(theirs.values())
    text = raw.get("server_output_text")
    if not isinstance(text, str):
        return []
    return [
        stream
        for stream in _text_streams(text.splitlines(), server=True, reverse=False)[0]
        if stream.direction == "up"
    ]


def _name(streams: Iterable[Stream], protocol: str) -> None:
    count = {"up": 0, "down": 0}
    for stream in streams:
        count[stream.direction] += 1
        word = {"up": "upload", "down": "download"}[stream.direction]
        stream.name = f"{protocol} {word} {count[stream.direction]}"


def _test(protocol: str, ways: list[Direction], *, server: bool) -> str:
    kinds = {"up": "upload", "down": "download"}
    words = [
        f"{ways.count(way)} {protocol} {kinds[way]}{'s' * (ways.count(way) > 1)}"
        for way in sorted(set(ways))
    ]
    return " and ".join(words) + (" (server's file)" if server else "")


# ------------------------------------------------------------------------------------------- text

_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_BITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LINE = re.compile(
    r"\[ *(\d+)\](?:\[(?P<role>[TR]X-[CS])\])? +(?P<start>[\d.]+)- *(?P<end>[\d.]+) +sec +(?P<size>[\d.]+) (?P<unit>[KMGT]?)Bytes +"
    r"(?P<rate>[\d.]+) (?P<prefix>[KMGT]?)(?P<of>bits|Bytes)/sec *(?P<rest>.*)"
)  # fmt: skip
_TCP_SENDER = re.compile(r"(\d+) +([\d.]+) ([KMGT]?)Bytes")
_DATAGRAMS = re.compile(r"([\d.]+) ms +(\d+)/(\d+) \(")


def _is_text(content: Content) -> bool:
    return (
        _LINE.search(content.head) is not None
        and re.search(r"^\[ *\d+\]\s+local \S+ port \d+ connected to ", content.head, re.M)
        is not None
    )


def _read_text(content: Content) -> FileMeasurement:
    """Bytes are computed from the rate of each interval. Both the transfer and the rate have three
    digits, an error of up to 0.5 %."""
    server = "Accepted connection from" in content.text
    reverse = "Reverse mode" in content.text
    protocol = "UDP" if "Datagrams" in content.text else "TCP"
    streams, keys, ends = _text_streams(content.lines, server=server, reverse=reverse)
    if not streams:
        raise FileFormatError("it has a summary, but no intervals, and a Run needs them")
    notes = ["iperf3 prints three digits: use -J for all of them."]
    notes += _text_ends(ends, dict(zip(keys, streams, strict=True)), protocol)
    _name(streams, protocol)
    host = re.search(
        r"Connecting to host (\S+), port|Accepted connection from (\S+),", content.text
    )
    return FileMeasurement(
        program="iperf3", version=_version(content.text), test=_test(protocol, [each.direction for each in streams], server=server),
        host=next(filter(None, host.groups())) if host else "", began_s=None, streams=streams, notes=notes,
    )  # fmt: skip


def _text_streams(
    lines: list[str], *, server: bool, reverse: bool
) -> tuple[list[Stream], list[str], list[str]]:
    """The streams of printed intervals, the key of each, and the lines of the summary."""
    streams: dict[str, Stream] = {}
    ends: list[str] = []
    for line in lines:
        found = _LINE.match(line.strip())
        if not found or "(omitted)" in found["rest"]:
            continue
        if found["rest"].rstrip().endswith(("sender", "receiver")):
            ends.append(line)
            continue
        sends = found["role"][0] == "T" if found["role"] else reverse == server
        key = found[1] + (found["role"] or "")
        stream = streams.setdefault(key, Stream("", "up" if sends != server else "down"))
        start, end = float(found["start"]), float(found["end"])
        rate = float(found["rate"]) * _BITS[found["prefix"]] * (8 if found["of"] == "Bytes" else 1)
        state = _TCP_SENDER.match(found["rest"])
        stream.add(
            start, end, rate / 8 * (end - start), cwnd=float(state[2]) * _BYTES[state[3]] if state else math.nan,
            retransmits=float(state[1]) if state else math.nan,
        )  # fmt: skip
    return list(streams.values()), list(streams), ends


def _text_ends(ends: list[str], streams: dict[str, Stream], protocol: str) -> list[str]:
    """Reads the summary: the bytes and datagrams that the receiver got."""
    notes = []
    for line in ends:
        found = _LINE.match(line.strip())
        if not found or not found["rest"].rstrip().endswith("receiver"):
            continue
        stream = streams.get(found[1] + (found["role"] or ""))
        lost = _DATAGRAMS.match(found["rest"])
        if stream is not None and protocol == "UDP" and lost:
            stream.lost_packets, stream.sent_packets = int(lost[2]), int(lost[3])
            notes.append(
                f"UDP {stream.direction}: {lost[2]} of {lost[3]} datagrams lost, jitter {float(lost[1]):.3g} ms."
            )
        elif stream is not None and stream.direction == "up":
            notes.append(
                f"An upload is what the sender wrote; its receiver got {found['rate']} {found['prefix']}{found['of']}/s over the whole test."
            )
    return notes


def _version(text: str) -> str:
    found = re.search(r"^iperf (3\.\S+)", text, re.M)
    return found[1] if found else ""


FORMATS = (
    Format("iperf3-json", "iperf3", "iperf3 -c HOST -J > FILE", Yields.MEASUREMENT, _is_json, _read_json),
    Format("iperf3-json-stream", "iperf3", "iperf3 -c HOST --json-stream > FILE", Yields.MEASUREMENT, _is_json_stream, _read_json_stream),
    Format("iperf3-text", "iperf3", "iperf3 -c HOST > FILE", Yields.MEASUREMENT, _is_text, _read_text),
)  # fmt: skip
