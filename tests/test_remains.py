"""What runs that are killed leave behind: it is named before it is there, and removed by the next one, or by `sojourn netns clean`."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from small_run import CAUSES, small_run, small_tables

from sojourn import remains
from sojourn.cli import status
from sojourn.engine.kernel import ready
from sojourn.records import Run

PATIENCE_S = 60.0
"""Until what must happen is taken not to."""
FOLDER = "sojourn-0123456789abcdef"
HEAD: Mapping[str, Any] = {"format": 1, "pid": 1, "command": "sojourn run x.toml", "began_s": 1.0}
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
    """The folder of the entries; temporary folders are made in tmp_path/tmp. Neither is there yet for this process."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(remains, "_own", None)
    return tmp_path / "state" / "sojourn" / "running"


def python(program: str, *arguments: object) -> int:
    """How a process ends that runs this."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, cwd=Path(__file__).parent, timeout=PATIENCE_S, check=False).returncode


HOLDS = """
from sojourn import remains
with remains.temporary_folder() as folder:
    print(folder, flush=True)
    input()
"""


def holder() -> "tuple[subprocess.Popen[str], str]":
    """A process that has a temporary folder until it is given a line; the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def dead(place: Path, *things: Mapping[str, Any], head: Mapping[str, Any] = HEAD) -> Path:
    """An entry that nobody holds."""
    place.mkdir(parents=True, exist_ok=True)
    file = place / "1-00000000.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in (head, *things)))
    return file


def thing(kind: str, name: object, mark: str = "") -> Mapping[str, str]:
    return {"kind": kind, "name": str(name), "mark": mark}


def entries(place: Path) -> list[Path]:
    return sorted(place.glob("*.jsonl"))


def until(happened: Callable[[], Any]) -> Any:
    """What `happened` gives once it gives something."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := happened():
            return found
        time.sleep(0.02)
    raise AssertionError(f"did not happen within {PATIENCE_S:g} s")


def cleaned(capsys: pytest.CaptureFixture[str], expected: int = 0) -> dict[str, Any]:
    """What `sojourn netns clean --json` says."""
    capsys.readouterr()
    assert status(["netns", "clean", "--json"]) == expected
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


# ------------------------------------------------------------------------------------------------------- one process


def test_a_folder_is_named_before_it_is_made_and_struck_out_when_it_is_gone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: list[str] = []
    mkdir = Path.mkdir

    def watched(self: Path, *arguments: Any, **options: Any) -> None:
        if self.parent.name == "tmp":
            named.append(entries(place)[0].read_text())
        mkdir(self, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", watched)
    with remains.temporary_folder() as folder:
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert str(folder) in named[0]
    assert not folder.exists()
    assert str(folder) not in entries(place)[0].read_text()


def test_an_entry_goes_with_its_process(place: Path) -> None:
    process, folder = holder()
    found, _ = remains.entries()
    assert [(entry.pid, entry.living) for entry in found] == [(process.pid, True)]
    assert [str(each) for each in found[0].things] == [folder]
    process.communicate("\n")
    assert entries(place) == []
    assert not Path(folder).exists()


def test_what_was_forgotten_is_removed_by_others(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert python("from sojourn import remains; remains.make_folder()") == 0
    assert [each["kind"] for each in cleaned(capsys)["removed"]] == ["folder"]
    assert entries(place) == []


def test_a_child_that_is_forked_has_an_entry_of_its_own(place: Path) -> None:
    program = """
import os, signal
from sojourn import remains
with remains.temporary_folder() as mine:
    if os.fork() == 0:
        theirs = remains.make_folder()
        os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
    found, _ = remains.entries()
    assert [[str(each) for each in entry.things] for entry in found if entry.living] == [[str(mine)]], found
    assert [len(entry.things) for entry in found if not entry.living] == [1], found
    assert len(remains.clean().removed) == 1
    assert mine.is_dir()
"""
    assert python(program) == 0
    assert entries(place) == []


def test_work_goes_on_where_there_can_be_no_entry(place: Path) -> None:
    place.parent.mkdir(parents=True)
    place.write_text("in the way")
    with remains.temporary_folder() as folder:
        assert folder.is_dir()
    assert not folder.exists()
    assert place.read_text() == "in the way"


def test_thousands_of_seeds_make_the_entry_no_longer(place: Path, tmp_path: Path) -> None:
    small_run(tmp_path / "run", seeds=(1,))
    before = entries(place)[0].stat().st_size
    run = Run.open(tmp_path / "run")
    for seed in range(20):
        run.add_seed(seed, small_tables(), CAUSES)
    assert entries(place)[0].stat().st_size == before


# ------------------------------------------------------------------------------------------------------- killed ones


def killed_once(named: Callable[[Sequence[remains.Thing]], bool], *arguments: str) -> None:
    """Kills a run as soon as its entry names this."""
    command = [sys.executable, "-m", "sojourn", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            until(lambda: any(named(entry.things) for entry in remains.entries()[0]))
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL


def test_the_temporary_run_of_a_simulation_that_was_killed_is_removed(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    killed_once(
        lambda things: any((Path(each.name) / "meta.json").exists() for each in things),
        *("run", str(tmp_path / "scenario.toml"), "--json", "-q", "--seeds", "1000"),
    )
    (left,) = (tmp_path / "tmp").iterdir()
    assert (left / "scenario.toml").exists()
    assert status(["netns", "status"]) == 0
    assert " was killed: " in (shown := capsys.readouterr().out)
    assert str(left) in shown
    found = cleaned(capsys)
    assert {"kind": "folder", "name": str(left)} in found["removed"]
    assert found["living"] == found["left"] == found["unreadable"] == []
    assert list((tmp_path / "tmp").iterdir()) == []
    assert entries(place) == []
    assert status(["netns", "clean"]) == 0
    assert capsys.readouterr().out == "nothing to remove\n"


def group(pid: int) -> set[int]:
    """The living processes of a group."""
    found = set()
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if os.getpgid(int(process.name)) == pid and remains.started(int(process.name)):
                found.add(int(process.name))
    return found


@pytest.mark.parametrize("kind", ["uml", "qemu"])
def test_the_guest_of_a_run_that_was_killed_is_ended_and_its_folder_removed(
    kind: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if reason := next(state.why_not for state in map(ready, ("uml", "qemu")) if state.kind == kind):
        pytest.skip(reason)
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    killed_once(
        lambda things: any(each.kind == "program" for each in things),
        *("run", str(tmp_path / "scenario.toml"), "-e", f"kernel-{kind}", "--json", "-q"),
    )
    (entry,) = remains.entries()[0]
    program = next(int(each.name) for each in entry.things if each.kind == "program")
    # Nothing ends it with us: it would go on for as long as its run takes.
    assert program in group(program)
    # The Run, and the guest's own.
    assert len(list((tmp_path / "tmp").iterdir())) == 2
    found = cleaned(capsys)
    assert [each["kind"] for each in found["removed"]] == ["program", "folder", "folder"]
    assert until(lambda: not group(program))
    assert list((tmp_path / "tmp").iterdir()) == []
    assert entries(place) == []


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
def test_of_a_run_that_was_asked_for_only_what_was_half_written_is_removed(
    replaced: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert python(KILLED_WHILE_WRITING, folder, replaced) == -signal.SIGKILL
    (half,) = (path for path in folder.iterdir() if path.name.startswith("."))
    assert half.name.startswith(f".{replaced}.")
    (folder / ".notes").write_text("mine")
    assert cleaned(capsys)["removed"] == [{"kind": "half", "name": str(half)}]
    assert not half.exists()
    assert (folder / ".notes").read_text() == "mine"
    assert Run.open(folder).seeds == (1,)
    assert Run.open(folder).table("links").height > 0
    assert entries(place) == []


def test_the_next_run_removes_it_without_a_word(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tmp" / FOLDER).mkdir()
    file = dead(place, thing("folder", tmp_path / "tmp" / FOLDER))
    (tmp_path / "scenario.toml").write_text(SCENARIO.replace("3000 s", "2 s"))
    assert status(["run", str(tmp_path / "scenario.toml"), "--json"]) == 0
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "tmp" / FOLDER).exists()
    assert not file.exists()


# ------------------------------------------------------------------------------------------------- what is left alone


def test_what_a_living_run_has_is_left_alone(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process, folder = holder()
    (tmp_path / "tmp" / FOLDER).mkdir()
    dead(place, thing("folder", tmp_path / "tmp" / FOLDER))
    found = cleaned(capsys)
    assert [(each["pid"], each["things"]) for each in found["living"]] == [
        (process.pid, [{"kind": "folder", "name": folder}])
    ]
    assert [Path(each["name"]).name for each in found["removed"]] == [FOLDER]
    assert status(["netns", "clean"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"left alone: process {process.pid} of ")
    assert folder in said
    assert Path(folder).is_dir()
    # A number says nothing of life or death: the entry's own is taken by the kill.
    process.kill()
    process.communicate()
    assert [each["name"] for each in cleaned(capsys)["removed"]] == [folder]
    assert not Path(folder).exists()


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="processes are known by Linux's /proc")
@pytest.mark.parametrize("part", range(3))
def test_a_number_that_is_another_s_by_now_is_not_signalled(
    part: int, place: Path, sleeper: "subprocess.Popen[bytes]", capsys: pytest.CaptureFixture[str]
) -> None:
    """Started at another time, on another boot, in another namespace."""
    known = remains._mark(sleeper.pid).split()
    assert len(known) == 3
    known[part] = known[part][:-1] + ("1" if known[part][-1] != "1" else "2")
    dead(place, thing("program", sleeper.pid, " ".join(known)))
    assert cleaned(capsys)["removed"] == []
    assert sleeper.poll() is None
    assert entries(place) == []
    # The same process, known for what it is.
    dead(place, thing("program", sleeper.pid, remains._mark(sleeper.pid)))
    assert cleaned(capsys)["removed"] == [{"kind": "program", "name": str(sleeper.pid)}]
    assert sleeper.wait(PATIENCE_S) == -signal.SIGKILL


def test_what_we_would_not_have_made_is_not_removed(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "thesis"
    mine.mkdir()
    (tmp_path / "tmp" / FOLDER).symlink_to(mine)
    names = [
        thing("folder", mine),
        thing("folder", "tmp/" + FOLDER),
        thing("half", mine / "chapter.tex"),
        thing("folder", tmp_path / "tmp" / FOLDER),
        thing("folder", tmp_path / "nowhere" / FOLDER),
    ]
    file = dead(place, *names)
    found = cleaned(capsys, expected=1)
    # A link is removed, not what it leads to; what is not there needs no word.
    assert [each["name"] for each in found["removed"]] == [str(tmp_path / "tmp" / FOLDER)]
    assert [(each["name"], each["why"]) for each in found["left"]] == [
        (each["name"], "we give nothing such a name") for each in names[:3]
    ]
    assert mine.is_dir()
    assert file.exists()
    (tmp_path / "tmp" / FOLDER).mkdir()
    dead(place, thing("folder", tmp_path / "tmp" / FOLDER))
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    assert cleaned(capsys, expected=1)["left"][0]["why"] == "it is another user's"
    assert (tmp_path / "tmp" / FOLDER).is_dir()


# ------------------------------------------------------------------------------------------------------- damaged ones

GOOD = json.dumps(HEAD).encode() + b"\n"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{\n", "line 1 is damaged"),
        (b"\xff\xfe\n", "line 1 is damaged"),
        (b"[]\n", "line 1 is damaged"),
        (b"[" * 100_000 + b"\n", "line 1 is damaged"),
        (b'{"format": 1, "pid": 1, "command": "", "began_s": 1e300}\n', "line 1 is damaged"),
        (b'{"format": 1, "pid": ' + b"9" * 5000 + b', "command": "", "began_s": 1}\n', "line 1 is damaged"),
        (b'{"format": 2}\n', "another version of sojourn wrote it"),
        (GOOD + b"7\n", "line 2 is damaged"),
        (GOOD + b'{"kind": "folder"}\n', "line 2 is damaged"),
        (GOOD + b'{"kind": "home", "name": "/", "mark": ""}\n', "line 2 is damaged"),
        (GOOD + b'{"kind": "program", "name": "x", "mark": ""}\n', "line 2 is damaged"),
        (GOOD + b'{"kind": "folder", "name": 7, "mark": ""}\n', "line 2 is damaged"),
        (GOOD + b'{"kind": "folder", "name": "/a\\u0000", "mark": ""}\n', "line 2 is damaged"),
        (GOOD + b'{"kind": "folder", "name": "/\\ud800", "mark": ""}\n', "line 2 is damaged"),
    ],
)
def test_a_damaged_entry_is_skipped_with_a_word(
    content: bytes, why: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tmp" / FOLDER).mkdir()
    dead(place, thing("folder", tmp_path / "tmp" / FOLDER))
    damaged = place / "2-00000000.jsonl"
    damaged.write_bytes(content)
    assert status(["netns", "clean"]) == 1
    said = capsys.readouterr()
    assert said.out == f"removed {tmp_path / 'tmp' / FOLDER}\n"
    assert said.err == f"skipped {damaged}: {why}; remove it once nothing of that time is left\n"
    assert damaged.exists()
    assert cleaned(capsys, expected=1)["unreadable"] == [{"file": str(damaged), "why": why}]
    assert status(["netns", "status"]) == 0
    # Nobody's work is stopped by it.
    with remains.temporary_folder() as folder:
        assert folder.is_dir()


@pytest.mark.parametrize("content", [b"", GOOD[:-1], GOOD, GOOD + b'{"kind": "folder", "na'])
def test_a_line_that_was_being_written_names_nothing_that_was_made(
    content: bytes, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dead(place).write_bytes(content)
    assert cleaned(capsys)["unreadable"] == []
    assert entries(place) == []


def test_a_folder_among_the_entries_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "3-00000000.jsonl").mkdir(parents=True)
    assert cleaned(capsys, expected=1)["unreadable"][0]["why"] == "Is a directory"


def test_where_entries_can_not_be_it_is_told_in_two_lines(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.parent.mkdir(parents=True)
    place.write_text("in the way")
    for verb in ("clean", "status"):
        assert status(["netns", verb]) == 2
        problem, hint = capsys.readouterr().err.splitlines()
        assert problem == f"error: can't read {place}: File exists"
        assert hint.startswith("hint: ")


def test_without_any_entry_it_says_so(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["netns", "clean"]) == 0
    assert status(["netns", "status"]) == 0
    assert capsys.readouterr().out == "nothing to remove\nnothing runs, and nothing is left\n"
    assert cleaned(capsys) == {"removed": [], "left": [], "living": [], "unreadable": []}
    assert not place.exists()
