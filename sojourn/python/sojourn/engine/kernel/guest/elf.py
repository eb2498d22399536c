"""Finds the files that a program needs, its interpreter and shared libraries, by reading ELF files.

Source: the ELF-64 specification (gABI) and ld.so(8). A library is looked up in the RUNPATH or RPATH
of the file that needs it ($ORIGIN is expanded), then in the loader's default directories. A guest
has no ld.so.cache, so its loader looks for each library at these same paths.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sojourn.engine.kernel.guest.endings import GuestError

LIBRARY_FOLDERS = (
    *("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"),
    *("lib64", "usr/lib64", "lib", "usr/lib"),
)
"""The loaders' default directories, from the root: Debian's multiarch folders, then those of other
distributions."""

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
_X86_64 = 62


@dataclass(frozen=True)
class Needs:
    """The dependencies of one ELF file."""

    interpreter: str | None
    libraries: tuple[str, ...]
    folders: tuple[str, ...]
    """Its RUNPATH or RPATH."""


def needs(data: bytes) -> Needs:
    """The dependencies that an ELF file names.

    Raises:
        ValueError: it is not a 64-bit ELF file of x86-64, or a broken one.
    """
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    try:
        return _read(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"a broken ELF file: {error}") from None


def _read(data: bytes) -> Needs:
    (machine,) = struct.unpack_from("<H", data, 18)
    if machine != _X86_64:
        raise ValueError(f"a program for another machine than x86-64 (number {machine})")
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQ", data, table + index * size) for index in range(count)]

    interpreter = None
    entries: list[tuple[int, int]] = []
    for kind, _, offset, _, _, length in headers:
        if kind == _PT_INTERP:
            interpreter = data[offset : offset + length].rstrip(b"\0").decode()
        elif kind == _PT_DYNAMIC:
            entries = list(struct.iter_unpack("<qQ", data[offset : offset + length // 16 * 16]))

    values = dict(entries)
    if _DT_STRTAB not in values:
        return Needs(interpreter, (), ())
    strings = next(
        values[_DT_STRTAB] - address + offset
        for kind, _, offset, address, _, length in headers
        if kind == _PT_LOAD and address <= values[_DT_STRTAB] < address + length
    )

    def text(at: int) -> str:
        start = strings + at
        return data[start : data.index(b"\0", start)].decode()

    libraries = tuple(text(value) for tag, value in entries if tag == _DT_NEEDED)
    # RPATH counts only where there is no RUNPATH.
    path = values.get(_DT_RUNPATH, values.get(_DT_RPATH))
    folders = () if path is None else tuple(part for part in text(path).split(":") if part)
    return Needs(interpreter, libraries, folders)


def closure(programs: Iterable[str], roots: Sequence[Path]) -> dict[str, Path]:
    """Returns these programs and everything that they need: path from the root -> the file.

    `roots` are folders that stand for the root, searched in this order: unpacked packages, then the
    host itself.

    Raises:
        GuestError: a library is missing.
    """
    found: dict[str, Path] = {}
    waiting = [(program, program) for program in programs]
    while waiting:
        path, wanted_by = waiting.pop()
        if path in found:
            continue
        file = _file(path, roots)
        if file is None:
            raise GuestError(
                f"{wanted_by} needs {path}, which is not on this host",
                "reinstall the package it comes from",
            )
        found[path] = file
        try:
            dependencies = needs(file.read_bytes())
        except ValueError as error:
            raise GuestError(
                f"can't take {file} into a guest: {error}", "install iproute2 for x86-64"
            ) from None
        if dependencies.interpreter:
            waiting.append((dependencies.interpreter.lstrip("/"), path))
        folders = [_expanded(folder, path) for folder in dependencies.folders]
        waiting += [(_place(name, folders, roots, path), path) for name in dependencies.libraries]
    return found


def _expanded(folder: str, path: str) -> str:
    origin = str(Path("/", path).parent)
    return folder.replace("${ORIGIN}", origin).replace("$ORIGIN", origin).strip("/")


def _place(name: str, folders: Sequence[str], roots: Sequence[Path], wanted_by: str) -> str:
    for folder in (*folders, *LIBRARY_FOLDERS):
        if _file(f"{folder}/{name}", roots):
            return f"{folder}/{name}"
    raise GuestError(
        f"{wanted_by} needs the library {name}, which is not on this host",
        "reinstall the package that needs it",
    )


def _file(path: str, roots: Sequence[Path]) -> Path | None:
    return next((root / path for root in roots if (root / path).is_file()), None)
