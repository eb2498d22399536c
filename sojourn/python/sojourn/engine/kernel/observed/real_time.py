"""Detects delays of a run in real time, on this host's own kernel."""

from __future__ import annotations

import numpy as np

from sojourn.arrays import Ints
from sojourn.engine.kernel.graph import has_queue
from sojourn.engine.kernel.observed import selfcheck
from sojourn.engine.kernel.observed.archive import Archive
from sojourn.engine.kernel.observed.passage import Passage
from sojourn.scenario.realised import Realised

MOST_SLOW = 0.01
"""Tolerance of a link's rate while packets wait. A link that sends less has wrong queueing
times."""
LEAST_BUSY_NS = 10**8
"""Least waiting time for a judgement of the rate, ns."""
LATE_NS = 5 * 10**6
MOST_LATE = 0.02
"""The share of samples that may be later than `LATE_NS`. If more are late, the program's traffic is
late too and differs from the plan's."""


def doubts(realised: Realised, archive: Archive) -> list[str]:
    """Reasons why the run was delayed, each a sentence.

    A processor that other processes keep busy is not a reason by itself, because packets and this
    program usually have priority over them. Only the effects of a delay are checked.
    """
    found = []
    for number, tap in enumerate(archive.index["taps"]):
        link = realised.links[tap["link"]]
        if has_queue(link):
            passage = Passage.of(archive.tables[f"tap{number}"])
            slow, waited = selfcheck.slowness(
                link, passage, realised.duration_ns, realised.offloads
            )
            if slow > MOST_SLOW and waited >= LEAST_BUSY_NS and not link.qdisc.shapes:
                found.append(
                    f"link {link.name!r} sent {slow:.1%} less than its rate while packets waited"
                )
    late, due = lateness(
        archive.tables["device"]["t_ns"],
        int(realised.record.queue_ns),
        realised.duration_ns,
    )
    if late > max(1, MOST_LATE * due):
        found.append(
            f"{late} of {due} samples came more than {LATE_NS // 10**6} ms late or not at all"
        )
    return found


def lateness(times: Ints, interval: int, end: int) -> tuple[int, int]:
    """Of the samples due every `interval` before `end`, returns how many came late or never, and
    how many were due."""
    if not len(times) or interval <= 0:
        return 0, 0
    due = -(-end // interval)
    taken = np.unique(times[times < end])
    late = int((taken % interval > LATE_NS).sum())
    # A sample that comes when the next one is due already counts as the next one.
    return late + max(0, due - len(np.unique(taken // interval))), due
