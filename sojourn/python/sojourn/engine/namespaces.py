"""What this host's own kernel offers a scenario: whether network namespaces can be made, and which
queue disciplines and congestion controls it has.

Each is tried with the scenario's tc lines, in a temporary namespace.
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
"""Programs that are run, and their packages."""
GUEST_INSTEAD = "or run it in a guest, which needs neither root nor modules: -e kernel"
WITHOUT_NETEM = 'a scenario whose links have delay = "0 s" and no loss, and whose flows have no rtt, needs no netem'
TYPICAL = tuple(
    record.least for record in QDISCS.values() if record.in_linux() and not record.for_each_queue
)
"""One queue discipline of each kind that Linux has and that works on virtual devices."""
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
    """A way to become a root user that may make namespaces."""

    name: str
    options: tuple[str, ...]
    """Options of unshare(1)."""

    def command(self, script: str, words: Sequence[str] = ()) -> list[str]:
        """The command line that runs a script as this root, in an empty namespace; `words` are its
        arguments.

        Each step replaces the previous one by exec, so that there is only one process.
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
    """Returns the way in which namespaces can be made here.

    Raises:
        NotReadyError: they can't be made, with the kernel's message.
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
    for root in (ROOT, USER) if os.geteuid() == 0 else (USER,):
        # The script does what the guest's program will do: it mounts file systems and makes a pair
        # of devices.
        words = _words(root, f"{OWN_RUN} && mkdir /run/s && mount -t sysfs none /run/s && {_PAIR}")
        if words is None:
            return root
        reasons.append(f"{root.name}: {words}")
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
    """Returns why no scenario can run here and what to do; None if some can."""
    try:
        root = way()
    except (GuestError, NotReadyError) as error:
        return f"{error.problem}; {error.hint}"
    if _RATE not in _absent(root):
        return None
    return f"htb: {_refusal(root, _RATE)}; {_module('htb')}"


def lacks() -> str | None:
    """Features of scenarios that this host's kernel lacks; None if it has all."""
    root = way()
    refused = _absent(root)
    absent = [name for name, line in _typical().items() if line in refused]
    absent += [name for name in CONGESTION if _unknown(name, root) is not None]
    return ", ".join(absent) or None


# ---------------------------------------------------------------------------- what the kernel has


_RATE = tc.queue(
    _DEVICE,
    Qdisc.parse("pfifo limit 1"),
    header_bytes=tc.ETHERNET_HEADER,
    transmitter=tc.Transmitter(10**6, tc.ETHERNET_HEADER),
)[0]
"""The tc line of htb, which limits the rate."""


@dataclass(frozen=True)
class Unsupported:
    where: str
    why: str
    hint: str


def missing(realised: Realised, planned: Mapping[str, Any], there: Way) -> Iterator[Unsupported]:
    """The features that the scenario needs and this kernel lacks."""
    tried: set[str] = set()
    for kind, line in _disciplines(planned):
        # Lines that differ only in numbers are tried once.
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
            # The scenario's value is the default here: the plan refuses any other, because the rest
            # of the host uses this kernel too.
            file = MODULES / f"tcp_{name}" / "parameters" / parameter.removeprefix("vegas_")
            if file.exists() and int(file.read_text()) != int(
                PROFILES["linux"].parameters[parameter]
            ):
                usual = int(PROFILES["linux"].parameters[parameter])
                why = f"{file} is {file.read_text().strip()}, and the scenario has {usual}"
                yield Unsupported(f"flow: tcp.{parameter}", why, f"echo {usual} > {file}, as root")


def _disciplines(planned: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The kind and tc line of each discipline that the plan puts on a device, rewritten as the root
    of a device."""
    for step in planned["setup"]:
        if step["do"] == "run" and step["argv"][0] == "tc":
            for line in step["stdin"].splitlines():
                if discipline := tc.elsewhere(line, _DEVICE):
                    yield discipline


def _place(kind: str, realised: Realised) -> str:
    """The place in the scenario that needs this kind."""
    if kind == "netem":
        return "delay, loss or jitter"
    for link in realised.links:
        if has_queue(link) and link.qdisc.kind == kind:
            return f"link {link.name!r}: qdisc"
    return "rate"


_FAILED = re.compile(r"^Command failed -:(\d+)$", re.MULTILINE)
"""tc's error for a line of its -batch."""


def _refusal(there: Way, line: str) -> str | None:
    """Why tc can't apply this line to a device; None if it can."""
    return _words(there, f"{_PAIR} && tc {line}")


def _refused(there: Way, lines: Sequence[str]) -> set[str]:
    """Returns the lines that tc can't apply. Each is tried on a device of its own, all by one tc in
    one namespace: a process for each would take most of the time of `sojourn list`. `_refusal` has
    the reason."""
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
        # tc must fail on the last line, `nothing`. If it does not report that, an earlier line made
        # it exit.
        if len(lines) + 1 in failed:
            return {line for number, line in enumerate(lines, 1) if number in failed}
    return {line for line in lines if _refusal(there, line)}


@functools.cache
def _absent(there: Way) -> set[str]:
    """The lines of `_typical`, and the line of htb, that tc can't apply."""
    return _refused(there, [*_typical().values(), _RATE])


@functools.cache
def _typical() -> dict[str, str]:
    """The tc line of each kind of discipline, by its name for the user."""
    typical = [Qdisc.parse(words) for words in TYPICAL]
    lines = {
        qdisc.kind: tc.queue(_DEVICE, qdisc, header_bytes=tc.ETHERNET_HEADER)[0]
        for qdisc in typical
    }
    return lines | {f"netem (delays and loss: {WITHOUT_NETEM})": tc.wire(_DEVICE, 1000)}


@functools.cache
def _words(there: Way, script: str) -> str | None:
    """The error of a script in a temporary namespace; None if it succeeds."""
    try:
        done = _done(there, script)
    except OSError as error:
        return f"{there.command('')[0]}: {error.strerror}"
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return "; ".join(lines) or f"exit status {done.returncode}"


def _done(there: Way, script: str, words: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Runs a script and its arguments in a temporary namespace."""
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
    """Why a congestion control can't be used; None if it can. For root, the kernel loads its
    module."""
    if congestion in _AVAILABLE.read_text(encoding="ascii").split():
        return None
    if there != ROOT:
        return f"not in {_AVAILABLE}"
    with socket.socket() as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        except OSError as error:
            return f"TCP_CONGESTION: {error.strerror}"
    return None


def _module(name: str) -> str:
    """How to get a discipline or congestion control of the kernel."""
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
