"""Queue disciplines in tc(8)'s words: `fq_codel target 5ms interval 100ms`.

The words, their units and their defaults are tc's, so the same text works here, in the kernel and in a terminal: a bare TIME is
microseconds, `k` in a SIZE is 1024, a RATE's `kbps` is 1000 *bytes* a second. `variant X` (or `variant=X`) chooses where the field
has several algorithms under one name; the disciplines and variants that Linux lacks (`adt`, `red variant ns2`) follow the same style.

linux.py has the disciplines that Linux alone has. Text becomes the engine's parameters (the JSON of crates/qdisc) once, and the parameters become canonical text again: what differs
from the defaults, in a fixed order. text -> params -> text -> params gives the same params.

Source: tc-codel(8), tc-fq_codel(8), tc-red(8), tc-pfifo(8), tc-pfifo_fast(8), iproute2's and the kernel's defaults; ns-2's and ns-3's manuals for theirs.
Deviations from tc: a word given twice, a number beyond 32 bits, and a leading 0 (tc reads octal) are refused; words can't be shortened. `100p`,
as tc shows packets, is read. A `red` without sizes, which tc refuses, takes those that tc-red(8) recommends for the rate of its link.
"""

import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise

from sojourn.scenario import linux
from sojourn.scenario.words import (
    U32,
    Flag,
    Grammar,
    Note,
    Value,
    Word,
    read_count,
    read_positive_time,
    read_rate,
    read_real,
    read_size,
    read_time,
    suspicion,
    switch,
    valued,
)
from sojourn.units import UnitError, nearest, quoted


@dataclass(frozen=True)
class Qdisc:
    """A queue discipline with every parameter filled in; those that only Linux has leave to it what was not said (None), and so
    does a `red` without sizes until its link's rate is known (`at`)."""

    kind: str
    fields: tuple[tuple[str, Value], ...]
    notes: tuple[Note, ...] = field(default=(), compare=False)
    """Of the words it was read from."""

    @classmethod
    def parse(cls, text: str) -> "Qdisc":
        """Reads tc's words; raises UnitError with the place of the wrong one."""
        return _parse(text)

    @classmethod
    def from_params(cls, params: Mapping[str, Value]) -> "Qdisc":
        """The discipline with these parameters, as the engine names them."""
        fields = {name: value for name, value in params.items() if name != "kind"}
        return cls(str(params["kind"]), tuple(fields.items()))

    @property
    def params(self) -> dict[str, Value]:
        """What the engine takes: `{"kind": "codel", "limit": 1000, ...}`."""
        return {"kind": self.kind, **dict(self.fields)}

    @property
    def variant(self) -> str | None:
        """Which algorithm under this name; None where there is only one."""
        variant = dict(self.fields).get("variant")
        return None if variant is None else str(variant)

    @property
    def text(self) -> str:
        """The canonical words."""
        return _text(self)

    def at(self, rate_bps: int) -> "Qdisc":
        """The same on a link of this rate, bit/s: a `red` without sizes takes those that tc-red(8) recommends, all else is as it is."""
        return _sized(self, rate_bps) if _is_bare(self) else self

    def __str__(self) -> str:
        return self.text


# The disciplines -----------------------------------------------------------------------------------------------------


def _fifo(kind: str, limit: int, unit: str) -> Grammar:
    return Grammar(kind, None, (valued("limit", unit, read_size),), (), {"limit": limit}, always=("limit",))


_CODEL_DEFAULTS: dict[str, Value] = {
    "limit": 1000,
    "target_ns": 5_000_000,
    "interval_ns": 100_000_000,
    "ecn": False,
    "ce_threshold_ns": None,
}
_CODEL_WORDS = (
    valued("limit", "PACKETS", read_count(1)),
    valued("target", "TIME", read_time, "target_ns"),
    valued("interval", "TIME", read_positive_time, "interval_ns"),
    valued("ce_threshold", "TIME", read_time, "ce_threshold_ns"),
)
_FQ_CODEL_DEFAULTS: dict[str, Value] = {
    "limit": 10240,
    "flows": 1024,
    "memory_limit": 32 * 2**20,
    "target_ns": 5_000_000,
    "interval_ns": 100_000_000,
    "quantum": 1514,
    "ecn": True,
    "ce_threshold_ns": None,
    "drop_batch": 64,
}


def _fq_codel_words(least_quantum: int) -> tuple[Word, ...]:
    return (
        valued("limit", "PACKETS", read_count(1)),
        valued("flows", "QUEUES", read_count(1, 65536)),
        valued("memory_limit", "BYTES", read_size),
        valued("target", "TIME", read_time, "target_ns"),
        valued("interval", "TIME", read_positive_time, "interval_ns"),
        # The kernel raises a smaller quantum to 256 without a word.
        valued("quantum", "BYTES", read_count(least_quantum, 2**20)),
        valued("ce_threshold", "TIME", read_time, "ce_threshold_ns"),
        valued("drop_batch", "PACKETS", read_count(1)),
    )


AVPKT = 1000
"""tc-red(8): "1000 is a good value"."""
TOLERATED_NS = 20_000_000
"""The queueing delay from which a RED without sizes begins to drop."""
LEAST_MIN_PACKETS = 5
"""Below a threshold of about five packets RED punishes ordinary bursts (Floyd and Jacobson 1993 use 5)."""
_RED_SIZES = ("limit", "min", "max", "avpkt", "burst")


def _is_bare(qdisc: Qdisc) -> bool:
    """Whether it is a RED that waits for the rate of its link."""
    fields = dict(qdisc.fields)
    return qdisc.kind == "red" and fields["limit"] is None


def _sized(red: Qdisc, rate_bps: int) -> Qdisc:
    """tc-red(8)'s recommendation.

    min: the tolerated delay times the rate, but five packets at least. max: three times min. limit: four times max.
    burst: (min + min + max) / (3 avpkt). At 20 Mbit/s: 20 ms are 50000 bytes, so min 50000, max 150000, limit 600000, burst 83.
    """
    fields = dict(red.fields)
    # Beyond 143 Gbit/s the limit would not fit tc's 32 bits.
    low = min(max(rate_bps * TOLERATED_NS // (8 * 10**9), LEAST_MIN_PACKETS * AVPKT), U32 // 12)
    high = 3 * low
    fields |= {"limit": 4 * high, "min": low, "max": high, "avpkt": AVPKT, "burst": 0}
    if fields["bandwidth"] is None:
        fields["bandwidth"] = rate_bps
    return replace(red, fields=tuple(_complete_red(fields, frozenset()).items()))


def _complete_red(fields: dict[str, Value], _given: frozenset[str]) -> dict[str, Value]:
    """What tc computes before it talks to the kernel: max, min and burst from what is given."""
    limit, avpkt = _whole(fields["limit"]), _whole(fields["avpkt"])
    low, high, burst = _whole(fields["min"]), _whole(fields["max"]), _whole(fields["burst"])
    high = high or (3 * low if low else limit // 4)
    low = low or high // 3
    if low >= high:
        raise UnitError(f"red: min {low} is not below max {high}", "give a min below max, both in bytes")
    if high > limit:
        raise UnitError(f"red: max {high} is above limit {limit}", f"give a limit of at least {high} bytes")
    burst = burst or (2 * low + high) // (3 * avpkt)
    # tc's EWMA constant: the smallest power of two that lets a burst of this many packets pass.
    passing = burst + 1 - low / avpkt
    least = math.ceil(low / avpkt)
    if passing < 1:
        raise UnitError(
            f"red: burst {burst} is too small for min {low}", f"give a burst of at least {least} packets"
        )
    if not any(passing <= (1 - (1 - 0.5**log) ** burst) / 0.5**log for log in range(1, 32)):
        raise UnitError(
            f"red: no averaging constant lets a burst of {burst} pass", f"give a burst near {least}"
        )
    return {**fields, "min": low, "max": high, "burst": burst}


def _complete_red_ns(fields: dict[str, Value], given: frozenset[str]) -> dict[str, Value]:
    """`adaptive` makes automatic (0) what is not given: thresholds and weight follow from the rate."""
    if fields["adaptive"]:
        fields = {**fields, **{name: 0.0 for name in ("min", "max", "weight") if name not in given}}
    low, high = float(fields["min"] or 0), float(fields["max"] or 0)
    if low and high and low >= high:
        raise UnitError(
            f"red: min {low:g} is not below max {high:g}", "give a min below max, or 0 for automatic ones"
        )
    return fields


def _red_ns(variant: str, limit: int, low: float, high: float, weight: float, probability: float) -> Grammar:
    return Grammar(
        "red",
        variant,
        (
            valued("limit", "PACKETS", read_count(1)),
            valued("min", "PACKETS", read_real(0, U32)),
            valued("max", "PACKETS", read_real(0, U32)),
            valued("weight", "NUMBER", read_real(0, 1)),
            valued("probability", "NUMBER", read_real(0, 1, open_below=True)),
            valued("mean_bytes", "BYTES", read_count(1, 65535)),
            valued("target_delay", "TIME", read_positive_time, "target_delay_ns"),
        ),
        (
            Flag("bytes", "byte_mode", True),
            Flag("packets", "byte_mode", False),
            *switch("gentle"),
            *switch("wait"),
            Flag("adaptive", "adaptive", True),
            Flag("adaptative", "adaptive", True),
            *switch("ecn"),
        ),
        {
            "variant": variant,
            "limit": limit,
            "min": low,
            "max": high,
            "weight": weight,
            "probability": probability,
            "mean_bytes": 500,
            "byte_mode": variant == "ns2",
            "gentle": True,
            "wait": True,
            "adaptive": False,
            "target_delay_ns": 5_000_000,
            "ecn": False,
        },
        always=("limit", "min", "max", "weight"),
        complete=_complete_red_ns,
    )


def _complete_adt(fields: dict[str, Value], _given: frozenset[str]) -> dict[str, Value]:
    start, limit = fields["start"], _whole(fields["limit"])
    if start is not None and not 1 <= _whole(start) <= limit:
        raise UnitError(
            f"adt: start {start} is not within 1 and the limit {limit}", "give a start up to the limit"
        )
    return fields


_GRAMMARS = (
    # tc takes the device's txqueuelen, 1000 packets on every Ethernet device, and for bfifo times its MTU.
    _fifo("pfifo", 1000, "PACKETS"),
    _fifo("bfifo", 1000 * 1514, "BYTES"),
    _fifo("pfifo_head_drop", 1000, "PACKETS"),
    # No word of tc's: the limit is txqueuelen itself, which ip-link(8) sets.
    *(
        Grammar(
            "pfifo_fast",
            variant,
            (valued("limit", "PACKETS", read_count(1)),),
            (),
            {"variant": variant, "limit": 1000},
            always=("limit",),
        )
        for variant in ("linux", "shared")
    ),
    *(
        Grammar("codel", variant, _CODEL_WORDS, switch("ecn"), {"variant": variant, **_CODEL_DEFAULTS})
        for variant in ("linux", "linux2012", "rfc", "ns3")
    ),
    *(
        Grammar(
            "fq_codel",
            variant,
            _fq_codel_words(least),
            switch("ecn"),
            {"variant": variant, **_FQ_CODEL_DEFAULTS},
        )
        for variant, least in (("linux", 256), ("linux2012", 256), ("rfc", 1), ("ns3", 1))
    ),
    Grammar(
        "red",
        "linux",
        (
            valued("limit", "BYTES", read_size),
            valued("min", "BYTES", read_size),
            valued("max", "BYTES", read_size),
            valued("avpkt", "BYTES", read_size),
            valued("burst", "PACKETS", read_count()),
            valued("probability", "NUMBER", read_real(0, 1, open_below=True)),
            valued("bandwidth", "RATE", read_rate),
        ),
        (
            Flag("adaptive", "adaptive", True),
            Flag("adaptative", "adaptive", True),
            Flag("ecn", "ecn", True),
            Flag("harddrop", "harddrop", True),
            Flag("nodrop", "nodrop", True),
        ),
        {
            "variant": "linux",
            "limit": 0,
            "min": 0,
            "max": 0,
            "avpkt": 0,
            "burst": 0,
            "probability": 0.02,
            "bandwidth": 10_000_000,
            "adaptive": False,
            "ecn": False,
            "harddrop": False,
            "nodrop": False,
        },
        required=("limit", "avpkt"),
        complete=_complete_red,
    ),
    # ns-2.35's Queue/RED: thresholds and weight automatic (0), linterm_ 10 (probability 0.1).
    _red_ns("ns2", 50, 0.0, 0.0, 0.0, 0.1),
    # ns-3's RedQueueDisc: LInterm 50 (0.02).
    _red_ns("ns3", 25, 5.0, 15.0, 0.002, 0.02),
    Grammar(
        "adt",
        None,
        (
            valued("limit", "PACKETS", read_count(1)),
            valued("utilisation", "NUMBER", read_real(0, 1, open_below=True)),
            valued("increase", "NUMBER", read_real(1, 10, open_below=True)),
            valued("weight", "NUMBER", read_real(0, 1, open_below=True)),
            valued("sample", "TIME", read_positive_time, "sample_ns"),
            valued("rate", "RATE", read_rate),
            valued("start", "PACKETS", read_count(1)),
        ),
        (),
        # The published evaluation's settings (Stanojevic, Shorten, Kellett 2006).
        {
            "limit": 1000,
            "utilisation": 0.99,
            "increase": 1.01,
            "weight": 0.1,
            "sample_ns": 300_000_000,
            "rate": None,
            "start": None,
        },
        always=("limit",),
        complete=_complete_adt,
    ),
    *linux.DISCIPLINES,
)

GRAMMARS: dict[str, dict[str | None, Grammar]] = {}
"""By kind, then by variant; the first variant is the default."""
for _grammar in _GRAMMARS:
    GRAMMARS.setdefault(_grammar.kind, {})[_grammar.variant] = _grammar

WORDS = frozenset(word for grammar in _GRAMMARS for word in grammar.sets) | {"variant"}
"""Every word that stands behind the name of some discipline."""

_RED = GRAMMARS["red"]["linux"]
_BARE_RED = replace(
    _RED,
    defaults={**_RED.defaults, **dict.fromkeys((*_RED_SIZES, "bandwidth"))},
    required=(),
    complete=lambda fields, _given: fields,
)
"""`red`, `red ecn`: the sizes, and the bandwidth unless it is given, follow from the link's rate."""

_VARIANT_ALIASES = {
    ("codel", "rfc8289"): "rfc",
    ("fq_codel", "rfc8290"): "rfc",
    **{(kind, linux.PINNED): "linux" for kind, variants in GRAMMARS.items() if "linux" in variants},
}

_ELSEWHERE = {
    **dict.fromkeys(("dualpi2", "cobalt", "skbprio", "sfqcodel", "sfq_codel", "cake_mq"), "fq_codel"),
    **dict.fromkeys(("noqueue", "mq", "droptail", "fifo", "taildrop"), "pfifo limit 1000"),
    **dict.fromkeys(("ared", "avq", "gred", "wred", "arma"), "red variant ns2 adaptive"),
    **dict.fromkeys(("pi", "pi2", "rem"), "pie"),
    **dict.fromkeys(("blue", "green"), "sfb"),
}
"""Disciplines that no engine has, and the nearest that there is."""
_NO_QUEUES = {
    "netem": 'write the link\'s own keys: delay = "10 ms", loss = "0.1 %", rate = "10 Mbit/s"',
    "blackhole": 'write loss = "100 %" at the link',
    "plug": 'write a schedule with a step of "0 bit/s" at the link: an outage',
}
"""Linux's disciplines that are no queues, and what says the same in a scenario."""


_LONGEST = 4096
_REQUIRED = {"red": "red limit 400000 avpkt 1000", "choke": "choke limit 1000 bandwidth 10mbit"}


def _parse(text: str) -> Qdisc:
    tokens = _tokens(text)
    if not tokens:
        raise UnitError("the queue discipline is empty", "write one in tc's words, like fq_codel")
    kind, at = tokens[0]
    if kind not in GRAMMARS:
        raise _unknown_kind(kind, at)
    grammar = _grammar_of(kind, tokens)
    if grammar is _RED and not {name for name, _ in tokens} & set(_RED_SIZES):
        grammar = _BARE_RED
    fields = _fields(grammar, tokens[1:])
    return Qdisc(kind, tuple((name, fields[name]) for name in grammar.defaults), _notes(grammar, tokens[1:]))


def read_fields(text: str, grammar: Grammar) -> dict[str, Value]:
    """What a discipline's words set, by a grammar that is not a scenario's; raises UnitError with the place of the wrong one."""
    return _fields(grammar, _tokens(text)[1:])


def _notes(grammar: Grammar, tokens: Sequence[tuple[str, int]]) -> tuple[Note, ...]:
    """What of words that can be read probably means something else."""
    words = {word.word: word for word in grammar.words}
    found = [
        suspicion(words[name], value, at) for (name, _), (value, at) in pairwise(tokens) if name in words
    ]
    return tuple(note for note in found if note is not None)


def _tokens(text: str) -> list[tuple[str, int]]:
    """Each word and where it begins."""
    if len(text) > _LONGEST:
        raise UnitError(f"the queue discipline is longer than {_LONGEST} characters")
    return [
        (part.group(), match.start() + part.start())
        for match in re.finditer(r"\S+", text)
        for part in re.finditer(r"[^=]+", match.group())
    ]


def _fields(grammar: Grammar, tokens: Sequence[tuple[str, int]]) -> dict[str, Value]:
    """What the words after the discipline's name set, and the rest of its fields."""
    kind = grammar.kind
    fields: dict[str, Value] = {}
    given: set[str] = set()
    words = {word.word: word for word in grammar.words}
    flags = {flag.word: flag for flag in grammar.flags}
    position = 0
    while position < len(tokens):
        value: Value
        name, at = tokens[position]
        position += 1
        if name in grammar.elsewhere:
            raise UnitError(f"{kind}: {name} is not said here", grammar.elsewhere[name], at)
        if name == "variant" and grammar.variant is not None:
            field, value, taken = "variant", grammar.variant, 1
        elif name in flags:
            field, value, taken = flags[name].field, flags[name].sets, 0
        elif name in words:
            if position == len(tokens):
                raise UnitError(f"{kind}: {name} needs a value", f"write {name} {words[name].value}", at)
            field, taken = words[name].field, _extent(words[name], tokens[position:], {*words, *flags})
            given_words = " ".join(text for text, _ in tokens[position : position + taken])
            value = _value(kind, words[name], given_words, tokens[position][1])
        else:
            raise _unknown_word(grammar, name, at, tokens[: position - 1])
        if field in given:
            raise UnitError(f"{kind}: {name} sets what was set before", "say it once", at)
        given.add(field)
        fields[field] = value
        position += taken
    return _completed(grammar, fields, frozenset(given))


def _extent(word: Word, following: Sequence[tuple[str, int]], known: Set[str]) -> int:
    """How many of the words that follow are this one's value."""
    if not word.many:
        return 1
    others = (index for index, (text, _) in enumerate(following) if index > 0 and text in known)
    return next(others, len(following))


def _completed(grammar: Grammar, fields: dict[str, Value], given: frozenset[str]) -> dict[str, Value]:
    for name in grammar.required:
        if not fields.get(name):
            raise UnitError(
                f"{grammar.kind}: {name} is missing",
                f"tc requires it; write it like {_REQUIRED[grammar.kind]}",
            )
    return grammar.complete({**grammar.defaults, **fields}, given)


def _text(qdisc: Qdisc) -> str:
    grammar = _BARE_RED if _is_bare(qdisc) else GRAMMARS[qdisc.kind][qdisc.variant]
    fields = dict(qdisc.fields)
    parts = [qdisc.kind]
    if qdisc.variant is not None and qdisc.variant != next(iter(GRAMMARS[qdisc.kind])):
        parts.append(f"variant {qdisc.variant}")
    for word in grammar.words:
        value = fields[word.field]
        if value is None:
            continue
        if word.field in grammar.always or value != grammar.defaults[word.field]:
            parts.append(f"{word.word} {word.write(value)}")
    said: set[str] = set()
    for flag in grammar.flags:
        value = fields[flag.field]
        if flag.field not in said and value == flag.sets and value != grammar.defaults[flag.field]:
            parts.append(flag.word)
            said.add(flag.field)
    return " ".join(parts)


def _value(kind: str, word: Word, text: str, at: int) -> Value:
    try:
        return word.read(text)
    except UnitError as error:
        raise UnitError(f"{kind} {word.word}: {error.problem}", error.hint, at) from None


def _grammar_of(kind: str, tokens: list[tuple[str, int]]) -> Grammar:
    variants = GRAMMARS[kind]
    index = next((index for index, (name, _) in enumerate(tokens) if name == "variant"), None)
    if index is None:
        return next(iter(variants.values()))
    if None in variants:
        raise UnitError(f"{kind} has no variants", "leave variant out", tokens[index][1])
    choice = ", ".join(str(variant) for variant in variants)
    if index + 1 == len(tokens):
        raise UnitError(f"{kind}: variant needs a value", f"one of {choice}", tokens[index][1])
    name, at = tokens[index + 1]
    asked = _VARIANT_ALIASES.get((kind, name), name)
    if asked not in variants:
        raise UnitError(f"{kind} has no variant {quoted(name)}", f"one of {choice}", at)
    return variants[asked]


def _unknown_kind(kind: str, at: int) -> UnitError:
    known = f"known: {', '.join(GRAMMARS)}"
    if kind in linux.CLASSFUL:
        return UnitError(
            f"{quoted(kind)} needs classes or keeps a rate, and a link has one queue and a rate of its own",
            f"write rate, or shaper with htb's words; {known}",
            at,
        )
    if kind.lower() in _NO_QUEUES:
        return UnitError(
            f"{quoted(kind)} is not a queue discipline of a link", f"{_NO_QUEUES[kind.lower()]}; {known}", at
        )
    if kind.lower() in _ELSEWHERE:
        since = linux.NEWER.get(kind.lower())
        newer = f": it came with Linux {since}, and the guest is Linux {linux.RELEASE}" if since else ""
        return UnitError(
            f"no engine has a queue discipline {quoted(kind)}{newer}",
            f"nearest: {_ELSEWHERE[kind.lower()]}; {known}",
            at,
        )
    guess = nearest(kind, GRAMMARS)
    hint = f"did you mean {guess}? {known}" if guess else known
    return UnitError(f"unknown queue discipline {quoted(kind)}", hint, at)


def _unknown_word(grammar: Grammar, name: str, at: int, before: Sequence[tuple[str, int]]) -> UnitError:
    """`before`: the words that were read."""
    words = [word for word in grammar.sets if word not in grammar.elsewhere]
    if len(GRAMMARS[grammar.kind]) > 1:
        words.append("variant")
    others = [other.variant for other in GRAMMARS[grammar.kind].values() if name in other.sets]
    if others:
        message = f"{grammar.kind} variant {grammar.variant} has no word {quoted(name)}"
        return UnitError(message, f"variant {others[0]} has it", at)
    known = f"known words: {', '.join(words)}"
    message = f"{grammar.kind} has no word {quoted(name)}"
    if name.isalpha() and len(before) > 1 and re.fullmatch(r"[0-9.]+", before[-1][0]):
        said = f"{before[-2][0]} {before[-1][0]}{name.lower()}"
        return UnitError(message, f"a number and its unit are one word: write {said}; {known}", at)
    for word, form in (("limit", r"([0-9]+)[pP]?"), ("target", r"([0-9.]+(?:ms|us))")):
        if (value := re.fullmatch(form, name)) and word in words:
            return UnitError(message, f"write {word} {value[1]}; {known}", at)
    guess = nearest(name, words)
    return UnitError(message, f"did you mean {guess}? {known}" if guess else known, at)


def _whole(value: Value) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} should be a whole number by now")
    return value
