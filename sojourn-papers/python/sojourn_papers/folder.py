"""Reads a paper's folder. Every paper has the same files.

    published.toml   the source's content: numbers with their places and tolerances; its claims;
                     parameters that it leaves open, and how they were read; titles and captions of
                     the figures
    *.toml           scenario files
    studies.py       STUDIES: the experiments, each a scenario file with its variants
    measures.py      functions from a seed to a number, and from the evidence to an Estimate
    claims.py        checks of the claims, and sentences with numbers of our Runs
    figures.py       functions that draw, and `story`: the bars of the overview

    model.py                  the source's formulas, if some are computed
    tolerances.toml           tolerances and thresholds, frozen on a date (`frozen`)
    search.py, searched.csv   a search for readings on seeds of its own, and its results

published.toml names functions, studies and variants. They are looked up here, so that a wrong name
is found when the paper is loaded.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from sojourn_papers import published, searched
from sojourn_papers.evidence import SearchResults
from sojourn_papers.paper import (
    Claim,
    Grid,
    Number,
    Paper,
    Picture,
    Reading,
    Role,
    Threshold,
)
from sojourn_papers.published import Entry, Published, PublishedError
from sojourn_papers.study import Study


def read(package: str) -> Paper:
    """The paper of a package: "sojourn_papers.adt".

    Raises:
        PublishedError: its published.toml has an unknown name.
    """
    modules = {
        name: import_module(f"{package}.{name}")
        for name in ("studies", "measures", "claims", "figures")
    }
    folder = Path(str(modules["studies"].__file__)).parent
    content = published.read(folder / "published.toml")
    studies: tuple[Study, ...] = modules["studies"].STUDIES
    search = import_module(f"{package}.search") if (folder / "search.py").exists() else None
    as_studies = None if search is None else searched.of_studies(search)
    return Paper(
        id=folder.name.replace("_", "-"),
        title=content.paper["title"],
        source=content.paper["source"],
        about=content.paper["about"],
        folder=folder,
        studies=studies,
        numbers=tuple(_number(entry, studies, modules) for entry in content.numbers),
        claims=tuple(_claim(entry, modules["claims"], content) for entry in content.claims),
        readings=tuple(map(_reading, content.readings)),
        pictures=tuple(_picture(entry, modules) for entry in content.pictures),
        story=modules["figures"].story,
        story_axis=content.paper["story"],
        beside=content.paper.get("beside", "published"),
        cite=content.paper.get("cite", {}),
        swaps={
            name: swap
            for module in ("studies", "measures")
            for name, swap in getattr(modules[module], "SWAPS", {}).items()
        },
        stored=getattr(search, "by_number", dict)(),
        search_studies=() if as_studies is None else tuple(as_studies.studies),
        searched=as_studies.results if as_studies else lambda _quick: SearchResults(),
        no_difference=getattr(modules["studies"], "NO_DIFFERENCE", {}),
        refused=content.refused,
        grids=tuple(Grid(grid["title"], grid["head"], grid["rows"]) for grid in content.grids),
    )


def _number(entry: Entry, studies: Iterable[Study], modules: dict[str, ModuleType]) -> Number:
    by_id = {study.id: study for study in studies}
    id_, variant = entry["id"], entry.get("variant", "")
    named, _, name = (entry["study"], "", variant) if "study" in entry else variant.partition("/")
    study = by_id[_known(named, by_id, f"{id_}: study")]
    name = _known(name, study.variants, f"{id_}: variant of {study.id}")
    functions: Entry = {
        key: _function(entry[key], modules["measures"], id_)
        for key in ("measure", "whole")
        if key in entry
    }
    typed: Entry = {
        "variant": study[name],
        "role": Role(entry["role"]) if "role" in entry else None,
        "against": tuple(entry.get("against", ())),
    }
    plain = {key: value for key, value in entry.items() if key != "study"}
    return Number(**{"published": None, **plain, **typed, **functions})


def _claim(entry: Entry, checks: ModuleType, content: Published) -> Claim:
    thresholds = {
        key: {
            what: _threshold(words, content, entry["id"])
            for what, words in entry.get(key, {}).items()
        }
        for key in ("asks", "partly")
    }
    typed = {
        "check": _of(entry, "check", checks),
        "role": Role(entry["role"]),
        "pictures": tuple(entry.get("pictures", ())),
    }
    return Claim(**{**entry, **thresholds, **typed})


_BOUNDS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


def _threshold(words: str, content: Published, place: str) -> Threshold:
    """Parses `> 10`, `0.9 .. 1.1`, or `as ID`: within the tolerance of this number."""
    match words.split():
        case [sign, bound] if sign in _BOUNDS and _number_in(bound) is not None:
            return Threshold(_printed(words), partial(_beyond, _BOUNDS[sign], float(bound)))
        case [low, "..", high] if None not in (_number_in(low), _number_in(high)):
            return Threshold(words, partial(_between, float(low), float(high)))
        case ["as", *_] if (id_ := words.removeprefix("as ")) in content.targets:
            unit = next(number["unit"] for number in content.numbers if number["id"] == id_)
            target = content.targets[id_]
            return Threshold(target.words(unit), target.met)
    raise PublishedError(
        f"{place}: a threshold is '> 10', '0.9 .. 1.1', or 'as ID' with a number's id: {words!r}"
    )


def _printed(words: str) -> str:
    return words.replace("<=", "≤").replace(">=", "≥")


def _beyond(sign: Callable[[float, float], bool], bound: float, ours: float) -> bool:
    return sign(ours, bound)


def _between(low: float, high: float, ours: float) -> bool:
    return low <= ours <= high


def _number_in(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _picture(entry: Entry, modules: dict[str, ModuleType]) -> Picture:
    return Picture(**{**entry, "draw": _of(entry, "draw", modules["figures"])})


def _reading(entry: Entry) -> Reading:
    return Reading(**{**entry, "under": tuple(entry.get("under", ()))})


def _of(entry: Entry, key: str, module: ModuleType) -> Callable[..., Any]:
    """The function of a claim or a picture. If it is not given, the id is its name."""
    return _function(entry.get(key, re.sub(r"\W", "_", entry["id"])), module, entry["id"])


def _function(named: str | Entry, module: ModuleType, place: str) -> Callable[..., Any]:
    """The function of this name; `of`: its arguments after the evidence."""
    entry = {"by": named} if isinstance(named, str) else named
    functions = {name for name, value in vars(module).items() if callable(value)}
    function: Callable[..., Any] = getattr(
        module, _known(entry["by"], functions, f"{place}: {module.__name__}")
    )
    if "of" not in entry:
        return function
    return partial(_asked, function, tuple(entry["of"]))


def _asked(function: Callable[..., Any], of: tuple[Any, ...], evidence: Any) -> Any:
    return function(evidence, *of)


def _known(name: str, known: Iterable[str], place: str) -> str:
    names = list(known)
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        raise PublishedError(
            f"{place}: there is no {name!r}" + (f"; did you mean {near[0]!r}?" if near else "")
        )
    return name
