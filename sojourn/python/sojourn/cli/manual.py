"""`sojourn man`: the manual page, made from the help texts.

One page for all commands, in man(7)'s macros. The texts are those of --help.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from sojourn.cli import options, work
from sojourn.cli.completion import place
from sojourn.cli.grouped import CommandGroup

_PLACE = ("XDG_DATA_HOME", ".local/share", "man/man1/sojourn.1")


@click.command()
@click.option(
    "--install", is_flag=True, help="Write the page where man reads it, instead of printing it."
)
@options.one(options.TalkOptions, "quiet")
def man(install: bool, quiet: bool) -> None:
    """Write the manual page of all commands.

    \b
    sojourn man --install; man sojourn
    sojourn man | man -l -                     without installing it
    """
    page = "\n".join(lines(click.get_current_context().find_root())) + "\n"
    if not install:
        work.show(page.rstrip("\n"))
        return
    file = place(*_PLACE)
    work.write_below_home(file, page)
    work.say(f"wrote {file}", quiet)


def lines(root: click.Context) -> Iterator[str]:
    """The lines of the page. `root` is the context of the program."""
    from sojourn._core import VERSION

    program = root.command
    assert isinstance(program, CommandGroup), "the root is the whole command line"
    name = str(root.info_name)
    about = program.get_short_help_str(1000).rstrip(".")
    yield f'.TH {name.upper()} 1 "" "{name} {VERSION}" "User commands"'
    yield from (".SH NAME", f"{name} \\- {_plain(about)}")
    yield from (".SH SYNOPSIS", ".B " + _plain(name), "[OPTION]... COMMAND [ARGUMENT]...")
    yield from (".SH DESCRIPTION", *_prose(program.help or ""))
    yield from _options(root)
    for section, names in program.sections().items():
        yield f".SH {_plain(section.upper())}"
        for each in names:
            yield from _command(program.commands[each], root)


def _command(command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=command.name, parent=parent)
    words = " ".join(command.collect_usage_pieces(context))
    yield f".SS {_plain(f'{context.command_path} {words}')}"
    yield from _prose(command.help or "")
    yield from _options(context)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _command(inner, context)


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context)
        # Arguments are in the usage line, and the prose describes them.
        if (
            record is not None
            and isinstance(parameter, click.Option)
            and "--help" not in parameter.opts
        ):
            yield from (".TP", f".B {_plain(record[0])}", _plain(record[1]))


def _prose(help: str) -> Iterator[str]:
    """Paragraphs. Those that click keeps line by line (\\b) keep their lines."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(help)):
        kept = paragraph.startswith("\b")
        yield ".PP"
        if kept:
            yield ".nf"
        yield from (_plain(line) for line in paragraph.removeprefix("\b").strip("\n").splitlines())
        if kept:
            yield ".fi"


def _plain(words: str) -> str:
    """Text for roff, with escapes and requests disabled."""
    words = words.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{words}" if words.startswith((".", "'")) else words
