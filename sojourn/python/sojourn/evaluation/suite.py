"""Reads a suite: a folder with suite.toml and the scenario files that it names.

[suite]        title, source, about; of: "qdisc" or "congestion"; baseline, others: candidates,
               written as for tc or TCP ("the rest": all candidates that the suite does not name);
               at: the key of the candidate; link: the link under study; seeds, quick_seeds
[sources]      sources of thresholds; the key of each is the `source` of claims
[[criteria]]   name, section, force (must, should, ...), title, scenario (a file); at, link:
               instead of the suite's; alone: a scenario of the legacy flows without a candidate
               claims: a list of
                 of                a column of `sojourn compare`
                 over              a second column: the number is the ratio of `of` to `over`
                 at_most, at_least, between   the threshold; none: the number is reported
                 times_baseline    the threshold is a factor of the baseline's number in the cell
                 harm              true: `of` is the legacy flows' goodput. Compared with `alone`,
                                   they lose at most the share of it that they lose to the baseline
                                   (Ware et al. 2019)
                 source            the source of the threshold: a name in [sources], or words
[[missing]]    section, force, title, needs: sections that can't be run yet, and what they need
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from sojourn import shapes
from sojourn.defaults import SUITES
from sojourn.errors import UserError
from sojourn.scenario import Scenario, load
from sojourn.sweeps import grid

FILE = "suite.toml"
Of: TypeAlias = Literal["qdisc", "congestion"]


@dataclass(frozen=True)
class Claim:
    """The condition that a criterion sets on a number."""

    of: str
    over: str | None = None
    at_most: shapes.Real | None = None
    at_least: shapes.Real | None = None
    between: tuple[shapes.Real, ...] | None = None
    times_baseline: bool = False
    harm: bool = False
    source: str = ""

    @property
    def judged(self) -> bool:
        """Whether the claim has a threshold; otherwise its number is reported."""
        return self.harm or any(
            each is not None for each in (self.at_most, self.at_least, self.between)
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the claim reads."""
        return (self.of,) if self.over is None else (self.of, self.over)


@dataclass(frozen=True)
class Criterion:
    """One scenario and the claims about it."""

    name: str
    section: str
    force: str
    title: str
    scenario: str
    claims: tuple[Claim, ...]
    at: str | None = None
    link: str | None = None
    alone: str | None = None


@dataclass(frozen=True)
class Missing:
    """A section that sojourn can't run."""

    section: str
    force: str
    title: str
    needs: str


@dataclass(frozen=True)
class Head:
    """The settings of all criteria."""

    title: str
    source: str
    about: str
    of: Of
    baseline: str
    others: tuple[str, ...]
    at: str
    link: str
    seeds: shapes.Count = 10
    quick_seeds: shapes.Count = 5


@dataclass(frozen=True)
class _File:
    suite: Head
    criteria: tuple[Criterion, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True)
class Suite:
    """The criteria of one document."""

    name: str
    folder: Path
    head: Head
    criteria: tuple[Criterion, ...]
    sources: Mapping[str, str]
    missing: tuple[Missing, ...]

    @property
    def word(self) -> str:
        """The value of `--suite`: the name of one of sojourn's suites, or a folder."""
        return self.name if self.folder == SUITES / self.name else str(self.folder)

    def source(self, claim: Claim) -> str:
        """The source of the claim's threshold, in words."""
        return self.sources.get(claim.source, claim.source)

    def scenario(self, criterion: Criterion) -> Scenario:
        """The scenario of a criterion."""
        return load(self.folder / criterion.scenario)

    def alone(self, criterion: Criterion) -> Scenario | None:
        """The scenario without a candidate, if the criterion has one."""
        return None if criterion.alone is None else load(self.folder / criterion.alone)

    def only(self, words: tuple[str, ...]) -> Suite:
        """The suite with only these criteria, by name or section.

        Raises:
            UserError: there is no such criterion.
        """
        for word in words:
            if not any(_is(one, word) for one in self.criteria):
                known = ", ".join(f"{one.name} ({one.section})" for one in self.criteria)
                raise UserError(f"{self.name} has no criterion {word!r}", f"criteria: {known}")
        kept = tuple(one for one in self.criteria if any(_is(one, word) for word in words))
        return dataclasses.replace(self, criteria=kept, missing=())


def _is(criterion: Criterion, word: str) -> bool:
    return word in (criterion.name, criterion.section)


def names() -> list[str]:
    """The suites that come with sojourn: the folders of `SUITES`."""
    return sorted(path.parent.name for path in SUITES.glob(f"*/{FILE}"))


def read(name: str | Path) -> Suite:
    """Reads a suite of sojourn by its name, or the suite in a folder.

    Raises:
        UserError: there is none, or it is wrong.
    """
    folder = SUITES / name if str(name) in names() else Path(name)
    path = folder / FILE
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(
            f"{name} is not a suite: {error.strerror or error}: {path}",
            f"suites: {', '.join(names())}, or a folder with {FILE}",
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}", "write it as TOML") from None
    try:
        _check_keys(_File, found)
        whole = shapes.read(_File, found)
        _check(whole)
    except ValueError as error:
        raise UserError(
            f"{path}: {error}", "docs/evaluate.md describes the keys of a suite"
        ) from None
    return Suite(folder.name, folder, whole.suite, whole.criteria, whole.sources, whole.missing)


def _check(whole: _File) -> None:
    called = [one.name for one in whole.criteria]
    if not called:
        raise ValueError("criteria: the list is empty")
    for number, one in enumerate(whole.criteria):
        if called.count(one.name) > 1:
            raise ValueError(f"criteria.{number}.name: {one.name!r} is used twice")
        if Path(one.name).name != one.name or one.name in (".", ".."):
            raise ValueError(f"criteria.{number}.name: {one.name!r} can't be the name of a folder")
        if not one.claims:
            raise ValueError(f"criteria.{number}.claims: the list is empty")
        for place, claim in enumerate(one.claims):
            try:
                _check_claim(claim, one)
            except (ValueError, UserError) as error:
                raise ValueError(f"criteria.{number}.claims.{place}: {error}") from None


def _check_claim(claim: Claim, criterion: Criterion) -> None:
    grid.check(claim.columns)
    bounds = [claim.at_most, claim.at_least, claim.between, claim.harm or None]
    if sum(each is not None for each in bounds) > 1:
        raise ValueError("at_most, at_least, between, harm: only one of them is allowed")
    if claim.between is not None and not (
        len(claim.between) == 2 and claim.between[0] < claim.between[1]
    ):
        raise ValueError("between: two numbers, the lower first")
    if claim.judged and not claim.source:
        raise ValueError("source: a threshold needs a source")
    if claim.harm and criterion.alone is None:
        raise ValueError("harm: the criterion needs a scenario `alone`")


def _check_keys(shape: Any, value: Any, place: str = "") -> None:
    """Refuses a key that nothing reads, such as a misspelled one."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            _check_keys(shape, each, f"{place}.{number}")
        return
    if not isinstance(value, dict):
        return
    known = {each.name for each in dataclasses.fields(shape)}
    for key, each in value.items():
        here = f"{place}.{key}".lstrip(".")
        if key not in known:
            raise ValueError(f"{here}: no such key; keys: {', '.join(sorted(known))}")
        inner = _INNER.get((shape, key))
        if inner is not None:
            _check_keys(inner, each, here)


_INNER = {
    (_File, "suite"): Head,
    (_File, "criteria"): Criterion,
    (_File, "missing"): Missing,
    (Criterion, "claims"): Claim,
}
