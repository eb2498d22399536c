"""`sojourn export`: writes a Run for other programs."""

from pathlib import Path

import click

from sojourn import extras
from sojourn.cli import options, work
from sojourn.defaults import FLENT_TESTS
from sojourn.errors import UserError

CAPTURE = ".pcapng"
ENDINGS = (".flent.gz", ".flent", ".csv", ".json", CAPTURE)
"""The endings that export writes. sojourn-live writes all but captures."""


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "-o", "--out", "files", multiple=True, required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="The file to write, by its ending: .flent.gz, .flent, .csv (all samples), .json (results and all samples), or .pcapng for a simulation with recorded headers. May be repeated.",
)  # fmt: skip
@click.option(
    "--phase", metavar="NAME", help="flent: the load. [default: both, else upload, else download]"
)
@click.option(
    "--repeat",
    type=click.IntRange(min=0),
    metavar="N",
    help="flent: the repeat. [default: the first]",
)
@click.option(
    "--test",
    type=click.Choice(FLENT_TESTS),
    default="auto",
    show_default=True,
    help="flent: the name of the test; rrul calls four unmarked streams BE, BK, CS5 and EF.",
)
@click.option(
    "--pcap-seed",
    type=click.IntRange(min=0),
    metavar="N",
    help=".pcapng: the seed. [default: the first]",
)
@options.one(options.TalkOptions, "quiet")
def export(
    path: Path,
    files: tuple[Path, ...],
    phase: str | None,
    repeat: int | None,
    test: str,
    pcap_seed: int | None,
    quiet: bool,
) -> None:
    """Write a measurement for flent, as CSV or JSON, or a simulation's packets for Wireshark."""
    from sojourn.records import Run

    run = Run.open(path)
    from sojourn.records import pcapng

    if not run.seeds:
        raise UserError(f"{run.path}: no repeat has finished", "measure again")
    for file in files:
        if not file.name.endswith(ENDINGS):
            raise UserError(
                f"{file}: no format has this ending", f"use one of {', '.join(ENDINGS)}"
            )
        work.check_parent(file)
    for file in files:
        if file.suffix == CAPTURE:
            work.write(file, pcapng.capture(run, run.seeds[0] if pcap_seed is None else pcap_seed))
        else:
            writer = extras.measurements(f"{file}: writing {file.suffix}")
            writer.export(run, file, phase=phase, repeat=repeat, test=test)
        work.say(f"wrote {file}", quiet)
