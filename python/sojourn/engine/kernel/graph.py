"""The graph that a realised scenario's links form, and what its links are made of.

Links are given without their nodes: two links in a row in somebody's path meet in a node, and a
flow's ends are each in one place.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from sojourn.linux import tc

RealisedEntry: TypeAlias = Mapping[str, Any]
"""A table of the realised scenario: a link, a flow, or all of it."""


def nodes(links: Sequence[RealisedEntry], flows: Sequence[RealisedEntry]) -> list[tuple[str, str]]:
    """Where each link begins and ends, found from the flows' paths."""
    # Twice a link's index is its tail, one more its head; each stands for itself or for another
    # that is the same node.
    same = list(range(2 * len(links)))

    def of(end: int) -> int:
        while same[end] != end:
            same[end] = same[same[end]]
            end = same[end]
        return end

    def join(one: int, other: int) -> None:
        low, high = sorted((of(one), of(other)))
        same[high] = low

    for flow in flows:
        path, back = flow["path"], flow["back"]
        for way in (path, back):
            for link, following in itertools.pairwise(way):
                join(2 * link + 1, 2 * following)
        if path and back:
            # Its ends are hosts, and a host is in one place.
            join(2 * path[0], 2 * back[-1] + 1)
            join(2 * path[-1] + 1, 2 * back[0])
    numbers = {
        root: f"n{number}" for number, root in enumerate(dict.fromkeys(map(of, range(len(same)))))
    }
    return [(numbers[of(2 * link)], numbers[of(2 * link + 1)]) for link in range(len(links))]


def has_queue(link: RealisedEntry) -> bool:
    """Whether packets can wait at it."""
    return bool(link["rate"]) or link["shaper"] is not None


def transmitter(link: RealisedEntry, bps: int | None = None) -> tc.Transmitter | None:
    """What htb has to do where no driver keeps the rate; None without one. `bps`: another than the
    first."""
    if not link["rate"]:
        return None
    framing = link["framing"]
    rate = link["rate"][0]["bps"] if bps is None else bps
    return tc.Transmitter(
        rate, framing["overhead_bytes"], framing["minimum_bytes"], framing["cells"]
    )


def rate_steps(link: RealisedEntry, duration_ns: int) -> list[tuple[int, int]]:
    """(from ns, bit/s) over the whole run, repetitions written out; empty without a rate."""
    steps = [(step["at_ns"], step["bps"]) for step in link["rate"]]
    period = link["rate_period_ns"]
    if period is None or len(steps) < 2:
        return [step for step in steps if step[0] < duration_ns]
    turns = range(0, duration_ns, period)
    return [(turn + at, bps) for turn in turns for at, bps in steps if turn + at < duration_ns]


def needs_room(link: RealisedEntry) -> bool:
    """Whether netem has to lie behind the link's queue, on a device of its own."""
    return has_queue(link) and bool(link["delay_ns"] or loses(link))


def loses(link: RealisedEntry) -> bool:
    return bool(link["loss"]["law"] != "none")


def crossing_of(
    links: Sequence[RealisedEntry], flows: Sequence[RealisedEntry]
) -> list[list[tuple[int, bool]]]:
    """Of each link the directions of flows that cross it: (flow, back)."""
    crossing: list[list[tuple[int, bool]]] = [[] for _ in links]
    for index, flow in enumerate(flows):
        for reverse, way in ((False, flow["path"]), (True, flow["back"])):
            for link in way:
                crossing[link].append((index, reverse))
    return crossing
