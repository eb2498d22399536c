"""The experiments: three bottlenecks under three disciplines, other readings, the cited studies,
and the future work.

The source does not state the video's rate behind each bottleneck, the queues' parameters or the
probe. They follow from its numbers:

    load      RED's queue stays short, so its loss is the part of the load that exceeds the
              bottleneck: offered = carried / (1 - lost). 1911 / 0.77 = 2482, 1521 / 0.73 = 2084,
              1198 / 0.66 = 1815 kbit/s
    scenes    RED carried 95.5, 95 and 99.8 % of the rate, and its least latency at 250 and 200 is
              that of an empty queue. So the film has quiet scenes. One film fits all three: for a
              quarter of the time its rate is two thirds of the mean. Then the links are idle for
              4.5, 3.5 and 0 % of the time
    limits    the largest latency under Drop Tail times the rate is the size of the full queue:
              1.64, 1.89 and 1.37 MB
    shaper    RED's least latency, 0.5 ms, is that of a single ping on the wire of 100 Mbit/s. So
              the shaper is a token bucket, and not a slow link
    RED       its mean latencies at 150 and 200 are those of 67 and 47 kB of queue, its largest at
              150 is that of 100 kB. So the upper threshold is about 90 kB
    probe     "xmt rcv %loss" is the summary of fping, which forgets a ping after 10 s and doesn't
              wait for the replies to the last ones

A constant overload has a closed form. Let x packets a second exceed the rate. In its dropping state
CoDel drops sqrt(count) / I packets a second, which after a time t is t / (2 I^2). The queue grows
until that rate reaches x, at t = 2 I^2 x, and is then (x I)^2 packets long. It takes as long again
to empty. So twice the overload means twice the time and four times the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sojourn_papers import published
from sojourn_papers.evidence import Swap
from sojourn_papers.readings import ON_OTHER_SEEDS
from sojourn_papers.study import Changes, Study, Variant

SAYS = published.beside(__file__)

BOTTLENECKS = (250, 200, 150)
"""tc's kbps: kilobytes a second."""
OFFERED = {
    kbps: SAYS[f"RED/{kbps}/throughput"] / (SAYS[f"RED/{kbps}/received"] / SAYS[f"RED/{kbps}/sent"])
    for kbps in BOTTLENECKS
}
"""Bottleneck -> mean offered rate, kbit/s, frames with their Ethernet header."""
FILMS = {attempt: SAYS[f"unshaped/{attempt}/throughput"] for attempt in ("1", "2", "3")}
"""Attempt -> rate without a bottleneck, kbit/s: table 1."""
LIMIT = {250: 1250, 200: 1430, 150: 1000}
"""Bottleneck -> Drop Tail's limit in packets. Our frames end in a shorter packet, 1322 B in the
mean."""
FIRST_PING = {250: 3, 200: 10, 150: 7}
"""Bottleneck -> seconds from the video's start to the first ping: the least latency under Drop
Tail, divided by the growth of the latency per second."""

RED = "red limit 400000 min 10000 max 90000 avpkt 1000 burst 39 probability 0.3"
RED_ADAPTIVE = "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 adaptive bandwidth 10Mbit"
FEW_PACKETS = 8
FEW_SETTING = f"limit {FEW_PACKETS}"
FEW = f"codel {FEW_SETTING}"
CODEL_LIMITS = (2, 4, 20, 1000)
"""Other limits; 1000 is tc's default."""

_QUIET, _LIVELY = 0.66, 0.75
"""The quiet rate over the mean one; the share of time that is lively."""
_PAYLOAD, _PACKET, _FRAME = 1316, 1356, 1370
"""Bytes: RTP payload, IP packet, with its Ethernet header."""


def qdisc(name: str, kbps: int) -> str:
    """The router's discipline in tc's syntax: `qdisc("Drop Tail", 250)`."""
    return {"Drop Tail": f"pfifo limit {LIMIT[kbps]}", "RED": RED, "CoDel": FEW}[name]


def film(mean_kbps: float, quiet: float = _QUIET) -> dict[str, Any]:
    """A film of this mean rate in kbit/s of frames: a constant rate, and the additional rate of its
    lively scenes."""
    base = mean_kbps * quiet
    extra = max((mean_kbps - base) / _LIVELY, 1.0)
    return {
        "flow.film.rate": f"{base * _PAYLOAD / _FRAME * 1000:.0f} bit/s",
        "flow.scenes.rate": f"{extra * _PACKET / _FRAME * 1000:.0f} bit/s",
    }


def shaped(kbps: int, words: str, differs: Changes | None = None) -> Changes:
    """A variant: both interfaces at this rate, this discipline, the film that its numbers imply,
    and further changes."""
    first = FIRST_PING[kbps]
    return {
        "bottleneck.shaper": f"htb rate {8 * kbps}kbit",
        "bottleneck.qdisc": words,
        "warmup": f"{first} s",
        "flow.ping.start": f"{first} s",
        "flow.ping.stop": f"{first + 100.4:g} s",
        **film(OFFERED[kbps]),
        **(differs or {}),
    }


def unshaped(mean_kbps: float) -> Changes:
    """A variant: nothing shaped, a film of this rate."""
    return {
        "bottleneck.shaper": "none",
        "bottleneck.qdisc": "pfifo limit 1000",
        **film(mean_kbps),
    }


_TESTBED: dict[str, Changes] = {
    f"{kbps} {name}": shaped(kbps, qdisc(name, kbps))
    for name in ("Drop Tail", "RED", "CoDel")
    for kbps in BOTTLENECKS
}
_CODELS: dict[str, Changes] = {
    f"{kbps} limit {limit}": shaped(kbps, f"codel limit {limit}")
    for limit in CODEL_LIMITS
    for kbps in BOTTLENECKS
}
_OTHERS: dict[str, Changes] = {
    **{f"{kbps} limit 1000": shaped(kbps, "pfifo limit 1000") for kbps in (250, 200)},
    **{f"{kbps} RED adaptive": shaped(kbps, RED_ADAPTIVE) for kbps in BOTTLENECKS},
    **{
        f"{kbps} {name} table 1": shaped(kbps, qdisc(name, kbps), film(rate))
        for name in ("Drop Tail", "RED")
        for kbps, rate in zip(BOTTLENECKS, FILMS.values(), strict=True)
    },
    **{
        f"250 {name} steady": shaped(250, qdisc(name, 250), film(OFFERED[250], quiet=1.0))
        for name in ("Drop Tail", "RED")
    },
    "150 RED steady": shaped(150, RED, film(OFFERED[150], quiet=1.0)),
    # Latency rises linearly from 3143 to 9434 ms in 82 pings: the queue grows by 0.077 s a second,
    # and has done so for 41 s.
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
    "250 RED slow link": shaped(
        250, RED, {"bottleneck.rate": "2000 kbit/s", "bottleneck.shaper": "none"}
    ),
}
_OTHERS_QUICK = (
    "250 limit 1000",
    "250 RED slow link",
    *(f"{kbps} RED adaptive" for kbps in BOTTLENECKS),
)

WIRE = 100
"""Rate at which the source's hosts send a frame's packets, Mbit/s."""
SENDERS = (WIRE, 20, 6, 4, 3)
"""The tried rates of the senders, Mbit/s: slower senders have shorter bursts."""


def burst(name: str, kbps: int, sender: int) -> str:
    """A variant's name: "250 RED, senders at 4 Mbit/s"."""
    return f"{kbps} {name}, senders at {sender} Mbit/s"


_BURSTS: dict[str, Changes] = {
    burst(name, kbps, sender): shaped(
        kbps,
        qdisc(name, kbps),
        {f"flow.{flow}.access": f"{sender} Mbit/s" for flow in ("film", "scenes")},
    )
    for sender in SENDERS
    for name in ("Drop Tail", "RED")
    for kbps in BOTTLENECKS
}

# --------------------------------------------------------------------------- a link that changes

HALVES = ("2400 kbit/s", "1200 kbit/s")
"""Rates of a link that changes every 20 s: above the film's mean rate and below it."""
CHANGING_QDISCS = {"Drop Tail": "pfifo limit 1000", "RED": RED, "CoDel": "codel limit 1000"}
_CHANGING: dict[str, Changes] = {
    name: shaped(
        200,
        words,
        {
            "bottleneck.shaper": "none",
            "bottleneck.schedule": [["0 s", HALVES[0]], ["20 s", HALVES[1]]],
            "bottleneck.repeat": "40 s",
        },
    )
    for name, words in CHANGING_QDISCS.items()
}

# ------------------------------------------------------------------------------- the cited studies

RATES = (64, 128, 256, 512, 1000, 2000, 4000)
"""kbit/s."""
FILLED = (64, 128, 256, 512)
"""kbit/s: the bottlenecks that the film of 950 kbit/s overfills."""
CITED_QDISCS = {"Drop Tail": "pfifo limit 50", "RED": "red variant ns2 limit 50", "CoDel": "codel"}
UDP_RIVALS = {"FRED": "fred limit 50", "SFB": "sfb limit 50"}
"""The disciplines that a cited study compares with RED under UDP."""
SMALL = 5
"""A small buffer, packets."""
_SMALL_RATES = (64, 128, 256, 1000)

_CITED: dict[str, Changes] = {
    **{
        f"{rate} {name}": {"bottleneck.rate": f"{rate} kbit/s", "bottleneck.down.qdisc": words}
        for name, words in CITED_QDISCS.items()
        for rate in RATES
    },
    **{
        f"{rate} {name}": {"bottleneck.rate": f"{rate} kbit/s", "bottleneck.down.qdisc": words}
        for name, words in UDP_RIVALS.items()
        for rate in FILLED
    },
    **{
        f"{rate} {name} small": {
            "bottleneck.rate": f"{rate} kbit/s",
            "bottleneck.down.qdisc": f"{words} limit {SMALL}",
        }
        for name, words in (("Drop Tail", "pfifo"), ("RED", "red variant ns2"))
        for rate in _SMALL_RATES
    },
}
_CITED_QUICK = tuple(
    [f"{rate} {name}" for name in CITED_QDISCS for rate in (64, 256, 512, 1000, 2000)]
    + [f"{rate} {name} small" for name in ("Drop Tail", "RED") for rate in (64, 1000)]
    + [f"{rate} {name}" for name in UDP_RIVALS for rate in (64, 256, 512)]
)

# --------------------------------------------------------------------------------- the future work

TARGETS_MS = (1, 5, 20, 60, 200, 600)
SETTINGS = {
    FEW_SETTING: (FEW_SETTING, 100),
    "limit 20": ("limit 20", 100),
    "limit 1000": ("limit 1000", 100),
    "limit 1000, interval 20 ms": ("limit 1000", 20),
    "limit 1000, interval 500 ms": ("limit 1000", 500),
}
"""Name -> CoDel's limit in tc's syntax, and its interval in ms."""


def future(setting: str, target_ms: int) -> str:
    """A variant's name."""
    return f"{setting}, target {target_ms} ms"


_FUTURE: dict[str, Changes] = {
    future(name, target): shaped(250, f"codel {limit} target {target}ms interval {interval}ms")
    for name, (limit, interval) in SETTINGS.items()
    for target in TARGETS_MS
}
_FUTURE_QUICK = tuple(
    future(name, target) for name in (FEW_SETTING, "limit 1000") for target in (5, 60, 600)
)

# ---------------------------------------------------------------------------------------- overload

OVERLOADS = (1.1, 1.25, 1.5, 2.0)
"""The offered rate over the link's rate."""
CAPACITY = 2_000_000 / (8 * 1370)
"""Packets a second of 1370 B at 2000 kbit/s."""
INTERVAL_S = 0.1


def overload(times: float) -> str:
    """A variant's name."""
    return f"{times:g} times"


def excess(times: float) -> float:
    """Packets a second above the link's rate."""
    return (times - 1) * CAPACITY


def predicted_peak_packets(times: float) -> float:
    """The longest queue of the closed form."""
    return (excess(times) * INTERVAL_S) ** 2


_OVERLOAD: dict[str, Changes] = {
    overload(times): {"flow.flood.rate": f"{2e6 * times * 1356 / 1370:.0f} bit/s"}
    for times in OVERLOADS
}
_OVERLOAD_QUICK = (overload(1.25), overload(2.0))

# ------------------------------------------------------------------------------------- the studies

_PLAIN = tuple(f"{kbps} limit 1000" for kbps in BOTTLENECKS)

UNSHAPED = Study(
    "unshaped",
    "Without a bottleneck, three tries (section 4.1)",
    "testbed.toml",
    variants={attempt: unshaped(rate) for attempt, rate in FILMS.items()},
    kernel_variants=None,
)
TESTBED = Study(
    "testbed",
    "Three bottlenecks, three disciplines (section 4.2)",
    "testbed.toml",
    variants=_TESTBED,
    seeds=10,
    kernel_variants=None,
    kernel_seeds=10,
)
CODEL = Study(
    "codel",
    "CoDel with other limits, tc's default among them",
    "testbed.toml",
    variants=_CODELS,
    quick_variants=_PLAIN,
    kernel_variants=_PLAIN,
)
OTHERS = Study(
    "others",
    "The other readings",
    "testbed.toml",
    variants=_OTHERS,
    quick_variants=_OTHERS_QUICK,
)
BURSTS = Study(
    "bursts",
    "The length of the senders' bursts",
    "testbed.toml",
    variants=_BURSTS,
    seeds=10,
    first_seed=101,
)
"""Studies that only `search` runs."""
CHANGING = Study(
    "changing",
    "A link that changes every 20 s (section 2.3)",
    "testbed.toml",
    variants=_CHANGING,
)
CITED = Study(
    "cited",
    "The cited studies: bottlenecks from 64 kbit/s up (section 2.4)",
    "cited.toml",
    variants=_CITED,
    quick={"duration": "50 s"},
    quick_variants=_CITED_QUICK,
)
FUTURE = Study(
    "future",
    "CoDel's target, limit and interval at 250 kbps (section V)",
    "testbed.toml",
    variants=_FUTURE,
    quick_seeds=2,
    quick_variants=_FUTURE_QUICK,
)
OVERLOAD = Study(
    "overload",
    "CoDel and a constant overload",
    "overload.toml",
    variants=_OVERLOAD,
    quick={"duration": "12 s"},
    quick_variants=_OVERLOAD_QUICK,
)

STUDIES = (UNSHAPED, TESTBED, CODEL, OTHERS, CHANGING, CITED, FUTURE, OVERLOAD)

TRIES = {attempt: UNSHAPED[attempt] for attempt in FILMS}
BEHIND = {
    name: {kbps: TESTBED[f"{kbps} {name}"] for kbps in BOTTLENECKS}
    for name in ("Drop Tail", "RED", "CoDel")
}
"""Discipline -> bottleneck in kbps -> variant."""
DEFAULTS = {kbps: CODEL[f"{kbps} limit 1000"] for kbps in BOTTLENECKS}
"""tc's CoDel."""
CITED_BY = {name: {rate: CITED[f"{rate} {name}"] for rate in RATES} for name in CITED_QDISCS}
"""Discipline -> rate in kbit/s -> variant."""
UDP_RIVALS_BY = {name: {rate: CITED[f"{rate} {name}"] for rate in FILLED} for name in UDP_RIVALS}
SMALL_BY = {
    name: {rate: CITED[f"{rate} {name} small"] for rate in _SMALL_RATES}
    for name in ("Drop Tail", "RED")
}
SWEPT = {name: {target: FUTURE[future(name, target)] for target in TARGETS_MS} for name in SETTINGS}
"""CoDel's limit and interval -> target in ms -> variant."""
OVERLOADED = {times: OVERLOAD[overload(times)] for times in OVERLOADS}


# ------------------------------------------------------------------------ readings, for the matrix


def _instead(found: Swap) -> Swap:
    """The replacements of the variants behind the bottlenecks. The others have none, as they were
    not run with that film or those senders."""
    behind: dict[Variant, None] = dict.fromkeys(
        one for along in BEHIND.values() for one in along.values()
    )
    return {**behind, **found}


def _behind(name: str, found: Mapping[int, Variant]) -> Swap:
    """The replacements of one discipline's variants, by bottleneck; the others stay."""
    return {BEHIND[name][kbps]: one for kbps, one in found.items()}


SWAPS: Mapping[str, Swap] = {
    "RED adaptive, of tc-red(8)": _behind(
        "RED", {kbps: OTHERS[f"{kbps} RED adaptive"] for kbps in BOTTLENECKS}
    ),
    **{
        f"CoDel's limit {limit}": _behind(
            "CoDel", {kbps: CODEL[f"{kbps} limit {limit}"] for kbps in BOTTLENECKS}
        )
        for limit in CODEL_LIMITS
    },
    "films of table 1's rates": _instead(
        {
            BEHIND[name][kbps]: OTHERS[f"{kbps} {name} table 1"]
            for name in ("Drop Tail", "RED")
            for kbps in BOTTLENECKS
        }
    ),
    "a steady film": _instead(
        {
            BEHIND["Drop Tail"][250]: OTHERS["250 Drop Tail steady"],
            BEHIND["RED"][250]: OTHERS["250 RED steady"],
            BEHIND["RED"][150]: OTHERS["150 RED steady"],
        }
    ),
    "a film 8 % above the link": _instead(
        {BEHIND["Drop Tail"][200]: OTHERS["200 Drop Tail slower"]}
    ),
    "Drop Tail of 1000 packets": _instead(
        {BEHIND["Drop Tail"][kbps]: OTHERS[f"{kbps} limit 1000"] for kbps in (250, 200)}
    ),
    "no token bucket, a slow link": _instead({BEHIND["RED"][250]: OTHERS["250 RED slow link"]}),
    **{
        ON_OTHER_SEEDS if sender == WIRE else f"senders at {sender} Mbit/s": _instead(
            {
                BEHIND[name][kbps]: BURSTS[burst(name, kbps, sender)]
                for name in ("Drop Tail", "RED")
                for kbps in BOTTLENECKS
            }
        )
        for sender in SENDERS
    },
}
NO_DIFFERENCE: Swap = {
    one: disciplines["Drop Tail"][rate]
    for disciplines in (BEHIND, CITED_BY)
    for name, variants in disciplines.items()
    if name != "Drop Tail"
    for rate, one in variants.items()
}
"""The reading "no difference" (`readings`): Drop Tail's runs replace those of the others."""
