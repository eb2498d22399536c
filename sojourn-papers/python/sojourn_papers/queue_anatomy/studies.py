"""The experiments, under three readings.

The published numbers contradict each other if the qdisc is the FIFO that the source describes and
only losses limit the servers' windows. Three readings are run side by side, at the same rate:

    fifo     one FIFO of packets, as in section 3.2 of the source
    bands    pfifo_fast, the default of Linux at the time: files use its last band, and pings
             overtake them in the qdisc, but not in the ring
    limited  bands, and a limit at the senders: no copy has more than 128 segments under way

`limited` explains most, so the verdicts use it; the matrix has the numbers of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from sojourn_papers.evidence import Swap
from sojourn_papers.readings import ON_OTHER_SEEDS
from sojourn_papers.study import Changes, Study, Variant

Named = dict[str, Changes]

MAIN, UNLIMITED, OTHER = "limited", "bands", "fifo"
QDISC = {
    MAIN: "pfifo_fast limit {} variant shared",
    UNLIMITED: "pfifo_fast limit {} variant shared",
    OTHER: "pfifo limit {}",
}
READING = {
    MAIN: "pings pass the files, windows end at 128 segments",
    UNLIMITED: "pings pass the files, windows end with losses",
    OTHER: "one FIFO, windows end with losses",
}
SHORT = {MAIN: "limited", UNLIMITED: "passing", OTHER: "FIFO"}
"""Their names in columns."""
BOTH = (MAIN, OTHER)
"""The readings that are run at every pair of sizes. In the third reading, pings overtake the same
packets as in the main one."""

SEGMENT_BYTES, ACK_BYTES = 1538, 90
"""On Ethernet's wire with preamble and gap: a full segment; an ACK with timestamps, 52 B of IP."""
SLOT_BYTES = 64
"""Ethernet's slot, the time to detect a collision: 51.2 us at 10 Mbit/s."""


def one_interface_mbps(contended: bool) -> float:
    """The rate that 10 Mbit/s half duplex, the slowest Ethernet, leaves for the segments to E at
    D's one interface, Mbit/s on the wire.

    Two segments and their ACK cross it twice, in and out. `contended`: before each frame the two
    stations, D and the switch, contend for a mean of one slot (Metcalfe and Boggs 1976:
    W = (1 - A)/A slots, and A = 1/2 for two stations).
    """
    frames = 2 * (2 * SEGMENT_BYTES + ACK_BYTES)
    slots = 6 * SLOT_BYTES if contended else 0
    return 10 * 2 * SEGMENT_BYTES / (frames + slots)


SEGMENTS = 128
"""The limit of `limited`. The source's +585 % are 6.85 rings of 512: 3507 packets in all, which are
30 windows of 117."""
SEARCHED = (44, 64, 90, 117, SEGMENTS, 146, 200)
"""The limits tried, segments: 64 kB (no window scaling) to 290 kB."""
RECEIVE_BUFFER = "6472 KiB"
"""The receive buffer; 4 MiB of it are advertised."""
LIMITED: Changes = {
    "flow.0.tcp.max_window": SEGMENTS,
    # Autotuning grants what arrives in a round trip, which is little from a limited sender.
    "flow.0.tcp.receive_buffer": RECEIVE_BUFFER,
}

DEFAULT_RING, DEFAULT_QDISC = 512, 1000
RINGS = (80, 128, 256, 512, 1024, 2048, 4096)
QDISCS = (0, 80, 256, 512, 1024, 2048, 4096)
"""The source's own list: 0, 80, 2^8 to 2^12."""
TOTAL = 5000
"""Packets in ring and qdisc together, in the comparison of BQL."""
BQL_RINGS = (80, 512, 1024, 2048, 4096)


_GUEST_BUFFER = f"{(SEGMENTS + 2) * 2280} B"
GUEST_LIMIT: Changes = {
    "flow.0.tcp.receive_buffer": _GUEST_BUFFER,
    "flow.0.tcp.receive_buffer_max": _GUEST_BUFFER,
}
"""The same limit in a guest, at the receiver. In a guest max_window is TCP_WINDOW_CLAMP, which
Linux 6.12 exceeds. A segment takes 2280 B of buffer; the last two segments of the window are not
used."""


def name(reading: str, ring: int, qdisc: int) -> str:
    """A variant's name: "limited ring 512 qdisc 1000"."""
    return f"{reading} ring {ring} qdisc {qdisc}"


def queues(reading: str, ring: int, qdisc: int, **more: Any) -> dict[str, Any]:
    """A ring and a qdisc of this many packets, and `more` changes of the file."""
    # Linux treats a txqueuelen of 0 as 1.
    return {
        "bottleneck.down.qdisc": QDISC[reading].format(max(qdisc, 1)),
        "bottleneck.down.ring": ring,
        **(LIMITED if reading == MAIN else {}),
        **more,
    }


def in_guest(variants: Named, names: Sequence[str]) -> Named:
    """Changes for the kernel engine: today's pfifo_fast has a limit for each band, and no other
    kind of limit.

    A guest takes a quarter of a minute for a seed, so it runs the decisive cases only.
    """
    return {
        one: {
            "bottleneck.down.qdisc": str(variants[one]["bottleneck.down.qdisc"]).removesuffix(
                " variant shared"
            ),
            **(GUEST_LIMIT if "flow.0.tcp.max_window" in variants[one] else {}),
        }
        for one in names
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
    _RING,
    [name(MAIN, ring, DEFAULT_QDISC) for ring in (80, 512, 4096)]
    + [name(OTHER, ring, DEFAULT_QDISC) for ring in (512, 4096)],
)

_QDISC_SIZES: Named = {
    name(reading, DEFAULT_RING, qdisc): queues(reading, DEFAULT_RING, qdisc)
    for reading in QDISC
    for qdisc in QDISCS
}
_QDISC_QUICK = (
    *(name(reading, DEFAULT_RING, qdisc) for reading in QDISC for qdisc in (80, 512, 4096)),
    name(MAIN, DEFAULT_RING, 1024),
)
_QDISC_KERNEL = in_guest(_QDISC_SIZES, [name(MAIN, DEFAULT_RING, qdisc) for qdisc in (80, 4096)])

_SURFACE: Named = {
    name(reading, ring, qdisc): queues(reading, ring, qdisc)
    for reading in BOTH
    for ring in RINGS
    if ring != DEFAULT_RING
    for qdisc in QDISCS
}
"""Figures 5 and 6, without the line of the default ring, which is figure 4."""
_SURFACE_QUICK = tuple(
    name(reading, ring, qdisc) for reading in BOTH for ring in (80, 4096) for qdisc in (80, 4096)
)


def bql_name(reading: str, ring: int, bql: bool) -> str:
    """ "limited ring 2048 qdisc 2952 BQL"."""
    return name(reading, ring, TOTAL - ring) + (" BQL" if bql else "")


_BQL: Named = {
    bql_name(reading, ring, bql): queues(
        reading, ring, TOTAL - ring, **{"bottleneck.down.bql": bql}
    )
    for reading in BOTH
    for bql in (False, True)
    for ring in BQL_RINGS
}
_BQL_QUICK = tuple(
    bql_name(reading, ring, bql)
    for reading in BOTH
    for bql in (False, True)
    for ring in (80, 2048, 4096)
)
_BQL_KERNEL = in_guest(
    _BQL,
    [
        *(bql_name(reading, 2048, bql) for reading in BOTH for bql in (False, True)),
        *(bql_name(MAIN, ring, True) for ring in (80, 4096)),
    ],
)

BANDS = "bands"
"""pfifo_fast as in the main reading, with the limit that the BQL study has at its largest ring."""
CURES = {
    "fifo": "pfifo limit 904",
    BANDS: QDISC[MAIN].format(TOTAL - 4096),
    "codel": "codel",
    "fq_codel": "fq_codel",
}
_CURE: Named = {
    f"{cure}{' BQL' if bql else ''}": {
        "bottleneck.down.qdisc": words,
        "bottleneck.down.ring": 4096,
        "bottleneck.down.bql": bql,
        **LIMITED,
    }
    for bql in (False, True)
    for cure, words in CURES.items()
    if cure != BANDS
}
_CURE_KERNEL = in_guest(_CURE, ("fifo BQL", "codel", "codel BQL"))

AUTOTUNED, NO_LIMIT = "autotuned", "no limit"
_WINDOW: Named = {
    "ring 512": {**LIMITED, "record.flow": "10 s"},
    "ring 4096": {**LIMITED, "bottleneck.down.ring": 4096, "record.flow": "10 s"},
    f"ring 512, {AUTOTUNED}": {"flow.0.tcp.max_window": SEGMENTS, "record.flow": "10 s"},
    f"ring 512, {NO_LIMIT}": {"record.flow": "10 s"},
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
_COALESCED = 16
"""Packets that the card completes at a time."""
_MBPS = {"4 Mbit/s": 4, "10 Mbit/s": 10, "100 Mbit/s": 100, "1 Gbit/s": 1000}


def coalesced(mbps: float) -> Changes:
    """Changes for a card that completes `_COALESCED` packets at a time, at this rate."""
    return {"bottleneck.down.coalesce": f"{_COALESCED * SEGMENT_BYTES * 8 / mbps:.0f} us"}


_RATES: Named = {
    f"{rate} {name(reading, ring, DEFAULT_QDISC)}": queues(
        reading,
        ring,
        DEFAULT_QDISC,
        **{"bottleneck.down.rate": rate},
        **coalesced(_MBPS[rate]),
        **more,
    )
    for rate, more in _SPEED_CHANGES.items()
    for reading in BOTH
    for ring in (512, 4096)
}

_RATES_QUICK = tuple(
    f"10 Mbit/s {name(reading, ring, DEFAULT_QDISC)}" for reading in BOTH for ring in (512, 4096)
)

BELIEVED = "timers believed"
_BELIEVES: Mapping[str, Any] = {
    "flow.0.tcp.frto": False,
    "flow.0.tcp.undo": False,
    "flow.0.tcp.min_rto_on_variance": False,
}
"""TCP before F-RTO and undo, with the timer of RFC 6298: after a timeout it retransmits everything,
and the window stays small. Linux's timer, which remembers the largest variation of a round trip,
hardly ever expires needlessly here."""
SIZES = ((80, 1000), (512, 1000), (4096, 1000), (512, 80), (512, 4096))
"""Ring and qdisc at which other TCPs are tried."""
PER_BAND = ((512, 80), (512, 1000), (4096, 1000))
"""Ring and qdisc at which each band has the limit."""


def tcp_name(tcp: str, ring: int, qdisc: int, reading: str = MAIN) -> str:
    """ "timers believed, limited ring 512 qdisc 1000"."""
    return f"{tcp}, {name(reading, ring, qdisc)}"


NARROW_WINDOW = SEARCHED[0]


def limit_name(segments: int, ring: int, qdisc: int, believed: bool = False) -> str:
    """ "timers believed, 44 segments, ring 512 qdisc 1000"."""
    before = f"{BELIEVED}, " if believed else ""
    return f"{before}{segments} segments, ring {ring} qdisc {qdisc}"


def _limit(segments: int, ring: int, qdisc: int, believed: bool = False) -> Changes:
    more = _BELIEVES if believed else {}
    return queues(MAIN, ring, qdisc, **more) | {"flow.0.tcp.max_window": segments}


_LIMIT_SIZES = (
    *((ring, DEFAULT_QDISC) for ring in (80, 512, 2048, 4096)),
    *((DEFAULT_RING, qdisc) for qdisc in (80, 512, 1024, 4096)),
)
"""Ring and qdisc: the points of figures 3 and 4 that show where drops rise, and where they end."""
LIMIT_RATES = {"4.2 Mbit/s": 4.2, "4.86 Mbit/s": 4.86}
"""Other rates than that of the main reading: without contention, and with more of it."""
_LIMITS: Named = {
    limit_name(segments, ring, qdisc, believed): _limit(segments, ring, qdisc, believed)
    for segments in SEARCHED
    for believed in ((False, True) if segments == NARROW_WINDOW else (False,))
    for ring, qdisc in _LIMIT_SIZES
} | {
    f"{rate}, {limit_name(SEGMENTS, ring, DEFAULT_QDISC)}": {
        **_limit(SEGMENTS, ring, DEFAULT_QDISC),
        "bottleneck.down.rate": rate,
        **coalesced(mbps),
    }
    for rate, mbps in LIMIT_RATES.items()
    for ring in (512, 4096)
}


def at_once(ring: int) -> str:
    """A variant's name: BQL with a card that completes each packet at once."""
    return f"completed at once, ring {ring} qdisc {TOTAL - ring} BQL"


def band_name(ring: int, qdisc: int) -> str:
    """A variant's name: the pfifo_fast of Linux since 4.16, as a guest has it."""
    return f"limit per band, ring {ring} qdisc {qdisc}"


_OTHERS: Named = {
    **{
        tcp_name(BELIEVED, ring, qdisc): queues(MAIN, ring, qdisc, **_BELIEVES)
        for ring, qdisc in SIZES
    },
    tcp_name(BELIEVED, 4096, 1000, UNLIMITED): queues(UNLIMITED, 4096, 1000, **_BELIEVES),
    **{
        band_name(ring, qdisc): {
            **LIMITED,
            "bottleneck.down.qdisc": f"pfifo_fast limit {qdisc}",
            "bottleneck.down.ring": ring,
        }
        for ring, qdisc in PER_BAND
    },
    **{
        at_once(ring): {**_BQL[bql_name(MAIN, ring, True)], "bottleneck.down.coalesce": "0 s"}
        for ring in (80, 2048, 4096)
    },
}
_OTHERS_QUICK = (
    *(tcp_name(BELIEVED, ring, qdisc) for ring, qdisc in SIZES),
    tcp_name(BELIEVED, 4096, 1000, UNLIMITED),
    *(band_name(DEFAULT_RING, qdisc) for qdisc in (80, DEFAULT_QDISC)),
    at_once(2048),
)

HALF, FULL = "half duplex", "full duplex"
_STICK: Named = {
    f"{duplex}, {name(MAIN, ring, qdisc)}": {
        "link.1.qdisc": QDISC[MAIN].format(qdisc),
        "link.1.ring": ring,
        # All packets that leave D came in over the same wire, so they get half of 10 Mbit/s.
        **({"link.1.rate": "5 Mbit/s", "duration": "3000 s"} if duplex == HALF else {}),
        **LIMITED,
    }
    for duplex in (HALF, FULL)
    for ring, qdisc in ((512, 1000), (4096, 1000), (2048, 2952))
}
_STICK_QUICK = (*list(_STICK)[:3], f"{FULL}, {name(MAIN, 4096, 1000)}")

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
    "LEDBAT alone": {"flow.0.congestion": "ledbat", "flow.1.congestion": "ledbat"},
}

# ----------------------------------------------------------------------------------------- studies

_SHORT = {"duration": "1600 s", "flow.0.size": "16 MiB"}
"""Changes of the quick version: files of half the size."""
_CURVE_SEEDS = 2
"""Seeds of variants that only draw a curve. Seeds differ in the start times of the copies, which
changes the third digit. Judged variants have five seeds: the intervals of mean RTTs are then a
thousandth of them, for tolerances of 10 to 25 %."""
_QUICK_JUDGED_SEEDS, _QUICK_CURVE_SEEDS = 2, 1
"""Seeds of the quick version, for judged variants and for curves."""
_KERNEL_SEEDS = 2
"""Seeds differ in the start times of the copies, by at most a second in half an hour."""

_judges = partial(Study, quick=_SHORT, quick_seeds=_QUICK_JUDGED_SEEDS, kernel_seeds=_KERNEL_SEEDS)
_tells = partial(
    Study,
    seeds=_CURVE_SEEDS,
    quick=_SHORT,
    quick_seeds=_QUICK_CURVE_SEEDS,
    kernel_seeds=_KERNEL_SEEDS,
)

RING = _judges(
    "ring",
    "The ring's size, qdisc 1000 (section 4.1, figure 3)",
    "testbed.toml",
    variants=_RING,
    quick_variants=_RING_QUICK,
    kernel_variants=_RING_KERNEL,
)
QDISC_SIZE = _tells(
    "qdisc",
    "The qdisc's size, ring 512 (section 4.2, figure 4)",
    "testbed.toml",
    variants=_QDISC_SIZES,
    quick_variants=_QDISC_QUICK,
    kernel_variants=_QDISC_KERNEL,
)
SURFACE = _tells(
    "surface",
    "Both sizes (section 4.3, figures 5 and 6), but for the default ring",
    "testbed.toml",
    variants=_SURFACE,
    quick_variants=_SURFACE_QUICK,
)
# Windows open with the data that arrives, so the quick version has files of the full size, too.
WINDOW = Study(
    "window",
    "The advertised window (section 4.4, figure 7)",
    "testbed.toml",
    variants=_WINDOW,
    quick_seeds=_QUICK_CURVE_SEEDS,
)
BQL = _judges(
    "bql",
    "5000 packets in ring and qdisc, without and with BQL (section 4.5, figures 8 and 9)",
    "testbed.toml",
    variants=_BQL,
    quick_variants=_BQL_QUICK,
    kernel_variants=_BQL_KERNEL,
)
CURE = _tells(
    "cure",
    "Disciplines over a ring of 4096, without and with BQL (section 4.5)",
    "testbed.toml",
    variants=_CURE,
    kernel_variants=_CURE_KERNEL,
)
COEXISTENCE = Study(
    "coexistence",
    "LEDBAT and Vegas beside CUBIC (section 5)",
    "coexistence.toml",
    variants=_COEXISTENCE,
    quick={"duration": "200 s"},
    quick_seeds=2,
)
LIMITS = _tells(
    "limits",
    "Limits of the servers' windows: how far drops rise, and where they end",
    "testbed.toml",
    variants=_LIMITS,
    first_seed=101,
)
"""Studies that only `search` runs."""
RATES = _tells(
    "rates",
    "Other rates",
    "testbed.toml",
    variants=_RATES,
    quick_variants=_RATES_QUICK,
)
STICK = _tells(
    "stick",
    "D with one interface for everything",
    "stick.toml",
    variants=_STICK,
    quick_variants=_STICK_QUICK,
)
OTHERS = _tells(
    "others",
    "The other readings",
    "testbed.toml",
    variants=_OTHERS,
    quick_variants=_OTHERS_QUICK,
)

STUDIES = (RING, QDISC_SIZE, SURFACE, WINDOW, BQL, CURE, COEXISTENCE, RATES, STICK, OTHERS)


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
    """Ring -> variant, with 5000 packets in both queues together."""
    return {ring: BQL[bql_name(reading, ring, bql)] for ring in BQL_RINGS}


def other_tcp(tcp: str, ring: int, qdisc: int = DEFAULT_QDISC, reading: str = MAIN) -> Variant:
    """The variant with a TCP that is not the reading's own."""
    return OTHERS[tcp_name(tcp, ring, qdisc, reading)]


def rings_within(segments: int, believed: bool = False) -> dict[int, Variant]:
    """Ring -> variant with windows of at most these segments."""
    return {
        ring: LIMITS[limit_name(segments, ring, qdisc, believed)]
        for ring, qdisc in _LIMIT_SIZES
        if qdisc == DEFAULT_QDISC
    }


def qdiscs_within(segments: int, believed: bool = False) -> dict[int, Variant]:
    """Qdisc -> variant with windows of at most these segments."""
    return {
        qdisc: LIMITS[limit_name(segments, ring, qdisc, believed)]
        for ring, qdisc in _LIMIT_SIZES
        if qdisc != DEFAULT_QDISC
    }


def limit_at_rate(rate: str, ring: int) -> Variant:
    """The variant of the chosen limit at another rate, at the default qdisc."""
    return LIMITS[f"{rate}, {limit_name(SEGMENTS, ring, DEFAULT_QDISC)}"]


def cure(discipline: str, bql: bool) -> Variant:
    """The variant of a discipline over the large ring."""
    if discipline == BANDS:
        return over_bql(MAIN, bql)[4096]
    return CURE[f"{discipline}{' BQL' if bql else ''}"]


def at_rate(rate: str, reading: str, ring: int) -> Variant:
    """The variant of another rate, at the default qdisc."""
    return RATES[f"{rate} {name(reading, ring, DEFAULT_QDISC)}"]


# ------------------------------------------------------------------------ readings, for the matrix


def _instead(
    rings: Mapping[int, Variant],
    qdiscs: Mapping[int, Variant] | None = None,
    more: Swap | None = None,
) -> Swap:
    """The replacements of the main reading's variants over ring and qdisc, and `more`; the other
    variants have none."""
    judged = [
        study[one]
        for study in (RING, QDISC_SIZE, SURFACE, BQL)
        for one in study.variants
        if one.startswith(MAIN)
    ]
    return {
        **dict.fromkeys(judged),
        **{over_rings(MAIN)[ring]: one for ring, one in rings.items()},
        **{over_qdiscs(MAIN)[qdisc]: one for qdisc, one in (qdiscs or {}).items()},
        **(more or {}),
    }


def _fifo() -> Swap:
    """The replacements for a FIFO everywhere."""
    surface = {sized(MAIN, *size): sized(OTHER, *size) for size in product(RINGS, QDISCS)}
    under_bql = {
        over_bql(MAIN, bql)[ring]: over_bql(OTHER, bql)[ring]
        for bql in (False, True)
        for ring in BQL_RINGS
    }
    return _instead(over_rings(OTHER), over_qdiscs(OTHER), {**surface, **under_bql})


_RECEIVE: Mapping[str, Swap] = {
    f"receive buffer {words}": {WINDOW["ring 512"]: WINDOW[f"ring 512, {name_}"]}
    for words, name_ in (("autotuned", AUTOTUNED), ("autotuned, windows unlimited", NO_LIMIT))
}
SWAPS: Mapping[str, Swap] = {
    "one FIFO, windows unlimited": _fifo(),
    "windows unlimited": _instead(over_rings(UNLIMITED), over_qdiscs(UNLIMITED)),
    **{
        ON_OTHER_SEEDS if segments == SEGMENTS else f"windows of {segments} segments": _instead(
            rings_within(segments), qdiscs_within(segments)
        )
        for segments in SEARCHED
    },
    "timers believed": _instead(
        {ring: other_tcp(BELIEVED, ring) for ring, qdisc in SIZES if qdisc == DEFAULT_QDISC},
        {qdisc: other_tcp(BELIEVED, ring, qdisc) for ring, qdisc in SIZES if qdisc in QDISCS},
    ),
    **{
        rate: _instead({ring: limit_at_rate(rate, ring) for ring in (512, 4096)})
        for rate in LIMIT_RATES
    },
    "10 Mbit/s": _instead({ring: at_rate("10 Mbit/s", MAIN, ring) for ring in (512, 4096)}),
    **{
        f"one interface, {duplex}": _instead(
            {ring: STICK[f"{duplex}, {name(MAIN, ring, 1000)}"] for ring in (512, 4096)},
            more={over_bql(MAIN, False)[2048]: STICK[f"{duplex}, {name(MAIN, 2048, 2952)}"]},
        )
        for duplex in (HALF, FULL)
    },
    "limit per band": _instead(
        {ring: OTHERS[band_name(ring, DEFAULT_QDISC)] for ring in (512, 4096)}
    ),
    "completions one at a time": {
        over_bql(MAIN, True)[ring]: OTHERS[at_once(ring)] for ring in (80, 2048, 4096)
    },
    **_RECEIVE,
}
