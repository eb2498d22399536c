"""`sojourn completion`: writes click's scripts that complete sojourn's commands in a shell."""

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
"""The file that each shell reads for a user: a variable with a folder, the default folder in the
home folder, and the file in that folder."""


@click.command()
@click.argument("shell", type=click.Choice(list(_PLACES)))
@click.option(
    "--install", is_flag=True, help="Write the script where SHELL reads it, instead of printing it."
)
@options.one(options.TalkOptions, "quiet")
def completion(shell: str, install: bool, quiet: bool) -> None:
    """Make a shell complete sojourn's commands and options.

    Prints a script for SHELL: bash (4.4 or later, with the package bash-completion), zsh or fish.
    With --install, the script is written for this user's new shells.

    \b
    sojourn completion bash --install
    source <(sojourn completion bash)          this shell only
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    kind = get_completion_class(shell)
    assert kind is not None, "click completes all three shells"
    script = kind(root.command, {}, "sojourn", "_SOJOURN_COMPLETE").source()
    if not install:
        work.show(script)
        return
    file = place(*_PLACES[shell])
    work.write_below_home(file, script + "\n")
    more = (
        f"; add {file.parent} to fpath before compinit" if shell == "zsh" else "; new shells use it"
    )
    work.say(f"wrote {file}{more}", quiet)


def place(variable: str, usual: str, file: str) -> Path:
    """A user's own file, by the XDG base directories."""
    folder = os.environ.get(variable, "")
    return (Path(folder) if folder else Path.home() / usual) / file
