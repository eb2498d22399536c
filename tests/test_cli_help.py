"""The command line's descriptions of itself: help by section, options declared once, completion,
the manual page, old spellings."""

import itertools
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from sojourn.cli import cli, options, sections, status

WIDTH = 80


def commands(command: click.Command, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Returns every command that help lists, as the words that call it."""
    inner = command.commands.items() if isinstance(command, click.Group) else []
    below = [commands(each, (*words, name)) for name, each in inner if not each.hidden]
    return [words, *itertools.chain.from_iterable(below)]


def command(words: tuple[str, ...]) -> click.Command:
    found: click.Command = cli
    for word in words:
        assert isinstance(found, click.Group)
        found = found.commands[word]
    return found


ALL = commands(cli)


def helped(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    assert status([*words, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_help_fits_the_terminal_and_cuts_nothing_off(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = helped(words, monkeypatch, capsys)
    assert max(map(len, text.splitlines())) <= WIDTH
    listed = text.partition("Options:")[2]
    assert not re.search(r"\.\.\.$", listed, flags=re.MULTILINE), (
        "the first sentence must be complete"
    )


def test_every_command_is_listed_once_in_its_section(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = helped((), monkeypatch, capsys)
    assert [
        line.rstrip(":") for line in text.splitlines() if line.rstrip(":") in sections()
    ] == list(sections())
    listed = [name for names in sections().values() for name in names]
    assert listed == [cli.commands[name].name for name in listed]
    assert sorted(listed) == sorted(
        name for name, command in cli.commands.items() if not command.hidden
    )
    for name in listed:
        assert len(re.findall(rf"^  {name} ", text, flags=re.MULTILINE)) == 1, name


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_option_has_a_description(words: tuple[str, ...]) -> None:
    for parameter in command(words).params:
        assert not isinstance(parameter, click.Option) or parameter.help, (
            f"{words}: {parameter.opts}"
        )


@pytest.mark.parametrize("name", ["--json", "--quiet", "--set", "--seed", "--streams", "--port"])
def test_an_option_of_one_meaning_has_one_text(name: str) -> None:
    # Excludes serve: its own port is not the port of a server to connect to.
    texts = {
        parameter.help
        for words in ALL
        if words[-1:] != ("serve",)
        for parameter in command(words).params
        if isinstance(parameter, click.Option) and name in parameter.opts
    }
    assert len(texts) == 1


@dataclass(frozen=True)
class SizeOptions:
    """A block of options."""

    width: int = options.option("-w", "--width", type=int, default=3, help="How wide.")
    name: str | None = options.option("--name", help="Its name.")


def test_a_block_reaches_the_verb_as_one_value() -> None:
    @click.command()
    @click.argument("what")
    @options.block(SizeOptions, width={"default": 5})
    @options.one(options.TalkOptions, "quiet")
    def verb(what: str, size: SizeOptions, quiet: bool) -> tuple[str, SizeOptions, bool]:
        return what, size, quiet

    said = verb.main(["it", "--name", "n"], standalone_mode=False)
    assert said == ("it", SizeOptions(5, "n"), False)
    assert [parameter.name for parameter in verb.params] == ["what", "width", "name", "quiet"]


def test_a_block_is_only_read_for_its_own_options() -> None:
    with pytest.raises(AssertionError, match="no such options"):
        options.block(SizeOptions, height="How high.")


# ---------------------------------------------------------------------------------- old spellings


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (["measure", "--rpm", "lab.example"], "sojourn rpm measure HOST"),
        (["measure", "--insecure", "--rpm", "lab.example"], "sojourn rpm measure HOST"),
        (["serve", "--rpm"], "sojourn rpm serve"),
        (["serve", "--cert", "f", "--rpm"], "sojourn rpm serve"),
        (["agree", "--replay"], "sojourn replay"),
    ],
)
def test_an_old_spelling_names_the_new_one(
    words: list[str], now: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    error, hint = said.err.splitlines()
    assert error.startswith("error: `sojourn ")
    assert hint == f"hint: {now}"


# -------------------------------------------------------------------- completion, the manual page


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "file"),
    [
        ("bash", ".local/share/bash-completion/completions/sojourn"),
        ("zsh", ".local/share/zsh/site-functions/_sojourn"),
        ("fish", ".config/fish/completions/sojourn.fish"),
    ],
)
def test_completion_is_printed_and_installed(
    shell: str, file: str, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_SOJOURN_COMPLETE" in script
    assert status(["completion", shell, "--install", "-q"]) == 0
    assert (own_home / file).read_text() == script


def test_completion_knows_verbs_and_options() -> None:
    complete = ShellComplete(cli, {}, "sojourn", "_SOJOURN_COMPLETE")
    assert {each.value for each in complete.get_completions([], "re")} == {
        "report",
        "replay",
        "reproduce",
    }
    assert "--insecure" in {
        each.value for each in complete.get_completions(["rpm", "measure"], "--")
    }


def test_an_obstacle_to_an_installation_is_reported(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_home / ".local").write_text("")
    assert status(["man", "--install"]) == 2
    assert "can't make" in capsys.readouterr().err


def test_the_manual_page_has_every_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["man"]) == 0
    page = capsys.readouterr().out
    plain = page.replace("\\-", "-")
    for words in ALL:
        assert " ".join(("sojourn", *words)) in plain
        for parameter in command(words).params:
            assert not isinstance(parameter, click.Option) or parameter.opts[0] in plain


def test_the_manual_page_is_good_roff(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which("groff") is None:
        pytest.skip("no groff here")
    assert status(["man", "--install", "-q"]) == 0
    page = own_home / ".local/share/man/man1/sojourn.1"
    done = subprocess.run(
        ["groff", "-ww", "-man", "-Tutf8", str(page)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "sojourn rpm measure" in done.stdout


def test_help_needs_no_slow_imports() -> None:
    program = "import sys; from sojourn.cli import status; status(['--help']); print('polars' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"
