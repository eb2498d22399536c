"""A link's packets one by one, where rows of them are kept, and why its discipline dropped or marked what it did.

What happened to each packet the guest's program has seen; why, no event tells: that follows from the discipline and its own counters.

Source: linux/pkt_sched.h for the layout of the disciplines' numbers.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sojourn import _core
from sojourn.arrays import Ints, Mask
from sojourn.engine.kernel.observed.archive import Archive
from sojourn.engine.protocol import Realised

_CE = 3
"""Of the two ECN bits: congestion experienced."""
CAUSE = {word: number for number, word in enumerate(_core.CAUSES)}
IN_ORDER = ("pfifo", "bfifo", "pfifo_head_drop", "codel", "red", "pie", "choke", "sfb")
"""Disciplines that send in the order in which packets came."""


@dataclass
class Passage:
    """A link's packets, each a row, in the order in which they came to its queue."""

    before: Ints
    after: Ints
    """When it left the queue; `NEVER`: it did not."""
    gone: Ints
    """When it was dropped; `NEVER`: it was not."""
    refused: Mask
    """Dropped as it came."""
    flow: Ints
    reverse: Ints
    bytes: Ints
    """Of the IP packet."""
    ds: Ints
    """The DS field before the queue."""
    marked: Mask
    hash: Ints
    """By which queues tell flows apart (skb_get_hash)."""
    truesize: Ints
    """What it took of the kernel's memory, bytes; 0 where nobody says."""
    sent_before: Ints
    """How many had been sent when it came."""
    order: Ints
    """How many had been sent before it left, however it left; `NEVER`: it waits."""

    @classmethod
    def of(cls, rows: Mapping[str, Ints]) -> "Passage":
        """From a watched queue's rows (crates/guest, watch.rs)."""
        return cls(
            before=rows["t_before_ns"],
            after=rows["t_after_ns"],
            gone=rows["t_gone_ns"],
            refused=rows["refused"] == 1,
            flow=rows["flow"],
            reverse=rows["reverse"],
            bytes=rows["bytes"],
            ds=rows["ds_in"],
            marked=((rows["ds_in"] & 3) != _CE) & ((rows["ds_out"] & 3) == _CE) & (rows["t_after_ns"] >= 0),
            hash=rows["hash"],
            truesize=rows["truesize"],
            sent_before=rows["after"],
            order=rows["order"],
        )

    def __len__(self) -> int:
        return len(self.before)

    @cached_property
    def left(self) -> Mask:
        """Which left the queue."""
        return self.after >= 0


def drops_of(qdisc: Realised) -> dict[str, Any]:
    """How a discipline drops, for who can't see it do so (crates/guest, plan.rs)."""
    kind = qdisc["kind"]
    how = {"codel": "departure", "fq_codel": "departure", "cake": "departure", "pfifo_head_drop": "head"}
    return {
        "in_order": kind in IN_ORDER,
        "how": how.get(kind, "arrival"),
        "limit": qdisc["limit"] if kind in ("codel", "pfifo_head_drop") else None,
    }


def causes(kind: str, own: "Own", times: Ints, refused: Mask) -> Ints:
    """Why a discipline dropped packets at these times; `refused`: as they came.

    A fifo drops at its limit, and so do the fair ones that only Linux has. CoDel's control law drops what has waited, its limit what
    comes. For those whose counters tell causes apart the counters of the sample interval decide, by majority where several moved.
    Linux's red counts early and forced drops together: they are `early` here.
    """
    match kind:
        case "codel":
            return np.where(refused, CAUSE["limit"], CAUSE["target"])
        case "cake":
            # Its control law and its limit share a counter: nearly all are the law's.
            return np.full(len(times), CAUSE["target"])
        case _ if kind in _DROPS:
            return own.decide(times, _DROPS[kind])
    return np.full(len(times), CAUSE["limit"])


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
    "fq_codel": {"target": "by_law", "limit": "by_limit", "overmemory": "by_memory"},
    "red": {"early": "early", "limit": "pdrop"},
    "choke": {"early": "by_law", "limit": "pdrop"},
    "pie": {"early": "dropped", "limit": "overlimit"},
    "fq_pie": {"early": "dropped", "limit": "by_limit", "overmemory": "overmemory"},
    "sfb": {"early": "by_law", "limit": "by_limit"},
}
"""Why they drop: the cause, and the number that counts it."""
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
