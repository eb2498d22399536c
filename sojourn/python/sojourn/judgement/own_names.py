"""Names of user-defined classes: "Late target 5ms" for `mine.py:Late target 5ms`; with the file if
the class name is ambiguous.

A scenario stores numbers in the units of the class: 5000000 for a time of 5 ms. The name has the
number as it was written in the Run's label or in a sweep. Otherwise the number has a unit if the
class defines it with MS, US or S.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from sojourn.records import Run
from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.qdisc import QDISCS, Qdisc, is_own

_TIMES = frozenset({"US", "MS", "S"})
"""The constants for times in a file of user-defined code (`sojourn.own`)."""


def own_names(runs: Sequence[Run]) -> dict[str, str]:
    """The name of each user-defined class in these Runs, by its words as stored and as written."""
    written = {words: as_written(run, words) for run in runs for words in _own_words(run)}
    short = shortened(written.values())
    given = {text: words for run in runs for text, words in _given(run)}
    names = {words: short[text] for words, text in written.items()}
    return {**names, **{text: names[words] for text, words in given.items() if words in names}}


def shortened(every: Iterable[str]) -> dict[str, str]:
    """Each text without its file, if the class names are different without it."""
    words = list(every)
    files: dict[str, set[str]] = {}
    for text in filter(is_own, words):
        file, name = _parts(text)
        files.setdefault(name, set()).add(file)
    short = {}
    for text in words:
        file, name = _parts(text)
        alone = len(files.get(name, ())) == 1 and name not in QDISCS and name not in CONGESTION
        short[text] = text.removeprefix(f"{file}:") if alone else text
    return short


def as_written(run: Run, words: str) -> str:
    """The words of a user-defined class in a Run, with times in their units."""
    given = (text for text, stored in _given(run) if stored == words)
    return next(given, None) or _with_units(words, _source(run.scenario_text, _parts(words)[0]))


def renamed(label: str, names: Mapping[str, str]) -> str:
    """A label in which names replace the words of classes."""
    for words in sorted(names, key=len, reverse=True):
        pattern = rf"(?<![^\s,(]){re.escape(words)}(?![^\s,)])"
        label = re.sub(pattern, lambda _, to=names[words]: to, label)  # type: ignore[misc]
    return label


def _own_words(run: Run) -> list[str]:
    every = [link.qdisc for link in run.meta.links]
    every += [flow.congestion for flow in run.meta.flows if flow.congestion]
    return [words for words in dict.fromkeys(every) if is_own(words)]


def _given(run: Run) -> Iterator[tuple[str, str]]:
    """Texts that were written for user-defined classes, each with the words that the scenario
    stores."""
    for text in (run.meta.label, *run.meta.settings.values()):
        if isinstance(text, str) and is_own(text) and _plain(text) not in (None, text):
            yield text, str(_plain(text))


@lru_cache(maxsize=256)
def _plain(text: str) -> str | None:
    try:
        return Qdisc.parse(text).text
    except ValueError:
        return None


def _parts(words: str) -> tuple[str, str]:
    """The file and the class."""
    file, _, name = words.partition(" ")[0].rpartition(":")
    return file, name


@lru_cache(maxsize=64)
def _source(scenario: str, file: str) -> str:
    try:
        text = tomllib.loads(scenario).get("code", {}).get(file, "")
    except (tomllib.TOMLDecodeError, AttributeError):
        return ""
    return text if isinstance(text, str) else ""


def _with_units(words: str, source: str) -> str:
    head, *rest = words.split()
    times = _times(source, _parts(words)[1])
    numbers = [
        _time(int(number)) if word in times and number.isdigit() else number
        for word, number in zip(rest[::2], rest[1::2], strict=True)
    ]
    return " ".join(
        (head, *(part for pair in zip(rest[::2], numbers, strict=True) for part in pair))
    )


def _time(ns: int) -> str:
    """`5ms`: a whole number in the largest possible unit."""
    units = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))
    length, unit = next(each for each in units if ns % each[0] == 0)
    return f"{ns // length}{unit}"


_CONSTANT = re.compile(r"^(\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=[ \t]*(.+)", re.MULTILINE)
_FIELD = re.compile(r"^[ \t]+(\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=[ \t]*(.+)", re.MULTILINE)


def _times(source: str, name: str) -> set[str]:
    """The fields of a class that are defined with a unit of time, or with a constant that is."""
    times = set(_TIMES)
    for constant, value in _CONSTANT.findall(source):
        if times & set(re.findall(r"\w+", value)):
            times.add(constant)
    _, _, after = source.partition(f"\nclass {name}(")
    _, _, body = after.partition("\n")
    body = re.split(r"^\S|^[ \t]+def ", body, maxsplit=1, flags=re.MULTILINE)[0]
    return {
        field for field, value in _FIELD.findall(body) if times & set(re.findall(r"\w+", value))
    }
