"""Commands that only list names, show help or refuse a word import no slow module. A short run
imports only the slow modules that it computes with.

`import matplotlib.figure` takes a second of CPU time, polars a third of a second, numpy and asyncio
a tenth and more each. The commands run one after another in a process of its own, which reports the
modules that each one imported.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sojourn.cli import sections

SLOW = (
    *("asyncio", "dateutil", "distributed", "email", "importlib.metadata", "jinja2", "matplotlib", "multiprocessing"),
    *("numba", "numpy", "polars", "pyroute2", "rich", "sojourn._core", "sqlite3", "ssl", "tarfile"),
)  # fmt: skip
"""Modules whose import takes about as long as a whole light command."""
SCENARIO = """
duration = "2 s"
warmup = "1 s"

[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
qdisc = "fq_codel"

[[flow]]
kind = "bulk"
"""
VERBS = [name for names in sections().values() for name in names]
LIGHT: Mapping[str, list[str]] = {
    "the help": ["--help"],
    **{f"the help of {verb}": [verb, "--help"] for verb in VERBS},
    "the version": ["--version"],
    "a command that is none": ["nope"],
    "an option that is none": ["measure", "--nope"],
    "the completion's script": ["completion", "bash"],
    "the manual page": ["man"],
    "every list": ["list"],
    "the store": ["cache", "show"],
    "the guests": ["kernel", "status"],
    "check": ["check", "short.toml"],
    "a run": ["run", "short.toml", "-o", "run"],
    "a run from the store": ["run", "short.toml", "-o", "again"],
    "a run as JSON": ["run", "short.toml", "--json"],
    "no scenario to run": ["run", "nope.toml"],
    "no scenario to check": ["check", "nope.toml"],
    "no scenario to compare": ["compare", "nope.toml"],
    "no Run to report": ["report", "nope"],
    "no Run to verify": ["verify", "nope"],
    "no Run to bundle": ["bundle", "nope", "-o", "nope.zip"],
    "no Run to export": ["export", "nope", "-o", "exported"],
    "no database to draw": ["graph", "nope.db", "-o", "nope.png"],
    "no figure's format": ["graph", "short.toml", "-o", "figure.nope"],
    "no paper": ["reproduce", "nope"],
    "no candidate": ["evaluate", "nope"],
    "no scenario to agree on": ["agree", "nope.toml"],
    "no scenario to replay": ["replay", "nope.toml"],
    "no recording to replay": ["replay", "nope.parquet"],
    "no discipline to replay": ["replay", "short.toml", "--qdisc", "nope.py:Mine"],
    "no scenario for the lab": ["lab", "nope"],
    "no discipline for the lab": ["lab", "short.toml", "nope"],
    "no measurement to import": ["import", "nope.flent.gz"],
    "no measurements of a line": ["history", "nope"],
    "no scenario to advise on": ["advise", "nope"],
    "no rate to advise on": ["advise", "--up", "nope"],
    "no link layer to advise on": ["advise", "--up", "20mbit", "--link", "nope"],
    "no rate to shape": ["shape", "lo", "--up", "nope"],
    "no rate to tune": ["tune", "lo", "host", "--up", "nope"],
    "no port to serve": ["serve", "--port", "nope"],
    "no time to measure": ["measure", "host", "--length", "nope"],
    "no guest": ["kernel", "setup", "nope"],
}
"""Commands by the kind of request."""
REFUSED = {name: words for name, words in LIGHT.items() if "nope" in " ".join(words)}
CHILD = """
import contextlib, io, json, sys
from sojourn import cli
slow, commands = json.loads(sys.argv[1])
seen = set()
for name, words in commands.items():
    with contextlib.redirect_stderr(io.StringIO()) as said:
        ended = cli.status(words)
    found = [each for each in slow if each in sys.modules and each not in seen]
    seen.update(found)
    print(json.dumps([name, ended, found, said.getvalue()]), file=sys.stderr)
"""


@pytest.fixture(scope="session")
def imported(
    tmp_path_factory: pytest.TempPathFactory,
) -> Mapping[str, tuple[int, list[str], str]]:
    """Returns for each command its exit status, the slow modules that it imported, and its
    output."""
    folder = tmp_path_factory.mktemp("light")
    (folder / "short.toml").write_text(SCENARIO, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps([SLOW, LIGHT])],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
    )
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith('["')]
    assert [name for name, *_ in lines] == [*LIGHT], done.stderr[-2000:]
    return {name: (ended, found, said) for name, ended, found, said in lines}


@pytest.mark.parametrize("name", LIGHT)
def test_a_light_command_imports_nothing_slow(
    name: str, imported: Mapping[str, tuple[int, list[str], str]]
) -> None:
    ended, found, _ = imported[name]
    # The extension contains the version, and all later commands need it.
    needed = {"the version": ["sojourn._core"]}
    assert found == needed.get(name, [])
    # Without a guest the exit status of `kernel status` is 1.
    assert (ended == 2) == (name in REFUSED)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_commands_fail_for_the_reason_that_they_name(
    name: str, imported: Mapping[str, tuple[int, list[str], str]]
) -> None:
    _, _, said = imported[name]
    assert "nope" in said.partition("\n")[0], said


def test_listing_commands_import_no_engine() -> None:
    """Most of the time of `list` is spent on imports."""
    child = "import sys; from sojourn import cli; cli.status(['list']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
    assert "fq_codel" in done.stdout
    runs = {f"sojourn.{name}" for name in ("engine.runs", "metrics", "own.compiled", "records")}
    runs.add("msgspec")
    assert not (runs | {*SLOW} - {"sojourn._core"}) & {*done.stderr.split()}


@pytest.mark.parametrize(
    "words", [["run", "short.toml", "-o", "run"], ["check", "short.toml"], ["nope"]]
)
def test_a_verb_of_the_core_looks_for_no_other_package(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SCENARIO, encoding="utf-8")
    child = (
        "import sys; from sojourn import cli; cli.status(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", child, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("sojourn_live.extra" in done.stderr.split()) == (words == ["nope"])


def test_completion_imports_nothing_slow(tmp_path: Path) -> None:
    """A shell starts this at each press of Tab."""
    done = subprocess.run(
        [
            *(sys.executable, "-c"),
            "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
            "from sojourn.__main__ import main; main()",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "_SOJOURN_COMPLETE": "bash_complete",
            "COMP_WORDS": "sojourn run --se",
            "COMP_CWORD": "2",
        },
    )
    assert "--seeds" in done.stdout
    assert not {*SLOW} & {*done.stderr.split()}


def test_slow_imports_are_detected() -> None:
    child = f"import sqlite3\n{CHILD}"
    done = subprocess.run(
        [sys.executable, "-c", child, json.dumps([SLOW, {"the version": ["--version"]}])],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stderr) == ["the version", 0, ["sojourn._core", "sqlite3"], ""]
