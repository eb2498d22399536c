"""Checks of the source's claims."""

from __future__ import annotations

from sojourn_papers.evidence import Evidence
from sojourn_papers.home_upload import measures as m
from sojourn_papers.home_upload import studies as s
from sojourn_papers.paper import Finding


def skyrockets(evidence: Evidence) -> Finding:
    idle, up = (evidence.mean(s.BEFORE, one) for one in (m.idle_median_ms, m.median_ms))
    down = evidence.mean(s.DOWNLOAD.only, m.median_ms)
    return Finding(
        {"ping beside an upload over the idle one": up / idle, "beside a download": down / idle},
        f"Idle {idle:.0f} ms, {up:.0f} ms beside the upload, {down:.0f} ms beside a download at 16 "
        "Mbit/s behind a buffer that takes as long to drain",
    )


def graph(evidence: Evidence) -> Finding:
    """Whether the bands of the middle nine tenths overlap in a picture of pings."""
    return Finding(
        {
            "5th percentile beside the upload over the 95th before it": evidence.mean(
                s.BEFORE, m.apart
            ),
            "with the cure": evidence.mean(s.AFTER, m.apart),
        },
        "Ten pings a second, each a point, and their median a line",
    )


def idle(evidence: Evidence) -> Finding:
    middle, spread = (evidence.mean(s.BEFORE, one) for one in (m.idle_median_ms, m.idle_spread_ms))
    return Finding(
        {"middle nine tenths over the median, %": 100 * spread / middle},
        f"Median {middle:.1f} ms: nothing waits, and what is left is the jitter put into Wi-Fi",
    )


def unsteady(evidence: Evidence) -> Finding:
    idle, up = (evidence.mean(s.BEFORE, one) for one in (m.idle_spread_ms, m.spread_ms))
    return Finding(
        {
            "middle nine tenths over those of the idle ping": up / idle,
            "over the median, %": 100 * up / evidence.mean(s.BEFORE, m.median_ms),
        },
        f"They span {up:.0f} ms, and {evidence.mean(s.AFTER, m.spread_ms):.0f} ms with the cure: the "
        "modem's queue rises and falls with CUBIC's window",
    )


def down(evidence: Evidence) -> Finding:
    before, after = (evidence.mean(how, m.median_ms) for how in (s.BEFORE, s.AFTER))
    return Finding(
        {"less, ms": before - after},
        f"{before:.0f} ms without, {after:.0f} ms with it. What is left above the idle ping is half "
        "the time of the packet that is being sent",
    )


def hardly_longer(evidence: Evidence) -> Finding:
    before, after = (evidence.mean(how, m.upload_s) for how in (s.BEFORE, s.AFTER))
    return Finding(
        {"longer, %": 100 * (after / before - 1)},
        f"{after:.1f} s for {before:.1f}. The shaper leaves {100 * s.SHAPER / s.LINE:.1f} % of the line",
    )


def no_loss(evidence: Evidence) -> Finding:
    before, after = (evidence.mean(how, m.loss_percent) for how in (s.BEFORE, s.AFTER))
    return Finding({"pings lost with it, %": after, "without it, %": before})


def moves(evidence: Evidence) -> Finding:
    found = {
        f"{where} {how}, ms": evidence.mean(variant, m.standing_ms(where))
        for how, variant in (("without", s.BEFORE), ("with it", s.AFTER))
        for where in ("modem", "wlan0")
    }
    return Finding(found, "Mean time in the queues; fq_codel lets pings overtake the upload")


def rate(evidence: Evidence) -> Finding:
    delay = evidence.means(s.BY_RATE, m.median_ms)
    below = max(ms for share, ms in delay.items() if share < 100)
    above = min(ms for share, ms in delay.items() if share > 100)
    return Finding(
        {"longest median ping below the line's rate, ms": below, "above it, times": above / below},
        f"The shaper has {100 * s.SHAPER / s.LINE:.1f} % of the line's rate as we read it. Above 100 % "
        f"the median is {above:.0f} ms and more",
    )


def parts(evidence: Evidence) -> Finding:
    unshaped, tail, codel = (
        evidence.mean(s.DISCIPLINES[name], m.median_ms)
        for name in ("fq_codel, no shaper", "pfifo limit 1000", "codel")
    )
    cured = evidence.mean(s.AFTER, m.median_ms)
    return Finding(
        {
            "shaper and CoDel over both parts": codel / cured,
            "fq_codel alone": unshaped / cured,
            "shaper and a queue of 1000 packets": tail / cured,
        },
        f"The median ping is {cured:.0f} ms with both",
    )
