"""Options that several verbs take, each told once. Their help says what of each verb is its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from sojourn.cli.work import ENGINES, MOST_SEEDS, SEEDS_END

Verb = Callable[..., Any]
Option = Callable[[Verb], Verb]


def together(options: Sequence[Option]) -> Option:
    """Several options as one, in the order in which --help shows them."""

    def given(verb: Verb) -> Verb:
        for option in reversed(options):
            verb = option(verb)
        return verb

    return given


# ------------------------------------------------------------------------------------------------- what is kept and said


def out(help: str) -> Option:
    return click.option("-o", "--out", type=click.Path(path_type=Path), metavar="DIR", help=help)


def force(help: str) -> Option:
    return click.option("--force", is_flag=True, help=help)


def as_json(help: str = "Print one JSON object instead of a table.") -> Option:
    return click.option("--json", "as_json", is_flag=True, help=help)


def quiet(help: str = "No progress and no talk; data and errors only.") -> Option:
    return click.option("-q", "--quiet", is_flag=True, help=help)


# ------------------------------------------------------------------------------------------------------------ scenarios


def seeds(help: str) -> Option:
    return click.option("--seeds", type=click.IntRange(1, MOST_SEEDS), metavar="N", help=help)


def engine(help: str, names: Sequence[str] = ENGINES) -> Option:
    return click.option(
        "-e", "--engine", type=click.Choice(names), default=names[0], show_default=True, help=help
    )


def jobs(help: str = "Threads. [default: one per core]") -> Option:
    return click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help=help)


seed = click.option(
    "--seed",
    type=click.IntRange(0, SEEDS_END - 1),
    metavar="N",
    help="Run this seed instead of the scenario's.",
)
seeds_of_a_run = seeds(
    "Run N seeds, counted up from the scenario's (or --seed); tables show mean and 95 % interval."
)
changes = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="KEY=VALUE",
    help='Change the scenario: --set bottleneck.rate="5 Mbit/s". May be repeated.',
)
running = together(
    (
        seed,
        seeds_of_a_run,
        changes,
        engine("What runs it: sojourn list engines."),
        jobs("Threads; netns has one. [default: one per core]"),
        force("Replace Runs that are already in the output folder."),
        as_json(),
        quiet(),
    )
)
"""What running scenarios takes, whatever the verb."""


# ----------------------------------------------------------------------------------------------- a line, and its server

port = click.option(
    "--port",
    type=click.IntRange(1, 65535),
    metavar="N",
    help="The server's. [default: that of sojourn serve]",
)


def streams(help: str) -> Option:
    return click.option(
        "-n",
        "--streams",
        type=click.IntRange(1, 128),
        default=4,
        show_default=True,
        metavar="N",
        help=help,
    )


def congestion(whose: str) -> Option:
    return click.option(
        "--cc", metavar="NAME", help=f"Congestion control of {whose}. [default: each host's own]"
    )


def length(default: str, help: str) -> Option:
    return click.option("-l", "--length", default=default, show_default=True, metavar="TIME", help=help)


def repeats(most: int, default: int, help: str | None = None) -> Option:
    return click.option(
        "-r",
        "--repeats",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        metavar="N",
        help=help,
    )
