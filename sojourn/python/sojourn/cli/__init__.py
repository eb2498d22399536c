"""The command line: one file per verb.

Data goes to stdout, talk to stderr. Exit 0: fine; 1: a check failed; 2: wrong input, said in two
lines (error, hint); 130: Ctrl-C. Anything else is a bug of ours and shows its traceback. A verb is
imported when it is asked for, and what is slow to import by the verb that needs it, so that
`sojourn --help` answers at once.
"""

import os
import signal
import sys
from collections.abc import Sequence

import click

from sojourn import extras
from sojourn.cli import usage, work
from sojourn.cli.grouped import CommandGroup, Verbs
from sojourn.errors import UserError

CTRL_C = 130
WRONG_INPUT = 2


def _version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from sojourn._core import VERSION

        click.echo(f"sojourn {VERSION}")
        context.exit()


SECTIONS = {
    "Experiments": (
        "run",
        "compare",
        "advise",
        "evaluate",
        "check",
        "report",
        "lab",
        "list",
        "verify",
        "bundle",
        "export",
    ),
    "Held against reality": ("agree", "replay", "kernel", "clean"),
    "A live line": (),
    "This program": ("cache", "completion", "man"),
}
"""The verbs of this package, by what they are for. Other packages add theirs (`sections`)."""
PLACES = {
    "cache": "cached:cache",
    "list": "list:list_",
    "man": "manual:man",
}
"""The file and the name in it of a verb that is not in the file of its name, by its name."""


def sections() -> dict[str, tuple[str, ...]]:
    """The verbs of every package that is installed, by what they are for."""
    whole = dict(SECTIONS)
    for package in extras.installed():
        for section, verbs in package.verbs.items():
            whole[section] = (*whole.get(section, ()), *verbs)
    return {section: names for section, names in whole.items() if names}


def _others() -> dict[str, str]:
    """Where the verbs of other packages are, by name."""
    return {
        verb: place
        for package in extras.installed()
        for verbs in package.verbs.values()
        for verb, place in verbs.items()
    }


def _verb(name: str) -> click.Command:
    """The verb of this name, imported when it is asked for."""
    if any(name in names for names in SECTIONS.values()):
        file, _, found = PLACES.get(name, f"{name}:{name}").partition(":")
        place = f"sojourn.cli.{file}:{found}"
    else:
        place = _others()[name]
    verb: click.Command = extras.load(place)
    return verb


@click.group(
    cls=CommandGroup,
    sections=sections,
    examples=lambda: [each.example for each in extras.installed() if each.example],
    commands=Verbs(_verb, [name for names in SECTIONS.values() for name in names], _others),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version.",
)
def cli() -> None:
    """A bufferbloat laboratory: queues under TCP in a packet simulator and in the real Linux kernel.

    \b
    sojourn run home-uplink
    sojourn compare home-uplink -o demo
    EXAMPLES

    Exit status: 0 fine; 1 a check failed; 2 wrong input; 130 interrupted.
    """


@click.command("help", hidden=True)
@click.argument("verbs", nargs=-1, metavar="[COMMAND]...")
def help_(verbs: tuple[str, ...]) -> None:
    """Show the help of a command."""
    cli.main(args=[*verbs, "--help"], prog_name="sojourn", standalone_mode=False)


@click.command(hidden=True)
def version() -> None:
    """Show the version."""
    cli.main(args=["--version"], prog_name="sojourn", standalone_mode=False)


cli.add_command(help_)
cli.add_command(version)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and exits. Being told to end, or a terminal that goes away, is like
    Ctrl-C: what is finished is kept, nothing is left behind.
    """
    for told in (signal.SIGTERM, signal.SIGHUP):
        # What `nohup` has made it ignore, it ignores.
        if signal.getsignal(told) is not signal.SIG_IGN:
            signal.signal(told, signal.default_int_handler)
    # Memory that polars frees goes back at once: a fifth less at the peak of a run of a thousand
    # flows. Read by its allocator when it is loaded, hence here.
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
    sys.exit(status(arguments))


def status(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; its exit status."""
    try:
        result = cli.main(args=arguments, prog_name="sojourn", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return WRONG_INPUT
    except click.ClickException as error:
        click.echo(usage.words(error), err=True)
        return WRONG_INPUT
    except (click.Abort, KeyboardInterrupt):
        work.say("interrupted")
        return CTRL_C
    except UserError as error:
        work.say(error.told())
        return WRONG_INPUT
    return result if isinstance(result, int) else 0
