"""Instructions a packet, by valgrind's callgrind: a number that no other work on the machine moves.

The program `speed` (crates/scenario/examples) runs a scenario twice, for two lengths. What start-up
and slow start take falls out of the difference, which is divided by the difference of the delivered
packets. The difference also tells which part of the engine the instructions belong to. In the
release callgrind counts by source file: inlined code counts for the file in which it is written. The
build of the tests (`checked`) may be without the numbers of lines, so there it counts by function,
and inlined code for the function that it is in.

valgrind is the host's. Where it has none, Debian's package is unpacked below the user's cache.
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
    """Two lengths of a scenario, in seconds, with one warm-up. `speed` cuts a warm-up to half of the
    length, so it must not be longer than that."""

    warmup_s: int
    short_s: int
    long_s: int

    def __post_init__(self) -> None:
        assert 2 * self.warmup_s <= self.short_s < self.long_s, "the two runs would differ by more"


@dataclass(frozen=True)
class Speed:
    """The program `speed`, and the valgrind that counts it."""

    path: Path
    build: str
    """`release`, or `checked`: as tests run it."""
    valgrind: Valgrind


@dataclass(frozen=True)
class Valgrind:
    path: Path
    tools: Path | None
    """Where its tools lie, of one that is not installed."""

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
        """As in 3.19.0."""
        return self.run(["--version"]).stdout.strip().removeprefix("valgrind-")


@dataclass(frozen=True)
class Count:
    """Instructions, by part of the engine, and delivered packets."""

    packets: int
    parts: Mapping[str, int]


class NoToolError(Exception):
    """What counts, or builds what is counted, can't be had; in words."""


def valgrind(cache: Path | None = None) -> Valgrind:
    """The host's, or Debian's package, unpacked into the user's cache without root.

    Raises:
        NoToolError: neither can be had.
    """
    if cache is None and (found := shutil.which("valgrind")) is not None:
        return Valgrind(Path(found), None)
    folder = cache or CACHE
    # The package's `valgrind` is a script that begins this.
    unpacked = Valgrind(folder / "usr/bin/valgrind.bin", folder / "usr/libexec/valgrind")
    if not unpacked.path.exists():
        from sojourn.engine.kernel.guest import GuestError, packages

        try:
            package = packages.fetch("valgrind")
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as making:
                packages.unpack([package], Path(making) / "new")
                # Another process may have been quicker.
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
    """The program `speed`, built if need be: minutes for the release, the first time. For `checked`
    it is of the crates that `make dev` has built.

    Raises:
        NoToolError: it can't be built, or valgrind can't be had.
    """
    tool = valgrind()
    if shutil.which("cargo") is None:
        raise NoToolError("cargo is not installed (Debian: apt-get install cargo-web)")
    # With the extension, what the crates ask of other people's is what it was for the extension.
    words = ["--profile", build, "-p", "sojourn-core", "-p", "scenario", "--example", "speed"]
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    done = subprocess.run(
        ["cargo", "build", "--quiet", *words, "--message-format=json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        # A folder of its own for the program alone: `cargo test` builds one of this name.
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
    """Instructions a packet, by part of the engine (PARTS, REST); their sum is the whole."""
    long = counted(speed, scenario, lengths.long_s)
    short = counted(speed, scenario, lengths.short_s)
    packets = long.packets - short.packets
    if packets <= 0:
        raise SystemExit(f"error: {scenario} delivers nothing from {lengths.short_s} s on")
    names = {**dict(PARTS), REST: ""}
    return {name: (long.parts.get(name, 0) - short.parts.get(name, 0)) / packets for name in names}


def part(file: str) -> str:
    """The part of the engine that a source file is of."""
    return next((name for name, path in PARTS if path in file), REST)


def part_of_function(function: str) -> str:
    """The part of the engine that a function is of, by its name as callgrind has it:
    `<sim::inbox::Inbox>::take`."""
    name = function.lstrip("<&[").removeprefix("mut ")
    prefixes = [(part, _module(path)) for part, path in PARTS]
    return next((part for part, prefix in prefixes if name.startswith(prefix)), REST)


def _module(path: str) -> str:
    """`sim::inbox::` of crates/sim/src/inbox.rs."""
    inside = path.removeprefix("crates/").removesuffix(".rs").replace("/src/", "/")
    return "::".join([*inside.strip("/").split("/"), ""])


def counted(speed: Speed, scenario: Path, seconds: int) -> Count:
    """One run of `speed` under callgrind."""
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
    """Instructions by source file."""
    return _by(text, {"fl", "fi", "fe"}, {"cfi", "cfl"})


def by_function(text: str) -> dict[str, int]:
    """Instructions by function."""
    return _by(text, {"fn"}, {"cfn"})


def _by(text: str, here: set[str], called: set[str]) -> dict[str, int]:
    """Instructions by what these lines name, from callgrind's output (its manual, "Callgrind Format
    Specification"). `called`: the lines that name where a call goes.

    A name is written once, with a number, and named by the number from then on. A line of numbers
    after `calls=` is what the callee took, which is counted where the callee is.
    """
    names: dict[str, str] = {}
    found: Counter[str] = Counter()
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
                found[at] += int(numbers[1])
            of_a_call = False
    return dict(found)
