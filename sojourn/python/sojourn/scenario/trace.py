"""The files that a scenario names beside itself: traces, captures, code of one's own."""

import gzip
import zlib
from collections.abc import Callable
from pathlib import Path

MAX_BYTES = 64 * 2**20
"""Of a trace or capture; the core refuses a larger one."""

_GZIP = b"\x1f\x8b"


def opener(folder: Path | None) -> Callable[[str], bytes]:
    """What reads a file by its path, which counts from `folder`, and unpacks one that gzip packed; it
    raises OSError."""

    def read(name: str) -> bytes:
        with (folder or Path()).joinpath(name).open("rb") as file:
            packed = file.peek(len(_GZIP)).startswith(_GZIP)
            # One byte more than is allowed tells that there are too many.
            if not packed:
                return file.read(MAX_BYTES + 1)
            try:
                with gzip.open(file) as unpacked:
                    return unpacked.read(MAX_BYTES + 1)
            except (EOFError, zlib.error) as error:
                raise OSError(f"gzip can't unpack it: {error}") from None

    return read


opened = opener(None)
"""Of a path that counts from the working directory."""
