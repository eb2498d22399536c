"""The compiled part of sojourn-live: probes, sessions and servers of live lines. Only VERSION and
BUILD exist on other systems than Linux."""

from collections.abc import Callable
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from sojourn.arrays import Columns

VERSION: str
BUILD: str
"""A digest of the Rust sources that it was built from."""

class MeasureError(Exception):
    """Nothing could be measured or served. args: (problem and place, hint)."""

@final
class Server:
    """Serves `measure`: sends and receives load, and echoes probes. The constructor binds the
    sockets.

    `options_json`: {bind: [address, ...], port (0: any), caps: {seconds, bytes, streams, clients}
    (crates/live/src/caps.rs), secret ("": none)}; all keys are required. Raises MeasureError if an
    address can't be bound, ValueError if the JSON has another form.
    """

    def __new__(cls, options_json: str) -> Self: ...
    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The bound addresses: (address, port)."""

    def run(
        self,
        seconds: float | None = None,
        once: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """Serves, the GIL released, until `stop`, for `seconds`, or (`once`) until the first client
        has left.

        `tell` is called with a line for each client that arrives or leaves. Raises
        KeyboardInterrupt on Ctrl-C in the main thread.
        """

    def stop(self) -> None:
        """Ends `run` within half a second; a later `run` returns at once. May be called from any
        thread, any number of times. The server can't be started again."""

def measure(
    plan_json: str,
    reached: Callable[[int, int, str], bool] | None = None,
    keep: Callable[[dict[str, Columns], str], None] | None = None,
) -> tuple[dict[str, Columns], str]:
    """One measuring session, the GIL released. Returns tables, and facts as JSON;
    `sojourn_live.measure.planned.Session` describes both.

    `plan_json` is a `sojourn_live.measure.planned.SessionPlan`. `reached` is called about ten times
    a second with (time reached in ns, total in ns, phase). If it returns False, or on Ctrl-C in the
    main thread, the session ends and its data so far is returned. `keep` is called after each
    phase, and now and then in a long one, with the data so far in the form of the result. Raises
    MeasureError if nothing could be measured, ValueError if the JSON is not a plan, and any
    exception of `reached` and `keep`.
    """

def endpoint(text: str) -> tuple[str, int | None]:
    """Host and port of HOST, HOST:PORT, an IPv6 address, or [ADDRESS]:PORT. Raises MeasureError for
    any other text."""

@final
class RpmServer:
    """Serves clients of draft-ietf-ippm-responsiveness over HTTP/2 and TLS, on its own threads, as
    soon as it is constructed.

    `options_json`: {at: ["address:port", ...] (port 0: any), names: [host, ...] (for its
    certificate), identity: [chain, key] (PEM files) or null (made at start), seconds (longest life
    of a connection), bytes (limit of a client in an hour), connections (limit of a client at
    once)}; all keys are required (crates/rpm/src/server.rs). Raises MeasureError if it can't listen
    or can't read its certificate, ValueError if the JSON has another form.
    """

    def __new__(cls, options_json: str) -> Self: ...
    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The addresses at which it listens: (address, port)."""

    @property
    def certificate(self) -> str | None:
        """Its certificate as PEM, if it was made at start."""

    def served(self) -> dict[str, int]:
        """Counts: connections (open now), accepted, refused (accepted, but closed because of the
        limit), requests, sent_bytes, received_bytes."""

    def run(self, seconds: float | None = None, tell: Callable[[str], None] | None = None) -> None:
        """Waits until `stop` or for `seconds`, the GIL released. `tell` is called with a line when
        a client first connects in an hour, is refused, or has used up its bytes. Raises
        KeyboardInterrupt on Ctrl-C in the main thread; the server keeps serving until `stop`."""

    def stop(self) -> None:
        """Ends every connection and frees the port. May be called from any thread, any number of
        times."""

def measure_rpm(
    plan_json: str,
    reached: Callable[[int, int, str, int, float], bool] | None = None,
    keep: Callable[[dict[str, Columns], str], None] | None = None,
) -> tuple[dict[str, Columns], str]:
    """One measurement of responsiveness, the GIL released: tables, and facts as JSON.
    `sojourn_live.measure.responsiveness` describes both.

    `plan_json` is a `sojourn_live.rpm.RpmPlan`. `reached` is called about ten times a second. Its
    arguments are (time reached in ns, phase from 0, the quantity that must become stable, intervals
    of this phase, goodput of the last second in bit/s). If it returns False, or on Ctrl-C in the
    main thread, the measurement ends and its data so far is returned. `keep` is called after each
    phase but the last with the data so far in the form of the result. Raises MeasureError if
    nothing could be measured, ValueError if the JSON is not a plan, and any exception of `reached`
    and `keep`.
    """

LOSSES: list[str]
"""Reasons why a probe has no reply. A Prober's column `loss` has indices of this list."""

@final
class Prober:
    """Probes several targets at fixed times from its own thread, without the GIL.

    A target is (IP address, None) for ICMP echo or (IP address, UDP port) for our own echo. Every
    `interval_ns` each target gets a request of `size` bytes after the IP or UDP header, with the DS
    field `ds`; the requests to different targets are evenly spaced. A request without a reply for
    `timeout_ns` is lost. `identifier` is the ICMP identifier of the first target: probers on one
    host need different ones.

    Raises PermissionError if neither an unprivileged nor a raw ICMP socket is allowed, ValueError
    for invalid arguments, OSError for errors of the kernel.
    """

    def __new__(
        cls,
        targets: list[tuple[str, int | None]],
        interval_ns: int,
        timeout_ns: int,
        *,
        size: int = 56,
        ds: int = 0,
        identifier: int = 1,
    ) -> Self: ...
    def take(self) -> dict[str, NDArray[np.int64]]:
        """The samples that were answered or lost since the last call, in the order of these events,
        as columns of equal length.

        `target` (index), `sequence`, `sent_ns` (CLOCK_MONOTONIC, as `time.monotonic_ns()`),
        `lateness_ns` (sent after its slot), `rtt_ns` (-1: lost), `turned_ns` (on the far end's
        clock; -1: ICMP, or lost), `loss` (index in LOSSES; -1: not lost). Raises RuntimeError if
        the thread has died.
        """

    def counts(self) -> list[dict[str, int]]:
        """Totals of each target: sent, received, lost, late (replies after the timeout), duplicate,
        missed (slots that passed while this host stood still; nothing was sent)."""

    def stop(self) -> None:
        """Ends the thread. Probes still under way are not samples; `take` returns the finished
        ones."""

def route_device(address: str) -> int:
    """The index of the interface by which packets to this IP address leave. Raises OSError if there
    is no route."""

def device_bytes(index: int) -> tuple[int, int]:
    """Bytes (received, sent) by the interface with this index since it was created. Raises OSError
    if there is no such interface."""
