"""Commands of commands, whose help lists them by trade, each with its whole first sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

import click

WHOLE = 1000
"""Characters: no first sentence is cut."""


class Verbs(MutableMapping[str, click.Command]):
    """Commands by name, some of which are made when they are looked at."""

    def __init__(self, make: Callable[[str], click.Command], names: Iterable[str]) -> None:
        self._make = make
        self._known: dict[str, click.Command | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> click.Command:
        command = self._known[name]
        if command is None:
            command = self._known[name] = self._make(name)
        return command

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, name: object) -> bool:
        # Without making it.
        return name in self._known


class Trade(click.Group):
    """A group of commands. `trades`: what to list them under, and which, by name and in this order;
    the others are listed last."""

    def __init__(
        self, *args: Any, trades: Mapping[str, tuple[str, ...]] | None = None, **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.trades = trades or {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click has it, by trade; and a sentence that is too long for a line goes on in the
        next."""
        listed = {name for names in self.trades.values() for name in names}
        rest = tuple(name for name in self.commands if name not in listed)
        for trade, names in {**self.trades, "Commands": rest}.items():
            commands = [self.commands[name] for name in names]
            rows = [
                (str(command.name), command.get_short_help_str(WHOLE).rstrip("."))
                for command in commands
                if not command.hidden
            ]
            if rows:
                with formatter.section(trade):
                    formatter.write_dl(rows)
