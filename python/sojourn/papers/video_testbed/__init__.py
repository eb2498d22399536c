"""RTP video over a Linux router that shapes: Drop Tail, RED and CoDel, three bottlenecks, a hundred pings each.

A testbed of three hosts: latency, throughput and loss by three equations (`measures`), two full tables (`published`) and three
pictures whose values for CoDel are lost. What it leaves open, nearly everything but the rates, is read from its own
numbers (`reading`); the studies it cites and its future work are sweeps (`sweeps`).
"""

from collections.abc import Sequence
from pathlib import Path

from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Bar, Paper, Study
from sojourn.papers.video_testbed import measures as m
from sojourn.papers.video_testbed import reading, sweeps
from sojourn.papers.video_testbed.claims import CLAIMS
from sojourn.papers.video_testbed.figures import PICTURES
from sojourn.papers.video_testbed.published import NUMBERS


def _story(evidence: Evidence) -> Sequence[Bar]:
    plain = "250 limit 1000"
    full = evidence.mean("testbed", "250 Drop Tail", m.throughput_kbps)

    def cost(study: str, variant: str) -> str:
        return f"{evidence.mean(study, variant, m.throughput_kbps):.0f} kbit/s for {full:.0f}"

    return (
        Bar("no bottleneck", evidence.mean("unshaped", "1", m.mean_ms), "idle"),
        Bar("Drop Tail, 2 Mbit/s", evidence.mean("testbed", "250 Drop Tail", m.mean_ms), "bloated"),
        Bar("RED", evidence.mean("testbed", "250 RED", m.mean_ms), "cured", cost("testbed", "250 RED")),
        Bar("CoDel, tc's defaults", evidence.mean("codel", plain, m.mean_ms), "cured", cost("codel", plain)),
        Bar("CoDel, limit 3", evidence.mean("testbed", "250 CoDel", m.mean_ms), "cured", cost("testbed", "250 CoDel")),
    )  # fmt: skip


STUDIES = (
    Study(
        "unshaped", "Without a bottleneck, three tries (section 4.1)", "testbed.toml",
        variants={attempt: reading.unshaped(rate) for attempt, rate in reading.UNSHAPED.items()}, kernel_variants=None,
    ),
    Study(
        "testbed", "Three bottlenecks, three disciplines (section 4.2)", "testbed.toml",
        variants=reading.TESTBED, seeds=10, kernel_variants=None, kernel_seeds=10,
    ),
    Study(
        "codel", "CoDel with other limits, tc's default among them", "testbed.toml",
        variants=reading.CODELS, quick_variants=tuple(f"{kbps} limit 1000" for kbps in reading.BOTTLENECKS),
        kernel_variants=tuple(f"{kbps} limit 1000" for kbps in reading.BOTTLENECKS),
    ),
    Study("others", "The other readings", "testbed.toml", variants=reading.OTHERS, quick_variants=reading.OTHERS_QUICK),
    Study(
        "cited", "The cited studies: bottlenecks from 64 kbit/s up (section 2.4)", "cited.toml",
        variants=sweeps.CITED, quick={"duration": "50 s"}, quick_variants=sweeps.CITED_QUICK,
    ),
    Study(
        "future", "CoDel's target, limit and interval at 250 kbps (section V)", "testbed.toml",
        variants=sweeps.FUTURE, quick_variants=sweeps.FUTURE_QUICK,
    ),
    Study(
        "overload", "CoDel and a constant overload", "overload.toml",
        variants=sweeps.OVERLOAD, quick={"duration": "12 s"}, quick_variants=sweeps.OVERLOAD_QUICK,
    ),
)  # fmt: skip

PAPER = Paper(
    id="video-testbed",
    title="Drop Tail, RED and CoDel against bufferbloat, tested with streamed video",
    source="Indonesian testbed study of RTP video; cites Ahammed and Banu 2010, Patil and McClean 2011, Kumar and Kumar 2013, Sharma 2014, Chung and Claypool",
    about="A Linux router between a streaming server and a client is shaped to 2, 1.6 and 1.2 Mbit/s, less than the video. Drop Tail kept "
    "seconds of it in the queue, RED tenths; CoDel had the least latency and, they found, the least throughput.",
    folder=Path(__file__).parent,
    studies=STUDIES,
    numbers=NUMBERS,
    claims=CLAIMS,
    readings=reading.READINGS,
    pictures=PICTURES,
    story=_story,
    story_axis="mean latency of pings",
)
