"""TCP settings of a host's kernel: its namespace's sysctls and its modules' parameters. No I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.realised import Flow, Tcp
from sojourn.scenario.tcp import PROFILES

SEND_BUFFER = 64 << 20


@dataclass(frozen=True)
class TcpSide:
    """TCP settings of a host's kernel, the same for all of its flows."""

    ecn: bool
    accecn: bool
    sack: bool
    dsack: bool
    frto: bool
    rack: bool
    tlp: bool
    timestamps: bool
    sack_delay_ns: int
    receive_buffer: int
    receive_buffer_max: int
    initial_window: int
    slow_start_after_idle: bool
    min_rto_ns: int


def module_settings(flows: Sequence[Flow]) -> Iterator[tuple[str, int]]:
    """Parameters of congestion controls that differ from the kernel's defaults: (file, value)."""
    written: dict[str, int] = {}
    for flow in flows:
        if (tcp := flow.tcp) is None or tcp.own is not None:
            continue
        for name in CONGESTION[tcp.congestion].module_settings:
            value = tcp.parameters[name]
            if value != PROFILES["linux"].parameters[name]:
                path = f"/sys/module/tcp_{tcp.congestion}/parameters/{name.removeprefix('vegas_')}"
                written[path] = int(value)
    yield from written.items()


def tcp_side(tcp: Tcp) -> TcpSide:
    """The host settings for these parameters of an endpoint."""
    return TcpSide(**{each.name: getattr(tcp, each.name) for each in fields(TcpSide)})


def sysctls(side: TcpSide) -> Iterator[tuple[str, int | str]]:
    """The settings under net.ipv4."""
    yield "tcp_ecn", 3 if side.accecn else int(side.ecn)
    yield "tcp_sack", int(side.sack)
    yield "tcp_dsack", int(side.dsack)
    yield "tcp_frto", 2 * side.frto
    yield "tcp_recovery", int(side.rack)
    yield "tcp_early_retrans", 3 * side.tlp
    yield "tcp_timestamps", int(side.timestamps)
    yield "tcp_comp_sack_delay_ns", side.sack_delay_ns
    yield "tcp_rmem", f"4096 {side.receive_buffer} {side.receive_buffer_max}"
    # The buffer is large because the simulator's senders always have data to send.
    yield "tcp_wmem", f"4096 16384 {SEND_BUFFER}"
    # A connection must not inherit metrics from an earlier one between the same hosts.
    yield "tcp_no_metrics_save", 1
    yield "tcp_slow_start_after_idle", int(side.slow_start_after_idle)
    yield "ip_local_port_range", "32768 60999"
