"""Seeds run on the workers of a Dask cluster: a scheduler and workers that are processes of their
own, on loopback."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import cloudpickle
import pytest

import sojourn
from sojourn import _core, engine, errors, metrics
from sojourn.cli import status
from sojourn.engine import Interrupted, Progress, UnfinishedError, cluster, worker
from sojourn.engine.seed_source import Source, key
from sojourn.engine.sim import Simulator
from sojourn.records import Run

SCENARIO = """
title = "A short run"
duration = "200 ms"
[bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
[[flow]]
kind = "bulk"
start = "uniform 0 s .. 50 ms"
[[flow]]
kind = "ping"
[sweep]
"bottleneck.qdisc" = ["pfifo", "codel"]
"""
WAIT_S = 30.0
ONE_CLUSTER = pytest.mark.xdist_group("cluster")
"""For tests that share a cluster: starting one takes longer than any of them."""
SEEDS = 500
PRELOAD = """
from pathlib import Path
from sojourn.engine.sim import Simulator
own = Simulator.build
other = Path({folder!r}, "other-build")
Simulator.build = property(lambda _: "0123456789abcdef" if other.exists() else own)
"""
"""The second worker's code: while a file of this name exists, its engine is of another build."""


@dataclass
class Cluster:
    """A scheduler and its workers."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """For --cluster: the path of its scheduler file."""
        return str(self.folder / "scheduler.json")

    def begin(self, verb: str, *words: str) -> None:
        """Starts `dask scheduler` or `dask worker`."""
        command = [sys.executable, "-m", f"distributed.cli.dask_{verb}", *words]
        command += ["--scheduler-file", self.address, "--dashboard-address", "127.0.0.1:0"]
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        self.processes.append(process)

    def worker(self, *words: str) -> None:
        """Starts one more worker, with one thread."""
        own = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--death-timeout", "60")
        scratch = ("--local-directory", str(self.folder))
        self.begin("worker", *own, *scratch, *words)

    def wait_for_workers(self, count: int) -> None:
        """Waits for this many workers."""
        with client(self.address) as asking:
            asking.wait_for_workers(count, timeout=WAIT_S)


def client(address: str) -> Any:
    from distributed import Client

    return Client(scheduler_file=address, set_as_default=False, timeout=WAIT_S)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two workers."""
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.begin("scheduler", "--host", "127.0.0.1", "--port", "0")
        # They wait for the scheduler's file.
        started.worker()
        preload = started.folder / "preload.py"
        preload.write_text(PRELOAD.format(folder=str(started.folder)))
        started.worker("--preload", str(preload))
        until = time.monotonic() + WAIT_S
        while not Path(started.address).is_file():
            assert time.monotonic() < until, "the scheduler did not start"
            time.sleep(0.05)
        started.wait_for_workers(2)
        yield started
    finally:
        for process in reversed(started.processes):
            process.kill()
            process.wait()


@pytest.fixture
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def sums(runs: list[Run]) -> dict[str, dict[str, str]]:
    """All tables of Runs: the sums of each seed."""
    return {run.name: dict(run.meta.checksums) for run in runs}


def short(**changes: object) -> sojourn.Scenario:
    return sojourn.loads(SCENARIO).with_(changes)


@ONE_CLUSTER
def test_a_worker_of_another_build_is_refused_with_a_sentence(there: Cluster) -> None:
    news: list[str] = []
    (there.folder / "other-build").touch()
    try:
        runs = sojourn.run_all(
            short(), seeds=10, cluster=there.address, progress=lambda p: news.extend(p.news)
        )
    finally:
        (there.folder / "other-build").unlink()
    (sentence,) = news
    assert "is refused: its engine is another build" in sentence
    assert "0123456789abcdef" in sentence
    assert sums(runs) == sums(sojourn.run_all(short(), seeds=10))


@ONE_CLUSTER
def test_without_a_usable_worker_nothing_is_begun(
    there: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "build_of", lambda _: "feedfeedfeedfeed of today")
    with pytest.raises(sojourn.UserError, match="no worker of the cluster can take part") as caught:
        sojourn.run_all(short(), out=tmp_path / "runs", cluster=there.address)
    assert "feedfeedfeedfeed" in caught.value.problem
    assert "install the same sojourn" in caught.value.hint
    assert not (tmp_path / "runs").exists()


@ONE_CLUSTER
def test_an_error_of_a_worker_is_reported_like_one_on_this_host(
    there: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "key", lambda *_: "of something else")
    with pytest.raises(UnfinishedError) as caught:
        sojourn.run_all(short(), seeds=2, cluster=there.address)
    assert len(caught.value.failed) == 4
    assert "so its results may differ" in caught.value.problem
    assert caught.value.hint.startswith("install the same wheel")


@pytest.mark.usefixtures("own_store")
@ONE_CLUSTER
def test_finished_seeds_are_kept_in_the_client_s_store(there: Cluster) -> None:
    reports: list[Progress] = []
    first = sojourn.run_all(short(), seeds=10, cluster=there.address)
    again = sojourn.run_all(short(), seeds=12, cluster=there.address, progress=reports.append)
    assert (reports[-1].finished, reports[-1].taken) == (24, 20)
    assert sums(first)["codel"].items() <= sums(again)["codel"].items()
    # Threads use the workers' results from the store.
    sojourn.run_all(short(), seeds=12, progress=reports.append)
    assert reports[-1].taken == 24


@ONE_CLUSTER
def test_ctrl_c_keeps_finished_seeds_and_stops_the_workers(there: Cluster, tmp_path: Path) -> None:
    def stop(p: Progress) -> None:
        if p.finished:
            raise KeyboardInterrupt

    # The second takes minutes.
    quick, slow = short().variants()[0], short(duration="10 min").variants()[1]
    with pytest.raises(Interrupted) as caught:
        sojourn.run_all(
            [quick, slow], seeds=3, out=tmp_path / "runs", cluster=there.address, progress=stop
        )
    kept = {run.name: run.seeds for run in caught.value.runs}
    assert kept["pfifo"]
    assert kept["codel"] == ()
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with client(there.address) as asking:
        until = time.monotonic() + WAIT_S
        while any(asking.run(busy).values()):
            assert time.monotonic() < until, "a worker is still busy"
            time.sleep(0.05)


def busy(dask_worker: Any) -> bool:
    """Whether a thread of the worker runs something."""
    return bool(dask_worker.active_threads)


@ONE_CLUSTER
def test_sojourn_run_accepts_a_cluster_s_address(
    there: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.toml").write_text(SCENARIO)
    words = ["run", "short.toml", "--seeds", "3", "--format", "csv", "-q", "--cluster"]
    assert status([*words, there.address]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert status(words[:-1]) == 0
    assert capsys.readouterr().out == captured.out


@ONE_CLUSTER
def test_after_the_loss_of_a_worker_the_tables_equal_those_of_a_local_run(
    there: Cluster, tmp_path: Path
) -> None:
    # The last test that needs two workers.
    dying = there.processes[-1]
    killed_at: list[int] = []

    def kill(p: Progress) -> None:
        if not killed_at and p.finished >= SEEDS // 4:
            killed_at.append(p.finished)
            dying.send_signal(signal.SIGKILL)

    runs = sojourn.run_all(
        short(), seeds=SEEDS, out=tmp_path / "runs", cluster=there.address, progress=kill
    )
    assert killed_at[0] < 2 * SEEDS, "the worker was killed in the middle of the work"
    assert dying.wait() == -signal.SIGKILL
    assert [len(run.seeds) for run in runs] == [SEEDS, SEEDS]
    alone = sojourn.run_all(short(), seeds=SEEDS)
    assert sums(runs) == sums(alone)
    for run, other in zip(runs, alone, strict=True):
        assert run.meta.fingerprint == other.meta.fingerprint
        assert run.table("queue", 1).equals(other.table("queue", 1))


@ONE_CLUSTER
def test_a_lost_scheduler_costs_only_the_running_seeds(there: Cluster, tmp_path: Path) -> None:
    # The last worker.
    def kill(p: Progress) -> None:
        if p.finished:
            there.processes[0].kill()

    # The second takes minutes.
    quick, slow = short().variants()[0], short(duration="10 min").variants()[1]
    with pytest.raises(sojourn.UserError, match="lost the cluster's scheduler"):
        sojourn.run_all(
            [quick, slow], seeds=3, out=tmp_path / "runs", cluster=there.address, progress=kill
        )
    # The same call continues, here or on another cluster.
    assert Run.open(tmp_path / "runs" / "pfifo").seeds


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--cluster", "tcp://127.0.0.1:1", "-j", "2"], "--jobs sets the threads of this machine"),
        (["--cluster", "ten"], "'ten' is neither a scheduler's address"),
        (["--cluster", "tcp://127.0.0.1:1"], "can't reach a scheduler at tcp://127.0.0.1:1"),
        (["--cluster", "tcp://host"], "'tcp://host' is not a scheduler's address: missing port"),
        (["--cluster", "tcp://host:65536"], "65536 is not a port"),
        (
            ["--cluster", "tcp://127.0.0.1:1", "--tls-cert", "a.pem"],
            "there is no certificate a.pem",
        ),
        (["--tls-cert", "a.pem"], "need --cluster"),
    ],
)
def test_wrong_options_are_reported_and_nothing_is_begun(
    words: list[str],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 0.3)
    monkeypatch.chdir(tmp_path)
    Path("short.toml").write_text(SCENARIO)
    assert status(["run", "short.toml", "-o", "runs", *words]) == 2
    assert problem in capsys.readouterr().err
    assert not Path("runs").exists()


@contextlib.contextmanager
def answering(greeting: bytes) -> Iterator[str]:
    """The address of a server that sends this to every client."""

    class Saying(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(greeting)
            # Until the other side closes.
            with contextlib.suppress(OSError):
                while self.request.recv(4096):
                    pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Saying) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"tcp://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    "greeting",
    [
        b"\xff" * 4000,
        # The answer of Dask's own dashboard, whose port is easily mistaken for the scheduler's.
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
    ],
    ids=["garbage", "http"],
)
def test_a_server_that_is_not_a_scheduler_is_reported(greeting: bytes, tmp_path: Path) -> None:
    (tmp_path / "short.toml").write_text(SCENARIO)
    # This needs a separate process: threads that Dask leaves behind print messages when it ends.
    command = [sys.executable, "-m", "sojourn", "run", "short.toml", "-o", "runs", "--cluster"]
    with answering(greeting) as address:
        ended = subprocess.run(
            [*command, address], cwd=tmp_path, capture_output=True, text=True, timeout=WAIT_S
        )
    assert ended.returncode == 2, ended.stderr
    problem, hint = ended.stderr.splitlines()
    assert problem.startswith(f"error: can't read what {address} answers: ")
    assert hint.startswith("hint: is a Dask scheduler there?")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://10.0.0.1:8786", False),
        ("tcp://10.0.0.1:8786", True),
    ],
)
def test_a_cluster_that_others_can_reach_without_tls_gives_a_warning(
    address: str, warned: bool
) -> None:
    assert any("tls://" in warning for warning in cluster._warning(address)) is warned


# ---------------------------------------------------------------------------------- certificates


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a self-signed certificate in one file."""
    file = tmp_path / "own.pem"
    words = (
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=here"
    )
    parts = [tmp_path / "key.pem", tmp_path / "cert.pem"]
    command = ["openssl", *words.split(), "-keyout", str(parts[0]), "-out", str(parts[1])]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl here")
    file.write_bytes(b"".join(part.read_bytes() for part in parts))
    return file


def test_with_tls_only_clients_with_a_certificate_take_part(certificate: Path) -> None:
    from distributed import LocalCluster
    from distributed.security import Security

    own = str(certificate)
    sides = ("client", "scheduler", "worker")
    files = {f"tls_{side}_{what}": own for side in sides for what in ("cert", "key")}
    security = Security(tls_ca_file=own, require_encryption=True, **files)
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        security=security,
        protocol="tls://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        local_directory=str(certificate.parent),
    ) as secured:
        at = engine.ClusterAddress(secured.scheduler_address, ca_file=own, cert=own)
        runs = sojourn.run_all(short(), seeds=2, cluster=at)
        assert sums(runs) == sums(sojourn.run_all(short(), seeds=2))
    with pytest.raises(sojourn.UserError, match="needs a certificate"):
        sojourn.run_all(short(), cluster=at.address)
    (certificate.parent / "empty.pem").touch()
    other = dataclasses.replace(at, ca_file=str(certificate.parent / "empty.pem"))
    with pytest.raises(sojourn.UserError, match="these certificates do not match"):
        sojourn.run_all(short(), cluster=other)


# -------------------------------------------------------------------------------- without a cluster


def test_engines_in_real_time_run_on_this_host() -> None:
    class RealTime(Simulator):
        name = "netns"
        alone = True

    with pytest.raises(sojourn.UserError, match="netns runs in real time on this host"):
        sojourn.run_all(short(), engine=RealTime(), cluster="tcp://127.0.0.1:1")


def test_a_worker_returns_the_tables_of_an_engine() -> None:
    scenario = short().variants()[0]
    source = Source.of(engine.find("sim"), fresh=True)
    run = sojourn.run(scenario)
    about = metrics.about(run.meta, _core.CAUSES)
    name = key(source.engine, scenario.realise(1))
    request = worker.SeedRequest(scenario.to_toml(), 1, about, name)
    (ran, refused) = worker.work_off("sim", [request, dataclasses.replace(request, key="another")])
    assert isinstance(ran, worker.Ran)
    assert ran.packed.checksum == run.meta.checksums["1"]
    assert isinstance(refused, worker.Refused)
    assert "another build" in refused.raised().problem


class Address:
    """A scheduler's address."""

    address = "tcp://127.0.0.1:8786"


class StubFuture:
    """A future with a fixed status and result."""

    def __init__(self, status: str, given: object) -> None:
        self.status = status
        self.given = given

    def result(self, timeout: float | None = None) -> object:
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given

    def add_done_callback(self, callback: Callable[[StubFuture], None]) -> None:
        if self.status != "pending":
            callback(self)


class OneProcess:
    """The part of a client that `Cluster` uses: its worker is this process."""

    scheduler = Address()

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.allowed: list[list[str]] = []
        self.cancelled = 0
        self.there = {"tcp://127.0.0.1:1": 1}

    def nthreads(self) -> dict[str, int]:
        return self.there

    def run(self, what: Callable[..., object], *given: object, **_: object) -> dict[str, object]:
        return {address: what(*given) for address in self.there}

    def submit(
        self, what: Callable[..., object], name: str, batch: list[worker.SeedRequest], **how: Any
    ) -> StubFuture:
        self.batches.append([request.seed for request in batch])
        self.allowed.append(how["workers"])
        return self.results(what, name, batch)

    def results(
        self, what: Callable[..., object], name: str, batch: list[worker.SeedRequest]
    ) -> StubFuture:
        return StubFuture("finished", what(name, batch))

    def cancel(self, futures: list[StubFuture]) -> None:
        self.cancelled += len(futures)


def test_short_runs_go_in_batches_that_grow() -> None:
    one = OneProcess()
    run = sojourn.run(short().variants()[0], seeds=60, cluster=cast(Any, one))
    assert run.seeds == tuple(range(1, 61))
    assert sorted(seed for batch in one.batches for seed in batch) == list(run.seeds)
    assert len(one.batches[0]) == 1
    assert max(map(len, one.batches)) > 1
    assert len(one.batches) < 60


def test_a_seed_that_kills_its_workers_fails_alone() -> None:
    from distributed import KilledWorker

    class Deadly(OneProcess):
        def results(
            self, what: Callable[..., object], name: str, batch: list[worker.SeedRequest]
        ) -> StubFuture:
            if any(request.seed == 40 for request in batch):
                return StubFuture("error", KilledWorker("task", cast(Any, None), 3))
            return super().results(what, name, batch)

    one = Deadly()
    with pytest.raises(UnfinishedError) as caught:
        sojourn.run(short().variants()[0], seeds=60, cluster=cast(Any, one))
    assert [failure.seed for failure in caught.value.failed] == [40]
    assert "4 workers died while they ran it" in caught.value.problem
    assert len(caught.value.runs[0].seeds) == 59
    assert [40] in one.batches


def test_tasks_of_lost_workers_are_sent_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Moving(OneProcess):
        def results(
            self, what: Callable[..., object], name: str, batch: list[worker.SeedRequest]
        ) -> StubFuture:
            if len(self.batches) == 1:
                # It never comes back: from now on the worker is another one.
                self.there = {"tcp://127.0.0.1:2": 1}
                return StubFuture("pending", None)
            return super().results(what, name, batch)

    monkeypatch.setattr(cluster, "LOOK_S", 0.05)
    one = Moving()
    run = sojourn.run(short().variants()[0], seeds=3, cluster=cast(Any, one))
    assert run.seeds == (1, 2, 3)
    assert one.allowed[0] == ["tcp://127.0.0.1:1"]
    assert one.allowed[-1] == ["tcp://127.0.0.1:2"]
    assert one.cancelled >= 1


def test_without_workers_the_command_ends_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Leaving(OneProcess):
        def results(
            self, what: Callable[..., object], name: str, batch: list[worker.SeedRequest]
        ) -> StubFuture:
            self.there = {}
            return StubFuture("pending", None)

    monkeypatch.setattr(cluster, "LOOK_S", 0.05)
    monkeypatch.setattr(cluster, "WORKERS_S", 0.3)
    with pytest.raises(sojourn.UserError, match="no worker has been at tcp://127") as caught:
        sojourn.run(short().variants()[0], seeds=3, cluster=cast(Any, Leaving()))
    assert "finished seeds are kept" in caught.value.hint


def test_a_bug_on_a_worker_is_not_reported_as_an_error_of_the_user() -> None:
    class Wrong(OneProcess):
        def results(
            self, what: Callable[..., object], name: str, batch: list[worker.SeedRequest]
        ) -> StubFuture:
            return StubFuture("error", ZeroDivisionError("a bug"))

    with pytest.raises(ZeroDivisionError, match="a bug"):
        sojourn.run(short().variants()[0], seeds=3, cluster=cast(Any, Wrong()))


def test_without_dask_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(sojourn.UserError, match="needs Dask") as caught:
        sojourn.run(short().variants()[0], cluster="tcp://127.0.0.1:1")
    assert caught.value.hint == errors.install_extra("cluster")
