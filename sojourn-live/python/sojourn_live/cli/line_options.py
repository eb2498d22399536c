"""Options that several verbs of live lines take: a server, the load on a line, the addresses at
which our servers listen."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sojourn.cli.options import option
from sojourn_live.defaults import PORT, Caps

LEAST_SECRET = 8
"""The fewest characters of a secret. Somebody who captures a client's proof can try guesses against
it offline."""


def _secret(_context: click.Context, _parameter: click.Parameter, given: str) -> str:
    if not given.startswith("@"):
        word = given
    else:
        try:
            word = Path(given[1:]).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise click.BadParameter(f"can't read {given[1:]}: {why}") from None
        if not word:
            raise click.BadParameter(f"{given[1:]} is empty")
    if word and len(word) < LEAST_SECRET:
        raise click.BadParameter(
            f"a secret has at least {LEAST_SECRET} characters: openssl rand -hex 16 makes one"
        )
    return word


def secret(help: str) -> Any:
    """The option --secret: a word, or the file that contains it. Other users of this host see its
    command lines but not its environment, hence SOJOURN_SECRET."""
    return option(
        "--secret",
        metavar="WORD|@FILE",
        default="",
        envvar="SOJOURN_SECRET",
        callback=_secret,
        help=f"{help} @FILE reads it from a file. [default: the environment's SOJOURN_SECRET]",
    )


BESIDE = click.option(
    "--beside",
    "runs",
    multiple=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="RUN",
    help="Show a measurement's probes as well, also those of a file that `sojourn import` read. May be repeated.",
)
"""The option --beside, for the monitor's page and its graph."""


@dataclass(frozen=True)
class ServerOptions:
    """Options for the server at the other end of a line; HOST is an argument."""

    port: int | None = option(
        "--port",
        type=click.IntRange(1, 65535),
        metavar="N",
        help="The server's port. [default: that of sojourn serve]",
    )
    secret: str = secret("The server's secret, if it has one.")

    def of(self, host: str) -> tuple[str, int]:
        """The server's host and port, from HOST and --port."""
        from sojourn_live.measure.session import endpoint

        host, own = endpoint(host)
        if own is not None and self.port is not None and own != self.port:
            raise click.UsageError(
                f"HOST has port {own} and --port is {self.port}: give one of them"
            )
        return host, own or self.port or PORT


@dataclass(frozen=True)
class LoadOptions:
    """The load on a line."""

    streams: int = option(
        "-n",
        "--streams",
        type=click.IntRange(1, 128),
        default=4,
        show_default=True,
        metavar="N",
        help="TCP connections in each loaded direction.",
    )
    cc: str | None = option(
        "--cc",
        metavar="NAME",
        help="Congestion control of the senders. [default: each host's own]",
    )
    length: str = option(
        "-l",
        "--length",
        default="10 s",
        show_default=True,
        metavar="TIME",
        help="Length of each loaded phase.",
    )
    repeats: int = option(
        "-r",
        "--repeats",
        type=click.IntRange(1, 1000),
        default=1,
        show_default=True,
        metavar="N",
        help="Number of repeats of the measurement. Each repeat is a seed of the Run.",
    )


def _addresses(
    _context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    for address in given:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise click.BadParameter(
                f"{address!r} is not an IP address; give one of this host's, or 0.0.0.0 or :: for all"
            ) from None
    return given


def _unit(
    parse: Callable[[str], int],
) -> Callable[[click.Context, click.Parameter, str | None], int | None]:
    def read(_context: click.Context, _parameter: click.Parameter, given: str | None) -> int | None:
        return None if given is None else parse(given)

    return read


def _duration(given: str) -> int:
    from sojourn.units import parse_duration

    return parse_duration(given, example="10 min", days=True)


def _size(given: str) -> int:
    from sojourn.units import parse_size

    return parse_size(given, example="100 GB", least=1)


@dataclass(frozen=True)
class ListenOptions:
    """The addresses at which a server of ours listens, and how long it runs."""

    bind: tuple[str, ...] = option(
        "--bind",
        multiple=True,
        metavar="ADDRESS",
        callback=_addresses,
        help="Listen at this address of this host; 0.0.0.0 and :: are all of them. May be repeated. [default: loopback only]",
    )
    port: int = option(
        "--port",
        type=click.IntRange(0, 65_535),
        default=PORT,
        show_default=True,
        metavar="N",
        help="The port, for TCP and UDP; 0: any free port.",
    )
    span: int | None = option(
        "--for",
        metavar="TIME",
        callback=_unit(_duration),
        help="Stop after this time: --for 10min. [default: run until Ctrl-C or SIGTERM]",
    )
    size: int = option(
        "--bytes",
        metavar="SIZE",
        default=f"{Caps.bytes // 10**9} GB",
        show_default=True,
        callback=_unit(_size),
        help="Bytes that may be sent and received for a client in an hour.",
    )
