"""The search for the limit of the servers' windows: each limit at the sizes that tell, with both ways
to take a timer, and at other rates.

sojourn reproduce --search queue-anatomy > searched.csv

It runs on seeds that judge nothing.
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
