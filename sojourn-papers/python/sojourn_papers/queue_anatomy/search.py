"""The search for the limit of the servers' windows. Each limit runs at the decisive sizes, with
both interpretations of a timeout, and at other rates.

sojourn reproduce --search queue-anatomy > searched.csv

No verdict uses the seeds of this search.
"""

from __future__ import annotations

from sojourn_papers.queue_anatomy import measures as m
from sojourn_papers.queue_anatomy.studies import LIMITS

STUDIES = (LIMITS,)
MEASURES = {
    "rtt_s": m.rtt_s,
    "p95_s": m.p95_s,
    "drops": m.drops,
    "retransmissions": m.retransmissions,
    "throughput_mbps": m.throughput_mbps,
}
