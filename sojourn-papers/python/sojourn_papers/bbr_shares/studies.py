"""The experiments: one flow of BBR beside CUBIC by depth and number, the same number of both, and
queues under other disciplines than a FIFO."""

from __future__ import annotations

from collections.abc import Mapping

from sojourn_papers.evidence import Swap
from sojourn_papers.study import Changes, Study

MBPS, RTT_S = 10, 0.04
BDP = MBPS * 1e6 * RTT_S / (1500 * 8)
"""Packets."""
DEPTHS = (0.5, 1, 2, 4, 8, 16, 32)
DEEP = (2, 4, 8, 16, 32)
"""Depths that the model covers: its queue is full and longer than the path."""
CUBICS = (1, 4, 16)
VERSIONS: Mapping[str, str] = {"BBR": "bbr", "BBR 3": "bbr3"}


def fifo(depth: float) -> str:
    """A FIFO of `depth` bandwidth-delay products, in tc's syntax."""
    return f"pfifo limit {round(depth * BDP)}"


def beside(version: str, bbrs: int, cubics: int, depth: float) -> str:
    """The name of a variant."""
    return f"{bbrs} {version}, {cubics} CUBIC, {depth:g} BDP"


def _flows(version: str, bbrs: int, cubics: int) -> Changes:
    return {
        "flow.bbr.congestion": VERSIONS[version],
        "flow.bbr.count": bbrs,
        "flow.cubic.count": cubics,
    }


DEPTH = Study(
    "depth",
    "One flow of BBR beside CUBIC by the depth of the FIFO, 10 Mbit/s, 40 ms",
    "pair.toml",
    variants={
        beside(version, 1, cubics, depth): {
            **_flows(version, 1, cubics),
            "bottleneck.qdisc": fifo(depth),
        }
        for version in VERSIONS
        for cubics in CUBICS
        for depth in DEPTHS
    },
    seeds=5,
    quick={"duration": "100 s", "warmup": "50 s"},
    quick_variants=[
        *(beside("BBR", 1, cubics, depth) for cubics in (1, 16) for depth in (2, 8)),
        *(beside("BBR 3", 1, 1, depth) for depth in (2, 8)),
    ],
    kernel_variants=[beside("BBR", 1, cubics, depth) for cubics in (1, 16) for depth in (2, 8, 32)],
)

PROBED = Study(
    "probed",
    "The same with a row each 10 ms: what BBR sees when it measures the RTT",
    "pair.toml",
    variants={
        beside("BBR", 1, cubics, depth): {
            **DEPTH.variants[beside("BBR", 1, cubics, depth)],
            "record.queue": "10 ms",
            "record.flow": "10 ms",
        }
        for cubics in CUBICS
        for depth in DEEP
    },
    seeds=3,
    first_seed=101,
    quick={"duration": "100 s", "warmup": "50 s"},
    quick_variants=[beside("BBR", 1, 1, depth) for depth in (2, 8)],
    quick_seeds=1,
)

OTHER_RIVALS: Mapping[str, Changes] = {
    "Reno in CUBIC's place": {"flow.cubic.congestion": "reno"},
    "BBR starts 20 to 30 s later": {"flow.bbr.start": "uniform 20 s .. 30 s"},
    "from the start to 400 s": {"duration": "400 s", "warmup": "0 s"},
    "CUBIC without HyStart": {"flow.cubic.tcp": {"hystart": False}},
}
OTHERWISE = Study(
    "otherwise",
    "One flow of BBR beside others, or later, or longer, 10 Mbit/s, 40 ms",
    "pair.toml",
    variants={
        f"{name}: {at}": {**DEPTH.variants[at], **changes}
        for name, changes in OTHER_RIVALS.items()
        for at in (beside("BBR", 1, cubics, depth) for cubics in CUBICS for depth in DEEP)
    },
    seeds=3,
    quick_variants=(),
)

SEVERAL = (4, 16)
MANY = Study(
    "many",
    "As many flows of BBR as of CUBIC by the depth of the FIFO, 10 Mbit/s, 40 ms",
    "pair.toml",
    variants={
        beside(version, flows, flows, depth): {
            **_flows(version, flows, flows),
            "bottleneck.qdisc": fifo(depth),
        }
        for version in VERSIONS
        for flows in SEVERAL
        for depth in DEPTHS
    },
    seeds=5,
    quick={"duration": "100 s", "warmup": "50 s"},
    quick_variants=[beside("BBR", 4, 4, 8)],
    quick_seeds=1,
)

LAWS = ("codel", "pie", "fq_codel", "cake")


def law(version: str, qdisc: str) -> str:
    """The name of a variant with another discipline than a FIFO."""
    return f"{version} and CUBIC, {qdisc}"


LAW = Study(
    "law",
    "One flow of BBR beside one of CUBIC under AQM, 10 Mbit/s, 40 ms",
    "pair.toml",
    variants={
        law(version, qdisc): {**_flows(version, 1, 1), "bottleneck.qdisc": qdisc}
        for version in VERSIONS
        for qdisc in LAWS
    },
    seeds=5,
    quick={"duration": "60 s", "warmup": "20 s"},
    quick_variants=[law("BBR", qdisc) for qdisc in ("codel", "fq_codel")],
    quick_seeds=1,
)

STUDIES = (DEPTH, PROBED, OTHERWISE, MANY, LAW)

SWAPS: Mapping[str, Swap] = {
    "version 3 in its place": {
        DEPTH[beside("BBR", 1, cubics, depth)]: DEPTH[beside("BBR 3", 1, cubics, depth)]
        for cubics in CUBICS
        for depth in DEPTHS
    },
    **{
        name: {
            DEPTH[at]: OTHERWISE[f"{name}: {at}"]
            for at in (beside("BBR", 1, cubics, depth) for cubics in CUBICS for depth in DEEP)
        }
        for name in OTHER_RIVALS
    },
}
