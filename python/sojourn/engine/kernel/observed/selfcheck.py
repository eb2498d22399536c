"""The self-check: a third of a second of known traffic, in the same guest, just before the
scenario's traffic.

The scenario's fastest link is made once more between namespaces of its own, with a fifo. First it
is idle and pings cross it. Then it is offered a fifth more than it carries, so that it is never
idle. Both results are known beforehand: the time of an idle round trip, and the rate at which
packets leave. A guest with other results would also give wrong tables, so its Run is marked
invalid, with the reason.

In virtual time the check costs some milliseconds of CPU, in real time a second.
"""

from collections.abc import Iterator

import numpy as np

from sojourn.engine.kernel.graph import has_queue, rate_steps
from sojourn.engine.kernel.observed.archive import Archive, busy_share
from sojourn.engine.kernel.observed.archive import doubts as losses
from sojourn.engine.kernel.observed.links import carried, wire_bytes
from sojourn.engine.kernel.observed.passage import Passage
from sojourn.scenario.qdisc import LinkLayer, Qdisc, Shaper
from sojourn.scenario.realised import Flow, Link, Ping, Realised, Udp
from sojourn.scenario.tcp import MTU

PINGS = 8
EVERY_NS = 10**7
IDLE_NS = 15 * 10**7
"""Length of the idle part: eight pings and their replies."""
FULL_NS = 10**8
"""Length of the full part. In real time it has to be long enough to show a program that is held
up."""
LEAST_PACKETS = 20
MOST_PACKETS = 500
"""Most packets of the full part in virtual time, where no program is held up. A datagram costs as
much there as four packets of TCP."""
OVERLOAD = 1.2
BURSTS = 4
"""The full part lasts at least this many times what a shaper's burst takes at its rate, so that the
shaper is without tokens for most of it."""
LEAST_BPS, MOST_BPS, USUAL_BPS = 10**6, 10**9, 10**7
MOST_DELAY_NS = 2 * 10**7
MOST_OFF = 0.02
"""Tolerance of the rate. In a tenth of a second one packet more or less is counted."""
MOST_BUSY = 0.5
"""Busy share of a processor above which the guest itself begins to delay packets (guests in which
computing takes virtual time)."""
LATE_NS = {"uml": 50_000, "qemu": 10**6, "host": 5 * 10**6}
"""How much longer than the link an idle round trip may be, ns. Where computing takes no virtual
time the tolerance is small."""
LEAST_WAITED = 0.25
"""Least share of the full part in which packets waited. With less the link was not full and its
rate can't be judged."""


def scenario(realised: Realised, real_time: bool) -> Realised:
    """The check of a realised scenario, itself a realised scenario."""
    link, back = _links(realised)
    slower = _bps(link)
    packet_ns = MTU * 8 * 10**9 // slower
    full = max(
        FULL_NS if real_time else min(FULL_NS, MOST_PACKETS * packet_ns), LEAST_PACKETS * packet_ns
    )
    burst = link.shaper.burst_bytes if link.shaper else 0
    full = max(full, BURSTS * burst * 8 * 10**9 // slower)
    # The burst passes at once. It is offered in addition, so that as many packets wait at the end
    # as without one.
    flood = Udp(round(OVERLOAD * slower + burst * 8e9 / full), MTU)
    return Realised(
        duration_ns=IDLE_NS + 2 * full,
        seed=realised.seed,
        links=[link, back],
        flows=[
            _flow("idle", 0, 0, PINGS * EVERY_NS, Ping(EVERY_NS, 84)),
            _flow("full", 1, IDLE_NS, IDLE_NS + full, flood),
        ],
        queue_ns=IDLE_NS,
        flow_ns=0,
    )


def _links(realised: Realised) -> tuple[Link, Link]:
    """The scenario's fastest link with a queue, without what is drawn or changes: losses, rate
    steps, ring."""
    queued = [link for link in realised.links if has_queue(link) and link.sampled]
    if queued:
        link = max(queued, key=_bps)
        bps = max((step.bps for step in link.rate), default=0)
        rate = [(0, min(max(bps, LEAST_BPS), MOST_BPS))] if bps else []
        shaper = link.shaper and _shaper(link.shaper, rate[0][1] if rate else None)
        framing, delay_ns = link.framing, min(link.delay_ns, MOST_DELAY_NS)
    else:
        rate, shaper, framing, delay_ns = [(0, USUAL_BPS)], None, LinkLayer(0, 0), 0

    def made(name: str, tail: str, head: str) -> Link:
        fifo = Qdisc.parse("pfifo limit 10000")
        return Link(
            *(name, tail, head),
            qdisc=fifo,
            framing=framing,
            rate=rate,
            delay_ns=delay_ns,
            shaper=shaper,
        )

    return made("check", "near", "far"), made("check-back", "far", "near")


def _shaper(shaper: Shaper, most: int | None) -> Shaper:
    """The same at a rate that the check can do with, no faster than `most`."""
    bps = max(shaper.bps, LEAST_BPS)
    return Shaper(
        bps if most is None else min(bps, most),
        shaper.burst_bytes,
        shaper.overhead_bytes,
        shaper.minimum_bytes,
        shaper.cells,
    )


def _bps(link: Link) -> int:
    rates = [max(step.bps for step in link.rate)] if link.rate else []
    return min([*rates, *([link.shaper.bps] if link.shaper else [])])


def _flow(name: str, group: int, start: int, stop: int, traffic: Ping | Udp) -> Flow:
    return Flow(
        f"check/{name}",
        traffic,
        group=group,
        path=[0],
        back=[1],
        start_ns=start,
        stop_ns=stop,
    )


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
    # htb lets a single packet pass at once, without the time of its transmission.
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
    """By which share a link sent less than its rate while packets waited, and for how long they
    waited, ns."""
    sent = np.flatnonzero(passage.left)
    sent = sent[np.argsort(passage.after[sent], kind="stable")]
    one, following = sent[:-1], sent[1:]
    # A packet that already waits when its predecessor leaves is next as soon as that one has been
    # sent.
    waited = (passage.before[following] <= passage.after[one]) & (passage.after[following] <= end)
    one, following = one[waited], following[waited]
    took = int((passage.after[following] - passage.after[one]).sum())
    if not took:
        return 0.0, 0
    needed = np.zeros(len(one))
    if link.rate:
        at, bps = np.array(rate_steps(link, end), dtype=np.int64).T
        rate = bps[np.maximum(np.searchsorted(at, passage.after[one], side="right") - 1, 0)]
        needed = carried(link.framing, passage.bytes[one], offloads) * 8e9 / rate
    if link.shaper:
        charged = wire_bytes(link.shaper, passage.bytes[one] + link.framing.header_bytes)
        needed = np.maximum(needed, charged * 8e9 / link.shaper.bps)
    return 1 - float(needed.sum()) / took, took
