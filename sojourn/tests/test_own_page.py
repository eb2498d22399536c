"""The files and commands of docs/own.md, exactly as printed on the page."""

import sys
from pathlib import Path

import pytest
from shortened import unrendered
from tree import ROOT

import sojourn
from sojourn.records import Run

pytest.importorskip("numba", reason="pip install sojourn[own]")

sys.path.insert(0, str(ROOT / "docs" / "site"))

import blocks

PAGE = (ROOT / "docs" / "own.md").read_text(encoding="utf-8")
SHORTER = ["--set", "warmup=0 s", "--set", "duration=1 s", "--seeds", "1"]
"""The example is a minute long. One second is enough to show that the command is right."""


def _all_compete(said: str) -> None:
    """Checks the page's comparison in the terminal, in the report and in a notebook."""
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


def test_the_page_s_files_and_commands_give_the_shown_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from sojourn.cli import status

    unrendered(monkeypatch)
    player = blocks.Player("docs/own.md", tmp_path, short=True)
    said = {block.text: player.play(block).text or "" for block in blocks.find(PAGE)}
    monkeypatch.chdir(tmp_path)
    [compared] = [text for block, text in said.items() if "sojourn compare" in block]
    _all_compete(f"users{compared.rpartition('users     ')[2]}")
    for folder in ("evaluation", "evaluation-calm"):
        assert Path(folder, "report.html").stat().st_size > 0
    [printed] = [text for block, text in said.items() if "import sojourn\n" in block]
    assert "mean" in printed
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
