"""Results of a search for a reading, stored with a paper: `searched.csv`, made by the paper's
`search.py`, which `sojourn reproduce --search PAPER` runs.

    # made by `sojourn reproduce --search adt`, seeds 101 to 105, sojourn 0.2.0
    reading,row,seed,...
    ...

If the search consists of ordinary studies, `search.py` only names them and their measures.
`OfStudies` makes the lines, and gives their values to the evidence as if they had been run.

A search takes minutes, so a reproduction does not repeat it. No verdict depends on it: it runs on
seeds of its own, and the chosen reading is run again on other seeds and judged.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import IO, Protocol, cast

from sojourn import cleanup, engine
from sojourn.scenario import Scenario
from sojourn_papers.evidence import Estimate, Measure, SearchResults, Seed, estimated
from sojourn_papers.paper import Paper
from sojourn_papers.study import Study, Variant

FILE = "searched.csv"
Row = Mapping[str, str]


@dataclass(frozen=True)
class Searched:
    """The content of the file: how it was made, and its rows as text."""

    made: str
    rows: Sequence[Row]


def beside(file: str) -> Searched:
    """The search of the paper whose folder `file`, a module's `__file__`, lies in."""
    return _read(Path(file).with_name(FILE))


@cache
def _read(path: Path) -> Searched:
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    return Searched(first.removeprefix("# "), list(csv.DictReader(rest)))


# ---------------------------------------------------------------------- searches that are studies

QUICK = {True: "quick", False: "full"}
Measures = Mapping[str, Measure]
"""Measures by the name of their column."""


@dataclass(frozen=True)
class OfStudies:
    """A search that consists of studies and their measures; its results are stored in `folder`."""

    folder: Path
    studies: Sequence[Study]
    measures: Measures

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds of its studies. No verdict uses them."""
        return sorted({one.first_seed + at for one in self.studies for at in range(one.seeds)})

    def rows(self) -> Iterator[Mapping[str, object]]:
        """A line for each variant and seed, with the measured values. A study whose quick version
        is shorter is searched in both versions."""
        for study in self.studies:
            for quick in (False, True) if study.quick else (False,):
                for variant, scenario in study.scenarios(self.folder, quick).items():
                    head = {"version": QUICK[quick], "study": study.id, "variant": variant.name}
                    for number, seed in _run(scenario):
                        cells = {name: f"{of(seed):.6g}" for name, of in self.measures.items()}
                        yield {**head, "seed": number, **cells}

    def results(self, quick: bool) -> SearchResults:
        """The stored results."""
        found = _read(self.folder / FILE)
        values: dict[tuple[Variant, str], list[float]] = {}
        wanted = {study.id: (study, QUICK[quick and bool(study.quick)]) for study in self.studies}
        for row in found.rows:
            study, version_ = wanted[row["study"]]
            if row["version"] == version_:
                for name in self.measures:
                    at = study[row["variant"]], name
                    values.setdefault(at, []).append(float(row[name]))
        known: dict[tuple[Variant, Measure], Estimate] = {
            (variant, self.measures[name]): estimated(each)
            for (variant, name), each in values.items()
        }
        return SearchResults(found.made, known)


def _run(scenario: Scenario) -> Iterator[tuple[int, Seed]]:
    folder = cleanup.make_folder()
    try:
        [run] = engine.run_each([scenario], [folder / "run"], jobs=1)
        yield from ((number, Seed(run, number)) for number in run.seeds)
    finally:
        cleanup.remove_folder(folder)


# ------------------------------------------------------------------------------------- made again


class Search(Protocol):
    """A paper's module `search` that does not consist of studies."""

    SEEDS: Sequence[int]
    """The seeds that it ran. No verdict uses them."""

    def rows(self) -> Iterable[Mapping[str, object]]:
        """Searches. Yields a line for each setting as soon as it is known."""


def of_studies(module: ModuleType) -> OfStudies | None:
    """The search of a module `search` that names studies; None if the module makes its own
    lines."""
    if not hasattr(module, "STUDIES"):
        return None
    return OfStudies(Path(str(module.__file__)).parent, module.STUDIES, module.MEASURES)


def has(paper: Paper) -> bool:
    """Whether a search is stored with the paper."""
    return (paper.folder / "search.py").exists()


def again(paper: Paper, out: IO[str]) -> None:
    """Makes the file again: a line on how it was made, then the rows. It takes minutes."""
    module = import_module(f"{__package__}.{paper.folder.name}.search")
    studies, lines = of_studies(module), cast(Search, module)
    seeds, rows = (studies.seeds, studies.rows) if studies else (lines.SEEDS, lines.rows)
    command = f"sojourn reproduce --search {paper.id}"
    which = f"seeds {seeds[0]} to {seeds[-1]}"
    out.write(f"# made by `{command}`, {which}, sojourn {version('sojourn')}\n")
    table: csv.DictWriter[str] | None = None
    for row in rows():
        if table is None:
            table = csv.DictWriter(out, list(row), lineterminator="\n")
            table.writeheader()
        table.writerow(row)
        out.flush()
