"""The rows of a flow: its totals, its time line, its probes.

TCP's numbers are those of TCP_INFO. If the guest's log has RTT samples, these are the samples that
the kernel took, one for each ACK of new data. Kernels without this log report only the *smoothed*
RTT, which is another quantity, so their flows have no RTT samples here. For UDP and video the
histogram has each packet's one-way delay.

`received_packets` of TCP counts the packets that its sender knows to be delivered. Two numbers are
not available: entries into fast recovery, and timeouts before Linux 6.7.

Programs have sockets of their own, whose TCP_INFO can't be read. So their numbers are counted from
their packets, which are observed when they leave one host and when they reach the other
(crates/guest, conversation.rs).
"""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from sojourn.arrays import Columns, Ints, Mask
from sojourn.engine.kernel.observed.archive import NEVER, Archive
from sojourn.engine.kernel.observed.samples import (
    Samples,
    Window,
    nearest,
    taken,
)
from sojourn.scenario.realised import ProgramTraffic, Realised, Tcp
from sojourn.traffic import KINDS, is_probe

_NO_SSTHRESH = 0x7FFF_FFFF


_NO_RTTS: dict[str, int | float] = {
    "rtt_sum_ns": math.nan,
    "rtt_samples": NEVER,
    "rtt_min_ns": NEVER,
    "rtt_max_ns": NEVER,
}


class ObservedFlow:
    """A flow of the scenario, as the guest measured it."""

    def __init__(self, number: int, realised: Realised, archive: Archive) -> None:
        self.number = number
        self.flow = realised.flows[number]
        self.probe = is_probe(self.flow.kind)
        self.window = Window(realised.warmup_ns, realised.duration_ns)
        self.about: Mapping[str, Any] = archive.index["flows"][number]
        self.tcp = self.flow.tcp
        self.archive = archive
        self.rows = archive.rows(self._table, "flow", number)

    @property
    def _table(self) -> str:
        """The guest's table with the flow's rows."""
        return "tcp" if self.tcp else "probes" if self.probe else "datagrams"

    def _counter(self, name: str) -> Samples:
        return Samples(self.rows["t_ns"], self.rows[name])

    @cached_property
    def rtts(self) -> Ints:
        """RTT samples for the histogram, except those that the guest's program has counted
        already."""
        if self.tcp or self.probe:
            return np.empty(0, dtype=np.int64)
        arrived = (self.rows["received_ns"] >= 0) & self.window.holds(self.rows["received_ns"])
        return (self.rows["received_ns"] - self.rows["sent_ns"])[arrived]

    def totals(self, lost: int, base_rtt: int | None) -> dict[str, int | float]:
        """The flow's row of `flows`. `lost`: data packets that queues and wires dropped."""
        row: dict[str, int | float] = {
            "flow": self.number,
            "lost_packets": lost,
            "base_rtt_ns": NEVER if base_rtt is None else base_rtt,
        }
        return (
            row
            | self._of_rtts()
            | (self._of_packets() if self.tcp is None else self._of_tcp(self.tcp))
        )

    def _of_rtts(self) -> dict[str, int | float]:
        if self.tcp:
            # A guest without the log has counted no samples.
            return self._of_log() if "rtts" in self.archive.tables else _NO_RTTS
        measured = self.rtts
        return {
            "rtt_sum_ns": int(measured.sum()),
            "rtt_samples": len(measured),
            "rtt_min_ns": int(measured.min()) if len(measured) else NEVER,
            "rtt_max_ns": int(measured.max(initial=0)),
        }

    def _of_log(self) -> dict[str, int | float]:
        """The RTT samples of TCP's log. The guest's program has added them up, because rows of
        single samples would take memory in proportion to the run."""
        rows = self.archive.rows("rtts", "flow", self.number)
        sums = {name: column[0] for name, column in rows.items()}
        return {
            "rtt_sum_ns": float(sums["sum_ns"]),
            "rtt_samples": int(sums["samples"]),
            "rtt_min_ns": int(sums["min_ns"]),
            "rtt_max_ns": int(sums["max_ns"]),
        }

    def _of_tcp(self, tcp: Tcp) -> dict[str, int]:
        def since(name: str) -> int:
            return self._counter(name).since(self.window)

        packets = since("data_segs_out")
        timeouts_known = bool(self.about.get("timeouts_known"))
        return {
            "sent_packets": packets,
            # tcpi_bytes_sent is payload; the table counts IP packets.
            "sent_bytes": since("bytes_sent") + packets * tcp.header_bytes,
            "received_packets": since("delivered_segments"),
            "delivered_bytes": since("received_bytes"),
            "retransmits": since("total_retrans_segments"),
            "timeouts": since("timeouts") if timeouts_known else NEVER,
            # TCP_INFO has no count of these.
            "fast_recoveries": NEVER,
        }

    def _of_packets(self) -> dict[str, int]:
        sent, received = self.window.holds(self.rows["sent_ns"]), self.window.holds(self._far_ns)
        many = int(sent.sum())
        return {
            "sent_packets": many,
            "sent_bytes": int(self._bytes[sent].sum()),
            "received_packets": int(received.sum()),
            "delivered_bytes": int(self._payload[received].sum()),
            "retransmits": 0,
            "timeouts": 0,
            "fast_recoveries": 0,
        }

    @cached_property
    def _far_ns(self) -> Ints:
        """When each packet reached the far end."""
        return self.rows["turned_ns" if self.probe else "received_ns"]

    @cached_property
    def _bytes(self) -> Ints:
        if self.probe:
            return np.full(len(self._far_ns), self.flow.packet_bytes[0], dtype=np.int64)
        return self.rows["bytes"]

    @cached_property
    def _payload(self) -> Ints:
        """Application bytes; a probe carries none."""
        if self.probe:
            return np.zeros(len(self._far_ns), dtype=np.int64)
        headers = KINDS[self.flow.kind].headers
        assert headers is not None, "what is neither TCP nor a probe sends datagrams"
        return np.maximum(self._bytes - headers, 0)

    def received(self) -> int:
        """Data packets delivered over the whole run."""
        if self.tcp:
            return int(self.rows["delivered_segments"].max(initial=0))
        return int(((self._far_ns >= 0) & (self._far_ns <= self.window.end)).sum())

    def line(self, edges: Ints) -> Columns:
        """The flow's rows of `flow`."""
        times = edges[1:]
        row = self._empty_line(times)
        if not self.tcp:
            order = np.argsort(self._far_ns, kind="stable")
            come = self._far_ns[order]
            delivered = np.concatenate(
                [[0], np.cumsum(np.where(come >= 0, self._payload[order], 0))]
            )
            row["delivered_bytes"] = delivered[np.searchsorted(come, times, side="right")]
            row["retransmits"] = np.zeros(len(times), dtype=np.int64)
            row["delay_max_ns"] = self._longest(times)
            return row
        rows = self.rows
        at = nearest(rows["t_ns"], times)
        size = rows["snd_mss_bytes"]
        open_ = rows["cwnd_segments"] >= 0

        def some(values: Ints, there: Mask) -> Ints:
            return taken(np.where(there, values, NEVER), at)

        limited = open_ & (rows["ssthresh_segments"] < _NO_SSTHRESH)
        return row | {
            "cwnd_bytes": some(rows["cwnd_segments"] * size, open_),
            "ssthresh_bytes": some(rows["ssthresh_segments"] * size, limited),
            "srtt_ns": some(rows["srtt_us"] * 1000, rows["srtt_us"] > 0),
            "inflight_bytes": some(rows["inflight_bytes"], open_),
            "window_bytes": some(rows["snd_wnd_bytes"], open_),
            "delivered_bytes": taken(rows["received_bytes"], at),
            "retransmits": taken(rows["total_retrans_segments"], at),
        }

    def _empty_line(self, times: Ints) -> Columns:
        """Rows of `flow` at these times without the columns that every flow has."""
        none = np.full(len(times), NEVER, dtype=np.int64)
        return {
            "t_ns": times,
            "flow": np.full(len(times), self.number, dtype=np.int64),
            **dict.fromkeys(
                (
                    *("cwnd_bytes", "ssthresh_bytes", "srtt_ns", "inflight_bytes"),
                    *("window_bytes", "delay_max_ns"),
                ),
                none,
            ),
        }

    def _longest(self, times: Ints) -> Ints:
        """The largest one-way delay of packets received in the interval that ends at each of these
        times."""
        longest = np.full(len(times), NEVER, dtype=np.int64)
        came = (self._far_ns >= 0) & (self._far_ns <= times[-1])
        interval = np.searchsorted(times, self._far_ns[came])
        np.maximum.at(longest, interval, self._far_ns[came] - self.rows["sent_ns"][came])
        return longest

    def probes(self) -> Columns:
        """The flow's rows of `probe`. A probe that is under way at the end is neither answered nor
        lost."""
        rows = self.rows
        over = (rows["sent_ns"] <= self.window.end) & (rows["received_ns"] <= self.window.end)
        sent, turned, received = (
            rows[name][over] for name in ("sent_ns", "turned_ns", "received_ns")
        )
        return {
            "t_ns": sent,
            "probe": np.full(len(sent), self.number, dtype=np.int64),
            "seq": rows["seq"][over],
            "rtt_ns": np.where(received >= 0, received - sent, NEVER),
            "forward_ns": np.where(turned >= 0, turned - sent, NEVER),
        }


class ObservedPrograms(ObservedFlow):
    """A flow between two programs. The guest's program has added up its packets."""

    @property
    def _table(self) -> str:
        return "carried"

    @cached_property
    def rtts(self) -> Ints:
        """There are none: the guest's program has counted the samples of TCP's log."""
        return np.empty(0, dtype=np.int64)

    def _of_rtts(self) -> dict[str, int | float]:
        # If there is no sample, the flow's source does not use TCP, or it has sent nothing.
        sums = self._of_log()
        return sums if sums["rtt_samples"] else _NO_RTTS

    def _of_packets(self) -> dict[str, int]:
        return {
            "sent_packets": self.about["sent_packets"],
            "sent_bytes": self.about["sent_bytes"],
            "received_packets": self.about["received_packets"],
            "delivered_bytes": self.about["payload_bytes"],
            "retransmits": self.about["retransmits"],
            "timeouts": NEVER,
            "fast_recoveries": NEVER,
        }

    def received(self) -> int:
        """Packets that reached the far end over the whole run."""
        return int(self.about["packets"])

    def line(self, edges: Ints) -> Columns:
        """The flow's rows of `flow`."""
        times = edges[1:]
        assert np.array_equal(self.rows["t_ns"], times), "the guest has the same time line"
        return self._empty_line(times) | {
            "delivered_bytes": self.rows["payload_bytes"],
            "retransmits": self.rows["retransmits"],
        }


def observed_flow(number: int, realised: Realised, archive: Archive) -> ObservedFlow:
    """A flow of the scenario, by its number, as the guest measured it."""
    is_programs = isinstance(realised.flows[number].traffic, ProgramTraffic)
    return (ObservedPrograms if is_programs else ObservedFlow)(number, realised, archive)
