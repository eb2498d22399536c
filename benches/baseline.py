"""Checks that results are the same before and after a change.

    python benches/baseline.py keep before.json     one seed of each example and the set
    python benches/baseline.py check before.json    repeats that and prints differences
    python benches/baseline.py keep before.json --papers      also the papers (a minute)

The set is agreement's standing set. `check` exits with 1 if a result differs.

The file contains a hash of each table's columns and values, and a hash of the numbers computed
from them. A commit that alters results names them and gives the reason.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

import sojourn
from sojourn import metrics
from sojourn.agreement.standing import standing
from sojourn.records import Run
from sojourn.scenario import Scenario, examples, load


def variants() -> Iterator[tuple[str, Scenario]]:
    """Yields each scenario with a fixed name."""
    for path in examples.simulated():
        for variant in load(path).variants():
            yield f"example {path.stem}: {variant.label}", variant
    for variant in standing():
        yield f"standing {variant.label}", variant


def hashed(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def of_run(run: Run) -> dict[str, str]:
    """Returns the hashes of each table and of the summary."""
    [seed] = run.seeds
    results = {}
    for name in run.tables(seed):
        table = run.table(name, seed)
        results[name] = hashed([(column, table[column].to_list()) for column in table.columns])
    numbers = {key: value for key, value in metrics.summary(run).runs[0].items() if key != "cpu_s"}
    results["numbers"] = hashed(json.dumps(numbers, sort_keys=True))
    return results


def of_papers() -> dict[str, Any]:
    """Returns the papers' numbers and claims, as `reproduce --json` prints them."""
    command = [
        sys.executable,
        "-m",
        "sojourn",
        "reproduce",
        "--quick",
        "--fresh",
        "--json",
        "--quiet",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    results: dict[str, Any] = json.loads(done.stdout)
    return results


def baseline(papers: bool) -> dict[str, Any]:
    names, scenarios = zip(*variants(), strict=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = sojourn.run_all(scenarios, seeds=1, out=Path(folder) / "runs", fresh=True)
        results: dict[str, Any] = {name: of_run(run) for name, run in zip(names, runs, strict=True)}
    if papers:
        results["papers"] = of_papers()
    return results


def differences(before: Any, now: Any, place: str = "") -> Iterator[str]:
    """Yields one line for each place where two baselines differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before | now:
            if key not in before or key not in now:
                yield f"{place} {key}: only {'before' if key in before else 'now'}"
            else:
                yield from differences(before[key], now[key], f"{place} {key}".strip())
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{place} {index}")
    elif before != now:
        yield f"{place}: {before} before, {now} now"


@click.command()
@click.argument("verb", type=click.Choice(("keep", "check")))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--papers", is_flag=True, help="Also run the papers' quick studies.")
def main(verb: str, path: Path, papers: bool) -> None:
    if verb == "keep":
        path.write_text(json.dumps(baseline(papers), indent=1) + "\n", encoding="utf-8")
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    results = list(differences(before, baseline("papers" in before)))
    print("\n".join(results) or "nothing differs")
    sys.exit(bool(results))


if __name__ == "__main__":
    main()
