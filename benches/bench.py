"""Measures speed: delivered packets per CPU second, instructions per packet and peak memory.

It compares them with ns-2 and ns-3 on the same dumbbells.

    make bench                         the dumbbells, 5 interleaved repeats, with the peers
    make bench-quick                   shorter and fewer, with instructions, without peers: a minute
    python benches/bench.py --scale    many flows, fast links, many links, an hour
    python benches/bench.py --only reno-codel --repeats 1 --json

The measurements, and what makes them fair:

- sojourn runs through its Python API in a fresh process per run, with all its default statistics.
  Packets and CPU time are those of its `engine` table: data packets delivered, CPU time of the
  simulation from start to end.
- ns-2 and ns-3 run tuned (see peers/dumbbell.tcl and dumbbell.cc) and record nothing. Their packets
  and CPU time are those between warm-up and end, so set-up and slow start are left out. Their
  packets are those that the bottleneck forwarded.
- ns-2 has no CoDel and no CUBIC of its own. Its column is then NewReno over a drop-tail queue of
  the same bottleneck, the least work that ns-2 can do. The table names what each peer ran.
- The peers' packets cross their host's access link besides the bottleneck, as is usual for a
  dumbbell there. Ours cross the bottleneck and plain delays. The cases "access links" have the
  peers' hops.
- CPU time is user + system of the process. Repeats are interleaved (sojourn, ns-2, ns-3, sojourn,
  ...), so a busy period of the machine affects all of them. The table shows medians. Compare
  ratios, not seconds.
- callgrind counts the instructions (callgrind.py), of the same scenario in two shorter lengths.
- Peak memory is the peak of the process minus its memory before the run (interpreter, imports and
  scenario, or the peer's program and script). The table shows that base beside it.

Each run adds a line to the history, and the changes since the last run are printed
(bench_history.py). Nothing is asserted. docs/performance.md shows the last numbers and their
machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import bench_history as history  # noqa: E402
import bench_scale  # noqa: E402
import callgrind  # noqa: E402
import page  # noqa: E402
import peer  # noqa: E402
from callgrind import Lengths  # noqa: E402

ROOT = HERE.parent
CASES = HERE / "cases" / "speed"
SOURCES = ["sojourn/crates", "sojourn/python", "benches", "Cargo.toml", "Cargo.lock"]


CHECKED = (
    "note: the engine is the checked build of make dev, some 1.7 times slower; "
    "make setup builds the release"
)


@dataclass(frozen=True)
class Case:
    """A row of the table: our scenario, and each peer's nearest equivalent."""

    name: str
    title: str
    scenario: Path | str
    """The path of a file, or the text of a generated scenario."""
    lengths: Lengths | None
    """The lengths for counting instructions; None where counting would take too long."""
    duration_s: int | None = None
    """Replaces the scenario's duration."""
    ns2: peer.Words | None = None
    ns3: peer.Words | None = None
    peers_run: str = ""
    """What the peers run where it differs from our scenario."""


TEN: peer.Words = {"flows": 10, "rate": "100e6"}
HUNDRED: peer.Words = {"flows": 100, "rate": "1e9", "access": "10e9"}
THOUSAND: peer.Words = {"flows": 1000, "rate": "1e9", "access": "10e9"}

# Packets in one bandwidth-delay product at 50 ms: the drop-tail limit where ns-2 has no CoDel.
LIMIT_100M = 417
LIMIT_1G = 4167
TEN_SACK: peer.Words = {
    **TEN,
    "tcp": "Sack1",
    "delack": 1,
    "queue": "DropTail",
    "limit": LIMIT_100M,
    "duration": 60,
    "warmup": 10,
}

DUMBBELLS = [
    Case(
        "reno-codel-10",
        "10 Reno flows over CoDel, 100 Mbit/s",
        CASES / "reno-codel-10.toml",
        Lengths(2, 5, 15),
        ns2=TEN_SACK,
        ns3={**TEN, "tcp": "LinuxReno", "queue": "CoDel", "limit": 0, "duration": 30, "warmup": 10},
        peers_run="ns-2: Sack1 over DropTail of 1 BDP; ns-3: LinuxReno over CoDel",
    ),
    Case(
        "cubic-fq_codel-10",
        "10 CUBIC flows over fq_codel, 100 Mbit/s",
        CASES / "cubic-fq_codel-10.toml",
        Lengths(2, 5, 15),
        ns2=TEN_SACK,
        ns3={**TEN, "tcp": "Cubic", "queue": "FqCoDel", "limit": 0, "duration": 30, "warmup": 10},
        peers_run="ns-2: Sack1 over DropTail of 1 BDP; ns-3: Cubic over FqCoDel",
    ),
    Case(
        "reno-pfifo-1000",
        "1000 Reno flows, RTT 40..440 ms, pfifo 500, 200 Mbit/s",
        CASES / "reno-pfifo-1000.toml",
        Lengths(4, 8, 14),
        ns2={
            "flows": 1000,
            "rate": "200e6",
            "rtt_min": 40,
            "rtt_max": 440,
            "tcp": "Newreno",
            "delack": 1,
            "queue": "DropTail",
            "limit": 500,
            "duration": 60,
            "warmup": 20,
            "start_spread": 5,
        },
        ns3={
            "flows": 1000,
            "rate": "200e6",
            "rttMin": 40,
            "rttMax": 440,
            "tcp": "NewReno",
            "queue": "dev",
            "limit": 500,
            "duration": 30,
            "warmup": 20,
            "startSpread": 5,
            "buffer": 524288,
        },
        peers_run="the same: Newreno with delayed ACKs over DropTail 500",
    ),
    Case(
        "reno-codel-100",
        "100 Reno flows over CoDel, 1 Gbit/s",
        CASES / "reno-codel-100.toml",
        Lengths(1, 2, 4),
        ns2={
            **HUNDRED,
            "tcp": "Sack1",
            "delack": 1,
            "queue": "DropTail",
            "limit": LIMIT_1G,
            "duration": 30,
            "warmup": 10,
        },
        ns3={
            **HUNDRED,
            "tcp": "LinuxReno",
            "queue": "CoDel",
            "limit": 0,
            "duration": 8,
            "warmup": 3,
        },
        peers_run="ns-2: Sack1 over DropTail of 1 BDP; ns-3: LinuxReno over CoDel",
    ),
    Case(
        "reno-codel-1000",
        "1000 Reno flows over CoDel, 1 Gbit/s",
        CASES / "reno-codel-1000.toml",
        Lengths(1, 2, 4),
        ns2={
            **THOUSAND,
            "tcp": "Sack1",
            "delack": 1,
            "queue": "DropTail",
            "limit": LIMIT_1G,
            "duration": 30,
            "warmup": 10,
        },
        ns3={
            **THOUSAND,
            "tcp": "LinuxReno",
            "queue": "CoDel",
            "limit": 0,
            "duration": 6,
            "warmup": 3,
            "buffer": 524288,
        },
        peers_run="ns-2: Sack1 over DropTail of 1 BDP; ns-3: LinuxReno over CoDel",
    ),
]


def _behind_access_links(case: Case) -> Case:
    """Adds an access link of 1 Gbit/s for each host: two more hops, which the peers always have."""
    name = f"{case.name}-access"
    return replace(
        case, name=name, title=f"{case.title}, access links", scenario=CASES / f"{name}.toml"
    )


ALL = [
    *DUMBBELLS,
    *(
        _behind_access_links(case)
        for case in DUMBBELLS
        if case.name in ("reno-codel-10", "reno-pfifo-1000")
    ),
    Case(
        "home-uplink",
        "The demo: 60 s of a home uplink at 10 Mbit/s",
        ROOT / "scenarios" / "home-uplink.toml",
        Lengths(5, 30, 60),
    ),
]

QUICK_S = {"reno-codel-10": 60, "cubic-fq_codel-10": 60, "reno-codel-1000": 15}
"""The cases of --quick, and the simulated length of each."""


def quick() -> list[Case]:
    """Returns fewer and shorter cases, without peers."""
    return [
        replace(case, duration_s=QUICK_S[case.name], ns2=None, ns3=None, peers_run="")
        for case in ALL
        if case.name in QUICK_S
    ]


def scale(only: str | None) -> list[Case]:
    """Returns the cases of --scale. A case that finds a limit is among them only if `only` names
    it."""
    import sojourn

    hour = sojourn.load(ROOT / "scenarios" / "home-uplink.toml").with_({"duration": "1 h"})
    return [
        Case(one.name, one.title, one.text, one.lengths)
        for one in bench_scale.all_cases(hour.to_toml())
        if one.name == only or not one.by_name_only
    ]


# ------------------------------------------------------------------------------- a run of sojourn


class RefusedError(Exception):
    """The program refused the scenario. The text is its message."""


def child(path: str) -> None:
    """Runs one seed of a scenario (`-`: stdin) in this process and prints its cost."""
    import sojourn

    scenario = sojourn.loads(sys.stdin.read()) if path == "-" else sojourn.load(path)
    seed = scenario.seeds[0]
    before, began = _held_mb(), time.process_time()
    run = sojourn.simulate(scenario, seeds=[seed])
    took, after = time.process_time() - began, _peak_mb()
    engine = run.arrays("engine", seed)
    print(
        json.dumps(
            {
                "packets": int(engine["packets"][0]),
                "events": int(engine["events"][0]),
                "cpu_s": run.meta.cpu_s[str(seed)],
                "around_s": took - run.meta.cpu_s[str(seed)],
                "peak_rss_mb": after,
                "rss_before_mb": before,
            }
        )
    )


def _held_mb() -> float:
    """Returns the resident memory now. From here on Linux records the peak (VmHWM) anew."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
        return _status_mb("VmRSS")
    except OSError:
        return _peak_mb()


def _peak_mb() -> float:
    try:
        # Not getrusage's peak: a child process inherits its parent's.
        return _status_mb("VmHWM")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak * (1 if sys.platform == "darwin" else 1024) * 1e-6


def _status_mb(name: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024e-6
    raise OSError(name)


def run_sojourn(text: str) -> dict[str, float]:
    """Runs once in a fresh process, so caches are cold and peak memory is that of this run."""
    command = [sys.executable, str(HERE / "bench.py"), "--child", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        raise RefusedError(
            f"killed by signal {-done.returncode}; the system does that if memory runs out"
        )
    if done.returncode != 0:
        raise RefusedError(_last_words(done.stderr))
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return {**result, "rate": result["packets"] / max(result["cpu_s"], 1e-9)}


def _last_words(stderr: str) -> str:
    return (stderr.strip().splitlines() or ["it failed without a word"])[-1]


def scenario_of(case: Case) -> Any:
    """Returns the scenario of a case, with the case's duration."""
    import sojourn

    try:
        if isinstance(case.scenario, str):
            scenario = sojourn.loads(case.scenario, name=case.name)
        else:
            scenario = sojourn.load(case.scenario)
        if case.duration_s is not None:
            scenario = scenario.with_({"duration": f"{case.duration_s} s"})
    except sojourn.ScenarioError as problem:
        raise RefusedError(str(problem)) from None
    return scenario


# -------------------------------------------------------------------------------------- measuring


@dataclass(frozen=True)
class Tools:
    """The installed programs to measure with; None: not installed."""

    ns2: peer.Peer | None = None
    ns3: peer.Peer | None = None
    speed: callgrind.Speed | None = None
    """The program that callgrind runs."""

    @property
    def versions(self) -> dict[str, str]:
        return {one.name: one.version for one in (self.ns2, self.ns3) if one}


def measure(case: Case, repeats: int, tools: Tools) -> dict[str, Any]:
    """Measures a case with interleaved repeats on all tools, and returns its part of the entry.

    If the program refuses the scenario, the entry contains its message.
    """
    row: dict[str, Any] = {"case": case.name, "title": case.title, "peers_run": case.peers_run}
    try:
        scenario = scenario_of(case)
        text = scenario.to_toml()
        row["duration"] = tomllib.loads(text)["duration"]
        samples = _samples(case, text, repeats, tools)
    except RefusedError as problem:
        print(f"{case.name}: {problem}", file=sys.stderr)
        return {**row, "refused": str(problem)}
    row["rates"] = {name: [run["rate"] for run in runs] for name, runs in samples.items()}
    row["medians"] = {name: _medians(runs) for name, runs in samples.items()}
    if tools.speed and case.lengths:
        print(f"{case.name}: instructions", file=sys.stderr)
        row["instructions"] = instructions(tools.speed, scenario, case.lengths)
    return row


def _samples(
    case: Case, text: str, repeats: int, tools: Tools
) -> dict[str, list[dict[str, float]]]:
    # ns-2 counts departures only with a queue monitor, which costs time; the run is deterministic,
    # so count once.
    ns2, ns3, forwarded = tools.ns2, tools.ns3, 0.0
    if ns2 and case.ns2:
        forwarded = ns2.run({**case.ns2, "monitor": 1})["forwarded_packets"]
    samples: dict[str, list[dict[str, float]]] = {"sojourn": []}
    for repeat in range(repeats):
        print(f"{case.name}: repeat {repeat + 1} of {repeats}", file=sys.stderr)
        samples["sojourn"].append(run_sojourn(text))
        if ns2 and case.ns2:
            samples.setdefault("ns-2", []).append(_peer_sample(ns2.run(case.ns2), forwarded))
        if ns3 and case.ns3:
            result = ns3.run(case.ns3)
            sample = _peer_sample(result, result["forwarded_packets"])
            samples.setdefault("ns-3", []).append(sample)
    return samples


def _peer_sample(result: dict[str, Any], forwarded: float) -> dict[str, float]:
    cpu = max(result["cpu_window_s"], 1e-9)
    return {
        "packets": forwarded,
        "cpu_s": cpu,
        "rate": forwarded / cpu,
        "peak_rss_mb": result["peak_rss_mb"],
        "rss_before_mb": result["rss_before_mb"],
    }


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: median(run[key] for run in runs) for key in runs[0]}


def instructions(speed: callgrind.Speed, scenario: Any, lengths: Lengths) -> dict[str, Any]:
    """Returns instructions per packet by part of the engine, and the two lengths counted."""
    # The scenario's own duration decides what is recorded and how often. So the duration stays, and
    # `speed` ends the run earlier.
    warm = scenario.with_({"warmup": f"{lengths.warmup_s} s"}).to_toml()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.toml"
        file.write_text(warm, encoding="utf-8")
        return {"lengths": vars(lengths), "parts": callgrind.per_packet(speed, file, lengths)}


# ---------------------------------------------------------------------------- the history's entry


def entry(form: str, cases: list[Case], repeats: int, tools: Tools) -> history.Entry:
    """Runs the benchmark and returns its entry for the history."""
    load_before = load()
    return {
        "form": form,
        **tree_and_machine(),
        "load": load_before,
        "versions": tools.versions,
        "cases": [measure(case, repeats, tools) for case in cases],
    }


def tree_and_machine() -> dict[str, Any]:
    """Returns the commit, the date and the machine."""
    return {
        "commit": _said("git", "rev-parse", "HEAD"),
        # Changes to generated pages don't change what is measured.
        "dirty": bool(_said("git", "status", "--porcelain", "--", *SOURCES)),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "build": build(),
        "rust": _said("rustc", "--version"),
        "python": platform.python_version(),
    }


def load() -> float:
    """Returns the load average over the last minute."""
    return os.getloadavg()[0]


def _said(*command: str) -> str | None:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def build() -> str:
    """Returns the build of the engine: `checked` (`make dev`: overflow checks and assertions),
    `make guided`'s, or `release` (`make setup`)."""
    marks = {"checked": ".dev", "guided": ".guided"}
    builds = (name for name, mark in marks.items() if (Path(sys.prefix) / mark).exists())
    return next(builds, "release")


def machine() -> dict[str, Any]:
    """Returns the properties of the processor that the system reports."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.system()}


# ------------------------------------------------------------------------------------- the tables


def about(measured: history.Entry) -> str:
    """Returns a paragraph about the machine and the programs that ran."""
    repeats = max((len(case["rates"]["sojourn"]) for case in _ran(measured)), default=0)
    return about_machine(measured, measured["load"], f"medians of {repeats} runs, interleaved")


def about_machine(measured: dict[str, Any], load_before: float, how: str) -> str:
    """Returns a paragraph about the machine, the build and the commit."""
    computer = measured["machine"]
    changed = " with changes" if measured["dirty"] else ""
    rust = " ".join((measured["rust"] or "rustc unknown").split()[:2])
    return "\n".join(
        (
            f"{computer['cpu']}, {computer['cores']} CPUs, {computer['system']}; {rust}, "
            f"Python {measured['python']}.",
            f"Commit {(measured['commit'] or 'unknown')[:10]}{changed}, {measured['date'][:10]}, "
            f"{measured['build']} build; {how}.",
            f"Load of the machine before: {load_before:.1f}.",
        )
    )


def _ran(measured: history.Entry) -> list[dict[str, Any]]:
    return [case for case in measured["cases"] if "rates" in case]


def speed_table(measured: history.Entry) -> page.Table:
    """Returns packets per CPU second, with the numbers of the peers."""
    versions = measured["versions"]
    head = ["case", "packets / CPU s", "least..greatest"]
    head += [f"{version} tuned" for version in versions.values()]
    head += [f"sojourn : {name}" for name in versions]
    rows = [head]
    for case in _ran(measured):
        ours, medians = case["rates"]["sojourn"], case["medians"]
        rows.append(
            [
                case["title"],
                _rate(median(ours)),
                f"{_rate(min(ours))}..{_rate(max(ours))}",
                *(_rate(medians[name]["rate"]) if name in medians else "-" for name in versions),
                *(_ratio(case["rates"], name) for name in versions),
            ]
        )
    return rows


def memory_table(measured: history.Entry) -> page.Table:
    """Returns the table of peak memory."""
    names = ["sojourn", *measured["versions"]]
    rows = [["case", *names]]
    for case in _ran(measured):
        of = case["medians"]
        rows.append([case["title"], *(_memory(of[name]) if name in of else "-" for name in names)])
    return rows


def instructions_tables(measured: history.Entry) -> list[page.Table]:
    """Returns instructions per packet of each counted case, and by part of the engine for the
    first. instructions.py fills in the page's own tables."""
    counted = [case for case in measured["cases"] if case.get("instructions")]
    if not counted:
        return []
    [first, *_] = counted
    parts = sorted(first["instructions"]["parts"].items(), key=lambda part: -part[1])
    head = ["part", f"instructions a packet, {first['title']}"]
    return [
        [["case", "instructions a packet"], *([one["title"], _per_packet(one)] for one in counted)],
        [head, *([name, f"{value:.0f}"] for name, value in parts)],
    ]


def scale_table(measured: history.Entry) -> page.Table:
    """Returns the cases of --scale: no peers, but the work per packet."""
    head = ["case", "simulated", "packets", "packets / CPU s", "least..greatest"]
    head += ["events a packet", "instructions a packet", "CPU s", "around it", "memory, MB"]
    rows = [head]
    for case in measured["cases"]:
        if "refused" in case:
            rows.append([case["title"], "refused, see below", *["-"] * (len(head) - 2)])
            continue
        ours, run = case["rates"]["sojourn"], case["medians"]["sojourn"]
        rows.append(
            [
                case["title"],
                case["duration"],
                _count(run["packets"]),
                _rate(median(ours)),
                f"{_rate(min(ours))}..{_rate(max(ours))}",
                f"{run['events'] / run['packets']:.1f}" if run["packets"] else "-",
                _per_packet(case),
                f"{run['cpu_s']:.2f}",
                f"{run['around_s']:.2f}",
                _memory(run),
            ]
        )
    return rows


def refusals(measured: history.Entry) -> str:
    """Returns the limits that were reached, in the program's words."""
    refused = [case for case in measured["cases"] if "refused" in case]
    return "\n\n".join(f"{case['title']}: {case['refused']}" for case in refused)


def peers_run(measured: history.Entry) -> str:
    ran = [case for case in _ran(measured) if len(case["rates"]) > 1 and case["peers_run"]]
    return "\n".join(f"- {case['title']}: {case['peers_run']}" for case in ran)


Show = Callable[[page.Table], str | page.Table]


def parts_of_the_page(measured: history.Entry, show: Show) -> dict[str, str | page.Table]:
    """Maps the names of the places in docs/performance.md to the text that this run fills in."""
    form = measured["form"]
    rows = scale_table(measured) if form == "scale" else speed_table(measured)
    texts: dict[str, str | page.Table] = {"machine": about(measured), "table": show(rows)}
    if form == "speed":
        texts["memory"] = show(memory_table(measured))
    if words := refusals(measured):
        texts["refused"] = words
    return {f"bench {form}: {name}": text for name, text in texts.items()}


def _rate(packets_per_second: float) -> str:
    if packets_per_second >= 1e6:
        return f"{packets_per_second * 1e-6:.2f} M"
    return f"{packets_per_second * 1e-3:.0f} k"


def _count(packets: float) -> str:
    return f"{packets * 1e-6:.2f} M" if packets >= 1e6 else f"{packets * 1e-3:.0f} k"


def _ratio(rates: dict[str, list[float]], name: str) -> str:
    if name not in rates:
        return "-"
    ratio = median(ours / its for ours, its in zip(rates["sojourn"], rates[name], strict=True))
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def _per_packet(case: dict[str, Any]) -> str:
    counted = case.get("instructions")
    return f"{sum(counted['parts'].values()):.0f}" if counted else "-"


def _memory(sample: dict[str, float]) -> str:
    return f"{sample['peak_rss_mb'] - sample['rss_before_mb']:.1f} (+{sample['rss_before_mb']:.0f})"


# ------------------------------------------------------------------------------- the command line


def chosen(available: list[Case], only: str | None) -> list[Case]:
    """Returns the case with this name, or else all cases whose name contains it."""
    exact = [case for case in available if case.name == only]
    return exact or [case for case in available if only is None or only in case.name]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Speed and memory beside ns-2 and ns-3.")
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--quick",
        action="store_true",
        help="fewer and shorter cases, no peers, with instructions if valgrind is there: a minute",
    )
    form.add_argument(
        "--scale", action="store_true", help="many flows, fast links, many links, an hour"
    )
    parser.add_argument(
        "--only", metavar="NAME", help="run the case NAME, or all cases whose name contains NAME"
    )
    parser.add_argument("--repeats", type=int, help="repeats per case (default 5, with --scale 3)")
    parser.add_argument("--no-peers", action="store_true", help="measure sojourn only")
    parser.add_argument(
        "--instructions", action="store_true", help="also count instructions per packet (valgrind)"
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="the run as JSON, on stdout")
    shown.add_argument("--markdown", action="store_true", help="the page's tables, on stdout")
    shown.add_argument(
        "--record", action="store_true", help="record the tables for docs/performance.md"
    )
    parser.add_argument(
        "--last", action="store_true", help="show the last run of the history; measure nothing"
    )
    parser.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        default=history.FILE,
        help="the file that gets one line more (default build/bench/history.jsonl)",
    )
    parser.add_argument("--child", metavar="FILE", help=argparse.SUPPRESS)
    return parser


def main() -> int:
    """Runs the command line."""
    options = _parser().parse_args()
    if options.child:
        child(options.child)
        return 0
    form = "quick" if options.quick else "scale" if options.scale else "speed"
    before = history.read(options.history)
    if options.last:
        of_form = [old for old in before if old["form"] == form]
        if not of_form:
            return _wrong(f"{options.history} has no run of this form", "measure without --last")
        return show(of_form[-1], [], options)
    available = scale(options.only) if options.scale else quick() if options.quick else ALL
    cases = chosen(available, options.only)
    if not cases:
        names = ", ".join(case.name for case in available)
        return _wrong(f"no case is called `{options.only}`", f"give one of {names}")
    repeats = (3 if options.scale else 5) if options.repeats is None else options.repeats
    if repeats < 1:
        return _wrong("--repeats must be at least 1", "at least 5 are needed to show a change")
    if build() == "checked":
        print(CHECKED, file=sys.stderr)
    peers = form == "speed" and not options.no_peers
    try:
        tools = Tools(
            ns2=peer.find_ns2() if peers else None,
            ns3=peer.find_ns3() if peers else None,
            speed=_counted(options),
        )
        measured = entry(form, cases, repeats, tools)
    except peer.PeerError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    history.append(measured, options.history)
    return show(measured, history.changes(measured, before), options)


def _counted(options: argparse.Namespace) -> callgrind.Speed | None:
    """Returns the program to count instructions of; None if there is none, with a note why."""
    if not (options.instructions or options.quick):
        return None
    print("cargo build --release --example speed (minutes, the first time)", file=sys.stderr)
    try:
        return callgrind.program()
    except callgrind.NoToolError as missing:
        print(f"{missing}\ngoing on without instructions", file=sys.stderr)
        return None


def show(measured: history.Entry, changes: Iterable[str], options: argparse.Namespace) -> int:
    """Prints the entry in the requested form. If stdout has data, changes are printed on stderr."""
    as_text = not (options.json or options.markdown or options.record)
    if options.json:
        print(json.dumps(measured, indent=1))
    elif options.record:
        page.record(
            parts_of_the_page(measured, lambda table: table), measured["commit"], measured["date"]
        )
    elif options.markdown:
        print(page.between_comments(parts_of_the_page(measured, page.as_markdown)))
    else:
        print("\n\n".join(map(str, parts_of_the_page(measured, page.as_text).values())))
        if measured["form"] != "scale":
            print(
                *(f"\n{page.as_text(table)}" for table in instructions_tables(measured)), sep="\n"
            )
        if ran := peers_run(measured):
            print(f"\nThe peers ran:\n{ran}")
    change_lines = list(changes)
    if change_lines or not options.last:
        lines = "\n".join(f"  {line}" for line in change_lines or ["nothing beyond noise"])
        out = sys.stdout if as_text else sys.stderr
        print(f"\nSince the last run of this machine ({options.history}):\n{lines}", file=out)
    return 0


def _wrong(problem: str, hint: str) -> int:
    print(f"error: {problem}\nhint: {hint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
