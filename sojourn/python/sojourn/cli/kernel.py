"""`sojourn kernel`: makes the guests of the engine `kernel`, and shows their state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sojourn.cli import options, work
from sojourn.cli.grouped import CommandGroup

if TYPE_CHECKING:
    from sojourn.engine.kernel.guest import Name, SetupProgress


@click.group(cls=CommandGroup)
def kernel() -> None:
    """Make the guests that run the real Linux kernel.

    The engine `kernel` needs a guest. It needs no root and installs nothing.
    """


@kernel.command("setup")
@click.option(
    "--guest",
    type=click.Choice(["uml", "qemu"]),
    default="uml",
    show_default=True,
    help="uml: built once from Debian's kernel source, in about four minutes. qemu: Debian's kernel as it is.",
)
@click.option(
    "--linux",
    type=click.Choice(["6.12", "7.3"]),
    default="6.12",
    show_default=True,
    help="The kernel of the guest uml. 7.3 is for the engine kernel-7.3.",
)
@click.option(
    "--programs",
    is_flag=True,
    help="Make the guest for scenarios with programs: the guest uml of Linux 6.12 with more features. The usual guest stays.",
)
@click.option(
    "--from",
    "given",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Take packages (.deb) from this folder before downloading any.",
)
@click.option("--again", is_flag=True, help="Make the guest again, from the newest package.")
@options.one(options.TalkOptions, "quiet")
def setup_(
    guest: str, linux: str, programs: bool, given: Path | None, again: bool, quiet: bool
) -> None:
    """Make a guest, once, and start it to check that it runs here."""
    from sojourn.engine.kernel.guest import PROGRAMS, RELEASES, setup
    from sojourn.errors import UserError

    usual, *_ = RELEASES
    if guest == "qemu" and linux != usual.name:
        raise UserError(
            f"the guest qemu is Debian's stock kernel, and Debian has none of Linux {linux}",
            f"build the guest uml instead: sojourn kernel setup --linux {linux}",
        )
    if programs and (guest == "qemu" or linux != PROGRAMS.name):
        raise UserError(
            f"the guest for programs is the guest uml of Linux {PROGRAMS.name}",
            f"make it: {PROGRAMS.setup}",
        )
    built = (
        PROGRAMS.guest if programs else next(each.guest for each in RELEASES if each.name == linux)
    )
    name: Name = "qemu" if guest == "qemu" else built
    with work.progress(quiet, _step) as update:
        made = setup(name, update, given, again)
    work.say(f"ready: {made.source}, in {made.folder}", quiet)


@kernel.command("status")
def status() -> None:
    """Show which guests are ready, and why the others are not. Exit status 1 if none is ready."""
    from sojourn.engine.kernel.guest import NAMES, WHAT, ready

    usable = False
    for name in NAMES:
        state = ready(name)
        usable = usable or not state.why_not
        work.show(f"{name}: {state.why_not or 'ready'}")
        if state.guest:
            work.show(f"  {state.guest.source}, fingerprint {state.guest.fingerprint}")
            work.show(f"  {state.guest.folder}")
        else:
            work.show(f"  {WHAT[name]}")
    if not usable:
        raise click.exceptions.Exit(1)


def _step(p: SetupProgress) -> work.Step:
    return work.Step(p.doing, p.fraction, p.fraction >= 1)
