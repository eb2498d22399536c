"""The command line: one file per verb.

Data goes to stdout, messages go to stderr. Exit status 0: fine; 1: a check failed; 2: wrong input,
reported in two lines (error, hint); 130: Ctrl-C. Anything else is a bug in sojourn and shows its
traceback. A verb is imported when it is called, and a slow module when a verb needs it. So `sojourn
--help` answers at once.
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
        "show",
        "bundle",
        "import",
        "look",
        "export",
    ),
    "The real kernel": ("agree", "replay", "kernel", "clean"),
    "A live line": (),
    "This program": ("cache", "completion", "man"),
}
"""The verbs of this package, by section. `sections` adds those of other packages."""
PLACES = {
    "cache": "cached:cache",
    "import": "import_:import_",
    "list": "list:list_",
    "man": "manual:man",
}
"""`file:function` of each verb whose file or function is not named like the verb."""


def sections() -> dict[str, tuple[str, ...]]:
    """The verbs of every installed package, by section of `--help`."""
    merged = dict(SECTIONS)
    for package in extras.installed():
        for section, verbs in package.verbs.items():
            merged[section] = (*merged.get(section, ()), *verbs)
    return {section: names for section, names in merged.items() if names}


def _others() -> dict[str, str]:
    """The verbs of other packages: by name, the module and function of each."""
    return {
        verb: place
        for package in extras.installed()
        for verbs in package.verbs.values()
        for verb, place in verbs.items()
    }


def _verb(name: str) -> click.Command:
    """Imports the verb of this name."""
    if any(name in names for names in SECTIONS.values()):
        file, _, attribute = PLACES.get(name, f"{name}:{name}").partition(":")
        place = f"sojourn.cli.{file}:{attribute}"
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
    """Runs the command line and exits.

    SIGTERM and SIGHUP act like Ctrl-C: finished seeds are kept, and temporary files are removed.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        # `nohup` has set SIGHUP to be ignored; it stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    # With this setting polars' allocator returns freed memory at once, so a run of a thousand flows
    # needs a fifth less memory. The allocator reads the variable when it is loaded.
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
    sys.exit(status(arguments))


def status(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit status."""
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
        work.say(error.message())
        return WRONG_INPUT
    return result if isinstance(result, int) else 0
