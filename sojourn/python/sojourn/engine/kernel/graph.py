"""How a kernel implements a realised scenario's links."""

from collections.abc import Sequence
from typing import TypeVar

from sojourn.linux import tc
from sojourn.scenario.realised import Flow, Link, SteppedLoss

_Number = TypeVar("_Number", int, float)


def has_queue(link: Link) -> bool:
    """Whether packets can queue at the link."""
    return bool(link.rate) or link.shaper is not None


def transmitter(link: Link, bps: int | None = None) -> tc.Transmitter | None:
    """The parameters of htb, which limits the rate if no driver does; None if the link has no rate.
    `bps`: a rate other than the link's first one."""
    if not link.rate:
        return None
    framing = link.framing
    rate = link.rate[0].bps if bps is None else bps
    return tc.Transmitter(rate, framing.overhead_bytes, framing.minimum_bytes, framing.cells)


def rate_steps(link: Link, duration_ns: int) -> list[tuple[int, int]]:
    """(from ns, bit/s) over the whole run, repetitions written out; empty without a rate."""
    steps = [(step.at_ns, step.bps) for step in link.rate]
    period = link.rate_period_ns if len(steps) > 1 else None
    return _written_out(steps, period, duration_ns)


def delay_steps(link: Link, duration_ns: int) -> list[tuple[int, int]]:
    """(from ns, ns of delay) over the whole run, repetitions written out; empty without steps."""
    wire = link.impairments
    if wire is None or len(wire.delay_steps) < 2:
        return []
    return _written_out(wire.delay_steps, wire.delay_period_ns, duration_ns)


def loss_steps(link: Link, duration_ns: int) -> list[tuple[int, float]]:
    """(from ns, probability of a loss) over the whole run, repetitions written out; empty without
    steps."""
    if not isinstance(link.loss, SteppedLoss):
        return []
    return _written_out(link.loss.steps, link.loss.period_ns, duration_ns)


def written_steps(link: Link, duration_ns: int) -> int:
    """How many steps a kernel gets at most: those that `rate_steps`, `delay_steps` and `loss_steps`
    write out, and those of the discipline."""
    wire = link.impairments
    delays = (len(wire.delay_steps), wire.delay_period_ns) if wire else (0, None)
    losses = link.loss if isinstance(link.loss, SteppedLoss) else None
    lossy = (len(losses.steps), losses.period_ns) if losses else (0, None)
    all_of_them = ((len(link.rate), link.rate_period_ns), delays, lossy)
    return len(link.qdisc_steps) + sum(
        steps * (-(-duration_ns // period) if period else 1)
        for steps, period in all_of_them
        if steps > 1
    )


def _written_out(
    steps: Sequence[tuple[int, _Number]], period_ns: int | None, duration_ns: int
) -> list[tuple[int, _Number]]:
    turns = range(0, duration_ns, period_ns) if period_ns else (0,)
    return [(turn + at, to) for turn in turns for at, to in steps if turn + at < duration_ns]


def needs_room(link: Link) -> bool:
    """Whether netem must follow the link's queue on a device of its own."""
    return has_queue(link) and bool(link.delay_ns or loses(link))


def loses(link: Link) -> bool:
    return link.loss is not None


def crossing_of(links: Sequence[Link], flows: Sequence[Flow]) -> list[list[tuple[int, bool]]]:
    """The directions of flows that cross each link: (flow, back)."""
    crossing: list[list[tuple[int, bool]]] = [[] for _ in links]
    for index, flow in enumerate(flows):
        for reverse, way in ((False, flow.path), (True, flow.back)):
            for link in way:
                crossing[link].append((index, reverse))
    return crossing
