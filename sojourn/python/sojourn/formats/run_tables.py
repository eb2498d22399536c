"""Makes the tables and flows of a Run from the series of a file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sojourn.arrays import Columns, Floats, Tables
from sojourn.facts import Direction, SessionFlow
from sojourn.formats.file_series import Pings, S, Stream, unique_names
from sojourn.records import NONE, nothing
from sojourn.records.measurement import EMPTY


def tables(streams: Sequence[Stream], pings: Sequence[Pings]) -> Tables:
    """The tables of these streams and pings."""
    curves = _on_common_times(streams)
    totals = [
        StreamTotals(each.delivered[-1], each.retransmits[-1], each.sent_packets, each.lost_packets)
        for each in streams
    ]
    return empty_tables() | {
        "flow": _flow_table(curves),
        "probe": probe_table(pings, len(curves)),
        "flows": totals_table(totals, pings),
    }


def empty_tables() -> Tables:
    """Every table of a measurement that has neither streams nor pings."""
    names = (*EMPTY, "queue", "links", "flow", "probe", "flows")
    return {**{name: nothing(name) for name in names}, "engine": nothing("engine", 1)}


def session_flows(
    names: Iterable[str], streams: Sequence[tuple[Direction, str]], load_phase: int
) -> list[SessionFlow]:
    """The facts of the streams (each given as direction and congestion control), then of the
    targets.

    `names`: the names of the streams, then of the targets. `load_phase`: the number of the phase in
    which the streams send.
    """
    flows: list[SessionFlow] = []
    for number, name in enumerate(unique_names(names)):
        if number < len(streams):
            direction, congestion = streams[number]
            flows.append(
                {
                    "name": name, "kind": "bulk", "direction": direction, "phase": load_phase, "group": number,
                    "congestion": congestion,
                }
            )  # fmt: skip
        else:
            flows.append(
                {
                    "name": name, "kind": "ping", "direction": "", "phase": None, "group": number, "congestion": None,
                }
            )  # fmt: skip
    return flows


@dataclass(frozen=True)
class _Curve:
    """A stream at times that all streams share."""

    stream: Stream
    t: Floats
    delivered: Floats


def _on_common_times(streams: Sequence[Stream]) -> list[_Curve]:
    """Each stream at the times of all streams between its own first and last one, so that their
    goodputs can be added. Between two of its own times a stream delivers at a steady rate."""
    if not streams:
        return []
    every = np.unique(np.concatenate([np.round(stream.t, 3) for stream in streams]))
    curves = []
    for stream in streams:
        t, delivered = np.asarray(stream.t), np.asarray(stream.delivered)
        own = every[(every >= round(t[0], 3)) & (every <= round(t[-1], 3))]
        curves.append(_Curve(stream, own, np.interp(own, t, delivered)))
    return curves


def _latest(curve: _Curve, values: Sequence[float]) -> Floats:
    """A state of the sender at each time of the curve: the latest one known by then."""
    known = np.full(len(curve.stream.t), np.nan)
    known[: len(values)] = values
    at = np.flatnonzero(np.isfinite(known))
    if not at.size:
        return np.full(curve.t.size, np.nan)
    own = np.asarray(curve.stream.t)[at]
    last = np.searchsorted(own, curve.t + 5e-4, side="right") - 1
    return np.where(last >= 0, known[at][np.maximum(last, 0)], np.nan)


def _flow_table(curves: Sequence[_Curve]) -> Columns:
    names = (
        "t_ns",
        "flow",
        "cwnd_bytes",
        "srtt_ns",
        "delivered_bytes",
        "retransmits",
        "inflight_bytes",
    )
    rows = [
        np.column_stack(
            (
                curve.t * S,
                np.full(curve.t.size, number),
                _latest(curve, curve.stream.cwnd),
                _latest(curve, curve.stream.srtt_ms) * 1e6,
                curve.delivered,
                _latest(curve, curve.stream.retransmits),
                _latest(curve, curve.stream.inflight),
            )
        )
        for number, curve in enumerate(curves)
    ]
    return table("flow", names, np.concatenate(rows) if rows else [])


def probe_table(targets: Sequence[Pings], first: int) -> Columns:
    """The table `probe` of these targets, the first of which has the number `first`."""
    rows = [
        (ping.t * S, number, ping.seq, ping.rtt_ms * 1e6, ping.forward_ms * 1e6)
        for number, pings in enumerate(targets, first)
        for ping in sorted(pings.sent, key=lambda ping: (ping.t, ping.seq))
    ]
    return table("probe", ("t_ns", "probe", "seq", "rtt_ns", "forward_ns"), rows)


def table(name: str, columns: Sequence[str], rows: Sequence[Sequence[float]] | Floats) -> Columns:
    """A table of these columns, rounded to whole numbers, NaN as null. Its other columns are
    null."""
    made = nothing(name, len(rows))
    if len(rows):
        for column, values in zip(columns, np.asarray(rows, dtype=np.float64).T, strict=True):
            made[column] = np.round(np.where(np.isnan(values), NONE, values)).astype(np.int64)
    return made


@dataclass(frozen=True)
class StreamTotals:
    """The totals of a stream."""

    delivered_bytes: float
    retransmits: float
    """NaN: not known."""
    sent_packets: int | None = None
    lost_packets: int | None = None


def totals_table(streams: Sequence[StreamTotals], targets: Sequence[Pings]) -> Columns:
    """The table `flows`: the totals of each stream and of each target."""
    count = len(streams) + len(targets)
    totals = nothing("flows", count) | {"flow": np.arange(count)}
    for i, stream in enumerate(streams):
        totals["delivered_bytes"][i] = round(stream.delivered_bytes)
        if math.isfinite(stream.retransmits):
            totals["retransmits"][i] = round(stream.retransmits)
        if stream.sent_packets is not None:
            totals["sent_packets"][i] = stream.sent_packets
        if stream.lost_packets is not None:
            totals["lost_packets"][i] = stream.lost_packets
    for i, pings in enumerate(targets, len(streams)):
        rtts = [ping.rtt_ms for ping in pings.sent if not math.isnan(ping.rtt_ms)]
        totals["received_packets"][i] = len(rtts)
        if pings.losses_known:
            totals["sent_packets"][i] = len(pings.sent)
            totals["lost_packets"][i] = len(pings.sent) - len(rtts)
        if rtts:
            totals["base_rtt_ns"][i] = round(min(rtts) * 1e6)
    return totals
