"""The peers: ns-2 and ns-3 run our own dumbbell scripts (peers/); each run prints a line of JSON.

Both are optional and come from Debian packages. If one is missing, `find_ns2` or `find_ns3` names
its package, and callers leave out that column. ns-3's program is compiled once into build/peers/
with pkg-config's flags.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "peers"
NS3_MODULES = ["point-to-point", "internet", "traffic-control", "applications", "network"]

Words = Mapping[str, str | float | int]


class PeerError(Exception):
    """A peer is installed but failed."""


@dataclass(frozen=True)
class Peer:
    """A simulator that can run a dumbbell."""

    name: str
    version: str
    command: tuple[str, ...]
    style: str
    """The form of its parameters: `words` (name value) or `options` (--name=value)."""

    def run(self, words: Words) -> dict[str, Any]:
        """Runs one dumbbell and returns its JSON line."""
        if self.style == "words":
            arguments = [text for name, value in words.items() for text in (name, str(value))]
        else:
            arguments = [f"--{name}={value}" for name, value in words.items()]
        done = subprocess.run(
            [*self.command, *arguments], capture_output=True, text=True, check=False
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode != 0 or not lines:
            raise PeerError(
                f"{self.name} failed on {' '.join(arguments)}: {done.stderr.strip()[-500:]}"
            )
        result: dict[str, Any] = json.loads(lines[-1])
        return result


def find_ns2() -> Peer | None:
    """Returns ns-2; or None, after a line on stderr that names the package to install."""
    program = shutil.which("ns")
    if program is None:
        _missing("ns-2", "ns2")
        return None
    return Peer(
        "ns-2",
        "ns-" + (_package_version("ns2") or "2"),
        (program, str(HERE / "peers" / "dumbbell.tcl")),
        "words",
    )


def find_ns3() -> Peer | None:
    """Returns ns-3 with our dumbbell compiled; or None, after a line on stderr that names the
    package to install."""
    compiler = shutil.which("g++")
    if compiler is None:
        _missing("ns-3", "g++")
        return None
    flags = _ns3_flags()
    if flags is None:
        _missing("ns-3", "libns3-dev pkg-config")
        return None
    source = HERE / "peers" / "dumbbell.cc"
    program = BUILD / "dumbbell"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        print("compiling peers/dumbbell.cc for ns-3 (about 10 s)", file=sys.stderr)
        BUILD.mkdir(parents=True, exist_ok=True)
        fresh = BUILD / f".dumbbell-{os.getpid()}"
        command = [compiler, "-std=c++17", "-O3", "-DNDEBUG", str(source), "-o", str(fresh), *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(
                f"ns-3: dumbbell.cc did not compile, going on without ns-3:\n{done.stderr[-2000:]}",
                file=sys.stderr,
            )
            return None
        fresh.replace(program)
    version = subprocess.run(
        ["pkg-config", "--modversion", "ns3-core"], capture_output=True, text=True, check=False
    )
    return Peer("ns-3", f"ns-{version.stdout.strip()}", (str(program),), "options")


def _ns3_flags() -> list[str] | None:
    if shutil.which("pkg-config") is None:
        return None
    modules = [f"ns3-{module}" for module in NS3_MODULES]
    done = subprocess.run(
        ["pkg-config", "--cflags", "--libs", *modules], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return None
    # Debian's .pc files also name files of packages that our program doesn't need, and a stray
    # `-I/usr;`.
    return [
        flag
        for flag in done.stdout.split()
        if flag[:2] in ("-I", "-L", "-l") and not flag.endswith(";")
    ]


def _package_version(package: str) -> str | None:
    if shutil.which("dpkg-query") is None:
        return None
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", package],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.split("+")[0] or None


def _missing(name: str, packages: str) -> None:
    print(
        f"{name} is not installed; its column stays empty (Debian: apt-get install {packages})",
        file=sys.stderr,
    )
