"""This host's own kernel as an engine: the plan of engine/kernel/, carried out in namespaces of
this host, in real time.

The guest's program does the same here as in a guest, as a root that has namespaces of its own: root
itself, or any user in a user namespace where the kernel lets him. All that it makes hangs on that
one process: its network namespaces have names in a mount namespace that nobody else sees, every
device is made inside one of them, and it dies with the thread that started it (PR_SET_PDEATHSIG).
What it reads and writes are files without names. So nothing of it is left however a run ends. What
else a killed sojourn leaves, whatever its engine, is noted (sojourn/remains.py) for the next one,
or `sojourn clean`, to remove.

What the kernel has is tried beforehand, in a namespace that is thrown away, with the words of the
scenario. Real time is watched: a run whose links or whose program were held up is marked invalid.
Runs go one after another.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from sojourn.arrays import Ints
from sojourn.engine.kernel.engine import build, outcome, program
from sojourn.engine.kernel.graph import has_queue
from sojourn.engine.kernel.guest.boot import (
    BEGUN,
    ENDED,
    GAVE_UP,
    Child,
    see_to_its_end,
)
from sojourn.engine.kernel.guest.endings import GuestError, GuestRunError
from sojourn.engine.kernel.observed import selfcheck
from sojourn.engine.kernel.observed.archive import Archive
from sojourn.engine.kernel.observed.passage import Passage
from sojourn.engine.kernel.plan import guest_plan as plan
from sojourn.engine.protocol import Cancelled, NotReadyError, Outcome
from sojourn.linux import tc
from sojourn.linux.programs import PATH
from sojourn.scenario import linux
from sojourn.scenario.qdisc import QDISCS, Qdisc
from sojourn.scenario.realised import Realised
from sojourn.scenario.tcp import PROFILES

PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux"}
"""What is called, and the package that has it."""
STARTED = "@START"
GUEST_INSTEAD = "or run it in a guest, which needs neither root nor modules: -e kernel"
WITHOUT_NETEM = 'a scenario whose links have delay = "0 s" and no loss, and whose flows have no rtt, needs no netem'
GRACE_S = 10.0
"""Beyond the program's own deadline."""
MOST_SLOW = 0.01
"""A link that had packets waiting and sent this much less than its rate gives a wrong picture of
its queue."""
LEAST_BUSY_NS = 10**8
"""Of waiting, before that can be told."""
LATE_NS = 5 * 10**6
MOST_LATE = 0.02
"""A program that is later than that more often than this makes another traffic than it is told
to."""
TYPICAL = tuple(
    record.least for record in QDISCS.values() if record.in_linux() and not record.for_each_queue
)
"""A queue discipline of each kind that Linux has, and that virtual devices can have."""
CONGESTION = tuple(record.name for record in linux.CONGESTION.values() if record.in_linux)
"""Linux's congestion controls."""
MODULES = Path("/sys/module")
_DEVICE = "t0"
_PAIR = f"ip link add name {_DEVICE} gso_max_segs 1 type veth peer name t1 gso_max_segs 1"
_OWN_RUN = "mount -t tmpfs none /run"
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


class Netns:
    """Scenarios on this host's kernel."""

    name = "netns"
    alone = True

    @functools.cached_property
    def _way(self) -> Way:
        return way()

    @property
    def version(self) -> str:
        """The kernel; a run's tables depend on the moment as well."""
        return f"Linux {platform.release()} of this host {self._way.name}, in real time: not deterministic"

    @functools.cached_property
    def build(self) -> str:
        """Names this host's kernel, our program, and what plans and reads its measurements. No two
        runs give the same tables."""
        return build("netns", f"{platform.release()} {platform.version()}")

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        """Offloads; HZ is this host's own, which nobody is told."""
        return {"offloads": plan.offloads(realised)}

    def check(self, realised: Realised) -> None:
        """Refuses what Linux has no word for, and what this host's kernel does not have."""
        planned = plan.plan(realised, plan.this_host())
        missing = list(_missing(realised, planned.plan, self._way))
        if missing:
            hints = dict.fromkeys(each.hint for each in missing)
            raise GuestError(
                "\n".join(f"{each.where}: {each.why}" for each in missing),
                "; ".join([*hints, GUEST_INSTEAD]),
            )

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        """See `Engine.tables`."""
        planned = plan.plan(realised, plan.this_host()).plan
        # Files without names: whatever happens to us, they go with their last descriptor.
        with (
            tempfile.TemporaryFile() as given,
            tempfile.TemporaryFile() as measured,
            tempfile.TemporaryFile() as console,
        ):
            given.write(json.dumps(planned).encode())
            given.flush()
            usage = _carry_out(self._way, planned, (given, measured, console), reached)
            file = Path(f"/proc/self/fd/{measured.fileno()}")
            cpu_ns = round((usage.ru_utime + usage.ru_stime) * 1e9)
            return outcome(
                realised,
                file,
                lambda archive: [
                    *selfcheck.doubts(realised, archive, "host"),
                    *doubts(realised, archive),
                ],
                cpu_ns,
            )


# ---------------------------------------------------------------------------------------- one run


def _carry_out(
    there: Way,
    planned: Mapping[str, Any],
    files: tuple[IO[bytes], IO[bytes], IO[bytes]],
    reached: Callable[[int], bool],
) -> resource.struct_rusage:
    """Runs the program; `files`: the plan, the archive, what it says."""
    given, measured, console = files
    words = [str(program())]
    words += [
        "--plan",
        f"/proc/self/fd/{given.fileno()}",
        "--out",
        f"/proc/self/fd/{measured.fileno()}",
    ]
    limit_s = planned["deadline_ns"] / 1e9 + GRACE_S
    child = Child(
        # A user namespace's root may not make /run/netns in the host's /run.
        there.command(f'{_OWN_RUN} && exec "$@"', words),
        Path("/"),
        {"PATH": PATH},
        console,
        limit_s,
        "make setup builds the program anew",
        _prefer,
        (given.fileno(), measured.fileno()),
    )
    began: float | None = None

    def stopped() -> bool:
        nonlocal began
        if began is None and STARTED in _said(console):
            began = time.monotonic()
        passed = (
            0 if began is None else int((time.monotonic() - began) * 1e9) - planned["settle_ns"]
        )
        return not reached(max(0, min(passed, planned["duration_ns"])))

    status, usage, overdue = see_to_its_end(child, stopped)
    said = _said(console)
    if ENDED.search(said) and not overdue:
        return usage
    if stopped():
        raise Cancelled
    raise _ending(said, status, limit_s if overdue else None)


def _prefer(process: int) -> None:
    """The program sleeps nearly all of the time; when it wakes up it is not to wait for whoever
    computes. What it starts is ordinary."""
    # User namespaces have no such privilege; `doubts` tells whether it was needed.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(process, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def _said(console: IO[bytes]) -> str:
    # By its descriptor: the program writes at the place of its own.
    return os.pread(console.fileno(), 1 << 20, 0).decode("utf-8", "replace")


def _ending(said: str, status: int, overdue_s: float | None) -> GuestRunError:
    """How a run ended that did not come to its end."""
    if overdue_s is not None:
        return GuestRunError(
            "hung",
            f"the run had not ended after {overdue_s:g} s, and was ended",
            "leave the machine to it",
            said,
        )
    if found := GAVE_UP.search(said):
        return GuestRunError(
            "gave up", f"this host's kernel: {found[1]}", GUEST_INSTEAD.removeprefix("or "), ""
        )
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        return GuestRunError("killed", f"the run was killed by {name}", "somebody ended it", said)
    if BEGUN not in said:
        return GuestRunError(
            "refused", "the run did not start", GUEST_INSTEAD.removeprefix("or "), said
        )
    return GuestRunError(
        "gave up", "the run ended before it had written its results", "please report it", said
    )


# ------------------------------------------------------------------------------------- the way in


@dataclass(frozen=True)
class Way:
    """How to be a root that may make namespaces."""

    name: str
    options: tuple[str, ...]
    """Of unshare(1)."""

    def command(self, script: str, words: Sequence[str] = ()) -> list[str]:
        """The command line of a script as such a root, in a namespace where nothing is; the words
        are its arguments.

        Each of its steps becomes the next one, so that all of it is one process.
        """
        return [
            "unshare",
            *self.options,
            "--net",
            "--mount",
            "--",
            "sh",
            "-c",
            script,
            "sh",
            *words,
        ]


ROOT = Way("as root", ())
USER = Way("in a user namespace", ("--user", "--map-root-user"))


def way() -> Way:
    """How namespaces can be made here.

    Raises:
        NotReadyError: they can't; in the kernel's own words.
    """
    if sys.platform != "linux":
        raise NotReadyError("the engine netns is Linux's own", "use the engine sim")
    absent = {
        name: package for name, package in PROGRAMS.items() if shutil.which(name, path=PATH) is None
    }
    if absent:
        raise NotReadyError(
            f"{', '.join(absent)}: not in {PATH}",
            f"Debian: apt-get install {' '.join(set(absent.values()))}",
        )
    program()
    reasons = []
    for one in (ROOT, USER) if os.geteuid() == 0 else (USER,):
        # As the program does it: file systems, a pair of devices.
        words = _words(one, f"{_OWN_RUN} && mkdir /run/s && mount -t sysfs none /run/s && {_PAIR}")
        if words is None:
            return one
        reasons.append(f"{one.name}: {words}")
    hint = (
        "run it as root"
        if os.geteuid()
        else "run it where root has CAP_SYS_ADMIN and CAP_NET_ADMIN"
    )
    raise NotReadyError(
        f"network namespaces can't be made here: {'; '.join(reasons)}",
        f"{hint}; or allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone);"
        f" {GUEST_INSTEAD}",
    )


def why_not() -> str | None:
    """Why no scenario can be run here, and what to do; None if some can."""
    try:
        found = way()
    except (GuestError, NotReadyError) as error:
        return f"{error.problem}; {error.hint}"
    return None if (words := _refusal(found, _RATE)) is None else f"htb: {words}; {_module('htb')}"


def lacks() -> str | None:
    """What this host's kernel does not have of what scenarios may ask for; None if it has all."""
    found = way()
    typical = [Qdisc.parse(words) for words in TYPICAL]
    lines = {
        qdisc.kind: tc.queue(_DEVICE, qdisc, header_bytes=tc.ETHERNET_HEADER)[0]
        for qdisc in typical
    }
    lines[f"netem (delays and loss: {WITHOUT_NETEM})"] = tc.wire(_DEVICE, 1000)
    absent = [name for name, line in lines.items() if _refusal(found, line) is not None]
    absent += [name for name in CONGESTION if _unknown(name, found) is not None]
    return ", ".join(absent) or None


# ---------------------------------------------------------------------------- what the kernel has


_RATE = tc.queue(
    _DEVICE,
    Qdisc.parse("pfifo limit 1"),
    header_bytes=tc.ETHERNET_HEADER,
    transmitter=tc.Transmitter(10**6, tc.ETHERNET_HEADER),
)[0]
"""htb, which keeps it."""


@dataclass(frozen=True)
class _Missing:
    where: str
    why: str
    hint: str


def _missing(realised: Realised, planned: Mapping[str, Any], there: Way) -> Iterator[_Missing]:
    """What the scenario needs and this kernel does not have."""
    tried: set[str] = set()
    for kind, line in _disciplines(planned):
        # They differ in numbers only.
        shape = re.sub(r"[\d.]+", "", line)
        if shape not in tried:
            tried.add(shape)
            if words := _refusal(there, line):
                hint = f"{_module(kind)}; {WITHOUT_NETEM}" if kind == "netem" else _module(kind)
                yield _Missing(_place(kind, realised), f"{kind}: {words}", hint)
    for name in dict.fromkeys(
        flow.tcp.congestion for flow in realised.flows if flow.tcp and flow.tcp.own is None
    ):
        if words := _unknown(name, there):
            yield _Missing("flow: congestion", f"{name}: {words}", _module(name))
        for parameter in linux.CONGESTION[name].module_settings:
            # The scenario's is the usual one: the plan refuses others, since this kernel is
            # everybody's.
            file = MODULES / f"tcp_{name}" / "parameters" / parameter.removeprefix("vegas_")
            if file.exists() and int(file.read_text()) != int(
                PROFILES["linux"].parameters[parameter]
            ):
                usual = int(PROFILES["linux"].parameters[parameter])
                why = f"{file} is {file.read_text().strip()}, and the scenario has {usual}"
                yield _Missing(f"flow: tcp.{parameter}", why, f"echo {usual} > {file}, as root")


def _disciplines(planned: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Everything that the plan puts on a device, as the root of one: kind and tc's line."""
    for step in planned["setup"]:
        if step["do"] == "run" and step["argv"][0] == "tc":
            for line in step["stdin"].splitlines():
                if found := tc.elsewhere(line, _DEVICE):
                    yield found


def _place(kind: str, realised: Realised) -> str:
    """Where the scenario asks for it."""
    if kind == "netem":
        return "delay, loss or jitter"
    for link in realised.links:
        if has_queue(link) and link.qdisc.kind == kind:
            return f"link {link.name!r}: qdisc"
    return "rate"


@functools.cache
def _refusal(there: Way, line: str) -> str | None:
    """Why tc can't do this to a device; None if it can."""
    return _words(there, f"{_PAIR} && tc {line}")


def _words(there: Way, script: str) -> str | None:
    """What the kernel says to this, in a namespace that is gone at once; None if it worked."""
    command = there.command(script)
    try:
        done = subprocess.run(
            command,
            env={"PATH": PATH},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if done.returncode == 0:
        return None
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "; ".join(said) or f"exit status {done.returncode}"


def _unknown(congestion: str, there: Way) -> str | None:
    """Why a congestion control can't be had; None if it can. For root the kernel loads its
    module."""
    if congestion in _AVAILABLE.read_text(encoding="ascii").split():
        return None
    if there != ROOT:
        return f"not in {_AVAILABLE}"
    with socket.socket() as one:
        try:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        except OSError as error:
            return f"TCP_CONGESTION: {error.strerror}"
    return None


def _module(name: str) -> str:
    """Where a discipline or congestion control of the kernel is to be had."""
    tcp = name in CONGESTION
    module = f"tcp_{name}" if tcp else f"sch_{name}"
    folder = Path("/lib/modules") / platform.release()
    try:
        there = f"/{module}.ko" in (folder / "modules.dep").read_text(encoding="utf-8")
    except OSError:
        there = False
    if there:
        return f"modprobe {module}, as root"
    if folder.is_dir():
        return (
            f"{module} is a module of Debian's linux-image-amd64, of Fedora's kernel-modules-extra"
        )
    option = (
        f"CONFIG_TCP_CONG_{'HSTCP' if name == 'highspeed' else name.upper()}"
        if tcp
        else f"CONFIG_NET_SCH_{name.upper()}"
    )
    return f"{module} is missing: this kernel ({platform.release()}) has no modules, and was built without {option}"


# -------------------------------------------------------------------------------------- real time


def doubts(realised: Realised, archive: Archive) -> list[str]:
    """Whether something held the run up; each reason a sentence.

    A processor that others keep busy is no doubt by itself: packets and this program go before
    them, as a rule. What is looked at is what would have come of it.
    """
    found = []
    for number, tap in enumerate(archive.index["taps"]):
        link = realised.links[tap["link"]]
        if has_queue(link):
            passage = Passage.of(archive.tables[f"tap{number}"])
            slow, waited = selfcheck.slowness(
                link, passage, realised.duration_ns, realised.offloads
            )
            if slow > MOST_SLOW and waited >= LEAST_BUSY_NS and not link.qdisc.shapes:
                found.append(
                    f"link {link.name!r} sent {slow:.1%} less than its rate while packets waited"
                )
    late, due = lateness(
        archive.tables["device"]["t_ns"],
        int(realised.record.queue_ns),
        realised.duration_ns,
    )
    if late > max(1, MOST_LATE * due):
        found.append(
            f"{late} of {due} samples came more than {LATE_NS // 10**6} ms late or not at all"
        )
    return found


def lateness(times: Ints, interval: int, end: int) -> tuple[int, int]:
    """Of the samples that were due every `interval` before the end: how many came late or not at
    all, and how many were due."""
    if not len(times) or interval <= 0:
        return 0, 0
    due = -(-end // interval)
    taken = np.unique(times[times < end])
    late = int((taken % interval > LATE_NS).sum())
    # One that comes later than the next is due takes its place.
    return late + max(0, due - len(np.unique(taken // interval))), due
