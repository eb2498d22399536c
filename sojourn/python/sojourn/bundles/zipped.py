"""A bundle: one zip of Runs, folders of Runs and pages, with their manifest.

    NAME/...         each given folder, under its own name
    manifest.json    of all files

The same files give the same bytes. The zip's files are sorted by name, and have one date and one
mode. They are stored without compression, since deflate's output depends on the library. Tables are
most of the bytes, and are compressed already. The zip is written under another name and renamed, so
it is complete or does not exist.

A zip to be read may come from anywhere. Nothing is written outside of a temporary folder. No file
is read beyond the length in the manifest. A zip that unpacks to far more than its own size is
refused before anything is unpacked.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from sojourn import cleanup, sanitize
from sojourn.bundles.manifest import (
    MANIFEST,
    BundleError,
    FileDifference,
    FileSum,
    Manifest,
    bad_name,
    copied,
    files_in,
    of_files,
    read,
    runs_apart,
    runs_in,
    why_not,
)
from sojourn.records import Run, check_room

DATE = (1980, 1, 1, 0, 0, 0)
"""The date of every file: the earliest that a zip can have."""
MOST_TIMES = 100
"""Limit for the unpacked size, as a multiple of the zip's size. In our zips it is about 1, because
files are not compressed. If another program zips the same files, text shrinks to a tenth."""
_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED = (zipfile.BadZipFile, struct.error, zlib.error, EOFError, ValueError, NotImplementedError)
"""The exceptions of zipfile for bytes that are not a zip."""
_LARGE = 1 << 31
"""From this size on, in bytes, a file's entry in the zip needs the long form (ZIP64)."""


def pack(folders: Sequence[Path], out: Path) -> Manifest:
    """Writes the bundle of these folders.

    Raises:
        UserError: a folder has no Run, a Run is damaged, or the zip can't be written.
    """
    given = _named(folders)
    names: dict[str, Path] = {}
    runs: dict[str, Run] = {}
    for called, folder in given.items():
        listed = list(files_in(folder, out))
        found = runs_in(folder, listed)
        _check(folder, found)
        names |= {f"{called}/{name}": folder / name for name in listed}
        runs |= {f"{called}/{path}" if path else called: run for path, run in found.items()}
    try:
        with cleanup.beside(out) as half:
            manifest = _written(names, runs, half)
            os.replace(half, out)
    except OSError as error:
        raise BundleError(
            f"can't write {out}: {error.strerror or error}", "make room, or choose another place"
        ) from None
    return manifest


def _named(folders: Sequence[Path]) -> dict[str, Path]:
    """Each folder, by its name in the zip."""
    given: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise BundleError(f"{folder} is not a folder", "give folders of Runs")
        # resolve() also gives "." a name.
        called = folder.resolve().name
        if called in given:
            raise BundleError(
                f"{given[called]} and {folder} would have one name in the zip, {called}",
                "rename one of them, or give the folder that contains both",
            )
        if why := bad_name(called):
            raise BundleError(f"{folder} can't be in a zip under its name: {why}", "rename it")
        given[called] = folder
    return given


def _check(folder: Path, runs: Mapping[str, Run]) -> None:
    if not runs:
        raise BundleError(
            f"there is no Run in {folder}",
            "give what `sojourn run -o`, `compare -o` or `reproduce -o` wrote",
        )
    for run in runs.values():
        if not run.seeds:
            raise BundleError(f"{run.path}: no seed has finished", "run it again")
        run.check_sums()


def _written(names: Mapping[str, Path], runs: Mapping[str, Run], half: Path) -> Manifest:
    """Raises OSError."""
    files: dict[str, FileSum] = {}
    with half.open("xb") as raw:
        with zipfile.ZipFile(raw, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(names):
                with _opened(names[name]) as source:
                    large = os.fstat(source.fileno()).st_size >= _LARGE
                    with archive.open(_info(name), "w", force_zip64=large) as target:
                        files[name] = copied(source, target)
            manifest = of_files(files, runs)
            archive.writestr(_info(MANIFEST), manifest.text())
        raw.flush()
        os.fsync(raw.fileno())
    return manifest


def _opened(file: Path) -> IO[bytes]:
    try:
        return file.open("rb")
    except OSError as error:
        raise BundleError(
            f"can't read {file}: {error.strerror or error}",
            "check its permissions, and that no program is still writing it",
        ) from None


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, DATE)
    # Unix, whichever system writes it.
    info.create_system = 3
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


# ----------------------------------------------------------------------------------------- reading


@contextmanager
def unpacked(file: Path) -> Iterator[tuple[Path, Manifest, list[FileDifference]]]:
    """A bundle's files in a temporary folder, its manifest, and the files that differ from it.

    Raises:
        BundleError: it is not a bundle, or is refused.
    """
    with cleanup.temporary_folder() as folder:
        try:
            with zipfile.ZipFile(file) as archive:
                members = _members(archive, file)
                manifest = _manifest(archive, file, members)
                check_room(folder, sum(info.file_size for info in members.values()))
                found = _unpack(archive, members, manifest, folder)
        except _DAMAGED as error:
            raise BundleError(
                f"{file} is not a complete zip file: {sanitize.plain(str(error))}",
                "fetch it again, or make it again with sojourn bundle",
            ) from None
        except OSError as error:
            raise BundleError(
                f"can't read {file}: {error.strerror or error}",
                "check its permissions, and the room on the disk",
            ) from None
        yield folder, manifest, found or runs_apart(folder, manifest)


def _members(archive: zipfile.ZipFile, file: Path) -> dict[str, zipfile.ZipInfo]:
    """The files of a zip by name. Refuses the zip if any of them must not be unpacked."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        name, mode = info.filename, info.external_attr >> 16
        if info.is_dir():
            continue
        why = bad_name(name)
        # zipfile cuts a name off at a NUL.
        if name in found or info.orig_filename != name:
            why = "it is there twice" if name in found else "its name has a NUL or a backslash"
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG) or info.flag_bits & 1:
            why = "it is a link, a device or encrypted"
        if info.compress_type not in _KNOWN:
            why = "it is compressed in a way that sojourn does not read"
        if why:
            raise _refused(file, f"{sanitize.plain(name)!r}: {why}")
        found[name] = info
    size, room = sum(info.file_size for info in found.values()), file.stat().st_size
    if size > MOST_TIMES * room:
        raise _refused(file, f"its {room} bytes unpack to {size}")
    return found


def _refused(file: Path, why: str) -> BundleError:
    return BundleError(
        f"{file} is not unpacked: {why}", "sojourn never writes such a zip: do not trust its source"
    )


def _manifest(
    archive: zipfile.ZipFile, file: Path, members: Mapping[str, zipfile.ZipInfo]
) -> Manifest:
    if MANIFEST not in members:
        raise BundleError(f"{file} has no {MANIFEST}", "give a zip that sojourn bundle wrote")
    if members[MANIFEST].file_size > sanitize.MOST_JSON_BYTES:
        raise _refused(file, f"its {MANIFEST} has {members[MANIFEST].file_size} bytes")
    with archive.open(members[MANIFEST]) as stream:
        return read(stream.read(sanitize.MOST_JSON_BYTES), f"{MANIFEST} in {file}")


def _unpack(
    archive: zipfile.ZipFile,
    members: Mapping[str, zipfile.ZipInfo],
    manifest: Manifest,
    folder: Path,
) -> list[FileDifference]:
    """Unpacks the files that the manifest lists; returns those that differ from it."""
    found = [
        FileDifference(name, "the manifest does not list it")
        for name in sorted({*members} - {*manifest.files} - {MANIFEST})
    ]
    for name, listed in manifest.files.items():
        why = "it is missing"
        if name in members:
            why = why_not(listed, _one(archive, members[name], folder / name, listed.bytes))
        if why:
            found.append(FileDifference(name, why))
    return found


def _one(archive: zipfile.ZipFile, info: zipfile.ZipInfo, into: Path, most: int) -> FileSum:
    """Unpacks a file, at most one byte past `most`."""
    into.parent.mkdir(parents=True, exist_ok=True)
    try:
        with archive.open(info) as source, into.open("xb") as target:
            return copied(source, target, most)
    except _DAMAGED:
        # The zip's checksum does not match. The empty sum returned differs from every listed one.
        return FileSum(most, "")
