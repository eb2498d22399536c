"""The tables of docs/agreement.md, of what `sojourn agree -o DIR` has kept.

    python benches/agreement_tables.py DIR/agreement.json

Prints in Markdown: how many numbers of each file of the standing set have which verdict, how far
each number agrees, and what is beyond.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sojourn.agreement import VERDICTS

Entry = Mapping[str, Any]
FIRST = ("Agreement at 1 Mbit/s", "Agreement at 10 Mbit/s", "Agreement at 50 Mbit/s")
"""Titles of the first set; all others are the second's."""


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def share(value: float | None, sign: str = "+") -> str:
    return "-" if value is None else f"{100 * value:{sign}.1f} %"


def header(*cells: str) -> list[str]:
    return [row(*cells), f"|{'---|' * len(cells)}"]


def counted(name: str, comparisons: Sequence[Entry]) -> str:
    """A line of the first table."""
    rows = [each for one in comparisons for each in one["rows"]]
    counts = [sum(each["verdict"] == verdict for each in rows) for verdict in VERDICTS]
    return row(name, len(comparisons), len(rows), *counts, sum(one["seeds"] for one in comparisons))


def title(one: Entry) -> str:
    return str(one["title"])


def by_file(comparisons: Sequence[Entry]) -> Iterable[str]:
    yield from header("", "cases", "numbers", *VERDICTS, "seeds")
    for name in dict.fromkeys(map(title, comparisons)):
        yield counted(
            name.removeprefix("Agreement "), [one for one in comparisons if title(one) == name]
        )
    for name, first in (("the first set", True), ("the second set", False)):
        chosen = [one for one in comparisons if (title(one) in FIRST) is first]
        if chosen:
            yield counted(f"**{name}**", chosen)
    yield counted("**all**", comparisons)


def by_number(comparisons: Sequence[Entry]) -> Iterable[str]:
    yield from header("number", *VERDICTS, "median", "worst that tells")
    rows = [each for one in comparisons for each in one["rows"]]
    for metric in dict.fromkeys(each["metric"] for each in rows):
        of_it = [each for each in rows if each["metric"] == metric]
        counts = [sum(each["verdict"] == verdict for each in of_it) for verdict in VERDICTS]
        sizes = [abs(each["difference"]) for each in of_it if each["difference"] is not None]
        telling = [each["difference"] for each in of_it if each["verdict"] in ("within", "beyond")]
        worst = max((each for each in telling if each is not None), key=abs, default=None)
        median = statistics.median(sizes) if sizes else None
        yield row(metric, *counts, share(median, ""), share(worst))


def beyond(comparisons: Sequence[Entry]) -> Iterable[str]:
    yield from header("case", "number", "sim", "kernel", "difference", "seeds")
    for one in comparisons:
        for each in one["rows"]:
            if each["verdict"] != "beyond":
                continue
            sides = (
                f"{each[side]:.4g}" if each[side] is not None else "-" for side in ("sim", "kernel")
            )
            place = f"{each['place']}: " if each["place"] else ""
            yield row(
                one["label"],
                f"{place}{each['metric']} {each['unit']}".strip(),
                *sides,
                share(each["difference"]),
                one["seeds"],
            )


def main() -> None:
    """Prints the three tables."""
    whole = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    comparisons = whole["comparisons"]
    print(
        f"{whole['version']}; CPU {', '.join(f'{name} {cpu:.0f} s' for name, cpu in whole['cpu_s'].items())}\n"
    )
    for table in (by_file, by_number, beyond):
        print("\n".join(table(comparisons)) + "\n")


if __name__ == "__main__":
    main()
