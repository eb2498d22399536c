"""A seed as its Run keeps it: from the store of this user, or else from the engine, and then into
the store. The one place where both meet.

What decides a seed's tables is what the engine receives, the build of the engine, and the crates
that write a table's file: the key is the hash of these. Titles and labels have no part in it. The
seed's numbers follow from the tables, from what the Run says of its links and flows, and from the
crates that add up. They are kept beside the tables, by a hash of these two.

What ran in real time is never stored, for no two such runs are alike. Nor is what can't be trusted:
another try may be sound.
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
    """What a run gave: all that its Run keeps of it."""

    packed: Packed
    numbers: _core.Numbers | None
    """None: a value is missing that its column has to have."""
    cpu_ns: int
    invalid: tuple[str, ...] = ()
    taken: bool = False
    """From the store."""


@dataclass(eq=False)
class SeedJob(Job[SeedResult]):
    """A seed of a Run."""

    run: Run
    about: str
    """What numbers need to know of the Run."""


@dataclass(frozen=True)
class Source:
    """Where seeds come from."""

    engine: Engine
    store: SeedStore | None
    """None: nothing is taken or kept."""
    fresh: bool = False
    """All are made; the store takes them, too."""

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
        """The seed of a job. `reached`: see `Engine.tables`."""
        realised, about = job.scenario.realise(job.seed), job.about
        if self.store is None:
            return make(self.engine, realised, about, reached)
        name = key(self.engine, realised)
        if (kept := self.taken(name, about)) is not None:
            return kept
        made = make(self.engine, realised, about, reached)
        self.keep(name, about, made)
        return made

    def taken(self, name: str, about: str) -> SeedResult | None:
        """What the store has under this key."""
        if self.store is None or self.fresh:
            return None
        kept = self.store.take(name)
        if kept is None:
            return None
        return SeedResult(kept.packed, _numbers(kept, _maker(about)), kept.cpu_ns, taken=True)

    def keep(self, name: str, about: str, made: SeedResult) -> None:
        """Puts it into the store under this key, if it may be trusted."""
        if self.store is None or made.invalid:
            return
        numbers = {} if made.numbers is None else {_maker(about): made.numbers.to_bytes()}
        self.store.put(name, StoredSeed(made.packed, made.cpu_ns, numbers))


def make(
    engine: Engine, realised: Realised, about: str, reached: Callable[[int], bool]
) -> SeedResult:
    """A seed from the engine. `about`: what numbers need to know of its Run."""
    outcome = engine.tables(realised, reached)
    tables = outcome.tables
    if not isinstance(tables, _core.SeedTables):
        tables = _core.SeedTables(tables)
    try:
        numbers = tables.numbers(about)
    except ValueError:
        # Whoever asks for the numbers is told, by what reads the tables.
        numbers = None
    links = [link.name for link in realised.links]
    flows = [flow.name for flow in realised.flows]
    packed = pack(tables, links, flows, _core.CAUSES)
    return SeedResult(packed, numbers, outcome.cpu_ns, outcome.invalid)


def key(engine: Engine, realised: Realised) -> str:
    """Of all that decides the tables of a seed."""
    build = build_for(engine, realised)
    return _hash(f"{FORMAT}\n{build}\n{_core.FILES}", realised.to_text())


def _maker(about: str) -> str:
    return _hash(_core.METRICS, about)


def _numbers(kept: StoredSeed, maker: str) -> _core.Numbers | None:
    content = kept.numbers.get(maker)
    return None if content is None else _core.Numbers.from_bytes(content)


def _hash(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\n")
    return digest.hexdigest()
