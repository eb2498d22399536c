"""The only runner: an executor runs seeds of scenarios, and a sink takes each result. The runner
reports progress and handles Ctrl-C and failures.

The executors here are threads of this process and the calling thread; the workers of a cluster are
a third one (`cluster`). Sinks are the folders of Runs (`runs`), numbers in memory (`memory`) and
recordings (sojourn/agreement/recorder.py).

One run is one serial chain of events, so it uses one core. Runs are independent of each other, so
they run in parallel. The simulator releases the GIL and a guest is a process, so threads suffice.
The calling thread hands out jobs, gives each result to the sink at once, reports progress and
receives Ctrl-C. An error or Ctrl-C stops all running seeds; those that had finished still reach the
sink.
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
"""Interval of progress reports. Ctrl-C is handled at once."""

T = TypeVar("T")


@dataclass(eq=False)
class Job(Generic[T]):
    """One seed of one variant, and its result: a `T`."""

    scenario: Scenario
    seed: int
    reached_ns: int = field(default=0, kw_only=True)
    """Simulated time. The executor writes it, the main thread reads it."""
    future: Future[T] = field(default_factory=Future, kw_only=True)
    kept: bool = field(default=False, kw_only=True)
    """The sink has taken it."""
    taken: bool = field(default=False, kw_only=True)
    """From the store."""
    error: UserError | None = field(default=None, kw_only=True)
    """Why the engine could not finish it."""


J = TypeVar("J", bound=Job[Any])
Make = Callable[[J, Callable[[int], bool]], object]
"""Runs a job. It calls its second argument with the job's simulated time in ns, and stops the job
when the call returns False."""


class Executor(Protocol[J]):
    """Runs jobs. All its methods are called on one thread."""

    @property
    def slots(self) -> int:
        """The number of jobs that run at the same time."""
        ...

    def room(self) -> int:
        """The number of further jobs that it accepts now. It is bounded, because results stay in
        memory until the sink takes them, and Ctrl-C waits for the sink."""
        ...

    def begin(self, job: J) -> None:
        """Accepts a job. `finished` returns it later."""
        ...

    def finished(self, timeout_s: float) -> J | None:
        """Returns a job whose future is done; None if no job finishes within `timeout_s`.

        Raises:
            UserError: no worker can run jobs any more.
        """
        ...

    def news(self) -> Sequence[str]:
        """Messages for the user, each returned once."""
        ...

    def abandon(self) -> None:
        """Stops running jobs. The futures of finished jobs stay done."""
        ...

    def close(self) -> None:
        """Ends the executor. No job is running."""
        ...


class Sink(ABC, Generic[J]):
    """Takes results. All its methods are called on the calling thread."""

    @abstractmethod
    def take(self, job: J) -> None:
        """Takes the result of a job's future. The future is released afterwards."""

    def failed(self, job: J) -> None:
        """The engine could not finish the job; see `job.error`. Raises to stop the work."""

    def rest(self, last: bool) -> None:
        """Does work that is not needed after each seed. `last`: no job is left."""

    def stopped(self) -> None:
        """The work has been stopped, and the sink has taken every finished seed."""


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
        result = self._make(job, reached)
        job.reached_ns = job.scenario.duration
        return result


class CallingThread(Generic[J]):
    """The calling thread: runs jobs one after the other, without switching threads."""

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
        """See `Executor.finished`. Runs the job that has begun, whatever `timeout_s` is."""
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
        """No job is running when this thread gets here."""

    def close(self) -> None:
        """See `Executor.close`."""


class ProgressMeter(Generic[J]):
    """Measures and reports the progress of jobs. Only running jobs are asked each time, since there
    may be thousands."""

    def __init__(
        self,
        jobs: Sequence[J],
        progress: Callable[[Progress], None],
        *,
        every_s: float = POLL_S,
        at_once: bool = True,
    ) -> None:
        """`at_once`: the first report does not wait for `every_s`."""
        self.jobs = jobs
        self.every_s = every_s
        self.under_way: set[J] = set()
        self._progress = progress
        self._reported_s = -math.inf if at_once else time.monotonic()
        self._all_ns = sum(job.scenario.duration for job in jobs)
        self._ended_ns = 0
        self._finished = self._failed = self._taken = 0

    @property
    def all_ended(self) -> bool:
        """No job is left."""
        return self._finished + self._failed == len(self.jobs)

    def end(self, job: J) -> None:
        """Counts a job that the sink took, or that failed."""
        self.under_way.discard(job)
        self._ended_ns += job.reached_ns
        self._finished += job.kept
        self._failed += job.error is not None
        self._taken += job.taken

    def report(self, news: Callable[[], Sequence[str]] = tuple) -> None:
        """Reports the progress, if a report is due."""
        now_s = time.monotonic()
        if now_s - self._reported_s >= self.every_s or self.all_ended:
            self._reported_s = now_s
            self._progress(self._now(news()))

    def _now(self, news: Sequence[str]) -> Progress:
        count, ended = len(self.jobs), self._finished + self._failed
        under_way_ns = sum(job.reached_ns for job in self.under_way)
        simulated = (self._ended_ns + under_way_ns) / self._all_ns
        # Setting up and writing a run costs time, too: negligible for one run, about half of the
        # time for thousands.
        share = 0.5 * count / (count + 20)
        fraction = (1 - share) * simulated + share * ended / count
        return Progress(
            self._finished, count, fraction, self._failed, taken=self._taken, news=tuple(news)
        )


def work_off(executor: Executor[J], meter: ProgressMeter[J], sink: Sink[J]) -> None:
    """Runs every job and gives each result to the sink. A job that the engine can't finish gets an
    `error` (a `UserError`: a guest that gave up). Any other error, in a job or in the sink, stops
    the work.

    Raises:
        KeyboardInterrupt: on Ctrl-C.
    """
    waiting = iter(meter.jobs)
    try:
        while not meter.all_ended:
            for job in itertools.islice(waiting, executor.room()):
                executor.begin(job)
                meter.under_way.add(job)
            if (ended := executor.finished(meter.every_s)) is not None:
                _settle(ended, sink)
                meter.end(ended)
            sink.rest(meter.all_ended)
            meter.report(executor.news)
    except BaseException:
        executor.abandon()
        for job in meter.jobs:
            if _unkept(job):
                # A full disk may still be full: report the error that stopped the work, not this
                # one.
                with contextlib.suppress(UserError):
                    _settle(job, sink)
        with contextlib.suppress(UserError):
            sink.stopped()
        raise


def _unkept(job: Job[Any]) -> bool:
    """It has finished, and its sink has not taken it."""
    future = job.future
    return not job.kept and future.done() and not future.cancelled() and future.exception() is None


def _settle(job: J, sink: Sink[J]) -> None:
    """Gives the sink a job's result, or its error."""
    error = job.future.exception()
    if isinstance(error, UserError):
        # Without the traceback, whose frames keep the guest's measurements in memory.
        job.error = error.with_traceback(None)
        job.reached_ns = job.scenario.duration
        sink.failed(job)
    else:
        # Raises any other error.
        job.future.result()
        sink.take(job)
        job.kept = True
    # Frees the result, so that only a few of thousands of seeds are in memory.
    job.future = Future()
