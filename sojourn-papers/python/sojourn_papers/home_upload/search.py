"""The search for the modem's buffer: each size without the shaper.

sojourn reproduce --search home-upload > searched.csv

No verdict uses the seeds of this search. The number of packets whose median ping is nearest to the
published one is chosen. Loss and time of the upload can contradict it.
"""

from __future__ import annotations

from sojourn_papers.home_upload import measures as m
from sojourn_papers.home_upload.studies import BUFFER

STUDIES = (BUFFER,)
MEASURES = {
    "upload_s": m.upload_s,
    "median_ms": m.median_ms,
    "spread_ms": m.spread_ms,
    "worst_ms": m.worst_ms,
    "loss_percent": m.loss_percent,
    "idle_median_ms": m.idle_median_ms,
    "idle_spread_ms": m.idle_spread_ms,
    "pings_a_second": m.pings_a_second,
}
