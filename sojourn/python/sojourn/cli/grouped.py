"""Commands of commands, whose help lists them by trade, each with its whole first sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

import click

WHOLE = 1000
"""Characters: no first sentence is cut."""


class Verbs(MutableMapping[str, click.Command]):
    """Commands by name, some of which are made when they are looked at. `others` returns the names of
    further ones, and is asked when a name is not among the first, or when all are listed."""

    def __init__(
        self,
        make: Callable[[str], click.Command],
        names: Iterable[str],
        others: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._make = make
        self._known: dict[str, click.Command | None] = dict.fromkeys(names)
        self._others = others

    def __getitem__(self, name: str) -> click.Command:
        if name not in self:
            raise KeyError(name)
        command = self._known[name]
        if command is None:
            command = self._known[name] = self._make(name)
        return command

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        self._ask()
        return iter(self._known)

    def __len__(self) -> int:
        self._ask()
        return len(self._known)

    def __contains__(self, name: object) -> bool:
        # Without making it.
        if name not in self._known:
            self._ask()
        return name in self._known

    def _ask(self) -> None:
        others, self._others = self._others, tuple
        for name in others():
            self._known.setdefault(name, None)


class Trade(click.Group):
    """A group of commands. `trades` returns what to list them under, and which, by name and in this
    order; the others are listed last."""

    def __init__(
        self,
        *args: Any,
        trades: Callable[[], Mapping[str, tuple[str, ...]]] = dict,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.trades = trades

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
