"""The numbers of the text, each with where it stands; and what only its two graphs showed.

Its two graphs are lost, so their spread and their extremes are ours alone. The difference of the two upload times is not
printed, but it is the sharper test: what one does not know of the file and of the application cancels out in it.
"""

from __future__ import annotations

import operator

from sojourn.papers.evidence import Evidence
from sojourn.papers.home_upload import measures as m
from sojourn.papers.home_upload.experiments import WITH, WITHOUT
from sojourn.papers.paper import Estimate, Number, Tolerance

IDLE_MS, BLOATED_MS, CURED_MS = 20.0, 140.0, 30.0
LOSS_PERCENT = 1.5
WITHOUT_S, WITH_S = 45.7, 46.9
LONGER_S = 1.2
PINGS_A_SECOND = 10.0
SHAPER_KBYTES = 125.0

_GRAPHS = "the paragraph under the first graph"
_RESULTS = "the paragraph before the second graph"

_SIZE = "the size of the file is given in one digit, which leaves a tenth either way, and the time that the application took to begin is in the source's time only"


def _longer(evidence: Evidence) -> Estimate:
    return evidence.compared(("upload", WITH), ("upload", WITHOUT), m.upload_s, operator.sub)


NUMBERS = (
    Number(
        "without/pings", "the paragraph on the grid", "pings a second", "1/s",
        PINGS_A_SECOND, "upload", WITHOUT, m.pings_a_second,
        Tolerance(0.01, "a setting, so only the ends of the window may differ"),
    ),
    Number(
        "without/idle", _GRAPHS, "ping RTT before the upload, median", "ms",
        IDLE_MS, "upload", WITHOUT, m.idle_median_ms,
        Tolerance(1, "put into the propagation delay of the line: it must come out again", relative=False),
        against=("without/median",),
    ),
    Number(
        "without/idle-spread", "the first graph", "ping RTT before the upload, middle nine tenths", "ms",
        None, "upload", WITHOUT, m.idle_spread_ms,
    ),
    Number(
        "without/median", _GRAPHS, "ping RTT during the upload, median, no shaper", "ms",
        BLOATED_MS, "upload", WITHOUT, m.median_ms,
        Tolerance(10, "read off a graph to the nearest ten; one packet more or less in the modem's buffer, which was sought to give it, makes 11 ms", relative=False),
        against=("without/idle", "with/median"),
    ),
    Number(
        "without/spread", "the first graph", "ping RTT during the upload, middle nine tenths, no shaper", "ms",
        None, "upload", WITHOUT, m.spread_ms,
    ),
    Number(
        "without/worst", "the first graph", "longest ping RTT during the upload, no shaper", "ms",
        None, "upload", WITHOUT, m.worst_ms,
    ),
    Number(
        "without/loss", _RESULTS, "pings lost during the upload, no shaper", "%",
        LOSS_PERCENT, "upload", WITHOUT, m.loss_percent,
        Tolerance(1.1, "one upload, so 7 of 457 pings: by chance alone 2 to 12 of them would be lost", relative=False),
        against=("with/loss",),
    ),
    Number(
        "without/upload", _RESULTS, "upload time, no shaper", "s",
        WITHOUT_S, "upload", WITHOUT, m.upload_s, Tolerance(0.1, _SIZE), against=("with/upload",),
    ),
    Number(
        "with/rate", "the tc commands", "what passes the shaper, in tc's kbps", "kB/s",
        SHAPER_KBYTES, "upload", WITH, m.shaped_kbytes,
        Tolerance(0.01, "tokens come at this rate; they go unused where a timeout leaves the queue empty"),
    ),
    Number(
        "with/upload", _RESULTS, "upload time, htb + fq_codel", "s",
        WITH_S, "upload", WITH, m.upload_s, Tolerance(0.1, _SIZE), against=("without/upload",),
    ),
    Number(
        "with/longer", f"{_RESULTS}: the difference of the two times", "how much longer the upload takes, htb + fq_codel", "s",
        LONGER_S, "upload", WITH, m.upload_s,
        Tolerance(0.6, "one timeout more or less in either of the two uploads, each run once", relative=False),
        whole=_longer,
    ),
    Number(
        "with/median", _RESULTS, "ping RTT during the upload, median, htb + fq_codel", "ms",
        CURED_MS, "upload", WITH, m.median_ms,
        Tolerance(5, "stated as around 30: to the nearest ten", relative=False),
        against=("without/median",),
    ),
    Number(
        "with/spread", "the second graph", "ping RTT during the upload, middle nine tenths, htb + fq_codel", "ms",
        None, "upload", WITH, m.spread_ms,
    ),
    Number(
        "with/worst", "the second graph", "longest ping RTT during the upload, htb + fq_codel", "ms",
        None, "upload", WITH, m.worst_ms,
    ),
    Number(
        "with/loss", _RESULTS, "pings lost during the upload, htb + fq_codel", "%",
        0.0, "upload", WITH, m.loss_percent,
        Tolerance(0.2, "none of 469: one would have been 0.2 %", relative=False),
        against=("without/loss",),
    ),
)  # fmt: skip
