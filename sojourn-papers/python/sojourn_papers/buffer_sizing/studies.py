"""The experiments: many long flows, one, short ones, both, and flows of Pareto lengths; and other
readings."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from sojourn_papers.buffer_sizing import model
from sojourn_papers.evidence import Swap
from sojourn_papers.readings import ON_OTHER_SEEDS
from sojourn_papers.study import Changes, Study

# ---------------------------------------------------------------------- many long flows, figure 15

N = (100, 200, 300, 400)
SHARES = (0.5, 1, 2, 3)
"""Buffers, in rate * RTT / sqrt(n)."""
PACKETS: Mapping[int, tuple[int, ...]] = {
    100: (64, 129, 258, 387),
    200: (46, 91, 182, 273),
    300: (37, 74, 148, 222),
    400: (32, 64, 128, 192),
}
"""The table's buffers."""
PRODUCT = 1291
"""Rate times RTT, packets."""


def row(n: int, share: float) -> str:
    """The name of a row of the table."""
    return f"n = {n}, {share:g} x"


def _row(n: int, share: float) -> Changes:
    return {
        "flow.long.count": n,
        "bottleneck.down.qdisc": f"pfifo limit {PACKETS[n][SHARES.index(share)]}",
    }


ROWS = {(n, share): row(n, share) for n in N for share in SHARES}
ROUTER = Study(
    "router",
    "100 to 400 long-lived flows over 155 Mbit/s, 100 ms (figure 15)",
    "long.toml",
    variants={name: _row(*at) for at, name in ROWS.items()},
    quick={"duration": "60 s", "warmup": "30 s"},
    quick_variants=[ROWS[n, share] for n in (100, 400) for share in SHARES],
    quick_seeds=1,
)
TABLE = {at: ROUTER[name] for at, name in ROWS.items()}
TCPS: Mapping[str, Changes] = {
    "Reno": {"flow.long.tcp": {"fast_recovery": "reno"}},
    "Newreno": {"flow.long.tcp": {"fast_recovery": "newreno"}},
    "Newreno, delayed ACKs": {},
    "SACK": {"flow.long.tcp": {"sack": True}},
}
"""ns-2's TCPs, as changes from the chosen one."""
ACCESS: Mapping[str, str | None] = {
    "no access links": None,
    "100 Mbit/s": "100 Mbit/s",
    "25 Mbit/s": "25 Mbit/s",
    "10 Mbit/s": "10 Mbit/s",
    "5 Mbit/s": "5 Mbit/s",
}
"""Access rate of each sender; None: packets of a burst reach the bottleneck together."""
STATED = "Reno, no access links"
SEARCHED_SHARES = SHARES[:3]
CHOSEN_PAIR = "Newreno, delayed ACKs", "5 Mbit/s"


def searched(tcp: str, access: str, share: float) -> str:
    """The name of a variant of the search."""
    return f"{tcp}, {access}, {row(100, share)}"


SEARCH = Study(
    "search",
    "The table's row of 100 flows under TCPs and access links",
    "long.toml",
    variants={
        searched(tcp, access, share): {
            **_row(100, share),
            **TCPS[tcp],
            "flow.long.access": ACCESS[access],
        }
        for tcp in TCPS
        for access in ACCESS
        for share in SEARCHED_SHARES
    },
    seeds=2,
    first_seed=101,
)
"""Run by `search` alone."""
_READ: Mapping[str, Changes] = {
    STATED: {**TCPS["Reno"], "flow.long.access": None},
    "Reno": TCPS["Reno"],
    "no access links": {"flow.long.access": None},
    "Newreno without delayed ACKs": TCPS["Newreno"],
    "SACK": TCPS["SACK"],
    "CUBIC and SACK of today's Linux": {"flow.long.profile": "linux", "flow.long.tcp": {}},
    "all RTTs 100 ms": {"flow.long.rtt": "100 ms"},
    "RTTs of 25 to 175 ms": {"flow.long.rtt": "uniform 25 ms .. 175 ms"},
}
READINGS = Study(
    "readings",
    "The table under other readings",
    "long.toml",
    variants={
        f"{reading}, {row(n, share)}": {**_row(n, share), **changes}
        for reading, changes in _READ.items()
        for n in (100, 400)
        for share in (0.5, 1, 2)
    },
    seeds=1,
    quick={"duration": "60 s", "warmup": "30 s"},
    quick_variants=[f"SACK, {row(n, share)}" for n in (100, 400) for share in (0.5, 1, 2)],
    quick_seeds=1,
)

# ---------------------------------------------------------------------------------- figure 11

MANY = (100, 200, 300, 500)
SIZES = (0.25, 0.5, 1, 1.5, 2, 4)
PRODUCT_80 = 1033
"""155 Mbit/s times 80 ms, packets."""


def sized(n: int, share: float) -> str:
    """The name of a variant of figure 11."""
    return f"n = {n}, {share:g} of the rule"


LEAST = Study(
    "least",
    "Which buffer 155 Mbit/s need for 98, 99.5 and 99.9 %, 80 ms (figure 11)",
    "long.toml",
    variants={
        sized(n, share): {
            "flow.long.count": n,
            "flow.long.rtt": "uniform 40 ms .. 120 ms",
            "bottleneck.down.qdisc": f"pfifo limit {round(share * PRODUCT_80 / sqrt(n))}",
        }
        for n in MANY
        for share in SIZES
    },
    quick={"duration": "50 s", "warmup": "25 s"},
    quick_variants=[sized(n, share) for n in (100, 300) for share in (0.25, 0.5, 1, 2, 4)],
    quick_seeds=1,
)
BY_SIZE = {(n, share): LEAST[sized(n, share)] for n in MANY for share in SIZES}

# ------------------------------------------------------------------------------ one flow, section 2

ONE_SIZES = (71, 142, 284)
SINGLE = Study(
    "single",
    "One flow over a buffer of half, one and two products (figures 4 to 6)",
    "single.toml",
    variants={
        f"{size} packets": {"bottleneck.down.qdisc": f"pfifo limit {size}"} for size in ONE_SIZES
    },
)
ONE = {size: SINGLE[f"{size} packets"] for size in ONE_SIZES}

# -------------------------------------------------------------------- short flows, figures 10 and 12

LOAD = 0.8
LENGTHS = (6, 14, 16, 30, 62)
RATES = (40, 80, 200)
"""Mbit/s."""
_RTT_S, _PAUSE_S = 0.1, 2.0


def users(packets: int, mbps: int) -> int:
    """The number of users whose flows of this length load the link. A user sends one flow in each
    cycle, which takes a pause and one RTT for each burst."""
    a_second = LOAD * mbps * 1e6 / (packets * 12_000)
    return round(a_second * (_PAUSE_S + _RTT_S * len(model.bursts(packets))))


def shorts(packets: int, mbps: int, buffer: str = "endless") -> str:
    """The name of a variant of figures 10 and 12."""
    return f"{packets} packets, {mbps} Mbit/s, {buffer} buffer"


def _shorts(packets: int, mbps: int) -> dict[str, object]:
    return {
        "bottleneck.down.rate": f"{mbps} Mbit/s",
        "flow.user.count": users(packets, mbps),
        "flow.user.size": f"{1460 * packets} B",
    }


ENOUGH = round(model.enough(14, LOAD, 0.025))
"""The buffer that flows of 14 packets exceed with a probability of 0.025, as in the report."""
SHORT = Study(
    "short",
    "Short flows at a load of 0.8 (figures 10 and 12)",
    "short.toml",
    variants={
        **{shorts(packets, mbps): _shorts(packets, mbps) for mbps in RATES for packets in LENGTHS},
        **{
            shorts(14, mbps, "small"): {
                **_shorts(14, mbps),
                "bottleneck.down.qdisc": f"pfifo limit {ENOUGH}",
            }
            for mbps in RATES
        },
    },
    quick={"duration": "25 s"},
    quick_variants=[
        *(shorts(14, mbps) for mbps in RATES),
        *(shorts(14, mbps, "small") for mbps in RATES),
        *(shorts(packets, 40) for packets in LENGTHS),
    ],
    quick_seeds=1,
)
QUEUES = {(packets, mbps): SHORT[shorts(packets, mbps)] for mbps in RATES for packets in LENGTHS}
SMALL = {mbps: SHORT[shorts(14, mbps, "small")] for mbps in RATES}

# ---------------------------------------------------------------- short and long, figures 13 and 14

BESIDE = (100, 200, 500)
PRODUCT_400 = 3333
"""400 Mbit/s times 100 ms, packets."""
WHOLE, ROOT = "rate * RTT", "rate * RTT / sqrt(n)"
MIX = Study(
    "mix",
    "Short flows of 80 Mbit/s beside n long ones over 400 Mbit/s (figures 13 and 14)",
    "mix.toml",
    variants={
        f"n = {n}, {name}": {
            "flow.long.count": n,
            "bottleneck.down.qdisc": f"pfifo limit {round(PRODUCT_400 / (sqrt(n) if name == ROOT else 1))}",
        }
        for n in BESIDE
        for name in (WHOLE, ROOT)
    },
    quick={"duration": "30 s", "warmup": "15 s"},
    quick_variants=[f"n = 200, {name}" for name in (WHOLE, ROOT)],
    quick_seeds=1,
)
MIXED = {(n, name): MIX[f"n = {n}, {name}"] for n in BESIDE for name in (WHOLE, ROOT)}
CHOSEN = "as chosen"
PARETO = Study(
    "pareto",
    "100 to 200 flows of Pareto lengths over 155 Mbit/s (section 5.1.4)",
    "pareto.toml",
    variants={
        CHOSEN: {},
        STATED: {"flow.user.tcp": {"fast_recovery": "reno"}, "flow.user.access": None},
        "SACK": {"flow.user.tcp": {"sack": True}},
        "windows of 64 kB": {"flow.user.tcp.max_window": 43},
    },
    quick={"duration": "60 s"},
    quick_seeds=1,
)
PARETO_PAUSE_S = 1.0
"""Mean pause of its users."""

AS_PARETO = {name: PARETO[name] for name in PARETO.variants}

STUDIES = (ROUTER, READINGS, LEAST, SINGLE, SHORT, MIX, PARETO)

SWAPS: Mapping[str, Swap] = {
    **{
        f"Pareto lengths: {name}": {AS_PARETO[CHOSEN]: variant}
        for name, variant in AS_PARETO.items()
        if name != CHOSEN
    },
    **{
        reading: {
            TABLE[n, share]: READINGS[f"{reading}, {row(n, share)}"]
            for n in (100, 400)
            for share in (0.5, 1, 2)
        }
        for reading in _READ
    },
    **{
        ON_OTHER_SEEDS if (tcp, access) == CHOSEN_PAIR else f"searched: {tcp}, {access}": {
            TABLE[100, share]: SEARCH[searched(tcp, access, share)] for share in SEARCHED_SHARES
        }
        for tcp in TCPS
        for access in ACCESS
    },
}
"""Readings that were run. For the table, only its first and last rows were run under them."""
