"""Checks of what the article says, and what other readings of it give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median

from sojourn.papers import published
from sojourn.papers.codel import measures as m
from sojourn.papers.codel.studies import (
    ADAPTIVE,
    BY_READERS,
    CODEL,
    EDGE_KBPS,
    EDGE_QUEUES,
    FALLS_S,
    FTP_LOADS,
    HEAVIER_AND_SHORT,
    HOMES,
    IN_BYTES,
    LARGE,
    LINES,
    MBPS,
    MTU,
    OTHER_LINES,
    QUEUES,
    READINGS,
    RED,
    RTT_MS,
    SEARCHED_PRODUCTS,
    SETTINGS,
    SLOW,
    SLOW_KBPS,
    SLOW_RTT_MS,
    SMALL,
    STEP_READINGS,
    STEPPED,
    TAIL,
    THRICE,
    Setting,
    home,
    lines_under,
    plain,
    slow,
)
from sojourn.papers.evidence import Evidence, Measure
from sojourn.papers.paper import Finding
from sojourn.papers.said import each
from sojourn.papers.study import Variant

SAYS = published.beside(__file__)
TARGETS = published.targets(__file__)
FULL_ONLY = "In the full version."

# ------------------------------------------------------------------------------------ static links


def group(
    evidence: Evidence,
    measure: Measure,
    name: str,
    mbps: float | None = None,
    rtt_ms: int | None = None,
) -> list[float]:
    """A measure of one discipline on all static links of this rate, or this RTT, that were run."""
    return [
        evidence.mean(variant, measure)
        for at, variant in SETTINGS.items()
        if at.queue == name
        and mbps in (None, at.mbps)
        and rtt_ms in (None, at.rtt_ms)
        and evidence.has(variant)
    ]


def by_rate(evidence: Evidence, measure: Measure, name: str) -> dict[float, float]:
    """The median over loads and RTTs, by rate."""
    return {mbps: median(group(evidence, measure, name, mbps=mbps)) for mbps in MBPS}


def by_rtt(evidence: Evidence, measure: Measure, name: str) -> dict[int, float]:
    """The median over loads and rates, by RTT."""
    return {rtt: median(group(evidence, measure, name, rtt_ms=rtt)) for rtt in RTT_MS}


def _beside(values: Mapping[str, Iterable[float]], unit: str) -> str:
    """`CoDel 5.0, 2.2 ms, RED 3.4, 0.5`."""
    (one, first), (other, second) = values.items()
    return f"{one} {each(first, 1)} {unit}, {other} {each(second, 1)}"


def as_expected(evidence: Evidence) -> Finding:
    delay, use = (by_rate(evidence, one, CODEL) for one in (m.median_ms, m.busy))
    target = SAYS["target_ms"]
    return Finding(
        max(delay.values()) < 3 * target and min(use.values()) > 90,
        f"Medians over loads and RTTs at {each(MBPS)} Mbit/s: {each(delay.values(), 1)} ms, with "
        f"{each(use.values(), 1)} % of the link",
    )


def red_alike(evidence: Evidence) -> Finding:
    delay, use = (
        [by_rate(evidence, one, name)[3.0] for name in (CODEL, RED)]
        for one in (m.median_ms, m.busy)
    )
    return Finding(
        max(delay) < 2 * min(delay) and abs(use[0] - use[1]) < 5,
        f"At 3 Mbit/s CoDel has {delay[0]:.1f} ms and {use[0]:.1f} % of the link, RED "
        f"{delay[1]:.1f} ms and {use[1]:.1f} %",
        partly=abs(use[0] - use[1]) < 5,
    )


def red_overcontrols(evidence: Evidence) -> Finding:
    above = MBPS[1:]
    delay, use = (
        {name: by_rate(evidence, one, name) for name in (CODEL, RED)}
        for one in (m.median_ms, m.busy)
    )
    less = [use[RED][at] < use[CODEL][at] for at in above]
    shorter = [delay[RED][at] < delay[CODEL][at] for at in above]
    return Finding(
        all(less) and all(shorter),
        f"At {each(above)} Mbit/s: "
        + _beside({name: [delay[name][at] for at in above] for name in (CODEL, RED)}, "ms")
        + "; "
        + _beside(
            {name: [use[name][at] for at in above] for name in (CODEL, RED)}, "% of the link"
        ),
        partly=all(less) or all(shorter),
    )


def over_rtts(evidence: Evidence) -> Finding:
    delay, use = (
        {name: by_rtt(evidence, one, name) for name in (CODEL, RED)}
        for one in (m.median_ms, m.busy)
    )
    low = max(*delay[CODEL].values(), *delay[RED].values()) < 20
    more = [use[CODEL][rtt] >= use[RED][rtt] for rtt in RTT_MS]
    return Finding(
        low and all(more),
        f"Medians at RTTs of {each(RTT_MS)} ms: "
        + _beside({name: delay[name].values() for name in (CODEL, RED)}, "ms")
        + "; "
        + _beside({name: use[name].values() for name in (CODEL, RED)}, "% of the link"),
        partly=low and sum(more) > len(more) / 2,
    )


def near_tail_drop(evidence: Evidence) -> Finding:
    delay, use = (
        {name: by_rtt(evidence, one, name) for name in (CODEL, TAIL)}
        for one in (m.median_ms, m.busy)
    )
    behind = {rtt: use[TAIL][rtt] - use[CODEL][rtt] for rtt in RTT_MS}
    near = [behind[rtt] < 5 for rtt in RTT_MS if rtt < 500]
    much = max(delay[CODEL][rtt] / delay[TAIL][rtt] for rtt in RTT_MS if rtt < 500)
    return Finding(
        all(near) and much < 0.5,
        f"At RTTs of {each(RTT_MS)} ms CoDel uses {each(behind.values(), 1)} points of the link less, "
        f"with {each((delay[CODEL][rtt] for rtt in RTT_MS), 1)} ms of median delay for "
        f"{each((delay[TAIL][rtt] for rtt in RTT_MS), 1)}",
        partly=sum(near) >= len(near) - 1 and much < 0.5,
    )


def same_over_rtts(evidence: Evidence) -> Finding:
    inner = [rtt for rtt in RTT_MS if 30 <= rtt <= 200]
    delay, use = (by_rtt(evidence, one, CODEL) for one in (m.median_ms, m.busy))
    steady = max(delay[rtt] for rtt in inner) < 1.5 * min(delay[rtt] for rtt in inner)
    busy = max(use[rtt] for rtt in inner) - min(use[rtt] for rtt in inner)
    return Finding(
        steady and busy < 5,
        f"At {each(inner)} ms: {each((delay[rtt] for rtt in inner), 1)} ms, "
        f"{each((use[rtt] for rtt in inner), 1)} % of the link",
        partly=steady or busy < 5,
    )


def drop_shares(evidence: Evidence) -> Finding:
    fair = {name: by_rtt(evidence, m.down_fairness, name) for name in (CODEL, RED)}
    ahead = [rtt for rtt in RTT_MS if fair[CODEL][rtt] > fair[RED][rtt]]
    return Finding(
        len(ahead) == len(RTT_MS),
        f"Jain's index at RTTs of {each(RTT_MS)} ms: CoDel {each(fair[CODEL].values(), 2)}, "
        f"RED {each(fair[RED].values(), 2)}: CoDel is ahead at {len(ahead)} of {len(RTT_MS)}",
        partly=2 * len(ahead) > len(RTT_MS),
    )


# -------------------------------------------------------------------------------------- slow links


def of_slow(
    evidence: Evidence, measure: Measure, name: str, kbps: int, packet: int | None = None
) -> float:
    """The median of figure 6's runs of one discipline at one rate."""
    return median(
        evidence.mean(SLOW[slow(name, kbps, rtt, one)], measure)
        for rtt in SLOW_RTT_MS
        for one in MTU
        if packet in (None, one)
    )


def slow_links(evidence: Evidence) -> Finding:
    delay, use = (
        [of_slow(evidence, one, CODEL, kbps) for kbps in SLOW_KBPS] for one in (m.median_ms, m.busy)
    )
    return Finding(
        min(delay) > SAYS["target_ms"] and min(use) > 90,
        f"At {each(SLOW_KBPS)} kbit/s CoDel's medians are {each(delay, 1)} ms, with "
        f"{each(use, 1)} % of the link",
    )


def larger_mtu(evidence: Evidence) -> Finding:
    more = [
        of_slow(evidence, m.median_ms, CODEL, kbps, 1500)
        - of_slow(evidence, m.median_ms, CODEL, kbps, 500)
        for kbps in SLOW_KBPS
    ]
    return Finding(
        min(more) > 0 and more == sorted(more, reverse=True),
        f"At {each(SLOW_KBPS)} kbit/s packets of 1500 B wait {each(more, 1)} ms longer than those of "
        "500 B",
        partly=min(more) > 0,
    )


def web_alone(evidence: Evidence) -> Finding:
    use, lost = (
        [evidence.mean(one, measure) for one in BY_READERS.values()]
        for measure in (m.busy, m.down_loss)
    )
    wanted, accepted = SAYS["web_busy"], SAYS["web_drops"]
    above = [loss for part, loss in zip(use, lost, strict=True) if part > wanted]
    return Finding(
        bool(above) and min(above) > accepted,
        f"With {each(BY_READERS)} readers the link is {each(use)} % busy and drops {each(lost, 1)} %: "
        f"above {wanted} % at least {min(above, default=0.0):.1f} %",
        partly=bool(above) and min(above) > accepted / 2,
    )


# ------------------------------------------------------------------------------- the link that steps

_PHASES = ((10, 50, 100), (60, 100, 10), (120, 150, 1), (210, 250, 1))
"""Start and end of what is looked at, s, and the rate, Mbit/s: once each rate has been met."""


def tail_drop_full(evidence: Evidence) -> Finding:
    full = [LARGE * 1500 * 8e-3 / mbps for _, _, mbps in _PHASES]
    ours = [evidence.mean(STEPPED[TAIL, LARGE], m.between_ms(a, b)) for a, b, _ in _PHASES]
    worst = evidence.mean(STEPPED[TAIL, LARGE], m.longest_s)
    return Finding(
        all(one > 0.8 * most for one, most in zip(ours, full, strict=True)),
        f"Its mean delay is {each(ours)} ms at {each(mbps for _, _, mbps in _PHASES)} Mbit/s, where a "
        f"full buffer takes {each(full)}; the longest is {worst:.2f} s. CUBIC, which backs off by 0.3, leaves it less "
        "than full after each loss",
        partly=all(one > 0.5 * most for one, most in zip(ours, full, strict=True)),
    )


def red_slower(evidence: Evidence) -> Finding:
    kept = [
        [
            evidence.mean(STEPPED[name, LARGE], m.between_ms(a, b))
            for a, b in ((50, 60), (100, 110), (200, 210))
        ]
        for name in (CODEL, RED, TAIL)
    ]
    codel, red, tail = kept
    below = all(a < b for a, b in zip(red, tail, strict=True))
    slower = [a > b for a, b in zip(red, codel, strict=True)]
    return Finding(
        below and all(slower),
        f"Mean delay in the ten seconds after each fall: CoDel {each(codel)} ms, RED {each(red)}, "
        f"Tail Drop {each(tail)}",
        partly=below and any(slower),
    )


def spikes(evidence: Evidence) -> Finding:
    codel = STEPPED[CODEL, LARGE]
    at, later = (
        [evidence.mean(codel, m.between_ms(fall + a, fall + b)) for fall in FALLS_S]
        for a, b in ((0, 2), (40, 50))
    )
    return Finding(
        all(peak > 3 * rest for peak, rest in zip(at, later, strict=True)),
        f"Mean delay in the two seconds after {each(FALLS_S)} s: {each(at)} ms; 40 s later "
        f"{each(later, 1)} ms. At 250 s, which the text has in place of 200, the rate rises",
        partly=all(peak > rest for peak, rest in zip(at, later, strict=True)),
    )


def control_point(evidence: Evidence) -> Finding:
    waits = evidence.mean(STEPPED[CODEL, LARGE], m.reaction_ms)
    packet = 12
    return Finding(
        waits < SAYS["interval_ms"] + 2 * packet,
        f"The first drop after a fall of the rate comes within {waits:.0f} ms. CoDel acts when a packet "
        f"leaves, each {packet} ms at 1 Mbit/s: one to see the delay, one to drop",
    )


def same_bytes(evidence: Evidence) -> Finding:
    codel, tail = (evidence.mean(STEPPED[name, LARGE], m.down_volume) for name in (CODEL, TAIL))
    lag = {
        (a, b): evidence.mean(STEPPED[TAIL, LARGE], m.carried_mb(a, b))
        - evidence.mean(STEPPED[CODEL, LARGE], m.carried_mb(a, b))
        for a, b in ((0, 150), (150, 200), (200, 250), (250, 300))
    }
    jumps = lag[150, 200] + lag[250, 300]
    return Finding(
        codel > 0.95 * tail and jumps > 0.5 * (tail - codel),
        f"CoDel carries {codel:.0f} MB, Tail Drop {tail:.0f}: {100 * (1 - codel / tail):.1f} % less. Of "
        f"the {tail - codel:.1f} MB between them, {jumps:.1f} come in the 50 s after the jumps at 150 "
        "and 250 s",
        partly=codel > 0.9 * tail,
    )


def undersized(evidence: Evidence) -> Finding:
    less = {name: m.fewer(evidence, name).mean for name in QUEUES}
    small = {name: evidence.mean(STEPPED[name, SMALL], m.down_volume) for name in QUEUES}
    apart = abs(small[CODEL] / small[TAIL] - 1)
    return Finding(
        min(less.values()) > 50 and apart < 0.02,
        "; ".join(f"{name} {less[name]:.0f} % less, {small[name]:.0f} MB" for name in QUEUES)
        + f". CoDel and Tail Drop are {100 * apart:.1f} % apart",
        partly=min(less.values()) > 50,
    )


# -------------------------------------------------------------------------------------- the home line


def edge(evidence: Evidence) -> Finding:
    def both(measure: Measure) -> list[tuple[float, float]]:
        return [
            (evidence.mean(LINES[CODEL, kbps], measure), evidence.mean(LINES[TAIL, kbps], measure))
            for kbps in EDGE_KBPS
        ]

    drops = both(m.down_loss) + both(m.up_loss)
    delay, volume = both(m.down_median), both(m.down_volume) + both(m.up_volume)
    never = all(codel <= tail for codel, tail in drops)
    rest = all(codel < tail / 2 for codel, tail in delay) and all(
        abs(codel / tail - 1) < 0.1 for codel, tail in volume
    )
    return Finding(
        never and rest,
        "CoDel and Tail Drop, down at 512 and 1500 kbit/s, then up: "
        + ", ".join(f"{codel:.1f} and {tail:.1f}" for codel, tail in drops)
        + " % dropped; medians down "
        + ", ".join(f"{codel:.0f} and {tail:.0f}" for codel, tail in delay)
        + " ms; "
        + ", ".join(f"{codel:.0f} and {tail:.0f}" for codel, tail in volume)
        + " MB",
        partly=rest,
    )


# ------------------------------------------------------------------------- what other readings give


def _steps(evidence: Evidence, *names: str) -> str:
    known = [name for name in names if evidence.has(STEP_READINGS[name])]
    return "; ".join(f"{name}: {_outcome(evidence, STEP_READINGS[name])}" for name in known)


def _outcome(evidence: Evidence, variant: Variant) -> str:
    median_, quartile, most = (
        evidence.mean(variant, one) for one in (m.median_ms, m.quartile_ms, m.at_95_ms)
    )
    return (
        f"{median_:.1f} ms in the median, {quartile:.1f} at 75 % of the packets, {most:.0f} at 95 % of "
        f"the time, {evidence.mean(variant, m.down_volume):.0f} MB"
    )


def other_pages(evidence: Evidence) -> str:
    """Lighter and heavier web connections on the link that steps."""
    told = _steps(evidence, "connections half as heavy", "connections twice as heavy", THRICE)
    return f"On the link that steps, {told}." if told else FULL_ONLY


def heavier(evidence: Evidence) -> str:
    """Why web connections three times as heavy are not the chosen ones."""
    stepping = STEP_READINGS[THRICE]
    runs = [lines_under(one)[CODEL, 512] for one in (THRICE, HEAVIER_AND_SHORT)]
    if not evidence.has(stepping, *runs):
        return FULL_ONLY
    medians = each([evidence.mean(one, m.down_median) for one in runs])
    volumes = each(
        [
            evidence.mean(lines_under(one)[CODEL, 1500], m.down_volume)
            for one in (THRICE, HEAVIER_AND_SHORT)
        ]
    )
    return (
        "PackMime is ns-2's own, and its connections were weighed: 7.4 kB. Three times as much is what the "
        "drops ask for, and they alone. CoDel's median at 512 kbit/s down is then, with buffers of two products and "
        f"of one, {medians} ms for {SAYS['table/512/down/CoDel/median']:g}, the line of 1500 kbit/s carries {volumes} MB for "
        f"{SAYS['table/1500/down/CoDel/volume']:g}, and on the link that steps, whose connections are the same "
        f"ones, 95 % of the time lie below {evidence.mean(stepping, m.at_95_ms):.0f} ms for 90: what the "
        "one line gains the other loses."
    )


def other_tcps(evidence: Evidence) -> str:
    """Other TCPs on the link that steps, and on static links."""
    names = ("New Reno", "TCP of today's Linux")
    told = _steps(evidence, *names)
    if not told:
        return FULL_ONLY
    return f"On the link that steps, {told}. {_static(evidence, *names)}"


def other_codel(evidence: Evidence) -> str:
    """Linux's CoDel."""
    name = "Linux's CoDel"
    told = _steps(evidence, name)
    return f"On the link that steps, {told}. {_static(evidence, name)}" if told else FULL_ONLY


def _static(evidence: Evidence, *names: str) -> str:
    told = []
    for name in names:
        runs = [READINGS[f"{name}, {mbps:g} Mbit/s"] for mbps in MBPS]
        told.append(f"{name} {each((evidence.mean(one, m.median_ms) for one in runs), 1)} ms")
    return f"Four FTPs at {each(MBPS)} Mbit/s: {'; '.join(told)}."


def adaptive_red(evidence: Evidence) -> str:
    """ns-2's Adaptive RED."""
    runs = [ADAPTIVE[f"{mbps:g} Mbit/s"] for mbps in MBPS]
    if not evidence.has(*runs):
        return FULL_ONLY
    own = [evidence.mean(plain(RED, mbps), m.busy) for mbps in MBPS]
    return (
        f"Adaptive, four FTPs at {each(MBPS)} Mbit/s: "
        f"{each((evidence.mean(one, m.median_ms) for one in runs), 1)} ms with "
        f"{each((evidence.mean(one, m.busy) for one in runs), 1)} % of the link, for {each(own, 1)} % "
        f"without. On the link that steps, in bytes: {red_small(evidence)}."
    )


def against_ns2(evidence: Evidence) -> str:
    """What ns-2 itself uses of the static links, beside ours."""
    told = []
    for name in (RED, TAIL):
        ours = (evidence.mean(plain(name, mbps), m.busy) for mbps in MBPS)
        told.append(f"{name} {each(SAYS['ns2'][name], 1)} %, ours {each(ours, 1)}")
    return (
        f"Use of the link by four FTPs at 100 ms and {each(MBPS)} Mbit/s in ns-2.35, with its "
        f"TCP/Linux: {'; '.join(told)}."
    )


# ------------------------------------------------------------------------------- why a number is off


def by_ftps(evidence: Evidence) -> str:
    """CoDel's median by the number of FTPs at 45 and 100 Mbit/s, 100 ms."""
    told = []
    for load in FTP_LOADS:
        runs = [SETTINGS[Setting(CODEL, mbps, 100, load)] for mbps in MBPS]
        if evidence.has(*runs):
            told.append(f"{load} {each((evidence.mean(one, m.median_ms) for one in runs), 1)} ms")
    return (
        f"at 100 ms of RTT and {each(MBPS)} Mbit/s: {'; '.join(told)}. Few FTPs leave the queue empty "
        "between drops on a fast link; many keep it above the target on a slow one, where each packet "
        "takes 4 ms"
    )


def stepping_median(evidence: Evidence) -> str:
    """What the link that steps gives under other readings, for its median."""
    told = _steps(evidence, *(one.name for one in evidence.variants(STEP_READINGS)))
    return f"other readings: {told}" if told else "the full version has other readings"


def stepping_most(evidence: Evidence) -> str:
    """The same for the delay at 95 % of the time."""
    told = stepping_median(evidence)
    bound = SAYS["steps/most"]
    known = {one.name: evidence.mean(one, m.at_95_ms) for one in evidence.variants(STEP_READINGS)}
    below = [name for name, most in known.items() if most < bound]
    decides = f". Below {bound:g} ms are {', '.join(below)}: it is the reading that decides"
    return told + (decides if below else "")


def red_small(evidence: Evidence) -> str:
    """ns-2's RED that counts its limit in packets of 500 B."""
    less = m.fewer(evidence, IN_BYTES).mean
    return (
        "ns-2's RED counts bytes unless told otherwise: a limit of 10 is then 5000 B, three packets, and "
        f"it carries {less:.0f} % less"
    )


def other_lines(evidence: Evidence) -> str:
    """The home line with larger buffers and more web connections."""
    told = [
        f"{reading}: {_line(evidence, variants.values())}"
        for reading in OTHER_LINES
        if evidence.has(*(variants := lines_under(reading)).values())
    ]
    own = _line(evidence, LINES.values())
    return f"The home line as chosen: {own}. {'. '.join(told)}." if told else FULL_ONLY


_COLUMNS: Mapping[str, Measure] = {
    f"{way}/{name}/{column}": measure
    for name in EDGE_QUEUES
    for way, column, measure in (
        ("down", "drops", m.down_loss),
        ("up", "drops", m.up_loss),
        ("down", "median", m.down_median),
        ("up", "median", m.up_median),
        ("down", "volume", m.down_volume),
        ("up", "volume", m.up_volume),
        ("down", "fairness", m.down_fairness),
        ("up", "fairness", m.up_fairness),
    )
}
"""Of the table: what is measured, by way, discipline and column."""


def home_fits(evidence: Evidence, products: int, name: str) -> int:
    """How many of the table's numbers of one discipline fit with buffers of so many products."""
    return sum(
        TARGETS[f"table/{kbps}/{column}"].met(
            evidence.mean(HOMES[home(products, name, kbps)], measure)
        )
        for kbps in EDGE_KBPS
        for column, measure in _COLUMNS.items()
        if f"/{name}/" in column
    )


def home_buffers(evidence: Evidence) -> str:
    """How many of the table's numbers each buffer fits."""
    told = "; ".join(
        f"{products}: {home_fits(evidence, products, TAIL)} of Tail Drop's and "
        f"{home_fits(evidence, products, CODEL)} of CoDel's"
        for products in SEARCHED_PRODUCTS
    )
    return (
        f"Of 16 numbers each fit, by products of rate and RTT, {told} ({evidence.searched.made})."
    )


def _line(evidence: Evidence, variants: Iterable[Variant]) -> str:
    known = list(variants)
    lost, delay, volume = (
        [evidence.mean(one, measure) for one in known]
        for measure in (m.down_loss, m.down_median, m.down_volume)
    )
    return f"{each(lost, 1)} % dropped, {each(delay)} ms, {each(volume)} MB down"


def table_off(evidence: Evidence) -> str:
    """Why the table's numbers are off: what smaller buffers and more web connections give."""
    return (
        "the order is CoDel at 512, Tail Drop at 512, CoDel at 1500, Tail Drop at 1500 kbit/s. "
        f"{other_lines(evidence)} No reading that was tried gives both Tail Drop's delays and what the "
        "line of 1500 kbit/s carried"
    )
