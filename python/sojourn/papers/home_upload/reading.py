"""What the source leaves open, how it was read, and what the other readings give."""

from __future__ import annotations

from sojourn.papers.evidence import Evidence
from sojourn.papers.home_upload import measures as m
from sojourn.papers.home_upload.experiments import (
    WITH,
    WITHOUT,
    kilobytes,
    packets,
)
from sojourn.papers.paper import Reading

_FULL = "In the full version."


def said(evidence: Evidence, study: str, variant: str) -> str:
    """`43.4 s, 143 ms, 1.0 % lost`."""
    seconds, delay, lost = (
        evidence.mean(study, variant, one) for one in (m.upload_s, m.median_ms, m.loss_percent)
    )
    return f"{seconds:.1f} s, {delay:.0f} ms, {lost:.1f} % lost"


def _both(evidence: Evidence, name: str) -> str:
    known = [
        f"{how}: {said(evidence, 'readings', variant)}"
        for how in (WITHOUT, WITH)
        if evidence.has("readings", variant := f"{name}, {how}")
    ]
    return f"{name}, {'; '.join(known)}." if known else ""


def _all(evidence: Evidence, *names: str) -> str:
    return " ".join(filter(None, (_both(evidence, name) for name in names))) or _FULL


def _size(evidence: Evidence) -> str:
    return _all(evidence, "5 MB", "5.5 MB")


def _line(evidence: Evidence) -> str:
    both = [
        evidence.estimate("readings", f"line of 1000 kbit/s, {how}", m.upload_s) for how in (WITHOUT, WITH)
    ]
    return (
        f"{_both(evidence, 'line of 1000 kbit/s')} There the cure costs {both[1].mean - both[0].mean:.1f} s, not 1.2, and cures less: the modem adds 4 bytes a packet that "
        "htb does not count, so that the shaper is the quicker of the two and the modem's queue fills."
    )


def _buffer(evidence: Evidence) -> str:
    def listed(variants: list[str]) -> str:
        return "; ".join(
            f"{name} {said(evidence, 'buffer', name)}" for name in variants if evidence.has("buffer", name)
        )

    return (
        f"Counted in packets: {listed([packets(n) for n in (8, 10, 13, 14, 15, 20, 64, 256)])}. Counted in bytes: {listed([kilobytes(n) for n in (14, 16, 19, 24, 64, 256)])}. "
        "A buffer of bytes that fits the median loses no ping: where a segment of 1500 bytes no longer fits, a ping of 84 still does."
    )


def _window(evidence: Evidence) -> str:
    name = f"large buffer, window of 13, {WITHOUT}"
    spread, other = (
        evidence.mean("readings", name, m.spread_ms),
        evidence.mean("upload", WITHOUT, m.spread_ms),
    )
    return (
        f"A modem of 256 packets whose queue only the sender's window of 13 segments limits: {said(evidence, 'readings', name)}; the middle nine tenths of the pings span {spread:.0f} ms "
        f"for {other:.0f}. It gives the median, but it is steadier, and it can't lose a ping."
    )


def _kernel(evidence: Evidence) -> str:
    later = "fq_codel, Linux from 2012-09"
    return (
        f"fq_codel as Linux had it later: {said(evidence, 'disciplines', later)}. It keeps the state of a flow that is empty, so two pings 100 ms apart that both waited longer than "
        f"5 ms look like a standing queue, and the second is dropped. With target 15ms, more than the 12.1 ms of one packet at this rate: {said(evidence, 'disciplines', 'the same, target 15ms')}."
    )


def _server(evidence: Evidence) -> str:
    return _all(evidence, "server at 100 ms")


def _tcp(evidence: Evidence) -> str:
    return _all(evidence, "Reno")


def _wifi(evidence: Evidence) -> str:
    return _all(evidence, "Wi-Fi of 5 Mbit/s")


def _charge(evidence: Evidence) -> str:
    name = f"htb's rate table, {WITH}"
    if not evidence.has("readings", name):
        return _FULL
    return f"Charged in steps of 8 bytes, as htb's tables had it until Linux 3.8 (1520 for 1514): {said(evidence, 'readings', name)}."


READINGS = (
    Reading(
        "size of the upload", "five megabytes", "5 MiB, 5 242 880 bytes",
        "What a file manager calls 5 MB. Both times come out about 5 % short: by the application's start and by names looked up, which are not simulated, or by a larger file.",
        _size,
    ),
    Reading(
        "rate of the line", "supposedly 1 Mbit/s", "1024 kbit/s, DOCSIS framing (18 bytes more than the IP packet)",
        "The upload was quicker without the shaper of 1000 kbit/s than with it, and the shaper kept the modem's queue empty: so the line is quicker than the shaper. 1024 is the next number that an operator sells as 1 Mbit/s.",
        _line, searched=True,
    ),
    Reading(
        "the modem's buffer", "not stated", "14 packets, drop-tail",
        "The number was sought to give the median of 140 ms; that it counts packets and not bytes follows from there being any loss. How much is lost, and the time of the upload, were no part of the search.",
        _buffer, searched=True,
    ),
    Reading(
        "what limits the queue", "not stated", "the modem's buffer",
        "The pings were unsteady and some were lost, as where TCP fills a buffer and backs off.",
        _window,
    ),
    Reading(
        "which fq_codel", "that of the kernel tree next-20120524", "fq_codel as it is today, with tc's defaults",
        "Linux forgets since March 2026 (commit 815980fe6dbb), as RFC 8290 does, that the packets of a flow waited long once the flow is empty. From September 2012 (Dave Täht's message on the codel list, 2012-09-04) until then that outlived the flow's packets; "
        "the source's tree is older and began afresh with every ping. Looked into because the rule between had lost pings.",
        _kernel, searched=True,
    ),
    Reading(
        "server of the upload", "not stated", "as near as the ping's, 20 ms", "The only distance that the source gives.", _server,
    ),
    Reading(
        "TCP", "not stated", "the profile linux: CUBIC, SACK, ten segments at the start; without RACK and tail loss probe", "Linux of 2012, as shipped: the probe came with 3.10, RACK with 4.4.", _tcp,
    ),
    Reading(
        "Wi-Fi", "not stated", "20 Mbit/s, up to 1 ms of jitter", "Any Wi-Fi is much faster than this line; then its rate doesn't matter.", _wifi,
    ),
    Reading(
        "what the shaper charges", "htb rate 125kbps", "the packet and 14 bytes of Ethernet", "As htb sees packets at wlan0; burst by tc's default.", _charge,
    ),
    Reading(
        "what passes the shaper", "a filter for all of IPv4; a `default` class was taken out as not needed", "everything",
        "All of ours is IPv4. With neither filter nor default class htb would send it on unshaped; the few ARP packets that it did send so are not simulated.",
        "The correction makes no difference to the traffic measured, as the source says.",
    ),
)  # fmt: skip
