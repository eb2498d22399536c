"""A Run, run again: is every table of it what it was?

What decides a simulation's tables is its scenario.toml, each seed and the build of the engine, and
of a kernel in virtual time the guest. So every seed that finished is run again, by the engine that
made it, and its tables are compared cell by cell. (Another version of polars may write the same
cells in other bytes.) Why they differ, where they do: scenario.toml and the seeds are held against
the Run's fingerprint, and the engine's build against the one recorded.

What was measured in real time (a live line, `netns`) can't be run again; `check_tables` is all that
can be said of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn import cleanup
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
"""What of meta.json follows from the scenario."""


@dataclass(frozen=True)
class CellDifference:
    """The first cell in which a table of now differs from the recorded one, row by row."""

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
    """Why it is not equal, in words; "": it is."""
    difference: CellDifference | None = None
    """None: it is equal, or there is nothing to compare."""

    @property
    def equal(self) -> bool:
        """Whether the table of now is the recorded one."""
        return not self.why


@dataclass(frozen=True)
class Verification:
    """What running again came to."""

    run: Run
    build: str
    """The engine's, now."""
    same_scenario: bool | None
    """scenario.toml and the seeds are those that the fingerprint names; None: a Run of sojourn 0.1,
    whose does not tell."""
    meta: tuple[str, ...]
    """What meta.json says otherwise than that of now, of `DECIDED`: numbers are computed with
    it."""
    tables: tuple[TableComparison, ...]

    @property
    def equal(self) -> bool:
        """Whether all tables are, and what is computed with them."""
        return not self.meta and all(table.equal for table in self.tables)

    @property
    def same_build(self) -> bool | None:
        """The engine is the build that made the Run; None: the Run does not tell."""
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
    """Runs every finished seed of these Runs again, in a temporary place, and compares their
    tables.

    `jobs`: threads; None: as many as there are cores.

    Raises:
        UserError: one of them can't be run again, or not here. Nothing has been run then.
        ScenarioError: one's scenario.toml is none.
    """
    engines = {name: find(name) for name in dict.fromkeys(_engine_of(run) for run in runs)}
    scenarios = [_scenario_of(run) for run in runs]
    found: dict[int, Verification] = {}
    for name, engine in engines.items():
        mine = [i for i, run in enumerate(runs) if run.meta.engine == name]
        with cleanup.temporary_folder() as folder:
            again = run_each(
                [scenarios[i].with_(seeds=list(runs[i].seeds)) for i in mine],
                [folder / str(i) for i in mine],
                engine=name,
                jobs=jobs,
                fresh=True,
                progress=progress,
            )
            for i, one in zip(mine, again, strict=True):
                found[i] = Verification(
                    runs[i],
                    one.meta.engine_build or engine.build,
                    _same_scenario(runs[i], scenarios[i]),
                    tuple(
                        name
                        for name in DECIDED
                        if getattr(runs[i].meta, name) != getattr(one.meta, name)
                    ),
                    tuple(_compared(runs[i], one)),
                )
    return [found[i] for i in range(len(runs))]


def is_repeatable(run: Run) -> bool:
    """Whether this can be run again as it was, if what ran it is there."""
    return run.meta.engine in ENGINES and run.meta.engine != _REAL_TIME


def check_tables(run: Run) -> int:
    """Reads every table of a Run, and so checks it against its SHA-256; how many there are.

    Raises:
        UserError: one is damaged.
    """
    tables = [(seed, name) for seed in run.seeds for name in run.tables(seed)]
    for seed, name in tables:
        run.table(name, seed)
    return len(tables)


def _engine_of(run: Run) -> str:
    if not run.seeds:
        raise UserError(
            f"{run.path}: no seed has finished", "there is nothing to verify: run it again"
        )
    if run.meta.engine not in ENGINES:
        count = check_tables(run)
        whole = f"; its {count} tables are whole" if run.meta.checksums else ""
        raise UserError(
            f"{run.path} is a measurement, which can't be made again as it was{whole}",
            "two measurements are compared by: sojourn compare RUN RUN",
        )
    if run.meta.engine == _REAL_TIME:
        raise UserError(
            f"{run.path} was run by netns, in real time: no two runs of it are alike",
            "a kernel in virtual time can be verified: run it with -e kernel",
        )
    return run.meta.engine


def _scenario_of(run: Run) -> Scenario:
    file = run.path / SCENARIO
    scenario = loads(run.scenario_text, name=str(file), folder=run.path)
    if scenario.sweep:
        raise UserError(
            f"{file} sweeps: it is not what this Run was made of", "run the scenario again"
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


def _compared_table(recorded: Run, again: Run, seed: int, name: str) -> TableComparison:
    try:
        theirs = recorded.table(name, seed)
    except UserError as error:
        return TableComparison(seed, name, error.problem)
    ours = again.table(name, seed)
    if recorded.meta.format < FORMAT:
        # What an older format did not have is null, and not compared.
        had = [column for column in theirs.columns if theirs[column].null_count() < theirs.height]
        theirs, ours = theirs.select(had), ours.select(had)
    difference = first_difference(theirs, ours)
    if difference is not None:
        return TableComparison(seed, name, "a cell differs", difference)
    if theirs.height != ours.height:
        return TableComparison(seed, name, f"recorded {theirs.height} rows, now {ours.height}")
    return TableComparison(seed, name)


def first_difference(recorded: pl.DataFrame, now: pl.DataFrame) -> CellDifference | None:
    """The first cell that differs, of tables with the same columns, in the rows that both have;
    None: none does."""
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
