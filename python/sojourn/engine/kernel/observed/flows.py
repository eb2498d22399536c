"""A flow as it was observed: its totals, its time line, its probes.

Of TCP there is what TCP_INFO tells. RTT samples are those that the kernel's TCP takes, one an ACK,
where the guest's log tells of them; other kernels tell their *smoothed* RTT only, which is another
quantity: there are none then. For UDP and video the histogram has each packet's one-way delay.
`received_packets` of TCP is what its sender knows to have been delivered. Not to be had: entries
into fast recovery, timeouts before Linux 6.7.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from sojourn.arrays import Columns, Ints, Mask
from sojourn.engine.kernel.observed.archive import NEVER, Archive
from sojourn.engine.kernel.observed.links import wire_bytes
from sojourn.engine.kernel.observed.samples import (
    Samples,
    Window,
    nearest,
    taken,
)
from sojourn.engine.protocol import Realised

_NO_SSTHRESH = 0x7FFF_FFFF
_DATAGRAM_HEADERS = {"udp": 28, "video": 40}


class Flow:
    """A flow as it was observed."""

    def __init__(self, number: int, realised: Realised, archive: Archive) -> None:
        self.number = number
        self.flow: Realised = realised["flows"][number]
        self.traffic: Realised = self.flow["traffic"]
        self.kind = str(self.traffic["kind"])
        self.window = Window(int(realised["warmup_ns"]), int(realised["duration_ns"]))
        self.about: Mapping[str, Any] = archive.index["flows"][number]
        table = {"bulk": "tcp", "transfers": "tcp", "ping": "probes"}.get(self.kind, "datagrams")
        self.archive = archive
        self.rows = archive.rows(table, "flow", number)
        self.is_tcp = table == "tcp"

    def _counter(self, name: str) -> Samples:
        return Samples(self.rows["t_ns"], self.rows[name])

    @cached_property
    def rtts(self) -> Ints:
        """What goes into its histogram, of what the guest's program has not counted already."""
        if self.is_tcp or self.kind == "ping":
            return np.empty(0, dtype=np.int64)
        arrived = (self.rows["received_ns"] >= 0) & self.window.holds(self.rows["received_ns"])
        return (self.rows["received_ns"] - self.rows["sent_ns"])[arrived]

    def totals(self, lost: int, base_rtt: int | None) -> dict[str, int | float]:
        """Its row of `flows`. `lost`: data packets that queues and wires dropped."""
        row: dict[str, int | float] = {
            "flow": self.number,
            "lost_packets": lost,
            "base_rtt_ns": NEVER if base_rtt is None else base_rtt,
        }
        return row | self._of_rtts() | (self._of_tcp() if self.is_tcp else self._of_packets())

    def _of_rtts(self) -> dict[str, int | float]:
        if self.is_tcp:
            if "rtts" not in self.archive.tables:
                # Its guest's program counted none.
                return {
                    "rtt_sum_ns": math.nan,
                    "rtt_samples": NEVER,
                    "rtt_min_ns": NEVER,
                    "rtt_max_ns": NEVER,
                }
            told = {
                name: column[0]
                for name, column in self.archive.rows("rtts", "flow", self.number).items()
            }
            return {
                "rtt_sum_ns": float(told["sum_ns"]),
                "rtt_samples": int(told["samples"]),
                "rtt_min_ns": int(told["min_ns"]),
                "rtt_max_ns": int(told["max_ns"]),
            }
        measured = self.rtts
        return {
            "rtt_sum_ns": int(measured.sum()),
            "rtt_samples": len(measured),
            "rtt_min_ns": int(measured.min()) if len(measured) else NEVER,
            "rtt_max_ns": int(measured.max(initial=0)),
        }

    def _of_tcp(self) -> dict[str, int]:
        def since(name: str) -> int:
            return self._counter(name).since(self.window)

        packets = since("data_segs_out")
        timeouts_known = bool(self.about.get("timeouts_known"))
        return {
            "sent_packets": packets,
            "sent_bytes": since("bytes_sent") + packets * int(self.traffic["tcp"]["header_bytes"]),
            "received_packets": since("delivered_segments"),
            "delivered_bytes": since("received_bytes"),
            "retransmits": since("total_retrans_segments"),
            "timeouts": since("timeouts") if timeouts_known else NEVER,
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
        return self.rows["turned_ns" if self.kind == "ping" else "received_ns"]

    @cached_property
    def _bytes(self) -> Ints:
        if self.kind == "ping":
            return np.full(len(self._far_ns), int(self.traffic["packet_bytes"]), dtype=np.int64)
        return self.rows["bytes"]

    @cached_property
    def _payload(self) -> Ints:
        """Of the application; a probe carries nothing."""
        if self.kind == "ping":
            return np.zeros(len(self._far_ns), dtype=np.int64)
        return np.maximum(self._bytes - _DATAGRAM_HEADERS[self.kind], 0)

    def received(self) -> int:
        """Data packets delivered over the whole run."""
        if self.is_tcp:
            return int(self.rows["delivered_segments"].max(initial=0))
        return int(((self._far_ns >= 0) & (self._far_ns <= self.window.end)).sum())

    def line(self, edges: Ints) -> Columns:
        """Its rows of `flow`."""
        times = edges[1:]
        none = np.full(len(times), NEVER, dtype=np.int64)
        row: Columns = {
            "t_ns": times,
            "flow": np.full(len(times), self.number, dtype=np.int64),
            **dict.fromkeys(
                ("cwnd_bytes", "ssthresh_bytes", "srtt_ns", "inflight_bytes", "window_bytes"), none
            ),
        }
        if not self.is_tcp:
            order = np.argsort(self._far_ns, kind="stable")
            come = self._far_ns[order]
            delivered = np.concatenate(
                [[0], np.cumsum(np.where(come >= 0, self._payload[order], 0))]
            )
            row["delivered_bytes"] = delivered[np.searchsorted(come, times, side="right")]
            row["retransmits"] = np.zeros(len(times), dtype=np.int64)
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

    def probes(self) -> Columns:
        """Its rows of `probe`: what was still under way at the end is neither answered nor lost."""
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


def base_rtt(flow: Realised, links: Sequence[Realised], end: int) -> int | None:
    """The round trip of a full packet through empty queues, ns; one way where there are no replies
    (crates/sim, base_rtt).

    Each link is taken at the fastest it is before `end`, ns. None: a link on the way never sends
    the packet, or its reply.
    """
    match flow["traffic"]:
        case {"tcp": tcp}:
            packet, reply = tcp["mss"] + tcp["header_bytes"], tcp["ack_bytes"]
        case {"kind": "ping", "packet_bytes": size}:
            packet, reply = size, size
        case {"packet_bytes": size}:
            packet, reply = size, None
        case {"payload_bytes": size}:
            packet, reply = size + _DATAGRAM_HEADERS["video"], None
        case other:
            raise AssertionError(f"{other['kind']} is no kind of traffic")
    delays = [_idle_delay(links[link], packet, end) for link in flow["path"]]
    extra = flow["path_extra_ns"]
    if reply is not None:
        delays += [_idle_delay(links[link], reply, end) for link in flow["back"]]
        extra += flow["back_extra_ns"]
    known = [delay for delay in delays if delay is not None]
    return int(extra + sum(known)) if len(known) == len(delays) else None


def _idle_delay(link: Realised, ip_bytes: int, end: int) -> int | None:
    """From the head of an empty queue to the far end; None: it never gets there."""
    delay = int(link["delay_ns"])
    if not link["rate"]:
        return delay
    wanted = int(wire_bytes(link["framing"], np.array([ip_bytes]))[0]) * 8 * 10**9
    fastest = max((step["bps"] for step in link["rate"] if step["at_ns"] < end), default=0)
    if not fastest or (_carried(link["rate"]) < wanted and not _goes_on(link)):
        return None
    return -(-wanted // fastest) + delay


def _goes_on(link: Realised) -> bool:
    """Whether it never stops for good."""
    return link["rate_period_ns"] is not None or link["rate"][-1]["bps"] > 0


def _carried(steps: Sequence[Realised]) -> int:
    """What all steps but the last can carry, bit·ns/s."""
    return sum(step["bps"] * (after["at_ns"] - step["at_ns"]) for step, after in pairwise(steps))
