"""Checks of the article's claims."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from sojourn_papers import published
from sojourn_papers.codel import measures as m
from sojourn_papers.codel import studies as s
from sojourn_papers.evidence import Evidence, Measure, some
from sojourn_papers.formats import at, each
from sojourn_papers.paper import Finding

SAYS = published.beside(__file__)
INNER = [rtt for rtt in s.RTT_MS if 30 <= rtt <= 200]
NOT_LONGEST = [rtt for rtt in s.RTT_MS if rtt < 500]

# ------------------------------------------------------------------------------------ static links


def group(
    evidence: Evidence,
    measure: Measure,
    name: str,
    mbps: float | None = None,
    rtt_ms: int | None = None,
) -> list[float]:
    """A measure of one discipline on all static links of this rate, or this RTT, that were run."""
    return [
        evidence.mean(variant, measure)
        for at, variant in s.SETTINGS.items()
        if at.queue == name
        and mbps in (None, at.mbps)
        and rtt_ms in (None, at.rtt_ms)
        and evidence.has(variant)
    ]


def by_rate(evidence: Evidence, measure: Measure, name: str) -> dict[float, float]:
    """The median over loads and RTTs, by rate in Mbit/s."""
    return {mbps: median(some(group(evidence, measure, name, mbps=mbps))) for mbps in s.MBPS}


def by_rtt(evidence: Evidence, measure: Measure, name: str) -> dict[int, float]:
    """The median over loads and rates, by RTT in ms."""
    return {rtt: median(some(group(evidence, measure, name, rtt_ms=rtt))) for rtt in s.RTT_MS}


def as_expected(evidence: Evidence) -> Finding:
    delay, use = (by_rate(evidence, one, s.CODEL) for one in (m.median_ms, m.busy))
    return Finding(
        {
            "longest median delay, ms": max(delay.values()),
            "shortest, ms": min(delay.values()),
            "least use of the link, %": min(use.values()),
        },
        f"Medians over loads and RTTs, by Mbit/s: {at(delay, 1)} ms; {at(use, 1)} %",
    )


def red_alike(evidence: Evidence) -> Finding:
    codel, red = (
        [by_rate(evidence, one, name)[3.0] for one in (m.median_ms, m.busy)]
        for name in (s.CODEL, s.RED)
    )
    return Finding(
        {
            "longer delay over the shorter": max(codel[0], red[0]) / min(codel[0], red[0]),
            "use of the link apart, points": abs(codel[1] - red[1]),
        },
        f"CoDel {codel[0]:.1f} ms, {codel[1]:.1f} %; RED {red[0]:.1f} ms, {red[1]:.1f} %",
    )


def red_overcontrols(evidence: Evidence) -> Finding:
    delay, use = (
        {name: by_rate(evidence, one, name) for name in (s.CODEL, s.RED)}
        for one in (m.median_ms, m.busy)
    )
    shorter, less = (
        [of[s.CODEL][mbps] - of[s.RED][mbps] for mbps in s.MBPS[1:]] for of in (delay, use)
    )
    return Finding(
        {
            "least by which RED uses less, points": min(less),
            "least by which its delay is shorter, ms": min(shorter),
            "most, ms": max(shorter),
        },
        f"By Mbit/s, CoDel: {at(delay[s.CODEL], 1)} ms; {at(use[s.CODEL], 1)} %. RED: "
        f"{at(delay[s.RED], 1)} ms; {at(use[s.RED], 1)} %",
    )


def over_rtts(evidence: Evidence) -> Finding:
    delay, use = (
        {name: by_rtt(evidence, one, name) for name in (s.CODEL, s.RED)}
        for one in (m.median_ms, m.busy)
    )
    more = [use[s.CODEL][rtt] - use[s.RED][rtt] for rtt in s.RTT_MS]
    return Finding(
        {
            "longest median delay, ms": max(*delay[s.CODEL].values(), *delay[s.RED].values()),
            "least by which CoDel uses more, points": min(more),
            "the median over RTTs, points": median(more),
        },
        f"Use by RTT in ms: CoDel {at(use[s.CODEL], 1)} %; RED {at(use[s.RED], 1)} %",
    )


def near_tail_drop(evidence: Evidence) -> Finding:
    delay, use = (
        {name: by_rtt(evidence, one, name) for name in (s.CODEL, s.TAIL)}
        for one in (m.median_ms, m.busy)
    )
    behind = {rtt: use[s.TAIL][rtt] - use[s.CODEL][rtt] for rtt in s.RTT_MS}
    return Finding(
        {
            "most that CoDel uses less below 500 ms, points": max(
                behind[rtt] for rtt in NOT_LONGEST
            ),
            "at 500 ms, points": behind[500],
            "largest share of Tail Drop's delay below 500 ms": max(
                delay[s.CODEL][rtt] / delay[s.TAIL][rtt] for rtt in NOT_LONGEST
            ),
        },
        f"Less by RTT in ms: {at(behind, 1)} points",
    )


def same_over_rtts(evidence: Evidence) -> Finding:
    delay, use = (
        [found[rtt] for rtt in INNER]
        for found in (by_rtt(evidence, one, s.CODEL) for one in (m.median_ms, m.busy))
    )
    return Finding(
        {
            "longest median delay over the shortest": max(delay) / min(delay),
            "use of the link apart, points": max(use) - min(use),
        },
        f"At {each(INNER)} ms: {each(delay, 1)} ms, {each(use, 1)} %",
    )


def drop_shares(evidence: Evidence) -> Finding:
    fair = {name: by_rtt(evidence, m.down_fairness, name) for name in (s.CODEL, s.RED)}
    ahead = [fair[s.CODEL][rtt] - fair[s.RED][rtt] for rtt in s.RTT_MS]
    return Finding(
        {"least lead of CoDel": min(ahead), "the median over RTTs": median(ahead)},
        f"Jain's index by RTT in ms: CoDel {at(fair[s.CODEL], 2)}; RED {at(fair[s.RED], 2)}",
    )


# -------------------------------------------------------------------------------------- slow links


def of_slow(
    evidence: Evidence, measure: Measure, name: str, packet: int | None = None
) -> list[float]:
    """The medians of figure 6's runs of one discipline, by rate."""
    sizes = (1500, 500) if packet is None else (packet,)
    return [
        median(
            evidence.mean(s.SLOW[s.slow(name, kbps, rtt, one)], measure)
            for rtt in s.SLOW_RTT_MS
            for one in sizes
        )
        for kbps in s.SLOW_KBPS
    ]


def slow_links(evidence: Evidence) -> Finding:
    delay, use = (of_slow(evidence, one, s.CODEL) for one in (m.median_ms, m.busy))
    return Finding(
        {
            "shortest median delay over the target": min(delay) / SAYS["target_ms"],
            "least use of the link, %": min(use),
        },
        f"At {each(s.SLOW_KBPS)} kbit/s: {each(delay, 1)} ms, {each(use, 1)} %",
    )


def larger_mtu(evidence: Evidence) -> Finding:
    large, small = (of_slow(evidence, m.median_ms, s.CODEL, packet) for packet in (1500, 500))
    more = [a - b for a, b in zip(large, small, strict=True)]
    return Finding(
        {
            "least that 1500 B wait longer than 500 B, ms": min(more),
            "least that this falls to the next rate, ms": min(a - b for a, b in pairwise(more)),
        },
        f"At {each(s.SLOW_KBPS)} kbit/s: {each(more, 1)} ms longer",
    )


def web_alone(evidence: Evidence) -> Finding:
    use, lost = (evidence.means(s.BY_READERS, measure) for measure in (m.busy, m.down_loss))
    above = [lost[readers] for readers, part in use.items() if part > SAYS["web_busy"]]
    return Finding(
        {f"least drops above {SAYS['web_busy']} % of use, %": min(some(above))},
        f"By readers: {at(use)} % busy, {at(lost, 1)} % dropped",
    )


# ------------------------------------------------------------------------------- the link that steps

_PHASES = ((10, 50, 100), (60, 100, 10), (120, 150, 1), (210, 250, 1))
"""Start and end of the evaluated spans, s, and the rate, Mbit/s: after the queue has met each
rate."""


def tail_drop_full(evidence: Evidence) -> Finding:
    full = [s.LARGE * 1500 * 8e-3 / mbps for _, _, mbps in _PHASES]
    ours = [evidence.mean(s.STEPPED[s.TAIL, s.LARGE], m.between_ms(a, b)) for a, b, _ in _PHASES]
    return Finding(
        {
            "least mean delay over a full buffer's": min(
                one / most for one, most in zip(ours, full, strict=True)
            )
        },
        f"{each(ours)} ms, full: {each(full)}. CUBIC backs off by 0.3 and leaves it less than full",
    )


def red_slower(evidence: Evidence) -> Finding:
    codel, red, tail = (
        [evidence.mean(s.STEPPED[name, s.LARGE], m.between_ms(at_, at_ + 10)) for at_ in s.FALLS_S]
        for name in (s.CODEL, s.RED, s.TAIL)
    )
    longer = [a - b for a, b in zip(red, codel, strict=True)]
    return Finding(
        {
            "least by which RED's delay is below Tail Drop's, ms": min(
                a - b for a, b in zip(tail, red, strict=True)
            ),
            "least by which it is above CoDel's, ms": min(longer),
            "most, ms": max(longer),
        },
        f"Mean delay in the ten seconds after each fall: CoDel {each(codel)} ms, RED {each(red)}, "
        f"Tail Drop {each(tail)}",
    )


def spikes(evidence: Evidence) -> Finding:
    peak, rest = (
        [
            evidence.mean(s.STEPPED[s.CODEL, s.LARGE], m.between_ms(at_ + a, at_ + b))
            for at_ in s.FALLS_S
        ]
        for a, b in ((0, 2), (40, 50))
    )
    return Finding(
        {
            "least delay in the two seconds after a fall over that 40 s later": min(
                a / b for a, b in zip(peak, rest, strict=True)
            )
        },
        f"After {each(s.FALLS_S)} s: {each(peak)} ms; 40 s later {each(rest, 1)} ms",
    )


def control_point(evidence: Evidence) -> Finding:
    return Finding(
        {
            "first drop after a fall of the rate, ms": evidence.mean(
                s.STEPPED[s.CODEL, s.LARGE], m.reaction_ms
            )
        },
        "CoDel acts when a packet leaves, each 12 ms at 1 Mbit/s: one to see the delay, one to drop",
    )


def same_bytes(evidence: Evidence) -> Finding:
    codel, tail = (
        evidence.mean(s.STEPPED[name, s.LARGE], m.down_volume) for name in (s.CODEL, s.TAIL)
    )
    jumps = sum(
        evidence.mean(s.STEPPED[s.TAIL, s.LARGE], m.carried_mb(a, b))
        - evidence.mean(s.STEPPED[s.CODEL, s.LARGE], m.carried_mb(a, b))
        for a, b in ((150, 200), (250, 300))
    )
    return Finding(
        {
            "CoDel carries less, %": 100 * (1 - codel / tail),
            "of that in the 50 s after the two jumps, %": 100 * jumps / (tail - codel),
        },
        f"CoDel {codel:.0f} MB, Tail Drop {tail:.0f}",
    )


def undersized(evidence: Evidence) -> Finding:
    less = {name: m.fewer(evidence, name).mean for name in s.QUEUES}
    codel, tail = (
        evidence.mean(s.STEPPED[name, s.SMALL], m.down_volume) for name in (s.CODEL, s.TAIL)
    )
    return Finding(
        {
            "least by which they carry less, %": min(less.values()),
            "Tail Drop and CoDel apart, %": 100 * abs(codel / tail - 1),
        },
        f"Less, %: {at(less)}",
    )


# -------------------------------------------------------------------------------------- the home line


def edge(evidence: Evidence) -> Finding:
    def both(measure: Measure) -> list[tuple[float, float]]:
        return [
            (
                evidence.mean(s.LINES[s.CODEL, kbps], measure),
                evidence.mean(s.LINES[s.TAIL, kbps], measure),
            )
            for kbps in s.EDGE_KBPS
        ]

    drops = both(m.down_loss) + both(m.up_loss)
    delay, volume = both(m.down_median), both(m.down_volume) + both(m.up_volume)
    return Finding(
        {
            "most that CoDel drops more, points": max(codel - tail for codel, tail in drops),
            "largest share of Tail Drop's median delay, down": max(
                codel / tail for codel, tail in delay
            ),
            "farthest apart in what they carry, %": max(
                100 * abs(codel / tail - 1) for codel, tail in volume
            ),
        },
        "CoDel and Tail Drop, down at 512 and 1500 kbit/s, then up: "
        + ", ".join(f"{codel:.1f} and {tail:.1f}" for codel, tail in drops)
        + " % dropped",
    )
