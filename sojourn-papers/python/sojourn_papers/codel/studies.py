"""The experiments: static links of many rates and RTTs, slow links, the stepping link, the home
line of the table; and other readings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sojourn_papers.evidence import Swap
from sojourn_papers.readings import ON_OTHER_SEEDS
from sojourn_papers.study import Changes, Study, Variant

CODEL, TAIL, RED = "CoDel", "Tail Drop", "RED"
QUEUES = (CODEL, RED, TAIL)

MBPS = (3.0, 10.0, 45.0, 100.0)
"""Figure 5's larger bandwidths, Mbit/s."""
SLOW_KBPS = (128, 256, 512, 1500)
"""Figure 6's bandwidths, kbit/s."""
RTT_MS = (10, 30, 100, 200, 500)
"""Figure 8's RTTs; the text names 10, 30, 200 and 500."""
SLOW_RTT_MS = (30, 100)
MTU = (1500, 500)
"""Bytes; figure 6 has both."""
PACKET = 1500


NOMINAL_MS = 100
"""The RTT by which the ns-2 script (see the package) sizes all buffers, whatever the flows' RTT."""


def product(mbps: float, packet: int = PACKET) -> int:
    """Rate times the nominal RTT, packets."""
    return round(mbps * 1e6 * NOMINAL_MS / 8e3 / packet)


def queue(name: str, mbps: float, packet: int = PACKET) -> str:
    """A discipline with the article's buffer: eight products of rate and RTT under CoDel and RED,
    one under Tail Drop."""
    one = product(mbps, packet)
    return {
        CODEL: f"codel variant rfc limit {8 * one}",
        RED: f"red variant ns2 limit {8 * one}",
        TAIL: f"pfifo limit {one}",
    }[name]


def apart(rtt_ms: int, ftps: int = 4) -> list[str]:
    """RTTs of the FTPs: each 2 ms more than the one before."""
    return [f"{rtt_ms + 2 * one} ms" for one in range(1, ftps + 1)]


# ------------------------------------------------------------------------------------ static links


@dataclass(frozen=True)
class Setting:
    """A static link with its load."""

    queue: str
    mbps: float
    rtt_ms: int
    load: str

    def __str__(self) -> str:
        return f"{self.queue}, {self.mbps:g} Mbit/s, {self.rtt_ms} ms, {self.load}"

    def changes(self) -> Changes:
        """The changes from the scenario file."""
        ftps = int(self.load.split()[0])
        found: dict[str, Any] = {
            "bottleneck.rate": f"{round(1000 * self.mbps)} kbit/s",
            "bottleneck.qdisc": queue(self.queue, self.mbps),
            "flow.ftp.count": ftps,
            "flow.ftp.rtt": apart(self.rtt_ms, ftps),
        }
        if self.load == MIX:
            found |= {f"flow.{name}.rtt": f"{self.rtt_ms} ms" for name in ("web", "cbr")}
        return found


FTP_LOADS, MIX = ("1 FTP", "4 FTPs", "20 FTPs"), "4 FTPs and more"


def _settings(loads: Iterable[str]) -> tuple[Setting, ...]:
    return tuple(
        Setting(name, mbps, rtt, load)
        for load in loads
        for mbps in MBPS
        for rtt in RTT_MS
        for name in QUEUES
    )


def _some(settings: Iterable[Setting]) -> list[str]:
    """The settings of the quick version: one load, all rates at 100 ms and all RTTs at 10
    Mbit/s."""
    return [
        str(one)
        for one in settings
        if one.load == "4 FTPs" and (one.rtt_ms == 100 or one.mbps == 10)
    ]


_FTPS, _MIXED = _settings(FTP_LOADS), _settings([MIX])
STATIC = Study(
    "static",
    "FTPs at 3 to 100 Mbit/s and RTTs of 10 to 500 ms (figures 5, 8 and 9)",
    "static.toml",
    variants={str(one): one.changes() for one in _FTPS},
    quick={"duration": "40 s"},
    quick_seeds=1,
    quick_variants=_some(_FTPS),
)
MIXED = Study(
    "mixed",
    "The same with web pages and a datagram stream (figures 5, 8 and 9)",
    "mixed.toml",
    variants={str(one): one.changes() for one in _MIXED},
    seeds=2,
    quick_variants=(),
)
SETTINGS: Mapping[Setting, Variant] = {
    **{one: STATIC[str(one)] for one in _FTPS},
    **{one: MIXED[str(one)] for one in _MIXED},
}


def plain(name: str, mbps: float, rtt_ms: int = 100) -> Variant:
    """Four FTPs on a static link."""
    return SETTINGS[Setting(name, mbps, rtt_ms, "4 FTPs")]


_READ: Mapping[str, dict[str, Any]] = {
    "Linux's CoDel": {"bottleneck.qdisc": "codel limit 10000"},
    "New Reno": {"flow.ftp.congestion": "reno"},
    "TCP of today's Linux": {"flow.ftp.profile": "linux", "flow.ftp.tcp": {}},
}
READINGS = Study(
    "readings",
    "Four FTPs at 100 ms under other readings",
    "static.toml",
    variants={
        f"{name}, {mbps:g} Mbit/s": {
            **Setting(CODEL, mbps, 100, "4 FTPs").changes(),
            **changes,
        }
        for name, changes in _READ.items()
        for mbps in MBPS
    },
    seeds=2,
    quick_variants=(),
)
# -------------------------------------------------------------------------------------- slow links


def slow(name: str, kbps: int, rtt_ms: int, packet: int) -> str:
    """The name of a variant of figure 6."""
    return f"{name}, {kbps} kbit/s, {rtt_ms} ms, MTU {packet}"


SLOW = Study(
    "slow",
    "Four FTPs at 128 kbit/s to 1.5 Mbit/s, MTUs of 1500 and 500 B (figure 6)",
    "static.toml",
    variants={
        slow(name, kbps, rtt, packet): {
            "bottleneck.rate": f"{kbps} kbit/s",
            "bottleneck.qdisc": queue(name, kbps / 1000, packet),
            "flow.ftp.rtt": apart(rtt),
            "flow.ftp.tcp.mss": packet - 40,
            "duration": "220 s",
        }
        for name in (CODEL, RED)
        for kbps in SLOW_KBPS
        for rtt in SLOW_RTT_MS
        for packet in MTU
    },
    quick={"duration": "120 s"},
    quick_seeds=1,
)
READERS = (5, 10, 20, 40, 80, 160)
WEB = Study(
    "web",
    "Web pages alone at 512 kbit/s under CoDel (figure 6)",
    "web.toml",
    variants={f"{readers} readers": {"flow.web.count": readers} for readers in READERS},
    seeds=3,
    quick_seeds=2,
)
BY_READERS = {readers: WEB[f"{readers} readers"] for readers in READERS}

# -------------------------------------------------------------------------------- the link that steps

LARGE, SMALL = 830, 10
"""Packets of buffer: one product of the nominal rate and RTT, and a buffer for 1 Mbit/s."""
STEPS_S = (50, 100, 150, 200, 250)
FALLS_S = (50, 100, 200)
"""Steps to a lower rate."""


def buffered(name: str, packets: int) -> str:
    """The name of a variant of figure 7."""
    return f"{name}, {packets} packets"


def _limited(name: str, packets: int) -> str:
    if name == RED:
        return f"red variant ns2 limit {packets} packets"
    words = {CODEL: "codel variant rfc", TAIL: "pfifo", IN_BYTES: "red variant ns2"}[name]
    return f"{words} limit {packets}"


IN_BYTES = "RED in bytes"
"""ns-2's RED counts its limit in packets of 500 B by default; the article counts packets."""
DEGRADED = Study(
    "degraded",
    "A link that steps between 100 and 1 Mbit/s (figure 7)",
    "degraded.toml",
    variants={
        buffered(name, packets): {"bottleneck.qdisc": _limited(name, packets)}
        for packets in (LARGE, SMALL)
        for name in (*QUEUES, IN_BYTES)
    },
    seeds=20,
    quick_seeds=1,
)
"""The delay that is not exceeded in 95 % of the time depends on the few largest pages of a seed:
five seeds can't distinguish it from its bound."""
STEPPED = {
    (name, packets): DEGRADED[buffered(name, packets)]
    for packets in (LARGE, SMALL)
    for name in (*QUEUES, IN_BYTES)
}
THRICE = "connections three times as heavy"
_OTHER_STEPS: Mapping[str, Changes] = {
    "connections half as heavy": {"flow.web.size": "pareto 3700 B 1.2"},
    "connections twice as heavy": {"flow.web.size": "pareto 14800 B 1.2"},
    THRICE: {"flow.web.size": "pareto 22200 B 1.2"},
    "New Reno": {"flow.ftp.congestion": "reno"},
    "TCP of today's Linux": {"flow.*.profile": "linux", "flow.*.tcp": {}},
    "Linux's CoDel": {"bottleneck.qdisc": "codel limit 830"},
}
STEP_READINGS = Study(
    "step-readings",
    "The link that steps, under CoDel and other readings",
    "degraded.toml",
    variants=_OTHER_STEPS,
    seeds=20,
    quick_variants=(),
)

# -------------------------------------------------------------------------------------- the home line

EDGE_KBPS = (512, 1500)
EDGE_QUEUES = (CODEL, TAIL)


def line(name: str, kbps: int) -> str:
    """The name of a variant of the table."""
    return f"{name}, {kbps} kbit/s"


HOME_PRODUCTS = 2
"""Length of the home line's buffers, in products of rate and RTT; a search found it."""


def _edge(name: str, kbps: int, products: int = HOME_PRODUCTS) -> Changes:
    packet = 500 if kbps < 1000 else PACKET
    words = {CODEL: "codel variant rfc", TAIL: "pfifo"}[name]
    return {
        "bottleneck.rate": f"{kbps} kbit/s",
        "bottleneck.qdisc": f"{words} limit {products * product(kbps / 1000, packet)}",
        "flow.ftp.tcp.mss": packet - 40,
        "flow.web.tcp.mss": packet - 40,
        "flow.upload.tcp.mss": packet - 40,
    }


EDGE = Study(
    "edge",
    "A home line of 512 kbit/s and of 1.5 Mbit/s, both ways busy (the table)",
    "edge.toml",
    variants={line(name, kbps): _edge(name, kbps) for kbps in EDGE_KBPS for name in EDGE_QUEUES},
)
LINES = {(name, kbps): EDGE[line(name, kbps)] for kbps in EDGE_KBPS for name in EDGE_QUEUES}

HEAVIER_AND_SHORT = f"{THRICE}, buffers of one product"
OTHER_LINES: Mapping[str, tuple[int, int, int]] = {
    "buffers of one product": (1, 20, 1),
    "three times the web connections": (HOME_PRODUCTS, 60, 1),
    "both": (1, 60, 1),
    THRICE: (HOME_PRODUCTS, 20, 3),
    HEAVIER_AND_SHORT: (1, 20, 3),
}
"""Products of rate and RTT in a buffer, number of readers, and weight factor of a connection."""
EDGE_READINGS = Study(
    "edge-readings",
    "The home line under other readings (the table)",
    "edge.toml",
    variants={
        f"{reading}, {line(name, kbps)}": {
            **_edge(name, kbps, products),
            "flow.web.count": readers,
            "flow.web.size": f"pareto {7400 * weight} B 1.2",
        }
        for reading, (products, readers, weight) in OTHER_LINES.items()
        for kbps in EDGE_KBPS
        for name in EDGE_QUEUES
    },
    seeds=5,
    quick_variants=(),
)


SEARCHED_PRODUCTS = (1, 2, 3, 4)


def home(products: int, name: str, kbps: int) -> str:
    """The name of a variant of the search."""
    return f"{products} products, {line(name, kbps)}"


HOMES = Study(
    "homes",
    "The home line with buffers of one to four products of rate and RTT",
    "edge.toml",
    variants={
        home(products, name, kbps): _edge(name, kbps, products)
        for products in SEARCHED_PRODUCTS
        for name in EDGE_QUEUES
        for kbps in EDGE_KBPS
    },
    first_seed=101,
)
"""Run by `search` alone."""


def lines_under(reading: str) -> dict[tuple[str, int], Variant]:
    """The home lines under another reading."""
    return {
        (name, kbps): EDGE_READINGS[f"{reading}, {line(name, kbps)}"]
        for kbps in EDGE_KBPS
        for name in EDGE_QUEUES
    }


STUDIES = (
    STATIC,
    MIXED,
    READINGS,
    SLOW,
    WEB,
    DEGRADED,
    STEP_READINGS,
    EDGE,
    EDGE_READINGS,
)

# ------------------------------------------------------------------------- readings, for the matrix

SWAPS: Mapping[str, Swap] = {
    **{
        f"static links: {name}": {
            plain(CODEL, mbps): READINGS[f"{name}, {mbps:g} Mbit/s"] for mbps in MBPS
        }
        for name in _READ
    },
    **{
        f"the stepping link: {name}": {STEPPED[CODEL, LARGE]: STEP_READINGS[name]}
        for name in _OTHER_STEPS
    },
    f"the stepping link: {IN_BYTES}": {
        STEPPED[RED, packets]: STEPPED[IN_BYTES, packets] for packets in (LARGE, SMALL)
    },
    **{
        ON_OTHER_SEEDS
        if products == HOME_PRODUCTS
        else f"the home line: buffers of {products} products, searched": {
            LINES[name, kbps]: HOMES[home(products, name, kbps)] for name, kbps in LINES
        }
        for products in SEARCHED_PRODUCTS
    },
    **{
        f"the home line: {reading}": {
            LINES[at]: variant for at, variant in lines_under(reading).items()
        }
        for reading in OTHER_LINES
    },
}
NO_DIFFERENCE: Swap = {
    **{LINES[CODEL, kbps]: LINES[TAIL, kbps] for kbps in EDGE_KBPS},
    **{one: STEPPED[TAIL, at[1]] for at, one in STEPPED.items() if at[0] != TAIL},
    **{one: SETTINGS[replace(at, queue=TAIL)] for at, one in SETTINGS.items() if at.queue != TAIL},
    **{SLOW[name]: SLOW[name.replace(RED, CODEL)] for name in SLOW.variants if RED in name},
}
"""The reading "no difference" (`readings`): Tail Drop's runs replace those of the others; on slow
links, where Tail Drop was not run, CoDel's replace RED's."""
