"""What an engine is: it takes a realised scenario and gives the tables. `find` gives one by its name.

Engines are imported when they are asked for: the simulator needs the compiled core, the kernel a guest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from sojourn import _core
from sojourn.errors import UserError

Realised: TypeAlias = "Mapping[str, Any]"
"""What `Scenario.realise(seed)` gives: integers, every flow and link written out."""
Tables: TypeAlias = "dict[str, _core.Columns]"
"""The tables by name, each a dict of columns, with numbers for names; -1 and NaN where there is none."""


@dataclass(frozen=True)
class Outcome:
    """What became of one seed."""

    tables: Tables
    cpu_ns: int
    """CPU time that it took."""
    invalid: tuple[str, ...] = ()
    """Why its tables can't be trusted, each a sentence; none: they can."""


Cancelled = _core.Cancelled
"""Raised by `Engine.tables` when `reached` says to stop."""

ENGINES = {
    "sim": "packet-level discrete-event simulator: quick; the queue disciplines and congestion controls that we wrote",
    "kernel": "the real Linux kernel in virtual time, in the first guest that is ready",
    "kernel-uml": "the same in user-mode Linux, built once from Debian's source: quick, exact, with rings and BQL",
    "kernel-qemu": "the same in QEMU with Debian's stock kernel: nothing compiled; slower",
    "netns": "this host's own kernel in network namespaces, in real time: no two runs are alike",
}
"""What `-e` accepts, and what it is."""


MOST_PLACES = 4
"""That a refusal names."""

_GUESTS: dict[str, Literal["uml", "qemu"] | None] = {
    "kernel": None,
    "kernel-uml": "uml",
    "kernel-qemu": "qemu",
}


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
        """Whether its runs go one after another: in real time they would disturb each other."""
        ...

    @property
    def build(self) -> str:
        """Names, in 16 digits, all that decides a run's tables beside the scenario and the seed."""
        ...

    def check(self, realised: Realised) -> None:
        """Refuses what it can't run, in words, before anything is run."""
        ...

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        """What holds for its runs that no scenario says, or leaves open: to be kept with the Run."""
        ...

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        """The tables of one seed.

        `reached` is told the time of the run, ns, now and then; once it says False the run is given up with `Cancelled`.
        """
        ...


def fingerprint(what: str, build: str) -> str:
    """Of a Run: of what is run (`Scenario.fingerprint`) and of the build of the engine. Equal where the tables will be."""
    return hashlib.sha256(f"{what}\n{build}\n".encode()).hexdigest()


def by_reason(refused: Iterable[tuple[str, str]]) -> list[str]:
    """(place, why) as lines, one for each reason: two ways of a link, or a thousand flows, are refused in one breath."""
    places: dict[str, list[str]] = {}
    for place, why in refused:
        places.setdefault(why, []).append(place)
    return [f"{_joined(list(dict.fromkeys(at)))}: {why}" for why, at in places.items()]


def _joined(places: Sequence[str]) -> str:
    if len(places) > MOST_PLACES:
        places = [*places[: MOST_PLACES - 1], f"{len(places) - MOST_PLACES + 1} more"]
    return " and ".join(filter(None, (", ".join(places[:-1]), places[-1])))


def find(name: str) -> Engine:
    """The engine of this name."""
    if name == "sim":
        from sojourn.engine.sim import Simulator

        return Simulator()
    if name in _GUESTS:
        from sojourn.engine.kernel.engine import Kernel

        return Kernel(name, _GUESTS[name])
    if name == "netns":
        from sojourn.engine.netns import Netns

        return Netns()
    raise UserError(f"there is no engine {name!r}", f"engines: {', '.join(ENGINES)}")


def find_awake(name: str) -> Engine:
    """The engine of this name with a kernel whose red adapts where it is told to; as tc sets it, Linux's never does.

    Raises:
        UserError: it has none such, and why.
    """
    from sojourn.engine.kernel import awake
    from sojourn.engine.kernel.engine import Kernel

    if name not in _GUESTS:
        raise UserError(f"the engine {name} can't wake red adaptive", "a guest can: -e kernel")
    if reason := awake.why_not():
        raise UserError(f"red adaptive can't be woken: {reason}")
    return Kernel(name, _GUESTS[name], adapting=True)


def why_not(name: str) -> str | None:
    """Why an engine can't be used here, and what to do; None if it can."""
    if name == "netns":
        from sojourn.engine import netns

        return netns.why_not()
    if name not in _GUESTS:
        return None
    from sojourn.engine.kernel import NAMES, ready

    wanted = _GUESTS[name]
    states = [ready(one) for one in NAMES if wanted in (None, one)]
    if any(state.why_not is None for state in states):
        return None
    return "; ".join(f"{state.kind}: {state.why_not}" for state in states)


def stands_for(name: str) -> str | None:
    """The engine that a name which leaves it open means here; None: it is itself one, or none can be used."""
    if name != "kernel":
        return None
    from sojourn.engine.kernel import NAMES, ready

    usable = [kind for kind in NAMES if ready(kind).why_not is None]
    return f"kernel-{usable[0]}" if usable else None


def lacks(name: str) -> str | None:
    """What an engine that can be used here does not have here; None if it has all that it ever has."""
    if name != "netns":
        return None
    from sojourn.engine import netns

    return netns.lacks()
