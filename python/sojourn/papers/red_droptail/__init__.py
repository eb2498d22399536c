"""Reddy, Ahammed and Banu: RED against Drop-Tail in ns-2, at 45 Mbit/s, by throughput and fairness.

A dumbbell with N FTP flows, a bottleneck of 45 Mbit/s and delay Tp, access delays spread by D. Four tables: throughput
over N at Tp = 80 and 250 ms, Jain's index over D at Tp = 75 and 250 ms. The source says that RED is slightly better.

It states little else, so reading.py is the heart of this folder: a reading found by search under which both kinds of
table come near, with ns-2 itself as a witness; and what then explains RED's lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Bar, Paper
from sojourn.papers.red_droptail.cases import DROP_TAIL, RED, STUDIES, cell
from sojourn.papers.red_droptail.claims import CLAIMS
from sojourn.papers.red_droptail.figures import PICTURES
from sojourn.papers.red_droptail.measures import sojourn_ms, throughput_mbps
from sojourn.papers.red_droptail.published import NUMBERS
from sojourn.papers.red_droptail.reading import READINGS


def story(evidence: Evidence) -> Sequence[Bar]:
    """32 flows past their start: the source measures no delay, but this is where the two disciplines part."""
    tail, red = cell(80, 32, DROP_TAIL), cell(80, 32, RED)
    sojourn = {name: evidence.mean("steady", name, sojourn_ms) for name in (tail, red)}
    carried = {name: evidence.mean("steady", name, throughput_mbps) for name in (tail, red)}
    return [
        Bar("Drop-Tail, 300 packets", sojourn[tail], "bloated"),
        Bar("adaptive RED", sojourn[red], "cured", f"{carried[red]:.1f} for {carried[tail]:.1f} Mbit/s"),
    ]


PAPER = Paper(
    id="red-droptail",
    title="Performance Comparison of Active Queue Management Techniques",
    source="T. Bhaskar Reddy, Ali Ahammed, Reshma Banu, S.K. University, Anantapur",
    about=(
        "N FTP flows share a bottleneck of 45 Mbit/s in ns-2, under RED and under Drop-Tail: throughput over N and Jain's fairness over a spread of "
        "delays. The authors find RED slightly better in both. Almost no parameter is stated, and no run past its start gives the published throughputs: "
        "here they are read as runs of 3.5 s, a reading found by search and checked in ns-2."
    ),
    folder=Path(__file__).parent,
    studies=STUDIES,
    numbers=NUMBERS,
    claims=CLAIMS,
    readings=READINGS,
    pictures=PICTURES,
    story=story,
    story_axis="mean sojourn",
)
