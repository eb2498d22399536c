"""What README.md shows works: its Python, its scenario, its commands, its make targets."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sojourn.cli import status
from sojourn.scenario import loads

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


def test_the_python_runs_and_says_what_it_promises(tmp_path: Path) -> None:
    [program] = blocks("python")
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = re.match(r"idle (\d+) ms, under load (\d+) ms\n", done.stdout)
    assert found is not None, done.stdout
    idle, loaded = map(int, found.groups())
    assert 15 <= idle <= 25, "the scenario says 20 ms"
    assert loaded < 1.5 * idle, "fq_codel keeps the ping short"
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")


def test_the_scenario_is_one() -> None:
    [text] = blocks("toml")
    assert loads(text).title == "Two uploads and a ping"


def test_the_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Shortened: thirty seconds of simulation say no more about a command than four.
    [text] = blocks("toml")
    (tmp_path / "home.toml").write_text(text.replace('"30 s"', '"4 s"').replace('"5 s"', '"1 s"'))
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    monkeypatch.chdir(tmp_path)
    [commands] = blocks("sh")
    for line in commands.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "sojourn"
        assert status(words[1:]) == 0, f"{line}\n{capsys.readouterr().err}"


def test_the_make_targets_and_links_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (demo|papers|test|bench|validate|setup)\b", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).is_file(), link
