"""Checks of the report's claims."""

from __future__ import annotations

from itertools import pairwise

from sojourn_papers.buffer_sizing import measures as m
from sojourn_papers.buffer_sizing import model
from sojourn_papers.buffer_sizing import studies as s
from sojourn_papers.evidence import Evidence, some
from sojourn_papers.formats import at, each
from sojourn_papers.paper import Finding


def one_flow(evidence: Evidence) -> Finding:
    use, queue, emptiest = (
        [evidence.mean(one, measure) for one in s.ONE.values()]
        for measure in (m.utilisation, m.mean_queue, m.least_queue)
    )
    return Finding(
        {
            "used with half a product, %": use[0],
            "with one, %": use[1],
            "with two, %": use[2],
            "least queue of two products over that of one, packets": emptiest[2] - emptiest[1],
        },
        f"With {each(s.ONE_SIZES)} packets the mean queue is {each(queue)} packets, the least at a "
        f"sample {each(emptiest)}",
    )


def root(evidence: Evidence) -> Finding:
    once, twice = (
        evidence.means({n: s.TABLE[n, share] for n in s.N}, m.utilisation) for share in (1, 2)
    )
    packets = {n: s.PACKETS[n][1] for n in once}
    return Finding(
        {
            "least used with the rule's buffer, %": min(once.values()),
            "with twice that, %": min(twice.values()),
        },
        f"By flows: {at(once, 1)} % with {at(packets)} packets, of a product of {s.PRODUCT}",
    )


def few_synchronise(evidence: Evidence) -> Finding:
    use = evidence.means({n: s.TABLE[n, 1] for n in s.N}, m.utilisation)
    steps = [after - before for before, after in pairwise(use.values())]
    return Finding(
        {"least gain from more flows, points": min(some(steps)), "all gains, points": sum(steps)},
        f"Used by flows: {at(use, 2)} %",
    )


def fewer_packets(evidence: Evidence) -> Finding:
    needed = {
        n: m.least(evidence, n, 98).mean * m.rule(n)
        for n in s.MANY
        if evidence.has(s.BY_SIZE[n, 1])
    }
    steps = [before - after for before, after in pairwise(needed.values())]
    return Finding(
        {"least saved by more flows, packets": min(some(steps)), "all, packets": sum(steps)},
        f"For 98 % by flows: {at(needed)} packets",
    )


def short_rate(evidence: Evidence) -> Finding:
    queues = evidence.means({mbps: s.QUEUES[14, mbps] for mbps in s.RATES}, m.mean_queue)
    return Finding(
        {
            "longest queue of flows of 14 packets over the shortest": max(queues.values())
            / min(queues.values())
        },
        f"By Mbit/s: {at(queues, 1)} packets",
    )


def short_lengths(evidence: Evidence) -> Finding:
    longer, shorter = (evidence.mean(s.QUEUES[packets, 40], m.mean_queue) for packets in (14, 16))
    return Finding(
        {"longer, packets": longer - shorter},
        f"By the formula {model.mean_queue(14, s.LOAD) - model.mean_queue(16, s.LOAD):.1f}",
    )


def short_bound(evidence: Evidence) -> Finding:
    """The bound for short flows; a mean over a minute of bursts varies by some per cent."""
    apart = {
        f"{packets} packets at {mbps} Mbit/s": evidence.mean(one, m.mean_queue)
        / model.mean_queue(packets, s.LOAD)
        for (packets, mbps), one in s.QUEUES.items()
        if evidence.has(one)
    }
    return Finding(
        {
            "largest queue over the formula's": max(some(apart.values())),
            "smallest": min(apart.values()),
        },
        at(apart, 2),
    )


def mix_shorter(evidence: Evidence) -> Finding:
    small, full = (
        evidence.means({n: s.MIXED[n, name] for n in s.BESIDE}, m.completion_s)
        for name in (s.ROOT, s.WHOLE)
    )
    return Finding(
        {
            "largest share of the time with the whole product": max(
                small[n] / full[n] for n in small
            )
        },
        f"By long flows: {at(small, 2)} s for {at(full, 2)}",
    )
