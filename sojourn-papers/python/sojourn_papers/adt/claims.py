"""Checks of the letter's claims, in the order of its sections."""

from __future__ import annotations

import math
from itertools import pairwise

from sojourn_papers import formats, published
from sojourn_papers.adt import measures as m
from sojourn_papers.adt import studies as s
from sojourn_papers.evidence import Evidence, Measure
from sojourn_papers.paper import Finding

SAYS, TARGETS = published.beside(__file__), published.targets(__file__)
U = 99
"""ADT's target utilisation, %."""


def _row(evidence: Evidence, measure: Measure) -> dict[str, float]:
    return evidence.means({name: s.TABLE[name] for name in s.TABLE.variants}, measure)


# ------------------------------------------------------------------------------ II: the algorithm


def regulates(evidence: Evidence) -> Finding:
    busy, limit = (_row(evidence, one)["ADT"] for one in (m.utilisation, m.limit))
    return Finding(
        {"utilisation off the wanted, points": abs(busy - U), "mean q_adt, packets": limit},
        f"{busy:.2f} % of the link",
    )


def uncongested(evidence: Evidence) -> Finding:
    """Comment 1: at any load below u, the limit rises from 100 packets to the buffer's 500, with a
    queue of less than a packet's time."""
    limits, delays = (evidence.means(s.OFFERED, one) for one in (m.limit, m.delay_ms))
    return Finding(
        {
            "least q_adt that it grows to, packets": min(limits.values()),
            "longest mean queueing delay, ms": max(delays.values()),
        },
        f"By the load in Mbit/s: {formats.at(limits)} packets",
    )


def lower_rho(evidence: Evidence) -> Finding:
    """A tenth of the weight for few users."""
    along = {users: s.AVERAGING[s.weighed(users, 0.01)] for users in s.RHOS if users < 100}
    longer = evidence.means(along, m.utilisation)
    usual = {users: evidence.mean(s.WITH_USERS[users], m.utilisation) for users in longer}
    nearer = [abs(longer[users] - U) < abs(usual[users] - U) for users in longer]
    return Finding(
        {"nearer to the wanted utilisation, of those tried, %": 100 * sum(nearer) / len(nearer)},
        f"By users: {formats.at(usual, 2)} % of the link with 0.1, {formats.at(longer, 2)} % with 0.01",
    )


# ------------------------------------------------------------------------------- III-A: the table


def delay_based(evidence: Evidence) -> Finding:
    """Comment 2: over Drop-Tail, Vegas loses no packet and leaves no capacity unused."""
    lost, busy, delay = (
        evidence.means({name: s.DELAY_BASED[name] for name in ("Drop-Tail", "ADT")}, one)
        for one in (m.loss, m.utilisation, m.delay_ms)
    )
    return Finding(
        {
            "lost over Drop-Tail, %": lost["Drop-Tail"],
            "used over Drop-Tail, %": busy["Drop-Tail"],
            "lost over ADT, %": lost["ADT"],
            "less used over ADT, points": busy["Drop-Tail"] - busy["ADT"],
            "delay that ADT saves, ms": delay["Drop-Tail"] - delay["ADT"],
        },
        "ADT takes their delay signal away, so they lose packets as loss-based flows do, and only their "
        "delay is shorter",
    )


def shorter_than_drop_tail(evidence: Evidence) -> Finding:
    delay = _row(evidence, m.backlog_ms)
    return Finding({"ADT's delay over Drop-Tail's": delay["ADT"] / delay["Drop-Tail"]})


def third_of_red(evidence: Evidence) -> Finding:
    """A third of RED's; the quotient in the table is 2.7."""
    delay = _row(evidence, m.backlog_ms)
    return Finding({"Adaptive RED's delay over ADT's": delay["Adaptive RED"] / delay["ADT"]})


def full_links(evidence: Evidence) -> Finding:
    busy = _row(evidence, m.utilisation)
    return Finding({f"used under {name}, %": busy[name] for name in ("Drop-Tail", "Adaptive RED")})


def price(evidence: Evidence) -> Finding:
    busy = _row(evidence, m.utilisation)
    return Finding({"less used than under Drop-Tail, points": busy["Drop-Tail"] - busy["ADT"]})


def similar_losses(evidence: Evidence) -> Finding:
    """Similar losses; the largest and the smallest in the table differ by 4 %."""
    losses = _row(evidence, m.loss)
    return Finding(
        {"largest loss over the smallest": max(losses.values()) / min(losses.values())},
        f"Lost, %: {formats.at(losses, 1)}. The shorter the queue, the shorter the RTT and the higher "
        "the loss",
    )


def reverse_regulates(evidence: Evidence) -> Finding:
    busy, limit = (evidence.mean(s.REVERSE[""], one) for one in (m.utilisation, m.limit))
    return Finding(
        {"utilisation off the wanted, points": abs(busy - U)},
        f"{busy:.2f} % with a mean q_adt of {limit:.0f} packets, ACKs among them",
    )


def reverse_goodput(evidence: Evidence) -> Finding:
    """Goodput with reverse traffic; the table has 3.2 points."""
    alone, both = _row(evidence, m.goodput)["ADT"], evidence.mean(s.REVERSE[""], m.goodput)
    acks = evidence.mean(s.REVERSE[""], m.ack_share)
    return Finding(
        {"less goodput, points": alone - both},
        f"{both:.1f} % for {alone:.1f} %. The other direction's ACKs take {acks:.1f} % of the bytes",
    )


# --------------------------------------------------------------------------------- III-B: N users


def close_fit(evidence: Evidence) -> Finding:
    limits = evidence.means(s.WITH_USERS, m.limit)
    ratios = {users: limit / SAYS[f"figure2/{users}/limit"] for users, limit in limits.items()}
    close = [TARGETS[f"figure2/{users}/limit"].met(limit) for users, limit in limits.items()]
    return Finding(
        {
            "within 25 % of the rule, of the N that were run, %": 100 * sum(close) / len(close),
            "least q_adt over the rule": min(ratios.values()),
            "largest": max(ratios.values()),
        },
        f"Mean q_adt over B T / sqrt(N), by users: {formats.at(ratios, 2)}",
    )


def fewer_packets_for_more_users(evidence: Evidence) -> Finding:
    limits = evidence.means(s.WITH_USERS, m.limit)
    return Finding(
        {
            "q_adt of 16 users over that of 125": limits[16] / limits[125],
            "of 125 over that of 2000": limits[125] / limits[2000],
            "of 16 over that of 2000": limits[16] / limits[2000],
        },
        f"Mean q_adt by users, packets: {formats.at(limits)}",
    )


def loss_grows_slowly(evidence: Evidence) -> Finding:
    """Loss grows more slowly than N, from each N to the next: an elasticity between 0 and 1."""
    losses = evidence.means(s.WITH_USERS, m.loss)
    known = {users: loss for users, loss in losses.items() if loss > 0}
    steps = {
        second: math.log(known[second] / known[first]) / math.log(second / first)
        for first, second in pairwise(known)
    }
    return Finding(
        {
            "least power of N by which it grows": min(steps.values()),
            "largest power": max(steps.values()),
        },
        f"Lost by users, %: {formats.at(losses, 2)}; powers from each N to the next: "
        f"{formats.at(steps, 1)}. Congestion avoidance alone would square N",
    )


def timeouts(evidence: Evidence) -> Finding:
    shares = evidence.means(s.WITH_USERS, m.timeouts_per_loss)
    return Finding(
        {"timeouts for each drop with 2000 users over those with 125": shares[2000] / shares[125]},
        f"For each hundred drops, by users: {formats.at(shares)}. No TCP without timeouts was run",
    )


# ----------------------------------------------------------------------------------- III-C, III-D


def follows_the_users(evidence: Evidence) -> Finding:
    many = evidence.mean(s.CHANGING.only, m.limit_with_many)
    each = sorted(evidence.estimate(s.CHANGING.only, m.limit_with_few).values)
    return Finding(
        {
            "q_adt with 450 users and more, packets": many,
            "with 20 and fewer, in the draw of RTTs that has most": each[-1],
            "few users' over many users'": each[-1] / many,
        },
        f"With few, all draws: {formats.each(each)}",
    )


def stays_busy(evidence: Evidence) -> Finding:
    busy = evidence.mean(s.CHANGING.only, m.changing_utilisation)
    return Finding(
        {"utilisation off the wanted, points": abs(busy - U)}, f"{busy:.2f} % with 50 users or more"
    )


def robust(evidence: Evidence) -> Finding:
    busy = evidence.means({one.name: one for one in s.SETTINGS.values()}, m.utilisation)
    off = {name: abs(value - U) for name, value in busy.items()}
    worst = max(off, key=off.__getitem__)
    return Finding(
        {
            "farthest from the wanted utilisation, points": off[worst],
            "within 3 points, of the settings, %": 100
            * sum(one <= 3 for one in off.values())
            / len(off),
        },
        f"Farthest: {worst}. Within a point are {sum(one <= 1 for one in off.values())} of "
        f"{len(off)} settings",
    )


# --------------------------------------------------------------------------------------------- IV


def in_sum(evidence: Evidence) -> Finding:
    """The sentence of the abstract and of the conclusion."""
    delay = _row(evidence, m.backlog_ms)
    others = min(delay["Adaptive RED"], delay["Drop-Tail"])
    return Finding(
        {"ADT's delay over the shorter of the others'": delay["ADT"] / others}
        | dict(price(evidence).measured)
    )


def any_bursts(evidence: Evidence) -> Finding:
    """The queue is longer for longer bursts."""
    kinds = {name: s.DATAGRAMS[name] for name in (s.STEADY, s.SHORT_SPELLS, s.LONG_SPELLS)}
    limits, busy = (evidence.means(kinds, one) for one in (m.limit, m.utilisation))
    fetched = evidence.mean(s.TRANSFERS.only, m.utilisation)
    return Finding(
        {
            "farthest from the wanted utilisation, points": max(
                abs(one - U) for one in (*busy.values(), fetched)
            ),
            "least growth of q_adt to longer bursts": min(
                longer / shorter for shorter, longer in pairwise(limits.values())
            ),
        },
        f"Datagrams: {formats.at(limits)} packets; short transfers: "
        f"{evidence.mean(s.TRANSFERS.only, m.limit):.0f}",
    )


def rule_of_thumb(evidence: Evidence) -> Finding:
    busy = evidence.means({users: s.RULE[f"N = {users}"] for users in s.RULE_USERS}, m.utilisation)
    means = {users: 1e3 * s.harmonic(users) for users in busy}
    return Finding(
        {"least used, %": min(busy.values())},
        f"By users: {formats.at(busy, 2)} %; harmonic means: {formats.at(means, 0, 'ms')}",
    )
