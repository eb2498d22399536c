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


LEAST_SECRET = 8
"""Characters. A proof that is overheard can be tried against guesses at leisure."""


def _secret(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
    if not given.startswith("@"):
        word = given
    else:
        try:
            word = Path(given[1:]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise click.BadParameter(f"can't read {given[1:]}: {why}") from None
        if not word:
            raise click.BadParameter(f"{given[1:]} is empty")
    if word and len(word) < LEAST_SECRET:
        raise click.BadParameter(
            f"a secret has {LEAST_SECRET} characters at least: openssl rand -hex 16 makes one"
        )
    return word


def secret(help: str) -> Option:
    """A word, or the file that holds it. The environment keeps it from other users of this host, who see command lines."""
    return click.option(
        "--secret",
        metavar="WORD|@FILE",
        default="",
        envvar="SOJOURN_SECRET",
        callback=_secret,
        help=f"{help} @FILE: what the file holds. [default: the environment's SOJOURN_SECRET]",
    )


def server(host: str, port: int | None) -> tuple[str, int]:
    """Where a verb's HOST and --port say that the server is."""
    from sojourn.live.measure.session import PORT, endpoint

    host, own = endpoint(host)
    if own is not None and port is not None and own != port:
        raise click.UsageError(f"HOST says port {own} and --port {port}: give one of them")
    return host, own or port or PORT


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
