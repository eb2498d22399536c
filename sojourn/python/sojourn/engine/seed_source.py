"""Takes a seed from this user's store, or runs it with the engine and stores it. No other module
uses both.

A seed's tables depend on the engine's input, the build of the engine, and the crates that write a
table's file. The key is the hash of these; titles and labels are not part of it. The seed's numbers
depend on the tables, on the Run's links and flows, and on the crates that compute the numbers. They
are stored beside the tables, under a hash of the links, flows and crates.

Results of real time are never stored, because no two such runs are equal. Invalid results are not
stored either: another run may be valid.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from sojourn import _core
from sojourn.engine.protocol import Engine, build_for
from sojourn.engine.runner import Job
from sojourn.errors import UserError
from sojourn.records import Run
from sojourn.records.run import Packed, pack
from sojourn.records.seed_store import FORMAT, SeedStore, StoredSeed
from sojourn.scenario.realised import Realised


@dataclass(frozen=True)
class SeedResult:
    """The result of running one seed: everything that its Run keeps of it."""

    packed: Packed
    numbers: _core.Numbers | None
    """The seed's numbers; None: the tables lack a value that its column requires."""
    cpu_ns: int
    invalid: tuple[str, ...] = ()
    taken: bool = False
    """From the store."""


@dataclass(eq=False)
class SeedJob(Job[SeedResult]):
    """A seed of a Run."""

    run: Run
    about: str
    """The Run's links and flows, from which the numbers are computed."""


@dataclass(frozen=True)
class Source:
    """An engine, and the store that is asked first."""

    engine: Engine
    store: SeedStore | None
    """None: the store is neither read nor written."""
    fresh: bool = False
    """Every seed is run; the store is only written."""

    @classmethod
    def of(cls, engine: Engine, fresh: bool) -> Source:
        """This engine, with this user's store where it may be used."""
        if not engine.alone:
            with contextlib.suppress(UserError):
                store = SeedStore()
                return cls(engine, store if store.usable else None, fresh)
        return cls(engine, None, fresh)

    @property
    def may_take(self) -> bool:
        """Whether the store may have a seed."""
        return self.store is not None and not self.fresh and self.store.holds_any()

    def make(self, job: SeedJob, reached: Callable[[int], bool]) -> SeedResult:
        """Returns the seed of a job. `reached`: see `Engine.tables`."""
        realised, about = job.scenario.realise(job.seed), job.about
        # A program may read any file of the host, so the key of such a seed can't be computed
        # before the run.
        if self.store is None or realised.programs:
            return make(self.engine, realised, about, reached)
        name = key(self.engine, realised)
        if (stored := self.taken(name, about)) is not None:
            return stored
        result = make(self.engine, realised, about, reached)
        self.keep(name, about, result)
        return result

    def taken(self, name: str, about: str) -> SeedResult | None:
        """Returns the seed that the store has under this key."""
        if self.store is None or self.fresh:
            return None
        stored = self.store.take(name)
        if stored is None:
            return None
        return SeedResult(stored.packed, _numbers(stored, _maker(about)), stored.cpu_ns, taken=True)

    def keep(self, name: str, about: str, result: SeedResult) -> None:
        """Stores a seed under this key, if it is valid."""
        if self.store is None or result.invalid:
            return
        numbers = {} if result.numbers is None else {_maker(about): result.numbers.to_bytes()}
        self.store.put(name, StoredSeed(result.packed, result.cpu_ns, numbers))


def make(
    engine: Engine, realised: Realised, about: str, reached: Callable[[int], bool]
) -> SeedResult:
    """Runs a seed with the engine. `about`: see `SeedJob`."""
    outcome = engine.tables(realised, reached)
    tables = outcome.tables
    if not isinstance(tables, _core.SeedTables):
        tables = _core.SeedTables(tables)
    try:
        numbers = tables.numbers(about)
    except ValueError:
        # If somebody asks for the numbers, the reader of the tables reports the error.
        numbers = None
    links = [link.name for link in realised.links]
    flows = [flow.name for flow in realised.flows]
    packed = pack(tables, links, flows, _core.CAUSES, outcome.files)
    return SeedResult(packed, numbers, outcome.cpu_ns, outcome.invalid)


def key(engine: Engine, realised: Realised) -> str:
    """Hashes all that decides the tables of a seed."""
    build = build_for(engine, realised)
    return _hash(f"{FORMAT}\n{build}\n{_core.FILES}", realised.to_text())


def _maker(about: str) -> str:
    return _hash(_core.METRICS, about)


def _numbers(stored: StoredSeed, maker: str) -> _core.Numbers | None:
    content = stored.numbers.get(maker)
    return None if content is None else _core.Numbers.from_bytes(content)


def _hash(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\n")
    return digest.hexdigest()
