"""The experiments: section III-A's three disciplines, and those of the other sections. Also the
readings of section III-A that the search tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sojourn_papers.evidence import Swap
from sojourn_papers.study import Changes, Study

USERS = (4, 8, 16, 32, 64, 125, 250, 500, 1000, 2000)
"""Our N for figure 2, evenly spaced on its logarithmic axis. The text has the first and last N."""
PERIODS_MS = (100, 300, 500, 700, 1000)
FACTORS = (1.002, 1.01, 1.05)
FEW_MANY = (20, 200)
"""Figure 4: sample periods, of which the text has the first and the last; the text's factors c and
numbers of users."""

DROP_TAIL = "pfifo limit 500"
ADT = "adt limit 500"
RED = "red variant ns2 limit 500 adaptive packets"
"""200 Mbit/s are 50 000 packets a second of ns-2's `mean_pktsize_`, 500 bytes. Its automatic
thresholds for a target of 5 ms are then 125 and 375 packets."""

ROWS = ("DT", "ADT", "ARED", "ADT(R)")
"""The rows of the table, as it names them."""
_QUEUES = {"DT": DROP_TAIL, "ADT": ADT, "ARED": RED}


@dataclass(frozen=True)
class Reading:
    """The parameters that section III-A leaves open. The defaults are the main reading, as in
    table.toml."""

    rtt_ms: tuple[int, int] = (80, 880)
    tcp: Mapping[str, Any] = field(default_factory=dict)
    """Changes of TCP from ns-2's defaults of 2006."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Changes of all flows."""
    red: str = RED
    adt: str = ADT
    rows: tuple[str, ...] = ROWS
    """The rows of the table that it changes."""

    @property
    def in_bytes(self) -> bool:
        """Whether ADT counts its queue in bytes."""
        return "packet" in self.adt.split()

    def scenario(self, row: str) -> str:
        """The scenario file of a row of the table."""
        return "reverse.toml" if row == "ADT(R)" else "table.toml"

    def changes(self, row: str) -> Changes:
        """The changes that a row makes to its scenario file."""
        flows = ("forward", "backward") if row == "ADT(R)" else ("bulk",)
        shortest, longest = self.rtt_ms
        own = {
            "rtt": f"uniform {shortest} ms .. {longest} ms",
            "tcp": {"min_rto": "1 s", **self.tcp},
            **self.more,
        }
        queue = {**_QUEUES, "ARED": self.red, "ADT": self.adt, "ADT(R)": self.adt}[row]
        # With traffic both ways, both queues have the discipline.
        place = "bottleneck.qdisc" if row == "ADT(R)" else "bottleneck.down.qdisc"
        return {
            **{f"flow.{name}.{key}": value for name in flows for key, value in own.items()},
            place: queue,
        }


MAIN = Reading()
_STATED = replace(MAIN, rtt_ms=(40, 440))
_DELAYED, _SOON, _SACK = {"delayed_ack_segments": 2}, {"min_rto": "200 ms"}, {"sack": True}
_RENO, _TAHOE = {"fast_recovery": "reno"}, {"fast_recovery": "tahoe"}

CHOSEN = "40..440 ms one way"
READINGS: Mapping[str, Reading] = {
    CHOSEN: MAIN,
    "one way, RTO from 0.2 s": replace(MAIN, tcp=_SOON),
    "one way, SACK": replace(MAIN, tcp=_SACK),
    "one way, delayed ACKs": replace(MAIN, tcp=_DELAYED),
    "one way, packets of 1540 B": replace(MAIN, tcp={"mss": 1500}),
    "one way, Reno": replace(MAIN, tcp=_RENO),
    "one way, Tahoe": replace(MAIN, tcp=_TAHOE),
    "one way, ADT in bytes": replace(MAIN, adt=f"{ADT} packet 1500", rows=("ADT(R)",)),
    "one way, ADT in bytes, 800 packets": replace(
        MAIN, adt="adt limit 800 packet 1500", rows=("ADT(R)",)
    ),
    "60..660 ms": replace(MAIN, rtt_ms=(60, 660)),
    "40..440 ms": _STATED,
    "40..440 ms, RTO from 0.2 s": replace(_STATED, tcp=_SOON),
    "40..440 ms, delayed ACKs": replace(_STATED, tcp=_DELAYED),
    "40..440 ms, delayed ACKs, RTO from 0.2 s": replace(_STATED, tcp={**_DELAYED, **_SOON}),
    "40..440 ms, Reno": replace(_STATED, tcp=_RENO),
    "40..440 ms, Tahoe": replace(_STATED, tcp=_TAHOE),
    "40..440 ms, all at one instant": replace(_STATED, more={"start": "0 s"}),
    **{
        f"one way, {name}": replace(MAIN, red=f"{RED} {words}", rows=("ARED",))
        for name, words in (
            ("RED 150/450", "min 150 max 450"),
            ("RED 100/500", "min 100 max 500"),
            ("RED 300/499 not gentle", "min 300 max 499 nogentle"),
            ("RED of weight 0.002", "weight 0.002"),
        )
    },
}
"""The readings that `search` tries: it runs the rows of the table under each, and measures after
the queues have settled."""
ONE_WAY = "RTTs of figure 2 one way, too"
"""Figure 2 with its RTTs read like those of section III-A; `search` tries this, too."""

LOADS = (50, 90, 98)
"""Mbit/s of datagrams on a link of 100 Mbit/s: all below u = 0.99."""


def setting(users: int, factor: float, period_ms: int) -> str:
    """The name of a variant of figure 4."""
    return f"N = {users}, c = {factor}, {period_ms} ms"


TABLE = Study(
    "table",
    "1000 TCP users, RTTs 40..440 ms one way, 200 Mbit/s (section III-A, figure 1)",
    "table.toml",
    variants={
        "Drop-Tail": {"bottleneck.down.qdisc": DROP_TAIL},
        "ADT": {"bottleneck.down.qdisc": ADT},
        "Adaptive RED": {"bottleneck.down.qdisc": RED},
    },
    quick={"warmup": "60 s", "duration": "120 s"},
)
REVERSE = Study(
    "reverse",
    "1000 TCP users in each direction over ADT (section III-A, row ADT(R))",
    "reverse.toml",
    quick={"warmup": "120 s", "duration": "170 s"},
    quick_seeds=2,
)
BY_USERS = Study(
    "users",
    "N TCP users, RTTs 80..100 ms, 200 Mbit/s over ADT (section III-B, figure 2)",
    "users.toml",
    variants={f"N = {users}": {"flow.user.count": users} for users in USERS},
    quick={"duration": "220 s"},
    quick_variants=("N = 16", "N = 125", "N = 2000"),
)
RHOS = {
    4: (0.01,),
    8: (0.01,),
    16: (0.01, 0.03, 0.3),
    64: (0.01,),
    250: (0.01, 0.3),
    2000: (0.01,),
}
"""N -> weights that we try in addition to 0.1, the letter's."""


def weighed(users: int, rho: float) -> str:
    """The name of a variant of figure 2 with another weight."""
    return f"N = {users}, rho = {rho:g}"


AVERAGING = Study(
    "averaging",
    "Figure 2 with other weights rho (section II)",
    "users.toml",
    variants={
        weighed(users, rho): {
            "flow.user.count": users,
            "bottleneck.down.qdisc": f"adt limit 1500 weight {rho:g}",
            # With a tenth of the weight it settles later: the average takes 140 s to pass u.
            **({"duration": "800 s", "warmup": "400 s"} if rho < 0.1 else {}),
        }
        for users, rhos in RHOS.items()
        for rho in rhos
    },
    seeds=3,
    quick={"duration": "280 s", "warmup": "180 s"},
    quick_variants=(weighed(16, 0.01),),
    quick_seeds=2,
)
CHANGING = Study(
    "changing",
    "10, 500 and again 10 TCP users at 100 Mbit/s over ADT (section III-C, figure 3)",
    "changing.toml",
    # A user joins each 0.7 s: faster than ADT was made for, but q_adt still reaches the same values
    # with 500 and with 10 users.
    quick={
        "duration": "770 s",
        "flow.passing.start": "every 0.7 s",
        "flow.passing.stop": "spread 343 s .. 685.3 s",
    },
)
TWICE_CHANGING = Study(
    "twice-changing",
    "Figure 3 with its RTTs taken as one way, as in section III-A",
    "changing.toml",
    variants={
        "": {f"flow.{name}.rtt": "uniform 20 ms .. 600 ms" for name in ("staying", "passing")}
    },
    seeds=3,
    quick_variants=(),
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
    },
    # Five seeds would change no printed digit: the utilisation of 5 minutes differs by a thousandth
    # between seeds.
    seeds=3,
    quick={"duration": "160 s"},
    quick_seeds=2,
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
    quick={"duration": "160 s"},
    quick_seeds=2,
)
# ------------------------------------------------------------------- bursts that are not bulk TCP's

SOURCES = 50
_OFFERED = 1.05
"""The offered load as a share of the link's rate. Above 1, so every limit overflows."""


def _sources(rate: float, **more: str) -> Changes:
    """Datagrams over a large buffer. Each source sends at `rate` times its share of the link."""
    return {
        "flow.arriving.count": SOURCES,
        "flow.arriving.rate": f"{round(1e8 * rate / SOURCES)} bit/s",
        "flow.arriving.start": "uniform 0 s .. 1 s",
        **{f"flow.arriving.{key}": value for key, value in more.items()},
    }


def _on_and_off(mean: str) -> Changes:
    """On and off times, both with this mean."""
    spell = {"on": f"exp {mean}", "off": f"exp {mean}"}
    return _sources(2 * _OFFERED, kind="onoff", **spell)


STEADY, SHORT_SPELLS, LONG_SPELLS = "steady", "on and off for 50 ms", "on and off for 500 ms"
DATAGRAMS = Study(
    "datagrams",
    "Datagrams at a mean of 105 Mbit/s on a link of 100 over ADT (section IV)",
    "uncongested.toml",
    variants={
        name: {
            "bottleneck.down.qdisc": "adt limit 3000 start 100",
            "duration": "300 s",
            "warmup": "150 s",
            **changes,
        }
        for name, changes in (
            (STEADY, _sources(_OFFERED)),
            (SHORT_SPELLS, _on_and_off("50 ms")),
            (LONG_SPELLS, _on_and_off("500 ms")),
        )
    },
    seeds=3,
    quick={"duration": "200 s", "warmup": "120 s"},
    quick_seeds=1,
)
TRANSFERS = Study(
    "transfers",
    "200 users who fetch 50 kB again and again at 100 Mbit/s over ADT (section IV)",
    "parameters.toml",
    variants={
        "": {
            "flow.user.count": 200,
            "flow.user.kind": "transfers",
            "flow.user.size": "50 kB",
            "flow.user.pause": "exp 100 ms",
        }
    },
    seeds=3,
    quick={"duration": "160 s"},
    quick_seeds=1,
)

# ---------------------------------------------------------------------- the rule of the introduction

_SHORTEST, _LONGEST = 0.04, 0.44
"""Seconds: the RTTs of section III-A as stated, whose harmonic mean is far from the arithmetic one."""


def rtts(users: int) -> list[float]:
    """The RTTs of `users` users in seconds, evenly spaced as in the scenario."""
    step = (_LONGEST - _SHORTEST) / (users - 1)
    return [_SHORTEST + step * one for one in range(users)]


def harmonic(users: int) -> float:
    """The harmonic mean of their RTTs, s."""
    return users / sum(1 / one for one in rtts(users))


RULE_USERS = (5, 20, 100)
RULE = Study(
    "rule",
    "Drop-Tail with a buffer of B T, T the harmonic mean of the RTTs (section I, footnote 1)",
    "users.toml",
    variants={
        f"N = {users}": {
            "flow.user.count": users,
            "flow.user.rtt": "spread 40 ms .. 440 ms",
            "bottleneck.down.rate": "100 Mbit/s",
            # B T in packets of 1500 B.
            "bottleneck.down.qdisc": f"pfifo limit {round(1e8 * harmonic(users) / 8 / 1500)}",
            "duration": "300 s",
            "warmup": "100 s",
        }
        for users in RULE_USERS
    },
    seeds=3,
    quick={"duration": "140 s", "warmup": "60 s"},
    quick_variants=("N = 20",),
    quick_seeds=1,
)
STUDIES = (
    TABLE,
    REVERSE,
    BY_USERS,
    AVERAGING,
    CHANGING,
    TWICE_CHANGING,
    PARAMETERS,
    UNCONGESTED,
    DELAY_BASED,
    DATAGRAMS,
    TRANSFERS,
    RULE,
)

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
SWAPS: Mapping[str, Swap] = {
    **{
        f"rho = {rho:g}": {
            WITH_USERS[users]: AVERAGING[weighed(users, rho)]
            for users, rhos in RHOS.items()
            if rho in rhos
        }
        for rho in (0.01, 0.03, 0.3)
    },
    "RTTs of figure 3 one way, too": {CHANGING.only: TWICE_CHANGING.only},
}
"""Readings that a reproduction runs. `search` tries those of `READINGS`."""
NO_DIFFERENCE: Swap = {TABLE[name]: TABLE["Drop-Tail"] for name in ("ADT", "Adaptive RED")}
"""The reading "no difference" (`readings`): Drop-Tail's runs replace those of the others."""
