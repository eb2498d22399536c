"""Scenarios: from text to a frozen value, and from this to the integers that an engine needs.

    scenario = sojourn.load("home-uplink.toml")
    for variant in scenario.variants():          # one per point of its sweep
        for seed in variant.seeds:
            engine.run(variant.realise(seed))

A scenario's meaning is defined in crates/scenario and nowhere else; docs/scenario.md is the
reference of the language.
"""

from pathlib import Path
from typing import BinaryIO

from sojourn._core import Scenario, dotted_key, scenario_keys
from sojourn.sanitize import is_plain, plain
from sojourn.scenario import examples
from sojourn.scenario.errors import Problem, ScenarioError
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.trace import opener

MAX_BYTES = 16 * 2**20
"""The largest scenario file: 16 MiB."""

__all__ = [
    "Problem",
    "Qdisc",
    "Scenario",
    "ScenarioError",
    "dotted_key",
    "load",
    "loads",
    "read",
    "scenario_keys",
]


def load(path: str | Path) -> Scenario:
    """Reads the scenario in a file, or the example of this name.

    >>> import sojourn
    >>> scenario = sojourn.load("home-uplink")
    >>> slower = scenario.with_({"bottleneck.up.rate": "5 Mbit/s"})
    >>> up = next(link for link in slower.realise(seed=1).links if link.name == "up")
    >>> up.rate[0].bps
    5000000

    Raises:
        ScenarioError: the file can't be read, or the scenario is wrong; with all its problems.
    """
    name = str(path)
    if "\0" in name:
        raise _unreadable(
            name, "the name contains a NUL character", "give the name of a scenario file"
        )
    path = examples.find(Path(path))
    name = str(path)
    try:
        with path.open("rb") as file:
            text = read(file, name)
    except IsADirectoryError:
        raise _unreadable(
            name, "this is a folder, not a scenario file", "name a .toml file in it"
        ) from None
    except OSError as error:
        raise _unreadable(
            name, f"can't read it: {error.strerror or error}", "check the name of the file"
        ) from None
    return loads(text, name=name, folder=path.parent)


def read(file: BinaryIO, name: str) -> str:
    """Reads the text of an open scenario file. `name` is for messages."""
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        problem = Problem(
            "the file is larger than 16 MiB, so it is not a scenario", "", (), plain(name), 1, 1
        )
        raise ScenarioError([problem])
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(name, data, error.start) from None


def loads(text: str, *, name: str = "scenario", folder: Path | None = None) -> Scenario:
    """Reads the scenario in a text. `name` is for messages; relative paths start at `folder`."""
    stem = Path(name).stem
    untitled = stem if folder is not None and is_plain(stem) else None
    # A file's name need not be valid UTF-8.
    return Scenario.read(text, plain(name), untitled, opener(folder))


def _unreadable(name: str, message: str, hint: str) -> ScenarioError:
    return ScenarioError([Problem(message, hint, (), plain(name) or ".")])


def _not_utf8(name: str, data: bytes, at: int) -> ScenarioError:
    before = data[:at].decode()
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    source = data.decode("utf-8", errors="replace").split("\n")[line - 1].rstrip("\r")
    problem = Problem(
        "not UTF-8 text",
        "save the scenario file as UTF-8",
        (),
        plain(name),
        line,
        column,
        source,
    )
    return ScenarioError([problem])
