"""Groups of commands. Their help lists the commands by section, each with its first sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

import click

WHOLE = 1000
"""Characters; so large that click shortens no first sentence."""


class Verbs(MutableMapping[str, click.Command]):
    """Commands by name. `make` imports a command when it is first used.

    `others` returns the names of further commands. It is called when a name is not among `names`,
    and when all commands are listed.
    """

    def __init__(
        self,
        make: Callable[[str], click.Command],
        names: Iterable[str],
        others: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._make = make
        self._own: dict[str, click.Command | None] = dict.fromkeys(names)
        self._others = others

    def __getitem__(self, name: str) -> click.Command:
        if name not in self:
            raise KeyError(name)
        return self._own.get(name) or self._make(name)

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._own[name] = command

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in self._others() if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        # MutableMapping's own would import the command.
        return name in self._own or name in tuple(self._others())


class CommandGroup(click.Group):
    """A group of commands whose help lists them by section.

    `sections` returns the sections in their order, each with its commands. A command without a
    section is listed last. `examples` returns the lines that replace EXAMPLES in the help.
    """

    def __init__(
        self,
        *args: Any,
        sections: Callable[[], Mapping[str, tuple[str, ...]]] = dict,
        examples: Callable[[], Iterable[str]] = tuple,
        **settings: Any,
    ) -> None:
        self.examples = examples
        super().__init__(*args, **settings)
        self.sections = sections

    @property
    def help(self) -> str | None:
        """The help text, with the examples of the installed packages."""
        return self._help and re.sub(
            r"^( *)EXAMPLES\n",
            lambda found: "".join(f"{found[1]}{line}\n" for line in self.examples()),
            self._help,
            flags=re.MULTILINE,
        )

    @help.setter
    def help(self, text: str | None) -> None:
        self._help = text

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands by section. A sentence too long for one line is wrapped."""
        sections = self.sections()
        listed = {name for names in sections.values() for name in names}
        rest = tuple(name for name in self.commands if name not in listed)
        for title, names in {**sections, "Commands": rest}.items():
            commands = [self.commands[name] for name in names]
            rows = [
                (str(command.name), command.get_short_help_str(WHOLE).rstrip("."))
                for command in commands
                if not command.hidden
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
