"""`sojourn measure`, `compare`, `import`, `export` on the command line: over loopback, and over a
known bottleneck."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic
import synthetic_live
from live_network import SERVER, SLOW_DOWN, SLOW_UP, Bottleneck, network
from synthetic_live import Line

from sojourn.cli import status
from sojourn.records import MEASUREMENT, Run

ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
SOJOURN = (sys.executable, "-m", "sojourn")
QUICK = ("--length", "600ms", "--idle", "600ms", "--ping", "udp", "--iface", "none")


class Serving:
    """A server, and the port that it listens at."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        assert program.stdout is not None
        self.program, self.says = program, program.stdout
        found = re.search(r"\d+\.\d+\.\d+\.\d+:(\d+)", self.says.readline())
        assert found is not None
        self.port = found[1]

    def wait_for_a_client(self) -> None:
        """Waits until a session has begun, however long programs take to start."""
        while "connected" not in (line := self.says.readline()):
            assert line, "the server ended"


@contextlib.contextmanager
def server(*options: str) -> Iterator[Serving]:
    """A server for the duration of the block."""
    command = [*SOJOURN, "serve", "--port", "0", *options]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENV
    ) as program:
        try:
            yield Serving(program)
        finally:
            program.kill()


IN_THE_DOWNLOAD = 5.0
"""Seconds from a session's start, which has a second of idle line."""


@pytest.fixture(scope="module")
def port() -> Iterator[str]:
    with server() as serving:
        yield serving.port


class CliResult:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    monkeypatch.chdir(tmp_path)
    return Say(capsys)


class Say:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str | Path) -> CliResult:
        self.capsys.readouterr()
        code = status([str(one) for one in arguments])
        captured = self.capsys.readouterr()
        return CliResult(code, captured.out, captured.err)


# --------------------------------------------------------------------------------------- loopback


def test_a_measurement_is_printed_kept_and_written(say: Say, port: str, tmp_path: Path) -> None:
    said = say(
        "measure",
        "127.0.0.1",
        "--port",
        port,
        *QUICK,
        "-o",
        "home",
        "--flent",
        "x.flent.gz",
        "--csv",
        "x.csv",
        "-t",
        "loop",
    )
    assert said.code == 0, said.err
    assert re.search(r"^download +\d+ +0", said.out, re.MULTILINE)
    assert "Scores, of the same samples" in said.out
    assert "sojourn report home" in said.err
    run = Run.open(tmp_path / "home")
    assert [phase.name for phase in run.meta.phases] == [
        "idle",
        "download",
        "upload",
        "both",
        "idle 2",
    ]
    assert run.name == "loop"
    with (tmp_path / "x.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["quantity"] for row in rows} >= {"rtt_ms", "goodput_mbps"}
    assert say("import", "x.flent.gz", "-o", "back").code == 0
    assert say("report", "home", "-o", "page.html").code == 0
    assert "of the probes were sent at most" in (tmp_path / "page.html").read_text()


def test_json_prints_one_object_and_keeps_no_files(say: Say, port: str, tmp_path: Path) -> None:
    said = say(
        "measure",
        "127.0.0.1",
        "--port",
        port,
        *QUICK,
        "--phase",
        "idle",
        "--phase",
        "upload",
        "--json",
        "-q",
    )
    assert said.code == 0
    assert said.err == ""
    whole = json.loads(said.out)
    assert [row["phase"] for row in whole["rows"]] == ["idle", "upload"]
    assert whole["rows"][1]["mbps"]["up"] > 1
    assert whole["induced_p95_ms"] is not None
    assert not (tmp_path / "runs").exists()


def test_repeats_are_seeds(say: Say, port: str, tmp_path: Path) -> None:
    asked = ("--phase", "idle", "--phase", "download", "-r", "3", "-o", "thrice")
    said = say("measure", "127.0.0.1", "--port", port, *QUICK, *asked)
    assert said.code == 0
    assert Run.open(tmp_path / "thrice").seeds == (1, 2, 3)
    assert "in 3 repeats" in said.out
    assert "over the repeats" in said.out


SHORT = (
    "--length",
    "300ms",
    "--idle",
    "300ms",
    "--phase",
    "idle",
    "--phase",
    "download",
    "--ping",
    "udp",
    "--iface",
    "none",
)


def test_a_series_is_a_folder_of_runs_and_a_table(say: Say, port: str, tmp_path: Path) -> None:
    said = say(
        "measure", f"127.0.0.1:{port}", *SHORT, "--every", "3s", "--times", "2", "-o", "days", "-q"
    )
    assert said.code == 0, said.err
    assert said.err == ""
    header, *rows = said.out.splitlines()
    assert header.split()[:2] == ["time", "idle"]
    assert len(rows) == 2
    runs = Run.find(tmp_path / "days")
    began = [run.meta.facts["1"]["zero_ns"] for run in runs]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d{6}Z", run.path.name) for run in runs)
    assert began == sorted(began)
    again = say("history", "days")
    assert again.out == said.out
    # The series continues on another day, and a failed measurement is a line of it.
    from sojourn_live.measure import over_days

    over_days.failed(tmp_path / "days", began[0] + 10**9, "no server listens at 127.0.0.1")
    assert (
        say(
            "measure", f"127.0.0.1:{port}", *SHORT, "--every", "1d", "--times", "1", "-o", "days"
        ).code
        == 0
    )
    entries = json.loads(say("history", "days", "--json").out)["measurements"]
    assert [one["why"] for one in entries] == ["", "no server listens at 127.0.0.1", "", ""]
    assert [one["mbps"]["down"] > 0 for one in entries if one["run"]] == [True] * 3
    assert (
        say("history", "days")
        .out.splitlines()[2]
        .endswith("failed: no server listens at 127.0.0.1")
    )
    assert say("report", "days", "-o", "days.html").code == 0


def test_a_series_continues_while_the_server_is_unavailable(say: Say, tmp_path: Path) -> None:
    with server() as serving:
        assert (
            say(
                "measure",
                "127.0.0.1",
                "--port",
                serving.port,
                *SHORT,
                "--every",
                "2s",
                "--times",
                "1",
                "-o",
                "days",
            ).code
            == 0
        )
    said = say(
        "measure",
        "127.0.0.1",
        "--port",
        serving.port,
        *SHORT,
        "--every",
        "2s",
        "--times",
        "2",
        "-o",
        "days",
    )
    assert said.code == 1
    assert said.out.count("failed: no server listens at") == 2
    # At the start of a new folder a failure is an error.
    said = say(
        "measure", "127.0.0.1", "--port", serving.port, *SHORT, "--every", "2s", "-o", "other"
    )
    assert (said.code, "no server listens" in said.err) == (2, True)
    assert not (tmp_path / "other").exists()


def test_a_schedule_does_not_drift_and_skips_missed_times() -> None:
    from sojourn_live.measure.over_days import next_slot

    assert next_slot(100.0, 60.0, 100.0) == 160.0
    assert next_slot(100.0, 60.0, 159.9) == 160.0
    assert next_slot(100.0, 60.0, 160.0) == 220.0
    assert next_slot(100.0, 60.0, 1000.5) == 1060.0
    assert next_slot(100.0, 60.0, 90.0) == 160.0, "a clock that was put back"


def test_a_secret_comes_from_a_file_or_the_environment(
    say: Say, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "word").write_text("correct horse battery\n")
    with server("--secret", f"@{tmp_path / 'word'}") as serving:
        asked = ("measure", f"127.0.0.1:{serving.port}", *SHORT, "-o", "run")
        said = say(*asked)
        assert (said.code, "requires a secret" in said.err) == (2, True)
        assert say(*asked, "--secret", "@word").code == 0
        monkeypatch.setenv("SOJOURN_SECRET", "correct horse battery")
        assert say(*asked, "--force").code == 0
        monkeypatch.setenv("SOJOURN_SECRET", "battery staple")
        assert "not this server's secret" in say(*asked, "--force").err
    for file in (tmp_path / "run").rglob("*"):
        assert file.is_dir() or b"correct horse" not in file.read_bytes()


def test_fail_above_sets_the_exit_status(say: Say, port: str) -> None:
    asked = (
        "measure",
        "127.0.0.1",
        "--port",
        port,
        *QUICK,
        "--phase",
        "idle",
        "--phase",
        "download",
        "--json",
    )
    assert say(*asked, "--fail-above", "10 s").code == 0
    # Without an idle phase the added delay is not known, which does not pass.
    said = say(
        "measure",
        "127.0.0.1",
        "--port",
        port,
        *QUICK,
        "--phase",
        "download",
        "--json",
        "--fail-above",
        "10 s",
    )
    assert said.code == 1
    assert "could not be measured" in said.err


@contextlib.contextmanager
def in_its_download(out: Path) -> Iterator[tuple[Serving, subprocess.Popen[str]]]:
    """A server, and a long measurement of the line to it in its first download. (Over loopback it
    would take both processors.)"""
    asked = ["measure", SERVER, "--idle", "1 s", "-l", "60 s", "--ping", "udp", "-o", str(out)]
    talk = {"stderr": subprocess.STDOUT, "env": ENV}
    with (
        network() as net,
        net.start("server", *SOJOURN, "serve", "--bind", SERVER, **talk) as program,
    ):
        serving = Serving(program)
        with net.start("client", *SOJOURN, *asked, env=ENV) as client:
            serving.wait_for_a_client()
            time.sleep(IN_THE_DOWNLOAD)
            yield serving, client


def test_ctrl_c_keeps_the_phases_that_were_finished(tmp_path: Path) -> None:
    with in_its_download(tmp_path / "cut") as (_, client):
        client.send_signal(signal.SIGINT)
        out, err = client.communicate(timeout=120)
    assert client.returncode == 130, err
    assert "interrupted" in err
    assert "Traceback" not in err
    assert "download (cut short)" in out
    run = Run.open(tmp_path / "cut")
    assert [(phase.name, phase.complete) for phase in run.meta.phases] == [
        ("idle", True),
        ("download", False),
    ]


def test_a_server_that_vanishes_leaves_a_partial_result(tmp_path: Path) -> None:
    with in_its_download(tmp_path / "half") as (serving, client):
        serving.program.kill()
        out, err = client.communicate(timeout=120)
    assert client.returncode == 1, err
    assert "ended early" in err
    assert "download (cut short)" in out
    assert Run.open(tmp_path / "half").meta.phases[0].complete


def killed_when(folder: Path, phases: int, *asked: str) -> Run:
    """The Run of a measurement that is killed as soon as `phases` phases are in its folder."""
    command = [*SOJOURN, *asked, "-o", str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENV) as client:
        assert client.stderr is not None
        while client.poll() is None:
            if (folder / "meta.json").exists():
                run = Run.open(folder)
                if run.seeds and len(run.meta.phases) >= phases:
                    break
            time.sleep(0.02)
        client.kill()
        err = client.stderr.read()
    assert client.returncode == -signal.SIGKILL, err
    return Run.open(folder)


def test_a_killed_measurement_leaves_a_run_of_the_finished_phases(
    say: Say, port: str, tmp_path: Path
) -> None:
    load = ("--phase", "idle", "--phase", "download", "--idle", "600ms", "-l", "60 s")
    asked = ("measure", "127.0.0.1", "--port", port, "--ping", "udp", *load)
    run = killed_when(tmp_path / "cut", 1, *asked)
    assert [(phase.name, phase.complete) for phase in run.meta.phases] == [("idle", True)]
    run.check_sums()
    assert run.table("probe").height > 5
    assert run.meta.facts["1"]["outcome"] == "partial"
    # The title has 4 streams, whichever phase was the last.
    assert re.search(r"4 streams \w+, ", run.meta.title)
    assert say("report", "cut", "-o", "page.html").code == 0
    assert "sojourn was killed, or is measuring still" in (tmp_path / "page.html").read_text()
    assert say("compare", "cut", "cut").code == 0
    assert "already holds a Run" in say(*asked, "-o", "cut").err


@pytest.mark.long
def test_a_long_phase_is_kept_up_to_its_last_samples(port: str, tmp_path: Path) -> None:
    load = ("--phase", "idle", "--phase", "both", "--idle", "1 s", "-l", "120 s")
    run = killed_when(
        tmp_path / "cut", 2, "measure", "127.0.0.1", "--port", port, "--ecn", "--ping", "udp", *load
    )
    idle, both = run.meta.phases
    assert (idle.complete, both.complete) == (True, False)
    assert both.end_ns - both.start_ns > 10 * 10**9
    flow = run.table("flow", 1)
    assert set(flow["flow"]) == {
        f"both-{way}-{number}" for way in ("down", "up") for number in (1, 2, 3, 4)
    }
    assert flow["t_ns"].max() > both.end_ns - 10**9
    facts = run.meta.facts["1"]
    assert all(one["bps"] > 10**6 for one in facts["goodput"])
    assert facts["marks"]["answered"]


def test_the_default_folder_is_locked_before_anything_is_measured(
    say: Say, port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sojourn_live.measure import session

    seen: list[list[str]] = []
    measure = session.measure

    def watched(*arguments: Any) -> session.Session:
        seen.append(sorted(path.name for path in (tmp_path / "runs").iterdir()))
        return measure(*arguments)

    monkeypatch.setattr(session, "measure", watched)
    (tmp_path / "runs" / "measure-127.0.0.1").mkdir(parents=True)
    said = say("measure", "127.0.0.1", "--port", port, *QUICK, "--phase", "idle")
    assert said.code == 0, said.err
    assert seen == [["measure-127.0.0.1", "measure-127.0.0.1-2"]]
    assert "wrote runs/measure-127.0.0.1-2" in said.err
    # A failed measurement leaves no folder.
    assert say("measure", "127.0.0.1", "--port", "1", *QUICK).code == 2
    assert len(list((tmp_path / "runs").iterdir())) == 2


def test_a_folder_is_locked_before_anything_is_measured(
    say: Say, port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sojourn_live.measure import session

    asked = ("measure", "127.0.0.1", "--port", port, *QUICK, "--phase", "idle", "-o", "home")
    others: list[CliResult] = []
    measure = session.measure

    def beside(*arguments: Any) -> session.Session:
        monkeypatch.setattr(session, "measure", measure)
        rpm = ("rpm", "measure", "127.0.0.1:1", "-o", "home", "--force")
        others.extend((say(*asked), say(*asked, "--force"), say(*rpm)))
        return measure(*arguments)

    for force in ((), ("--force",)):
        monkeypatch.setattr(session, "measure", beside)
        said = say(*asked, *force)
        assert said.code == 0, said.err
    assert [other.code for other in others] == [2] * len(others)
    taken = "another process is measuring into home"
    held = "home already holds a Run"
    for other, why in zip(others, (taken, taken, taken, held, taken, taken), strict=True):
        assert why in other.err


@pytest.mark.parametrize("left", ["", "# A measurement of a live", MEASUREMENT + "\ntitle = 'x'\n"])
def test_a_measurement_killed_at_its_start_leaves_no_run(
    say: Say, tmp_path: Path, left: str
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "scenario.toml").write_text(left)
    for verb in (["measure"], ["rpm", "measure"]):
        # It then tries a server that does not exist.
        said = say(*verb, "127.0.0.1:1", "-o", "home")
        assert said.code == 2
        assert "home" not in said.err


def test_a_scenario_of_the_user_is_not_overwritten(say: Say, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text("title = 'mine'\n")
    for verb in (["measure"], ["rpm", "measure"]):
        said = say(*verb, "127.0.0.1:1", "-o", ".", "--force")
        assert "holds files that are not a Run" in said.err
    assert (tmp_path / "scenario.toml").read_text() == "title = 'mine'\n"


# ----------------------------------------------------------------------------- a known bottleneck


@pytest.mark.long
def test_the_measured_buffer_depth_is_right_and_the_cure_is_visible(
    say: Say, tmp_path: Path
) -> None:
    """The router's bfifos are 125 kB at 5 Mbit/s up and 250 kB at 20 Mbit/s down; then short
    ones."""
    with (
        network() as net,
        net.start("server", *SOJOURN, "serve", "--bind", SERVER, env=ENV) as serving,
    ):
        assert serving.stdout is not None
        assert SERVER in serving.stdout.readline()
        asked = [*SOJOURN, "measure", SERVER, "-l", "6 s", "--idle", "2 s", "--cc", "cubic"]
        try:
            net.run("client", *asked, "-o", str(tmp_path / "before"), env=ENV, timeout=120)
        except AssertionError as error:
            if "cubic" not in str(error):
                raise
            pytest.skip("this kernel has no cubic")
        net.limit("up", Bottleneck(SLOW_UP.bps, 10_000))
        net.limit("down", Bottleneck(SLOW_DOWN.bps, 40_000))
        failing = net.run(
            "client",
            *asked,
            "-o",
            str(tmp_path / "after"),
            "--fail-above",
            "5ms",
            env=ENV,
            timeout=120,
            check=False,
        )
    assert failing.returncode == 1
    assert "(--fail-above)" in failing.stderr

    from sojourn_live.measure import findings

    found = findings.find(Run.open(tmp_path / "before"))
    depth = {buffer.direction: buffer for buffer in found.buffers}
    assert depth["up"].bytes == pytest.approx(SLOW_UP.limit_bytes, rel=0.1)
    assert depth["up"].ms == pytest.approx(SLOW_UP.longest_wait_ms, rel=0.1)
    assert depth["down"].bytes == pytest.approx(SLOW_DOWN.limit_bytes, rel=0.1)
    assert depth["down"].ms == pytest.approx(SLOW_DOWN.longest_wait_ms, rel=0.1)
    places = {place.phase: place for place in found.places}
    # Uploads wait behind the router. Downloads wait before the client, and so do the router's
    # answers.
    assert (places["upload"].after, places["upload"].nearest is not None) == ("gateway", True)
    assert places["download"].nearest == "gateway"

    said = say(
        "compare", tmp_path / "before", tmp_path / "after", "-o", "cured", "--figures", "png"
    )
    assert said.code == 0
    assert 'is shorter in "after" than in "before"' in " ".join(said.out.split())
    assert (tmp_path / "cured" / "report.html").is_file()
    assert (tmp_path / "cured" / "figures" / "cdf-ping-upload.png").is_file()


# ----------------------------------------------------------------------- before and after on disk


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pair")
    later = 1_800_000_600 * 10**9
    for name, line in (
        ("before", Line()),
        ("after", Line(up_buffer=10_000, seed=2, zero_ns=later)),
    ):
        synthetic_live.run(folder / name, line)
    return [folder / "before", folder / "after"]


def test_compare_accepts_measurements(say: Say, pair: list[Path], tmp_path: Path) -> None:
    said = say("compare", *pair)
    assert said.code == 0
    assert "before: before" in said.out
    assert "better" in said.out
    assert list(tmp_path.iterdir()) == []
    whole = json.loads(say("compare", *pair, "--json").out)
    assert whole["comparisons"][0]["after"] == "after"
    several = json.loads(say("compare", *pair, pair[0], "--json").out)
    assert [one["before"] for one in several["comparisons"]] == ["before", "before"]
    assert [one["after"] for one in several["comparisons"]] == ["after", "before, again"]


def test_compare_accepts_runs_of_the_simulator(say: Say, tmp_path: Path) -> None:
    synthetic.pair(tmp_path)
    said = say("compare", tmp_path / "0", tmp_path / "1")
    assert said.code == 0
    assert "fq_codel wins. Against pfifo: ping RTT p95 from" in said.out
    assert "compared seed by seed" in said.out
    assert "Welch" not in said.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("{0}",), "is one Run"),
        (("{0}", "nowhere"), "nowhere is not the folder of a Run"),
        (("{0}", "{1}", "--seeds", "3"), "Runs are compared as they are"),
        (("{0}", "{1}", "--figures", "png"), "needs -o DIR"),
    ],
)
def test_runs_that_can_not_be_compared_are_refused(
    say: Say, pair: list[Path], arguments: tuple[str, ...], says: str
) -> None:
    said = say("compare", *(word.format(*pair) for word in arguments))
    assert said.code == 2
    assert says in said.err
    assert "Traceback" not in said.err


def test_export_writes_by_the_files_ending(say: Say, pair: list[Path], tmp_path: Path) -> None:
    said = say(
        "export", pair[0], "-o", "x.flent.gz", "-o", "x.csv", "-o", "x.json", "--phase", "upload"
    )
    assert said.code == 0
    assert json.loads((tmp_path / "x.json").read_text())["samples"]["value"]
    assert say("import", "x.flent.gz").code == 0
    assert Run.open(tmp_path / "runs" / "x").meta.engine == "flent"
    both = say("compare", pair[0], tmp_path / "runs" / "x")
    assert both.code == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("export", "{0}", "-o", "x.doc"),
            "hint: use one of .flent.gz, .flent, .csv, .json, .pcapng\n",
        ),
        (("export", "{0}", "-o", "no/where/x.csv"), "is not a folder"),
        (("export", "{0}", "-o", "x.flent.gz", "--phase", "idle"), "has no load 'idle'"),
        (
            ("export", "{0}", "-o", "x.flent.gz", "--test", "rrul", "--phase", "upload"),
            "can't be exported as rrul",
        ),
        (("export", "nowhere", "-o", "x.csv"), "is not a folder"),
        (("import", "nowhere.flent.gz"), "there is no file nowhere.flent.gz"),
        (("measure", "127.0.0.1", "--flent", "x.txt"), "flent does not open such a name"),
        (("measure", "127.0.0.1", "--length", "10"), 'hint: write "10 s"'),
        (("measure", "127.0.0.1", "--idle", "10"), 'hint: write "10 s"'),
        (("measure", "127.0.0.1", "--interval", "10"), 'hint: write "10 ms"'),
        (("measure", "127.0.0.1", "--fail-above", "100"), 'hint: write "100 ms"'),
        (("measure", "127.0.0.1", "--phase", "sideways"), "sideways"),
        (("measure", "127.0.0.1", "--port", "1"), "no server listens"),
        (("measure", "127.0.0.1:1"), "no server listens at 127.0.0.1:1"),
        (("measure", "[::1]:1"), "[::1]:1"),
        (("measure", "127.0.0.1:1", "--port", "2"), "HOST has port 1"),
        (("measure", "127.0.0.1:port"), "'port' is not a port"),
        (("measure", "127.0.0.1", "--every", "30s"), "is too short: one measurement takes 40 s"),
        (
            ("measure", "127.0.0.1", "--every", "1h", "--json"),
            "--json and --every can't be combined",
        ),
        (("measure", "127.0.0.1", "--times", "2"), "--times needs --every"),
        (("measure", "127.0.0.1", "--secret", "short"), "at least 8 characters"),
        (("measure", "127.0.0.1", "--secret", "@nowhere"), "can't read nowhere"),
        (("history", "nowhere"), "contains no measurements"),
    ],
)
def test_wrong_input_gives_an_error_with_a_hint(
    say: Say, pair: list[Path], arguments: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    said = say(*(word.format(*pair) for word in arguments))
    assert said.code == 2
    assert says in said.err
    assert "Traceback" not in said.err
    assert not list(tmp_path.glob("x.*"))
