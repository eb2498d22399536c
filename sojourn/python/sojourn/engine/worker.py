"""The worker of a cluster: reports its build of the engine and runs batches of seeds. It needs only
this package: a scenario arrives as canonical text.

A worker has no store. It returns what the client stores: tables as files, numbers, CPU time.
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
    """The scenario's canonical text."""
    seed: int
    about: str
    """See `SeedJob.about`."""
    key: str
    """The store's key of its tables, for the client's build."""


@dataclass(frozen=True)
class Ran:
    """The result of a seed on a worker."""

    packed: Packed
    numbers: bytes | None
    cpu_ns: int
    invalid: tuple[str, ...]
    took_s: float


@dataclass(frozen=True)
class Refused:
    """A `UserError` that a worker raised."""

    problem: str
    hint: str
    place: str | None

    @classmethod
    def of(cls, error: UserError) -> Refused:
        return cls(error.problem, error.hint, error.place)

    def raised(self) -> UserError:
        """The same error in this process."""
        return UserError(self.problem, self.hint, self.place)


@dataclass(frozen=True)
class Installed:
    """The engine that a worker has."""

    version: str
    build: str
    """Identifies everything that determines the worker's results (`build_of`); empty: it can't run
    this engine."""
    refused: Refused | None = None
    """Why it can't run the engine."""


def installed(engine: str) -> Installed:
    """Returns this process's build of an engine, by the engine's name."""
    if reason := why_not(engine):
        return Installed(_core.VERSION, "", Refused(reason, "", None))
    try:
        return Installed(_core.VERSION, build_of(find(engine)))
    except UserError as error:
        return Installed(_core.VERSION, "", Refused.of(error))


def build_of(engine: Engine) -> str:
    """Identifies everything in this installation that determines a worker's results."""
    return f"{engine.build} {_core.FILES} {_core.METRICS}"


def work_off(engine: str, batch: Sequence[SeedRequest]) -> list[Ran | Refused]:
    """Runs these seeds one after another; returns the result of each."""
    wanted = _wanted()
    runner = find(engine)
    scenarios: dict[str, Scenario] = {}
    results: list[Ran | Refused] = []
    for request in batch:
        if request.scenario not in scenarios:
            scenarios[request.scenario] = loads(request.scenario)
        try:
            results.append(_ran(runner, scenarios[request.scenario], request, wanted))
        except UserError as error:
            results.append(Refused.of(error))
    return results


def _ran(
    engine: Engine, scenario: Scenario, request: SeedRequest, wanted: Callable[[int], bool]
) -> Ran:
    began = time.monotonic()
    realised = scenario.realise(request.seed)
    if seed_source.key(engine, realised) != request.key:
        raise UserError(
            "the worker's sojourn is of another build, so its results may differ",
            "install the same wheel on every worker, and restart the workers",
        )
    engine.check(realised)
    done = seed_source.make(engine, realised, request.about, wanted)
    numbers = None if done.numbers is None else done.numbers.to_bytes()
    return Ran(done.packed, numbers, done.cpu_ns, done.invalid, time.monotonic() - began)


def _wanted() -> Callable[[int], bool]:
    """Returns a function that is True while the client still waits for this thread's task. The
    thread of a cancelled Dask task continues unless it checks."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:
        # A test calls this, outside of a worker.
        return lambda _: True
    key = worker.get_current_task()

    def wanted(_: int) -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state not in ("cancelled", "released", "forgotten")

    return wanted
