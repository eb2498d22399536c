"""This package without the others: its own parts work, and for a missing part it names the package.
conftest.py hides the others from each test of this folder."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from tree import ROOT

from sojourn import extras
from sojourn.cli import cli, status
from sojourn.records import Run

MEASURED = ROOT / "docs" / "site" / "recorded" / "before"
OLD = Path(__file__).parent / "recordings" / "format-1" / "measured"
BROUGHT = [(verb, extra) for extra, verbs in extras.VERBS.items() for verb in verbs]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


class Command:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str | Path) -> tuple[int, str, str]:
        """The exit status, stdout and stderr of a command."""
        code = status([str(word) for word in words])
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err


@pytest.mark.parametrize("name", ["sojourn_live", "sojourn_papers", "synthetic_live"])
def test_no_test_of_this_package_can_import_another(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=name):
        importlib.import_module(name)


def test_subprocesses_of_a_test_can_t_import_another_package_either() -> None:
    program = """
import importlib.util
from sojourn import extras
print(extras.installed())
import sojourn_live
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "()\n"
    assert "No module named 'sojourn_live'" in done.stderr
    assert extras.installed() == ()


def test_help_lists_what_is_installed(say: Command) -> None:
    code, out, _ = say("--help")
    assert code == 0
    listed = {words[0] for line in out.splitlines() if (words := line.split())}
    assert {"run", "compare", "export", "agree", "man"} <= listed
    assert not {verb for verb, _ in BROUGHT} & listed
    assert "A live line" not in out
    assert "sojourn compare home-uplink" in out
    for verb, _ in BROUGHT:
        assert f"sojourn {verb}" not in out
    assert list(cli.commands) == [name for name in cli.commands if name not in dict(BROUGHT)]
    assert "papers" not in say("list")[1]


@pytest.mark.parametrize(("verb", "extra"), BROUGHT)
def test_the_error_of_a_missing_verb_names_its_package(verb: str, extra: str, say: Command) -> None:
    for words in ((verb,), (verb, "--help"), ("help", verb)):
        code, out, err = say(*words)
        assert (code, out) == (2, "")
        assert err == (
            f"error: `sojourn {verb}` is a command of sojourn-{extra}, which is not installed\n"
            f"hint: pip install 'sojourn[{extra}]'\n"
        )


def test_the_error_of_a_missing_list_names_its_package(say: Command) -> None:
    code, _, err = say("list", "papers")
    assert code == 2
    assert "hint: it is a list of sojourn-papers: pip install 'sojourn[papers]'\n" in err


@pytest.mark.parametrize("run", [MEASURED, OLD], ids=["today", "0.1"])
@pytest.mark.parametrize("verb", ["report", "compare", "compare --json"])
def test_a_measurement_is_read_by_another_package(
    verb: str, run: Path, tmp_path: Path, say: Command
) -> None:
    more = ["-o", tmp_path / "page.html"] if verb == "report" else [run]
    code, out, err = say(*verb.split(), run, *more)
    assert (code, out) == (2, "")
    assert err == (
        f"error: {run} is the Run of a measurement: reading it needs sojourn-live, which is not installed\n"
        "hint: pip install 'sojourn[live]'\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [".csv", ".json", ".flent", ".flent.gz"])
def test_a_run_is_exported_by_another_package(ending: str, tmp_path: Path, say: Command) -> None:
    file = tmp_path / f"x{ending}"
    code, _, err = say("export", MEASURED, "-o", file)
    assert code == 2
    assert err.startswith(f"error: {file}: writing {file.suffix} needs sojourn-live, which is not")
    assert "hint: pip install 'sojourn[live]'\n" in err
    assert not file.exists()


def test_the_core_can_read_a_measurement_without_another_package(
    tmp_path: Path, say: Command
) -> None:
    assert Run.open(MEASURED).table("probe").height > 0
    assert "tables are intact" in say("verify", "-q", MEASURED)[2]
    assert say("bundle", "-q", MEASURED, "-o", tmp_path / "all.zip")[0] == 0
    code, out, _ = say("man")
    assert code == 0
    assert "EXAMPLES" not in out
