"""The facts of a Run and how Runs differ: which of them compete, and the name of each.

A scenario consists of conditions and choices. Conditions describe the line and its users: rate,
delay, losses, RTTs, flows, duration. Choices are settings of the operator or of the hosts: the
queue discipline, everything below it, and TCP. Runs with equal conditions compete by their choices.
Other Runs are only shown side by side.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from sojourn.judgement.own_names import own_names, renamed
from sojourn.records import Run
from sojourn.scenario import ScenarioError, loads

CHOICES = frozenset(
    {
        "qdisc",
        "qdisc_schedule",
        "shaper",
        "queues",
        "pinned",
        "ring",
        "bql",
        "coalesce",
        "congestion",
        "ecn",
        "profile",
        "tcp",
        "offloads",
        "code",
        "program",
        "programs",
        "server",
        "client",
        "files",
        "env",
    }
)
"""Keys of a scenario that are choices, with all keys below them."""
SILENT = frozenset({"title", "label", "seed", "seeds", "record", "sweep"})
"""Keys that change no number of a sample."""
SPEAKING = frozenset({"qdisc", "congestion", "profile", "engine", "title", "text"})
"""Keys whose value needs no name in front."""

Facts = dict[tuple[str, ...], Any]
"""The facts of a Run, by the keys of its scenario."""


def facts(run: Run) -> Facts:
    """All facts of a Run except its title, its label and its seeds."""
    meta = run.meta
    try:
        found = dict(_written(run.scenario_text, run.path))
    except OSError:
        found = {}
    found |= {("link", link.name, "qdisc"): link.qdisc for link in meta.links if link.sampled}
    found[("engine",)] = meta.engine
    found[("duration",)], found[("warmup",)] = meta.duration_ns, meta.warmup_ns
    found[("links",)] = tuple((link.name, link.delay_ns) for link in meta.links)
    found[("flows",)] = tuple((flow.name, flow.kind, flow.path) for flow in meta.flows)
    return found


@lru_cache(maxsize=2048)
def _written(text: str, folder: Path) -> Facts:
    """The meaning of a scenario; the keys as written if this version can't read it."""
    try:
        return loads(text, folder=folder).meaning()
    except ScenarioError:
        pass
    try:
        document: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        document = {}
    return {
        path: value
        for path, value in _leaves(document)
        if path[0] not in SILENT and path[-1] != "qdisc"
    }


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, (*path, str(key)))
    elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        for number, each in enumerate(value):
            yield from _leaves(each, (*path, str(number)))
    else:
        yield path, value


def conditions(found: Facts) -> Facts:
    """The facts that must be equal for Runs to compete."""
    return {path: value for path, value in found.items() if CHOICES.isdisjoint(_keys(path))}


def _keys(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path without the name of the flow or link, which may equal the name of a choice."""
    return (path[0], *path[2:]) if path[0] in ("flow", "link") else path


def is_choice(key: str) -> bool:
    """Whether a swept key, like "bottleneck.qdisc", is a choice."""
    return not CHOICES.isdisjoint(_keys(tuple(key.split("."))))


def alike(runs: Sequence[Run]) -> list[list[int]]:
    """The positions of the Runs, in groups with equal conditions."""
    groups: list[tuple[Facts, list[int]]] = []
    for position, run in enumerate(runs):
        here = conditions(facts(run))
        known = next((members for these, members in groups if these == here), None)
        if known is None:
            groups.append((here, [position]))
        else:
            known.append(position)
    return [members for _, members in groups]


def differences(every: Sequence[Facts]) -> list[tuple[str, ...]]:
    """The keys whose values differ between these facts, in the order of their first mention."""
    keys = dict.fromkeys(path for each in every for path in each)
    varying = [path for path in keys if any(each.get(path) != every[0].get(path) for each in every)]
    # If another key makes the flows or links differ, naming that key is enough.
    derived = {("links",), ("flows",)}
    return [path for path in varying if path not in derived] or varying


def words(
    found: Facts, keys: Sequence[tuple[str, ...]], names: Mapping[str, str] | None = None
) -> str:
    """The values of these keys: "fq_codel, up.rate 5 Mbit/s". User-defined classes
    have the names of `own_names`."""
    names = names or {}
    parts = []
    for path in keys:
        if not _has(found, path):
            continue
        value, last = found.get(path), path[-1]
        name = last
        several = [other for other in keys if other[-1] == last and _has(found, other)]
        # A value that all of them share, like the rate of both directions, appears once.
        if (
            len(several) > 1
            and len(path) > 1
            and any(found.get(other) != value for other in several)
        ):
            name = ".".join(path[-2:])
        if path in (("duration",), ("warmup",)):
            parts.append(f"{name} {value / 1e9:g} s" if isinstance(value, int) else name)
        elif path in (("links",), ("flows",)):
            parts.append(f"{len(value or ())} {last}")
        elif path[0] == "code":
            parts.append(f"{last} {str(value).removeprefix('sha256 ')[:8]}")
        elif last in SPEAKING:
            parts.append(_text(names.get(str(value), value)))
        else:
            parts.append(f"{name} {_text(value)}")
    return ", ".join(dict.fromkeys(parts))


def _has(found: Facts, path: tuple[str, ...]) -> bool:
    """Whether the Run has the flow, link or file to which the key belongs."""
    if path[0] == "code":
        return path in found
    return path[0] not in ("flow", "link") or any(other[:2] == path[:2] for other in found)


def headings(runs: Sequence[Run]) -> list[str]:
    """A heading for each group of Runs: the differences between groups, or the title if flows or
    links differ in kind."""
    if len(runs) < 2:
        return [""] * len(runs)
    every = [conditions(facts(run)) for run in runs]
    keys = differences(every)
    differing = [words(found, keys) for found in every]
    if all(differing) and len({_kinds(found) for found in every}) == 1:
        return differing
    titles = [run.meta.title for run in runs]
    named = []
    for title, found in zip(titles, every, strict=True):
        same = [other for other, its in zip(every, titles, strict=True) if its == title]
        apart = words(found, differences(same)) if len(same) > 1 else ""
        named.append(", ".join(filter(None, (title, apart))))
    return named


def _kinds(found: Facts) -> frozenset[tuple[str, ...]]:
    """The links and flows by name, flows with their kind."""
    named = {path[:2] for path in found if path[0] in ("flow", "link")}
    return frozenset((*path, str(found.get((*path, "kind"), ""))) for path in named)


def _text(value: Any) -> str:
    if value is None:
        return "default"
    if isinstance(value, bool):
        return "on" if value else "off"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def choices(runs: Sequence[Run], names: Mapping[str, str]) -> list[str]:
    """The choices of Runs that compete, if these are all different; otherwise their labels.

    `names`: the names of user-defined classes.
    """
    every = [facts(run) for run in runs]
    keys = differences(every)
    plain = [key for key in keys if key[0] != "code"]
    # If nothing else differs, the Runs differ in the text of a class's file.
    own = [key for found in every for key, value in found.items() if str(value) in names]
    for chosen in (plain, list(dict.fromkeys([*own, *keys]))):
        texts = [words(found, chosen, names) for found in every]
        if len(set(texts)) == len(runs) and all(texts):
            return texts
    return labels(runs)


def labels(runs: Sequence[Run]) -> list[str]:
    """A different label for each Run: its name, and its differences from other Runs of that
    name."""
    called = own_names(runs)
    names = [renamed(run.name, called) for run in runs]
    found: dict[int, Facts] = {}
    texts = list(names)
    for name in dict.fromkeys(names):
        same = [i for i, each in enumerate(names) if each == name]
        if len(same) < 2:
            continue
        for i in same:
            found[i] = facts(runs[i])
        keys = [key for key in differences([found[i] for i in same]) if key[0] != "code"]
        for i in same:
            title = runs[i].meta.title
            apart = words(found[i], keys, called)
            own = "" if name == title and apart else name
            texts[i] = ", ".join(filter(None, (own, apart)))
    return _by_folder(texts, [run.path for run in runs])


def _by_folder(labels_: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Adds to equal labels as many of the last parts of the folder as make them differ."""
    texts = list(labels_)
    for label in dict.fromkeys(labels_):
        same = [i for i, each in enumerate(labels_) if each == label]
        if len(same) < 2:
            continue
        parts = [paths[i].absolute().parts for i in same]
        deep = next(
            (
                n
                for n in range(1, max(map(len, parts)))
                if len({each[-n:] for each in parts}) == len(same)
            ),
            0,
        )
        for nth, (i, each) in enumerate(zip(same, parts, strict=True)):
            # Equal folders: the same Run was given again.
            texts[i] = f"{label}, {'/'.join(each[-deep:])}" if deep else label + nth * ", again"
    return texts
