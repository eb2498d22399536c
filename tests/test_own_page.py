"""docs/own.md: its files and commands, as they stand there."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="pip install sojourn[own]")

PAGE = (Path(__file__).parent.parent / "docs" / "own.md").read_text()
FENCES = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
SHORTER = ["--set", "warmup=0 s", "--set", "duration=1 s", "--seeds", "1"]
"""The example is a minute long: a second shows that the command is right."""
NAMED = re.compile(r"`(\w+\.(?:py|toml))`:\n\n```(?:python|toml)\n(.*?)```", re.DOTALL)


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
    for folder in ("evaluation", "evaluation-calm"):
        assert Path(folder, "report.html").stat().st_size > 0
    (script,) = [
        text
        for kind, text in FENCES.findall(PAGE)
        if kind == "python" and "import sojourn\n" in text
    ]
    exec(script.replace('"10 s"', '"1 s", "warmup": "0 s"'), {})
    assert "mean" in capsys.readouterr().out
    for words in ("patient.py:Patient", "fair.py:Fair queues 64"):
        assert status(["run", "home-uplink", "--qdisc", words, *SHORTER, "--json"]) == 0
