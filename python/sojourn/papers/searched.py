"""What a search for a reading found, stored beside a paper: `searched.csv`, made by the paper's
`search.py`, which `sojourn reproduce --search PAPER` runs.

    # made by `sojourn reproduce --search adt`, seeds 101 to 105, sojourn 0.2.0
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
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import IO, Protocol, cast

from sojourn.papers.paper import Paper

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


class Search(Protocol):
    """A paper's module `search`."""

    SEEDS: Sequence[int]
    """Those that it ran, none of which judges."""

    def rows(self) -> Iterable[Mapping[str, object]]:
        """Searches: a line for each setting, as it is found."""


def has(paper: Paper) -> bool:
    """Whether a search is stored with the paper."""
    return (paper.folder / "searched.csv").exists()


def again(paper: Paper, out: IO[str]) -> None:
    """Makes the file again: a line on how it was made, then the rows. It takes minutes."""
    search = cast(Search, import_module(f"{__package__}.{paper.folder.name}.search"))
    seeds = f"seeds {search.SEEDS[0]} to {search.SEEDS[-1]}"
    command = f"sojourn reproduce --search {paper.id}"
    out.write(f"# made by `{command}`, {seeds}, sojourn {version('sojourn')}\n")
    table: csv.DictWriter[str] | None = None
    for row in search.rows():
        if table is None:
            table = csv.DictWriter(out, list(row), lineterminator="\n")
            table.writeheader()
        table.writerow(row)
        out.flush()
