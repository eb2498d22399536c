"""The guests by name: making, checking and choosing one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sojourn import remains
from sojourn.engine.kernel.guest import (
    boot,
    cache,
    cpio,
    initrd,
    qemu,
    uml,
)
from sojourn.engine.kernel.guest import (
    endings as errors,
)

Name = Literal["uml", "qemu"]

NAMES: tuple[Name, ...] = ("uml", "qemu")
"""In order of preference."""

WHAT: dict[Name, str] = {
    "uml": "user-mode Linux in virtual time, built from Debian's kernel source: quick, exact, with rings and BQL",
    "qemu": "Debian's stock kernel in QEMU: nothing compiled; ten times slower",
}

CLOSING_MARKS = ("No working init found", "Unable to mount root fs")
"""Messages of a kernel that has booted completely and was given no program."""


@dataclass(frozen=True)
class Guest:
    """A guest that is there: what a plan needs to know of it, and what boots it."""

    kind: Name
    folder: Path
    source: str
    """The package that it was made of, with its version."""
    modules: tuple[str, ...]
    """Module files in the guest to be loaded first, in this order."""
    late_modules: tuple[str, ...]
    """Module files to be loaded after the measurement."""
    files: str
    """Names the kernel and its file system, byte for byte."""

    @property
    def fingerprint(self) -> str:
        """Names everything that the tables depend on. For the stock kernel that includes QEMU's
        version and command line."""
        if self.kind == "uml":
            return self.files
        return cache.key({"files": self.files.encode(), "emulator": qemu.decides()})

    @property
    def base(self) -> Path:
        """The archive at the front of its initial file system."""
        return self.folder / "base.cpio"

    @property
    def has_simnic(self) -> bool:
        """Whether links can be its simulated network cards."""
        return self.kind == "uml"

    @property
    def results(self) -> tuple[str | None, str]:
        """A file system to mount for the archive, if any, and the archive's path in the guest."""
        return (
            ("hostfs", f"/host/{boot.ARCHIVE}") if self.kind == "uml" else (None, "/dev/vport0p1")
        )

    def command(self, one: boot.Boot) -> list[str]:
        """The command line of one run."""
        if self.kind == "uml":
            return uml.command(self.folder / uml.BINARY, one.seed, one.memory_mb, one.pairs)
        return qemu.command(self.folder, one.seed, one.memory_mb)

    def environment(self, one: boot.Boot) -> dict[str, str]:
        """The environment of one run."""
        if self.kind == "uml":
            return uml.environment(one.folder.resolve(), one.memory_mb)
        return qemu.environment(one.folder.resolve())


@dataclass(frozen=True)
class Status:
    """Whether a guest can be used here."""

    kind: Name
    guest: Guest | None
    """The guest, if it is there."""
    why_not: str | None
    """Why it can't be used, and what to do; None if it can."""


def setup(
    name: Name, report: uml.Report = uml.nothing, given: Path | None = None, again: bool = False
) -> Guest:
    """Makes a guest unless it is there, and starts it once without a program, to see that it runs
    here.

    Args:
        report: called with the progress.
        given: a folder of .deb files to be used before any are downloaded.
        again: make it anew, from the newest package.

    Raises:
        GuestError: something is missing, by package name.
        GuestRunError: it was made and does not run here.
    """
    guest = _guest(name, _MAKE[name](report, given, again))
    if reason := _UNREADY[name]():
        raise errors.GuestError(f"the guest {name} is made, but can't run here: {reason}")
    try_out(guest)
    return guest


def try_out(guest: Guest) -> None:
    """Starts a guest without a program. Its kernel boots, finds no program, and prints so.

    Raises:
        GuestRunError: it ended in another way.
    """
    with remains.temporary_folder() as folder:
        try:
            boot.run(guest, boot.Boot(folder, b"", wall_limit_s=120.0))
        except errors.GuestRunError as failed:
            if not any(mark in failed.console for mark in CLOSING_MARKS):
                raise


def ready(name: Name) -> Status:
    """Whether a guest can be used here, and if not why. Changes nothing."""
    kept = _FIND[name]()
    guest = _guest(name, kept) if kept else None
    if reason := _UNREADY[name]():
        return Status(name, guest, reason)
    if guest is None:
        return Status(name, None, f"it has not been made yet: sojourn kernel setup --guest {name}")
    return Status(name, guest, None)


def why_none(name: Name | None = None) -> str | None:
    """Why this guest (without a name: any guest) can't be used here, and what to do; None if one
    can."""
    states = [ready(one) for one in (NAMES if name is None else (name,))]
    if any(state.why_not is None for state in states):
        return None
    return "; ".join(f"{state.kind}: {state.why_not}" for state in states)


def clean() -> tuple[list[str], int]:
    """Removes superseded guests, which were made of other edits or of an older package. Returns
    their names and the bytes freed."""
    old = cache.superseded({uml.KIND: uml.edits_key(), qemu.KIND: qemu.edits_key()})
    return [path.name for path in old], cache.remove(old)


def choose(name: Name | None = None) -> Guest:
    """The guest of that name, or the first that can be used.

    Raises:
        GuestError: there is none, and why.
    """
    for one in NAMES if name is None else (name,):
        state = ready(one)
        if state.guest and not state.why_not:
            return state.guest
    raise errors.GuestError(
        f"no guest to run the kernel in ({why_none(name)})",
        "sojourn kernel setup makes one, sojourn kernel status says more",
    )


def overlay(init: Path, files: dict[str, bytes]) -> bytes:
    """What one run adds to a guest's file system: files, and its first program with the libraries
    that it needs.

    Raises:
        GuestError: the program can't be read.
    """
    try:
        program = init.read_bytes()
        libraries = initrd.init_with_libraries(init)
    except (OSError, ValueError) as error:
        raise errors.GuestError(f"can't take {init} as the guest's program: {error}") from None
    return (cpio.archive(libraries) if libraries else b"") + initrd.run(program, files)


def _guest(name: Name, kept: cache.Kept) -> Guest:
    manifest = kept.manifest
    return Guest(
        kind=name,
        folder=kept.folder,
        source=str(manifest["source"]),
        modules=tuple(manifest.get("modules", ())),
        late_modules=tuple(manifest.get("late_modules", ())),
        files=cache.key(
            {part: str(manifest[part]).encode() for part in ("kernel_sha256", "base_sha256")}
        ),
    )


_FIND: dict[Name, Callable[[], cache.Kept | None]] = {"uml": uml.find, "qemu": qemu.find}
_MAKE: dict[Name, Callable[[uml.Report, Path | None, bool], cache.Kept]] = {
    "uml": uml.build,
    "qemu": qemu.fetch,
}
_UNREADY: dict[Name, Callable[[], str | None]] = {"uml": uml.unready, "qemu": qemu.unready}
