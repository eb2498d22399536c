"""Instructions a packet, by valgrind's callgrind: a number that no other work on the machine moves.

The release program `speed` (crates/scenario/examples) runs a scenario twice, for two lengths. What
start-up and slow start take falls out of the difference, which is divided by the difference of the
delivered packets. Callgrind counts by source file, so the difference also tells which part of the
engine the instructions belong to. Inlined code counts for the file in which it is written.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

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
class Count:
    """Instructions, by source file, and delivered packets."""

    packets: int
    by_file: dict[str, int]


def program() -> Path | None:
    """The program `speed`, built if need be; or None, with a line on stderr that says why."""
    for tool, package in (("valgrind", "valgrind"), ("cargo", "cargo")):
        if shutil.which(tool) is None:
            print(
                f"{tool} is not installed; instructions are not counted "
                f"(Debian: apt-get install {package})",
                file=sys.stderr,
            )
            return None
    print("cargo build --release --example speed (minutes, the first time)", file=sys.stderr)
    words = ["--release", "--quiet", "-p", "scenario", "--example", "speed"]
    done = subprocess.run(
        ["cargo", "build", *words, "--message-format=json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(
            f"cargo failed, going on without instructions:\n{done.stderr[-2000:]}", file=sys.stderr
        )
        return None
    built = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    [path] = [each["executable"] for each in built if each.get("executable")]
    return Path(path)


def per_packet(speed: Path, scenario: Path, lengths: Lengths) -> dict[str, float]:
    """Instructions a packet, by part of the engine (PARTS, REST); their sum is the whole."""
    long = counted(speed, scenario, lengths.long_s)
    short = counted(speed, scenario, lengths.short_s)
    packets = long.packets - short.packets
    if packets <= 0:
        raise SystemExit(f"error: {scenario} delivers nothing from {lengths.short_s} s on")
    parts = {name: 0.0 for name, _ in PARTS} | {REST: 0.0}
    for file in long.by_file.keys() | short.by_file.keys():
        more = long.by_file.get(file, 0) - short.by_file.get(file, 0)
        parts[part(file)] += more / packets
    return parts


def part(file: str) -> str:
    """The part of the engine that a source file is of."""
    return next((name for name, path in PARTS if path in file), REST)


def counted(speed: Path, scenario: Path, seconds: int) -> Count:
    """One run of `speed` under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        done = subprocess.run(
            [
                *("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"),
                *(str(speed), str(scenario), str(seconds)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        packets = re.search(r"^(\d+) packets", done.stdout, re.MULTILINE)
        if done.returncode != 0 or packets is None:
            raise SystemExit(
                f"error: {speed.name} failed on {scenario} under valgrind\n{done.stderr[-2000:]}"
            )
        return Count(int(packets[1]), by_file(out.read_text(encoding="utf-8")))


def by_file(text: str) -> dict[str, int]:
    """Instructions by source file, from callgrind's output (its manual, "Callgrind Format
    Specification").

    A file's name is written once, with a number, and named by the number from then on. A line of
    numbers after `calls=` is what the callee took, which is counted where the callee is.
    """
    names: dict[str, str] = {}
    found: Counter[str] = Counter()
    file, of_a_call = "", False
    for line in text.splitlines():
        if named := re.match(r"(fl|fi|fe|cfi|cfl)=(?:\((\d+)\))? ?(.*)", line):
            kind, number, name = named.groups()
            if number is None:
                number = name
            if name:
                names[number] = name
            if not kind.startswith("c"):
                file = names[number]
        elif line.startswith("calls="):
            of_a_call = True
        elif line[:1] in "0123456789+-*" and (numbers := line.split()) and len(numbers) > 1:
            if not of_a_call:
                found[file] += int(numbers[1])
            of_a_call = False
    return dict(found)
