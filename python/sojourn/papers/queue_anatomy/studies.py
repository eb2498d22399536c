"""What is run, under two readings of the qdisc.

The published numbers contradict each other as long as the qdisc is what the source says it is, a
FIFO. Two readings are run side by side, at the same rate:

    fifo    one FIFO of packets, as its section 3.2 says
    bands   pfifo_fast, the default of Linux at the time: files go in its last band, pings pass them, in the qdisc only

`bands` explains more, so the verdicts are of it; every claim says what `fifo` gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sojourn.papers.study import Changes, Study, Variant

Named = dict[str, Changes]

QDISC = {"bands": "pfifo_fast limit {} variant shared", "fifo": "pfifo limit {}"}
READING = {"bands": "pings pass the files in the qdisc (pfifo_fast)", "fifo": "one FIFO"}
MAIN, OTHER = "bands", "fifo"

DEFAULT_RING, DEFAULT_QDISC = 512, 1000
RINGS = (80, 128, 256, 512, 1024, 2048, 4096)
QDISCS = (0, 80, 256, 512, 1024, 2048, 4096)
"""The source's own list: 0, 80, 2^8 to 2^12."""
TOTAL = 5000
"""Packets in ring and qdisc together, in the comparison of BQL."""
BQL_RINGS = (80, 512, 1024, 2048, 4096)


def name(reading: str, ring: int, qdisc: int) -> str:
    """A variant's name: "bands ring 512 qdisc 1000"."""
    return f"{reading} ring {ring} qdisc {qdisc}"


def queues(reading: str, ring: int, qdisc: int, **more: Any) -> dict[str, Any]:
    """A ring and a qdisc of these many packets, and what else differs from the file."""
    # Linux takes a txqueuelen of 0 for 1.
    return {
        "bottleneck.down.qdisc": QDISC[reading].format(max(qdisc, 1)),
        "bottleneck.down.ring": ring,
        **more,
    }


def in_guest(variants: Named, names: Sequence[str]) -> Named:
    """What differs where the kernel itself runs them: today's pfifo_fast has a limit for each band,
    and no other kind.

    A guest takes a quarter of a minute for a seed, so it gets the cases that decide.
    """
    words = {one: str(variants[one]["bottleneck.down.qdisc"]) for one in names}
    return {
        one: {"bottleneck.down.qdisc": said.removesuffix(" variant shared")}
        for one, said in words.items()
    }


# ---------------------------------------------------------------------------------------- studies

_RING: Named = {
    name(reading, ring, DEFAULT_QDISC): queues(reading, ring, DEFAULT_QDISC)
    for reading in QDISC
    for ring in RINGS
}
_RING_QUICK = tuple(
    name(reading, ring, DEFAULT_QDISC) for reading in QDISC for ring in (80, 512, 4096)
)
_RING_KERNEL = in_guest(
    _RING, [one for one in _RING_QUICK if one != name(OTHER, 80, DEFAULT_QDISC)]
)

_QDISC_SIZES: Named = {
    name(reading, DEFAULT_RING, qdisc): queues(reading, DEFAULT_RING, qdisc)
    for reading in QDISC
    for qdisc in QDISCS
}
_QDISC_QUICK = tuple(
    name(reading, DEFAULT_RING, qdisc) for reading in QDISC for qdisc in (80, 512, 1024, 4096)
)
_QDISC_KERNEL = in_guest(_QDISC_SIZES, [name(MAIN, DEFAULT_RING, qdisc) for qdisc in (80, 4096)])

_SURFACE: Named = {
    name(reading, ring, qdisc): queues(reading, ring, qdisc)
    for reading in QDISC
    for ring in RINGS
    if ring != DEFAULT_RING
    for qdisc in QDISCS
}
"""Figures 5 and 6, without the line of the default ring, which is figure 4."""
_SURFACE_QUICK = tuple(
    name(reading, ring, qdisc)
    for reading in QDISC
    for ring in (80, 4096)
    for qdisc in (80, 512, 1024, 4096)
)


def bql_name(reading: str, ring: int, bql: bool) -> str:
    """ "bands ring 2048 qdisc 2952 BQL"."""
    return name(reading, ring, TOTAL - ring) + (" BQL" if bql else "")


_BQL: Named = {
    bql_name(reading, ring, bql): queues(
        reading, ring, TOTAL - ring, **{"bottleneck.down.bql": bql}
    )
    for reading in QDISC
    for bql in (False, True)
    for ring in BQL_RINGS
}
_BQL_QUICK = tuple(
    bql_name(reading, ring, bql)
    for reading in QDISC
    for bql in (False, True)
    for ring in (80, 2048, 4096)
)
_BQL_KERNEL = in_guest(
    _BQL,
    [
        *(bql_name(reading, 2048, bql) for reading in QDISC for bql in (False, True)),
        *(bql_name(MAIN, ring, True) for ring in (80, 4096)),
    ],
)

CURES = {
    "fifo": "pfifo limit 904",
    "bands": "pfifo_fast limit 904 variant shared",
    "codel": "codel",
    "fq_codel": "fq_codel",
}
_CURE: Named = {
    f"{cure}{' BQL' if bql else ''}": {
        "bottleneck.down.qdisc": words,
        "bottleneck.down.ring": 4096,
        "bottleneck.down.bql": bql,
    }
    for bql in (False, True)
    for cure, words in CURES.items()
}
_CURE_KERNEL = ("fifo BQL", "codel", "codel BQL")

_WINDOW: Named = {
    "ring 512": {"record.flow": "10 s"},
    "ring 4096": {"bottleneck.down.ring": 4096, "record.flow": "10 s"},
    "ring 512, buffer 6 MiB": {"flow.0.tcp.receive_buffer_max": "6 MiB", "record.flow": "10 s"},
}

_SPEED_CHANGES: Named = {
    "4 Mbit/s": {"duration": "3600 s"},
    "10 Mbit/s": {"duration": "1500 s", "flow.1.interval": "500 ms"},
    "100 Mbit/s": {
        "duration": "150 s",
        "flow.1.interval": "50 ms",
        "record.flow": "10 s",
        "record.queue": "2 s",
    },
    "1 Gbit/s": {
        "duration": "15 s",
        "flow.1.interval": "5 ms",
        "record.flow": "1 s",
        "record.queue": "200 ms",
    },
}
SPEEDS = tuple(_SPEED_CHANGES)
_RATES: Named = {
    f"{rate} {name(reading, ring, DEFAULT_QDISC)}": queues(
        reading, ring, DEFAULT_QDISC, **{"bottleneck.down.rate": rate}, **more
    )
    for rate, more in _SPEED_CHANGES.items()
    for reading in QDISC
    for ring in (512, 4096)
}

_RATES_QUICK = tuple(
    f"10 Mbit/s {name(reading, ring, DEFAULT_QDISC)}" for reading in QDISC for ring in (512, 4096)
)

BELIEVED, RENO, PLAIN_START = "timers believed", "Reno", "no HyStart"
TCPS: Mapping[str, Mapping[str, Any]] = {
    BELIEVED: {
        "flow.0.tcp.frto": False,
        "flow.0.tcp.undo": False,
        "flow.0.tcp.min_rto_on_variance": False,
    },
    RENO: {"flow.0.congestion": "reno"},
    PLAIN_START: {"flow.0.tcp.hystart": False},
}
"""`BELIEVED`: whatever a timer takes for lost is sent again, and the window stays down: TCP before
F-RTO and undo, and with the timer of RFC 6298. Linux's, which remembers the largest variation of a
round trip, hardly ever goes off here for nothing."""
SIZES = ((80, 1000), (512, 1000), (4096, 1000), (512, 80), (512, 4096))
"""Ring and qdisc, where other TCPs are tried."""
PER_BAND = ((512, 80), (512, 1000), (4096, 1000))
"""And where each band has the limit."""


def tcp_name(tcp: str, ring: int, qdisc: int, reading: str = MAIN) -> str:
    """ "Reno, bands ring 512 qdisc 1000"."""
    return f"{tcp}, {name(reading, ring, qdisc)}"


SEGMENTS = 44
"""Segments: 64 kB, the widest window without window scaling."""
_NARROW_QDISCS: Named = {
    **{
        name(MAIN, DEFAULT_RING, qdisc): queues(
            MAIN, DEFAULT_RING, qdisc, **{"flow.0.tcp.max_window": SEGMENTS}
        )
        for qdisc in QDISCS
    },
    **{
        tcp_name(BELIEVED, DEFAULT_RING, qdisc): queues(
            MAIN, DEFAULT_RING, qdisc, **{"flow.0.tcp.max_window": SEGMENTS}, **TCPS[BELIEVED]
        )
        for qdisc in QDISCS
    },
}
_NARROW_QUICK = tuple(
    one
    for qdisc in (80, 512, 1024, 4096)
    for one in (name(MAIN, DEFAULT_RING, qdisc), tcp_name(BELIEVED, DEFAULT_RING, qdisc))
)

_OTHERS: Named = {
    **{
        tcp_name(tcp, ring, qdisc): queues(MAIN, ring, qdisc, **more)
        for tcp, more in TCPS.items()
        for ring, qdisc in SIZES
        if tcp != PLAIN_START or (ring, qdisc) == (4096, 1000)
    },
    tcp_name(BELIEVED, 4096, 1000, OTHER): queues(OTHER, 4096, 1000, **TCPS[BELIEVED]),
    **{
        f"limit per band, ring {ring} qdisc {qdisc}": {
            "bottleneck.down.qdisc": f"pfifo_fast limit {qdisc}",
            "bottleneck.down.ring": ring,
        }
        for ring, qdisc in PER_BAND
    },
    **{
        f"64 kB packets, qdisc {TOTAL - ring}, BQL": queues(
            MAIN, ring, TOTAL - ring, **{"bottleneck.down.bql": True, "flow.0.tcp.mss": 64000}
        )
        for ring in (80, 2048, 4096)
    },
}
_OTHERS_QUICK = tuple(one for one in _OTHERS if one.startswith((BELIEVED, RENO)))

_STICK: Named = {
    name(reading, ring, qdisc): {"link.1.qdisc": QDISC[reading].format(qdisc), "link.1.ring": ring}
    for reading in QDISC
    for ring, qdisc in ((512, 1000), (4096, 1000), (2048, 2952))
}

COEXISTENCE_QDISCS = {
    "Drop Tail, 1000": "pfifo limit 1000",
    "Drop Tail, 100": "pfifo limit 100",
    "RED": "red limit 60000 min 5000 max 15000 avpkt 1000 burst 10",
    "CoDel": "codel",
    "fq_codel": "fq_codel",
}
LOW = {"LEDBAT": "ledbat", "Vegas": "vegas", "CUBIC": "cubic"}
_COEXISTENCE: Named = {
    **{
        f"{low}, {qdisc}": {"flow.1.congestion": word, "bottleneck.down.qdisc": words}
        for low, word in LOW.items()
        for qdisc, words in COEXISTENCE_QDISCS.items()
    },
    **{
        f"{low} alone": {"flow.0.congestion": word, "flow.1.congestion": word}
        for low, word in LOW.items()
        if low != "CUBIC"
    },
}

# ----------------------------------------------------------------------------------------- studies

_SHORT = {"duration": "1600 s", "flow.0.size": "16 MiB"}
"""Quick: files of half the size."""
_KERNEL_SEEDS = 2
"""Seeds differ in when the copies start, within a second of half an hour."""

RING = Study(
    "ring",
    "The ring's size, qdisc 1000 (section 4.1, figure 3)",
    "testbed.toml",
    variants=_RING,
    seeds=10,
    quick=_SHORT,
    quick_variants=_RING_QUICK,
    kernel_variants=_RING_KERNEL,
    kernel_seeds=_KERNEL_SEEDS,
)
QDISC_SIZE = Study(
    "qdisc",
    "The qdisc's size, ring 512 (section 4.2, figure 4)",
    "testbed.toml",
    variants=_QDISC_SIZES,
    seeds=10,
    quick=_SHORT,
    quick_variants=_QDISC_QUICK,
    kernel_variants=_QDISC_KERNEL,
    kernel_seeds=_KERNEL_SEEDS,
)
SURFACE = Study(
    "surface",
    "Both sizes (section 4.3, figures 5 and 6), but for the default ring",
    "testbed.toml",
    variants=_SURFACE,
    quick=_SHORT,
    quick_variants=_SURFACE_QUICK,
)
# Windows open with what arrives, so the whole files, quick or not.
WINDOW = Study(
    "window", "The advertised window (section 4.4, figure 7)", "testbed.toml", variants=_WINDOW
)
BQL = Study(
    "bql",
    "5000 packets in ring and qdisc, without and with BQL (section 4.5, figures 8 and 9)",
    "testbed.toml",
    variants=_BQL,
    seeds=10,
    quick=_SHORT,
    quick_variants=_BQL_QUICK,
    kernel_variants=_BQL_KERNEL,
    kernel_seeds=_KERNEL_SEEDS,
)
CURE = Study(
    "cure",
    "Disciplines over a ring of 4096, without and with BQL (section 4.5)",
    "testbed.toml",
    variants=_CURE,
    quick=_SHORT,
    kernel_variants=_CURE_KERNEL,
    kernel_seeds=_KERNEL_SEEDS,
)
COEXISTENCE = Study(
    "coexistence",
    "LEDBAT and Vegas beside CUBIC (section 5)",
    "coexistence.toml",
    variants=_COEXISTENCE,
    quick={"duration": "200 s"},
)
NARROW = Study(
    "narrow",
    "Windows of at most 64 kB: when drops vanish above a qdisc of 512",
    "testbed.toml",
    variants=_NARROW_QDISCS,
    quick=_SHORT,
    quick_variants=_NARROW_QUICK,
)
RATES = Study(
    "rates",
    "Other rates",
    "testbed.toml",
    variants=_RATES,
    quick=_SHORT,
    quick_variants=_RATES_QUICK,
)
STICK = Study(
    "stick", "D with one interface for everything", "stick.toml", variants=_STICK, quick=_SHORT
)
OTHERS = Study(
    "others",
    "The other readings",
    "testbed.toml",
    variants=_OTHERS,
    quick=_SHORT,
    quick_variants=_OTHERS_QUICK,
)

STUDIES = (RING, QDISC_SIZE, SURFACE, WINDOW, BQL, CURE, COEXISTENCE, NARROW, RATES, STICK, OTHERS)


def over_rings(reading: str, qdisc: int = DEFAULT_QDISC) -> dict[int, Variant]:
    """Ring -> variant, at the default qdisc."""
    return {ring: RING[name(reading, ring, qdisc)] for ring in RINGS}


def sized(reading: str, ring: int, qdisc: int) -> Variant:
    """The variant of figures 5 and 6 with these sizes."""
    # The line of the default ring is figure 4's.
    return (QDISC_SIZE if ring == DEFAULT_RING else SURFACE)[name(reading, ring, qdisc)]


def over_qdiscs(reading: str, ring: int = DEFAULT_RING) -> dict[int, Variant]:
    """Qdisc -> variant, at this ring."""
    return {qdisc: sized(reading, ring, qdisc) for qdisc in QDISCS}


def over_bql(reading: str, bql: bool) -> dict[int, Variant]:
    """Ring -> variant, with 5000 packets in all."""
    return {ring: BQL[bql_name(reading, ring, bql)] for ring in BQL_RINGS}


def other_tcp(tcp: str, ring: int, qdisc: int = DEFAULT_QDISC) -> Variant:
    """The variant with a TCP that is not the main reading's."""
    return OTHERS[tcp_name(tcp, ring, qdisc)]


def over_rings_with(tcp: str) -> dict[int, Variant]:
    """Ring -> variant with this TCP."""
    return {ring: other_tcp(tcp, ring) for ring in (80, 512, 4096)}


def narrow(believed: bool = False) -> dict[int, Variant]:
    """Qdisc -> variant with windows of at most 64 kB."""
    before = f"{BELIEVED}, " if believed else ""
    return {qdisc: NARROW[before + name(MAIN, DEFAULT_RING, qdisc)] for qdisc in QDISCS}


def cure(discipline: str, bql: bool) -> Variant:
    """The variant of a discipline over the large ring."""
    return CURE[f"{discipline}{' BQL' if bql else ''}"]


def at_rate(rate: str, reading: str, ring: int) -> Variant:
    """The variant of another rate, at the default qdisc."""
    return RATES[f"{rate} {name(reading, ring, DEFAULT_QDISC)}"]
