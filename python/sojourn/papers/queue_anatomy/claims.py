"""Checks of what the source says, in the order of its sections, and what other readings of it give.

Each is judged under the main reading, in which pings pass the files in the qdisc and the servers'
windows are limited; what the other readings give follows after it. An order of magnitude is taken as the nearest power of ten: a ratio of 10^0.5 to
10^1.5 is one, 10^1.5 to 10^2.5 two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from sojourn.papers import published, said
from sojourn.papers.evidence import Evidence, NotRun
from sojourn.papers.paper import Finding
from sojourn.papers.queue_anatomy import measures as m
from sojourn.papers.queue_anatomy.studies import (
    AUTOTUNED,
    BELIEVED,
    BOTH,
    COEXISTENCE,
    COEXISTENCE_QDISCS,
    DEFAULT_RING,
    FULL,
    HALF,
    LIMIT_RATES,
    MAIN,
    NARROW_WINDOW,
    NO_LIMIT,
    OTHER,
    OTHERS,
    PER_BAND,
    QDISC,
    QDISCS,
    RATED,
    RENO,
    RINGS,
    SEARCHED,
    SEGMENT_BYTES,
    SEGMENTS,
    SHORT,
    SPEEDS,
    STICK,
    TCPS,
    TOTAL,
    UNLIMITED,
    WINDOW,
    at_rate,
    cure,
    limit_at_rate,
    name,
    one_interface_mbps,
    other_tcp,
    over_bql,
    over_qdiscs,
    over_qdiscs_with,
    over_rings,
    over_rings_with,
    qdiscs_within,
    rings_within,
)
from sojourn.papers.study import Variant

SAYS = published.beside(__file__)
TARGETS = published.targets(__file__)
FULL_ONLY = "Measured in the full version."

BASE_MS = 0.5
"""The path with empty queues."""
FILES = 30


# ------------------------------------------------------------------------------ what was measured


def _beside(evidence: Evidence, sentence: Callable[[Evidence], str]) -> str:
    """What else is to be said: a guest runs the main reading's deciding cases, and few others."""
    return evidence.said(sentence, " ({})")


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


def _counts(values: Mapping[int, float]) -> str:
    return said.at(values)


# ------------------------------------------------------------------------------- sections 1 and 2


def degrades(evidence: Evidence) -> Finding:
    rates = evidence.means(over_rings(MAIN), m.throughput_mbps)

    def believed(evidence: Evidence) -> str:
        rate = evidence.mean(other_tcp(BELIEVED, 4096), m.throughput_mbps)
        return f". If TCP believes every timer, it sends again what is still queued, and {rate:.2f} are left"

    lost = rates[4096] < 0.97 * rates[80]
    told = "" if lost else ": a full queue by itself loses no throughput"
    return Finding(
        lost,
        f"All copies together: {rates[80]:.2f} Mbit/s at ring 80, {rates[4096]:.2f} at 4096{told}"
        + _beside(evidence, believed),
    )


def more(evidence: Evidence) -> Finding:
    ours = m.more_at_4096(evidence).mean

    def unlimited(evidence: Evidence) -> str:
        return f", without the limit {m.more_at_4096(evidence, UNLIMITED).mean:+.0f} %"

    def fifo(evidence: Evidence) -> str:
        apart = m.more_at_4096(evidence, OTHER).mean
        return f". In a FIFO 1000 packets of qdisc add to both, and it is {apart:+.0f} %"

    return Finding(
        holds=TARGETS["rtt/more"].met(ours),
        partly=orders(1 + ours / 100) == 1,
        because=f"Stated up to {SAYS['rtt/more']:+.0f} %, ours {ours:+.0f} %"
        + _beside(evidence, unlimited)
        + _beside(evidence, fifo),
    )


# ------------------------------------------------------------------------------------ section 4.1


def ring(evidence: Evidence) -> Finding:
    ours, fifo = (evidence.means(over_rings(reading), m.rtt_s) for reading in (MAIN, OTHER))
    return Finding(
        _grows(ours.values()), f"Mean RTT by ring: {said.times(ours)}. FIFO: {said.times(fifo)}"
    )


def negligible(evidence: Evidence) -> Finding:
    ours = evidence.means(over_rings(MAIN), m.rtt_s)
    return Finding(
        holds=ours[80] < 0.05 * ours[4096],
        because=f"Ring 80: {said.time(ours[80])}, {100 * ours[80] / ours[4096]:.1f} % of that of "
        f"4096; beside {BASE_MS} ms of an empty path it is not little"
        + _beside(
            evidence,
            lambda all_: f". FIFO: {said.time(all_.means(over_rings(OTHER), m.rtt_s)[80])}",
        ),
    )


def ten(evidence: Evidence) -> Finding:
    mean, half, top = (
        evidence.means(over_rings(MAIN), measure)[4096]
        for measure in (m.rtt_s, m.median_s, m.p95_s)
    )

    def others(evidence: Evidence) -> str:
        return ". " + ". ".join(
            f"{said_as}: {evidence.means(over_rings(reading), m.rtt_s)[4096]:.2f} s"
            for reading, said_as in ((UNLIMITED, "Without the limit"), (OTHER, "FIFO"))
        )

    return Finding(
        holds=mean > SAYS["rtt/4096"],
        partly=top > SAYS["rtt/4096"],
        because=f"Ring 4096: mean {mean:.2f} s, median {half:.2f} s, 95th percentile {top:.2f} s: "
        f"the {FILES} windows of {SEGMENTS} segments, all in the ring"
        + _beside(evidence, others)
        + ". The rate is derived, the limit was searched for this number and the "
        f"{SAYS['rtt/more']:g} %",
    )


def exchange(evidence: Evidence) -> Finding:
    dropped, again = (
        evidence.means(over_rings(MAIN), measure) for measure in (m.drops, m.retransmissions)
    )
    falls, rises = _exchanged(dropped, again)

    def believed(evidence: Evidence) -> str:
        drop, sent = (
            evidence.means(over_rings_with(BELIEVED), measure)
            for measure in (m.drops, m.retransmissions)
        )
        both = "both as stated" if all(_exchanged(drop, sent)) else "not both as stated"
        return (
            f". If TCP believes every timer, {both}: dropped {_counts(drop)}; sent again "
            f"{_counts(sent)}"
        )

    def unlimited(evidence: Evidence) -> str:
        drop = evidence.means(over_rings(UNLIMITED), m.drops)
        reno = evidence.means(over_rings_with(RENO, UNLIMITED), m.drops)
        return f". Without the limit drops rise: {_counts(drop)}. {_CLOCK}. Reno's: {_counts(reno)}"

    return Finding(
        holds=falls and rises,
        partly=falls or rises,
        because=f"Dropped packets by ring: {_counts(dropped)}. Retransmissions: {_counts(again)}, "
        f"{sum(again.values()) / sum(dropped.values()):.2f} for each drop{_beside(evidence, believed)}"
        + _beside(evidence, unlimited),
    )


def _exchanged(dropped: Mapping[int, float], again: Mapping[int, float]) -> tuple[bool, bool]:
    """Whether drops fall, and whether retransmissions rise."""
    return dropped[4096] < dropped[80], again[4096] > 1.5 * again[80]


_CLOCK = "CUBIC's windows grow by the clock, not by the round trip: the longer that is, the further they are past the queue when a drop is heard of"


def _shares(values: Mapping[int, float]) -> str:
    return ", ".join(f"{at}: {100 * value:.1f} %" for at, value in values.items())


def needless(evidence: Evidence) -> Finding:
    share = evidence.means(over_rings(MAIN), m.needless)

    def believed(evidence: Evidence) -> str:
        known = evidence.means(over_rings_with(BELIEVED), m.needless)
        return f". A TCP that believes every timer does it: {_shares(known)}. Linux 3.2 and 3.11 had F-RTO and undo, as ours has; so why theirs did is not known"

    return Finding(
        share[4096] > 0.5 and share[80] < 0.2,
        "Retransmissions for which nothing had been lost, by ring: "
        f"{_shares(share)}{_beside(evidence, believed)}",
    )


def which(evidence: Evidence) -> Finding:
    timers, again, share = (
        evidence.mean(other_tcp(BELIEVED, 4096), measure)
        for measure in (m.timeouts, m.retransmissions, m.needless)
    )
    left = evidence.mean(over_rings(MAIN)[4096], m.needless)

    def unlimited(evidence: Evidence) -> str:
        free = over_rings(UNLIMITED)[4096]
        sent, for_nothing = (evidence.mean(free, one) for one in (m.retransmissions, m.needless))
        return f", and without the limit {100 * for_nothing:.1f} % of {sent:.0f}"

    return Finding(
        holds=left > 0.5 * share,
        because="One queue keeps the order, so three duplicate ACKs mean a loss. Where packets "
        f"are sent again for nothing it is the timer: if TCP believes it, {timers:.0f} timeouts "
        f"and {again:.0f} "
        f"retransmissions at ring 4096, {100 * share:.0f} % of them needless; where F-RTO and "
        f"undo see through it, {100 * left:.1f} % of "
        f"{evidence.mean(over_rings(MAIN)[4096], m.retransmissions):.0f}"
        + _beside(evidence, unlimited),
    )


# ------------------------------------------------------------------------------ sections 4.2, 4.3


def flat(evidence: Evidence) -> Finding:
    ours = evidence.means(over_qdiscs(MAIN), m.rtt_s)

    def fifo(evidence: Evidence) -> str:
        known = evidence.means(over_qdiscs(OTHER), m.rtt_s)
        return f". FIFO: {said.times(known)}, {_spread(known.values()):.1f} times: for a FIFO the sentence is false at any rate"

    return Finding(
        _spread(ours.values()) < 1.2,
        f"Mean RTT by qdisc: {said.times(ours)}{_beside(evidence, fifo)}",
    )


def order(evidence: Evidence) -> Finding:
    def compared(reading: str) -> tuple[float, str]:
        most = evidence.means(over_rings(reading), m.rtt_s)[4096]
        flat = evidence.means(over_qdiscs(reading), m.rtt_s)[4096]
        return (
            most / flat,
            f"{said.time(most)} against {said.time(flat)} at the longest qdisc, {most / flat:.1f} times",
        )

    ratio, told = compared(MAIN)
    return Finding(
        orders(ratio) == 1,
        f"{told}: the nearest power of ten is {10 ** orders(ratio)}"
        + _beside(evidence, lambda _: f". FIFO: {compared(OTHER)[1]}"),
    )


def hump(evidence: Evidence) -> Finding:
    dropped, again = (
        evidence.means(over_qdiscs(MAIN), measure) for measure in (m.drops, m.retransmissions)
    )
    narrowed, believed = (
        evidence.means(qdiscs_within(NARROW_WINDOW, every), m.drops) for every in (False, True)
    )
    most = max(believed, key=believed.__getitem__)
    peak = max(dropped, key=dropped.__getitem__)
    rises = all(values[peak] > 1.05 * values[80] for values in (dropped, again))
    gone = {
        qdisc: all(values[qdisc] < 0.1 * values[512] for values in (dropped, again))
        for qdisc in dropped
        if qdisc > 512
    }
    return Finding(
        holds=rises and peak == 512 and all(gone.values()),
        partly=rises and gone[4096],
        because=f"Dropped packets by qdisc: {_counts(dropped)}. They are most at {peak}, and vanish "
        f"where {FILES} windows of {SEGMENTS} segments, {FILES * SEGMENTS}, fit into ring and "
        f"qdisc. The limit decides where: with {NARROW_WINDOW} segments, 64 kB, "
        f"{_counts(narrowed)}; if TCP believes every timer besides, they rise to most at {most}: "
        f"{_counts(believed)}",
    )


def absorbs(evidence: Evidence) -> Finding:
    dropped = evidence.means(over_qdiscs(MAIN), m.drops)
    rings = evidence.means(over_rings(MAIN), m.drops)

    def unlimited(evidence: Evidence) -> str:
        qdisc, ring = (
            evidence.means(along(UNLIMITED), m.drops)[4096] for along in (over_qdiscs, over_rings)
        )
        return f". Without the limit {qdisc:.0f} and {ring:.0f}: CUBIC's windows grow until something is lost"

    return Finding(
        max(dropped[4096], rings[4096]) < 0.01 * max(*dropped.values(), *rings.values()),
        f"{dropped[4096]:.0f} packets are dropped at a qdisc of 4096 and {rings[4096]:.0f} at a "
        f"ring of 4096, for {max(dropped.values()):.0f} and {max(rings.values()):.0f} at the worst "
        f"sizes{_beside(evidence, unlimited)}",
    )


def surface(evidence: Evidence) -> Finding:
    told, largest, least = [], [], []
    for reading in BOTH:
        lines = {
            ring: line
            for ring in RINGS
            if (line := evidence.means(over_qdiscs(reading, ring), m.rtt_s))
        }
        across = max(_spread(_but_none(line)) for line in lines.values())
        along = min(
            _spread(line[qdisc] for line in lines.values())
            for qdisc in QDISCS
            if all(qdisc in line for line in lines.values())
        )
        largest.append(across)
        least.append(along)
        told.append(
            f"over the ring at least {along:.0f} times, over the qdisc at most {across:.1f}"
        )
    return Finding(
        holds=largest[0] < 1.5 < least[0],
        partly=least[0] > 3 * largest[0],
        because=f"The RTT varies {told[0]}. FIFO: {told[1]}; there only their sum counts",
    )


def _but_none(line: Mapping[int, float]) -> list[float]:
    """Without a qdisc of 0, where the ring itself runs empty at times."""
    return [value for qdisc, value in line.items() if qdisc > 0]


def throughput_ring(evidence: Evidence) -> Finding:
    ours = m.throughput_apart(evidence).mean

    def believed(evidence: Evidence) -> str:
        small, large = (
            evidence.mean(other_tcp(BELIEVED, ring), m.throughput_mbps) for ring in (80, 4096)
        )
        return f". If TCP believes every timer they are {m.apart_percent(small, large):.0f} % apart, the shorter faster"

    return Finding(
        holds=ours < SAYS["throughput/apart"],
        partly=ours < 1.5 * SAYS["throughput/apart"],
        because=f"Rings of 80 and 4096, at the qdisc where they differ most: {ours:.1f} %"
        + _beside(evidence, lambda all_: f". FIFO: {m.throughput_apart(all_, OTHER).mean:.1f} %")
        + _beside(evidence, believed),
    )


def throughput_qdisc(evidence: Evidence) -> Finding:
    line = evidence.means(over_qdiscs(MAIN), m.throughput_mbps)
    apart = m.apart_percent(max(line.values()), min(line.values()))

    def believed(evidence: Evidence) -> str:
        small, large = (
            evidence.mean(other_tcp(BELIEVED, DEFAULT_RING, qdisc), m.throughput_mbps)
            for qdisc in (80, 4096)
        )
        return f". If TCP believes every timer {small:.2f} at 80 and {large:.2f} at 4096"

    return Finding(
        apart < SAYS["throughput/apart"],
        "Ring 512, by qdisc: "
        + ", ".join(f"{qdisc}: {value:.2f}" for qdisc, value in line.items())
        + f" Mbit/s, at most {apart:.1f} % apart{_beside(evidence, believed)}",
    )


# ------------------------------------------------------------------------------ sections 4.4, 4.5


def window(evidence: Evidence) -> Finding:
    default, large, autotuned = (
        m.widest_of_all_mb(evidence, WINDOW[one]).mean
        for one in ("ring 512", "ring 4096", f"ring 512, {AUTOTUNED}")
    )
    held = max(evidence.mean(WINDOW[f"ring {ring}"], m.held_back) for ring in (512, 4096))
    return Finding(
        abs(default - SAYS["window"]) < 0.1 and held < 0.01,
        f"Widest window {default:.2f} MB at the default ring, {large:.2f} MB at 4096; it was full "
        f"in {100 * held:.2f} % of the samples. The bound is the buffer that was chosen; one that "
        f"autotuning has to grow would end at {autotuned:.2f} MB, for a limited server brings "
        "little in a round trip",
    )


def _fold(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def bql(evidence: Evidence) -> Finding:
    def compared(reading: str) -> tuple[int, str]:
        without, with_ = (evidence.means(over_bql(reading, bql), m.p95_s) for bql in (False, True))
        ratio = {ring: without[ring] / with_[ring] for ring in without}
        told = (
            f"{ring}: {said.time(without[ring])} to {said.time(with_[ring])}, {_fold(ratio[ring])} times"
            for ring in without
        )
        return max(map(orders, ratio.values())), "; ".join(told)

    most, told = compared(MAIN)
    before, after = SAYS["p95/2048"], SAYS["p95/2048 BQL"] / 1e3
    return Finding(
        holds=most >= 2,
        partly=most == 1,
        because=f"95th percentile by ring, without and with BQL: {told}. FIFO: "
        f"{compared(OTHER)[1]}. Published: {said.time(before)} to {said.time(after)}, "
        f"{_fold(before / after)} times",
    )


def shifts(evidence: Evidence) -> Finding:
    ring, qdisc, share = (
        [evidence.means(over_bql(MAIN, bql), measure)[2048] for bql in (False, True)]
        for measure in (m.in_ring, m.in_qdisc, m.in_qdisc_percent)
    )
    return Finding(
        ring[0] > 100 * ring[1] and share[1] > 99,
        f"Ring 2048, qdisc 2952: {ring[0]:.0f} packets in the ring and {qdisc[0]:.0f} in the "
        f"qdisc on average, {share[0]:.0f} % of them; "
        f"with BQL {ring[1]:.1f} and {qdisc[1]:.0f}, {share[1]:.1f} %",
    )


def _none(milliseconds: float) -> str:
    return "nothing" if abs(milliseconds) < 0.05 else f"{milliseconds:.1f} ms"


def twenty(evidence: Evidence) -> Finding:
    ours = m.qdisc_apart(evidence).mean

    def fifo(evidence: Evidence) -> str:
        apart = m.qdisc_apart(evidence, OTHER).mean
        return f". In a FIFO {apart / 1e3:.1f} s, at any rate as much as 4016 packets take"

    return Finding(
        holds=TARGETS["p95/apart"].met(ours),
        partly=ours > 1,
        because=f"95th percentile at a qdisc of 4920 less that at 904: {_none(ours)}, for pings "
        f"pass the files{_beside(evidence, fifo)}",
    )


def codel(evidence: Evidence) -> Finding:
    plain, codel = (evidence.mean(cure(one, True), m.rtt_s) for one in ("fifo", "codel"))
    full, rate = (evidence.mean(cure(one, True), m.throughput_mbps) for one in ("fifo", "codel"))
    return Finding(
        codel < 0.1 * plain and rate > 0.95 * full,
        f"Ring 4096 with BQL: FIFO of 904 packets {said.time(plain)}, CoDel {said.time(codel)}"
        + _beside(
            evidence,
            lambda all_: f", fq_codel {said.time(all_.mean(cure('fq_codel', True), m.rtt_s))}",
        )
        + f"; throughput {rate:.2f} Mbit/s for {full:.2f}",
    )


def codel_alone(evidence: Evidence) -> Finding:
    without, with_ = (evidence.mean(cure("codel", bql), m.rtt_s) for bql in (False, True))

    def fair(evidence: Evidence) -> str:
        alone, both = (evidence.mean(cure("fq_codel", bql), m.rtt_s) for bql in (False, True))
        return f". fq_codel {said.time(alone)} and {said.time(both)}"

    return Finding(
        without > 20 * with_,
        f"Ring 4096, CoDel: {said.time(without)} without BQL, for what is in the ring is out of "
        f"its reach; {said.time(with_)} with it{_beside(evidence, fair)}",
    )


# -------------------------------------------------------------------------------------- section 5


def low_share(evidence: Evidence, low: str, qdisc: str) -> float:
    """The low-priority flows' share beside CUBIC, %."""
    return evidence.mean(COEXISTENCE[f"{low}, {qdisc}"], m.low_share)


def ledbat_delay(evidence: Evidence) -> Finding:
    alone, cubic = (
        evidence.mean(COEXISTENCE[variant], m.ping_ms)
        for variant in ("LEDBAT alone", "CUBIC, Drop Tail, 1000")
    )
    return Finding(
        holds=alone < 0.25 * cubic,
        partly=alone < 0.5 * cubic,
        because=f"Ten LEDBAT flows at Drop Tail of 1000 packets: ping {alone:.0f} ms; ten of "
        f"CUBIC: {cubic:.0f} ms"
        + (
            ". More than its target of 100 ms: who comes later takes the queue for a part of the path"
            * (alone > 100)
        ),
    )


def unfair(evidence: Evidence) -> Finding:
    share = {
        low: low_share(evidence, low, "Drop Tail, 1000") for low in ("LEDBAT", "Vegas", "CUBIC")
    }
    return Finding(
        share["LEDBAT"] < 10 and share["Vegas"] < 10 and abs(share["CUBIC"] - 50) < 10,
        "Five beside five of CUBIC at Drop Tail, their share: "
        + ", ".join(f"{low} {value:.1f} %" for low, value in share.items()),
    )


def reprioritised(evidence: Evidence) -> Finding:
    share = {qdisc: low_share(evidence, "LEDBAT", qdisc) for qdisc in COEXISTENCE_QDISCS}
    aqm = [share[qdisc] for qdisc in ("RED", "CoDel", "fq_codel")]
    return Finding(
        share["Drop Tail, 1000"] < 10 and min(aqm) > 40,
        "LEDBAT's share beside CUBIC: "
        + ", ".join(f"{qdisc} {value:.1f} %" for qdisc, value in share.items())
        + ". A short queue never reaches its target, so losses alone tell it when to stop",
    )


# -------------------------------------------------------------------------------------- section 6


def signals(evidence: Evidence) -> Finding:
    share, timers = (
        evidence.means(over_rings(MAIN), measure) for measure in (m.needless, m.timeouts)
    )

    def believed(evidence: Evidence) -> str:
        known, rang = (
            evidence.means(over_rings_with(BELIEVED), measure)
            for measure in (m.needless, m.timeouts)
        )
        return f". If TCP believes every timer: {100 * known[80]:.0f} % and {rang[80]:.0f}, {100 * known[4096]:.0f} % and {rang[4096]:.0f}"

    return Finding(
        holds=share[80] < 0.2 and share[4096] > 0.5,
        partly=share[80] < 0.2,
        because=f"Ring 80: {100 * share[80]:.1f} % of the retransmissions are needless, "
        f"{timers[80]:.0f} timeouts; ring 4096: {100 * share[4096]:.1f} % and {timers[4096]:.0f}. "
        + ("With large rings it does, too" if share[4096] < 0.2 else "With large rings it does not")
        + _beside(evidence, believed),
    )


def good_queue(evidence: Evidence) -> Finding:
    dropped, again = (
        evidence.means(over_qdiscs(MAIN), measure) for measure in (m.drops, m.retransmissions)
    )

    def unlimited(evidence: Evidence) -> str:
        drop = evidence.means(over_qdiscs(UNLIMITED), m.drops)
        reno = evidence.means(over_qdiscs_with(RENO, UNLIMITED), m.drops)
        return (
            f". Without the limit drops rise from {drop[80]:.0f} to {drop[4096]:.0f}. {_CLOCK}. "
            f"Reno's: {reno[80]:.0f} and {reno[4096]:.0f}"
        )

    return Finding(
        holds=dropped[4096] < dropped[80] and again[4096] < again[80],
        because=f"Qdisc 80 to 4096: dropped packets {dropped[80]:.0f} to {dropped[4096]:.0f}, "
        f"retransmissions {again[80]:.0f} to {again[4096]:.0f}" + _beside(evidence, unlimited),
    )


def only(evidence: Evidence) -> Finding:
    ours, fifo = (
        evidence.means(over_rings(reading), m.rtt_s)[DEFAULT_RING] for reading in (MAIN, OTHER)
    )
    most = evidence.means(over_rings(MAIN), m.rtt_s)[4096]
    return Finding(
        holds=ours < 0.1,
        partly=orders(most / ours) == 1,
        because=f"With the defaults the mean RTT is {said.time(ours)} (FIFO: {said.time(fifo)}) "
        f"on a path of {BASE_MS} ms. That is less than the {said.time(most)} of the largest ring, "
        "and bufferbloat: "
        "512 packets are 6 ms only at 1 Gbit/s",
    )


def removes(evidence: Evidence) -> Finding:
    ours, fifo = (evidence.means(over_bql(reading, True), m.rtt_s) for reading in (MAIN, OTHER))
    return Finding(
        holds=max(ours.values()) < 0.1,
        because=f"Mean RTT with BQL by ring: {said.times(ours)}. FIFO: "
        f"{said.times(fifo)}: the delay moves to the qdisc, where a discipline can reach it",
    )


# ----------------------------------------------------------------------- what other readings give


def three_readings(evidence: Evidence) -> str:
    def found(evidence: Evidence, reading: str) -> str:
        small, large = (evidence.mean(over_rings(reading)[ring], m.rtt_s) for ring in (512, 4096))
        few, many = (evidence.mean(over_qdiscs(reading)[qdisc], m.rtt_s) for qdisc in (80, 4096))
        drops = evidence.mean(over_qdiscs(reading)[4096], m.drops)
        return (
            f"ring 512 to 4096: {small:.2f} to {large:.2f} s, {m.more_percent(large, small):+.0f} "
            f"%; qdisc 80 to 4096: {few:.2f} to {many:.2f} s, and {drops:.0f} drops"
        )

    def bql(evidence: Evidence, reading: str) -> str:
        p95, cured = (evidence.mean(over_bql(reading, bql)[2048], m.p95_s) for bql in (False, True))
        return f"; 95th percentile of 2048 and 2952: {p95:.1f} s, with BQL {1e3 * cured:.0f} ms"

    def told(reading: str) -> str:
        more = evidence.said(lambda all_: bql(all_, reading)) if reading in BOTH else ""
        return f"{SHORT[reading]}: {evidence.said(lambda all_: found(all_, reading))}{more}"

    return ". ".join(told(reading)[0].upper() + told(reading)[1:] for reading in QDISC) + "."


def other_rates(evidence: Evidence) -> str:
    free, busy = (one_interface_mbps(contended) for contended in (False, True))
    derived = f"Without contention {free:.2f} Mbit/s are left, with it {busy:.2f}. "
    told = [
        f"{rate}, {segments} segments: {said.time(large)}, {m.more_percent(large, small):+.0f} %"
        for rate in LIMIT_RATES
        for segments in RATED
        if evidence.has(*(limit_at_rate(rate, segments, ring) for ring in (512, 4096)))
        for small, large in [
            [evidence.mean(limit_at_rate(rate, segments, ring), m.rtt_s) for ring in (512, 4096)]
        ]
    ]
    for rate in SPEEDS:
        for reading in BOTH:
            variants = [at_rate(rate, reading, ring) for ring in (512, 4096)]
            if evidence.has(*variants):
                small, large = (evidence.mean(one, m.rtt_s) for one in variants)
                told.append(
                    f"{rate}, {SHORT[reading]}: {said.time(small)} at ring 512, "
                    f"{said.time(large)} at 4096"
                )
    return derived + (
        f"Ring 4096 at {'; '.join(told)}. Full queues scale with 1/rate. Where copies end "
        "within seconds, at 1 Gbit/s, the large ring is not full all of that time."
        if told
        else FULL_ONLY
    )


def one_interface(evidence: Evidence) -> str:
    sizes = {"ring 512": (512, 1000), "ring 4096": (4096, 1000), "2048 and 2952": (2048, 2952)}
    told = []
    for duplex in (HALF, FULL):
        for reading in BOTH:
            along = {
                size: STICK[f"{duplex}, {name(reading, *queues)}"] for size, queues in sizes.items()
            }
            if ours := evidence.means(along, m.rtt_s):
                told.append(f"{duplex}, {SHORT[reading]}: {said.times(ours)}")
    return (
        "By the letter of section 3.1, D has one interface and everything leaves through it, the "
        f"ping twice. Mean RTT at 10 Mbit/s, {'; '.join(told)}. A third of the packets in that "
        "ring are ACKs, which are short."
    )


def other_tcps(evidence: Evidence) -> str:
    def outcome(variant: Variant) -> str:
        rtt, again, needless, rate = (
            evidence.mean(variant, one)
            for one in (m.rtt_s, m.retransmissions, m.needless, m.throughput_mbps)
        )
        return f"{rtt:.1f} s, {_thousands(again)} retransmissions, {100 * needless:.0f} % of them needless, {rate:.2f} Mbit/s"

    told = [
        f"At ring 4096: {outcome(over_rings(MAIN)[4096])}",
        f"Without the limit: {outcome(over_rings(UNLIMITED)[4096])}",
    ]
    told += [
        f"{tcp[0].upper()}{tcp[1:]}: {outcome(variant)}"
        for tcp in TCPS
        if evidence.has(variant := other_tcp(tcp, 4096))
    ]
    return (
        ". ".join(told)
        + ". Timers believed gives what section 4.1 describes, by the timer and not by fast "
        "retransmit: whatever a timer takes for lost is sent again, and the window stays down."
        + " The timer is RFC 6298's: Linux's own remembers the largest variation of a round trip "
        "and hardly ever goes off for nothing here."
    )


def _thousands(count: float) -> str:
    return f"{count / 1e3:.0f} thousand" if count >= 9500 else f"{count:.0f}"


def limit_per_band(evidence: Evidence) -> str:
    told = []
    for ring, qdisc in PER_BAND:
        one = OTHERS[f"limit per band, ring {ring} qdisc {qdisc}"]
        if not evidence.has(one):
            return FULL_ONLY
        shared = over_qdiscs(MAIN)[qdisc] if qdisc == 80 else over_rings(MAIN)[ring]
        rtt, lost, again = (
            (evidence.mean(one, measure), evidence.mean(shared, measure))
            for measure in (m.rtt_s, m.unanswered_percent, m.retransmissions)
        )
        told.append(
            f"ring {ring}, qdisc {qdisc}: {rtt[0]:.2f} s for {rtt[1]:.2f}, {lost[0]:.0f} % of the "
            f"pings lost for {lost[1]:.0f}, "
            f"{_thousands(again[0])} retransmissions for {_thousands(again[1])}"
        )
    return f"A limit for each band, as kernels since 4.16: {'; '.join(told)}."


def other_buffers(evidence: Evidence) -> str:
    autotuned, free = (
        [m.widest_of_all_mb(evidence, variant).mean, evidence.mean(variant, m.rtt_s)]
        for variant in (WINDOW[f"ring 512, {one}"] for one in (AUTOTUNED, NO_LIMIT))
    )
    ours = evidence.mean(WINDOW["ring 512"], m.rtt_s)
    return (
        f"If autotuning has to grow it from 128 KiB, the window ends at {autotuned[0]:.2f} MB, and "
        f"without the limit at {free[0]:.2f} MB; the RTT is {autotuned[1]:.2f} and {free[1]:.2f} s "
        f"for {ours:.2f}."
    )


def other_limits(evidence: Evidence) -> str:
    """How far the servers' windows may grow."""
    return (
        " ".join(
            f"{segments} segments: {told}."
            for segments in sorted((*SEARCHED, SEGMENTS))
            if (told := _limited_to(evidence, segments))
        )
        + " Drops vanish where thirty windows fit into ring and qdisc. The published "
        f"{SAYS['rtt/more']:+g} % are 3507 packets or thirty windows of 117."
    )


def _limited_to(evidence: Evidence, segments: int) -> str:
    main = segments == SEGMENTS
    rings, rings_believed = (
        (over_rings(MAIN), over_rings_with(BELIEVED))
        if main
        else (rings_within(segments), rings_within(segments, believed=True))
    )
    qdiscs, qdiscs_believed = (
        (over_qdiscs(MAIN), over_qdiscs_with(BELIEVED))
        if main
        else (qdiscs_within(segments), qdiscs_within(segments, believed=True))
    )
    rtt = evidence.means(rings, m.rtt_s)
    told = [f"{said.time(rtt[4096])} at ring 4096"] if 4096 in rtt else []
    if {512, 4096} <= set(rtt):
        told[-1] += f", {m.more_percent(rtt[4096], rtt[512]):+.0f} %"
    for words, ring, qdisc in (
        ("drops", rings, qdiscs),
        ("if TCP believes every timer", rings_believed, qdiscs_believed),
    ):
        drops = [_at_sizes(evidence, what, along) for what, along in _deciding(ring, qdisc)]
        if any(drops):
            told.append(f"{words} {', '.join(filter(None, drops))}")
    return "; ".join(told)


def _deciding(
    rings: Mapping[int, Variant], qdiscs: Mapping[int, Variant]
) -> tuple[tuple[str, dict[int, Variant]], ...]:
    """The sizes that tell where drops end."""
    return (
        ("ring", {4096: rings[4096]}),
        ("qdisc", {size: qdiscs[size] for size in (512, 1024, 4096) if size in qdiscs}),
    )


def _at_sizes(evidence: Evidence, what: str, along: Mapping[int, Variant]) -> str:
    drops = evidence.means(along, m.drops)
    return f"by {what} {_counts(drops)}" if drops else ""


def merged_packets(evidence: Evidence) -> str:
    merged = {
        TOTAL - ring: OTHERS[f"64 kB packets, qdisc {TOTAL - ring}, BQL"]
        for ring in (4096, 2048, 80)
    }
    waited, waiting = (evidence.means(merged, one) for one in (m.p95_s, m.in_ring))
    told = [
        f"qdisc {qdisc}: {1e3 * value:.0f} ms, {waiting[qdisc]:.1f} in the ring"
        for qdisc, value in waited.items()
    ]
    return (
        "95th percentile with packets of 64 kB under BQL, " + "; ".join(told) + " on average."
        if told
        else FULL_ONLY
    )


# ---------------------------------------------------------------------------- why a number is off


def short_of_ten(evidence: Evidence) -> str:
    """Ring 4096."""
    largest = over_rings(MAIN)[4096]
    mean, half = (evidence.mean(largest, one) for one in (m.rtt_s, m.median_s))
    return (
        f"{FILES} windows of {SEGMENTS} segments are {half:.2f} s, which is the median. The mean "
        f"has the ring's filling and emptying in it: {mean:.1f} s."
    )


def more_than_stated(evidence: Evidence) -> str:
    """Ring 4096 over the default."""
    packets = 4096 / (1 + SAYS["rtt/more"] / 100)
    return (
        "RTTs grow as what waits in the ring does, at any rate: thirty windows over 512 packets, "
        "less the ramps (study limits has other windows). Full rings would give +700 %. Or a "
        f"default ring of some {packets:.0f} packets, which is about 512 too."
    )


def five_thousand_packets(evidence: Evidence) -> str:
    """Ring and qdisc together."""
    fifo = over_bql(OTHER, False)[2048]
    ours = f"it is {evidence.mean(fifo, m.p95_s):.1f} s" if _ran(evidence, fifo) else "they do"
    return (
        f"{SAYS['p95/2048']:g} s are 5000 packets: pings must wait in the qdisc too. Under the "
        f"other reading, a FIFO (study bql, {fifo.name}), {ours}; "
        f"but then figures 4 and 9 and the {SAYS['rtt/more']:g} % fail. No order in the qdisc "
        f"gives both {SAYS['p95/2048']:g} s here and {SAYS['p95/2048 BQL']:g} ms with BQL in the "
        "same qdisc."
    )


def single_packets(evidence: Evidence) -> str:
    """What BQL lets into the ring."""
    merged = OTHERS["64 kB packets, qdisc 2952, BQL"]
    waiting = (
        f"{evidence.mean(merged, m.in_ring):.1f} of them are in the ring on average, and the 95th "
        f"percentile is {1e3 * evidence.mean(merged, m.p95_s):.0f} ms"
        if _ran(evidence, merged)
        else "the full version has them"
    )
    ours = evidence.mean(over_bql(MAIN, True)[2048], m.p95_ms)
    return (
        f"Single packets: BQL lets few in, {ours:.0f} ms. Packets of 64 kB, as receive offload "
        f"merges them, take {_merged_ms():.0f} ms each at this rate; {waiting} (study others, 64 kB "
        f"packets). {SAYS['p95/2048 BQL']:g} ms is "
        "nearly one of them, or two at 10 Mbit/s."
    )


def _merged_ms() -> float:
    """What 64 kB in packets of 1448 B take on the wire."""
    return 64e3 / 1448 * SEGMENT_BYTES * 8 / one_interface_mbps(contended=True) / 1e3


def felt_or_not(evidence: Evidence) -> str:
    """The qdisc's length with BQL."""

    def fifo(evidence: Evidence) -> str:
        return f", {m.qdisc_apart(evidence, OTHER).mean / 1e3:.1f} s"

    return (
        "Pings that pass the files do not feel how long the qdisc is; in a FIFO (study bql, "
        f"fifo) they feel all of it{evidence.said(fifo, ' ({})')}. "
        "4016 packets in a FIFO are 20 ms at 2.5 Gbit/s: no reading with one rate gives "
        f"{SAYS['p95/apart']:g} ms and {SAYS['p95/2048']:g} s."
    )


def _ran(evidence: Evidence, *variants: Variant) -> bool:
    """Whether these were run, on an engine that may not run their study at all."""
    return bool(evidence.asked(lambda known: known.has(*variants)))
