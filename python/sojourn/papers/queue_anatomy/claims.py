"""What the source says, in our words, as checks: in the order of its sections.

Each is judged under the main reading, in which pings pass the files in the qdisc; what a FIFO gives follows after it.
An order of magnitude is taken as the nearest power of ten: a ratio of 10^0.5 to 10^1.5 is one, 10^1.5 to 10^2.5 two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise

from sojourn.papers.evidence import Evidence, NotRun
from sojourn.papers.paper import Claim, Finding, Measure
from sojourn.papers.queue_anatomy import measures as m
from sojourn.papers.queue_anatomy import published
from sojourn.papers.queue_anatomy.reading import (
    BELIEVED,
    BQL_RINGS,
    COEXISTENCE_QDISCS,
    DEFAULT_QDISC,
    DEFAULT_RING,
    MAIN,
    OTHER,
    QDISC,
    QDISCS,
    RENO,
    RINGS,
    bql_name,
    name,
    surface_study,
    tcp_name,
)

BASE_MS = 0.5
"""The path with empty queues."""


# ------------------------------------------------------------------------------------------------- what was measured


class Sizes(dict[int, float]):
    """A queue's size -> mean: of the sizes that were run."""

    def __missing__(self, size: int) -> float:
        raise NotRun(f"size {size} was not run")


def over_rings(evidence: Evidence, reading: str, measure: Measure) -> Sizes:
    """Ring -> mean, at the default qdisc."""
    return _over(evidence, "ring", {ring: name(reading, ring, DEFAULT_QDISC) for ring in RINGS}, measure)


def over_qdiscs(evidence: Evidence, reading: str, ring: int, measure: Measure) -> Sizes:
    """Qdisc -> mean, at this ring."""
    variants = {qdisc: name(reading, ring, qdisc) for qdisc in QDISCS}
    return _over(evidence, surface_study(ring), variants, measure)


def over_bql(evidence: Evidence, reading: str, bql: bool, measure: Measure) -> Sizes:
    """Ring -> mean, with 5000 packets in all."""
    return _over(evidence, "bql", {ring: bql_name(reading, ring, bql) for ring in BQL_RINGS}, measure)


def _over(evidence: Evidence, study: str, variants: dict[int, str], measure: Measure) -> Sizes:
    return Sizes(
        {
            size: evidence.mean(study, variant, measure)
            for size, variant in variants.items()
            if evidence.has(study, variant)
        }
    )


def _beside(evidence: Evidence, said: Callable[[Evidence], str]) -> str:
    """What else is to be said, where it was run: a guest runs the main reading's deciding cases, and few others."""
    return evidence.asked(said) or ""


def orders(ratio: float) -> int:
    """Orders of magnitude: the nearest power of ten."""
    return round(math.log10(ratio))


def _grows(values: Iterable[float]) -> bool:
    known = list(values)
    return all(later > earlier for earlier, later in pairwise(known))


def _spread(values: Iterable[float]) -> float:
    """Largest over smallest."""
    known = list(values)
    if not known:
        raise NotRun("no size was run")
    return max(known) / min(known)


def _time(seconds: float) -> str:
    if seconds >= 0.995:
        return f"{seconds:.1f} s"
    return f"{1e3 * seconds:.0f} ms"


def _times(values: dict[int, float]) -> str:
    return ", ".join(f"{at}: {_time(value)}" for at, value in values.items())


def _counts(values: dict[int, float]) -> str:
    return ", ".join(f"{at}: {value:.0f}" for at, value in values.items())


# --------------------------------------------------------------------------------------------------- sections 1 and 2


def _degrades(evidence: Evidence) -> Finding:
    rates = over_rings(evidence, MAIN, m.throughput_mbps)

    def believed(evidence: Evidence) -> str:
        rate = evidence.mean("others", tcp_name(BELIEVED, 4096, DEFAULT_QDISC), m.throughput_mbps)
        return f". If TCP believes every timer, it sends again what is still queued, and {rate:.2f} are left"

    return Finding(
        rates[4096] < 0.97 * rates[80],
        f"All copies together: {rates[80]:.2f} Mbit/s at ring 80, {rates[4096]:.2f} at 4096: a full queue by itself loses no throughput"
        + _beside(evidence, believed),
    )


def _more(evidence: Evidence) -> Finding:
    ours, fifo = (published.more_at_4096(evidence, reading).mean for reading in (MAIN, OTHER))

    def believed(evidence: Evidence) -> str:
        large, small = (
            evidence.mean("others", tcp_name(BELIEVED, ring, DEFAULT_QDISC), m.rtt_s) for ring in (4096, 512)
        )
        return f", if TCP believes every timer {m.more_percent(large, small):+.0f} %"

    return Finding(
        holds=abs(ours - published.MORE_PERCENT) <= 0.15 * published.MORE_PERCENT,
        partly=orders(1 + ours / 100) == 1,
        because=f"Stated up to +585 %, ours {ours:+.0f} %{_beside(evidence, believed)}. In a FIFO 1000 packets of qdisc add to both, and it is {fifo:+.0f} %",
    )


# --------------------------------------------------------------------------------------------------------- section 4.1


def _ring(evidence: Evidence) -> Finding:
    ours, fifo = (over_rings(evidence, reading, m.rtt_s) for reading in (MAIN, OTHER))
    return Finding(_grows(ours.values()), f"Mean RTT by ring: {_times(ours)}. FIFO: {_times(fifo)}")


def _negligible(evidence: Evidence) -> Finding:
    ours = over_rings(evidence, MAIN, m.rtt_s)
    return Finding(
        holds=ours[80] < 0.05 * ours[4096],
        because=f"Ring 80: {_time(ours[80])}, {100 * ours[80] / ours[4096]:.1f} % of that of 4096; beside {BASE_MS} ms of an empty path it is not little"
        + _beside(evidence, lambda all_: f". FIFO: {_time(over_rings(all_, OTHER, m.rtt_s)[80])}"),
    )


def _ten(evidence: Evidence) -> Finding:
    mean, half, top = (
        over_rings(evidence, MAIN, measure)[4096] for measure in (m.rtt_s, m.median_s, m.p95_s)
    )
    fifo, most = (over_rings(evidence, OTHER, measure)[4096] for measure in (m.rtt_s, m.p95_s))
    return Finding(
        holds=mean > published.RTT_BLOATED_S,
        partly=top > published.RTT_BLOATED_S,
        because=f"Ring 4096: mean {mean:.2f} s, median {half:.2f} s, 95th percentile {top:.2f} s, which is the full ring; the mean has the ring's filling and emptying in it. "
        f"FIFO: {fifo:.1f} s, 95th percentile {most:.1f} s. The rate was read from this number",
    )


def _exchange(evidence: Evidence) -> Finding:
    dropped, again = (over_rings(evidence, MAIN, measure) for measure in (m.drops, m.retransmissions))
    falls, rises = dropped[4096] < dropped[80], again[4096] > 1.5 * again[80]

    def believed(evidence: Evidence) -> str:
        drop, sent = (_other_tcp(evidence, BELIEVED, measure) for measure in (m.drops, m.retransmissions))
        return f". If TCP believes every timer: dropped {_counts(drop)}; sent again {_counts(sent)}"

    return Finding(
        holds=falls and rises,
        partly=rises,
        because=f"Dropped packets by ring: {_counts(dropped)}. Retransmissions: {_counts(again)}, one for each drop. {_CLOCK}{_beside(evidence, _reno_rings)}"
        + _beside(evidence, believed),
    )


_CLOCK = "CUBIC's windows grow by the clock, not by the round trip: the longer that is, the further they are past the queue when a drop is heard of"


def _reno_rings(evidence: Evidence) -> str:
    return f". Reno's drops: {_counts(_other_tcp(evidence, RENO, m.drops))}"


def _other_tcp(evidence: Evidence, tcp: str, measure: Measure) -> Sizes:
    """Ring -> mean, of a TCP that is not the main reading's."""
    return _over(
        evidence, "others", {ring: tcp_name(tcp, ring, DEFAULT_QDISC) for ring in (80, 512, 4096)}, measure
    )


def _shares(values: dict[int, float]) -> str:
    return ", ".join(f"{at}: {100 * value:.1f} %" for at, value in values.items())


def _needless(evidence: Evidence) -> Finding:
    share = over_rings(evidence, MAIN, m.needless)

    def believed(evidence: Evidence) -> str:
        known = _other_tcp(evidence, BELIEVED, m.needless)
        return f". A TCP that believes every timer does it: {_shares(known)}. Linux 3.2 and 3.11 had F-RTO and undo, as ours has, and Linux 6.12 in a guest (engine kernel, quick) sends none again for nothing, at any ring; so why theirs did is not known"

    return Finding(
        share[4096] > 0.5 and share[80] < 0.2,
        f"Retransmissions for which nothing had been lost, by ring: {_shares(share)}{_beside(evidence, believed)}",
    )


def _which(evidence: Evidence) -> Finding:
    believed, ours = tcp_name(BELIEVED, 4096, DEFAULT_QDISC), name(MAIN, 4096, DEFAULT_QDISC)
    timers, again, share = (
        evidence.mean("others", believed, measure) for measure in (m.timeouts, m.retransmissions, m.needless)
    )
    left = evidence.mean("ring", ours, m.needless)
    return Finding(
        holds=left > 0.5 * share,
        because=f"One queue keeps the order, so three duplicate ACKs mean a loss. Where packets are sent again for nothing it is the timer: if TCP believes it, {timers:.0f} timeouts and {again:.0f} "
        f"retransmissions at ring 4096, {100 * share:.0f} % of them needless; where F-RTO and undo see through it, {100 * left:.1f} %",
    )


# -------------------------------------------------------------------------------------------------- sections 4.2, 4.3


def _flat(evidence: Evidence) -> Finding:
    ours = over_qdiscs(evidence, MAIN, DEFAULT_RING, m.rtt_s)

    def fifo(evidence: Evidence) -> str:
        known = over_qdiscs(evidence, OTHER, DEFAULT_RING, m.rtt_s)
        return f". FIFO: {_times(known)}, {_spread(known.values()):.1f} times: for a FIFO the sentence is false at any rate"

    return Finding(
        _spread(ours.values()) < 1.2, f"Mean RTT by qdisc: {_times(ours)}{_beside(evidence, fifo)}"
    )


def _order(evidence: Evidence) -> Finding:
    def compared(reading: str) -> tuple[float, str]:
        most = over_rings(evidence, reading, m.rtt_s)[4096]
        flat = over_qdiscs(evidence, reading, DEFAULT_RING, m.rtt_s)[4096]
        return (
            most / flat,
            f"{_time(most)} against {_time(flat)} at the longest qdisc, {most / flat:.1f} times",
        )

    ratio, told = compared(MAIN)
    return Finding(
        orders(ratio) == 1,
        f"{told}: the nearest power of ten is {10 ** orders(ratio)}"
        + _beside(evidence, lambda _: f". FIFO: {compared(OTHER)[1]}"),
    )


def _hump(evidence: Evidence) -> Finding:
    dropped, again = (
        over_qdiscs(evidence, MAIN, DEFAULT_RING, measure) for measure in (m.drops, m.retransmissions)
    )
    narrow, believed = (_narrow(evidence, m.drops, every) for every in (False, True))
    most = max(believed, key=believed.__getitem__)
    rises = dropped[512] > 1.05 * dropped[80] and again[512] > 1.05 * again[80]
    vanish = all(
        values[qdisc] < 0.1 * values[512] for values in (dropped, again) for qdisc in values if qdisc > 512
    )
    return Finding(
        holds=rises and vanish,
        partly=rises,
        because=f"Dropped packets by qdisc: {_counts(dropped)}. They rise past 512, and do not vanish: CUBIC's windows grow until something is lost. "
        f"With windows of at most 64 kB they vanish above 512: {_counts(narrow)}; if TCP believes every timer besides, they rise before, to most at {most}: {_counts(believed)}",
    )


def _narrow(evidence: Evidence, measure: Measure, believed: bool = False) -> Sizes:
    """Qdisc -> mean with windows of 64 kB; `believed`: and every timer."""
    variants = {
        qdisc: tcp_name(BELIEVED, DEFAULT_RING, qdisc) if believed else name(MAIN, DEFAULT_RING, qdisc)
        for qdisc in QDISCS
    }
    return _over(evidence, "narrow", variants, measure)


def _absorbs(evidence: Evidence) -> Finding:
    dropped = over_qdiscs(evidence, MAIN, DEFAULT_RING, m.drops)

    def narrow(evidence: Evidence) -> str:
        known = _narrow(evidence, m.drops)
        return f"; with windows of 64 kB {known[max(known)]:.0f} at {max(known)}"

    return Finding(
        dropped[4096] < 0.01 * max(dropped.values()),
        f"{dropped[4096]:.0f} packets are dropped at a qdisc of 4096, for {min(dropped.values()):.0f} at the best size{_beside(evidence, narrow)}",
    )


def _surface(evidence: Evidence) -> Finding:
    told, largest, least = [], [], []
    for reading in QDISC:
        lines = {ring: line for ring in RINGS if (line := over_qdiscs(evidence, reading, ring, m.rtt_s))}
        across = max(_spread(_but_none(line)) for line in lines.values())
        along = min(
            _spread(line[qdisc] for line in lines.values())
            for qdisc in QDISCS
            if all(qdisc in line for line in lines.values())
        )
        largest.append(across)
        least.append(along)
        told.append(f"over the ring at least {along:.0f} times, over the qdisc at most {across:.1f}")
    return Finding(
        holds=largest[0] < 1.5 < least[0],
        partly=least[0] > 3 * largest[0],
        because=f"The RTT varies {told[0]}. FIFO: {told[1]}; there only their sum counts",
    )


def _but_none(line: dict[int, float]) -> list[float]:
    """Without a qdisc of 0, where the ring itself runs empty at times."""
    return [value for qdisc, value in line.items() if qdisc > 0]


def _throughput_ring(evidence: Evidence) -> Finding:
    ours = published.throughput_apart(evidence).mean

    def believed(evidence: Evidence) -> str:
        small, large = (
            evidence.mean("others", tcp_name(BELIEVED, ring, DEFAULT_QDISC), m.throughput_mbps)
            for ring in (80, 4096)
        )
        return f". If TCP believes every timer they are {m.apart_percent(small, large):.0f} % apart, the shorter faster"

    return Finding(
        holds=ours < published.THROUGHPUT_PERCENT,
        partly=ours < 1.5 * published.THROUGHPUT_PERCENT,
        because=f"Rings of 80 and 4096, at the qdisc where they differ most: {ours:.1f} %"
        + _beside(evidence, lambda all_: f". FIFO: {published.throughput_apart(all_, OTHER).mean:.1f} %")
        + _beside(evidence, believed),
    )


def _throughput_qdisc(evidence: Evidence) -> Finding:
    line = over_qdiscs(evidence, MAIN, DEFAULT_RING, m.throughput_mbps)
    apart = m.apart_percent(max(line.values()), min(line.values()))

    def believed(evidence: Evidence) -> str:
        small, large = (
            evidence.mean("others", tcp_name(BELIEVED, DEFAULT_RING, qdisc), m.throughput_mbps)
            for qdisc in (80, 4096)
        )
        return f". If TCP believes every timer {small:.2f} at 80 and {large:.2f} at 4096"

    return Finding(
        apart < published.THROUGHPUT_PERCENT,
        "Ring 512, by qdisc: "
        + ", ".join(f"{qdisc}: {value:.2f}" for qdisc, value in line.items())
        + f" Mbit/s, at most {apart:.1f} % apart{_beside(evidence, believed)}",
    )


# -------------------------------------------------------------------------------------------------- sections 4.4, 4.5


def _window(evidence: Evidence) -> Finding:
    default, large = (evidence.mean("window", f"ring {ring}", m.widest_mb) for ring in (512, 4096))
    held = max(evidence.mean("window", f"ring {ring}", m.held_back) for ring in (512, 4096))
    return Finding(
        abs(default - published.WINDOW_MB) < 0.1 and held < 0.01,
        f"Widest window {default:.2f} MB at the default ring, {large:.2f} MB at 4096; it was full in {100 * held:.2f} % of the samples. The bound is the buffer that was chosen",
    )


def _fold(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def _bql(evidence: Evidence) -> Finding:
    def compared(reading: str) -> tuple[int, str]:
        without, with_ = (over_bql(evidence, reading, bql, m.p95_s) for bql in (False, True))
        ratio = {ring: without[ring] / with_[ring] for ring in without}
        told = (
            f"{ring}: {_time(without[ring])} to {_time(with_[ring])}, {_fold(ratio[ring])} times"
            for ring in without
        )
        return max(map(orders, ratio.values())), "; ".join(told)

    most, told = compared(MAIN)
    return Finding(
        holds=most >= 2,
        partly=most == 1,
        because=f"95th percentile by ring, without and with BQL: {told}. FIFO: {compared(OTHER)[1]}. Published: 13 s to 106 ms, 123 times",
    )


def _shifts(evidence: Evidence) -> Finding:
    ring, qdisc, share = (
        [over_bql(evidence, MAIN, bql, measure)[2048] for bql in (False, True)]
        for measure in (m.in_ring, m.in_qdisc, m.in_qdisc_percent)
    )
    return Finding(
        ring[0] > 100 * ring[1] and share[1] > 99,
        f"Ring 2048, qdisc 2952: {ring[0]:.0f} packets in the ring and {qdisc[0]:.0f} in the qdisc on average, {share[0]:.0f} % of them; "
        f"with BQL {ring[1]:.1f} and {qdisc[1]:.0f}, {share[1]:.1f} %",
    )


def _none(milliseconds: float) -> str:
    return "nothing" if abs(milliseconds) < 0.05 else f"{milliseconds:.1f} ms"


def _twenty(evidence: Evidence) -> Finding:
    ours = published.qdisc_apart(evidence).mean

    def fifo(evidence: Evidence) -> str:
        apart = published.qdisc_apart(evidence, OTHER).mean
        return f". In a FIFO {apart / 1e3:.1f} s, at any rate as much as 4016 packets take"

    return Finding(
        holds=abs(ours - published.APART_MS) < 0.25 * published.APART_MS,
        partly=ours > 1,
        because=f"95th percentile at a qdisc of 4920 less that at 904: {_none(ours)}, for pings pass the files{_beside(evidence, fifo)}",
    )


def _codel(evidence: Evidence) -> Finding:
    plain, codel = (evidence.mean("cure", f"{cure} BQL", m.rtt_s) for cure in ("fifo", "codel"))
    full, rate = (evidence.mean("cure", f"{cure} BQL", m.throughput_mbps) for cure in ("fifo", "codel"))
    return Finding(
        codel < 0.1 * plain and rate > 0.95 * full,
        f"Ring 4096 with BQL: FIFO of 904 packets {_time(plain)}, CoDel {_time(codel)}"
        + _beside(evidence, lambda all_: f", fq_codel {_time(all_.mean('cure', 'fq_codel BQL', m.rtt_s))}")
        + f"; throughput {rate:.2f} Mbit/s for {full:.2f}",
    )


def _codel_alone(evidence: Evidence) -> Finding:
    without, with_ = (evidence.mean("cure", f"codel{bql}", m.rtt_s) for bql in ("", " BQL"))

    def fair(evidence: Evidence) -> str:
        alone, both = (evidence.mean("cure", f"fq_codel{bql}", m.rtt_s) for bql in ("", " BQL"))
        return f". fq_codel {_time(alone)} and {_time(both)}"

    return Finding(
        without > 20 * with_,
        f"Ring 4096, CoDel: {_time(without)} without BQL, for what is in the ring is out of its reach; {_time(with_)} with it{_beside(evidence, fair)}",
    )


# --------------------------------------------------------------------------------------------------------- section 5


def low_share(evidence: Evidence, low: str, qdisc: str) -> float:
    """The low-priority flows' share beside CUBIC, %."""
    return evidence.mean("coexistence", f"{low}, {qdisc}", m.low_share)


def _ledbat_delay(evidence: Evidence) -> Finding:
    alone, cubic = (
        evidence.mean("coexistence", variant, m.ping_ms)
        for variant in ("LEDBAT alone", "CUBIC, Drop Tail, 1000")
    )
    return Finding(
        holds=alone < 0.25 * cubic,
        partly=alone < 0.5 * cubic,
        because=f"Ten LEDBAT flows at Drop Tail of 1000 packets: ping {alone:.0f} ms; ten of CUBIC: {cubic:.0f} ms. More than its target of 100 ms: who comes later takes the queue for a part of the path",
    )


def _unfair(evidence: Evidence) -> Finding:
    share = {low: low_share(evidence, low, "Drop Tail, 1000") for low in ("LEDBAT", "Vegas", "CUBIC")}
    return Finding(
        share["LEDBAT"] < 10 and share["Vegas"] < 10 and abs(share["CUBIC"] - 50) < 10,
        "Five beside five of CUBIC at Drop Tail, their share: "
        + ", ".join(f"{low} {value:.1f} %" for low, value in share.items()),
    )


def _reprioritised(evidence: Evidence) -> Finding:
    share = {qdisc: low_share(evidence, "LEDBAT", qdisc) for qdisc in COEXISTENCE_QDISCS}
    aqm = [share[qdisc] for qdisc in ("RED", "CoDel", "fq_codel")]
    return Finding(
        share["Drop Tail, 1000"] < 10 and min(aqm) > 40,
        "LEDBAT's share beside CUBIC: "
        + ", ".join(f"{qdisc} {value:.1f} %" for qdisc, value in share.items())
        + ". A short queue never reaches its target, so losses alone tell it when to stop",
    )


# --------------------------------------------------------------------------------------------------------- section 6


def _signals(evidence: Evidence) -> Finding:
    share, timers = (over_rings(evidence, MAIN, measure) for measure in (m.needless, m.timeouts))

    def believed(evidence: Evidence) -> str:
        known, rang = (_other_tcp(evidence, BELIEVED, measure) for measure in (m.needless, m.timeouts))
        return f". If TCP believes every timer: {100 * known[80]:.0f} % and {rang[80]:.0f}, {100 * known[4096]:.0f} % and {rang[4096]:.0f}"

    return Finding(
        holds=share[80] < 0.2 and share[4096] > 0.5,
        partly=share[80] < 0.2,
        because=f"Ring 80: {100 * share[80]:.1f} % of the retransmissions are needless, {timers[80]:.0f} timeouts; ring 4096: {100 * share[4096]:.1f} % and {timers[4096]:.0f}. "
        f"It does with small rings, and with large ones too{_beside(evidence, believed)}",
    )


def _good_queue(evidence: Evidence) -> Finding:
    dropped, again = (
        over_qdiscs(evidence, MAIN, DEFAULT_RING, measure) for measure in (m.drops, m.retransmissions)
    )
    fewer = dropped[4096] < dropped[80] and again[4096] < again[80]

    def reno(evidence: Evidence) -> str:
        small, large = (
            evidence.mean("others", tcp_name(RENO, DEFAULT_RING, qdisc), m.drops) for qdisc in (80, 4096)
        )
        return f". Reno's drops, {small:.0f} and {large:.0f}, are few beside them: a slow start into a queue overruns it by what it holds"

    def narrow(evidence: Evidence) -> str:
        known = _narrow(evidence, m.retransmissions)
        return f". With windows of 64 kB the sentence holds: retransmissions {known[80]:.0f} to {known[max(known)]:.0f}"

    return Finding(
        holds=fewer,
        because=f"Qdisc 80 to 4096: dropped packets {dropped[80]:.0f} to {dropped[4096]:.0f}, retransmissions {again[80]:.0f} to {again[4096]:.0f}. {_CLOCK}"
        + _beside(evidence, reno)
        + _beside(evidence, narrow),
    )


def _only(evidence: Evidence) -> Finding:
    ours, fifo = (over_rings(evidence, reading, m.rtt_s)[DEFAULT_RING] for reading in (MAIN, OTHER))
    most = over_rings(evidence, MAIN, m.rtt_s)[4096]
    return Finding(
        holds=ours < 0.1,
        partly=orders(most / ours) == 1,
        because=f"With the defaults the mean RTT is {_time(ours)} (FIFO: {_time(fifo)}) on a path of {BASE_MS} ms. That is less than the {_time(most)} of the largest ring, and bufferbloat: "
        "512 packets are 6 ms only at 1 Gbit/s",
    )


def _removes(evidence: Evidence) -> Finding:
    ours, fifo = (over_bql(evidence, reading, True, m.rtt_s) for reading in (MAIN, OTHER))
    return Finding(
        holds=max(ours.values()) < 0.1,
        because=f"Mean RTT with BQL by ring: {_times(ours)}, whatever the ring. FIFO: {_times(fifo)}: the delay moves to the qdisc, where a discipline can reach it",
    )


CLAIMS = (
    Claim("more", "section 1", "With a ring of 4096 packets the RTT is up to 585 % above that with the default queues", _more, ("both", "figure3")),
    Claim("degrades", "section 2", "Too much queueing also lowers the throughput", _degrades, ("figure6", "timers")),
    Claim("ring", "section 4.1, figure 3(a)", "The RTT grows with each larger ring", _ring, ("figure3",), must_hold=True),
    Claim("negligible", "section 4.1", "With small rings the RTT is negligible", _negligible, ("figure3",), must_hold=True),
    Claim("ten", "section 4.1, figure 3(a)", "Above 4000 packets of ring the mean RTT passes 10 s", _ten, ("both", "figure3")),
    Claim("exchange", "section 4.1, figures 3(b) and (c)", "From a ring of 80 on, drops fall and retransmissions rise", _exchange, ("figure3",)),
    Claim("needless", "section 4.1", "With large rings packets are sent again that are still queued", _needless, ("timers", "figure3")),
    Claim("which", "section 4.1", "It is fast retransmit that sends them again", _which, ("timers",)),
    Claim("flat", "section 4.2, figure 4(a)", "The RTT stays about the same over the qdisc's size", _flat, ("figure4", "figure5"), must_hold=True),
    Claim("order", "section 4.2", "It is an order of magnitude below that of a large ring", _order, ("figure3", "figure4"), must_hold=True),
    Claim("hump", "section 4.2, figures 4(b) and (c)", "Drops and retransmissions rise up to a qdisc of 512 packets, and are negligible above", _hump, ("figure4", "narrow")),
    Claim("absorbs", "section 4.3", "Queues above 4096 packets absorb all that is sent", _absorbs, ("figure4", "narrow")),
    Claim("surface", "section 4.3, figure 5", "Ring and qdisc act independently: the ring makes the RTT, the qdisc hardly counts", _surface, ("figure5",)),
    Claim("throughput ring", "section 4.3, figure 6", "Throughput with the smallest and the largest ring differs by less than 20 %", _throughput_ring, ("figure6", "timers"), must_hold=True),
    Claim("throughput qdisc", "section 4.3, figure 6", "The qdisc's size does not matter much to the throughput", _throughput_qdisc, ("figure6",), must_hold=True),
    Claim("window", "section 4.4, figure 7", "The advertised window grows to 4 MB and limits no copy", _window, ("figure7",)),
    Claim("bql", "sections 4.5 and 6, figures 8 and 9", "BQL lowers the RTT by up to two orders of magnitude", _bql, ("figure8", "figure9"), must_hold=True),
    Claim("shifts", "section 4.5", "BQL moves the waiting from the ring to the qdisc", _shifts, ("cure",), must_hold=True),
    Claim("twenty", "section 4.5, figure 9", "With BQL the qdisc's size begins to count: 20 ms between 904 and 4920 packets", _twenty, ("figure9",)),
    Claim("codel", "section 4.5", "Where the qdisc then makes the delay, CoDel takes it away", _codel, ("cure",), must_hold=True),
    Claim("codel alone", "sections 4.5 and 5, implied", "Above a large ring without BQL CoDel does not help", _codel_alone, ("cure",), must_hold=True),
    Claim("ledbat", "section 5, after Chirichella and Rossi 2013", "LEDBAT keeps its users' queueing delay down", _ledbat_delay, ("coexistence",)),
    Claim("unfair", "section 5", "Delay-based congestion control does not share fairly with the rest: LEDBAT, Vegas", _unfair, ("coexistence",), must_hold=True),
    Claim("reprioritised", "section 5, after Gong et al. 2014", "AQM takes LEDBAT's low priority away: it becomes as aggressive as TCP", _reprioritised, ("coexistence",), must_hold=True),
    Claim("signals", "section 6 (i)", "Small rings let TCP's control work as it should", _signals, ("timers",)),
    Claim("good queue", "section 6 (ii)", "Larger qdiscs absorb bursts: fewer drops and retransmissions", _good_queue, ("figure4", "narrow")),
    Claim("only", "section 6 (iii)", "There is bufferbloat only if the ring's default is changed", _only, ("figure3", "rates")),
    Claim("removes", "section 6", "BQL removes the bufferbloat of large rings", _removes, ("figure9",), must_hold=True),
)  # fmt: skip
