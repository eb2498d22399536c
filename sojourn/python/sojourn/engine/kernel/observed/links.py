"""The rows of a link: its totals, its time line, its drops.

- Sojourn, arrivals, departures, drops, and the backlog between samples are from the link's packets.
  The guest's program has added these up as they passed (crates/guest, watch.rs).
- At each sample the kernel reports the backlog and the discipline's own state of the time line.
- If the link is a simulated card, bytes on the wire, losses and the ring are the card's counters.

Linux does not report red's average queue or fq_codel's CoDel counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sojourn import _core
from sojourn.arrays import Columns, Ints
from sojourn.engine.kernel.graph import has_queue, rate_steps
from sojourn.engine.kernel.observed.archive import NEVER, Archive
from sojourn.engine.kernel.observed.passage import CAUSE, Own, Passage, own_numbers, own_of_all
from sojourn.engine.kernel.observed.samples import (
    Samples,
    Window,
    nearest,
    taken,
)
from sojourn.linux import tc
from sojourn.scenario.framing import wire_bytes
from sojourn.scenario.qdisc import LinkLayer, Shaper
from sojourn.scenario.realised import Realised

Column: TypeAlias = "_core.Column"


_STATE = (
    *("limit", "count", "probability", "average", "flows"),
    *("classic_delay_ns", "l4s_delay_ns"),
)
"""Columns of a discipline's own state."""
REFUSED, DROPPED, MARKED, LOST = range(4)
"""Events of packets that the queue or the wire dropped or marked; the numbers are those of
crates/guest, watch.rs."""


@dataclass(frozen=True)
class Drops:
    """Drops, marks and losses of a queue or a wire."""

    times: Ints
    flow: Ints
    reverse: Ints
    cause: Ints
    marked: Ints
    bytes: Ints


class ObservedLink:
    """A link of the scenario, as the guest measured it."""

    def __init__(self, number: int, realised: Realised, archive: Archive) -> None:
        self.number = number
        self.link = realised.links[number]
        self.archive = archive
        self.end = int(realised.duration_ns)
        self.window = Window(int(realised.warmup_ns), self.end)
        self.offloads = realised.offloads
        self.header = int(self.link.framing.header_bytes)
        self.ring = self.link.ring
        self.watched = bool((archive.tables["passed"]["link"] == number).any())
        self.policed = self.link.police is not None
        self.queued = self.watched and (has_queue(self.link) or self.policed)
        self.devices = [
            at for at, each in enumerate(archive.index["devices"]) if each["link"] == number
        ]

    # -------------------------------------------------------------------------------- from samples

    @cached_property
    def discipline(self) -> dict[str, Ints]:
        """The samples of the link's discipline."""
        return self._qdisc(self.link.qdisc.kind, handle=tc.DISCIPLINE_HANDLE)

    def _qdisc(self, kind: str, handle: int | None = None) -> dict[str, Ints]:
        table = self.archive.tables["qdisc"]
        kinds = self.archive.index["qdisc_kinds"]
        number = kinds.index(kind) if kind in kinds else -1
        chosen = np.isin(table["device"], self.devices) & (table["kind"] == number)
        if handle is not None:
            chosen &= table["handle"] == handle
        return {name: column[chosen] for name, column in table.items()}

    @cached_property
    def own(self) -> Own:
        child = self.link.qdisc.child
        if child is None:
            return own_numbers(self.archive, self.discipline, self.link.qdisc.kind)
        return own_of_all(self.archive, self._qdisc(child.kind), child.kind)

    def gauge(self, name: str) -> Samples:
        """A gauge of the card; without samples if the card lacks it."""
        table = self.archive.tables["gauge"]
        for device in self.devices:
            gauges = self.archive.index["devices"][device]["gauges"]
            if name in gauges:
                chosen = (
                    (table["device"] == device)
                    & (table["gauge"] == gauges.index(name))
                    & (table["value"] >= 0)
                )
                return Samples(table["t_ns"][chosen], table["value"][chosen])
        return Samples(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    @cached_property
    def device(self) -> dict[str, Ints]:
        """The counters of the link's device."""
        return self.archive.rows("device", "device", self.devices[0] if self.devices else -1)

    # -------------------------------------------------------------------------------------- totals

    def totals(self) -> dict[str, int | float]:
        """The link's row of `links`."""
        row: dict[str, int | float] = {
            "link": self.number,
            "capacity_bits": self._capacity(),
            "measured_ns": self.window.end - self.window.warm,
        }
        row |= self._of_queue() if self.queued else self._of_device()
        wire, busy = self.gauge("simnic/wire_bytes"), self.gauge("simnic/busy_ns")
        if len(wire.times):
            row |= {"wire_bytes": wire.since(self.window), "busy_ns": busy.since(self.window)}
        row["lost_packets"] = self._lost()
        return row | self._of_ring()

    @cached_property
    def _passed(self) -> Mapping[str, Any]:
        """The sums over the link's packets."""
        return {
            name: column[0]
            for name, column in self.archive.rows("passed", "link", self.number).items()
        }

    def _of_queue(self) -> dict[str, int | float]:
        """The totals of a link with a queue, from its packets."""
        passed = self._passed
        sizes = self.archive.rows("sizes", "link", self.number)
        wire = int(
            (carried(self.link.framing, sizes["bytes"], self.offloads) * sizes["packets"]).sum()
        )
        span = self.window.end - self.window.warm
        return {name: int(passed[name]) for name in _COUNTED} | {
            "wire_bytes": wire,
            "sojourn_sum_ns": float(passed["sojourn_sum_ns"]),
            "backlog_mean_packets": float(passed["backlog_packet_ns"]) / span,
            "backlog_mean_bytes": float(passed["backlog_byte_ns"]) / span,
            "busy_ns": self._busy(wire),
        }

    def _of_device(self) -> dict[str, int]:
        """The totals of a link without a rate, from its device's counters: nothing waits there, so
        no packet is watched."""
        times = self.device["t_ns"]
        packets = Samples(times, self.device["sent_packets"]).since(self.window)
        counted = Samples(times, self.device["sent_bytes"]).since(self.window)
        ip = counted - tc.ETHERNET_HEADER * packets
        nothing = dict.fromkeys(
            (
                *(
                    "dropped_packets",
                    "marked_packets",
                    "sojourn_sum_ns",
                    "sojourn_max_ns",
                    "busy_ns",
                ),
                *(
                    "backlog_mean_packets",
                    "backlog_mean_bytes",
                    "backlog_max_packets",
                    "backlog_max_bytes",
                ),
            ),
            0,
        )
        return nothing | {
            "arrived_packets": packets,
            "arrived_bytes": ip,
            "sent_packets": packets,
            "sent_bytes": ip,
            "wire_bytes": ip + packets * int(self.link.framing.overhead_bytes),
        }

    def _busy(self, wire_bytes: int) -> int:
        """Busy time of a link without a card: the time that its bytes take at the link's rate. -1
        if the rate changes, because the bytes sent at each rate are not known."""
        rates = {step.bps for step in self.link.rate}
        if not rates:
            return 0
        return wire_bytes * 8 * 10**9 // rates.pop() if len(rates) == 1 else NEVER

    def _capacity(self) -> int:
        shaped = self.link.shaper.bps if self.link.shaper else None
        steps = rate_steps(self.link, self.end)
        if not steps:
            if shaped is None:
                return NEVER
            steps = [(0, shaped)]
        total = 0
        for (at, bps), until in zip(steps, [*(at for at, _ in steps[1:]), self.end], strict=True):
            # Each step counts with its part of the measured time, and with the shaper's rate if
            # that is lower.
            span = min(until, self.end) - max(at, self.window.warm)
            total += max(span, 0) * (bps if shaped is None else min(bps, shaped))
        return total // 10**9

    def _lost(self) -> int:
        """Packets that the wire lost: the card's count, or netem's."""
        card = self.gauge("simnic/lost_packets")
        if len(card.times):
            return card.since(self.window)
        if self.link.loss is None:
            return 0
        netem = self._qdisc("netem")
        return Samples(netem["t_ns"], netem["drops"]).since(self.window)

    def _of_ring(self) -> dict[str, int | float]:
        names = (
            "ring_sent_packets",
            "ring_sojourn_sum_ns",
            "ring_sojourn_max_ns",
            "ring_max_packets",
        )
        none = {
            **dict.fromkeys(names, NEVER),
            "ring_mean_packets": float("nan"),
            "bql_limit_bytes": NEVER,
        }
        if self.ring is None or not self.watched:
            return none
        passed, limit = self._passed, self.gauge("simnic/bql_limit")
        return {
            "ring_sent_packets": int(passed["ring_sent_packets"]),
            "ring_sojourn_sum_ns": float(passed["ring_sojourn_sum_ns"]),
            "ring_sojourn_max_ns": int(passed["ring_sojourn_max_ns"]),
            "ring_mean_packets": float(passed["ring_packet_ns"])
            / (self.window.end - self.window.warm),
            "ring_max_packets": int(passed["ring_max_packets"]),
            "bql_limit_bytes": int(limit.values[-1])
            if self.ring.bql and len(limit.values)
            else NEVER,
        }

    # ---------------------------------------------------------------------------------- time lines

    def queue(self, edges: Ints) -> Columns:
        """The link's rows of `queue`, one for each span between the edges."""
        times = edges[1:]
        many = len(times)
        nothing = np.zeros(many, dtype=np.int64)
        nan = np.full(many, np.nan)
        row: Columns = {"t_ns": times, "link": np.full(many, self.number, dtype=np.int64)}
        state: dict[str, Column] = dict.fromkeys(_STATE, nan)
        if self.queued:
            row |= self._spans(edges)
            at = nearest(self.discipline["t_ns"], times)
            row["backlog_packets"] = taken(self.discipline["backlog_packets"], at)
            row["backlog_bytes"] = taken(self.discipline["backlog_bytes"], at)
            state |= self._state(at, times)
        else:
            sent = Samples(self.device["t_ns"], self.device["sent_packets"]).growth(edges)
            counted = Samples(self.device["t_ns"], self.device["sent_bytes"]).growth(edges)
            row |= {
                **dict.fromkeys(("backlog_packets", "backlog_bytes", "sojourn_max_ns"), nothing),
                **dict.fromkeys(("dropped_packets", "marked_packets"), nothing),
                "sojourn_mean_ns": np.where(sent > 0, 0.0, np.nan),
                "sent_packets": sent,
                "sent_bytes": counted - tc.ETHERNET_HEADER * sent,
            }
        return row | state | self._ring_line(times)

    def _spans(self, edges: Ints) -> Columns:
        """Arrivals, departures and drops between the edges, from the packets."""
        spans = self.archive.rows("spans", "link", self.number)
        assert len(spans["span"]) == len(edges) - 1, (
            "the guest cuts the time line at the same edges"
        )
        with np.errstate(invalid="ignore"):
            mean = spans["sojourn_sum_ns"] / spans["sent_packets"]
        counted = (
            "sojourn_max_ns",
            "sent_packets",
            "sent_bytes",
            "dropped_packets",
            "marked_packets",
        )
        return {"sojourn_mean_ns": mean, **{name: spans[name] for name in counted}}

    def _state(self, at: Ints, times: Ints) -> dict[str, Column]:
        """The discipline's own state at the samples, under the simulator's names."""
        child, many = self.link.qdisc.child, len(times)
        params, numbers = (child or self.link.qdisc).params, self.own.numbers
        state: dict[str, Column] = {}
        steps = [step for step, _ in self.link.qdisc_steps]
        in_force = np.searchsorted(steps, times, side="right")

        def param(name: str) -> NDArray[np.float64]:
            """A parameter at the samples. gred has one for each virtual queue."""
            after = [changed.params[name] for _, changed in self.link.qdisc_steps]
            each = [sum(map(float, str(value).split())) for value in (params[name], *after)]
            return np.array(each)[in_force]

        def real(values: Ints) -> NDArray[np.float64]:
            taken = values[np.maximum(at, 0)].astype(np.float64) if len(values) else np.zeros(many)
            return np.where(at >= 0, taken, np.nan)

        if params.get("limit") is not None:
            queues = 1 if child is None else self.link.queues or 1
            state["limit"] = queues * param("limit")
        elif "limit" in numbers:
            state["limit"] = real(numbers["limit"])
        for each in self.own.record.state:
            # For a card with several queues, only the number of flows can be added up.
            if child is not None and each.column != "flows":
                continue
            if each.else_field is not None:
                value = real(self.own.total(each.plus, each.minus))
                state[each.column] = np.where(
                    value >= 0, value / each.whole, param(each.else_field)
                )
                continue
            total = self.own.total(each.plus, each.minus)
            # Some statistics have a meaning in one state only, such as CoDel's count while it
            # drops.
            if each.while_on is not None:
                total = np.where(numbers[each.while_on] != 0, total, 0)
            state[each.column] = real(total) / each.whole
        return state

    def _ring_line(self, times: Ints) -> Columns:
        none = np.full(len(times), NEVER, dtype=np.int64)
        line: Columns = dict.fromkeys(("ring_packets", "ring_bytes", "bql_limit_bytes"), none)
        if self.ring is None:
            return line
        packets, counted = (self.gauge(f"simnic/ring_{what}") for what in ("packets", "bytes"))
        at = nearest(packets.times, times)
        packets_in_ring = taken(packets.values, at)
        line["ring_packets"] = packets_in_ring
        # The card counts 14 bytes of Ethernet for each packet; the discipline counts the bytes that
        # tc-stab adds.
        queue_bytes = taken(counted.values, at) - packets_in_ring * (
            tc.ETHERNET_HEADER - self.header
        )
        line["ring_bytes"] = np.where(at >= 0, np.maximum(queue_bytes, 0), NEVER)
        if self.ring.bql:
            limit = self.gauge("simnic/bql_limit")
            line["bql_limit_bytes"] = taken(limit.values, nearest(limit.times, times))
        return line

    @cached_property
    def drops(self) -> Drops:
        """The link's drops, marks and losses, of packets that belong to a flow."""
        rows = self.archive.rows("drops", "link", self.number)
        times, what = rows["t_ns"], rows["what"]
        cause = np.full(len(times), CAUSE["wire"], dtype=np.int64)
        dropped, marked = what <= DROPPED, what == MARKED
        if dropped.any() and has_queue(self.link):
            cause[dropped] = self.own.drops(times[dropped], what[dropped] == REFUSED)
        if self.policed:
            refused = what == REFUSED
            cause[refused] = self._policed(times[refused], cause[refused])
        if marked.any():
            cause[marked] = self.own.marks(times[marked])
        return Drops(
            times, rows["flow"], rows["reverse"], cause, marked.astype(np.int64), rows["bytes"]
        )

    def _policed(self, times: Ints, cause: Ints) -> Ints:
        """The causes of packets dropped on arrival, where a policer may have dropped them. In each
        interval between samples, the cause is the policer or the discipline, whichever counter grew
        more."""
        police = self._qdisc("clsact")
        at, dropped = police["t_ns"], police["drops"]
        if not has_queue(self.link) or len(at) < 2:
            return np.full(len(times), CAUSE["police"], dtype=np.int64)
        interval = np.clip(np.searchsorted(at, times, side="left") - 1, 0, len(at) - 2)
        others = self.own.numbers["drops"]
        more = (
            np.diff(dropped) > np.diff(others) if len(others) == len(at) else np.diff(dropped) > 0
        )
        return np.where(more[interval], CAUSE["police"], cause)

    @cached_property
    def passage(self) -> Passage | None:
        """The link's packets, if the run records a row for each."""
        taps = [
            at for at, tap in enumerate(self.archive.index["taps"]) if tap["link"] == self.number
        ]
        table = f"tap{taps[0]}" if taps else ""
        return Passage.of(self.archive.tables[table]) if table in self.archive.tables else None


_COUNTED = (
    *(
        "arrived_packets",
        "arrived_bytes",
        "sent_packets",
        "sent_bytes",
        "dropped_packets",
        "marked_packets",
    ),
    *("sojourn_max_ns", "backlog_max_packets", "backlog_max_bytes"),
)
_HEADERS, _PAYLOAD = 52, 1448
"""A full segment of TCP with timestamps: IP and TCP headers, payload; bytes."""


def carried(framing: LinkLayer | Shaper, ip_bytes: Ints, offloads: bool) -> Ints:
    """Bytes that packets take on the wire. With offloads, a packet larger than a full segment is
    sent as several, each with its own headers."""
    if not offloads:
        return wire_bytes(framing, ip_bytes)
    others = np.maximum(-(-(ip_bytes - _HEADERS) // _PAYLOAD) - 1, 0)
    full = wire_bytes(framing, np.array([_HEADERS + _PAYLOAD]))
    return np.asarray(wire_bytes(framing, ip_bytes - others * _PAYLOAD) + others * full)
