"""Commands of commands, whose help lists them by trade, each with its whole first sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

import click

WHOLE = 1000
"""Characters: no first sentence is cut."""


class Verbs(MutableMapping[str, click.Command]):
    """Commands by name, which `make` imports when they are looked at. `others` returns the names of
    further ones, and is asked when a name is not among the first, or when all are listed."""

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
        # Without making it.
        return name in self._own or name in tuple(self._others())


class Trade(click.Group):
    """A group of commands. `trades` returns what to list them under, and which, by name and in this
    order; the others are listed last. `examples` returns the lines for EXAMPLES in its help."""

    def __init__(
        self,
        *args: Any,
        trades: Callable[[], Mapping[str, tuple[str, ...]]] = dict,
        examples: Callable[[], Iterable[str]] = tuple,
        **settings: Any,
    ) -> None:
        self.examples = examples
        super().__init__(*args, **settings)
        self.trades = trades

    @property
    def help(self) -> str | None:
        """What it is for, with the examples of the packages that are there now."""
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
        """As click has it, by trade; and a sentence that is too long for a line goes on in the
        next."""
        trades = self.trades()
        listed = {name for names in trades.values() for name in names}
        rest = tuple(name for name in self.commands if name not in listed)
        for trade, names in {**trades, "Commands": rest}.items():
            commands = [self.commands[name] for name in names]
            rows = [
                (str(command.name), command.get_short_help_str(WHOLE).rstrip("."))
                for command in commands
                if not command.hidden
            ]
            if rows:
                with formatter.section(trade):
                    formatter.write_dl(rows)
