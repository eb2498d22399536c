"""Measures the time around the engine: sweeps of short runs, one short run in memory, the
command line, the page of big Runs.

    python benches/sweep.py                     all cases, the least of three repeats each
    python benches/sweep.py --only memory --repeats 5 --json
    python benches/sweep.py --record

Each repeat is a fresh process. It prints the least wall time, and that repeat's CPU time (user and
system, with children). Other work on the machine can only add to both. Nothing is asserted:
docs/performance.md shows the last numbers and their machine.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import bench  # noqa: E402
import page as pages  # noqa: E402

SEEDS = 500
ANSWERS = 40
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
congestion = "cubic"
start = "uniform 0 s .. 1 s"
"""


@dataclass(frozen=True)
class Cost:
    """The cost of one repeat."""

    wall_s: float
    cpu_s: float


@dataclass(frozen=True)
class Case:
    """A row of the table. `run` is called in its own process, with a folder to write to."""

    name: str
    title: str
    run: Callable[[Path], Cost]


def measured(work: Callable[[], object]) -> Cost:
    """Measures the work in this process and in the processes that it starts."""
    began, before = time.perf_counter(), _cpu_s()
    work()
    return Cost(time.perf_counter() - began, _cpu_s() - before)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def command(*words: str) -> Cost:
    """Measures a `sojourn` process from start to end."""
    argv = [sys.executable, "-m", "sojourn", *words]
    return measured(lambda: subprocess.run(argv, check=True, capture_output=True))


def help_(_: Path) -> Cost:
    return command("--help")


def demo(folder: Path) -> Cost:
    return command("run", "home-uplink", "--seeds", "5", "--fresh", "-o", str(folder / "run"))


def disk(folder: Path) -> Cost:
    import sojourn

    scenario = sojourn.loads(SHORT)
    sojourn.simulate(scenario, seeds=1)
    return measured(lambda: sojourn.run(scenario, seeds=SEEDS, out=folder / "run", fresh=True))


def memory(_: Path) -> Cost:
    import sojourn

    scenario = sojourn.loads(SHORT)
    sojourn.simulate(scenario, seeds=1)
    return measured(lambda: sojourn.simulate(scenario, seeds=SEEDS))


def answer(_: Path) -> Cost:
    """The median of many: changes a number, simulates, and reads the ping's p95."""
    import sojourn

    line = sojourn.load("home-uplink").with_({"duration": "10 s", "warmup": "2 s"})

    def once(kbps: int) -> float:
        changed = line.with_({"bottleneck.up.rate": f"{kbps} kbit/s"})
        numbers = sojourn.simulate(changed, seeds=1).summary.runs[0]
        return numbers["probes"][0]["rtt_ms"]["p95"]

    once(9_000)
    costs = [measured(lambda kbps=kbps: once(kbps)) for kbps in range(9_001, 9_001 + ANSWERS)]
    return Cost(median(each.wall_s for each in costs), median(each.cpu_s for each in costs))


def page(folder: Path) -> Cost:
    """Renders the page of two Runs of two seeds, 3 million rows."""
    import sojourn
    from sojourn import report

    long = sojourn.load("home-uplink").with_(
        {"duration": "1200 s", "record.queue": "10 ms", "record.flow": "10 ms"}
    )
    runs = sojourn.run_all(sojourn.variants(long, ["pfifo", "fq_codel"]), seeds=2, out=folder)
    return measured(lambda: report.write(runs, folder / "report.html"))


CASES = [
    Case("help", "sojourn --help", help_),
    Case("demo", "sojourn run home-uplink, 5 seeds of 60 s", demo),
    Case("disk", f"{SEEDS} seeds of 10 s into a Run folder", disk),
    Case("memory", f"{SEEDS} seeds of 10 s in memory", memory),
    Case("answer", "one number of 10 s of a home line changed, warm", answer),
    Case("page", "the page of 3 million rows", page),
]


def child(name: str) -> None:
    """Runs one repeat of one case and prints it as JSON."""
    [case] = [case for case in CASES if case.name == name]
    with tempfile.TemporaryDirectory() as folder:
        cost = case.run(Path(folder))
    print(json.dumps({"wall_s": cost.wall_s, "cpu_s": cost.cpu_s}))


def least(case: Case, repeats: int) -> Cost:
    """Returns the fastest repeat."""
    costs = []
    for _ in range(repeats):
        argv = [sys.executable, __file__, "--child", case.name]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"error: {case.name} failed\n{done.stderr[-2000:]}")
        costs.append(Cost(**json.loads(done.stdout.splitlines()[-1])))
    return min(costs, key=lambda cost: cost.wall_s)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="How long it takes around the engine.")
    parser.add_argument("--only", metavar="NAME", help="run the cases whose name contains NAME")
    parser.add_argument("--repeats", type=int, default=3, help="repeats per case (default 3)")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="a JSON object on stdout")
    shown.add_argument("--markdown", action="store_true", help="the page's table, on stdout")
    shown.add_argument(
        "--record", action="store_true", help="record the table for docs/performance.md"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return 0
    cases = [case for case in CASES if options.only is None or options.only in case.name]
    if not cases or options.repeats < 1:
        names = ", ".join(case.name for case in CASES)
        print(
            f"error: there is no such case, or --repeats is below 1\nhint: one of {names}",
            file=sys.stderr,
        )
        return 2
    if bench.build() == "checked":
        print(bench.CHECKED, file=sys.stderr)
    load = bench.load()
    least_costs = {case.name: least(case, options.repeats) for case in cases}
    if options.json:
        print(json.dumps({name: vars(cost) for name, cost in least_costs.items()}, indent=1))
        return 0
    rows = [(case.title, least_costs[case.name]) for case in cases]
    if not (options.markdown or options.record):
        for title, cost in rows:
            print(f"{title:<50} {cost.wall_s:8.3f} s wall {cost.cpu_s:8.3f} s CPU")
        return 0
    table = [["case", "wall, s", "CPU, s"]]
    table += [[title, f"{cost.wall_s:.3f}", f"{cost.cpu_s:.3f}"] for title, cost in rows]
    how = f"the least of {options.repeats} runs"
    of = bench.tree_and_machine()
    about = bench.about_machine(of, load, how)
    if options.markdown:
        places = {"sweep: machine": about, "sweep: table": pages.as_markdown(table)}
        print(pages.between_comments(places))
        return 0
    pages.record({"sweep: machine": about, "sweep: table": table}, of["commit"], of["date"])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
