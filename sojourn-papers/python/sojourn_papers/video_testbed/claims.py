"""Checks of the source's claims, in the order of its sections.

Latencies and losses are those of pings, as in the source's tables; throughput is that of the link.
For its "CoDel" we use the queue of a few packets that its costs imply, and show tc's default, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import fmean

from sojourn_papers import formats
from sojourn_papers.evidence import Evidence, Measure, some
from sojourn_papers.paper import Finding
from sojourn_papers.study import Variant
from sojourn_papers.verdict import difference
from sojourn_papers.video_testbed import measures as m
from sojourn_papers.video_testbed import studies
from sojourn_papers.video_testbed import studies as s


def _behind(evidence: Evidence, measure: Measure) -> dict[str, dict[int, float]]:
    """By discipline and bottleneck in kbps; tc's CoDel too."""
    along: Mapping[str, Mapping[int, Variant]] = {**s.BEHIND, "tc's CoDel": s.DEFAULTS}
    return {name: dict(evidence.means(variants, measure)) for name, variants in along.items()}


def _listed(found: Mapping[str, Mapping[int, float]], unit: str, places: int = 0) -> str:
    """`250, 200, 150 kbps: Drop Tail A, B, C; RED A, B, C ms`."""
    each = (f"{name} {formats.each(along.values(), places)}" for name, along in found.items())
    return f"250, 200, 150 kbps: {'; '.join(each)} {unit}"


def _ratios(one: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    return [one[at] / other[at] for at in one]


def _apart(one: Mapping[int, float], other: Mapping[int, float]) -> list[float]:
    return [one[at] - other[at] for at in one]


# ---------------------------------------------------------------------------- sections 2.1 to 2.3


def bloat(evidence: Evidence) -> Finding:
    latency, used = (
        evidence.means(s.BEHIND["Drop Tail"], one) for one in (m.mean_ms, m.film_throughput_percent)
    )
    return Finding(
        {
            "least mean latency under Drop Tail, ms": min(latency.values()),
            "most that it carries of the link, %": max(used.values()),
        },
        "A full queue never leaves the link idle: it wastes time and not capacity",
    )


def harmless(evidence: Evidence) -> Finding:
    (rtt, slow), (carried, most) = (
        [evidence.mean(one, measure) for one in (s.DEFAULTS[250], s.BEHIND["Drop Tail"][250])]
        for measure in (m.mean_ms, m.throughput_kbps)
    )
    return Finding(
        {
            "latency over Drop Tail's": rtt / slow,
            "throughput below Drop Tail's, %": m.below_percent(carried, most),
        },
        f"tc's defaults at 250 kbps: {rtt:.0f} for {slow:.0f} ms, {carried:.0f} for {most:.0f} kbit/s",
    )


def changing(evidence: Evidence) -> Finding:
    latency, carried = (
        evidence.means({name: s.CHANGING[name] for name in studies.CHANGING_QDISCS}, one)
        for one in (m.mean_ms, m.throughput_kbps)
    )
    return Finding(
        {
            "latency over RED's": latency["CoDel"] / latency["RED"],
            "over Drop Tail's": latency["CoDel"] / latency["Drop Tail"],
            "throughput below Drop Tail's, %": m.below_percent(
                carried["CoDel"], carried["Drop Tail"]
            ),
        },
        f"{' and '.join(studies.HALVES)} by turns of 20 s: {formats.at(latency)} ms, {formats.at(carried)} "
        "kbit/s",
    )


# ------------------------------------------------------------------------------ the cited figures


def _cited(
    evidence: Evidence, measure: Measure, wanted: Callable[[int], bool] = lambda _: True
) -> dict[int, dict[str, float]]:
    """By rate, then by discipline: the rates that were run."""
    known = some(
        rate
        for rate in studies.RATES
        if wanted(rate) and evidence.has(*(along[rate] for along in s.CITED_BY.values()))
    )
    return {
        rate: {name: evidence.mean(along[rate], measure) for name, along in s.CITED_BY.items()}
        for rate in known
    }


def _rows(rows: Mapping[int, Mapping[str, float]], unit: str, places: int = 1) -> str:
    """`64 kbit/s: 50.1, 48.2, 49.0 %; ...`."""
    parts = (f"{rate}: {formats.each(row.values(), places)}" for rate, row in rows.items())
    return f"Drop Tail, RED, CoDel, by kbit/s: {'; '.join(parts)} {unit}"


def figure2(evidence: Evidence) -> Finding:
    rows = _cited(evidence, m.queue_loss_percent)
    more = {
        rate: m.above_percent(row["Drop Tail"], row["RED"])
        for rate, row in rows.items()
        if row["RED"] > 1
    }
    return Finding(
        {
            "least by which Drop Tail loses more, %": min(more.values()),
            "most, %": max(more.values()),
        },
        f"By kbit/s: {formats.at(more)} %. ns-2's RED counts bytes and so drops large packets first: "
        "fewer of them make the same room; where the load just fits, Drop Tail loses less",
    )


def loss_below(evidence: Evidence) -> Finding:
    rows = _cited(evidence, m.queue_loss_percent, lambda rate: rate < 1000)
    return Finding(
        {
            f"largest of its losses over {name}'s": max(
                row["CoDel"] / row[name] for row in rows.values()
            )
            for name in ("Drop Tail", "RED")
        },
        _rows(rows, "%"),
    )


def loss_above(evidence: Evidence) -> Finding:
    rows = _cited(evidence, m.queue_loss_percent, lambda rate: rate >= 1000)
    most = max(row["Drop Tail"] - min(row["RED"], row["CoDel"]) for row in rows.values())
    return Finding({"most by which it loses more than another, points": most}, _rows(rows, "%"))


def throughput(evidence: Evidence) -> Finding:
    """Without losses all three carry the same."""
    rows = _cited(evidence, m.carried_kbps)
    return Finding(
        {
            "Drop Tail's least throughput over the best": min(
                row["Drop Tail"] / max(row.values()) for row in rows.values()
            ),
            "largest difference at one bottleneck, %": max(
                100 * (1 - min(row.values()) / max(row.values())) for row in rows.values()
            ),
        },
        _rows(rows, "kbit/s", 0),
    )


def grows(evidence: Evidence) -> Finding:
    """Links that are wider than the load carry the same, except for the queue at the end of the
    warm-up."""
    rows = _cited(evidence, m.carried_kbps)
    least = min(
        later[name] / earlier[name]
        for earlier, later in pairwise(rows.values())
        for name in s.CITED_BY
    )
    return Finding(
        {"least throughput over that of the next narrower": least}, _rows(rows, "kbit/s", 0)
    )


def latency_low(evidence: Evidence) -> Finding:
    rows = _cited(evidence, m.queue_ms, lambda rate: rate < 256)
    small = evidence.means(s.SMALL_BY["Drop Tail"], m.queue_ms)
    lost = evidence.mean(s.SMALL_BY["Drop Tail"][1000], m.queue_loss_percent)
    return Finding(
        {
            "Drop Tail's delay over the least of the others', largest": max(
                row["Drop Tail"] / min(row["RED"], row["CoDel"]) for row in rows.values()
            )
        },
        f"{_rows(rows, 'ms', 0)}. With a buffer of {s.SMALL} packets Drop Tail has {formats.at(small)} ms, "
        f"and then loses {lost:.0f} % at 1000 kbit/s, where it is said to lose least",
    )


def latency_high(evidence: Evidence) -> Finding:
    """A link wider than the load has the same short queue under all three."""
    rows = _cited(evidence, m.queue_ms, lambda rate: rate >= 256)
    return Finding(
        {
            "CoDel's delay over the least of the three, largest": max(
                row["CoDel"] / min(row.values()) for row in rows.values()
            )
        },
        _rows(rows, "ms", 0),
    )


def small(evidence: Evidence) -> Finding:
    carried, lost = (
        {name: evidence.means(along, one) for name, along in s.SMALL_BY.items()}
        for one in (m.carried_kbps, m.queue_loss_percent)
    )
    return Finding(
        {
            "Drop Tail's least throughput over RED's": min(
                _ratios(carried["Drop Tail"], carried["RED"])
            ),
            "most that it loses more, points": max(_apart(lost["Drop Tail"], lost["RED"])),
        },
        f"{s.SMALL} packets of buffer, lost by kbit/s: {formats.at(lost['Drop Tail'], 1)} %, RED "
        f"{formats.at(lost['RED'], 1)} %",
    )


def red_under_udp(evidence: Evidence) -> Finding:
    """RED beside its rivals, on links that the film fills."""
    rates = {rate: s.CITED_BY["RED"][rate] for rate in studies.FILLED}
    along = {"RED": rates, **s.UDP_RIVALS_BY}
    carried, lost, waited = (
        {name: evidence.means(variants, one) for name, variants in along.items()}
        for one in (m.carried_kbps, m.queue_loss_percent, m.queue_ms)
    )
    return Finding(
        {
            f"RED's least throughput over {name}'s": min(_ratios(carried["RED"], carried[name]))
            for name in s.UDP_RIVALS
        }
        | {
            f"RED's losses over {name}'s, largest": max(_ratios(lost["RED"], lost[name]))
            for name in s.UDP_RIVALS
        },
        "; ".join(
            f"{name} by kbit/s: {formats.at(carried[name])} kbit/s, {formats.at(lost[name], 1)} % lost, "
            f"{formats.at(waited[name])} ms"
            for name in along
        ),
    )


def red_carries_more(evidence: Evidence) -> Finding:
    rows = _cited(evidence, m.carried_kbps, lambda rate: rate in studies.FILLED)
    return Finding(
        {
            "RED's throughput over Drop Tail's, least": min(
                row["RED"] / row["Drop Tail"] for row in rows.values()
            )
        },
        _rows(rows, "kbit/s", 0),
    )


def red_best(evidence: Evidence) -> Finding:
    """Bufferbloat is delay, here of the three disciplines behind the source's own bottlenecks."""
    found = _behind(evidence, m.mean_ms)
    return Finding(
        {
            f"RED's latency over {name}'s, largest": max(_ratios(found["RED"], found[name]))
            for name in ("Drop Tail", "CoDel")
        },
        _listed(found, "ms"),
    )


# -------------------------------------------------------------------------------------- section 4


def unshaped(evidence: Evidence) -> Finding:
    latency, lost, film = (
        evidence.means(s.TRIES, one).values()
        for one in (m.mean_ms, m.ping_loss_percent, m.film_loss_percent)
    )
    return Finding(
        {"longest mean latency, ms": max(latency), "lost of pings or film, %": max(*lost, *film)}
    )


def narrower(evidence: Evidence, name: str) -> Finding:
    """The narrower the bottleneck, the more latency and loss and the less throughput."""
    latency, lost, carried = (
        list(evidence.means(s.BEHIND[name], one).values())
        for one in (m.mean_ms, m.ping_loss_percent, m.throughput_kbps)
    )

    def steps(values: list[float]) -> float:
        return min(after - before for before, after in pairwise(values))

    return Finding(
        {
            "least growth of the latency, ms": steps(latency),
            "of the pings lost, points": steps(lost),
            "least fall of the throughput, kbit/s": -max(b - a for a, b in pairwise(carried)),
            "growth of the latency from 250 to 150 kbps, ms": latency[-1] - latency[0],
            "of the pings lost": lost[-1] - lost[0],
        },
        f"250, 200, 150 kbps: {formats.each(latency)} ms, {formats.each(lost)} %, {formats.each(carried)} kbit/s",
    )


def lowest(evidence: Evidence) -> Finding:
    found = _behind(evidence, m.mean_ms)
    return Finding(
        {
            "CoDel's latency over RED's, largest": max(_ratios(found["CoDel"], found["RED"])),
            "tc's CoDel's": max(_ratios(found["tc's CoDel"], found["RED"])),
            "RED's over Drop Tail's": max(_ratios(found["RED"], found["Drop Tail"])),
        },
        _listed(found, "ms"),
    )


def by_age(evidence: Evidence) -> Finding:
    aged, plain = (
        evidence.means(along, m.dropped_for_age_percent)
        for along in (s.BEHIND["CoDel"], s.DEFAULTS)
    )
    return Finding(
        {
            f"drops for age with {s.FEW_PACKETS} packets, least, %": min(aged.values()),
            "with tc's defaults, least, %": min(plain.values()),
        },
        "The other lost packets found the queue full: there the limit, and not the age, keeps latency low",
    )


def most_carried(evidence: Evidence) -> Finding:
    """At 150 kbps the film always exceeds the link, and RED leaves almost no time idle."""
    found = _behind(evidence, m.throughput_kbps)
    return Finding(
        {
            "Drop Tail's throughput over RED's, least": min(
                _ratios(found["Drop Tail"], found["RED"])
            ),
            "RED's over CoDel's, least": min(_ratios(found["RED"], found["CoDel"])),
        },
        _listed(found, "kbit/s"),
    )


def least_lost(evidence: Evidence) -> Finding:
    found = _behind(evidence, m.ping_loss_percent)
    tail, red, codel = (found[name] for name in ("Drop Tail", "RED", "CoDel"))
    return Finding(
        {
            "RED loses more pings than Drop Tail, least, points": min(_apart(red, tail)),
            "CoDel more than RED": min(_apart(codel, red)),
            "CoDel more than Drop Tail": min(_apart(codel, tail)),
        },
        _listed(found, "%", 1),
    )


# --------------------------------------------------------------------------------- the conclusion


def ninety(evidence: Evidence) -> Finding:
    found = _behind(evidence, m.mean_ms)
    below, plain = (
        [100 * (1 - ratio) for ratio in _ratios(found[name], found["RED"])]
        for name in ("CoDel", "tc's CoDel")
    )
    return Finding(
        {"below RED's, mean of the three, %": fmean(below)},
        f"{formats.each(below)} %; with tc's defaults {formats.each(plain)} %",
    )


def tail_far_above(evidence: Evidence) -> Finding:
    found = _behind(evidence, m.mean_ms)
    return Finding(
        {
            f"least over {name}'s": min(_ratios(found["Drop Tail"], found[name]))
            for name in ("RED", "CoDel")
        }
    )


def twenty(evidence: Evidence) -> Finding:
    return Finding(
        {
            f"{name}'s throughput above CoDel's, mean of the three, %": m.carried_above(
                evidence, name
            ).mean
            for name in ("Drop Tail", "RED")
        },
        _listed(_behind(evidence, m.throughput_kbps), "kbit/s"),
    )


def ten(evidence: Evidence) -> Finding:
    return Finding(
        {
            f"pings lost less under {name}, mean of the three, points": m.lost_below(
                evidence, name
            ).mean
            for name in ("Drop Tail", "RED")
        },
        _listed(_behind(evidence, m.ping_loss_percent), "%", 1),
    )


# -------------------------------------------------------------------------------- the future work


def _won(evidence: Evidence, after: Variant, before: Variant) -> float:
    """Gain of throughput, lower end of its interval, kbit/s."""
    low, _ = difference(*(evidence.estimate(one, m.throughput_kbps) for one in (after, before)))
    return low


def larger_target(evidence: Evidence) -> Finding:
    carried, latency = (
        evidence.means(s.SWEPT["limit 1000"], one) for one in (m.throughput_kbps, m.mean_ms)
    )
    along = s.SWEPT["limit 1000"]
    return Finding(
        {"won, lower end of the interval, kbit/s": _won(evidence, along[max(carried)], along[5])},
        f"Limit 1000, by target in ms: {formats.at(carried)} kbit/s, {formats.at(latency)} ms",
    )


def larger_limit(evidence: Evidence) -> Finding:
    few, many = (s.SWEPT[name][5] for name in (studies.FEW_SETTING, "limit 1000"))
    (slow, fast), (short, long) = (
        [evidence.mean(one, measure) for one in (few, many)]
        for measure in (m.throughput_kbps, m.mean_ms)
    )
    return Finding(
        {"won, lower end of the interval, kbit/s": _won(evidence, many, few)},
        f"From {s.FEW_PACKETS} to 1000 packets at 250 kbps: {slow:.0f} to {fast:.0f} kbit/s, {short:.0f} to "
        f"{long:.0f} ms",
    )


def catches_up(evidence: Evidence) -> Finding:
    peaks = evidence.means(s.OVERLOADED, m.peak_packets)
    form = {times: studies.predicted_peak_packets(times) for times in peaks}
    # CoDel's first drop comes after a target and an interval; the excess of that time queues up.
    allowed = {
        times: 0.35 * form[times] + studies.excess(times) * (studies.INTERVAL_S + 0.05) + 2
        for times in peaks
    }
    return Finding(
        {
            "largest backlog off the closed form, of a third of it and what gathers first": max(
                abs(peak - form[times]) / allowed[times] for times, peak in peaks.items()
            )
        },
        f"Packets by the load over the rate: {formats.at(peaks)}; closed form {formats.at(form)}",
    )
