"""How fast: delivered packets per CPU second and peak memory, beside ns-2 and ns-3 on the same
dumbbell.

    make bench                 all cases, 5 interleaved repeats, a table on stdout
    python benches/bench.py --only reno-codel --repeats 1 --json

What is measured, and what makes it fair:

- sojourn runs through its Python face in a fresh process per run, with every statistic it keeps by
  default. Packets and CPU time are those of its `engine` table: data packets delivered, CPU of the
  simulation. Nothing is left out.
- ns-2 and ns-3 run tuned (see peers/dumbbell.tcl and dumbbell.cc) and record nothing. Packets and
  CPU time are those between warm-up and end, so their set-up and slow start are left out. Their
  packets are those the bottleneck forwarded.
- ns-2 has no CoDel and no CUBIC of its own; its column is then NewReno over a drop-tail queue of
  the same bottleneck, the least work it can do there. The table names what each peer ran.
- The peers' packets cross an access link of their host besides the bottleneck, which is how one
  writes a dumbbell there. Ours have the bottleneck and plain delays; the cases "access links" have
  the peers' hops.
- CPU time is user + system of the process. Repeats are interleaved (sojourn, ns-2, ns-3, sojourn,
  ...), so a busy spell of the machine falls on all; the table holds medians. Compare ratios, not
  seconds.
- Peak memory is that of the process less what it held before the run (interpreter and imports, or
  the peer's program and script), which is stated beside it.

Nothing is asserted: this prints numbers. docs/performance.md holds the last ones with their
machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import peer  # noqa: E402

ROOT = HERE.parent
CASES = HERE / "cases" / "speed"

PROFILE_HINT = (
    "profile: perf record -g --call-graph dwarf -- .venv/bin/python benches/bench.py --child benches/cases/speed/reno-codel-10.toml\n"
    "         perf report --no-children     (release builds carry line tables: Cargo.toml, profile.release)"
)


@dataclass(frozen=True)
class Case:
    """One line of the table: our scenario, and the nearest thing each peer can do."""

    name: str
    title: str
    scenario: Path
    ns2: peer.Words | None = None
    ns3: peer.Words | None = None
    peers_run: str = ""
    """What the peers run where it is not the same."""


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
        ns2=TEN_SACK,
        ns3={**TEN, "tcp": "LinuxReno", "queue": "CoDel", "limit": 0, "duration": 30, "warmup": 10},
        peers_run="ns-2: Sack1 over DropTail of 1 BDP; ns-3: LinuxReno over CoDel",
    ),
    Case(
        "cubic-fq_codel-10",
        "10 CUBIC flows over fq_codel, 100 Mbit/s",
        CASES / "cubic-fq_codel-10.toml",
        ns2=TEN_SACK,
        ns3={**TEN, "tcp": "Cubic", "queue": "FqCoDel", "limit": 0, "duration": 30, "warmup": 10},
        peers_run="ns-2: Sack1 over DropTail of 1 BDP; ns-3: Cubic over FqCoDel",
    ),
    Case(
        "reno-pfifo-1000",
        "1000 Reno flows, RTT 40..440 ms, pfifo 500, 200 Mbit/s",
        CASES / "reno-pfifo-1000.toml",
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
    """The same with an access link of 1 Gbit/s for each host, which the peers always have: two hops
    more."""
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
    ),
]


# -------------------------------------------------------------------------------- one sojourn run


def child(path: Path) -> None:
    """Runs one scenario, one seed, in this process and prints what it cost."""
    import sojourn

    scenario = sojourn.load(path)
    seed = scenario.seeds[0]
    before = _peak_rss_mb()
    made = sojourn.simulate(scenario, seeds=[seed])
    after = _peak_rss_mb()
    engine = made.arrays("engine", seed)
    print(
        json.dumps(
            {
                "packets": int(engine["packets"][0]),
                "events": int(engine["events"][0]),
                "cpu_s": made.meta.cpu_s[str(seed)],
                "peak_rss_mb": after,
                "rss_before_mb": before,
            }
        )
    )


def _peak_rss_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) * 1e-6


def run_sojourn(path: Path) -> dict[str, float]:
    """One run in a fresh process: no warm caches, and its own peak memory."""
    command = [sys.executable, str(HERE / "bench.py"), "--child", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"error: sojourn failed on {path}\n{done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


# -------------------------------------------------------------------------------------- measuring


def measure(
    case: Case, repeats: int, ns2: peer.Peer | None, ns3: peer.Peer | None
) -> dict[str, Any]:
    """Interleaved repeats of one case on everything there is."""
    samples: dict[str, list[dict[str, float]]] = {"sojourn": [], "ns-2": [], "ns-3": []}
    # ns-2 counts departures only with a queue monitor, which costs time; the run is deterministic,
    # so count once.
    forwarded = 0.0
    if ns2 and case.ns2:
        forwarded = ns2.run({**case.ns2, "monitor": 1})["forwarded_packets"]
    for repeat in range(repeats):
        print(f"{case.name}: repeat {repeat + 1} of {repeats}", file=sys.stderr)
        run = run_sojourn(case.scenario)
        samples["sojourn"].append({**run, "rate": run["packets"] / max(run["cpu_s"], 1e-9)})
        if ns2 and case.ns2:
            samples["ns-2"].append(_peer_sample(ns2.run(case.ns2), forwarded))
        if ns3 and case.ns3:
            result = ns3.run(case.ns3)
            samples["ns-3"].append(_peer_sample(result, result["forwarded_packets"]))
    row: dict[str, Any] = {"case": case.name, "title": case.title, "peers_run": case.peers_run}
    for name, runs in samples.items():
        row[name] = _median(runs) if runs else None
    for name in ("ns-2", "ns-3"):
        row[f"times {name}"] = row["sojourn"]["rate"] / row[name]["rate"] if row[name] else None
    return row


def _peer_sample(result: dict[str, Any], forwarded: float) -> dict[str, float]:
    cpu = max(result["cpu_window_s"], 1e-9)
    return {
        "packets": forwarded,
        "cpu_s": cpu,
        "rate": forwarded / cpu,
        "peak_rss_mb": result["peak_rss_mb"],
        "rss_before_mb": result["rss_before_mb"],
    }


def _median(runs: list[dict[str, float]]) -> dict[str, float]:
    summary = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    rates = [run["rate"] for run in runs]
    return {**summary, "rate_min": min(rates), "rate_max": max(rates), "runs": len(runs)}


# -------------------------------------------------------------------------------------- the table


def machine() -> str:
    """The processor, as far as the system tells."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} CPUs, {platform.system()}"


def table(rows: list[dict[str, Any]], versions: dict[str, str]) -> str:
    """The rows as text, widths fitted."""
    head = [
        "case",
        "sojourn",
        "range",
        *versions.values(),
        "x ns-2",
        "x ns-3",
        "CPU s",
        "RSS MB: run (+ before)",
        "ns-2",
        "ns-3",
    ]
    lines = [head]
    for row in rows:
        ours = row["sojourn"]
        lines.append(
            [
                row["title"],
                _rate(ours["rate"]),
                f"{_rate(ours['rate_min'])}..{_rate(ours['rate_max'])}",
                *(_rate(row[name]["rate"]) if row[name] else "-" for name in versions),
                *(f"{row[f'times {name}']:.1f}" if row[name] else "-" for name in ("ns-2", "ns-3")),
                f"{ours['cpu_s']:.3f}",
                _memory(ours),
                *(_memory(row[name]) if row[name] else "-" for name in ("ns-2", "ns-3")),
            ]
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    ran = "\n".join(f"  {row['case']}: {row['peers_run']}" for row in rows if row["peers_run"])
    return (
        f"Delivered packets per CPU second, median of interleaved runs, on {machine()}\n\n{text}\n\n"
        f"Where the peers run something else:\n{ran}\n\n{PROFILE_HINT}"
    )


def _rate(packets_per_second: float) -> str:
    if packets_per_second >= 1e6:
        return f"{packets_per_second * 1e-6:.2f} M"
    return f"{packets_per_second * 1e-3:.0f} k"


def _memory(sample: dict[str, float]) -> str:
    return f"{sample['peak_rss_mb'] - sample['rss_before_mb']:.1f} (+{sample['rss_before_mb']:.0f})"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Speed and memory beside ns-2 and ns-3.")
    parser.add_argument("--only", metavar="NAME", help="run the cases whose name contains NAME")
    parser.add_argument(
        "--repeats", type=int, default=5, help="interleaved repeats of each case (default 5)"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object on stdout instead of the table"
    )
    parser.add_argument("--no-peers", action="store_true", help="sojourn only")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return 0
    cases = [case for case in ALL if options.only is None or options.only in case.name]
    if not cases:
        names = ", ".join(case.name for case in ALL)
        print(f"error: no case is called `{options.only}`\nhint: one of {names}", file=sys.stderr)
        return 2
    if options.repeats < 1:
        print("error: --repeats must be at least 1", file=sys.stderr)
        return 2
    ns2 = None if options.no_peers else peer.find_ns2()
    ns3 = None if options.no_peers else peer.find_ns3()
    versions = {"ns-2": ns2.version if ns2 else "ns-2", "ns-3": ns3.version if ns3 else "ns-3"}
    try:
        rows = [measure(case, options.repeats, ns2, ns3) for case in cases]
    except peer.PeerError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps({"machine": machine(), "versions": versions, "rows": rows}, indent=1))
    else:
        print(table(rows, versions))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
