"""Prints the tables of docs/agreement.md from the output of `sojourn agree -o DIR`.

    python benches/agreement_tables.py DIR/agreement.json

The tables are in Markdown: the number of verdicts per file of the standing set, how closely each
number agrees, and the numbers that are beyond the tolerance.
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
"""Titles of the first set; all other titles belong to the second set."""


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def share(value: float | None, sign: str = "+") -> str:
    return "-" if value is None else f"{100 * value:{sign}.1f} %"


def header(*cells: str) -> list[str]:
    return [row(*cells), f"|{'---|' * len(cells)}"]


def counted(name: str, comparisons: Sequence[Entry]) -> str:
    """Returns a row of the first table."""
    rows = [each for comparison in comparisons for each in comparison["rows"]]
    counts = [sum(each["verdict"] == verdict for each in rows) for verdict in VERDICTS]
    return row(
        name,
        len(comparisons),
        len(rows),
        *counts,
        sum(comparison["seeds"] for comparison in comparisons),
    )


def title(comparison: Entry) -> str:
    return str(comparison["title"])


def by_file(comparisons: Sequence[Entry]) -> Iterable[str]:
    yield from header("", "cases", "numbers", *VERDICTS, "seeds")
    for name in dict.fromkeys(map(title, comparisons)):
        yield counted(
            name.removeprefix("Agreement "),
            [comparison for comparison in comparisons if title(comparison) == name],
        )
    for name, first in (("the first set", True), ("the second set", False)):
        chosen = [comparison for comparison in comparisons if (title(comparison) in FIRST) is first]
        if chosen:
            yield counted(f"**{name}**", chosen)
    yield counted("**all**", comparisons)


def by_number(comparisons: Sequence[Entry]) -> Iterable[str]:
    yield from header("number", *VERDICTS, "median", "worst decided")
    rows = [each for comparison in comparisons for each in comparison["rows"]]
    for metric in dict.fromkeys(each["metric"] for each in rows):
        of_it = [each for each in rows if each["metric"] == metric]
        counts = [sum(each["verdict"] == verdict for each in of_it) for verdict in VERDICTS]
        sizes = [abs(each["difference"]) for each in of_it if each["difference"] is not None]
        decided = [each["difference"] for each in of_it if each["verdict"] in ("within", "beyond")]
        worst = max((each for each in decided if each is not None), key=abs, default=None)
        median = statistics.median(sizes) if sizes else None
        yield row(metric, *counts, share(median, ""), share(worst))


def beyond(comparisons: Sequence[Entry]) -> Iterable[str]:
    yield from header("case", "number", "sim", "kernel", "difference", "seeds")
    for comparison in comparisons:
        for each in comparison["rows"]:
            if each["verdict"] != "beyond":
                continue
            sides = (
                f"{each[side]:.4g}" if each[side] is not None else "-" for side in ("sim", "kernel")
            )
            place = f"{each['place']}: " if each["place"] else ""
            yield row(
                comparison["label"],
                f"{place}{each['metric']} {each['unit']}".strip(),
                *sides,
                share(each["difference"]),
                comparison["seeds"],
            )


def main() -> None:
    """Prints the three tables."""
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    comparisons = document["comparisons"]
    print(
        f"{document['version']}; CPU {', '.join(f'{name} {cpu:.0f} s' for name, cpu in document['cpu_s'].items())}\n"
    )
    for table in (by_file, by_number, beyond):
        print("\n".join(table(comparisons)) + "\n")


if __name__ == "__main__":
    main()
