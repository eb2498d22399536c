"""Measures a user's first minutes: the steps of `make demo` in a fresh clone, with empty caches.

    python benches/first_minute.py                clones this commit, then `make demo`: minutes
    python benches/first_minute.py --test         `make test` in another clone: a quarter of an hour
    python benches/first_minute.py --test --record
    python benches/first_minute.py --keep FOLDER  keeps the clone and each step's output there

The clone has its own target folder, virtual environment, cargo home, pip cache and cache folder,
all of them empty. It uses the Rust, Python, make and C linker of the host, and the host's settings
of cargo and pip (a mirror, for example). Clock times assume an idle machine; CPU seconds depend
less on that. `--record` stores the table for docs/performance.md and CONTRIBUTING.md, with commit
and date.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
# On a fresh machine nothing is installed: `bench` uses modules of sojourn that need nothing else.
sys.path[:0] = [str(HERE), str(HERE.parent / "sojourn" / "python")]

import bench  # noqa: E402
import page  # noqa: E402

ROOT = HERE.parent
VENV = ".venv"
STEPS = (
    ("virtual environment", f"{VENV}/.made"),
    ("extension", f"{VENV}/.core"),
    ("demo", "demo"),
)
"""The steps of `make demo` with their targets, in make's order."""
EXTENSION = "extension"
CACHES = ("CARGO_TARGET_DIR", "CARGO_BUILD_BUILD_DIR", "CARGO_BUILD_TARGET_DIR", "MYPY_CACHE_DIR")
"""Variables that would reuse the builds of another clone."""
WRAPPER = """#!/usr/bin/env bash
# Logs for each crate the time when it was compiled, its CPU seconds, and the folder of its manifest.
TIMEFORMAT='%U %S'
exec 3>&1 4>&2
spent=$( { time "$@" >&3 2>&4; } 2>&1 ); status=$?
echo "$EPOCHREALTIME $spent $CARGO_MANIFEST_DIR" >>"$CRATES_LOG"
exit $status
"""


@dataclass(frozen=True)
class Spent:
    """The time that a step took."""

    step: str
    clock_s: float
    cpu_s: float
    part: bool = False
    """Part of the step above, whose time includes this one."""


@dataclass(frozen=True)
class Crate:
    """A compiled crate."""

    ended: float
    """Seconds since the epoch."""
    cpu_s: float
    ours: bool


class StepError(Exception):
    """A step failed. The text contains its output."""


def empty(folder: Path) -> dict[str, str]:
    """Returns an environment whose caches are empty folders in `folder`."""
    variables = {name: value for name, value in os.environ.items() if name not in CACHES}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    variables.pop("CI", None)
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    own = folder / "cargo"
    own.mkdir(parents=True)
    for name in ("config.toml", "config", "credentials.toml"):
        if (cargo / name).is_file():
            shutil.copy(cargo / name, own / name)
    return {
        **variables,
        "CARGO_HOME": str(own),
        "PIP_CACHE_DIR": str(folder / "pip"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_STATE_HOME": str(folder / "state"),
        "CRATES_LOG": str(folder / "crates.log"),
    }


def run(words: Sequence[str], cwd: Path, env: dict[str, str], log: Path) -> tuple[float, float]:
    """Returns clock and CPU seconds of a command, and writes its output to `log`.

    Raises:
        StepError: the command failed.
    """
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with log.open("a", encoding="utf-8") as out:
        done = subprocess.run(words, cwd=cwd, env=env, stdout=out, stderr=out, check=False)
    took = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        output = log.read_text(encoding="utf-8", errors="replace")
        named = "".join(f"{line}\n" for line in output.splitlines() if line.startswith("FAILED "))
        raise StepError(f"{' '.join(words)} ended with {done.returncode}:\n{named}{output[-3000:]}")
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cloned(folder: Path, env: dict[str, str]) -> tuple[Path, Spent]:
    """Clones this commit into a new folder."""
    tree = folder / "sojourn"
    words = ["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(tree)]
    return tree, Spent("clone", *run(words, folder, env, folder / "clone.log"))


def demo(folder: Path) -> Iterator[Spent]:
    """Yields the steps of `make demo` as they end."""
    env = empty(folder)
    wrapper = folder / "rustc"
    wrapper.write_text(WRAPPER, encoding="utf-8")
    wrapper.chmod(0o755)
    env["RUSTC_WRAPPER"] = str(wrapper)
    tree, spent = cloned(folder, env)
    yield spent
    for step, target in STEPS:
        began = time.time()
        spent = Spent(step, *run(["make", target], tree, env, folder / "demo.log"))
        yield spent
        if step == EXTENSION:
            yield from extension(crates(folder / "crates.log", tree, began), began, spent)


def crates(log: Path, tree: Path, since: float) -> list[Crate]:
    """Returns the crates that were compiled after `since`."""
    found = []
    for line in log.read_text(encoding="utf-8").splitlines():
        ended, *spent, manifest = line.split(" ", 3)
        ours = Path(manifest).is_relative_to(tree)
        found.append(Crate(float(ended), sum(map(float, spent)), ours))
    return [crate for crate in found if crate.ended >= since]


def extension(compiled: Sequence[Crate], began: float, total: Spent) -> Iterator[Spent]:
    """Splits the extension's time: until the last dependency is compiled, and the engine after
    that.

    The engine's first crates are compiled beside the dependencies. CPU seconds separate the two.
    """
    others = [crate for crate in compiled if not crate.ours]
    ready_s = max((crate.ended for crate in others), default=began) - began
    of_others = sum(crate.cpu_s for crate in others)
    of_ours = sum(crate.cpu_s for crate in compiled if crate.ours)
    yield Spent("until the dependencies are there", ready_s, of_others, part=True)
    yield Spent("the engine, after that", total.clock_s - ready_s, of_ours, part=True)
    rest = max(0.0, total.cpu_s - of_others - of_ours)
    yield Spent("pip, maturin, C, Python's packages", 0.0, rest, part=True)


def tested(folder: Path) -> Iterator[Spent]:
    """Yields `make test`, and each of its checks from its output."""
    env = empty(folder)
    tree, spent = cloned(folder, env)
    yield spent
    log = folder / "test.log"
    total = Spent("make test", *run(["make", "test"], tree, env, log))
    yield total
    yield from checks(log.read_text(encoding="utf-8", errors="replace"))


def checks(output: str) -> Iterator[Spent]:
    """Yields the checks of `make test`, from the lines `-- 12 s: COMMAND`. Some run in parallel."""
    for seconds, command in re.findall(r"^-- (\d+) s: (.*)$", output, re.MULTILINE):
        yield Spent(command, float(seconds), 0.0, part=True)


def table(spent: Sequence[Spent]) -> page.Table:
    rows = [("step", "clock, s", "CPU s")]
    for one in spent:
        name = f"- {one.step}" if one.part else one.step
        clock = f"{one.clock_s:.0f}" if one.clock_s else "-"
        rows.append((name, clock, f"{one.cpu_s:.0f}" if one.cpu_s else "-"))
    top_level = [one for one in spent if not one.part]
    clock, cpu = sum(one.clock_s for one in top_level), sum(one.cpu_s for one in top_level)
    return [*rows, ("whole", f"{clock:.0f}", f"{cpu:.0f}")]


def sentence(what: str, spent: Sequence[Spent]) -> str:
    """Returns a sentence for CONTRIBUTING.md: `make demo` in a fresh clone: 6 min 45 s, 10 CPU
    min."""
    top_level = [one for one in spent if not one.part]
    minutes, seconds = divmod(round(sum(one.clock_s for one in top_level)), 60)
    cpu = sum(one.cpu_s for one in top_level) / 60
    return f"{minutes} min {seconds:02d} s of clock and {cpu:.0f} min of CPU time"


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="first-minute-") as name:
        yield Path(name)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--test", action="store_true", help="measure `make test` instead")
    parser.add_argument("--record", action="store_true", help="record the table for the pages")
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep everything in this empty folder"
    )
    options = parser.parse_args()
    what, steps = ("test", tested) if options.test else ("demo", demo)
    of, load = bench.tree_and_machine(), bench.load()
    if of["dirty"]:
        print("note: what is not committed is not in the clone", file=sys.stderr)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    spent: list[Spent] = []
    with nullcontext(options.keep.resolve()) if options.keep else _folder() as folder:
        try:
            for one in steps(folder):
                spent.append(one)
                print(f"{one.step}: {one.clock_s:.0f} s, {one.cpu_s:.0f} CPU s", flush=True)
        except StepError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    print(page.as_text(table(spent)))
    if options.record:
        about = bench.about_machine(of, load, f"`make {what}` in a fresh clone, once")
        page.record(
            {
                f"first minute {what}: machine": about.replace(f", {of['build']} build", ""),
                f"first minute {what}: table": table(spent),
                f"first minute {what}: whole": sentence(what, spent),
            },
            of["commit"],
            of["date"],
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
