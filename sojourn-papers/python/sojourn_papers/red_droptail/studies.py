"""The experiments: the source's four cases under the main reading, under other readings, with
ns-2's settings, and past the start.

The topology is the source's figure 1: N senders, one bottleneck of 45 Mbit/s and delay Tp, N
receivers. D spreads the senders' access delays: flow i (from 0) has D * i ms more, once each way. A
`Setting` has everything that the source does not state. `variant` writes it, with Tp, N, D and a
queue, as changes of short.toml.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sojourn_papers.evidence import Swap
from sojourn_papers.study import Changes, Study, Variant

RED, DROP_TAIL = QUEUES = "RED", "Drop-Tail"
N = (2, 4, 8, 12, 16, 20, 24, 32)
D = (10, 15, 20)
TP_THROUGHPUT = (80, 250)
TP_FAIRNESS = (75, 250)


@dataclass(frozen=True)
class Setting:
    """The parameters that the source leaves open. The defaults are the main reading."""

    payload: int = 512
    """Bytes of a segment, without 40 bytes of headers."""
    window: int | None = 20
    """ns-2's window_, packets."""
    initial_window: int = 1
    length_s: float = 3.5
    spread_ms: float = 7
    """The flows start at random within this time."""
    stagger_ms: float = 0
    """If not 0, the flows start one after another, this far apart."""
    one_way: bool = False
    """Whether Tp is the bottleneck's one-way delay; if not, it is the round trip."""
    access_ms: float = 1
    """Access delay on each side, one way."""
    both_sides: bool = False
    """Whether D spreads the access delays of senders and receivers; if not, of senders only."""
    places: int = 30
    """ns-2's queue limit."""
    red: str = "packets"
    """The options of ns-2's RED, as discipline words."""
    access: str | None = None
    """Rate of each sender's own link; None: packets of a burst reach the bottleneck together."""

    def queue(self, name: str) -> str:
        """The bottleneck's queue discipline. ns-2's Drop-Tail stores one packet less than its
        limit."""
        if name == DROP_TAIL:
            return f"pfifo limit {self.places - 1}"
        return f"red variant ns2 limit {self.places} {self.red}".rstrip()

    def rtt_ms(self, tp: float, d: float, i: float) -> float:
        """Base RTT of flow i, counted from 0."""
        path = 2 * tp if self.one_way else tp
        return path + 4 * self.access_ms + (4 if self.both_sides else 2) * d * i

    def flow(self, tp: float, d: float, i: float) -> dict[str, Any]:
        """Flow i as an entry of the scenario. Data follows the SYN one round trip later."""
        rtt = self.rtt_ms(tp, d, i)
        first = rtt + i * self.stagger_ms
        tcp = {"mss": self.payload, "initial_window": self.initial_window}
        access = {} if self.access is None else {"access": self.access}
        return {
            **access,
            "kind": "bulk",
            "name": f"ftp{i + 1:g}",
            "rtt": f"{rtt:g} ms",
            "start": f"uniform {first:g} ms .. {first + self.spread_ms:g} ms"
            if self.spread_ms
            else f"{first:g} ms",
            "profile": "ns2",
            "tcp": tcp if self.window is None else {**tcp, "max_window": self.window},
        }

    def variant(self, tp: float, n: int, queue: str, d: float = 0) -> Changes:
        """The changes of short.toml; `queue` is RED, Drop-Tail or a discipline's words."""
        return {
            "duration": f"{1000 * self.length_s:g} ms",
            "bottleneck.delay": f"{tp if self.one_way else tp / 2:g} ms",
            "bottleneck.down.qdisc": self.queue(queue) if queue in (RED, DROP_TAIL) else queue,
            "flow": [self.flow(tp, d, i) for i in range(n)],
        }


def cell(tp: int, n: int, queue: str, d: int = 0) -> str:
    """The variant of one cell of a table: "Tp 80 ms, N 12, RED"."""
    spread = f", D {d}" if d else ""
    return f"Tp {tp} ms, N {n}{spread}, {queue}"


MAIN = Setting()

OTHER_SETTINGS: Mapping[str, Setting] = {
    "3 s": replace(MAIN, length_s=3),
    "4 s": replace(MAIN, length_s=4),
    "6 s": replace(MAIN, length_s=6),
    "starts at once": replace(MAIN, spread_ms=0),
    "starts within 10 ms": replace(MAIN, spread_ms=10),
    "starts within 50 ms": replace(MAIN, spread_ms=50),
    "1040 B packets": replace(MAIN, payload=1000),
    "50 places": replace(MAIN, places=50),
    "no window limit": replace(MAIN, window=None),
    "initial window 2": replace(MAIN, initial_window=2),
    "large packets, Tp one way": replace(MAIN, payload=1460, one_way=True, length_s=4.5),
    "starts 50 ms apart (R2)": Setting(1460, 20, 2, 3, 0, 50, True, 1, False, 50, ""),
}
"""Other readings. Each but the last two changes one parameter. R2 has D = 0, as cases 1 and 2
state."""

OTHER_QUEUES: Mapping[str, str] = {
    "Drop-Tail, 30 places": "pfifo limit 30",
    "RED in bytes": "red variant ns2 limit 30",
    "RED 5/15": "red variant ns2 limit 30 min 5 max 15 weight 0.002 packets",
}
"""Other queues under the main reading: Drop-Tail with as many places as RED, ns-2.35's RED as
installed, and with the thresholds of 5 and 15 packets that textbooks give."""

CHECKED: Mapping[str, tuple[Setting, float]] = {
    "S0": (replace(MAIN, spread_ms=0, access="1 Gbit/s"), 0),
    "R1": (Setting(1000, 32, 1, 4.5, 0, 100, True, 10, False, 50, "", "1 Gbit/s"), 0),
    "R2": (Setting(1460, 20, 2, 3, 0, 50, True, 1, False, 50, "", "1 Gbit/s"), 2),
    "F1": (Setting(1000, 20, 2, 2, 0, 0, True, 5, False, 50, "", "1 Gbit/s"), 0),
    "F2": (Setting(1460, 20, 2, 3, 0, 50, True, 5, False, 50, "", "1 Gbit/s"), 0),
    "F3": (Setting(1460, 20, 2, 6, 0, 50, True, 5, True, 50, "", "1 Gbit/s"), 0),
    "F4": (Setting(1000, 20, 2, 4.5, 0, 100, True, 5, False, 50, "", "1 Gbit/s"), 0),
}
"""Settings that ns-2 also ran: our main reading with all starts at once, and six others. The second
value is D in cases 1 and 2. ns-2 ran the rows of throughput under S and R, and of fairness under S
and F. We run both under F, as a reading must be compared with all of the tables."""


def checked(reading: str, name: str) -> str:
    """The variant of a row that ns-2 also ran: "R1: Tp 80 ms, N 12, RED"."""
    return f"{reading}: {name}"


def _throughput(setting: Setting, queues: tuple[str, ...], d: float = 0) -> dict[str, Changes]:
    return {
        cell(tp, n, queue): setting.variant(tp, n, queue, d)
        for tp in TP_THROUGHPUT
        for n in N
        for queue in queues
    }


def _fairness(setting: Setting, queues: tuple[str, ...]) -> dict[str, Changes]:
    return {
        cell(tp, 16, queue, d): setting.variant(tp, 16, queue, d)
        for tp in TP_FAIRNESS
        for d in D
        for queue in queues
    }


def _checked() -> dict[str, Changes]:
    found: dict[str, Changes] = {}
    for reading, (setting, d) in CHECKED.items():
        if reading[0] in "SRF":
            rows = _throughput(setting, (RED, DROP_TAIL), d)
            found |= {checked(reading, name): changes for name, changes in rows.items()}
        if reading[0] in "SF":
            rows = _fairness(setting, (RED, DROP_TAIL))
            found |= {checked(reading, name): changes for name, changes in rows.items()}
    return found


STEADY_PLACES = 300
STEADY_QUEUES = {
    RED: f"red variant ns2 limit {STEADY_PLACES} adaptive packets mean_bytes 1500",
    DROP_TAIL: f"pfifo limit {STEADY_PLACES}",
}
"""Adaptive RED with automatic thresholds (target delay 5 ms), and a FIFO with the same buffer."""


def _steady(tp: int, n: int, queue: str) -> dict[str, Any]:
    long = {"duration": "150 s", "warmup": "90 s"} if tp == 250 else {}
    return {
        **long,
        "bottleneck.delay": f"{tp / 2:g} ms",
        "bottleneck.down.qdisc": STEADY_QUEUES[queue],
        "flow.ftp.count": n,
        "flow.ftp.rtt": f"{tp + 4} ms",
    }


def _steady_spread(tp: int, d: int, queue: str) -> dict[str, Any]:
    return {
        **_steady(tp, 16, queue),
        "flow.ftp.rtt": f"spread {tp + 4} ms .. {tp + 4 + 2 * d * 15} ms",
    }


_QUICK_N = (2, 8, 32)
JUDGED = 1001
"""The first seed of the judged studies. The searches, also the one of Drop-Tail, had other
seeds."""

THROUGHPUT = Study(
    "throughput",
    "Cases 1 and 2: throughput over N, under the main reading",
    "short.toml",
    _throughput(MAIN, (RED, DROP_TAIL)),
    seeds=10,
    first_seed=JUDGED,
)
FAIRNESS = Study(
    "fairness",
    "Cases 3 and 4: fairness over D, under the main reading",
    "short.toml",
    _fairness(MAIN, (RED, DROP_TAIL)),
    seeds=10,
    first_seed=JUDGED,
)


DRAWS = range(20)


def drawn(tp: int, d: int, draw: int) -> str:
    """The name of a variant of case 3 or 4 with drawn delays."""
    return f"draw {draw}: {cell(tp, 16, DROP_TAIL, d)}"


def _drawn(tp: int, d: int, draw: int) -> Changes:
    """Changes with delays drawn uniformly from D's range."""
    draws = random.Random(f"{tp} {d} {draw}")
    flows = [{**MAIN.flow(tp, d, draws.uniform(0, 15)), "name": f"ftp{i + 1}"} for i in range(16)]
    return {**MAIN.variant(tp, 16, DROP_TAIL, d), "flow": flows}


DRAWN = Study(
    "drawn",
    "Cases 3 and 4 with delays that each run draws, Drop-Tail",
    "short.toml",
    {drawn(tp, d, draw): _drawn(tp, d, draw) for tp in TP_FAIRNESS for d in D for draw in DRAWS},
    seeds=1,
    first_seed=JUDGED,
    quick_seeds=1,
)
WITH_QUEUES = Study(
    "queues",
    "Cases 1 and 2 with other queues",
    "short.toml",
    {
        cell(tp, n, name): MAIN.variant(tp, n, words)
        for tp in TP_THROUGHPUT
        for n in N
        for name, words in OTHER_QUEUES.items()
    },
    seeds=10,
    first_seed=JUDGED,
    quick_variants={cell(250, n, "Drop-Tail, 30 places") for n in N},
)
OTHERS = Study(
    "others",
    "Cases 1 to 4 under other readings, Drop-Tail",
    "short.toml",
    {
        f"{name}: {at}": changes
        for name, setting in OTHER_SETTINGS.items()
        for at, changes in {
            **_throughput(setting, (DROP_TAIL,)),
            **_fairness(setting, (DROP_TAIL,)),
        }.items()
    },
    seeds=5,
    quick_variants=(),
)
NS2 = Study(
    "ns2",
    "The readings that ns-2 ran, too",
    "short.toml",
    _checked(),
    # Starts are fixed and nothing is dropped early, so nothing is random.
    seeds=1,
    quick_variants={
        *(checked("S0", cell(250, n, queue)) for n in N for queue in (RED, DROP_TAIL)),
        *(checked("R1", cell(80, n, DROP_TAIL)) for n in N),
        *(checked("F1", cell(75, 16, DROP_TAIL, d)) for d in D),
    },
    quick_seeds=1,
)
STEADY = Study(
    "steady",
    "RED and Drop-Tail past the start: throughput over N (not in the source)",
    "steady.toml",
    {
        cell(tp, n, queue): _steady(tp, n, queue)
        for tp in TP_THROUGHPUT
        for n in N
        for queue in (RED, DROP_TAIL)
    },
    quick={"duration": "40 s", "warmup": "20 s"},
    quick_variants={cell(80, n, queue) for n in _QUICK_N for queue in (RED, DROP_TAIL)},
)
STEADY_FAIRNESS = Study(
    "steady-fairness",
    "RED and Drop-Tail past the start: fairness over D (not in the source)",
    "steady.toml",
    {
        cell(tp, 16, queue, d): _steady_spread(tp, d, queue)
        for tp in TP_FAIRNESS
        for d in D
        for queue in (RED, DROP_TAIL)
    },
    quick={"duration": "40 s", "warmup": "20 s"},
    quick_variants={cell(75, 16, queue, d) for d in D for queue in (RED, DROP_TAIL)},
)

STUDIES = (THROUGHPUT, FAIRNESS, DRAWN, WITH_QUEUES, OTHERS, NS2, STEADY, STEADY_FAIRNESS)


def over_n(study: Study, tp: int, queue: str) -> dict[int, Variant]:
    """The variants along a table of throughput, by N."""
    return {n: study[cell(tp, n, queue)] for n in N}


def over_d(study: Study, tp: int, queue: str) -> dict[int, Variant]:
    """The variants along a table of fairness, by D."""
    return {d: study[cell(tp, 16, queue, d)] for d in D}


# ------------------------------------------------------------------------ readings, for the matrix

_CELLS: Mapping[str, Variant] = {
    **{name: THROUGHPUT[name] for name in THROUGHPUT.variants},
    **{name: FAIRNESS[name] for name in FAIRNESS.variants},
}
"""The variants of all tables' cells, by name."""


def _other_setting(name: str) -> Swap:
    """The replacements for Drop-Tail under another setting; RED was not run under it."""
    return {
        one: OTHERS[f"{name}: {at}"] if f"{name}: {at}" in OTHERS.variants else None
        for at, one in _CELLS.items()
    }


def _as_ns2(reading: str) -> Swap:
    """The replacements for a setting that ns-2 also ran: the rows that it has, of both queues."""
    return {
        one: NS2[checked(reading, at)]
        for at, one in _CELLS.items()
        if checked(reading, at) in NS2.variants
    }


def _other_queue(name: str) -> Swap:
    """The replacements for another queue instead of RED or Drop-Tail, in cases 1 and 2."""
    place = DROP_TAIL if name.startswith(DROP_TAIL) else RED
    return {
        THROUGHPUT[cell(tp, n, place)]: WITH_QUEUES[cell(tp, n, name)]
        for tp in TP_THROUGHPUT
        for n in N
    }


NO_DIFFERENCE: Swap = {one: _CELLS[at.replace(RED, DROP_TAIL)] for at, one in _CELLS.items()}
"""The reading "no difference" (`readings`): Drop-Tail's runs replace RED's."""
SWAPS: Mapping[str, Swap] = {
    **{name: _other_setting(name) for name in OTHER_SETTINGS},
    **{name: _other_queue(name) for name in OTHER_QUEUES},
    **{f"{reading}, which ns-2 ran too": _as_ns2(reading) for reading in CHECKED},
}
