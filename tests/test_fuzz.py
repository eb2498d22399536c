"""Hostile scenarios, a few of those in benches/fuzz.py: no traceback, no hang, no large allocation.
Other tests check that the fuzzer detects each of these."""

import subprocess
import sys
from pathlib import Path

import pytest
from tree import ROOT


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "benches/fuzz.py", "--workers", "1", "--cpu", "2", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_hostile_scenarios_do_no_harm() -> None:
    done = fuzz("--first", "9000", "--cases", "120")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ran" in done.stdout
    assert "refused" in done.stdout


@pytest.mark.long
def test_a_user_written_class_runs_beside_its_scenario(tmp_path: Path) -> None:
    pytest.importorskip("numba", reason="pip install sojourn[own]")
    (tmp_path / "mine.py").write_text(
        "from sojourn.own import Discipline\nclass Mine(Discipline):\n    x: int = 0\n"
    )
    (tmp_path / "mine.toml").write_text(
        'duration = "1 s"\nflow = [{ kind = "ping" }]\n'
        'bottleneck = { rate = "1 Mbit/s", delay = "1 ms", qdisc = "mine.py:Mine" }\n'
    )
    done = fuzz("--file", str(tmp_path / "mine.toml"), "--cpu", "30")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 ran" in done.stdout


def test_a_number_determines_its_fuzz_case() -> None:
    assert fuzz("--show", "8").stdout == fuzz("--show", "8").stdout != fuzz("--show", "9").stdout


STILL = """
def still(realised, reached):
    while reached(0):
        pass
    raise sojourn._core.Cancelled
sojourn._core.run = still
"""


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("sojourn.cli.status = lambda words: 1 / 0", "ZeroDivisionError"),
        ("sojourn.cli.status = lambda words: bytearray(1_100_000_000) and 0", "MB"),
        ("sojourn.cli.status = lambda words: print('NaN') or 0", "not JSON"),
        ("sojourn.cli.status = lambda words: 2", "refused without a reason"),
        (STILL, "no simulated time passed"),
    ],
    ids=["traceback", "memory", "not a number", "no reason", "standstill"],
)
def test_the_fuzzer_detects_failures(broken: str, why: str) -> None:
    program = f"""
import sys
sys.path[:0] = ["benches"]
import sojourn._core, sojourn.cli, fuzz
{broken}
sys.exit(fuzz.main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "--cases", "1", "--cpu", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert why in done.stdout
