"""What a search for a reading found, stored beside a paper: `searched.csv`, written by the paper's
`search.py`.

    # made by `python -m sojourn.papers.adt.search`, seeds 101 to 105, sojourn 0.2.0
    reading,row,seed,...
    ...

A search takes minutes, so that a reproduction does not repeat it. No verdict rests on it: it runs on
seeds of its own, and what was found is run again on others and judged.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import IO

Row = Mapping[str, str]


@dataclass(frozen=True)
class Searched:
    """The file: how it was made, and its rows as text."""

    made: str
    rows: Sequence[Row]


def beside(file: str) -> Searched:
    """The search of the paper whose folder `file`, a module's `__file__`, lies in."""
    return _read(Path(file).with_name("searched.csv"))


@cache
def _read(path: Path) -> Searched:
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    return Searched(first.removeprefix("# "), list(csv.DictReader(rest)))


def write(
    out: IO[str], module: str, seeds: Sequence[int], rows: Iterable[Mapping[str, object]]
) -> None:
    """Writes the file: a line on how it was made, then the rows, each as it is found."""
    seeds_ = f"seeds {seeds[0]} to {seeds[-1]}"
    out.write(f"# made by `python -m {module}`, {seeds_}, sojourn {version('sojourn')}\n")
    table: csv.DictWriter[str] | None = None
    for row in rows:
        if table is None:
            table = csv.DictWriter(out, list(row), lineterminator="\n")
            table.writeheader()
        table.writerow(row)
        out.flush()
