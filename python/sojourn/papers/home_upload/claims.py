"""What the source says, in our words, as checks."""

from __future__ import annotations

from sojourn.papers.evidence import Evidence
from sojourn.papers.home_upload import measures as m
from sojourn.papers.home_upload.experiments import LINE, PER_CENT, SHAPER, WITH, WITHOUT, per_cent
from sojourn.papers.home_upload.published import BLOATED_MS, CURED_MS, LONGER_S, WITHOUT_S
from sojourn.papers.paper import Claim, Finding, Measure


def _mean(evidence: Evidence, variant: str, measure: Measure) -> float:
    return evidence.mean("upload", variant, measure)


def _skyrockets(evidence: Evidence) -> Finding:
    idle, up = (_mean(evidence, WITHOUT, one) for one in (m.idle_median_ms, m.median_ms))
    down = evidence.mean("download", "", m.median_ms)
    return Finding(
        up > 4 * idle and down > 4 * idle,
        f"A ping of {idle:.0f} ms takes {up:.0f} ms beside an upload, and {down:.0f} ms beside a download at 16 Mbit/s behind a buffer of as long a time, 166 ms: "
        "TCP fills whatever buffer there is",
    )


def _idle(evidence: Evidence) -> Finding:
    middle, spread = (_mean(evidence, WITHOUT, one) for one in (m.idle_median_ms, m.idle_spread_ms))
    return Finding(
        spread < 0.1 * middle,
        f"Median {middle:.1f} ms, the middle nine tenths span {spread:.1f} ms: nothing waits, what is left is the jitter put into Wi-Fi",
    )


def _unsteady(evidence: Evidence) -> Finding:
    idle, up, cured = (
        _mean(evidence, WITHOUT, m.idle_spread_ms),
        _mean(evidence, WITHOUT, m.spread_ms),
        _mean(evidence, WITH, m.spread_ms),
    )
    return Finding(
        up > 10 * idle and up > 0.25 * _mean(evidence, WITHOUT, m.median_ms),
        f"The middle nine tenths of the pings span {up:.0f} ms for {idle:.1f} when idle (and {cured:.0f} with the cure): the modem's queue rises and falls with CUBIC's window",
    )


def _down(evidence: Evidence) -> Finding:
    before, after = (_mean(evidence, how, m.median_ms) for how in (WITHOUT, WITH))
    fell = BLOATED_MS - CURED_MS
    return Finding(
        abs(before - after - fell) < 0.2 * fell,
        partly=before - after > 0.5 * fell,
        because=f"{before:.0f} ms without, {after:.0f} ms with htb + fq_codel: {before - after:.0f} ms less, for the source's {fell:.0f}. What is left above the idle ping is half the 12 ms of "
        "the packet that is being sent",
    )


def _hardly_longer(evidence: Evidence) -> Finding:
    before, after = (_mean(evidence, how, m.upload_s) for how in (WITHOUT, WITH))
    share = after / before - 1
    return Finding(
        0 < share < 0.05,
        f"{after:.1f} s for {before:.1f}: {100 * share:.1f} % longer, for the source's {100 * LONGER_S / WITHOUT_S:.1f} %. It is what the shaper leaves of the line: {100 * SHAPER / LINE:.1f} %",
    )


def _no_loss(evidence: Evidence) -> Finding:
    before, after = (evidence.estimate("upload", how, m.loss_percent) for how in (WITHOUT, WITH))
    later = evidence.mean("disciplines", "fq_codel, Linux from 2012-09", m.loss_percent)
    return Finding(
        after.mean == 0 < before.mean,
        f"{before.mean:.1f} % of the pings without, {after.mean:.1f} % with: the pings have a queue of their own. With the rule that Linux had from September 2012, "
        f"{later:.0f} % of them would have been lost, and 'target 15ms' would have been needed",
        partly=after.mean < before.mean,
    )


def _moves(evidence: Evidence) -> Finding:
    wifi, modem = m.standing_ms("wlan0"), m.standing_ms("modem")
    without, cured = ([_mean(evidence, how, one) for one in (wifi, modem)] for how in (WITHOUT, WITH))
    return Finding(
        without[1] > 50 > 5 > without[0] and cured[1] < 5 < cured[0],
        f"Mean time in the queues of wlan0 and modem: {without[0]:.1f} and {without[1]:.0f} ms without, {cured[0]:.0f} and {cured[1]:.1f} ms with it. The queue moves to where fq_codel can keep it short and let pings pass",
    )


def _rate(evidence: Evidence) -> Finding:
    run = [share for share in PER_CENT if evidence.has("rates", per_cent(share))]
    delay = {share: evidence.mean("rates", per_cent(share), m.median_ms) for share in run}
    below, above = [share for share in run if share < 100], [share for share in run if share > 100]
    good, bad = max(delay[share] for share in below), min(delay[share] for share in above)
    return Finding(
        good < CURED_MS + 5 and bad > 3 * good,
        f"Its 125 kbps are {100 * SHAPER / LINE:.1f} % of the line's rate as we read it. From {below[0]} to {below[-1]} % the median ping is at most {good:.0f} ms, above 100 % at least {bad:.0f}: "
        "the supposed rate was a little less than the real one, and had to be",
    )


def _parts(evidence: Evidence) -> Finding:
    def of(name: str) -> float:
        return evidence.mean("disciplines", name, m.median_ms)

    cured = _mean(evidence, WITH, m.median_ms)
    unshaped, tail, codel = of("fq_codel, no shaper"), of("pfifo limit 1000"), of("codel")
    return Finding(
        cured < codel < unshaped < tail,
        f"Median ping: {cured:.0f} ms with both. fq_codel without the shaper {unshaped:.0f} ms, as if it were not there: its queue is empty. The shaper with a queue of 1000 packets "
        f"{tail / 1000:.1f} s: worse than the modem. With plain CoDel {codel:.0f} ms, because the pings wait behind the upload",
    )


CLAIMS = (
    Claim("skyrockets", "the second paragraph", "High-speed uploads and downloads make the latency rise manyfold", _skyrockets, ("without",), must_hold=True),
    Claim("idle", "the paragraph under the first graph", "The idle ping is nearly constant, at about 20 ms", _idle, ("without",), must_hold=True),
    Claim("unsteady", "the paragraph under the first graph", "During the upload the ping is not only long but unsteady", _unsteady, ("without", "with"), must_hold=True),
    Claim("median", "the paragraph before the second graph", "With htb and fq_codel the median ping falls from about 140 ms to about 30", _down, ("without", "with"), must_hold=True),
    Claim("time", "the paragraph before the second graph", "The upload takes only a little longer: 46.9 s for 45.7", _hardly_longer, ("rates",), must_hold=True),
    Claim("loss", "the paragraph before the second graph", "No ping is lost any more, where 1.5 % were", _no_loss, ("parts",), must_hold=True),
    Claim("moves", "the paragraph before the tc commands", "It is enough to limit what leaves the laptop: the modem's own buffer then stays empty", _moves, ("queues",), must_hold=True),
    Claim("rate", "the paragraph before the tc commands", "The modem's supposed rate is the right limit", _rate, ("rates",)),
    Claim("parts", "the tc commands", "The cure is fq_codel, under htb", _parts, ("parts",), must_hold=True),
)  # fmt: skip
