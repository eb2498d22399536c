"""The self-check's traffic: a third of a second in the same guest, just before the scenario's.

The check repeats the scenario's fastest link between namespaces of its own, with a fifo. First the
link is idle and pings cross it. Then traffic of 1.2 times its rate arrives, so that it is never
idle. Both results are known beforehand; `observed/selfcheck` compares the measurements with them.

In virtual time the check costs some milliseconds of CPU, in real time a second.
"""

from sojourn.engine.kernel.graph import has_queue
from sojourn.scenario.qdisc import LinkLayer, Qdisc, Shaper
from sojourn.scenario.realised import Flow, Link, Ping, Realised, Udp
from sojourn.scenario.tcp import MTU

PINGS = 8
EVERY_NS = 10**7
IDLE_NS = 15 * 10**7
"""Length of the idle part: eight pings and their replies."""
FULL_NS = 10**8
"""Length of the full part. In real time it must be long enough to show a delayed program."""
LEAST_PACKETS = 20
MOST_PACKETS = 500
"""Most packets of the full part in virtual time, where programs are not delayed. There a datagram
costs as much as four packets of TCP."""
OVERLOAD = 1.2
BURSTS = 4
"""The full part lasts at least this many times as long as a shaper takes to send its burst at its
rate. So the shaper has no tokens for most of that part."""
LEAST_BPS, MOST_BPS, USUAL_BPS = 10**6, 10**9, 10**7
MOST_DELAY_NS = 2 * 10**7


def scenario(realised: Realised, real_time: bool) -> Realised:
    """Returns the check of a realised scenario, itself a realised scenario."""
    link, back = _links(realised)
    slower = _bps(link)
    packet_ns = MTU * 8 * 10**9 // slower
    full = max(
        FULL_NS if real_time else min(FULL_NS, MOST_PACKETS * packet_ns), LEAST_PACKETS * packet_ns
    )
    burst = link.shaper.burst_bytes if link.shaper else 0
    full = max(full, BURSTS * burst * 8 * 10**9 // slower)
    # A shaper's burst passes at once. The traffic is larger by the burst, so that as many packets
    # wait at the end as without a burst.
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
    """The scenario's fastest link with a queue, without its losses, rate steps and ring."""
    queued = [link for link in realised.links if has_queue(link) and link.sampled]
    if queued:
        link = max(queued, key=_bps)
        bps = max((step.bps for step in link.rate), default=0)
        rate = [(0, min(max(bps, LEAST_BPS), MOST_BPS))] if bps else []
        shaper = link.shaper and _shaper(link.shaper, rate[0][1] if rate else None)
        framing, delay_ns = link.framing, min(link.delay_ns, MOST_DELAY_NS)
    else:
        rate, shaper, framing, delay_ns = [(0, USUAL_BPS)], None, LinkLayer(0, 0), 0

    def copy(name: str, tail: str, head: str) -> Link:
        fifo = Qdisc.parse("pfifo limit 10000")
        return Link(
            *(name, tail, head),
            qdisc=fifo,
            framing=framing,
            rate=rate,
            delay_ns=delay_ns,
            shaper=shaper,
        )

    return copy("check", "near", "far"), copy("check-back", "far", "near")


def _shaper(shaper: Shaper, most: int | None) -> Shaper:
    """The shaper at a rate that suits the check, no faster than `most`."""
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
