"""Judges the self-check's results: the time of an idle round trip, and the rate at which packets
leave a full link. `plan/known_traffic` makes the traffic.

Both are known beforehand. A guest that measures other results would also give wrong tables, so its
Run is marked invalid, with the reason.
"""

from collections.abc import Iterator

import numpy as np

from sojourn.engine.kernel.graph import rate_steps
from sojourn.engine.kernel.observed.archive import Archive, busy_share
from sojourn.engine.kernel.observed.archive import doubts as losses
from sojourn.engine.kernel.observed.links import carried
from sojourn.engine.kernel.observed.passage import Passage
from sojourn.engine.kernel.plan.known_traffic import OVERLOAD, PINGS, scenario
from sojourn.scenario.framing import wire_bytes
from sojourn.scenario.realised import Link, Realised

MOST_OFF = 0.02
"""Tolerance of the rate: over a tenth of a second, one packet more or less may be counted."""
MOST_BUSY = 0.5
"""Busy share of a processor above which the guest itself begins to delay packets (guests in which
computing takes virtual time)."""
LATE_NS = {"uml": 50_000, "qemu": 10**6, "host": 5 * 10**6}
"""How much longer than the link an idle round trip may be, ns. Where computing takes no virtual
time the tolerance is small."""
LEAST_WAITED = 0.25
"""Least share of the full part in which packets waited. With less the link was not full and its
rate can't be judged."""


def doubts(realised: Realised, measured: Archive, kind: str) -> Iterator[str]:
    """Faults of a guest of this kind that its self-check shows, each a sentence. `realised`: the
    scenario's."""
    check, archive = scenario(realised, kind == "host"), measured.check
    if archive is None:
        yield "self-check: it was not made"
        return
    yield from (f"self-check: {each}" for each in losses(archive))
    yield from _idle(check, archive, LATE_NS[kind])
    yield from _full(check, archive)
    busy = busy_share(archive)
    if kind == "qemu" and busy > MOST_BUSY:
        yield f"self-check: the guest's processor was {busy:.0%} busy, which delays packets"


def _idle(check: Realised, archive: Archive, late_ns: int) -> Iterator[str]:
    rows = archive.rows("probes", "flow", 0)
    back = rows["received_ns"] >= 0
    if back.sum() < PINGS // 2:
        yield f"self-check: of {PINGS} pings over an idle link {int(back.sum())} came back"
        return
    took = float(np.median((rows["received_ns"] - rows["sent_ns"])[back]))
    most = check.base_rtts_ns[0]
    assert most is not None, "the self-check's links run at one rate"
    # htb lets a single packet pass at once, so the time of its transmission is not part of the
    # least RTT.
    least = sum(link.delay_ns for link in check.links)
    if not least <= took <= most + late_ns:
        yield f"self-check: an idle round trip took {took / 1e6:.3f} ms and should take {most / 1e6:.3f} ms"


def _full(check: Realised, archive: Archive) -> Iterator[str]:
    link, passage = check.links[0], Passage.of(archive.tables["tap0"])
    slow, waited = slowness(link, passage, check.duration_ns)
    full = (check.flows[1].stop_ns or check.duration_ns) - check.flows[1].start_ns
    if waited < LEAST_WAITED * full:
        yield f"self-check: a link that is offered {OVERLOAD:.0%} of its rate had packets waiting for {waited / 1e6:.1f} ms of {full / 1e6:.1f}"
    # A shaper's burst passes at once, so a link with a shaper may seem too fast.
    elif slow > MOST_OFF or (slow < -MOST_OFF and link.shaper is None):
        how = "less" if slow > 0 else "more"
        yield f"self-check: a full link sent {abs(slow):.1%} {how} than its rate"


def slowness(link: Link, passage: Passage, end: int, offloads: bool = False) -> tuple[float, int]:
    """The share by which a link sent less than its rate while packets waited, and the total time in
    which packets waited, ns."""
    sent = np.flatnonzero(passage.left)
    sent = sent[np.argsort(passage.after[sent], kind="stable")]
    first, following = sent[:-1], sent[1:]
    # A packet that was queued when its predecessor left is next, as soon as that one has been sent.
    waited = (passage.before[following] <= passage.after[first]) & (passage.after[following] <= end)
    first, following = first[waited], following[waited]
    took = int((passage.after[following] - passage.after[first]).sum())
    if not took:
        return 0.0, 0
    needed = np.zeros(len(first))
    if link.rate:
        at, bps = np.array(rate_steps(link, end), dtype=np.int64).T
        rate = bps[np.maximum(np.searchsorted(at, passage.after[first], side="right") - 1, 0)]
        needed = carried(link.framing, passage.bytes[first], offloads) * 8e9 / rate
    if link.shaper:
        charged = wire_bytes(link.shaper, passage.bytes[first] + link.framing.header_bytes)
        needed = np.maximum(needed, charged * 8e9 / link.shaper.bps)
    return 1 - float(needed.sum()) / took, took
