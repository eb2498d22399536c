"""What the letter says, in our words, as checks: in the order of its sections.

Sentences on what ADT costs and saves are checked where it has settled, the second half of a run,
because they are about the algorithm; the table's own numbers, way down and all, are in
published.py. A limit in a check is stated with it.
"""

from __future__ import annotations

import math
from itertools import pairwise

from sojourn.papers import published
from sojourn.papers.adt import measures as m
from sojourn.papers.adt.studies import (
    CHANGING,
    DELAY_BASED,
    OFFERED,
    PARAMETERS,
    READINGS,
    REVERSE,
    SETTINGS,
    TABLE,
    WIDER,
    WITH_USERS,
)
from sojourn.papers.evidence import Evidence, Measure
from sojourn.papers.paper import Finding
from sojourn.papers.study import Variant

SAYS = published.beside(__file__)
FULL_ONLY = "Measured in the full version."


def _row(evidence: Evidence, name: str, measure: Measure) -> float:
    return evidence.mean(TABLE[name], measure)


def _listed(values: dict[int, float], digits: int, unit: str = "") -> str:
    return ", ".join(f"{value:.{digits}f}{unit} at {users}" for users, value in values.items())


# ------------------------------------------------------------------------------ II: the algorithm


def regulates(evidence: Evidence) -> Finding:
    """Settled, within 0.3 points of u: a sample of 0.3 s holds 5000 packets, and THR averages ten
    of them."""
    busy = _row(evidence, "ADT", m.settled_utilisation)
    limit = _row(evidence, "ADT", m.settled_limit)
    return Finding(
        abs(busy - 99) <= 0.3,
        f"{busy:.2f} % of the link with a mean q_adt of {limit:.0f} of the buffer's 500 packets, "
        "once settled",
    )


def uncongested(evidence: Evidence) -> Finding:
    """Comment 1: from 100 packets up to the buffer's 500 at any load below u, with a queue of less
    than a packet's time."""
    limits = evidence.means(OFFERED, m.limit)
    delays = evidence.means(OFFERED, m.delay_ms)
    return Finding(
        all(abs(limit - 500) < 1 for limit in limits.values()) and max(delays.values()) < 0.12,
        "q_adt grows from 100 to "
        + ", ".join(f"{limit:.0f} packets under {load} Mbit/s" for load, limit in limits.items())
        + f" of 100; the mean queueing delay there is at most {max(delays.values()):.3f} ms",
    )


# ------------------------------------------------------------------------------- III-A: the table


def delay_based(evidence: Evidence) -> Finding:
    """Comment 2: over Drop-Tail Vegas loses nothing and leaves no capacity; what ADT changes is
    told, good and bad."""
    dropped = {name: evidence.mean(DELAY_BASED[name], m.loss) for name in ("Drop-Tail", "ADT")}
    busy = {name: evidence.mean(DELAY_BASED[name], m.utilisation) for name in dropped}
    delay = {name: evidence.mean(DELAY_BASED[name], m.delay_ms) for name in dropped}
    needless = dropped["Drop-Tail"] == 0 and busy["Drop-Tail"] > 99.9
    worse = dropped["ADT"] > 0.05 and busy["ADT"] < busy["Drop-Tail"]
    return Finding(
        needless and worse and delay["ADT"] >= delay["Drop-Tail"],
        f"50 Vegas flows over Drop-Tail need no adaptation: {dropped['Drop-Tail']:.2f} % lost, "
        f"{busy['Drop-Tail']:.2f} % of the link, {delay['Drop-Tail']:.1f} ms. ADT takes their "
        "signal "
        f"away, so they lose {dropped['ADT']:.2f} % and a hundredth of the link "
        f"({busy['ADT']:.2f} %), as loss-based ones do; what they gain is delay, "
        f"{delay['ADT']:.1f} ms",
        partly=needless and worse,
    )


def shorter_than_drop_tail(evidence: Evidence) -> Finding:
    """In the whole run and settled."""
    adt, full = (_row(evidence, name, m.delay_ms) for name in ("ADT", "Drop-Tail"))
    settled, still = (_row(evidence, name, m.settled_delay_ms) for name in ("ADT", "Drop-Tail"))
    return Finding(
        adt < full and settled < full / 3,
        f"{adt:.1f} ms against {full:.1f} ms in the whole run, {settled:.1f} ms against "
        f"{still:.1f} ms once ADT has settled",
    )


def third_of_red(evidence: Evidence) -> Finding:
    """Three times less: at least 2.5 in the whole run (the table's own quotient is 2.7)."""
    adt, red = (_row(evidence, name, m.delay_ms) for name in ("ADT", "Adaptive RED"))
    settled = _row(evidence, "Adaptive RED", m.settled_delay_ms) / _row(
        evidence, "ADT", m.settled_delay_ms
    )
    automatic = ""
    lower = READINGS["automatic, Adaptive RED"]
    if evidence.has(lower):
        short = evidence.mean(lower, m.delay_ms)
        automatic = (
            f". With RED's automatic thresholds it would be {short / adt:.1f} times in the whole "
            "run, "
            f"{short / _row(evidence, 'ADT', m.settled_delay_ms):.1f} times settled"
        )
    return Finding(
        red / adt >= 2.5,
        f"Adaptive RED's is {red / adt:.1f} times ADT's in the whole run, {settled:.1f} times "
        f"once ADT has settled{automatic}",
        partly=settled > 2.5,
    )


def full_links(evidence: Evidence) -> Finding:
    """Settled: 100.0 % rounded to a tenth for both."""
    busy = [_row(evidence, name, m.settled_utilisation) for name in ("Drop-Tail", "Adaptive RED")]
    return Finding(
        min(busy) >= 99.95,
        f"{busy[0]:.2f} % under Drop-Tail, {busy[1]:.2f} % under Adaptive RED, settled",
    )


def price(evidence: Evidence) -> Finding:
    """Rounded to a point, 1 or 2."""
    lost = _row(evidence, "Drop-Tail", m.settled_utilisation) - _row(
        evidence, "ADT", m.settled_utilisation
    )
    return Finding(0.5 <= lost < 2.5, f"{lost:.2f} points of utilisation, settled")


def similar_losses(evidence: Evidence) -> Finding:
    """The table's largest and smallest differ by 4 %; ours may by 20 %, and are of one size within
    a factor of 2."""
    names = ("Drop-Tail", "ADT", "Adaptive RED")
    losses = [_row(evidence, name, m.loss) for name in names]
    apart = max(losses) / min(losses)
    return Finding(
        apart <= 1.2,
        ", ".join(f"{loss:.1f} % under {name}" for name, loss in zip(names, losses, strict=True))
        + f": a factor of {apart:.2f} between them. The shorter the queue, the shorter the RTT "
        "and the higher the loss",
        partly=apart <= 2,
    )


def reverse_regulates(evidence: Evidence) -> Finding:
    """As `regulates`, both directions congested."""
    busy = evidence.mean(REVERSE[""], m.settled_utilisation)
    limit = evidence.mean(REVERSE[""], m.settled_limit)
    alone = _row(evidence, "ADT", m.settled_limit)
    return Finding(
        abs(busy - 99) <= 0.3,
        f"{busy:.2f} % once settled, with a mean q_adt of {limit:.0f} packets, ACKs among them, "
        f"for {alone:.0f} without reverse traffic",
    )


def reverse_goodput(evidence: Evidence) -> Finding:
    """At least a point below ADT without reverse traffic; the table has 3.2."""
    alone, both = _row(evidence, "ADT", m.goodput), evidence.mean(REVERSE[""], m.goodput)
    acks = evidence.mean(REVERSE[""], m.ack_share)
    return Finding(
        alone - both >= 1,
        f"{both:.1f} % for {alone:.1f} % without reverse traffic. The ACKs of the other direction "
        f"take {acks:.1f} % of the bytes; what is "
        "left of the difference comes of lost ACKs and needless retransmissions",
    )


# --------------------------------------------------------------------------------- III-B: N users


def close_fit(evidence: Evidence) -> Finding:
    """Within 25 % of 1500 / sqrt(N) at every N; in part, at more than half of them, or within a
    factor of 3 at all."""
    limits = evidence.means(WITH_USERS, m.limit)
    ratios = {users: limit / SAYS[f"figure2/{users}/limit"] for users, limit in limits.items()}
    close = [users for users, ratio in ratios.items() if abs(ratio - 1) <= 0.25]
    return Finding(
        len(close) == len(ratios),
        f"mean q_adt over B T / sqrt(N): {_listed(ratios, 2)} users; within 25 % at {len(close)} "
        f"of {len(ratios)}",
        partly=len(close) * 2 > len(ratios)
        or all(1 / 3 <= ratio <= 3 for ratio in ratios.values()),
    )


def fewer_packets_for_more_users(evidence: Evidence) -> Finding:
    """Mean q_adt falls over every factor of 8 or more between neighbouring N that were run, and by
    10 from 16 to 2000."""
    limits = evidence.means(WITH_USERS, m.limit)
    return Finding(
        limits[16] > 10 * limits[2000] and limits[16] > limits[125] > limits[2000],
        f"mean q_adt: {_listed(limits, 0)} users",
    )


def loss_grows_slowly(evidence: Evidence) -> Finding:
    """It grows, and by less than N does, from each N to the next (an elasticity below 1)."""
    losses = evidence.means(WITH_USERS, m.loss)
    known = {users: loss for users, loss in losses.items() if loss > 0}
    steps = {
        second: math.log(known[second] / known[first]) / math.log(second / first)
        for first, second in pairwise(known)
    }
    grows = all(elasticity > 0 for elasticity in steps.values())
    slow = [users for users, elasticity in steps.items() if elasticity < 1]
    return Finding(
        grows and len(slow) == len(steps),
        f"{_listed(losses, 2, ' %')} users. From each to the next it grows as N to the power of "
        f"{_listed(steps, 1)}: "
        "squared while windows are in congestion avoidance, slower than N only where there are "
        "more users than packets",
        partly=grows and bool(slow),
    )


def timeouts(evidence: Evidence) -> Finding:
    """The share of losses that end in a timeout grows with N, and is most of the difference between
    few and many users."""
    shares = evidence.means(WITH_USERS, m.timeouts_per_loss)
    return Finding(
        shares[2000] > 1.5 * shares[125],
        f"timeouts for each hundred drops: {_listed(shares, 0)} users",
    )


# ----------------------------------------------------------------------------------- III-C, III-D


def follows_the_users(evidence: Evidence) -> Finding:
    """Below 40 packets for many users, above 400 for few; and at least five times between them."""
    many = evidence.mean(CHANGING.only, m.limit_with_many)
    each = evidence.estimate(CHANGING.only, m.limit_with_few)
    few = each.mean
    return Finding(
        many < 40 and few > 400,
        f"mean q_adt {many:.0f} packets with 450 users and more, up to {few:.0f} when 20 and "
        "fewer are left (seeds: "
        f"{min(each.values):.0f} to {max(each.values):.0f}, as ten draws of the RTT fall)",
        partly=few > 5 * many,
    )


def stays_busy(evidence: Evidence) -> Finding:
    """Within 0.5 points of u over all the time in which 50 users or more are there."""
    busy = evidence.mean(CHANGING.only, m.changing_utilisation)
    return Finding(abs(busy - 99) <= 0.5, f"{busy:.2f} % over all the time with 50 users or more")


def robust(evidence: Evidence) -> Finding:
    """Within a point of u in every setting; in part, within 3 points in at least nine of ten."""
    named = {variant.name: variant for variant in SETTINGS.values()}
    busy = evidence.means(named, m.utilisation)
    near = [name for name, value in busy.items() if abs(value - 99) <= 1]
    worst = max(busy, key=lambda name: abs(busy[name] - 99))
    roughly = sum(abs(value - 99) <= 3 for value in busy.values())
    return Finding(
        len(near) == len(busy),
        f"within a point of 99 % in {len(near)} of {len(busy)} settings; farthest: "
        f"{busy[worst]:.1f} % ({worst})",
        partly=roughly >= 0.9 * len(busy),
    )


# --------------------------------------------------------------------------------------------- IV


def in_sum(evidence: Evidence) -> Finding:
    """The abstract's and the conclusion's sentence: settled delays below both others for 1 to 2
    points."""
    delays = {
        name: _row(evidence, name, m.settled_delay_ms)
        for name in ("ADT", "Adaptive RED", "Drop-Tail")
    }
    lost = price(evidence)
    return Finding(
        lost.holds and delays["ADT"] < min(delays["Adaptive RED"], delays["Drop-Tail"]) / 2,
        ", ".join(f"{delay:.1f} ms under {name}" for name, delay in delays.items())
        + f", for {lost.because}",
    )


# ----------------------------------------------------------------------- what other readings give


def _cells(evidence: Evidence, variant: Variant) -> str:
    """`loss 5.9 %, delay 28.7 ms, Jain 0.78, goodput 98.3 %`."""
    loss, delay, fairness, goodput = (
        evidence.mean(variant, measure) for measure in (m.loss, m.delay_ms, m.fairness, m.goodput)
    )
    # Goodput is counted at 1500 B, which a reading with other packets makes senseless.
    useful = "" if variant.name.startswith("1250") else f", goodput {goodput:.1f} %"
    return f"loss {loss:.1f} %, delay {delay:.1f} ms, Jain {fairness:.2f}{useful}"


def under(evidence: Evidence, *names: str) -> str:
    """What was measured under these readings, as far as they were run."""
    told = [
        f"{name}: {_cells(evidence, READINGS[name])}"
        for name in names
        if evidence.has(READINGS[name])
    ]
    return ". ".join(told) + "." if told else FULL_ONLY


def other_lengths(evidence: Evidence) -> str:
    """What the mean is after what time, of ADT one way and both ways."""
    delay, both = SAYS["table/ADT/delay"], SAYS["table/ADT(R)/delay"]
    settled = _row(evidence, "ADT", m.settled_delay_ms)
    limit = _row(evidence, "ADT", m.settled_limit)
    loss = _row(evidence, "ADT", m.settled_loss)
    alone = _row(evidence, "ADT", m.length_for(delay))
    most = evidence.mean(REVERSE[""], m.most_ms)
    backlog = evidence.mean(REVERSE[""], m.length_for(both, backlog=True))
    full = _row(evidence, "Drop-Tail", m.settled_delay_ms)
    return (
        f"Settled (second half of the run), ADT has {settled:.2f} ms, q_adt {limit:.0f} packets "
        f"and a loss of {loss:.1f} %, and Drop-Tail "
        f"{full:.1f} ms. The mean from the start falls below {delay} ms after {alone:.0f} s. With "
        "ADT both ways it is never above "
        f"{most:.1f} ms, since ACKs are among the 500 packets; taken as backlog times 1500 B it "
        f"passes the published {both} ms after "
        f"{backlog:.0f} s. No single length gives both."
    )


def wider_rtts(evidence: Evidence) -> str:
    """Figure 4 with the RTTs of figure 3."""
    if not evidence.has(PARAMETERS[WIDER]):
        return FULL_ONLY
    wider, chosen = (
        evidence.mean(one, m.utilisation) for one in (PARAMETERS[WIDER], SETTINGS[20, 1.01, 300])
    )
    return f"RTTs 10..300 ms as in figure 3, 20 users: {wider:.1f} %, for {chosen:.1f} % with those chosen."


def few_draws(evidence: Evidence) -> str:
    """Why ten users need more or less."""
    largest = evidence.estimate(CHANGING.only, m.limit_with_few).values
    return (
        "ten users are few draws of an RTT between 10 and 300 ms, and how much they need depends "
        "on it: the seeds lie between "
        f"{min(largest):.0f} and {max(largest):.0f} packets (claim on following the users)"
    )
