"""The files that a scenario names beside itself: traces."""

from collections.abc import Callable
from pathlib import Path

MAX_BYTES = 16 * 2**20


def opener(folder: Path | None) -> Callable[[str], bytes]:
    """What reads a trace by its path, which counts from `folder`; it raises OSError."""

    def read(name: str) -> bytes:
        with (folder or Path()).joinpath(name).open("rb") as file:
            # One byte more than is allowed tells that there are too many.
            return file.read(MAX_BYTES + 1)

    return read


opened = opener(None)
"""Of a path that counts from the working directory."""
