"""What the letter says, in our words, as checks: in the order of its sections. A limit in a check is
stated with it.
"""

from __future__ import annotations

import math
from itertools import pairwise

from sojourn.papers import published, said, searched
from sojourn.papers.adt import measures as m
from sojourn.papers.adt import search
from sojourn.papers.adt.studies import (
    ARITHMETIC,
    AVERAGING,
    CHANGING,
    CHOSEN,
    DATAGRAMS,
    DELAY_BASED,
    FIXED,
    FIXED_PACKETS,
    HALF,
    HARMONIC,
    LONG_SPELLS,
    OFFERED,
    PARAMETERS,
    REVERSE,
    RHOS,
    RULE,
    RULE_USERS,
    SETTINGS,
    SHORT_SPELLS,
    SOURCES,
    STEADY,
    TABLE,
    TRANSFERS,
    TWICE_CHANGING,
    TWICE_USERS,
    WIDER,
    WITH_USERS,
    harmonic,
    weighed,
)
from sojourn.papers.evidence import Evidence, Measure
from sojourn.papers.paper import Finding

SAYS = published.beside(__file__)
FULL_ONLY = "Measured in the full version."


def _row(evidence: Evidence, name: str, measure: Measure) -> float:
    return evidence.mean(TABLE[name], measure)


def _listed(values: dict[int, float], digits: int, unit: str = "") -> str:
    return ", ".join(f"{value:.{digits}f}{unit} at {users}" for users, value in values.items())


# ------------------------------------------------------------------------------ II: the algorithm


def regulates(evidence: Evidence) -> Finding:
    """Within 0.3 points of u: a sample of 0.3 s holds 5000 packets, and THR averages ten of
    them."""
    busy = _row(evidence, "ADT", m.utilisation)
    limit = _row(evidence, "ADT", m.limit)
    return Finding(
        abs(busy - 99) <= 0.3,
        f"{busy:.2f} % of the link with a mean q_adt of {limit:.0f} of the buffer's 500 packets",
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


def lower_rho(evidence: Evidence) -> Finding:
    """Each N that was run with a tenth of the weight comes nearer to u; in part, most."""
    along = {users: AVERAGING[weighed(users, 0.01)] for users in RHOS if users < 100}
    longer = evidence.means(along, m.utilisation)
    swings = evidence.means(along, m.swing)
    usual = {users: evidence.mean(WITH_USERS[users], m.utilisation) for users in longer}
    nearer = [users for users in longer if abs(longer[users] - 99) < abs(usual[users] - 99)]
    told = "; ".join(
        f"{users} users: {usual[users]:.2f} % of the link with 0.1, {longer[users]:.2f} % with 0.01, "
        f"where q_adt swings by {swings[users]:.0f} % of its mean, for "
        f"{evidence.mean(WITH_USERS[users], m.swing):.0f} %"
        for users in longer
    )
    return Finding(
        len(nearer) == len(longer),
        told + other_weights(evidence),
        partly=2 * len(nearer) > len(longer),
    )


def other_weights(evidence: Evidence) -> str:
    """What other weights give where they were run."""
    asked = [
        (users, rho) for users, rhos in RHOS.items() for rho in rhos if rho != 0.01 or users > 100
    ]
    found = {at: AVERAGING[weighed(*at)] for at in asked if evidence.has(AVERAGING[weighed(*at)])}
    told = [
        f"rho = {rho:g} at {users}: {evidence.mean(one, m.utilisation):.2f} %, mean q_adt "
        f"{evidence.mean(one, m.limit):.0f} packets"
        for (users, rho), one in found.items()
    ]
    return f". Others: {'; '.join(told)}" if told else ""


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
        f"away, so they lose {dropped['ADT']:.2f} % and {busy['Drop-Tail'] - busy['ADT']:.2f} points "
        f"of the link ({busy['ADT']:.2f} %), as loss-based ones do; what they gain is delay, "
        f"{delay['ADT']:.1f} ms",
        partly=needless and worse,
    )


def shorter_than_drop_tail(evidence: Evidence) -> Finding:
    """By half at least."""
    adt, full = (_row(evidence, name, m.backlog_ms) for name in ("ADT", "Drop-Tail"))
    return Finding(adt < full / 2, f"{adt:.1f} ms against {full:.1f} ms")


def third_of_red(evidence: Evidence) -> Finding:
    """Three times less: at least 2.5 (the table's own quotient is 2.7)."""
    adt, red = (_row(evidence, name, m.backlog_ms) for name in ("ADT", "Adaptive RED"))
    return Finding(
        red / adt >= 2.5,
        f"{adt:.1f} ms against {red:.1f} ms: Adaptive RED has {red / adt:.1f} times as much",
    )


def full_links(evidence: Evidence) -> Finding:
    """100.0 % rounded to a tenth for both; in part, no less than half a point from it."""
    busy = [_row(evidence, name, m.utilisation) for name in ("Drop-Tail", "Adaptive RED")]
    return Finding(
        min(busy) >= 99.95,
        f"{busy[0]:.2f} % under Drop-Tail, {busy[1]:.2f} % under Adaptive RED",
        partly=min(busy) >= 99.5,
    )


def price(evidence: Evidence) -> Finding:
    """Rounded to a point, 1 or 2."""
    lost = _row(evidence, "Drop-Tail", m.utilisation) - _row(evidence, "ADT", m.utilisation)
    return Finding(0.5 <= lost < 2.5, f"{lost:.2f} points of utilisation")


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
    busy = evidence.mean(REVERSE[""], m.utilisation)
    limit = evidence.mean(REVERSE[""], m.limit)
    alone = _row(evidence, "ADT", m.limit)
    return Finding(
        abs(busy - 99) <= 0.3,
        f"{busy:.2f} % with a mean q_adt of {limit:.0f} packets, ACKs among them, "
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
        f"of {len(ratios)}. {averaging(evidence)}",
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
        f"{_listed(steps, 1)}. Congestion avoidance alone would square it; "
        + (f"it is slower than N at {said.names(slow)}" if slow else "nowhere is it slower than N"),
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
    """Below 40 packets for many users, above 400 for few in a draw of their RTTs; in part, five
    times between them."""
    many = evidence.mean(CHANGING.only, m.limit_with_many)
    each = evidence.estimate(CHANGING.only, m.limit_with_few)
    few = max(each.values)
    return Finding(
        many < 40 and few > 400,
        f"q_adt falls to {many:.0f} packets with 450 users and more, and comes up to {few:.0f} when "
        "20 and fewer are left, in one of the draws of their RTTs (all: "
        f"{', '.join(f'{one:.0f}' for one in sorted(each.values))})",
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
    """The abstract's and the conclusion's sentence: half of both others' delays or less, for 1 to 2
    points."""
    delays = {
        name: _row(evidence, name, m.backlog_ms) for name in ("ADT", "Adaptive RED", "Drop-Tail")
    }
    lost = price(evidence)
    return Finding(
        lost.holds and delays["ADT"] < min(delays["Adaptive RED"], delays["Drop-Tail"]) / 2,
        ", ".join(f"{delay:.1f} ms under {name}" for name, delay in delays.items())
        + f", for {lost.because}",
    )


def any_bursts(evidence: Evidence) -> Finding:
    """Within half a point of u whatever sends, and a longer queue for longer bursts; in part, one of
    the two."""
    kinds = {name: DATAGRAMS[name] for name in (STEADY, SHORT_SPELLS, LONG_SPELLS)}
    limits = evidence.means(kinds, m.limit)
    busy = evidence.means(kinds, m.utilisation)
    fetched = evidence.mean(TRANSFERS.only, m.utilisation)
    held = all(abs(one - 99) <= 0.5 for one in (*busy.values(), fetched))
    ordered = limits[STEADY] < limits[SHORT_SPELLS] < limits[LONG_SPELLS]
    return Finding(
        held and ordered,
        f"{SOURCES} sources of datagrams that are "
        + ", ".join(f"{name}: {busy[name]:.2f} % with {limits[name]:.0f} packets" for name in kinds)
        + f"; 200 users who fetch 50 kB again and again: {fetched:.2f} % with "
        f"{evidence.mean(TRANSFERS.only, m.limit):.0f}",
        partly=held or ordered,
    )


def rule_of_thumb(evidence: Evidence) -> Finding:
    """100.0 % rounded to a tenth at each N that was run, with the harmonic mean; in part, no less
    than a point below."""
    busy = {
        which: evidence.means(
            {users: RULE[f"N = {users}, {which}"] for users in RULE_USERS}, m.utilisation
        )
        for which in (HARMONIC, ARITHMETIC, HALF)
    }
    told = [f"T = {which}: {_listed(busy[which], 2, ' %')} users" for which in busy if busy[which]]
    means = ", ".join(f"{1e3 * harmonic(users):.0f} ms of {users}" for users in busy[HARMONIC])
    least = min(busy[HARMONIC].values())
    return Finding(
        least >= 99.95,
        f"RTTs 40..440 ms, evenly spaced, whose harmonic mean is {means}, for 240 ms. "
        + "; ".join(told),
        partly=least >= 99,
    )


# ----------------------------------------------------------------------- what other readings give


def chosen_by(_: Evidence) -> str:
    """How many cells of the table each reading fits, the row that chose beside all."""
    tables = search.found()
    told = [
        f"{name}: {search.fitting(table, 'DT')} of 5 of Drop-Tail's row, "
        f"{search.fitting(table)} of 20 of the table"
        for name, table in sorted(
            tables.items(), key=lambda one: (-search.fitting(one[1], "DT"), -search.fitting(one[1]))
        )
    ]
    return f"{'; '.join(told)} ({searched.beside(search.__file__).made})."


def under(_: Evidence, *names: str) -> str:
    """Drop-Tail's and ADT's rows under readings that were searched."""
    tables = search.found()
    return (
        ". ".join(
            f"{name}, {row}: {search.row_words(tables[name], row)}"
            for name in names
            for row in ("DT", "ADT")
        )
        + "."
    )


def twice(evidence: Evidence) -> str:
    """What RTTs twice as long do to figures 2 and 3."""
    if not evidence.has(TWICE_CHANGING.only):
        return f"{_stated_rtts()} {FULL_ONLY}"
    many = evidence.mean(TWICE_CHANGING.only, m.limit_with_many)
    ratios = {
        users: evidence.mean(TWICE_USERS[f"N = {users}"], m.limit) / (3000 / users**0.5)
        for users in (16, 250, 2000)
    }
    return (
        f"{_stated_rtts()} With RTTs twice as long in figure 3 as well, q_adt falls to {many:.0f} "
        f"packets, for {evidence.mean(CHANGING.only, m.limit_with_many):.0f} as stated: the text's "
        f"bound is {SAYS['figure3/many']:g}. In figure 2 it is then {_listed(ratios, 2)} users of "
        "B T / sqrt(N)."
    )


def _stated_rtts() -> str:
    table = search.found()["40..440 ms"]
    return f"As round trips, Drop-Tail: {search.row_words(table, 'DT')}; ADT: {search.row_words(table, 'ADT')}."


def reds(_: Evidence) -> str:
    """Adaptive RED with other thresholds and another weight, and under the reading that gives its
    other cells."""
    tables = search.found()
    others = "; ".join(
        f"{name.removeprefix('one way, ')}: {search.row_words(table, 'ARED')}"
        for name, table in tables.items()
        if name.startswith("one way, RED")
    )
    short = tables["40..440 ms, delayed ACKs, RTO from 0.2 s"]
    return (
        f"{others}. The stated RTTs as round trips with delayed ACKs, which Drop-Tail's row excludes: "
        f"{search.row_words(short, 'ARED')}."
    )


def no_common_reading(_: Evidence) -> str:
    """Why Adaptive RED's row is off."""
    tables = search.found()
    best = max(tables, key=lambda name: search.fitting(tables[name], "ARED"))
    chosen = SAYS["peers"]["ns-2: as chosen, Drop-Tail of 128 for ADT"]
    loss, delay, fairness, goodput = chosen["ARED"][1:]
    return (
        "no reading that was searched has Drop-Tail's and Adaptive RED's row together: the one with "
        f"most cells of Adaptive RED's, {search.fitting(tables[best], 'ARED')} of 5 ({best}), has "
        f"{search.fitting(tables[best], 'DT')} of 5 of Drop-Tail's. ns-2.35 itself gives ours, not the "
        f"letter's: loss {loss:.2f} %, delay {delay:.2f} ms, Jain {fairness:.2f}, goodput {goodput:.1f} %"
    )


def ns2_has_it_too(_: Evidence) -> str:
    """ADT's delay: ns-2 beside ours."""
    own = SAYS["ns2"]["Drop-Tail, 128 packets"]
    tables = search.found()
    delays = {name: table["ADT", "delay"].ours for name, table in tables.items()}
    fitting = [name for name, table in tables.items() if table["ADT", "delay"].fits]
    least, most = (how(delays, key=delays.__getitem__) for how in (min, max))
    return (
        "q_adt settles near B T / sqrt(N), and ns-2 agrees that this is enough: its Drop-Tail of 128 "
        f"packets uses {own[0]:.2f} % of the link with a mean delay of {own[2]:.2f} ms. Of the "
        f"readings that were searched {', '.join(fitting) or 'none'} settles at the published "
        f"delay; they lie between {delays[least]:.1f} ms ({least}) and {delays[most]:.1f} ms "
        f"({most})"
    )


def reverse_delay(evidence: Evidence) -> str:
    """ADT both ways: how far the two meanings of the mean are apart."""
    backlog, waited = (evidence.mean(REVERSE[""], one) for one in (m.backlog_ms, m.delay_ms))
    return (
        f"the mean backlog is {backlog / 0.06:.0f} packets, of which ACKs are a large part: {backlog:.1f} ms "
        f"if each were 1500 B, {waited:.1f} ms as they wait"
    )


def in_bytes(_: Evidence) -> str:
    """ADT both ways with queues in bytes."""
    tables = search.found()
    counted, own = (
        search.row_words(tables[name], "ADT(R)") for name in ("one way, ADT in bytes", CHOSEN)
    )
    return (
        f"ADT both ways, in bytes of which 1500 are a packet, the mean backlog too: {counted}; in "
        f"packets: {own}."
    )


def ns2s_rows(_: Evidence) -> str:
    """ns-2's answers to the chosen reading."""
    told = [
        f"{name}: {used:.2f} % of the link, loss {loss:.2f} %, delay {delay:.2f} ms, Jain "
        f"{fairness:.2f}, goodput {goodput:.2f} %"
        for name, (used, loss, delay, fairness, goodput) in SAYS["ns2"].items()
    ]
    return f"ns-2.35 under the chosen reading, 60 s after 50: {'; '.join(told)}."


def averaging(evidence: Evidence) -> str:
    """Few users with an average over ten times as long."""
    along = {users: AVERAGING[weighed(users, 0.01)] for users in RHOS if users < 100}
    ratios = {
        users: limit / SAYS[f"figure2/{users}/limit"]
        for users, limit in evidence.means(along, m.limit).items()
    }
    return f"With rho = 0.01 in place of 0.1: {_listed(ratios, 2)} users"


def other_rho(evidence: Evidence) -> str:
    """The same, and what it gives many users once it has settled."""
    many = [users for users in RHOS if users >= 100]
    slow = [AVERAGING[weighed(users, 0.01)] for users in many]
    if not evidence.has(*slow):
        return f"{averaging(evidence)}."
    limits = [evidence.mean(one, m.limit) for one in slow]
    usual = [evidence.mean(WITH_USERS[users], m.limit) for users in many]
    return (
        f"{averaging(evidence)}. At {said.each(many)} users q_adt is then {said.each(limits)} packets once it has "
        f"settled, for {said.each(usual)} with 0.1."
    )


def other_rho_refused(evidence: Evidence) -> str:
    """Why a lower rho is not chosen."""
    return f"Section III states 0.1 for all of it. {other_rho(evidence)}"


def needs_more(evidence: Evidence) -> str:
    """Why 64 users need more than the rule."""
    fixed = [FIXED[f"{packets} packets"] for packets in FIXED_PACKETS]
    if not evidence.has(*fixed):
        return FULL_ONLY
    busy = said.each([evidence.mean(one, m.utilisation) for one in fixed], 2)
    return (
        f"Drop-Tail of {said.each(FIXED_PACKETS)} packets keeps the link of 64 users busy for {busy} %, and ADT is to "
        "keep it so for 99: by that the rule is too short here"
    )


def few_users(evidence: Evidence) -> str:
    """Why few users need another rho."""
    return (
        "a congestion epoch of few users is longer than ADT averages over, and q_adt is low in the "
        f"mean; section II asks for a lower rho there. {averaging(evidence)}"
    )


def wider_rtts(evidence: Evidence) -> str:
    """Figure 4 with the RTTs of figure 3."""
    if not evidence.has(PARAMETERS[WIDER]):
        return FULL_ONLY
    wider, chosen = (
        evidence.mean(one, m.utilisation) for one in (PARAMETERS[WIDER], SETTINGS[20, 1.01, 300])
    )
    return f"RTTs 10..300 ms as in figure 3, 20 users: {wider:.1f} %, for {chosen:.1f} % with those chosen."


# --------------------------------------------------------------------------------------- captions


def shown_queues(evidence: Evidence) -> str:
    """Figure 1."""
    shares = {
        name: _row(evidence, name, m.backlog_ms) / SAYS["buffer"]
        for name in ("Drop-Tail", "Adaptive RED", "ADT")
    }
    told = ", ".join(f"{100 * share:.0f} % under {name}" for name, share in shares.items())
    return (
        f"Of the buffer are used in the mean, after the warm-up: {told}. ADT's queue begins with the "
        "whole buffer and comes down. Dotted: the published mean delays as packets; the published "
        "time lines are lost."
    )


def shown_users(evidence: Evidence) -> str:
    """Figure 2."""
    limits = evidence.means(WITH_USERS, m.limit)
    ratios = {users: limit / SAYS[f"figure2/{users}/limit"] for users, limit in limits.items()}
    many = {users: ratio for users, ratio in ratios.items() if users >= 16}
    above = [users for users, ratio in many.items() if ratio > 1]
    return (
        f"From 16 users on q_adt is {min(many.values()):.2f} to {max(many.values()):.2f} times "
        f"B T / sqrt(N){f', above it with {said.names(above)}' if above else ''}. Windows of a few "
        "packets need less than the rule, which is made for congestion avoidance. Hollow: the curve "
        "that the source draws beside its own; its loss rates and utilisations are lost."
    )


def shown_changing(evidence: Evidence) -> str:
    """Figure 3."""
    many, few, busy = (
        evidence.mean(CHANGING.only, one)
        for one in (m.limit_with_many, m.limit_with_few, m.changing_utilisation)
    )
    return (
        f"The link stays {busy:.1f} % busy with a limit between {many:.0f} packets for 450 users and "
        f"more and {few:.0f} for 20 and fewer, means over the draws of RTTs. Dotted: the two bounds "
        "of the text."
    )


def shown_settings(evidence: Evidence) -> str:
    """Figure 4."""
    named = {at: one for at, one in SETTINGS.items() if evidence.has(one)}
    busy = {at: evidence.mean(one, m.utilisation) for at, one in named.items()}
    above = sum(value > 99.5 for value in busy.values())
    below = sum(value < 98 for value in busy.values())
    return (
        f"{sum(abs(value - 99) <= 1 for value in busy.values())} of {len(busy)} settings are within "
        f"a point of 99 %. {above} are half a point and more above it: slow ones, which are "
        "still on their way down from the whole buffer. "
        f"{below} are a point and more below it. No published values in the text."
    )
