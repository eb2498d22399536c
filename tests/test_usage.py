"""A hint's suggested command is accepted: the options and verbs that hints name exist."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import sojourn
import sojourn_live
import sojourn_papers
from sojourn.cli import cli, status, usage
from sojourn.scenario import ScenarioError, loads, scenario_keys

PACKAGE = Path(sojourn.__file__).parent
HOMES = [PACKAGE, *(Path(each.__file__).parent for each in (sojourn_live, sojourn_papers))]
EXAMPLE = PACKAGE / "scenarios" / "home-uplink.toml"


def verbs(
    command: click.Command = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from verbs(found, (*path, name))


VERBS = dict(verbs())
OPTIONS = {
    path: {"--help"}.union(*({*each.opts, *each.secondary_opts} for each in command.params), {"-h"})
    for path, command in VERBS.items()
}
NAMED = re.compile(r"(?<![\w-])--?[a-z][a-z0-9-]*")


def missing(path: tuple[str, ...], words: str) -> list[str]:
    """Returns the options in these words that the verb does not have."""
    return [each for each in NAMED.findall(words) if each not in OPTIONS[path]]


# ------------------------------------------------------------------------ wrong words, and the way


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        ("advise --up 20Mbps", "--up: 'Mbps' is not a unit of rate", "write 20mbit"),
        ("advise --rate 20", "--up: a rate needs a unit; '20' has none", "write 20mbit"),
        ("advise --up 1kbit", "--up: 1kbit is out of range", "from 64kbit to"),
        ("advise --upload 5mbit", "no option --upload", "--up"),
        ("advise --link docsis", "a SCENARIO, or a line", ""),
        ("advise --up 9mbit --link cable", "--link: unknown link layer 'cable'", "write docsis"),
        ("advise --up 9mbit --rtt 9ms..3ms", "--rtt: '9ms..3ms' is neither", "write 20ms, or"),
        ("shape lo --up 18", "--up: a rate needs a unit; '18' has none", "write 18mbit"),
        ("shape lo --down 18gbps", "--down: 'gbps' is not a unit", "write 18gbit"),
        ("shape lo --rate 5mbit", "no option --rate", "--up RATE and --down RATE"),
        ("shape lo --link-layer ptm", "no option --link-layer", "--link LAYER"),
        ("shape lo --up 5mbit --link dsl", "--link: unknown link layer 'dsl'", "pppoe-ptm"),
        ("shape lo --up 5mbit --link VDSL2", "--link: unknown link", "write pppoe-ptm"),
        ("shape lo --up 5mbit --link fiber", "--link: unknown link", "write ethernet"),
        ("shape lo --target 5ms", "no option --target", '--qdisc "codel target TIME"'),
        ("shape lo --output x", "no option --output", "sojourn shape --help"),
        ("tune lo h --up 18mbit", "extra argument (18mbit)", "--rate 18mbit tries this rate"),
        ("tune lo h --up --rate 18MBps", "--rate: 'MBps' is not", "bytes a second: write 144mbit"),
        ("measure h --duration 5s", "no option --duration", "--length TIME"),
        ("measure h --upload", "no option --upload", "--phase upload"),
        ("measure http://h.example/x", "is a URL", "write h.example, if"),
        ("tune lo https://h.example", "is a URL", "write h.example, if"),
        ("serve --bytes five", "'five' is not a size", "100 GB"),
        ("cache bound five", "SIZE: 'five' is not a size", "20 GB"),
        ("run home-uplink --seeds abc", "--seeds: 'abc' is not a whole", "write one from 1 to"),
        ("run home-uplink -j abc", "'abc' is not a whole number", "write one of at least 1"),
        ("compare home-uplink --up 9mbit", "no option --up", "--set bottleneck.up.rate=VALUE"),
        ("compare home-uplink codel --target 5ms", "no option --target", '"codel target TIME"'),
        ("run home-uplink --memlimit 4mb", "no option", '--qdisc "cake memlimit BYTES"'),
        ("run home-uplink --record x", "no option", "--set record.queue=VALUE"),
        ("run home-uplink --sweep x", "no option", "--vary KEY=VALUE,..."),
        ("verify home.toml", "home.toml is a scenario", "run it first: sojourn run home.toml -o"),
        ("lab home-uplink nope", "unknown queue discipline 'nope'", "did you mean"),
        ("lab home-uplink pfifo codle", "unknown queue discipline 'codle'", "did you mean codel"),
        ("list --verbose", "no option --verbose", "sojourn list --help"),
    ],
)
def test_a_wrong_word_gets_a_hint_with_the_alternative(
    words: str, problem: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(words.split()) == 2
    said = capsys.readouterr().err
    assert problem in said
    assert f"hint: {hint}" in said or hint in said.partition("hint: ")[2]


@pytest.mark.parametrize("path", [path for path in VERBS if path], ids=" ".join)
def test_no_hint_names_an_option_that_the_verb_lacks(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    foreign = [word for words, _ in usage._OPTIONS for word in words]
    for option in (*foreign, "--target", "--up", "--tcp", "--record", "--sweep", "--rtt", "--xyz"):
        if option in OPTIONS[path]:
            continue
        assert status([*path, option]) == 2
        said = capsys.readouterr().err
        if f"no option {option}" in said:
            hint, _, _ = said.partition("hint: ")[2].partition("; sojourn ")
            assert missing(path, hint) == []


KEYS = sorted({key for keys in scenario_keys().values() for key in keys} | {"bandwidth", "mtu"})


def test_a_key_in_a_hint_can_be_set() -> None:
    context = click.Context(VERBS["run",])
    plain = loads(EXAMPLE.read_text(encoding="utf-8"))
    for key in KEYS:
        _, hint = usage._message(click.NoSuchOption(f"--{key}", ctx=context), context)
        found = re.search(r"--set (\S+)=", hint)
        if found is None:
            continue
        # The value may be wrong, but the place must be valid.
        try:
            plain.with_({found[1]: "x"})
        except ScenarioError as error:
            assert "is not a table" not in str(error), (key, hint)


# ------------------------------------------------------------------------- what the texts say


def texts(inside: str = ".") -> Iterator[tuple[Path, int, str]]:
    """Yields every text that names an option. Inserted values are shown as `…`."""
    for file in sorted(file for home in HOMES for file in (home / inside).rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        if "sojourn " not in source or not NAMED.search(source):
            continue
        tree = ast.parse(source, str(file))
        inside = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = (
                    str(part.value) if isinstance(part, ast.Constant) else "…"
                    for part in node.values
                )
                yield file, node.lineno, "".join(parts)
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in inside
            ):
                yield file, node.lineno, node.value


COMMAND = re.compile(r"\bsojourn ([a-z]+)((?: +[^\s`;,()|]+)*)")


def test_a_command_in_a_text_accepts_the_options_beside_it() -> None:
    wrong, seen = [], 0
    for file, line, text in texts():
        for verb, rest in COMMAND.findall(text):
            if (verb,) not in VERBS:
                continue  # "sojourn" is also the time in a queue.
            word = rest.split()[0] if rest.split() else ""
            path = (verb, word) if (verb, word) in VERBS else (verb,)
            seen += len(NAMED.findall(rest))
            wrong += [f"{file.name}:{line}: {verb}{rest}: {each}" for each in missing(path, rest)]
    assert wrong == []
    assert seen > 40


OTHERS = re.compile(
    r"(sojourn-probe|dask|cargo|ethtool|dbgen|rpm2cpio|openssl|pip|tar|patch|unshare|nsenter|rustup|make|rsync)\b.*"
)


def test_an_option_in_a_verb_s_file_belongs_to_the_verb() -> None:
    of_file: dict[str, set[str]] = {}
    for path, command in VERBS.items():
        if command.callback is not None:
            file = Path(inspect.unwrap(command.callback).__code__.co_filename).name
            of_file.setdefault(file, set()).update(OPTIONS[path])
    every = set[str]().union(*OPTIONS.values())
    wrong = []
    for file, line, text in texts("cli"):
        if file.name == "usage.py":
            continue  # It contains other programs' options.
        own = OTHERS.sub("", COMMAND.sub("", text))
        named = [path for path in VERBS if len(path) == 1 and path[0] in own]
        known = of_file.get(file.name, every).union(*(OPTIONS[path] for path in named))
        wrong += [
            f"{file.name}:{line}: {each}"
            for each in NAMED.findall(own)
            if each.startswith("--") and each not in known
        ]
    assert wrong == []
