"""A link as it was observed: its totals, its time line, its drops.

Sojourn, arrivals, departures, drops and the backlog between samples come from the taps, packet by packet; the backlog and the discipline's
own state in the time line are the kernel's, at each sample; bytes on the wire, losses and the ring are the card's counters where there is
one. Not to be had from Linux: red's average queue, fq_codel's CoDel counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sojourn import _core
from sojourn.engine import tc
from sojourn.engine.kernel.archive import NEVER, Archive, Ints
from sojourn.engine.kernel.graph import has_queue, rate_steps
from sojourn.engine.kernel.passage import (
    CAUSE,
    MARKS,
    Fates,
    Mask,
    Own,
    Passage,
    Realised,
    fates,
    own_numbers,
)
from sojourn.engine.kernel.samples import Samples, Window, most_at_once, nearest, span_of, taken

Column: TypeAlias = "_core.Column"
Columns: TypeAlias = "_core.Columns"


@dataclass(frozen=True)
class Drops:
    """What a queue or a wire did to packets other than passing them on."""

    times: Ints
    flow: Ints
    cause: Ints
    marked: Ints
    bytes: Ints


class Link:
    """A link as it was observed."""

    def __init__(self, number: int, realised: Realised, archive: Archive) -> None:
        self.number = number
        self.link: Realised = realised["links"][number]
        self.archive = archive
        self.end = int(realised["duration_ns"])
        self.window = Window(int(realised["warmup_ns"]), self.end)
        self.header = int(self.link["framing"]["header_bytes"])
        self.offloads = bool(realised.get("offloads"))
        self.ring = self.link["ring"]
        taps = [tap for tap in archive.index["taps"] if tap["link"] == number]
        self.passage = Passage.of(self.link, taps[0], archive.tables[taps[0]["table"]]) if taps else None
        self.devices = [at for at, each in enumerate(archive.index["devices"]) if each["link"] == number]
        self.queued = self.passage is not None and has_queue(self.link)
        self._settle()

    def _settle(self) -> None:
        """What became of each packet. Those that came after the end are of no concern."""
        if self.passage is None:
            return
        passage = self.passage
        if self.queued:
            settled = fates(self.link, passage, self.own)
        else:
            # Nothing waits where nothing limits.
            nowhere = np.zeros(len(passage), dtype=bool)
            settled = Fates(nowhere, passage.after, np.zeros(len(passage), dtype=np.int64))
        self.gone = settled.gone & (settled.left_at <= self.end)
        self.left_at = settled.left_at
        self.cause = settled.cause
        self.sent = passage.left & (passage.after <= self.end)
        lost = np.zeros(len(passage), dtype=bool)
        if passage.watched and self.link["loss"]["law"] != "none":
            # Behind the last that arrived nobody tells.
            last = int(passage.out.max()) if len(passage) else NEVER
            lost = self.sent & (passage.out < 0) & (passage.after < last)
        self.lost = lost

    # ------------------------------------------------------------------------------------------------ from samples

    @cached_property
    def discipline(self) -> dict[str, Ints]:
        """The samples of its discipline."""
        return self._qdisc(self.link["qdisc"]["kind"], handle=tc.DISCIPLINE_HANDLE)

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
        return own_numbers(self.archive, self.discipline, self.link["qdisc"]["kind"])

    def gauge(self, name: str) -> Samples:
        """A number of the card's; without samples where it has none."""
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
        """The counters of its device."""
        return self.archive.rows("device", "device", self.devices[0] if self.devices else -1)

    # ------------------------------------------------------------------------------------------------------- totals

    def totals(self) -> dict[str, int | float]:
        """Its row of `links`."""
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

    def _of_queue(self) -> dict[str, int | float]:
        """By its packets."""
        assert self.passage is not None, "a link with a queue is tapped"
        passage, window = self.passage, self.window
        arrived = window.holds(passage.before)
        sent = self.sent & window.holds(passage.after)
        dropped = self.gone & window.holds(self.left_at)
        sojourn = (passage.after - passage.before)[sent]
        wire = int(carried(self.link["framing"], passage.bytes[sent], self.offloads).sum())
        span = window.end - window.warm
        inside = window.overlap(passage.before, self.left_at)
        # As the discipline counts them, and exact: byte·ns of a long run do not fit into 64 bits.
        byte_ns = float((inside * (passage.bytes + self.header).astype(np.float64)).sum())
        most_packets, most_bytes = self._most()
        return {
            "arrived_packets": int(arrived.sum()),
            "arrived_bytes": int(passage.bytes[arrived].sum()),
            "sent_packets": int(sent.sum()),
            "sent_bytes": int(passage.bytes[sent].sum()),
            "wire_bytes": wire,
            "dropped_packets": int(dropped.sum()),
            "marked_packets": int((passage.marked & sent).sum()),
            "sojourn_sum_ns": int(sojourn.sum()),
            "sojourn_max_ns": int(sojourn.max(initial=0)),
            "backlog_mean_packets": float(inside.sum()) / span,
            "backlog_mean_bytes": byte_ns / span,
            "backlog_max_packets": most_packets,
            "backlog_max_bytes": most_bytes,
            "busy_ns": self._busy(wire),
        }

    def _of_device(self) -> dict[str, int]:
        """Of a link without a rate: nothing waits there."""
        times = self.device["t_ns"]
        packets = Samples(times, self.device["sent_packets"]).since(self.window)
        counted = Samples(times, self.device["sent_bytes"]).since(self.window)
        ip = counted - tc.ETHERNET_HEADER * packets
        nothing = dict.fromkeys(
            (
                *("dropped_packets", "marked_packets", "sojourn_sum_ns", "sojourn_max_ns", "busy_ns"),
                *("backlog_mean_packets", "backlog_mean_bytes", "backlog_max_packets", "backlog_max_bytes"),
            ),
            0,
        )
        return nothing | {
            "arrived_packets": packets,
            "arrived_bytes": ip,
            "sent_packets": packets,
            "sent_bytes": ip,
            "wire_bytes": ip + packets * int(self.link["framing"]["overhead_bytes"]),
        }

    def _most(self) -> tuple[int, int]:
        """The most that waited at once in the window: packets, and bytes as the discipline counts them."""
        assert self.passage is not None, "a link with a queue is tapped"
        taken = self._taken_in()
        begins, ends = self.passage.before[taken], self.left_at[taken]
        size = (self.passage.bytes + self.header)[taken]
        # At one time the one that leaves makes room first; one that passes without waiting comes and goes.
        times = np.concatenate([begins, ends])
        turn = np.concatenate([np.ones(len(begins)), np.where(ends > begins, 0, 2)])
        order = np.lexsort((turn, times))
        step = np.concatenate([np.ones(len(begins), dtype=np.int64), -np.ones(len(ends), dtype=np.int64)])
        packets = np.cumsum(step[order])
        counted = np.cumsum((step * np.concatenate([size, size]))[order])
        inside = self.window.holds(times[order])
        before = int(np.searchsorted(times[order], self.window.warm, side="left"))
        inside[max(before - 1, 0) : before] = True
        return int(packets[inside].max(initial=0)), int(counted[inside].max(initial=0))

    def _taken_in(self) -> Mask:
        """Which packets were ever in the queue."""
        assert self.passage is not None, "a link with a queue is tapped"
        return ~self.gone | (self.left_at > self.passage.before)

    def _busy(self, wire_bytes: int) -> int:
        """Where no card counts it: what the bytes take at the rate, if that is one."""
        rates = {step["bps"] for step in self.link["rate"]}
        if not rates:
            return 0
        return wire_bytes * 8 * 10**9 // rates.pop() if len(rates) == 1 else NEVER

    def _capacity(self) -> int:
        shaped = self.link["shaper"]["bps"] if self.link["shaper"] else None
        steps = rate_steps(self.link, self.end)
        if not steps:
            if shaped is None:
                return NEVER
            steps = [(0, shaped)]
        total = 0
        for (at, bps), until in zip(steps, [*(at for at, _ in steps[1:]), self.end], strict=True):
            span = min(until, self.end) - max(at, self.window.warm)
            total += max(span, 0) * (bps if shaped is None else min(bps, shaped))
        return total // 10**9

    def _lost(self) -> int:
        """By the wire: the card's count, or netem's."""
        card = self.gauge("simnic/lost_packets")
        if len(card.times):
            return card.since(self.window)
        if self.link["loss"]["law"] == "none":
            return 0
        netem = self._qdisc("netem")
        return Samples(netem["t_ns"], netem["drops"]).since(self.window)

    def _of_ring(self) -> dict[str, int | float]:
        names = ("ring_sent_packets", "ring_sojourn_sum_ns", "ring_sojourn_max_ns", "ring_max_packets")
        none = {**dict.fromkeys(names, NEVER), "ring_mean_packets": float("nan"), "bql_limit_bytes": NEVER}
        if self.ring is None or self.passage is None:
            return none
        passage, window = self.passage, self.window
        through = self.sent & (passage.out >= 0)
        ended = through & window.holds(passage.out)
        waited = np.maximum(passage.out - passage.after, 0)[ended]
        inside = window.overlap(passage.after[through], passage.out[through])
        limit = self.gauge("simnic/bql_limit")
        return {
            "ring_sent_packets": int(ended.sum()),
            "ring_sojourn_sum_ns": int(waited.sum()),
            "ring_sojourn_max_ns": int(waited.max(initial=0)),
            "ring_mean_packets": float(inside.sum()) / (window.end - window.warm),
            "ring_max_packets": most_at_once(passage.after[through], passage.out[through], window),
            "bql_limit_bytes": int(limit.values[-1]) if self.ring["bql"] and len(limit.values) else NEVER,
        }

    # ---------------------------------------------------------------------------------------------------- time lines

    def queue(self, edges: Ints) -> Columns:
        """Its rows of `queue`: one for each span between the edges."""
        times = edges[1:]
        many = len(times)
        nothing = np.zeros(many, dtype=np.int64)
        nan = np.full(many, np.nan)
        row: Columns = {"t_ns": times, "link": np.full(many, self.number, dtype=np.int64)}
        state: dict[str, Column] = dict.fromkeys(("limit", "count", "probability", "average", "flows"), nan)
        if self.queued:
            row |= self._spans(edges)
            at = nearest(self.discipline["t_ns"], times)
            row["backlog_packets"] = taken(self.discipline["backlog_packets"], at)
            row["backlog_bytes"] = taken(self.discipline["backlog_bytes"], at)
            state |= self._state(at, many)
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
        """What happened between the edges, by its packets."""
        assert self.passage is not None, "a link with a queue is tapped"
        passage, spans = self.passage, len(edges) - 1
        sent = np.flatnonzero(self.sent)
        sent = sent[np.argsort(passage.after[sent], kind="stable")]
        sojourn = (passage.after - passage.before)[sent]
        at = span_of(edges, passage.after[sent])
        packets = np.bincount(at, minlength=spans)
        longest = np.zeros(spans, dtype=np.int64)
        np.maximum.at(longest, at, sojourn)
        total = np.bincount(at, weights=sojourn, minlength=spans)
        size = np.bincount(at, weights=passage.bytes[sent], minlength=spans)
        with np.errstate(invalid="ignore"):
            mean = total / packets
        dropped = np.bincount(span_of(edges, self.left_at[self.gone]), minlength=spans)
        marked = np.bincount(span_of(edges, passage.after[passage.marked & self.sent]), minlength=spans)
        return {
            "sojourn_mean_ns": mean,
            "sojourn_max_ns": longest,
            "sent_packets": packets.astype(np.int64),
            "sent_bytes": size.astype(np.int64),
            "dropped_packets": dropped.astype(np.int64),
            "marked_packets": marked.astype(np.int64),
        }

    def _state(self, at: Ints, many: int) -> dict[str, Column]:
        """The discipline's own state at the samples, under the simulator's names."""
        params, numbers = self.link["qdisc"], self.own.numbers
        state: dict[str, Column] = {}

        def real(values: Ints) -> NDArray[np.float64]:
            taken = values[np.maximum(at, 0)].astype(np.float64) if len(values) else np.zeros(many)
            return np.where(at >= 0, taken, np.nan)

        if params.get("limit") is not None:
            state["limit"] = np.full(many, float(params["limit"]))
        elif "limit" in numbers:
            state["limit"] = real(numbers["limit"])
        match params["kind"]:
            case "codel":
                state["count"] = real(np.where(numbers["dropping"] != 0, numbers["count"], 0))
            case "fq_codel" | "fq_pie":
                state["flows"] = real(numbers["new_flows_len"] + numbers["old_flows_len"])
            case "fq":
                state["flows"] = real(numbers["flows"] - numbers["inactive_flows"])
            case "pie":
                state["probability"] = real(numbers["prob_high"]) / 2.0**32
            case "sfb":
                state["probability"] = real(numbers["avgprob"]) / 65535.0
            case "red":
                moved = real(numbers["max_p"])
                state["probability"] = np.where(moved >= 0, moved / 2.0**32, float(params["probability"]))
        return state

    def _ring_line(self, times: Ints) -> Columns:
        none = np.full(len(times), NEVER, dtype=np.int64)
        line: Columns = dict.fromkeys(("ring_packets", "ring_bytes", "bql_limit_bytes"), none)
        if self.ring is None:
            return line
        packets, counted = (self.gauge(f"simnic/ring_{what}") for what in ("packets", "bytes"))
        at = nearest(packets.times, times)
        held = taken(packets.values, at)
        line["ring_packets"] = held
        # The card counts each with its 14 bytes, the discipline with what it was told.
        mended = taken(counted.values, at) - held * (tc.ETHERNET_HEADER - self.header)
        line["ring_bytes"] = np.where(at >= 0, np.maximum(mended, 0), NEVER)
        if self.ring["bql"]:
            limit = self.gauge("simnic/bql_limit")
            line["bql_limit_bytes"] = taken(limit.values, nearest(limit.times, times))
        return line

    def events(self) -> Iterator[Drops]:
        """Its drops, marks and losses."""
        if self.passage is None:
            return
        passage = self.passage
        known = passage.flow >= 0
        marks = np.flatnonzero(passage.marked & self.sent & known)
        words = MARKS.get(self.link["qdisc"]["kind"], MARKS["codel"])
        for rows, times, cause, marked in (
            (drops := np.flatnonzero(self.gone & known), self.left_at[drops], self.cause[drops], 0),
            (
                marks,
                passage.after[marks],
                self.own.decide(passage.after[marks], words) if len(marks) else marks,
                1,
            ),
            (
                lost := np.flatnonzero(self.lost & known),
                passage.after[lost],
                np.full(len(lost), CAUSE["wire"]),
                0,
            ),
        ):
            yield Drops(times, passage.flow[rows], cause, np.full(len(rows), marked), passage.bytes[rows])


_HEADERS, _PAYLOAD = 52, 1448
"""Of a full segment of TCP with timestamps."""


def carried(framing: Realised, ip_bytes: Ints, offloads: bool) -> Ints:
    """What packets take on the wire; with offloads one that is larger than a full one is several, each with headers of its own."""
    if not offloads:
        return wire_bytes(framing, ip_bytes)
    others = np.maximum(-(-(ip_bytes - _HEADERS) // _PAYLOAD) - 1, 0)
    full = wire_bytes(framing, np.array([_HEADERS + _PAYLOAD]))
    return np.asarray(wire_bytes(framing, ip_bytes - others * _PAYLOAD) + others * full)


def wire_bytes(framing: Realised, ip_bytes: Ints) -> Ints:
    """What packets take on the wire (crates/link, framing.rs)."""
    framed = np.maximum(ip_bytes + framing["overhead_bytes"], framing["minimum_bytes"])
    match framing["cells"]:
        case "atm":
            return np.asarray(-(-framed // 48) * 53)
        case "ptm":
            return np.asarray(-(-framed * 65 // 64))
        case _:
            return np.asarray(framed)
