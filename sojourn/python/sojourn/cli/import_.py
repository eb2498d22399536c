"""`sojourn import`: files of other programs, as Runs, scenarios and traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, work
from sojourn.errors import UserError

if TYPE_CHECKING:
    from sojourn.formats import Content, Format, Measurement, Texts


@click.command("import")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@options.block(
    options.OutputOptions,
    out="Folder of the Run, or file of the scenario; with several FILEs, a folder for all of them. [default: runs/<file> for a Run, <file>.toml for a scenario]",
)
@options.one(options.TalkOptions, "quiet")
def import_(paths: tuple[Path, ...], output: options.OutputOptions, quiet: bool) -> None:
    """Read files of other programs, whatever they are.

    A measurement (flent, irtt, iperf3, ping, SmokePing, ...) becomes a Run, which report, compare
    and export take like one of our own. The format is found out by the content; files may be
    packed by gzip, bzip2, xz or zstd. `sojourn list formats` shows what is read.
    """
    for path in paths:
        work.check_there(path, "give a file that another program wrote; `sojourn list formats`")
    from sojourn import formats

    for path in paths:
        content = formats.open_file(path)
        found, result = formats.read(content)
        if isinstance(result, formats.Texts):
            _write(content, result, output, several=len(paths) > 1, quiet=quiet)
        else:
            _measured(content, found, result, output, several=len(paths) > 1, quiet=quiet)


def _stem(content: Content) -> str:
    """The name of the result: that of the file, without its endings."""
    from sojourn.figures import slug

    name = content.name
    for ending in (".flent", ".json", ".txt", ".csv", ".xml", ".log", ".out", ".conf"):
        name = name.removesuffix(ending)
    return slug(name)


def _measured(
    content: Content, found: Format, measurement: Measurement, output: options.OutputOptions, *, several: bool, quiet: bool
) -> None:  # fmt: skip
    from sojourn import extras, formats
    from sojourn.records.measurement import MeasurementSettings

    name = _stem(content)
    folder = (
        work.unused(Path("runs") / name)
        if output.out is None
        else output.out / name
        if several
        else output.out
    )
    with formats.damage_named(content, found):
        run = measurement.run(
            content.path, content.data, MeasurementSettings(out=folder, force=output.force)
        )
    if any(package.measurements for package in extras.installed()):
        work.show(extras.read_measurements([run]).text(run))
    else:
        work.show("\n".join([run.meta.title, *run.meta.facts["1"]["notes"]]))
        work.say(f"its numbers and its page: {extras.install('live')}", quiet)
    work.say(f"wrote {folder}; as a page: sojourn report {folder}", quiet)


def _write(
    content: Content, texts: Texts, output: options.OutputOptions, *, several: bool, quiet: bool
) -> None:
    """Writes a scenario or a trace, and prints which parts of the file are not in it."""
    folder = output.out if several and output.out is not None else Path()
    name = _stem(content)
    first = next(iter(texts.files))
    if output.out is not None and not several:
        folder, name = output.out.parent, output.out.name.removesuffix(first)
    files = {
        folder / f"{name}{ending}": text.replace("{stem}", name)
        for ending, text in texts.files.items()
    }
    for file in files:
        work.check_parent(file)
        if file.exists() and not output.force:
            raise UserError(f"{file} is there already", "give another -o, or --force to replace it")
    for file, text in files.items():
        work.write(file, text)
    for sentence in texts.taken:
        work.show(sentence)
    for sentence in texts.left_out:
        work.say(f"note: {sentence}", quiet)
    work.say(f"wrote {', '.join(map(str, files))}", quiet)
    if texts.use:
        work.say(texts.use.format(file=next(iter(files)), stem=folder / name), quiet)
