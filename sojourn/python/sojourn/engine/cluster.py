"""An executor on the workers of a Dask cluster; docs/cluster.md explains how to start one.

This machine looks up each seed in this user's store. A missing seed is sent to a worker; its result
is written to the store and to the Run here. Short runs are sent in batches of about a second each,
since a task costs some milliseconds.

A worker takes part if its build equals this machine's (`worker.installed`). Any other worker is
refused with a message, also one that joins later. Dask runs a batch again if its worker died. If a
batch has killed four workers, Dask gives up (`distributed.scheduler.allowed-failures`). The seeds
of that batch are then sent one by one, so that only the faulty one fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import itertools
import logging
import queue
import time
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _core
from sojourn.engine.protocol import Cancelled
from sojourn.engine.request import ClusterAddress, ClusterAt, cores
from sojourn.engine.seed_source import SeedJob, SeedResult, Source, key
from sojourn.engine.worker import (
    Installed,
    Ran,
    Refused,
    SeedRequest,
    build_of,
    installed,
    work_off,
)
from sojourn.errors import UserError, install_extra

if TYPE_CHECKING:
    from distributed import Client

CONNECT_S = 10.0
"""Timeout for a connection to a scheduler."""
WORKERS_S = 30.0
"""How long the cluster may have no worker, at the beginning or later."""
LOOK_S = 1.0
"""Interval at which the scheduler is asked for its workers."""
BATCH_S = 1.0
"""Intended duration of a batch."""
MOST_BATCHED = 64
"""The largest number of seeds in a batch."""
MOST_UNDER_WAY = 4096
"""The largest number of seeds that are accepted and have not finished."""
CLOSE_S = 2.0
"""Timeout for leaving a scheduler."""
ADDRESS_HINT = "write tcp://HOST:8786, or tls://HOST:8786 with certificates"


def connected(where: ClusterAt, source: Source) -> Cluster:
    """Connects to the cluster and waits for one worker that takes part.

    Raises:
        UserError: it can't be reached, none of its workers can take part, or the engine runs only
            on this host.
    """
    engine = source.engine
    if engine.alone:
        raise UserError(
            f"{engine.name} runs in real time on this host, so no worker of a cluster can run it",
            "leave out --cluster, or run it with -e sim or -e kernel",
        )
    client, ours = (where, False) if _is_client(where) else (_client(where), True)
    cluster = Cluster(client, ours, source)
    try:
        cluster.gather_workers()
    except BaseException:
        cluster.close()
        raise
    return cluster


@dataclass(eq=False)
class _Lacking:
    """A job whose seed is not in the store."""

    job: SeedJob
    key: str


@dataclass(eq=False)
class _Batch:
    """Jobs sent to a worker together."""

    jobs: list[_Lacking]
    workers: frozenset[str]
    """Workers that may run it."""
    future: Any = None
    given_up: bool = False
    """Its jobs wait to be sent again, so its own result is ignored."""


class Cluster:
    """See `Executor`."""

    def __init__(self, client: Client, ours: bool, source: Source) -> None:
        self.source = source
        self._client = client
        self._ours = ours
        self._build = build_of(source.engine)
        self._asking = f"sojourn-{uuid.uuid4().hex}"
        self._numbers = itertools.count()
        self._known: dict[str, bool] = {}
        """Each worker's address, and whether it takes part."""
        self._threads: dict[str, int] = {}
        """Threads of each connected worker that takes part."""
        self._refused: dict[str, list[str]] = {}
        """Reasons for refusal, each with the addresses of its workers."""
        self._news: list[str] = list(_warning(client.scheduler.address)) if ours else []
        self._pool = ThreadPoolExecutor(cores(), thread_name_prefix="sojourn")
        self._events: queue.SimpleQueue[SeedJob | _Lacking | _Batch] = queue.SimpleQueue()
        self._waiting: list[_Lacking] = []
        self._singly: list[_Lacking] = []
        """Jobs to be sent in batches of their own."""
        self._stopped = False
        self._batches: set[_Batch] = set()
        self._under_way = 0
        self._took: tuple[int, float] = (0, 0.0)
        """Seeds that came back, and the seconds that workers spent on them."""
        self._looked_s = 0.0
        self._seen_s = time.monotonic()
        """When a worker was last connected."""

    # -------------------------------------------------------------------------------- as Executor

    @property
    def slots(self) -> int:
        """See `Executor.slots`."""
        return max(1, sum(self._threads.values()))

    def room(self) -> int:
        """See `Executor.room`."""
        most = min(2 * self.slots * self._size(), MOST_UNDER_WAY)
        return max(0, most - self._under_way)

    def begin(self, job: SeedJob) -> None:
        """See `Executor.begin`."""
        self._under_way += 1
        self._pool.submit(self._look_up, job)

    def finished(self, timeout_s: float) -> SeedJob | None:
        """See `Executor.finished`."""
        until = time.monotonic() + timeout_s
        job: SeedJob | None = None
        with contextlib.suppress(queue.Empty):
            while job is None:
                # Send work to workers only after all pending events are handled.
                if self._events.empty():
                    self._look_at_workers()
                    self._hand_out()
                left = max(0.0, until - time.monotonic())
                job = self._handled(self._events.get(timeout=left))
            self._hand_out()
        return job

    def news(self) -> Sequence[str]:
        """See `Executor.news`."""
        news, self._news = self._news, []
        return news

    def abandon(self) -> None:
        """See `Executor.abandon`."""
        self._stopped = True
        # The cluster may be broken.
        with contextlib.suppress(Exception):
            for batch in self._batches:
                if batch.future.status == "finished":
                    self._take_in(batch, batch.future.result(timeout=CONNECT_S))
        with contextlib.suppress(Exception):
            self._cancel(self._batches)
        self._batches.clear()
        self._pool.shutdown()

    def close(self) -> None:
        """See `Executor.close`."""
        self._pool.shutdown()
        if self._ours:
            with contextlib.suppress(Exception):
                self._client.close(timeout=CLOSE_S)

    # ------------------------------------------------------------------------------------ batches

    def _look_up(self, job: SeedJob) -> None:
        """On a thread of the pool: takes a job's seed from the store, or reports that it is
        missing."""
        try:
            if self._stopped:
                raise Cancelled
            realised = job.scenario.realise(job.seed)
            name = key(self.source.engine, realised)
            stored = self.source.taken(name, job.about)
            if stored is None:
                self._events.put(_Lacking(job, name))
                return
            job.future.set_result(stored)
        except BaseException as error:
            job.future.set_exception(error)
        job.reached_ns = job.scenario.duration
        self._events.put(job)

    def _handled(self, event: SeedJob | _Lacking | _Batch) -> SeedJob | None:
        match event:
            case SeedJob():
                self._under_way -= 1
                return event
            case _Lacking():
                self._waiting.append(event)
            case _Batch() if not event.given_up:
                self._ended(event)
        return None

    def _size(self) -> int:
        """Seeds in the next batch."""
        count, seconds = self._took
        if count == 0:
            return 1
        return max(1, min(MOST_BATCHED, int(BATCH_S * count / max(seconds, 1e-9))))

    def _hand_out(self) -> None:
        """Sends waiting jobs: full batches, up to two for each worker's thread, and smaller ones
        while a thread has none."""
        if not self._threads:
            return
        for one in self._singly:
            self._send([one])
        self._singly.clear()
        while self._waiting:
            # The remaining jobs are shared among all threads.
            fair = -(-len(self._waiting) // self.slots)
            size = min(self._size(), fair)
            idle = len(self._batches) < self.slots
            if not idle and (len(self._batches) >= 2 * self.slots or len(self._waiting) < size):
                return
            self._send(self._waiting[:size])
            del self._waiting[:size]

    def _send(self, jobs: list[_Lacking]) -> None:
        batch = _Batch(jobs, frozenset(self._threads))
        requests = [
            SeedRequest(one.job.scenario.to_toml(), one.job.seed, one.job.about, one.key)
            for one in jobs
        ]
        batch.future = self._client.submit(
            work_off,
            self.source.engine.name,
            requests,
            key=f"{self._asking}-{next(self._numbers)}",
            workers=list(batch.workers),
            pure=False,
        )
        self._follow(batch)

    def _follow(self, batch: _Batch) -> None:
        self._batches.add(batch)
        batch.future.add_done_callback(functools.partial(self._announce, batch))

    def _announce(self, batch: _Batch, _: object) -> None:
        self._events.put(batch)

    def _ended(self, batch: _Batch) -> None:
        """Handles a batch that came back, failed, or was lost."""
        from distributed import KilledWorker

        self._batches.discard(batch)
        if batch.future.status in ("lost", "pending"):
            # The worker died with its results: Dask runs the batch again.
            self._follow(batch)
            return
        try:
            given = batch.future.result()
        except KilledWorker as error:
            self._killed(batch, error)
        except (Exception, asyncio.CancelledError) as error:
            if batch.future.status != "error":
                # The result exists but can't be fetched.
                raise self._lost() from error
            # A bug, with the traceback of the worker.
            for one in batch.jobs:
                self._fail(one.job, error)
        else:
            self._take_in(batch, given)

    def _take_in(self, batch: _Batch, given: Iterable[Ran | Refused]) -> None:
        for one, each in zip(batch.jobs, given, strict=True):
            if isinstance(each, Refused):
                self._fail(one.job, each.raised())
                continue
            count, seconds = self._took
            self._took = (count + 1, seconds + each.took_s)
            self._pool.submit(self._keep, one, each)

    def _keep(self, one: _Lacking, ran: Ran) -> None:
        """On a thread of the pool: stores a worker's result on this machine."""
        job = one.job
        try:
            numbers = None if ran.numbers is None else _core.Numbers.from_bytes(ran.numbers)
            result = SeedResult(ran.packed, numbers, ran.cpu_ns, ran.invalid)
            self.source.keep(one.key, job.about, result)
            job.future.set_result(result)
        except BaseException as error:
            job.future.set_exception(error)
        job.reached_ns = job.scenario.duration
        self._events.put(job)

    def _killed(self, batch: _Batch, error: Any) -> None:
        """Handles a batch that Dask has given up because its workers died."""
        if len(batch.jobs) > 1:
            self._singly += batch.jobs
            return
        died = UserError(
            f"{error.allowed_failures + 1} workers died while they ran it",
            "is their memory too small? see dask worker --memory-limit, and their logs",
        )
        self._fail(batch.jobs[0].job, died)

    def _fail(self, job: SeedJob, error: BaseException) -> None:
        job.future.set_exception(error)
        job.reached_ns = job.scenario.duration
        self._events.put(job)

    def _cancel(self, batches: Iterable[_Batch]) -> None:
        for batch in batches:
            batch.given_up = True
        if futures := [batch.future for batch in batches]:
            self._client.cancel(futures)

    # ------------------------------------------------------------------------------------ workers

    def gather_workers(self) -> None:
        """Waits for a worker that takes part.

        Raises:
            UserError: there is none.
        """
        until = time.monotonic() + WORKERS_S
        while not self._threads:
            self._look_at_workers(at_once=True)
            if self._refused:
                break
            if time.monotonic() > until:
                raise UserError(
                    f"no worker is at {self._address} after {WORKERS_S:g} s",
                    f"start one: dask worker {self._address}",
                )
            if not self._threads:
                time.sleep(0.1)
        if not self._threads:
            reasons = [self._sentence(why) for why in self._refused]
            raise UserError(
                "\n".join(["no worker of the cluster can take part", *reasons]),
                "install the same sojourn there, with its extra `cluster`, and restart the workers",
            )

    @property
    def _address(self) -> str:
        return str(self._client.scheduler.address)

    def _look_at_workers(self, *, at_once: bool = False) -> None:
        """Updates the lists of workers: present, new, gone."""
        now = time.monotonic()
        if not at_once and now < self._looked_s + LOOK_S:
            return
        self._looked_s = now
        try:
            there: dict[str, int] = self._client.nthreads()
            self._meet([address for address in there if address not in self._known])
        except (OSError, TimeoutError) as error:
            raise self._lost() from error
        self._threads = {each: count for each, count in there.items() if self._known.get(each)}
        gone = [batch for batch in self._batches if batch.workers.isdisjoint(self._threads)]
        if gone:
            # No remaining worker may run these batches, but a new one may.
            self._cancel(gone)
            self._batches.difference_update(gone)
            self._waiting = [one for batch in gone for one in batch.jobs] + self._waiting
        if self._threads:
            self._seen_s = now
        elif now > self._seen_s + WORKERS_S:
            raise UserError(
                f"no worker has been at {self._address} for {WORKERS_S:g} s",
                "start workers and run the same command: finished seeds are kept",
            )

    def _meet(self, new: Sequence[str]) -> None:
        """Asks new workers for their builds."""
        if not new:
            return
        name = self.source.engine.name
        answers = self._client.run(installed, name, workers=list(new), on_error="return")
        for address, answer in answers.items():
            why = self._why_refused(answer)
            self._known[address] = not why
            if why:
                self._refused.setdefault(why, []).append(address)
                self._news.append(f"note: {self._sentence(why)}")

    def _why_refused(self, answer: Installed | BaseException) -> str:
        """Why a worker is refused; empty: it takes part."""
        if isinstance(answer, ModuleNotFoundError):
            return f"it has no sojourn as new as this one ({answer})"
        if isinstance(answer, BaseException):
            return f"it can't report its build: {answer!r}"
        if answer.refused is not None:
            return f"it can't run {self.source.engine.name}: {answer.refused.problem}"
        if answer.build != self._build:
            return (
                f"its engine is another build ({answer.version}, {answer.build.split()[0]}) than here"
                f" ({_core.VERSION}, {self._build.split()[0]})"
            )
        return ""

    def _sentence(self, why: str) -> str:
        workers = self._refused[why]
        named = workers[0] if len(workers) == 1 else f"{workers[0]} and {len(workers) - 1} more"
        return f"worker {named} is refused: {why}"

    def _lost(self) -> UserError:
        return UserError(
            f"lost the cluster's scheduler at {self._address}",
            "finished seeds are kept: run the same command once the scheduler is back",
        )


# ------------------------------------------------------------------------------------- connecting


def _is_client(where: ClusterAt) -> bool:
    return not isinstance(where, str | ClusterAddress)


def _client(where: str | ClusterAddress) -> Client:
    at = where if isinstance(where, ClusterAddress) else ClusterAddress(where)
    try:
        import distributed
    except ImportError:
        raise UserError(
            "a cluster needs Dask, which is not installed", install_extra("cluster")
        ) from None
    # Our messages replace Dask's log, which has tracebacks.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)

    class Connecting(distributed.Client):  # type: ignore[misc]
        """Closes itself after any error while it connects. Dask closes a client only after an
        OSError. After any other error the garbage collector would end the client and print a
        traceback."""

        def start(self, **words: Any) -> None:
            try:
                super().start(**words)
            except BaseException:
                with contextlib.suppress(Exception):
                    self.close(timeout=CLOSE_S)
                raise

    place, security = _where(at.address), _security(at)
    try:
        return Connecting(
            **place, security=security, timeout=CONNECT_S, set_as_default=False, name="sojourn"
        )
    except (OSError, TimeoutError) as error:
        raise UserError(
            f"can't reach a scheduler at {at.address}: {error}",
            "is it running, and its port open? dask scheduler --host 127.0.0.1 starts one",
        ) from None
    except Exception as error:
        # If a server of another kind answers, Dask decodes the server's bytes all the same. Each of
        # Dask's decoders raises errors of its own.
        raise UserError(
            f"can't read what {at.address} answers: {error}",
            "is a Dask scheduler there? write the address that dask scheduler prints",
        ) from None


def _where(address: str) -> dict[str, str]:
    if address.startswith(("tcp://", "tls://")):
        from distributed.comm import get_address_host_port

        try:
            _, port = get_address_host_port(address, strict=True)
        except ValueError as error:
            raise UserError(
                f"{address!r} is not a scheduler's address: {error}", ADDRESS_HINT
            ) from None
        if not 0 < port < 2**16:
            raise UserError(
                f"{address!r} is not a scheduler's address: {port} is not a port", ADDRESS_HINT
            )
        return {"address": address}
    if Path(address).is_file():
        return {"scheduler_file": address}
    raise UserError(
        f"{address!r} is neither a scheduler's address nor a scheduler file", ADDRESS_HINT
    )


def _security(at: ClusterAddress) -> Any:
    from distributed.security import Security

    files = {
        "tls_ca_file": at.ca_file,
        "tls_client_cert": at.cert,
        "tls_client_key": at.key or at.cert,
    }
    given = {name: file for name, file in files.items() if file is not None}
    for file in given.values():
        if not Path(file).is_file():
            raise UserError(f"there is no certificate {file}", "give the path of a PEM file")
    encrypted = at.address.startswith("tls://")
    if given and not encrypted:
        raise UserError(
            f"{at.address} is not encrypted: it uses no certificates", "write tls://HOST:8786"
        )
    if not encrypted:
        return Security()
    security = Security(**given, require_encryption=True)
    try:
        context = security.get_connection_args("client").get("ssl_context")
    except OSError as error:
        raise UserError(
            f"these certificates do not match: {error}",
            "give PEM files: --tls-ca-file CA --tls-cert OWN --tls-key KEY",
        ) from None
    if context is None:
        raise UserError(
            f"{at.address} needs a certificate",
            "--tls-ca-file CA --tls-cert OWN --tls-key KEY, or distributed.comm.tls in Dask's"
            " configuration",
        )
    return security


def _warning(address: str) -> Iterable[str]:
    """Notes about the safety of a cluster's address."""
    scheme, _, rest = address.partition("://")
    host = rest.rpartition(":")[0].strip("[]")
    with contextlib.suppress(ValueError):
        if scheme == "tcp" and not ipaddress.ip_address(host).is_loopback:
            yield (
                f"note: {address} has neither encryption nor passwords: whoever reaches it can run"
                " programs on its workers and here. tls:// has both (docs/cluster.md)"
            )
