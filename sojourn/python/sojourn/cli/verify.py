"""`sojourn verify`: checks files against their manifest, runs Runs again and compares every
table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sojourn import sanitize
from sojourn.cli import options, text, work
from sojourn.digits import counted
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.bundles import FileDifference, Manifest
    from sojourn.engine.verify import TableComparison, Verification
    from sojourn.records import Run

DIFFERS = 1
MOST_DIFFERENCES = 3
"""Lines of differences printed for each seed."""
MOST_FILES = 10
"""Files printed one by one."""


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@click.option("--sums", is_flag=True, help="Check the SHA-256 of the files only; run nothing.")
@options.one(options.ExecutionOptions, "jobs")
@options.block(options.ProgramOptions)
@options.block(options.TalkOptions)
def verify(
    paths: tuple[Path, ...],
    sums: bool,
    jobs: int | None,
    program: options.ProgramOptions,
    talk: options.TalkOptions,
) -> None:
    """Check the files of Runs, run them again and compare every table.

    PATH is the folder of a Run, or of a comparison or sweep with all its Runs. Or PATH has a
    manifest: a zip of `sojourn bundle`, a folder of `sojourn reproduce`, or a manifest.json. Then
    its files are checked against the manifest, and its Runs run again if all files match.

    Tables are compared cell by cell. Exit status 1 if a table or file differs, 2 if a Run can't be
    run again: a measurement, a Run of netns, a kernel whose guest is missing. If there is a
    manifest, such Runs are left out.
    """
    from sojourn.engine.verify import is_repeatable, scenario_of
    from sojourn.engine.verify import verify as verified

    with contextlib.ExitStack() as stack:
        given = [stack.enter_context(_opened(path)) for path in paths]
        runs = [run for one in given for run in one.runs if not one.listed or is_repeatable(run)]
        found: Sequence[Verification] = []
        if runs and not sums:
            for run in filter(is_repeatable, (each for each in runs if each.seeds)):
                work.permit([scenario_of(run)], run.meta.engine, program.allowed)
            with work.progress(talk.quiet) as progress:
                found = verified(runs, jobs=jobs, progress=progress)
        lists = [one for one in given if one.listed]
        damaged = {one.path: _damaged(one) for one in given} if sums else {}
        differences = [line for lines in damaged.values() for line in lines]
        equal = (
            not differences
            and all(one.equal for one in found)
            and not any(one.apart for one in lists)
        )
        if talk.as_json:
            whole = {
                "equal": equal,
                "manifests": [one.to_dict() for one in lists],
                "damaged": differences,
                "runs": [one.to_dict() for one in found],
            }
            work.show(text.as_json(whole, "verify"))
        else:
            described = _described_paths(given, found, damaged if sums else None)
            work.show("\n".join([*described, *differences]))
    if not equal:
        raise click.exceptions.Exit(DIFFERS)


# ------------------------------------------------------------------------------------- the paths


@dataclass(frozen=True)
class _Given:
    """An opened PATH."""

    path: Path
    runs: Sequence[Run]
    """The Runs to run again."""
    listed: Manifest | None = None
    apart: Sequence[FileDifference] = ()
    """The files that differ from the manifest."""

    def to_dict(self) -> dict[str, Any]:
        assert self.listed is not None
        return {
            "path": str(self.path),
            "equal": not self.apart,
            "files": len(self.listed.files),
            "runs": len(self.listed.runs),
            "versions": dict(self.listed.versions),
            "differences": [{"name": one.name, "why": one.why} for one in self.apart],
        }


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[_Given]:
    from sojourn import bundles
    from sojourn.records import INDEX, META, Run

    file = path / bundles.MANIFEST
    if path.is_dir() and (
        (path / META).is_file() or not file.is_file() or (path / INDEX).is_file()
    ):
        yield _Given(path, Run.find(path))
        return
    if path.suffix == ".toml":
        raise UserError(
            f"{path} is a scenario, and verify needs a Run of it",
            f"run it first: sojourn run {path} -o DIR, then sojourn verify DIR",
        )
    if path.is_file() and path.suffix != ".json":
        with bundles.unpacked(path) as (folder, manifest, apart):
            yield _with_manifest(path, folder, manifest, apart)
        return
    file = file if path.is_dir() else path
    manifest = bundles.read(_content(file), str(file))
    yield _with_manifest(path, file.parent, manifest, bundles.compare(file.parent, manifest))


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise click.BadParameter(
            f"can't read {file}: {error.strerror or error}", param_hint="PATH"
        ) from None


def _damaged(given: _Given) -> list[str]:
    """The files of Runs without a manifest that differ from the Runs' own checksums."""
    from sojourn.engine.verify import check_tables

    found = []
    for run in () if given.listed else given.runs:
        try:
            check_tables(run)
        except UserError as error:
            found.append(f"{error.problem}: DIFFERS")
    return found


def _with_manifest(
    path: Path, folder: Path, manifest: Manifest, apart: Sequence[FileDifference]
) -> _Given:
    from sojourn import bundles

    # A damaged Run is not run again: a difference would show nothing.
    runs = [] if apart else list(bundles.runs_in(folder, manifest.files).values())
    return _Given(path, runs, manifest, apart)


# ---------------------------------------------------------------------------------------- in words


def _described_paths(
    given: Sequence[_Given],
    found: Sequence[Verification],
    sums: Mapping[Path, Sequence[str]] | None,
) -> Iterator[str]:
    again = {id(one.run): one for one in found}
    for one in given:
        mine = [again[id(run)] for run in one.runs if id(run) in again]
        if one.listed is None:
            yield from map(described, mine)
            if sums is not None and not sums[one.path]:
                yield from (f"{run.path}: every file matches its checksum" for run in one.runs)
            continue
        yield from _described_files(one, one.listed)
        # A manifest can list hundreds of Runs: equal ones are only counted.
        yield from (described(each) for each in mine if not each.equal)
        if not one.apart and sums is None:
            yield _described_runs(one, mine)


def _described_files(one: _Given, listed: Manifest) -> Iterator[str]:
    from sojourn import bundles

    if one.apart:
        yield f"{one.path}: DIFFERS from its manifest, so no Run of it was run again"
        yield from (sanitize.plain(f"  {each.name}: {each.why}") for each in one.apart[:MOST_FILES])
        if len(one.apart) > MOST_FILES:
            yield f"  and {len(one.apart) - MOST_FILES} more"
    else:
        yield f"{one.path}: all {len(listed.files)} files match the manifest"
    now = bundles.now()
    others = [
        f"{name} {version} (now {now.get(name, 'none')})"
        for name, version in listed.versions.items()
        if now.get(name) != version
    ]
    if others:
        yield sanitize.plain(f"  made with {', '.join(others)}")


def _described_runs(one: _Given, again: Sequence[Verification]) -> str:
    seeds = sum(len(each.run.seeds) for each in again)
    differ = sum(not each.equal for each in again)
    left = len(one.runs) - len(again)
    words = f"  {counted([len(again)], 'Run')}, {counted([seeds], 'seed')}, run again: "
    words += f"{differ} DIFFER" if differ else "every table is equal"
    return words + (f"; {left} measured in real time, which can't be run again" if left else "")


def described(one: Verification) -> str:
    """The result of a Run: possible reasons for a difference; for each seed the number of equal
    tables and the first differences."""
    run, meta = one.run, one.run.meta
    lines = [f"{run.path}: {'every table is equal' if one.equal else 'DIFFERS'}"]
    if one.same_scenario is False:
        lines.append(
            "  scenario.toml differs from the scenario of this Run: its text or its meaning has changed"
        )
    lines += [f"  {file}, which a program read, has changed" for file in one.changed_files]
    if one.same_twice is False:
        lines.append(
            f"  two runs of seed {run.seeds[0]} differ now: a program depends on something other than the seed"
        )
    engine = f"  engine {meta.engine}, {_build(one)}"
    if one.same_build is False:
        lines.append(engine)
    for seed in run.seeds:
        tables = [table for table in one.tables if table.seed == seed]
        apart = [table for table in tables if not table.equal]
        lines.append(f"  seed {seed}: {len(tables) - len(apart)} of {len(tables)} tables are equal")
        lines += _described_tables(apart)
    if one.meta:
        lines.append(f"  meta.json differs in: {', '.join(one.meta)}")
    missing = sorted(set(meta.seeds_asked) - set(run.seeds))
    if missing:
        lines.append(f"  not finished, so not run again: seed {text.ranges(missing)}")
    if one.same_build is not False:
        lines.append(engine)
    return "\n".join(lines)


def _described_tables(apart: Sequence[TableComparison]) -> list[str]:
    """The first differences; tables with the same difference share a line."""
    tables: dict[str, list[str]] = {}
    for table in apart:
        tables.setdefault(_difference(table), []).append(table.table)
    lines = [f"    {', '.join(names)}: {words}" for words, names in tables.items()]
    more = [name for names in list(tables.values())[MOST_DIFFERENCES:] for name in names]
    rest = [f"    and {len(more)} more: {', '.join(more)}"] if more else []
    return lines[:MOST_DIFFERENCES] + rest


def _difference(table: TableComparison) -> str:
    first = table.difference
    if first is None:
        return table.why
    return f"row {first.row}, {first.column}: recorded {_value(first.recorded)}, now {_value(first.now)}"


def _value(value: float | str | None) -> str:
    return "nothing" if value is None else str(value)


def _build(one: Verification) -> str:
    if one.same_build is None:
        return f"build {one.build} now; the build that made the Run is not recorded"
    if one.same_build:
        return f"build {one.build}, the same"
    return f"build {one.build} now, but {one.run.meta.engine_build} made the Run"
