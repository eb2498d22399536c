"""The guests by name: making, checking and choosing one."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sojourn import cleanup
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
from sojourn.engine.kernel.releases import BUILT, LinuxVersion, Release, version_in
from sojourn.engine.protocol import NotReadyError

Name = Literal["uml", "qemu", "uml-7.3", "uml-programs"]

NAMES: tuple[Name, ...] = ("uml", "qemu", "uml-7.3", "uml-programs")

PREFERRED: tuple[Name, ...] = ("uml", "qemu")
"""Guests that may be used when none is named, in order of preference. Both run Linux 6.12; another
kernel must be named."""

WHAT: dict[Name, str] = {
    "uml": "user-mode Linux in virtual time, built from Debian's kernel source: quick, exact, with rings and BQL",
    "uml-7.3": "the same with Linux 7.3, which has dualpi2",
    "uml-programs": "uml with further features of the kernel, for scenarios with programs",
    "qemu": "Debian's stock kernel in QEMU: nothing compiled; ten times slower",
}

CLOSING_MARKS = ("No working init found", "Unable to mount root fs")
"""Messages of a kernel that has booted completely and was given no program."""


@dataclass(frozen=True)
class Guest:
    """A guest that exists: the properties that a plan needs, and how to boot it."""

    name: Name
    folder: Path
    source: str
    """The package that it was built from, with its version."""
    modules: tuple[str, ...]
    """Module files in the guest to be loaded first, in this order."""
    late_modules: tuple[str, ...]
    """Module files to be loaded after the measurement."""
    files: str
    """Identifies the bytes of the kernel and its file system."""

    @property
    def kind(self) -> Literal["uml", "qemu"]:
        """The kind of machine: a process (user-mode Linux) or QEMU."""
        return "qemu" if self.name == "qemu" else "uml"

    @property
    def release(self) -> LinuxVersion:
        """The kernel's version, from its package's name: (6, 12)."""
        return version_in(self.source)

    @property
    def fingerprint(self) -> str:
        """Identifies everything in the guest that the tables depend on. For the stock kernel that
        includes QEMU's version and command line."""
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

    def command(self, start: boot.Boot) -> list[str]:
        """The command line of one run."""
        if self.kind == "uml":
            binary, arguments = self.folder / uml.BINARY, _BUILT[self.name].arguments
            return uml.command(
                *(binary, start.seed, start.memory_mb, start.pairs, start.queues),
                (*arguments, *start.arguments),
            )
        return qemu.command(self.folder, start.seed, start.memory_mb)

    def environment(self, start: boot.Boot) -> dict[str, str]:
        """The environment of one run."""
        if self.kind == "uml":
            return uml.environment(start.folder.resolve(), start.memory_mb)
        return qemu.environment(start.folder.resolve())


@dataclass(frozen=True)
class Status:
    """Whether a guest can be used here."""

    name: Name
    guest: Guest | None
    """The guest, if it is there."""
    why_not: str | None
    """Why it can't be used, and what to do; None if it can."""


def setup(
    name: Name, report: uml.Report = uml.nothing, given: Path | None = None, again: bool = False
) -> Guest:
    """Makes a guest unless it exists, and boots it once without a program, to test that it runs
    here.

    Args:
        report: called with the progress.
        given: a folder of .deb files to be used before any are downloaded.
        again: make it even if it exists, from the newest package.

    Raises:
        GuestError: something is missing, by package name.
        GuestRunError: it was made and does not run here.
    """
    guest = _guest(name, _made(name, report, given, again))
    if reason := _unready(name):
        raise errors.GuestError(f"the guest {name} is made, but can't run here: {reason}")
    try_out(guest)
    return guest


def try_out(guest: Guest) -> None:
    """Starts a guest without a program. Its kernel boots, finds no program, and prints so.

    Raises:
        GuestRunError: it ended in another way.
    """
    with cleanup.temporary_folder() as folder:
        try:
            boot.run(guest, boot.Boot(folder, b"", wall_limit_s=120.0))
        except errors.GuestRunError as failed:
            if not any(mark in failed.console for mark in CLOSING_MARKS):
                raise


def ready(name: Name) -> Status:
    """Whether a guest can be used here, and why not. Changes nothing."""
    cached = _found(name)
    guest = _guest(name, cached) if cached else None
    if reason := _unready(name):
        return Status(name, guest, reason)
    if guest is None:
        return Status(name, None, f"it has not been made yet: {setup_command(name)}")
    return Status(name, guest, None)


def setup_command(name: Name) -> str:
    """The command that makes this guest."""
    built = _BUILT.get(name)
    return built.setup if built else f"sojourn kernel setup --guest {name}"


def why_none(name: Name | None = None) -> str | None:
    """Why this guest (without a name: any of `PREFERRED`) can't be used here, and what to do; None
    if one can."""
    states = [ready(each) for each in (PREFERRED if name is None else (name,))]
    if any(state.why_not is None for state in states):
        return None
    return "; ".join(f"{state.name}: {state.why_not}" for state in states)


def clean() -> tuple[list[str], int]:
    """Removes superseded guests, which were made with other edits or from an older package. Returns
    their names and the bytes freed."""
    built = [(uml.KIND, uml.edits_key(release)) for release in BUILT]
    old = cache.superseded([*built, (qemu.KIND, qemu.edits_key())])
    return [path.name for path in old], cache.remove(old)


def choose(name: Name | None = None) -> Guest:
    """The guest of that name, or the first of `PREFERRED` that can be used.

    Raises:
        NotReadyError: there is none; the message says why.
    """
    for candidate in PREFERRED if name is None else (name,):
        state = ready(candidate)
        if state.guest and not state.why_not:
            return state.guest
    raise NotReadyError(
        f"no guest to run the kernel in ({why_none(name)})",
        f"{setup_command(name or PREFERRED[0])} makes one, sojourn kernel status has details",
    )


def overlay(init: Path, files: dict[str, bytes]) -> bytes:
    """Returns the archive that one run adds to a guest's file system: files, and the first program
    with the libraries that it needs.

    Raises:
        GuestError: the program can't be read.
    """
    try:
        program = init.read_bytes()
        libraries = initrd.init_with_libraries(init)
    except (OSError, ValueError) as error:
        raise errors.GuestError(f"can't take {init} as the guest's program: {error}") from None
    return (cpio.archive(libraries) if libraries else b"") + initrd.run(program, files)


def _guest(name: Name, cached: cache.CachedGuest) -> Guest:
    manifest = cached.manifest
    return Guest(
        name=name,
        folder=cached.folder,
        source=str(manifest["source"]),
        modules=tuple(manifest.get("modules", ())),
        late_modules=tuple(manifest.get("late_modules", ())),
        files=cache.key(
            {part: str(manifest[part]).encode() for part in ("kernel_sha256", "base_sha256")}
        ),
    )


_BUILT: dict[Name, Release] = {release.guest: release for release in BUILT}


def _found(name: Name) -> cache.CachedGuest | None:
    return uml.find(built) if (built := _BUILT.get(name)) else qemu.find()


def _made(name: Name, report: uml.Report, given: Path | None, again: bool) -> cache.CachedGuest:
    if built := _BUILT.get(name):
        return uml.build(built, report, given, again)
    return qemu.fetch(report, given, again)


def _unready(name: Name) -> str | None:
    return uml.unready() if name in _BUILT else qemu.unready()
