"""A file's content, unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sojourn import sanitize
from sojourn.errors import UserError

LARGEST = 200_000_000
"""Bytes of a file, packed or unpacked. An hour of irtt at 100 packets a second has some 420 MB as
JSON; six minutes at 10 ms have 40 MB."""
MOST_VALUES = 10_000_000
HEAD = 4096
"""The number of first bytes by which formats are recognised."""
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""The first bytes of packed files."""
ENDINGS = (".gz", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class Content:
    """The content of a file."""

    path: Path
    data: bytes

    @property
    def name(self) -> str:
        """The file's name without the endings of packed files."""
        name = self.path.name
        for ending in ENDINGS:
            name = name.removesuffix(ending)
        return name

    @cached_property
    def text(self) -> str:
        """The content as text: UTF-8, or UTF-16 with a byte-order mark. Bytes that are neither are
        replaced."""
        if self.data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return self.data.decode("utf-16", errors="replace")
        return self.data.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their ends."""
        return self.text.splitlines()

    @cached_property
    def head(self) -> str:
        """The first `HEAD` bytes as text."""
        return Content(self.path, self.data[:HEAD]).text

    @cached_property
    def json(self) -> Any:
        """The content as JSON; None if it is not JSON (`not_json` is why).

        Raises:
            UserError: it has more values than `MOST_VALUES`.
        """
        return self._json[0]

    @property
    def not_json(self) -> str:
        """Why `json` is None."""
        return self._json[1]

    @cached_property
    def _json(self) -> tuple[Any, str]:
        if self.data.lstrip()[:1] not in (b"{", b"["):
            return None, "it does not begin with { or ["
        try:
            sanitize.check_json(self.data, LARGEST, MOST_VALUES)
        except ValueError as error:
            raise UserError(f"{self.path} is too large: {error}", "give a part of it") from None
        try:
            return json.loads(self.data), ""
        except (ValueError, RecursionError) as error:
            return None, str(error)
        except MemoryError:
            raise UserError(
                f"{self.path} needs more memory than available", "give a part of it"
            ) from None

    def modified(self) -> float:
        """When the file was written, in seconds since 1970."""
        return self.path.stat().st_mtime


def open_file(path: Path) -> Content:
    """A file, unpacked if it is packed by gzip, bzip2, xz or zstd.

    Raises:
        UserError: it can't be read or unpacked, or is larger than `LARGEST`.
    """
    data = sanitize.content_of(path, LARGEST, "give a file that another program wrote")
    for first, kind in PACKED.items():
        if data.startswith(first):
            data = _unpacked(path, data, kind)
            break
    if len(data) > LARGEST:
        raise UserError(f"{path} has more than {LARGEST // 10**6} MB", "give a shorter part of it")
    return Content(path, data)


def _unpacked(path: Path, data: bytes, kind: str) -> bytes:
    try:
        if kind == "gzip":
            with gzip.open(io.BytesIO(data)) as stream:
                return stream.read(LARGEST + 1)
        if kind != "zstd":
            unpacker = bz2.BZ2Decompressor() if kind == "bzip2" else lzma.LZMADecompressor()
            unpacked = unpacker.decompress(data, LARGEST + 1)
            if not unpacker.eof and len(unpacked) <= LARGEST:
                raise EOFError("it ends too early")
            return unpacked
        from sojourn import _core

        return _core.unpack_zstd(data, LARGEST + 1)
    except (OSError, EOFError, ValueError, MemoryError, lzma.LZMAError, zlib.error) as error:
        raise UserError(
            f"{path} is packed by {kind} and can't be unpacked: {error}", "fetch the file again"
        ) from None
