"""What is compiled of sojourn-live: probes, sessions and servers of live lines. All but VERSION and
BUILD is there on Linux only."""

from collections.abc import Callable
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from sojourn.arrays import Columns

VERSION: str
BUILD: str
"""Names the sources of Rust that it was built of."""

class MeasureError(Exception):
    """Nothing could be measured or served. args: (what and where, what to do)."""

@final
class Server:
    """Answers `measure`: load and echoes for clients of ours. Its sockets are bound when it is
    made.

    `options_json`: {bind: [address, ...], port (0: any), caps: {seconds, bytes, streams, clients}
    (crates/live/src/caps.rs), secret ("": none)}, all of them needed. Raises MeasureError when an
    address can't be bound, ValueError when the JSON is not such options.
    """

    def __new__(cls, options_json: str) -> Self: ...
    @property
    def addresses(self) -> list[tuple[str, int]]:
        """What it is bound to: (address, port)."""

    def run(
        self,
        seconds: float | None = None,
        once: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """Serves, the GIL released, until `stop`, for so long, or (`once`) until the first client
        that came is gone.

        `tell` is called with a line for each client that comes and goes. Raises KeyboardInterrupt
        on Ctrl-C in the main thread.
        """

    def stop(self) -> None:
        """Ends `run` within half a second, or as it begins; for good, from any thread, any number
        of times."""

def measure(
    plan_json: str,
    reached: Callable[[int, int, str], bool] | None = None,
    keep: Callable[[dict[str, Columns], str], None] | None = None,
) -> tuple[dict[str, Columns], str]:
    """One measuring session, the GIL released: tables, and facts as JSON.
    `sojourn_live.measure.session` says what both hold.

    `plan_json` is `sojourn_live.measure.session.SessionPlan`. `reached` is called about ten times a
    second with (time reached in ns, total in ns, phase); returning False, or Ctrl-C in the main
    thread, ends the session, and what was measured is returned. `keep` is called after each phase,
    and now and then in a long one, with all that was measured so far, as it would be returned.
    Raises MeasureError when nothing could be measured, ValueError when the JSON is not a plan, and
    whatever either of them raises.
    """

def endpoint(text: str) -> tuple[str, int | None]:
    """Host and port of HOST, HOST:PORT, an address of IPv6, or [ADDRESS]:PORT. Raises MeasureError
    when it is none of these."""

@final
class RpmServer:
    """Answers clients of draft-ietf-ippm-responsiveness over HTTP/2 and TLS, from when it is made,
    on threads of its own.

    `options_json`: {at: ["address:port", ...] (port 0: any), names: [host, ...] (for its
    certificate), identity: [chain, key] (PEM files) or null (made at start), seconds (a connection
    may live), bytes (a client may move in an hour), connections (a client may have at once)}, all
    of them needed (crates/rpm/src/server.rs). Raises MeasureError when it can't listen or its
    certificate can't be read, ValueError when the JSON is not such options.
    """

    def __new__(cls, options_json: str) -> Self: ...
    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where it listens: (address, port)."""

    @property
    def certificate(self) -> str | None:
        """Its certificate as PEM, if it was made at start."""

    def served(self) -> dict[str, int]:
        """connections (now), accepted, refused (of them: too many), requests, sent_bytes,
        received_bytes."""

    def run(self, seconds: float | None = None, tell: Callable[[str], None] | None = None) -> None:
        """Waits until `stop` or for so long, the GIL released. `tell` is called with a line when a
        client first comes in an hour, is refused, or has used up its bytes. Raises
        KeyboardInterrupt on Ctrl-C in the main thread; the server goes on until `stop`."""

    def stop(self) -> None:
        """Ends every connection and frees the port; from any thread, any number of times."""

def measure_rpm(
    plan_json: str,
    reached: Callable[[int, int, str, int, float], bool] | None = None,
    keep: Callable[[dict[str, Columns], str], None] | None = None,
) -> tuple[dict[str, Columns], str]:
    """One measurement of responsiveness, the GIL released: tables, and facts as JSON.
    `sojourn_live.rpm` says what both hold.

    `plan_json` is `sojourn_live.rpm.Plan`. `reached` is called about ten times a second with (time
    reached in ns, phase from 0, what is waited for, intervals of this phase, goodput of the last
    second in bit/s); returning False, or Ctrl-C in the main thread, ends the measurement, and what
    was measured is returned. `keep` is called after each phase but the last with all that was
    measured so far, as it would be returned. Raises MeasureError when nothing could be measured,
    ValueError when the JSON is not a plan, and whatever either of them raises.
    """

LOSSES: list[str]
"""Why a probe has no reply, in words, in the order of their number in a Prober's column `loss`."""

@final
class Prober:
    """Probes several targets at fixed times from a thread of its own, which holds no GIL.

    A target is (IP address, None) for ICMP echo or (IP address, UDP port) for our own echo. Each
    gets a request of `size` bytes (behind the IP or UDP header, with this DS field) every
    `interval_ns`, the targets evenly apart; one without a reply for `timeout_ns` is lost.
    `identifier` is the first one's in ICMP: probers of one host want different ones.

    Raises PermissionError where neither an unprivileged nor a raw ICMP socket is allowed,
    ValueError for what makes no sense, OSError for what the kernel refuses.
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
        """The samples that have settled since the last call, in that order, as columns of equal
        length.

        `target` (index), `sequence`, `sent_ns` (CLOCK_MONOTONIC, as `time.monotonic_ns()`),
        `lateness_ns` (sent after its slot), `rtt_ns` (-1: lost), `turned_ns` (on the far end's
        clock; -1: ICMP, or lost), `loss` (index in LOSSES; -1: not lost). Raises RuntimeError if
        the thread has died.
        """

    def counts(self) -> list[dict[str, int]]:
        """Totals of each target: sent, received, lost, late (replies after the timeout), duplicate,
        missed (slots that passed while this host stood still; nothing was sent)."""

    def stop(self) -> None:
        """Ends the thread. What is on the way is no sample; `take` gives what has settled
        before."""

def route_device(address: str) -> int:
    """The index of the interface by which packets to this IP address leave. Raises OSError if there
    is no route."""

def device_bytes(index: int) -> tuple[int, int]:
    """Bytes (received, sent) by the interface with this index since it was made. Raises OSError if
    there is none."""
