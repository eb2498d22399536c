"""What a search for a reading found, stored beside a paper: `searched.csv`, made by the paper's
`search.py`, which `sojourn reproduce --search PAPER` runs.

    # made by `sojourn reproduce --search adt`, seeds 101 to 105, sojourn 0.2.0
    reading,row,seed,...
    ...

Where what was searched is a study like others, `search.py` names it and its measures: `of_studies`
makes the lines, and `results` gives what they say to the evidence, as if it had been run.

A search takes minutes, so that a reproduction does not repeat it. No verdict rests on it: it runs on
seeds of its own, and what was found is run again on others and judged.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import IO, Protocol, cast

from sojourn import engine, remains
from sojourn.papers.evidence import Estimate, Measure, SearchResults, Seed, estimated
from sojourn.papers.paper import Paper
from sojourn.papers.study import Study, Variant
from sojourn.scenario import Scenario

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


# ---------------------------------------------------------------------- searches that are studies

QUICK = {True: "quick", False: "full"}
Measures = Mapping[str, Measure]
"""By the name of the column."""


def of_studies(
    folder: Path, studies: Iterable[Study], measures: Measures
) -> Iterator[Mapping[str, object]]:
    """A line for each variant and seed, with what was measured. A study whose quick version is
    shorter is searched in both."""
    for study in studies:
        for quick in (False, True) if study.quick else (False,):
            for variant, scenario in study.scenarios(folder, quick).items():
                head = {"version": QUICK[quick], "study": study.id, "variant": variant.name}
                for number, seed in _run(scenario):
                    cells = {name: f"{measure(seed):.6g}" for name, measure in measures.items()}
                    yield {**head, "seed": number, **cells}


def _run(scenario: Scenario) -> Iterator[tuple[int, Seed]]:
    folder = remains.make_folder()
    try:
        [run] = engine.run_each([scenario], [folder / "run"], jobs=1)
        yield from ((number, Seed(run, number)) for number in run.seeds)
    finally:
        remains.remove_folder(folder)


def results(file: str, studies: Iterable[Study], measures: Measures, quick: bool) -> SearchResults:
    """What is stored beside `file`, a module's `__file__`, of these studies."""
    found = beside(file)
    values: dict[tuple[Variant, str], list[float]] = {}
    wanted = {study.id: (study, QUICK[quick and bool(study.quick)]) for study in studies}
    for row in found.rows:
        study, version_ = wanted[row["study"]]
        if row["version"] == version_:
            for name in measures:
                at = study[row["variant"]], name
                values.setdefault(at, []).append(float(row[name]))
    known: dict[tuple[Variant, Measure], Estimate] = {
        (variant, measures[name]): estimated(each) for (variant, name), each in values.items()
    }
    return SearchResults(found.made, known)


# ------------------------------------------------------------------------------------- made again


class Search(Protocol):
    """A paper's module `search`."""

    SEEDS: Sequence[int]
    """Those that it ran, none of which judges."""

    def rows(self) -> Iterable[Mapping[str, object]]:
        """Searches: a line for each setting, as it is found."""


def has(paper: Paper) -> bool:
    """Whether a search is stored with the paper."""
    return (paper.folder / "search.py").exists()


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
