"""`sojourn serve`: the server that `sojourn measure` measures with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from sojourn.cli import options, work
from sojourn_live.cli import line_options
from sojourn_live.defaults import Caps

MOST = 2**31 - 1
NS = 10**9


def _cap(name: str, default: int, help: str) -> Any:
    return options.option(
        name,
        type=click.IntRange(1, MOST),
        default=default,
        show_default=True,
        metavar="N",
        help=help,
    )


@dataclass(frozen=True)
class CapOptions:
    """Limits of a client, except for bytes."""

    seconds: int = _cap(
        "--seconds",
        Caps.seconds,
        "Seconds of load that a client may have in an hour, counted for each direction.",
    )
    streams: int = _cap("--streams", Caps.streams, "TCP connections in one direction.")
    clients: int = _cap(
        "--clients", Caps.clients, "Sessions at once; a client may have a quarter of them."
    )
    secret: str = line_options.secret(
        "Let in only clients that have this secret (measure --secret)."
    )


@click.command()
@options.block(line_options.ListenOptions)
@click.option("--once", is_flag=True, help="Stop when the first client has left.")
@options.block(CapOptions)
@options.one(options.TalkOptions, "quiet")
def serve(listen: line_options.ListenOptions, once: bool, cap: CapOptions, quiet: bool) -> None:
    """Send and receive load, and echo probes, for measure.

    `sojourn measure HOST` needs this server on HOST. It needs no root. It listens on loopback by
    default (see --bind), limits each client (an IPv4 address, or an IPv6 /64), and stops at Ctrl-C
    or SIGTERM.

    \b
    sojourn serve --bind 0.0.0.0 --for 1h
    sojourn serve --once
    """
    from sojourn_live.measure.server import Server

    caps = Caps(cap.seconds, listen.size, cap.streams, cap.clients)
    server = Server(listen.bind, listen.port, caps, cap.secret)
    for address, at in server.addresses:
        shown = f"[{address}]" if ":" in address else address
        # On stdout: a program that gave --port 0 reads the port here.
        work.show(f"serving at {shown}:{at} (TCP and UDP)")
    if not listen.bind:
        work.say("only this host can reach it; for others: --bind ADDRESS, 0.0.0.0 for all", quiet)
    report: Any = None if quiet else work.say
    try:
        server.run(None if listen.span is None else listen.span / NS, once, report)
    except KeyboardInterrupt:
        work.say("stopped", quiet)
