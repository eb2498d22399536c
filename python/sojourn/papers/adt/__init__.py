"""Stanojevic, Shorten and Kellett 2006: Active Drop-Tail, and what it costs.

A drop-tail queue that looks for its smallest sufficient limit: while the link is busier than wanted (99 %) the limit shrinks
by a hundredth per 0.3 s, else it grows. The letter shows it with ns-2 beside Drop-Tail and Adaptive RED: one table and four
figures, of which the table, three sentences with numbers and a formula are left in the text.

    *.toml          its five experiments, and one for comment 1
    published.py    its numbers, with where each stands and what counts as the same
    measures.py     the table's columns; q_adt over time
    reading.py      the studies, what the text leaves open, and what other readings give
    claims.py       its sentences as checks
    figures.py      its figures 1 to 4, and the mean that depends on the length of the run
"""

from __future__ import annotations

from pathlib import Path

from sojourn.papers.adt import measures as m
from sojourn.papers.adt.claims import CLAIMS
from sojourn.papers.adt.figures import PICTURES
from sojourn.papers.adt.published import NUMBERS
from sojourn.papers.adt.reading import READINGS, STUDIES
from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Bar, Paper


def _story(evidence: Evidence) -> list[Bar]:
    full = evidence.mean("table", "Drop-Tail", m.settled_utilisation)
    bars = [Bar("Drop-Tail, 500 packets", evidence.mean("table", "Drop-Tail", m.settled_delay_ms), "bloated")]
    for name, label in (("Adaptive RED", "Adaptive RED"), ("ADT", "Active Drop-Tail, settled")):
        busy = evidence.mean("table", name, m.settled_utilisation)
        delay = evidence.mean("table", name, m.settled_delay_ms)
        bars.append(Bar(label, delay, "cured", f"{busy:.1f} % of the link for {full:.1f} %"))
    return bars


PAPER = Paper(
    id="adt",
    title="Adaptive Tuning of Drop-Tail Buffers for Reducing Queueing Delays",
    source="Stanojević, Shorten and Kellett, IEEE Communications Letters 10(7), 2006",
    about=(
        "Active Drop-Tail is a drop-tail queue whose limit follows the link's utilisation: a little shorter while the link is busier than "
        "99 %, a little longer while it is not. In ns-2, with up to 2000 TCP users at 200 Mbit/s, it held 99 % with a third of the "
        "queueing delay of Adaptive RED and a quarter of that of Drop-Tail."
    ),
    folder=Path(__file__).parent,
    studies=STUDIES,
    numbers=NUMBERS,
    claims=CLAIMS,
    readings=READINGS,
    pictures=PICTURES,
    story=_story,
    story_axis="mean queueing delay",
)
