"""The state of the lab as the part of an address behind its #.

`VERSION=BODY`: BODY is a JSON object, deflated (RFC 1951), in base64 for addresses (RFC 4648, section
5) without padding. page.js writes and reads the same.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from typing import Any

from sojourn import sanitize
from sojourn.errors import UserError

VERSION = 1
MOST_TEXT = 256 << 10
"""The longest scenario of the lab, characters (crates/lab, MOST_TEXT)."""
MOST_QDISCS = 8
SEEDS = (1, 5, 10, 20)

_LINK = re.compile(r"(?:^|#)(\d+)=([\w-]+)$", re.ASCII)


@dataclass(frozen=True)
class Shown:
    """The state of the page."""

    text: str
    """The scenario."""
    qdiscs: tuple[str, ...] = ()
    """The disciplines side by side; none: the scenario's own."""
    link: str | None = None
    """The link whose queue is shown; None: the page chooses."""
    seeds: int = 1

    def plain(self) -> dict[str, Any]:
        """The state as the page's data."""
        return {
            "v": VERSION,
            "text": self.text,
            "qdiscs": list(self.qdiscs),
            "link": self.link,
            "seeds": self.seeds,
            "lesson": None,
        }


def to_link(state: Shown) -> str:
    """The part of an address behind its #."""
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    text = json.dumps(state.plain(), ensure_ascii=False, separators=(",", ":"))
    body = squeezed.compress(text.encode()) + squeezed.flush()
    return f"{VERSION}={base64.urlsafe_b64encode(body).decode().rstrip('=')}"


def is_link(text: str) -> bool:
    """Whether a text looks like a link of the lab's, whole or the part behind the #."""
    return _LINK.search(text) is not None


def read_link(text: str) -> Shown:
    """Reads the state from a link, whole or the part behind the #. UserError: the link has no
    state."""
    found = _LINK.search(text)
    if found is None:
        raise _refused("this is not a link of the lab", "copy the whole address of the page")
    if int(found[1]) > VERSION:
        raise _refused(
            f"this link is from a newer lab (version {found[1]})",
            f"this sojourn reads version {VERSION}: update it",
        )
    try:
        given = sanitize.read_json(_unpacked(found[2]))
    except ValueError:
        raise _refused("this link is damaged", "copy the whole address of the page") from None
    match given:
        case {"text": str(scenario), "qdiscs": list(qdiscs)} if (
            len(scenario) <= MOST_TEXT
            and len(qdiscs) <= MOST_QDISCS
            and all(isinstance(one, str) for one in qdiscs)
        ):
            link, seeds = given.get("link"), given.get("seeds")
            return Shown(
                sanitize.plain(scenario, lines=True),
                tuple(map(sanitize.plain, qdiscs)),
                sanitize.plain(link) if isinstance(link, str) else None,
                seeds if seeds in SEEDS else 1,
            )
    raise _refused("this link contains no scenario", "copy the whole address of the page")


def _unpacked(body: str) -> bytes:
    """Decodes and unpacks the body. ValueError: it is damaged, or longer than any state."""
    reader = zlib.decompressobj(-15)
    try:
        packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        # A short link can unpack to endless text.
        text = reader.decompress(packed, 4 * MOST_TEXT)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if not reader.eof:
        raise ValueError("its end is missing, or it is too long")
    return text


def _refused(message: str, hint: str) -> UserError:
    return UserError(message, hint)
