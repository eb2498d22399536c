"""Commands of commands, whose help lists them by trade, each with its whole first sentence."""

from __future__ import annotations

from typing import Any

import click

WHOLE = 1000
"""Characters: no first sentence is cut."""


class Trade(click.Group):
    """A group of commands. `trades`: what to list them under, and which, in this order; the others
    are listed last."""

    def __init__(
        self,
        *args: Any,
        trades: dict[str, tuple[click.Command, ...]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.trades = trades or {}
        for commands in self.trades.values():
            for command in commands:
                self.add_command(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click has it, by trade; and a sentence that is too long for a line goes on in the
        next."""
        listed = {command.name for commands in self.trades.values() for command in commands}
        rest = tuple(command for name, command in self.commands.items() if name not in listed)
        for trade, commands in {**self.trades, "Commands": rest}.items():
            rows = [
                (str(command.name), command.get_short_help_str(WHOLE).rstrip("."))
                for command in commands
                if not command.hidden
            ]
            if rows:
                with formatter.section(trade):
                    formatter.write_dl(rows)
