"""Measures the gain from a second worker in a cluster, on loopback, with runs of two minutes.

It also kills a worker in the middle of a thousand short runs.

    python benches/cluster.py
    python benches/cluster.py --runs 50 --short 200 --json

Each worker is a process of one thread, so two workers need two idle cores. It prints the wall
times, and the speed-up by the second worker (1.7 is wanted, on an idle machine). It also prints the
CPU time per seed of the client and of the workers. The workers' divided by the client's is the
number of workers that one client can keep busy. The exit status is 1 if a seed is missing or
differs from a run without a cluster. No time is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sojourn
from sojourn.engine import Progress
from sojourn.records import Run

SCENARIO = """
title = "Two downloads"
duration = "10 s"
[bottleneck]
rate = "20 Mbit/s"
delay = "10 ms"
qdisc = "fq_codel"
[[flow]]
kind = "bulk"
count = 2
start = "uniform 0 s .. 1 s"
"""


@dataclass
class Cluster:
    """A scheduler, and workers of one thread each."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(folder: Path, count: int) -> Iterator[Cluster]:
    """Starts `count` workers, and ends them after the block."""
    from distributed import Client

    file = folder / f"scheduler-{count}.json"

    def begin(verb: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{verb}", *words]
        command += ["--scheduler-file", str(file), "--host", "127.0.0.1"]
        command += ["--dashboard-address", "127.0.0.1:0"]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, cwd=folder)

    own = ("--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
    scheduler = begin("scheduler", "--port", "0")
    workers = [begin("worker", *own) for _ in range(count)]
    try:
        while not file.is_file():
            time.sleep(0.05)
        with Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(count, timeout=60)
        yield Cluster(str(file), workers)
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


SHORT = sojourn.loads(SCENARIO)
LONG = SHORT.with_(duration="120 s")


def simulated(
    scenario: sojourn.Scenario,
    runs: int,
    at: str | None,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """Simulates `runs` seeds, none from the cache."""
    return sojourn.run(scenario, seeds=runs, cluster=at, fresh=True, progress=progress)


@dataclass(frozen=True)
class Cost:
    """The time that a sweep took, in seconds."""

    wall: float
    asking_cpu: float
    workers_cpu: float


def timed(folder: Path, workers: int, runs: int) -> tuple[Cost, Run]:
    """Measures a sweep of long runs by `workers` workers."""
    with cluster(folder, workers) as there:
        simulated(LONG, 2 * workers, there.address)
        began, own, theirs = time.monotonic(), own_cpu_s(), cpu_s(there.workers)
        run = simulated(LONG, runs, there.address)
        wall = time.monotonic() - began
        return Cost(wall, own_cpu_s() - own, cpu_s(there.workers) - theirs), run


def own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_s(processes: list[subprocess.Popen[bytes]]) -> float:
    """Returns the CPU time of running processes (proc(5))."""
    ticks = 0
    for process in processes:
        behind_the_name = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(behind_the_name[11]) + int(behind_the_name[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def died(folder: Path, runs: int) -> Run:
    """Runs a sweep with three workers and kills one in the middle."""
    with cluster(folder, 3) as there:

        def kill(p: Progress) -> None:
            if p.finished >= runs // 3:
                there.workers[0].kill()

        return simulated(SHORT, runs, there.address, kill)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=200, metavar="N", help="number of long runs")
    parser.add_argument("--short", type=int, default=1000, metavar="N", help="number of short runs")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The user's store of seeds is neither read nor written.
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        by_one, single = timed(folder, 1, options.runs)
        by_two, two = timed(folder, 2, options.runs)
        survived = died(folder, options.short)
        pairs = [(single, LONG), (two, LONG), (survived, SHORT)]
        same = all(
            run.meta.checksums == simulated(scenario, len(run.seeds), None).meta.checksums
            for run, scenario in pairs
        )
    results = {
        "runs": options.runs,
        "one_worker_s": round(by_one.wall, 2),
        "two_workers_s": round(by_two.wall, 2),
        "ratio": round(by_one.wall / by_two.wall, 2),
        "asking_cpu_ms_a_seed": round(1e3 * by_two.asking_cpu / options.runs, 2),
        "workers_cpu_ms_a_seed": round(1e3 * by_two.workers_cpu / options.runs, 2),
        "short_runs": options.short,
        "finished_though_a_worker_died": len(survived.seeds),
        "tables_as_alone": same,
    }
    if options.json:
        print(json.dumps(results, indent=2))
    else:
        print("\n".join(f"{key}: {value}" for key, value in results.items()))
    return 0 if same and len(survived.seeds) == options.short else 1


if __name__ == "__main__":
    sys.exit(main())
