"""What an engine is: it takes a realised scenario and gives the tables.

`engine/registry` has the engines by name. Nothing here knows any of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sojourn import _core
from sojourn.errors import UserError
from sojourn.scenario.realised import Realised

if TYPE_CHECKING:
    from sojourn.arrays import Tables

MOST_PLACES = 4
"""That a refusal names."""


@dataclass(frozen=True)
class Outcome:
    """What became of one seed."""

    tables: Tables | _core.SeedTables
    cpu_ns: int
    """CPU time that it took."""
    invalid: tuple[str, ...] = ()
    """Why its tables can't be trusted, each a sentence; none: they can."""


Cancelled = _core.Cancelled
"""Raised by `Engine.tables` when `reached` says to stop."""


class NotReadyError(UserError):
    """The engine can't be used on this machine as it is: something must be made or installed
    first."""


class Engine(Protocol):
    """Something that runs scenarios."""

    @property
    def name(self) -> str:
        """As `-e` takes it."""
        ...

    @property
    def version(self) -> str:
        """Of all that a run's tables depend on beside the scenario."""
        ...

    @property
    def alone(self) -> bool:
        """Whether it runs in real time: its runs would disturb each other, so they go one after
        another, and no two are alike, so none is stored."""
        ...

    @property
    def build(self) -> str:
        """Names, in 16 digits, all that decides a run's tables beside the scenario and the seed."""
        ...

    def check(self, realised: Realised) -> None:
        """Refuses what it can't run, in words, before anything is run."""
        ...

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        """What holds for its runs that no scenario says, or leaves open: to be kept with the
        Run."""
        ...

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        """The tables of one seed.

        `reached` is told the time of the run, ns, now and then; once it says False the run is given
        up with `Cancelled`.
        """
        ...


def check_all(engine: Engine, realised: Iterable[Realised]) -> None:
    """Refuses what the engine can't run, any of these. That the engine is not ready is said last:
    to make it ready would not help what it can't run.

    Raises:
        UserError: it can't run one, or is not ready.
    """
    not_ready: NotReadyError | None = None
    for one in realised:
        try:
            engine.check(one)
        except NotReadyError as error:
            not_ready = not_ready or error
    if not_ready is not None:
        raise not_ready


def build_for(engine: Engine, realised: Realised) -> str:
    """Names the build of the engine, and of what compiles code of one's own where the scenario has
    some."""
    from sojourn.own import compiled

    return " ".join(filter(None, (engine.build, compiled.maker(realised))))


def fingerprint(what: str, build: str) -> str:
    """Of a Run: of what is run (`Scenario.fingerprint`) and of what runs it (`build_for`). Equal where
    the tables will be."""
    return hashlib.sha256(f"{what}\n{build}\n".encode()).hexdigest()


def by_reason(refused: Iterable[tuple[str, str]]) -> list[str]:
    """(place, why) as lines, one for each reason: two ways of a link, or a thousand flows, are
    refused in one breath."""
    places: dict[str, list[str]] = {}
    for place, why in refused:
        places.setdefault(why, []).append(place)
    return [f"{_joined(list(dict.fromkeys(at)))}: {why}" for why, at in places.items()]


def _joined(places: Sequence[str]) -> str:
    if len(places) > MOST_PLACES:
        places = [*places[: MOST_PLACES - 1], f"{len(places) - MOST_PLACES + 1} more"]
    return " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))
