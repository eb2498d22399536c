"""irtt (Isochronous Round-Trip Tester) 0.9: its JSON (`-o`) and its text.

The JSON has the time, the RTT and the one-way delays of each packet, and the direction in which a
packet was lost. The text has no times: the interval between packets is the duration divided by their
number.
"""

from __future__ import annotations

import re

from sojourn.formats.content import Content
from sojourn.formats.file_series import Pings
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import FileMeasurement

UNITS_MS = {
    "ns": 1e-6,
    "µs": 1e-3,
    "μs": 1e-3,
    "us": 1e-3,
    "ms": 1.0,
    "s": 1e3,
    "m": 6e4,
    "h": 3.6e6,
}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|µs|μs|us|ms|s|m|h)")
_PACKET = re.compile(r"seq=(\d+) (?:rtt=(\S+) rd=(\S+) sd=(\S+)|LOST)")
_DURATION = re.compile(r"^\s*duration: (\S+)", re.M)
_COUNTS = re.compile(r"^\s*packets sent/received: (\d+)/(\d+)", re.M)
_HOST = re.compile(r"^\[([^\]]+)\] \[Connect", re.M)
_DUPLICATES = re.compile(r"^\s*\*?\s*duplicates: (\d+)", re.M)


def duration_ms(text: str) -> float:
    """A duration as Go prints it, in ms.

    >>> duration_ms("1m2.5s")
    62500.0

    Raises:
        FileFormatError: the text is not a duration.
    """
    parts = _PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text.lstrip("-"):
        raise FileFormatError(f"{text!r} is not a duration")
    return sum(float(number) * UNITS_MS[unit] for number, unit in parts) * (
        -1 if text[:1] == "-" else 1
    )


def _is_json(content: Content) -> bool:
    raw = content.json
    return isinstance(raw, dict) and "round_trips" in raw and "irtt" in (raw.get("version") or {})


def _read_json(content: Content) -> FileMeasurement:
    raw = content.json
    if raw["version"].get("json_format") != 1:
        raise FileFormatError(
            f"its json_format is {raw['version'].get('json_format')!r}, but only 1 is read"
        )
    trips, stats, config = raw["round_trips"], raw["stats"], raw["config"]
    # Without the option --clock both one of the clocks is missing.
    clock = "monotonic" if "monotonic" in _sent(trips[0]) else "wall"
    zero = _sent(trips[0])[clock]
    pings = Pings("irtt")
    for trip in trips:
        sent = (_sent(trip)[clock] - zero) / 1e9
        delay = trip.get("delay") or {}
        lost = trip["lost"] != "false"
        forward = delay.get("send")
        pings.add(
            sent, trip["seqno"], None if lost else delay["rtt"] / 1e6, None if forward is None else forward / 1e6
        )  # fmt: skip
    notes = []
    up = sum(trip["lost"] == "true_up" for trip in trips)
    down = sum(trip["lost"] == "true_down" for trip in trips)
    if up or down:
        lost = up + down
        notes.append(
            f"irtt tells the direction of {lost} lost packet{'s' * (lost > 1)}: {up} up, {down} down."
        )
    for key, what in (("duplicates", "duplicate"), ("late_packets", "late")):
        if stats.get(key):
            notes.append(f"{stats[key]} {what} replies are left out.")
    wall = _sent(trips[0]).get("wall")
    return FileMeasurement(
        program="irtt",
        version=str(raw["version"]["irtt"]),
        test=f"every {config['params']['interval'] / 1e6:g} ms",
        host=str(config.get("supplied", {}).get("remote_address") or config["remote_address"]),
        began_s=None if wall is None else wall / 1e9,
        pings=[pings],
        notes=notes,
    )


def _sent(trip: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, int]:
    return trip["timestamps"]["client"]["send"]


def _is_text(content: Content) -> bool:
    return _PACKET.search(content.head) is not None and "[Connect" in content.head


def _read_text(content: Content) -> FileMeasurement:
    duration, counts = _DURATION.search(content.text), _COUNTS.search(content.text)
    if not duration or not counts:
        raise FileFormatError(
            "it ends before irtt's summary, without which its packets have no times"
        )
    sent, received = int(counts[1]), int(counts[2])
    packets = {int(seq): (rtt, delay) for seq, rtt, _, delay in _PACKET.findall(content.text)}
    if max(packets) >= sent:
        raise FileFormatError(f"it has packet {max(packets)} of {sent}")
    answered = sum(rtt != "" for rtt, _ in packets.values())
    if answered != received:
        raise FileFormatError(f"its summary counts {received} replies, but it lists {answered}")
    apart = duration_ms(duration[1]) / 1e3 / max(sent - 1, 1)
    pings = Pings("irtt")
    for seq in range(sent):
        rtt, delay = packets.get(seq, ("", ""))
        pings.add(
            seq * apart, seq, duration_ms(rtt) if rtt else None, duration_ms(delay) if rtt else None
        )
    host = _HOST.search(content.text)
    notes = [f"irtt prints no times: its packets are placed {apart * 1e3:.4g} ms apart."]
    if duplicates := _DUPLICATES.search(content.text):
        notes.append(f"{duplicates[1]} duplicate replies are left out.")
    return FileMeasurement(
        program="irtt", version="", test=f"every {apart * 1e3:.3g} ms", host=host[1] if host else "", began_s=None, pings=[pings],
        notes=notes,
    )  # fmt: skip


FORMATS = (
    Format("irtt-json", "irtt", "irtt client -o FILE", Yields.MEASUREMENT, _is_json, _read_json),
    Format(
        "irtt-text", "irtt", "irtt client HOST > FILE", Yields.MEASUREMENT, _is_text, _read_text
    ),
)
