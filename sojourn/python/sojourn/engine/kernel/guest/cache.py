"""The guests' cache: one folder for each guest, which is complete or does not exist.

    ~/.cache/sojourn/kernel/uml-6.12.117-1~deb12u1-4f2a.../linux-um     (XDG_CACHE_HOME in place of ~/.cache)
                                                          /base.cpio    ip, tc and what they need
                                                          /guest.json   its sources
                                                          /build.log

A folder's name ends in a hash of everything that decides its content: our edits, the kernel's
configuration, the recipe and the version of the source package. The folder is made under another
name and renamed when it is complete. So an interruption leaves nothing that could be taken for a
guest. Downloads are kept until the guest is complete, so that a second attempt does not download
them again.
"""

import contextlib
import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn import cleanup, places
from sojourn.engine.kernel.guest.endings import GuestError

MANIFEST = "guest.json"
_UNFINISHED = "making"


def root() -> Path:
    """The folder of all guests."""
    return places.cache() / "kernel"


def downloads() -> Path:
    """The folder of downloaded packages."""
    return root() / "downloads"


def key(parts: Mapping[str, bytes]) -> str:
    """A hash of named parts, whatever their order."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        for piece in (name.encode(), parts[name]):
            digest.update(len(piece).to_bytes(8, "little") + piece)
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class CachedGuest:
    """A complete guest's folder."""

    folder: Path
    manifest: dict[str, Any]


def find(kind: str, edits: str) -> CachedGuest | None:
    """The guest of this kind that was made with these edits; the latest if there are several."""
    found = []
    for path in root().glob(f"{kind}-*/{MANIFEST}"):
        with contextlib.suppress(OSError, ValueError):
            manifest = json.loads(path.read_text(encoding="utf-8"))
            if manifest.get("edits") == edits:
                found.append((path.stat().st_mtime, CachedGuest(path.parent, manifest)))
    return max(found, key=lambda one: one[0])[1] if found else None


def superseded(current: Iterable[tuple[str, str]]) -> list[Path]:
    """Guests that nothing uses any more, and logs of failed builds. The guests in use are those
    that `find` returns for these kinds and edits."""
    used = {guest.folder for kind, edits in current if (guest := find(kind, edits))}
    folders = [path.parent for path in root().glob(f"*/{MANIFEST}") if path.parent not in used]
    return sorted([*folders, *root().glob("failed-*")])


def remove(paths: Sequence[Path]) -> int:
    """Removes these folders and unfinished ones, and returns the bytes freed. Refused while a guest
    is being made."""
    with _locked():
        downloads_here = [downloads()] if downloads().exists() else []
        freed = sum(_size(path) for path in (*paths, *downloads_here))
        for path in (*paths, *downloads_here):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return freed


def _size(path: Path) -> int:
    files = (each for each in path.rglob("*") if each.is_file()) if path.is_dir() else (path,)
    return sum(each.stat().st_size for each in files)


@contextlib.contextmanager
def making() -> Iterator[Path]:
    """A temporary folder in the cache in which one guest is made; removed at the end. Only one
    process makes guests at a time."""
    with _locked(), cleanup.beside(root() / _UNFINISHED) as folder:
        folder.mkdir(mode=0o700)
        yield folder


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """Locks the cache against other processes that make or remove guests, and removes what a killed
    one left."""
    try:
        root().mkdir(parents=True, exist_ok=True)
        # Closing the file releases the lock, and so does the end of the process for whatever
        # reason.
        with open(root() / "lock", "w", encoding="utf-8") as lock:
            _take(lock.fileno())
            _sweep()
            yield
    except PermissionError as error:
        raise GuestError(
            f"can't write into {root()}: {error.strerror}",
            "set XDG_CACHE_HOME to a folder of yours",
        ) from None


def _take(lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise GuestError(
            "another `sojourn kernel setup` is at work here", "wait for it to end"
        ) from None


def _sweep() -> None:
    """Removes what a killed process left behind. Call it with the lock held, so that no other
    process is using it."""
    for left in root().glob(f".{_UNFINISHED}.*"):
        shutil.rmtree(left, ignore_errors=True)


def need_room(least_bytes: int) -> None:
    """Refuses a disk that is too full, before anything is fetched."""
    free = shutil.disk_usage(root()).free
    if free < least_bytes:
        raise GuestError(
            f"{root()} has room for {free / 1e9:.1f} GB; this takes {least_bytes / 1e9:.1f} GB while it is made",
            "make room, or set XDG_CACHE_HOME to a folder on another disk",
        )


def publish(folder: Path, name: str, manifest: Mapping[str, Any]) -> CachedGuest:
    """Gives a finished folder its name. A folder of that name is replaced, because it was made from
    the same parts."""
    text = json.dumps(dict(manifest), indent=1, sort_keys=True) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8")
    final = root() / name
    with cleanup.beside(final) as old:
        if final.exists():
            final.rename(old)
        folder.rename(final)
    return CachedGuest(final, dict(manifest))


def sha256(path: Path) -> str:
    """The hash of a whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
