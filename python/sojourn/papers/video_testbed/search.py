"""The search for the length of the senders' bursts: each rate of the senders under Drop Tail and RED.

sojourn reproduce --search video-testbed > searched.csv

It runs on seeds that judge nothing.
"""

from __future__ import annotations

from sojourn.papers.video_testbed import measures as m
from sojourn.papers.video_testbed.studies import BURSTS

STUDIES = (BURSTS,)
MEASURES = {
    "least_ms": m.least_ms,
    "most_ms": m.most_ms,
    "mean_ms": m.mean_ms,
    "throughput_kbps": m.throughput_kbps,
    "sent_pings": m.sent_pings,
    "received_pings": m.received_pings,
    "ping_loss_percent": m.ping_loss_percent,
}
