"""What the source says, sentence by sentence, and our checks.

Cases 1 to 4 are checked under the main reading, in runs of 3.5 s. What the source says of the disciplines in general
(section 2, and that more connections mean more congestion) is checked past the start, where they have something to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from sojourn.papers import verdict
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Claim, Estimate, Finding
from sojourn.papers.red_droptail.cases import (
    DROP_TAIL,
    RED,
    STEADY_PLACES,
    TP_FAIRNESS,
    TP_THROUGHPUT,
    D,
    N,
    cell,
)
from sojourn.papers.red_droptail.measures import (
    backlog_max_packets,
    drop_share,
    dropped_early,
    dropped_packets,
    fairness,
    notified_in_proportion,
    sojourn_ms,
    throughput_mbps,
    utilisation,
)

ALIKE = 0.05
"""The source calls two columns almost equal that differ by up to 0.8 %, and ahead where they differ by 2 to 7 %: 5 % is almost equal for a
whole table, half of the smallest lead is equal in a row."""
EQUAL = 0.01


def throughput(evidence: Evidence, tp: int, n: int, queue: str) -> Estimate:
    """Mbit/s in cases 1 and 2."""
    return evidence.estimate("throughput", cell(tp, n, queue), throughput_mbps)


def index(evidence: Evidence, tp: int, d: int, queue: str) -> Estimate:
    """The fairness index in cases 3 and 4."""
    return evidence.estimate("fairness", cell(tp, 16, queue, d), fairness)


def lead(evidence: Evidence, tp: int, n: int) -> float:
    """RED's throughput over Drop-Tail's, less 1."""
    return throughput(evidence, tp, n, RED).mean / throughput(evidence, tp, n, DROP_TAIL).mean - 1


# ------------------------------------------------------------------------------------------------------- throughput


def _almost_equal(evidence: Evidence) -> Finding:
    leads = {n: lead(evidence, 80, n) for n in N}
    widest = max(leads, key=lambda n: abs(leads[n]))
    return Finding(
        all(abs(one) < ALIKE for one in leads.values()),
        f"RED is between {min(leads.values()):+.1%} and {max(leads.values()):+.1%} from Drop-Tail, farthest at N = {widest}",
    )


def _grows(evidence: Evidence) -> Finding:
    rows = {queue: [throughput(evidence, 80, n, queue).mean for n in N] for queue in (RED, DROP_TAIL)}
    return Finding(
        all(_rising(row) for row in rows.values()),
        "; ".join(
            f"{queue}: " + ", ".join(f"{x:.1f}" for x in row) + " Mbit/s" for queue, row in rows.items()
        )
        + f" for N = {', '.join(map(str, N))}",
    )


def _equal_to_eight(evidence: Evidence) -> Finding:
    leads = [lead(evidence, 250, n) for n in (2, 4, 8)]
    return Finding(
        all(abs(one) < EQUAL for one in leads),
        "RED is "
        + ", ".join(f"{one:+.1%}" for one in leads)
        + f" from Drop-Tail at N = 2, 4, 8. {_first_losses(evidence)}",
        partly=all(abs(one) < EQUAL for one in leads[:2]) and abs(leads[2]) < ALIKE,
    )


def _first_losses(evidence: Evidence) -> str:
    lost = {n: evidence.mean("throughput", cell(250, n, DROP_TAIL), dropped_packets) for n in N}
    first = next((n for n in N if lost[n] > 0), None)
    return f"The buffer first overflows at N = {first}" if first else "The buffer never overflows"


def _ahead_above_eight(evidence: Evidence) -> Finding:
    above = [n for n in N if n > 8]
    apart = {
        n: verdict.difference(throughput(evidence, 250, n, RED), throughput(evidence, 250, n, DROP_TAIL))
        for n in above
    }
    means = [lead(evidence, 250, n) for n in above]
    return Finding(
        all(low > 0 for low, _ in apart.values()),
        f"RED leads by {_percents(means)} at N = {', '.join(map(str, above))}, with its limit in packets, which was chosen because the source's RED leads. {one_place(evidence)}",
        partly=all(one > 0 for one in means),
    )


def one_place(evidence: Evidence) -> str:
    """Why RED leads: the experiment with Drop-Tail in as many places."""
    early = sum(evidence.mean("throughput", cell(250, n, RED), dropped_early) for n in N)
    apart = max(
        abs(
            evidence.mean("queues", cell(250, n, "Drop-Tail, 30 places"), throughput_mbps)
            / throughput(evidence, 250, n, RED).mean
            - 1
        )
        for n in N
    )
    return (
        f"It is not RED's doing: it drops {early:g} packets early. ns-2's RED of limit 30 holds 30 packets and its Drop-Tail 29; "
        f"Drop-Tail with 30 places is within {apart:.2%} of RED at every N"
    )


# --------------------------------------------------------------------------------------------------------- fairness


def _red_better(evidence: Evidence, tp: int) -> tuple[bool, bool, str]:
    """In all three, in their mean, and the numbers."""
    pairs = [(index(evidence, tp, d, RED), index(evidence, tp, d, DROP_TAIL)) for d in D]
    numbers = ", ".join(f"{red.mean:.3f}/{tail.mean:.3f}" for red, tail in pairs)
    low = [verdict.difference(red, tail)[0] for red, tail in pairs]
    lost = max(
        evidence.mean("fairness", cell(tp, 16, queue, d), dropped_packets)
        for d in D
        for queue in (RED, DROP_TAIL)
    )
    drops = f"at most {lost:.2g} packets are dropped in a run, none early" if lost else "nothing is dropped"
    said = f"RED/Drop-Tail {numbers} at D = 10, 15, 20: in these short runs {drops}"
    return all(one > 0 for one in low), any(one > 0 for one in low), said


def _case3_red_better(evidence: Evidence) -> Finding:
    every, some, said = _red_better(evidence, 75)
    return Finding(every, f"{said}. The source's own table has Drop-Tail ahead at D = 10 and 15", partly=some)


def _case4_red_better(evidence: Evidence) -> Finding:
    every, some, said = _red_better(evidence, 250)
    return Finding(every, said, partly=some)


def _below(evidence: Evidence, tp: int, bound: float) -> Finding:
    values = {(queue, d): index(evidence, tp, d, queue).mean for queue in (RED, DROP_TAIL) for d in D}
    over = [f"{queue} at D = {d}" for (queue, d), value in values.items() if value > bound]
    most = max(values.values())
    return Finding(
        not over,
        f"the highest is {most:.3f}" + (f"; above {bound:g}: {', '.join(over)}" if over else ""),
        partly=len(over) < len(values) and most < bound + 0.05,
    )


def _falls_with_spread(evidence: Evidence) -> Finding:
    rows = {
        (tp, queue): [index(evidence, tp, d, queue).mean for d in D]
        for tp in TP_FAIRNESS
        for queue in (RED, DROP_TAIL)
    }
    return Finding(
        all(_rising([-x for x in row]) for row in rows.values()),
        "; ".join(
            f"{queue} at Tp = {tp} ms: {', '.join(f'{x:.3f}' for x in row)}"
            for (tp, queue), row in rows.items()
        ),
    )


def _fairer_over_long_paths(evidence: Evidence) -> Finding:
    pairs = [
        (index(evidence, 250, d, queue).mean, index(evidence, 75, d, queue).mean)
        for queue in (RED, DROP_TAIL)
        for d in D
    ]
    return Finding(
        all(long > short for long, short in pairs),
        "Tp = 250/75 ms: "
        + ", ".join(f"{long:.3f}/{short:.3f}" for long, short in pairs)
        + " (RED, then Drop-Tail): the same spread is a smaller share of a longer RTT",
    )


# --------------------------------------------------------------------------------------------------- past the start


def _steady(evidence: Evidence, tp: int) -> list[int]:
    return [n for n in N if evidence.has("steady", cell(tp, n, RED))]


def _more_congestion(evidence: Evidence) -> Finding:
    ns = _steady(evidence, 80)
    rows = {
        queue: [evidence.mean("steady", cell(80, n, queue), drop_share) for n in ns]
        for queue in (RED, DROP_TAIL)
    }
    return Finding(
        all(_rising(row) for row in rows.values()),
        "; ".join(f"{queue} drops {_percents(row, 3)}" for queue, row in rows.items())
        + f" of the packets for N = {', '.join(map(str, ns))}, Tp = 80 ms, past the start",
    )


def _drop_tail_degrades(evidence: Evidence) -> Finding:
    ns = _steady(evidence, 80)
    used = [evidence.mean("steady", cell(80, n, DROP_TAIL), utilisation) for n in ns]
    return Finding(
        used[-1] < 0.95 * used[0],
        f"Drop-Tail uses {used[0]:.2%} of the link with {ns[0]} flows and {used[-1]:.2%} with {ns[-1]} (Tp = 80 ms, past the start): more flows fill the link no worse. What "
        f"does get worse is delay: the mean sojourn goes from {evidence.mean('steady', cell(80, ns[0], DROP_TAIL), sojourn_ms):.0f} to {evidence.mean('steady', cell(80, ns[-1], DROP_TAIL), sojourn_ms):.0f} ms",
    )


def _red_keeps_room(evidence: Evidence) -> Finding:
    places = STEADY_PLACES
    found = []
    for tp in TP_THROUGHPUT:
        for n in _steady(evidence, tp):
            longest = evidence.mean("steady", cell(tp, n, RED), backlog_max_packets)
            found.append((longest, evidence.mean("steady", cell(tp, n, DROP_TAIL), backlog_max_packets)))
    ours, tail = max(red for red, _ in found), max(other for _, other in found)
    red, drop_tail = (evidence.mean("steady", cell(80, 32, queue), sojourn_ms) for queue in (RED, DROP_TAIL))
    return Finding(
        ours < places / 2 and red < drop_tail / 3,
        f"past the start RED's longest queue is {ours:.0f} of {places} packets, Drop-Tail's {tail:.0f}; mean sojourn of 32 flows {red:.1f} ms for {drop_tail:.1f} ms",
    )


def _proportional(evidence: Evidence) -> Finding:
    found = {
        (tp, d): evidence.mean("steady-fairness", cell(tp, 16, RED, d), notified_in_proportion)
        for tp in TP_FAIRNESS
        for d in D
        if evidence.has("steady-fairness", cell(tp, 16, RED, d))
    }
    return Finding(
        min(found.values()) > 0.8,
        "over 16 flows of unequal RTT, a flow's share of RED's drops correlates with its share of the packets with "
        + ", ".join(f"r = {r:.2f} (Tp {tp} ms, D {d})" for (tp, d), r in found.items())
        + "; at Tp = 250 ms drops are few" * any(tp == 250 for tp, _ in found),
        partly=min(found.values()) > 0.3,
    )


def _red_fairer_later(evidence: Evidence) -> Finding:
    better, said = [], []
    ahead = 0
    for tp in TP_FAIRNESS:
        for d in D:
            if not evidence.has("steady-fairness", cell(tp, 16, RED, d)):
                continue
            red, tail = (
                evidence.estimate("steady-fairness", cell(tp, 16, queue, d), fairness)
                for queue in (RED, DROP_TAIL)
            )
            better.append(verdict.difference(red, tail)[0] > 0)
            ahead += red.mean > tail.mean
            said.append(f"{red.mean:.2f}/{tail.mean:.2f} (Tp {tp} ms, D {d})")
    return Finding(
        all(better),
        f"past the start, RED/Drop-Tail: {', '.join(said)}: RED is ahead in {ahead} of {len(better)}, beyond the seeds' spread in {sum(better)}",
        partly=ahead == len(better),
    )


# ------------------------------------------------------------------------------------------------------- conclusion


def _slightly_better(evidence: Evidence) -> Finding:
    leads = [lead(evidence, tp, n) for tp in TP_THROUGHPUT for n in N]
    apart = [
        index(evidence, tp, d, RED).mean - index(evidence, tp, d, DROP_TAIL).mean
        for tp in TP_FAIRNESS
        for d in D
    ]
    mean_lead, mean_apart = math.fsum(leads) / len(leads), math.fsum(apart) / len(apart)
    return Finding(
        mean_lead > 0.005 and mean_apart > 0.005,
        f"over cases 1 and 2 RED's throughput is {mean_lead:+.1%} on average, for its one place more in the buffer; over cases 3 and 4 its fairness index "
        f"{mean_apart:+.3f}, so none",
        partly=mean_lead > 0.005,
    )


def _rising(row: Iterable[float]) -> bool:
    values = list(row)
    return all(a < b for a, b in pairwise(values))


def _percents(values: Iterable[float], digits: int = 2) -> str:
    return ", ".join(f"{100 * value:.{digits}g} %" for value in values)


CLAIMS = (
    Claim(
        "case1-equal",
        "section 4.1, below figure 2",
        "At Tp = 80 ms RED and Drop-Tail carry almost the same",
        _almost_equal,
        ("figure2", "lead"),
        must_hold=True,
    ),
    Claim(
        "case1-grows",
        "section 4.1, below figure 2",
        "Throughput increases steadily with the number of flows",
        _grows,
        ("figure2",),
        must_hold=True,
    ),
    Claim(
        "case2-equal",
        "section 4.1, below figure 3",
        "At Tp = 250 ms they are almost equal for up to 8 flows",
        _equal_to_eight,
        ("figure3", "lead"),
    ),
    Claim(
        "case2-ahead",
        "section 4.1, below figure 3",
        "At Tp = 250 ms RED carries more than Drop-Tail from 8 flows to 32",
        _ahead_above_eight,
        ("figure3", "lead"),
    ),
    Claim(
        "case3-better",
        "section 4.2, below figure 4",
        "At Tp = 75 ms RED is fairer",
        _case3_red_better,
        ("figure4",),
    ),
    Claim(
        "case3-below",
        "section 4.2, below figure 4",
        "At Tp = 75 ms both fairness indices stay below 0.7",
        lambda evidence: _below(evidence, 75, 0.7),
        ("figure4",),
    ),
    Claim(
        "case4-better",
        "section 4.2, below figure 5",
        "At Tp = 250 ms RED is fairer in all three cases",
        _case4_red_better,
        ("figure5",),
    ),
    Claim(
        "case4-below",
        "section 4.2, below figure 5",
        "At Tp = 250 ms fairness never exceeds 0.8",
        lambda evidence: _below(evidence, 250, 0.8),
        ("figure5",),
    ),
    Claim(
        "fairness-falls",
        "section 4.2, tables of cases 3 and 4, column DROPTAIL",
        "The wider the delays are spread, the less fair",
        _falls_with_spread,
        ("figure4", "figure5"),
        must_hold=True,
    ),
    Claim(
        "fairer-over-long-paths",
        "section 4.2, case 4 against case 3",
        "The same spread costs less fairness at the longer delay",
        _fairer_over_long_paths,
        ("figure4", "figure5"),
        must_hold=True,
    ),
    Claim(
        "more-congestion",
        "section 3.1",
        "More connections congest the bottleneck more",
        _more_congestion,
        ("steady",),
        must_hold=True,
    ),
    Claim(
        "drop-tail-degrades",
        "section 2",
        "Drop-Tail loses throughput and link efficiency severely as congestion grows",
        _drop_tail_degrades,
        ("steady",),
    ),
    Claim(
        "red-keeps-room",
        "section 2",
        "RED keeps the queue from filling up, by dropping before it is full",
        _red_keeps_room,
        ("steady",),
        must_hold=True,
    ),
    Claim(
        "red-proportional",
        "section 2",
        "RED notifies a connection in proportion to its share of the throughput",
        _proportional,
    ),
    Claim(
        "red-fair",
        "section 2",
        "Random drops make RED fairer among connections, Drop-Tail shares badly",
        _red_fairer_later,
        ("steady-fairness",),
    ),
    Claim(
        "conclusion",
        "abstract and section 5",
        "RED is slightly better: more throughput, higher fairness index",
        _slightly_better,
        ("lead", "figure4", "figure5"),
    ),
)
