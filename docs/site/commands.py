"""A page for each command, with the text of its --help, as in `sojourn man`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from sojourn.cli import cli, sections

FOLDER = "docs/commands"


def pages() -> dict[str, str]:
    root = click.Context(cli, info_name="sojourn")
    commands = {name: cli.commands[name] for names in sections().values() for name in names}
    made = {
        f"{FOLDER}/{name}.md": "\n".join(_page(command, root)) for name, command in commands.items()
    }
    return {f"{FOLDER}/index.md": "\n".join(_index(commands)), **made}


def _index(commands: dict[str, click.Command]) -> Iterator[str]:
    yield "# Commands\n"
    yield from _prose(cli.help or "")
    for section, names in sections().items():
        yield f"## {section}\n"
        yield "| command | |"
        yield "|---|---|"
        for name in names:
            yield f"| [sojourn {name}]({name}.md) | {_cell(commands[name].get_short_help_str(1000))} |"
        yield ""
    yield "```{toctree}\n:hidden:\n"
    yield from commands
    yield "```"


def _page(command: click.Command, parent: click.Context, level: int = 1) -> Iterator[str]:
    context = click.Context(command, info_name=command.name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"{'#' * level} {context.command_path}\n"
    yield f"```text\n{usage}\n```\n"
    yield from _prose(command.help or "")
    yield from _options(context)
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from _page(inner, context, level + 1)


def _options(context: click.Context) -> Iterator[str]:
    records = [
        record
        for parameter in context.command.get_params(context)
        if isinstance(parameter, click.Option)
        and "--help" not in parameter.opts
        and (record := parameter.get_help_record(context)) is not None
    ]
    if records:
        yield "| option | |"
        yield "|---|---|"
        yield from (f"| `{_bar(words)}` | {_cell(text)} |" for words, text in records)
        yield ""


def _prose(text: str) -> Iterator[str]:
    """Paragraphs; those that click keeps line by line (\\b) become code."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b"):
            kept = paragraph.removeprefix("\b").strip("\n")
            yield f"```text\n{inspect.cleandoc(kept)}\n```\n"
        else:
            yield _words(paragraph) + "\n"


def _cell(text: str) -> str:
    return _words(_bar(" ".join(text.split())))


def _bar(text: str) -> str:
    return text.replace("|", "\\|")


def _words(text: str) -> str:
    """Plain text without Markdown's markup, except that options are code."""
    plain = re.sub(r"([*_<>\[\]])", r"\\\1", text)
    return re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)", r"`\1`", plain) if "`" not in text else text
