"""Prints a sweep for `sojourn run` and `sojourn compare`: a heading, one table, and the legend."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, text, work
from sojourn.digits import counted

if TYPE_CHECKING:
    from sojourn.judgement import Judgement
    from sojourn.records import Run
    from sojourn.sweeps.grid import Grid


def check(table: options.TableOptions, scenarios: int, as_json: bool) -> None:
    """Refuses options that do not fit the table, before anything has run."""
    if not table.given:
        return
    if as_json:
        raise click.UsageError("--json prints everything: --format and --columns need a table")
    if scenarios > 1:
        raise click.UsageError("--format and --columns print the table of one scenario: name one")
    if table.form == "parquet" and sys.stdout.isatty():
        raise click.UsageError(
            "--format parquet is binary: send it to a file, such as > cells.parquet"
        )
    from sojourn.sweeps import grid

    grid.check(table.columns)


def show(
    runs: Sequence[Run], table: options.TableOptions, quiet: bool, link: str | None = None
) -> Judgement:
    """Prints the table of these Runs. The text format also has a heading and a legend; the other
    formats are alone on stdout."""
    from sojourn.cli import grid_text
    from sojourn.sweeps.grid import of_runs

    grid = of_runs(runs, link)
    assert grid.judgement is not None, "Runs are judged"
    width = shutil.get_terminal_size((grid_text.LEAST_WIDTH, 24)).columns
    if table.form == "parquet":
        work.show_bytes(grid_text.parquet(grid, table.columns))
        return grid.judgement
    if table.form not in (None, "table"):
        work.show(grid_text.rendered(grid, table.form or "table", table.columns))
        return grid.judgement
    shown = grid.selected(table.columns) or grid_text.fitting(grid, width)
    written = grid_text.rendered(grid, "table", [one.key for one in shown], width)
    for refused in filter(None, map(work.refusal, runs)):
        work.show(refused)
    work.show(f"{_heading(grid, runs)}\n\n{written}\n")
    _explain(grid, written)
    if more := grid_text.left_out(grid, shown):
        work.say(f"more columns: --columns {','.join(more)}", quiet)
    return grid.judgement


def _heading(grid: Grid, runs: Sequence[Run]) -> str:
    """The title, duration and number of seeds."""
    first = runs[0].meta
    parts = []
    if len({(run.meta.duration_ns, run.meta.warmup_ns) for run in runs}) == 1:
        parts.append(f"{first.duration_ns / 1e9:g} s, {first.warmup_ns / 1e9:g} s warm-up left out")
    counts = sorted({len(cell.at.summary.seeds) for cell in grid.cells})
    samples = max(cell.at.summary.samples for cell in grid.cells)
    seeds = counted(counts, "seed")
    parts.append(f"{seeds}, mean ±95 % interval" if samples > 1 else seeds)
    count = f"{len(grid.cells)} {'cell' if len(grid.cells) == 1 else 'cells'}"
    titles = ", ".join(dict.fromkeys(run.meta.title for run in runs))
    return f"{titles}\n{count}; {'; '.join(parts)}"


def _explain(grid: Grid, written: str) -> None:
    """Prints the legend of the table's signs."""
    if text.BEST in written:
        work.show("* better than every other with the same link and traffic, by the 95 % interval")
        work.show("  of the difference")
    if any(sign in written for sign in "≤≥"):
        work.show(text.RANGES)
    if max(cell.at.summary.samples for cell in grid.cells) == 1 and any(
        len(cell.at.summary.seeds) > 1 for cell in grid.cells
    ):
        from sojourn.judgement.words import alike_seeds

        work.show(alike_seeds(max(len(cell.at.summary.seeds) for cell in grid.cells)))
