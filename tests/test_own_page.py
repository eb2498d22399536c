"""docs/own.md: its files and commands, as they stand there."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

import sojourn
from sojourn.records import Run

pytest.importorskip("numba", reason="pip install sojourn[own]")

PAGE = (Path(__file__).parent.parent / "docs" / "own.md").read_text()
FENCES = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
SHORTER = ["--set", "warmup=0 s", "--set", "duration=1 s", "--seeds", "1"]
"""The example is a minute long: a second shows that the command is right."""
NAMED = re.compile(r"`(\w+\.(?:py|toml))`:\n\n```(?:python|toml)\n(.*?)```", re.DOTALL)


def _all_compete(said: str) -> None:
    """The page's comparison, in the terminal, on the page and in a notebook."""
    names = {"fq_codel", "Late", "Late target 5ms"}
    judged = sojourn.compare(Run.find("compared"))
    [contest] = judged.contests
    assert set(contest.called.values()) == set(contest.runs) == names
    page = Path("compared", "report.html").read_text()
    table = said.partition("users")[2].partition("queue at")[0]
    assert {line.split("  ")[0] for line in table.splitlines()[2:] if line} == names
    assert "ms with Late target 5ms" in " ".join(said.split())
    for shown in (said, page.partition("<body")[2], judged._repr_html_()):
        assert "Late target 5ms" in shown
        assert "ot compared" not in shown
        assert "late.py default" not in shown
    assert "Late: late.py:Late\n" in said
    assert "5000000" not in said + judged._repr_html_()


def test_the_page_s_files_and_commands_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sojourn.cli import status
    from sojourn.scenario import examples

    monkeypatch.chdir(tmp_path)
    files = dict(NAMED.findall(PAGE))
    assert set(files) == {"late.py", "patient.py", "fair.py", "calm.py", "calm.toml"}
    for name, text in files.items():
        Path(name).write_text(text)
    shutil.copy(examples.FOLDER / "own_rate.py", ".")
    commands = [
        shlex.split(line)
        for kind, text in FENCES.findall(PAGE)
        for line in text.splitlines()
        if kind == "sh" and line.startswith("sojourn ")
    ]
    verbs = ["run", "compare", "evaluate", "run", "run", "evaluate", "run"]
    assert [command[1] for command in commands] == verbs
    for _, verb, *rest in commands:
        less = SHORTER
        if verb == "evaluate":
            less = ["--only", "5.1.2" if "calm.py:Calm" in rest else "short", "--seeds", "2"]
        assert status([verb, *rest, *less, "-q"]) == 0
        if verb == "compare":
            _all_compete(capsys.readouterr().out)
    for folder in ("evaluation", "evaluation-calm"):
        assert Path(folder, "report.html").stat().st_size > 0
    (script,) = [
        text
        for kind, text in FENCES.findall(PAGE)
        if kind == "python" and "import sojourn\n" in text
    ]
    exec(script.replace('"10 s"', '"1 s", "warmup": "0 s"'), {})
    assert "mean" in capsys.readouterr().out
    assert status(["compare", "beside"]) == 0
    beside = capsys.readouterr().out
    assert all(name in beside for name in ("\ncubic ", "\nCalm ", "\nCalm queueing 5ms "))
    assert not any(word in beside for word in ("calm.py", "5000000", "ot compared"))
    sweep = ["--vary", "bottleneck.qdisc=codel,late.py:Late", "--vary", "bottleneck.up.rate=2mbit"]
    wide = ["--columns", "ping_p95,sojourn_p95", "--format", "latex", "-o", "swept"]
    assert status(["run", "home-uplink", *sweep, *SHORTER[:-1], "2", *wide, "-q"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert [line.split(" & ")[0] for line in table[4:6]] == ["codel", "Late"]
    assert any(r"\textbf" in line for line in table[4:6])
    for words in ("patient.py:Patient", "fair.py:Fair queues 64"):
        assert status(["run", "home-uplink", "--qdisc", words, *SHORTER, "--json"]) == 0
