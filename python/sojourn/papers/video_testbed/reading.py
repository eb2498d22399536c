"""How the testbed is read: its offered load, its queues, its probe. What other readings give is measured, not argued.

The source names neither the video's rate behind each bottleneck nor the queues' parameters nor the probe. Its numbers do:

    load      RED's queue stays short, so its loss is the overload: offered = carried / (1 - lost):
              1911 / 0.77 = 2482, 1521 / 0.73 = 2084, 1198 / 0.66 = 1815 kbit/s
    scenes    RED carried 95.5, 95 and 99.8 % and its least latency at 250 and 200 is an empty queue's: the film has quiet
              passages. One shape for all three: two thirds of the mean rate in a quarter of its time leaves 4.5, 3.5 and 0 % idle
    limits    the largest latency under Drop Tail times the rate is the full queue: 1.64, 1.89 and 1.37 MB
    RED       its mean latencies at 150 and 200 are 67 and 47 kB of queue, its largest at 150 is 100 kB: the example of tc-red(8),
              30 to 90 kB with `adaptive`, which holds the average between 54 and 66 kB
    probe     "xmt rcv %loss" is how fping sums up, which forgets a ping after 10 s and doesn't wait for the last ones
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Reading
from sojourn.papers.video_testbed import measures as m

BOTTLENECKS = (250, 200, 150)
"""tc's kbps: kilobytes a second."""
OFFERED = {250: 1911 / 0.77, 200: 1521 / 0.73, 150: 1198 / 0.66}
"""Bottleneck -> mean offered rate, kbit/s, frames with their Ethernet header."""
UNSHAPED = {"1": 3871.0, "2": 3164.0, "3": 2258.0}
"""Try -> rate without a bottleneck, kbit/s: table 1."""
LIMIT = {250: 1250, 200: 1430, 150: 1000}
"""Bottleneck -> Drop Tail's packets. Our frames end in a shorter packet, 1322 B in the mean."""
FIRST_PING = {250: 3, 200: 10, 150: 7}
"""Bottleneck -> seconds from the video's start to the first ping: the least latency under Drop Tail over the queue's growth."""

RED = "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 adaptive bandwidth 10Mbit"
RED_PLAIN = "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55"
CODEL = "codel limit 3"
CODEL_LIMITS = (2, 5, 20, 1000)
"""The other limits tried; 1000 is tc's default."""

_QUIET, _LIVELY = 0.66, 0.75
"""The quiet rate over the mean one; the share of time that is lively."""
_PAYLOAD, _PACKET, _FRAME = 1316, 1356, 1370
"""Bytes: RTP payload, IP packet, with its Ethernet header."""


def qdisc(name: str, kbps: int) -> str:
    """What the router's queue is, in tc's words: `qdisc("Drop Tail", 250)`."""
    return {"Drop Tail": f"pfifo limit {LIMIT[kbps]}", "RED": RED, "CoDel": CODEL}[name]


def film(mean_kbps: float, quiet: float = _QUIET) -> dict[str, Any]:
    """A film of this mean rate in kbit/s of frames: what is always sent, and what its lively scenes add."""
    base = mean_kbps * quiet
    extra = max((mean_kbps - base) / _LIVELY, 1.0)
    return {
        "flow.film.rate": f"{base * _PAYLOAD / _FRAME * 1000:.0f} bit/s",
        "flow.scenes.rate": f"{extra * _PACKET / _FRAME * 1000:.0f} bit/s",
    }


def shaped(kbps: int, words: str, differs: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """A variant: both interfaces at this rate, this discipline, the film that its numbers imply, and what differs."""
    first = FIRST_PING[kbps]
    return {
        "bottleneck.rate": f"{8 * kbps} kbit/s",
        "bottleneck.qdisc": words,
        "warmup": f"{first} s",
        "flow.ping.start": f"{first} s",
        "flow.ping.stop": f"{first + 100.4:g} s",
        **film(OFFERED[kbps]),
        **(differs or {}),
    }


def unshaped(mean_kbps: float) -> Mapping[str, Any]:
    """A variant: nothing shaped, a film of this rate."""
    return {"bottleneck.rate": "100 Mbit/s", "bottleneck.qdisc": "pfifo limit 1000", **film(mean_kbps)}


TESTBED: dict[str, Mapping[str, Any]] = {
    f"{kbps} {name}": shaped(kbps, qdisc(name, kbps))
    for name in ("Drop Tail", "RED", "CoDel")
    for kbps in BOTTLENECKS
}
CODELS: dict[str, Mapping[str, Any]] = {
    f"{kbps} limit {limit}": shaped(kbps, f"codel limit {limit}")
    for limit in CODEL_LIMITS
    for kbps in BOTTLENECKS
}
OTHERS: dict[str, Mapping[str, Any]] = {
    **{f"{kbps} limit 1000": shaped(kbps, "pfifo limit 1000") for kbps in (250, 200)},
    **{f"{kbps} RED plain": shaped(kbps, RED_PLAIN) for kbps in BOTTLENECKS},
    **{
        f"{kbps} {name} table 1": shaped(kbps, qdisc(name, kbps), film(rate))
        for name in ("Drop Tail", "RED")
        for kbps, rate in zip(BOTTLENECKS, UNSHAPED.values(), strict=True)
    },
    **{
        f"250 {name} steady": shaped(250, qdisc(name, 250), film(OFFERED[250], quiet=1.0))
        for name in ("Drop Tail", "RED")
    },
    "150 RED steady": shaped(150, RED, film(OFFERED[150], quiet=1.0)),
    # The line from 3143 to 9434 ms in 82 pings: the queue grows by 0.077 s a second, and did so for 41 s before.
    "200 Drop Tail slower": shaped(
        200,
        qdisc("Drop Tail", 200),
        {
            **film(1.077 * 1600, quiet=1.0),
            "duration": "155 s",
            "warmup": "41 s",
            "flow.ping.start": "41 s",
            "flow.ping.stop": "141.4 s",
        },
    ),
    **{
        f"150 {name} paced": shaped(
            150, qdisc(name, 150), {"flow.film.access": "4 Mbit/s", "flow.scenes.access": "4 Mbit/s"}
        )
        for name in ("Drop Tail", "CoDel")
    },
}
OTHERS_QUICK = ("250 limit 1000", "250 RED plain", "150 Drop Tail paced")


def _load(evidence: Evidence) -> str:
    if not evidence.has("others", "250 RED table 1"):
        return "In the full version: table 1's rates behind the bottlenecks."
    found = "; ".join(
        f"{kbps} kbps: {_ms(evidence, f'{kbps} RED table 1')} and {_loss(evidence, f'{kbps} RED table 1')} lost under RED, "
        f"{_ms(evidence, f'{kbps} Drop Tail table 1')} and {_loss(evidence, f'{kbps} Drop Tail table 1')} under Drop Tail"
        for kbps in BOTTLENECKS
    )
    return (
        f"The rates of table 1, one behind each bottleneck: {found}. Those losses are not the published 23, 27 and 34 %, "
        "nor 8, 18 and 24 %: behind a bottleneck they played something slower."
    ) + _slower(evidence)


def _slower(evidence: Evidence) -> str:
    name = "200 Drop Tail slower"
    if not evidence.has("others", name):
        return ""
    least, mean, most = (evidence.mean("others", name, one) for one in (m.least_ms, m.mean_ms, m.most_ms))
    return (
        f" A steady 1723 kbit/s behind 200 kbps gives Drop Tail {least:.0f}, {mean:.0f} and {most:.0f} ms and loses {_loss(evidence, name)} "
        "(published 3143, 6180, 9434 ms and 18 %): its latencies, but not its loss."
    )


def _scenes(evidence: Evidence) -> str:
    if not evidence.has("others", "250 RED steady"):
        return "In the full version: a film without scenes."
    red, tail = "250 RED steady", "250 Drop Tail steady"
    return (
        f"A film without scenes, at 250 kbps: least latency under RED {evidence.mean('others', red, m.least_ms):.0f} ms (published 0.52), "
        f"{evidence.mean('others', red, m.throughput_kbps):.0f} kbit/s carried (1911); under Drop Tail a mean of "
        f"{_ms(evidence, tail)} (4668)."
    )


def _limits(evidence: Evidence) -> str:
    told = "; ".join(
        f"{kbps} kbps: largest {evidence.mean('others', f'{kbps} limit 1000', m.most_ms):.0f} ms "
        f"(published {published}), mean {_ms(evidence, f'{kbps} limit 1000')}"
        for kbps, published in ((250, 6574), (200, 9434))
        if evidence.has("others", f"{kbps} limit 1000")
    )
    return f"1000 packets everywhere, Linux's default: {told}. At 150 kbps 1000 is what the numbers say."


def _red(evidence: Evidence) -> str:
    told = "; ".join(
        f"{kbps} kbps: mean {_ms(evidence, f'{kbps} RED plain')} for {_ms(evidence, f'{kbps} RED', 'testbed')}, "
        f"lost {_loss(evidence, f'{kbps} RED plain')} for {_loss(evidence, f'{kbps} RED', 'testbed')}"
        for kbps in BOTTLENECKS
        if evidence.has("others", f"{kbps} RED plain")
    )
    return f"The same line without adaptive: {told} (published means 167, 234, 447 ms)."


def _codel(evidence: Evidence) -> str:
    told = []
    for limit in CODEL_LIMITS:
        if not evidence.has("codel", f"250 limit {limit}"):
            continue
        where = [
            (
                100
                * (
                    1
                    - evidence.mean("codel", f"{kbps} limit {limit}", m.mean_ms)
                    / evidence.mean("testbed", f"{kbps} RED", m.mean_ms)
                ),
                100
                * (
                    1
                    - evidence.mean("codel", f"{kbps} limit {limit}", m.throughput_kbps)
                    / evidence.mean("testbed", f"{kbps} Drop Tail", m.throughput_kbps)
                ),
                evidence.mean("codel", f"{kbps} limit {limit}", m.film_loss_percent)
                - evidence.mean("testbed", f"{kbps} RED", m.film_loss_percent),
            )
            for kbps in BOTTLENECKS
            if evidence.has("codel", f"{kbps} limit {limit}")
        ]
        told.append(
            f"{limit} packets: latency {min(w[0] for w in where):.0f} to {max(w[0] for w in where):.0f} % below RED's, throughput up to "
            f"{max(w[1] for w in where):.0f} % below Drop Tail's, up to {max(w[2] for w in where):.1f} points more of the film lost than under RED"
        )
    return (
        "; ".join(told)
        + ". Only a limit of a few packets costs anything near 20 % and 10 points; tc's default of 1000 does not."
    )


def _probe(evidence: Evidence) -> str:
    told = "; ".join(
        f"{kbps} kbps: {evidence.mean('testbed', f'{kbps} Drop Tail', m.dropped_pings_percent):.1f} % "
        f"for {evidence.mean('testbed', f'{kbps} Drop Tail', m.ping_loss_percent):.1f} %"
        for kbps in BOTTLENECKS
    )
    return (
        f"Counting only what the queue dropped, under Drop Tail: {told} (published 8, 18, 24). The rest came home after fping had "
        "gone, or was older than 10 s: a probe that leaves while a bloated queue still holds its packets."
    )


def _bursts(evidence: Evidence) -> str:
    bursts = evidence.mean("testbed", "150 Drop Tail", m.dropped_pings_percent)
    paced = evidence.mean("others", "150 Drop Tail paced", m.dropped_pings_percent)
    return (
        f"Frames stretched to 4 Mbit/s, at 150 kbps: Drop Tail drops {paced:.0f} % of the pings instead of {bursts:.0f} % (published 24 % in all), "
        "because its full queue then opens only for a moment at a time."
    )


def _ms(evidence: Evidence, variant: str, study: str = "others") -> str:
    return f"{evidence.mean(study, variant, m.mean_ms):.0f} ms"


def _loss(evidence: Evidence, variant: str, study: str = "others") -> str:
    return f"{evidence.mean(study, variant, m.ping_loss_percent):.0f} %"


READINGS = (
    Reading(
        "delay of the path without queues",
        "hosts on 100 Mbit/s Ethernet; latency 0.65, 0.45 and 0.55 ms without a bottleneck",
        "0.26 ms each way",
        "The three tries' mean; they stand in no order with their rates, so it is the hosts' and not the video's.",
        "Nothing else depends on it: the shaped latencies are 8 to 8000 ms.",
        searched=True,
    ),
    Reading(
        "unit of the shaped rates",
        "kbps; two headings of section 3.2 say 200, one of them where the tables have 250",
        "kilobytes a second: 2000, 1600 and 1200 kbit/s",
        "The measured 1999, 1599 and 1199 kbit/s are 8 times 250, 200 and 150, and kbps means that to tc.",
        "As kilobits the throughputs of table 2 would be impossible.",
    ),
    Reading(
        "offered load behind each bottleneck",
        "not stated; table 1 has three tries without a bottleneck",
        "2482, 2084 and 1815 kbit/s in the mean",
        "RED's queue is short, so what it lost is the overload: carried over (1 - lost), from table 3.",
        _load,
        searched=True,
    ),
    Reading(
        "the film's scenes",
        "VBR",
        "two thirds of the mean rate always, the rest in scenes that fill three quarters of the time (15 s and 5 s in the mean)",
        "RED left 4.5, 5 and 0.2 % of the link idle and saw an empty queue at 250 and 200 but not at 150: one shape that does all three.",
        _scenes,
        searched=True,
    ),
    Reading(
        "packets and bursts of the video",
        "RTP",
        "1316 B of payload (seven MPEG-TS packets), a frame's packets back to back at 100 Mbit/s, 25 frames a second",
        "9106 ms at 150 kbps are 1000 packets of 1366 B with their Ethernet header, nearly the 1370 B of that payload; players send so.",
        _bursts,
    ),
    Reading(
        "Drop Tail's limit",
        "not stated; limit is said to differ",
        "1250, 1430 and 1000 packets",
        "The published largest latency times the rate over our mean frame of 1322 B; the second gives a little room.",
        _limits,
        searched=True,
    ),
    Reading(
        "RED's parameters",
        "not stated; limit is said to differ",
        RED,
        "The example of tc-red(8): adaptive holds the average between 54 and 66 kB, and 447 ms at 150 kbps are 67 kB; the largest, "
        "664 ms, is 100 kB.",
        _red,
        searched=True,
    ),
    Reading(
        "CoDel's parameters",
        "not stated; limit, target and interval are said to differ; larger target and limit are future work",
        f"{CODEL}, target 5ms, interval 100ms",
        "The stated cost, 20 % of throughput and 10 points of loss, needs a queue that cannot hold a frame, and the wish for a larger "
        "limit says that theirs was small. Of 2, 3, 5, 20 and 1000 packets 3 misses 90 %, 20 % and 10 points by the least sum.",
        _codel,
        searched=True,
    ),
    Reading(
        "the probe",
        "ping; 100 probes, columns xmt, rcv, %loss",
        "one a second, replies counted as fping does: none older than 10 s, none after it has gone (2 s after the last)",
        "Those columns are fping's summary; fping's table of sequence numbers forgets after 10 s.",
        _probe,
    ),
    Reading(
        "when the pings begin",
        "not stated",
        "3, 10 and 7 s after the video",
        "Drop Tail's least latencies, 727, 3143 and 4040 ms, over the growth of its queue, 0.24, 0.30 and 0.51 s a second.",
        "RED and CoDel forget it within seconds; Drop Tail's least latency is this time and nothing else.",
        searched=True,
    ),
)
