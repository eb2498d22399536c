"""Checks of what the source says, and what other readings of it give.

Cases 1 to 4 are checked under the main reading, in runs of 3.5 s. What the source says of the
disciplines in general (section 2, and that more connections mean more congestion) is checked past
the start, where they have something to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from sojourn.papers import published, searched, verdict
from sojourn.papers.evidence import Estimate, Evidence, Seed
from sojourn.papers.paper import Finding
from sojourn.papers.red_droptail import measures as m
from sojourn.papers.red_droptail import search
from sojourn.papers.red_droptail.studies import (
    DROP_TAIL,
    FAIRNESS,
    NS2,
    OTHERS,
    QUEUES,
    RED,
    STEADY,
    STEADY_FAIRNESS,
    STEADY_PLACES,
    THROUGHPUT,
    TP_FAIRNESS,
    TP_THROUGHPUT,
    WITH_QUEUES,
    D,
    N,
    cell,
    checked,
    over_d,
    over_n,
)

SAYS = published.beside(__file__)
FULL_ONLY = "Measured in the full version."

ALIKE = 0.05
"""The source calls two columns almost equal that differ by up to 0.8 %, and ahead where they differ
by 2 to 7 %: 5 % is almost equal for a whole table, half of the smallest lead is equal in a row."""
EQUAL = 0.01


def throughput(evidence: Evidence, tp: int, n: int, queue: str) -> Estimate:
    """Mbit/s in cases 1 and 2."""
    return evidence.estimate(THROUGHPUT[cell(tp, n, queue)], m.throughput_mbps)


def index(evidence: Evidence, tp: int, d: int, queue: str) -> Estimate:
    """The fairness index in cases 3 and 4."""
    return evidence.estimate(FAIRNESS[cell(tp, 16, queue, d)], m.fairness)


def lead(evidence: Evidence, tp: int, n: int) -> float:
    """RED's throughput over Drop-Tail's, less 1."""
    return throughput(evidence, tp, n, RED).mean / throughput(evidence, tp, n, DROP_TAIL).mean - 1


# ------------------------------------------------------------------------------------- throughput


def almost_equal(evidence: Evidence) -> Finding:
    leads = {n: lead(evidence, 80, n) for n in N}
    widest = max(leads, key=lambda n: abs(leads[n]))
    return Finding(
        all(abs(one) < ALIKE for one in leads.values()),
        f"RED is between {min(leads.values()):+.1%} and {max(leads.values()):+.1%} from "
        f"Drop-Tail, farthest at N = {widest}",
    )


def grows(evidence: Evidence) -> Finding:
    rows = {queue: [throughput(evidence, 80, n, queue).mean for n in N] for queue in QUEUES}
    return Finding(
        all(_rising(row) for row in rows.values()),
        "; ".join(
            f"{queue}: " + ", ".join(f"{x:.1f}" for x in row) + " Mbit/s"
            for queue, row in rows.items()
        )
        + f" for N = {', '.join(map(str, N))}",
    )


def equal_to_eight(evidence: Evidence) -> Finding:
    leads = [lead(evidence, 250, n) for n in (2, 4, 8)]
    return Finding(
        all(abs(one) < EQUAL for one in leads),
        "RED is "
        + ", ".join(f"{one:+.1%}" for one in leads)
        + f" from Drop-Tail at N = 2, 4, 8. {_first_losses(evidence)}",
        partly=all(abs(one) < EQUAL for one in leads[:2]) and abs(leads[2]) < ALIKE,
    )


def _first_losses(evidence: Evidence) -> str:
    lost = evidence.means(over_n(THROUGHPUT, 250, DROP_TAIL), m.dropped_packets)
    first = next((n for n in N if lost[n] > 0), None)
    return f"The buffer first overflows at N = {first}" if first else "The buffer never overflows"


def ahead_above_eight(evidence: Evidence) -> Finding:
    above = [n for n in N if n > 8]
    apart = {
        n: verdict.difference(
            throughput(evidence, 250, n, RED), throughput(evidence, 250, n, DROP_TAIL)
        )
        for n in above
    }
    means = [lead(evidence, 250, n) for n in above]
    return Finding(
        all(low > 0 for low, _ in apart.values()),
        f"RED leads by {_percents(means)} at N = {', '.join(map(str, above))}, with its limit in "
        f"packets, which was chosen because the source's RED leads. {one_place(evidence)}",
        partly=all(one > 0 for one in means),
    )


def one_place(evidence: Evidence) -> str:
    """Why RED leads: the experiment with Drop-Tail in as many places."""
    early = sum(evidence.mean(THROUGHPUT[cell(250, n, RED)], m.dropped_early) for n in N)
    apart = max(
        abs(
            evidence.mean(WITH_QUEUES[cell(250, n, "Drop-Tail, 30 places")], m.throughput_mbps)
            / throughput(evidence, 250, n, RED).mean
            - 1
        )
        for n in N
    )
    return (
        f"RED drops {early:g} packets early. ns-2's RED of limit 30 holds "
        "30 packets and its Drop-Tail 29; "
        f"Drop-Tail with 30 places is within {apart:.2%} of RED at every N"
    )


# --------------------------------------------------------------------------------------- fairness


def fairer(evidence: Evidence, tp: int) -> Finding:
    """RED in all three; in part, in one."""
    pairs = [(index(evidence, tp, d, RED), index(evidence, tp, d, DROP_TAIL)) for d in D]
    numbers = ", ".join(f"{red.mean:.3f}/{tail.mean:.3f}" for red, tail in pairs)
    low = [verdict.difference(red, tail)[0] for red, tail in pairs]
    lost = max(
        drops
        for queue in QUEUES
        for drops in evidence.means(over_d(FAIRNESS, tp, queue), m.dropped_packets).values()
    )
    early = max(evidence.means(over_d(FAIRNESS, tp, RED), m.dropped_early).values())
    drops = (
        f"at most {lost:.2g} packets are dropped in a run, {early:.2g} of them early"
        if lost
        else "nothing is dropped"
    )
    ahead = [
        str(d)
        for d in D
        if SAYS[f"fairness/{tp}/{d}/{RED}"] < SAYS[f"fairness/{tp}/{d}/{DROP_TAIL}"]
    ]
    own = (
        f". The source's own table has Drop-Tail ahead at D = {' and '.join(ahead)}"
        if ahead
        else ""
    )
    return Finding(
        all(one > 0 for one in low),
        f"RED/Drop-Tail {numbers} at D = {', '.join(map(str, D))}: in these short runs {drops}{own}",
        partly=any(one > 0 for one in low),
    )


def below(evidence: Evidence, tp: int, bound: float) -> Finding:
    values = {(queue, d): index(evidence, tp, d, queue).mean for queue in QUEUES for d in D}
    over = [f"{queue} at D = {d}" for (queue, d), value in values.items() if value > bound]
    most = max(values.values())
    return Finding(
        not over,
        f"the highest is {most:.3f}" + (f"; above {bound:g}: {', '.join(over)}" if over else ""),
        partly=len(over) < len(values) and most < bound + 0.05,
    )


def falls_with_spread(evidence: Evidence) -> Finding:
    rows = {
        (tp, queue): [index(evidence, tp, d, queue).mean for d in D]
        for tp in TP_FAIRNESS
        for queue in QUEUES
    }
    return Finding(
        all(_rising([-x for x in row]) for row in rows.values()),
        "; ".join(
            f"{queue} at Tp = {tp} ms: {', '.join(f'{x:.3f}' for x in row)}"
            for (tp, queue), row in rows.items()
        ),
    )


def fairer_over_long_paths(evidence: Evidence) -> Finding:
    pairs = [
        (index(evidence, 250, d, queue).mean, index(evidence, 75, d, queue).mean)
        for queue in QUEUES
        for d in D
    ]
    return Finding(
        all(long > short for long, short in pairs),
        "Tp = 250/75 ms: "
        + ", ".join(f"{long:.3f}/{short:.3f}" for long, short in pairs)
        + " (RED, then Drop-Tail): the same spread is a smaller share of a longer RTT",
    )


# --------------------------------------------------------------------------------- past the start


def more_congestion(evidence: Evidence) -> Finding:
    rows = {queue: evidence.means(over_n(STEADY, 80, queue), m.drop_share) for queue in QUEUES}
    return Finding(
        all(_rising(row.values()) for row in rows.values()),
        "; ".join(f"{queue} drops {_percents(row.values(), 3)}" for queue, row in rows.items())
        + f" of the packets for N = {', '.join(map(str, rows[RED]))}, Tp = 80 ms, past the start",
    )


def drop_tail_degrades(evidence: Evidence) -> Finding:
    used, waited = (
        evidence.means(over_n(STEADY, 80, DROP_TAIL), one) for one in (m.utilisation, m.sojourn_ms)
    )
    few, many = min(used), max(used)
    return Finding(
        used[many] < 0.95 * used[few],
        f"Drop-Tail uses {used[few]:.2%} of the link with {few} flows and {used[many]:.2%} with "
        f"{many} (Tp = 80 ms, past the start): more flows fill the link no worse. What "
        f"does get worse is delay: the mean sojourn goes from {waited[few]:.0f} to "
        f"{waited[many]:.0f} ms",
    )


def red_keeps_room(evidence: Evidence) -> Finding:
    places = STEADY_PLACES
    longest = {
        queue: max(
            backlog
            for tp in TP_THROUGHPUT
            for backlog in evidence.means(over_n(STEADY, tp, queue), m.backlog_max_packets).values()
        )
        for queue in QUEUES
    }
    ours, tail = longest[RED], longest[DROP_TAIL]
    red, drop_tail = (evidence.mean(STEADY[cell(80, 32, queue)], m.sojourn_ms) for queue in QUEUES)
    return Finding(
        ours < places / 2 and red < drop_tail / 3,
        f"past the start RED's longest queue is {ours:.0f} of {places} packets, Drop-Tail's "
        f"{tail:.0f}; mean sojourn of 32 flows {red:.1f} ms for {drop_tail:.1f} ms",
    )


def proportional(evidence: Evidence) -> Finding:
    along = {
        (tp, d): one for tp in TP_FAIRNESS for d, one in over_d(STEADY_FAIRNESS, tp, RED).items()
    }
    found = evidence.means(along, m.notified_in_proportion)
    return Finding(
        min(found.values()) > 0.8,
        "over 16 flows of unequal RTT, a flow's share of RED's drops correlates with its share of "
        "the packets with "
        + ", ".join(f"r = {r:.2f} (Tp {tp} ms, D {d})" for (tp, d), r in found.items())
        + "; at Tp = 250 ms drops are few" * any(tp == 250 for tp, _ in found),
        partly=min(found.values()) > 0.3,
    )


def red_fairer_later(evidence: Evidence) -> Finding:
    better, told, ahead = [], [], 0
    for tp in TP_FAIRNESS:
        reds, tails = (
            evidence.over(over_d(STEADY_FAIRNESS, tp, queue), m.fairness) for queue in QUEUES
        )
        for d, red in reds.items():
            tail = tails[d]
            better.append(verdict.difference(red, tail)[0] > 0)
            ahead += red.mean > tail.mean
            told.append(f"{red.mean:.2f}/{tail.mean:.2f} (Tp {tp} ms, D {d})")
    return Finding(
        all(better),
        f"past the start, RED/Drop-Tail: {', '.join(told)}: RED is ahead in {ahead} of "
        f"{len(better)}, beyond the seeds' spread in {sum(better)}",
        partly=ahead == len(better),
    )


# ------------------------------------------------------------------------ the search for a RED


def overflow(evidence: Evidence) -> str:
    """Why they part at N = 8."""
    return f"{_first_losses(evidence)}, and RED has a place more: {one_place(evidence)}"


def no_red_leads(_: Evidence, case: str) -> str:
    """What the search says of RED's lead in one case: the best at the source's throughputs, and
    what the source's lead costs."""
    found = search.trade(int(case))
    return (
        f"{found.settings} settings of RED's thresholds, weight and probability with limit and "
        "length were searched. Of those whose throughputs are as near to the source's as the chosen "
        f"ones ({found.chosen_off:.0%} rms) the best leads by {found.best:.3f} in case {case}, mean "
        f"of its rows, for the source's {found.source:.3f}; {_price(found)}"
    )


def searched_reds(_: Evidence) -> str:
    """The same for cases 2 to 4, and how the search was made."""
    told = []
    for case in (2, 3, 4):
        found = search.trade(case)
        told.append(
            f"case {case}: {found.best:+.3f} at the chosen reading's throughputs, {found.source:+.3f} "
            f"in the source, {_price(found)}"
        )
    return (
        f"Mean lead of RED over Drop-Tail, {found.settings} settings: {'; '.join(told)} "
        f"({searched.beside(search.__file__).made})"
    )


def _price(found: search.Trade) -> str:
    """What half of the source's lead costs in throughput."""
    if math.isnan(found.price):
        return "none has half of that"
    return f"half of that is had at {found.price:.0%} off in throughput"


# ------------------------------------------------------------------------------------- conclusion


def slightly_better(evidence: Evidence) -> Finding:
    leads = [lead(evidence, tp, n) for tp in TP_THROUGHPUT for n in N]
    apart = [
        index(evidence, tp, d, RED).mean - index(evidence, tp, d, DROP_TAIL).mean
        for tp in TP_FAIRNESS
        for d in D
    ]
    mean_lead, mean_apart = math.fsum(leads) / len(leads), math.fsum(apart) / len(apart)
    return Finding(
        mean_lead > 0.005 and mean_apart > 0.005,
        f"over cases 1 and 2 RED's throughput is {mean_lead:+.1%} on average, for its one place "
        "more in the buffer; over cases 3 and 4 its fairness index "
        f"{mean_apart:+.3f}",
        partly=mean_lead > 0.005,
    )


def _rising(row: Iterable[float]) -> bool:
    values = list(row)
    return all(a < b for a, b in pairwise(values))


def _percents(values: Iterable[float], digits: int = 2) -> str:
    return ", ".join(f"{100 * value:.{digits}g} %" for value in values)


# ----------------------------------------------------------------------- what other readings give


def rms(pairs: Iterable[tuple[float, float]]) -> float:
    """Root mean square of ln(ours / published)."""
    squares = [math.log(ours / published) ** 2 for ours, published in pairs]
    return math.sqrt(math.fsum(squares) / len(squares))


def misfit(evidence: Evidence, reading: str = "") -> tuple[float, float]:
    """How far a reading's Drop-Tail lies from the source: throughput, fairness. Empty: the main
    reading."""
    before = f"{reading}: " if reading else ""
    tables, indices = (OTHERS, OTHERS) if reading else (THROUGHPUT, FAIRNESS)
    throughputs = [
        (
            evidence.mean(tables[before + cell(tp, n, DROP_TAIL)], m.throughput_mbps),
            SAYS[f"throughput/{tp}/{n}/{DROP_TAIL}"],
        )
        for tp in TP_THROUGHPUT
        for n in N
    ]
    fairnesses = [
        (
            evidence.mean(indices[before + cell(tp, 16, DROP_TAIL, d)], m.fairness),
            SAYS[f"fairness/{tp}/{d}/{DROP_TAIL}"],
        )
        for tp in TP_FAIRNESS
        for d in D
    ]
    return rms(throughputs), rms(fairnesses)


def fits(evidence: Evidence, *readings: str) -> str:
    """How far these readings lie from the source."""
    if not evidence.variants(OTHERS):
        return FULL_ONLY
    found = [(name, misfit(evidence, name)) for name in readings]
    return (
        "; ".join(
            f"{name}: {a:.0%} off in throughput, {b:.0%} in fairness" for name, (a, b) in found
        )
        + f". The chosen: {misfit(evidence)[0]:.0%} and {misfit(evidence)[1]:.0%}"
    )


def starts(evidence: Evidence) -> str:
    """What was searched of starts and lengths, and what the others that were run give."""
    found = search.starts()
    nearest, farthest = found[0], found[-1]
    own = [one for one in found if one.length_s == nearest.length_s]
    others = fits(evidence, "starts at once", "starts within 10 ms", "starts within 50 ms")
    return (
        f"Of {len(found)} pairs of a length and a time within which flows start, Drop-Tail's 22 cells "
        f"lie {nearest.tail_off:.1%} (rms) off at the nearest, {nearest.length_s:g} s and "
        f"{nearest.spread_ms:g} ms, {farthest.tail_off:.1%} at the farthest; at {nearest.length_s:g} "
        "s: "
        + ", ".join(
            f"{one.tail_off:.1%} within {one.spread_ms:g} ms, where {one.tail_cells} cells and "
            f"{one.leads} of RED's 22 leads fit"
            for one in sorted(own, key=lambda one: one.spread_ms)
        )
        + f" ({searched.beside(search.__file__).made}). Run again: {others}"
    )


def connection_time(evidence: Evidence) -> str:
    """Throughput over the run, and over each connection's own time."""
    late = NS2[checked("R2", cell(80, 32, DROP_TAIL))]
    if not evidence.has(late):
        return FULL_ONLY
    over_run, own = (evidence.mean(late, one) for one in (m.throughput_mbps, _over_own_time))
    return (
        "Where flows start 50 ms apart (R2) it matters: 32 flows at Tp = 80 ms give "
        f"{over_run:.1f} Mbit/s over the run and {own:.1f} over each connection's own time. "
        "Application bytes alone would be 7 % less"
    )


def _over_own_time(seed: Seed) -> float:
    return m.throughput_per_connection_mbps(seed, 0.05)


def other_reds(evidence: Evidence) -> str:
    """RED with its limit in bytes, and with the thresholds of textbooks."""
    if not evidence.has(WITH_QUEUES[cell(80, 32, "RED 5/15")]):
        return one_place(evidence)
    told = []
    for name in ("RED in bytes", "RED 5/15"):
        leads = [
            evidence.mean(WITH_QUEUES[cell(tp, n, name)], m.throughput_mbps)
            / throughput(evidence, tp, n, DROP_TAIL).mean
            - 1
            for tp in TP_THROUGHPUT
            for n in N
        ]
        told.append(
            f"{name}: {min(leads):+.1%} to {max(leads):+.1%} from Drop-Tail over cases 1 and 2"
        )
    return f"{'; '.join(told)}. {one_place(evidence)}"


def against_ns2(evidence: Evidence) -> str:
    """Ours beside ns-2's, row by row."""
    parts = []
    for queue in (DROP_TAIL, RED):
        count, median, most = m.agreement(evidence, queue)
        parts.append(f"{queue}: {count} rows, median {median:.2%} apart, at most {most:.0%}")
    far = [pair for pair in m.pairs(evidence) if abs(pair.off) > 0.1]
    if far:
        where = ", ".join(sorted({pair.reading for pair in far}))
        parts[-1] += (
            f". {len(far)} rows are more than 10 % apart ({where}, RED with its limit in bytes): "
            "the bursts of several flows meet in a full buffer, "
            "and which of them loses how many packets decides the run. No other cause was looked "
            "for"
        )
    return "; ".join(parts)


def full_windows(evidence: Evidence) -> str:
    """Throughput past the start beside the published."""
    n = 16 if evidence.has(STEADY[cell(80, 16, RED)]) else 8
    ours = [evidence.mean(STEADY[cell(80, n, queue)], m.throughput_mbps) for queue in QUEUES]
    stated = [SAYS[f"throughput/80/{n}/{queue}"] for queue in QUEUES]
    return (
        f"Past the start {n} flows at Tp = 80 ms get {ours[0]:.1f} Mbit/s under RED and "
        f"{ours[1]:.1f} under Drop-Tail with {STEADY_PLACES} packets, "
        f"where the source prints {stated[0]:g} and {stated[1]:g}: no published throughput is "
        "that of full windows"
    )


def shown_steady(evidence: Evidence) -> str:
    """The caption of what is past the start."""
    red, drop_tail = (
        max(
            value
            for tp in TP_THROUGHPUT
            for value in evidence.means(over_n(STEADY, tp, queue), m.sojourn_ms).values()
        )
        for queue in QUEUES
    )
    shares = {
        f"{n} flows at Tp = {tp} ms": value / tails[n]
        for tp in TP_THROUGHPUT
        for tails in [evidence.means(over_n(STEADY, tp, DROP_TAIL), m.throughput_mbps)]
        for n, value in evidence.means(over_n(STEADY, tp, RED), m.throughput_mbps).items()
    }
    worst = min(shares, key=shares.__getitem__)
    return (
        f"Past the start Drop-Tail's mean sojourn is {drop_tail:.1f} ms at most, adaptive RED's "
        f"{red:.1f} ms, for {100 * shares[worst]:.0f} % of Drop-Tail's throughput or more (least: "
        f"{worst}). No published values: the source has none."
    )


def shown_steady_fairness(evidence: Evidence) -> str:
    """The caption of fairness past the start."""
    told = red_fairer_later(evidence).because
    return f"{told[0].upper()}{told[1:]}. No published values."
