"""The search for the buffers of the home line: one to four products of rate and RTT, under CoDel
and Tail Drop.

sojourn reproduce --search codel > searched.csv

No verdict uses the seeds of this search. The buffer that fits most of Tail Drop's numbers in the
table is chosen, so that CoDel's can contradict it."""

from __future__ import annotations

from sojourn_papers.codel import measures as m
from sojourn_papers.codel.studies import HOMES

STUDIES = (HOMES,)
MEASURES = {
    "down_loss": m.down_loss,
    "up_loss": m.up_loss,
    "down_median": m.down_median,
    "up_median": m.up_median,
    "down_volume": m.down_volume,
    "up_volume": m.up_volume,
    "down_fairness": m.down_fairness,
    "up_fairness": m.up_fairness,
}
