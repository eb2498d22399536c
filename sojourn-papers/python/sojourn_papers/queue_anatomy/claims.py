"""Checks of the source's claims, in the order of its sections.

Orders of magnitude are rounded powers of ten: a ratio of 10^0.5 to 10^1.5 is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from sojourn_papers import formats
from sojourn_papers.evidence import Evidence, some
from sojourn_papers.paper import Finding
from sojourn_papers.queue_anatomy import measures as m
from sojourn_papers.queue_anatomy import studies as s

BASE_MS = 0.5
"""RTT of the path with empty queues."""


def _spread(values: Iterable[float]) -> float:
    """Largest over smallest."""
    known = some(values)
    return max(known) / min(known)


def _percent(values: Mapping[int, float]) -> dict[int, float]:
    return {at: 100 * value for at, value in values.items()}


# ------------------------------------------------------------------------------- sections 1 and 2


def degrades(evidence: Evidence) -> Finding:
    rates = evidence.means(s.over_rings(s.MAIN), m.throughput_mbps)
    return Finding(
        {"throughput lost from ring 80 to 4096, %": 100 * (1 - rates[4096] / rates[80])},
        f"By ring: {formats.at(rates, 2)} Mbit/s",
    )


def more(evidence: Evidence) -> Finding:
    ours = m.more_at_4096(evidence).mean
    return Finding({"more by, %": ours})


# ------------------------------------------------------------------------------------ section 4.1


def ring(evidence: Evidence) -> Finding:
    ours = evidence.means(s.over_rings(s.MAIN), m.rtt_s)
    return Finding(
        {"least growth to the next ring, s": min(b - a for a, b in pairwise(ours.values()))},
        f"Mean RTT by ring: {formats.times(ours)}",
    )


def negligible(evidence: Evidence) -> Finding:
    ours = evidence.means(s.over_rings(s.MAIN), m.rtt_s)
    return Finding(
        {
            "mean RTT at ring 80 over that of the empty path": 1e3 * ours[80] / BASE_MS,
            "over that at ring 4096, %": 100 * ours[80] / ours[4096],
        },
        f"{formats.time(ours[80])} on a path of {BASE_MS} ms",
    )


def ten(evidence: Evidence) -> Finding:
    mean, half, top = (
        evidence.mean(s.over_rings(s.MAIN)[4096], measure)
        for measure in (m.rtt_s, m.median_s, m.p95_s)
    )
    return Finding(
        {"mean RTT at ring 4096, s": mean, "95th percentile, s": top}, f"Median {half:.2f} s"
    )


def exchange(evidence: Evidence) -> Finding:
    dropped, again = (
        evidence.means(s.over_rings(s.MAIN), measure) for measure in (m.drops, m.retransmissions)
    )
    return Finding(
        {
            "drops at ring 4096 over those at 80": dropped[4096] / dropped[80],
            "retransmissions": again[4096] / again[80],
        },
        f"Dropped by ring: {formats.at(dropped)}; sent again: {formats.at(again)}",
    )


def needless(evidence: Evidence) -> Finding:
    share = _percent(evidence.means(s.over_rings(s.MAIN), m.needless))
    return Finding(
        {
            "sent again for nothing at ring 4096, % of retransmissions": share[4096],
            "at ring 80, %": share[80],
        },
        f"By ring: {formats.at(share, 1)} %. Linux 3.2 and 3.11 had F-RTO and undo, as ours has",
    )


def which(evidence: Evidence) -> Finding:
    """One queue keeps the order of packets, so three duplicate ACKs mean a loss. Needless
    retransmissions are therefore due to the timer."""
    believed = evidence.mean(s.other_tcp(s.BELIEVED, 4096), m.needless)
    left = evidence.mean(s.over_rings(s.MAIN)[4096], m.needless)
    return Finding(
        {"needless with F-RTO and undo over needless if TCP believes every timer": left / believed},
        f"Ring 4096: {100 * left:.1f} and {100 * believed:.1f} % of the retransmissions",
    )


# ------------------------------------------------------------------------------ sections 4.2, 4.3


def flat(evidence: Evidence) -> Finding:
    ours = evidence.means(s.over_qdiscs(s.MAIN), m.rtt_s)
    return Finding(
        {"longest mean RTT over the shortest": _spread(ours.values())},
        f"By qdisc: {formats.times(ours)}",
    )


def order(evidence: Evidence) -> Finding:
    most, flat = (
        evidence.mean(along(s.MAIN)[4096], m.rtt_s) for along in (s.over_rings, s.over_qdiscs)
    )
    return Finding(
        {"RTT of ring 4096 over that of qdisc 4096": most / flat},
        f"{formats.time(most)} against {formats.time(flat)}",
    )


def hump(evidence: Evidence) -> Finding:
    dropped, again = (
        evidence.means(s.over_qdiscs(s.MAIN), measure) for measure in (m.drops, m.retransmissions)
    )
    above = [
        values[qdisc] / values[512]
        for values in (dropped, again)
        for qdisc in dropped
        if qdisc > 512
    ]
    return Finding(
        {
            "drops at 512 over those at 80": dropped[512] / dropped[80],
            "retransmissions": again[512] / again[80],
            "drops or retransmissions above 512 over those at 512, largest": max(some(above)),
            "at 4096": max(values[4096] / values[512] for values in (dropped, again)),
        },
        f"Dropped by qdisc: {formats.at(dropped)}",
    )


def absorbs(evidence: Evidence) -> Finding:
    qdiscs, rings = (
        evidence.means(along(s.MAIN), m.drops) for along in (s.over_qdiscs, s.over_rings)
    )
    worst = max(*qdiscs.values(), *rings.values())
    return Finding(
        {
            "drops at ring or qdisc 4096 over those at the worst size, %": 100
            * max(qdiscs[4096], rings[4096])
            / worst
        }
    )


def surface(evidence: Evidence) -> Finding:
    """The surface without a qdisc of 0, with which the ring itself sometimes runs empty."""
    lines = {
        ring: {
            qdisc: evidence.mean(one, m.rtt_s)
            for qdisc, one in s.over_qdiscs(s.MAIN, ring).items()
            if qdisc and evidence.has(one)
        }
        for ring in s.RINGS
    }
    known = some(line for line in lines.values() if line)
    across = max(_spread(line.values()) for line in known)
    along = min(
        _spread(line[qdisc] for line in known)
        for qdisc in s.QDISCS
        if all(qdisc in line for line in known)
    )
    return Finding(
        {
            "RTT over the qdisc, largest over smallest, at most": across,
            "over the ring, at least": along,
            "over the ring, of that over the qdisc": along / across,
        }
    )


def throughput_ring(evidence: Evidence) -> Finding:
    return Finding(
        {"apart, at the qdisc where they differ most, %": m.throughput_apart(evidence).mean}
    )


def throughput_qdisc(evidence: Evidence) -> Finding:
    line = evidence.means(s.over_qdiscs(s.MAIN), m.throughput_mbps)
    return Finding(
        {"apart, %": m.apart_percent(max(line.values()), min(line.values()))},
        f"Ring 512, by qdisc: {formats.at(line, 2)} Mbit/s",
    )


# ------------------------------------------------------------------------------ sections 4.4, 4.5


def window(evidence: Evidence) -> Finding:
    widest = m.widest_of_all_mb(evidence, s.WINDOW["ring 512"]).mean
    held = max(evidence.mean(s.WINDOW[f"ring {ring}"], m.held_back) for ring in (512, 4096))
    return Finding({"widest, MB": widest, "full in, % of the samples": 100 * held})


def bql(evidence: Evidence) -> Finding:
    without, with_ = (evidence.means(s.over_bql(s.MAIN, bql), m.p95_s) for bql in (False, True))
    ratio = {ring: without[ring] / with_[ring] for ring in without}
    return Finding(
        {"largest ratio of the 95th percentiles": max(ratio.values())},
        f"By ring: {formats.times(without)}; with BQL {formats.times(with_)}",
    )


def shifts(evidence: Evidence) -> Finding:
    ring, share = (
        [evidence.mean(s.over_bql(s.MAIN, bql)[2048], measure) for bql in (False, True)]
        for measure in (m.in_ring, m.in_qdisc_percent)
    )
    return Finding(
        {
            "packets in the ring over those with BQL": ring[0] / ring[1],
            "in the qdisc with BQL, %": share[1],
        },
        f"Ring 2048, qdisc 2952: {ring[0]:.0f} packets in the ring on average, {ring[1]:.1f} with "
        f"BQL; in the qdisc {share[0]:.0f} % of those that wait without it",
    )


def twenty(evidence: Evidence) -> Finding:
    ours = m.qdisc_apart(evidence).mean
    return Finding({"95th percentile, longer by, ms": ours}, "Pings pass the files")


def codel(evidence: Evidence) -> Finding:
    (plain, rtt), (full, rate) = (
        [evidence.mean(s.cure(one, True), measure) for one in ("fifo", "codel")]
        for measure in (m.rtt_s, m.throughput_mbps)
    )
    return Finding(
        {"mean RTT over a FIFO's": rtt / plain, "throughput over a FIFO's, %": 100 * rate / full},
        f"Ring 4096 with BQL: FIFO of 904 packets {formats.time(plain)}, CoDel {formats.time(rtt)}",
    )


def codel_alone(evidence: Evidence) -> Finding:
    without, with_ = (evidence.mean(s.cure("codel", bql), m.rtt_s) for bql in (False, True))
    return Finding(
        {"mean RTT without BQL over that with it": without / with_},
        f"Ring 4096, CoDel: {formats.time(without)}, because CoDel can't drop packets in the ring",
    )


# -------------------------------------------------------------------------------------- section 5


def ledbat_delay(evidence: Evidence) -> Finding:
    alone, cubic = (
        evidence.mean(s.COEXISTENCE[variant], m.ping_ms)
        for variant in ("LEDBAT alone", "CUBIC, Drop Tail, 1000")
    )
    return Finding(
        {"ping beside ten LEDBAT flows over that beside ten of CUBIC": alone / cubic},
        f"{alone:.0f} and {cubic:.0f} ms",
    )


def _share(evidence: Evidence, low: str, qdisc: str) -> float:
    """The low-priority flows' share beside CUBIC, %."""
    return evidence.mean(s.COEXISTENCE[f"{low}, {qdisc}"], m.low_share)


def unfair(evidence: Evidence) -> Finding:
    return Finding(
        {
            f"share of five {low} beside five of CUBIC, %": _share(evidence, low, "Drop Tail, 1000")
            for low in ("LEDBAT", "Vegas", "CUBIC")
        }
    )


def reprioritised(evidence: Evidence) -> Finding:
    share = {qdisc: _share(evidence, "LEDBAT", qdisc) for qdisc in s.COEXISTENCE_QDISCS}
    return Finding(
        {
            "share of LEDBAT under Drop Tail, %": share["Drop Tail, 1000"],
            "least under RED, CoDel and fq_codel, %": min(
                share[qdisc] for qdisc in ("RED", "CoDel", "fq_codel")
            ),
        },
        f"{formats.at(share, 1)} %. A short queue never reaches its target, so losses alone stop it",
    )


# -------------------------------------------------------------------------------------- section 6


def good_queue(evidence: Evidence) -> Finding:
    dropped, again = (
        evidence.means(s.over_qdiscs(s.MAIN), measure) for measure in (m.drops, m.retransmissions)
    )
    return Finding(
        {
            "drops at qdisc 4096 over those at 80": dropped[4096] / dropped[80],
            "retransmissions": again[4096] / again[80],
        },
        f"Dropped by qdisc: {formats.at(dropped)}",
    )


def only(evidence: Evidence) -> Finding:
    ours = evidence.mean(s.over_rings(s.MAIN)[s.DEFAULT_RING], m.rtt_s)
    return Finding(
        {"mean RTT with the defaults, ms": 1e3 * ours},
        f"On a path of {BASE_MS} ms: bufferbloat. 512 packets are 6 ms only at 1 Gbit/s",
    )


def removes(evidence: Evidence) -> Finding:
    ours = evidence.means(s.over_bql(s.MAIN, True), m.rtt_ms)
    return Finding(
        {"longest mean RTT with BQL, ms": max(ours.values())},
        f"By ring: {formats.at(ours, 1)} ms: the delay moves to the qdisc, where a discipline reaches it",
    )


# ------------------------------------------------------------------------------------------- ours


def sixteen(evidence: Evidence) -> Finding:
    """The later pfifo_fast beside the source's, which the kernel engine can't run."""
    usual = {80: s.over_qdiscs(s.MAIN)[80], s.DEFAULT_QDISC: s.over_rings(s.MAIN)[s.DEFAULT_RING]}
    later = {qdisc: s.OTHERS[s.band_name(s.DEFAULT_RING, qdisc)] for qdisc in usual}
    (short, long), (few, many) = (
        evidence.means(along, m.drops).values() for along in (later, usual)
    )
    return Finding(
        {
            "more drops than with the source's, ring 512, qdisc 80, packets": short - few,
            "qdisc 1000": long - many,
        },
        f"Dropped: {short:.0f} and {long:.0f} for {few:.0f} and {many:.0f}",
    )
