"""What a cluster's worker does: says by which build of the engine it would run, and runs batches of
seeds. It needs this package and nothing of the machine that asks: a scenario comes as canonical text.

A worker has no store. It hands back what the machine that asked keeps: tables as files, numbers, CPU
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sojourn import _core
from sojourn.engine import seed_source
from sojourn.engine.protocol import Engine
from sojourn.engine.registry import find, why_not
from sojourn.errors import UserError
from sojourn.records.run import Packed
from sojourn.scenario import Scenario, loads


@dataclass(frozen=True)
class SeedRequest:
    """A seed that a worker is to run."""

    scenario: str
    """Its canonical text."""
    seed: int
    about: str
    """What numbers need to know of its Run."""
    key: str
    """Of all that decides its tables, by the build of the machine that asks."""


@dataclass(frozen=True)
class Ran:
    """What a worker made of a seed."""

    packed: Packed
    numbers: bytes | None
    cpu_ns: int
    invalid: tuple[str, ...]
    took_s: float


@dataclass(frozen=True)
class Refused:
    """What a person can act on, as a worker raised it."""

    problem: str
    hint: str
    place: str | None

    @classmethod
    def of(cls, error: UserError) -> Refused:
        return cls(error.problem, error.hint, error.place)

    def raised(self) -> UserError:
        """The same error here."""
        return UserError(self.problem, self.hint, self.place)


@dataclass(frozen=True)
class Installed:
    """What a worker would run seeds by."""

    version: str
    build: str
    """Of all that decides what it hands back; empty: it can't run this engine."""
    refused: Refused | None = None
    """Why it can't."""


def installed(engine: str) -> Installed:
    """This process's, for an engine by name."""
    if reason := why_not(engine):
        return Installed(_core.VERSION, "", Refused(reason, "", None))
    try:
        return Installed(_core.VERSION, build_of(find(engine)))
    except UserError as error:
        return Installed(_core.VERSION, "", Refused.of(error))


def build_of(engine: Engine) -> str:
    """Names all of this installation that decides what is handed back."""
    return f"{engine.build} {_core.FILES} {_core.METRICS}"


def work_off(engine: str, batch: Sequence[SeedRequest]) -> list[Ran | Refused]:
    """Runs these seeds one after another; what became of each."""
    wanted = _wanted()
    found = find(engine)
    read: dict[str, Scenario] = {}
    given: list[Ran | Refused] = []
    for asked in batch:
        if asked.scenario not in read:
            read[asked.scenario] = loads(asked.scenario)
        try:
            given.append(_ran(found, read[asked.scenario], asked, wanted))
        except UserError as error:
            given.append(Refused.of(error))
    return given


def _ran(
    engine: Engine, scenario: Scenario, asked: SeedRequest, wanted: Callable[[int], bool]
) -> Ran:
    began = time.monotonic()
    realised = scenario.realise(asked.seed)
    if seed_source.key(engine, realised) != asked.key:
        raise UserError(
            "the worker would run something else: its sojourn is of another build",
            "install the same wheel on every worker, and start them anew",
        )
    engine.check(realised)
    done = seed_source.make(engine, realised, asked.about, wanted)
    numbers = None if done.numbers is None else done.numbers.to_bytes()
    return Ran(done.packed, numbers, done.cpu_ns, done.invalid, time.monotonic() - began)


def _wanted() -> Callable[[int], bool]:
    """Whether whoever asked still waits for what this thread runs: a Dask task that is cancelled
    goes on in its thread unless it looks."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        # Not on a worker: a test.
        return lambda _: True
    key = worker.get_current_task()

    def wanted(_: int) -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state not in ("cancelled", "released", "forgotten")

    return wanted
