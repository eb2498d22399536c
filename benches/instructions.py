"""Compares instructions per packet of eight cases with recorded counts, so that no rise stays
unnoticed.

    python benches/instructions.py                  all eight, release build: ten minutes plus build
    python benches/instructions.py --build checked  two, of the build that tests run: seconds
    python benches/instructions.py CASE ... --record

If a count is more than 1 % above the recorded one, the exit status is 1, and the part that grew
most is named. `--record` writes the counts to instructions.json, with the compiler: another
compiler makes other code. Counts of the release build are also recorded for docs/performance.md.
.ci/run compiles the tests' build without `incremental`, which inlines more, so that build has its
own counts. To record them, set the variables that .ci/run exports.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import bench  # noqa: E402
import callgrind  # noqa: E402
import page  # noqa: E402
from callgrind import Lengths  # noqa: E402

RECORD = HERE / "instructions.json"
MOST = 0.01
"""Allowed rise above the recorded count. Repeated counts differ by a ten-thousandth."""
SHORT = Lengths(1, 2, 5)
"""The cases of the checked build."""
CHECKED = ("reno-codel-10", "reno-codel-10-access")
BUILDS = ("release", "checked")
BY_FUNCTION = "by function: what is inlined counts for its caller; the release is counted by file"
"""The parts of the checked build."""
RECORD_IT = "python benches/instructions.py --record keeps the new numbers"
PLACE = "bench instructions"


@dataclass(frozen=True)
class Verdict:
    """The verdict on a case."""

    case: str
    counts: float
    """Instructions a packet."""
    recorded: float | None
    """The recorded count. None if this build has none."""
    words: str
    """Empty if the count equals the recorded one."""
    failed: bool = False
    other_compiler: bool = False


def cases(build: str, only: Sequence[str] = ()) -> list[bench.Case]:
    """Returns the cases that are counted of this build, or those named in `only`."""
    names = [case.name for case in bench.ALL] if build == "release" else CHECKED
    if unknown := set(only) - set(names):
        raise SystemExit(
            f"error: no case {', '.join(unknown)}\nhint: give one of {', '.join(names)}"
        )
    return [case for case in bench.ALL if case.name in (only or names)]


def kept_as(build: str) -> str:
    """Returns the name of the build in the record."""
    alone = build == "checked" and os.environ.get("CARGO_INCREMENTAL") == "0"
    return "checked, not incremental" if alone else build


def count(speed: callgrind.Speed, case: bench.Case) -> dict[str, Any]:
    """Counts a case and returns its record: lengths, and instructions per packet by part."""
    lengths = case.lengths if speed.build == "release" else SHORT
    assert lengths is not None, "each case of bench.ALL has lengths"
    counted = bench.instructions(speed, bench.scenario_of(case), lengths)
    parts = {name: round(value, 1) for name, value in counted["parts"].items()}
    return {"lengths": counted["lengths"], "parts": parts}


def compiler() -> dict[str, str]:
    """Returns the compiler and its target."""
    output = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    first, *fields = output.splitlines()
    target = dict(field.split(": ", 1) for field in fields)["host"]
    return {"rustc": first, "target": target}


def recorded(file: Path = RECORD) -> dict[str, Any]:
    """Returns the compiler and the cases of each build (`kept_as`)."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def judged(
    case: str, counts: Mapping[str, Any], records: Mapping[str, Any], by: Mapping[str, str]
) -> Verdict:
    """Compares a case's count with the build's `records`. `by`: this compiler."""
    total = sum(counts["parts"].values())
    known = records.get("cases", {}).get(case)
    if known is None or known["lengths"] != counts["lengths"]:
        return Verdict(case, total, None, f"not recorded: {RECORD_IT}", failed=True)
    before = sum(known["parts"].values())
    of = {name: records[name] for name in by}
    if of != dict(by):
        words = f"recorded of {' for '.join(of.values())}; this is {' for '.join(by.values())}"
        return Verdict(case, total, before, words, other_compiler=True)
    if total > before * (1 + MOST):
        more = {part: n - known["parts"].get(part, 0) for part, n in counts["parts"].items()}
        part = max(more, key=more.__getitem__)
        words = f"{total / before - 1:+.1%}; most of it in: {part} ({more[part]:+.0f})"
        return Verdict(case, total, before, words, failed=True)
    if total < before * (1 - MOST):
        return Verdict(case, total, before, f"{total / before - 1:+.1%}: {RECORD_IT}")
    return Verdict(case, total, before, "")


def keep(
    build: str,
    counts: Mapping[str, Any],
    by: Mapping[str, str],
    valgrind: str,
    of: Mapping[str, Any],
    file: Path = RECORD,
) -> None:
    """Records the counts of a build. Counts of another compiler are removed."""
    records = recorded(file)
    old = records.get(build, {})
    same = all(old.get(name) == value for name, value in by.items())
    stays = old["cases"] if same and old else {}
    about = {**by, "valgrind": valgrind, "commit": of["commit"][:10], "date": of["date"][:10]}
    records[build] = {**about, "cases": {**stays, **counts}}
    file.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def places(records: Mapping[str, Any]) -> dict[str, str | page.Table]:
    """Returns the release build's places of docs/performance.md."""
    titles = {case.name: case.title for case in bench.ALL}
    rows = [("case", "instructions a packet")]
    rows += [(titles[name], _whole(one)) for name, one in records["cases"].items()]
    first = records["cases"][bench.ALL[0].name]
    parts = sorted(first["parts"].items(), key=lambda part: -part[1])
    head = ("part", f"instructions a packet, {bench.ALL[0].title}")
    rustc = " ".join(records["rustc"].split()[:2])
    origin = f"{rustc}, {records['target']}, valgrind {records['valgrind']}."
    return {
        f"{PLACE}: made by": f"{origin}\nCommit {records['commit']}, {records['date']}, release build.",
        f"{PLACE}: table": rows,
        f"{PLACE}: parts": [head, *((name, f"{value:.0f}") for name, value in parts)],
    }


def _whole(one: Mapping[str, Any]) -> str:
    return f"{sum(one['parts'].values()):.0f}"


def line(verdict: Verdict) -> str:
    before = "-" if verdict.recorded is None else f"{verdict.recorded:.1f}"
    return f"{verdict.case:24} {verdict.counts:8.1f}  recorded {before:8}  {verdict.words}".rstrip()


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("only", nargs="*", metavar="CASE", help="cases to count (default: all)")
    parser.add_argument("--build", choices=BUILDS, default="release", help="build to count")
    parser.add_argument("--record", action="store_true", help="record the counts")
    options = parser.parse_args()
    chosen = cases(options.build, options.only)
    try:
        speed = callgrind.program(options.build)
    except callgrind.NoToolError as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 2
    build = kept_as(options.build)
    by, records, of = compiler(), recorded().get(build, {}), bench.tree_and_machine()
    counts: dict[str, Any] = {}
    verdicts = []
    for case in chosen:
        counts[case.name] = count(speed, case)
        verdicts.append(judged(case.name, counts[case.name], records, by))
        print(line(verdicts[-1]), flush=True)
    if options.record:
        keep(build, counts, by, speed.valgrind.version, of)
        if options.build == "release":
            now = recorded()["release"]
            page.record(places(now), now["commit"], now["date"])
        return 0
    failed = any(verdict.failed for verdict in verdicts)
    if failed and options.build == "checked":
        print(BY_FUNCTION)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
