"""`sojourn bundle`: writes Runs and pages to one zip, with a manifest to check it by."""

from __future__ import annotations

from pathlib import Path

import click

from sojourn.cli import options, work
from sojourn.errors import UserError


@click.command()
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR..."
)
@click.option(
    "-o", "--out", required=True, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.zip",
    help="The zip. The same files give the same bytes.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Replace FILE.zip if it is there.")
@options.one(options.TalkOptions, "quiet")
def bundle(folders: tuple[Path, ...], out: Path, force: bool, quiet: bool) -> None:
    """Make one zip of Runs, for an archive.

    DIR is the folder of a Run, of a comparison or sweep, or a folder that `sojourn reproduce` wrote.
    The zip has a manifest: the SHA-256 of every file, the scenario, seeds and engine build of every
    Run, and the versions of the software. `sojourn verify FILE.zip` checks it and runs it again.
    """
    from sojourn import bundles

    if out.suffix != ".zip":
        raise click.BadParameter(f"{out} does not end in .zip", param_hint="-o")
    work.check_parent(out)
    if out.exists() and not force:
        raise UserError(f"{out} already exists", "choose another name, or replace it with --force")
    manifest = bundles.pack(folders, out)
    size = sum(each.bytes for each in manifest.files.values())
    work.say(
        f"wrote {out}: {len(manifest.runs)} Runs, {len(manifest.files)} files, {size / 1e6:.1f} MB; "
        f"to check it: sojourn verify {out}",
        quiet,
    )
