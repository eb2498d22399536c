"""Compares, decision by decision, what a recorded queue did to each packet with what our link does
to the same packets.

A Recording has every packet that arrived at a link's queue, in order, and what the queue did to it.
`replayed` sends the same packets, at the same times, through the simulator's link. `compare`
compares what happened to each packet (sent, marked, dropped on arrival, dropped while it waited),
the order in which packets left, and the times.

Events of one instant have an order in the recording, and the replay follows it.

A packet agrees if both queues did the same to it, sent the same number of packets before it, and
let it go at the same time. Departures are recorded to the nanosecond. A kernel may be up to
`GRAIN_NS` later, because it does its work of one instant step by step. The kernel's trace has the
time of a drop to the microsecond.

Some disciplines draw random numbers. Where the law of our discipline leaves a choice to a draw, it
takes the result of the recorded draw. Every other decision is compared on its own. The draws are
compared in sum. The number of early drops and marks must match the sum of the probabilities that
our law computed at each arrival (`Draws`).

fq_codel and fq_pie hash flows into queues. Ours uses the kernel's hash of each packet, so flows
share a queue where they shared one in the kernel. The memory limit of fq_codel counts the memory
that the kernel charged for each packet. A recording of an older sojourn has neither. Then no flows
share a queue, and each packet takes as much memory as a datagram of its size.

The hashes of sfq and sfb have secret keys. In our sfq no flows share a queue. In the kernel's sfq
few flows share one, because there are 1024 buckets. With `headdrop`, sfq's RED drops or marks the
oldest packet of the flow that a packet arrives for. Our law then takes the recorded result of that
oldest packet (`_recorded_verdicts`). The key of sfb decides which flows share bins. So `_KEYS` keys
are tried, and the replay with the most agreeing packets counts.

cake draws whether a queue's turn is one byte shorter. If that byte decides whether the queue may
send, the packet that the recorded cake sent next may show the result of the draw
(`crates/qdisc/src/cake/follow.rs`). If no packet shows the result, the draw is invisible, and our
cake takes the likelier result. If a later packet then differs, the invisible draws before it are
inverted one at a time, the last first, until the packet agrees (`_searched`).

The kernel's timer of pie and fq_pie starts with the qdisc, at a jiffy that the recording does not
contain. So the replay is repeated with a start at each jiffy of a period, and the one with the most
agreeing packets counts (`_starts`). On a slow line several replays may agree completely; then the
one whose draws are most likely counts. The timer of dualpi2 is not bound to jiffies: 16 starts
within a period are tried, and then 31 around the best of them.

`engine/recording` is the recording and its file, `recorder` makes recordings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sojourn import _core
from sojourn.agreement.mechanisms import dated
from sojourn.arrays import Ints, Mask
from sojourn.engine.kernel.graph import rate_steps
from sojourn.engine.kernel.releases import version_in
from sojourn.engine.recording import (
    DROPPED,
    EARLY,
    HINT,
    MARKED,
    REFUSED,
    SENT,
    WAITS,
    Recording,
    Trace,
)
from sojourn.errors import UserError
from sojourn.outputs.output_shapes import ReplayedQueue
from sojourn.own import compiled
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.realised import Link

GRAIN_NS = 2000
"""Tolerance for recorded departures and drops that are later than ours, ns, while the link's rate
is constant."""
_TC_NS = 47_000
"""Virtual time that a guest's tc takes to change a discipline, ns. The first packet that a change
drops is freed 45 to 49 us after the step."""
_FREED_NS = 15_000
"""Tolerance for the drops of a change, ns: the kernel frees the packets one after the other, 0.2 us
each."""
_DROP_NS = 1000
"""Tolerance between a drop and the arrival of the packet that caused it, ns."""
_PHASE_NS = 16_000_000
"""A common multiple of two ticks of Linux: CoDel's (1024 ns) and that of its byte queue limits (4
ms). A recording fixes the phase of time 0 within these ticks."""
_JIFFY_NS = 4_000_000
_S = 1_000_000_000
_PI2_PHASES = 16
"""Starts of dualpi2's timer that are tried: a millisecond apart by default."""
_PI2_TUPDATE_NS = 16_000_000
_LEAD_NS = 1_024_000_000
"""Time before the first packet, in which the timers of disciplines have expired."""
_AGE_NS = 10 * _LEAD_NS
"""sfb adds tokens for at most 10 s. The sfb of a guest is seconds old when the first packet
arrives."""
_KEYS = 32
"""Keys of sfb's hash that are tried."""
_YOUNG = 16
"""A new dropping state of CoDel resumes the old count for this many intervals after the last drop.
Linux's clock begins near 0, and a new CoDel has 0 as the time of its last drop. So a kernel that
has just booted resumes a count although there was no dropping state before."""
_TURNED = 64
"""The search inverts at most this many invisible draws of cake before a packet that differs."""
DID = ("sent it", "marked it", "dropped it on arrival", "dropped it", "kept it")


# -------------------------------------------------------------------------------------- replaying


@dataclass(frozen=True)
class Replayed:
    """What our link does to a recording's packets; columns of one length."""

    fate: Ints
    left_ns: Ints
    order: Ints
    cause: Ints
    """Cause of a drop or mark, in the order of `_core.CAUSES`; -1: neither."""
    backlog_packets: Ints
    """Packets queued when it arrived."""
    state: NDArray[np.float64]
    """A number of the discipline's state: its average when the packet arrived (RED: bytes), or its
    probability if it has no average, or CoDel's count when the packet left; NaN if it has none of
    these."""
    chance: NDArray[np.float64]
    """The probability that a discipline with draws drops or marks the packet, given the decisions
    on all packets before it; NaN elsewhere."""
    drew: Mask
    """Whether the recorded queue dropped or marked it by a draw."""
    unseen: Ints
    """For each invisible draw of cake, the number of packets sent before it."""


def replayed(recording: Recording) -> Replayed:
    """Sends a recording's packets through the simulator's link.

    Raises:
        UserError: the link or the packets are inconsistent, or the recording lacks an input of its
            discipline.
    """
    if (why := lacking(recording)) is not None:
        raise UserError(f"{recording.name}: {why[0]}", why[1])
    release = "{}.{}".format(*version_in(recording.version))
    recording = recording.by(dated(recording.link.qdisc, release))
    keys = _KEYS if recording.link.qdisc.kind == "sfb" else 1

    def best(starts: Sequence[int]) -> tuple[int, Replayed]:
        tried = [
            (phase, _started(replace(recording, seed=recording.seed + key), phase))
            for phase, key in product(starts, range(keys))
        ]
        return max(
            tried,
            key=lambda one: (int(_same(recording, one[1]).sum()), _likelihood(recording, one[1])),
        )

    if recording.link.qdisc.kind == "cake":
        return _searched(recording)
    start, replay = best(_starts(recording))
    if recording.link.qdisc.kind == "dualpi2":
        part = _pi2_part(recording)
        _, replay = best(
            [start + part * step // _PI2_PHASES for step in range(1 - _PI2_PHASES, _PI2_PHASES)]
        )
    return replay


_BY_FLOW = ("flows", "flowblind")
"""cake's options for sharing without regard to hosts."""
_NEVER_RECORDED = {
    "choke": "choke compares a packet with one that it draws, and no recording contains that draw",
    "cake_mq": "a queue of cake_mq depends on how busy the others are, and no recording contains the times at which it checks",
}


def lacking(recording: Recording) -> tuple[str, str] | None:
    """Which input of the discipline this recording lacks, and what to do about it; None: it has
    every input."""
    why = never_recorded(recording.link.qdisc)
    if why is not None:
        return why
    qdisc = recording.link.qdisc.child or recording.link.qdisc
    by_host = qdisc.kind == "cake" and qdisc.params["isolation"] not in _BY_FLOW
    if by_host and (recording.trace.source is None or recording.trace.destination is None):
        why_not = "cake shares among hosts, and this recording of an older sojourn has none"
        return why_not, "record it again, or as cake flows"
    return None


def never_recorded(qdisc: Qdisc) -> tuple[str, str] | None:
    """Which input of this discipline no recording has, and what to do about it; None: there is no
    such input."""
    its = qdisc.child or qdisc
    if its.kind in _NEVER_RECORDED:
        return _NEVER_RECORDED[its.kind], "compare its numbers with the kernel's: sojourn agree"
    if its.kind == "cake" and its.params["acks"] not in (None, "no-ack-filter"):
        why = f"cake's {its.params['acks']} reads ACKs, which no recording has"
        return why, "leave it out, or compare its numbers with the kernel's: sojourn agree"
    return None


def _searched(recording: Recording) -> Replayed:
    """For cake: inverts invisible draws until all packets agree, or until no draw moves the first
    difference to a later packet."""
    (start,) = _starts(recording)
    unlikely: list[int] = []
    found = _started(recording, start)
    agreed = _agreed(recording, found)
    while agreed < len(recording.trace):
        before = np.flatnonzero(found.unseen <= agreed)[::-1]
        for draw in before[:_TURNED]:
            turned = sorted({*unlikely} ^ {int(draw)})
            other = _started(recording, start, turned)
            longer = _agreed(recording, other)
            if longer > agreed:
                unlikely, found, agreed = turned, other, longer
                break
        else:
            return found
    return found


def _agreed(recording: Recording, ours: Replayed) -> int:
    """The number of packets sent before the first that differs; if all agree, the number of
    packets."""
    wrong = ~_same(recording, ours)
    orders = np.concatenate([side.order[wrong] for side in (recording.trace, ours)])
    return int(orders[orders >= 0].min(initial=len(recording.trace)))


def _starts(recording: Recording) -> list[int]:
    """The possible starts of our clock, ns before the recording's time 0."""
    phase = recording.zero_ns % _PHASE_NS
    qdisc = recording.link.qdisc.child or recording.link.qdisc
    if qdisc.kind == "sfq" and (perturb := qdisc.params["perturb"]):
        assert isinstance(perturb, int)
        period = _expiry(perturb * _S // _JIFFY_NS)
    elif qdisc.kind in ("pie", "fq_pie"):
        tupdate_ns = qdisc.params["tupdate_ns"]
        assert isinstance(tupdate_ns, int)
        period = _expiry(-(-tupdate_ns // _JIFFY_NS))
    elif qdisc.kind == "dualpi2":
        part = _pi2_part(recording)
        return [phase + _LEAD_NS + part * number for number in range(_PI2_PHASES)]
    elif qdisc.kind == "sfb":
        return [phase + _AGE_NS]
    else:
        return [phase]
    return [phase + _LEAD_NS + jiffy * _JIFFY_NS for jiffy in range(period)]


def _pi2_part(recording: Recording) -> int:
    """The distance between the first `_PI2_PHASES` starts of dualpi2's timer, ns."""
    tupdate_ns = recording.link.qdisc.params["tupdate_ns"] or _PI2_TUPDATE_NS
    assert isinstance(tupdate_ns, int)
    return max(tupdate_ns // _PI2_PHASES, 1)


def _expiry(jiffies: int) -> int:
    """The jiffies between two expiries of a kernel timer that each expiry sets again for
    `jiffies`."""
    step = 1
    while jiffies >= 63 * step:
        step *= 8
    return (jiffies // step + 1) * step


def _started(recording: Recording, phase: int, unlikely: Sequence[int] = ()) -> Replayed:
    trace = recording.trace
    verdicts = _recorded_verdicts(recording)
    try:
        found = _core.replay(
            _later(recording, phase),
            recording.seed,
            trace.t_ns + phase,
            trace.flow,
            trace.bytes,
            trace.ds,
            trace.after,
            verdicts,
            trace.hash,
            trace.truesize,
            trace.order,
            trace.source,
            trace.destination,
            unlikely,
            compiled.code_of([recording.link]),
        )
    except _core.OwnCodeError as error:
        raise compiled.failed(error, [recording.link]) from None
    except ValueError as error:
        raise UserError(f"{recording.name}: can't be replayed: {error}", HINT) from None
    left = np.where(found["t_ns"] >= 0, found["t_ns"] - phase, -1)
    fate = np.select(
        [left < 0, found["refused"] != 0, found["dropped"] >= 0, found["marked"] >= 0],
        [WAITS, REFUSED, DROPPED, MARKED],
        SENT,
    )
    return Replayed(
        fate=fate,
        # A refused packet leaves on arrival; in the replay, before a packet that the kernel sent
        # later.
        left_ns=np.where(fate == REFUSED, np.minimum(trace.t_ns, left), left),
        order=_sent_before(fate, found["order"]),
        cause=np.maximum(found["dropped"], found["marked"]),
        backlog_packets=found["backlog_packets"],
        state=found["state"],
        chance=found["chance"],
        drew=np.where(found["drew"] < 0, np.isin(verdicts, EARLY), found["drew"] == 1),
        unseen=found["unseen"],
    )


def _recorded_verdicts(recording: Recording) -> Ints:
    """The verdict that each packet's arrival caused: on the packet itself or, for sfq's RED with
    `headdrop`, on the oldest packet of its flow. An arrival at the time of a drop caused the drop.
    Any arrival while a packet was the oldest may have caused that packet's mark; the last of them
    is taken."""
    trace, params = recording.trace, recording.link.qdisc.params
    if recording.link.qdisc_steps and recording.link.qdisc.record.drops_at == "arrival":
        # It draws on arrival only. Those that had waited were dropped by a step.
        return np.where(trace.fate == DROPPED, SENT, trace.fate)
    if not (recording.link.qdisc.kind == "sfq" and params["headdrop"] and params["redflowlimit"]):
        return trace.fate
    verdicts = np.full(len(trace), SENT)
    left = np.where(trace.left_ns < 0, np.iinfo(np.int64).max, trace.left_ns)
    for flow in np.unique(trace.flow):
        of_it = np.flatnonzero(trace.flow == flow)
        for oldest in of_it[np.argsort(left[of_it], kind="stable")]:
            later = of_it[(of_it > oldest) & (verdicts[of_it] == SENT)]
            if trace.fate[oldest] == DROPPED:
                at_it = later[np.abs(trace.t_ns[later] - left[oldest]) <= _DROP_NS]
                verdicts[at_it[-1:]] = DROPPED
            elif trace.fate[oldest] == MARKED:
                before = of_it[of_it < oldest]
                since = left[before].max(initial=0)
                waits = (trace.t_ns[later] >= since) & (trace.after[later] <= trace.order[oldest])
                verdicts[later[waits][-1:]] = MARKED
    return verdicts


def _rates(recording: Recording) -> list[tuple[int, int]]:
    """(from ns, bit/s) until the last packet."""
    trace = recording.trace
    return rate_steps(
        recording.link, int(max(trace.t_ns.max(initial=0), trace.left_ns.max(initial=0))) + 1
    )


def _later(recording: Recording, phase: int) -> Link:
    """The link, with the changes of its rate and of its discipline shifted by `phase`."""
    moved = [(at + phase if at else 0, bps) for at, bps in _rates(recording)]
    changes = [(at + phase + _TC_NS, qdisc) for at, qdisc in recording.link.qdisc_steps]
    return recording.link.with_rate(moved).with_qdisc_steps(changes)


def _sent_before(fate: Ints, order: Ints) -> Ints:
    """For each packet, how many of the packets that left before it were sent. Packets dropped at
    one instant count as unordered."""
    rows = np.flatnonzero(order >= 0)
    rows = rows[np.argsort(order[rows])]
    sent = np.isin(fate[rows], (SENT, MARKED))
    result = np.full(len(order), -1, dtype=np.int64)
    result[rows] = np.cumsum(sent) - sent
    return result


# -------------------------------------------------------------------------------------- comparing


@dataclass(frozen=True)
class Side:
    """Counts of what one queue did."""

    sent: int
    """Packets that left, marked or not."""
    refused: int
    """Dropped on arrival."""
    dropped: int
    """Dropped while they waited."""
    marked: int

    @classmethod
    def of(cls, fate: Ints) -> Side:
        """Counts the verdicts."""
        count = np.bincount(fate, minlength=len(DID))
        return cls(
            int(count[SENT] + count[MARKED]),
            int(count[REFUSED]),
            int(count[DROPPED]),
            int(count[MARKED]),
        )


@dataclass(frozen=True)
class Draws:
    """The sum of random decisions."""

    drawn: int
    """Packets that the recorded queue dropped or marked although its law left the choice to a draw.
    For dualpi2's L queue under overload: the packets that it dropped. For cake: the queue's turns
    in which draws might have used up its deficit, but it could send."""
    expected: float
    """The sum of the probabilities that our law computed."""
    ci95: float
    """Half the width of the sum's interval."""


@dataclass(frozen=True)
class DecisionDifference:
    """A packet on which the two queues decided differently."""

    packet: int
    """Its position among the arrivals, from 0."""
    words: str


@dataclass(frozen=True)
class Compared:
    """The comparison of two queues on one trace of arrivals."""

    name: str
    link: str
    qdisc: str
    arrivals: int
    kernel: Side
    ours: Side
    agreeing: int
    late: int
    """Departures and drops that agree but are not at the same nanosecond (drops: microsecond)."""
    latest_ns: int
    draws: Draws | None
    first: DecisionDifference | None
    """The differing packet that leaves first."""

    @property
    def agrees(self) -> bool:
        """Whether every decision is the same."""
        return self.agreeing == self.arrivals

    def to_dict(self) -> ReplayedQueue:
        """One object of plain values."""
        return cast(ReplayedQueue, {**asdict(self), "agrees": self.agrees})


def compare(recording: Recording, ours: Replayed | None = None) -> Compared:
    """Compares each decision of a recording with ours (`replayed(recording)`)."""
    ours = replayed(recording) if ours is None else ours
    trace = recording.trace
    later, open_end = trace.left_ns - ours.left_ns, _open_end(trace, ours)
    same = _same(recording, ours)
    late = np.where(same & ~open_end & (np.abs(later) > _resolution(trace)), np.abs(later), 0)
    wrong = np.flatnonzero(~same)
    return Compared(
        name=recording.title,
        link=recording.link.name,
        qdisc=recording.qdisc,
        arrivals=len(trace),
        kernel=Side.of(trace.fate),
        ours=Side.of(ours.fate[~open_end]),
        agreeing=int(same.sum()),
        late=int((late != 0).sum()),
        latest_ns=int(late.max(initial=0)),
        draws=_draws(trace, ours),
        first=_first(recording, ours, wrong) if len(wrong) else None,
    )


def _open_end(trace: Trace, ours: Replayed) -> Mask:
    """Packets that still waited when the recording ended, and leave in the replay. What the kernel
    would have done to them is not known."""
    sent = np.isin(trace.fate, (SENT, MARKED))
    return np.asarray((trace.fate == WAITS) & (ours.order >= int(sent.sum())))


def _same(recording: Recording, ours: Replayed) -> Mask:
    """Packets on which both queues decided the same."""
    trace = recording.trace
    changes = max(len(_rates(recording)) - 1, 0) + len(recording.link.qdisc_steps)
    late = trace.left_ns - ours.left_ns
    freed = np.isin(ours.left_ns, [at + _TC_NS for at, _ in recording.link.qdisc_steps])
    late = np.where(freed & (late > 0) & (late <= _FREED_NS), 0, late)
    in_time = _in_time(trace, late, changes)
    decided = (trace.fate == ours.fate) & _in_order(trace, ours) & in_time
    return np.asarray(_open_end(trace, ours) | decided)


def _resolution(trace: Trace) -> Ints:
    """Resolution of a packet's recorded time of leaving, ns."""
    return np.where(trace.fate == DROPPED, 500, 0)


def _in_order(trace: Trace, ours: Replayed) -> Mask:
    """Whether the order of leaving agrees. The kernel frees dropped packets after it has sent what
    it could. So a drop has no order among the packets sent at the same instant: any position among
    them counts. A packet that arrives before a packet of its instant leaves is sent a nanosecond
    earlier in the replay."""
    sent = np.sort(ours.left_ns[np.isin(ours.fate, (SENT, MARKED))])
    first = np.searchsorted(sent, ours.left_ns, side="left")
    last = np.searchsorted(sent, ours.left_ns + 1, side="right")
    within = (first <= trace.order) & (trace.order <= last)
    return np.where(np.isin(ours.fate, (DROPPED, REFUSED)), within, trace.order == ours.order)


def _in_time(trace: Trace, later: Ints, changes: int) -> Mask:
    """Whether the times agree. In the recorded guest a program makes the changes of the link, a
    little late. So
    after a change a packet may leave earlier on either side."""
    early = _resolution(trace) + GRAIN_NS * changes
    return np.asarray((later >= -early) & (later <= early + GRAIN_NS))


def _draws(trace: Trace, ours: Replayed) -> Draws | None:
    """The sum of the draws; None if no decision was left to a draw."""
    free = (ours.chance > 0) & (ours.chance < 1)
    if not free.any():
        return None
    chance = ours.chance[free]
    deviation = math.sqrt(float((chance * (1 - chance)).sum()))
    return Draws(int(ours.drew[free].sum()), float(chance.sum()), 1.96 * deviation)


def _likelihood(recording: Recording, ours: Replayed) -> float:
    """The logarithm of the probability of the recorded draws, if our probabilities are right."""
    free = (ours.chance > 0) & (ours.chance < 1)
    chance = np.where(ours.drew, ours.chance, 1 - ours.chance)[free]
    return float(np.log(chance).sum())


def _first(recording: Recording, ours: Replayed, wrong: Ints) -> DecisionDifference:
    """The first difference in time, on either side."""
    trace = recording.trace
    never = np.iinfo(np.int64).max
    at = [np.where(side.left_ns[wrong] < 0, never, side.left_ns[wrong]) for side in (trace, ours)]
    row = int(wrong[np.argmin(np.minimum(*at))])
    came, state = int(trace.t_ns[row]), float(ours.state[row])
    queued = int(((trace.left_ns > came) | (trace.fate == WAITS))[:row].sum())
    kernel = _did(int(trace.fate[row]), int(trace.left_ns[row]), int(trace.order[row]))
    own = _did(int(ours.fate[row]), int(ours.left_ns[row]), int(ours.order[row]))
    cause = f" for {_core.CAUSES[ours.cause[row]]}" if ours.cause[row] >= 0 else ""
    law = {
        "red": "average {:.0f} bytes",
        "codel": "count {:.0f}",
        "fq_codel": "counts {:.0f}",
        "pie": "p {:.6f}",
    }
    word = law.get(recording.link.qdisc.kind)
    law_state = f", {word.format(state)}" if word and not math.isnan(state) else ""
    words = (
        f"packet {row} of {len(trace)} (flow {trace.flow[row]}, {trace.bytes[row]} bytes, came at {came / 1e9:.6f} s):"
        f" the kernel, with {queued} packets queued, {kernel};"
        f" ours, with {ours.backlog_packets[row]} queued{law_state}, {own}{cause}{_doubt(recording, ours, row)}"
    )
    return DecisionDifference(row, words)


def _doubt(recording: Recording, ours: Replayed, row: int) -> str:
    """A possible cause of a difference other than the law."""
    qdisc = recording.link.qdisc.child or recording.link.qdisc
    if qdisc.kind == "cake" and (unseen := int((ours.unseen <= recording.trace.order[row]).sum())):
        return f"; {unseen} of cake's draws before it are invisible, and may have differed"
    if qdisc.kind != "fq_codel":
        return ""
    interval_ns = qdisc.params["interval_ns"]
    assert isinstance(interval_ns, int)
    if recording.zero_ns >= _YOUNG * interval_ns:
        return ""
    return (
        f"; this kernel had been up for less than {_YOUNG} intervals: its CoDel starts with the count"
        " that drops at a limit raised, ours with 1"
    )


def _did(fate: int, left_ns: int, order: int) -> str:
    return (
        DID[fate]
        if fate == WAITS
        else f"{DID[fate]} at {left_ns / 1e9:.9f} s, after {order} others were sent"
    )
