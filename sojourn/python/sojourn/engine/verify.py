"""Runs a Run again and checks that every table is equal.

A simulation's tables depend on its scenario.toml, each seed and the build of the engine; those of a
kernel in virtual time also depend on the guest. So the same engine runs every finished seed again,
and the tables are compared cell by cell. Another version of polars may write the same cells as
other bytes. A program of the host may behave differently in each run, so the first seed of a Run
with programs is run twice. If tables differ, the possible reasons are checked: scenario.toml and
the seeds are compared with the Run's fingerprint, and the engine's build with the recorded one.

Measurements in real time (a live line, `netns`) can't be repeated; for them there is only
`check_tables`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn import cleanup, guest_programs
from sojourn.defaults import ENGINES
from sojourn.engine.protocol import fingerprint
from sojourn.engine.registry import find
from sojourn.engine.request import Progress
from sojourn.engine.runs import run_each
from sojourn.errors import UserError
from sojourn.records import FORMAT, SCENARIO, TABLES, Run
from sojourn.scenario import Scenario, loads

if TYPE_CHECKING:
    import polars as pl

Value = int | float | str | None
_REAL_TIME = "netns"
DECIDED = ("duration_ns", "warmup_ns", "links", "flows")
"""Fields of meta.json that follow from the scenario."""


@dataclass(frozen=True)
class CellDifference:
    """The first cell, row by row, in which the new table differs from the recorded one."""

    row: int
    """From 0."""
    column: str
    recorded: Value
    now: Value


@dataclass(frozen=True)
class TableComparison:
    """One table of one seed."""

    seed: int
    table: str
    why: str = ""
    """Why it is not equal; "": it is equal."""
    difference: CellDifference | None = None
    """None: it is equal, or there is nothing to compare."""

    @property
    def equal(self) -> bool:
        """Whether the new table equals the recorded one."""
        return not self.why


@dataclass(frozen=True)
class Verification:
    """The result of running a Run again."""

    run: Run
    build: str
    """The engine's present build."""
    same_scenario: bool | None
    """Whether scenario.toml and the seeds match the fingerprint. None: a Run of sojourn 0.1, whose
    fingerprint does not show it."""
    meta: tuple[str, ...]
    """The fields in `DECIDED` in which meta.json differs from the new Run's. Numbers are computed
    from these fields."""
    tables: tuple[TableComparison, ...]
    changed_files: tuple[str, ...] = ()
    """Files of this host that a program of the Run read and that have changed since."""
    same_twice: bool | None = None
    """Whether two new runs of the first seed gave the same tables. None: the Run has no programs,
    so the seed was run once."""

    @property
    def equal(self) -> bool:
        """Whether all tables, and the fields of meta.json that numbers depend on, are equal."""
        twice = self.same_twice is not False
        return twice and not self.meta and all(table.equal for table in self.tables)

    @property
    def same_build(self) -> bool | None:
        """Whether the engine's build made the Run; None: the Run does not record its build."""
        recorded = self.run.meta.engine_build
        return None if recorded is None else recorded == self.build

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "run": str(self.run.path),
            "equal": self.equal,
            "engine": self.run.meta.engine,
            "build": {
                "recorded": self.run.meta.engine_build,
                "now": self.build,
                "same": self.same_build,
            },
            "same_scenario": self.same_scenario,
            "meta": list(self.meta),
            "changed_files": list(self.changed_files),
            "same_twice": self.same_twice,
            "seeds": list(self.run.seeds),
            "seeds_not_finished": sorted(set(self.run.meta.seeds_asked) - set(self.run.seeds)),
            "tables": [
                {**dataclasses.asdict(table), "equal": table.equal} for table in self.tables
            ],
        }


def verify(
    runs: Sequence[Run],
    *,
    jobs: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[Verification]:
    """Runs every finished seed of these Runs again, in a temporary folder, and compares the tables.

    `jobs`: threads; None: as many as there are cores.

    Raises:
        UserError: one of them can't be run again, or not on this host. Nothing has been run then.
        ScenarioError: a scenario.toml is invalid.
    """
    engines = {name: find(name) for name in dict.fromkeys(engine_of(run) for run in runs)}
    scenarios = [scenario_of(run) for run in runs]
    verifications: dict[int, Verification] = {}
    for name, engine in engines.items():
        mine = [i for i, run in enumerate(runs) if run.meta.engine == name]
        with_programs = [i for i in mine if guest_programs.read(runs[i], runs[i].seeds[0])]
        with cleanup.temporary_folder() as folder:
            again = run_each(
                [
                    *(scenarios[i].with_(seeds=list(runs[i].seeds)) for i in mine),
                    *(scenarios[i].with_(seeds=[runs[i].seeds[0]]) for i in with_programs),
                ],
                [
                    *(folder / str(i) for i in mine),
                    *(folder / f"{i}-twice" for i in with_programs),
                ],
                engine=name,
                jobs=jobs,
                fresh=True,
                progress=progress,
            )
            made = dict(zip(mine, again[: len(mine)], strict=True))
            twice = {
                i: made[i].sums(new.seeds[0]) == new.sums(new.seeds[0])
                for i, new in zip(with_programs, again[len(mine) :], strict=True)
            }
            for i, new in made.items():
                verifications[i] = Verification(
                    runs[i],
                    new.meta.engine_build or engine.build,
                    _same_scenario(runs[i], scenarios[i]),
                    tuple(
                        name
                        for name in DECIDED
                        if getattr(runs[i].meta, name) != getattr(new.meta, name)
                    ),
                    tuple(_compared(runs[i], new)),
                    tuple(guest_programs.changed(runs[i])),
                    twice.get(i),
                )
    return [verifications[i] for i in range(len(runs))]


def is_repeatable(run: Run) -> bool:
    """Whether a Run can be repeated exactly, if its engine is available."""
    return run.meta.engine in ENGINES and run.meta.engine != _REAL_TIME


def check_tables(run: Run) -> int:
    """Reads every table of a Run, which checks its SHA-256; returns the number of tables.

    Raises:
        UserError: a table is damaged.
    """
    tables = [(seed, name) for seed in run.seeds for name in run.tables(seed)]
    for seed, name in tables:
        run.table(name, seed)
    return len(tables)


def engine_of(run: Run) -> str:
    """The engine that can run a Run again.

    Raises:
        UserError: there is none; the message says why.
    """
    if not run.seeds:
        raise UserError(
            f"{run.path}: no seed has finished", "there is nothing to verify: run it again"
        )
    if run.meta.engine not in ENGINES:
        count = check_tables(run)
        intact = f"; its {count} tables are intact" if run.meta.checksums else ""
        raise UserError(
            f"{run.path} is a measurement, which can't be made again as it was{intact}",
            "two measurements are compared by: sojourn compare RUN RUN",
        )
    if run.meta.engine == _REAL_TIME:
        raise UserError(
            f"{run.path} was run by netns, in real time: no two runs of it are alike",
            "a kernel in virtual time can be verified: run it with -e kernel",
        )
    return run.meta.engine


def scenario_of(run: Run) -> Scenario:
    """The scenario of a Run.

    Raises:
        UserError: it has a sweep.
        ScenarioError: it is invalid.
    """
    file = run.path / SCENARIO
    scenario = loads(run.scenario_text, name=str(file), folder=run.path)
    if scenario.sweep:
        raise UserError(
            f"{file} has a sweep, so it is not this Run's scenario", "run the scenario again"
        )
    return scenario


def _same_scenario(run: Run, scenario: Scenario) -> bool | None:
    if run.meta.engine_build is None:
        return None
    named = fingerprint(scenario.fingerprint(run.meta.seeds_asked), run.meta.engine_build)
    return named == run.meta.fingerprint


# -------------------------------------------------------------------------------------- comparing


def _compared(recorded: Run, again: Run) -> Iterable[TableComparison]:
    for seed in recorded.seeds:
        theirs, ours = set(recorded.tables(seed)), set(again.tables(seed))
        for name in TABLES:
            if name not in theirs | ours:
                continue
            if name not in theirs or name not in ours:
                yield TableComparison(
                    seed, name, "missing in the Run" if name in ours else "not made now"
                )
                continue
            yield _compared_table(recorded, again, seed, name)
        yield from _compared_output(recorded, again, seed)


def _compared_output(recorded: Run, again: Run, seed: int) -> Iterable[TableComparison]:
    """What each program printed, as a table of its name."""
    # A Run of an older format lists no files.
    for name in sorted(recorded.sums(seed)) if recorded.meta.format >= FORMAT else ():
        if not name.endswith(guest_programs.OUTPUT):
            continue
        theirs = recorded.file(name, seed, guest_programs.MOST_OUTPUT_BYTES)
        same = theirs == again.file(name, seed, guest_programs.MOST_OUTPUT_BYTES)
        yield TableComparison(seed, name, "" if same else "a program printed something else")


def _compared_table(recorded: Run, again: Run, seed: int, name: str) -> TableComparison:
    try:
        theirs = recorded.table(name, seed)
    except UserError as error:
        return TableComparison(seed, name, error.problem)
    ours = again.table(name, seed)
    if recorded.meta.format < FORMAT:
        # Columns that an older format lacks are null there, and not compared.
        had = [column for column in theirs.columns if theirs[column].null_count() < theirs.height]
        theirs, ours = theirs.select(had), ours.select(had)
    difference = first_difference(theirs, ours)
    if difference is not None:
        return TableComparison(seed, name, "a cell differs", difference)
    if theirs.height != ours.height:
        return TableComparison(seed, name, f"recorded {theirs.height} rows, now {ours.height}")
    return TableComparison(seed, name)


def first_difference(recorded: pl.DataFrame, now: pl.DataFrame) -> CellDifference | None:
    """The first differing cell of two tables with the same columns, among the rows that both have;
    None: all are equal."""
    rows = min(recorded.height, now.height)
    first: tuple[int, str] | None = None
    for column in recorded.columns:
        apart = recorded[column].head(rows).ne_missing(now[column].head(rows)).arg_true()
        if len(apart) and (first is None or apart[0] < first[0]):
            first = (apart[0], column)
    if first is None:
        return None
    row, column = first
    return CellDifference(row, column, recorded[column][row], now[column][row])
