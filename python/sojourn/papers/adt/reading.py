"""What the text leaves open: what we chose, why, and what the other readings give.

The text states rates, packet size, buffer, RTTs, numbers of users and ADT's parameters. It does not name the TCP, the start of
the flows, the length of a run, what part of it the means cover, the start of q_adt, or RED's thresholds. Some of these were found
by search for what comes near the table, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sojourn.papers.adt import measures as m
from sojourn.papers.adt.published import FACTORS, FEW_MANY, PERIODS_MS, TABLE, USERS, setting
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Reading, Study

DROP_TAIL = "pfifo limit 500"
ADT = "adt limit 500"
RED = "red variant ns2 limit 500 adaptive packets min {} max {}"

_TCP = {"delayed_ack_segments": 2}


def _both(name: str, changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The variants of a reading: Drop-Tail and ADT."""
    return {
        f"{name}, {label}": {**changes, "bottleneck.down.qdisc": qdisc}
        for label, qdisc in (("Drop-Tail", DROP_TAIL), ("ADT", ADT))
    }


OTHERS: dict[str, dict[str, Any]] = {
    **_both("1250 B", {"flow.bulk.tcp": {**_TCP, "mss": 1210}}),
    **_both("no delayed ACKs", {"flow.bulk.tcp": {"delayed_ack_segments": 1}}),
    **_both("SACK", {"flow.bulk.tcp": {**_TCP, "sack": True}}),
    **_both("RTO from 1 s", {"flow.bulk.tcp": {**_TCP, "min_rto": "1 s"}}),
    **_both("SACK, RTO from 1 s", {"flow.bulk.tcp": {**_TCP, "sack": True, "min_rto": "1 s"}}),
    **_both("one instant", {"flow.bulk.start": "0 s"}),
    "one instant, Adaptive RED": {"flow.bulk.start": "0 s", "bottleneck.down.qdisc": RED.format(150, 450)},
    "access 1 Gbit/s, Drop-Tail": {"flow.bulk.access": "1 Gbit/s"},
    "access 15 Mbit/s, Drop-Tail": {"flow.bulk.access": "15 Mbit/s"},
    "q_adt from 100, ADT": {"bottleneck.down.qdisc": "adt limit 500 start 100"},
    "automatic, Adaptive RED": {"bottleneck.down.qdisc": "red variant ns2 limit 500 adaptive"},
    "125/375, Adaptive RED": {"bottleneck.down.qdisc": RED.format(125, 375)},
    "180/540, Adaptive RED": {"bottleneck.down.qdisc": RED.format(180, 540)},
}
"""Other readings of section III-A: name -> what differs from table.toml."""

WIDER = "20 users with the RTTs of section III-C"
"""Figure 4 with c = 1.01 and 300 ms, as in parameters.toml."""

LOADS = (50, 90, 98)
"""Mbit/s of datagrams on a link of 100: all below u = 0.99."""

STUDIES = (
    Study(
        "table",
        "1000 TCP users, RTTs 40..440 ms, 200 Mbit/s (section III-A, figure 1)",
        "table.toml",
        variants={
            "Drop-Tail": {"bottleneck.down.qdisc": DROP_TAIL},
            "ADT": {"bottleneck.down.qdisc": ADT},
            "Adaptive RED": {"bottleneck.down.qdisc": RED.format(150, 450)},
        },
    ),
    Study(
        "reverse",
        "1000 TCP users in each direction over ADT (section III-A, row ADT(R))",
        "reverse.toml",
        variants={"": {}, "one instant": {"flow.forward.start": "0 s", "flow.backward.start": "0 s"}},
        quick={"duration": "130 s"},
        quick_variants=("",),
    ),
    Study(
        "users",
        "N TCP users, RTTs 80..100 ms, 200 Mbit/s over ADT (section III-B, figure 2)",
        "users.toml",
        variants={f"N = {users}": {"flow.user.count": users} for users in USERS},
        quick={"duration": "220 s"},
        quick_variants=("N = 16", "N = 125", "N = 2000"),
    ),
    Study(
        "changing",
        "10, 500 and again 10 TCP users at 100 Mbit/s over ADT (section III-C, figure 3)",
        "changing.toml",
        # A user each 0.7 s: the number of users then changes faster than ADT was made for, but the ends are the same.
        quick={
            "duration": "770 s",
            "flow.passing.start": "every 0.7 s",
            "flow.passing.stop": "spread 343 s .. 685.3 s",
        },
    ),
    Study(
        "parameters",
        "ADT's sample period and factor c at 100 Mbit/s (section III-D, figure 4)",
        "parameters.toml",
        variants={
            setting(users, factor, period): {
                "flow.user.count": users,
                "bottleneck.down.qdisc": f"adt limit 500 increase {factor} sample {period}ms",
            }
            for users in FEW_MANY
            for factor in FACTORS
            for period in PERIODS_MS
        }
        | {WIDER: {"flow.user.rtt": "uniform 10 ms .. 300 ms"}},
        quick={"duration": "160 s"},
        quick_variants=[setting(users, 1.01, period) for users in FEW_MANY for period in (100, 300)],
    ),
    Study(
        "uncongested",
        "Less traffic than u over ADT (section II, comment 1)",
        "uncongested.toml",
        variants={f"{load} Mbit/s": {"flow.arriving.rate": f"{load} Mbit/s"} for load in LOADS},
        quick_variants=("90 Mbit/s",),
    ),
    Study(
        "delay-based",
        "Vegas over Drop-Tail and over ADT (section II, comment 2)",
        "delay-based.toml",
        variants={
            "Drop-Tail": {"bottleneck.down.qdisc": "pfifo limit 500"},
            "ADT": {"bottleneck.down.qdisc": "adt limit 500"},
        },
    ),
    Study(
        "readings",
        "Section III-A under other readings of what the text leaves open",
        "table.toml",
        variants=OTHERS,
        quick_variants=(),
    ),
)


# --------------------------------------------------------------------------------------------------- in sentences


def _cells(evidence: Evidence, study: str, variant: str) -> str:
    """`loss 5.9 %, delay 28.7 ms, Jain 0.78, goodput 98.3 %`."""
    loss, delay, fairness, goodput = (
        evidence.mean(study, variant, measure) for measure in (m.loss, m.delay_ms, m.fairness, m.goodput)
    )
    # Goodput is counted at 1500 B, which a reading with other packets makes senseless.
    useful = "" if variant.startswith("1250") else f", goodput {goodput:.1f} %"
    return f"loss {loss:.1f} %, delay {delay:.1f} ms, Jain {fairness:.2f}{useful}"


def _of(*names: str) -> Callable[[Evidence], str]:
    """A sentence for each of these other readings, with what was measured, as far as it was run."""

    def others(evidence: Evidence) -> str:
        said = [
            f"{name}: {_cells(evidence, 'readings', name)}"
            for name in names
            if evidence.has("readings", name)
        ]
        return ". ".join(said) + "." if said else "Measured in the full version."

    return others


def _lengths(evidence: Evidence) -> str:
    """What the mean is after what time, of ADT one way and both ways."""
    delay, both = TABLE["ADT"][2], TABLE["ADT(R)"][2]
    settled = evidence.mean("table", "ADT", m.settled_delay_ms)
    limit = evidence.mean("table", "ADT", m.settled_limit)
    loss = evidence.mean("table", "ADT", m.settled_loss)
    alone = evidence.mean("table", "ADT", m.length_for(delay))
    most = evidence.mean("reverse", "", m.most_ms)
    backlog = evidence.mean("reverse", "", m.length_for(both, backlog=True))
    full = evidence.mean("table", "Drop-Tail", m.settled_delay_ms)
    return (
        f"Settled (second half of the run), ADT has {settled:.2f} ms, q_adt {limit:.0f} packets and a loss of {loss:.1f} %, and Drop-Tail "
        f"{full:.1f} ms. The mean from the start falls below {delay} ms after {alone:.0f} s. With ADT both ways it is never above "
        f"{most:.1f} ms, since ACKs are among the 500 packets; taken as backlog times 1500 B it passes the published {both} ms after "
        f"{backlog:.0f} s. No single length gives both."
    )


def _wider(evidence: Evidence) -> str:
    if not evidence.has("parameters", WIDER):
        return "Measured in the full version."
    wider = evidence.mean("parameters", WIDER, m.utilisation)
    chosen = evidence.mean("parameters", setting(20, 1.01, 300), m.utilisation)
    return f"RTTs 10..300 ms as in figure 3, 20 users: {wider:.1f} %, for {chosen:.1f} % with those chosen."


READINGS = (
    Reading(
        "TCP",
        'not named: "TCP users"',
        "ns-2's Newreno as it was in 2006, with delayed ACKs",
        "The losses of the table are out of reach without delayed ACKs. The rest are ns-2's defaults.",
        _of(
            "no delayed ACKs, Drop-Tail",
            "no delayed ACKs, ADT",
            "SACK, Drop-Tail",
            "SACK, ADT",
            "RTO from 1 s, Drop-Tail",
            "RTO from 1 s, ADT",
            "SACK, RTO from 1 s, Drop-Tail",
            "SACK, RTO from 1 s, ADT",
        ),
        searched=True,
    ),
    Reading(
        "what the means cover",
        "not stated",
        "the whole run from its first packet, 200 s",
        "ADT settles at a quarter of the published delay. Its way down from the whole buffer, 90 s long, must be in the mean; the length is what brings it near 6.66 ms.",
        _lengths,
        searched=True,
    ),
    Reading(
        "packet size",
        "1500 B, and 500 packets are 30 ms: consistent",
        "1500 B",
        "Stated. Drop-Tail's 23.78 ms would fit packets of 1250 B, but the text excludes them.",
        _of("1250 B, Drop-Tail", "1250 B, ADT"),
    ),
    Reading(
        "start of the flows",
        "not stated",
        "uniform in the first second",
        "Started at one instant, most flows lose their first window together and wait for timeouts that double: an accident of the "
        "simulation. It is the one reading found that has Jain's index near the table's in all three rows.",
        _of("one instant, Drop-Tail", "one instant, ADT", "one instant, Adaptive RED"),
    ),
    Reading(
        "Adaptive RED's thresholds",
        'only the reference: "Adaptive RED" of Floyd, Gummadi and Shenker',
        "150 and 450 packets, everything else automatic",
        "Adaptive RED holds its average half way between the thresholds, which are 1 to 3: 17.99 ms are 300 packets, so 150 and 450. With "
        "automatic thresholds its target is 5 ms.",
        _of("automatic, Adaptive RED", "125/375, Adaptive RED", "180/540, Adaptive RED"),
        searched=True,
    ),
    Reading(
        "q_adt and its average at the start",
        "not stated",
        "the buffer's size; the average throughput at zero",
        "Comment 1 needs a queue that has the whole buffer before there is a load.",
        _of("q_adt from 100, ADT"),
    ),
    Reading(
        "links to the senders",
        "not stated",
        "none: the senders stand at the bottleneck, the rest of the RTT behind it",
        "Links that never drop change the bursts a little.",
        _of("access 1 Gbit/s, Drop-Tail", "access 15 Mbit/s, Drop-Tail"),
    ),
    Reading(
        "bytes enqueued",
        "the pseudo-code counts enqueued bytes",
        "bytes of the packets that the queue took, not of those it dropped",
        "The text calls the quotient the throughput of the link. Counting arrivals would put a congested link above any u for ever.",
    ),
    Reading(
        "goodput",
        "not defined",
        "each byte of data once, counted at the size of full packets",
        "The table's goodput and utilisation are 1.1 to 1.3 points apart; counted as data alone, 40 of 1500 B would already make 2.7.",
    ),
    Reading(
        "buffer and T in figure 2",
        "200 Mbit/s, RTTs 80..100 ms; buffer not stated",
        "1500 packets, the product of rate and 90 ms; B T / sqrt(N) with the same",
        "The rule that the introduction begins with.",
    ),
    Reading(
        "who leaves first in figure 3; its buffer and its end",
        "one user joins or leaves every 2 s",
        "who came first leaves first; 1000 packets; 240 s more with the ten users that stay",
        "The number of users is the same for any order. The time at the end was added when q_adt, stopped 40 s after the last had left, was seen "
        "to be still on its way up (a mean over the seeds of 387 packets).",
        searched=True,
    ),
    Reading(
        "RTTs and buffer in figure 4",
        "not stated",
        "80..100 ms as in figure 2; 500 packets as in section III-A",
        "Of the RTTs that the text has elsewhere those with which 20 users come nearer to u.",
        _wider,
        searched=True,
    ),
    Reading(
        "comment 2: delay-based TCP",
        "Vegas or FAST, no experiment",
        "50 flows of ns-2's Vegas at 100 Mbit/s, RTT 40..200 ms, 500 packets",
        "Enough flows that the queue they want is some hundred packets: less than the buffer, more than ADT would leave them.",
    ),
)
