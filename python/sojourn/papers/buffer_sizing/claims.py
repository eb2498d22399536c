"""Checks of what the report says, and what other readings of it give."""

from __future__ import annotations

import math
from itertools import pairwise

from sojourn.papers import published
from sojourn.papers.buffer_sizing import measures as m
from sojourn.papers.buffer_sizing import model
from sojourn.papers.buffer_sizing.studies import (
    ACCESS,
    AS_PARETO,
    AT_ONCE,
    BESIDE,
    BY_SIZE,
    CHOSEN,
    LENGTHS,
    LOAD,
    MANY,
    MIXED,
    ONE,
    ONE_SIZES,
    PACKETS,
    PRODUCT,
    QUEUES,
    RATES,
    READINGS,
    ROOT,
    SEARCH,
    SEARCHED_SHARES,
    SHARES,
    STATED,
    TABLE,
    TCPS,
    WHOLE,
    N,
    row,
    searched,
)
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Finding
from sojourn.papers.said import each

SAYS = published.beside(__file__)
FULL_ONLY = "In the full version."


# ---------------------------------------------------------------------------------------- one flow


def one_flow(evidence: Evidence) -> Finding:
    use, queue, emptiest = (
        [evidence.mean(one, measure) for one in ONE.values()]
        for measure in (m.utilisation, m.mean_queue, m.least_queue)
    )
    return Finding(
        use[0] < 99 < use[1] and use[2] > 99.9 and emptiest[2] > emptiest[1],
        f"With {each(ONE_SIZES)} packets the flow uses {each(use, 2)} % of the link, the mean queue is "
        f"{each(queue)} packets, the least at a sample {each(emptiest)}",
    )


# ------------------------------------------------------------------------------------- many flows


def root(evidence: Evidence) -> Finding:
    many = [n for n in N if evidence.has(TABLE[n, 1])]
    use = {n: evidence.mean(TABLE[n, 1], m.utilisation) for n in many}
    twice = {n: evidence.mean(TABLE[n, 2], m.utilisation) for n in many}
    return Finding(
        min(use.values()) > 90 and min(twice.values()) > 97,
        f"{each(many)} flows use {each(use.values(), 1)} % with {each(PACKETS[n][1] for n in many)} "
        f"packets, {each(twice.values(), 1)} % with twice as many; the whole product is {PRODUCT}",
    )


def few_synchronise(evidence: Evidence) -> Finding:
    many = [n for n in N if evidence.has(TABLE[n, 1])]
    use = [evidence.mean(TABLE[n, 1], m.utilisation) for n in many]
    return Finding(
        all(a < b for a, b in pairwise(use)),
        f"With the rule's buffer {each(many)} flows use {each(use, 2)} %",
        partly=use[0] < use[-1],
    )


def fewer_packets(evidence: Evidence) -> Finding:
    many = [n for n in MANY if evidence.has(BY_SIZE[n, 1])]
    needed = {n: m.least(evidence, n, 98).mean * m.rule(n) for n in many}
    falling = all(a > b for a, b in pairwise(needed.values()))
    return Finding(
        falling,
        f"{each(many)} flows need {each(needed.values())} packets for 98 %",
        partly=needed[many[0]] > needed[many[-1]],
    )


# ------------------------------------------------------------------------------------ short flows


def short_rate(evidence: Evidence) -> Finding:
    queues = [evidence.mean(QUEUES[14, mbps], m.mean_queue) for mbps in RATES]
    return Finding(
        max(queues) < 1.2 * min(queues),
        f"Flows of 14 packets make a mean queue of {each(queues, 1)} packets at {each(RATES)} Mbit/s",
    )


def short_lengths(evidence: Evidence) -> Finding:
    longer, shorter = (evidence.mean(QUEUES[packets, 40], m.mean_queue) for packets in (14, 16))
    return Finding(
        longer > shorter,
        f"{longer:.1f} packets for 14, {shorter:.1f} for 16 (the formula: "
        f"{model.mean_queue(14, LOAD):.1f} and {model.mean_queue(16, LOAD):.1f})",
    )


def short_bound(evidence: Evidence) -> Finding:
    ours = [evidence.mean(QUEUES[packets, 40], m.mean_queue) for packets in LENGTHS]
    formula = [model.mean_queue(packets, LOAD) for packets in LENGTHS]
    # A mean over a minute of bursts moves by some per cent.
    apart = [
        evidence.mean(one, m.mean_queue) / model.mean_queue(packets, LOAD)
        for (packets, _), one in QUEUES.items()
        if evidence.has(one)
    ]
    return Finding(
        min(apart) > 0.7 and max(apart) < 1.1,
        f"Flows of {each(LENGTHS)} packets at 40 Mbit/s: {each(ours, 1)} packets, by the formula "
        f"{each(formula, 1)}. Over all rates ours are {min(apart):.2f} to {max(apart):.2f} of it",
        partly=max(apart) < 1.1,
    )


def mix_shorter(evidence: Evidence) -> Finding:
    many = [n for n in BESIDE if evidence.has(MIXED[n, ROOT])]
    small, whole = (
        [evidence.mean(MIXED[n, name], m.completion_s) for n in many] for name in (ROOT, WHOLE)
    )
    use = [evidence.mean(MIXED[n, ROOT], m.utilisation) for n in many]
    return Finding(
        all(one < 0.9 * other for one, other in zip(small, whole, strict=True)),
        f"Beside {each(many)} long flows they take {each(small, 2)} s in place of {each(whole, 2)}, with "
        f"{each(use, 1)} % of the link used",
    )


# ------------------------------------------------------------------------- what other readings give

_SHOWN = ((100, 0.5), (100, 1), (100, 2), (400, 0.5), (400, 1), (400, 2))


def under(evidence: Evidence, *names: str) -> str:
    """The table's first and last rows under these readings."""
    told = []
    for name in names:
        runs = [READINGS[f"{name}, {row(n, share)}"] for n, share in _SHOWN]
        if evidence.has(*runs):
            told.append(f"{name} {each((evidence.mean(one, m.utilisation) for one in runs), 1)} %")
    return "; ".join(told)


def _own(evidence: Evidence) -> str:
    ours = each((evidence.mean(TABLE[at], m.utilisation) for at in _SHOWN), 1)
    return f"100 and 400 flows with {each(SHARES[:3], 1)} of the rule: as chosen {ours} %"


def other_tcps(evidence: Evidence) -> str:
    """Other TCPs."""
    names = (
        STATED,
        "Reno",
        "Newreno without delayed ACKs",
        "SACK",
        "CUBIC and SACK of today's Linux",
    )
    return f"{_own(evidence)}; {under(evidence, *names)}."


def other_rtts(evidence: Evidence) -> str:
    """RTTs that are spread less or more."""
    told = under(evidence, "all RTTs 100 ms", "RTTs of 25 to 175 ms")
    return f"{_own(evidence)}; {told}." if told else FULL_ONLY


def off_the_row(evidence: Evidence) -> dict[str, float]:
    """How far each pair of TCP and access links lies from the row of 100 flows, points rms; the nearest
    first."""
    stated = [SAYS[f"table/100/{share:g}/sim"] for share in SEARCHED_SHARES]
    off = {}
    for tcp in TCPS:
        for access in ACCESS:
            runs = [SEARCH[searched(tcp, access, share)] for share in SEARCHED_SHARES]
            apart = [
                (evidence.mean(one, m.utilisation) - other) ** 2
                for one, other in zip(runs, stated, strict=True)
            ]
            off[f"{tcp}, {access}"] = math.sqrt(sum(apart) / len(apart))
    return dict(sorted(off.items(), key=lambda one: one[1]))


def searched_pairs(evidence: Evidence) -> str:
    """The search, and the chosen reading's last row without access links."""
    told = "; ".join(f"{name} {points:.1f}" for name, points in off_the_row(evidence).items())
    return (
        f"Points off the report's simulation of 100 flows, root mean square: {told} "
        f"({evidence.searched.made}). {_own(evidence)}; {under(evidence, 'no access links')}."
    )


def mixed_load(evidence: Evidence) -> str:
    """What the short flows do to the long ones."""
    lost = evidence.mean(MIXED[200, ROOT], m.loss)
    return (
        f"Beside 200 long flows and with the small buffer {lost:.1f} % of the packets are dropped."
    )


def pareto_load(evidence: Evidence) -> str:
    """How many flows there are, and how busy the line is."""
    flows, use, lost = (
        evidence.mean(AS_PARETO[CHOSEN], one) for one in (m.at_a_time, m.utilisation, m.loss)
    )
    return f"{flows:.0f} flows at a time use {use:.1f} % of the line and lose {lost:.1f} %."


# ------------------------------------------------------------------------------- why a number is off


def ns2_has_it_too(evidence: Evidence) -> str:
    """ns-2.35 itself under the chosen reading, and as stated."""
    at = _SHOWN[:5]
    chosen, stated = (
        [SAYS[name][f"{n}/{share:g}"] for n, share in at] for name in ("ns2", "ns2_stated")
    )
    ours = [evidence.mean(TABLE[one], m.utilisation) for one in at]
    return (
        "ns-2.35 itself gives ours, not the report's: for 100 flows with 0.5, 1 and 2 of the rule and "
        f"for 400 with 0.5 and 1, {each(chosen, 1)} %, ours {each(ours, 1)}; as stated, with Reno and "
        f"without access links, {each(stated, 1)} %. Of all that was searched nothing comes nearer to "
        "100 flows (readings)"
    )


def equation_off(_: Evidence) -> str:
    """Equation 6 and its examples."""
    shown = ", ".join(f"{model.utilisation(10_000, share):.5f}" for share in (1, 1.5, 2))
    return (
        f"equation 6 gives {shown} % for n = 10000 and 1, 1.5 and 2 of the rule: the first and the last "
        f"example. For 100 flows with half of it it gives {model.utilisation(100, 0.5):.1f} %: the table's "
        "column was not computed by it"
    )


def least_off(evidence: Evidence) -> str:
    """How much more the flows need."""
    many = [n for n in MANY if evidence.has(BY_SIZE[n, 1])]
    needed = [m.least(evidence, n, 99.9).mean for n in many]
    return (
        f"for 99.9 % {each(many)} flows need {each(needed, 2)} of the rule, under the TCP and the access "
        "links that the table's row of 100 flows chose (readings)"
    )


def acks_space(evidence: Evidence) -> str:
    """Why long flows make a shorter queue than the formula."""
    ours = [evidence.mean(QUEUES[packets, 40], m.mean_queue) for packets in LENGTHS]
    share = [
        one / model.mean_queue(packets, LOAD) for one, packets in zip(ours, LENGTHS, strict=True)
    ]
    return (
        f"flows of {each(LENGTHS)} packets make {each(share, 2)} of the formula's queue. The formula has "
        "a burst arrive at one instant; in slow start ACKs clock it, two packets for each that the line "
        f"has sent.{_at_once(evidence)}"
    )


def _at_once(evidence: Evidence) -> str:
    """What flows of one burst make of the formula's queue."""
    if not evidence.has(*AT_ONCE.values()):
        return ""
    share = [
        evidence.mean(one, m.mean_queue) / model.mean_queue(packets, LOAD, [packets])
        for packets, one in AT_ONCE.items()
    ]
    return (
        f" Flows of {each(list(AT_ONCE))} packets that are sent at once make {each(share, 2)} of it: without "
        "ACKs between the bursts long flows lack no more than short ones"
    )


def pareto_off(evidence: Evidence) -> str:
    """The line and its losses."""
    others = ", ".join(
        f"with {name} {evidence.mean(one, m.utilisation):.1f} %"
        for name, one in AS_PARETO.items()
        if name != CHOSEN
    )
    return (
        f"{pareto_load(evidence)} What decides is how TCP recovers from many losses in a window of slow "
        f"start: {others}"
    )
