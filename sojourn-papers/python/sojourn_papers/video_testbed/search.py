"""The search for the length of the senders' bursts: each rate of the senders under Drop Tail and
RED.

sojourn reproduce --search video-testbed > searched.csv

No verdict uses the seeds of this search. The chosen rate's ten films give another reading of the
tables: their three best films.
"""

from __future__ import annotations

from sojourn_papers import searched
from sojourn_papers.evidence import Estimate, estimated
from sojourn_papers.video_testbed import measures as m
from sojourn_papers.video_testbed.studies import BOTTLENECKS, BURSTS, WIRE, burst

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
BEST = 3


def by_number() -> dict[str, dict[str, Estimate]]:
    """The mean over the three films with the least mean latency, for each of the tables' numbers,
    by the number's id."""
    films: dict[str, list[searched.Row]] = {}
    for row in searched.beside(__file__).rows:
        films.setdefault(row["variant"], []).append(row)
    found = {}
    for name in ("Drop Tail", "RED"):
        for kbps in BOTTLENECKS:
            ten = films[burst(name, kbps, WIRE)]
            best = sorted(ten, key=lambda row: float(row["mean_ms"]))[:BEST]
            for column, at in _COLUMNS.items():
                found[f"{name}/{kbps}/{at}"] = estimated(float(row[column]) for row in best)
    return {"three best of ten films": found}


_COLUMNS = {
    "least_ms": "least",
    "most_ms": "most",
    "mean_ms": "mean",
    "throughput_kbps": "throughput",
    "received_pings": "received",
    "ping_loss_percent": "lost",
}
"""Columns of the search, and their names in the tables' numbers."""
