"""What a Run is of, and how Runs differ: which of them compete, and what to call each.

A scenario is conditions and choices. Conditions are what the line and its users are: rate, delay,
losses, RTTs, flows, how long. Choices are what who runs the line or its ends can set: the queue
discipline and what lies below it, and TCP. Runs whose conditions are equal are alike and compete by
their choices; all others stand side by side.
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
    }
)
"""Keys of a scenario that are choices, with all below them."""
SILENT = frozenset({"title", "label", "seed", "seeds", "record", "sweep"})
"""Keys that change no number of a sample."""
SPEAKING = frozenset({"qdisc", "congestion", "profile", "engine", "title", "text"})
"""Keys whose value says what it is."""

Facts = dict[tuple[str, ...], Any]
"""What a Run is of, by the keys of its scenario."""


def facts(run: Run) -> Facts:
    """Everything that is known of what was run, but for its title, its label and its seeds."""
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
    """What the scenario means; of one that this version can't read, its keys as they are
    written."""
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
    """Those facts that must be equal for Runs to compete."""
    return {path: value for path, value in found.items() if CHOICES.isdisjoint(_keys(path))}


def _keys(path: tuple[str, ...]) -> tuple[str, ...]:
    """Without the name of the flow or link, which may be that of a choice."""
    return (path[0], *path[2:]) if path[0] in ("flow", "link") else path


def is_choice(key: str) -> bool:
    """Whether a swept key, like "bottleneck.qdisc", is a choice."""
    return not CHOICES.isdisjoint(_keys(tuple(key.split("."))))


def alike(runs: Sequence[Run]) -> list[list[int]]:
    """The positions of the Runs in groups of equal conditions, each in their order."""
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
    """The keys whose values are not the same in all of these, in the order of their first
    mention."""
    keys = dict.fromkeys(path for each in every for path in each)
    varying = [path for path in keys if any(each.get(path) != every[0].get(path) for each in every)]
    # That flows or links differ follows from the key that says so, where there is one.
    derived = {("links",), ("flows",)}
    return [path for path in varying if path not in derived] or varying


def words(
    found: Facts, keys: Sequence[tuple[str, ...]], names: Mapping[str, str] | None = None
) -> str:
    """The values of these keys: "fq_codel, up.rate 5 Mbit/s"; classes of one's own by their
    `own_names`."""
    names = names or {}
    said = []
    for path in keys:
        if not _has(found, path):
            continue
        value, last = found.get(path), path[-1]
        name = last
        several = [other for other in keys if other[-1] == last and _has(found, other)]
        # What is the same of all of them, like the rate of both ways, is said once.
        if (
            len(several) > 1
            and len(path) > 1
            and any(found.get(other) != value for other in several)
        ):
            name = ".".join(path[-2:])
        if path in (("duration",), ("warmup",)):
            said.append(f"{name} {value / 1e9:g} s" if isinstance(value, int) else name)
        elif path in (("links",), ("flows",)):
            said.append(f"{len(value or ())} {last}")
        elif path[0] == "code":
            said.append(f"{last} {str(value).removeprefix('sha256 ')[:8]}")
        elif last in SPEAKING:
            said.append(_text(names.get(str(value), value)))
        else:
            said.append(f"{name} {_text(value)}")
    return ", ".join(dict.fromkeys(said))


def _has(found: Facts, path: tuple[str, ...]) -> bool:
    """Whether there is what the key is of: not so of a flow or a file that others have."""
    if path[0] == "code":
        return path in found
    return path[0] not in ("flow", "link") or any(other[:2] == path[:2] for other in found)


def headings(runs: Sequence[Run]) -> list[str]:
    """Of Runs that are not alike: what sets each apart; its title where flows or links differ in
    kind."""
    if len(runs) < 2:
        return [""] * len(runs)
    every = [conditions(facts(run)) for run in runs]
    keys = differences(every)
    said = [words(found, keys) for found in every]
    if all(said) and len({_kinds(found) for found in every}) == 1:
        return said
    titles = [run.meta.title for run in runs]
    named = []
    for title, found in zip(titles, every, strict=True):
        same = [other for other, its in zip(every, titles, strict=True) if its == title]
        apart = words(found, differences(same)) if len(same) > 1 else ""
        named.append(", ".join(filter(None, (title, apart))))
    return named


def _kinds(found: Facts) -> frozenset[tuple[str, ...]]:
    """Its links and flows by name, flows with their kind."""
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
    """Of Runs that compete: what was chosen, where that tells them apart; else their labels.
    `names`: of classes of one's own."""
    every = [facts(run) for run in runs]
    keys = differences(every)
    plain = [key for key in keys if key[0] != "code"]
    # A file that changed tells its classes apart, where nothing else does.
    own = [key for found in every for key, value in found.items() if str(value) in names]
    for those in (plain, list(dict.fromkeys([*own, *keys]))):
        said = [words(found, those, names) for found in every]
        if len(set(said)) == len(runs) and all(said):
            return said
    return labels(runs)


def labels(runs: Sequence[Run]) -> list[str]:
    """What to call each Run, all different: its name, with what else sets it apart from others of
    that name."""
    called = own_names(runs)
    names = [renamed(run.name, called) for run in runs]
    found: dict[int, Facts] = {}
    said = list(names)
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
            said[i] = ", ".join(filter(None, (own, apart)))
    return _by_folder(said, [run.path for run in runs])


def _by_folder(said: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Runs of the same thing are told apart by as much of their folders as it takes."""
    told = list(said)
    for label in dict.fromkeys(said):
        same = [i for i, each in enumerate(said) if each == label]
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
            # Without a difference it is one Run, given again.
            told[i] = f"{label}, {'/'.join(each[-deep:])}" if deep else label + nth * ", again"
    return told
