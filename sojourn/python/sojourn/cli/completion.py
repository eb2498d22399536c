"""`sojourn completion`: what makes a shell complete our commands and options. The scripts are
click's own."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sojourn.cli import options, work

_PLACES = {
    "bash": ("XDG_DATA_HOME", ".local/share", "bash-completion/completions/sojourn"),
    "zsh": ("XDG_DATA_HOME", ".local/share", "zsh/site-functions/_sojourn"),
    "fish": ("XDG_CONFIG_HOME", ".config", "fish/completions/sojourn.fish"),
}
"""Where each shell looks for a user's own: a variable, what holds without it (in the home folder),
and the file in there."""


@click.command()
@click.argument("shell", type=click.Choice(list(_PLACES)))
@click.option(
    "--install", is_flag=True, help="Write it where SHELL looks for it, instead of printing it."
)
@options.one(options.TalkOptions, "quiet")
def completion(shell: str, install: bool, quiet: bool) -> None:
    """Make a shell complete our commands and options.

    Prints a script for SHELL: bash (4.4 or later, with the package bash-completion), zsh or fish.
    With --install it is kept for new shells of this user.

    \b
    sojourn completion bash --install
    source <(sojourn completion bash)          this shell only
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    kind = get_completion_class(shell)
    assert kind is not None, "click has all three"
    script = kind(root.command, {}, "sojourn", "_SOJOURN_COMPLETE").source()
    if not install:
        work.show(script)
        return
    file = place(*_PLACES[shell])
    work.write_below_home(file, script + "\n")
    more = (
        f"; have {file.parent} in fpath before compinit"
        if shell == "zsh"
        else "; new shells have it"
    )
    work.say(f"wrote {file}{more}", quiet)


def place(variable: str, usual: str, file: str) -> Path:
    """A user's own file, by the XDG base directories."""
    folder = os.environ.get(variable, "")
    return (Path(folder) if folder else Path.home() / usual) / file
