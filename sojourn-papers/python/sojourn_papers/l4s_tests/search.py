"""The search for the timing precision of the hosts of findings 3 and 4: packets leave up to 0, 0.1,
0.5 and 2 ms late.

sojourn reproduce --search l4s-tests > searched.csv

No verdict uses the seeds of this search. The value is chosen by two rates only: those of the flow
with the longer RTT in the short queue, beside the flow with the shorter one. So all other rates can
contradict it."""

from __future__ import annotations

from sojourn_papers.l4s_tests import measures as m
from sojourn_papers.l4s_tests.studies import LATENESS

STUDIES = (LATENESS,)
MEASURES = {"prague": m.prague_mbps, "other": m.other_mbps}
