"""The site's pages. Links have targets, blocks run, files that a page shows are generated, and all
declarations in the code have a page. These tests don't generate HTML."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shortened import shortened, undrawn
from test_readme import understand
from tree import ROOT

from sojourn import figures, schemas
from sojourn.cli import cli, sections
from sojourn.scenario import examples
from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.qdisc import QDISCS

sys.path.insert(0, str(ROOT / "docs" / "site"))

import blocks
import build
import drawings
import extract
import gallery
import pages

TEXTS = pages.pages()
WRITTEN = [path for path in pages.written() if pages.is_played(path)]
MADE = (
    "docs/qdiscs/cake.md",
    "docs/qdiscs/red.md",
    "docs/congestion/bbr.md",
    "docs/congestion/reno.md",
)
"""Generated pages. All pages of a folder have the form of one of these."""
GALLERIES = ("docs/gallery/figures.md", "docs/gallery/pages.md")
"""All of the gallery except the examples, which other tests load and run."""


_undrawn = pytest.fixture(undrawn)


def test_every_link_leads_to_a_page_and_a_section() -> None:
    assert not build.problems(TEXTS)


def test_a_broken_link_is_found() -> None:
    texts = {
        "a.md": "# A\n[b](b.md) [c](#no-such) [d](sub/d.md#there)\n",
        "sub/d.md": "## There\n[a](../a.md)",
    }
    assert build.problems(texts) == [
        "a.md: b.md: there is no such page",
        "a.md: #no-such: a.md has no such section",
    ]


def test_every_page_is_in_the_contents_once() -> None:
    listed = ["index"]
    for path, text in TEXTS.items():
        folder = Path(path).parent
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.M | re.S):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            names = [re.sub(r".*<(.+)>", r"\1", line) for line in lines]
            listed += [str((folder / name).as_posix()) for name in names]
    found = [str(Path(ROOT, each).resolve().relative_to(ROOT)) for each in listed]
    assert sorted(path.removesuffix(".md") for path in TEXTS) == sorted(found)


@pytest.mark.parametrize("path", [*WRITTEN, *MADE, *GALLERIES])
@pytest.mark.usefixtures("_undrawn")
def test_the_blocks_of_a_page_run_and_write_its_files(path: str, tmp_path: Path) -> None:
    player = blocks.Player(path, tmp_path, short=True)
    text = TEXTS[path] if path in MADE else shortened(TEXTS[path])
    for block in blocks.find(text):
        said = player.play(block).text
        for name, value in block.behind:
            if said is None:
                assert block.waits, f"{path}, line {block.line}"
            elif name == "output":
                assert said, f"{path}, line {block.line}: the block printed nothing"
            else:
                assert (tmp_path / value.partition(": ")[0]).is_file(), f"{path}: {value}"


@pytest.mark.parametrize("path", [path for path in TEXTS if pages.is_played(path)])
def test_the_command_line_knows_the_options_on_a_page(path: str) -> None:
    text = TEXTS[path]
    shown = [
        words
        for block in blocks.find(text)
        if block.language == "sh"
        for words in block.commands()
        if words[0] != "make"
    ]
    shown += [shlex.split(words) for words in re.findall(r"`(sojourn [^`\n]+)`", text)]
    for words in shown:
        program, *rest = words[1:] if words[0] == "sudo" else words
        assert program == "sojourn", words
        understand(cli, rest)


def test_each_declared_name_has_its_page() -> None:
    for name in QDISCS:
        assert f"docs/qdiscs/{name}.md" in TEXTS
    for name in CONGESTION:
        assert f"docs/congestion/{name}.md" in TEXTS
    for name in schemas.names():
        assert f"docs/schemas/{name}.md" in TEXTS
    for names in sections().values():
        for name in names:
            assert f"docs/commands/{name}.md" in TEXTS


@pytest.mark.parametrize("name", QDISCS)
def test_the_page_of_a_discipline_has_its_words_and_its_purpose(name: str) -> None:
    page = TEXTS[f"docs/qdiscs/{name}.md"]
    purpose = page.partition("## Words and defaults")[0]
    assert f"`{name}`" in purpose, "docs/qdiscs.md needs a paragraph that begins with its name"
    for variant in QDISCS[name].variants:
        for word, _ in QDISCS[name].words(variant):
            assert f"`{word}`" in page, word


def test_defaults_are_those_of_the_record() -> None:
    page = TEXTS["docs/qdiscs/codel.md"]
    assert "| `target` | TIME | 5 ms |" in page
    assert "| `interval` | TIME | 100 ms |" in page
    assert "| `limit` | PACKETS | 1000 |" in page


@pytest.mark.parametrize("name", CONGESTION)
def test_the_page_of_a_congestion_control_has_its_purpose(name: str) -> None:
    assert f"**`{name}`.**" in TEXTS[f"docs/congestion/{name}.md"]


def test_the_agreement_of_a_discipline_is_that_of_the_page() -> None:
    whole = (ROOT / "docs" / "agreement.md").read_text(encoding="utf-8")
    rows = [
        line for line in TEXTS["docs/qdiscs/pie.md"].splitlines() if line.startswith("| on pie ")
    ]
    assert len(rows) == 1
    assert rows[0] in whole
    assert not any("| on fq_pie" in line for line in TEXTS["docs/qdiscs/pie.md"].splitlines())


def test_similar_names_are_distinguished() -> None:
    for text, name in (
        ("on pie", "pie"),
        ("`replay-fq-pie`", "fq_pie"),
        ("fq has 8", "fq"),
        ("red's", "red"),
    ):
        assert extract.named(text, name), text
    for text, name in (
        ("on fq_pie", "pie"),
        ("`replay-fq-pie`", "pie"),
        ("fq_codel", "codel"),
        ("fq-pie", "fq"),
    ):
        assert not extract.named(text, name), text


def test_the_gallery_has_every_figure_and_every_example() -> None:
    functions = {name for name in figures.__all__ if name[0].islower()} - {"all_for", "save"}
    assert set(gallery.DRAWN) == functions
    for name in examples.names():
        assert f"\n## {name}\n" in TEXTS["docs/gallery/examples.md"]


def test_every_drawing_is_on_a_page_and_up_to_date() -> None:
    written = {
        file.name: file.read_text(encoding="utf-8")
        for file in (ROOT / "docs" / "concepts").glob("*.svg")
    }
    assert written == drawings.files(), "run python docs/generate.py"
    for name in written:
        text = pages.written()[f"docs/concepts/{Path(name).stem}.md"]
        assert f"]({name})" in text


def test_comments_control_how_a_block_is_run() -> None:
    page = (
        "<!-- file: a.toml -->\n```toml\ntitle = 1\n```\n\n<!-- guest -->\n```sh\nsojourn run a \\\n  -q # so\n```\n"
        "<!-- output -->\n<!-- figure: a.svg: an a -->\n"
    )
    file, command = blocks.find(page)
    assert file.file == "a.toml"
    assert not file.runs
    assert command.waits
    assert list(command.commands()) == [["sojourn", "run", "a", "-q"]]
    assert command.behind == [("output", ""), ("figure", "a.svg: an a")]
    filled = blocks.fill(page, [blocks.Outcome(""), blocks.Outcome("said")], "![{1}]({0})".format)
    assert "```text\nsaid\n```" in filled
    assert "![an a](a.svg)" in filled
    assert "Not run" in blocks.fill(page, [blocks.Outcome(""), blocks.Outcome()], "{}{}".format)


@pytest.mark.parametrize(
    "text", ["```sh\nls\n```\n", "```sh\nsojourn check nothing\n```\n", "```python\n1 / 0\n```\n"]
)
def test_a_block_that_fails_names_its_page_and_line(text: str, tmp_path: Path) -> None:
    [block] = blocks.find(f"# A\n\n{text}")
    with pytest.raises(blocks.BlockError, match=r"a\.md, line 3"):
        blocks.Player("a.md", tmp_path).play(block)


def played() -> Iterator[blocks.Block]:
    for path in TEXTS:
        if pages.is_played(path):
            yield from blocks.find(TEXTS[path])


def test_no_block_is_left_out_without_a_reason() -> None:
    # A block with an output or a figure is run, or needs a guest.
    for block in played():
        assert block.runs or not block.behind, block.text


def test_a_figure_scrolls_on_a_phone_and_the_text_around_it_does_not() -> None:
    assert pages.picture("made/cdf.svg", "a text") == (
        "````{container} scrolls\n```{image} made/cdf.svg\n:alt: a text\n:class: figure\n```\n````"
    )
    narrow = (ROOT / "docs/site/static/site.css").read_text().partition("@media (max-width: 48em)")
    assert ".scrolls { overflow-x: auto; }" in narrow[2]
    assert ".scrolls img.figure { width: auto; max-width: none;" in narrow[2]
