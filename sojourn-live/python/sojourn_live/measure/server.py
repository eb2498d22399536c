"""The server of measuring sessions: `sojourn serve`. The work is done in crates/live."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict

from sojourn import linux_only as linux_only
from sojourn_live import _live
from sojourn_live.defaults import PORT, Caps
from sojourn_live.measure.session import LiveError


class Server:
    """A server whose sockets are bound. `run` serves; `stop` ends `run` from any thread.

    `bind`: addresses of this host; empty: loopback, IPv4 and IPv6. `port`: TCP and UDP; 0: any free
    port. `secret`: only sessions of a plan with the same secret are admitted; "": all are.

    Raises:
        LiveError: an address can't be bound.
    """

    def __init__(
        self, bind: Sequence[str] = (), port: int = PORT, caps: Caps | None = None, secret: str = ""
    ) -> None:
        options = {
            "bind": list(bind),
            "port": port,
            "caps": asdict(caps or Caps()),
            "secret": secret,
        }
        try:
            self._server = _live.Server(json.dumps(options))
        except _live.MeasureError as error:
            problem, hint = error.args
            raise LiveError(problem, hint) from None

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The bound addresses: (address, port)."""
        return self._server.addresses

    def run(
        self,
        seconds: float | None = None,
        once: bool = False,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Serves until `stop`, for `seconds`, or (`once`) until the first client has left.

        `report` is called with a line for each session that begins and ends, and once an hour for a
        client that is refused.
        """
        self._server.run(seconds, once, report)

    def stop(self) -> None:
        """Ends `run` soon; a later `run` returns at once. May be called any number of times. The
        server can't be started again."""
        self._server.stop()
