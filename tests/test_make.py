"""Runs `make test` with programs that only record and print their own calls. The tests check which
programs run, in which order, and that no failure is lost."""

import os
import subprocess
from pathlib import Path

import pytest
from tree import ROOT

PROGRAM = """#!/bin/sh
echo "$(basename "$0") $*" >> "{calls}"
echo "$(basename "$0") $*"
case "$(basename "$0") $*" in {fails}) exit 1 ;; esac
case "$*" in build*--out*) mkdir -p "{calls}.wheel" ;; {says} esac
"""
LIVE = "python -m pytest -n 2 --dist loadgroup --reruns 1 -m live and not long"
PAPERS = "python -m pytest -n 2 --dist loadfile -m papers and not live and not long"
REST_MARKS = "not live and not papers and not long"
REST = f"python -m pytest -n 2 --dist worksteal -m {REST_MARKS}"
CARGO = "cargo test --config sojourn/crates/tests.toml --workspace --profile checked --no-fail-fast --tests --examples"


def make_test(
    folder: Path, fails: str = "", says: str = "", **env: str
) -> tuple[int, str, list[str]]:
    """Returns make's exit status, its output and the recorded calls. `fails` is a shell pattern of
    calls that fail. `says` is a branch of the shell's `case` that prints additional lines."""
    venv, calls = folder / "venv", folder / "calls"
    (venv / "bin").mkdir(parents=True)
    for name in ("python", "sojourn", "ruff", "mypy", "maturin", "pip", "cargo", "rustup"):
        program = venv / "bin" / name
        program.write_text(PROGRAM.format(calls=calls, fails=fails or "nothing", says=says))
        program.chmod(0o755)
    # Targets that already exist, each newer than its sources.
    guest, lab = folder / "guest", folder / "engine.wasm"
    made = [guest, lab, *(venv / name for name in (".made", ".tools", ".dev"))]
    for file in made:
        file.touch()
    done = subprocess.run(
        [
            *("make", "--no-print-directory", "test", f"VENV={venv}"),
            *(f"GUEST={guest}", f"LAB={lab}"),
            *(f"WHEELS={calls}.wheel", f"BESIDE={folder / 'beside.log'}"),
            f"PROBE_MADE={calls}.probe",
            # At idle priority the recipe would wait for the tests that run in parallel.
            "LEFT_OVER=",
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


def test_everything_runs_and_the_closing_line_of_the_rest_is_last(tmp_path: Path) -> None:
    code, said, calls = make_test(tmp_path)
    assert code == 0, said
    assert "failed" not in said
    assert {LIVE, PAPERS, REST, "mypy --strict", CARGO} <= set(calls)
    assert said.splitlines()[-1] == REST
    assert sum(call.startswith("maturin build") for call in calls) == 2
    assert not any(call.startswith("sojourn") for call in calls)


def test_the_rest_waits_for_the_live_tests_and_for_what_is_built(tmp_path: Path) -> None:
    _, _, calls = make_test(tmp_path)
    rest = calls.index(REST)
    built = calls.index(f"{CARGO} --no-run --quiet")
    assert max(calls.index(LIVE), built) < min(rest, calls.index(CARGO))
    assert all(calls.index(call) < rest for call in calls if call.startswith("maturin build"))


def test_untested_parts_are_reported_at_the_end(tmp_path: Path) -> None:
    # The guest is missing: the program prints three lines instead of one.
    said = "3 NOT TESTED\nno gcc\n9 passed"
    code, output, _ = make_test(tmp_path, says=f"*'{REST_MARKS}') echo '{said}' ;;")
    assert code == 0, output
    assert output.endswith(f"\n{said}\n")
    assert output.count("NOT TESTED") == 2


@pytest.mark.parametrize(
    ("fails", "named"),
    [
        ("*'-m live and not long'", "-m live"),
        ("*'papers and not live and not long'", "papers and not live"),
        ("'mypy '*", "mypy --strict"),
        ("'maturin '*", "wheel"),
        (f"*'{REST_MARKS}'", REST_MARKS),
        (f"'{CARGO}'", CARGO),
    ],
)
def test_a_failure_is_reported_and_all_other_steps_run(
    fails: str, named: str, tmp_path: Path
) -> None:
    code, said, calls = make_test(tmp_path, fails)
    assert code != 0
    assert named in said[said.index("failed:") :]
    assert {LIVE, PAPERS, REST, "mypy --strict"} <= set(calls)


def test_in_ci_there_must_be_a_guest(tmp_path: Path) -> None:
    code, said, calls = make_test(tmp_path, "'sojourn kernel setup'", CI="true")
    assert code != 0
    assert "sojourn kernel setup" in said[said.rindex("failed:") :]
    assert calls[0] == "sojourn kernel setup"
    assert REST in calls
