"""A file's content, unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

from sojourn import sanitize
from sojourn.errors import UserError

LARGEST = 100_000_000
"""The most bytes of a file, packed or unpacked. Six minutes of irtt at 100 packets a second are 40
MB of JSON, an hour is 420 MB. Captures are read as a stream and may be larger."""
MOST_VALUES = 3_000_000
"""The most values and keys of a JSON file, or fields of a table. Each is a Python object of some
100 bytes. flent writes half as many for an hour of 20 pings a second to five targets."""
MOST_LINES = 1_000_000
"""The most lines of a text, each a Python object of at least 60 bytes: eleven days of ping, or
three hours of irtt at 100 packets a second."""
HEAD = 4096
"""The number of first bytes by which formats are recognised."""
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""The first bytes of packed files."""
ZSTD = b"\x28\xb5\x2f"
"""The beginning of a file packed by zstd, which is unpacked as a whole."""
ENDINGS = (".gz", ".bz2", ".xz", ".zst")
PCAP = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000, 16), b"\xa1\xb2\xc3\xd4": (">", 1_000, 16), b"\x4d\x3c\xb2\xa1": ("<", 1, 16),
    b"\xa1\xb2\x3c\x4d": (">", 1, 16), b"\x34\xcd\xb2\xa1": ("<", 1_000, 24), b"\xa1\xb2\xcd\x34": (">", 1_000, 24),
}  # fmt: skip
"""The first bytes of a pcap capture: for each, the byte order, the unit of times in ns, and the
bytes of a packet's header. The last two are those of a modified libpcap of Linux 2.2."""
PCAPNG = b"\x0a\x0d\x0d\x0a"
HINT = "give a file that another program wrote"


def _gzip(file: BinaryIO) -> BinaryIO:
    return cast("BinaryIO", gzip.GzipFile(fileobj=file))


def _bzip2(file: BinaryIO) -> BinaryIO:
    return cast("BinaryIO", bz2.BZ2File(file))


def _xz(file: BinaryIO) -> BinaryIO:
    return cast("BinaryIO", lzma.LZMAFile(file))


UNPACKERS = {"gzip": _gzip, "bzip2": _bzip2, "xz": _xz}


@dataclass(frozen=True)
class Content:
    """The content of a file, unpacked."""

    path: Path
    first: bytes
    """The first `HEAD` bytes."""
    whole: bytes | None = None
    """The whole content; None: it is read on first use."""
    units: Mapping[str, str] = field(default_factory=dict)
    """The unit of each column of a table whose name has none."""
    span_ns: tuple[int, int] | None = None
    """The part of a capture to read, counted from its first packet; None: the whole capture."""

    @cached_property
    def data(self) -> bytes:
        """The whole content.

        Raises:
            UserError: it can't be unpacked, or is larger than `LARGEST`.
        """
        if self.whole is not None:
            return self.whole
        with self.stream() as stream:
            data = stream.read(LARGEST + 1)
        _check_size(self.path, data)
        return data

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """The content as a stream of any length.

        Raises:
            UserError: it can't be read or unpacked.
        """
        if self.whole is not None:
            yield io.BytesIO(self.whole)
            return
        with _opened(self.path) as stream:
            yield stream

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
        replaced.

        Raises:
            UserError: it has more lines than `MOST_LINES`, or more fields than `MOST_VALUES`.
        """
        text = _text(self.data)
        for signs, most, things in (
            (_LINE_ENDS, MOST_LINES, "lines"),
            (_SEPARATORS, MOST_VALUES, "fields"),
        ):
            if sum(map(text.count, signs)) > most:
                raise _too_many(self.path, most, things)
        return text

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their ends."""
        return self.text.splitlines()

    @cached_property
    def head(self) -> str:
        """The first `HEAD` bytes as text."""
        return _text(self.first)

    @property
    def is_capture(self) -> bool:
        """Whether it begins like a capture, pcap or pcapng."""
        first = self.first
        return first[:4] == PCAPNG or (first[:4] in PCAP and len(first) >= 24)

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
        if self.first.lstrip()[:1] not in (b"{", b"["):
            return None, "it does not begin with { or ["
        # An upper bound: signs inside texts are counted as well.
        if sum(map(self.data.count, (b",", b":", b"[", b"{"))) > MOST_VALUES:
            raise _too_many(self.path, MOST_VALUES, "values")
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
        UserError: it can't be read or unpacked, or a pipe or a file packed by zstd has more than
        `LARGEST` bytes.
    """
    if path.is_file():
        packed = sanitize.content_of(path, 3, HINT)
        if not packed.startswith(ZSTD):
            with _opened(path) as stream:
                return Content(path, stream.read(HEAD))
    data = sanitize.content_of(path, LARGEST, HINT)
    _check_size(path, data)
    kind = _packed_by(data)
    if kind == "zstd":
        from sojourn import _core

        with _damage_named(path, kind):
            try:
                data = _core.unpack_zstd(data, LARGEST + 1)
            except ValueError as error:
                raise OSError(error) from None
    elif kind is not None:
        with _damage_named(path, kind):
            data = UNPACKERS[kind](io.BytesIO(data)).read(LARGEST + 1)
    _check_size(path, data)
    return Content(path, data[:HEAD], data)


def _packed_by(first: bytes) -> str | None:
    return next((kind for magic, kind in PACKED.items() if first.startswith(magic)), None)


def _check_size(path: Path, data: bytes) -> None:
    if len(data) > LARGEST:
        raise UserError(f"{path} is larger than {LARGEST // 10**6} MB", "give a shorter part of it")


_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""The characters at which `str.splitlines` ends a line."""
_SEPARATORS = ",;\t"
"""The characters that separate the fields of a table."""


def _too_many(path: Path, most: int, things: str) -> UserError:
    return UserError(
        f"{path} has more than {most / 1e6:g} million {things}", "give a shorter part of it"
    )


def _text(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    return data.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file as a stream of its unpacked content."""
    kind = _packed_by(sanitize.content_of(path, 5, HINT))
    with _damage_named(path, kind), path.open("rb") as file:
        if kind is None:
            yield file
        else:
            with UNPACKERS[kind](file) as unpacked:
                yield unpacked


@contextmanager
def _damage_named(path: Path, kind: str | None) -> Iterator[None]:
    """Turns errors of reading and unpacking into a UserError."""
    try:
        yield
    except (OSError, EOFError, MemoryError, lzma.LZMAError, zlib.error) as error:
        raise UserError(
            f"{path} is packed by {kind} and can't be unpacked: {error}"
            if kind
            else f"can't read {path}: {error}",
            "fetch the file again" if kind else HINT,
        ) from None
