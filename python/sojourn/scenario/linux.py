"""What Linux has and the simulator does not: queue disciplines and congestion controls that a scenario may name all the same.

Their words are tc(8)'s and are passed through as they are given: what is not said is the kernel's own choice, not ours. What can be told
without a kernel is told here (a word that does not exist, a number that is none); the kernel has the last word. Only disciplines that are
complete in one line are here: classful ones that need classes and filters (htb, hfsc, drr, qfq, ...) are not, and a rate is the link's or its `shaper`'s.

Source: tc-cake(8), tc-choke(8), tc-ets(8), tc-fq(8), tc-fq_pie(8), tc-hhf(8), tc-pie(8), tc-prio(8), tc-sfb(8), tc-sfq(8); the
kernel's net/sched/ and net/ipv4/Kconfig for defaults and names.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sojourn.scenario.words import (
    U32,
    Flag,
    Grammar,
    Value,
    Word,
    read_count,
    read_positive_time,
    read_rate,
    read_real,
    read_size,
    read_time,
    switch,
    valued,
)
from sojourn.units import UnitError, quoted


def _whole(read: Callable[[str], int]) -> Callable[[str], int]:
    """tc counts these in microseconds."""

    def whole(text: str) -> int:
        ns = read(text)
        if ns % 1_000:
            raise UnitError(
                f"{quoted(text)} is no whole number of microseconds, in which tc counts", "write it like 15ms"
            )
        return ns

    return whole


_time = _whole(read_time)


def _counts(most: int) -> Callable[[str], str]:
    """Several numbers with a blank between."""
    one = read_count(0, most)

    def read(text: str) -> str:
        return " ".join(str(one(each)) for each in text.split())

    return read


def _many(word: str, value: str, most: int) -> Word:
    return replace(valued(word, value, _counts(most)), many=True)


def _one_of(field: str, *words: str) -> tuple[Flag, ...]:
    """Words of which one at most is said."""
    return tuple(Flag(word, field, word) for word in words)


def _checked(
    check: Callable[[Mapping[str, Value]], str | None], hint: str
) -> Callable[[dict[str, Value], frozenset[str]], dict[str, Value]]:
    def complete(fields: dict[str, Value], _given: frozenset[str]) -> dict[str, Value]:
        if why := check(fields):
            raise UnitError(why, hint)
        return fields

    return complete


def _alone(
    kind: str,
    words: tuple[Word, ...],
    flags: tuple[Flag, ...] = (),
    required: tuple[str, ...] = (),
    complete: Callable[[dict[str, Value], frozenset[str]], dict[str, Value]] | None = None,
) -> Grammar:
    """A discipline that Linux alone has: nothing is said that is not given."""
    fields: dict[str, Value] = dict.fromkeys([each.field for each in words] + [each.field for each in flags])
    grammar = Grammar(kind, None, words, flags, fields, required=required, simulated=False)
    return grammar if complete is None else replace(grammar, complete=complete)


_LIMIT = valued("limit", "PACKETS", read_count(1))
_BANDS = 16


def _thresholds(fields: Mapping[str, Value]) -> str | None:
    low, high = fields["min"], fields["max"]
    if isinstance(low, int) and isinstance(high, int) and low >= high:
        return f"choke: min {low} is not below max {high}"
    limit = fields["limit"]
    if isinstance(limit, int) and isinstance(high, int) and high > limit:
        return f"choke: max {high} is above the limit, {limit}"
    return None


def _bands(fields: Mapping[str, Value]) -> str | None:
    if all(fields[word] is None for word in ("bands", "strict", "quanta")):
        return "ets: it is not said how many bands there are"
    return None


def _contradiction(fields: Mapping[str, Value]) -> str | None:
    for one, other in (("bandwidth", "free"), ("rtt_ns", "path"), ("overhead", "layer")):
        if fields[one] is not None and fields[other] is not None:
            return f"cake: {fields[other]} and {one.removesuffix('_ns')} say the same thing differently"
    return None


_PIE = (
    valued("target", "TIME", _time, "target_ns"),
    valued("tupdate", "TIME", _time, "tupdate_ns"),
    valued("alpha", "NUMBER", read_count(0, 32)),
    valued("beta", "NUMBER", read_count(0, 32)),
)

CAKE_PATHS_NS = {
    "datacentre": 100_000,
    "lan": 10**6,
    "metro": 10 * 10**6,
    "regional": 30 * 10**6,
    "internet": 100 * 10**6,
    "oceanic": 300 * 10**6,
    "satellite": 10**9,
    "interplanetary": 3600 * 10**9,
}
"""cake's words for an RTT."""
CAKE_ISOLATIONS = (
    *("flowblind", "srchost", "dsthost", "hosts", "flows"),
    *("dual-srchost", "dual-dsthost", "triple-isolate"),
)
"""By whom cake shares, in the order of the kernel's numbers."""

CAKE = _alone(
    "cake",
    (
        valued("bandwidth", "RATE", read_rate),
        valued("rtt", "TIME", _whole(read_positive_time), "rtt_ns"),
        valued("memlimit", "BYTES", read_size),
        valued("overhead", "BYTES", read_count(0, 256)),
        valued("mpu", "BYTES", read_count(0, 256)),
    ),
    (
        *_one_of("free", "unlimited"),
        *_one_of("path", *CAKE_PATHS_NS),
        *_one_of("tins", "besteffort", "precedence", "diffserv8", "diffserv4", "diffserv3"),
        *_one_of("isolation", *CAKE_ISOLATIONS),
        *_one_of("wash", "wash", "nowash"),
        *_one_of("gso", "split-gso", "no-split-gso"),
        *_one_of("acks", "ack-filter", "ack-filter-aggressive", "no-ack-filter"),
        *_one_of("cells", "ptm", "atm", "noatm"),
        *_one_of("layer", "raw", "conservative", "ethernet", "ether-vlan", "docsis"),
        *_one_of("layer", "pppoa-vcmux", "pppoa-llc", "pppoe-vcmux", "pppoe-llcsnap"),
        *_one_of("layer", "bridged-vcmux", "bridged-llcsnap", "ipoa-vcmux", "ipoa-llcsnap"),
        *_one_of("layer", "pppoe-ptm", "bridged-ptm"),
        *_one_of("shaping", "ingress", "egress"),
    ),
    complete=_checked(_contradiction, "keep one of them"),
)

DISCIPLINES = (
    CAKE,
    _alone(
        "choke",
        (
            _LIMIT,
            valued("bandwidth", "RATE", read_rate),
            valued("min", "PACKETS", read_count(1)),
            valued("max", "PACKETS", read_count(1)),
            valued("avpkt", "BYTES", read_size),
            valued("burst", "PACKETS", read_count(1)),
            valued("probability", "NUMBER", read_real(0, 1, open_below=True)),
        ),
        (Flag("ecn", "ecn", True),),
        required=("limit", "bandwidth"),
        complete=_checked(
            _thresholds, "give a min below max, and a limit that is not below either, in packets"
        ),
    ),
    _alone(
        "ets",
        (
            valued("bands", "NUMBER", read_count(1, _BANDS)),
            valued("strict", "NUMBER", read_count(0, _BANDS)),
            _many("quanta", "BYTES...", U32),
            _many("priomap", "BAND...", _BANDS - 1),
        ),
        complete=_checked(_bands, "write ets bands 3, ets strict 3, or quanta in bytes for each band"),
    ),
    _alone(
        "fq",
        (
            _LIMIT,
            valued("flow_limit", "PACKETS", read_count(1)),
            valued("quantum", "BYTES", read_count(1)),
            valued("initial_quantum", "BYTES", read_count(1)),
            valued("maxrate", "RATE", read_rate),
            valued("buckets", "NUMBER", read_count(1, 1 << 18)),
            valued("refill_delay", "TIME", _time, "refill_delay_ns"),
            valued("low_rate_threshold", "RATE", read_rate),
            valued("orphan_mask", "NUMBER", read_count()),
            valued("timer_slack", "TIME", _time, "timer_slack_ns"),
            valued("ce_threshold", "TIME", _time, "ce_threshold_ns"),
            valued("horizon", "TIME", _time, "horizon_ns"),
        ),
        (*switch("pacing"), *_one_of("beyond", "horizon_cap", "horizon_drop")),
    ),
    _alone(
        "fq_pie",
        (
            _LIMIT,
            valued("flows", "NUMBER", read_count(1, 65536)),
            *_PIE,
            valued("quantum", "BYTES", read_count(1)),
            valued("memory_limit", "BYTES", read_size),
            valued("ecn_prob", "NUMBER", read_count(0, 100)),
        ),
        (
            *switch("ecn"),
            *switch("bytemode"),
            Flag("dq_rate_estimator", "dq_rate_estimator", True),
            Flag("no_dq_rate_estimator", "dq_rate_estimator", False),
        ),
    ),
    _alone(
        "hhf",
        (
            _LIMIT,
            valued("quantum", "BYTES", read_count(1)),
            valued("hh_limit", "NUMBER", read_count(1)),
            valued("reset_timeout", "TIME", _time, "reset_timeout_ns"),
            valued("admit_bytes", "BYTES", read_size),
            valued("evict_timeout", "TIME", _time, "evict_timeout_ns"),
            valued("non_hh_weight", "NUMBER", read_count(1)),
        ),
    ),
    _alone(
        "pie",
        (_LIMIT, *_PIE),
        (
            *switch("ecn"),
            *switch("bytemode"),
            Flag("dq_rate_estimator", "dq_rate_estimator", True),
            Flag("no_dq_rate_estimator", "dq_rate_estimator", False),
        ),
    ),
    _alone(
        "prio",
        (valued("bands", "NUMBER", read_count(2, _BANDS)), _many("priomap", "BAND...", _BANDS - 1)),
    ),
    _alone(
        "sfb",
        (
            valued("rehash", "MS", read_count()),
            valued("db", "MS", read_count()),
            _LIMIT,
            valued("max", "PACKETS", read_count(1)),
            valued("target", "PACKETS", read_count(1)),
            valued("increment", "NUMBER", read_real(0, 1, open_below=True)),
            valued("decrement", "NUMBER", read_real(0, 1, open_below=True)),
            valued("penalty_rate", "PACKETS", read_count()),
            valued("penalty_burst", "PACKETS", read_count()),
        ),
    ),
    _alone(
        "sfq",
        (
            _LIMIT,
            valued("perturb", "SECONDS", read_count(0, 2**31 - 1)),
            valued("quantum", "BYTES", read_size),
            valued("divisor", "NUMBER", read_count(1, 65536)),
            valued("flows", "NUMBER", read_count(1, 65536)),
            valued("depth", "PACKETS", read_count(1)),
            valued("redflowlimit", "BYTES", read_size),
            valued("min", "BYTES", read_size),
            valued("max", "BYTES", read_size),
            valued("avpkt", "BYTES", read_size),
            valued("burst", "PACKETS", read_count(1)),
            valued("probability", "NUMBER", read_real(0, 1, open_below=True)),
        ),
        (
            Flag("headdrop", "headdrop", True),
            Flag("ecn", "ecn", True),
            Flag("harddrop", "harddrop", True),
        ),
    ),
)

RELEASE = "6.12.117"
"""The kernel whose algorithms `variant linux` of the simulator's disciplines are: Debian 12's, which the built guest runs."""
PINNED = "linux6.12"
"""What `variant linux` means today, by a name that will mean it tomorrow."""

NEWER = {"dualpi2": "6.17"}
"""Disciplines that came with a later kernel than the guest's, and with which."""

CLASSFUL = ("htb", "hfsc", "drr", "qfq", "tbf", "cbs", "gred", "multiq", "mqprio", "taprio", "etf")
"""Linux's disciplines that one line does not describe, or that are for a rate: a scenario can't name them."""

PACKETS = {
    "cake": 10_240,
    "fq": 10_000,
    "fq_pie": 10_240,
    "hhf": 1_000,
    "pie": 1_000,
    "sfb": 1_000,
    "sfq": 127,
    "prio": 3_000,
    "ets": 3_000,
}
"""What each holds at most, packets, where it is not told: the kernel's defaults. choke must be told."""

CONGESTION = (
    *("bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable", "veno"),
    *("westwood", "yeah"),
)
"""Congestion controls by the kernel's names. bbr is its version 1."""

NEAREST = {
    **dict.fromkeys(("cake", "fq_pie", "fq", "hhf"), "fq_codel"),
    **dict.fromkeys(("pie", "sfb"), "codel"),
    "sfq": "fq_codel",
    "choke": "red",
    **dict.fromkeys(("prio", "ets"), "pfifo_fast"),
    **dict.fromkeys(("bbr", "bic", "highspeed", "htcp", "hybla", "illinois", "scalable", "yeah"), "cubic"),
    **dict.fromkeys(("dctcp", "westwood"), "reno"),
    **dict.fromkeys(("cdg", "nv", "veno"), "vegas"),
    "lp": "ledbat",
}
"""What of the simulator's comes nearest to a discipline or congestion control that Linux alone has."""

NOT_THERE = {
    "prague": 'the nearest there is: congestion = "dctcp" and ecn = true, with -e kernel; reno, if it need not be scalable',
    **dict.fromkeys(("bbr2", "bbr3", "bbrv2", "bbrv3"), 'congestion = "bbr" is version 1, with -e kernel'),
}
"""Congestion controls that people ask for and that kernel does not have, and what to write instead."""

LACKS = ("ledbat",)
"""Congestion controls of the simulator that Linux does not have."""


def packets(params: Mapping[str, Any]) -> int:
    """How many packets a discipline holds at most, about, by its parameters: where it counts bytes, full packets of them."""
    if (limit := params.get("limit")) is None:
        return PACKETS[params["kind"]] * (params.get("bands") or 3) // 3
    return int(limit) // 1500 + 1 if params["kind"] in ("bfifo", "red") else int(limit)


def shapes(params: Mapping[str, Any]) -> bool:
    """Whether a discipline may hold packets back by itself, whatever lies below it."""
    held = {"cake": "bandwidth", "fq": "maxrate"}
    return params.get(held.get(params["kind"], "")) is not None


def as_linux(realised: Mapping[str, Any]) -> bool:
    """Whether some link's discipline is `variant linux`."""
    return any(link["qdisc"].get("variant") == "linux" for link in realised["links"])


def needed(realised: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What of a realised scenario needs a Linux kernel: (place, name)."""
    if realised.get("offloads"):
        yield "offloads", "packets of 64 kB"
    alone = {grammar.kind for grammar in DISCIPLINES}
    for link in realised["links"]:
        if link["qdisc"]["kind"] in alone:
            yield f"link {link['name']!r}: qdisc", link["qdisc"]["kind"]
    told: set[int] = set()
    for flow in realised["flows"]:
        name = flow["traffic"].get("tcp", {}).get("congestion")
        if name in CONGESTION and flow["group"] not in told:
            told.add(flow["group"])
            yield f"flow {flow['name']!r}: congestion", name
