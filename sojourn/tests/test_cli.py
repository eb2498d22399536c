"""The command line from a user's view: data on stdout, messages on stderr, exit status, and clear
messages for wrong input."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Never

import pytest
from shortened import undrawn
from small_run import small_run
from tree import ROOT

from sojourn.cli import status, text, work
from sojourn.engine import Progress, namespaces, runs
from sojourn.engine.kernel import guest
from sojourn.engine.kernel.guest import guests
from sojourn.engine.kernel.guest.endings import GuestRunError
from sojourn.engine.protocol import Outcome
from sojourn.engine.sim import Simulator
from sojourn.records import Run, RunError
from sojourn.scenario.realised import Realised

SCENARIO = """
title = "Two uploads and a ping"
duration = "4 s"
warmup = "1 s"
[bottleneck]
delay = "5 ms"
up.rate = "4 Mbit/s"
down.rate = "20 Mbit/s"
[[flow]]
kind = "bulk"
count = 2
direction = "up"
rtt = "30 ms"
[[flow]]
kind = "ping"
"""
RANDOM = ("--set", "flow.bulk.start=uniform 0 s .. 1 s")
"""Makes the seeds differ."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scenario, which is the working folder."""
    (tmp_path / "home.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


_undrawn = pytest.fixture(undrawn)


@pytest.fixture
def _page_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison writes its page, but no figures beside it."""
    monkeypatch.setattr(work, "draw", lambda *_: 0)


class Result:
    """The output of a command and its exit status."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def say(home: Path, capsys: pytest.CaptureFixture[str]) -> "Command":
    return Command(capsys)


class Command:
    """Calls the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *arguments: str) -> Result:
        self.capsys.readouterr()
        code = status(arguments)
        captured = self.capsys.readouterr()
        return Result(code, captured.out, captured.err)


def python(arguments: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, **options
    )  # type: ignore[call-overload,no-any-return]


# --------------------------------------------------------------------------------------- start-up


def test_importing_sojourn_imports_no_slow_module() -> None:
    program = "import sojourn, sys; assert not {'numpy', 'polars', 'msgspec', 'click'} & set(sys.modules); sojourn.Run"
    done = python(["-c", program])
    assert done.returncode == 0, done.stderr


def test_python_m_sojourn_is_sojourn() -> None:
    done = python(["-m", "sojourn", "--help"])
    assert done.returncode == 0
    assert "compare" in done.stdout


def test_every_public_name_is_there() -> None:
    import sojourn

    for name in sojourn.__all__:
        assert getattr(sojourn, name).__module__.startswith("sojourn."), name
    assert set(sojourn.__all__) <= set(dir(sojourn))
    assert re.match(r"\d+\.\d+", sojourn.__version__)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="has no attribute 'rum'"):
        sojourn.rum  # type: ignore[attr-defined]  # noqa: B018


# -------------------------------------------------------------------------------------------- run


def test_run_prints_a_table_and_keeps_a_run(say: Command, home: Path) -> None:
    result = say("run", "home.toml")
    assert result.code == 0
    assert "Two uploads and a ping" in result.out
    assert "pfifo limit 1000" in result.out
    assert "wrote runs/home" in result.err
    assert Run.open(home / "runs" / "home").seeds == (1,)


def test_a_second_run_gets_a_new_folder_unless_one_is_named(say: Command, home: Path) -> None:
    say("run", "home.toml")
    say("run", "home.toml")
    assert sorted(path.name for path in (home / "runs").iterdir()) == ["home", "home-2"]
    assert say("run", "home.toml", "-o", "runs/home").code == 0, "the Run is complete"
    other = ("run", "home.toml", "--seed", "7", "-o", "runs/home")
    assert say(*other).code == 2
    assert say(*other, "--force").code == 0


def test_json_prints_one_object_alone_on_stdout_and_keeps_nothing(say: Command, home: Path) -> None:
    result = say("run", "home.toml", "--json", "--seeds", "2")
    output = json.loads(result.out)
    assert output["seeds"] == [1, 2]
    assert [run["seed"] for run in output["runs"]] == [1, 2]
    assert output["summary"]["queues"][1]["utilisation"]["mean"] > 0.5
    assert not (home / "runs").exists()


def test_a_sweep_prints_one_object_with_its_variants(say: Command, home: Path) -> None:
    (home / "sweep.toml").write_text(
        SCENARIO + '[sweep]\n"bottleneck.qdisc" = ["pfifo", "codel"]\n'
    )
    output = json.loads(say("run", "sweep.toml", "--json", "-o", "out").out)
    assert [variant["label"] for variant in output["variants"]] == ["pfifo", "codel"]
    assert [run.name for run in Run.find(home / "out")] == ["pfifo", "codel"]


def test_the_options_seed_seeds_and_set_change_the_run(say: Command, home: Path) -> None:
    say("run", "home.toml", "-o", "out", "--seed", "7", "--seeds", "2", "--set", "bottleneck.up.rate=3 Mbit/s",
        "--set", "flow.bulk.count=1", "--set", "bottleneck.qdisc=codel")  # fmt: skip
    meta = Run.open(home / "out").meta
    assert meta.seeds == (7, 8)
    assert meta.link("up").rate_bps == 3_000_000
    assert meta.link("up").qdisc == "codel"
    assert [flow.kind for flow in meta.flows] == ["bulk", "ping"]


def test_several_seeds_show_their_interval(say: Command) -> None:
    assert "±" in say("run", "home.toml", "--seeds", "3", "-q", *RANDOM).out
    assert "±" not in say("run", "home.toml", "-q").out.replace("mean ±95 % interval", "")


@pytest.mark.usefixtures("_page_alone")
def test_equal_seeds_are_one_sample_and_a_hint_says_how_to_make_them_differ(
    say: Command,
) -> None:
    stdout = say("run", "home.toml", "--seeds", "3", "-q").out
    assert "3 seeds, one sample" in stdout
    assert "±" not in stdout
    assert 'start = "uniform 0 s .. 1 s"' in stdout
    output = json.loads(say("run", "home.toml", "--seeds", "3", "--json").out)
    assert (output["seeds"], output["samples"]) == ([1, 2, 3], 1)
    assert output["summary"]["queues"][1]["sojourn_ms"]["mean"]["ci95"] is None
    assert (
        json.loads(say("run", "home.toml", "--seeds", "3", "--json", *RANDOM).out)["samples"] == 3
    )
    stdout = say("compare", "home.toml", "pfifo", "codel", "--seeds", "3", "-o", "out", "-q").out
    assert "3 seeds with the same result: one sample" in stdout
    assert "No winner" in stdout
    assert 'start = "uniform 0 s .. 1 s"' in stdout
    assert "±" not in stdout
    assert "*" not in stdout
    assert "All 3 seeds gave the same Run" in Path("out/report.html").read_text()


def test_transfers_and_late_packets_are_in_the_table_of_a_run(
    say: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    more = '[[flow]]\nkind = "transfers"\nname = "page"\nsize = "20 kB"\npause = "200 ms"\ndirection = "up"\n'
    more += '[[flow]]\nkind = "video"\nname = "call"\nrate = "200 kbit/s"\ndirection = "up"\n'
    (home / "more.toml").write_text(SCENARIO + more)
    stdout = say("run", "more.toml", "-q").out
    assert re.search(r"idle +done +in mean ms +p95 ms +later than 150 ms %", stdout)
    groups = {
        group["name"]: group
        for group in json.loads(say("run", "more.toml", "--json").out)["runs"][0]["groups"]
    }
    assert groups["page"]["transfers"]["completed"] > 0
    assert groups["call"]["late_rate"] > 0.5, "4 Mbit/s behind 1000 packets"
    assert "late_rate" not in groups["bulk"]


@pytest.mark.usefixtures("_undrawn")
def test_a_comparison_fits_a_terminal(
    say: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("compare", "home.toml", "pfifo", "codel", "--seeds", "3", "-q", *RANDOM, "-o", "out")
    for columns, least in ((80, 60), (200, 90)):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = say(*words).out.splitlines()
        assert least < max(map(len, lines)) <= min(columns, 120)


def test_quiet_prints_nothing_on_stderr(say: Command) -> None:
    assert say("run", "home.toml", "-q").err == ""


@pytest.mark.usefixtures("_undrawn")
@pytest.mark.parametrize(("asked", "suffixes"), [("svg", {".svg"}), ("svg,.PDF", {".svg", ".pdf"})])
def test_figures_are_drawn_on_request_in_the_given_formats(
    say: Command, home: Path, asked: str, suffixes: set[str]
) -> None:
    assert say("run", "home.toml", "-o", "out", "--figures", asked).code == 0
    assert {path.suffix for path in (home / "out" / "figures").iterdir()} == suffixes


# ------------------------------------------------------------------------------ scenarios and notes


def test_doubtful_settings_are_noted_once_on_stderr(say: Command) -> None:
    doubtful = ("--set", "bottleneck.qdisc=codel target 5")
    for result in (
        say("run", "home.toml", *doubtful),
        say("run", "home.toml", "--json", *doubtful),
    ):
        assert result.code == 0
        assert result.err.count("note: bottleneck.qdisc: target 5 is 5 us") == 1
        assert "hint: write target 5ms" in result.err
    assert json.loads(result.out)["summary"]
    assert say("run", "home.toml", "-q", *doubtful).err == ""
    assert (
        say("check", "home.toml", *doubtful).out.count("note: bottleneck.qdisc: target 5 is 5 us")
        == 1
    )


def test_a_comparison_notes_what_is_doubtful_about_its_contenders(say: Command, home: Path) -> None:
    (home / "odd.toml").write_text(
        SCENARIO.replace('delay = "5 ms"', 'delay = "5 ms"\nqdisc = "codel target 7"')
    )
    result = say("compare", "odd.toml", "pfifo", "codel target 5", "--json")
    assert result.err.count("note: bottleneck.qdisc: target 5 is 5 us") == 1
    assert "target 7" not in result.err, "the compared disciplines replace it"


def test_a_scenario_is_read_from_stdin(
    say: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def given(content: str) -> Result:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
            return say("run", "-")

    done = given(SCENARIO)
    assert done.code == 0, done.err
    assert Run.open(home / "runs" / "stdin").meta.title == "Two uploads and a ping"
    wrong = given("title: x")
    assert wrong.code == 2
    assert wrong.err.startswith("error: stdin:1:8: not TOML")


def test_an_example_runs_by_its_name(say: Command, home: Path) -> None:
    assert say("run", "downloads", "--set", "duration=4 s", "--set", "warmup=1 s").code == 0
    assert Run.find(home / "runs" / "downloads")
    result = say("compare", "home", "pfifo")
    assert (result.code, result.err.splitlines()[-1]) == (2, "hint: write home.toml")


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "home.toml", "--set", "bottleneck.up.rate=5", "Mbit/s"),
        ("check", "home.toml", "--set", "duration=5", "s"),
        ("run", "home.toml", "--set", "bottleneck.qdisc=codel", "target", "5ms"),
        ("compare", "home.toml", "pfifo", "--set", "bottleneck.up.rate=5", "Mbit/s"),
        ("compare", "home.toml", "--set", "bottleneck.qdisc=codel", "limit", "5"),
    ],
)
def test_a_setting_without_quotes_gets_a_hint_to_add_them(
    arguments: tuple[str, ...], say: Command
) -> None:
    result = say(*arguments)
    assert result.code == 2
    if arguments[0] != "check":
        change = arguments[arguments.index("--set") + 1]
        assert (
            f"quote the whole: --set '{change} {arguments[arguments.index(change) + 1]}'"
            in result.err
        )


def test_an_error_of_a_contender_is_reported_once(say: Command) -> None:
    result = say("compare", "home.toml", "pfifo", "codell")
    assert result.code == 2
    assert result.err.count("codell") == 1
    assert "did you mean codel?" in result.err


# ------------------------------------------------------------------------------------------ check


def test_check_reports_what_would_run_and_runs_nothing(say: Command, home: Path) -> None:
    (home / "sweep.toml").write_text(
        SCENARIO + '[sweep]\n"bottleneck.qdisc" = ["pfifo", "codel", "red"]\n'
    )
    result = say("check", "sweep.toml", "--seeds", "5")
    assert (result.code, result.err) == (0, "")
    for words in (
        "Two uploads and a ping\n4 s, the first 1 s left out as warm-up; seeds 1-5\n",
        "3 variants; the first one is shown below:\n  bottleneck.qdisc: pfifo, codel, red\n",
        "up    4 Mbit/s   5 ms   pfifo limit 1000\n",
        "bulk   2  bulk cubic  up    30 ms  0 s\n",
        "sim: can run it\n",
        "15 runs, about ",
    ):
        assert words in result.out
    assert [path.name for path in home.iterdir() if path.suffix != ".toml"] == []


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        (
            ("home.toml", "fq_codel", "target", "5"),
            "'target' is not a queue",
            '"fq_codel target 5"',
        ),
        (
            ("home.toml", "codel target", "5ms", "pfifo"),
            "'5ms' is not a queue",
            '"codel target 5ms"',
        ),
        (
            ("home.toml", "pfifo", "codel", "limit", "9", "red"),
            "'limit' is not a queue",
            '"codel limit 9"',
        ),
        (
            ("home.toml", "other.toml"),
            "home.toml is a scenario, so the other arguments must be queue disciplines",
            "RUN RUN",
        ),
        (
            ("home.toml", "folder"),
            "home.toml is a scenario, so the other arguments must be queue disciplines",
            "RUN RUN",
        ),
        (
            ("folder", "fq_codel"),
            "folder is one, so the other arguments must be Runs too",
            "compare SCENARIO QDISC",
        ),
    ],
)
def test_the_error_for_a_scenario_that_can_t_be_compared_says_what_to_write(
    say: Command, home: Path, words: tuple[str, ...], problem: str, hint: str
) -> None:
    (home / "folder").mkdir()
    result = say("compare", *words)
    assert (result.code, result.out) == (2, "")
    error, advice = result.err.splitlines()
    assert problem in error
    assert hint in advice


@pytest.mark.parametrize("table", ["drops", "flows", "queue"])
def test_a_run_with_a_wrong_byte_in_any_table_is_not_compared(
    say: Command, home: Path, table: str
) -> None:
    for name in ("before", "after"):
        assert say("run", "home.toml", "-o", name, "-q").code == 0
    file = home / "after" / "seed-1" / f"{table}.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    result = say("compare", "before", "after")
    assert (result.code, result.out) == (2, "")
    assert f"{table}.parquet can't be read: its SHA-256" in result.err
    file.unlink()
    assert f"{table}.parquet is missing" in say("compare", "before", "after").err


def test_a_swept_key_that_is_set_is_no_longer_swept(say: Command, home: Path) -> None:
    (home / "sweep.toml").write_text(
        SCENARIO + '[sweep]\n"bottleneck.up.rate" = ["2 Mbit/s", "3 Mbit/s"]\n'
    )
    swept = json.loads(say("compare", "sweep.toml", "pfifo", "codel", "--json").out)
    assert len(swept["variants"]) == 4
    settled = ("--set", "bottleneck.up.rate=2 Mbit/s")
    assert (
        len(
            json.loads(say("compare", "sweep.toml", "pfifo", "codel", "--json", *settled).out)[
                "variants"
            ]
        )
        == 2
    )
    assert json.loads(say("check", "sweep.toml", "--json", *settled).out)["variants"] == []
    assert "variants" not in json.loads(say("run", "sweep.toml", "--json", *settled).out)


def test_the_keys_of_links_and_flows_in_check_are_documented(say: Command) -> None:
    page = (ROOT / "docs" / "output.md").read_text()
    output = json.loads(say("check", "home.toml", "--json").out)
    for what in ("links", "flows"):
        (documented,) = re.findall(
            rf"^- `{what}\[\]`.*?\{{(.*?)\}}", page, re.MULTILINE | re.DOTALL
        )
        words = set(re.findall(r"\w+", documented))
        assert [key for key in output[what][0] if key not in words] == []


def test_check_reports_which_seed_s_draws_it_shows(say: Command) -> None:
    assert "of seed 7" in say("check", "home.toml", "--seed", "7", *RANDOM).out
    assert "draws" not in say("check", "home.toml", "--seed", "7").out


def test_check_reports_which_engines_can_run_the_scenario_and_why_others_can_not(
    say: Command,
) -> None:
    wide = say("check", "home.toml", "--set", "bottleneck.qdisc=fq orphan_mask 131071")
    assert wide.code == 0, "Linux can run it"
    assert (
        "sim: can't run it\n"
        "  link 'down': qdisc and link 'up': qdisc: the simulator has no fq orphan_mask of more than 16 bits, Linux has"
    ) in wide.out
    assert "\nkernel: can run it" in wide.out
    cake = say("check", "home.toml", "--set", "bottleneck.qdisc=cake ack-filter")
    assert "sim: can run it\nkernel: can run it" in cake.out
    adt = say("check", "home.toml", "--set", "bottleneck.qdisc=adt limit 500")
    assert "sim: can run it\nkernel: can't run it\n" in adt.out
    wide_too = "bottleneck.qdisc=fq orphan_mask 131071"
    changes = ("--set", wide_too, "--set", "flow.bulk.congestion=ledbat")
    assert say("check", "home.toml", *changes).code == 1, "no engine can run it"
    wrong = say("check", "home.toml", "--set", "bottleneck.qdisc=codell")
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean codel?" in wrong.err


def test_check_asks_this_host_s_kernel_for_what_the_scenario_needs(
    say: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(words: str) -> str | None:
        return "Error: Specified qdisc kind is unknown" if "codel" in words else None

    monkeypatch.setattr(namespaces, "way", lambda: namespaces.ROOT)
    monkeypatch.setattr(namespaces, "_refusal", lambda _, line: refuse(line))
    monkeypatch.setattr(namespaces, "_unknown", lambda *_: None)
    output = json.loads(say("check", "home.toml", "--json", "--set", "bottleneck.qdisc=codel").out)
    (not_ready,) = [fit["not_ready"] for fit in output["engines"] if fit["engine"] == "netns"]
    assert not_ready.startswith(
        "link 'down': qdisc: codel: Error: Specified qdisc kind is unknown; "
    )
    result = say("check", "home.toml", "--set", "bottleneck.qdisc=codel")
    assert (
        "\nnetns: can run it, once it is ready here (link 'down': qdisc: codel: Error" in result.out
    )
    assert "\nnetns: can run it\n" in say("check", "home.toml").out


def test_the_estimate_of_check_is_near_the_real_cost(say: Command, home: Path) -> None:
    scenarios = {
        "home.toml": ("--set", "duration=6 s"),
        "downloads": ("--set", "duration=10 s"),
        "web": ("--set", "duration=20 s"),
        "reverse-traffic": ("--set", "duration=10 s"),
    }
    for name, changes in scenarios.items():
        foreseen = json.loads(say("check", name, "--json", "--seeds", "1", *changes).out)
        done = json.loads(
            say("run", name, "--json", "-o", f"out/{name}", "--seeds", "1", *changes).out
        )
        packets = sum(one["summary"]["packets"]["mean"] for one in done.get("variants", [done]))
        assert foreseen["expected"]["runs"] == len(done.get("variants", [done]))
        assert 0.5 < foreseen["expected"]["packets"] / packets < 2, name
        assert [link["name"] for link in foreseen["links"]] == ["down", "up"]
        written = sum(path.stat().st_size for path in (home / "out" / name).rglob("*.parquet"))
        assert written < foreseen["expected"]["table_bytes"]


# --------------------------------------------------------------------- wrong commands and options


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (("run", "home.toml", "--sed", "4"), "there is no option --sed", "did you mean --se"),
        (("run", "home.toml", "--duration", "10s"), "there is no option --duration", "--set duration=VALUE"),
        (("run", "home.toml", "--cc", "bbr"), "there is no option --cc", "--set flow.*.congestion=VALUE"),
        (("run", "home.toml", "-v"), "there is no option -v", "-q turns it off"),
        (("run", "home.toml", "--output", "x"), "there is no option --output", "-o DIR"),
        (("run",), "missing argument 'SCENARIO...'", "sojourn run --help"),
        (("run", "home.toml", "--seeds", "0"), "--seeds: 0 is not in the range", "sojourn run --help"),
        (("run", "home.toml", "--seeds", "x"), "--seeds: 'x' is not a whole number", "write one from 1 to 10000"),
        (("run", "home.toml", "-e", "ns3"), "-e / --engine: 'ns3' is not one of", "sojourn run --help"),
        (("run", "home.toml", "--set", "x"), "--set: 'x' is not KEY=VALUE", "--set KEY=VALUE"),
        (("run", "home.toml", "--figures", "svg,gif"), "--figures: 'gif' is not one of", "sojourn run --help"),
        (("list", "scenarois"), "'scenarois' is not one of", "did you mean scenarios?"),
        (("rum", "home.toml"), "there is no command 'rum'", "did you mean run?"),
        (("validate", "home.toml"), "there is no command 'validate'", "sojourn check SCENARIO"),
        (("plot", "runs"), "there is no command 'plot'", "sojourn report RUN"),
        (("xyzzy",), "there is no command 'xyzzy'", "sojourn --help"),
        (("--sed",), "there is no option --sed", "sojourn --help"),
    ],
)  # fmt: skip
def test_a_misspelt_command_gives_an_error_and_a_hint(
    arguments: tuple[str, ...], error: str, hint: str, say: Command
) -> None:
    result = say(*arguments)
    assert (result.code, result.out) == (2, "")
    lines = result.err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"error: {error}")
    assert lines[1].startswith("hint: ")
    assert hint in lines[1]


def test_help_and_version_are_commands_as_well(say: Command) -> None:
    assert say("help").out == say("--help").out
    assert say("help", "run").out == say("run", "--help").out
    assert say("version").out == say("--version").out
    assert say("help", "xyzzy").code == 2


# ---------------------------------------------------------------------------------------- compare


def test_compare_writes_figures_and_a_page(say: Command, home: Path) -> None:
    result = say("compare", "home.toml", "pfifo", "codel", "-o", "out")
    assert result.code == 0, result.err
    drawn = list((home / "out" / "figures").iterdir())
    assert {"timeline-codel.svg", "cdf-ping.svg", "bars.svg"} < {file.name for file in drawn}
    assert all("<svg" in file.read_text() for file in drawn)
    assert "<html" in (home / "out" / "report.html").read_text()
    assert "out/report.html" in result.err


@pytest.mark.usefixtures("_undrawn")
def test_compare_shows_who_wins(say: Command, home: Path) -> None:
    result = say(
        "compare", "home.toml", "pfifo", "red", "fq_codel", "--qdisc", "codel target 20ms", "-o", "out",
        "--seeds", "3", *RANDOM,
    )  # fmt: skip
    assert result.code == 0, result.err
    rows = {
        name: line
        for line in result.out.splitlines()
        for name in ("pfifo", "red", "fq_codel")
        if line.startswith(name + "  ")
    }
    assert set(rows) == {"pfifo", "red", "fq_codel"}
    assert "*" in rows["fq_codel"]
    assert "red: red limit" in result.out, "the words that a bare red became"
    assert re.search(
        r"fq_codel wins against each of the others. Against pfifo: ping RTT p95 from \d+ to \S+ ms",
        result.out,
    )
    assert max(map(len, result.out.splitlines())) <= 120
    assert [run.name for run in Run.find(home / "out")] == [
        "pfifo",
        "red",
        "fq_codel",
        "codel target 20ms",
    ]


def test_the_winners_are_bold_on_a_terminal() -> None:
    rows = [
        ["cake", "20.9 ±0.0 ", "8.07 ±0.13 "],
        ["codel", "36.5 ±1.9*", "8.36 ±0.04 "],
        ["a * b", "1 ", "185*"],
    ]
    words = text.table(["users", "ping mean ms ", "up "], rows)
    program = (
        f"from sojourn.cli import contest_text, work; work.show({words!r}, bold=contest_text.BEST)"
    )
    command = [sys.executable, "-c", program]
    env = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}

    def seen(**more: str) -> str:
        ours, theirs = os.openpty()
        subprocess.run(command, stdout=theirs, env={**env, "TERM": "xterm", **more}, check=True)
        os.close(theirs)
        with os.fdopen(ours, "rb") as terminal:
            return terminal.read1(100_000).decode().replace("\r\n", "\n")

    bold = words.replace("36.5 ±1.9*", "\x1b[1m36.5 ±1.9*\x1b[0m").replace(
        "185*", "\x1b[1m185*\x1b[0m"
    )
    assert seen() == f"{bold}\n"
    assert seen(NO_COLOR="1") == f"{words}\n"
    piped = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert piped.stdout == f"{words}\n"


@pytest.mark.usefixtures("_undrawn")
def test_compare_over_the_output_of_another_needs_force(say: Command) -> None:
    arguments = ("compare", "home.toml", "pfifo", "codel", "-o", "out", "-q")
    assert say(*arguments).code == 0
    arguments = (*arguments, "--seeds", "2")
    again = say(*arguments)
    assert again.code == 2
    assert "--force" in again.err
    assert say(*arguments, "--force").code == 0


def test_compare_prints_one_object_as_json(say: Command, home: Path) -> None:
    output = json.loads(say("compare", "home.toml", "pfifo", "codel", "--json").out)
    assert output["link"] == "up"
    assert "codel" in output["verdict"]
    [contest] = output["judgement"]["contests"]
    assert (contest["by"], contest["winner"]) == ("one sample", None)
    assert {row["key"] for row in contest["rows"]} >= {"ping_p95", "goodput", "sojourn_mean"}
    assert [variant["label"] for variant in output["variants"]] == ["pfifo", "codel"]
    assert sorted(path.name for path in home.iterdir()) == ["home.toml"]


# ----------------------------------------------------------------------------------- report, list


def test_report_writes_a_page_from_runs(say: Command, home: Path) -> None:
    for label in ("one", "two"):
        small_run(home / label, label=label)
    result = say("report", "one", "two", "-o", "page.html")
    assert result.code == 0, result.err
    page = (home / "page.html").read_text()
    assert "one" in page
    assert "two" in page


def test_list_prints_all_names(say: Command) -> None:
    everything = say("list").out
    for word in ("fq_codel", "cubic", "sim", "docsis"):
        assert word in everything
    controls = dict(
        reversed(line.rsplit(maxsplit=1)) for line in say("list", "congestion").out.splitlines()
    )
    assert [each.split() for each in map(controls.get, ("cubic", "ledbat", "bic"))] == [
        ["sim", "kernel"],
        ["sim"],
        ["kernel"],
    ]
    (prague,) = [line for line in say("list", "congestion").out.splitlines() if "prague" in line]
    assert prague == "sim kernel  prague  (a module of sojourn's: kernel-7.3)"
    engines = {
        line[12:].split()[0]: line[:10].split() for line in say("list", "qdiscs").out.splitlines()
    }
    assert [engines[kind] for kind in ("pfifo", "hhf", "adt", "cobalt")] == [
        ["sim", "kernel"],
        ["sim", "kernel"],
        ["sim"],
        ["sim"],
    ]
    assert "web  " in say("list", "scenarios").out, "the list does not depend on the working folder"


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ({}, "ready here: kernel-uml"),
        ({"uml": "no gcc"}, "ready here: kernel-qemu"),
        ({"uml": "no gcc", "qemu": "no qemu"}, "not ready here: uml: no gcc; qemu: no qemu"),
    ],
)
def test_the_engine_kernel_names_its_guest_on_this_host(
    reasons: dict[str, str], expected: str, say: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (guest, guests):
        monkeypatch.setattr(
            place, "ready", lambda name: guest.Status(name, None, reasons.get(name))
        )
    lines = say("list", "engines").out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("kernel "))
    assert lines[at + 1].strip() == expected


def test_the_examples_are_listed_by_their_titles(
    say: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert re.search("^home-uplink +A home line", say("list", "scenarios").out, flags=re.MULTILINE)


@pytest.mark.usefixtures("_page_alone")
def test_the_link_under_study_is_the_one_whose_disciplines_are_compared(
    say: Command, home: Path
) -> None:
    graph = """
    duration = "4 s"
    [[link]]
    name = "slow"
    from = "a"
    to = "b"
    rate = "1 Mbit/s"
    delay = "5 ms"
    [[link]]
    name = "fast"
    from = "b"
    to = "c"
    rate = "5 Mbit/s"
    delay = "5 ms"
    [[flow]]
    kind = "bulk"
    from = "a"
    to = "c"
    """
    (home / "graph.toml").write_text(graph)
    for qdiscs in (["pfifo", "codel"], ["codel"]):
        output = json.loads(say("compare", "graph.toml", *qdiscs, "--link", "fast", "--json").out)
        assert output["link"] == "fast"
    result = say("compare", "graph.toml", "pfifo", "codel", "--link", "fast", "-o", "out")
    assert "queue at fast" in result.out
    assert "fast" in (home / "out" / "report.html").read_text()


# ----------------------------------------------------------------------------------------- stdout


def test_a_closed_pipe_does_not_stop_what_is_kept_on_disk(home: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    program = (
        "from sojourn import report\nfrom sojourn.cli import main, work\nwork.draw = lambda *_: 0\n"
        "report.write = lambda _, file: file.touch() or file\nmain()"
    )
    words = ["compare", "home.toml", "pfifo", "codel", "-o", "out"]
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert done.returncode == 0, done.stderr
    assert (home / "out" / "report.html").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_features_of_linux_alone_are_refused_by_the_simulator_with_their_place(
    say: Command, home: Path
) -> None:
    changes = (
        "--set",
        "bottleneck.qdisc=fq orphan_mask 131071",
        "--set",
        "flow.0.congestion=bic",
    )
    result = say("run", "home.toml", *changes)
    assert result.code == 2
    assert (
        "link 'up': qdisc: the simulator has no fq orphan_mask of more than 16 bits" in result.err
    )
    assert "congestion: the simulator has no bic" in result.err
    assert result.err.count("16 bits, Linux has") == 1, "the message is not repeated per direction"
    hint = result.err.splitlines()[-1]
    assert hint.startswith("hint: run it with -e kernel")
    assert hint.endswith("; nearest in the simulator: cubic for bic")
    assert not (home / "runs").exists()


@pytest.mark.parametrize("arguments", [["run", "home.toml"], ["list"]])
def test_a_full_disk_behind_stdout_is_reported(arguments: list[str], home: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "sojourn", *arguments]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=home
        )
    assert done.returncode == 2
    assert "error: can't write to stdout" in done.stderr
    assert "Traceback" not in done.stderr


def test_figures_that_can_not_be_written_are_reported(say: Command, home: Path) -> None:
    (home / "out").mkdir()
    (home / "out" / "figures").write_text("not a folder")
    result = say("compare", "home.toml", "pfifo", "-o", "out")
    assert result.code == 2
    assert "error: can't draw into out/figures" in result.err
    assert "pfifo" in result.out
    assert len(Run.find(home / "out")) == 1


def test_access_links_have_no_rows_in_the_table_of_queues(say: Command, home: Path) -> None:
    (home / "access.toml").write_text(
        SCENARIO.replace("count = 2", 'count = 2\naccess = "100 Mbit/s"')
    )
    assert "/access" not in say("run", "access.toml").out
    queues = json.loads(say("run", "access.toml", "--json").out)["runs"][0]["queues"]
    assert "bulk.1/access" in [queue["link"] for queue in queues]


@pytest.mark.usefixtures("_undrawn")
def test_without_a_ping_that_was_answered_the_sojourn_times_are_compared(
    say: Command, home: Path
) -> None:
    ping = 'kind = "ping"\nstart = "3.999 s"'
    (home / "late.toml").write_text(SCENARIO.replace('kind = "ping"', ping))
    result = say("compare", "late.toml", "pfifo", "codel", "-o", "out", "--seeds", "3", *RANDOM)
    assert result.code == 0, result.err
    assert "codel wins. Against pfifo: sojourn mean from" in result.out
    assert not re.search(r"\b(inf|nan)\b", result.out)


def test_only_comparable_simulations_on_disk_compete(say: Command) -> None:
    slow = ("--set", "bottleneck.up.rate=2 Mbit/s")
    for name, more in {
        "bad": (),
        "good": ("--set", "bottleneck.qdisc=fq_codel"),
        "slow": slow,
    }.items():
        assert say("run", "home.toml", "-o", name, "--seeds", "3", *RANDOM, *more).code == 0
    result = say("compare", "bad", "good")
    assert result.code == 0, result.err
    assert "3 seeds, mean ±95 % interval, compared seed by seed" in result.out
    assert "fq_codel wins. Against pfifo limit 1000" in result.out
    result = say("compare", "good", "slow")
    assert "No two of these Runs have the same link and traffic" in result.out
    assert "rate 2 Mbit/s" in result.out
    assert "wins" not in result.out
    assert "*" not in result.out


@pytest.mark.usefixtures("_undrawn")
def test_a_comparison_of_many_kinds_of_flows_is_cut_into_tables_that_fit(
    say: Command, home: Path
) -> None:
    page = '[[flow]]\nkind = "transfers"\nname = "page-%d"\nsize = "9 kB"\npause = "300 ms"\ndirection = "up"\n'
    (home / "many.toml").write_text(SCENARIO + "".join(page % i for i in range(6)))
    result = say("compare", "many.toml", "pfifo", "codel", "--seeds", "2", *RANDOM, "-o", "out")
    lines = result.out.splitlines()
    assert max(map(len, lines)) <= 120
    assert sum(line.startswith("users") for line in lines) > 1
    assert all(f"page-{i} mean ms" in result.out for i in range(6))


# ------------------------------------------------------------------------------------ wrong input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "nothing.toml"], "nothing.toml"),
        (["run", "."], "folder"),
        (["run"], "SCENARIO"),
        (["run", "home.toml", "--seeds", "0"], "--seeds"),
        (["run", "home.toml", "--seeds", "1000000000"], "--seeds"),
        (["run", "home.toml", "--seed", "9223372036854775808"], "--seed"),
        (["run", "home.toml", "--seed", "9223372036854775807", "--seeds", "2"], "--seeds"),
        (["run", "home.toml", "--seed", "x"], "--seed"),
        (["run", "home.toml", "-j", "0"], "--jobs"),
        (["run", "home.toml", "-e", "kernal"], "--engine"),
        (["run", "home.toml", "--set", "duration"], "KEY=VALUE"),
        (["run", "home.toml", "--set", "duration=60"], "duration"),
        (["run", "home.toml", "--set", "durtion=60 s"], "durtion"),
        (["run", "home.toml", "--set", "flow.7.count=2"], "flow.7.count"),
        (["run", "home.toml", "--set", "bottleneck.rate=5 Mbit/s"], "bottleneck.up.rate"),
        (["run", "home.toml", "--figures", "gif"], "gif"),
        (["run", "home.toml", "--json", "--figures", "svg"], "-o DIR"),
        (["run", "home.toml", "-o", "home.toml"], "home.toml"),
        (["run", "home.toml", "-o", "home.toml/below"], "home.toml"),
        (["run", "home.toml", "-o", "."], "not a Run"),
        (["compare", "home.toml", "fq_codell"], "fq_codel"),
        (["compare", "home.toml", "codel", "codel"], "twice"),
        (["compare", "home.toml", ""], "empty"),
        (["compare", "home.toml", "codel target"], "target"),
        (["report", "home.toml"], "not a folder"),
        (["report", "."], "not a Run"),
        (["list", "colours"], "colours"),
        (["rum"], "rum"),
        (["run", "home.toml", "--colour"], "--colour"),
    ],
)
def test_wrong_input_gives_an_error_and_exits_with_2(
    arguments: list[str], words: str, say: Command, home: Path
) -> None:
    result = say(*arguments)
    assert result.code == 2
    assert words in result.err
    assert "Traceback" not in result.err
    assert result.out == ""
    assert sorted(path.name for path in home.iterdir()) == ["home.toml"]


def test_a_mistake_in_a_scenario_is_shown_with_its_place(say: Command, home: Path) -> None:
    (home / "home.toml").write_text(SCENARIO.replace('"4 s"', "4").replace("pfifo", "x"))
    result = say("run", "home.toml")
    assert result.code == 2
    assert "error: home.toml:3:12: duration" in result.err
    assert "hint:" in result.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_reported_before_the_run(say: Command, home: Path) -> None:
    (home / "locked").mkdir(mode=0o500)
    result = say("run", "home.toml", "-o", "locked/run")
    assert result.code == 2
    assert "can't write" in result.err


def test_a_run_without_finished_seeds_has_no_page(say: Command, home: Path) -> None:
    small_run(home / "empty", seeds=())
    result = say("report", "empty")
    assert result.code == 2
    assert "no seed has finished" in result.err


# -------------------------------------------------------------------------------------- long work


@pytest.mark.parametrize(
    ("expected_s", "expected"),
    [
        (9.0, ""),
        (54.4, "3 runs: about 54 s\n"),
        (610.0, "3 runs: about 10 min\n"),
        (12e3, "3 runs: about 3.33 h\n"),
    ],
)
@pytest.mark.parametrize("quiet", [False, True])
def test_long_work_is_announced_with_its_length(
    expected_s: float, expected: str, quiet: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with work.progress(quiet) as show:
        show(Progress(0, 3, 0.0, expected_s=expected_s))
        show(Progress(3, 3, 1.0))
    assert capsys.readouterr().err == ("" if quiet else expected)


def test_a_setup_shows_the_remaining_time(say: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def setup(_name: str, report: Callable[[guest.SetupProgress], None], *_: object) -> Never:
        for done in (0.1, 0.5, 1.0):
            report(guest.SetupProgress("compiling", done))
        raise RunError("enough", "")

    monkeypatch.setattr(work, "PLAIN_EVERY_S", 0.0)
    monkeypatch.setattr(guest, "setup", setup)
    lines = say("kernel", "setup").err.splitlines()
    assert [re.sub(r"\d+ s", "N s", line) for line in lines] == [
        "compiling, 10% done, about N s left",
        "compiling, 50% done, about N s left",
        "error: enough",
    ]


# --------------------------------------------------------------- runs on which an engine gives up


class Tired(Simulator):
    """An engine of any name that gives up on the seeds and disciplines of `what` after the check,
    as a guest does."""

    def __init__(self, name: str, what: set[tuple[str, int]]) -> None:
        self.name = name  # type: ignore[misc]
        self.what = what

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        kinds = {link.qdisc.kind for link in realised.links}
        if kinds & {kind for kind, seed in self.what if seed == realised.seed}:
            raise GuestRunError(
                "gave up", "tc did not like it", "say it otherwise", "RTNETLINK: no"
            )
        return super().tables(realised, reached)


@pytest.fixture
def tired(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes all engines give up on these pairs (discipline, seed); the simulator only with
    `sim`."""

    def become(*what: tuple[str, int], sim: bool = False) -> None:
        def find(name: str) -> Simulator:
            return Tired(name, set(what) if sim or name != "sim" else set())

        monkeypatch.setattr(runs, "find", find)

    return become


SWEEP = SCENARIO + '[sweep]\n"bottleneck.qdisc" = ["pfifo", "codel", "fq_codel"]\n'
WHY = {
    "error": "tc did not like it\nits console ends:\n  | RTNETLINK: no",
    "hint": "say it otherwise",
}


def test_a_variant_that_fails_loses_no_other(
    say: Command, home: Path, tired: Callable[..., None]
) -> None:
    (home / "sweep.toml").write_text(SWEEP)
    tired(("codel", 1))
    result = say("run", "sweep.toml", "-e", "kernel", "--json", "-q")
    output = json.loads(result.out)
    assert result.code == 1
    assert [one["label"] for one in output["variants"]] == ["pfifo", "fq_codel"]
    assert output["failed"] == [{"run": "codel", "seed": 1, **WHY}]
    assert result.err.splitlines()[:2] == [
        "error: 1 of 3 runs failed",
        "codel, seed 1: tc did not like it",
    ]
    assert result.err.splitlines()[-1] == "hint: say it otherwise"


@pytest.mark.usefixtures("_undrawn")
def test_the_folder_of_what_finished_is_whole(
    say: Command, home: Path, tired: Callable[..., None]
) -> None:
    (home / "sweep.toml").write_text(SWEEP)
    tired(("codel", 1), ("codel", 2), ("pfifo", 2))
    result = say("run", "sweep.toml", "-e", "kernel", "-o", "out", "--seeds", "2", *RANDOM, "-q")
    assert result.code == 1
    assert "fq_codel" in result.out
    assert "3 of 6 runs failed" in result.err
    kept = Run.find(home / "out")
    assert [run.seeds for run in kept] == [(1,), (1, 2)]
    assert say("report", "out", "-o", "page.html").code == 0


def test_a_scenario_that_fails_or_is_refused_loses_no_other(
    say: Command, home: Path, tired: Callable[..., None]
) -> None:
    (home / "codel.toml").write_text(
        SCENARIO.replace("[bottleneck]", '[bottleneck]\nqdisc = "codel"')
    )
    (home / "filter.toml").write_text(
        SCENARIO.replace("[bottleneck]", '[bottleneck]\nqdisc = "fq orphan_mask 131071"')
    )
    tired(("codel", 1), sim=True)
    result = say("run", "home.toml", "codel.toml", "--json", "-q")
    assert result.code == 1
    output = json.loads(result.out)
    assert [len(output["variants"]), len(output["failed"])] == [1, 1]
    # An engine refuses a scenario before anything runs.
    result = say("run", "home.toml", "filter.toml", "-o", "out", "-q")
    assert (result.code, result.out) == (2, "")
    assert not (home / "out").exists()


def test_a_command_without_a_finished_run_fails(
    say: Command, home: Path, tired: Callable[..., None]
) -> None:
    tired(("fq_codel", 1), ("fq_codel", 2), ("pfifo", 1))
    change = ("--set", "bottleneck.qdisc=pfifo")
    result = say("run", "home.toml", *change, "-e", "kernel", "--json", "-q")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: tc did not like it\n")
    result = say("compare", "home.toml", "fq_codel", "-e", "kernel", "--seeds", "2", "--json", "-q")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: 2 of 2 runs failed\n")


@pytest.mark.usefixtures("_undrawn")
def test_a_comparison_is_among_those_that_remain(
    say: Command, home: Path, tired: Callable[..., None]
) -> None:
    tired(("codel", 1))
    result = say(
        "compare", "home.toml", "pfifo", "codel", "fq_codel", "-e", "kernel", "--json", "-q"
    )
    output = json.loads(result.out)
    assert result.code == 1
    assert output["judgement"]["runs"] == ["pfifo", "fq_codel"]
    assert "codel is missing: every run of it failed." in output["verdict"]
    assert output["failed"] == [{"run": "codel", "seed": 1, **WHY}]
    result = say(
        "compare", "home.toml", "pfifo", "codel", "fq_codel", "-e", "kernel", "-o", "out", "-q"
    )
    assert result.code == 1
    assert "codel is missing: every run of it failed." in result.out
    assert (home / "out" / "report.html").is_file()
    assert len(Run.find(home / "out")) == 2


def test_runs_that_the_kernel_could_not_finish_do_not_count_as_differences(
    say: Command, home: Path, tired: Callable[..., None]
) -> None:
    (home / "sweep.toml").write_text(SWEEP)
    tired(("codel", 1), ("codel", 2), ("pfifo", 2))
    result = say("agree", "sweep.toml", "--seeds", "2", "--json", "-q", "-o", "kept")
    output = json.loads(result.out)
    assert result.code == 1
    assert output["agrees"]
    assert [one["case"]["qdisc"] for one in output["comparisons"]] == [
        "pfifo limit 1000",
        "fq_codel",
    ]
    assert [(one["run"], one["seed"]) for one in output["failed"]] == [
        ("pfifo", 2),
        ("codel", 1),
        ("codel", 2),
    ]
    # Both sides have the same seeds.
    assert [run.seeds for run in Run.find(home / "kept" / "sim")] == [(1,), (1, 2)]


# ----------------------------------------------------------------------------------------- Ctrl-C


def test_ctrl_c_keeps_finished_seeds_and_reports_the_missing_ones(home: Path) -> None:
    long = SCENARIO.replace("4 s", "40 s")
    (home / "long.toml").write_text(long)
    # The first seeds finish quickly; a hundred of them never finish before the signal.
    command = [
        sys.executable,
        "-m",
        "sojourn",
        "run",
        "long.toml",
        "--seeds",
        "10000",
        "-o",
        "out",
        "-j",
        "2",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    meta = home / "out" / "meta.json"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (
        meta.exists() and json.loads(meta.read_text())["seeds"]
    ):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert out == ""
    assert "Traceback" not in err
    run = Run.open(home / "out")
    assert 1 <= len(run.seeds) < 10_000
    assert f"{len(run.seeds)} of 10000 runs had finished" in err
    assert "missing:" in err
    for seed in run.seeds:
        assert run.table("links", seed).height == 2


def as_a_program(folder: Path, words: str) -> subprocess.CompletedProcess[str]:
    """Runs Python code that reacts to Ctrl-C and imports modules in this folder before all
    others."""
    # The tests' terminal or nohup may have changed the signals' handlers.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    heed += "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", heed + words]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def test_ctrl_c_during_the_import_of_the_command_line_gives_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = as_a_program(tmp_path, "from sojourn.__main__ import main; main()")
    assert done.returncode == -signal.SIGINT
    assert done.stdout + done.stderr == ""


def test_ctrl_c_during_a_verb_s_imports_gives_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "polars.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    (tmp_path / "x").write_text(
        "PING 192.0.2.1 (192.0.2.1): 56 data bytes\n64 bytes from 192.0.2.1: seq=0 ttl=64 time=1.0 ms\n"
    )
    words = "import sys; sys.argv = ['sojourn', 'import', 'x']\nfrom sojourn.__main__ import main; main()"
    done = as_a_program(tmp_path, words)
    assert done.returncode == 130
    assert done.stderr.split() == ["interrupted"]


@pytest.mark.parametrize("sent", ["SIGTERM", "SIGHUP"])
def test_finished_seeds_are_kept_if_the_terminal_closes(
    tmp_path: Path, home: Path, sent: str
) -> None:
    words = f"""
import os, sys, time
from sojourn import _core
from sojourn.__main__ import main
once = _core.run
def run(realised, reached):
    if realised.seed == 2:
        os.kill(os.getpid(), signal.{sent})
        while reached(0):
            time.sleep(0.01)
        raise _core.Cancelled
    return once(realised, reached)
_core.run = run
sys.argv = ["sojourn", "run", {str(home / "home.toml")!r}, "-o", "out", "--seeds", "3", "-j", "1", "-q"]
main()
"""
    done = as_a_program(tmp_path, words)
    assert done.returncode == 130, done.stderr
    assert "1 of 3 runs had finished" in done.stderr
    assert Run.open(tmp_path / "out").seeds == (1,)


def test_a_program_that_ignores_sighup_continues(tmp_path: Path) -> None:
    words = (
        "import os; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from sojourn import cli\ncli.status = lambda _: os.kill(os.getpid(), signal.SIGHUP)\ncli.main()"
    )
    assert as_a_program(tmp_path, words).returncode == 0


# -------------------------------------------------------------------------------- text and tables


def test_many_seeds_are_printed_as_ranges() -> None:
    assert text.ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"
    assert text.ranges([]) == "none"


def test_numbers_show_about_three_digits() -> None:
    assert [text.number(value) for value in (812.4, 99.96, 14.23, 9.996, 0.9712, 0.0, float("nan"))] == [
        "812", "100", "14.2", "10.0", "0.97", "0", "-",
    ]  # fmt: skip
    assert text.with_interval({"mean": 14.23, "ci95": 0.318}) == "14.2 ±0.3"
    assert text.percent({"mean": 0.1423, "ci95": 0.00318}) == "14.2 ±0.3"
    # A share is between 0 and 100 %.
    assert text.percent({"mean": 0.0015, "ci95": 0.0025}) == "0.15 ≤0.40"
    assert text.percent({"mean": 0.998, "ci95": 0.006}) == "99.8 ≥99.2"
    assert text.percent({"mean": 0.5, "ci95": 0.8}) == "50.0 0..100"
    assert text.with_interval({"mean": 14.23, "ci95": float("nan")}) == "14.2"


@pytest.mark.parametrize(
    ("mean", "half", "shown"),
    [
        (0.00001, 0.00002, "0 ±0"),
        (0.0, 0.0, "0 ±0"),
        (-0.00001, float("nan"), "0"),
        (0.0008, 0.00001, "0.0008 ±0"),
        (0.0008, 0.0018, "0.0008 ±0.0018"),
        (0.00001, 0.31, "0.00 ±0.31"),
        (14.23, 0.01, "14.2 ±0.0"),
    ],
)
def test_a_value_below_four_decimals_is_printed_as_0(mean: float, half: float, shown: str) -> None:
    assert text.with_interval({"mean": mean, "ci95": half}) == shown


def test_a_table_leaves_out_columns_that_do_not_fit_and_names_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    header = ["name", "kind", "median ms", "largest ms"]
    rows = [["up", "pfifo", "10", "200"]]
    monkeypatch.setenv("COLUMNS", "30")
    lines = text.fitted(header, rows, ["largest ms", "kind"], left=2).splitlines()
    assert lines[0] == "name  kind   median ms"
    assert lines[-1] == "left out, to fit 30 columns (--json has all): largest ms"
    monkeypatch.setenv("COLUMNS", "5")
    lines = text.fitted(header, rows, ["largest ms", "kind"], left=2).splitlines()
    assert lines[0] == "name  median ms"
    monkeypatch.delenv("COLUMNS")
    assert text.fitted(header, rows, ["kind"], left=2) == text.table(header, rows, left=2)


def test_columns_line_up() -> None:
    drawn = text.table(["name", "value"], [["a", "1"], ["longer", "100"]])
    assert drawn.splitlines() == [
        "name    value",
        "------  -----",
        "a           1",
        "longer    100",
    ]


def test_rates_have_their_unit() -> None:
    assert [text.rate(bps) for bps in (2_500_000_000, 20_000_000, 64_000, 300, None)] == [
        "2.5 Gbit/s", "20 Mbit/s", "64 kbit/s", "300 bit/s", "no limit",
    ]  # fmt: skip
