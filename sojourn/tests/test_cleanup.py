"""The files of killed runs: each is registered before it is created, and removed by the next run
or by `sojourn clean`."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import shapes

from sojourn import cleanup
from sojourn.cli import status
from sojourn.engine.kernel.guest import ready
from sojourn.records import Run

PATIENCE_S = 60.0
"""A test that waits for an event fails after this time."""
FOLDER = "sojourn-0123456789abcdef"
SCENARIO = """
title = "long"
duration = "3000 s"
warmup = "1 s"
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
qdisc = "pfifo"
[[flow]]
kind = "bulk"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder in which processes note their files, which does not exist yet. Temporary
    folders are created in tmp_path/tmp."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(cleanup, "_own", None)
    return tmp_path / "state" / "sojourn" / "running"


def python(program: str, *arguments: object) -> int:
    """Returns the exit status of a process that runs this program."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(
        command, cwd=Path(__file__).parent, timeout=PATIENCE_S, check=False
    ).returncode


HOLDS = """
from sojourn import cleanup
with cleanup.temporary_folder() as folder:
    print(folder, flush=True)
    input()
"""


def holder() -> "tuple[subprocess.Popen[str], str]":
    """Starts a process that has a temporary folder until it reads a line. Returns both."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def dead(place: Path, *things: Path | str) -> Path:
    """Creates the folder of notes of a dead process, with links to `things`."""
    folder = place / "00000000"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / cleanup.OWNER).write_text("process 1: sojourn run x.toml")
    for number, thing in enumerate(things):
        (folder / str(number)).symlink_to(thing)
    return folder


def owners(place: Path) -> list[Path]:
    return sorted(place.iterdir()) if place.exists() else []


def noted(place: Path) -> list[Path]:
    """Returns the entries of all processes."""
    return [Path(os.readlink(each)) for each in sorted(place.glob("*/*")) if each.is_symlink()]


def until(happened: Callable[[], Any]) -> Any:
    """Waits until `happened` returns a true value, and returns it."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if value := happened():
            return value
        time.sleep(0.02)
    raise AssertionError(f"the condition was not met within {PATIENCE_S:g} s")


def cleaned(capsys: pytest.CaptureFixture[str], expected: int = 0) -> dict[str, Any]:
    """Returns the output of `sojourn clean --json`."""
    capsys.readouterr()
    assert status(["clean", "--json"]) == expected
    output: dict[str, Any] = json.loads(capsys.readouterr().out)
    shapes.check("clean", output)
    return output


# ------------------------------------------------------------------------------------ one process


def test_a_folder_is_noted_before_it_is_made_and_until_it_is_gone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: list[list[Path]] = []
    mkdir = Path.mkdir

    def watched(self: Path, *arguments: Any, **options: Any) -> None:
        if self.parent.name == "tmp":
            before.append(noted(place))
        mkdir(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", watched)
    with cleanup.temporary_folder() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert before == [[folder]]
    assert not folder.exists()
    assert noted(place) == []


def test_a_process_s_folder_of_notes_is_removed_with_the_process(place: Path) -> None:
    process, folder = holder()
    assert noted(place) == [Path(folder)]
    (living,) = cleanup.clean().living
    assert living.startswith(f"process {process.pid}: ")
    process.communicate("\n")
    assert owners(place) == []
    assert not Path(folder).exists()


def test_remains_of_a_dead_process_are_removed_by_others(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert python("from sojourn import cleanup; cleanup.make_folder()") == 0
    assert len(cleaned(capsys)["removed"]) == 1
    assert owners(place) == []


def test_a_child_that_is_forked_has_a_folder_of_its_own(place: Path) -> None:
    program = """
import os, signal
from sojourn import cleanup
with cleanup.temporary_folder() as mine:
    if os.fork() == 0:
        theirs = cleanup.make_folder()
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
    done = cleanup.clean()
    assert len(done.removed) == 1 and len(done.living) == 1, done
    assert mine.is_dir()
"""
    assert python(program) == 0
    assert owners(place) == []


def test_work_continues_if_no_note_can_be_written(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.parent.mkdir(parents=True)
    place.write_text("in the way")
    with cleanup.temporary_folder() as folder:
        assert folder.is_dir()
    assert not folder.exists()
    assert place.read_text() == "in the way"
    assert status(["clean"]) == 2
    problem, hint = capsys.readouterr().err.splitlines()
    assert problem == f"error: can't read {place}: Not a directory"
    assert hint.startswith("hint: ")


def test_a_folder_that_another_process_cleans_up_is_not_used(place: Path) -> None:
    """Before a process has locked its new folder, another may take it for a dead process's folder
    and remove it."""
    folder = dead(place)
    lock = cleanup._locked(folder)
    assert lock is not None
    assert cleanup._locked(folder) is None
    cleanup._end(folder)
    assert owners(place) == []
    os.close(lock)
    with pytest.raises(FileNotFoundError):
        cleanup._locked(folder)


# ------------------------------------------------------------------------------- killed processes


def killed_once(happened: Callable[[], Any], *arguments: str) -> None:
    """Starts a run and kills it as soon as `happened` returns a true value."""
    command = [sys.executable, "-m", "sojourn", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            until(happened)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL


def test_the_temporary_run_of_a_simulation_that_was_killed_is_removed(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    killed_once(
        lambda: any((each / "meta.json").exists() for each in noted(place)),
        *("run", str(tmp_path / "scenario.toml"), "--json", "-q", "--seeds", "1000"),
    )
    (left,) = (tmp_path / "tmp").iterdir()
    assert (left / "scenario.toml").exists()
    report = cleaned(capsys)
    assert str(left) in report["removed"]
    assert report["living"] == report["left"] == []
    assert list((tmp_path / "tmp").iterdir()) == []
    assert owners(place) == []
    assert status(["clean"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"


def working_in(folder: Path) -> set[int]:
    """Returns the processes whose working folder is `folder`."""
    processes = set()
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if Path(os.readlink(process / "cwd")).is_relative_to(folder):
                processes.add(int(process.name))
    return processes


def booted_in(folder: Path) -> bool:
    return any(b"@BOOT" in console.read_bytes() for console in folder.glob("*/console"))


@pytest.mark.guest
@pytest.mark.parametrize("when", [working_in, booted_in], ids=["begins", "has booted"])
@pytest.mark.parametrize("kind", ["uml", "qemu"])
def test_the_guest_of_a_run_that_was_killed_ends_with_it_and_its_folder_is_removed(
    kind: str,
    when: Callable[[Path], Any],
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    if reason := next(state.why_not for state in map(ready, ("uml", "qemu")) if state.name == kind):
        pytest.skip(reason)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    killed_once(
        lambda: when(tmp_path / "tmp"),
        *("run", str(tmp_path / "scenario.toml"), "-e", f"kernel-{kind}", "--json", "-q"),
    )
    if when is booted_in:
        # A guest that has booted kills all of its processes when the run dies.
        assert until(lambda: not working_in(tmp_path / "tmp"))
    # The Run's folder, and the guest's.
    left = sorted(map(str, (tmp_path / "tmp").iterdir()))
    assert len(left) == 2
    # A child that has yet to exec the guest's program keeps the lock for some milliseconds more.
    assert sorted(map(str, until(lambda: cleanup.clean().removed))) == left
    assert until(lambda: not working_in(tmp_path / "tmp"))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert owners(place) == []


KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from small_run import CAUSES, small_run, small_tables
run = small_run(Path(sys.argv[1]), seeds=(1,))
replace = os.replace
def killed(source, target):
    if Path(target).name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = killed
run.add_seed(2, small_tables(), CAUSES)
"""


@pytest.mark.parametrize("replaced", ["seed-2", "meta.json"])
def test_in_a_folder_that_the_user_named_only_half_written_files_are_removed(
    replaced: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert python(KILLED_WHILE_WRITING, folder, replaced) == -signal.SIGKILL
    (half,) = (path for path in folder.iterdir() if path.name.startswith("."))
    assert half.name.startswith(f".{replaced}.")
    (folder / ".notes").write_text("mine")
    assert cleaned(capsys)["removed"] == [str(half)]
    assert not half.exists()
    assert (folder / ".notes").read_text() == "mine"
    assert Run.open(folder).seeds == (1,)
    assert Run.open(folder).table("links").height > 0
    assert owners(place) == []


def test_the_next_run_removes_the_remains_silently(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tmp" / FOLDER).mkdir()
    file = dead(place, tmp_path / "tmp" / FOLDER)
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace("3000 s", "2 s"))
    assert status(["run", str(tmp_path / "scenario.toml"), "--json"]) == 0
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "tmp" / FOLDER).exists()
    assert not file.exists()


# -------------------------------------------------------------------------------- files that stay


def test_files_of_a_running_process_are_left_alone(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process, folder = holder()
    (tmp_path / "tmp" / FOLDER).mkdir()
    dead(place, tmp_path / "tmp" / FOLDER)
    report = cleaned(capsys)
    (living,) = report["living"]
    assert living.startswith(f"process {process.pid}: ")
    assert [Path(each).name for each in report["removed"]] == [FOLDER]
    assert Path(folder).is_dir()
    # A process number does not show whether the process lives, but its lock does: the kill releases
    # it.
    process.kill()
    process.communicate()
    assert cleaned(capsys)["removed"] == [folder]
    assert not Path(folder).exists()


def test_files_that_sojourn_did_not_make_are_not_removed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "thesis"
    mine.mkdir()
    (tmp_path / "tmp" / FOLDER).symlink_to(mine)
    names = [
        *(mine, f"tmp/{FOLDER}", mine / "chapter.tex"),
        *(tmp_path / "tmp" / FOLDER, tmp_path / "nowhere" / FOLDER),
    ]
    folder = dead(place, *names)
    report = cleaned(capsys, expected=1)
    # A link is removed, not its target. A missing file is not reported.
    assert report["removed"] == [str(tmp_path / "tmp" / FOLDER)]
    assert [(each["name"], each["why"]) for each in report["left"]] == [
        (str(each), "sojourn makes no file or folder with such a name") for each in names[:3]
    ]
    assert mine.is_dir()
    assert folder.exists()
    shutil.rmtree(folder)
    (tmp_path / "tmp" / FOLDER).mkdir()
    dead(place, tmp_path / "tmp" / FOLDER)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    assert cleaned(capsys, expected=1)["left"][0]["why"] == "it belongs to another user"
    assert (tmp_path / "tmp" / FOLDER).is_dir()


def test_the_old_spellings_name_the_new_one(capsys: pytest.CaptureFixture[str]) -> None:
    for old in (["netns", "clean"], ["netns", "status"], ["kernel", "clean"]):
        assert status(old) == 2
        assert capsys.readouterr().err.endswith("is `sojourn clean` now\nhint: sojourn clean\n")


def test_with_nothing_to_remove_clean_says_so(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["clean"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"
    assert not place.exists()
