"""Recordings: what the queues of a kernel guest did to each packet, as a sink of the runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from sojourn.engine.estimate import expected_s, seconds_of
from sojourn.engine.protocol import check_all
from sojourn.engine.recording import Recording
from sojourn.engine.registry import find
from sojourn.engine.request import Progress, cores, seeds_of
from sojourn.engine.runner import Job, ProgressMeter, Sink, Threads, work_off
from sojourn.engine.runs import Failure, UnfinishedError
from sojourn.errors import UserError
from sojourn.scenario import Scenario
from sojourn.scenario.realised import Realised


class RecordingStopped(KeyboardInterrupt):
    """Ctrl-C. Finished recordings are kept."""

    def __init__(self, recordings: Sequence[Recording], missing: int) -> None:
        super().__init__()
        self.recordings = tuple(recordings)
        self.missing = missing
        """Number of guests that did not finish."""


class RecordingUnfinishedError(UnfinishedError):
    """Some guests did not finish. The recordings of the others are kept."""

    def __init__(
        self, failed: Sequence[Failure], asked: int, recordings: Sequence[Recording]
    ) -> None:
        super().__init__(failed, asked)
        self.recordings = tuple(recordings)


def record(
    scenarios: Sequence[Scenario],
    *,
    engine: str = "kernel",
    seeds: int | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[Recording]:
    """Runs scenarios (no sweeps) in guests that record what the congested queues do to each packet.

    Args:
        seeds: the number of seeds, counted up from the scenario's first; None: its own seeds.
        jobs: threads; None: one per core.

    Raises:
        UserError: there is no such guest, or a scenario needs features that it lacks.
        RecordingUnfinishedError: some guests did not finish, or their recordings are invalid.
        RecordingStopped: on Ctrl-C.
    """
    kernel = find(engine)
    if not isinstance(kernel, Recorder):
        raise UserError(f"{engine} can't record its queues", "record with -e kernel-uml")
    asked = [seeds_of(scenario, seeds) for scenario in scenarios]
    first = [scenario.realise(each[0]) for scenario, each in zip(scenarios, asked, strict=True)]
    check_all(kernel, first)
    took = seconds_of(kernel.name, first)
    threads = jobs or cores()
    work = [
        _Job(scenario, seed)
        for scenario, each in zip(scenarios, asked, strict=True)
        for seed in each
    ]

    def make(job: _Job, reached: Callable[[int], bool]) -> list[Recording]:
        recordings, _ = kernel.recordings(job.scenario.realise(job.seed), reached)
        return [replace(each, title=job.name) for each in recordings]

    sink = _Recorded()
    report = progress or (lambda _: None)
    executor = Threads(make, threads)
    try:
        counted = [(each, len(of_it)) for each, of_it in zip(took, asked, strict=True)]
        report(Progress(0, len(work), 0.0, expected_s=expected_s(counted, threads)))
        work_off(executor, ProgressMeter(work, report), sink)
    except KeyboardInterrupt:
        missing = sum(not job.kept for job in work)
        raise RecordingStopped(sink.in_order(work), missing) from None
    finally:
        executor.close()
    failures = [Failure(job.name, job.seed, job.error) for job in work if job.error is not None]
    if failures:
        raise RecordingUnfinishedError(failures, len(work), sink.in_order(work))
    return sink.in_order(work)


@runtime_checkable
class Recorder(Protocol):
    """An engine that can record what its queues did. (Some attributes of `Engine` need a guest, and
    isinstance would read them.)"""

    def recordings(
        self, realised: Realised, reached: Callable[[int], bool]
    ) -> tuple[list[Recording], int]:
        """Returns what each congested link's queue did to each packet, and the CPU time in ns."""
        ...


@dataclass(eq=False)
class _Job(Job[list[Recording]]):
    """A seed of a scenario."""

    @property
    def name(self) -> str:
        """The scenario's label or title."""
        return self.scenario.label or self.scenario.title


class _Recorded(Sink[_Job]):
    """Keeps recordings in memory."""

    def __init__(self) -> None:
        self._recordings: dict[_Job, list[Recording]] = {}

    def take(self, job: _Job) -> None:
        """See `Sink.take`."""
        self._recordings[job] = job.future.result()

    def in_order(self, jobs: Sequence[_Job]) -> list[Recording]:
        """The recordings, in the order of the jobs."""
        return [each for job in jobs for each in self._recordings.get(job, ())]
