"""The JSON of macOS' networkQuality (`-c`): goodput in each direction, and latencies idle and loaded.

It has lists of latencies without times: each list is spread evenly over its phase. `il_...` are idle,
`lud_...` loaded. Handshakes of TCP are round trips. The times of HTTP/2 requests include the server's
work; `self` requests use the connections of the load. A direction's bytes are spread over its phase at
a steady rate. Dates are local and without a time zone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sojourn.formats.content import Content
from sojourn.formats.file_series import Pings, Stream, checked
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import IDLE, FileMeasurement

if TYPE_CHECKING:
    from sojourn.facts import Direction

SERIES = {
    "TCP handshake": ("il_tcp_handshake_443", ("lud_foreign_tcp_handshake_443",)),
    "HTTP/2 request": (
        "il_h2_req_resp",
        ("lud_foreign_h2_req_resp", "lud_foreign_dl_h2_req_resp", "lud_foreign_ul_h2_req_resp"),
    ),
    "HTTP/2 request in the load": (
        "",
        ("lud_self_h2_req_resp", "lud_self_dl_h2", "lud_self_ul_h2"),
    ),
}
"""The idle list and the loaded lists of each kind of latency."""
IDLE_S = 1.0
"""The assumed length of the idle phase, which the file does not contain."""
MOST_S = 3600.0


def _is_json(content: Content) -> bool:
    raw = content.json
    return isinstance(raw, dict) and (
        ("dl_throughput" in raw or "ul_throughput" in raw or "error_domain" in raw)
        and ("start_date" in raw or "end_date" in raw or "base_rtt" in raw)
    )


def _read(content: Content) -> FileMeasurement:
    raw = content.json
    if "error_code" in raw:
        raise FileFormatError(
            f"networkQuality failed: {raw.get('error_domain', 'error')} {raw['error_code']}"
        )
    began = _date(raw, "start_date")
    start, end = IDLE_S, IDLE_S + _span(raw)
    streams = []
    notes = ["Single latencies have no times: each list is spread evenly over its phase."]
    for way, key in (("down", "dl"), ("up", "ul")):
        if f"{key}_throughput" in raw:
            streams.append(_stream(raw, way, key, start, end))
    if not streams:
        raise FileFormatError("it has no goodput in either direction")
    loaded_end = max(stream.t[-1] for stream in streams)
    pings = []
    for name, (idle, loaded) in SERIES.items():
        target = Pings(name, losses_known=False)
        samples = [value for key in loaded for value in raw.get(key) or []]
        _spread(target, raw.get(idle) or [], 0.0, start)
        _spread(target, samples, start, loaded_end)
        if target.sent:
            pings.append(target)
    if "responsiveness" in raw:
        notes.append(
            f"networkQuality's own responsiveness: {float(raw['responsiveness']):.4g} RPM."
        )
    if began is not None:
        notes.append("The date has no time zone: it is taken for UTC.")
    kinds = {stream.direction for stream in streams}
    kind = "both" if len(kinds) > 1 else {"up": "upload", "down": "download"}[kinds.pop()]
    measured = FileMeasurement(
        program="networkQuality",
        version=str(raw.get("os_version", "")),
        test="both ways" if kind == "both" else kind,
        host=str(raw.get("test_endpoint", "")),
        began_s=began,
        streams=streams,
        pings=pings,
        one_host=True,
        notes=notes,
    )
    for name, first, last in ((IDLE, 0.0, start), (kind, start, loaded_end)):
        measured.phases.append(
            {
                "name": name,
                "kind": name,
                "start_ns": round(first * 1e9),
                "end_ns": round(last * 1e9),
                "complete": True,
            }
        )
    return measured


def _stream(raw: dict[str, Any], way: str, key: str, start: float, end: float) -> Stream:
    direction: Direction = "down" if way == "down" else "up"
    stream = Stream(f"{'download' if way == 'down' else 'upload'}", direction)
    took = float(raw.get(f"{key}_phase_duration") or end - start)
    mean = checked(raw[f"{key}_throughput"], "a goodput in bit/s", 1e13) / 8 * took
    size = raw.get(f"{key}_bytes_transferred") if f"{key}_phase_duration" in raw else None
    stream.add(start, start + checked(took, "a phase in s", MOST_S), mean if size is None else size)
    return stream


def _spread(target: Pings, samples: list[float], start: float, end: float) -> None:
    for number, sample in enumerate(samples):
        at = start + (end - start) * (number + 0.5) / len(samples)
        target.add(at, len(target.sent), float(sample))


def _span(raw: dict[str, Any]) -> float:
    """How long the load took: the longest phase, or the whole test."""
    phases = [float(raw[key]) for key in ("dl_phase_duration", "ul_phase_duration") if key in raw]
    if phases:
        return checked(max(phases), "a phase in s", MOST_S)
    began, ended = _date(raw, "start_date"), _date(raw, "end_date")
    if began is None or ended is None or not 0 < ended - began <= MOST_S:
        raise FileFormatError("it has no dates, so the length of the load is not known")
    return ended - began


def _date(raw: dict[str, Any], key: str) -> float | None:
    value = raw.get(key)
    return None if value is None else datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp()


FORMATS = (
    Format(
        "networkquality-json", "networkQuality", "networkQuality -c > FILE", Yields.MEASUREMENT, _is_json, _read
    ),
)  # fmt: skip
