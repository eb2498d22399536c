"""What a TCP endpoint is: a profile, and what a flow sets otherwise in `tcp = { ... }`.

`linux` is what a Linux host of today does by default; `ns2` is ns-2.35's one-way agents (TCP/Newreno with a plain sink),
for papers made with them. A profile is a full set of crates/tcp's TcpParams; a setting carries the same name without
its unit: `min_rto = "1 s"`.

Source: Linux Documentation/networking/ip-sysctl.rst and tcp(7); ns-2.35's ns-default.tcl.
Deviations: ns-2's `window_` of 20 segments is not part of the profile, since every paper sets its own: `max_window = 20`.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator

from sojourn.scenario.linux import CONGESTION
from sojourn.units import format_duration, format_size, parse_duration, parse_size

if TYPE_CHECKING:
    Congestion = str
else:
    Congestion = Literal[tuple(CONGESTION)]
"""The kernel's name of a congestion control."""
Profile = Literal["linux", "ns2"]


def _timeout(value: object) -> int:
    return parse_duration(value, example="1 s", zero=False, most=3600 * 10**9)


def _target(value: object) -> int:
    return parse_duration(value, example="100 ms", zero=False, most=10 * 10**9)


def _delay(value: object) -> int:
    return parse_duration(value, example="40 ms", most=10 * 10**9)


def _buffer(value: object) -> int:
    return parse_size(value, what="a buffer", least=2048, most=2**40)


def _write_time(ns: int | None) -> str | None:
    return None if ns is None else format_duration(ns)


def _write_size(size: int | None) -> str | None:
    return None if size is None else format_size(size)


_Timeout = Annotated[int, PlainValidator(_timeout), PlainSerializer(_write_time)]
_Target = Annotated[int, PlainValidator(_target), PlainSerializer(_write_time)]
_Delay = Annotated[int, PlainValidator(_delay), PlainSerializer(_write_time)]
_Buffer = Annotated[int, PlainValidator(_buffer), PlainSerializer(_write_size)]
_Segments = Annotated[int, Field(ge=1, le=2**31)]
_Queued = Annotated[int, Field(ge=0, le=2**31)]
_HeaderBytes = Annotated[int, Field(ge=40, le=120)]


class TcpSettings(BaseModel):
    """What a flow's endpoints do otherwise than their profile; None: as the profile."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    mss: Annotated[int, Field(ge=88, le=65000)] | None = None
    header_bytes: _HeaderBytes | None = None
    ack_bytes: _HeaderBytes | None = None
    sack: bool | None = None
    prr: bool | None = None
    dsack: bool | None = None
    undo: bool | None = None
    frto: bool | None = None
    rack: bool | None = None
    tlp: bool | None = None
    limited_transmit: bool | None = None
    timestamps: bool | None = None
    initial_window: _Segments | None = None
    initial_ssthresh: _Segments | None = None
    max_window: _Segments | None = None
    packet_counted: bool | None = None
    pacing: bool | None = None
    hystart: bool | None = None
    vegas_alpha: _Queued | None = None
    vegas_beta: _Queued | None = None
    vegas_gamma: _Queued | None = None
    ledbat_target: _Target | None = None
    ledbat_gain: Annotated[float, Field(gt=0, le=1000)] | None = None
    handshake: bool | None = None
    initial_rto: _Timeout | None = None
    min_rto: _Timeout | None = None
    max_rto: _Timeout | None = None
    tick: _Timeout | None = None
    min_rto_on_variance: bool | None = None
    delayed_ack_segments: Annotated[int, Field(ge=1, le=1000)] | None = None
    delayed_ack: _Delay | None = None
    delayed_ack_max: _Delay | None = None
    quick_acks: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    sack_delay: _Delay | None = None
    write_bytes: Annotated[int, Field(ge=0, le=2**31)] | None = None
    timer_tick: _Timeout | None = None
    receive_buffer: _Buffer | None = None
    receive_buffer_max: _Buffer | None = None
    receive_window_fraction: Annotated[float, Field(gt=0, le=1)] | None = None


_TIMES = (
    "initial_rto",
    "min_rto",
    "max_rto",
    "tick",
    "delayed_ack",
    "delayed_ack_max",
    "sack_delay",
    "timer_tick",
    "ledbat_target",
)

MTU = 1500
"""IP bytes of a full segment."""

_LINUX: dict[str, Any] = {
    "congestion": "cubic",
    "sack": True,
    "prr": True,
    "dsack": True,
    "undo": True,
    "frto": True,
    "rack": True,
    "tlp": True,
    "limited_transmit": True,
    "timestamps": True,
    "initial_window": 10,
    "initial_ssthresh": None,
    "max_window": None,
    "packet_counted": False,
    "pacing": False,
    "hystart": True,
    "vegas_alpha": 2,
    "vegas_beta": 4,
    "vegas_gamma": 1,
    "ledbat_target_ns": 100 * 10**6,
    "ledbat_gain": 1.0,
    "handshake": True,
    "initial_rto_ns": 10**9,
    "min_rto_ns": 200 * 10**6,
    "max_rto_ns": 120 * 10**9,
    "tick_ns": 1,
    "min_rto_on_variance": True,
    "delayed_ack_segments": 2,
    "delayed_ack_ns": 40 * 10**6,
    "delayed_ack_max_ns": 200 * 10**6,
    # TCP_MAX_QUICKACKS.
    "quick_acks": 16,
    # tcp_comp_sack_delay_ns.
    "sack_delay_ns": 10**6,
    "write_bytes": 65536,
    # HZ 250, as Debian and Ubuntu have it.
    "timer_tick_ns": 4 * 10**6,
    # tcp_rmem's default and maximum; of what a full segment takes, 2280 bytes, 1448 are data, in parts of 256.
    "receive_buffer": 131072,
    "receive_buffer_max": 6291456,
    "receive_window_fraction": 162 / 256,
}
_NS2: dict[str, Any] = {
    "congestion": "reno",
    "sack": False,
    "prr": False,
    "dsack": False,
    "undo": False,
    "frto": False,
    "rack": False,
    "tlp": False,
    "limited_transmit": True,
    "timestamps": False,
    "initial_window": 2,
    "initial_ssthresh": None,
    "max_window": None,
    "packet_counted": True,
    "pacing": False,
    "hystart": False,
    "vegas_alpha": 1,
    "vegas_beta": 3,
    "vegas_gamma": 1,
    "ledbat_target_ns": 100 * 10**6,
    "ledbat_gain": 1.0,
    "handshake": False,
    "initial_rto_ns": 3 * 10**9,
    "min_rto_ns": 200 * 10**6,
    "max_rto_ns": 60 * 10**9,
    "tick_ns": 10 * 10**6,
    "min_rto_on_variance": False,
    "delayed_ack_segments": 1,
    "delayed_ack_ns": 100 * 10**6,
    "delayed_ack_max_ns": 100 * 10**6,
    "quick_acks": 0,
    "sack_delay_ns": 0,
    "write_bytes": 0,
    "timer_tick_ns": 1,
    # ns-2's sink advertises no window.
    "receive_buffer": 2**30,
    "receive_buffer_max": 2**30,
    "receive_window_fraction": 1.0,
}
PROFILES: dict[Profile, dict[str, Any]] = {"linux": _LINUX, "ns2": _NS2}


def tcp_params(
    profile: Profile, congestion: Congestion | None, ecn: bool, settings: TcpSettings
) -> dict[str, Any]:
    """The engine's TcpParams: the profile, what is set otherwise, and what follows from it (headers, MSS, buffers)."""
    given = {f"{name}_ns" if name in _TIMES else name: value for name, value in settings if value is not None}
    merged = {**PROFILES[profile], **given, "ecn": ecn}
    if congestion is not None:
        merged["congestion"] = congestion
    if merged["congestion"] == "ledbat" and "initial_window" not in given:
        # INIT_CWND (RFC 6817 §2.5), whatever a TCP of that host begins with.
        merged["initial_window"] = 2
    # 20 bytes each of IP and TCP; the timestamp option takes 12 with its padding.
    merged.setdefault("header_bytes", 52 if merged["timestamps"] else 40)
    merged.setdefault("ack_bytes", merged["header_bytes"])
    merged.setdefault("mss", MTU - merged["header_bytes"])
    # A buffer above the profile's maximum is a fixed one.
    if "receive_buffer_max" not in given:
        merged["receive_buffer_max"] = max(merged["receive_buffer_max"], merged["receive_buffer"])
    return {name: merged[name] for name in _ORDER}


_ORDER = (
    *(
        "congestion",
        "mss",
        "header_bytes",
        "ack_bytes",
        "sack",
        "prr",
        "dsack",
        "undo",
        "frto",
        "rack",
        "tlp",
        "limited_transmit",
        "timestamps",
        "ecn",
    ),
    *("initial_window", "initial_ssthresh", "max_window", "packet_counted", "pacing", "hystart"),
    *("vegas_alpha", "vegas_beta", "vegas_gamma", "ledbat_target_ns", "ledbat_gain"),
    *("handshake", "initial_rto_ns", "min_rto_ns", "max_rto_ns", "tick_ns", "min_rto_on_variance"),
    *(
        "delayed_ack_segments",
        "delayed_ack_ns",
        "delayed_ack_max_ns",
        "quick_acks",
        "sack_delay_ns",
        "write_bytes",
        "timer_tick_ns",
    ),
    *("receive_buffer", "receive_buffer_max", "receive_window_fraction"),
)
"""The fields of crates/tcp's TcpParams."""
