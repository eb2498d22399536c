"""What each command does with a scenario that has programs: it runs them, with permission, or refuses
them with a sentence."""

import json
import zipfile
from pathlib import Path
from typing import NoReturn, cast

import pytest

import sojourn
from sojourn import engine, guest_programs
from sojourn.cli import status
from sojourn.engine import registry, runs, seed_source
from sojourn.errors import UserError
from sojourn.records import Run
from sojourn.records.seed_store import SeedStore
from sojourn.scenario import Scenario, loads

LINE = """
title = "a line"
duration = "2 s"
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", qdisc = "fq_codel" }
"""
BUFFERED = LINE.replace("fq_codel", "pfifo limit 40")
PAIR = """
[[flow]]
name = "web"
kind = "program"
server = "sh -c 'serve {address}'"
client = "sh -c 'fetch {server}'"
"""
CONTROLLER = "[[program]]\nname = 'hello'\nnode = 'home'\ncommand = 'echo hello'\n"
BULK = "[[flow]]\nkind = 'bulk'\n"
SUITE = """
[suite]
title = "a suite"
source = "ours"
about = "one criterion"
of = "qdisc"
baseline = "pfifo"
others = ["codel"]
at = "bottleneck.qdisc"
link = "down"
seeds = 2
quick_seeds = 2

[sources]
kept = "ours"

[[criteria]]
name = "plain"
section = "1"
force = "must"
title = "without programs"
scenario = "plain.toml"
claims = [{ of = "goodput", at_least = 0.1, times_baseline = true, source = "kept" }]

[[criteria]]
name = "programs"
section = "2"
force = "must"
title = "with programs"
scenario = "programs.toml"
claims = [{ of = "goodput", at_least = 0.1, times_baseline = true, source = "kept" }]
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "web.toml"
    path.write_text(LINE + PAIR)
    return str(path)


@pytest.fixture
def any_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine kernel can run everything; no permission was given before."""
    check = engine.check
    monkeypatch.setattr(
        engine,
        "check",
        lambda scenarios, name: None if name == "kernel" else check(scenarios, name),
    )
    monkeypatch.setattr(guest_programs, "_allowed", False)


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert status(list(words)) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err


@pytest.mark.parametrize("verb", ["run", "compare", "advise"])
def test_a_command_that_would_run_programs_shows_them_and_asks_for_permission(
    any_engine: None, capsys: pytest.CaptureFixture[str], file: str, verb: str
) -> None:
    error = refusal(capsys, verb, file, "-e", "kernel")
    assert "host at home: sh -c 'fetch {server}'" in error
    assert "--allow-programs" in error


@pytest.mark.parametrize("verb", ["run", "compare", "advise", "agree"])
def test_the_simulator_refuses_them_in_each_command(
    capsys: pytest.CaptureFixture[str], file: str, verb: str
) -> None:
    error = refusal(capsys, verb, file)
    assert "the simulator has no programs, Linux has" in error


def test_a_page_of_the_lab_is_not_written(
    capsys: pytest.CaptureFixture[str], file: str, tmp_path: Path
) -> None:
    error = refusal(capsys, "lab", file, "-o", str(tmp_path / "lab.html"))
    assert "runs programs of this host" in error
    assert f"sojourn run {file} -e kernel --allow-programs" in error
    assert not (tmp_path / "lab.html").exists()


def test_a_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_programs, "_allowed", True)
    monkeypatch.setattr(runs, "check_all", lambda *_: None)
    with pytest.raises(UserError, match="runs on this host only"):
        engine.run_all([loads(LINE + PAIR)], engine="kernel", cluster="tcp://127.0.0.1:9")


def test_own_code_and_programs_exclude_each_other(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        (Path(sojourn.__file__).parent / "scenarios/own_codel.py").read_text()
    )
    own = 'duration = "1 s"\nbottleneck = { rate = "10 Mbit/s", delay = "10 ms", qdisc = "mine.py:CoDel" }\n'
    found = loads(own + PAIR, folder=tmp_path)
    with pytest.raises(UserError, match="the simulator has no programs"):
        sojourn.run(found)
    with pytest.raises(UserError, match="own"):
        sojourn.run(found, engine="kernel")


class Untouched:
    """A store of which nothing is asked."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(name)


def test_the_store_is_not_asked_for_a_seed_with_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_source, "make", lambda *_: "made")
    monkeypatch.setattr(seed_source, "key", lambda *_: "key")
    source = seed_source.Source(registry.find("sim"), cast("SeedStore", Untouched()), fresh=False)

    def made(text: str) -> object:
        job = seed_source.SeedJob(loads(text), 1, cast("Run", None), "")
        return source.make(job, lambda _: True)

    assert made(LINE + PAIR) == "made"
    with pytest.raises(AssertionError, match="take"):
        made(LINE + BULK)


def suite(folder: Path) -> str:
    (folder / "suite.toml").write_text(SUITE)
    (folder / "plain.toml").write_text(BUFFERED + BULK)
    (folder / "programs.toml").write_text(BUFFERED + BULK + CONTROLLER)
    return str(folder)


def test_an_evaluation_by_the_simulator_leaves_the_criterion_with_programs_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert status(["evaluate", "codel", "--suite", suite(tmp_path), "--json", "-q"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in shown["criteria"]] == ["plain"]
    (missing,) = shown["missing"]
    assert "the simulator has no programs" in missing["needs"]


def test_an_evaluation_by_the_kernel_asks_for_permission(
    any_engine: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    error = refusal(capsys, "evaluate", "codel", "--suite", suite(tmp_path), "-e", "kernel")
    assert "node home: echo hello" in error
    assert "--allow-programs" in error


# ----------------------------------------------------------------------------------- in the guest


def with_hello(folder: Path) -> Scenario:
    return loads(LINE + BULK + CONTROLLER + "[[flow]]\nkind = 'ping'\n", folder=folder)


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest_programs, "_allowed", True)


@pytest.mark.long
def test_commands_that_run_scenarios_run_programs_too(
    guest_for_programs: str, allowed: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "hello.toml"
    file.write_text(LINE + BULK + CONTROLLER + "[[flow]]\nkind = 'ping'\n")
    permitted = ["-e", "kernel", "--allow-programs", "-q"]

    def out(name: str) -> list[str]:
        return ["-o", str(tmp_path / name)]

    assert status(["compare", str(file), "pfifo", "codel", *permitted, *out("compare")]) == 0
    assert len(Run.find(tmp_path / "compare")) == 2
    vary = ["--vary", "program.hello.command=echo one,echo two"]
    assert status(["run", str(file), *vary, *permitted, *out("vary")]) == 0
    printed = {
        guest_programs.output_of(run, 1, record.programs[0])
        for run in Run.find(tmp_path / "vary")
        if (record := guest_programs.read(run, 1)) is not None
    }
    assert printed == {"one\n", "two\n"}
    assert (
        status(["evaluate", "codel", "--suite", suite(tmp_path), *permitted, *out("judged")]) == 0
    )
    assert (tmp_path / "judged" / "programs").is_dir()
    assert status(["report", str(tmp_path / "compare"), *out("page.html")]) == 0
    assert "echo hello" in (tmp_path / "page.html").read_text()
    assert status(["bundle", str(tmp_path / "compare"), *out("all.zip")]) == 0
    names = zipfile.ZipFile(tmp_path / "all.zip").namelist()
    assert sum(name.endswith("/hello.out") for name in names) == 2
    assert sum(name.endswith("/programs.json") for name in names) == 2
