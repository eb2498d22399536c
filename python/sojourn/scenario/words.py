"""tc(8)'s words: what a grammar of them is made of, and how its numbers, times, sizes and rates are read and written.

Units and their defaults are tc's: a bare TIME is microseconds, `k` in a SIZE is 1024, a RATE's `kbps` is 1000 *bytes* a second.

Source: tc(8), iproute2. Deviations from tc: a number beyond 32 bits and a leading 0 (tc reads octal) are refused; words can't be shortened; `100p`, as tc shows
packets, is read.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from sojourn.units import MAX_RATE, UnitError, format_number, quoted

Value = int | float | bool | str | None
"""A parameter."""


@dataclass(frozen=True)
class Word:
    """`limit PACKETS`: a word followed by a value."""

    word: str
    field: str
    value: str
    read: Callable[[str], Value]
    write: Callable[[Value], str]
    many: bool = False
    """It takes all values that follow, up to the next word; `read` is given them with a blank between."""


@dataclass(frozen=True)
class Flag:
    """`ecn`: a word that stands alone and sets a field."""

    word: str
    field: str
    sets: Value


@dataclass(frozen=True)
class Note:
    """Words that are taken as tc takes them, and that probably mean something else."""

    message: str
    hint: str
    offset: int
    """Into the text."""


@dataclass(frozen=True)
class Grammar:
    """The words of one discipline, or of one variant of it."""

    kind: str
    variant: str | None
    words: tuple[Word, ...]
    flags: tuple[Flag, ...]
    defaults: Mapping[str, Value]
    """Every field, in the order of the engine's struct."""
    required: tuple[str, ...] = ()
    """Fields that must be given, as tc demands."""
    always: tuple[str, ...] = ()
    """Fields that the canonical text always says."""
    complete: Callable[[dict[str, Value], frozenset[str]], dict[str, Value]] = lambda fields, _given: fields
    """Fills what depends on other fields and checks what spans them."""
    simulated: bool = True
    """The simulator has it; else Linux alone does, and what is not given is left to the kernel."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Words that are refused where this grammar is read, and what says it there instead."""

    @property
    def sets(self) -> dict[str, str]:
        """Each word, and the field that it sets."""
        return {each.word: each.field for each in self.words} | {each.word: each.field for each in self.flags}

    @property
    def usage(self) -> str:
        """`codel limit PACKETS target TIME ... [ecn | noecn]`."""
        variant = [f"variant {self.variant}"] if self.variant and self.variant != "linux" else []
        words = [
            f"{each.word} {each.value}" if each.field in self.required else f"[{each.word} {each.value}]"
            for each in self.words
        ]
        return " ".join([self.kind, *variant, *words, *(f"[{flag.word}]" for flag in self.flags)])


# tc's units ----------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})([a-zA-Z/%]*)", re.ASCII)
_TIME = {"": 1_000, "ns": 1, "nsec": 1, "nsecs": 1, "us": 1_000, "usec": 1_000, "usecs": 1_000}
_TIME |= {"ms": 10**6, "msec": 10**6, "msecs": 10**6, "s": 10**9, "sec": 10**9, "secs": 10**9}
_SIZE = {"": 1, "b": 1, "k": 2**10, "kb": 2**10, "m": 2**20, "mb": 2**20, "g": 2**30, "gb": 2**30}
_SIZE |= {"kbit": 2**10 // 8, "mbit": 2**20 // 8, "gbit": 2**30 // 8}
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_PREFIXES |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_RATE = {f"{prefix}bit": scale for prefix, scale in _PREFIXES.items()}
_RATE |= {f"{prefix}bps": 8 * scale for prefix, scale in _PREFIXES.items()} | {"": 1}
U32 = 2**32 - 1


def _scaled(text: str, what: str, units: Mapping[str, int], example: str, most: int) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UnitError(f"{quoted(text)} is not {what} in tc's words", f"write it like {example}")
    number, unit = match[1], match[2].lower()
    if unit not in units:
        known = ", ".join(each for each in units if each)
        raise UnitError(
            f"{quoted(match[2])} is not a unit of {what.split()[-1]} in tc's words", f"known units: {known}"
        )
    exact = Decimal(number) * units[unit]
    if exact != int(exact):
        raise UnitError(f"{quoted(text)} is not a whole number", f"write it like {example}")
    if exact > most:
        raise UnitError(f"{quoted(text)} is too large", f"the most is {most}")
    return int(exact)


def read_time(text: str) -> int:
    # tc holds a TIME in 32 bits of microseconds.
    return _scaled(text, "a time", _TIME, "5ms (a bare number is microseconds)", U32 * 1_000)


def read_positive_time(text: str) -> int:
    ns = read_time(text)
    if ns == 0:
        raise UnitError(f"{quoted(text)} must be above zero", "write a time like 100ms")
    return ns


def read_size(text: str) -> int:
    return _scaled(text, "a size", _SIZE, "30000 or 30k (k is 1024)", U32)


def read_rate(text: str) -> int:
    if text.endswith("%"):
        raise UnitError(
            f"{quoted(text)}: a share of a device's rate means nothing here", "write a rate like 10mbit"
        )
    bps = _scaled(text, "a rate", _RATE, "10mbit (bps is bytes a second)", MAX_RATE)
    if bps == 0:
        raise UnitError(f"{quoted(text)} must be above zero", "write a rate like 10mbit")
    return bps


def read_count(least: int = 0, most: int = U32) -> Callable[[str], int]:
    def read(text: str) -> int:
        if re.fullmatch(r"[0-9]+[pP]", text):
            raise UnitError(
                f"{quoted(text)} is how tc shows it; it reads a bare number", f"write {text[:-1]}"
            )
        if re.fullmatch(r"0[0-9]+", text):
            raise UnitError(
                f"{quoted(text)} begins with 0, which tc reads as octal", f"write {text.lstrip('0') or '0'}"
            )
        if not re.fullmatch(r"[0-9]{1,18}|0[xX][0-9a-fA-F]{1,15}", text, re.ASCII):
            raise UnitError(f"{quoted(text)} is not a whole number", "write it like 1000")
        number = int(text, 0)
        if not least <= number <= most:
            raise UnitError(f"{quoted(text)} is out of range", f"write a number from {least} to {most}")
        return number

    return read


def read_real(least: float, most: float, *, open_below: bool = False) -> Callable[[str], float]:
    def read(text: str) -> float:
        if not re.fullmatch(
            r"([0-9]{1,18}(\.[0-9]{0,24})?|\.[0-9]{1,24})([eE][+-]?[0-9]{1,2})?", text, re.ASCII
        ):
            raise UnitError(f"{quoted(text)} is not a number", "write it like 0.02")
        number = float(text)
        if not least <= number <= most or (open_below and number == least):
            bound = "above" if open_below else "from"
            raise UnitError(
                f"{quoted(text)} is out of range", f"write a number {bound} {least:g} to {most:g}"
            )
        return number

    return read


def _read_packets(read: Callable[[str], Value]) -> Callable[[str], Value]:
    """Packets also as tc shows them, though it does not read them so: `100p`."""
    return lambda text: read(text[:-1] if re.fullmatch(r"[0-9]+[pP]", text) else text)


def suspicion(word: Word, text: str, offset: int) -> Note | None:
    """A bare number of a TIME below a millisecond: who wrote it probably meant milliseconds."""
    if word.value != "TIME" or not re.fullmatch(r"[0-9.]+", text) or not 0 < read_time(text) < 10**6:
        return None
    said = f"{word.word} {text}"
    message = f"{said} is {text} us: to tc a bare number is microseconds"
    return Note(message, f"write {said}ms if milliseconds are meant, else {said}us", offset)


def _write_plain(value: Value) -> str:
    return _write_real(value) if isinstance(value, float) else str(value)


def _write_real(value: Value) -> str:
    return format_number(float(value or 0))


def _write_time(value: Value) -> str:
    ns = int(value or 0)
    unit, scale = next(
        (u, s) for u, s in (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1)) if ns % s == 0
    )
    return f"{ns // scale}{unit}" if ns else "0us"


def write_rate(value: Value) -> str:
    bps = int(value or 0)
    unit, scale = next(
        (u, s) for u, s in (("gbit", 10**9), ("mbit", 10**6), ("kbit", 10**3), ("bit", 1)) if bps % s == 0
    )
    return f"{bps // scale}{unit}"


def valued(word: str, value: str, read: Callable[[str], Value], field: str | None = None) -> Word:
    """A word that takes a value of this sort: PACKETS, TIME, RATE, ..."""
    write = {"TIME": _write_time, "RATE": write_rate, "NUMBER": _write_real}.get(value, _write_plain)
    if value == "PACKETS":
        read = _read_packets(read)
    return Word(word, field or word, value, read, write)


def switch(word: str, field: str | None = None) -> tuple[Flag, Flag]:
    """`ecn` and `noecn`."""
    return Flag(word, field or word, True), Flag(f"no{word}", field or word, False)
