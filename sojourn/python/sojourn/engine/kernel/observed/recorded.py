"""Recordings: what a link's queue did to each packet, from the guest's rows (crates/guest,
watch.rs).

A row has a packet's flow, its DS field on both sides of the queue, its arrival, and its departure
or drop. Times are exact to the nanosecond, and rows are in the order of the events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sojourn.arrays import Ints
from sojourn.engine.kernel.graph import has_queue
from sojourn.engine.kernel.observed.archive import NEVER, Archive
from sojourn.engine.kernel.observed.passage import Passage
from sojourn.engine.recording import (
    DROPPED,
    MARKED,
    REFUSED,
    SENT,
    WAITS,
    Recording,
    Trace,
)
from sojourn.scenario.realised import Link, Realised
from sojourn.scenario.tcp import MTU

ICMP_KINDS = ("ping",)


def recordings(
    realised: Realised, plan: Mapping[str, Any], archive: Archive, version: str
) -> list[Recording]:
    """The recordings of all sampled links that dropped or marked. If none did, the one in which
    packets waited longest, because a recording without a decision compares nothing."""
    found = []
    for number, tap in enumerate(archive.index["taps"]):
        link = realised.links[tap["link"]]
        if not (has_queue(link) and link.sampled):
            continue
        passage = Passage.of(archive.tables[f"tap{number}"])
        found.append(
            Recording(
                title="",
                seed=int(realised.seed),
                version=version,
                zero_ns=int(archive.index["zero_monotonic_ns"]),
                link=link,
                trace=trace_of(realised, plan, passage),
            )
        )
    busy = [each for each in found if (each.trace.fate != SENT).any()]
    return busy or sorted(found, key=lambda each: -_waited(each.trace))[:1]


def expected_packets(link: Link) -> float:
    """An upper estimate of the packets that arrive at a link in a second: packets of half the full
    length at the link's rate, and half as many more that are dropped. The guest's memory is sized
    by this estimate."""
    if not (has_queue(link) and link.sampled):
        return 0.0
    rates = [step.bps for step in link.rate]
    shaper = link.shaper
    rate: float = min([max(rates, default=math.inf), shaper.bps if shaper else math.inf])
    return 1.5 * rate / 8 / (MTU / 2)


def _waited(trace: Trace) -> int:
    left = trace.left_ns >= 0
    return int((trace.left_ns - trace.t_ns)[left].sum())


def trace_of(realised: Realised, plan: Mapping[str, Any], passage: Passage) -> Trace:
    """The trace of a link's packets up to the end of the run. A packet that leaves later still
    waits."""
    gone, end = passage.gone, int(realised.duration_ns)
    fate = np.select(
        [passage.refused, gone >= 0, ~passage.left, passage.marked],
        [REFUSED, DROPPED, WAITS, MARKED],
        SENT,
    )
    left = np.where(gone >= 0, gone, passage.after)
    fate[left > end] = WAITS
    order = np.where(fate == REFUSED, passage.sent_before, passage.order)
    waits, kept = fate == WAITS, passage.before <= end
    columns = (
        *(passage.before, _queue_flows(realised, plan, passage), passage.bytes, passage.ds),
        *(passage.sent_before, fate, np.where(waits, NEVER, left), np.where(waits, NEVER, order)),
        *(passage.hash, passage.truesize, *_hosts(plan, passage)),
    )
    return Trace(*(column[kept] for column in columns))


def _queue_flows(realised: Realised, plan: Mapping[str, Any], passage: Passage) -> Ints:
    """Each packet's flow as a queue distinguishes flows: by addresses, protocol and ports. Pings
    between the same hosts are one flow, because ICMP has no ports."""
    names: dict[tuple[object, ...], int] = {}
    many = len(realised.flows)
    number = np.empty(2 * many + 1, dtype=np.int64)
    for index, flow in enumerate(plan["flows"]):
        kind: Mapping[str, object] = flow["traffic"]
        port = 0 if kind["kind"] in ICMP_KINDS else flow["port"]
        ends = (flow["from"]["address"], flow["to"]["address"])
        protocol = "icmp" if kind["kind"] in ICMP_KINDS else "tcp" if "tcp" in kind else "udp"
        for reverse in (0, 1):
            key = (protocol, ends[:: -1 if reverse else 1], port, reverse if port else 0)
            number[2 * index + reverse] = names.setdefault(key, len(names))
    # Packets of no flow of the scenario share a number of their own.
    number[-1] = len(names)
    return np.where(
        passage.flow < 0, number[-1], number[2 * np.maximum(passage.flow, 0) + passage.reverse]
    )


def _hosts(plan: Mapping[str, Any], passage: Passage) -> tuple[Ints, Ints]:
    """The hosts that each packet comes from and is for, by numbers of their addresses."""
    numbers: dict[str, int] = {}
    ends = [
        numbers.setdefault(flow[end]["address"], len(numbers))
        for flow in plan["flows"]
        for end in ("from", "to")
    ]
    number = np.array([*ends, NEVER, NEVER], dtype=np.int64)
    # The hosts of a packet that belongs to no flow of the scenario are unknown.
    first = np.where(passage.flow < 0, len(ends), 2 * np.maximum(passage.flow, 0))
    return number[first + passage.reverse], number[first + 1 - passage.reverse]
