"""`sojourn report`: writes one self-contained HTML page from Runs."""

from pathlib import Path

import click

from sojourn.cli import work
from sojourn.errors import UserError


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("report.html"),
    show_default=True,
    metavar="FILE",
    help="The page.",
)
def report(paths: tuple[Path, ...], out: Path) -> None:
    """Write one self-contained HTML page from Runs.

    RUN is the folder of a Run, or of a comparison or sweep with all its Runs.
    """
    from sojourn.records import Run

    runs = [run for path in paths for run in Run.find(path)]
    for run in runs:
        if not run.seeds:
            raise UserError(f"{run.path}: no seed has finished", "run it again")
    from sojourn import report as pages

    work.say(f"wrote {pages.write(runs, out)}")
    work.invalid(runs)
