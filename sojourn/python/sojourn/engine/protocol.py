"""The interface of an engine: it takes a realised scenario and returns the tables.

`engine/registry` has the engines by name. This module knows none of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from sojourn import _core
from sojourn.errors import UserError
from sojourn.scenario.realised import Realised

if TYPE_CHECKING:
    from sojourn.arrays import Tables

MOST_PLACES = 4
"""The largest number of places that a refusal names."""


@dataclass(frozen=True)
class Outcome:
    """The result of one seed."""

    tables: Tables | _core.SeedTables
    cpu_ns: int
    """CPU time of the run."""
    invalid: tuple[str, ...] = ()
    """Reasons why its tables are invalid, a sentence each; empty: they are valid."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Further files for the seed's folder, by name: those of its programs."""


Cancelled = _core.Cancelled
"""Raised by `Engine.tables` when `reached` returns False."""


class NotReadyError(UserError):
    """The engine can't be used on this machine yet: something must be built or installed first."""


class Engine(Protocol):
    """Runs scenarios."""

    @property
    def name(self) -> str:
        """The name for `-e`."""
        ...

    @property
    def version(self) -> str:
        """Version of everything that a run's tables depend on, except the scenario."""
        ...

    @property
    def alone(self) -> bool:
        """Whether it runs in real time. Such runs would disturb each other, so they run one at a
        time. No two are equal, so none is stored."""
        ...

    @property
    def build(self) -> str:
        """Identifies, by 16 digits, everything that decides a run's tables, except the scenario and
        the seed."""
        ...

    def for_programs(self) -> Engine:
        """The engine that runs scenarios with programs under this name; it may have another build.

        Raises:
            UserError: it runs none.
        """
        ...

    def check(self, realised: Realised) -> None:
        """Refuses a scenario that the engine can't run, before anything runs."""
        ...

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        """Conditions of its runs that the scenario does not state or leaves open; they are recorded
        in the Run."""
        ...

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        """Returns the tables of one seed.

        `reached` is called now and then with the run's time in ns. When it returns False, the run
        is stopped and raises `Cancelled`.
        """
        ...


def check_all(engine: Engine, realised: Iterable[Realised]) -> None:
    """Refuses scenarios that the engine can't run. An engine that is not ready is reported last,
    because making it ready would not help with such a scenario.

    Raises:
        UserError: the engine can't run one of them, or is not ready.
    """
    not_ready: NotReadyError | None = None
    for one in realised:
        try:
            engine.check(one)
        except NotReadyError as error:
            not_ready = not_ready or error
    if not_ready is not None:
        raise not_ready


def engine_for(engine: Engine, realised: Realised) -> Engine:
    """The engine that runs this scenario."""
    return engine.for_programs() if realised.programs else engine


def build_for(engine: Engine, realised: Realised) -> str:
    """Identifies the build of the engine and, if the scenario has user-defined code, the compiler
    of that code."""
    from sojourn.own import compiled

    build = engine_for(engine, realised).build
    return " ".join(filter(None, (build, compiled.maker(realised))))


def fingerprint(what: str, build: str) -> str:
    """The fingerprint of a Run: a hash of what runs (`Scenario.fingerprint`) and of the engine's
    build (`build_for`). Runs with equal fingerprints have equal tables."""
    return hashlib.sha256(f"{what}\n{build}\n".encode()).hexdigest()


def by_reason(refused: Iterable[tuple[str, str]]) -> list[str]:
    """Formats (place, why) as lines, one for each reason: two directions of a link, or a thousand
    flows, share a line."""
    places: dict[str, list[str]] = {}
    for place, why in refused:
        places.setdefault(why, []).append(place)
    return [f"{_joined(list(dict.fromkeys(at)))}: {why}" for why, at in places.items()]


def _joined(places: Sequence[str]) -> str:
    if len(places) > MOST_PLACES:
        places = [*places[: MOST_PLACES - 1], f"{len(places) - MOST_PLACES + 1} more"]
    return " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
