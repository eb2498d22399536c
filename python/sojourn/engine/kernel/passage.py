"""What became of a link's packets in its queue: when each left it, or when and why it was dropped.

The taps say when a packet came and when it was sent on. One that was not sent on was dropped, unless it may still have waited when the run
ended. The time and the cause follow from the discipline: a fifo drops at its limit, on arrival, and so do the fair ones that only Linux has. CoDel's queue is replayed, so
that a drop at the limit is told from one of the control law, which happens on departure. For fq_codel, red, choke, pie, fq_pie and sfb, whose counters
distinguish them, the counters of the sample interval decide, by majority where both moved; a drop of fq_codel is dated by its flow's
next departure. Linux's red counts early and forced drops together: they are `early` here.

Source: linux/pkt_sched.h for the layout of the disciplines' numbers.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sojourn import _core
from sojourn.engine.kernel.archive import NEVER, Archive, Ints

Mask: TypeAlias = NDArray[np.bool_]
Realised: TypeAlias = Mapping[str, Any]

_CE = 3
"""Of the two ECN bits: congestion experienced."""
CAUSE = {word: number for number, word in enumerate(_core.CAUSES)}
IN_ORDER = ("pfifo", "bfifo", "pfifo_head_drop", "codel", "red", "pie", "choke", "sfb")
"""Disciplines that send in the order in which packets came."""


@dataclass
class Passage:
    """A link's packets, in the order in which they came to its queue."""

    before: Ints
    after: Ints
    """When it left the queue; `NEVER`: it did not."""
    out: Ints
    """When its last bit was on the wire, where that was watched; `NEVER`: lost, or not watched."""
    flow: Ints
    reverse: Ints
    bytes: Ints
    """Of the IP packet."""
    ds: Ints
    """The DS field before the queue."""
    marked: Mask
    watched: bool
    """Whether `out` was."""

    @classmethod
    def of(cls, link: Realised, tap: Mapping[str, Any], rows: Mapping[str, Ints]) -> "Passage":
        """From a tap's rows."""
        stages = [stage["name"] for stage in tap["stages"]]
        first = "before" if "before" in stages else "after"
        order = np.argsort(rows[f"t_{first}_ns"], kind="stable")
        column = {name: values[order] for name, values in rows.items()}
        watched = "arrived" in stages
        arrived = column["t_arrived_ns"] if watched else np.full(len(order), NEVER, dtype=np.int64)
        return cls(
            before=column[f"t_{first}_ns"],
            after=column["t_after_ns"],
            out=np.where(arrived >= 0, arrived - link["delay_ns"], NEVER),
            flow=column["flow"],
            reverse=column["reverse"],
            bytes=column["bytes"],
            ds=column["ds_in"],
            marked=((column["ds_in"] & 3) != _CE)
            & ((column["ds_out"] & 3) == _CE)
            & (column["t_after_ns"] >= 0),
            watched=watched,
        )

    def __len__(self) -> int:
        return len(self.before)

    @cached_property
    def left(self) -> Mask:
        """Which left the queue."""
        return self.after >= 0

    def successor(self, in_order: bool) -> Ints:
        """Of each packet the next one behind it that left the queue, of all (`in_order`) or of its flow; -1: none."""
        key = np.zeros(len(self), dtype=np.int64) if in_order else 2 * self.flow + self.reverse
        order = np.argsort(key, kind="stable")
        place = np.arange(len(self))
        none = len(self)
        found = np.minimum.accumulate(np.where(self.left[order], place, none)[::-1])[::-1]
        row = order[np.minimum(found, none - 1)]
        result = np.full(len(self), -1, dtype=np.int64)
        same = (found < none) & (key[row] == key[order])
        result[order] = np.where(same, row, -1)
        return result


@dataclass(frozen=True)
class Fates:
    """What became of a link's packets in its queue."""

    gone: Mask
    """Dropped, for sure."""
    left_at: Ints
    """When each was no longer in the queue; the end of time for those that still are. One that was never taken in left as it came."""
    cause: Ints
    """Of those that are gone."""


def fates(link: Realised, passage: Passage, own: "Own") -> Fates:
    """Decides which packets were dropped, when and why."""
    kind = link["qdisc"]["kind"]
    missing = ~passage.left
    successor = passage.successor(kind in IN_ORDER)
    gone = missing & (successor >= 0)
    # Behind the last that left nobody tells. Whoever waits longer than anyone ever did is gone.
    if passage.left.any():
        longest = int((passage.after - passage.before)[passage.left].max())
        gone |= missing & (passage.before < int(passage.after.max()) - longest)
    cause = np.full(len(passage), CAUSE["limit"], dtype=np.int64)
    left_at = np.where(passage.left, passage.after, np.iinfo(np.int64).max)
    follows = np.where(successor >= 0, passage.after[np.maximum(successor, 0)], passage.before)
    at_departure = np.zeros(len(passage), dtype=bool)
    match kind:
        case "codel":
            replayed = own.growth("drop_overlimit") > 0
            at_departure = gone & ~_refused(passage, link["qdisc"]["limit"]) if replayed else gone
            cause[at_departure] = CAUSE["target"]
        case "fq_codel":
            at_departure = gone
            cause[gone] = own.decide(
                follows[gone], {"target": "by_law", "limit": "by_limit", "overmemory": "by_memory"}
            )
        case "cake":
            # Its control law and its limit share a counter: nearly all are the law's, which drops as it sends.
            at_departure = gone
            cause[gone] = CAUSE["target"]
        case "red" | "choke" | "pie" | "fq_pie" | "sfb":
            cause[gone] = own.decide(passage.before[gone], _DROPS[kind])
        case "pfifo_head_drop":
            # The head goes when as many as the limit are behind it and one more comes.
            rows = np.flatnonzero(gone)
            full = rows + link["qdisc"]["limit"]
            come = passage.before[np.minimum(full, len(passage) - 1)]
            left_at[rows] = np.where(full < len(passage), come, passage.before[rows])
            return Fates(gone, left_at, cause)
    left_at = np.where(gone, np.where(at_departure, follows, passage.before), left_at)
    return Fates(gone, left_at, cause)


def _refused(passage: Passage, limit: int) -> Mask:
    """Which packets found a queue of one order full: it is replayed, arrival by arrival."""
    refused = np.zeros(len(passage), dtype=bool)
    departures = np.flatnonzero(passage.left)
    times = passage.after[departures]
    waiting: list[int] = []
    head = done = 0
    for row, now in enumerate(passage.before.tolist()):
        while done < len(departures) and departures[done] < row and times[done] <= now:
            # All before it have left, one way or the other.
            while head < len(waiting) and waiting[head] <= departures[done]:
                head += 1
            done += 1
        if not passage.left[row] and len(waiting) - head >= limit:
            refused[row] = True
        else:
            waiting.append(row)
    return refused


@dataclass(frozen=True)
class Own:
    """A discipline's own numbers at each sample."""

    times: Ints
    numbers: Mapping[str, Ints]

    def growth(self, name: str) -> int:
        """Over the whole run."""
        values = self.numbers.get(name)
        return 0 if values is None or not len(values) else int(values[-1])

    def decide(self, times: Ints, words: Mapping[str, str]) -> Ints:
        """The cause of what happened at these times: of the counters, by the cause's word, the one that grew most meanwhile."""
        names = [name for name in words.values() if name in self.numbers]
        first = CAUSE[next(iter(words))]
        if len(names) < len(words) or len(self.times) < 2:
            return np.full(len(times), first, dtype=np.int64)
        grown = np.stack([np.diff(self.numbers[name]) for name in names])
        causes = np.array([CAUSE[word] for word in words])
        interval = np.clip(np.searchsorted(self.times, times, side="left") - 1, 0, len(self.times) - 2)
        return np.asarray(causes[grown.argmax(axis=0)[interval]], dtype=np.int64)


_OWN: dict[str, tuple[int, tuple[str, ...]]] = {
    "codel": (
        0,
        (
            "maxpacket",
            "count",
            "lastcount",
            "ldelay",
            "drop_next",
            "drop_overlimit",
            "ecn_mark",
            "dropping",
            "ce_mark",
        ),
    ),
    # A word in front says that these are the discipline's numbers, not a flow's.
    "fq_codel": (
        4,
        (
            *("maxpacket", "drop_overlimit", "ecn_mark", "new_flow_count"),
            *("new_flows_len", "old_flows_len", "ce_mark", "memory_usage", "drop_overmemory"),
        ),
    ),
    "red": (0, ("early", "pdrop", "other", "marked")),
    "choke": (0, ("early", "pdrop", "other", "marked", "matched")),
    # Of 64 bits: the upper half of its probability is enough.
    "pie": (
        4,
        (
            *("prob_high", "delay", "avg_dq_rate", "dq_rate_estimating", "packets_in"),
            *("dropped", "overlimit", "maxq", "marked"),
        ),
    ),
    "fq_pie": (
        0,
        (
            *("packets_in", "dropped", "overlimit", "overmemory", "marked"),
            *("new_flow_count", "new_flows_len", "old_flows_len", "memory_usage"),
        ),
    ),
    "sfb": (
        0,
        (
            *("earlydrop", "penaltydrop", "bucketdrop", "queuedrop", "childdrop", "marked"),
            *("maxqlen", "maxprob", "avgprob"),
        ),
    ),
    # Eight numbers of 64 bits come first.
    "fq": (64, ("flows", "inactive_flows", "throttled_flows", "unthrottle_latency_ns", "ce_mark")),
}
"""Where they lie (linux/pkt_sched.h): struct tc_codel_xstats, tc_fq_codel_xstats, tc_red_xstats, ...; words of 32 bits, low ones first."""
_DROPS: dict[str, dict[str, str]] = {
    "red": {"early": "early", "limit": "pdrop"},
    "choke": {"early": "by_law", "limit": "pdrop"},
    "pie": {"early": "dropped", "limit": "overlimit"},
    "fq_pie": {"early": "dropped", "limit": "by_limit", "overmemory": "overmemory"},
    "sfb": {"early": "by_law", "limit": "by_limit"},
}
"""Why they drop as a packet comes: the cause, and the number that counts it."""
MARKS: dict[str, dict[str, str]] = {
    "codel": {"target": "ecn_mark", "ce_threshold": "ce_mark"},
    "red": {"early": "marked"},
    "choke": {"early": "marked"},
    "pie": {"early": "marked"},
    "fq_pie": {"early": "marked"},
    "sfb": {"early": "marked"},
    "fq": {"ce_threshold": "ce_mark"},
}
"""Why they mark; those that are not here do it as CoDel does."""
_LIMITS = {"pie": 2, "fq": 1, "fq_pie": 1, "hhf": 1}
"""TCA_PIE_LIMIT, TCA_FQ_PLIMIT, TCA_FQ_PIE_LIMIT, TCA_HHF_BACKLOG_LIMIT: the limit in force, where the scenario leaves it to the kernel."""
_RED_MAX_P = 3
"""TCA_RED_MAX_P: adaptive red's probability in force, of 2^32."""


def own_numbers(archive: Archive, rows: Mapping[str, Ints], kind: str) -> Own:
    """Reads the kernel's bytes in these rows of the table `qdisc`."""
    numbers: dict[str, Ints] = {"drops": rows["drops"]}
    if kind in _OWN:
        start, names = _OWN[kind]
        texts = [
            _words(archive.blob[at + start : at + size], len(names))
            for at, size in zip(rows["own_at"].tolist(), rows["own_bytes"].tolist(), strict=True)
        ]
        table = np.array(texts, dtype=np.int64).reshape(len(texts), len(names))
        numbers |= {name: table[:, index] for index, name in enumerate(names)}
    if kind == "fq_codel":
        numbers["by_memory"] = numbers["drop_overmemory"]
        numbers["by_limit"] = numbers["drop_overlimit"] - numbers["drop_overmemory"]
        numbers["by_law"] = numbers["drops"] - numbers["drop_overlimit"]
    match kind:
        case "choke":
            numbers["by_law"] = numbers["early"] + numbers["matched"]
        case "fq_pie":
            numbers["by_limit"] = numbers["overlimit"] - numbers["overmemory"]
        case "sfb":
            numbers["by_law"] = numbers["earlydrop"] + numbers["penaltydrop"] + numbers["bucketdrop"]
            numbers["by_limit"] = numbers["queuedrop"] + numbers["childdrop"]
        case "red":
            numbers["max_p"] = _options(archive, rows, _RED_MAX_P)
    if kind in _LIMITS:
        numbers["limit"] = _options(archive, rows, _LIMITS[kind])
    if kind == "sfq":
        starts = zip(rows["options_at"].tolist(), rows["options_bytes"].tolist(), strict=True)
        # struct tc_sfq_qopt: quantum, perturb_period, limit.
        told = [_words(archive.blob[at : at + size], 3)[2] for at, size in starts]
        numbers["limit"] = np.array(told, dtype=np.int64)
    return Own(rows["t_ns"], numbers)


def _options(archive: Archive, rows: Mapping[str, Ints], wanted: int) -> Ints:
    """A 32-bit option of the discipline in each row; -1 where it is not."""
    options = zip(rows["options_at"].tolist(), rows["options_bytes"].tolist(), strict=True)
    return np.array(
        [_attribute(archive.blob[at : at + size], wanted) for at, size in options], dtype=np.int64
    )


def _words(text: bytes, count: int) -> tuple[int, ...]:
    """32-bit words; what an older kernel does not tell is 0."""
    return struct.unpack(f"={count}I", text[: 4 * count].ljust(4 * count, b"\0"))


def _attribute(text: bytes, wanted: int) -> int:
    """The 32-bit value of a netlink attribute; -1 where it is not."""
    at = 0
    while at + 4 <= len(text):
        size, kind = struct.unpack_from("=HH", text, at)
        if kind & 0x3FFF == wanted and size >= 8:
            return int(struct.unpack_from("=I", text, at + 4)[0])
        at += max((size + 3) & ~3, 4)
    return -1
