"""Checks of what the source says, and what other readings of it give."""

from __future__ import annotations

from sojourn.papers import published
from sojourn.papers.evidence import Evidence, Measure
from sojourn.papers.home_upload import measures as m
from sojourn.papers.home_upload.studies import (
    AFTER,
    BEFORE,
    BY_RATE,
    DISCIPLINES,
    DOWNLOAD,
    IN_KILOBYTES,
    IN_PACKETS,
    LINE,
    READINGS,
    SHAPER,
    WITH,
    WITHOUT,
)
from sojourn.papers.paper import Finding
from sojourn.papers.study import Variant

SAYS = published.beside(__file__)


def skyrockets(evidence: Evidence) -> Finding:
    idle, up = (evidence.mean(BEFORE, one) for one in (m.idle_median_ms, m.median_ms))
    down = evidence.mean(DOWNLOAD.only, m.median_ms)
    return Finding(
        up > 4 * idle and down > 4 * idle,
        f"A ping of {idle:.0f} ms takes {up:.0f} ms beside an upload, and {down:.0f} ms beside a "
        "download at 16 Mbit/s behind a buffer of as long a time, 166 ms: "
        "TCP fills whatever buffer there is",
    )


def idle(evidence: Evidence) -> Finding:
    middle, spread = (evidence.mean(BEFORE, one) for one in (m.idle_median_ms, m.idle_spread_ms))
    return Finding(
        spread < 0.1 * middle,
        f"Median {middle:.1f} ms, the middle nine tenths span {spread:.1f} ms: nothing waits, "
        "what is left is the jitter put into Wi-Fi",
    )


def unsteady(evidence: Evidence) -> Finding:
    idle, up, cured = (
        evidence.mean(BEFORE, m.idle_spread_ms),
        evidence.mean(BEFORE, m.spread_ms),
        evidence.mean(AFTER, m.spread_ms),
    )
    return Finding(
        up > 10 * idle and up > 0.25 * evidence.mean(BEFORE, m.median_ms),
        f"The middle nine tenths of the pings span {up:.0f} ms for {idle:.1f} when idle (and "
        f"{cured:.0f} with the cure): the modem's queue rises and falls with CUBIC's window",
    )


def down(evidence: Evidence) -> Finding:
    before, after = (evidence.mean(how, m.median_ms) for how in (BEFORE, AFTER))
    fell = SAYS["without/median"] - SAYS["with/median"]
    return Finding(
        abs(before - after - fell) < 0.2 * fell,
        partly=before - after > 0.5 * fell,
        because=f"{before:.0f} ms without, {after:.0f} ms with htb + fq_codel: "
        f"{before - after:.0f} ms less, for the source's {fell:.0f}. What is left above the idle "
        "ping is half the 12 ms of "
        "the packet that is being sent",
    )


def hardly_longer(evidence: Evidence) -> Finding:
    before, after = (evidence.mean(how, m.upload_s) for how in (BEFORE, AFTER))
    share = after / before - 1
    return Finding(
        0 < share < 0.05,
        f"{after:.1f} s for {before:.1f}: {100 * share:.1f} % longer, for the source's "
        f"{100 * SAYS['with/longer'] / SAYS['without/upload']:.1f} %. It is what the shaper "
        f"leaves of the line: {100 * SHAPER / LINE:.1f} %",
    )


def no_loss(evidence: Evidence) -> Finding:
    before, after = (evidence.mean(how, m.loss_percent) for how in (BEFORE, AFTER))

    def later(evidence: Evidence) -> str:
        lost = evidence.mean(DISCIPLINES["fq_codel, Linux from 2012-09"], m.loss_percent)
        return (
            f"{lost:.0f} % of them would have been lost, and 'target 15ms' would have been needed"
        )

    return Finding(
        after == 0 < before,
        f"{before:.1f} % of the pings without, {after:.1f} % with: the pings have a queue of "
        "their own. "
        f"With the rule that Linux had from September 2012, {evidence.said(later)}",
        partly=after < before,
    )


def moves(evidence: Evidence) -> Finding:
    wifi, modem = m.standing_ms("wlan0"), m.standing_ms("modem")
    without, cured = ([evidence.mean(how, one) for one in (wifi, modem)] for how in (BEFORE, AFTER))
    return Finding(
        without[1] > 50 > 5 > without[0] and cured[1] < 5 < cured[0],
        f"Mean time in the queues of wlan0 and modem: {without[0]:.1f} and {without[1]:.0f} ms "
        f"without, {cured[0]:.0f} and {cured[1]:.1f} ms with it. The queue moves to where "
        "fq_codel can keep it short and let pings pass",
    )


def rate(evidence: Evidence) -> Finding:
    delay = evidence.means(BY_RATE, m.median_ms)
    below, above = (
        [share for share in delay if share < 100],
        [share for share in delay if share > 100],
    )
    good, bad = max(delay[share] for share in below), min(delay[share] for share in above)
    return Finding(
        good < SAYS["with/median"] + 5 and bad > 3 * good,
        f"Its {SAYS['with/rate']:g} kbps are {100 * SHAPER / LINE:.1f} % of the line's rate as we "
        f"read it. From {below[0]} to {below[-1]} % the median ping is at most {good:.0f} ms, "
        f"above 100 % at least {bad:.0f}: "
        "the supposed rate was a little less than the real one, and had to be",
    )


def parts(evidence: Evidence) -> Finding:
    def of(name: str) -> float:
        return evidence.mean(DISCIPLINES[name], m.median_ms)

    cured = evidence.mean(AFTER, m.median_ms)
    unshaped, tail, codel = of("fq_codel, no shaper"), of("pfifo limit 1000"), of("codel")
    return Finding(
        cured < codel < unshaped < tail,
        f"Median ping: {cured:.0f} ms with both. fq_codel without the shaper {unshaped:.0f} ms, "
        "as if it were not there: its queue is empty. The shaper with a queue of 1000 packets "
        f"{tail / 1000:.1f} s: worse than the modem. With plain CoDel {codel:.0f} ms, because the "
        "pings wait behind the upload",
    )


# ----------------------------------------------------------------------- what other readings give

FULL_ONLY = "In the full version."


def outcome(evidence: Evidence, variant: Variant) -> str:
    """`43.4 s, 143 ms, 1.0 % lost`."""
    seconds, delay, lost = (
        evidence.mean(variant, one) for one in (m.upload_s, m.median_ms, m.loss_percent)
    )
    return f"{seconds:.1f} s, {delay:.0f} ms, {lost:.1f} % lost"


def _both(evidence: Evidence, name: str) -> str:
    variants = {how: READINGS[f"{name}, {how}"] for how in (WITHOUT, WITH)}
    known = [
        f"{how}: {outcome(evidence, one)}" for how, one in variants.items() if evidence.has(one)
    ]
    return f"{name}, {'; '.join(known)}." if known else ""


def under(evidence: Evidence, *names: str) -> str:
    """What these readings give, without and with the cure."""
    return " ".join(filter(None, (_both(evidence, name) for name in names))) or FULL_ONLY


def slower_line(evidence: Evidence) -> str:
    """A line that is no quicker than the shaper."""
    name = "line of 1000 kbit/s"
    before, after = (
        evidence.mean(READINGS[f"{name}, {how}"], m.upload_s) for how in (WITHOUT, WITH)
    )
    return (
        f"{_both(evidence, name)} There the cure costs {after - before:.1f} s, not "
        f"{SAYS['with/longer']:g}, and cures less: the modem adds 4 bytes a packet that "
        "htb does not count, so that the shaper is the quicker of the two and the modem's queue "
        "fills."
    )


def other_buffers(evidence: Evidence) -> str:
    """Buffers of other sizes, in packets and in bytes."""

    def listed(variants: list[Variant]) -> str:
        return "; ".join(
            f"{one.name} {outcome(evidence, one)}" for one in variants if evidence.has(one)
        )

    medians = evidence.means(IN_KILOBYTES, m.median_ms)
    near = min(medians, key=lambda size: abs(medians[size] - SAYS["without/median"]), default=None)
    lost = "" if near is None else f"{evidence.mean(IN_KILOBYTES[near], m.loss_percent):.1f} %"
    return (
        f"Counted in packets: {listed([IN_PACKETS[n] for n in (8, 10, 13, 14, 15, 20, 64, 256)])}. "
        f"Counted in bytes: {listed([IN_KILOBYTES[n] for n in (14, 16, 19, 24, 64, 256)])}. "
        f"The buffer of bytes that fits the median best, {near} kB, loses {lost} of the pings: where "
        "a segment of 1500 bytes no longer fits, a ping of 84 still does."
    )


def far_server(evidence: Evidence) -> str:
    """A server farther away than the ping's, and in which numbers it comes nearer."""
    name = "server at 100 ms"
    asked: tuple[tuple[str, Measure], ...] = (
        ("upload", m.upload_s),
        ("median", m.median_ms),
        ("loss", m.loss_percent),
    )
    apart = {
        f"{before}/{what}": [
            abs(evidence.mean(one, measure) - SAYS[f"{before}/{what}"])
            for one in (READINGS[f"{name}, {how}"], own)
        ]
        for before, how, own in (("without", WITHOUT, BEFORE), ("with", WITH, AFTER))
        for what, measure in asked
        if evidence.has(READINGS[f"{name}, {how}"])
    }
    if not apart:
        return FULL_ONLY
    nearer = [number for number, (far, near) in apart.items() if far < near]
    return (
        f"{_both(evidence, name)} It comes nearer to {len(nearer)} of {len(apart)} published numbers "
        f"({', '.join(nearer) or 'none'}); the matrix says which are within their tolerances."
    )


def small_window(evidence: Evidence) -> str:
    """A large buffer that the sender's window never fills."""
    narrow = READINGS[f"large buffer, window of 13, {WITHOUT}"]
    spread, other = (evidence.mean(one, m.spread_ms) for one in (narrow, BEFORE))
    return (
        "A modem of 256 packets whose queue only the sender's window of 13 segments limits: "
        f"{outcome(evidence, narrow)}; the middle nine tenths of the pings span {spread:.0f} ms "
        f"for {other:.0f}. It gives the median, but it is steadier, and it can't lose a ping."
    )


def later_fq_codel(evidence: Evidence) -> str:
    """fq_codel as Linux had it from September 2012."""
    later, wider = (
        DISCIPLINES[name] for name in ("fq_codel, Linux from 2012-09", "the same, target 15ms")
    )
    return (
        f"fq_codel as Linux had it later: {outcome(evidence, later)}. It keeps the state of a "
        "flow that is empty, so two pings 100 ms apart that both waited longer than "
        "5 ms look like a standing queue, and the second is dropped. With target 15ms, more than "
        f"the 12.1 ms of one packet at this rate: {outcome(evidence, wider)}."
    )


def rate_table(evidence: Evidence) -> str:
    """htb's rate tables."""
    steps = READINGS[f"htb's rate table, {WITH}"]
    if not evidence.has(steps):
        return FULL_ONLY
    return f"Charged in steps of 8 bytes, as htb's tables had it until Linux 3.8 (1520 for 1514): {outcome(evidence, steps)}."
