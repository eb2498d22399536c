"""The anatomy of a Linux host's queue: a qdisc above the driver's ring, and which of the two makes the delay.

Thirty copies of 32 MB through a router and a ping beside, over the sizes of both queues, without and with byte queue limits.
The source states few numbers, and they contradict each other under the FIFO that it describes; `reading` has the
two readings that are run side by side, `claims` what holds under which.
"""

from collections.abc import Sequence
from pathlib import Path

from sojourn.papers.evidence import Evidence
from sojourn.papers.paper import Bar, Paper, Study
from sojourn.papers.queue_anatomy import measures as m
from sojourn.papers.queue_anatomy import reading
from sojourn.papers.queue_anatomy.claims import CLAIMS
from sojourn.papers.queue_anatomy.figures import PICTURES
from sojourn.papers.queue_anatomy.published import NUMBERS
from sojourn.papers.queue_anatomy.reading import name


def _story(evidence: Evidence) -> Sequence[Bar]:
    default = evidence.mean("ring", name("bands", 512, 1000), m.throughput_mbps)

    def cost(variant: str) -> str:
        return f"{evidence.mean('cure', variant, m.throughput_mbps):.2f} Mbit/s for {default:.2f}"

    return (
        Bar("ring 4096, qdisc 1000", evidence.mean("ring", name("bands", 4096, 1000), m.rtt_ms), "bloated"),
        Bar(
            "defaults: ring 512, qdisc 1000",
            evidence.mean("ring", name("bands", 512, 1000), m.rtt_ms),
            "bloated",
        ),
        Bar(
            "ring 4096 with BQL, CoDel",
            evidence.mean("cure", "codel BQL", m.rtt_ms),
            "cured",
            cost("codel BQL"),
        ),
        Bar(
            "ring 4096 with BQL, pfifo_fast",
            evidence.mean("cure", "bands BQL", m.rtt_ms),
            "cured",
            cost("bands BQL"),
        ),
    )


_SHORT = {"duration": "1600 s", "flow.0.size": "16 MiB"}
"""Quick: files of half the size."""
_KERNEL_SEEDS = 2
"""Seeds differ in when the copies start, within a second of half an hour."""

STUDIES = (
    Study(
        "ring", "The ring's size, qdisc 1000 (section 4.1, figure 3)", "testbed.toml",
        variants=reading.RING, seeds=10, quick=_SHORT, quick_variants=reading.RING_QUICK, kernel_variants=reading.RING_KERNEL, kernel_seeds=_KERNEL_SEEDS,
    ),
    Study(
        "qdisc", "The qdisc's size, ring 512 (section 4.2, figure 4)", "testbed.toml",
        variants=reading.QDISC_SIZES, seeds=10, quick=_SHORT, quick_variants=reading.QDISC_QUICK, kernel_variants=reading.QDISC_KERNEL, kernel_seeds=_KERNEL_SEEDS,
    ),
    Study(
        "surface", "Both sizes (section 4.3, figures 5 and 6), but for the default ring", "testbed.toml",
        variants=reading.SURFACE, quick=_SHORT, quick_variants=reading.SURFACE_QUICK,
    ),
    # Windows open with what arrives, so the whole files, quick or not.
    Study("window", "The advertised window (section 4.4, figure 7)", "testbed.toml", variants=reading.WINDOW),
    Study(
        "bql", "5000 packets in ring and qdisc, without and with BQL (section 4.5, figures 8 and 9)", "testbed.toml",
        variants=reading.BQL, seeds=10, quick=_SHORT, quick_variants=reading.BQL_QUICK, kernel_variants=reading.BQL_KERNEL, kernel_seeds=_KERNEL_SEEDS,
    ),
    Study(
        "cure", "Disciplines over a ring of 4096, without and with BQL (section 4.5)", "testbed.toml",
        variants=reading.CURE, quick=_SHORT, kernel_variants=reading.CURE_KERNEL, kernel_seeds=_KERNEL_SEEDS,
    ),
    Study(
        "coexistence", "LEDBAT and Vegas beside CUBIC (section 5)", "coexistence.toml",
        variants=reading.COEXISTENCE, quick={"duration": "200 s"},
    ),
    Study(
        "narrow", "Windows of at most 64 kB: when drops vanish above a qdisc of 512", "testbed.toml",
        variants=reading.NARROW_QDISCS, quick=_SHORT, quick_variants=reading.NARROW_QUICK,
    ),
    Study("rates", "Other rates", "testbed.toml", variants=reading.RATES, quick=_SHORT, quick_variants=reading.RATES_QUICK),
    Study("stick", "D with one interface for everything", "stick.toml", variants=reading.STICK, quick=_SHORT),
    Study("others", "The other readings", "testbed.toml", variants=reading.OTHERS, quick=_SHORT, quick_variants=reading.OTHERS_QUICK),
)  # fmt: skip

PAPER = Paper(
    id="queue-anatomy",
    title="A systematic analysis of bufferbloat: the qdisc and the ring",
    source="Cardozo, Vieira, Ziviani and Silva, LNCC, UFJF and UFMG; in Portuguese",
    about="Five Linux machines, one of them the router, whose qdisc and driver's ring were varied under thirty downloads. They found seconds of delay "
    "with a large ring, hardly any influence of the qdisc, and nearly no delay with byte queue limits. The rate is not stated and the numbers "
    "contradict each other under a FIFO; they mostly agree if pings pass the files in the qdisc. That reading is judged, the FIFO stands beside it.",
    folder=Path(__file__).parent,
    studies=STUDIES,
    numbers=NUMBERS,
    claims=CLAIMS,
    readings=reading.READINGS,
    pictures=PICTURES,
    story=_story,
    story_axis="mean ping RTT",
)
