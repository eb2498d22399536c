"""`sojourn import`: measurements that flent made, as Runs."""

from pathlib import Path

import click

from sojourn.cli import options, verdict, work


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.flent.gz...")
@options.out("Folder of the Run; of several files a folder of them. [default: runs/<file>]")
@options.force("Replace a Run that is already there.")
@options.quiet("No talk; data and errors only.")
def import_(paths: tuple[Path, ...], out: Path | None, force: bool, quiet: bool) -> None:
    """Make Runs of flent's files, and say what they hold.

    sojourn report, compare and export then take them like measurements of our own.
    """
    from sojourn.figures import slug
    from sojourn.live import flent
    from sojourn.live.measure import findings, measurement

    for path in paths:
        name = slug(path.name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".flent"))
        folder = work.unused(Path("runs") / name) if out is None else out if len(paths) == 1 else out / name
        run = flent.read(path, measurement.MeasurementOptions(out=folder, force=force))
        work.show(verdict.text_of(findings.find(run)))
        work.say(f"wrote {folder}; as a page: sojourn report {folder}", quiet)
