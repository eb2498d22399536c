"""manifest.json: the Runs and pages of a folder, and the versions that wrote them.

    {"schema": "sojourn/manifest/1",
     "versions": {"sojourn": "0.2.0", "python": "3.11.7", "numpy": "2.4.0", ...},
     "runs": [{"path": "adt/runs/table/ADT", "engine": "sim", "engine_build": "...", "seeds": [1,
         2],
               "scenario": SHA-256, "results": {"1": SHA-256, "2": SHA-256}, ...}],
     "files": {"adt/index.html": {"bytes": 81234, "sha256": "..."}, ...}}

Names are relative, with slashes, and never lead out of the folder. The manifest has neither date
nor place, so the same files give the same bytes. A seed's result is the SHA-256 of its SHA256SUMS.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from sojourn import sanitize, shapes
from sojourn.errors import UserError
from sojourn.meta import Meta
from sojourn.records import META, SCENARIO, Run
from sojourn.shapes import Count

MANIFEST = "manifest.json"
SCHEMA = "sojourn/manifest/1"
LOCKED = ("sojourn", "numpy", "polars", "matplotlib")
"""Packages whose versions the manifest has, in addition to Python's version."""
_PIECE = 1 << 20


class BundleError(UserError):
    """A bundle or a manifest can't be written or read."""


@dataclass(frozen=True)
class FileSum:
    """The size and hash that identify a file's content."""

    bytes: Count
    sha256: str


@dataclass(frozen=True)
class ManifestRun:
    """A Run of the folder."""

    path: str
    title: str
    label: str
    engine: str
    engine_build: str | None
    version: str
    """Version of the sojourn that made it."""
    seeds: tuple[Count, ...]
    """Finished seeds."""
    fingerprint: str
    scenario: str
    """SHA-256 of its scenario.toml."""
    results: Mapping[str, str]
    """SHA-256 of each seed's list of sums, by the seed in digits; empty: a Run of sojourn 0.1."""


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json."""

    schema: str
    versions: Mapping[str, str]
    """Versions of sojourn, Python and the packages that compute and draw, which wrote it."""
    runs: tuple[ManifestRun, ...]
    files: Mapping[str, FileSum]
    """By name; without manifest.json itself."""

    def text(self) -> bytes:
        """The bytes of manifest.json."""
        text = json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False)
        return (text + "\n").encode()


@dataclass(frozen=True)
class FileDifference:
    """A file or a Run that differs from the manifest."""

    name: str
    why: str


def now() -> dict[str, str]:
    """The versions of this process."""
    from importlib.metadata import version

    return {"python": platform.python_version()} | {name: version(name) for name in LOCKED}


# ----------------------------------------------------------------------------------------- writing


def of_files(files: Mapping[str, FileSum], runs: Mapping[str, Run]) -> Manifest:
    """The manifest of files and the Runs among them."""
    ordered = {name: files[name] for name in sorted(files)}
    entries = [_entry(path, runs[path].meta, ordered) for path in sorted(runs)]
    return Manifest(SCHEMA, now(), tuple(entries), ordered)


def _entry(path: str, meta: Meta, files: Mapping[str, FileSum]) -> ManifestRun:
    return ManifestRun(
        path,
        meta.title,
        meta.label,
        meta.engine,
        meta.engine_build,
        meta.version,
        meta.seeds,
        meta.fingerprint,
        files[inside(path, SCENARIO)].sha256 if inside(path, SCENARIO) in files else "",
        {str(seed): meta.checksums[str(seed)] for seed in meta.seeds if meta.checksums},
    )


def inside(folder: str, name: str) -> str:
    """The name of a file in a folder; the folder may be "", the root."""
    return f"{folder}/{name}" if folder else name


def runs_in(folder: Path, names: Iterable[str]) -> dict[str, Run]:
    """The Runs among these files, by the name of their folder.

    Raises:
        UserError: one of them is not a Run.
    """
    paths = [name.removesuffix(META).removesuffix("/") for name in names if _is_meta(name)]
    return {path: Run.open(folder / path) for path in sorted(paths)}


def _is_meta(name: str) -> bool:
    return name == META or name.endswith(f"/{META}")


def files_in(folder: Path, out: Path | None = None) -> Iterator[str]:
    """The sorted names of the files in a folder, without `out` and hidden files. Files that another
    process is still writing are hidden, too.

    Raises:
        BundleError: an entry is not a regular file, or its name is not valid on every system.
    """
    for place, folders, files in os.walk(folder, onerror=_unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        within = Path(place).relative_to(folder).as_posix()
        links = (name for name in folders if os.path.islink(os.path.join(place, name)))
        for name in sorted([*files, *links]):
            # Text is faster than a Path: a paper's Runs have tens of thousands of files.
            file = os.path.join(place, name)
            if name.startswith(".") or (out is not None and Path(file).resolve() == out.resolve()):
                continue
            if os.path.islink(file) or not os.path.isfile(file):
                raise BundleError(
                    f"{sanitize.plain(file)} is not a regular file",
                    "a bundle has files only: replace it by a copy of the file that it leads to",
                )
            relative = name if within == "." else f"{within}/{name}"
            if why := bad_name(relative):
                raise BundleError(f"{sanitize.plain(file)}: {why}", "give it another name")
            yield relative


def _unreadable(error: OSError) -> None:
    raise BundleError(
        f"can't read {error.filename}: {error.strerror or error}", "check its permissions"
    ) from None


def summed(file: Path) -> FileSum:
    """The size and hash of a file. Raises OSError."""
    with file.open("rb") as stream:
        return copied(stream, None)


def copied(source: IO[bytes], target: IO[bytes] | None, most: int | None = None) -> FileSum:
    """Reads a stream to its end, or to one byte more than `most`, and writes it to `target` if
    there is one."""
    digest, size = hashlib.sha256(), 0
    while piece := source.read(_PIECE if most is None else min(_PIECE, most + 1 - size)):
        digest.update(piece)
        size += len(piece)
        if target is not None:
            target.write(piece)
    return FileSum(size, digest.hexdigest())


# ----------------------------------------------------------------------------------------- reading


def read(content: bytes, name: str) -> Manifest:
    """Parses a manifest; `name`: its name in messages.

    Raises:
        BundleError: it is damaged, not sojourn's, or names a file outside of its folder.
    """
    try:
        raw = sanitize.read_json(content)
        schema = raw.get("schema") if isinstance(raw, dict) else None
        if schema != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        found = shapes.read(Manifest, raw)
    except ValueError as error:
        raise BundleError(
            f"{name} is not a manifest of sojourn's: {sanitize.plain(str(error))}",
            "give the manifest.json that sojourn wrote",
        ) from None
    for each in found.files:
        why = "a manifest does not list itself" if each == MANIFEST else bad_name(each)
        if why:
            raise BundleError(
                f"{name} names {sanitize.plain(each)!r}: {why}",
                "sojourn writes no such manifest: do not trust its source",
            )
    return found


def bad_name(name: str) -> str:
    """Why a bundle's file can't have this name; empty: it can."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or ":" in parts[0]:
        return "it leads out of its folder"
    if any(part in ("", ".") for part in parts) or "\\" in name or not sanitize.is_plain(name):
        return "its name has an empty part, a backslash or a control character"
    return ""


def compare(folder: Path, manifest: Manifest) -> list[FileDifference]:
    """The files and Runs of a folder that differ from the manifest. Files that it does not list are
    ignored.

    Raises:
        BundleError: a file is a link that leads out of the folder.
    """
    found = [FileDifference(name, why) for name, why in _files_apart(folder, manifest) if why]
    return found or runs_apart(folder, manifest)


def _files_apart(folder: Path, manifest: Manifest) -> Iterator[tuple[str, str]]:
    root = folder.resolve()
    for name, listed in manifest.files.items():
        file = folder / name
        if not file.resolve().is_relative_to(root):
            raise BundleError(
                f"{file} is a link that leads out of {folder}",
                "replace the link by the file that it leads to",
            )
        try:
            yield name, why_not(listed, summed(file)) if file.is_file() else "it is missing"
        except OSError as error:
            yield name, f"it can't be read: {error.strerror or error}"


def why_not(listed: FileSum, found: FileSum) -> str:
    """Why a file differs from the listed one; empty: it does not."""
    if found.bytes != listed.bytes:
        return f"it has {found.bytes} bytes; the manifest lists {listed.bytes}"
    return "" if found == listed else "its SHA-256 differs from the manifest's"


def runs_apart(folder: Path, manifest: Manifest) -> list[FileDifference]:
    """Runs whose manifest entry is wrong although every listed file matches."""
    runs = runs_in(folder, manifest.files)
    listed = {entry.path: entry for entry in manifest.runs}
    found = {path: _entry(path, run.meta, manifest.files) for path, run in runs.items()}
    return [
        FileDifference(
            path or ".", "the manifest's entry differs from this Run's files: " + difference
        )
        for path in sorted({*listed, *found})
        if (difference := _apart(listed.get(path), found.get(path)))
    ]


def _apart(listed: ManifestRun | None, found: ManifestRun | None) -> str:
    if listed is None or found is None:
        return "it is not listed" if listed is None else "it is missing"
    now_, then = asdict(found), asdict(listed)
    return ", ".join(key for key in now_ if now_[key] != then[key])
