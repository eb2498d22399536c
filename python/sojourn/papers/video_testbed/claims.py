"""Checks of what the source says, in the order of its sections, and what other readings of it give.

Where it says "CoDel" two queues answer: the one of a few packets that its costs imply, and tc's
default. A check says both.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

from sojourn.papers import published, said
from sojourn.papers.evidence import Evidence, Measure
from sojourn.papers.paper import Finding
from sojourn.papers.study import Variant
from sojourn.papers.verdict import difference
from sojourn.papers.video_testbed import measures as m
from sojourn.papers.video_testbed import studies
from sojourn.papers.video_testbed.studies import (
    BEHIND,
    BOTTLENECKS,
    BURSTS,
    CHANGING,
    CITED_BY,
    CODEL,
    CODEL_LIMITS,
    DEFAULTS,
    OTHERS,
    OVERLOADED,
    PLAIN_RED,
    SMALL,
    SMALL_BY,
    SWEPT,
    TRIES,
)

SAYS = published.beside(__file__)
TARGETS = published.targets(__file__)


def _each(evidence: Evidence, name: str, measure: Measure) -> list[float]:
    return [evidence.mean(variant, measure) for variant in BEHIND[name].values()]


def _plain(evidence: Evidence, measure: Measure) -> dict[int, float]:
    """tc's CoDel, by bottleneck."""
    return evidence.means(DEFAULTS, measure)


def _defaults(evidence: Evidence, measure: Measure, unit: str, digits: int = 0) -> str:
    known = _plain(evidence, measure).values()
    return f"; with tc's defaults CoDel has {said.each(known, digits)} {unit}" if known else ""


def _apart(evidence: Evidence, name: str, other: str, measure: Measure) -> list[float]:
    """One less the other, by bottleneck."""
    return [
        a - b
        for a, b in zip(
            _each(evidence, name, measure), _each(evidence, other, measure), strict=True
        )
    ]


def _stated(name: str, column: str) -> list[float]:
    return [SAYS[f"{name}/{kbps}/{column}"] for kbps in BOTTLENECKS]


# ---------------------------------------------------------------------------- sections 2.1 to 2.3


def bloat(evidence: Evidence) -> Finding:
    latency, carried = (
        _each(evidence, "Drop Tail", m.mean_ms),
        _each(evidence, "Drop Tail", m.throughput_kbps),
    )
    full = all(rate > 0.998 * 8 * kbps for rate, kbps in zip(carried, BOTTLENECKS, strict=True))
    return Finding(
        holds=min(latency) > 1000 and not full,
        partly=min(latency) > 1000,
        because=f"Latency: {said.each(latency)} ms under Drop Tail at 250, 200 and 150 kbps. "
        f"Throughput: {said.each(carried)} kbit/s, "
        + (
            "all that the link has: a full queue never leaves it idle, it wastes time and not capacity"
            if full
            else "less than the link has"
        ),
    )


def harmless(evidence: Evidence) -> Finding:
    latency, carried = (evidence.mean(DEFAULTS[250], one) for one in (m.mean_ms, m.throughput_kbps))
    tail, slow = (
        evidence.mean(BEHIND["Drop Tail"][250], one) for one in (m.throughput_kbps, m.mean_ms)
    )
    return Finding(
        holds=latency < slow / 10 and carried > 0.98 * tail,
        partly=latency < slow / 10,
        because=f"tc's defaults at 250 kbps: {latency:.0f} ms for Drop Tail's {slow:.0f}, and "
        f"{carried:.0f} kbit/s for {tail:.0f}, {100 * (1 - carried / tail):.1f} % less: "
        "after a lively scene CoDel has nothing kept for the quiet one",
    )


def changing(evidence: Evidence) -> Finding:
    latency, most, carried = (
        evidence.means({name: CHANGING[name] for name in studies.CHANGING_QDISCS}, one)
        for one in (m.mean_ms, m.most_ms, m.throughput_kbps)
    )
    short = latency["CoDel"] < min(latency["RED"], latency["Drop Tail"] / 10)
    return Finding(
        holds=short and carried["CoDel"] > 0.98 * carried["Drop Tail"],
        partly=short,
        because=f"A link of {' and '.join(studies.HALVES)} by turns of 20 s: "
        + "; ".join(
            f"{name} {latency[name]:.0f} ms in the mean and {most[name]:.0f} at most, "
            f"{carried[name]:.0f} kbit/s"
            for name in latency
        )
        + f". tc's CoDel carries {m.below_percent(carried['CoDel'], carried['Drop Tail']):.1f} % "
        "less than a queue that stores for the wider turn what the narrower one could not carry",
    )


# ------------------------------------------------------------------------------ the cited figures


def _cited_rates(evidence: Evidence) -> list[int]:
    return [
        rate
        for rate in studies.RATES
        if evidence.has(*(variants[rate] for variants in CITED_BY.values()))
    ]


def _cited(evidence: Evidence, rate: int, name: str, measure: Measure) -> float:
    return evidence.mean(CITED_BY[name][rate], measure)


def figure2(evidence: Evidence) -> Finding:
    told, more = [], []
    for rate in _cited_rates(evidence):
        tail, red = (
            _cited(evidence, rate, name, m.queue_loss_percent) for name in ("Drop Tail", "RED")
        )
        if red > 1:
            told.append(f"{m.above_percent(tail, red):+.0f} % at {rate}")
        if rate in studies.FILLED:
            more.append(m.above_percent(tail, red))
    return Finding(
        holds=all(abs(one - 20) <= 5 for one in more),
        partly=min(more) > 0,
        because=f"Drop Tail's loss over RED's, bottleneck in kbit/s: {', '.join(told)}. ns-2's "
        "RED counts bytes and so prefers to drop large packets: "
        "fewer of them make the same room; where the load just fits, Drop Tail loses less",
    )


def loss_below(evidence: Evidence) -> Finding:
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
        because=f"{_losses(evidence, rates)}: CoDel below Drop Tail "
        f"{'everywhere' if against_tail else 'not everywhere'}; RED, which drops by bytes, "
        f"{'above both' if best else 'loses fewest packets'}",
    )


def loss_above(evidence: Evidence) -> Finding:
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
            f"{_cited(evidence, rate, name, m.queue_loss_percent):.1f}"
            for name in studies.CITED_QDISCS
        )
        + " %"
        for rate in rates
    )


def throughput(evidence: Evidence) -> Finding:
    rates = _cited_rates(evidence)
    carried = {
        name: [_cited(evidence, rate, name, m.carried_kbps) for rate in rates]
        for name in studies.CITED_QDISCS
    }
    # Where nothing is lost all three carry the same.
    best = all(
        tail >= 0.999 * max(red, codel)
        for tail, red, codel in zip(*(carried[name] for name in studies.CITED_QDISCS), strict=True)
    )
    apart = max(1 - min(row) / max(row) for row in zip(*carried.values(), strict=True))
    return Finding(
        holds=best and apart < 0.1,
        partly=best,
        because=f"largest difference at one bottleneck {100 * apart:.1f} %; "
        + "; ".join(f"{name} {said.each(values)}" for name, values in carried.items())
        + f" kbit/s at {said.each([float(rate) for rate in rates])} kbit/s",
    )


def grows(evidence: Evidence) -> Finding:
    rates = _cited_rates(evidence)
    told = {
        name: [_cited(evidence, rate, name, m.carried_kbps) for rate in rates]
        for name in studies.CITED_QDISCS
    }
    # Wider than the load all links carry the same, but for what stood in the queue when the warm-up
    # ended.
    growing = all(
        later >= 0.99 * earlier for values in told.values() for earlier, later in pairwise(values)
    )
    return Finding(
        growing, f"Drop Tail carries {said.each(told['Drop Tail'])} kbit/s: up to what is offered"
    )


def latency_low(evidence: Evidence) -> Finding:
    rates = [rate for rate in _cited_rates(evidence) if rate < 256]
    tail, red, codel = (
        [_cited(evidence, rate, name, m.queue_ms) for rate in rates]
        for name in studies.CITED_QDISCS
    )
    short = evidence.means(SMALL_BY["Drop Tail"], m.queue_ms)
    small = [short[rate] for rate in rates if rate in short]
    lost = evidence.mean(SMALL_BY["Drop Tail"][1000], m.queue_loss_percent)
    return Finding(
        all(a < min(b, c) for a, b, c in zip(tail, red, codel, strict=True)),
        f"at {said.each([float(rate) for rate in rates])} kbit/s: Drop Tail {said.each(tail)}, "
        f"RED {said.each(red)}, CoDel {said.each(codel)} ms. Even with a buffer of "
        f"{SMALL} packets Drop Tail has {said.each(small)} ms, and then it loses {lost:.0f} % at "
        "1000 kbit/s, where it is said to lose least: "
        "no buffer satisfies both sentences",
    )


def latency_high(evidence: Evidence) -> Finding:
    rates = [rate for rate in _cited_rates(evidence) if rate >= 256]
    rows = [
        [_cited(evidence, rate, name, m.queue_ms) for name in studies.CITED_QDISCS]
        for rate in rates
    ]
    # A link that is wider than the load has the same short queue under all three.
    return Finding(
        all(row[2] <= 1.01 * min(row) for row in rows),
        "Drop Tail / RED / CoDel: "
        + "; ".join(
            f"{rate} kbit/s: {' / '.join(f'{value:.0f}' for value in row)} ms"
            for rate, row in zip(rates, rows, strict=True)
        ),
    )


def small(evidence: Evidence) -> Finding:
    rates = [rate for rate, variant in SMALL_BY["RED"].items() if evidence.has(variant)]
    rows = [
        [
            evidence.mean(SMALL_BY[name][rate], one)
            for one in (m.carried_kbps, m.queue_loss_percent)
            for name in ("Drop Tail", "RED")
        ]
        for rate in rates
    ]
    return Finding(
        holds=all(tail >= red for tail, red, _, _ in rows)
        and all(tail <= red for _, _, tail, red in rows),
        partly=all(tail >= red for tail, red, _, _ in rows),
        because=f"{SMALL} packets of buffer, Drop Tail against RED: "
        + "; ".join(
            f"{rate} kbit/s: {tail:.0f} against {red:.0f} kbit/s, {lost:.1f} against {early:.1f} % lost"
            for rate, (tail, red, lost, early) in zip(rates, rows, strict=True)
        ),
    )


# -------------------------------------------------------------------------------------- section 4


def unshaped(evidence: Evidence) -> Finding:
    latency, lost, film = (
        evidence.means(TRIES, one).values()
        for one in (m.mean_ms, m.ping_loss_percent, m.film_loss_percent)
    )
    return Finding(
        max(latency) < 1 and max(*lost, *film) == 0,
        f"latency {said.each(latency, 2)} ms, nothing lost of pings or film",
    )


def narrower(evidence: Evidence, name: str) -> Finding:
    """The narrower the bottleneck, the more latency and loss and the less throughput."""
    kinds: tuple[Measure, ...] = (m.mean_ms, m.ping_loss_percent, m.film_loss_percent)
    latency, pings, film = (_each(evidence, name, one) for one in kinds)
    carried = _each(evidence, name, m.throughput_kbps)
    ordered = all(values == sorted(values) for values in (latency, pings, film))
    ends = all(values[0] < values[-1] for values in (latency, pings, film))
    falls = carried == sorted(carried, reverse=True)
    return Finding(
        holds=ordered and falls,
        partly=ends and falls,
        because=f"250, 200, 150 kbps: latency {said.each(latency)} ms, pings lost "
        f"{said.each(pings)} %, of the film {said.each(film)} %, throughput {said.each(carried)} "
        "kbit/s",
    )


def lowest(evidence: Evidence) -> Finding:
    codel, red, tail = (_each(evidence, name, m.mean_ms) for name in ("CoDel", "RED", "Drop Tail"))
    known = _plain(evidence, m.mean_ms)
    lowest = all(a < b < c for a, b, c in zip(codel, red, tail, strict=True))
    also = all(known[kbps] < b for kbps, b in zip(BOTTLENECKS, red, strict=True) if kbps in known)
    return Finding(
        lowest and also,
        f"250, 200, 150 kbps: CoDel {said.each(codel, 1)} ms, RED {said.each(red)} ms, Drop Tail "
        f"{said.each(tail)} ms"
        + _defaults(evidence, m.mean_ms, "ms")
        + ". One way, the film's own packets: "
        + "; ".join(
            f"{name} {said.each(_each(evidence, name, m.film_latency_ms))} ms"
            for name in ("CoDel", "RED", "Drop Tail")
        ),
    )


def by_age(evidence: Evidence) -> Finding:
    aged = _each(evidence, "CoDel", m.dropped_for_age_percent)
    plain = _plain(evidence, m.dropped_for_age_percent).values()
    return Finding(
        holds=min(aged) > 50,
        partly=bool(plain) and min(plain) > 50,
        because=f"with tc's defaults {said.each(plain)} % of the drops are for age; in the queue "
        "of a few packets that the stated cost implies "
        f"{said.each(aged)} %, the rest found it full: there it is the limit that keeps latency "
        "low, and loses",
    )


def most_carried(evidence: Evidence) -> Finding:
    tail, red, codel = (
        _each(evidence, name, m.throughput_kbps) for name in ("Drop Tail", "RED", "CoDel")
    )
    # At 150 kbps the film always exceeds the link, and RED too leaves next to nothing idle.
    first = all(a > 0.9999 * b and a > c for a, b, c in zip(tail, red, codel, strict=True))
    return Finding(
        first,
        f"Drop Tail {said.each(tail)}, RED {said.each(red)}, CoDel {said.each(codel)} kbit/s"
        + _defaults(evidence, m.throughput_kbps, "kbit/s"),
    )


def least_lost(evidence: Evidence) -> Finding:
    tail, red, codel = (
        _each(evidence, name, m.film_loss_percent) for name in ("Drop Tail", "RED", "CoDel")
    )
    pings = {
        name: _each(evidence, name, m.ping_loss_percent) for name in ("Drop Tail", "RED", "CoDel")
    }
    # Behind a link that is never idle both lose what exceeds it.
    tail_first = all(a < b + 0.5 and a < c for a, b, c in zip(tail, red, codel, strict=True))
    codel_last = all(c > b for b, c in zip(red, codel, strict=True))
    return Finding(
        holds=tail_first and codel_last,
        partly=codel_last,
        because=f"of the film: Drop Tail {said.each(tail, 1)}, RED {said.each(red, 1)}, CoDel "
        f"{said.each(codel, 1)} %"
        + _defaults(evidence, m.film_loss_percent, "%", 1)
        + ". Of the pings: "
        f"{', '.join(f'{name} {said.each(values)}' for name, values in pings.items())} %: a ping "
        "finds room in a short queue between two frames",
    )


def which_red(evidence: Evidence) -> Finding:
    measures: dict[str, Measure] = {
        "least": m.least_ms,
        "most": m.most_ms,
        "mean": m.mean_ms,
        "throughput": m.throughput_kbps,
        "lost": m.ping_loss_percent,
    }

    def fitting(name: str, variants: Mapping[int, Variant]) -> dict[str, bool]:
        return {
            f"{kbps} {column}": TARGETS[f"{name}/{kbps}/{column}"].met(
                evidence.mean(variant, measure)
            )
            for kbps, variant in variants.items()
            for column, measure in measures.items()
        }

    awake, plain = fitting("RED", BEHIND["RED"]), fitting("RED plain", PLAIN_RED)
    fits, others = sum(awake.values()), sum(plain.values())
    misses = ", ".join(cell for cell, fit in awake.items() if not fit)
    means = _each(evidence, "RED", m.mean_ms), [*evidence.means(PLAIN_RED, m.mean_ms).values()]
    off, farther = (_rms_percent(ours, _stated("RED", "mean")) for ours in means)
    asleep = (
        ". On this engine both are plain RED: Linux accepts adaptive from tc and does not act "
        "on it (docs/agreement.md, red-adaptive-asleep)"
        if evidence.engine != "sim"
        else ""
    )
    return Finding(
        holds=fits > others and off < 0.75 * farther,
        partly=fits >= others or off < farther,
        because=f"Of {len(awake)} cells of table 3 {fits} are within their tolerance with adaptive "
        f"and {others} without; means {said.each(means[0])} ms and {said.each(means[1])} ms, "
        f"{off:.0f} and {farther:.0f} % (rms) off the published "
        f"{said.each(_stated('RED', 'mean'))}. Off with adaptive: {misses or 'none'}{asleep}",
    )


def _rms_percent(ours: Iterable[float], stated: Iterable[float]) -> float:
    """How far these lie from those, root mean square of the differences in per cent."""
    apart = [(one / other - 1) ** 2 for one, other in zip(ours, stated, strict=True)]
    return 100 * math.sqrt(sum(apart) / len(apart))


# --------------------------------------------------------------------------------- the conclusion


def ninety(evidence: Evidence) -> Finding:
    red = dict(zip(BOTTLENECKS, _each(evidence, "RED", m.mean_ms), strict=True))
    few = dict(zip(BOTTLENECKS, _each(evidence, "CoDel", m.mean_ms), strict=True))
    below, plain = (
        [m.below_percent(value, red[kbps]) for kbps, value in codel.items()]
        for codel in (few, _plain(evidence, m.mean_ms))
    )
    return Finding(
        min(below) >= SAYS["conclusion/latency"],
        f"250, 200, 150 kbps: {said.each(below)} % below RED; with tc's defaults {said.each(plain)} %",
    )


def tail_far_above(evidence: Evidence) -> Finding:
    times = _times(_each(evidence, "Drop Tail", m.mean_ms), _each(evidence, "RED", m.mean_ms))
    stated = _times(_stated("Drop Tail", "mean"), _stated("RED", "mean"))
    return Finding(
        min(times) > 10,
        f"{said.each(times)} times RED's latency at 250, 200 and 150 kbps (published: {said.each(stated)})",
    )


def _times(ones: Iterable[float], others: Iterable[float]) -> list[float]:
    return [one / other for one, other in zip(ones, others, strict=True)]


def twenty(evidence: Evidence) -> Finding:
    def above(name: str) -> dict[int, float]:
        return evidence.means(BEHIND[name], m.throughput_kbps)

    tail, red = (
        [m.above_percent(value, above("CoDel")[kbps]) for kbps, value in above(name).items()]
        for name in ("Drop Tail", "RED")
    )
    carried = _plain(evidence, m.throughput_kbps)
    plain = [m.above_percent(above("Drop Tail")[kbps], value) for kbps, value in carried.items()]
    return Finding(
        holds=max(tail) >= 15 and max(red) >= 15,
        partly=min(*tail, *red) > 0,
        because=f"above CoDel of a few packets: Drop Tail {said.each(tail)} %, RED "
        f"{said.each(red)} %; above tc's CoDel Drop Tail {said.each(plain, 1)} %",
    )


def ten(evidence: Evidence) -> Finding:
    tail, red = (
        _apart(evidence, "CoDel", name, m.film_loss_percent) for name in ("Drop Tail", "RED")
    )
    lost = evidence.means(BEHIND["RED"], m.film_loss_percent)
    plain = [value - lost[kbps] for kbps, value in _plain(evidence, m.film_loss_percent).items()]
    return Finding(
        holds=max(tail) >= 5 and max(red) >= 5 and min(*tail, *red) > 0,
        partly=min(*tail, *red) > 0,
        because="CoDel of a few packets loses more of the film than Drop Tail by "
        f"{said.each(tail)} points, than RED by {said.each(red)}; tc's CoDel than RED by "
        f"{said.each(plain, 1)}",
    )


# -------------------------------------------------------------------------------- the future work


def larger_target(evidence: Evidence) -> Finding:
    carried, latency = (
        evidence.means(SWEPT["limit 1000"], one) for one in (m.throughput_kbps, m.mean_ms)
    )
    short = evidence.means(SWEPT["limit 4"], m.throughput_kbps)
    most = max(carried)
    low, high = difference(
        evidence.estimate(SWEPT["limit 1000"][most], m.throughput_kbps),
        evidence.estimate(SWEPT["limit 1000"][5], m.throughput_kbps),
    )
    told = "; ".join(
        f"{target} ms: {carried[target]:.0f} kbit/s, {latency[target]:.0f} ms" for target in carried
    )
    return Finding(
        low > 0,
        f"limit 1000 by target: {told}. From 5 to {most} ms it wins {low:.0f} to {high:.0f} "
        f"kbit/s (95 %) and costs {latency[most] - latency[5]:.0f} ms. "
        "With a limit of 4 packets the target changes "
        f"{max(short.values()) - min(short.values()):.0f} kbit/s: it is full before any packet is "
        "old" + _longer_interval(evidence)
        if low > 0
        else f"limit 1000 by target: {told}",
    )


def _longer_interval(evidence: Evidence) -> str:
    longer = SWEPT["limit 1000, interval 500 ms"][5]
    if not evidence.has(longer):
        return ""
    carried, latency = (evidence.mean(longer, one) for one in (m.throughput_kbps, m.mean_ms))
    return f". An interval of 500 ms wins more, {carried:.0f} kbit/s, for {latency:.0f} ms"


def larger_limit(evidence: Evidence) -> Finding:
    few, many = (
        [
            evidence.mean(SWEPT[name][5], one)
            for one in (m.throughput_kbps, m.mean_ms, m.film_loss_percent)
        ]
        for name in ("limit 4", "limit 1000")
    )
    low, _ = difference(
        evidence.estimate(SWEPT["limit 1000"][5], m.throughput_kbps),
        evidence.estimate(SWEPT["limit 4"][5], m.throughput_kbps),
    )
    return Finding(
        low > 0,
        f"at 250 kbps and a target of 5 ms, from 3 to 1000 packets: {few[0]:.0f} to {many[0]:.0f} "
        f"kbit/s, {few[1]:.0f} to {many[1]:.0f} ms, "
        f"{few[2]:.0f} to {many[2]:.0f} % of the film lost. The limit is what cost the throughput",
    )


def catches_up(evidence: Evidence) -> Finding:
    peaks = evidence.means(OVERLOADED, m.peak_packets)
    near = all(
        abs(peak - studies.predicted_peak_packets(times))
        < 0.35 * studies.predicted_peak_packets(times) + excess_packets(times)
        for times, peak in peaks.items()
    )
    return Finding(
        near,
        "largest backlog, ours and (x I)^2 for an excess of x packets a second: "
        + "; ".join(
            f"{times:g} times the rate: {peak:.0f} and "
            f"{studies.predicted_peak_packets(times):.0f} packets, gone after "
            f"{studies.predicted_seconds(times):.1f} s"
            for times, peak in peaks.items()
        )
        + ". CoDel does stop an overload that never yields, but the detour grows with its square, "
        "and each lively scene starts one",
    )


def excess_packets(times: float) -> float:
    """What gathers before CoDel's first drop: a target and an interval's worth of the excess, and
    of rounding."""
    return studies.excess(times) * (studies.INTERVAL_S + 0.05) + 2


# ----------------------------------------------------------------------- what other readings give


def table_1(evidence: Evidence) -> str:
    """The films of table 1 behind the bottlenecks."""
    rows = {
        kbps: [OTHERS[f"{kbps} {name} table 1"] for name in ("RED", "Drop Tail")]
        for kbps in BOTTLENECKS
    }
    if not evidence.has(*(one for row in rows.values() for one in row)):
        return "In the full version: table 1's rates behind the bottlenecks."
    found = "; ".join(
        f"{kbps} kbps: {_ms(evidence, red)} and {_loss(evidence, red)} lost under RED, "
        f"{_ms(evidence, tail)} and {_loss(evidence, tail)} under Drop Tail"
        for kbps, (red, tail) in rows.items()
    )
    return (
        f"The rates of table 1, one behind each bottleneck: {found}. Those losses are not the "
        f"published {said.each(_stated('RED', 'lost'))} %, "
        f"nor {said.each(_stated('Drop Tail', 'lost'))} %: behind a bottleneck they played "
        "something slower."
    ) + _slower(evidence)


def _slower(evidence: Evidence) -> str:
    slower = OTHERS["200 Drop Tail slower"]
    if not evidence.has(slower):
        return ""
    ours = [evidence.mean(slower, one) for one in (m.least_ms, m.mean_ms, m.most_ms)]
    stated = [SAYS[f"Drop Tail/200/{column}"] for column in ("least", "mean", "most")]
    return (
        f" A steady 1723 kbit/s behind 200 kbps gives Drop Tail {said.each(ours)} ms and loses "
        f"{_loss(evidence, slower)} "
        f"(published {said.each(stated)} ms and {SAYS['Drop Tail/200/lost']} %): its latencies, "
        "but not its loss."
    )


def without_scenes(evidence: Evidence) -> str:
    """A film of one rate."""
    red, tail = (OTHERS[f"250 {name} steady"] for name in ("RED", "Drop Tail"))
    if not evidence.has(red, tail):
        return "In the full version: a film without scenes."
    return (
        "A film without scenes, at 250 kbps: least latency under RED "
        f"{evidence.mean(red, m.least_ms):.0f} ms (published {SAYS['RED/250/least']}), "
        f"{evidence.mean(red, m.throughput_kbps):.0f} kbit/s carried "
        f"({SAYS['RED/250/throughput']}); under Drop Tail a mean of "
        f"{_ms(evidence, tail)} ({SAYS['Drop Tail/250/mean']})."
    )


def default_limit(evidence: Evidence) -> str:
    """Linux's 1000 packets."""
    most = evidence.means({kbps: OTHERS[f"{kbps} limit 1000"] for kbps in (250, 200)}, m.most_ms)
    told = "; ".join(
        f"{kbps} kbps: largest {value:.0f} ms (published {SAYS[f'Drop Tail/{kbps}/most']}), mean "
        f"{_ms(evidence, OTHERS[f'{kbps} limit 1000'])}"
        for kbps, value in most.items()
    )
    return f"1000 packets everywhere, Linux's default: {told}. At 150 kbps 1000 is what the numbers say."


def not_adaptive(evidence: Evidence) -> str:
    """RED without `adaptive`."""
    told = "; ".join(
        f"{kbps} kbps: mean {_ms(evidence, plain)} for {_ms(evidence, BEHIND['RED'][kbps])}, "
        f"lost {_loss(evidence, plain)} for {_loss(evidence, BEHIND['RED'][kbps])}"
        for kbps in BOTTLENECKS
        if evidence.has(plain := OTHERS[f"{kbps} RED plain"])
    )
    return f"The same line without adaptive: {told} (published means {said.each(_stated('RED', 'mean'))} ms)."


def other_limits(evidence: Evidence) -> str:
    """CoDel of 2, 5, 20 and 1000 packets."""
    told = []
    for limit in CODEL_LIMITS:
        along = {kbps: CODEL[f"{kbps} limit {limit}"] for kbps in BOTTLENECKS}
        if not evidence.has(along[250]):
            continue
        faster, less, more = (
            [
                how(ours, evidence.mean(BEHIND[name][kbps], measure))
                for kbps, ours in evidence.means(along, measure).items()
            ]
            for measure, name, how in (
                (m.mean_ms, "RED", m.below_percent),
                (m.throughput_kbps, "Drop Tail", m.below_percent),
                (m.film_loss_percent, "RED", m.points),
            )
        )
        told.append(
            f"{limit} packets: latency {min(faster):.0f} to {max(faster):.0f} % below RED's, "
            "throughput up to "
            f"{max(less):.0f} % below Drop Tail's, up to {max(more):.1f} points more of the film "
            "lost than under RED"
        )
    return (
        "; ".join(told)
        + ". Only a limit of a few packets costs anything near 20 % and 10 points; tc's default "
        "of 1000 does not."
    )


def patient_probe(evidence: Evidence) -> str:
    """What the queue dropped, and what the probe missed."""
    told = "; ".join(
        f"{kbps} kbps: {evidence.mean(tail, m.dropped_pings_percent):.1f} % for "
        f"{evidence.mean(tail, m.ping_loss_percent):.1f} %"
        for kbps, tail in BEHIND["Drop Tail"].items()
    )
    return (
        f"Counting only what the queue dropped, under Drop Tail: {told} (published "
        f"{said.each(_stated('Drop Tail', 'lost'))}). The rest came home after fping had "
        "gone, or was older than 10 s: a probe that leaves while a bloated queue still holds its "
        "packets."
    )


def shorter_bursts(evidence: Evidence) -> str:
    """Frames that are stretched by slower senders."""
    cells = [(name, kbps) for name in ("Drop Tail", "RED") for kbps in BOTTLENECKS]
    missed, chooses, tail = {}, {}, {}
    for sender in studies.SENDERS:
        along = {cell: BURSTS[studies.burst(*cell, sender)] for cell in cells}
        if evidence.has(*along.values()):
            lost = evidence.means(along, m.ping_loss_percent)
            off = [(lost[cell] - SAYS[f"{cell[0]}/{cell[1]}/lost"]) ** 2 for cell in cells]
            missed[sender] = (sum(off) / len(off)) ** 0.5
            chooses[sender], tail[sender] = (lost["Drop Tail", kbps] for kbps in (250, 150))
    points, chosen_by, lost_at = (
        ", ".join(f"{value:.{places}f} at {sender}" for sender, value in values.items())
        for values, places in ((missed, 1), (chooses, 1), (tail, 0))
    )
    return (
        f"Of Drop Tail's pings at 250 kbps are lost, in %, {chosen_by} Mbit/s of the senders "
        f"(published {SAYS['Drop Tail/250/lost']}). The six losses of tables 2 and 3 are missed by "
        f"{points} Mbit/s (points, root mean square). Shorter bursts fill a full queue evenly and leave a ping less room: of "
        f"Drop Tail's pings at 150 kbps are lost, in %, {lost_at} Mbit/s."
    )


def slow_link(evidence: Evidence) -> str:
    """A link of the shaped rate in place of a token bucket."""
    slow, ours = (
        evidence.mean(one, m.least_ms) for one in (OTHERS["250 RED slow link"], BEHIND["RED"][250])
    )
    return (
        f"A link of 2000 kbit/s makes each lone ping pay for its length: {slow:.2f} ms at least "
        f"under RED, for {ours:.2f} (published {SAYS['RED/250/least']})."
    )


def as_received(evidence: Evidence) -> str:
    """The client's bytes."""
    ours, theirs = (
        [evidence.mean(one, measure) for one in BEHIND["Drop Tail"].values()]
        for measure in (m.throughput_kbps, m.received_kbps)
    )
    return (
        f"The film's packets that the client received, Drop Tail: {said.each(theirs)} kbit/s for "
        f"{said.each(ours)}; the rest are pings."
    )


def quieter(evidence: Evidence) -> str:
    """Why RED's latency is off at 250 kbps."""
    steady = OTHERS["250 RED steady"]
    without = (
        f"{_ms(evidence, steady)} without quiet scenes"
        if evidence.has(steady)
        else "more without quiet scenes"
    )
    return (
        f"It falls with the time that the film is quiet: {without} (study others, 250 RED "
        f"steady), {_ms(evidence, BEHIND['RED'][250])} with "
        "ours; theirs was quieter still in this test."
    )


def few_pings(evidence: Evidence) -> str:
    """Why RED's loss is off at 200 kbps."""
    lost = evidence.estimate(BEHIND["RED"][200], m.ping_loss_percent)
    return (
        f"{lost.seeds} tries of 100 pings, {said.each(lost.known)} % lost: their mean is known to "
        f"± {lost.ci95:.0f} points only."
    )


def by_film(evidence: Evidence) -> str:
    """How much RED's throughput hangs on where the quiet scenes fall."""
    each_film = sorted(evidence.estimate(BEHIND["RED"][200], m.throughput_kbps).values)
    return (
        f"It is what the film's quiet scenes leave: {each_film[0]:.0f} to {each_film[-1]:.0f} kbit/s from film to "
        "film, of which the published one is one."
    )


def five_packets(evidence: Evidence) -> str:
    """What a longer CoDel would be."""
    longer = {kbps: CODEL[f"{kbps} limit 5"] for kbps in BOTTLENECKS}
    if not evidence.has(*longer.values()):
        return "A limit of 5 packets comes nearer to it (study codel), but further from the stated throughput and loss."
    below = [
        m.below_percent(
            evidence.mean(one, m.mean_ms), evidence.mean(BEHIND["RED"][kbps], m.mean_ms)
        )
        for kbps, one in longer.items()
    ]
    return f"A limit of 5 packets gives {sum(below) / len(below):.0f} % (study codel), but is further from the stated throughput and loss."


def _ms(evidence: Evidence, variant: Variant) -> str:
    return f"{evidence.mean(variant, m.mean_ms):.0f} ms"


def _loss(evidence: Evidence, variant: Variant) -> str:
    return f"{evidence.mean(variant, m.ping_loss_percent):.0f} %"
