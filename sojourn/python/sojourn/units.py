"""Converts quantities between text ("20 Mbit/s", "5 ms", "50 kB", "0.1 %") and the engine's
integers. crates/values/src/quantity.rs parses the text.

Internally there are only integers: nanoseconds, bit/s, bytes; a probability is a fraction. Each
`parse_` has a `format_` that writes the shortest text with the same value.
"""

from __future__ import annotations

from collections.abc import Iterable

from sojourn import _core
from sojourn.errors import UserError

MAX_DURATION = _core.MAX_DURATION
"""Ten years, ns: the longest duration of anything."""
MAX_RATE = _core.MAX_RATE
"""10 Tbit/s, bit/s."""
MAX_SIZE = _core.MAX_SIZE
"""1 PB, bytes."""
UNITS = frozenset((*_core.UNITS, "%"))
"""Every unit of a quantity."""


class UnitError(UserError, ValueError):
    """A text that is not the expected quantity. `hint` says what to write instead; `offset` is the
    position of the error in the text."""

    def __init__(self, problem: str, hint: str = "", offset: int = 0) -> None:
        super().__init__(problem, hint)
        self.offset = offset


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The known word that was probably meant; None: no word is near."""
    known = {_text(one): one for one in words}
    found = _core.nearest(_text(word), list(known))
    return None if found is None else known[found]


def _text(word: str) -> str:
    """Names of files may not be valid text."""
    return word.encode("utf-8", "replace").decode()


def parse_duration(
    value: object,
    *,
    what: str = "a duration",
    example: str = "5 ms",
    zero: bool = True,
    most: int = MAX_DURATION,
    days: bool = False,
) -> int:
    """Parses a duration to nanoseconds: `5 ms`, `1.5 s`, `2 min`. With `days`, for spans of a
    calendar, also `7 d`, `2 w`.

    Raises:
        UnitError: the value is not a duration. The other `parse_` functions raise it in the same
            way.
    """
    return _core.parse_duration(value, what=what, example=example, zero=zero, most=most, days=days)


def parse_rate(value: object, *, zero: bool = False) -> int:
    """Parses a rate to bit/s: `20 Mbit/s`. Other units are refused, because `Mbps` and `mbit` mean
    different things to different programs."""
    return _core.parse_rate(value, zero=zero)


_EXAMPLE_SIZE = "1500 B"


def parse_size(
    value: object,
    *,
    what: str = "a size",
    example: str = _EXAMPLE_SIZE,
    least: int = 0,
    most: int = MAX_SIZE,
) -> int:
    """Parses a size to bytes: `1500 B`, `50 kB` (50000), `5 MiB` (5 × 2^20)."""
    try:
        return _core.parse_size(value, what=what, least=least, most=most)
    except UnitError as error:
        error.hint = error.hint.replace(_EXAMPLE_SIZE, example)
        raise


def parse_probability(value: object) -> float:
    """Parses a probability to a fraction from 0 to 1: `0.1 %`, `0.001`."""
    return _core.parse_probability(value)


def parse_dscp(text: str) -> int:
    """Parses a DSCP codepoint: `ef`, `CS1`, `46`."""
    return _core.parse_dscp(int(text) if text.isdecimal() and len(text) < 4 else text.lower())


def format_dscp(dscp: int) -> str | int:
    """`ef` for 46; the number if it has no name."""
    return _core.format_dscp(dscp)


def format_duration(ns: int) -> str:
    """`5 ms` for 5000000."""
    return _core.format_duration(ns)


def format_rate(bps: int) -> str:
    """`20 Mbit/s` for 20000000."""
    return _core.format_rate(bps)


def format_size(size: int) -> str:
    """`1500 B`, `50 kB`; a binary unit only if it gives a whole number and decimal units do not: `5
    MiB`."""
    return _core.format_size(size)


def format_probability(fraction: float) -> str:
    """`0.1 %` for 0.001, if the percentage reads back as the same number; otherwise the number."""
    return _core.format_probability(fraction)
