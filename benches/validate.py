"""Compares our simulator with ns-2.35 and ns-3.44 on the same cases, number by number.

    make validate                            every case, 3 seeds each
    python benches/validate.py --only CoDel  the cases whose name contains CoDel
    python benches/validate.py --all         every number, not only those that differ
    python benches/validate.py --record      records the numbers for docs/validation.md

The scenarios are in cases/: a base file for each simulator. This file lists what each case changes,
in scenario words. The peers' numbers are in oracle/*.csv, measured once with the versions named
there; no peer is installed or run. Waits are from arrival in the bottleneck's queue to the start of
transmission.

A difference beyond 5 % is marked `!` if neither the seeds nor the resolution explain it: the ranges
over the seeds of both sides don't overlap. For percentiles of waits, which come in steps of a
packet, the difference must also be more than 1.2 ms, the time of one packet on the wire. `~` marks
differences beyond 5 % that are explained so. docs/validation.md names the mechanism behind each
`!`.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import page  # noqa: E402

CASES = HERE / "cases"
ORACLE = HERE / "oracle"

Settings = Mapping[str, Any]
"""Dotted keys of the scenario and their values; `flow.*` means the only [[flow]] entry."""


@dataclass(frozen=True)
class Case:
    """One comparison: our scenario, and the oracle's row to compare it with."""

    simulator: str
    name: str
    """The oracle's label: TCP and queue."""
    flows: int
    base: str
    settings: Settings = field(default_factory=dict)
    table: str = "small_cases.csv"
    packet_ms: float = 1.2
    """The time of one packet on the wire: the resolution of waits."""

    @property
    def title(self) -> str:
        """Returns the title as printed."""
        return f"{self.simulator}  {self.name}  N={self.flows}"


# -------------------------------------------------------------------------------------- the cases

DELAYED = {"flow.tcp.delayed_ack_segments": 2}
SACK = {"flow.tcp.sack": True}
NS2_TCP: dict[str, Settings] = {
    "Newreno-delack0": {},
    "Newreno-delack1": DELAYED,
    "Sack1-delack0": SACK,
    "Sack1-delack1": {**SACK, **DELAYED},
}
NS2_RED = {
    # ns-2's own defaults: thresholds and weight from the rate, in bytes of 500-byte packets.
    "RED(ns2 auto,mp500)": "red variant ns2 limit 100 min 0 max 0 weight 0 mean_bytes 500",
    "RED(5,15 pkts)": "red variant ns2 limit 100 min 5 max 15 weight 0.002 mean_bytes 1500 packets",
    "ARED(auto)": "red variant ns2 limit 100 min 0 max 0 weight 0 mean_bytes 1500 adaptive",
}

# With an ACK per segment, ACKs and segments have the same count.
CLASSIC = {
    "flow.tcp.packet_counted": False,
    "flow.tcp.delayed_ack_segments": 1,
    "flow.tcp.initial_window": 2,
    "flow.tcp.min_rto": "200 ms",
    "flow.tcp.prr": False,
}
BYTES = {"flow.tcp.packet_counted": False}
NS3_TCP: dict[str, Settings] = {
    "NewReno": {},
    "NewReno-ns2like(delack1,iw2,rto0.2,classic)": CLASSIC,
    "LinuxReno": BYTES,
    "Cubic": {**BYTES, "flow.congestion": "cubic", "flow.tcp.hystart": True},
    "NewReno+ecn": {"flow.ecn": True},
    # The same with ns-3's classic recovery instead of its PRR, which leaves PRR's effect out
    # (docs/validation.md).
    "NewReno-classic": {"flow.tcp.prr": False},
    "Cubic-classic": {
        **BYTES,
        "flow.congestion": "cubic",
        "flow.tcp.hystart": True,
        "flow.tcp.prr": False,
    },
}
# Below an ns-3 queue disc is a device queue of one packet, which the disc doesn't see. So a packet
# waits one packet's time longer (1502 bytes at 10 Mbit/s: 1.2 ms) than CoDel there measures, and
# RED there counts one packet less.
NS3_QUEUE = {
    "dev": "pfifo limit 100",
    "Fifo": "pfifo limit 101",
    "Red": "red variant ns3 limit 101 min 6 max 16 weight 0.002 mean_bytes 1500",
    "ARed": "red variant ns3 limit 101 min 6 max 16 weight 0 mean_bytes 1500 adaptive",
    "CoDel": "codel variant ns3 target 6202us",
    "FqCoDel": "fq_codel variant ns3 target 6202us quantum 1500 noecn",
}
ECN_QUEUE = {
    "CoDel": "codel variant ns3 target 6202us ecn",
    "FqCoDel": "fq_codel variant ns3 target 6202us quantum 1500 ecn",
}

VEGAS = {"flow.congestion": "vegas"}
# ns-2's Vegas counts the header into its packetSize_ of 1460. TCP/Linux sends 1460 plus 50 bytes of
# header, and is the code of Linux 2.6 except for the timer.
NS2_VEGAS: dict[str, Settings] = {
    "Vegas": {**VEGAS, "flow.tcp.mss": 1420},
    "Linux-vegas": {
        **VEGAS,
        "flow.profile": "linux",
        "flow.tcp.mss": 1460,
        "flow.tcp.header_bytes": 50,
        "flow.tcp.initial_window": 2,
        "flow.tcp.delayed_ack_segments": 1,
        "flow.tcp.receive_buffer": "16 MiB",
        "flow.tcp.sack_delay": "0 s",
        "flow.tcp.write_bytes": 0,
        "flow.tcp.timer_tick": "1 ns",
    },
}
NS3_VEGAS = {**BYTES, **VEGAS}

QDISC = "bottleneck.down.qdisc"


def small_cases() -> Iterable[Case]:
    """Yields cases of one and four flows at 10 Mbit/s."""
    for flows in (1, 4):
        for tcp, settings in NS2_TCP.items():
            yield Case("ns-2.35", f"{tcp}/DropTail", flows, "ns2-small.toml", settings)
        for tcp, settings in (("Newreno", {}), ("Newreno-delack1", DELAYED), ("Sack1", SACK)):
            for red, qdisc in NS2_RED.items():
                yield Case(
                    "ns-2.35", f"{tcp}/{red}", flows, "ns2-small.toml", {**settings, QDISC: qdisc}
                )
        for tcp, settings in NS2_VEGAS.items():
            yield Case("ns-2.35", f"{tcp}/DropTail", flows, "ns2-small.toml", settings)
        for queue in ("dev", "FqCoDel") if flows == 1 else ("FqCoDel",):
            yield Case(
                "ns-3.44",
                f"Vegas/{queue}",
                flows,
                "ns3-small.toml",
                {**NS3_VEGAS, QDISC: NS3_QUEUE[queue]},
            )
        for tcp, settings in NS3_TCP.items():
            for queue, qdisc in (ECN_QUEUE if "ecn" in tcp else NS3_QUEUE).items():
                yield Case(
                    "ns-3.44", f"{tcp}/{queue}", flows, "ns3-small.toml", {**settings, QDISC: qdisc}
                )


def adt_cases() -> Iterable[Case]:
    """Yields cases of a thousand flows at 200 Mbit/s."""
    drop_tail = "pfifo limit 500"
    ns2_ared = "red variant ns2 limit 500 min 0 max 0 weight 0 mean_bytes 1500 adaptive"
    ns3_ared = "red variant ns3 limit 500 mean_bytes 1500 adaptive"
    ns2_tcp: dict[str, Settings] = {
        "Newreno-da0": {},
        "Newreno-da1": DELAYED,
        "Sack1-da0": SACK,
        "Sack1-da1": {**SACK, **DELAYED},
    }
    for tcp, settings in ns2_tcp.items():
        for queue, qdisc in (("DropTail", "pfifo limit 499"), ("ARED-auto", ns2_ared)):
            yield _adt("ns-2.35", f"{tcp}/{queue}", "ns2-adt.toml", {**settings, QDISC: qdisc})
    native: dict[str, str] = {
        "DropTail": drop_tail,
        "ARED": ns3_ared,
        "CoDel": "codel variant ns3 target 5060us",
        "FqCoDel": "fq_codel variant ns3 target 5060us quantum 1500 noecn",
    }
    for queue, qdisc in native.items():
        yield _adt("ns-3.44", f"NewReno-SACK-native/{queue}", "ns3-adt.toml", {QDISC: qdisc})
    for queue, qdisc in (("DropTail", drop_tail), ("ARED", ns3_ared)):
        yield _adt(
            "ns-3.44", f"NewReno-SACK-ns2like/{queue}", "ns3-adt.toml", {**CLASSIC, QDISC: qdisc}
        )


def _adt(simulator: str, name: str, base: str, settings: Settings) -> Case:
    return Case(simulator, name, 1000, base, settings, "adt_table.csv", packet_ms=0.06)


MECHANISMS = {
    "H": "ns-3 halves the segments in flight without SACKed ones; we halve cwnd, as Linux does",
    "P": "ns-3's PRR keeps the window up for the first half of a recovery",
    "F": "in ns-3 the ACK that ends a recovery grows the window by all that it acknowledges",
    "I": "ns-2's RED truncates an idle period to whole packets, and rounding errors lose one packet",
    "S": "ns-2's Sack1 counts lost segments as in flight until a partial ACK",
    "C": "which flows share an fq_codel queue",
    "L": "Vegas compares an RTT with the window of a round trip ago (Linux until 2008) or with the present one",
    "V": "ns-3's Vegas counts segments as queued that are not: it takes the base RTT from the SYN, and rounds down",
    "N": "a run has five or six losses, so one more is 20 %",
}
"""The causes of a `!`, by the letters of docs/validation.md."""


def mechanisms(case: Case) -> str:
    """Returns the mechanisms known to act in this case."""
    known = ""
    if "egas" in case.name:
        return "V" if case.simulator.startswith("ns-3") else "L" if "Linux" in case.name else ""
    if case.simulator.startswith("ns-3"):
        known += "H" if "Cubic" not in case.name else ""
        known += "P" if "classic" not in case.name and "ns2like" not in case.name else ""
        known += "F" if "Cubic" in case.name or "LinuxReno" in case.name else ""
        known += "C" if case.flows == 1000 and "FqCoDel" in case.name else ""
    else:
        known += "I" if "mp500" in case.name else ""
        known += "S" if "Sack1" in case.name else ""
    return known + (
        "N" if case.flows == 1 and case.name.endswith(("dev", "Fifo", "DropTail")) else ""
    )


# --------------------------------------------------------------------------------------- our side


def scenario_of(case: Case) -> Any:
    """Returns the case as a Scenario."""
    import sojourn

    with (CASES / case.base).open("rb") as file:
        document: dict[str, Any] = tomllib.load(file)
    for dotted, value in {**case.settings, "flow.count": case.flows, "title": case.title}.items():
        table: Any = document
        *way, last = dotted.split(".")
        for part in way:
            table = table["flow"][0] if part == "flow" else table.setdefault(part, {})
        table[last] = value
    return sojourn.Scenario.from_document(document)


def _can_be_said(case: Case) -> bool:
    """Whether the scenario language has the words of the case. Prints the words that it lacks."""
    import sojourn

    try:
        scenario_of(case)
    except sojourn.ScenarioError as error:
        print(f"left out: {case.title}: {error}", file=sys.stderr)
        return False
    return True


def ours(
    cases: Sequence[Case], seeds: int | None, jobs: int | None
) -> list[list[dict[str, float]]]:
    """Returns our numbers of every case, one dict per seed."""
    import sojourn

    runs = sojourn.run_all(
        [scenario_of(case) for case in cases], seeds=seeds, jobs=jobs, progress=_say
    )
    print(file=sys.stderr)
    return [[_numbers(one) for one in sojourn.summary(run).runs] for run in runs]


def _say(progress: Any) -> None:
    if sys.stderr.isatty():
        print(
            f"\r{progress.finished} of {progress.runs} runs ", end="", file=sys.stderr, flush=True
        )


def _numbers(run: Mapping[str, Any]) -> dict[str, float]:
    queue = next(queue for queue in run["queues"] if queue["link"] == "down")
    waits = {f"wait_{name}_ms": queue["sojourn_ms"][name] for name in ("mean", "p50", "p95", "p99")}
    return {
        **waits,
        "utilisation": queue["utilisation"],
        "goodput_mbps": run["goodput_mbps"],
        "loss": queue["drop_rate"],
        "marks": queue["marked_packets"],
        "jain": run["jain"],
    }


# ------------------------------------------------------------------------------------- their side


def theirs(case: Case) -> list[dict[str, float]]:
    """Returns the oracle's rows for this case, one dict per seed."""
    with (ORACLE / case.table).open(newline="") as file:
        return [
            {key: float(value) for key, value in row.items() if key in METRICS and value != ""}
            for row in csv.DictReader(file)
            if row["label"] == case.name
            and row["simulator"] == case.simulator
            and int(row.get("flows", case.flows)) == case.flows
        ]


# -------------------------------------------------------------------------------------- comparing

METRICS = (
    "wait_mean_ms",
    "wait_p50_ms",
    "wait_p95_ms",
    "wait_p99_ms",
    "utilisation",
    "goodput_mbps",
    "loss",
    "marks",
    "jain",
)
PERCENTILES = ("wait_p50_ms", "wait_p95_ms", "wait_p99_ms")
BEYOND = 0.05


@dataclass(frozen=True)
class Difference:
    """One number on both sides, as means over the seeds."""

    metric: str
    ours: float
    theirs: float
    relative: float
    mark: str

    @property
    def text(self) -> str:
        """Returns a cell."""
        digits = 5 if self.metric in ("loss", "utilisation", "jain") else 3
        return f"{self.metric:13} {self.ours:11.{digits}f} | {self.theirs:11.{digits}f} | {self.relative:+7.1%} {self.mark}"


def compare(
    case: Case, left: Sequence[Mapping[str, float]], right: Sequence[Mapping[str, float]]
) -> list[Difference]:
    """Compares every number that both sides have."""
    differences = []
    for metric in METRICS:
        a = [run[metric] for run in left if metric in run]
        b = [run[metric] for run in right if metric in run]
        if not a or not b or (max(b) == 0 and max(a) == 0):
            continue
        mean_a, mean_b = statistics.fmean(a), statistics.fmean(b)
        relative = (mean_a - mean_b) / abs(mean_b) if mean_b else float("inf")
        mark = ""
        if abs(relative) > BEYOND:
            overlap = min(a) <= max(b) and min(b) <= max(a)
            resolution = metric in PERCENTILES and abs(mean_a - mean_b) <= case.packet_ms * 1.01
            mark = "~" if overlap or resolution else "!"
        differences.append(Difference(metric, mean_a, mean_b, relative, mark))
    return differences


# ------------------------------------------------------------------------------------- the page

RECORD = HERE.parent / "docs" / "recorded" / "validation.json"

GROUPS = {
    "ns-2, 1 and 4 flows: Newreno": ("ns-2", "small", ("Newreno-", "Newreno/")),
    "ns-2, 1 and 4 flows: Sack1": ("ns-2", "small", ("Sack1",)),
    "ns-2, 1 and 4 flows: Vegas": ("ns-2", "small", ("Vegas",)),
    "the same: the Vegas of ns-2's TCP/Linux": ("ns-2", "small", ("Linux-vegas",)),
    "ns-2, 1000 flows": ("ns-2", "adt", ("",)),
    "ns-3, 1 and 4 flows: NewReno without PRR, and as ns-2 has it": (
        "ns-3",
        "small",
        ("NewReno-classic", "NewReno-ns2like"),
    ),
    "ns-3: Cubic without PRR": ("ns-3", "small", ("Cubic-classic",)),
    "ns-3 unmodified, with PRR: NewReno, LinuxReno, Cubic, ECN": (
        "ns-3",
        "small",
        ("NewReno/", "NewReno+ecn", "LinuxReno", "Cubic/"),
    ),
    "ns-3, 1 and 4 flows: Vegas": ("ns-3", "small", ("Vegas",)),
    "ns-3, 1000 flows": ("ns-3", "adt", ("",)),
}
"""The rows of the page's table: simulator, table of the oracle, prefixes of the cases' names."""
HEAD = (
    "",
    "numbers",
    "within 5 %",
    "explained by seeds or steps",
    "differ (mechanism, below)",
)


def numbers_of(results: Sequence[tuple[Case, Sequence[Difference]]]) -> dict[str, Any]:
    """Returns the record of each case: both sides of each number, and its mark."""
    return {
        case.title: {
            each.metric: [float(f"{each.ours:.6g}"), float(f"{each.theirs:.6g}"), each.mark]
            for each in differences
        }
        for case, differences in results
    }


def agreement(numbers: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[list[str]]:
    """Returns the page's table from the record."""
    every = [*small_cases(), *adt_cases()]
    rows = [list(HEAD)]
    for title, (simulator, table, beginnings) in GROUPS.items():
        cases = [
            case
            for case in every
            if case.simulator.startswith(simulator)
            and case.table.startswith(table)
            and case.name.startswith(beginnings)
        ]
        marks = [mark for case in cases for _, _, mark in numbers[case.title].values()]
        letters = {
            letter
            for case in cases
            if any(mark == "!" for _, _, mark in numbers[case.title].values())
            for letter in mechanisms(case)
        }
        known = ", ".join(letter for letter in MECHANISMS if letter in letters)
        differ = f"{marks.count('!')} ({known})" if known else f"{marks.count('!')}"
        rows.append([title, f"{len(marks)}", f"{marks.count('')}", f"{marks.count('~')}", differ])
    return rows


SOME = {
    "ns-2 Newreno, DropTail, 1 flow": "ns-2.35  Newreno-delack0/DropTail  N=1",
    "ns-2 Newreno with delayed ACKs, DropTail, 1000 flows": "ns-2.35  Newreno-da1/DropTail  N=1000",
    "ns-2 Newreno, ARED, 1000 flows": "ns-2.35  Newreno-da0/ARED-auto  N=1000",
    "ns-3 NewReno without PRR, CoDel, 1 flow": "ns-3.44  NewReno-classic/CoDel  N=1",
    "ns-3 Cubic without PRR, device queue, 1 flow": "ns-3.44  Cubic-classic/dev  N=1",
    "ns-3 Cubic without PRR, device queue, 4 flows": "ns-3.44  Cubic-classic/dev  N=4",
}
"""The rows of the page's examples, and their cases."""


def examples(numbers: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[list[str]]:
    """Returns the page's table of some numbers, each as ours / theirs."""
    columns = {"wait mean ms": "wait_mean_ms", "p95": "wait_p95_ms", "p99": "wait_p99_ms"}
    rows = [["", *columns, "loss %"]]
    for title, case in SOME.items():
        differences = numbers[case]
        waits = [
            _both(differences[name], 1, 4) if name in differences else ""
            for name in columns.values()
        ]
        rows.append([title, *waits, _both(differences["loss"], 100, 3)])
    return rows


def _both(number: Sequence[Any], unit: float, digits: int) -> str:
    return " / ".join(f"{side * unit:#.{digits}g}" for side in number[:2])


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        description="Our simulator beside ns-2 and ns-3, number by number."
    )
    parser.add_argument(
        "--only",
        metavar="TEXT",
        action="append",
        help="run cases whose title contains every TEXT",
    )
    parser.add_argument("--seeds", type=int, help="our seeds per case (default: the scenario's)")
    parser.add_argument("--jobs", type=int, help="threads (default: one per core)")
    parser.add_argument("--all", action="store_true", help="print numbers that agree, too")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument(
        "--record", action="store_true", help="record all numbers for docs/validation.md"
    )
    options = parser.parse_args(words)
    if options.record and (options.only or options.seeds):
        print("error: --record needs all cases with their own seeds", file=sys.stderr)
        print("hint: leave --only and --seeds out", file=sys.stderr)
        return 2
    every = [*small_cases(), *adt_cases()]
    cases = [
        case
        for case in every
        if all(text.lower() in case.title.lower() for text in options.only or [])
    ]
    if not cases:
        print(f"error: no case contains {' and '.join(options.only)}", file=sys.stderr)
        print("hint: for example --only DropTail, --only N=1000, --only ns-3", file=sys.stderr)
        return 2
    if options.seeds is not None and options.seeds < 1:
        print("error: --seeds must be at least 1", file=sys.stderr)
        return 2
    cases = [case for case in cases if _can_be_said(case)]
    if not cases:
        return 1
    results = [
        (case, compare(case, mine, theirs(case)))
        for case, mine in zip(cases, ours(cases, options.seeds, options.jobs), strict=True)
    ]
    if options.record:
        page.record_of(RECORD, numbers_of(results))
    if options.json:
        print(
            json.dumps(
                [
                    {"case": case.title, "numbers": [vars(each) for each in differences]}
                    for case, differences in results
                ],
                indent=1,
            )
        )
    else:
        _print(results, everything=options.all)
    return 0


def _print(results: Sequence[tuple[Case, Sequence[Difference]]], *, everything: bool) -> None:
    print(
        f"{'':13} {'ours':>11} | {'theirs':>11} | difference (! beyond 5 %; ~ explained by seeds or resolution)"
    )
    counts = {"": 0, "~": 0, "!": 0}
    for case, differences in results:
        for each in differences:
            counts[each.mark] += 1
        shown = [each for each in differences if everything or each.mark]
        agree = len(differences) - len([each for each in differences if each.mark])
        known = mechanisms(case) if any(each.mark == "!" for each in differences) else ""
        why = f" ({' '.join(known)})" if known else ""
        print(f"\n{case.title}: {agree} of {len(differences)} within 5 %{why}")
        for each in shown:
            print(each.text)
    print("\nMechanisms (docs/validation.md):")
    for letter, text in MECHANISMS.items():
        print(f"  {letter}  {text}")
    print(
        f"\n{sum(counts.values())} numbers: {counts['']} within 5 %, {counts['~']} explained, {counts['!']} differ"
    )


if __name__ == "__main__":
    raise SystemExit(main())
