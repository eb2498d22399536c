"""The experiments: one queue for both, also in a tunnel, DualPI2 at equal and at unequal RTTs,
bursts, a replay window, and RFC 9332's claims over rates and RTTs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from sojourn_papers.evidence import Swap
from sojourn_papers.readings import ON_OTHER_SEEDS
from sojourn_papers.study import Changes, Study, Variant

_one_quick = partial(Study, quick_seeds=1)

# ---------------------------------------------------------------------------- one queue that marks

QUEUES: Mapping[str, str] = {
    "fq_codel": "fq_codel flows 1",
    "fq_codel, 20 ms": "fq_codel flows 1 target 1ms interval 20ms",
    "pie": "pie ecn",
    "pie, short": "pie limit 100 target 5ms tupdate 32ms alpha 2 beta 20 ecn",
    "red, 150 kB": "red limit 150000 avpkt 1000 adaptive bandwidth 50Mbit ecn",
    "red, 400 kB": "red limit 400000 avpkt 1000 adaptive bandwidth 50Mbit ecn",
}
"""The six queues of finding 1, by our names, in its order. fq_codel has one queue for all."""
OTHERS: Mapping[str, Changes] = {
    "CUBIC with ECN": {"flow.other.congestion": "cubic", "flow.other.ecn": True},
    "CUBIC": {"flow.other.congestion": "cubic"},
    "Reno with ECN": {"flow.other.congestion": "reno", "flow.other.ecn": True},
    "Reno": {"flow.other.congestion": "reno"},
}
APART = "CUBIC with ECN, a queue each"

in_one = "{}, {}".format
"""The name of a variant of finding 1: `in_one(other, queue)`."""

SHARED = _one_quick(
    "shared",
    "Prague and another TCP in one queue that marks, 50 Mbit/s, 20 ms (finding 1)",
    "pair.toml",
    variants={
        **{
            in_one(other, queue): {**changes, "bottleneck.qdisc": words}
            for other, changes in OTHERS.items()
            for queue, words in QUEUES.items()
        },
        APART: {**OTHERS["CUBIC with ECN"], "bottleneck.qdisc": "fq_codel"},
    },
    quick={"duration": "40 s", "warmup": "20 s"},
    quick_variants=(in_one("CUBIC with ECN", "fq_codel"), in_one("Reno", "pie"), APART),
)

# ----------------------------------------------------------------------------------------- DualPI2

MBPS = (50, 10)
RTT_MS = (10, 20, 80)
SCALABLE: Mapping[str, Changes] = {
    "Prague": {},
    # DCTCP sends ECT(0), so ECT(0) must go to the short queue, too.
    "DCTCP": {
        "flow.prague.congestion": "dctcp",
        "flow.prague.ecn": True,
    },
}
"""Congestion controls of the short queue: with a virtual RTT, and without one."""


def dualpi2(scalable: str, spared: int = 2) -> str:
    """The discipline that puts this congestion control in the short queue. The step does not mark a
    packet that finds fewer than `spared` packets in that queue."""
    words = "dualpi2" if scalable == "Prague" else "dualpi2 any_ect"
    return f"{words} min_qlen_step {spared}" if spared else words


DUALPI2 = dualpi2("Prague")
"""DualPI2 as in all versions before March 2025."""

equal = "{}, {} Mbit/s, {} ms".format
"""The name of a variant of finding 3: `equal(scalable, mbps, rtt_ms)`."""

EQUAL = _one_quick(
    "equal",
    "A scalable TCP and CUBIC over DualPI2 at equal RTTs (finding 3)",
    "pair.toml",
    variants={
        equal(scalable, mbps, rtt): {
            **changes,
            "bottleneck.qdisc": dualpi2(scalable),
            "bottleneck.rate": f"{mbps} Mbit/s",
            "flow.prague.rtt": f"{rtt} ms",
            "flow.other.rtt": f"{rtt} ms",
        }
        for scalable, changes in SCALABLE.items()
        for mbps in MBPS
        for rtt in RTT_MS
    },
    quick={"duration": "40 s", "warmup": "20 s"},
    quick_variants=(equal("Prague", 50, 20), equal("DCTCP", 50, 20)),
)

Ends = tuple[str, int, int]
"""Both flows' congestion control, and their RTTs, ms."""
UNEQUAL_ENDS: Mapping[str, tuple[Ends, str]] = {
    "Prague, dualpi2, 160 and 10 ms": (("Prague", 160, 10), "dualpi2"),
    "Prague, dualpi2, 80 and 20 ms": (("Prague", 80, 20), "dualpi2"),
    "DCTCP, dualpi2, 160 and 10 ms": (("DCTCP", 160, 10), "dualpi2"),
    "CUBIC, dualpi2, 160 and 10 ms": (("CUBIC", 160, 10), "dualpi2"),
    "Prague, pfifo, 160 and 10 ms": (("Prague", 160, 10), "pfifo limit 1000"),
    "CUBIC, pfifo, 160 and 10 ms": (("CUBIC", 160, 10), "pfifo limit 1000"),
    "Prague, fq_codel, 80 and 20 ms": (("Prague", 80, 20), "fq_codel"),
}
NO_VIRTUAL: Changes = {"prague_virtual_rtt": "0 s"}
_ALIKE: Mapping[str, Changes] = {
    "Prague": {
        "flow.*.congestion": "prague",
        "flow.*.ecn": "accecn",
        "flow.*.tcp": NO_VIRTUAL,
    },
    "DCTCP": {"flow.*.congestion": "dctcp", "flow.*.ecn": True},
    "CUBIC": {"flow.*.congestion": "cubic", "flow.*.ecn": False},
}


def _unequal(ends: Ends, queue: str) -> Changes:
    name, far, near = ends
    return {
        **_ALIKE[name],
        "bottleneck.qdisc": dualpi2(name) if queue == "dualpi2" else queue,
        "flow.prague.rtt": f"{far} ms",
        "flow.other.rtt": f"{near} ms",
    }


UNEQUAL = _one_quick(
    "unequal",
    "Two alike flows at unequal RTTs, 50 Mbit/s (finding 4)",
    "pair.toml",
    variants={name: _unequal(*ends) for name, ends in UNEQUAL_ENDS.items()},
    quick={"duration": "60 s", "warmup": "30 s"},
    quick_variants=("Prague, dualpi2, 160 and 10 ms",),
)

# ------------------------------------------------------------- a rate that falls, and bursts

FALLEN = (25, 10, 5)
"""Rates to which the link falls from 50 Mbit/s, Mbit/s."""
ALONE: Mapping[str, Changes] = {
    "Prague": {},
    "CUBIC": {"flow.prague.congestion": "cubic", "flow.prague.ecn": True},
}

falls = "{}, to {} Mbit/s".format
"""The name of a variant of finding 7: `falls(flow, mbps)`."""

FALLING = _one_quick(
    "falling",
    "One flow through fq_codel, 80 ms, over a link that falls from 50 Mbit/s (finding 7)",
    "falling.toml",
    variants={
        falls(flow, mbps): {
            **changes,
            "bottleneck.down.schedule": [["0 s", "50 Mbit/s"], ["30 s", f"{mbps} Mbit/s"]],
        }
        for flow, changes in ALONE.items()
        for mbps in FALLEN
    },
    quick_variants=(falls("Prague", 25), falls("CUBIC", 25)),
)

STEPS_MS = (1, 5)
"""Steps of the short queue, ms."""


def behind(bursts: bool, step_ms: int, alone: bool) -> str:
    """The name of a variant of finding 8."""
    who = "Prague alone" if alone else "Prague and CUBIC"
    return f"{who}, {'bursts' if bursts else 'no bursts'}, step {step_ms} ms"


BURSTY = _one_quick(
    "bursty",
    "DualPI2 at 50 Mbit/s and 20 ms behind a link that hands packets on in bursts (finding 8)",
    "bursty.toml",
    variants={
        behind(bursts, step_ms, alone): {
            "link.down.qdisc": f"{DUALPI2} step_thresh {step_ms}ms",
            **({} if bursts else {"link.bursts.slot": "none"}),
            **({"flow.other.stop": "1 s"} if alone else {}),
        }
        for bursts in (True, False)
        for step_ms in STEPS_MS
        for alone in (True, False)
    },
    quick={"duration": "30 s", "warmup": "15 s"},
    quick_variants=(
        *(behind(bursts, 1, alone=False) for bursts in (True, False)),
        *(behind(True, step_ms, alone=True) for step_ms in STEPS_MS),
    ),
)

# ----------------------------------------------------------------------------- tunnels, and FIFOs

_MINUTE: Changes = {"duration": "60 s", "warmup": "20 s"}
"""The length of the scenarios of findings 2 and 9: a minute, of which the last 40 s count."""
BEHIND = ("fq_codel", "cake")
FIFO = "pfifo limit 1000"


def through(queue: str, tunnel: bool) -> str:
    """The name of a variant of finding 2."""
    return f"{queue}, {'one tunnel' if tunnel else 'apart'}"


TUNNEL = _one_quick(
    "tunnel",
    "Prague and CUBIC in one tunnel, 50 Mbit/s, 20 ms (finding 2); and through a FIFO",
    "pair.toml",
    variants={
        **{
            through(queue, tunnel): {
                **_MINUTE,
                "bottleneck.qdisc": queue,
                **({"flow.*.tunnel": "vpn"} if tunnel else {}),
            }
            for queue in BEHIND
            for tunnel in (True, False)
        },
        FIFO: {"bottleneck.qdisc": FIFO},
    },
    quick={"duration": "40 s", "warmup": "20 s"},
    quick_variants=(through("fq_codel", True), through("fq_codel", False), FIFO),
)

# --------------------------------------------------------------- what today's Linux and Prague have

APART_MS: Mapping[str, tuple[int, int]] = {"160 and 10 ms": (160, 10), "80 and 20 ms": (80, 20)}
VIRTUAL: Changes = {"prague_virtual_rtt": "25 ms"}
EACH, ONE, VRTT, BOTH = (
    "the step for each packet",
    "the step spares 1",
    "a virtual RTT of 25 ms",
    "both, as today",
)
TODAY: Mapping[str, tuple[int, Changes]] = {
    EACH: (0, NO_VIRTUAL),
    ONE: (1, NO_VIRTUAL),
    VRTT: (2, VIRTUAL),
    BOTH: (0, VIRTUAL),
}
"""Number of the short queue's packets that the step spares, and Prague's virtual RTT."""

today = "{}: {}".format
"""The name of a variant of finding 3 or 4 with a feature of today's versions: `today(which, at)`."""


def _today() -> dict[str, Changes]:
    found: dict[str, Changes] = {}
    for which, (packets, virtual) in TODAY.items():
        queue = {"bottleneck.qdisc": dualpi2("Prague", packets)}
        for mbps in MBPS:
            for rtt in RTT_MS:
                at = equal("Prague", mbps, rtt)
                changes = EQUAL.variants[at]
                found[today(which, at)] = {**changes, **queue, "flow.prague.tcp": virtual}
        for ends in APART_MS:
            at = f"Prague, dualpi2, {ends}"
            found[today(which, at)] = {**UNEQUAL.variants[at], **queue, "flow.*.tcp": virtual}
    return found


SINCE = _one_quick(
    "since",
    "Findings 3 and 4 with the step of today's DualPI2, with the virtual RTT of today's Prague, with both",
    "pair.toml",
    variants=_today(),
    seeds=3,
    quick={"duration": "60 s", "warmup": "30 s"},
    quick_variants=(today(VRTT, "Prague, dualpi2, 160 and 10 ms"),),
)

# --------------------------------------------------------------- what else the source leaves open

EXACT: Changes = {"flow.*.jitter": "0 s"}
LATE_MS = (0, 0.1, 0.5, 2)
"""The values that the search tries for the longest delay of packets leaving their host, ms."""
CHOSEN_LATE_MS = 0.5
"""The value in pair.toml."""

late = "{1}, up to {0:g} ms late".format
"""The name of a variant of the search: `late(most_ms, at)`."""

LATENESS = Study(
    "lateness",
    "Findings 3 and 4 with hosts whose packets leave late",
    "pair.toml",
    variants={
        late(most_ms, at): {**study.variants[at], "flow.*.jitter": f"{most_ms:g} ms"}
        for most_ms in LATE_MS
        for study in (EQUAL, UNEQUAL)
        for at in study.variants
        if "DCTCP" not in at
    },
    seeds=3,
    first_seed=2001,
)
"""Studies that only `search` runs."""

RIVALS: Mapping[str, Changes] = {
    "exact time": EXACT,
    "an htb": {"bottleneck.rate": "unlimited", "bottleneck.shaper": "htb rate 50mbit"},
    "DCTCP": SCALABLE["DCTCP"],
}
RIVAL_QUEUES = ("fq_codel", "pie")
_BESIDE_RIVALS = ("Reno with ECN", "CUBIC with ECN")

rivals = "{}, {}, {}".format
"""The name of a variant of finding 1 under another reading: `rivals(name, other, queue)`."""

RENO = Study(
    "reno",
    "Finding 1 under other readings",
    "pair.toml",
    variants={
        rivals(name, other, queue): {**SHARED.variants[in_one(other, queue)], **changes}
        for name, changes in RIVALS.items()
        for other in _BESIDE_RIVALS
        for queue in RIVAL_QUEUES
    },
    seeds=3,
    quick_variants=(),
)

# ------------------------------------------------------------------------------------ a video call

CALL_MBPS = (5, 10, 20)

call = "{}, {} Mbit/s".format
"""The name of a variant of finding 5: `call(queue, mbps)`."""

CALL = Study(
    "call",
    "A video call and a probe, both in the short queue (finding 5)",
    "call.toml",
    variants={
        call(queue, mbps): {
            "bottleneck.qdisc": DUALPI2 if queue == "dualpi2" else queue,
            "bottleneck.shaper": f"htb rate {mbps}mbit",
        }
        for queue, mbps in (*(("dualpi2", mbps) for mbps in CALL_MBPS), ("fq_codel", 5))
    },
    quick_variants=(call("dualpi2", 5), call("fq_codel", 5)),
)

NO_BUCKET, SLOWER = "no token bucket, a slow link", "a call of three quarters of the rate"
CALLS: Mapping[str, Changes] = {
    NO_BUCKET: {"bottleneck.shaper": "none"},
    SLOWER: {"flow.video-down.rate": "1.21 Mbit/s", "flow.video-up.rate": "0.57 Mbit/s"},
}

called = "{}: {}".format
"""The name of a variant of finding 5 under another reading: `called(reading, at)`."""

CALLED = Study(
    "called",
    "Finding 5 without a token bucket, and with a slower call",
    "call.toml",
    variants={
        called(reading, at): {
            **changes,
            **more,
            **({"bottleneck.rate": f"{at.split()[1]} Mbit/s"} if reading == NO_BUCKET else {}),
        }
        for at, changes in CALL.variants.items()
        for reading, more in CALLS.items()
    },
    quick_variants=(called(NO_BUCKET, call("dualpi2", 5)),),
)

_FLOWS: Mapping[str, Changes] = {
    "Prague": {},
    "CUBIC": {
        "flow.prague.congestion": "cubic",
        "flow.prague.ecn": False,
        "flow.video.rate": "1.74 Mbit/s",
    },
    "CUBIC, codel": {
        "bottleneck.qdisc": "codel",
        "flow.prague.congestion": "cubic",
        "flow.prague.ecn": False,
        "flow.video.rate": "1.74 Mbit/s",
    },
}
_VIDEO: Mapping[str, Changes] = {
    "alone": {"flow.video.stop": "1 ms"},
    "video in L": {"flow.video.ecn": "ect1"},
    "video in C": {},
}
BESIDE: Mapping[str, Sequence[str]] = {
    "Prague": ("alone", "video in L", "video in C"),
    "CUBIC": ("alone", "video in L", "video in C"),
    "CUBIC, codel": ("alone", "video in C"),
}

beside = "{}, {}".format
"""The name of a variant of finding 6: `beside(flow, video)`."""

VIDEO = _one_quick(
    "video",
    "A transfer of 20 Mbit/s and 160 ms beside a video call (finding 6)",
    "video.toml",
    variants={
        beside(flow, video): {**_FLOWS[flow], **_VIDEO[video]}
        for flow, videos in BESIDE.items()
        for video in videos
    },
    quick_variants=(beside("Prague", "alone"), beside("Prague", "video in L")),
)

HALF_GAINS, PARTLY = "half of DualPI2's gains", "three quarters of the call in L"
_HALF: Changes = {"bottleneck.qdisc": f"{DUALPI2} alpha 0.08 beta 1.6"}
BESIDE_READINGS = Study(
    "beside",
    "Finding 6 with half of DualPI2's gains, and with a part of the call in the short queue",
    "video.toml",
    variants={
        **{
            f"{HALF_GAINS}: {at}": {**changes, **_HALF}
            for at, changes in VIDEO.variants.items()
            if "codel" not in at
        },
        f"{PARTLY}: {beside('Prague', 'video in L')}": {
            **VIDEO.variants[beside("Prague", "video in L")],
            "flow.video.rate": "1.66 Mbit/s",
        },
    },
    quick_variants=(),
)

# --------------------------------------------------------------------------------- a replay window

WINDOWS: Mapping[int, Sequence[int]] = {
    10: (0, 32, 64),
    20: (0, 32, 64),
    100: (0, 32, 64, 128, 256),
}
"""Replay windows by the link's rate, packets and Mbit/s; 0: none."""
ENOUGH = 512
"""A window larger than those of the tests, which is enough."""


def windowed(mbps: int, window: int) -> str:
    """The name of a variant of finding 9."""
    return f"{mbps} Mbit/s, {f'window {window}' if window else 'no window'}"


REPLAY = Study(
    "replay",
    "Prague and CUBIC in one tunnel with a replay window, over DualPI2, 20 ms (finding 9)",
    "pair.toml",
    variants={
        windowed(mbps, window): {
            **_MINUTE,
            "bottleneck.qdisc": DUALPI2,
            "bottleneck.rate": f"{mbps} Mbit/s",
            "flow.*.tunnel": "vpn",
            **({"bottleneck.down.replay_window": window} if window else {}),
        }
        for mbps, windows in WINDOWS.items()
        for window in (*windows, ENOUGH)
    },
    seeds=3,
    quick_variants=(),
)

# ------------------------------------------------------------------------------------ RFC 9332's

GRID_MBPS = (4, 12, 40, 120, 200)
GRID_MS = (5, 10, 20, 50, 100)

cell = "{} Mbit/s, {} ms".format
"""The name of a variant of RFC 9332's claims: `cell(mbps, rtt_ms)`."""

GRID = _one_quick(
    "grid",
    "Prague, CUBIC and a probe over DualPI2, by rate and RTT (RFC 9332)",
    "grid.toml",
    variants={
        cell(mbps, rtt): {"bottleneck.rate": f"{mbps} Mbit/s", "flow.*.rtt": f"{rtt} ms"}
        for mbps in GRID_MBPS
        for rtt in GRID_MS
    },
    seeds=3,
    quick={"duration": "30 s", "warmup": "15 s"},
    quick_variants=(cell(4, 20), cell(40, 20), cell(40, 100)),
)

STUDIES = (
    SHARED,
    RENO,
    EQUAL,
    UNEQUAL,
    SINCE,
    FALLING,
    BURSTY,
    TUNNEL,
    CALL,
    CALLED,
    VIDEO,
    BESIDE_READINGS,
    REPLAY,
    GRID,
)

SCALED: Mapping[tuple[str, int, int], Variant] = {
    (scalable, mbps, rtt): EQUAL[equal(scalable, mbps, rtt)]
    for scalable in SCALABLE
    for mbps in MBPS
    for rtt in RTT_MS
}

SWAPS: Mapping[str, Swap] = {
    **{
        which: {
            **{
                one: SINCE[today(which, one.name)]
                for at, one in SCALED.items()
                if at[0] == "Prague"
            },
            **{
                UNEQUAL[at]: SINCE[today(which, at)]
                for at in (f"Prague, dualpi2, {ends}" for ends in APART_MS)
            },
        }
        for which in TODAY
    },
    **{
        ON_OTHER_SEEDS if most_ms == CHOSEN_LATE_MS else f"packets up to {most_ms:g} ms late": {
            study[at]: LATENESS[late(most_ms, at)]
            for study in (EQUAL, UNEQUAL)
            for at in study.variants
            if "DCTCP" not in at
        }
        for most_ms in LATE_MS
    },
    **{
        reading: {CALL[at]: CALLED[called(reading, at)] for at in CALL.variants}
        for reading in CALLS
    },
    HALF_GAINS: {
        VIDEO[at]: BESIDE_READINGS[f"{HALF_GAINS}: {at}"]
        for at in VIDEO.variants
        if f"{HALF_GAINS}: {at}" in BESIDE_READINGS.variants
    },
    PARTLY: {VIDEO[at]: BESIDE_READINGS[f"{PARTLY}: {at}"] for at in ("Prague, video in L",)},
    **{
        f"finding 1 with {name}": {
            SHARED[in_one(other, queue)]: RENO[rivals(name, other, queue)]
            for other in _BESIDE_RIVALS
            for queue in RIVAL_QUEUES
        }
        for name in RIVALS
    },
    "DCTCP in Prague's place": {
        SCALED["Prague", mbps, rtt]: SCALED["DCTCP", mbps, rtt] for mbps in MBPS for rtt in RTT_MS
    },
}
