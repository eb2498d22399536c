"""How the source was read: the two readings of the qdisc, the studies' variants, and the parameters it leaves open.

The published numbers contradict each other as long as the qdisc is what the source says it is, a FIFO. Two readings are run
side by side, at the same rate:

    fifo    one FIFO of packets, as its section 3.2 says
    bands   pfifo_fast, the default of Linux at the time: files go in its last band, pings pass them, in the qdisc only

`bands` explains more, so the verdicts are of it; every claim says what `fifo` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Reading
from sojourn.papers.queue_anatomy import measures as m

Variants = dict[str, Mapping[str, Any]]

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


def in_guest(variants: Variants, names: Sequence[str]) -> Variants:
    """What differs where the kernel itself runs them: today's pfifo_fast has a limit for each band, and no other kind.

    A guest takes a quarter of a minute for a seed, so it gets the cases that decide.
    """
    words = {one: str(variants[one]["bottleneck.down.qdisc"]) for one in names}
    return {
        one: {"bottleneck.down.qdisc": said.removesuffix(" variant shared")} for one, said in words.items()
    }


# ---------------------------------------------------------------------------------------------------------- studies

RING: Variants = {
    name(reading, ring, DEFAULT_QDISC): queues(reading, ring, DEFAULT_QDISC)
    for reading in QDISC
    for ring in RINGS
}
RING_QUICK = tuple(name(reading, ring, DEFAULT_QDISC) for reading in QDISC for ring in (80, 512, 4096))
RING_KERNEL = in_guest(RING, [one for one in RING_QUICK if one != name(OTHER, 80, DEFAULT_QDISC)])

QDISC_SIZES: Variants = {
    name(reading, DEFAULT_RING, qdisc): queues(reading, DEFAULT_RING, qdisc)
    for reading in QDISC
    for qdisc in QDISCS
}
QDISC_QUICK = tuple(
    name(reading, DEFAULT_RING, qdisc) for reading in QDISC for qdisc in (80, 512, 1024, 4096)
)
QDISC_KERNEL = in_guest(QDISC_SIZES, [name(MAIN, DEFAULT_RING, qdisc) for qdisc in (80, 4096)])

SURFACE: Variants = {
    name(reading, ring, qdisc): queues(reading, ring, qdisc)
    for reading in QDISC
    for ring in RINGS
    if ring != DEFAULT_RING
    for qdisc in QDISCS
}
"""Figures 5 and 6, without the line of the default ring, which is figure 4."""
SURFACE_QUICK = tuple(
    name(reading, ring, qdisc) for reading in QDISC for ring in (80, 4096) for qdisc in (80, 512, 1024, 4096)
)


def surface_study(ring: int) -> str:
    """The study that has this ring with the surface's qdiscs."""
    return "qdisc" if ring == DEFAULT_RING else "surface"


def bql_name(reading: str, ring: int, bql: bool) -> str:
    """ "bands ring 2048 qdisc 2952 BQL"."""
    return name(reading, ring, TOTAL - ring) + (" BQL" if bql else "")


BQL: Variants = {
    bql_name(reading, ring, bql): queues(reading, ring, TOTAL - ring, **{"bottleneck.down.bql": bql})
    for reading in QDISC
    for bql in (False, True)
    for ring in BQL_RINGS
}
BQL_QUICK = tuple(
    bql_name(reading, ring, bql) for reading in QDISC for bql in (False, True) for ring in (80, 2048, 4096)
)
BQL_KERNEL = in_guest(
    BQL,
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
CURE: Variants = {
    f"{cure}{' BQL' if bql else ''}": {"bottleneck.down.qdisc": words, "bottleneck.down.ring": 4096, "bottleneck.down.bql": bql}
    for bql in (False, True)
    for cure, words in CURES.items()
}  # fmt: skip
CURE_KERNEL = ("fifo BQL", "codel", "codel BQL")

WINDOW: Variants = {
    "ring 512": {"record.flow": "10 s"},
    "ring 4096": {"bottleneck.down.ring": 4096, "record.flow": "10 s"},
    "ring 512, buffer 6 MiB": {"flow.0.tcp.receive_buffer_max": "6 MiB", "record.flow": "10 s"},
}

_SPEEDS: Variants = {
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
SPEEDS = tuple(_SPEEDS)
RATES: Variants = {
    f"{rate} {name(reading, ring, DEFAULT_QDISC)}": queues(
        reading, ring, DEFAULT_QDISC, **{"bottleneck.down.rate": rate}, **more
    )
    for rate, more in _SPEEDS.items()
    for reading in QDISC
    for ring in (512, 4096)
}

RATES_QUICK = tuple(
    f"10 Mbit/s {name(reading, ring, DEFAULT_QDISC)}" for reading in QDISC for ring in (512, 4096)
)

BELIEVED, RENO, PLAIN_START = "timers believed", "Reno", "no HyStart"
TCPS: Mapping[str, Mapping[str, Any]] = {
    BELIEVED: {"flow.0.tcp.frto": False, "flow.0.tcp.undo": False, "flow.0.tcp.min_rto_on_variance": False},
    RENO: {"flow.0.congestion": "reno"},
    PLAIN_START: {"flow.0.tcp.hystart": False},
}
"""`BELIEVED`: whatever a timer takes for lost is sent again, and the window stays down: TCP before F-RTO and undo, and with the timer of
RFC 6298. Linux's, which remembers the largest variation of a round trip, hardly ever goes off here for nothing."""
SIZES = ((80, 1000), (512, 1000), (4096, 1000), (512, 80), (512, 4096))
"""Ring and qdisc, where other TCPs are tried."""
PER_BAND = ((512, 80), (512, 1000), (4096, 1000))
"""And where each band has the limit."""


def tcp_name(tcp: str, ring: int, qdisc: int, reading: str = MAIN) -> str:
    """ "Reno, bands ring 512 qdisc 1000"."""
    return f"{tcp}, {name(reading, ring, qdisc)}"


NARROW = 44
"""Segments: 64 kB, the widest window without window scaling."""
NARROW_QDISCS: Variants = {
    **{
        name(MAIN, DEFAULT_RING, qdisc): queues(
            MAIN, DEFAULT_RING, qdisc, **{"flow.0.tcp.max_window": NARROW}
        )
        for qdisc in QDISCS
    },
    **{
        tcp_name(BELIEVED, DEFAULT_RING, qdisc): queues(
            MAIN, DEFAULT_RING, qdisc, **{"flow.0.tcp.max_window": NARROW}, **TCPS[BELIEVED]
        )
        for qdisc in QDISCS
    },
}
NARROW_QUICK = tuple(
    one
    for qdisc in (80, 512, 1024, 4096)
    for one in (name(MAIN, DEFAULT_RING, qdisc), tcp_name(BELIEVED, DEFAULT_RING, qdisc))
)

OTHERS: Variants = {
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
OTHERS_QUICK = tuple(one for one in OTHERS if one.startswith((BELIEVED, RENO)))

STICK: Variants = {
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
COEXISTENCE: Variants = {
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


# --------------------------------------------------------------------------------------------------------- readings


def _bands(evidence: Evidence) -> str:
    def said(reading: str) -> str:
        small, large = (evidence.mean("ring", name(reading, ring, 1000), m.rtt_s) for ring in (512, 4096))
        p95, cured = (evidence.mean("bql", bql_name(reading, 2048, bql), m.p95_s) for bql in (False, True))
        few, many = (evidence.mean("qdisc", name(reading, 512, qdisc), m.rtt_s) for qdisc in (80, 4096))
        return (
            f"ring 512 to 4096: {small:.2f} to {large:.2f} s, {m.more_percent(large, small):+.0f} %; qdisc 80 to 4096: {few:.2f} to {many:.2f} s; "
            f"95th percentile of 2048 and 2952: {p95:.1f} s, with BQL {1e3 * cured:.0f} ms"
        )

    return f"FIFO: {said('fifo')}. Bands: {said('bands')}."


def _rates(evidence: Evidence) -> str:
    told = []
    for rate in SPEEDS:
        for reading in QDISC:
            names = [f"{rate} {name(reading, ring, 1000)}" for ring in (512, 4096)]
            if all(evidence.has("rates", one) for one in names):
                small, large = (evidence.mean("rates", one, m.rtt_s) for one in names)
                told.append(f"{rate}, {reading}: {_time(small)} at ring 512, {_time(large)} at 4096")
    return (
        "; ".join(told)
        + ". Full queues scale with 1/rate; at 1 Gbit/s, where the copies last 9 s, the large ring is not always full."
        if told
        else ""
    )


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1e3 * seconds:.0f} ms"


def _stick(evidence: Evidence) -> str:
    told = []
    for reading in QDISC:
        large, small = (evidence.mean("stick", name(reading, ring, 1000), m.rtt_s) for ring in (4096, 512))
        p95 = evidence.mean("stick", name(reading, 2048, 2952), m.p95_s)
        told.append(
            f"{reading}: {small:.2f} s at ring 512, {large:.1f} s at 4096, 95th percentile of 2048 and 2952 {p95:.1f} s"
        )
    return (
        "By the letter of section 3.1, D has one interface and everything leaves through it, the ping twice. At 10 Mbit/s: "
        + "; ".join(told)
        + ". Twice a full ring of files would be 10.1 s, as 5 Mbit/s once; but a third of its packets are ACKs, which are short."
    )


def _tcp(evidence: Evidence) -> str:
    def said(study: str, variant: str) -> str:
        rtt, again, needless, rate = (
            evidence.mean(study, variant, one)
            for one in (m.rtt_s, m.retransmissions, m.needless, m.throughput_mbps)
        )
        return f"{rtt:.1f} s, {_thousands(again)} retransmissions, {100 * needless:.0f} % of them needless, {rate:.2f} Mbit/s"

    told = [f"At ring 4096 (bands): {said('ring', name(MAIN, 4096, 1000))}"]
    told += [
        f"{tcp[0].upper()}{tcp[1:]}: {said('others', variant)}"
        for tcp in TCPS
        for variant in (tcp_name(tcp, 4096, 1000),)
        if evidence.has("others", variant)
    ]
    return (
        ". ".join(told)
        + ". Timers believed gives what section 4.1 describes, by the timer and not by fast retransmit: whatever a timer takes for lost is sent again, and the window stays down."
        + " The timer is RFC 6298's: Linux's own remembers the largest variation of a round trip and hardly ever goes off for nothing here."
    )


def _thousands(count: float) -> str:
    return f"{count / 1e3:.0f} thousand" if count >= 9500 else f"{count:.0f}"


def _limit(evidence: Evidence) -> str:
    told = []
    for ring, qdisc in PER_BAND:
        one = f"limit per band, ring {ring} qdisc {qdisc}"
        if not evidence.has("others", one):
            return ""
        ours = ("qdisc" if qdisc == 80 else "ring", name(MAIN, ring, qdisc))
        rtt, lost, again = (
            (evidence.mean("others", one, measure), evidence.mean(*ours, measure))
            for measure in (m.rtt_s, m.unanswered_percent, m.retransmissions)
        )
        told.append(
            f"ring {ring}, qdisc {qdisc}: {rtt[0]:.2f} s for {rtt[1]:.2f}, {lost[0]:.0f} % of the pings lost for {lost[1]:.0f}, "
            f"{_thousands(again[0])} retransmissions for {_thousands(again[1])}"
        )
    return f"A limit for each band, as kernels since 4.16: {'; '.join(told)}."


def _buffer(evidence: Evidence) -> str:
    widest, rtt = (evidence.mean("window", "ring 512, buffer 6 MiB", one) for one in (m.widest_mb, m.rtt_s))
    ours = evidence.mean("window", "ring 512", m.rtt_s)
    return f"With today's 6 MiB, 0.63 of it advertised, the window ends at {widest:.2f} MB; the RTT is {rtt:.2f} s for {ours:.2f}."


def _narrow(evidence: Evidence) -> str:
    def dropped(variant: Callable[[int], str]) -> str:
        return ", ".join(
            f"{qdisc}: {evidence.mean('narrow', variant(qdisc), m.drops):.0f}"
            for qdisc in QDISCS
            if evidence.has("narrow", variant(qdisc))
        )

    return (
        f"Windows of at most {NARROW} segments: dropped packets by qdisc {dropped(partial(name, MAIN, DEFAULT_RING))}; if TCP believes every timer besides, "
        f"{dropped(partial(tcp_name, BELIEVED, DEFAULT_RING))}. Thirty windows are 1320 packets, more than 512 + 512 and fewer than 512 + 1024."
    )


def _offload(evidence: Evidence) -> str:
    names = {ring: f"64 kB packets, qdisc {TOTAL - ring}, BQL" for ring in (4096, 2048, 80)}
    told = [
        f"qdisc {TOTAL - ring}: {1e3 * evidence.mean('others', one, m.p95_s):.0f} ms, {evidence.mean('others', one, m.in_ring):.1f} in the ring"
        for ring, one in names.items()
        if evidence.has("others", one)
    ]
    return (
        "95th percentile with packets of 64 kB under BQL, " + "; ".join(told) + " on average." if told else ""
    )


READINGS = (
    Reading(
        "the order in the qdisc",
        "FIFO, 1000 packets, set with txqueuelen (section 3.2)",
        "pfifo_fast; files carry the TOS of a copy by scp (throughput), pings none",
        "txqueuelen is the length of pfifo_fast, Linux's default then, and it has three bands. Under a FIFO an RTT that does not depend on the qdisc's "
        "size (figure 4), +585 % for a ring 8 times as long, and 106 ms behind 2952 packets are impossible at any rate. If pings pass the files in "
        "the qdisc all three follow. What speaks for a FIFO is only the 13 s of figure 8, and those exclude the rest.",
        _bands,
        searched=True,
    ),
    Reading(
        "rate of the bottleneck D to E",
        "not stated; the interfaces are Gigabit Ethernet",
        "5 Mbit/s on the wire, Ethernet framing counted",
        "A full ring of 4096 packets of 1538 bytes takes 10 s at 5.04 Mbit/s, 5000 packets take 13 s at 4.73. At 1 Gbit/s all of it is 62 ms.",
        _rates,
        searched=True,
    ),
    Reading(
        "interfaces of D",
        "one for each host; two VLANs, A to D in one, D and E in the other",
        "D to E has ring and qdisc of its own; the way back is never full",
        "The source studies one queue, and calls D to E the only bottleneck.",
        _stick,
    ),
    Reading(
        "a qdisc of 0 packets",
        "the first of the sizes of figures 5 and 6",
        "1 packet",
        "Linux takes a txqueuelen of 0 for 1: a queue must hold the packet that it hands on.",
    ),
    Reading(
        "ring sizes",
        "80 to 4096",
        "80, 128, 256, 512, 1024, 2048, 4096",
        "80 and 4096 are a driver's bounds (igb), the powers of two between them those of the qdisc.",
    ),
    Reading(
        "limit of the bands",
        "not stated",
        "1000 packets over the three bands",
        "Kernels 3.2 and 3.11 compare the whole queue with txqueuelen. So a ping can be dropped though its band is empty. The kernel engine, a 6.12, has a limit for each band.",
        _limit,
    ),
    Reading(
        "TCP",
        "not stated; Debian 6, Linux 3.2 and 3.11",
        "CUBIC with SACK, timestamps, HyStart, F-RTO and undo, RTO of at least 200 ms above the smoothed RTT; without RACK (Linux 4.4) and tail loss probe (3.10)",
        "Linux's defaults of then: a timer that went off too soon is found out by the next ACK, and the window is given back. Linux 6.12 itself, in a guest, sends at ring 4096 as many segments again "
        "as were dropped: none needlessly (`sojourn reproduce queue-anatomy --engine kernel --quick`).",
        _tcp,
    ),
    Reading(
        "receive buffer",
        "the window grows to 4 MB (figure 7)",
        "at most 6473 KiB, of which 4 MiB are advertised",
        "Chosen so that the advertised window can grow to the 4 MB that they saw; it limits no copy.",
        _buffer,
        searched=True,
    ),
    Reading(
        "limit of the servers' windows",
        "none known; section 4.4 excludes the receive window",
        "none",
        "Drops that vanish above a qdisc of 512 need a limit: CUBIC fills any buffer in half an hour. With 64 kB (no window scaling, or "
        "an application's own limit) figures 4(b) and 4(c) have nothing above 512 (and rise below it, if TCP believes every timer), but then no more than 1320 packets wait anywhere, 3.2 s, and 10 s can't be.",
        _narrow,
        searched=True,
    ),
    Reading(
        "offloads",
        "not stated",
        "none: a packet is a packet",
        "106 ms at 5 Mbit/s are 66 kB: one packet as receive offload (GRO) merges them, 64 kB. Our links carry single packets.",
        _offload,
    ),
    Reading(
        "what is averaged",
        "mean of 10 experiments, standard error",
        "pings from the first copy's start to the last one's end, once a second; 10 seeds (5 on the surfaces)",
        "ping's default interval. The ramp at the start and the end, when fewer copies are left, lower the mean; they were part of those experiments too.",
    ),
)  # fmt: skip
