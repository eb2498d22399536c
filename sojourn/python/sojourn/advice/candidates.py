"""The disciplines that are worth trying on a link, with their parameters.

CoDel's interval is about the longest usual RTT, its target 5 to 10 % of it (RFC 8289 §4.2, §4.3).
The defaults, 100 ms and 5 ms, are for the open internet. If the longest RTT is far from 100 ms,
the same discipline is a second candidate, with parameters for this RTT.
"""

from __future__ import annotations

from dataclasses import dataclass

from sojourn.engine import variants
from sojourn.errors import UserError
from sojourn.scenario import Scenario
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.realised import ProgramTraffic

USUAL = ("codel", "pie", "fq_codel", "fq_pie", "cake")
"""Tried with their default parameters."""
L4S = "dualpi2"
"""Tried if a sender sets ECT(1). Linux has it since 6.17."""
BY_INTERVAL = ("codel", "fq_codel")
USUAL_RTT_NS = 100 * 10**6
FAR = 1.5
"""A longest RTT this many times longer or shorter than 100 ms gets its own parameters."""
TARGET_SHARE = 20
"""The target is 1 / `TARGET_SHARE` of the interval."""


@dataclass(frozen=True)
class Candidate:
    """A discipline to try."""

    words: str
    """In tc's syntax."""
    why: str
    """The reason for its parameters, in a few words; empty: it has the defaults."""


def candidates(longest_rtt_ns: int, *, l4s: bool = False) -> list[Candidate]:
    """The candidates for paths with this longest RTT. `l4s`: some senders use L4S."""
    found = [Candidate(words, "") for words in USUAL]
    if l4s:
        found.append(Candidate(L4S, "two queues for L4S and others; Linux has it since 6.17"))
    if USUAL_RTT_NS / FAR <= longest_rtt_ns <= USUAL_RTT_NS * FAR:
        return found
    interval = _two_digits(longest_rtt_ns)
    why = f"interval for an RTT of {_time(interval)}"
    for kind in BY_INTERVAL:
        target = _time(interval // TARGET_SHARE)
        found.append(Candidate(f"{kind} target {target} interval {_time(interval)}", why))
    return [*found, Candidate(f"cake rtt {_time(interval)}", why)]


def _two_digits(ns: int) -> int:
    """Rounds up to two digits, in whole microseconds, tc's unit; at least 20, for a target of 1."""
    us = max(TARGET_SHARE, ns // 1000)
    scale: int = 10 ** max(0, len(str(us)) - 2)
    return -(-us // scale) * scale * 1000


def _time(ns: int) -> str:
    us = ns // 1000
    return f"{us // 1000}ms" if us % 1000 == 0 else f"{us}us"


def in_scenario(scenario: Scenario, link: str | None = None) -> list[Scenario]:
    """The scenario as it is, and with each candidate at its bottleneck or at one link.

    Raises:
        UserError: it has no flow that reacts to a queue.
    """
    plain = scenario.variants()[0]
    realised = plain.realise(plain.seeds[0])
    rtts = [
        flow.path_extra_ns
        + flow.back_extra_ns
        + sum(realised.links[index].delay_ns for index in (*flow.path, *flow.back))
        for flow in realised.flows
        if flow.tcp is not None or isinstance(flow.traffic, ProgramTraffic)
    ]
    if not rtts:
        raise UserError(
            "no flow of this scenario is TCP: no flow reacts to the queue discipline",
            'add one: [[flow]] kind = "bulk"',
        )
    l4s = any(flow.tcp is not None and flow.tcp.congestion == "prague" for flow in realised.flows)
    words = [candidate.words for candidate in candidates(max(rtts), l4s=l4s)]
    present = _present(scenario, link)
    return variants(
        scenario, [present, *(each for each in words if not _same(each, present))], link
    )


def _present(scenario: Scenario, link: str | None) -> str:
    """The discipline of the link under study."""
    plain = scenario.variants()[0]
    realised = plain.realise(plain.seeds[0])
    sampled = [each for each in realised.links if each.sampled]
    wanted = next((each for each in sampled if each.name == (link or "up")), sampled[0])
    return wanted.qdisc.text


def _same(one: str, other: str) -> bool:
    return Qdisc.parse(one) == Qdisc.parse(other)
