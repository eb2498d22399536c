"""What a second worker of a cluster adds: sweeps of short runs by one worker and by two, on loopback,
and a thousand runs of which a worker dies in the middle.

    python benches/cluster.py
    python benches/cluster.py --runs 200 --json

Each worker is a process of one thread, so two need two cores that nobody else uses. It prints the
wall times and how many times as quick two are (1.7 at least on an idle machine), and ends with 1 if
a seed is missing or differs from a run alone. Nothing is asserted of times.
"""

from __future__ import annotations

import argparse
import json
import os
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

SHORT = """
title = "Two downloads"
duration = "10 s"
[bottleneck]
rate = "10 Mbit/s"
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


def made(runs: int, at: str | None, progress: Callable[[Progress], None] | None = None) -> Run:
    """So many seeds, all of them made now."""
    return sojourn.run(sojourn.loads(SHORT), seeds=runs, cluster=at, fresh=True, progress=progress)


def timed(folder: Path, workers: int, runs: int) -> tuple[float, Run]:
    """How long a sweep takes so many workers, s."""
    with cluster(folder, workers) as there:
        made(2 * workers, there.address)
        began = time.monotonic()
        run = made(runs, there.address)
        return time.monotonic() - began, run


def died(folder: Path, runs: int) -> Run:
    """A sweep by three workers, one of which is killed in the middle."""
    with cluster(folder, 3) as there:

        def kill(p: Progress) -> None:
            if p.finished >= runs // 3:
                there.workers[0].kill()

        return made(runs, there.address, kill)


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--runs", type=int, default=1000, metavar="N")
    asked.add_argument("--json", action="store_true")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Of the store of who measures nothing is taken, and nothing put.
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        one_s, one = timed(folder, 1, given.runs)
        two_s, two = timed(folder, 2, given.runs)
        survived = died(folder, given.runs)
        alone = made(given.runs, None)
    same = all(run.meta.checksums == alone.meta.checksums for run in (one, two, survived))
    found = {
        "runs": given.runs,
        "one_worker_s": round(one_s, 2),
        "two_workers_s": round(two_s, 2),
        "ratio": round(one_s / two_s, 2),
        "finished_though_a_worker_died": len(survived.seeds),
        "tables_as_alone": same,
    }
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print("\n".join(f"{key}: {value}" for key, value in found.items()))
    return 0 if same and len(survived.seeds) == given.runs else 1


if __name__ == "__main__":
    sys.exit(main())
