"""Whether something held up a run in real time, on this host's own kernel."""

from __future__ import annotations

import numpy as np

from sojourn.arrays import Ints
from sojourn.engine.kernel.graph import has_queue
from sojourn.engine.kernel.observed import selfcheck
from sojourn.engine.kernel.observed.archive import Archive
from sojourn.engine.kernel.observed.passage import Passage
from sojourn.scenario.realised import Realised

MOST_SLOW = 0.01
"""A link that had packets waiting and sent this much less than its rate gives a wrong picture of
its queue."""
LEAST_BUSY_NS = 10**8
"""Of waiting, before that can be told."""
LATE_NS = 5 * 10**6
MOST_LATE = 0.02
"""A program that is later than that more often than this makes another traffic than it is told
to."""


def doubts(realised: Realised, archive: Archive) -> list[str]:
    """Whether something held the run up; each reason a sentence.

    A processor that others keep busy is no doubt by itself: packets and this program go before
    them, as a rule. What is looked at is what would have come of it.
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
    """Of the samples that were due every `interval` before the end: how many came late or not at
    all, and how many were due."""
    if not len(times) or interval <= 0:
        return 0, 0
    due = -(-end // interval)
    taken = np.unique(times[times < end])
    late = int((taken % interval > LATE_NS).sum())
    # One that comes later than the next is due takes its place.
    return late + max(0, due - len(np.unique(taken // interval))), due
