"""The search for TCP and access links of the long flows. It runs the table's row of 100 flows under
each pair.

sojourn reproduce --search buffer-sizing > searched.csv

No verdict uses the seeds of this search. The pair is chosen that is nearest to that row's simulated
values (in squared points), so that 200 to 400 flows can contradict it.
"""

from __future__ import annotations

from sojourn_papers.buffer_sizing import measures as m
from sojourn_papers.buffer_sizing.studies import SEARCH

STUDIES = (SEARCH,)
MEASURES = {"utilisation": m.utilisation, "loss": m.loss}
