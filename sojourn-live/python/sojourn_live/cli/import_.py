"""`sojourn import`: measurements that flent or sojourn-probe made, as Runs."""

from pathlib import Path

import click

from sojourn.cli import options, work
from sojourn_live.cli import measurement_text


@click.command("import")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@options.block(
    options.OutputOptions,
    out="Folder of the Run; of several files a folder of them. [default: runs/<file>]",
)
@options.one(options.TalkOptions, "quiet")
def import_(paths: tuple[Path, ...], output: options.OutputOptions, quiet: bool) -> None:
    """Make Runs of files of flent and sojourn-probe, and say what they hold.

    FILE is flent's .flent.gz, or the .json of `sojourn-probe measure -o`. sojourn report, compare
    and export then take them like measurements of our own.
    """
    for path in paths:
        work.check_there(path, "give a file of flent or of sojourn-probe measure -o")
    from sojourn.figures import slug
    from sojourn_live import flent
    from sojourn_live.measure import findings, measurement, probe_file

    out = output.out
    for path in paths:
        name = path.name
        for ending in (".gz", ".bz2", ".flent", probe_file.SUFFIX):
            name = name.removesuffix(ending)
        name = slug(name)
        read = probe_file.read if probe_file.is_one(path) else flent.read
        folder = (
            work.unused(Path("runs") / name)
            if out is None
            else out
            if len(paths) == 1
            else out / name
        )
        run = read(path, measurement.MeasurementSettings(out=folder, force=output.force))
        work.show(measurement_text.text_of(findings.find(run)))
        work.say(f"wrote {folder}; as a page: sojourn report {folder}", quiet)
