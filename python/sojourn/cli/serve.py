"""`sojourn serve`: the server that `sojourn measure` measures with."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

import click

from sojourn.cli import options, rpm, work

PORT = 35_500
"""As `sojourn.live.measure.session.PORT`, which is slow to import."""
SECONDS, BYTES, STREAMS, CLIENTS = 1800, "100 GB", 64, 8
"""As `sojourn.live.measure.server.Caps`."""
MOST = 2**31 - 1
NS = 10**9


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


def _unit(parse: Callable[[str], int]) -> Callable[[click.Context, click.Parameter, str | None], int | None]:
    def read(_context: click.Context, _parameter: click.Parameter, given: str | None) -> int | None:
        return None if given is None else parse(given)

    return read


def _duration(given: str) -> int:
    from sojourn.units import parse_duration

    return parse_duration(given, example="10 min", days=True)


def _size(given: str) -> int:
    from sojourn.units import parse_size

    return parse_size(given, least=1)


def _cap(name: str, default: int, help: str) -> options.Option:
    return click.option(
        name, type=click.IntRange(1, MOST), default=default, show_default=True, metavar="N", help=help
    )


@click.command()
@click.option(
    "--bind",
    multiple=True,
    metavar="ADDRESS",
    callback=_addresses,
    help="Listen at this address of this host; may be repeated. 0.0.0.0 and :: are all of them. [default: loopback only]",
)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="TCP and UDP; 0: any."
)
@click.option(
    "--for",
    "span",
    metavar="TIME",
    callback=_unit(_duration),
    help="Stop after this time: --for 10min. [default: when told to]",
)
@click.option("--once", is_flag=True, help="Stop when the first client that came is gone.")
@_cap(
    "--seconds",
    SECONDS,
    "Seconds of load that a client may have in an hour, each direction counted by itself. With --rpm: that a connection lives. [300]",
)
@click.option(
    "--bytes",
    "size",
    metavar="SIZE",
    default=BYTES,
    show_default=True,
    callback=_unit(_size),
    help="How much may be sent and received for a client in an hour.",
)
@_cap("--streams", STREAMS, "TCP connections in one direction.")
@_cap("--clients", CLIENTS, "Sessions at once; a client may have a quarter of them.")
@options.secret("Let in only clients that have this secret (measure --secret).")
@options.quiet("Say nothing but errors.")
@rpm.serving
def serve(
    bind: tuple[str, ...],
    port: int,
    span: int | None,
    once: bool,
    seconds: int,
    size: int,
    streams: int,
    clients: int,
    secret: str,
    quiet: bool,
) -> None:
    """Take and give load, and turn probes round, for `sojourn measure HOST` on another host.

    Needs no root. Listens on loopback unless --bind says otherwise, grants each client (an IPv4 address, or an IPv6
    network of 64 bits) so much and no more, and stops at Ctrl-C or SIGTERM.

    \b
    sojourn serve --bind 0.0.0.0 --for 1h
    sojourn serve --once
    """
    from sojourn.live.measure.server import Caps, Server

    server = Server(bind, port, Caps(seconds, size, streams, clients), secret)
    for address, at in server.addresses:
        shown = f"[{address}]" if ":" in address else address
        # Data: whoever started it with --port 0 reads the port here.
        work.show(f"serving at {shown}:{at} (TCP and UDP)")
    if not bind:
        work.say("only this host can reach it; for others: --bind ADDRESS, 0.0.0.0 for all", quiet)
    tell: Any = None if quiet else work.say
    try:
        server.run(None if span is None else span / NS, once, tell)
    except KeyboardInterrupt:
        work.say("stopped", quiet)
