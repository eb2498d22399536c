"""Checks of the findings."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from sojourn_papers.evidence import Evidence, Measure, some
from sojourn_papers.formats import at
from sojourn_papers.l4s_tests import measures as m
from sojourn_papers.l4s_tests import studies as s
from sojourn_papers.paper import Finding


def unsafe(evidence: Evidence) -> Finding:
    """Ratios of goodputs in one queue."""
    ratios = {
        name: evidence.mean(s.SHARED[name], m.ratio)
        for name in s.SHARED.variants
        if name != s.APART and evidence.has(s.SHARED[name])
    }
    return Finding(
        {"Prague's least goodput over the other's": min(some(ratios.values()))}, at(ratios, 1)
    )


def apart(evidence: Evidence) -> Finding:
    """fq_codel with a queue for each flow."""
    return Finding({"Prague's goodput over CUBIC's": evidence.mean(s.SHARED[s.APART], m.ratio)})


def bias(evidence: Evidence) -> Finding:
    """The ratio at each rate and RTT."""
    ratios = evidence.means(
        {
            f"{mbps} Mbit/s, {rtt} ms": s.SCALED["Prague", mbps, rtt]
            for mbps in s.MBPS
            for rtt in s.RTT_MS
        },
        m.ratio,
    )
    return Finding(
        {
            "Prague's least goodput over CUBIC's": min(ratios.values()),
            "largest": max(ratios.values()),
        },
        at(ratios, 2),
    )


def unfair(evidence: Evidence) -> Finding:
    """Ratios of the shorter RTT's goodput to the longer's."""
    prague, cubic = (
        1 / evidence.mean(s.UNEQUAL[f"{name}, 160 and 10 ms"], m.ratio)
        for name in ("Prague, dualpi2", "CUBIC, pfifo")
    )
    return Finding(
        {"the shorter RTT's lead over that of CUBIC in a FIFO": prague / cubic},
        f"160 and 10 ms: {prague:.1f} times the longer's goodput, for {cubic:.1f}",
    )


def spikes(evidence: Evidence) -> Finding:
    """How long Prague's and CUBIC's RTTs stay high after the rate has fallen."""
    prague, cubic = (
        evidence.means({mbps: s.FALLING[s.falls(flow, mbps)] for mbps in s.FALLEN}, m.late_s)
        for flow in ("Prague", "CUBIC")
    )
    # Rows are 100 ms apart, so shorter spikes are not seen.
    longer = {mbps: prague[mbps] / max(cubic[mbps], 0.1) for mbps in prague}
    return Finding(
        {"least time with Prague over that with CUBIC": min(longer.values())},
        f"RTT above {m.LATE_MS} ms, by Mbit/s: {at(prague, 1)} s; CUBIC {at(cubic, 1)} s",
    )


def underuse(evidence: Evidence) -> Finding:
    """Prague's share of the link when alone behind bursts, by the step."""
    return Finding(
        {
            f"used with a step of {step} ms, %": evidence.mean(
                s.BURSTY[s.behind(bursts=True, step_ms=step, alone=True)], m.share_percent
            )
            for step in s.STEPS_MS
        }
    )


def turned(evidence: Evidence) -> Finding:
    """Prague's goodput over CUBIC's, with bursts and without."""
    with_, without = (
        evidence.mean(s.BURSTY[s.behind(bursts, 1, alone=False)], m.ratio)
        for bursts in (True, False)
    )
    return Finding(
        {
            "Prague's goodput over CUBIC's with bursts": with_,
            "without": without,
            "with them over without": with_ / without,
        }
    )


def tunnelled(evidence: Evidence) -> Finding:
    """The ratio in one tunnel and without it, behind each discipline that separates flows."""
    found = {
        s.through(queue, tunnel): evidence.mean(s.TUNNEL[s.through(queue, tunnel)], m.ratio)
        for queue in s.BEHIND
        for tunnel in (True, False)
    }
    outside = [found[s.through(queue, tunnel=False)] for queue in s.BEHIND]
    return Finding(
        {
            "Prague's least goodput over CUBIC's in the tunnel": min(
                found[s.through(queue, tunnel=True)] for queue in s.BEHIND
            ),
            "farthest from an equal share outside of it": max(abs(one - 1) for one in outside),
        },
        at(found, 2),
    )


def through_fifo(evidence: Evidence) -> Finding:
    """The flow with the larger share of a FIFO."""
    prague, cubic = (evidence.mean(s.TUNNEL[s.FIFO], one) for one in (m.prague_mbps, m.other_mbps))
    return Finding(
        {"CUBIC's goodput over Prague's": cubic / prague}, f"{cubic:.1f} and {prague:.1f} Mbit/s"
    )


def independence(evidence: Evidence) -> Finding:
    """The ratio of the shorter RTT's goodput to the longer's, with a virtual RTT and without."""
    with_, without = (
        {ends: 1 / ratio for ends, ratio in evidence.means(along, m.ratio).items()}
        for along in (
            {ends: s.SINCE[s.today(s.VRTT, f"Prague, dualpi2, {ends}")] for ends in s.APART_MS},
            {ends: s.UNEQUAL[f"Prague, dualpi2, {ends}"] for ends in s.APART_MS},
        )
    )
    less = {ends: with_[ends] / without[ends] for ends in with_ if ends in without}
    return Finding(
        {
            "largest ratio of goodputs over that without": max(some(less.values())),
            "smallest": min(less.values()),
        },
        f"The shorter's goodput over the longer's: {at(with_, 1)}; without {at(without, 1)}",
    )


def between(evidence: Evidence) -> Finding:
    """The 99th percentile of the probe's RTT beside a call."""
    found = evidence.means(
        {mbps: s.CALL[s.call("dualpi2", mbps)] for mbps in s.CALL_MBPS}, m.probe_p99
    )
    return Finding(
        {
            "least p99 of the RTT in the short queue up to 10 Mbit/s, ms": min(
                some(ms for mbps, ms in found.items() if mbps <= 10)
            ),
            "behind fq_codel at 5 Mbit/s, ms": evidence.mean(
                s.CALL[s.call("fq_codel", 5)], m.probe_p99
            ),
        },
        f"By Mbit/s: {at(found, 1)} ms",
    )


_CALL_MBPS = {"Prague": 2.3, "CUBIC": 1.8, "CUBIC, codel": 1.8}
"""The call's own share of the link."""


def backs_off(evidence: Evidence) -> Finding:
    """The goodput that a transfer loses beside a call, beyond the call's own rate."""

    def given_up(flow: str, video: str) -> float:
        alone, with_ = (
            evidence.mean(s.VIDEO[s.beside(flow, one)], m.prague_mbps) for one in ("alone", video)
        )
        return alone - with_ - _CALL_MBPS[flow]

    in_l = given_up("Prague", "video in L")
    known = {"given up in the short queue beyond the call's own rate, Mbit/s": in_l}
    classic = [
        (flow, video)
        for flow, videos in s.BESIDE.items()
        for video in videos[1:]
        if flow.startswith("CUBIC")
    ]
    if not evidence.has(*(s.VIDEO[s.beside(*one)] for one in classic)):
        return Finding(known)
    in_c, most = given_up("Prague", "video in C"), max(given_up(*one) for one in classic)
    return Finding(
        {
            **known,
            "in the other queue, Mbit/s": in_c,
            "less there, Mbit/s": in_l - in_c,
            "that less CUBIC's most, Mbit/s": in_c - most,
        },
        "Of a link of 20 Mbit/s",
    )


def replayed(evidence: Evidence) -> Finding:
    """CUBIC's goodput by the window, at all rates: the sentence names them."""
    hurt, healed, parts = [], [], []
    for mbps, windows in s.WINDOWS.items():
        found = evidence.means(
            {window: s.REPLAY[s.windowed(mbps, window)] for window in (*windows, s.ENOUGH)},
            m.other_mbps,
        )
        hurt.append(found[32] / found[0])
        healed.append(found[s.ENOUGH] / found[0])
        parts.append(f"{mbps} Mbit/s: {at(found, 1)}")
    return Finding(
        {
            "largest share of its goodput that CUBIC has with a window of 32": max(hurt),
            f"smallest with one of {s.ENOUGH}": min(healed),
            "smallest with one of 32": min(hurt),
        },
        f"CUBIC's goodput, Mbit/s, by the window (0: none), {'; '.join(parts)}",
    )


# --------------------------------------------------------------------------------------- RFC 9332


def _cells(evidence: Evidence, measure: Measure) -> dict[tuple[int, int], float]:
    return evidence.means(
        {(mbps, ms): s.GRID[s.cell(mbps, ms)] for mbps in s.GRID_MBPS for ms in s.GRID_MS}, measure
    )


def _off(
    found: dict[tuple[int, int], float], what: str, off: Callable[[int, float], float]
) -> Finding:
    """The worst cell, by its rate and value, and the median of all cells."""
    each = {at_: off(at_[0], value) for at_, value in found.items()}
    worst = max(each, key=each.__getitem__)
    return Finding(
        {f"{what}, largest": each[worst], "the median over cells": median(each.values())},
        f"{len(each)} cells; largest at {s.cell(*worst)}: {found[worst]:.3g}",
    )


def _two_packets_ms(mbps: int) -> float:
    return 2 * 12 / mbps


def short_mean(evidence: Evidence) -> Finding:
    """The mean delay of the short queue over its bound, in each cell."""
    return _off(
        _cells(evidence, m.queued("mean")),
        "mean delay over its bound",
        lambda mbps, ms: ms / max(1.0, _two_packets_ms(mbps)),
    )


def short_p99(evidence: Evidence) -> Finding:
    """The 99th percentile of the short queue's delay over its bound, in each cell."""
    return _off(
        _cells(evidence, m.queued("p99")),
        "99th percentile over its bound",
        lambda mbps, ms: ms / max(2.0, 2 * _two_packets_ms(mbps)),
    )


def lossless(evidence: Evidence) -> Finding:
    """Prague's losses in each cell."""
    return _off(_cells(evidence, m.lost_l), "lost by Prague, %", lambda _, lost: lost)


def full(evidence: Evidence) -> Finding:
    """The unused share of the link in each cell."""
    return _off(
        _cells(evidence, m.utilised_percent), "left of the link, %", lambda _, used: 100 - used
    )


def like_rates(evidence: Evidence) -> Finding:
    """The larger goodput over the smaller in each cell."""
    return _off(
        _cells(evidence, m.ratio),
        "larger goodput over the smaller",
        lambda _, ratio: max(ratio, 1 / ratio),
    )
