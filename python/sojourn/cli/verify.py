"""`sojourn verify`: Runs run again, every table compared with the recorded one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work

if TYPE_CHECKING:
    from sojourn.engine.verify import TableComparison, Verification

DIFFERS = 1
MOST_TOLD = 3
"""Lines of a seed that say what differs."""


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@options.one(options.ExecutionOptions, "jobs")
@options.block(options.TalkOptions)
def verify(paths: tuple[Path, ...], jobs: int | None, talk: options.TalkOptions) -> None:
    """Run Runs again and compare every table with the recorded one.

    Tables are compared cell by cell.

    RUN is the folder of a Run, or of a comparison or sweep: then all its Runs. Ends with 1 if a
    table differs, with 2 if a Run can't be run again: a measurement, a Run of netns, a kernel whose
    guest is not there.
    """
    from sojourn.engine.verify import verify as verified
    from sojourn.records import Run

    runs = [run for path in paths for run in Run.find(path)]
    with work.progress(talk.quiet) as progress:
        found = verified(runs, jobs=jobs, progress=progress)
    equal = all(one.equal for one in found)
    if talk.as_json:
        work.show(
            text.as_json({"equal": equal, "runs": [one.to_dict() for one in found]}, "verify")
        )
    else:
        work.show("\n".join(map(described, found)))
    if not equal:
        raise click.exceptions.Exit(DIFFERS)


def described(one: Verification) -> str:
    """What became of a Run: why it may differ, and of each seed how many tables do and the first of
    them."""
    run, meta = one.run, one.run.meta
    lines = [f"{run.path}: {'every table is equal' if one.equal else 'DIFFERS'}"]
    if one.same_scenario is False:
        lines.append(
            "  scenario.toml is not what was run: its text, or what it means, has changed since"
        )
    engine = f"  engine {meta.engine}, {_build(one)}"
    if one.same_build is False:
        lines.append(engine)
    for seed in run.seeds:
        tables = [table for table in one.tables if table.seed == seed]
        apart = [table for table in tables if not table.equal]
        lines.append(f"  seed {seed}: {len(tables) - len(apart)} of {len(tables)} tables are equal")
        lines += _told(apart)
    if one.meta:
        lines.append(f"  meta.json differs in: {', '.join(one.meta)}")
    missing = sorted(set(meta.seeds_asked) - set(run.seeds))
    if missing:
        lines.append(f"  not finished, and not run again: seed {text.ranges(missing)}")
    if one.same_build is not False:
        lines.append(engine)
    return "\n".join(lines)


def _told(apart: Sequence[TableComparison]) -> list[str]:
    """The first tables that differ, those of which the same is to be said in one line."""
    tables: dict[str, list[str]] = {}
    for table in apart:
        tables.setdefault(_difference(table), []).append(table.table)
    lines = [f"    {', '.join(names)}: {words}" for words, names in tables.items()]
    more = [name for names in list(tables.values())[MOST_TOLD:] for name in names]
    return lines[:MOST_TOLD] + ([f"    and {len(more)} more: {', '.join(more)}"] if more else [])


def _difference(table: TableComparison) -> str:
    first = table.difference
    if first is None:
        return table.why
    return f"row {first.row}, {first.column}: recorded {_value(first.recorded)}, now {_value(first.now)}"


def _value(value: float | str | None) -> str:
    return "nothing" if value is None else str(value)


def _build(one: Verification) -> str:
    if one.same_build is None:
        return f"build {one.build} now; which build made the Run is not recorded"
    if one.same_build:
        return f"build {one.build}, the same"
    return f"build {one.build} now, another than the {one.run.meta.engine_build} that made the Run"
