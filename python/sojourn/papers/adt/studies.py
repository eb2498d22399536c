"""The experiments: section III-A's three disciplines, those of the other sections, and section
III-A under other readings."""

from __future__ import annotations

from sojourn.papers.study import Changes, Study

USERS = (4, 8, 16, 32, 64, 125, 250, 500, 1000, 2000)
"""Figure 2: our N, evenly spaced on its logarithmic axis between the text's ends."""
PERIODS_MS = (100, 300, 500, 700, 1000)
FACTORS = (1.002, 1.01, 1.05)
FEW_MANY = (20, 200)
"""Figure 4: sample periods between the text's ends; its factors c and its numbers of users."""

DROP_TAIL = "pfifo limit 500"
ADT = "adt limit 500"
RED = "red variant ns2 limit 500 adaptive packets min {} max {}"

_TCP = {"delayed_ack_segments": 2}


def _both(name: str, changes: Changes) -> dict[str, Changes]:
    """The variants of a reading: Drop-Tail and ADT."""
    return {
        f"{name}, {label}": {**changes, "bottleneck.down.qdisc": qdisc}
        for label, qdisc in (("Drop-Tail", DROP_TAIL), ("ADT", ADT))
    }


OTHERS: dict[str, Changes] = {
    **_both("1250 B", {"flow.bulk.tcp": {**_TCP, "mss": 1210}}),
    **_both("no delayed ACKs", {"flow.bulk.tcp": {"delayed_ack_segments": 1}}),
    **_both("SACK", {"flow.bulk.tcp": {**_TCP, "sack": True}}),
    **_both("RTO from 1 s", {"flow.bulk.tcp": {**_TCP, "min_rto": "1 s"}}),
    **_both("SACK, RTO from 1 s", {"flow.bulk.tcp": {**_TCP, "sack": True, "min_rto": "1 s"}}),
    **_both("one instant", {"flow.bulk.start": "0 s"}),
    "one instant, Adaptive RED": {
        "flow.bulk.start": "0 s",
        "bottleneck.down.qdisc": RED.format(150, 450),
    },
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


def setting(users: int, factor: float, period_ms: int) -> str:
    """The name of a variant of figure 4."""
    return f"N = {users}, c = {factor}, {period_ms} ms"


TABLE = Study(
    "table",
    "1000 TCP users, RTTs 40..440 ms, 200 Mbit/s (section III-A, figure 1)",
    "table.toml",
    variants={
        "Drop-Tail": {"bottleneck.down.qdisc": DROP_TAIL},
        "ADT": {"bottleneck.down.qdisc": ADT},
        "Adaptive RED": {"bottleneck.down.qdisc": RED.format(150, 450)},
    },
)
REVERSE = Study(
    "reverse",
    "1000 TCP users in each direction over ADT (section III-A, row ADT(R))",
    "reverse.toml",
    variants={"": {}, "one instant": {"flow.forward.start": "0 s", "flow.backward.start": "0 s"}},
    quick={"duration": "130 s"},
    quick_variants=("",),
)
BY_USERS = Study(
    "users",
    "N TCP users, RTTs 80..100 ms, 200 Mbit/s over ADT (section III-B, figure 2)",
    "users.toml",
    variants={f"N = {users}": {"flow.user.count": users} for users in USERS},
    quick={"duration": "220 s"},
    quick_variants=("N = 16", "N = 125", "N = 2000"),
)
CHANGING = Study(
    "changing",
    "10, 500 and again 10 TCP users at 100 Mbit/s over ADT (section III-C, figure 3)",
    "changing.toml",
    # A user each 0.7 s: the number of users then changes faster than ADT was made for, but the ends
    # are the same.
    quick={
        "duration": "770 s",
        "flow.passing.start": "every 0.7 s",
        "flow.passing.stop": "spread 343 s .. 685.3 s",
    },
)
PARAMETERS = Study(
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
)
UNCONGESTED = Study(
    "uncongested",
    "Less traffic than u over ADT (section II, comment 1)",
    "uncongested.toml",
    variants={f"{load} Mbit/s": {"flow.arriving.rate": f"{load} Mbit/s"} for load in LOADS},
    quick_variants=("90 Mbit/s",),
)
DELAY_BASED = Study(
    "delay-based",
    "Vegas over Drop-Tail and over ADT (section II, comment 2)",
    "delay-based.toml",
    variants={
        "Drop-Tail": {"bottleneck.down.qdisc": "pfifo limit 500"},
        "ADT": {"bottleneck.down.qdisc": "adt limit 500"},
    },
)
READINGS = Study(
    "readings",
    "Section III-A under other readings of what the text leaves open",
    "table.toml",
    variants=OTHERS,
    quick_variants=(),
)

STUDIES = (TABLE, REVERSE, BY_USERS, CHANGING, PARAMETERS, UNCONGESTED, DELAY_BASED, READINGS)

DISCIPLINES = {name: TABLE[name] for name in ("Drop-Tail", "Adaptive RED", "ADT")}
WITH_USERS = {users: BY_USERS[f"N = {users}"] for users in USERS}
"""Figure 2."""
SETTINGS = {
    (users, factor, period): PARAMETERS[setting(users, factor, period)]
    for users in FEW_MANY
    for factor in FACTORS
    for period in PERIODS_MS
}
"""Figure 4."""
OFFERED = {load: UNCONGESTED[f"{load} Mbit/s"] for load in LOADS}
