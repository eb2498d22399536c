"""`make test` as a recipe, with programs that only note that they were called: what runs, and that
nothing that fails is lost."""

import os
import subprocess
from pathlib import Path

import pytest
from tree import ROOT

PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >> "{calls}"
case "$(basename "$0") $*" in {fails}) exit 1 ;; esac
case "$*" in build*--out*) mkdir -p "{calls}.wheel" ;; esac
"""
LIVE = "python -m pytest -n 2 -m live"
PAPERS = "python -m pytest -n 2 --dist loadfile -m papers and not live"
REST = "python -m pytest -n 2 -m not live and not papers"


def make_test(folder: Path, fails: str = "", **env: str) -> tuple[int, str, list[str]]:
    """How it ends, what it prints, what it has called. `fails`: a pattern of calls that fail."""
    venv, calls = folder / "venv", folder / "calls"
    (venv / "bin").mkdir(parents=True)
    for name in ("python", "sojourn", "ruff", "mypy", "maturin", "pip", "cargo", "rustup"):
        program = venv / "bin" / name
        program.write_text(PROGRAM.format(calls=calls, fails=fails or "nothing"))
        program.chmod(0o755)
    # What is there already, each newer than what it is made of.
    made = [folder / "guest", *(venv / name for name in (".made", ".tools", ".dev"))]
    for file in made:
        file.touch()
    done = subprocess.run(
        [
            *("make", "--no-print-directory", "test", f"VENV={venv}", f"GUEST={made[0]}"),
            *(f"WHEELS={calls}.wheel", f"BESIDE={folder / 'beside.log'}"),
        ],
        cwd=ROOT,
        env={
            **{key: value for key, value in os.environ.items() if key not in ("CI", "MAKEFLAGS")},
            "PATH": f"{venv / 'bin'}:{os.environ['PATH']}",
            **env,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, calls.read_text().splitlines()


def test_everything_runs_and_the_rest_of_pytest_last(tmp_path: Path) -> None:
    code, said, calls = make_test(tmp_path)
    assert code == 0, said
    assert "failed" not in said
    assert {LIVE, PAPERS, "mypy --strict", "cargo test --workspace --profile checked"} <= set(calls)
    assert calls[-1] == REST
    assert sum(call.startswith("maturin build") for call in calls) == 2
    assert not any(call.startswith("sojourn") for call in calls)


@pytest.mark.parametrize(
    ("fails", "named"),
    [
        ("*'-m live'", "-m live"),
        ("*'papers and not live'", "papers and not live"),
        ("'mypy '*", "mypy --strict"),
        ("'maturin '*", "wheel"),
        ("*'not live and not papers'", "not live and not papers"),
        ("'cargo check '*", "portable"),
    ],
)
def test_what_fails_is_said_and_all_the_others_run(fails: str, named: str, tmp_path: Path) -> None:
    code, said, calls = make_test(tmp_path, fails)
    assert code != 0
    assert named in said[said.index("failed:") :]
    assert calls[-1] == REST
    assert {LIVE, PAPERS, "mypy --strict"} <= set(calls)


def test_in_ci_there_must_be_a_guest(tmp_path: Path) -> None:
    code, said, calls = make_test(tmp_path, "'sojourn kernel setup'", CI="true")
    assert code != 0
    assert "sojourn kernel setup" in said[said.rindex("failed:") :]
    assert calls[0] == "sojourn kernel setup"
    assert calls[-1] == REST
