"""The one runner: seeds of scenarios, worked off by an executor, with progress, Ctrl-C and failures;
what each seed gave goes to a sink.

Executors are threads of this process and the calling thread, here, and the workers of a cluster
(`cluster`). Sinks are the folders of Runs (`runs`), numbers in memory (`memory`) and recordings
(sojourn/agreement/recorder.py).

One run is one serial chain of events, so it takes one core; runs are independent of each other, so
they go in parallel. The simulator lets go of the GIL and a guest is a process, hence threads
suffice. The calling thread hands out the work, gives each seed to the sink as soon as it is
finished, tells how far all of them are, and hears Ctrl-C. What stops the work stops all seeds under
way; those that had finished still reach the sink.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from sojourn.engine.protocol import Cancelled
from sojourn.engine.request import Progress
from sojourn.errors import UserError
from sojourn.scenario import Scenario

POLL_S = 0.1
"""How often progress is told. Ctrl-C is heard at once."""

T = TypeVar("T")


@dataclass(eq=False)
class Job(Generic[T]):
    """One seed of one variant, and what it gives: a `T`."""

    scenario: Scenario
    seed: int
    reached_ns: int = field(default=0, kw_only=True)
    """Simulated time, written by what runs the job, read by the main thread."""
    future: Future[T] = field(default_factory=Future, kw_only=True)
    kept: bool = field(default=False, kw_only=True)
    """The sink has it."""
    taken: bool = field(default=False, kw_only=True)
    """From the store."""
    error: UserError | None = field(default=None, kw_only=True)
    """Why the engine could not finish it."""


J = TypeVar("J", bound=Job[Any])
Make = Callable[[J, Callable[[int], bool]], object]
"""Runs a job. The second argument is told how far that is, in ns, and says whether to go on."""


class Executor(Protocol[J]):
    """Works off jobs. One thread calls its verbs."""

    @property
    def slots(self) -> int:
        """Runs that go at the same time."""
        ...

    def room(self) -> int:
        """How many more jobs it takes now: not more than the sink takes soon, for what is finished
        lies in memory until then, and Ctrl-C has to wait for it."""
        ...

    def begin(self, job: J) -> None:
        """Takes a job. Sooner or later `finished` gives it back."""
        ...

    def finished(self, timeout_s: float) -> J | None:
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


class Sink(ABC, Generic[J]):
    """Takes what seeds give. All its verbs are called on the calling thread."""

    @abstractmethod
    def take(self, job: J) -> None:
        """Takes the result of a job's future, which is let go afterwards."""

    def failed(self, job: J) -> None:
        """The engine could not finish this one: its `error` says why. Raises to stop the work."""

    def rest(self, last: bool) -> None:
        """Does what is not done for each seed. `last`: no job is left."""

    def stopped(self) -> None:
        """The work has been stopped, and every seed that had finished was taken."""


class Threads(Generic[J]):
    """Threads of this process."""

    def __init__(self, make: Make[J], slots: int) -> None:
        self.slots = slots
        self._make = make
        self._pool = ThreadPoolExecutor(slots, thread_name_prefix="sojourn")
        self._stop = threading.Event()
        self._done: queue.SimpleQueue[J] = queue.SimpleQueue()
        self._under_way = 0

    def room(self) -> int:
        """See `Executor.room`."""
        return 2 * self.slots - self._under_way

    def begin(self, job: J) -> None:
        """See `Executor.begin`."""
        self._under_way += 1
        job.future = self._pool.submit(self._run, job)
        job.future.add_done_callback(functools.partial(self._announce, job))

    def finished(self, timeout_s: float) -> J | None:
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

    def _announce(self, job: J, _: Future[Any]) -> None:
        self._done.put(job)

    def _run(self, job: J) -> object:
        """The body of a thread."""

        def reached(now_ns: int) -> bool:
            job.reached_ns = now_ns
            return not self._stop.is_set()

        if self._stop.is_set():
            raise Cancelled
        made = self._make(job, reached)
        job.reached_ns = job.scenario.duration
        return made


class CallingThread(Generic[J]):
    """The thread that waits for the jobs: one after the other, without a switch between threads."""

    slots = 1

    def __init__(self, make: Make[J], meanwhile: Callable[[], None]) -> None:
        self._make = make
        self._meanwhile = meanwhile
        """Called while a job runs; raises to stop it."""
        self._next: J | None = None

    def room(self) -> int:
        """See `Executor.room`."""
        return 1 if self._next is None else 0

    def begin(self, job: J) -> None:
        """See `Executor.begin`."""
        self._next = job

    def finished(self, timeout_s: float) -> J | None:
        """See `Executor.finished`. Runs the job that has begun, however long that takes."""
        job, self._next = self._next, None
        if job is None:
            return None

        def reached(now_ns: int) -> bool:
            job.reached_ns = now_ns
            self._meanwhile()
            return True

        try:
            job.future.set_result(self._make(job, reached))
        except Exception as error:
            job.future.set_exception(error)
        job.reached_ns = job.scenario.duration
        return job

    def news(self) -> Sequence[str]:
        """There is none."""
        return ()

    def abandon(self) -> None:
        """Nothing is under way when this thread is here."""

    def close(self) -> None:
        """See `Executor.close`."""


class HowFar(Generic[J]):
    """How far jobs are, and who is told: of thousands, only those under way are asked each time."""

    def __init__(
        self,
        jobs: Sequence[J],
        progress: Callable[[Progress], None],
        *,
        every_s: float = POLL_S,
        at_once: bool = True,
    ) -> None:
        """`at_once`: it is told before `every_s` have gone by, too."""
        self.jobs = jobs
        self.every_s = every_s
        self.under_way: set[J] = set()
        self._progress = progress
        self._told_s = -math.inf if at_once else time.monotonic()
        self._all_ns = sum(job.scenario.duration for job in jobs)
        self._ended_ns = 0
        self._finished = self._failed = self._taken = 0

    @property
    def all_ended(self) -> bool:
        """No job is left."""
        return self._finished + self._failed == len(self.jobs)

    def end(self, job: J) -> None:
        """The sink has it, or it failed."""
        self.under_way.discard(job)
        self._ended_ns += job.reached_ns
        self._finished += job.kept
        self._failed += job.error is not None
        self._taken += job.taken

    def tell(self, news: Callable[[], Sequence[str]] = tuple) -> None:
        """Tells it, where that is due."""
        now_s = time.monotonic()
        if now_s - self._told_s >= self.every_s or self.all_ended:
            self._told_s = now_s
            self._progress(self._now(news()))

    def _now(self, news: Sequence[str]) -> Progress:
        count, ended = len(self.jobs), self._finished + self._failed
        under_way_ns = sum(job.reached_ns for job in self.under_way)
        simulated = (self._ended_ns + under_way_ns) / self._all_ns
        # To set up and write down a run costs something, too: of one run nothing to speak of, of
        # thousands about half of all.
        share = 0.5 * count / (count + 20)
        fraction = (1 - share) * simulated + share * ended / count
        return Progress(
            self._finished, count, fraction, self._failed, taken=self._taken, news=tuple(news)
        )


def work_off(executor: Executor[J], far: HowFar[J], sink: Sink[J]) -> None:
    """Runs every job and gives each to the sink. One that the engine can't finish (`UserError`: a
    guest that gave up) has an `error` then; what else goes wrong, there or in the sink, stops the
    work.

    Raises:
        KeyboardInterrupt: on Ctrl-C.
    """
    waiting = iter(far.jobs)
    try:
        while not far.all_ended:
            for job in itertools.islice(waiting, executor.room()):
                executor.begin(job)
                far.under_way.add(job)
            if (ended := executor.finished(far.every_s)) is not None:
                _settle(ended, sink)
                far.end(ended)
            sink.rest(far.all_ended)
            far.tell(executor.news)
    except BaseException:
        executor.abandon()
        for job in far.jobs:
            if _unkept(job):
                # A disk that was full once may be so again: what stopped the work is what is told.
                with contextlib.suppress(UserError):
                    _settle(job, sink)
        with contextlib.suppress(UserError):
            sink.stopped()
        raise


def _unkept(job: Job[Any]) -> bool:
    """It has finished, and its sink has not had it."""
    future = job.future
    return not job.kept and future.done() and not future.cancelled() and future.exception() is None


def _settle(job: J, sink: Sink[J]) -> None:
    """Gives the sink what a job gave, or why that is nothing."""
    error = job.future.exception()
    if isinstance(error, UserError):
        # Without the frames that it came through: they hold what the guest measured.
        job.error = error.with_traceback(None)
        job.reached_ns = job.scenario.duration
        sink.failed(job)
    else:
        # Raises any other.
        job.future.result()
        sink.take(job)
        job.kept = True
    # Of thousands of seeds no more than a few are in memory.
    job.future = Future()
