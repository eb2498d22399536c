"""Sweeps: `"bottleneck.qdisc" = ["pfifo", "codel"]` under `[sweep]`, and what a dotted key means.

Every combination of the values is one scenario, the first key varying slowest. A key is the path to a value; the entries of `[[flow]]`
and `[[link]]` are named by position from 0 (`flow.0.count`), by name or kind (`flow.bulk.count`), or all at once (`flow.*.ecn`).
"""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sojourn.scenario.errors import Key, Problem, ScenarioError, Source
from sojourn.units import nearest, quoted

MAX_VARIANTS = 10_000

_SPEAK_FOR_THEMSELVES = ("qdisc", "congestion", "profile", "title", "link_layer")
"""Keys whose value says in a label what it is."""


@dataclass(frozen=True)
class Change:
    """One point of a sweep: (dotted key, which of its values, the value)."""

    settings: tuple[tuple[str, int, Any], ...]

    def apply(self, document: Mapping[str, Any], source: Source) -> dict[str, Any]:
        """The document with the values set; only what lies on their way is copied."""
        result = dict(document)
        problems = []
        for dotted, index, value in self.settings:
            try:
                result = changed(result, dotted, value)
            except ScenarioError as error:
                for problem in error.problems:
                    moved = Problem(problem.message, problem.hint, ("sweep", dotted, index))
                    problems.append(source.locate(moved))
        if problems:
            raise ScenarioError(problems)
        return result

    def relocate(self, problem: Problem, source: Source) -> Problem:
        """A problem of the changed scenario, placed at the value in `[sweep]` that made it."""
        if problem.key[:1] == ("sweep",):
            return problem
        written = tuple(str(part) for part in problem.key)
        near = [
            (dotted, index)
            for dotted, index, _ in self.settings
            if _reaches(tuple(dotted.split(".")), written) or problem.dotted.startswith(dotted)
        ]
        dotted, index = near[0] if near else self.settings[0][:2]
        message = problem.message if near else f"with {self.words}: {problem.dotted}: {problem.message}"
        moved = Problem(message, problem.hint, ("sweep", dotted, index))
        return source.locate(moved)

    @property
    def words(self) -> str:
        """The change as a label: `codel, rate 5 Mbit/s`."""
        return ", ".join(_words(dotted, value) for dotted, _, value in self.settings)


def changed(document: Mapping[str, Any], dotted: str, value: Any) -> dict[str, Any]:
    """The document with the value at a dotted key; None takes the key away."""
    copy = dict(document)
    try:
        for path in paths(copy, dotted):
            if value is not None:
                _check_common(copy, path)
            _set(copy, path, value)
    except _NoSuchKeyError as error:
        raise ScenarioError([Problem(error.message, error.hint, tuple(dotted.split(".")))]) from None
    return copy


def changes(sweep: Mapping[str, Any], source: Source) -> list[Change]:
    """Every point of the sweep, the first key varying slowest."""
    if not sweep:
        return []
    problems = []
    axes = []
    size = 1
    for dotted, values in flat(sweep).items():
        key: Key = ("sweep", dotted)
        if dotted.split(".")[0] in ("sweep", "seed", "seeds", "label"):
            problems.append(Problem(f"{dotted} can't be swept", "every variant runs with every seed", key))
        elif not isinstance(values, list | tuple) or not values:
            problems.append(
                Problem(f"{quoted(values)} is not a list of values", 'write ["codel", "fq_codel"]', key)
            )
        elif len({repr(value) for value in values}) < len(values):
            problems.append(Problem("a value stands there twice", "write each value once", key))
        else:
            size *= len(values)
            axes.append([(dotted, index, value) for index, value in enumerate(values)])
    if size > MAX_VARIANTS:
        problems.append(Problem(f"{size} variants", f"the most is {MAX_VARIANTS}", ("sweep",)))
    if problems:
        raise ScenarioError([source.locate(problem) for problem in problems])
    return [Change(point) for point in itertools.product(*axes)]


def labels(sweep: Mapping[str, Any]) -> list[str]:
    """A short name for each point, unique."""
    points = changes(sweep, Source())
    short = [point.words for point in points]
    if len(set(short)) == len(short):
        return short
    return [", ".join(f"{dotted} {_text(value)}" for dotted, _, value in point.settings) for point in points]


def flat(sweep: Mapping[str, Any]) -> dict[str, Any]:
    """`bottleneck.qdisc = [...]` without quotes is a table in TOML: the same as the quoted key."""
    found: dict[str, Any] = {}
    for key, value in sweep.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{rest}": inner for rest, inner in flat(value).items()}
        else:
            found[key] = value
    return found


def paths(document: Mapping[str, Any], dotted: str) -> list[Key]:
    """The places in the document that a dotted key names."""
    head, _, rest = dotted.partition(".")
    if head not in ("flow", "link") or not rest:
        return [tuple(dotted.split("."))]
    entries = document.get(head)
    entries = entries if isinstance(entries, list | tuple) else []
    found: list[Key] = []
    for index, name in enumerate(_names(entries, head)):
        for word in ("*", str(index), name):
            if rest.startswith(f"{word}."):
                found.append((head, index, *rest[len(word) + 1 :].split(".")))
                break
    if not found:
        words = [*_names(entries, head), *(str(index) for index in range(len(entries))), "*"]
        guess = nearest(rest.split(".")[0], words)
        hint = f"did you mean {head}.{guess}? " if guess else ""
        raise _NoSuchKeyError(
            f"{quoted(dotted)} names no [[{head}]]", f"{hint}known: {', '.join(words[:20])}"
        )
    return found


def unsettled(sweep: Mapping[str, Any], document: Mapping[str, Any], places: Iterable[Key]) -> dict[str, Any]:
    """What is left of a sweep once the values at these places are settled: keys that name something else too."""
    settled = set(places)

    def stays(dotted: str) -> bool:
        try:
            named = paths(document, dotted)
        except _NoSuchKeyError:
            # It is refused where the sweep is read.
            return True
        return not all(any(path[:length] in settled for length in range(1, len(path) + 1)) for path in named)

    return {dotted: values for dotted, values in sweep.items() if stays(dotted)}


class _NoSuchKeyError(Exception):
    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def _names(entries: Any, head: str) -> list[str]:
    """What an entry may be called in a key: its name, or its kind (a link: from-to)."""
    names = []
    for entry in entries:
        table = entry if isinstance(entry, Mapping) else {}
        kind = table.get("kind", "") if head == "flow" else f"{table.get('from')}-{table.get('to')}"
        names.append(str(table.get("name", kind)))
    return names


_RATES = ("rate", "schedule", "repeat", "trace")
"""They go together: a direction that gives one takes none from the common table."""


def _check_common(document: Mapping[str, Any], path: Key) -> None:
    """Refuses a common value of the bottleneck that neither direction would take: setting it would change nothing."""
    if path[0] != "bottleneck" or len(path) != 2 or path[1] in ("up", "down"):
        return
    key = str(path[1])
    rivals = _RATES if key in _RATES else (key,)
    bottleneck = document.get("bottleneck")
    ways = [bottleneck.get(way) for way in ("up", "down")] if isinstance(bottleneck, Mapping) else []
    if ways and all(isinstance(way, Mapping) and any(rival in way for rival in rivals) for way in ways):
        raise _NoSuchKeyError(
            f"setting it changes nothing: up and down each have their own {key}",
            f"set bottleneck.up.{key} or bottleneck.down.{key}",
        )


def _set(document: dict[str, Any], path: Key, value: Any) -> None:
    """Sets a value, copying the tables on the way to it; None takes the key away."""
    if path[0] == "seed":
        document.pop("seeds", None)
    elif path[0] == "seeds":
        document.pop("seed", None)
    table: Any = document
    for depth, part in enumerate(path[:-1]):
        inner = table[part] if isinstance(part, int) else table.get(part, {})
        if isinstance(inner, Mapping):
            inner = dict(inner)
        elif isinstance(inner, list | tuple) and isinstance(path[depth + 1], int):
            inner = list(inner)
        else:
            around = ".".join(str(each) for each in path[: depth + 1])
            raise _NoSuchKeyError(f"{around} is not a table", f"a key below it can't be set: {path[-1]}")
        table[part] = inner
        table = inner
    last = path[-1]
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value


def _reaches(swept: tuple[str, ...], written: tuple[str, ...]) -> bool:
    """Whether a problem's key lies at, below or around a swept key, where an entry may be named by name."""
    if swept[: len(written)] == written and swept[0] not in ("flow", "link"):
        return True
    if swept[0] in ("flow", "link"):
        return len(written) > 2 and written[0] == swept[0] and written[2 : len(swept)] == swept[2:]
    return written[: len(swept)] == swept


def _words(dotted: str, value: Any) -> str:
    last = dotted.rsplit(".", 1)[-1]
    return _text(value) if last in _SPEAK_FOR_THEMSELVES else f"{last} {_text(value)}"


def _text(value: Any) -> str:
    match value:
        case bool():
            return "on" if value else "off"
        case str():
            return value
        case list() | tuple():
            return "[" + ", ".join(_text(item) for item in value) + "]"
        case _:
            return str(value)
