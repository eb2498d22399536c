"""The four tables of section 4, as printed, and each cell as a number to judge.

Cases 1 and 2 give throughput in Mbit/s, cases 3 and 4 Jain's fairness index. Every figure (2 to 5) draws one of the
tables, so there is no value in a figure alone.
"""

from __future__ import annotations

from sojourn.papers.paper import Number, Tolerance
from sojourn.papers.red_droptail.cases import DROP_TAIL, RED, cell
from sojourn.papers.red_droptail.measures import fairness, throughput_mbps

THROUGHPUT: dict[int, dict[int, tuple[float, float]]] = {
    80: {
        2: (2.5, 2.5),
        4: (3.5, 3.5),
        8: (7.5, 7.5),
        12: (8.0, 8.0),
        16: (12.0, 11.9),
        20: (12.5, 12.5),
        24: (17.0, 17.0),
        32: (23.0, 23.0),
    },
    250: {
        2: (0.4, 0.4),
        4: (0.8, 0.8),
        8: (1.43, 1.43),
        12: (1.4, 1.35),
        16: (1.6, 1.5),
        20: (1.75, 1.70),
        24: (2.2, 2.15),
        32: (2.35, 2.30),
    },
}
"""Mbit/s under (RED, Drop-Tail) by Tp in ms and N: cases 1 and 2."""

FAIRNESS: dict[int, dict[int, tuple[float, float]]] = {
    75: {10: (0.638, 0.643), 15: (0.530, 0.532), 20: (0.585, 0.485)},
    250: {10: (0.762, 0.718), 15: (0.750, 0.655), 20: (0.738, 0.618)},
}
"""Jain's index of 16 flows under (RED, Drop-Tail) by Tp in ms and D: cases 3 and 4."""

CASE = {("throughput", 80): 1, ("throughput", 250): 2, ("fairness", 75): 3, ("fairness", 250): 4}
"""The source's number of each."""

QUEUES = (RED, DROP_TAIL)

# ------------------------------------------------------------------------------------------- how near is near enough

_ONE_DIGIT = Tolerance(
    0.2, "printed with one digit, so known to 6 to 12 %, and no length, packet size or window is stated"
)
_EMPTY = Tolerance(
    0.1, "so few flows fill no queue: only the run's length, packet size and window matter, not luck"
)
_UNEVEN = Tolerance(
    0.15,
    "nothing about the runs is stated, and the source's own numbers lie 14 % (rms) off a smooth curve over N",
)
_INDEX = Tolerance(
    0.05,
    "ns-2 readings that differ in packet size, length and start times lie 0.05 and more apart",
    relative=False,
)


def _tolerance(tp: int, n: int) -> Tolerance:
    if n > 4:
        return _UNEVEN
    return _ONE_DIGIT if tp == 250 else _EMPTY


# ------------------------------------------------------------------------------------- why not, where it was found out

_FEW = (
    "Two flows that lose nothing get a window per RTT at most: 2.1 Mbit/s for 20 packets of 552 B in 84 ms. Packets of 1500 B over twice "
    "the RTT (readings: 'large packets, Tp one way') come near 2.5 here, and then miss the fairness tables"
)
_FEW_LONG = (
    "Without a loss slow start brings whole windows of 1, 2, 4, 8, 16, 20, 20 packets, and the run's end decides how many arrive: a run of 3 s "
    "(readings) is one window shorter and comes near, and is then too low in case 1"
)
_STARTS = (
    "Here the windows of all flows meet the full buffer for the first time, and the start times decide how many flows lose a packet and wait for a timeout: with "
    "all starts at once (readings) throughput is lower and at Tp = 250 ms comes within the tolerance, with starts within 50 ms it is far higher"
)
_SHORTER = "A shorter run is less fair: one of 3 s (readings) comes within the tolerance, and is then too low in throughput"
_LONGER = "A longer run evens the flows out: one of 4 s (readings) comes within the tolerance, and is then too fair at D = 10"
_UPTURN = (
    "The source's RED rises from D = 15 to D = 20, away from Drop-Tail. Ours can't: in these runs the 16 flows lose two or three packets, all at the full buffer "
    "and none early, so RED is Drop-Tail; ns-2 under the same reading also gives 0.44 for both"
)
_NOTHING_LOST = (
    "No packet is lost in case 4: a window every 254 ms and more leaves the buffer room, so RED and Drop-Tail are the same, in ns-2 under the same reading, too. "
    "Another length moves all D together (readings): no reading has both the source's level and RED's lead"
)


def _throughput_reason(tp: int, n: int) -> str:
    if n <= 4:
        return _FEW if tp == 80 else _FEW_LONG
    return _STARTS if n <= 16 else ""


def _fairness_reason(tp: int, d: int, queue: str) -> str:
    if tp == 250:
        return {10: _SHORTER, 20: _LONGER}.get(d, "") if queue == DROP_TAIL else _NOTHING_LOST
    if d == 20:
        return _UPTURN if queue == RED else _LONGER
    return _SHORTER if d == 10 else ""


def _throughput() -> list[Number]:
    return [
        Number(
            id=f"throughput/{tp}/{n}/{queue}",
            where=f"section 4.1, case {CASE['throughput', tp]}, row {n}, column {queue.upper().replace('-', '')} THROUGHPUT",
            what=f"throughput of {n} flows at Tp = {tp} ms, {queue}",
            unit="Mbit/s",
            published=row[n][at],
            study="throughput",
            variant=cell(tp, n, queue),
            measure=throughput_mbps,
            tolerance=_tolerance(tp, n),
            against=_neighbours("throughput", tp, list(row), n, at),
            reason=_throughput_reason(tp, n),
        )
        for tp, row in THROUGHPUT.items()
        for n in row
        for at, queue in enumerate(QUEUES)
    ]


def _fairness() -> list[Number]:
    return [
        Number(
            id=f"fairness/{tp}/{d}/{queue}",
            where=f"section 4.2, case {CASE['fairness', tp]}, row {d}, column {queue.upper().replace('-', '')}",
            what=f"fairness index at Tp = {tp} ms, D = {d}, {queue}",
            unit="",
            published=row[d][at],
            study="fairness",
            variant=cell(tp, 16, queue, d),
            measure=fairness,
            tolerance=_INDEX,
            against=_neighbours("fairness", tp, list(row), d, at),
            reason=_fairness_reason(tp, d, queue),
        )
        for tp, row in FAIRNESS.items()
        for d in row
        for at, queue in enumerate(QUEUES)
    ]


def _neighbours(kind: str, tp: int, along: list[int], here: int, at: int) -> tuple[str, ...]:
    """The other queue in the same row, and the same queue in the row above."""
    other = f"{kind}/{tp}/{here}/{QUEUES[1 - at]}"
    index = along.index(here)
    return (other, f"{kind}/{tp}/{along[index - 1]}/{QUEUES[at]}") if index else (other,)


NUMBERS = (*_throughput(), *_fairness())
