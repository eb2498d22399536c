"""Seeds worked off by the workers of a Dask cluster: a scheduler and workers that are processes of
their own, at loopback."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import sojourn
from sojourn import _core, engine, metrics
from sojourn.cli import status
from sojourn.engine import Interrupted, Progress, UnfinishedError, cluster, worker
from sojourn.engine.made import Source, key
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
SEEDS = 100
PRELOAD = """
from pathlib import Path
from sojourn.engine.sim import Simulator
own = Simulator.build
other = Path({folder!r}, "other-build")
Simulator.build = property(lambda _: "0123456789abcdef" if other.exists() else own)
"""
"""Of the second worker: while there is a file of this name its engine is of another build."""


@dataclass
class Cluster:
    """A scheduler and its workers."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """As --cluster takes it: the path of its scheduler file."""
        return str(self.folder / "scheduler.json")

    def begin(self, verb: str, *words: str) -> None:
        """Starts `dask scheduler` or `dask worker`."""
        command = [sys.executable, "-m", f"distributed.cli.dask_{verb}", *words]
        command += ["--scheduler-file", self.address, "--dashboard-address", "127.0.0.1:0"]
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        self.processes.append(process)

    def worker(self, *words: str) -> None:
        """One more, of one thread."""
        own = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--death-timeout", "60")
        scratch = ("--local-directory", str(self.folder))
        self.begin("worker", *own, *scratch, *words)

    def wait_for_workers(self, count: int) -> None:
        """Until so many are there."""
        with client(self.address) as asking:
            asking.wait_for_workers(count, timeout=WAIT_S)


def client(address: str) -> Any:
    from distributed import Client

    return Client(scheduler_file=address, set_as_default=False, timeout=WAIT_S)


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two workers."""
    found = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        found.begin("scheduler", "--host", "127.0.0.1", "--port", "0")
        # They wait for the scheduler's file.
        found.worker()
        preload = found.folder / "preload.py"
        preload.write_text(PRELOAD.format(folder=str(found.folder)))
        found.worker("--preload", str(preload))
        until = time.monotonic() + WAIT_S
        while not Path(found.address).is_file():
            assert time.monotonic() < until, "no scheduler"
            time.sleep(0.05)
        found.wait_for_workers(2)
        yield found
    finally:
        for process in reversed(found.processes):
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


def test_where_no_worker_can_take_part_nothing_is_begun(
    there: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "build_of", lambda _: "feedfeedfeedfeed of today")
    with pytest.raises(sojourn.UserError, match="no worker of the cluster can take part") as told:
        sojourn.run_all(short(), out=tmp_path / "runs", cluster=there.address)
    assert "feedfeedfeedfeed" in told.value.problem
    assert "install the same sojourn" in told.value.hint
    assert not (tmp_path / "runs").exists()


def test_an_error_of_a_worker_is_the_same_error_here(
    there: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "key", lambda *_: "of something else")
    with pytest.raises(UnfinishedError) as told:
        sojourn.run_all(short(), seeds=2, cluster=there.address)
    assert len(told.value.failed) == 4
    assert "the worker would run something else" in told.value.problem
    assert told.value.hint.startswith("install the same wheel")


@pytest.mark.usefixtures("own_store")
def test_what_finished_is_kept_in_the_store_of_who_asked(there: Cluster) -> None:
    told: list[Progress] = []
    first = sojourn.run_all(short(), seeds=10, cluster=there.address)
    again = sojourn.run_all(short(), seeds=12, cluster=there.address, progress=told.append)
    assert (told[-1].finished, told[-1].taken) == (24, 20)
    assert sums(first)["codel"].items() <= sums(again)["codel"].items()
    # And threads take what workers made.
    sojourn.run_all(short(), seeds=12, progress=told.append)
    assert told[-1].taken == 24


def test_ctrl_c_keeps_what_is_finished_and_stops_the_workers(
    there: Cluster, tmp_path: Path
) -> None:
    def stop(p: Progress) -> None:
        if p.finished:
            raise KeyboardInterrupt

    # The second takes minutes.
    quick, slow = short().variants()[0], short(duration="10 min").variants()[1]
    with pytest.raises(Interrupted) as told:
        sojourn.run_all(
            [quick, slow], seeds=3, out=tmp_path / "runs", cluster=there.address, progress=stop
        )
    kept = {run.name: run.seeds for run in told.value.runs}
    assert kept["pfifo"]
    assert kept["codel"] == ()
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with client(there.address) as asking:
        until = time.monotonic() + WAIT_S
        while any(asking.run(busy).values()):
            assert time.monotonic() < until, "a worker goes on"
            time.sleep(0.05)


def busy(dask_worker: Any) -> bool:
    """Whether a worker has a thread that runs something."""
    return bool(dask_worker.active_threads)


def test_sojourn_run_takes_an_address(
    there: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.toml").write_text(SCENARIO)
    words = ["run", "short.toml", "--seeds", "3", "--format", "csv", "-q", "--cluster"]
    assert status([*words, there.address]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert status(words[:-1]) == 0
    assert capsys.readouterr().out == said.out


def test_a_worker_that_dies_loses_nothing_and_tables_are_those_of_a_run_alone(
    there: Cluster, tmp_path: Path
) -> None:
    # The last of the tests that need two.
    dying = there.processes[-1]
    killed_at: list[int] = []

    def kill(p: Progress) -> None:
        if not killed_at and p.finished >= SEEDS // 4:
            killed_at.append(p.finished)
            dying.send_signal(signal.SIGKILL)

    runs = sojourn.run_all(
        short(), seeds=SEEDS, out=tmp_path / "runs", cluster=there.address, progress=kill
    )
    assert killed_at[0] < SEEDS, "it was killed in the middle"
    assert dying.wait() == -signal.SIGKILL
    assert [len(run.seeds) for run in runs] == [SEEDS, SEEDS]
    alone = sojourn.run_all(short(), seeds=SEEDS)
    assert sums(runs) == sums(alone)
    for run, other in zip(runs, alone, strict=True):
        assert run.meta.fingerprint == other.meta.fingerprint
        assert run.table("queue", 1).equals(other.table("queue", 1))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--cluster", "tcp://127.0.0.1:1", "-j", "2"], "--jobs are threads of this machine"),
        (["--cluster", "ten"], "'ten' is no scheduler's address"),
        (["--cluster", "tcp://127.0.0.1:1"], "can't reach a scheduler at tcp://127.0.0.1:1"),
        (
            ["--cluster", "tcp://127.0.0.1:1", "--tls-cert", "a.pem"],
            "there is no certificate a.pem",
        ),
        (["--tls-cert", "a.pem"], "need --cluster"),
    ],
)
def test_what_is_asked_wrongly_is_told_and_nothing_is_begun(
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


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://10.0.0.1:8786", False),
        ("tcp://10.0.0.1:8786", True),
    ],
)
def test_a_cluster_that_others_reach_without_tls_is_warned_of(address: str, warned: bool) -> None:
    assert any("tls://" in said for said in cluster._warning(address)) is warned


# ---------------------------------------------------------------------------------- certificates


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate that it signed itself, in one file."""
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


def test_tls_takes_those_with_a_certificate_only(certificate: Path) -> None:
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
    with pytest.raises(sojourn.UserError, match="no certificates that go together"):
        sojourn.run_all(short(), cluster=other)


# -------------------------------------------------------------------------------- without a cluster


def test_what_runs_in_real_time_runs_here() -> None:
    class RealTime(Simulator):
        name = "netns"
        alone = True

    with pytest.raises(sojourn.UserError, match="netns runs in real time on this host"):
        sojourn.run_all(short(), engine=RealTime(), cluster="tcp://127.0.0.1:1")


def test_a_worker_makes_what_an_engine_makes() -> None:
    scenario = short().variants()[0]
    source = Source.of(engine.find("sim"), fresh=True)
    run = sojourn.run(scenario)
    about = metrics.about(run.meta, _core.CAUSES)
    name = key(source.engine, scenario.realise(1))
    asked = worker.Asked(scenario.to_toml(), 1, about, name)
    (ran, refused) = worker.work_off("sim", [asked, dataclasses.replace(asked, key="another")])
    assert isinstance(ran, worker.Ran)
    assert ran.packed.checksum == run.meta.checksums["1"]
    assert isinstance(refused, worker.Refused)
    assert "another build" in refused.raised().problem
