"""Checks of the source's claims.

Cases 1 to 4 are checked under the main reading, in runs of 3.5 s. The source's general claims about
the disciplines (section 2, and that more connections mean more congestion) are checked past the
start, where the disciplines have an effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from statistics import fmean, stdev

from sojourn_papers import published, verdict
from sojourn_papers.evidence import Estimate, Evidence, some
from sojourn_papers.formats import at, each
from sojourn_papers.paper import Finding
from sojourn_papers.red_droptail import measures as m
from sojourn_papers.red_droptail import studies as s

SAYS = published.beside(__file__)


def throughput(evidence: Evidence, tp: int, n: int, queue: str) -> Estimate:
    """Mbit/s in cases 1 and 2."""
    return evidence.estimate(s.THROUGHPUT[s.cell(tp, n, queue)], m.throughput_mbps)


def index(evidence: Evidence, tp: int, d: int, queue: str) -> Estimate:
    """The fairness index in cases 3 and 4."""
    return evidence.estimate(s.FAIRNESS[s.cell(tp, 16, queue, d)], m.fairness)


def leads(evidence: Evidence, tp: int, ns: Iterable[int] = s.N) -> dict[int, float]:
    """By how much RED's throughput is above Drop-Tail's, %, by N."""
    return {
        n: 100
        * (
            throughput(evidence, tp, n, s.RED).mean / throughput(evidence, tp, n, s.DROP_TAIL).mean
            - 1
        )
        for n in ns
    }


def _least_step(rows: Iterable[Iterable[float]]) -> float:
    """The least rise from one value of a row to the next."""
    return min(b - a for row in rows for a, b in pairwise(row))


# ------------------------------------------------------------------------------------- throughput


def almost_equal(evidence: Evidence) -> Finding:
    found = leads(evidence, 80)
    return Finding(
        {"farthest apart, %": max(map(abs, found.values()))}, f"RED's lead by N, %: {at(found, 1)}"
    )


def grows(evidence: Evidence) -> Finding:
    rows = {queue: [throughput(evidence, 80, n, queue).mean for n in s.N] for queue in s.QUEUES}
    return Finding(
        {"least growth to the next N, Mbit/s": _least_step(rows.values())},
        "; ".join(f"{queue}: {each(row, 1)} Mbit/s" for queue, row in rows.items()),
    )


def equal_to_eight(evidence: Evidence) -> Finding:
    found = leads(evidence, 250, (2, 4, 8))
    return Finding(
        {
            "farthest apart, %": max(map(abs, found.values())),
            "with 2 and 4 flows, %": max(abs(found[n]) for n in (2, 4)),
        }
    )


def ahead_above_eight(evidence: Evidence) -> Finding:
    above = [n for n in s.N if n > 8]
    low = [
        verdict.difference(*(throughput(evidence, 250, n, queue) for queue in s.QUEUES))[0]
        for n in above
    ]
    found = leads(evidence, 250, above)
    early = sum(evidence.mean(s.THROUGHPUT[s.cell(250, n, s.RED)], m.dropped_early) for n in s.N)
    apart = max(
        abs(
            evidence.mean(s.WITH_QUEUES[s.cell(250, n, "Drop-Tail, 30 places")], m.throughput_mbps)
            / throughput(evidence, 250, n, s.RED).mean
            - 1
        )
        for n in s.N
    )
    return Finding(
        {
            "least lead, lower end of its interval, Mbit/s": min(low),
            "least lead, %": min(found.values()),
        },
        f"RED drops {early:g} packets early. ns-2's RED of limit 30 holds 30 packets and its "
        f"Drop-Tail 29; Drop-Tail with 30 places is within {apart:.2%} of RED at every N",
    )


# --------------------------------------------------------------------------------------- fairness


def fairer(evidence: Evidence, tp: int) -> Finding:
    pairs = {d: [index(evidence, tp, d, queue) for queue in s.QUEUES] for d in s.D}
    apart = {d: red.mean - tail.mean for d, (red, tail) in pairs.items()}
    lost = max(evidence.means(s.over_d(s.FAIRNESS, tp, s.DROP_TAIL), m.dropped_packets).values())
    early = max(evidence.means(s.over_d(s.FAIRNESS, tp, s.RED), m.dropped_early).values())
    return Finding(
        {"RED's least lead in the index": min(apart.values())},
        f"By D: {at(apart, 3)}. In these short runs at most {lost:.2g} packets are dropped, "
        f"{early:.2g} of them early by RED",
    )


def below(evidence: Evidence, tp: int) -> Finding:
    values = {
        f"{queue}, D {d}": index(evidence, tp, d, queue).mean for queue in s.QUEUES for d in s.D
    }
    return Finding({"highest index": max(values.values())}, at(values, 3))


def _indices(evidence: Evidence) -> dict[str, list[float]]:
    return {
        f"{queue}, Tp {tp} ms": [index(evidence, tp, d, queue).mean for d in s.D]
        for tp in s.TP_FAIRNESS
        for queue in s.QUEUES
    }


def falls_with_spread(evidence: Evidence) -> Finding:
    """The column of Drop-Tail: the source's RED rises from D = 15 to D = 20."""
    rows = {name: row for name, row in _indices(evidence).items() if name.startswith(s.DROP_TAIL)}
    falling = _least_step([-value for value in row] for row in rows.values())
    return Finding(
        {"least fall to the next D": falling},
        "; ".join(f"{name}: {each(row, 3)}" for name, row in rows.items()),
    )


def fairer_over_long_paths(evidence: Evidence) -> Finding:
    rows = _indices(evidence)
    apart = [
        long - short
        for queue in s.QUEUES
        for long, short in zip(rows[f"{queue}, Tp 250 ms"], rows[f"{queue}, Tp 75 ms"], strict=True)
    ]
    return Finding({"least by which the index is higher": min(apart)})


def one_run(evidence: Evidence) -> Finding:
    """The published leads, and the difference of two runs under one queue that each draw their
    delays."""
    found = {}
    for tp in s.TP_FAIRNESS:
        for d in s.D:
            values = [evidence.mean(s.DRAWN[s.drawn(tp, d, draw)], m.fairness) for draw in s.DRAWS]
            found[f"Tp {tp} ms, D {d}"] = SAYS[f"lead/fairness/{tp}/{d}"] / (
                math.sqrt(2) * stdev(values)
            )
    return Finding(
        {"largest published lead, in standard deviations": max(found.values())},
        f"Of the difference of two runs under Drop-Tail, each with delays of its own: {at(found, 1)}",
    )


# --------------------------------------------------------------------------------- past the start


def more_congestion(evidence: Evidence) -> Finding:
    rows = {
        queue: evidence.means(s.over_n(s.STEADY, 80, queue), m.drop_share) for queue in s.QUEUES
    }
    shares = {queue: {n: 100 * share for n, share in row.items()} for queue, row in rows.items()}
    return Finding(
        {
            "least growth of the drops to the next N, points": _least_step(
                row.values() for row in shares.values()
            )
        },
        "; ".join(f"{queue} drops, %, by N: {at(row, 3)}" for queue, row in shares.items()),
    )


def drop_tail_degrades(evidence: Evidence) -> Finding:
    used, waited = (
        evidence.means(s.over_n(s.STEADY, 80, s.DROP_TAIL), one)
        for one in (m.utilisation, m.sojourn_ms)
    )
    few, many = min(used), max(used)
    return Finding(
        {"utilisation lost, %": 100 * (1 - used[many] / used[few])},
        f"From {few} to {many} flows at Tp = 80 ms. The mean sojourn goes from {waited[few]:.0f} to "
        f"{waited[many]:.0f} ms",
    )


def red_keeps_room(evidence: Evidence) -> Finding:
    longest = {
        queue: max(evidence.means(s.over_n(s.STEADY, 80, queue), m.backlog_max_packets).values())
        for queue in s.QUEUES
    }
    red, tail = (evidence.mean(s.STEADY[s.cell(80, 32, queue)], m.sojourn_ms) for queue in s.QUEUES)
    return Finding(
        {
            "longest queue over the buffer": longest[s.RED] / s.STEADY_PLACES,
            "mean sojourn of 32 flows over Drop-Tail's": red / tail,
        },
        f"Tp = 80 ms; longest queues, packets: {at(longest)}",
    )


def proportional(evidence: Evidence) -> Finding:
    along = {
        f"Tp {tp} ms, D {d}": one
        for tp in s.TP_FAIRNESS
        for d, one in s.over_d(s.STEADY_FAIRNESS, tp, s.RED).items()
    }
    found = evidence.means(along, m.notified_in_proportion)
    return Finding(
        {"least correlation of shares of drops and of packets": min(found.values())}, at(found, 2)
    )


def red_fairer_later(evidence: Evidence) -> Finding:
    found: dict[str, tuple[Estimate, Estimate]] = {}
    for tp in s.TP_FAIRNESS:
        reds, tails = (
            evidence.over(s.over_d(s.STEADY_FAIRNESS, tp, queue), m.fairness) for queue in s.QUEUES
        )
        found |= {f"Tp {tp} ms, D {d}": (red, tails[d]) for d, red in reds.items()}
    apart = {name: red.mean - tail.mean for name, (red, tail) in found.items()}
    low = [verdict.difference(*pair)[0] for pair in found.values()]
    return Finding(
        {
            "RED's least lead, lower end of its interval": min(some(low)),
            "least lead": min(apart.values()),
        },
        at(apart, 3),
    )


# ------------------------------------------------------------------------------------- conclusion


def slightly_better(evidence: Evidence) -> Finding:
    ahead = [one for tp in s.TP_THROUGHPUT for one in leads(evidence, tp).values()]
    apart = [
        index(evidence, tp, d, s.RED).mean - index(evidence, tp, d, s.DROP_TAIL).mean
        for tp in s.TP_FAIRNESS
        for d in s.D
    ]
    return Finding(
        {"mean lead in throughput, %": fmean(ahead), "mean lead in the index": fmean(apart)},
        "In throughput it is RED's one place more in the buffer",
    )
