"""Removes control characters from text of other origin: a file that somebody sent, a server's
answer, a database of another program.

A terminal executes escape sequences, and some characters change the order in which text is shown.
So input (`plain_values`: an imported measurement, an opened Run) and output to a terminal (`plain`)
have no control characters: each becomes U+FFFD, so that a reader sees where it was. HTML is escaped
where it is written.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

from sojourn.errors import UserError

SHOWN = "\N{REPLACEMENT CHARACTER}"

# C0, DEL and C1; characters that change the text's direction; halves of surrogate pairs, which no
# encoding has.
_CONTROLS = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_BUT_LINES = re.compile(_CONTROLS.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def plain(text: str, *, lines: bool = False) -> str:
    """The text with control characters replaced. `lines`: line ends and tabs stay.

    >>> plain("a\\x1b]0;b\\x07")
    'a\N{REPLACEMENT CHARACTER}]0;b\N{REPLACEMENT CHARACTER}'
    """
    return (_BUT_LINES if lines else _CONTROLS).sub(SHOWN, text)


def is_plain(text: str) -> bool:
    """Whether a text has no control characters."""
    return _CONTROLS.search(text) is None


def toml(value: object) -> str:
    """A value in TOML, its texts without control characters.

    >>> print(toml(['a "b"', 1]))
    ["a \\"b\\"", 1]
    """
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return '"' + plain(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


def content_of(path: Path, most: int, hint: str) -> bytes:
    """Reads a file that somebody sent, at most `most` + 1 bytes of it.

    Raises:
        UserError: it can't be read; the error has this hint.
    """
    try:
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror or error}", hint) from None


MOST_JSON_BYTES = 32 << 20
MOST_JSON_VALUES = 1_500_000
"""A Run of 100 000 flows has a meta.json of 15 MB and a million values. In Python each value takes
at least a hundred bytes, whatever its length in the text."""


def read_json(content: bytes) -> Any:
    """Parses JSON of other origin.

    Raises:
        ValueError: it is not JSON, is nested too deeply, or is larger than sojourn's own files.
    """
    if len(content) > MOST_JSON_BYTES:
        raise ValueError(f"it has {len(content)} bytes, more than {MOST_JSON_BYTES}")
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_JSON_VALUES:
        raise ValueError(f"it has more than {MOST_JSON_VALUES} values")
    try:
        raw = json.loads(content, parse_constant=_no_number)
        # JSON can contain half of a surrogate pair, which is not a character.
        json.dumps(raw, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("Invalid JSON: too deep") from None
    except ValueError as error:
        raise ValueError(f"Invalid JSON: {error}") from None
    return raw


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def plain_values(value: Any) -> Any:
    """Replaces control characters in every text of a JSON value, keys of objects too."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(key)): plain_values(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain_values(each) for each in value]
    return value
