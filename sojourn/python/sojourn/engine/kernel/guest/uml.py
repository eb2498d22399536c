"""The built guest: user-mode Linux in virtual time, from Debian's kernel source and our edits to
it.

It is an ordinary process that needs neither root nor special hardware. It runs the real kernel, and
its clock advances when everything in it waits. `linux/` has the edits (a patch, a driver, a
configuration; GPL-2.0, as the kernel) and explains each. The same source, edits and compiler give
the same kernel, byte for byte: names and times that a build would leave in it are fixed.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path

from sojourn import cleanup
from sojourn.engine.kernel.guest import cache, host, initrd, packages
from sojourn.engine.kernel.guest.boot import dying_with_us
from sojourn.engine.kernel.guest.endings import GuestError, last_lines
from sojourn.engine.kernel.releases import Release

KIND = "uml"
BINARY = cleanup.UML
LOG = "build.log"

DRIVERS = ("simnic.c", "simlog.c", "simlog.h", "simread.c")
CONFIG = "uml.config"
"""The whole configuration of a kernel, among its edits."""
RECIPE = b"1"
"""Increase it when a change of this file changes the guest while the files above stay the same."""

START_NS = 1_704_067_200_000_000_000
"""The start of a guest's calendar: 2024-01-01. Any fixed time would do."""

ROOM_BYTES = 1_500_000_000
"""Room for the source package, the unpacked part of its tree, and the objects."""

_FIXED = {
    "KBUILD_BUILD_TIMESTAMP": "Thu Jan  1 00:00:00 UTC 2026",
    "KBUILD_BUILD_USER": "sojourn",
    "KBUILD_BUILD_HOST": "sojourn",
    "KBUILD_BUILD_VERSION": "1",
}
"""The kernel mixes its version line into its randomness, so the line must not depend on when and
where the kernel was built."""

_MAKE = ("make", "ARCH=um", "SUBARCH=x86_64", "RUSTC=none", "PAHOLE=none")
"""The build uses neither rustc nor pahole. But the kernel contains its configuration, which would
record the host's versions of both."""

_UNUSED_SOURCES = (
    *(
        f"arch/{one}"
        for one in ("alpha", "arc", "arm", "arm64", "loongarch", "m68k", "mips", "parisc")
    ),
    *(f"arch/{one}" for one in ("powerpc", "riscv", "s390", "sh", "sparc", "xtensa")),
    *("Documentation", "sound", "tools/perf", "tools/testing", "samples", "rust"),
    *(
        f"drivers/{one}"
        for one in ("accel", "gpu", "iio", "infiniband", "media", "pinctrl", "scsi")
    ),
    *(f"drivers/{one}" for one in ("staging", "usb", "video", "net/ethernet", "net/wireless")),
    *(f"fs/{one}" for one in ("btrfs", "xfs", "ocfs2", "bcachefs", "nfs", "smb")),
)
"""Folders whose sources this configuration does not need: two thirds of the tree. Their Kconfig
files and Makefiles are read."""

_SOURCE_SUFFIXES = ("[chS]", "dts", "dtsi", "rst", "yaml", "json", "txt", "svg", "rs")

_TOOLS = {
    "make": "make",
    "patch": "patch",
    "xz": "xz-utils",
    "flex": "flex",
    "bison": "bison",
    "m4": "m4",
    "bc": "bc",
}
"""Programs that the build runs, and the packages from which they can be unpacked without root."""

_FROM_THE_HOST = {
    "gcc": "gcc",
    "ld": "binutils",
    "tar": "tar",
    "perl": "perl",
    "awk": "mawk",
    "dpkg-deb": "dpkg",
}
"""Programs that must be installed."""


@dataclass(frozen=True)
class SetupProgress:
    """Progress of a setup: its current step, and the share that is done."""

    doing: str
    fraction: float


def nothing(_: SetupProgress) -> None:
    """A `report` that does nothing."""


Report = Callable[[SetupProgress], None]


def edits(release: Release) -> dict[str, bytes]:
    """Our files for this kernel, by name; `CONFIG` is its whole configuration."""
    folder = Path(__file__).parent.parent / "linux"
    names = (*release.patches, *DRIVERS, *release.drivers)
    found = {name: (folder / name).read_bytes() for name in names}
    parts = [(folder / name).read_bytes() for name in release.configs]
    found[CONFIG] = b"".join(parts) + "".join(f"{line}\n" for line in release.config).encode()
    return found


@once
def edits_key(release: Release) -> str:
    """Identifies our changes to the kernel's source, and the source's package without its
    version."""
    return cache.key({**edits(release), "source": release.package.encode(), "recipe": RECIPE})


def find(release: Release) -> cache.CachedGuest | None:
    """The guest, if it has been built."""
    return cache.find(KIND, edits_key(release))


# --------------------------------------------------------------------------------------- building


def missing_from_host() -> str | None:
    """Why a guest can't be built here; None if it can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return f"user-mode Linux needs an x86-64 Linux host; this host has {sys.platform} on {os.uname().machine}"
    absent = [package for tool, package in _FROM_THE_HOST.items() if not host.has(tool)]
    if absent:
        return f"building it needs {', '.join(absent)}: apt-get install {' '.join(absent)}"
    test = subprocess.run(
        ["gcc", "-E", "-x", "c", "-"],
        input=b"#include <sys/ptrace.h>\n#include <linux/ptrace.h>\n",
        env={"PATH": host.PATH},
        capture_output=True,
        check=False,
    )
    if test.returncode != 0:
        return "building it needs the C library's headers: apt-get install libc6-dev"
    return None


def build(
    release: Release, report: Report = nothing, given: Path | None = None, again: bool = False
) -> cache.CachedGuest:
    """Builds the guest in four to seven CPU minutes. If it exists already, does nothing unless
    `again`.

    Args:
        release: the kernel to build.
        report: called with the progress.
        given: a folder of .deb files to be used before any are downloaded.

    Raises:
        GuestError: something is missing, by package name, or the build failed; its log is kept.
    """
    if not again and (cached := find(release)):
        return cached
    if why := missing_from_host():
        raise GuestError(
            f"can't build the guest: {why}",
            "or take the other guest: sojourn kernel setup --guest qemu",
        )
    with cache.making() as scratch:
        cache.need_room(ROOM_BYTES)
        report(SetupProgress(f"fetching {release.package}", 0.0))
        source = packages.fetch(release.package, given, release.suite)
        environment = _with_tools(scratch, given)
        edited = edits_key(release)
        name = f"{KIND}-{source.version}-{cache.key({'edits': edited.encode(), 'source': source.version.encode()})}"

        log = scratch / LOG
        report(SetupProgress(f"unpacking {source.version}", 0.04))
        tree = _unpacked(source, scratch, environment, log)
        report(SetupProgress("configuring", 0.15))
        _edit(release, tree, environment, log)
        _configure(release, tree, environment, log)
        for step, _ in enumerate(_compiled(tree, environment, log)):
            done = min(step / release.steps, 1.0)
            report(SetupProgress("compiling", 0.18 + 0.8 * done))

        report(SetupProgress("packing ip and tc", 0.98))
        built = scratch / "made"
        built.mkdir()
        shutil.copy2(tree / "linux", built / BINARY)
        shutil.copy2(log, built / LOG)
        (built / "base.cpio").write_bytes(initrd.base(given=given, scratch=scratch))
        cached = cache.publish(
            built,
            name,
            {
                "kind": KIND,
                "edits": edited,
                "source": f"{source.name} {source.version}",
                "compiler": _compiler(),
                "kernel_sha256": cache.sha256(built / BINARY),
                "base_sha256": cache.sha256(built / "base.cpio"),
            },
        )
        shutil.rmtree(cache.downloads(), ignore_errors=True)
    report(SetupProgress("done", 1.0))
    return cached


def _compiler() -> str:
    done = subprocess.run(
        ["gcc", "--version"], env={"PATH": host.PATH}, capture_output=True, text=True, check=False
    )
    return done.stdout.partition("\n")[0]


def _with_tools(scratch: Path, given: Path | None) -> dict[str, str]:
    """The build's environment, with the tools that the host lacks unpacked into `scratch`."""
    tools = scratch / "tools"
    lacking = [package for tool, package in _TOOLS.items() if not host.has(tool)]
    packages.unpack([packages.fetch(package, given) for package in lacking], tools)
    environment = {
        "PATH": f"{tools}/usr/bin:{tools}/bin:{host.PATH}",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "LC_ALL": "C",
        **_FIXED,
    }
    # bison and m4 look for their data at the paths that they were built for.
    if "bison" in lacking:
        environment["BISON_PKGDATADIR"] = f"{tools}/usr/share/bison"
    if "m4" in lacking:
        environment["M4"] = f"{tools}/usr/bin/m4"
    for tool, package in _TOOLS.items():
        if package in lacking:
            _try(tool, package, environment)
    return environment


def _try(tool: str, package: str, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [tool, "--version"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise GuestError(
            f"{tool} of the package {package} does not run without being installed: {done.stderr.strip()}",
            f"apt-get install {package}",
        )


def _unpacked(
    source: packages.Package, scratch: Path, environment: dict[str, str], log: Path
) -> Path:
    packages.unpack([source], scratch / "package")
    tarball = next((scratch / "package").glob("usr/src/linux-source-*.tar.*"), None)
    if tarball is None:
        raise GuestError(
            f"{source.file.name} contains no kernel source",
            "remove it: it is then downloaded again",
        )
    tree = scratch / "tree"
    tree.mkdir()
    # tar's `*` also matches a `/`.
    without = [
        f"--exclude=*/{folder}/*.{suffix}"
        for folder in _UNUSED_SOURCES
        for suffix in _SOURCE_SUFFIXES
    ]
    _do(["tar", "-xf", str(tarball), "--strip-components=1", *without], tree, environment, log)
    shutil.rmtree(scratch / "package")
    return tree


def _edit(release: Release, tree: Path, environment: dict[str, str], log: Path) -> None:
    ours = edits(release)
    # Without fuzz: an edit that no longer fits its context has to be reviewed, not guessed.
    for patch in release.patches:
        _do(
            ["patch", "-p1", "--fuzz=0", "--batch", "--forward", "--no-backup-if-mismatch"],
            *(tree, environment, log),
            stdin=ours[patch],
        )
    for name in (*DRIVERS, *release.drivers):
        (tree / "drivers/net" / name).write_bytes(ours[name])
    (tree / "sojourn.config").write_bytes(ours[CONFIG])


def _configure(release: Release, tree: Path, environment: dict[str, str], log: Path) -> None:
    _do(
        [*_MAKE, "KCONFIG_ALLCONFIG=sojourn.config", "allnoconfig"],
        *(tree, environment, log),
    )
    written = (tree / ".config").read_text(encoding="utf-8")
    if refused := not_taken(edits(release)[CONFIG].decode(), written):
        raise GuestError(
            f"this kernel's configuration does not take {', '.join(refused)}",
            f"it is made for {release.package}: check that this package was fetched",
        )


def not_taken(wanted: str, written: str) -> list[str]:
    """The settings of a fragment that a .config lacks: the name has changed, or a setting that it
    depends on is off."""
    have = set(written.splitlines())
    return [line for line in wanted.splitlines() if re.match("CONFIG_", line) and line not in have]


def _compiled(tree: Path, environment: dict[str, str], log: Path) -> Iterator[str]:
    """Compiles the kernel, and yields a line for each step."""
    jobs = f"-j{len(os.sched_getaffinity(0))}"
    for line in _lines_of([*_MAKE, jobs, "linux"], tree, environment, log):
        if line.startswith("  "):
            yield line


def _do(
    command: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    log: Path,
    stdin: bytes | None = None,
) -> None:
    for _ in _lines_of(command, folder, environment, log, stdin):
        pass


def _lines_of(
    command: Sequence[str],
    folder: Path,
    environment: dict[str, str],
    log: Path,
    stdin: bytes | None = None,
) -> Iterator[str]:
    """Runs a step of the build, yields its output line by line, and appends it to the log."""
    with (
        tempfile.TemporaryFile() as words,
        log.open("a", encoding="utf-8", errors="replace") as file,
    ):
        words.write(stdin or b"")
        words.seek(0)
        file.write(f"$ {' '.join(command)}\n")
        # A process group of its own: on an interruption it ends as a whole, compilers too.
        with subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            # Without this, tar or a compiler would continue after this process has ended, in a
            # folder that is removed.
            preexec_fn=dying_with_us(),
        ) as step:
            assert step.stdout is not None
            try:
                for line in step.stdout:
                    file.write(line)
                    yield line
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(step.pid, signal.SIGKILL)
                raise
    if step.returncode != 0:
        raise _failed(command, log)


def _failed(command: Sequence[str], log: Path) -> GuestError:
    """The error of a failed step. The log outlives the folder in which it was written."""
    saved = cache.root() / f"failed-{LOG}"
    shutil.copy2(log, saved)
    words = log.read_text(encoding="utf-8", errors="replace")
    wrong = [
        line
        for line in words.splitlines()
        if re.search(r"error|No such|FAILED|rejects|No space", line)
    ]
    tail = last_lines("\n".join(wrong or words.splitlines()), 4).partition("\n")[2]
    return GuestError(
        f"`{command[0]}` failed while building the guest:\n{tail}", f"the whole log is {saved}"
    )


# ---------------------------------------------------------------------------------------- running


def command(
    binary: Path, seed: int, memory_mb: int, pairs: int, queues: str, arguments: Sequence[str] = ()
) -> list[str]:
    """The guest's command line. The kernel mixes its command line into its randomness, so the line
    differs between runs only where it must.

    Paths are relative to the run's folder, so that the folder's name is not part of it. The seed is
    removed before the kernel reads the line.
    """
    return [
        str(binary),
        f"mem={memory_mb}M",
        "initrd=initrd",
        "con0=null,fd:1",
        "quiet",
        "panic=-1",
        "hostfs=/proc/self/cwd",
        "uml_dir=.",
        "umid=u",
        "time-travel=inf-cpu",
        f"time-travel-start={START_NS}",
        f"rngseed={seed}",
        f"simnic.pairs={pairs}",
        *([f"simnic.queues={queues}"] if queues else []),
        *arguments,
    ]


def environment(folder: Path, memory_mb: int) -> dict[str, str]:
    """The guest's whole environment."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(memory_folder(memory_mb))}


def memory_folder(memory_mb: int) -> Path:
    """A folder for the file that is the guest's memory. It must allow execution, because the
    guest's programs run from that file.

    Raises:
        GuestError: there is none.
    """
    refused = []
    named = [os.environ.get(name, "") for name in ("SOJOURN_TMPDIR", "TMPDIR", "XDG_RUNTIME_DIR")]
    for folder in (*named[:1], "/dev/shm", *named[1:], "/tmp", "/var/tmp"):
        if not folder:
            continue
        if why := _unfit(Path(folder), memory_mb << 20):
            refused.append(f"{folder} {why}")
        else:
            return Path(folder)
    raise GuestError(
        f"no folder for the guest's memory ({memory_mb} MB): {'; '.join(dict.fromkeys(refused))}",
        "set SOJOURN_TMPDIR to a folder with room whose file system is not mounted noexec",
    )


def _unfit(folder: Path, size: int) -> str | None:
    """Why a folder can't contain a guest's memory."""
    import mmap

    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(mmap.PAGESIZE)
            protection = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
            mmap.mmap(file.fileno(), mmap.PAGESIZE, flags=mmap.MAP_PRIVATE, prot=protection).close()
        room = os.statvfs(folder)
    except PermissionError as error:
        # The file system's own refusal (noexec) is EPERM; EACCES concerns our permissions.
        return "is mounted noexec" if error.errno == 1 else "can't be written to"
    except OSError as error:
        return f"can't be used ({error.strerror})"
    free = room.f_bavail * room.f_frsize
    return None if free >= size else f"has room for {free >> 20} MB only"


def unready() -> str | None:
    """Why the built guest can't run here, other than not being built; None if it can."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return (
            f"it needs an x86-64 Linux host; this host has {sys.platform} on {os.uname().machine}"
        )
    try:
        memory_folder(256)
    except GuestError as error:
        return f"{error.problem}; {error.hint}"
    if not _may_trace():
        return (
            "this host forbids ptrace, which this guest needs (a container's seccomp profile, or"
            " kernel.yama.ptrace_scope = 3): allow it, or use the guest qemu"
        )
    return None


@once
def _may_trace() -> bool:
    """Whether a process here may be traced by its parent (PTRACE_TRACEME). A child asks, because the
    process stays traced. A new Python would take ten times as long."""
    ptrace = ctypes.CDLL(None).ptrace
    with warnings.catch_warnings():
        # Python warns of a fork beside other threads. This child takes no lock that they may hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os._exit(ptrace(0, 0, 0, 0) != 0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0
