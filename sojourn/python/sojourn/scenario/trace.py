"""The files that a scenario names: traces, captures, user-defined code."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

MAX_BYTES = 64 * 2**20
"""The largest trace or capture; the core refuses a larger one."""

_GZIP = b"\x1f\x8b"


def opener(folder: Path | None) -> Callable[[str], bytes]:
    """Returns a function that reads a file by its path, relative to `folder`. The function unpacks
    a file that gzip packed, and raises OSError."""

    def read(name: str) -> bytes:
        with (folder or Path()).joinpath(name).open("rb") as file:
            packed = file.peek(len(_GZIP)).startswith(_GZIP)
            # One byte more than allowed shows that the file is too large.
            if not packed:
                return file.read(MAX_BYTES + 1)
            try:
                with gzip.open(file) as unpacked:
                    return unpacked.read(MAX_BYTES + 1)
            except (EOFError, zlib.error) as error:
                raise OSError(f"gzip can't unpack it: {error}") from None

    return read


opened = opener(None)
"""Reads a path relative to the working directory."""
