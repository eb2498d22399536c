"""Text from elsewhere, made harmless: from a file that somebody sent, a server's answer, a database
that another wrote.

A terminal carries out what an escape sequence in it says, and text may be shown in another order
than it is written in. So what comes in (`plain_values`: a measurement that is imported, a Run that
is opened) and what goes to a terminal (`plain`) has no control characters: each becomes U+FFFD, so
that a reader sees that there was one. HTML is escaped where it is written.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

from sojourn.errors import UserError

SHOWN = "\N{REPLACEMENT CHARACTER}"

# C0, DEL and C1; what turns the direction of text; halves of surrogate pairs, which no encoding
# has.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BUT_LINES = re.compile(_CONTROLS.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def plain(text: str, *, lines: bool = False) -> str:
    """The text without control characters. `lines`: ends of lines and tabs stay.

    >>> plain("a\\x1b]0;b\\x07")
    'a\N{REPLACEMENT CHARACTER}]0;b\N{REPLACEMENT CHARACTER}'
    """
    return (_BUT_LINES if lines else _CONTROLS).sub(SHOWN, text)


def is_plain(text: str) -> bool:
    """Whether there are none in it."""
    return _CONTROLS.search(text) is None


def content_of(path: Path, most: int, hint: str) -> bytes:
    """What a file that somebody sent holds, and of a longer one a byte more than `most`.

    Raises:
        UserError: it can't be read; with this hint.
    """
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror or error}", hint) from None


def check_json(text: bytes, most_bytes: int, most_values: int) -> None:
    """Refuses JSON with more bytes, or more values and keys.

    Raises:
        ValueError: this has.
    """
    if len(text) > most_bytes:
        raise ValueError(f"it is larger than {most_bytes // 10**6} MB")
    # At least as many as there are: those in a text count as well.
    if sum(map(text.count, (b",", b":", b"[", b"{"))) > most_values:
        raise ValueError(f"it has more than {most_values / 1e6:g} million values")


MOST_JSON_BYTES = 32 << 20
MOST_JSON_VALUES = 1_500_000
"""A Run of 100 000 flows has a meta.json of 15 MB and a million values. In Python a value takes a
hundred bytes and more, whatever it takes in the text."""


def read_json(content: bytes) -> Any:
    """What JSON from elsewhere holds.

    Raises:
        ValueError: it is not JSON, nested too deeply, or larger than what sojourn writes.
    """
    if len(content) > MOST_JSON_BYTES:
        raise ValueError(f"{len(content)} bytes, and at most {MOST_JSON_BYTES} are read")
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_JSON_VALUES:
        raise ValueError(f"more than {MOST_JSON_VALUES} values")
    try:
        raw = json.loads(content, parse_constant=_no_number)
        # Half of a surrogate pair can be written in JSON, and stands for nothing.
        json.dumps(raw, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("Invalid JSON: too deep") from None
    except ValueError as error:
        raise ValueError(f"Invalid JSON: {error}") from None
    return raw


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def plain_values(value: Any) -> Any:
    """The same of every text in plain values (what JSON holds), keys of objects too."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(key)): plain_values(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain_values(each) for each in value]
    return value
