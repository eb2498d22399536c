"""The study of docs/cake-mq.md: how cake_mq and mq share a line among the queues of a card.

    python benches/cake_mq.py [--engine sim,kernel-7.3] [--only NAME,...] [--figure docs/cake-mq.png] DIR

Runs the examples card-queues, card-skew, card-siblings and card-mq, each with its own seeds, and
stores the Runs in DIR, where existing Runs are reused. Prints the tables in Markdown and draws the
figure. A kernel engine leaves out scenarios that set `sync_time`, because a kernel's is fixed.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib.pyplot as plt

import sojourn
from sojourn.records import Run
from sojourn.scenario import Scenario

EXAMPLES = ("card-queues", "card-skew", "card-siblings", "card-mq")
DRAWS = 20_000
LINE_MBPS = 100 * 1448 / 1514
"""Goodput of 100 Mbit/s of full packets with Ethernet's header."""
WHOLE_MBPS = 1000 * 1448 / 1514


def variants(name: str, engine: str) -> list[Scenario]:
    """Returns the variants of an example that this engine can run."""
    every = sojourn.load(name).variants()
    return [one for one in every if engine == "sim" or "sync_time" not in one.to_toml()]


def runs_of(name: str, engine: str, out: Path) -> list[Run]:
    """Returns the Runs of an example, in the order of its variants."""
    wanted = variants(name, engine)
    there = [Run.open(meta.parent) for meta in out.glob("*/meta.json")]
    stored = {run.meta.label: run for run in there}
    if all(one.label in stored for one in wanted):
        return [stored[one.label] for one in wanted]
    return sojourn.run_all(wanted, engine=engine, out=out, force=True)


def shares_by_hash(queues: int, flows: int = 8) -> float:
    """Returns Jain's index on average: queues share the rate equally, and so do a queue's flows."""
    rng = random.Random(1)

    def one() -> float:
        mine = [rng.randrange(queues) for _ in range(flows)]
        shares = [1 / mine.count(queue) for queue in mine]
        return sum(shares) ** 2 / (flows * sum(share * share for share in shares))

    return fmean(one() for _ in range(DRAWS))


def with_siblings(gap_ns: float, sync_ns: float, siblings: int = 3) -> float:
    """Returns a queue's mean share of the rate, by the formula of docs/cake-mq.md."""
    chance = min(1.0, sync_ns / gap_ns)
    return (1 - (1 - chance) ** (siblings + 1)) / ((siblings + 1) * chance)


def mean_ci(value: dict[str, float], digits: int) -> str:
    """Formats a mean with its 95 % interval."""
    return f"{value['mean']:.{digits}f} ± {value['ci95']:.{digits}f}"


def setting(run: Run, key: str) -> Any:
    return run.meta.settings[key]


def numbers(run: Run) -> Any:
    return sojourn.summary(run).summary


def queues_table(runs: dict[str, Sequence[Run]]) -> Iterator[str]:
    yield "| engine | queues | ping p95, ms | down, Mbit/s | Jain | by the shares |"
    yield "|---|---|---|---|---|---|"
    for engine, its in runs.items():
        for run in its:
            found, queues = numbers(run), setting(run, "bottleneck.queues")
            yield (
                f"| {engine} | {queues} | {mean_ci(found['probes'][0]['rtt_ms']['p95'], 1)} |"
                f" {mean_ci(found['groups'][0]['goodput_mbps'], 1)} | {mean_ci(found['jain'], 2)} |"
                f" {shares_by_hash(queues):.2f} |"
            )


def flows_table(runs: dict[str, Sequence[Run]], key: str) -> Iterator[str]:
    yield "| engine | | goodput of each flow, Mbit/s |"
    yield "|---|---|---|"
    for engine, its in runs.items():
        for run in its:
            flows = [flow for flow in numbers(run)["flows"] if flow["kind"] == "bulk"]
            each = ", ".join(mean_ci(flow["goodput_mbps"], 1) for flow in flows)
            probes = numbers(run)["probes"]
            ping = f"; ping p95 {mean_ci(probes[0]['rtt_ms']['p95'], 1)} ms" if probes else ""
            yield f"| {engine} | `{setting(run, key)}` | {each}{ping} |"


def sync_ns(run: Run) -> int:
    qdisc = setting(run, "bottleneck.qdisc")
    return {"20us": 20_000, "2ms": 2_000_000}.get(qdisc.split()[-1], 200_000)


def siblings_table(runs: dict[str, Sequence[Run]]) -> Iterator[str]:
    yield "| engine | sync time, us | UDP on each sibling | downloads, Mbit/s | by the formula |"
    yield "|---|---|---|---|---|"
    for engine, its in runs.items():
        for run in its:
            udp = setting(run, "flow.little.rate")
            part = with_siblings(gap_ns(udp), sync_ns(run))
            yield (
                f"| {engine} | {sync_ns(run) // 1000} | {udp} |"
                f" {mean_ci(numbers(run)['groups'][0]['goodput_mbps'], 0)} | {WHOLE_MBPS * part:.0f} |"
            )


def gap_ns(rate: str) -> float:
    """Returns the gap between datagrams of 1500 bytes."""
    return 12e12 / (float(rate.split()[0]) * 1e6)


LINES = {"sim": "#0072B2", "kernel-7.3": "#D55E00"}
COLOURS = {20_000: "#56B4E9", 200_000: "#0072B2", 2_000_000: "#CC79A7"}


def figure(runs: dict[str, dict[str, Sequence[Run]]], path: Path) -> None:
    """Draws three panels: flows by hash, pinned unevenly, and beside siblings with little load."""
    plt.rcParams.update({"font.size": 9})
    drawing, (by_hash, skewed, beside) = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    marks = {"sim": ("o", "simulator"), "kernel-7.3": ("x", "Linux 7.3")}

    for engine, its in runs.get("card-queues", {}).items():
        counts = [setting(run, "bottleneck.queues") for run in its]
        jain = [numbers(run)["jain"] for run in its]
        shift = 0.97 if engine == "sim" else 1.03
        by_hash.errorbar(
            [count * shift for count in counts],
            [one["mean"] for one in jain],
            [one["ci95"] for one in jain],
            fmt=marks[engine][0],
            color=LINES[engine],
            capsize=3,
            label=marks[engine][1],
        )
    counts = [1, 2, 3, 4, 6, 8, 12, 16]
    by_hash.plot(
        counts, list(map(shares_by_hash, counts)), "k--", lw=1, label="1/(n k) of the rate"
    )
    by_hash.set_xscale("log", base=2)
    by_hash.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    by_hash.set(title="Eight downloads by a hash", xlabel="queues of the card", ylim=(0.5, 1.03))
    by_hash.set_ylabel("Jain's index of goodputs")
    by_hash.legend(frameon=False, loc="lower right")

    for engine, its in runs.get("card-skew", {}).items():
        for place, run in enumerate(its):
            flows = [flow["goodput_mbps"] for flow in numbers(run)["flows"]]
            at = [place + (index - 3.5) * 0.09 for index in range(len(flows))]
            skewed.errorbar(
                at,
                [one["mean"] for one in flows],
                [one["ci95"] for one in flows],
                fmt=marks[engine][0],
                color=LINES[engine],
                ms=4,
                capsize=2,
                label=marks[engine][1] if place == 0 else None,
            )
    for place, on in enumerate(([2] * 8, [5] * 5 + [1] * 3, [7] * 7 + [1])):
        used = {2: 4, 5: 4, 7: 2}[on[0]]
        for index, many in enumerate(on):
            centre = place + (index - 3.5) * 0.09
            skewed.plot([centre - 0.04, centre + 0.04], [LINE_MBPS / used / many] * 2, "k-", lw=1)
    skewed.set_xticks([0, 1, 2], ["2, 2, 2, 2", "5, 1, 1, 1", "7, 1"])
    skewed.set(title="Eight downloads, pinned", xlabel="flows on each queue", ylim=(0, None))
    skewed.set_ylabel("goodput of each, Mbit/s (lines: 1/(n k))")
    skewed.legend(frameon=False, loc="upper left")

    rates = [1, 2, 3, 5, 8, 12, 20, 35, 60, 100, 200]
    for sync, colour in COLOURS.items():
        part = [WHOLE_MBPS * with_siblings(gap_ns(f"{rate} Mbit/s"), sync) for rate in rates]
        # The datagrams' share of the rate is not available to the downloads.
        most = [WHOLE_MBPS - 3 * rate * 1448 / 1472 for rate in rates]
        beside.plot(rates, list(map(min, part, most)), "--", lw=1, color=colour)
    for engine, its in runs.get("card-siblings", {}).items():
        for sync, colour in COLOURS.items():
            chosen = [run for run in its if sync_ns(run) == sync]
            if not chosen:
                continue
            down = [numbers(run)["groups"][0]["goodput_mbps"] for run in chosen]
            beside.errorbar(
                [float(setting(run, "flow.little.rate").split()[0]) for run in chosen],
                [one["mean"] for one in down],
                [one["ci95"] for one in down],
                fmt=marks[engine][0],
                color=colour if engine == "sim" else LINES[engine],
                capsize=3,
                label=f"{marks[engine][1]}, {sync // 1000} us",
            )
    beside.set_xscale("log")
    beside.set_xticks([1, 5, 20, 60, 200], ["1", "5", "20", "60", "200"])
    beside.set(title="Four downloads beside three queues", ylim=(0, 1050))
    beside.set_xlabel("UDP on each of them, Mbit/s (dashed: the formula)")
    beside.set_ylabel("goodput of the downloads, Mbit/s")
    beside.legend(frameon=False, fontsize=8)
    for panel in (by_hash, skewed, beside):
        panel.spines[["top", "right"]].set_visible(False)
    drawing.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--engine", default="sim,kernel-7.3")
    parser.add_argument("--only", default=",".join(EXAMPLES))
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    runs: dict[str, dict[str, Sequence[Run]]] = {}
    for name in options.only.split(","):
        for engine in options.engine.split(","):
            stored = runs_of(name, engine, options.out / engine / name)
            runs.setdefault(name, {})[engine] = stored
        tables = {
            "card-queues": queues_table,
            "card-siblings": siblings_table,
            "card-skew": lambda found: flows_table(found, "bottleneck.pinned"),
            "card-mq": lambda found: flows_table(found, "bottleneck.qdisc"),
        }
        print(f"\n{name}\n")
        print("\n".join(tables[name](runs[name])), flush=True)
    if options.figure is not None:
        figure(runs, options.figure)


if __name__ == "__main__":
    main()
