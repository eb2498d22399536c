"""What works off seeds: threads of this process, here, or the workers of a cluster (`cluster`). Both
have the verbs of `Executor`, and `runs` uses nothing else of them.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from sojourn.engine.made import MadeSeed, Source
from sojourn.engine.protocol import Cancelled
from sojourn.errors import UserError
from sojourn.records import Run
from sojourn.scenario import Scenario


@dataclass(eq=False)
class Job:
    """One seed of one variant."""

    run: Run
    scenario: Scenario
    seed: int
    about: str
    """What numbers need to know of the Run."""
    reached_ns: int = 0
    """Simulated time, written by what runs the job, read by the main thread."""
    future: Future[MadeSeed] = field(default_factory=Future)
    written: bool = False
    taken: bool = False
    """From the store."""
    error: UserError | None = None
    """Why the engine could not finish it."""


class Executor(Protocol):
    """Works off jobs. One thread calls its verbs."""

    @property
    def source(self) -> Source:
        """Where seeds come from."""
        ...

    @property
    def slots(self) -> int:
        """Runs that go at the same time."""
        ...

    def room(self) -> int:
        """How many more jobs it takes now: not more than are written down soon, for what is
        finished lies in memory until then, and Ctrl-C has to wait for it."""
        ...

    def begin(self, job: Job) -> None:
        """Takes a job. Sooner or later `finished` gives it back."""
        ...

    def finished(self, timeout_s: float) -> Job | None:
        """A job whose future is done; None: none has become so in this time.

        Raises:
            UserError: nothing can work off the jobs any more.
        """
        ...

    def news(self) -> Sequence[str]:
        """Sentences for whoever waits, each given once."""
        ...

    def abandon(self) -> None:
        """Stops what is under way. The futures of jobs that had finished are done."""
        ...

    def close(self) -> None:
        """Ends it. Nothing is under way."""
        ...


class Threads:
    """Threads of this process."""

    def __init__(self, source: Source, slots: int) -> None:
        self.source = source
        self.slots = slots
        self._pool = ThreadPoolExecutor(slots, thread_name_prefix="sojourn")
        self._stop = threading.Event()
        self._done: queue.SimpleQueue[Job] = queue.SimpleQueue()
        self._under_way = 0

    def room(self) -> int:
        """See `Executor.room`."""
        return 2 * self.slots - self._under_way

    def begin(self, job: Job) -> None:
        """See `Executor.begin`."""
        self._under_way += 1
        job.future = self._pool.submit(self._run, job)
        job.future.add_done_callback(functools.partial(self._announce, job))

    def finished(self, timeout_s: float) -> Job | None:
        """See `Executor.finished`."""
        with contextlib.suppress(queue.Empty):
            job = self._done.get(timeout=timeout_s)
            self._under_way -= 1
            return job
        return None

    def news(self) -> Sequence[str]:
        """There is none."""
        return ()

    def abandon(self) -> None:
        """See `Executor.abandon`."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def close(self) -> None:
        """See `Executor.close`."""
        self._pool.shutdown()

    def _announce(self, job: Job, _: Future[MadeSeed]) -> None:
        self._done.put(job)

    def _run(self, job: Job) -> MadeSeed:
        """The body of a thread."""

        def reached(now_ns: int) -> bool:
            job.reached_ns = now_ns
            return not self._stop.is_set()

        if self._stop.is_set():
            raise Cancelled
        made = self.source.seed(job.scenario.realise(job.seed), job.about, reached)
        job.reached_ns = job.scenario.duration
        return made
