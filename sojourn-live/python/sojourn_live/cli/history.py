"""`sojourn history`: the measurements of `sojourn measure --every` as a table."""

from pathlib import Path

import click

from sojourn.cli import options, text, work
from sojourn_live.cli import every


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@options.one(options.TalkOptions, "as_json")
def history(folder: Path, as_json: bool) -> None:
    """Print the measurements of a line over days, a line each.

    FOLDER is the output folder of `sojourn measure --every`. Times are in this host's time zone. A
    load's added delay is the 95th percentile of the RTT less the idle median, in ms. The grade is
    that of DSLReports.
    """
    from sojourn_live.measure import over_days as kept

    entries = kept.read(folder)
    if as_json:
        work.show(text.as_json({"measurements": [entry.to_dict() for entry in entries]}, "history"))
        return
    for line in (every.header(), *(every.row(entry) for entry in entries)):
        work.show(line)
