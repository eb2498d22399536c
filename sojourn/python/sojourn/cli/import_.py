"""`sojourn import`: files of other programs, as Runs, scenarios and traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, work
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.formats import Content, Format, Measurement, Texts
    from sojourn.records import Run


def _unit(word: str) -> tuple[str, str]:
    """Parses COLUMN=UNIT."""
    column, _, unit = word.rpartition("=")
    if not column or not unit:
        raise UserError(f"{word!r} is not COLUMN=UNIT", "write --unit dl_rate=kbps")
    return column, unit


def _span(word: str) -> tuple[int, int]:
    """Parses FROM..TO."""
    ends = options.time_range(word, what="a time", example="10s")
    if len(ends) != 2 or ends[0] >= ends[1]:
        raise UserError(f"{word!r} is not FROM..TO", "write --time 10s..70s")
    return ends[0], ends[1]


TIME = click.option(
    "--time",
    "span",
    metavar="FROM..TO",
    callback=options.placed(_span),
    help="Read this part of a capture only, from its first packet: 10s..70s.",
)


@click.command("import")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@options.block(
    options.OutputOptions,
    out="Folder of the Run, or file of the scenario; with several FILEs, a folder for all of them. [default: runs/<file> for a Run, <file>.toml for a scenario]",
)
@TIME
@click.option(
    "--unit",
    "units",
    multiple=True,
    metavar="COLUMN=UNIT",
    callback=options.placed(_unit),
    help="The unit of a table's column whose name has none: bps, kbps, mbps, gbps, us, ms or s. May be repeated.",
)
@options.one(options.TalkOptions, "quiet")
def import_(
    paths: tuple[Path, ...],
    output: options.OutputOptions,
    span: tuple[int, int] | None,
    units: tuple[tuple[str, str], ...],
    quiet: bool,
) -> None:
    """Read files of other programs, whatever they are.

    A measurement (flent, irtt, iperf3, ping, SmokePing, ...) becomes a Run, which report, compare
    and export take like one of our own. The format is found out by the content; files may be
    packed by gzip, bzip2, xz or zstd. `sojourn list formats` shows what is read. Nothing is written
    unless every file can be read.

    FILE may also be the folder of a Run whose scenario has programs: then the measurements that
    they printed are read.
    """
    for path in paths:
        work.check_there(path, "give a file that another program wrote; `sojourn list formats`")
    from sojourn import formats
    from sojourn.formats.file_series import unique_names

    if len(dict(units)) < len(units):
        raise UserError("two units are given for one column", "give --unit once for each column")
    named = [each for path in paths for each in _contents(path)]
    contents = [replace(content, units=dict(units), span_ns=span) for content, _ in named]
    results = [formats.read(content) for content in contents]
    kinds = [found for found, _ in results]
    for option, given, takes, things in (
        ("--unit", units, [found.takes_units for found in kinds], "tables of a line"),
        ("--time", span, [found.takes_time for found in kinds], "captures"),
    ):
        if given and not any(takes):
            raise UserError(
                f"{option} is for {things}, and {paths[0]} is of the format {kinds[0].name}",
                "leave it out",
            )
    names = unique_names((name for _, name in named), between="-")
    several = len(contents) > 1
    writers: list[Callable[[], None]] = []
    for content, (found, result), name in zip(contents, results, names, strict=True):
        if isinstance(result, formats.Texts):
            files = _files(result, name, output, several=several)
            writers.append(partial(_write, files, result, quiet))
        else:
            folder = run_folder(name, output, several=several)
            writers.append(partial(_measured, content, found, result, folder, output.force, quiet))
    for write in writers:
        write()


def _contents(path: Path) -> list[tuple[Content, str]]:
    """The content to import, each with the name of its result: the file itself, or, for a Run, the
    measurements that its programs printed."""
    from sojourn import formats, guest_programs
    from sojourn.figures import slug
    from sojourn.records import Run

    if not path.is_dir():
        content = formats.open_file(path)
        return [(content, stem(content))]
    run = Run.open(path)
    records = [(seed, guest_programs.read(run, seed)) for seed in run.seeds]
    found = []
    for seed, record in records:
        for program in record.programs if record else ():
            content = formats.open_file(run.path / f"seed-{seed}" / program.output)
            if formats.is_measurement(content):
                name = slug(program.name)
                found.append((content, f"{name}-seed-{seed}" if len(records) > 1 else name))
    if not found:
        raise UserError(
            f"{path}: no program of this Run printed a measurement that sojourn reads",
            "a Run itself needs no import; let a program print a format that `sojourn list formats` shows, like iperf3 -J or irtt -o -",
        )
    return found


def stem(content: Content) -> str:
    """The name of the result: the file's name without its endings."""
    from sojourn.figures import slug

    name = content.name
    for ending in (
        ".flent",
        ".json",
        ".txt",
        ".csv",
        ".xml",
        ".log",
        ".out",
        ".conf",
        ".pcapng",
        ".pcap",
        ".cap",
    ):
        name = name.removesuffix(ending)
    return slug(name)


def run_folder(name: str, output: options.OutputOptions, *, several: bool) -> Path:
    """The folder for a Run. Refuses a folder that may not be replaced."""
    from sojourn.records import MEASUREMENT, check_vacant

    if output.out is None:
        return work.unused(Path("runs") / name)
    folder = output.out / name if several else output.out
    check_vacant(folder, MEASUREMENT, force=output.force)
    return folder


def _measured(
    content: Content, found: Format, measurement: Measurement, folder: Path, force: bool, quiet: bool
) -> None:  # fmt: skip
    from sojourn import formats
    from sojourn.records.measurement import MeasurementSettings

    with formats.damage_named(content, found):
        run = measurement.run(content, MeasurementSettings(out=folder, force=force))
    show(run, folder, quiet)


def show(run: Run, folder: Path, quiet: bool) -> None:
    """Prints a measurement that was read, and where it is."""
    from sojourn import extras

    if any(package.measurements for package in extras.installed()):
        work.show(extras.read_measurements([run]).text(run))
    else:
        work.show("\n".join([run.meta.title, *run.meta.facts["1"]["notes"]]))
        work.say(f"its numbers and its page: {extras.install('live')}", quiet)
    work.say(f"wrote {folder}; as a page: sojourn report {folder}", quiet)


def _files(
    texts: Texts, name: str, output: options.OutputOptions, *, several: bool
) -> dict[Path, str]:
    """The text of each file to write. -o is a folder if there are several inputs, or if it is one
    already."""
    folder = output.out or Path()
    if output.out is not None and not several and not output.out.is_dir():
        folder, name = output.out.parent, output.out.name.removesuffix(next(iter(texts.files)))
    if several:
        work.make_folder(folder)
    files = {
        folder / f"{name}{ending}": text.replace("{stem}", name)
        for ending, text in texts.files.items()
    }
    for file in files:
        work.check_parent(file)
        if file.exists() and not output.force:
            raise UserError(f"{file} is there already", "give another -o, or --force to replace it")
    return files


def _write(files: dict[Path, str], texts: Texts, quiet: bool) -> None:
    """Writes a scenario or a trace, and prints which parts of the source are not in it."""
    first = next(iter(files))
    stem = first.with_name(first.name.removesuffix(next(iter(texts.files))))
    written: list[Path] = []
    for ending, data in texts.binary.items():
        file = stem.with_name(stem.name + ending.partition("/")[0]) / ending.partition("/")[2]
        work.make_folder(file.parent)
        work.write(file, data)
        written.append(file.parent)
    for file, text in files.items():
        work.write(file, text)
    written = [*files, *dict.fromkeys(written)]
    for sentence in texts.taken:
        work.show(sentence)
    for sentence in texts.left_out:
        work.say(f"note: {sentence}", quiet)
    work.say(f"wrote {', '.join(map(str, written))}", quiet)
    if texts.use:
        work.say(texts.use.format(file=first, stem=stem), quiet)
