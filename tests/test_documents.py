"""README.md and docs/*.md are correct: their files load, and their commands and programs run and
print the output on the page. docs/site/blocks.py defines how a page marks output. The tutorials are
in test_site.py."""

import re
import sys
from pathlib import Path

import pytest
from tree import ROOT

sys.path.insert(0, str(ROOT / "docs" / "site"))

import blocks
import pages
from shortened import shortened, undrawn

from sojourn.cli import status
from sojourn.engine import why_not

TEXTS = {path: text for path, text in pages.written().items() if pages.is_run(path)}
TRIED = [path for path, text in TEXTS.items() if any(block.tried for block in blocks.find(text))]
ELSEWHERE = {
    "README.md": "test_readme",
    "docs/own.md": "test_own_page",
    "docs/python.md": "test_readme",
}
"""Pages that have a test of their own, which checks more of them."""
NOT_RUN = 25
"""The most blocks that may be skipped, over all pages."""
README_WORDS = 900

_undrawn = pytest.fixture(undrawn)


def is_elsewhere(path: str) -> bool:
    return path in ELSEWHERE or pages.is_played(path)


def player(path: str, folder: Path, **how: bool) -> blocks.Player:
    if path == "docs/own.md":
        pytest.importorskip("numba", reason="numba is missing")
    return blocks.Player(path, folder, **how)


def play(text: str, playing: blocks.Player) -> None:
    for block in blocks.find(text):
        playing.play(block)


@pytest.mark.parametrize("path", [path for path in TRIED if not is_elsewhere(path)])
@pytest.mark.usefixtures("_undrawn")
def test_the_blocks_of_a_page_run_and_give_the_shown_output(path: str, tmp_path: Path) -> None:
    playing = player(path, tmp_path, short=True)
    play(shortened(TEXTS[path]), playing)


@pytest.mark.long
@pytest.mark.parametrize("path", TRIED)
def test_the_long_blocks_of_a_page_run_and_give_the_shown_output(path: str, tmp_path: Path) -> None:
    playing = player(path, tmp_path, long=True, guest=why_not("kernel") is None)
    play(TEXTS[path], playing)


def test_few_blocks_are_not_run_and_each_has_a_reason() -> None:
    reasons = [
        block.before["not run"]
        for text in TEXTS.values()
        for block in blocks.find(text)
        if "not run" in block.before
    ]
    assert 0 < len(reasons) <= NOT_RUN
    assert all(len(reason.split()) > 1 for reason in reasons)


@pytest.mark.parametrize("path", TEXTS)
def test_every_command_on_a_page_is_in_a_block_that_is_run(path: str) -> None:
    assert not blocks.indented(TEXTS[path]), "use a fence with `sh`"
    for block in blocks.find(TEXTS[path]):
        assert block.language in blocks.LANGUAGES, f"{path}, line {block.line}"
        if block.language != "sh":
            assert not block.ours, f"{path}, line {block.line}"


def test_a_command_outside_of_a_block_is_found() -> None:
    page = "A\n\n    sojourn list\n\n```text\n$ sudo sojourn shape eth0\nmake demo\n```\n"
    assert blocks.indented(page) == ["sojourn list"]
    [block] = blocks.find(page)
    assert block.ours == ["$ sudo sojourn shape eth0", "make demo"]


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ("<!-- printed -->\n```text\nb\n```\n", "now it prints\na"),
        ("<!-- printed: a part -->\n```text\nb\n```\n", "now it prints\na"),
        ("```toml\nduration = 5\n```\n", "duration"),
        ("<!-- after: home-uplink -->\n```toml\n[[flow]]\nkind = 'none'\n```\n", "none"),
        (
            "<!-- excerpt: scenarios/downloads.toml -->\n```toml\n[[flow]]\nkind = 'bulk'\n```\n",
            "has no flow",
        ),
        ("```json\n{\n```\n", "Expecting"),
        ("```sh\nsojourn list nothing\n```\n", "exit status"),
        ("<!-- exit: 2 -->\n```sh\nsojourn list engines\n```\n", "exit status"),
        ("<!-- short: -->\n```sh\nsojourn list engines\n```\n", "short:"),
        ("<!-- typo -->\n```sh\nsojourn list engines\n```\n", "typo"),
    ],
)
def test_wrong_output_on_a_page_is_found(page: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(blocks.BlockError, match=re.escape(why)):
        play("```python\nprint('a')\n```\n\n" + page, blocks.Player("a.md", tmp_path))


def test_a_make_target_is_replaced_by_its_commands() -> None:
    [[program, verb, *_]] = blocks.recipe(("demo",))
    assert (program, verb) == ("sojourn", "compare")


def test_the_error_in_docs_scenario_is_the_program_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = blocks.find(TEXTS["docs/scenario.md"])
    [scenario] = [block for block in found if block.file == "home.toml"]
    [shown] = [block for block in found if block.text.startswith("home.toml:")]
    monkeypatch.chdir(tmp_path)
    Path("home.toml").write_text(scenario.text.replace('"20 Mbit/s"', '"20 Mbps"'))
    assert status(["check", "home.toml"]) == 2
    assert capsys.readouterr().err == f"error: {shown.text}"


def test_the_readme_is_short() -> None:
    prose = re.sub(r"^```.*?^```|<!--.*?-->", "", TEXTS["README.md"], flags=re.M | re.S)
    assert len(prose.split()) <= README_WORDS
