"""Instructions a packet of eight cases, held against those that are recorded: what a packet costs can't
creep up unseen.

    python benches/instructions.py                  all eight, of the release: ten minutes and its build
    python benches/instructions.py --build checked  two, of the build that tests run: seconds
    python benches/instructions.py CASE ... --record

More than 1 % above what is recorded ends with 1, and names the part that grew by most. `--record` keeps
what was counted in instructions.json, with the compiler that it is of: another one makes other code.
Those of the release it keeps for docs/performance.md, too. .ci/run compiles what tests run without
`incremental`, which inlines more, and so it has numbers of its own: record them with the variables that
.ci/run exports.
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
"""Above what is recorded. The count itself repeats to a ten-thousandth."""
SHORT = Lengths(1, 2, 5)
"""Of the checked build."""
CHECKED = ("reno-codel-10", "reno-codel-10-access")
BUILDS = ("release", "checked")
BY_FUNCTION = "by function: what is inlined counts for its caller; the release is counted by file"
"""What the parts of the checked build are."""
RECORD_IT = "python benches/instructions.py --record keeps the new numbers"
PLACE = "bench instructions"


@dataclass(frozen=True)
class Verdict:
    """What is said of a case."""

    case: str
    found: float
    """Instructions a packet."""
    recorded: float | None
    """None: none are, of this build."""
    words: str
    """Empty: as many as are recorded."""
    failed: bool = False
    other_compiler: bool = False


def cases(build: str, only: Sequence[str] = ()) -> list[bench.Case]:
    """Those that are counted of this build, or those of them that are named."""
    names = [case.name for case in bench.ALL] if build == "release" else CHECKED
    if unknown := set(only) - set(names):
        raise SystemExit(f"error: no case {', '.join(unknown)}\nhint: one of {', '.join(names)}")
    return [case for case in bench.ALL if case.name in (only or names)]


def kept_as(build: str) -> str:
    """The name of a build's numbers in the record."""
    alone = build == "checked" and os.environ.get("CARGO_INCREMENTAL") == "0"
    return "checked, not incremental" if alone else build


def count(speed: callgrind.Speed, case: bench.Case) -> dict[str, Any]:
    """A case as it is recorded: its lengths, and instructions a packet by part."""
    lengths = case.lengths if speed.build == "release" else SHORT
    assert lengths is not None, "each case of bench.ALL has lengths"
    counted = bench.instructions(speed, bench.scenario_of(case), lengths)
    parts = {name: round(value, 1) for name, value in counted["parts"].items()}
    return {"lengths": counted["lengths"], "parts": parts}


def compiler() -> dict[str, str]:
    """What the code is made by, and for."""
    said = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    first, *fields = said.splitlines()
    target = dict(field.split(": ", 1) for field in fields)["host"]
    return {"rustc": first, "target": target}


def recorded(file: Path = RECORD) -> dict[str, Any]:
    """Of each build (`kept_as`) its compiler and its cases."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def judged(
    case: str, found: Mapping[str, Any], kept: Mapping[str, Any], by: Mapping[str, str]
) -> Verdict:
    """A case's count held against `kept`, what is recorded of its build; `by`: this compiler."""
    whole = sum(found["parts"].values())
    known = kept.get("cases", {}).get(case)
    if known is None or known["lengths"] != found["lengths"]:
        return Verdict(case, whole, None, f"not recorded: {RECORD_IT}", failed=True)
    before = sum(known["parts"].values())
    of = {name: kept[name] for name in by}
    if of != dict(by):
        words = f"recorded of {' for '.join(of.values())}; this is {' for '.join(by.values())}"
        return Verdict(case, whole, before, words, other_compiler=True)
    if whole > before * (1 + MOST):
        more = {part: n - known["parts"].get(part, 0) for part, n in found["parts"].items()}
        part = max(more, key=more.__getitem__)
        words = f"{whole / before - 1:+.1%}; most of it in: {part} ({more[part]:+.0f})"
        return Verdict(case, whole, before, words, failed=True)
    if whole < before * (1 - MOST):
        return Verdict(case, whole, before, f"{whole / before - 1:+.1%}: {RECORD_IT}")
    return Verdict(case, whole, before, "")


def keep(
    build: str,
    found: Mapping[str, Any],
    by: Mapping[str, str],
    valgrind: str,
    of: Mapping[str, Any],
    file: Path = RECORD,
) -> None:
    """Records what was counted of a build. Of another compiler nothing else stays."""
    whole = recorded(file)
    old = whole.get(build, {})
    same = all(old.get(name) == value for name, value in by.items())
    stays = old["cases"] if same and old else {}
    about = {**by, "valgrind": valgrind, "commit": of["commit"][:10], "date": of["date"][:10]}
    whole[build] = {**about, "cases": {**stays, **found}}
    file.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def places(kept: Mapping[str, Any]) -> dict[str, str | page.Table]:
    """What docs/performance.md shows of the release."""
    titles = {case.name: case.title for case in bench.ALL}
    rows = [("case", "instructions a packet")]
    rows += [(titles[name], _whole(one)) for name, one in kept["cases"].items()]
    first = kept["cases"][bench.ALL[0].name]
    parts = sorted(first["parts"].items(), key=lambda part: -part[1])
    head = ("part", f"instructions a packet, {bench.ALL[0].title}")
    made = f"{' '.join(kept['rustc'].split()[:2])}, {kept['target']}, valgrind {kept['valgrind']}."
    return {
        f"{PLACE}: made by": f"{made}\nCommit {kept['commit']}, {kept['date']}, release build.",
        f"{PLACE}: table": rows,
        f"{PLACE}: parts": [head, *((name, f"{value:.0f}") for name, value in parts)],
    }


def _whole(one: Mapping[str, Any]) -> str:
    return f"{sum(one['parts'].values()):.0f}"


def line(verdict: Verdict) -> str:
    before = "-" if verdict.recorded is None else f"{verdict.recorded:.1f}"
    return f"{verdict.case:24} {verdict.found:8.1f}  recorded {before:8}  {verdict.words}".rstrip()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("only", nargs="*", metavar="CASE", help="these of the cases")
    parser.add_argument("--build", choices=BUILDS, default="release", help="whose instructions")
    parser.add_argument("--record", action="store_true", help="keep what is counted")
    options = parser.parse_args()
    asked = cases(options.build, options.only)
    try:
        speed = callgrind.program(options.build)
    except callgrind.NoToolError as missing:
        print(f"error: {missing}", file=sys.stderr)
        return 2
    build = kept_as(options.build)
    by, kept, of = compiler(), recorded().get(build, {}), bench.tree_and_machine()
    found: dict[str, Any] = {}
    verdicts = []
    for case in asked:
        found[case.name] = count(speed, case)
        verdicts.append(judged(case.name, found[case.name], kept, by))
        print(line(verdicts[-1]), flush=True)
    if options.record:
        keep(build, found, by, speed.valgrind.version, of)
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
