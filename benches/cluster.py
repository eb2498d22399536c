"""What a second worker of a cluster adds: runs of two minutes by one worker and by two, on loopback;
and a thousand short runs of which a worker dies in the middle.

    python benches/cluster.py
    python benches/cluster.py --runs 50 --short 200 --json

Each worker is a process of one thread, so two need two cores that nobody else uses. It prints the
wall times, how many times as quick two are (1.7 is wanted, on an idle machine), and the CPU time
that a seed costs who asks and the workers: who asks can feed as many workers as their ratio. It ends
with 1 if a seed is missing or differs from a run alone. Nothing is asserted of times.
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
    """A scheduler, and workers of one thread."""

    address: str
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def cluster(folder: Path, count: int) -> Iterator[Cluster]:
    """So many workers, until the block ends."""
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


def made(
    what: sojourn.Scenario,
    runs: int,
    at: str | None,
    progress: Callable[[Progress], None] | None = None,
) -> Run:
    """So many seeds, all of them made now."""
    return sojourn.run(what, seeds=runs, cluster=at, fresh=True, progress=progress)


@dataclass(frozen=True)
class Cost:
    """What a sweep took, s."""

    wall: float
    asking_cpu: float
    workers_cpu: float


def timed(folder: Path, workers: int, runs: int) -> tuple[Cost, Run]:
    """A sweep of long runs by so many workers."""
    with cluster(folder, workers) as there:
        made(LONG, 2 * workers, there.address)
        began, own, theirs = time.monotonic(), own_cpu_s(), cpu_s(there.workers)
        run = made(LONG, runs, there.address)
        wall = time.monotonic() - began
        return Cost(wall, own_cpu_s() - own, cpu_s(there.workers) - theirs), run


def own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_s(processes: list[subprocess.Popen[bytes]]) -> float:
    """That processes which run have taken (proc(5))."""
    ticks = 0
    for process in processes:
        behind_the_name = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(behind_the_name[11]) + int(behind_the_name[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def died(folder: Path, runs: int) -> Run:
    """A sweep by three workers, one of which is killed in the middle."""
    with cluster(folder, 3) as there:

        def kill(p: Progress) -> None:
            if p.finished >= runs // 3:
                there.workers[0].kill()

        return made(SHORT, runs, there.address, kill)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--runs", type=int, default=200, metavar="N", help="long ones")
    asked.add_argument("--short", type=int, default=1000, metavar="N", help="short ones")
    asked.add_argument("--json", action="store_true")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Of the store of who measures nothing is taken, and nothing put.
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        by_one, one = timed(folder, 1, given.runs)
        by_two, two = timed(folder, 2, given.runs)
        survived = died(folder, given.short)
        pairs = [(one, LONG), (two, LONG), (survived, SHORT)]
        same = all(
            run.meta.checksums == made(what, len(run.seeds), None).meta.checksums
            for run, what in pairs
        )
    found = {
        "runs": given.runs,
        "one_worker_s": round(by_one.wall, 2),
        "two_workers_s": round(by_two.wall, 2),
        "ratio": round(by_one.wall / by_two.wall, 2),
        "asking_cpu_ms_a_seed": round(1e3 * by_two.asking_cpu / given.runs, 2),
        "workers_cpu_ms_a_seed": round(1e3 * by_two.workers_cpu / given.runs, 2),
        "short_runs": given.short,
        "finished_though_a_worker_died": len(survived.seeds),
        "tables_as_alone": same,
    }
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(f"{key}: {value}" for key, value in found.items()))
    return 0 if same and len(survived.seeds) == given.short else 1


if __name__ == "__main__":
    sys.exit(main())
