"""The content of README.md works: its Python, scenario, commands and make targets. All names in
docs/ exist."""

import re
import shlex
import sys
from pathlib import Path

import click
import pytest
from shortened import shortened, undrawn
from tree import ROOT

from sojourn.cli import cli, status

sys.path.insert(0, str(ROOT / "docs" / "site"))

import blocks

TUTORIAL = (ROOT / "docs" / "learn" / "tutorial.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md")))


_undrawn = pytest.fixture(undrawn)


@pytest.mark.usefixtures("_undrawn")
def test_the_python_of_the_readme_prints_the_shown_output(tmp_path: Path) -> None:
    # Shortened: more simulated seconds would add nothing to the test of a command.
    player = blocks.Player("README.md", tmp_path, short=True)
    said = {}
    for block in blocks.find(shortened(README)):
        said[block.text] = player.play(block).text or ""
    [commands] = [said[text] for text in said if text.startswith("sojourn check")]
    assert "wins. Against" in commands, "Runs that compete"
    [program] = [said[text] for text in said if text.startswith("import sojourn")]
    found = re.match(r"idle (\d+) ms, under load (\d+) ms\n", program)
    assert found is not None, program
    idle, loaded = map(int, found.groups())
    assert 15 <= idle <= 25, "the scenario says 20 ms"
    assert loaded < 1.5 * idle, "fq_codel keeps the ping short"
    assert (tmp_path / "timeline.png").is_file()


def test_the_page_on_python_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    player = blocks.Player("docs/python.md", tmp_path)
    said = [player.play(block).text or "" for block in blocks.find(page)]
    slowest, *_, fastest = re.findall(r"Mbit/s (\d+) ms", said[0])
    assert int(fastest) < int(slowest), "a faster line has a shorter queue"


@pytest.mark.usefixtures("_undrawn")
def test_the_demo_prints_the_shown_columns_and_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Shortened: the numbers change with every algorithm, but the columns and the verdict don't.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", blocks.COLUMNS)
    demo = re.search(r"compare (\S+) (.*)-o demo", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert demo is not None
    short = ["--set", "duration=20 s", "-o", "demo", "--figures", "svg", "-q"]
    assert status(["compare", str(ROOT / demo[1]), *demo[2].split(), *short]) == 0
    said = capsys.readouterr().out
    [shown] = [block.text for block in blocks.find(TUTORIAL) if block.printed]
    for start in ("users ", "queue at "):
        heads = [
            next(line for line in text.splitlines() if line.startswith(start))
            for text in (said, shown)
        ]
        assert heads[0].split() == heads[1].split()
    for text in (said, shown):
        # In such a short run cake and fq_codel may be equally good.
        one_line = " ".join(text.split())
        assert re.search(r"(cake|fq_codel).*[Aa]gainst pfifo[.:].*ping RTT p95 from", one_line)


def test_the_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (demo|papers|test|bench|validate|setup)\b", README):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_link_targets_of_a_page_exist(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).is_file(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_line_knows_every_option_that_a_page_shows(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # Two spaces may be followed by a command's output or by a remark.
    shown = [
        line.partition("  ")[0] for block in text.split("```")[1::2] for line in block.splitlines()
    ]
    shown += re.findall(r"`(sojourn [^`\n]+)`", text)
    for line in shown:
        if command := re.match(r"(?:sudo )?sojourn (.+)", line):
            understand(cli, shlex.split(command[1], comments=True))


def understand(command: click.Command, words: list[str]) -> None:
    """Parses a command without running it. Raises NoSuchOption for an unknown option, and
    BadParameter for an option without its value."""
    context = click.Context(command)
    if not isinstance(command, click.Group):
        command.make_parser(context).parse_args(words)
    elif words and not words[0].startswith("-"):
        verb = command.get_command(context, words[0])
        assert verb is not None, words[0]
        understand(verb, words[1:])
