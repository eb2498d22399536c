"""Counts instructions per packet with valgrind's callgrind. Other work on the machine has no effect
on this number.

The program `speed` (crates/scenario/examples) runs a scenario for two lengths. The difference of
the instructions is divided by the difference of the delivered packets, so start-up and slow start
cancel out. The difference is also split by part of the engine. In a release build callgrind counts
by source file: inlined code counts for the file in which it is written. The tests' build
(`checked`) may lack line numbers. There callgrind counts by function: inlined code counts for the
calling function.

The host's valgrind is used. Without one, Debian's package is unpacked below the user's cache.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sojourn import places

ROOT = Path(__file__).resolve().parent.parent
CACHE = places.cache() / "valgrind"

PARTS = [
    ("TCP", "crates/tcp/"),
    ("what comes to a link, put in order", "crates/sim/src/inbox.rs"),
    ("histograms and counts", "crates/sim/src/recorder.rs"),
    ("histograms and counts", "crates/tables/"),
    ("hosts, their packets, lanes and routes", "crates/sim/"),
    ("links", "crates/link/"),
    ("queue disciplines", "crates/qdisc/"),
]
REST = "Rust's library, inlined into all of these, and the rest"


@dataclass(frozen=True)
class Lengths:
    """Two lengths of a scenario and its warm-up, in seconds. `speed` limits a warm-up to half of
    the length, so it must not be longer than that."""

    warmup_s: int
    short_s: int
    long_s: int

    def __post_init__(self) -> None:
        assert 2 * self.warmup_s <= self.short_s < self.long_s, "the two runs would differ by more"


@dataclass(frozen=True)
class Speed:
    """The program `speed`, and the valgrind that counts its instructions."""

    path: Path
    build: str
    """`release`, or `checked` (the build that tests run)."""
    valgrind: Valgrind


@dataclass(frozen=True)
class Valgrind:
    path: Path
    tools: Path | None
    """The folder of valgrind's tools, if valgrind is not installed."""

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        more = {} if self.tools is None else {"VALGRIND_LIB": str(self.tools)}
        return subprocess.run(
            [str(self.path), *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **more},
        )

    @property
    def version(self) -> str:
        """Returns the version, such as 3.19.0."""
        return self.run(["--version"]).stdout.strip().removeprefix("valgrind-")


@dataclass(frozen=True)
class Count:
    """Instructions by part of the engine, and delivered packets."""

    packets: int
    parts: Mapping[str, int]


class NoToolError(Exception):
    """valgrind or `speed` is not available. The text is the reason."""


def valgrind(cache: Path | None = None) -> Valgrind:
    """Returns the host's valgrind, or Debian's package unpacked into the user's cache without root.

    Raises:
        NoToolError: neither is available.
    """
    if cache is None and (installed := shutil.which("valgrind")) is not None:
        return Valgrind(Path(installed), None)
    folder = cache or CACHE
    # The package's `valgrind` is a script that starts this program.
    unpacked = Valgrind(folder / "usr/bin/valgrind.bin", folder / "usr/libexec/valgrind")
    if not unpacked.path.exists():
        from sojourn.engine.kernel.guest import GuestError, packages

        try:
            package = packages.fetch("valgrind")
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as making:
                packages.unpack([package], Path(making) / "new")
                # Another process may have unpacked the package first.
                with contextlib.suppress(OSError):
                    (Path(making) / "new").rename(folder)
        except GuestError as error:
            raise NoToolError(
                f"valgrind is not installed (Debian: apt-get install valgrind), and {error.problem}"
            ) from None
    if not unpacked.version:
        raise NoToolError(f"{unpacked.path} does not run here")
    return unpacked


def program(build: str = "release") -> Speed:
    """Builds the program `speed` if necessary (minutes for the first release build).

    A `checked` build reuses the crates that `make dev` has built.

    Raises:
        NoToolError: it can't be built, or valgrind is not available.
    """
    tool = valgrind()
    if shutil.which("cargo") is None:
        raise NoToolError("cargo is not installed (Debian: apt-get install cargo-web)")
    # Built with the extension, so that the dependencies have the same features as for the
    # extension.
    words = ["--profile", build, "-p", "sojourn-core", "-p", "scenario", "--example", "speed"]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    done = subprocess.run(
        ["cargo", "build", "--quiet", *words, "--message-format=json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        # A separate folder for this program: `cargo test` builds a program with the same name.
        env={
            "CARGO_BUILD_BUILD_DIR": str(target),
            **os.environ,
            "CARGO_TARGET_DIR": str(target / "counted"),
        },
    )
    if done.returncode != 0:
        raise NoToolError(f"cargo failed:\n{done.stderr[-2000:]}")
    built = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    [path] = [each["executable"] for each in built if each.get("executable")]
    return Speed(Path(path), build, tool)


def per_packet(speed: Speed, scenario: Path, lengths: Lengths) -> dict[str, float]:
    """Returns instructions per packet by part of the engine (PARTS, REST), which sum to the
    total."""
    long = counted(speed, scenario, lengths.long_s)
    short = counted(speed, scenario, lengths.short_s)
    packets = long.packets - short.packets
    if packets <= 0:
        raise SystemExit(f"error: {scenario} delivers no packets after {lengths.short_s} s")
    names = {**dict(PARTS), REST: ""}
    return {name: (long.parts.get(name, 0) - short.parts.get(name, 0)) / packets for name in names}


def part(file: str) -> str:
    """Returns the part of the engine that a source file belongs to."""
    return next((name for name, path in PARTS if path in file), REST)


def part_of_function(function: str) -> str:
    """Returns the part of the engine that a function belongs to, by the name that callgrind prints:
    `<sim::inbox::Inbox>::take`."""
    name = function.lstrip("<&[").removeprefix("mut ")
    prefixes = [(part, _module(path)) for part, path in PARTS]
    return next((part for part, prefix in prefixes if name.startswith(prefix)), REST)


def _module(path: str) -> str:
    """Returns the module of a file: `sim::inbox::` for crates/sim/src/inbox.rs."""
    inside = path.removeprefix("crates/").removesuffix(".rs").replace("/src/", "/")
    return "::".join([*inside.strip("/").split("/"), ""])


def counted(speed: Speed, scenario: Path, seconds: int) -> Count:
    """Runs `speed` once under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        done = speed.valgrind.run(
            [
                *("--tool=callgrind", f"--callgrind-out-file={out}"),
                *(str(speed.path), str(scenario), str(seconds)),
            ]
        )
        packets = re.search(r"^(\d+) packets", done.stdout, re.MULTILINE)
        if done.returncode != 0 or packets is None:
            raise SystemExit(
                f"error: {speed.path.name} failed on {scenario} under valgrind\n{done.stderr[-2000:]}"
            )
        text = out.read_text(encoding="utf-8")
    parts: Counter[str] = Counter()
    if speed.build == "release":
        for file, instructions in by_file(text).items():
            parts[part(file)] += instructions
    else:
        for function, instructions in by_function(text).items():
            parts[part_of_function(function)] += instructions
    return Count(int(packets[1]), parts)


def by_file(text: str) -> dict[str, int]:
    """Returns instructions by source file."""
    return _by(text, {"fl", "fi", "fe"}, {"cfi", "cfl"})


def by_function(text: str) -> dict[str, int]:
    """Returns instructions by function."""
    return _by(text, {"fn"}, {"cfn"})


def _by(text: str, here: set[str], called: set[str]) -> dict[str, int]:
    """Parses callgrind's output (its manual, "Callgrind Format Specification").

    Returns instructions by the names in the lines `here`. `called`: the lines that name a call's
    target.

    The first occurrence of a name has a number, which stands for the name from then on. A line of
    numbers after `calls=` is the callee's cost, which is counted at the callee.
    """
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    at, of_a_call = "", False
    for line in text.splitlines():
        kind = line.partition("=")[0]
        if kind in here or kind in called:
            named = re.match(r"\w+=(?:\((\d+)\))? ?(.*)", line)
            assert named is not None
            number, name = named[1] or named[2], named[2]
            if name:
                names[number] = name
            if kind in here:
                at = names[number]
        elif line.startswith("calls="):
            of_a_call = True
        elif line[:1] in "0123456789+-*" and (numbers := line.split()) and len(numbers) > 1:
            if not of_a_call:
                counts[at] += int(numbers[1])
            of_a_call = False
    return dict(counts)
