"""What README.md shows works: its Python, its scenario, its commands, its make targets. What docs/
names is there."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sojourn.cli import cli, status
from sojourn.scenario import loads

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md")))


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


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


def test_the_page_on_python_runs() -> None:
    programs = blocks("python", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"))
    assert len(programs) == 2
    for program in programs:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    slowest, *_, fastest = re.findall(
        r"Mbit/s (\d+) ms",
        subprocess.run(
            [sys.executable, "-c", programs[0]], capture_output=True, text=True, check=True
        ).stdout,
    )
    assert int(fastest) < int(slowest), "a faster line is a shorter queue"


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
        said = capsys.readouterr().out
        if "compare runs/" in line:
            assert "wins. Against" in said, "Runs that compete"


def test_the_demo_has_the_columns_and_the_verdict_that_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Shortened: its numbers move with every algorithm, what is told of them does not.
    monkeypatch.chdir(tmp_path)
    demo = re.search(r"compare (\S+) (.*)-o demo", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert demo is not None
    short = ["--set", "duration=20 s", "-o", "demo", "--figures", "svg", "-q"]
    assert status(["compare", str(ROOT / demo[1]), *demo[2].split(), *short]) == 0
    said = capsys.readouterr().out
    shown = re.search(r"^```\n(users .*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    assert shown is not None
    for start in ("users ", "queue at "):
        heads = [
            next(line for line in text.splitlines() if line.startswith(start))
            for text in (said, shown[1])
        ]
        assert heads[0].split() == heads[1].split()
    for text in (said, shown[1]):
        # In so short a run cake and fq_codel may stand side by side.
        assert re.search(
            r"(cake|fq_codel).*[Aa]gainst pfifo[.:].*ping RTT p95 from", text, re.DOTALL
        )


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (demo|papers|test|bench|validate|setup)\b", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_exists(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).is_file(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_line_knows_every_option_that_a_page_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Behind two blanks an output of it or a remark may stand.
    shown = [
        line.partition("  ")[0] for block in text.split("```")[1::2] for line in block.splitlines()
    ]
    shown += re.findall(r"`(sojourn [^`\n]+)`", text)
    for line in shown:
        if command := re.match(r"(?:sudo )?sojourn (.+)", line):
            understand(cli, shlex.split(command[1], comments=True))


def understand(command: click.Command, words: list[str]) -> None:
    """Raises NoSuchOption, or BadParameter for an option without its value; nothing is carried
    out."""
    context = click.Context(command)
    if not isinstance(command, click.Group):
        command.make_parser(context).parse_args(words)
    elif words and not words[0].startswith("-"):
        verb = command.get_command(context, words[0])
        assert verb is not None, words[0]
        understand(verb, words[1:])
