"""Checks of what the source says, in the order of its sections, and what other readings of it give.

Each is judged under the main reading, in which pings pass the files in the qdisc; what a FIFO gives
follows after it. An order of magnitude is taken as the nearest power of ten: a ratio of 10^0.5 to
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
    BELIEVED,
    COEXISTENCE,
    COEXISTENCE_QDISCS,
    DEFAULT_RING,
    MAIN,
    OTHER,
    OTHERS,
    PER_BAND,
    QDISC,
    QDISCS,
    RENO,
    RINGS,
    SEGMENTS,
    SPEEDS,
    STICK,
    TCPS,
    TOTAL,
    WINDOW,
    at_rate,
    cure,
    name,
    narrow,
    other_tcp,
    over_bql,
    over_qdiscs,
    over_rings,
    over_rings_with,
)
from sojourn.papers.study import Variant

SAYS = published.beside(__file__)
FULL_ONLY = "Measured in the full version."

BASE_MS = 0.5
"""The path with empty queues."""


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

    return Finding(
        rates[4096] < 0.97 * rates[80],
        f"All copies together: {rates[80]:.2f} Mbit/s at ring 80, {rates[4096]:.2f} at 4096: a "
        "full queue by itself loses no throughput" + _beside(evidence, believed),
    )


def more(evidence: Evidence) -> Finding:
    ours, fifo = (m.more_at_4096(evidence, reading).mean for reading in (MAIN, OTHER))

    def believed(evidence: Evidence) -> str:
        large, small = (evidence.mean(other_tcp(BELIEVED, ring), m.rtt_s) for ring in (4096, 512))
        return f", if TCP believes every timer {m.more_percent(large, small):+.0f} %"

    return Finding(
        holds=abs(ours - SAYS["rtt/more"]) <= 0.15 * SAYS["rtt/more"],
        partly=orders(1 + ours / 100) == 1,
        because=f"Stated up to {SAYS['rtt/more']:+.0f} %, ours {ours:+.0f} "
        f"%{_beside(evidence, believed)}. In a FIFO 1000 packets of qdisc add to both, and it is "
        f"{fifo:+.0f} %",
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
    fifo, most = (
        evidence.means(over_rings(OTHER), measure)[4096] for measure in (m.rtt_s, m.p95_s)
    )
    return Finding(
        holds=mean > SAYS["rtt/4096"],
        partly=top > SAYS["rtt/4096"],
        because=f"Ring 4096: mean {mean:.2f} s, median {half:.2f} s, 95th percentile {top:.2f} s, "
        "which is the full ring; the mean has the ring's filling and emptying in it. "
        f"FIFO: {fifo:.1f} s, 95th percentile {most:.1f} s. The rate was read from this number",
    )


def exchange(evidence: Evidence) -> Finding:
    dropped, again = (
        evidence.means(over_rings(MAIN), measure) for measure in (m.drops, m.retransmissions)
    )
    falls, rises = dropped[4096] < dropped[80], again[4096] > 1.5 * again[80]

    def believed(evidence: Evidence) -> str:
        drop, sent = (
            evidence.means(over_rings_with(BELIEVED), measure)
            for measure in (m.drops, m.retransmissions)
        )
        return f". If TCP believes every timer: dropped {_counts(drop)}; sent again {_counts(sent)}"

    return Finding(
        holds=falls and rises,
        partly=rises,
        because=f"Dropped packets by ring: {_counts(dropped)}. Retransmissions: {_counts(again)}, "
        f"one for each drop. {_CLOCK}{_beside(evidence, _reno_rings)}"
        + _beside(evidence, believed),
    )


_CLOCK = "CUBIC's windows grow by the clock, not by the round trip: the longer that is, the further they are past the queue when a drop is heard of"


def _reno_rings(evidence: Evidence) -> str:
    return f". Reno's drops: {_counts(evidence.means(over_rings_with(RENO), m.drops))}"


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
    return Finding(
        holds=left > 0.5 * share,
        because="One queue keeps the order, so three duplicate ACKs mean a loss. Where packets "
        f"are sent again for nothing it is the timer: if TCP believes it, {timers:.0f} timeouts "
        f"and {again:.0f} "
        f"retransmissions at ring 4096, {100 * share:.0f} % of them needless; where F-RTO and "
        f"undo see through it, {100 * left:.1f} %",
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
    narrowed, believed = (evidence.means(narrow(every), m.drops) for every in (False, True))
    most = max(believed, key=believed.__getitem__)
    rises = dropped[512] > 1.05 * dropped[80] and again[512] > 1.05 * again[80]
    vanish = all(
        values[qdisc] < 0.1 * values[512]
        for values in (dropped, again)
        for qdisc in values
        if qdisc > 512
    )
    return Finding(
        holds=rises and vanish,
        partly=rises,
        because=f"Dropped packets by qdisc: {_counts(dropped)}. They rise past 512, and do not "
        "vanish: CUBIC's windows grow until something is lost. "
        f"With windows of at most 64 kB they vanish above 512: {_counts(narrowed)}; if TCP "
        f"believes every timer besides, they rise before, to most at {most}: {_counts(believed)}",
    )


def absorbs(evidence: Evidence) -> Finding:
    dropped = evidence.means(over_qdiscs(MAIN), m.drops)

    def narrowed(evidence: Evidence) -> str:
        known = evidence.means(narrow(), m.drops)
        return f"; with windows of 64 kB {known[max(known)]:.0f} at {max(known)}"

    return Finding(
        dropped[4096] < 0.01 * max(dropped.values()),
        f"{dropped[4096]:.0f} packets are dropped at a qdisc of 4096, for "
        f"{min(dropped.values()):.0f} at the best size{_beside(evidence, narrowed)}",
    )


def surface(evidence: Evidence) -> Finding:
    told, largest, least = [], [], []
    for reading in QDISC:
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
    default, large = (
        m.widest_of_all_mb(evidence, WINDOW[f"ring {ring}"]).mean for ring in (512, 4096)
    )
    held = max(evidence.mean(WINDOW[f"ring {ring}"], m.held_back) for ring in (512, 4096))
    return Finding(
        abs(default - SAYS["window"]) < 0.1 and held < 0.01,
        f"Widest window {default:.2f} MB at the default ring, {large:.2f} MB at 4096; it was full "
        f"in {100 * held:.2f} % of the samples. The bound is the buffer that was chosen",
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
        holds=abs(ours - SAYS["p95/apart"]) < 0.25 * SAYS["p95/apart"],
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
        f"CUBIC: {cubic:.0f} ms. More than its target of 100 ms: who comes later takes the queue "
        "for a part of the path",
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
        f"It does with small rings, and with large ones too{_beside(evidence, believed)}",
    )


def good_queue(evidence: Evidence) -> Finding:
    dropped, again = (
        evidence.means(over_qdiscs(MAIN), measure) for measure in (m.drops, m.retransmissions)
    )
    fewer = dropped[4096] < dropped[80] and again[4096] < again[80]

    def reno(evidence: Evidence) -> str:
        small, large = (
            evidence.mean(other_tcp(RENO, DEFAULT_RING, qdisc), m.drops) for qdisc in (80, 4096)
        )
        return f". Reno's drops, {small:.0f} and {large:.0f}, are few beside them: a slow start into a queue overruns it by what it holds"

    def narrowed(evidence: Evidence) -> str:
        known = evidence.means(narrow(), m.retransmissions)
        return f". With windows of 64 kB the sentence holds: retransmissions {known[80]:.0f} to {known[max(known)]:.0f}"

    return Finding(
        holds=fewer,
        because=f"Qdisc 80 to 4096: dropped packets {dropped[80]:.0f} to {dropped[4096]:.0f}, "
        f"retransmissions {again[80]:.0f} to {again[4096]:.0f}. {_CLOCK}"
        + _beside(evidence, reno)
        + _beside(evidence, narrowed),
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
        because=f"Mean RTT with BQL by ring: {said.times(ours)}, whatever the ring. FIFO: "
        f"{said.times(fifo)}: the delay moves to the qdisc, where a discipline can reach it",
    )


# ----------------------------------------------------------------------- what other readings give


def both_orders(evidence: Evidence) -> str:
    def found(reading: str) -> str:
        small, large = (evidence.mean(over_rings(reading)[ring], m.rtt_s) for ring in (512, 4096))
        p95, cured = (evidence.mean(over_bql(reading, bql)[2048], m.p95_s) for bql in (False, True))
        few, many = (evidence.mean(over_qdiscs(reading)[qdisc], m.rtt_s) for qdisc in (80, 4096))
        return (
            f"ring 512 to 4096: {small:.2f} to {large:.2f} s, {m.more_percent(large, small):+.0f} "
            f"%; qdisc 80 to 4096: {few:.2f} to {many:.2f} s; "
            f"95th percentile of 2048 and 2952: {p95:.1f} s, with BQL {1e3 * cured:.0f} ms"
        )

    return f"FIFO: {found('fifo')}. Bands: {found('bands')}."


def other_rates(evidence: Evidence) -> str:
    told = []
    for rate in SPEEDS:
        for reading in QDISC:
            variants = [at_rate(rate, reading, ring) for ring in (512, 4096)]
            if evidence.has(*variants):
                small, large = (evidence.mean(one, m.rtt_s) for one in variants)
                told.append(
                    f"{rate}, {reading}: {said.time(small)} at ring 512, {said.time(large)} at 4096"
                )
    return (
        "; ".join(told)
        + ". Full queues scale with 1/rate; at 1 Gbit/s, where the copies last 9 s, the large "
        "ring is not always full."
        if told
        else FULL_ONLY
    )


def one_interface(evidence: Evidence) -> str:
    told = []
    for reading in QDISC:
        large, small = (
            evidence.mean(STICK[name(reading, ring, 1000)], m.rtt_s) for ring in (4096, 512)
        )
        p95 = evidence.mean(STICK[name(reading, 2048, 2952)], m.p95_s)
        told.append(
            f"{reading}: {small:.2f} s at ring 512, {large:.1f} s at 4096, 95th percentile of "
            f"2048 and 2952 {p95:.1f} s"
        )
    return (
        "By the letter of section 3.1, D has one interface and everything leaves through it, the "
        "ping twice. At 10 Mbit/s: "
        + "; ".join(told)
        + ". Twice a full ring of files would be 10.1 s, as 5 Mbit/s once; but a third of its "
        "packets are ACKs, which are short."
    )


def other_tcps(evidence: Evidence) -> str:
    def outcome(variant: Variant) -> str:
        rtt, again, needless, rate = (
            evidence.mean(variant, one)
            for one in (m.rtt_s, m.retransmissions, m.needless, m.throughput_mbps)
        )
        return f"{rtt:.1f} s, {_thousands(again)} retransmissions, {100 * needless:.0f} % of them needless, {rate:.2f} Mbit/s"

    told = [f"At ring 4096 (bands): {outcome(over_rings(MAIN)[4096])}"]
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


def larger_buffer(evidence: Evidence) -> str:
    widest, rtt = (
        evidence.mean(WINDOW["ring 512, buffer 6 MiB"], one) for one in (m.widest_mb, m.rtt_s)
    )
    ours = evidence.mean(WINDOW["ring 512"], m.rtt_s)
    return f"With today's 6 MiB, 0.63 of it advertised, the window ends at {widest:.2f} MB; the RTT is {rtt:.2f} s for {ours:.2f}."


def small_windows(evidence: Evidence) -> str:
    """Windows without scaling."""
    dropped, believed = (_counts(evidence.means(narrow(every), m.drops)) for every in (False, True))
    return (
        f"Windows of at most {SEGMENTS} segments: dropped packets by qdisc {dropped}; if TCP "
        "believes every timer besides, "
        f"{believed}. Thirty windows are 1320 packets, more than 512 + 512 and fewer than 512 + "
        "1024."
    )


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
    slower = at_rate("4 Mbit/s", MAIN, 4096)
    four = (
        f"; at 4 Mbit/s (study rates) the mean is {evidence.mean(slower, m.rtt_s):.1f} s"
        if _ran(evidence, slower)
        else ""
    )
    return (
        f"A full ring is {half:.2f} s, which is the median. The mean has the ring's filling and "
        f"emptying in it: {mean:.1f} s. "
        f"The rate is a round number{four}. As full queues scale with 1/rate, one "
        f"{100 * (1 - mean / SAYS['rtt/4096']):.0f} % below ours would pass {SAYS['rtt/4096']:g} "
        "s."
    )


def more_than_stated(evidence: Evidence) -> str:
    """Ring 4096 over the default."""
    large, default = (other_tcp(BELIEVED, ring) for ring in (4096, DEFAULT_RING))
    more = ""
    if _ran(evidence, large, default):
        apart = evidence.compared(large, default, m.rtt_s, m.more_percent).mean
        more = f": if TCP believes every timer it is {apart:+.0f} % (study others, timers believed)"
    packets = 4096 / (1 + SAYS["rtt/more"] / 100)
    return (
        "RTTs grow as the ring does (study ring), so eight times the ring is +700 % less the "
        "ramps, at any rate. "
        f"Less takes a large ring that is not always full{more}. Or a default ring of some "
        f"{packets:.0f} packets, which is about 512 too."
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
    two = (
        f" is {1e3 * evidence.mean(merged, m.p95_s):.0f} ms"
        if _ran(evidence, merged)
        else " is more than twice that"
    )
    ours = evidence.mean(over_bql(MAIN, True)[2048], m.p95_ms)
    return (
        f"Single packets: BQL lets few in, {ours:.0f} ms. Packets of 64 kB, as receive offload "
        "merges them, take 105 ms each at this rate; with two of them in the ring "
        f"the 95th percentile{two} (study others, 64 kB packets). {SAYS['p95/2048 BQL']:g} ms is "
        "one of them at 5 Mbit/s or two at 10."
    )


def felt_or_not(evidence: Evidence) -> str:
    """The qdisc's length with BQL."""

    def fifo(evidence: Evidence) -> str:
        return f", {m.qdisc_apart(evidence, OTHER).mean / 1e3:.1f} s"

    return (
        "Pings that pass the files do not feel how long the qdisc is; in a FIFO (study bql, "
        f"fifo) they feel all of it{evidence.said(fifo, ' ({})')} at 5 Mbit/s. "
        "4016 packets in a FIFO are 20 ms at 2.5 Gbit/s: no reading with one rate gives "
        f"{SAYS['p95/apart']:g} ms and {SAYS['p95/2048']:g} s."
    )


def _ran(evidence: Evidence, *variants: Variant) -> bool:
    """Whether these were run, on an engine that may not run their study at all."""
    return bool(evidence.asked(lambda known: known.has(*variants)))
