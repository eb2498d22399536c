"""Boots a guest for one run and returns its archive, or reports how it ended.

The run's folder has all files: `initrd`, `console`, `results.tar`. A guest ends by itself: its
program has a deadline in virtual time. This side has two more limits. One is in wall-clock time,
for a guest in which time stands still. The other is in CPU time and outlives this process.

The guest's program prints marks at the start of a console line:

    @BOOT        it runs
    @AT ns       its run's time (user-mode Linux only: a serial line would take the guest's
                 time)
    @DONE        it has measured
    @END         the archive is written
    @FAIL words  it gave up

The guest's kernel prints one more mark, for a program of the host that computes without a system
call:

    @SPINS s name
"""

import contextlib
import ctypes
import functools
import itertools
import os
import re
import resource
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from sojourn.engine.kernel.guest.endings import GuestError, GuestRunError
from sojourn.engine.protocol import Cancelled

ARCHIVE = "results.tar"
CONSOLE = "console"
INITRD = "initrd"
POLL_S = 0.1
"""Interval at which `reached` is called, s."""

BEGUN = "@BOOT"
ENDED = re.compile(r"^@END\b", re.MULTILINE)
STARVED = re.compile(r"[Oo]ut of memory|oom-kill|deadlocked on memory|page allocation failure")
HOST_STARVED = re.compile(r"out of memory on the host|max_map_count")
"""Messages of user-mode Linux when the host refuses memory or mappings."""
TIMES = re.compile(rb"^@AT (\d+)\r?\n", re.MULTILINE)
TIME_BYTES = 256
"""Bytes at the end of the console that contain the last `@AT`."""
SPINS = re.compile(r"^@SPINS (\d+) (.*)$", re.MULTILINE)
GAVE_UP = re.compile(r"^@FAIL\b ?(.*)$", re.MULTILINE)


class Bootable(Protocol):
    """A kernel that can be booted."""

    @property
    def kind(self) -> str: ...
    @property
    def base(self) -> Path:
        """The archive with which its initial file system begins."""
        ...

    def command(self, boot: "Boot") -> list[str]: ...
    def environment(self, boot: "Boot") -> dict[str, str]: ...


@dataclass(frozen=True)
class Boot:
    """One run of a guest."""

    folder: Path
    """The folder of the run. It must exist; files of an earlier run are replaced."""
    overlay: bytes
    """The cpio archives that follow the guest's own: its first program, the plan."""
    seed: int = 1
    memory_mb: int = 256
    pairs: int = 0
    """Pairs of simulated network cards (the built guest)."""
    queues: str = ""
    """The cards with several transmit queues, in the driver's syntax: `0a:4,2b:16`."""
    arguments: Sequence[str] = ()
    """Further arguments of the guest's command line (the built guest)."""
    wall_limit_s: float = 600.0


@dataclass(frozen=True)
class Booted:
    """A guest that has ended well."""

    archive: Path
    console: str
    cpu_s: float


def run(guest: Bootable, boot: Boot, reached: Callable[[int], bool] = lambda _: True) -> Booted:
    """Boots the guest and waits for its end. `reached` is called repeatedly with the time of the
    run in ns; when it returns False the guest is killed.

    Raises:
        GuestRunError: it did not end well; `ending` says how it ended instead.
        GuestError: it could not be started.
        Cancelled: `reached` returned False.
    """
    folder = boot.folder.resolve()
    _lay_out(guest, boot, folder)

    def stopped() -> bool:
        return not reached(_time(folder))

    status, usage, overdue = _booted(guest, boot, folder, stopped)
    console = _console(folder)
    # The sockets and pid files of user-mode Linux are stale once it has ended.
    with contextlib.suppress(OSError):
        for left in (folder / "u").iterdir():
            left.unlink()
        (folder / "u").rmdir()
    if ENDED.search(console) and (folder / ARCHIVE).is_file() and not overdue:
        return Booted(folder / ARCHIVE, console, usage.ru_utime + usage.ru_stime)
    if stopped():
        raise Cancelled
    raise ending(console, status, boot, overdue)


def _lay_out(guest: Bootable, boot: Boot, folder: Path) -> None:
    try:
        for name in (ARCHIVE, CONSOLE, INITRD):
            (folder / name).unlink(missing_ok=True)
        with (folder / INITRD).open("wb") as file:
            file.write(guest.base.read_bytes())
            file.write(boot.overlay)
    except OSError as error:
        raise GuestError(
            f"can't write {folder / INITRD}: {error.strerror}", "run elsewhere"
        ) from None


def _booted(
    guest: Bootable, boot: Boot, folder: Path, stopped: Callable[[], bool]
) -> tuple[int, resource.struct_rusage, bool]:
    def prepare(process: int) -> None:
        if guest.kind == "uml":
            # The kernel and the guest's programs alternate at every system call. On two processors
            # each change wakes the other processor, which triples the CPU time.
            os.sched_setaffinity(process, {_next_processor()})

    with (folder / CONSOLE).open("ab") as console:
        child = Child(
            guest.command(boot),
            folder,
            guest.environment(boot),
            console,
            boot.wall_limit_s,
            "make it again: sojourn kernel setup --again",
            prepare,
        )
        return see_to_its_end(child, stopped)


@dataclass(frozen=True)
class Child:
    """A process to be started."""

    command: Sequence[str]
    folder: Path
    """Its working folder."""
    environment: Mapping[str, str]
    console: IO[bytes]
    """Receives its output."""
    wall_limit_s: float
    remedy: str
    """The hint if it can't be started."""
    prepare: Callable[[int], None] = lambda _: None
    """Called with its process number as soon as it starts."""
    files: Sequence[int] = ()
    """Descriptors that it inherits."""


def see_to_its_end(
    child: Child, stopped: Callable[[], bool]
) -> tuple[int, resource.struct_rusage, bool]:
    """Starts a process and waits for its end, or kills it. Returns its exit status as of wait(2),
    the resources it used, and whether it was overdue.

    Raises:
        GuestError: it could not be started.
    """
    try:
        process = subprocess.Popen(
            child.command,
            cwd=child.folder,
            env=child.environment,
            stdin=subprocess.DEVNULL,
            stdout=child.console,
            stderr=child.console,
            start_new_session=True,
            pass_fds=child.files,
            preexec_fn=dying_with_us(),
        )
    except OSError as error:
        raise GuestError(f"can't run {child.command[0]}: {error.strerror}", child.remedy) from None
    return _ended(process, child, stopped)


_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1


def dying_with_us() -> Callable[[], None]:
    """Returns a function that a child calls before its program begins. The kernel then kills the
    child when the thread that started it ends, for whatever reason."""
    return functools.partial(_die_with, os.getpid())


def _die_with(parent: int) -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # PR_SET_PDEATHSIG has no effect if the parent has ended already.
    if os.getppid() != parent:
        os._exit(1)


def _ended(
    process: subprocess.Popen[bytes], child: Child, stopped: Callable[[], bool]
) -> tuple[int, resource.struct_rusage, bool]:
    with contextlib.suppress(ProcessLookupError):
        child.prepare(process.pid)
        limit = int(child.wall_limit_s) + 10
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (limit, limit))
    handle = os.pidfd_open(process.pid)
    overdue = False
    due = time.monotonic() + child.wall_limit_s
    try:
        while not select.select([handle], [], [], POLL_S)[0] and not stopped():
            if time.monotonic() >= due:
                overdue = True
                break
    finally:
        os.close(handle)
        # Kill the whole group: the guest's processes are processes of this host. The group outlives
        # the guest if one of them does.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return status, usage, overdue


_turn = itertools.count(os.getpid())


def _next_processor() -> int:
    """One of the processors that we may use, each in turn, so that several guests are spread over
    them."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[next(_turn) % len(allowed)]


def _time(folder: Path) -> int:
    """The time of the run that the guest's program last reported, ns; 0 before the first report."""
    with (folder / CONSOLE).open("rb") as console:
        console.seek(max(0, console.seek(0, os.SEEK_END) - TIME_BYTES))
        times = TIMES.findall(console.read())
    return int(times[-1]) if times else 0


def _console(folder: Path) -> str:
    """The console's text, with only the last of successive times."""
    text = (folder / CONSOLE).read_bytes().decode("utf-8", "replace")
    return re.sub(r"(^@AT \d+\n)+(?=@AT )", "", text.replace("\r", ""), flags=re.MULTILINE)


def ending(console: str, status: int, boot: Boot, overdue: bool) -> GuestRunError:
    """How a guest ended, from its console and its exit status as of wait(2)."""
    if overdue:
        return _hung(console, boot)
    if found := SPINS.search(console):
        return GuestRunError(
            "hung",
            f"the program '{found[2]}' computed for {found[1]} s of processor time without a"
            " system call: time stands still in the guest meanwhile",
            "a program that waits has to sleep, poll or read a clock; a computation has to be shorter",
            console,
        )
    if found := GAVE_UP.search(console):
        return GuestRunError(
            "gave up",
            f"the guest's program gave up: {found[1] or 'it gives no reason'}",
            "its message above names the failure",
            console,
        )
    if HOST_STARVED.search(console):
        return GuestRunError(
            "out of memory",
            "this host gave the guest no more memory, or no more mappings of memory than vm.max_map_count allows",
            "free some memory, or as root: sysctl vm.max_map_count=1000000; a shorter run needs less of both",
            console,
        )
    if STARVED.search(console):
        return GuestRunError(
            "out of memory",
            f"the guest ran out of its {boot.memory_mb} MB of memory",
            f"a shorter run needs less; and {_REPORT}",
            console,
        )
    if found := re.search(r"Kernel panic - not syncing: (.*)", console):
        return GuestRunError(
            "panicked", f"the guest's kernel panicked: {found[1]}", _REPORT, console
        )
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return _hung(console, boot)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        # SIGBUS: the file system of the guest's memory is full.
        hint = {
            "SIGKILL": "the host may have run out of memory: see dmesg; or somebody ended it",
            "SIGBUS": "the folder that holds its memory is full: set SOJOURN_TMPDIR to another",
        }.get(name, _REPORT)
        return GuestRunError("killed", f"the guest was killed by {name}", hint, console)
    if BEGUN not in console:
        code = os.waitstatus_to_exitcode(status)
        return GuestRunError(
            "refused",
            f"the guest did not start (exit status {code})",
            "sojourn kernel status says what it needs",
            console,
        )
    return GuestRunError(
        "gave up", "the guest ended before it had written its results", _REPORT, console
    )


_REPORT = "please report it with the scenario and this console"


def _hung(console: str, boot: Boot) -> GuestRunError:
    where = "before its program ran" if BEGUN not in console else "in its program"
    return GuestRunError(
        "hung",
        f"the guest had not ended after {boot.wall_limit_s:g} s, {where}, and was ended",
        "a long scenario may take longer: raise the limit; if it is not long, time stands still in the guest",
        console,
    )
