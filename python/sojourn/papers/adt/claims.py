"""What the letter says, in our words, as checks: in the order of its sections.

Sentences on what ADT costs and saves are checked where it has settled, the second half of a run, because they are about the
algorithm; the table's own numbers, way down and all, are in published.py. A limit in a check is stated with it.
"""

from __future__ import annotations

import math
from itertools import pairwise

from sojourn.papers.adt import measures as m
from sojourn.papers.adt.published import FACTORS, FEW_MANY, PERIODS_MS, USERS, rule_of_roots, setting
from sojourn.papers.adt.reading import LOADS
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Claim, Finding, Measure


def _row(evidence: Evidence, name: str, measure: Measure) -> float:
    return evidence.mean("table", name, measure)


def _users(evidence: Evidence, measure: Measure) -> dict[int, float]:
    """A measure over the N of figure 2 that were run."""
    return {
        users: evidence.mean("users", f"N = {users}", measure)
        for users in USERS
        if evidence.has("users", f"N = {users}")
    }


def _listed(values: dict[int, float], digits: int, unit: str = "") -> str:
    return ", ".join(f"{value:.{digits}f}{unit} at {users}" for users, value in values.items())


# ------------------------------------------------------------------------------------------------ II: the algorithm


def regulates(evidence: Evidence) -> Finding:
    """Settled, within 0.3 points of u: a sample of 0.3 s holds 5000 packets, and THR averages ten of them."""
    busy = _row(evidence, "ADT", m.settled_utilisation)
    limit = _row(evidence, "ADT", m.settled_limit)
    return Finding(
        abs(busy - 99) <= 0.3,
        f"{busy:.2f} % of the link with a mean q_adt of {limit:.0f} of the buffer's 500 packets, once settled",
    )


def uncongested(evidence: Evidence) -> Finding:
    """Comment 1: from 100 packets up to the buffer's 500 at any load below u, with a queue of less than a packet's time."""
    loads = [f"{load} Mbit/s" for load in LOADS if evidence.has("uncongested", f"{load} Mbit/s")]
    limits = {name: evidence.mean("uncongested", name, m.limit) for name in loads}
    delays = [evidence.mean("uncongested", name, m.delay_ms) for name in loads]
    return Finding(
        all(abs(limit - 500) < 1 for limit in limits.values()) and max(delays) < 0.12,
        "q_adt grows from 100 to "
        + ", ".join(f"{limit:.0f} packets under {name}" for name, limit in limits.items())
        + f" of 100; the mean queueing delay there is at most {max(delays):.3f} ms",
    )


# ------------------------------------------------------------------------------------------------ III-A: the table


def delay_based(evidence: Evidence) -> Finding:
    """Comment 2: over Drop-Tail Vegas loses nothing and leaves no capacity; what ADT changes is told, good and bad."""
    dropped = {name: evidence.mean("delay-based", name, m.loss) for name in ("Drop-Tail", "ADT")}
    busy = {name: evidence.mean("delay-based", name, m.utilisation) for name in dropped}
    delay = {name: evidence.mean("delay-based", name, m.delay_ms) for name in dropped}
    needless = dropped["Drop-Tail"] == 0 and busy["Drop-Tail"] > 99.9
    worse = dropped["ADT"] > 0.05 and busy["ADT"] < busy["Drop-Tail"]
    return Finding(
        needless and worse and delay["ADT"] >= delay["Drop-Tail"],
        f"50 Vegas flows over Drop-Tail need no adaptation: {dropped['Drop-Tail']:.2f} % lost, {busy['Drop-Tail']:.2f} % of the link, {delay['Drop-Tail']:.1f} ms. ADT takes their signal "
        f"away, so they lose {dropped['ADT']:.2f} % and a hundredth of the link ({busy['ADT']:.2f} %), as loss-based ones do; what they gain is delay, {delay['ADT']:.1f} ms",
        partly=needless and worse,
    )


def shorter_than_drop_tail(evidence: Evidence) -> Finding:
    """In the whole run and settled."""
    adt, full = (_row(evidence, name, m.delay_ms) for name in ("ADT", "Drop-Tail"))
    settled, still = (_row(evidence, name, m.settled_delay_ms) for name in ("ADT", "Drop-Tail"))
    return Finding(
        adt < full and settled < full / 3,
        f"{adt:.1f} ms against {full:.1f} ms in the whole run, {settled:.1f} ms against {still:.1f} ms once ADT has settled",
    )


def third_of_red(evidence: Evidence) -> Finding:
    """Three times less: at least 2.5 in the whole run (the table's own quotient is 2.7)."""
    adt, red = (_row(evidence, name, m.delay_ms) for name in ("ADT", "Adaptive RED"))
    settled = _row(evidence, "Adaptive RED", m.settled_delay_ms) / _row(evidence, "ADT", m.settled_delay_ms)
    automatic = ""
    if evidence.has("readings", "automatic, Adaptive RED"):
        short = evidence.mean("readings", "automatic, Adaptive RED", m.delay_ms)
        automatic = (
            f". With RED's automatic thresholds it would be {short / adt:.1f} times in the whole run, "
            f"{short / _row(evidence, 'ADT', m.settled_delay_ms):.1f} times settled"
        )
    return Finding(
        red / adt >= 2.5,
        f"Adaptive RED's is {red / adt:.1f} times ADT's in the whole run, {settled:.1f} times once ADT has settled{automatic}",
        partly=settled > 2.5,
    )


def full_links(evidence: Evidence) -> Finding:
    """Settled: 100.0 % rounded to a tenth for both."""
    busy = [_row(evidence, name, m.settled_utilisation) for name in ("Drop-Tail", "Adaptive RED")]
    return Finding(
        min(busy) >= 99.95, f"{busy[0]:.2f} % under Drop-Tail, {busy[1]:.2f} % under Adaptive RED, settled"
    )


def price(evidence: Evidence) -> Finding:
    """Rounded to a point, 1 or 2."""
    lost = _row(evidence, "Drop-Tail", m.settled_utilisation) - _row(evidence, "ADT", m.settled_utilisation)
    return Finding(0.5 <= lost < 2.5, f"{lost:.2f} points of utilisation, settled")


def similar_losses(evidence: Evidence) -> Finding:
    """The table's largest and smallest differ by 4 %; ours may by 20 %, and are of one size within a factor of 2."""
    names = ("Drop-Tail", "ADT", "Adaptive RED")
    losses = [_row(evidence, name, m.loss) for name in names]
    apart = max(losses) / min(losses)
    return Finding(
        apart <= 1.2,
        ", ".join(f"{loss:.1f} % under {name}" for name, loss in zip(names, losses, strict=True))
        + f": a factor of {apart:.2f} between them. The shorter the queue, the shorter the RTT and the higher the loss",
        partly=apart <= 2,
    )


def reverse_regulates(evidence: Evidence) -> Finding:
    """As `regulates`, both directions congested."""
    busy = evidence.mean("reverse", "", m.settled_utilisation)
    limit = evidence.mean("reverse", "", m.settled_limit)
    alone = _row(evidence, "ADT", m.settled_limit)
    return Finding(
        abs(busy - 99) <= 0.3,
        f"{busy:.2f} % once settled, with a mean q_adt of {limit:.0f} packets, ACKs among them, for {alone:.0f} without reverse traffic",
    )


def reverse_goodput(evidence: Evidence) -> Finding:
    """At least a point below ADT without reverse traffic; the table has 3.2."""
    alone, both = _row(evidence, "ADT", m.goodput), evidence.mean("reverse", "", m.goodput)
    acks = evidence.mean("reverse", "", m.ack_share)
    return Finding(
        alone - both >= 1,
        f"{both:.1f} % for {alone:.1f} % without reverse traffic. The ACKs of the other direction take {acks:.1f} % of the bytes; what is "
        "left of the difference comes of lost ACKs and needless retransmissions",
    )


# ------------------------------------------------------------------------------------------------ III-B: N users


def close_fit(evidence: Evidence) -> Finding:
    """Within 25 % of 1500 / sqrt(N) at every N; in part, at more than half of them, or within a factor of 3 at all."""
    limits = _users(evidence, m.limit)
    ratios = {users: limit / rule_of_roots(users) for users, limit in limits.items()}
    close = [users for users, ratio in ratios.items() if abs(ratio - 1) <= 0.25]
    return Finding(
        len(close) == len(ratios),
        f"mean q_adt over B T / sqrt(N): {_listed(ratios, 2)} users; within 25 % at {len(close)} of {len(ratios)}",
        partly=len(close) * 2 > len(ratios) or all(1 / 3 <= ratio <= 3 for ratio in ratios.values()),
    )


def fewer_packets_for_more_users(evidence: Evidence) -> Finding:
    """Mean q_adt falls over every factor of 8 or more between neighbouring N that were run, and by 10 from 16 to 2000."""
    limits = _users(evidence, m.limit)
    return Finding(
        limits[16] > 10 * limits[2000] and limits[16] > limits[125] > limits[2000],
        f"mean q_adt: {_listed(limits, 0)} users",
    )


def loss_grows_slowly(evidence: Evidence) -> Finding:
    """It grows, and by less than N does, from each N to the next (an elasticity below 1)."""
    losses = _users(evidence, m.loss)
    known = {users: loss for users, loss in losses.items() if loss > 0}
    steps = {
        second: math.log(known[second] / known[first]) / math.log(second / first)
        for first, second in pairwise(known)
    }
    grows = all(elasticity > 0 for elasticity in steps.values())
    slow = [users for users, elasticity in steps.items() if elasticity < 1]
    return Finding(
        grows and len(slow) == len(steps),
        f"{_listed(losses, 2, ' %')} users. From each to the next it grows as N to the power of {_listed(steps, 1)}: "
        "squared while windows are in congestion avoidance, slower than N only where there are more users than packets",
        partly=grows and bool(slow),
    )


def timeouts(evidence: Evidence) -> Finding:
    """The share of losses that end in a timeout grows with N, and is most of the difference between few and many users."""
    shares = _users(evidence, m.timeouts_per_loss)
    return Finding(
        shares[2000] > 1.5 * shares[125],
        f"timeouts for each hundred drops: {_listed(shares, 0)} users",
    )


# ------------------------------------------------------------------------------------------------ III-C, III-D


def follows_the_users(evidence: Evidence) -> Finding:
    """Below 40 packets for many users, above 400 for few; and at least five times between them."""
    many = evidence.mean("changing", "", m.limit_with_many)
    each = evidence.estimate("changing", "", m.limit_with_few)
    few = each.mean
    return Finding(
        many < 40 and few > 400,
        f"mean q_adt {many:.0f} packets with 450 users and more, up to {few:.0f} when 20 and fewer are left (seeds: "
        f"{min(each.values):.0f} to {max(each.values):.0f}, as ten draws of the RTT fall)",
        partly=few > 5 * many,
    )


def stays_busy(evidence: Evidence) -> Finding:
    """Within 0.5 points of u over all the time in which 50 users or more are there."""
    busy = evidence.mean("changing", "", m.changing_utilisation)
    return Finding(abs(busy - 99) <= 0.5, f"{busy:.2f} % over all the time with 50 users or more")


def robust(evidence: Evidence) -> Finding:
    """Within a point of u in every setting; in part, within 3 points in at least nine of ten."""
    busy = {
        name: evidence.mean("parameters", name, m.utilisation)
        for users in FEW_MANY
        for factor in FACTORS
        for period in PERIODS_MS
        if evidence.has("parameters", name := setting(users, factor, period))
    }
    near = [name for name, value in busy.items() if abs(value - 99) <= 1]
    worst = max(busy, key=lambda name: abs(busy[name] - 99))
    roughly = sum(abs(value - 99) <= 3 for value in busy.values())
    return Finding(
        len(near) == len(busy),
        f"within a point of 99 % in {len(near)} of {len(busy)} settings; farthest: {busy[worst]:.1f} % ({worst})",
        partly=roughly >= 0.9 * len(busy),
    )


# ------------------------------------------------------------------------------------------------ IV


def in_sum(evidence: Evidence) -> Finding:
    """The abstract's and the conclusion's sentence: settled delays below both others for 1 to 2 points."""
    delays = {name: _row(evidence, name, m.settled_delay_ms) for name in ("ADT", "Adaptive RED", "Drop-Tail")}
    lost = price(evidence)
    return Finding(
        lost.holds and delays["ADT"] < min(delays["Adaptive RED"], delays["Drop-Tail"]) / 2,
        ", ".join(f"{delay:.1f} ms under {name}" for name, delay in delays.items()) + f", for {lost.because}",
    )


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "regulates",
        "section II and III-A",
        "ADT holds the wanted utilisation of 99 % with a smaller queue.",
        regulates,
        pictures=("queue",),
        must_hold=True,
    ),
    Claim(
        "uncongested",
        "section II, comment 1",
        "On a link that is not congested q_adt stays at the buffer's size, and the queueing delay is negligible.",
        uncongested,
        must_hold=True,
    ),
    Claim(
        "delay-based",
        "section II, comment 2",
        "Delay-based TCP needs the queueing delay as its signal, so it is no good to adapt the buffer to it.",
        delay_based,
    ),
    Claim(
        "full",
        "section III-A",
        "Drop-Tail and Adaptive RED use all of the link.",
        full_links,
        must_hold=True,
    ),
    Claim(
        "shorter",
        "section III-A",
        "ADT's mean queueing delay is well below Drop-Tail's.",
        shorter_than_drop_tail,
        pictures=("queue", "length"),
        must_hold=True,
    ),
    Claim(
        "third",
        "section III-A",
        "ADT's mean queueing delay is a third of Adaptive RED's.",
        third_of_red,
        pictures=("queue", "length"),
        must_hold=True,
    ),
    Claim(
        "losses",
        "section III-A",
        "The loss rates under the three are alike: the users' congestion control makes them.",
        similar_losses,
    ),
    Claim(
        "reverse",
        "section III-A",
        "With both directions congested ADT still finds the limit that gives the wanted utilisation.",
        reverse_regulates,
        must_hold=True,
    ),
    Claim(
        "reverse-goodput",
        "section III-A",
        "Lost ACKs then lower the goodput significantly.",
        reverse_goodput,
        must_hold=True,
    ),
    Claim(
        "root",
        "section III-B",
        "Mean q_adt lies close to B T / sqrt(N).",
        close_fit,
        pictures=("users",),
    ),
    Claim(
        "fewer",
        "sections I and III-B",
        "The more users, the shorter the queue that is enough.",
        fewer_packets_for_more_users,
        pictures=("users",),
        must_hold=True,
    ),
    Claim(
        "slowly",
        "section III-B",
        "The loss rate grows slowly with N.",
        loss_grows_slowly,
        pictures=("users",),
    ),
    Claim(
        "timeouts",
        "section III-B",
        "That is because of TCP's timeouts.",
        timeouts,
        pictures=("users",),
    ),
    Claim(
        "follows",
        "section III-C",
        "q_adt follows the number of users: below 40 packets for 500, over 400 for few.",
        follows_the_users,
        pictures=("changing",),
        must_hold=True,
    ),
    Claim(
        "busy",
        "section III-C",
        "The utilisation holds while the users come and go.",
        stays_busy,
        pictures=("changing",),
        must_hold=True,
    ),
    Claim(
        "robust",
        "section III-D",
        "ADT holds the utilisation whatever its sample period and factor.",
        robust,
        pictures=("parameters",),
    ),
    Claim(
        "price",
        "abstract; section IV",
        "It costs 1 to 2 % of the link's utilisation.",
        price,
        must_hold=True,
    ),
    Claim(
        "sum",
        "abstract; section IV",
        "For many users, giving up 1 to 2 % of the link makes queueing delays smaller than other disciplines do.",
        in_sum,
        pictures=("queue", "length"),
        must_hold=True,
    ),
)
