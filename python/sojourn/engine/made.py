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
from sojourn.engine.protocol import Engine
from sojourn.errors import UserError
from sojourn.records import Run
from sojourn.records.run import Packed
from sojourn.records.seed_store import FORMAT, KeptSeed, SeedStore
from sojourn.scenario.realised import Realised


@dataclass(frozen=True)
class MadeSeed:
    """What a run gave: all that its Run keeps of it."""

    packed: Packed
    numbers: _core.Numbers | None
    """None: a value is missing that its column has to have."""
    cpu_ns: int
    invalid: tuple[str, ...] = ()
    taken: bool = False
    """From the store."""


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

    def seed(
        self, run: Run, realised: Realised, about: str, reached: Callable[[int], bool]
    ) -> MadeSeed:
        """A seed of this Run. `about`: what numbers need to know of it. `reached`: see
        `Engine.tables`."""
        if self.store is None:
            return self._made(run, realised, about, reached)
        name, maker = key(self.engine, realised), _maker(about)
        kept = None if self.fresh else self.store.take(name)
        if kept is not None:
            return MadeSeed(kept.packed, _numbers(kept, maker), kept.cpu_ns, taken=True)
        made = self._made(run, realised, about, reached)
        if not made.invalid:
            numbers = {} if made.numbers is None else {maker: made.numbers.to_bytes()}
            self.store.put(name, KeptSeed(made.packed, made.cpu_ns, numbers))
        return made

    def _made(
        self, run: Run, realised: Realised, about: str, reached: Callable[[int], bool]
    ) -> MadeSeed:
        outcome = self.engine.tables(realised, reached)
        tables = outcome.tables
        if not isinstance(tables, _core.SeedTables):
            tables = _core.SeedTables(tables)
        try:
            numbers = tables.numbers(about)
        except ValueError:
            # Whoever asks for the numbers is told, by what reads the tables.
            numbers = None
        return MadeSeed(run.pack(tables, _core.CAUSES), numbers, outcome.cpu_ns, outcome.invalid)


def key(engine: Engine, realised: Realised) -> str:
    """Of all that decides the tables of a seed."""
    return _hash(f"{FORMAT}\n{engine.build}\n{_core.FILES}", realised.to_text())


def _maker(about: str) -> str:
    return _hash(_core.METRICS, about)


def _numbers(kept: KeptSeed, maker: str) -> _core.Numbers | None:
    content = kept.numbers.get(maker)
    return None if content is None else _core.Numbers.from_bytes(content)


def _hash(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode())
        digest.update(b"\n")
    return digest.hexdigest()
