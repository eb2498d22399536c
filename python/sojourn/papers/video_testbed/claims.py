"""What the source says, in our words, as checks: in the order of its sections.

Where it says "CoDel" two queues answer: the one of a few packets that its costs imply, and tc's default. A check says both.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Claim, Finding, Measure
from sojourn.papers.verdict import difference
from sojourn.papers.video_testbed import measures as m
from sojourn.papers.video_testbed import sweeps
from sojourn.papers.video_testbed.reading import BOTTLENECKS, UNSHAPED

DEFAULT = "limit 1000"
"""tc's CoDel, in the study of CoDel's limits."""


def _mean(evidence: Evidence, name: str, kbps: int, measure: Measure) -> float:
    return evidence.mean("testbed", f"{kbps} {name}", measure)


def _default(evidence: Evidence, kbps: int, measure: Measure) -> float | None:
    name = f"{kbps} {DEFAULT}"
    return evidence.mean("codel", name, measure) if evidence.has("codel", name) else None


def _each(evidence: Evidence, name: str, measure: Measure) -> list[float]:
    return [_mean(evidence, name, kbps, measure) for kbps in BOTTLENECKS]


def _said(values: list[float], digits: int = 0) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in values)


def _defaults(evidence: Evidence, measure: Measure, unit: str, digits: int = 0) -> str:
    known = [value for kbps in BOTTLENECKS if (value := _default(evidence, kbps, measure)) is not None]
    return f"; with tc's defaults CoDel has {_said(known, digits)} {unit}" if known else ""


# ------------------------------------------------------------------------------------------ sections 2.1 to 2.3


def _bloat(evidence: Evidence) -> Finding:
    latency, carried = (
        _each(evidence, "Drop Tail", m.mean_ms),
        _each(evidence, "Drop Tail", m.throughput_kbps),
    )
    full = all(rate > 0.998 * 8 * kbps for rate, kbps in zip(carried, BOTTLENECKS, strict=True))
    return Finding(
        holds=min(latency) > 1000 and not full,
        partly=min(latency) > 1000,
        because=f"Latency: {_said(latency)} ms under Drop Tail at 250, 200 and 150 kbps. Throughput: {_said(carried)} kbit/s, "
        + ("all that the link has: a full queue never leaves it idle, it wastes time and not capacity" if full else "less than the link has"),
    )  # fmt: skip


def _harmless(evidence: Evidence) -> Finding:
    name = f"250 {DEFAULT}"
    latency, carried = (evidence.mean("codel", name, one) for one in (m.mean_ms, m.throughput_kbps))
    tail, slow = (_mean(evidence, "Drop Tail", 250, one) for one in (m.throughput_kbps, m.mean_ms))
    return Finding(
        holds=latency < slow / 10 and carried > 0.98 * tail,
        partly=latency < slow / 10,
        because=f"tc's defaults at 250 kbps: {latency:.0f} ms for Drop Tail's {slow:.0f}, and {carried:.0f} kbit/s for {tail:.0f}, {100 * (1 - carried / tail):.1f} % less: "
        "after a lively scene CoDel has nothing kept for the quiet one",
    )


# --------------------------------------------------------------------------------------------- the cited figures


def _cited_rates(evidence: Evidence) -> list[int]:
    return [
        rate
        for rate in sweeps.RATES
        if all(evidence.has("cited", f"{rate} {name}") for name in sweeps.CITED_QDISCS)
    ]


def _cited(evidence: Evidence, rate: int, name: str, measure: Measure) -> float:
    return evidence.mean("cited", f"{rate} {name}", measure)


def _figure2(evidence: Evidence) -> Finding:
    told, more = [], []
    for rate in _cited_rates(evidence):
        tail, red = (_cited(evidence, rate, name, m.queue_loss_percent) for name in ("Drop Tail", "RED"))
        if red > 1:
            told.append(f"{m.above_percent(tail, red):+.0f} % at {rate}")
        if rate in sweeps.FILLED:
            more.append(m.above_percent(tail, red))
    return Finding(
        holds=all(abs(one - 20) <= 5 for one in more),
        partly=min(more) > 0,
        because=f"Drop Tail's loss over RED's, bottleneck in kbit/s: {', '.join(told)}. ns-2's RED counts bytes and so prefers to drop large packets: "
        "fewer of them make the same room; where the load just fits, Drop Tail loses less",
    )


def _loss_below(evidence: Evidence) -> Finding:
    rates = [rate for rate in _cited_rates(evidence) if rate < 1000]
    against_tail = all(
        _cited(evidence, rate, "CoDel", m.queue_loss_percent)
        < _cited(evidence, rate, "Drop Tail", m.queue_loss_percent)
        for rate in rates
    )
    best = all(
        _cited(evidence, rate, "CoDel", m.queue_loss_percent)
        < _cited(evidence, rate, "RED", m.queue_loss_percent)
        for rate in rates
    )
    return Finding(
        holds=against_tail and best,
        partly=against_tail,
        because=f"{_losses(evidence, rates)}: CoDel below Drop Tail {'everywhere' if against_tail else 'not everywhere'}; RED, which drops by bytes, "
        f"{'above both' if best else 'loses fewest packets'}",
    )


def _loss_above(evidence: Evidence) -> Finding:
    rates = [rate for rate in _cited_rates(evidence) if rate >= 1000]
    best = all(
        _cited(evidence, rate, "Drop Tail", m.queue_loss_percent)
        <= _cited(evidence, rate, name, m.queue_loss_percent) + 1e-9
        for rate in rates
        for name in ("RED", "CoDel")
    )
    return Finding(best, _losses(evidence, rates))


def _losses(evidence: Evidence, rates: list[int]) -> str:
    return "lost packets, Drop Tail / RED / CoDel: " + "; ".join(
        f"{rate} kbit/s: "
        + " / ".join(
            f"{_cited(evidence, rate, name, m.queue_loss_percent):.1f}" for name in sweeps.CITED_QDISCS
        )
        + " %"
        for rate in rates
    )


def _throughput(evidence: Evidence) -> Finding:
    rates = _cited_rates(evidence)
    carried = {
        name: [_cited(evidence, rate, name, m.carried_kbps) for rate in rates] for name in sweeps.CITED_QDISCS
    }
    # Where nothing is lost all three carry the same.
    best = all(
        tail >= 0.999 * max(red, codel)
        for tail, red, codel in zip(*(carried[name] for name in sweeps.CITED_QDISCS), strict=True)
    )
    apart = max(1 - min(row) / max(row) for row in zip(*carried.values(), strict=True))
    return Finding(
        holds=best and apart < 0.1,
        partly=best,
        because=f"largest difference at one bottleneck {100 * apart:.1f} %; "
        + "; ".join(f"{name} {_said(values)}" for name, values in carried.items())
        + f" kbit/s at {_said([float(rate) for rate in rates])} kbit/s",
    )


def _grows(evidence: Evidence) -> Finding:
    rates = _cited_rates(evidence)
    told = {
        name: [_cited(evidence, rate, name, m.carried_kbps) for rate in rates] for name in sweeps.CITED_QDISCS
    }
    # Wider than the load all links carry the same, but for what stood in the queue when the warm-up ended.
    growing = all(later >= 0.99 * earlier for values in told.values() for earlier, later in pairwise(values))
    return Finding(growing, f"Drop Tail carries {_said(told['Drop Tail'])} kbit/s: up to what is offered")


def _latency_low(evidence: Evidence) -> Finding:
    rates = [rate for rate in _cited_rates(evidence) if rate < 256]
    tail, red, codel = (
        [_cited(evidence, rate, name, m.queue_ms) for rate in rates] for name in sweeps.CITED_QDISCS
    )
    small = [
        _cited(evidence, rate, "Drop Tail small", m.queue_ms)
        for rate in rates
        if evidence.has("cited", f"{rate} Drop Tail small")
    ]
    lost = _cited(evidence, 1000, "Drop Tail small", m.queue_loss_percent)
    return Finding(
        all(a < min(b, c) for a, b, c in zip(tail, red, codel, strict=True)),
        f"at {_said([float(rate) for rate in rates])} kbit/s: Drop Tail {_said(tail)}, RED {_said(red)}, CoDel {_said(codel)} ms. Even with a buffer of "
        f"{sweeps.SMALL} packets Drop Tail has {_said(small)} ms, and then it loses {lost:.0f} % at 1000 kbit/s, where it is said to lose least: "
        "no buffer satisfies both sentences",
    )


def _latency_high(evidence: Evidence) -> Finding:
    rates = [rate for rate in _cited_rates(evidence) if rate >= 256]
    rows = [[_cited(evidence, rate, name, m.queue_ms) for name in sweeps.CITED_QDISCS] for rate in rates]
    # A link that is wider than the load has the same short queue under all three.
    return Finding(
        all(row[2] <= 1.01 * min(row) for row in rows),
        "Drop Tail / RED / CoDel: "
        + "; ".join(
            f"{rate} kbit/s: {' / '.join(f'{value:.0f}' for value in row)} ms"
            for rate, row in zip(rates, rows, strict=True)
        ),
    )


def _small(evidence: Evidence) -> Finding:
    rates = [rate for rate in sweeps.RATES if evidence.has("cited", f"{rate} RED small")]
    rows = [
        [
            _cited(evidence, rate, f"{name} small", one)
            for one in (m.carried_kbps, m.queue_loss_percent)
            for name in ("Drop Tail", "RED")
        ]
        for rate in rates
    ]
    return Finding(
        holds=all(tail >= red for tail, red, _, _ in rows) and all(tail <= red for _, _, tail, red in rows),
        partly=all(tail >= red for tail, red, _, _ in rows),
        because=f"{sweeps.SMALL} packets of buffer, Drop Tail against RED: "
        + "; ".join(
            f"{rate} kbit/s: {tail:.0f} against {red:.0f} kbit/s, {lost:.1f} against {early:.1f} % lost"
            for rate, (tail, red, lost, early) in zip(rates, rows, strict=True)
        ),
    )


# ---------------------------------------------------------------------------------------------------- section 4


def _unshaped(evidence: Evidence) -> Finding:
    rows = [
        (evidence.mean("unshaped", attempt, m.mean_ms), evidence.mean("unshaped", attempt, m.ping_loss_percent), evidence.mean("unshaped", attempt, m.film_loss_percent))
        for attempt in UNSHAPED
    ]  # fmt: skip
    return Finding(
        all(latency < 1 and lost == 0 and film == 0 for latency, lost, film in rows),
        f"latency {_said([row[0] for row in rows], 2)} ms, nothing lost of pings or film",
    )


def _narrower(name: str) -> Callable[[Evidence], Finding]:
    """The narrower the bottleneck, the more latency and loss and the less throughput."""

    def check(evidence: Evidence) -> Finding:
        kinds: tuple[Measure, ...] = (m.mean_ms, m.ping_loss_percent, m.film_loss_percent)
        latency, pings, film = (_each(evidence, name, one) for one in kinds)
        carried = _each(evidence, name, m.throughput_kbps)
        ordered = all(values == sorted(values) for values in (latency, pings, film))
        ends = all(values[0] < values[-1] for values in (latency, pings, film))
        falls = carried == sorted(carried, reverse=True)
        return Finding(
            holds=ordered and falls,
            partly=ends and falls,
            because=f"250, 200, 150 kbps: latency {_said(latency)} ms, pings lost {_said(pings)} %, of the film {_said(film)} %, throughput {_said(carried)} kbit/s",
        )

    return check


def _lowest(evidence: Evidence) -> Finding:
    codel, red, tail = (_each(evidence, name, m.mean_ms) for name in ("CoDel", "RED", "Drop Tail"))
    known = [_default(evidence, kbps, m.mean_ms) for kbps in BOTTLENECKS]
    lowest = all(a < b < c for a, b, c in zip(codel, red, tail, strict=True))
    also = all(a < b for a, b in zip(known, red, strict=True) if a is not None)
    return Finding(
        lowest and also,
        f"250, 200, 150 kbps: CoDel {_said(codel, 1)} ms, RED {_said(red)} ms, Drop Tail {_said(tail)} ms" + _defaults(evidence, m.mean_ms, "ms")
        + ". One way, the film's own packets: "
        + "; ".join(f"{name} {_said(_each(evidence, name, m.film_latency_ms))} ms" for name in ("CoDel", "RED", "Drop Tail")),
    )  # fmt: skip


def _by_age(evidence: Evidence) -> Finding:
    aged = _each(evidence, "CoDel", m.dropped_for_age_percent)
    plain = [
        value
        for kbps in BOTTLENECKS
        if (value := _default(evidence, kbps, m.dropped_for_age_percent)) is not None
    ]
    return Finding(
        holds=min(aged) > 50,
        partly=bool(plain) and min(plain) > 50,
        because=f"with tc's defaults {_said(plain)} % of the drops are for age; in the queue of a few packets that the stated cost implies "
        f"{_said(aged)} %, the rest found it full: there it is the limit that keeps latency low, and loses",
    )


def _most_carried(evidence: Evidence) -> Finding:
    tail, red, codel = (_each(evidence, name, m.throughput_kbps) for name in ("Drop Tail", "RED", "CoDel"))
    # At 150 kbps the film always exceeds the link, and RED too leaves next to nothing idle.
    first = all(a > 0.9999 * b and a > c for a, b, c in zip(tail, red, codel, strict=True))
    return Finding(
        first,
        f"Drop Tail {_said(tail)}, RED {_said(red)}, CoDel {_said(codel)} kbit/s" + _defaults(evidence, m.throughput_kbps, "kbit/s"),
    )  # fmt: skip


def _least_lost(evidence: Evidence) -> Finding:
    tail, red, codel = (_each(evidence, name, m.film_loss_percent) for name in ("Drop Tail", "RED", "CoDel"))
    pings = {name: _each(evidence, name, m.ping_loss_percent) for name in ("Drop Tail", "RED", "CoDel")}
    # Behind a link that is never idle both lose what exceeds it.
    tail_first = all(a < b + 0.5 and a < c for a, b, c in zip(tail, red, codel, strict=True))
    codel_last = all(c > b for b, c in zip(red, codel, strict=True))
    return Finding(
        holds=tail_first and codel_last,
        partly=codel_last,
        because=f"of the film: Drop Tail {_said(tail, 1)}, RED {_said(red, 1)}, CoDel {_said(codel, 1)} %"
        + _defaults(evidence, m.film_loss_percent, "%", 1)
        + f". Of the pings: {', '.join(f'{name} {_said(values)}' for name, values in pings.items())} %: a ping finds room in a short queue between two frames",
    )


# -------------------------------------------------------------------------------------------------- the conclusion


def _ninety(evidence: Evidence) -> Finding:
    below = [
        m.below_percent(_mean(evidence, "CoDel", kbps, m.mean_ms), _mean(evidence, "RED", kbps, m.mean_ms))
        for kbps in BOTTLENECKS
    ]
    plain = [
        m.below_percent(value, _mean(evidence, "RED", kbps, m.mean_ms))
        for kbps in BOTTLENECKS
        if (value := _default(evidence, kbps, m.mean_ms)) is not None
    ]
    return Finding(
        min(below) >= 90,
        f"250, 200, 150 kbps: {_said(below)} % below RED; with tc's defaults {_said(plain)} %",
    )


def _tail_far_above(evidence: Evidence) -> Finding:
    tail, red = (_each(evidence, name, m.mean_ms) for name in ("Drop Tail", "RED"))
    times = [a / b for a, b in zip(tail, red, strict=True)]
    return Finding(
        min(times) > 10,
        f"{_said(times)} times RED's latency at 250, 200 and 150 kbps (published: 28, 26, 20)",
    )


def _twenty(evidence: Evidence) -> Finding:
    tail, red = (
        [
            m.above_percent(
                _mean(evidence, name, kbps, m.throughput_kbps),
                _mean(evidence, "CoDel", kbps, m.throughput_kbps),
            )
            for kbps in BOTTLENECKS
        ]
        for name in ("Drop Tail", "RED")
    )
    plain = [
        m.above_percent(_mean(evidence, "Drop Tail", kbps, m.throughput_kbps), value)
        for kbps in BOTTLENECKS
        if (value := _default(evidence, kbps, m.throughput_kbps)) is not None
    ]
    return Finding(
        holds=max(tail) >= 15 and max(red) >= 15,
        partly=min(*tail, *red) > 0,
        because=f"above CoDel of a few packets: Drop Tail {_said(tail)} %, RED {_said(red)} %; above tc's CoDel Drop Tail {_said(plain, 1)} %",
    )


def _ten(evidence: Evidence) -> Finding:
    tail, red = (
        [
            _mean(evidence, "CoDel", kbps, m.film_loss_percent)
            - _mean(evidence, name, kbps, m.film_loss_percent)
            for kbps in BOTTLENECKS
        ]
        for name in ("Drop Tail", "RED")
    )
    plain = [
        value - _mean(evidence, "RED", kbps, m.film_loss_percent)
        for kbps in BOTTLENECKS
        if (value := _default(evidence, kbps, m.film_loss_percent)) is not None
    ]
    return Finding(
        holds=max(tail) >= 5 and max(red) >= 5 and min(*tail, *red) > 0,
        partly=min(*tail, *red) > 0,
        because=f"CoDel of a few packets loses more of the film than Drop Tail by {_said(tail)} points, than RED by {_said(red)}; tc's CoDel than RED by {_said(plain, 1)}",
    )


# -------------------------------------------------------------------------------------------------- the future work


def _swept(evidence: Evidence, setting: str, measure: Measure) -> dict[int, float]:
    return {
        target: evidence.mean("future", name, measure)
        for target in sweeps.TARGETS_MS
        if evidence.has("future", name := sweeps.future(setting, target))
    }


def _larger_target(evidence: Evidence) -> Finding:
    carried, latency = (_swept(evidence, "limit 1000", one) for one in (m.throughput_kbps, m.mean_ms))
    short = _swept(evidence, "limit 3", m.throughput_kbps)
    most = max(carried)
    low, high = difference(
        evidence.estimate("future", sweeps.future("limit 1000", most), m.throughput_kbps),
        evidence.estimate("future", sweeps.future("limit 1000", 5), m.throughput_kbps),
    )
    told = "; ".join(
        f"{target} ms: {carried[target]:.0f} kbit/s, {latency[target]:.0f} ms" for target in carried
    )
    return Finding(
        low > 0,
        f"limit 1000 by target: {told}. From 5 to {most} ms it wins {low:.0f} to {high:.0f} kbit/s (95 %) and costs {latency[most] - latency[5]:.0f} ms. "
        f"With a limit of 3 packets the target changes {max(short.values()) - min(short.values()):.0f} kbit/s: it is full before any packet is old"
        + _longer_interval(evidence)
        if low > 0
        else f"limit 1000 by target: {told}",
    )


def _longer_interval(evidence: Evidence) -> str:
    name = sweeps.future("limit 1000, interval 500 ms", 5)
    if not evidence.has("future", name):
        return ""
    carried, latency = (evidence.mean("future", name, one) for one in (m.throughput_kbps, m.mean_ms))
    return f". An interval of 500 ms wins more, {carried:.0f} kbit/s, for {latency:.0f} ms"


def _larger_limit(evidence: Evidence) -> Finding:
    few, many = (
        [
            evidence.mean("future", sweeps.future(name, 5), one)
            for one in (m.throughput_kbps, m.mean_ms, m.film_loss_percent)
        ]
        for name in ("limit 3", "limit 1000")
    )
    low, _ = difference(
        evidence.estimate("future", sweeps.future("limit 1000", 5), m.throughput_kbps),
        evidence.estimate("future", sweeps.future("limit 3", 5), m.throughput_kbps),
    )
    return Finding(
        low > 0,
        f"at 250 kbps and a target of 5 ms, from 3 to 1000 packets: {few[0]:.0f} to {many[0]:.0f} kbit/s, {few[1]:.0f} to {many[1]:.0f} ms, "
        f"{few[2]:.0f} to {many[2]:.0f} % of the film lost. The limit is what cost the throughput",
    )


def _catches_up(evidence: Evidence) -> Finding:
    known = [times for times in sweeps.OVERLOADS if evidence.has("overload", sweeps.overload(times))]
    peaks = {times: evidence.mean("overload", sweeps.overload(times), m.peak_packets) for times in known}
    near = all(
        abs(peak - sweeps.predicted_peak_packets(times))
        < 0.35 * sweeps.predicted_peak_packets(times) + excess_packets(times)
        for times, peak in peaks.items()
    )
    return Finding(
        near,
        "largest backlog, ours and (x I)^2 for an excess of x packets a second: "
        + "; ".join(
            f"{times:g} times the rate: {peak:.0f} and {sweeps.predicted_peak_packets(times):.0f} packets, gone after {sweeps.predicted_seconds(times):.1f} s"
            for times, peak in peaks.items()
        )
        + ". CoDel does stop an overload that never yields, but the detour grows with its square, and each lively scene starts one",
    )  # fmt: skip


def excess_packets(times: float) -> float:
    """What gathers before CoDel's first drop: a target and an interval's worth of the excess, and of rounding."""
    return sweeps.excess(times) * (sweeps.INTERVAL_S + 0.05) + 2


CLAIMS = (
    Claim("bloat", "section 2.1", "Bufferbloat shows as more latency and less throughput", _bloat, ("tries",)),
    Claim("harmless", "section 2.3", "CoDel keeps delay low through bursts and does not harm throughput", _harmless, ("figure8",)),
    Claim("small", "section 2.4, Patil and McClean", "With small buffers Drop Tail does better than RED", _small),
    Claim("figure2", "section 2.4, figure 2", "Drop Tail loses 20 % more packets than RED", _figure2, ("figure2",)),
    Claim("loss-below", "section 2.4, figure 3", "Below 1 Mbit/s CoDel loses least", _loss_below, ("figure3",)),
    Claim("loss-above", "section 2.4, figure 3", "From 1 Mbit/s Drop Tail loses least", _loss_above, ("figure3",)),
    Claim("throughput", "section 2.4, figure 4", "Drop Tail carries most, by small differences", _throughput, ("figure4",)),
    Claim("grows", "section 2.4, figure 4", "The wider the bottleneck, the more throughput", _grows, ("figure4",), must_hold=True),
    Claim("latency-low", "section 2.4, figure 5", "Below 256 kbit/s Drop Tail has the least latency", _latency_low, ("figure5",)),
    Claim("latency-high", "section 2.4, figure 5", "From 256 kbit/s CoDel has the least latency", _latency_high, ("figure5",), must_hold=True),
    Claim("unshaped", "section 4.1", "Without a bottleneck: below 1 ms, nothing lost", _unshaped, must_hold=True),
    Claim("narrower-tail", "section 4.2 a", "Drop Tail: the narrower, the more latency and loss, the less throughput", _narrower("Drop Tail"), ("tries",)),
    Claim("narrower-red", "section 4.2 b", "RED: the narrower, the more latency and loss, the less throughput", _narrower("RED"), ("tries",)),
    Claim("lowest", "section 4.2 c, figure 7; abstract", "CoDel has the least latency of the three at every bottleneck", _lowest, ("figure7",), must_hold=True),
    Claim("by-age", "section 4.2 c", "It is the age of packets, by their timestamps, that makes CoDel drop, keep latency low and lose", _by_age, ("figure7", "loss")),
    Claim("most-carried", "section 4.2 c, figure 8; abstract", "Drop Tail carries most, CoDel least", _most_carried, ("figure8",), must_hold=True),
    Claim("least-lost", "section 4.2 c, the second figure 7; abstract", "Drop Tail loses least, CoDel most", _least_lost, ("loss",)),
    Claim("ninety", "section V", "CoDel's latency is 90 % below RED's", _ninety, ("figure7",)),
    Claim("far-above", "section V", "Drop Tail's latency is far above both", _tail_far_above, ("figure7", "passage"), must_hold=True),
    Claim("twenty", "section V", "Drop Tail and RED carry 20 % more than CoDel", _twenty, ("figure8",)),
    Claim("ten", "section V", "Drop Tail and RED lose 10 points less than CoDel", _ten, ("loss",)),
    Claim("target", "section V, future work", "A larger target will win throughput back", _larger_target, ("future",)),
    Claim("limit", "section V, future work", "A larger limit will win throughput back", _larger_limit, ("future",), must_hold=True),
    Claim("catches-up", "ours, to the future work", "CoDel's rate of drops meets an overload that never yields, after a detour of (x I)^2 packets", _catches_up, ("overload",), must_hold=True),
)  # fmt: skip
