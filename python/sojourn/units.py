"""Quantities as people write them, "20 Mbit/s", "5 ms", "50 kB", "0.1 %", and as the engine counts
them.

Inside there are only integers: nanoseconds, bit/s, bytes; a probability is a fraction. Text is read
exactly, in decimal, so 0.1 ms is 100000 ns and not nearly so; what is finer than the unit of
counting is refused rather than rounded. Each `parse_` has a `format_` that writes the shortest text
which reads back as the same value.

Source: decimal prefixes are SI's (kbit/s = 1000 bit/s, kB = 1000 B), KiB, MiB and GiB are IEC
80000-13's. tc(8) reads its words otherwise (`kbps` is 1000 bytes/s, `k` is 1024 bytes); that
reading lives in crates/tc.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from decimal import Context, Decimal

from sojourn.errors import UserError

NS_PER_S = 1_000_000_000
DAY = 86_400 * NS_PER_S
MAX_DURATION = 10 * 365 * DAY
"""Ten years: the longest time anything here may last, ns."""
MAX_RATE = 10 * 10**12
"""10 Tbit/s, bit/s."""
MAX_SIZE = 10**15
"""1 PB, bytes."""


class UnitError(UserError, ValueError):
    """A text that is not the quantity it should be. `hint` says what to write instead; `offset`
    points into the text."""

    def __init__(self, problem: str, hint: str = "", offset: int = 0) -> None:
        super().__init__(problem, hint)
        self.offset = offset


_DURATION = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": NS_PER_S}
_DURATION |= {"min": 60 * NS_PER_S, "h": 3600 * NS_PER_S}
_SPAN = _DURATION | {"d": DAY, "w": 7 * DAY}
_RATE = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
_SIZE = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}

UNITS = frozenset((*_DURATION, *_RATE, *_SIZE, "%"))
"""Every unit of a quantity."""

# What people write instead, and what they mean.
_DURATION_ALIASES = {
    **dict.fromkeys(("sec", "secs", "second", "seconds", "S"), "s"),
    **dict.fromkeys(("msec", "msecs", "millisecond", "milliseconds", "MS", "Ms"), "ms"),
    **dict.fromkeys(("usec", "usecs", "microsecond", "microseconds"), "us"),
    **dict.fromkeys(("nsec", "nanosecond", "nanoseconds"), "ns"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hour", "hours", "hr", "H"), "h"),
}
_SPAN_ALIASES = {
    **_DURATION_ALIASES,
    **dict.fromkeys(("day", "days", "D"), "d"),
    **dict.fromkeys(("week", "weeks", "W"), "w"),
}
_SIZE_ALIASES = {
    **dict.fromkeys(("b", "byte", "bytes", "octets"), "B"),
    **dict.fromkeys(("KB", "K", "k", "kb", "Kb"), "kB"),
    **dict.fromkeys(("M", "mb", "Mb"), "MB"),
    **dict.fromkeys(("G", "gb", "Gb"), "GB"),
    **dict.fromkeys(("kiB", "Ki"), "KiB"),
    **dict.fromkeys(("Mi", "miB"), "MiB"),
    **dict.fromkeys(("Gi", "giB"), "GiB"),
}

# This holds every number a float can print; more digits only make arithmetic slow.
_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,24})?(?:[eE][+-]?[0-9]{1,3})?"
_EXACT = Context(prec=80)
_QUANTITY = re.compile(rf"\s*({_NUMBER})\s*([^\s0-9.]\S*)?\s*", re.ASCII)


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The known word that was probably meant, if one is near."""
    known = list(words)
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(word.lower()[:40], by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None


def quoted(value: object) -> str:
    """A value as it may stand in a message: on one line and not too long."""
    text = _as_in_toml(value)
    return text if len(text) <= 60 else text[:50] + "…" + text[-1]


def _as_in_toml(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case Mapping():
            return (
                "{"
                + ", ".join(f"{key} = {_as_in_toml(inner)}" for key, inner in value.items())
                + "}"
            )
        case list() | tuple():
            return "[" + ", ".join(map(_as_in_toml, value)) + "]"
    return repr(value)


def parse_duration(
    value: object,
    *,
    what: str = "a duration",
    example: str = "5 ms",
    zero: bool = True,
    most: int = MAX_DURATION,
    days: bool = False,
) -> int:
    """Nanoseconds. `5 ms`, `1.5 s`, `2 min`; with `days`, for spans of a calendar, also `7 d`,
    `2 w`."""
    units, aliases = (_SPAN, _SPAN_ALIASES) if days else (_DURATION, _DURATION_ALIASES)
    ns = _quantity(value, what, example, units, aliases, "a nanosecond")
    if ns == 0 and not zero:
        raise UnitError(f"{what} of zero", f'write a time above zero, like "{example}"')
    if ns > most:
        raise UnitError(f"{quoted(value)} is too long: the most is {format_duration(most)}")
    return ns


def parse_rate(value: object, *, zero: bool = False) -> int:
    """Bit/s. `20 Mbit/s`; nothing else, because `Mbps` and `mbit` mean different things to
    different programs."""
    aliases = {}
    for unit in _RATE:
        short = unit.removesuffix("bit/s")
        for alias in (
            f"{short}bit",
            f"{short}bps",
            f"{short}bits/s",
            f"{short}b/s",
            f"{short}Bit/s",
            f"{short}bit/sec",
        ):
            aliases[alias] = unit
            aliases[alias.lower()] = unit
        if short:
            aliases[short] = aliases[short.lower()] = unit
    rate = _quantity(value, "a rate", "20 Mbit/s", _RATE, aliases, "one bit/s")
    if rate == 0 and not zero:
        raise UnitError(
            "a rate of zero",
            'write a rate above zero, like "20 Mbit/s"; an outage is a step of a schedule',
        )
    if rate > MAX_RATE:
        raise UnitError(f"{quoted(value)} is too fast: the most is 10 Tbit/s")
    return rate


def parse_size(value: object, *, what: str = "a size", least: int = 0, most: int = MAX_SIZE) -> int:
    """Bytes. `1500 B`, `50 kB` (50000), `5 MiB` (5 × 2^20)."""
    size = _quantity(value, what, "1500 B", _SIZE, _SIZE_ALIASES, "one byte")
    if size < least:
        raise UnitError(f"{quoted(value)} is too small: the least is {format_size(least)}")
    if size > most:
        raise UnitError(f"{quoted(value)} is too large: the most is {format_size(most)}")
    return size


def parse_probability(value: object) -> float:
    """A fraction. `0.1 %`, `0.001`; 0 to 1."""
    hint = 'write a percentage in quotes, like "0.1 %", or a fraction, like 0.001'
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnitError(f"{quoted(value)} is not a probability", hint)
    if isinstance(value, str):
        match = re.fullmatch(rf"\s*({_NUMBER})\s*(%?)\s*", value, re.ASCII)
        if match is None:
            raise UnitError(f"{quoted(value)} is not a probability", hint)
        fraction = float(Decimal(match[1]) / (100 if match[2] else 1))
    else:
        fraction = float(value)
    if not 0 <= fraction <= 1:
        raise UnitError(f"{quoted(value)} is not between 0 and 1 (0 % and 100 %)", hint)
    return fraction


def format_duration(ns: int) -> str:
    """`5 ms` for 5000000."""
    return _format(ns, {unit: _DURATION[unit] for unit in ("s", "ms", "us", "ns")})


def format_rate(bps: int) -> str:
    """`20 Mbit/s` for 20000000."""
    return _format(bps, dict(reversed(_RATE.items())))


def format_size(size: int) -> str:
    """`1500 B`, `50 kB`; binary units only where they are whole and decimal ones are not: `5
    MiB`."""
    decimal = {unit: _SIZE[unit] for unit in ("TB", "GB", "MB", "kB")}
    binary = {unit: _SIZE[unit] for unit in ("GiB", "MiB", "KiB")}
    for units in (decimal, binary):
        for unit, scale in units.items():
            if size >= 2 * scale and size % scale == 0:
                return f"{size // scale} {unit}"
    return f"{size} B"


def format_probability(fraction: float) -> str:
    """`0.1 %` for 0.001, if the percentage reads back as the same number; else the number
    itself."""
    percent = f"{fraction * 100:.6g}"
    if re.fullmatch(_NUMBER, percent) and float(Decimal(percent) / 100) == fraction:
        return f"{percent} %"
    return format_number(fraction)


def format_number(number: float) -> str:
    """The shortest decimal that is this number: `0.02`, `1e-07`."""
    return (
        f"{Decimal(repr(number)).normalize():f}"
        if number == 0 or 1e-6 <= abs(number) < 1e15
        else repr(number)
    )


def _quantity(
    value: object,
    what: str,
    example: str,
    units: Mapping[str, int],
    aliases: Mapping[str, str],
    grain: str,
) -> int:
    known = [unit for unit in units if unit.isascii()]
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnitError(
            f"{quoted(value)} is not {what}", f'write {what} in quotes, like "{example}"'
        )
    if isinstance(value, int | float):
        unit = example.split()[1]
        hint = (
            f'write "{value} {unit}"'
            if 0 <= value < 10**9
            else f'write {what} in quotes, like "{example}"'
        )
        raise UnitError(f"{what} needs a unit; {quoted(value)} is a bare number", hint)
    match = _QUANTITY.fullmatch(value)
    if match is None:
        raise _not_a_quantity(value, what, example)
    number, unit = match[1], match[2]
    if unit is None:
        raise UnitError(
            f"{what} needs a unit; {quoted(value)} has none",
            f'write "{number} {example.split()[1]}"',
        )
    if unit not in units:
        raise _unknown_unit(number, unit, what, units, aliases, known, match.start(2))
    exact = _EXACT.multiply(Decimal(number), Decimal(units[unit]))
    if exact > 10**21:
        raise UnitError(
            f"{quoted(value)} is absurdly large for {what}", f'write something like "{example}"'
        )
    whole = int(exact)
    if whole != exact:
        raise UnitError(
            f"{quoted(value)} is finer than {grain}",
            f"{what} is counted in whole multiples of {grain}",
        )
    return whole


def _not_a_quantity(value: str, what: str, example: str) -> UnitError:
    hint = f'write a number and a unit, like "{example}"'
    text = value.strip()
    if not text:
        return UnitError(f"{what} is empty", hint)
    if text.startswith("-"):
        return UnitError(f"{what} can't be negative: {quoted(value)}", hint)
    if re.match(r"[+]?(nan|inf)", text, re.IGNORECASE):
        return UnitError(f"{quoted(value)} is not a finite number", hint)
    if re.fullmatch(r"[0-9]+,[0-9]+.*", text):
        return UnitError(
            f"{quoted(value)} has a comma", f'decimals take a point: "{text.replace(",", ".", 1)}"'
        )
    return UnitError(f"{quoted(value)} is not {what}", hint)


def _unknown_unit(
    number: str,
    unit: str,
    what: str,
    units: Mapping[str, int],
    aliases: Mapping[str, str],
    known: list[str],
    offset: int,
) -> UnitError:
    problem = f"{quoted(unit)} is not a unit of {what.removeprefix('a ')}"
    known_units = f"known units: {', '.join(known)}"
    if "bit/s" in units and re.fullmatch(r"[kKMGT]?(B/s|Bps|BPS)", unit):
        bits = Decimal(number) * 8
        meant = {"K": "k"}.get(unit[0], unit[0] if unit[0] in "kMGT" else "")
        return UnitError(
            problem, f'that is bytes a second: write "{bits.normalize():f} {meant}bit/s"', offset
        )
    if unit in aliases:
        return UnitError(problem, f'write "{number} {aliases[unit]}"', offset)
    lowered = {each.lower(): each for each in units} | {
        each.lower(): to for each, to in aliases.items()
    }
    if unit.lower() in lowered:
        return UnitError(
            problem, f'write "{number} {lowered[unit.lower()]}"; capitals matter', offset
        )
    guess = nearest(unit, known)
    return UnitError(
        problem, f'did you mean "{number} {guess}"? {known_units}' if guess else known_units, offset
    )


def _format(value: int, units: Mapping[str, int]) -> str:
    """In the largest unit in which the value is at least 1 and has at most three decimals."""
    for unit, scale in units.items():
        if value >= scale and value * 1000 % scale == 0:
            return f"{(Decimal(value) / scale).normalize():f} {unit}"
    return f"{value} {list(units)[-1]}" if value else f"0 {next(iter(units)).lstrip('T')}"
