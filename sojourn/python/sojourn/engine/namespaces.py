"""What this host's own kernel has for a scenario: whether network namespaces can be made, and which
queue disciplines and congestion controls are there.

Each is tried with the words of the scenario, in a namespace that is thrown away.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sojourn.engine.kernel.graph import has_queue
from sojourn.engine.kernel.guest.endings import GuestError
from sojourn.engine.kernel.program import program
from sojourn.engine.protocol import NotReadyError
from sojourn.linux import tc
from sojourn.linux.programs import PATH
from sojourn.scenario import linux
from sojourn.scenario.qdisc import QDISCS, Qdisc
from sojourn.scenario.realised import Realised
from sojourn.scenario.tcp import PROFILES

PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux"}
"""What is called, and the package that has it."""
GUEST_INSTEAD = "or run it in a guest, which needs neither root nor modules: -e kernel"
WITHOUT_NETEM = 'a scenario whose links have delay = "0 s" and no loss, and whose flows have no rtt, needs no netem'
TYPICAL = tuple(
    record.least for record in QDISCS.values() if record.in_linux() and not record.for_each_queue
)
"""A queue discipline of each kind that Linux has, and that virtual devices can have."""
CONGESTION = tuple(record.name for record in linux.CONGESTION.values() if record.in_linux)
"""Linux's congestion controls."""
MODULES = Path("/sys/module")
_DEVICE = "t0"
_LINK = "link add name {0} gso_max_segs 1 type veth peer name {0}p gso_max_segs 1"
_PAIR = f"ip {_LINK.format(_DEVICE)}"
OWN_RUN = "mount -t tmpfs none /run"
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


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
        words = _words(one, f"{OWN_RUN} && mkdir /run/s && mount -t sysfs none /run/s && {_PAIR}")
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
    refused = _refused(found, [*lines.values()])
    absent = [name for name, line in lines.items() if line in refused]
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
class Unsupported:
    where: str
    why: str
    hint: str


def missing(realised: Realised, planned: Mapping[str, Any], there: Way) -> Iterator[Unsupported]:
    """What the scenario needs and this kernel does not have."""
    tried: set[str] = set()
    for kind, line in _disciplines(planned):
        # They differ in numbers only.
        shape = re.sub(r"[\d.]+", "", line)
        if shape not in tried:
            tried.add(shape)
            if words := _refusal(there, line):
                hint = f"{_module(kind)}; {WITHOUT_NETEM}" if kind == "netem" else _module(kind)
                yield Unsupported(_place(kind, realised), f"{kind}: {words}", hint)
    for name in dict.fromkeys(
        flow.tcp.congestion for flow in realised.flows if flow.tcp and flow.tcp.own is None
    ):
        if words := _unknown(name, there):
            yield Unsupported("flow: congestion", f"{name}: {words}", _module(name))
        for parameter in linux.CONGESTION[name].module_settings:
            # The scenario's is the usual one: the plan refuses others, since this kernel is
            # everybody's.
            file = MODULES / f"tcp_{name}" / "parameters" / parameter.removeprefix("vegas_")
            if file.exists() and int(file.read_text()) != int(
                PROFILES["linux"].parameters[parameter]
            ):
                usual = int(PROFILES["linux"].parameters[parameter])
                why = f"{file} is {file.read_text().strip()}, and the scenario has {usual}"
                yield Unsupported(f"flow: tcp.{parameter}", why, f"echo {usual} > {file}, as root")


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


_FAILED = re.compile(r"^Command failed -:(\d+)$", re.MULTILINE)
"""What tc says of a line of its -batch."""


@functools.cache
def _refusal(there: Way, line: str) -> str | None:
    """Why tc can't do this to a device; None if it can."""
    return _words(there, f"{_PAIR} && tc {line}")


def _refused(there: Way, lines: Sequence[str]) -> set[str]:
    """Those of these lines that tc can't do, each to a device of its own, all by one tc in one
    namespace: a process for each takes most of the time of `sojourn list`. `_refusal` says why."""
    devices = [f"{_DEVICE}{number}" for number in range(len(lines))]
    pairs = "\\n".join(map(_LINK.format, devices))
    script = f"printf '{pairs}\\n' | ip -batch - && printf '%s\\n' \"$@\" | tc -force -batch -"
    given = [
        line.replace(f" dev {_DEVICE} ", f" dev {device} ")
        for line, device in zip(lines, devices, strict=True)
    ]
    with contextlib.suppress(OSError):
        done = _done(there, script, [*given, "nothing"])
        failed = set(map(int, _FAILED.findall(done.stderr)))
        # tc knows no `nothing`. Where it does not say so, it has exited before: some words make it.
        if len(lines) + 1 in failed:
            return {line for number, line in enumerate(lines, 1) if number in failed}
    return {line for line in lines if _refusal(there, line)}


def _words(there: Way, script: str) -> str | None:
    """What the kernel says to this, in a namespace that is gone at once; None if it worked."""
    try:
        done = _done(there, script)
    except OSError as error:
        return f"{there.command('')[0]}: {error.strerror}"
    if done.returncode == 0:
        return None
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "; ".join(said) or f"exit status {done.returncode}"


def _done(there: Way, script: str, words: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """A script and its arguments, in a namespace that is gone at once."""
    return subprocess.run(
        there.command(script, words),
        env={"PATH": PATH},
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


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
