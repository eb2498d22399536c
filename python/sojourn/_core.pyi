"""The compiled core: scenario in, columns out. Private: the public face is `sojourn` itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.uint32] | NDArray[np.uint8] | NDArray[np.float64]
Columns = dict[str, Column]

VERSION: str
"""Version of the engine, as recorded in every Run."""

ENGINE: str
"""Names the sources of the crates that decide a simulation's bytes: 16 hexadecimal digits (crates/python/build.rs)."""

BUILD: str
"""The same of all crates."""

CAUSES: list[str]
"""Words of the drop and mark causes, in the order of their number in the `drops` table."""

@final
class ColumnSchema:
    """A column of a table as crates/tables declares it."""

    @property
    def name(self) -> str:
        """Ends with the unit, if it has one."""
    @property
    def unit(self) -> str:
        """ "ns", "bytes", "packets" or "bits"; "" for plain numbers and names."""
    @property
    def kind(self) -> Literal["integer", "real", "link", "flow", "cause"]:
        """Of its values. The last three are names; an engine writes numbers that stand for them."""
    @property
    def meaning(self) -> str:
        """What it holds."""
    @property
    def null(self) -> str | None:
        """What it means that there is no value; None: there always is one."""

@final
class TableSchema:
    """A table as crates/tables declares it."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str:
        """What a row is."""
    @property
    def columns(self) -> tuple[ColumnSchema, ...]:
        """In their order."""

TABLES: dict[str, TableSchema]
"""Every table by its name, as crates/tables declares it."""

class Cancelled(Exception):  # noqa: N818  (a request, not an error)
    """The run was stopped by its progress callback or by Ctrl-C."""

def run(scenario_json: str, progress: Callable[[int], bool] | None = None) -> dict[str, Columns]:
    """Runs one scenario (the JSON form of crates/sim/src/scenario.rs) to its end, the GIL released.

    `progress` is called about every 50 ms of wall time with the simulated time reached in ns; returning False
    stops the run. Returns tables by name: each a dict of equally long columns. Raises ValueError when the JSON is not a
    scenario, Cancelled when stopped, KeyboardInterrupt on Ctrl-C in the main thread.
    """

def replay(
    link_json: str,
    seed: int,
    t_ns: NDArray[np.int64],
    flow: NDArray[np.int64],
    bytes: NDArray[np.int64],
    ds: NDArray[np.int64],
    after: NDArray[np.int64] | None = None,
    early: NDArray[np.bool_] | None = None,
    hash: NDArray[np.int64] | None = None,
    truesize: NDArray[np.int64] | None = None,
) -> dict[str, NDArray[Any]]:
    """Sends recorded arrivals through one link (the JSON form of LinkSpec in crates/sim/src/scenario.rs), the GIL released.

    One packet per place of the columns, in order of time: when it comes (from 0), its flow (equal for one direction of a five-tuple),
    bytes of the IP packet, DS field. Of another queue, whose decisions are to be compared (crates/sim/src/replay.rs): `after`, how many it had
    sent before the packet came, which orders what happens at one instant (-1: not known), and `early`, what a RED's draws decided;
    without it ours are drawn from `seed`. For fq_codel `hash`, 32 bits by which it tells flows apart (with an unknown one, -1, no two flows share a
    queue), and `truesize`, the bytes that its memory limit counts (-1: those of a datagram).

    Returns equally long columns of int64, but for `state` and `chance` (float64, NaN for none): `t_ns` and `order` (when it left the
    queue, sent or dropped, and its place among those that left; -1: never), `refused` (1: dropped as it came), `dropped` and
    `marked` (the cause, in the order of CAUSES; -1: it was not), `backlog_packets` and `backlog_bytes` (queued when it came), `state`
    (RED's average in bytes when it came, CoDel's count when it left), `chance` (with `early`: how likely RED was to drop or mark it,
    given what became of all before it). Raises ValueError when the JSON is no link or the columns are no arrivals.
    """

def draw(seed: int, name: str, n: int) -> NDArray[np.uint64]:
    """The first n numbers of the random stream called `name` in a run with this seed (uniform over 64 bits)."""

def parse_toml(text: str) -> tuple[dict[str, object], dict[str, tuple[int, int]]]:
    """A TOML document as plain values, and (line, column), both from 1, of every key path ("flow.0.rtt").

    Raises ValueError with args (message, line, column) on a syntax error.
    """

MTU: int
"""IP bytes of a full segment."""

CONGESTION: list[str]
"""Congestion controls by name: the simulator's, then the kernel's alone."""

def tcp_profiles() -> dict[str, dict[str, Any]]:
    """Each profile as a full set of crates/tcp's TcpParams, by its name."""

def scenario_keys() -> dict[str, list[str]]:
    """The keys of each table of a scenario; the file's own under the empty name, a flow's under its kind."""

def dotted_key(word: str) -> str | None:
    """The key of a scenario with a [bottleneck] that a word, ours or another program's, means."""

@final
class Problem:
    """One thing that is wrong with a scenario."""

    def __new__(
        cls,
        message: str,
        hint: str = "",
        key: Sequence[str | int] = (),
        file: str = "",
        line: int | None = None,
        column: int | None = None,
        source: str = "",
    ) -> Self: ...
    @property
    def message(self) -> str: ...
    @property
    def hint(self) -> str:
        """What to write instead."""

    @property
    def key(self) -> tuple[str | int, ...]:
        """Where the value is in the document: ("flow", 0, "rtt")."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int | None:
        """From 1; None where there is no text (a missing file, a scenario made in Python)."""

    @property
    def column(self) -> int | None:
        """From 1, in characters."""

    @property
    def source(self) -> str:
        """The line itself."""

    @property
    def dotted(self) -> str:
        """`flow.0.rtt`."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Scenario:
    """Links, queue disciplines, traffic and probes: everything a run needs but its seed. Frozen; equal to what is run and called alike."""

    @staticmethod
    def read(
        text: str, name: str, untitled: str | None = None, open: Callable[[str], bytes] | None = None
    ) -> Scenario:
        """The scenario in a text that messages call `name`; `untitled` is its title if it says none.

        `open` gives the bytes of a trace by its path and raises OSError. Raises sojourn.scenario.ScenarioError with every problem.
        """

    @staticmethod
    def from_document(document: Mapping[str, Any], open: Callable[[str], bytes] | None = None) -> Scenario:
        """The scenario that plain TOML values describe. Raises sojourn.scenario.ScenarioError with every problem."""

    def document(self) -> dict[str, Any]:
        """The scenario as plain TOML values: everything that is not a default."""

    def to_toml(self) -> str:
        """Canonical text: reading it gives an equal Scenario, on any machine (traces are written out)."""

    def with_(self, changes: Mapping[str, Any] | None = None, /, **more: Any) -> Scenario:
        """The scenario with some keys changed, by dotted key: `scenario.with_({"bottleneck.qdisc": "codel"}, seeds=5)`.

        Values are what the file would hold; None takes the key away. Flows and links are named by position or name, or all by `*`.
        A key that the sweep varies is settled: it leaves the sweep.
        """

    def variants(self) -> tuple[Scenario, ...]:
        """One scenario for each point of the sweep, labelled by what differs; the scenario itself where there is none."""

    def realise(self, seed: int) -> dict[str, Any]:
        """The run of this scenario with this seed as the engine takes it: integers, every flow and link written out."""

    def fingerprint(self, seeds: Iterable[int] | None = None) -> str:
        """SHA-256 of what an engine is given for each of these seeds, whatever their order; None: the scenario's own.

        Titles and labels have no part in it, nor has the engine.
        """

    def meaning(self) -> dict[tuple[str, ...], Any]:
        """Every setting of the links and flows by its path, ("link", "up", "rate"); None: there is none.

        Links are resolved, defaults filled in, numbers are laws and not drawn. Scenarios of equal meaning differ in words only.
        """

    @property
    def title(self) -> str: ...
    @property
    def label(self) -> str:
        """What distinguishes this variant of a sweep."""

    @property
    def duration(self) -> int:
        """ns."""

    @property
    def warmup(self) -> int:
        """ns."""

    @property
    def seeds(self) -> tuple[int, ...]: ...
    @property
    def offloads(self) -> bool:
        """Hosts hand down packets of up to 64 kB (TSO, GSO)."""

    @property
    def dumbbell(self) -> bool:
        """It has a [bottleneck] in place of [[link]]."""

    @property
    def bottleneck(self) -> Bottleneck | None: ...
    @property
    def links(self) -> tuple[LinkEntry, ...]: ...
    @property
    def flows(self) -> tuple[FlowEntry, ...]: ...
    @property
    def sweep(self) -> dict[str, list[Any]]:
        """Values by dotted key."""

    @property
    def notes(self) -> tuple[Problem, ...]:
        """What is taken as it is written and probably means something else, each with its place and what to write instead."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Bottleneck:
    """`[bottleneck]`: each direction's own table."""

    @property
    def up(self) -> Wire | None: ...
    @property
    def down(self) -> Wire | None: ...

@final
class Wire:
    """What a table says of a link."""

    @property
    def qdisc(self) -> str | None:
        """tc's words."""

@final
class LinkEntry:
    """`[[link]]`."""

    @property
    def name(self) -> str | None: ...
    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...

@final
class FlowEntry:
    """`[[flow]]`."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def count(self) -> int: ...
    @property
    def drawn(self) -> bool:
        """Whether the seed decides its RTT or when it starts."""

LIVE_PORT: int
"""TCP and UDP port of `Server`, where no other is asked for."""

class MeasureError(Exception):
    """Nothing could be measured or served. args: (what and where, what to do)."""

@final
class Server:
    """Answers `measure`: load and echoes for clients of ours. Its sockets are bound when it is made.

    `options_json`: {bind: [address, ...], port (0: any), caps: {seconds, bytes, streams, clients} (crates/live/src/caps.rs),
    secret ("": none)}, all of them needed.
    Raises MeasureError when an address can't be bound, ValueError when the JSON is not such options.
    """

    def __new__(cls, options_json: str) -> Self: ...
    @property
    def addresses(self) -> list[tuple[str, int]]:
        """What it is bound to: (address, port)."""

    def run(
        self, seconds: float | None = None, once: bool = False, tell: Callable[[str], None] | None = None
    ) -> None:
        """Serves, the GIL released, until `stop`, for so long, or (`once`) until the first client that came is gone.

        `tell` is called with a line for each client that comes and goes. Raises KeyboardInterrupt on Ctrl-C in the main thread.
        """

    def stop(self) -> None:
        """Ends `run` within half a second; from any thread, any number of times."""

def measure(
    plan_json: str, reached: Callable[[int, int, str], bool] | None = None
) -> tuple[dict[str, Columns], str]:
    """One measuring session, the GIL released: tables, and facts as JSON. `sojourn.live.measure.session` says what both hold.

    `plan_json` is `sojourn.live.measure.session.SessionPlan`. `reached` is called about ten times a second with (time reached in ns, total in ns, phase);
    returning False, or Ctrl-C in the main thread, ends the session, and what was measured is returned. Raises MeasureError when nothing could be
    measured, ValueError when the JSON is not a plan.
    """

@final
class RpmServer:
    """Answers clients of draft-ietf-ippm-responsiveness over HTTP/2 and TLS, from when it is made, on threads of its own.

    `options_json`: {at: ["address:port", ...] (port 0: any), names: [host, ...] (for its certificate), identity: [chain, key] (PEM files) or null
    (made at start), seconds (a connection may live), bytes (a client may move in an hour), connections (a client may have at once)}, all of them
    needed (crates/rpm/src/server.rs). Raises MeasureError when it can't listen or its certificate can't be read, ValueError when the JSON is not such options.
    """

    def __new__(cls, options_json: str) -> Self: ...
    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where it listens: (address, port)."""

    @property
    def certificate(self) -> str | None:
        """Its certificate as PEM, if it was made at start."""

    def served(self) -> dict[str, int]:
        """connections (now), accepted, refused (of them: too many), requests, sent_bytes, received_bytes."""

    def run(self, seconds: float | None = None, tell: Callable[[str], None] | None = None) -> None:
        """Waits until `stop` or for so long, the GIL released. `tell` is called with a line when a client first comes in an hour, is refused, or
        has used up its bytes. Raises KeyboardInterrupt on Ctrl-C in the main thread; the server goes on until `stop`."""

    def stop(self) -> None:
        """Ends every connection and frees the port; from any thread, any number of times."""

def measure_rpm(
    plan_json: str, reached: Callable[[int, int, str, int, float], bool] | None = None
) -> tuple[dict[str, Columns], str]:
    """One measurement of responsiveness, the GIL released: tables, and facts as JSON. `sojourn.live.rpm` says what both hold.

    `plan_json` is `sojourn.live.rpm.Plan`. `reached` is called about ten times a second with (time reached in ns, phase from 0, what is waited for, intervals of
    this phase, goodput of the last second in bit/s); returning False, or Ctrl-C in the main thread, ends the measurement, and what was measured is
    returned. Raises MeasureError when nothing could be measured, ValueError when the JSON is not a plan, and whatever `reached` raises.
    """

LOSSES: list[str]
"""Why a probe has no reply, in words, in the order of their number in a Prober's column `loss`."""

@final
class Prober:
    """Probes several targets at fixed times from a thread of its own, which holds no GIL.

    A target is (IP address, None) for ICMP echo or (IP address, UDP port) for our own echo. Each gets a request of `size` bytes
    (behind the IP or UDP header, with this DS field) every `interval_ns`, the targets evenly apart; one without a reply for
    `timeout_ns` is lost. `identifier` is the first one's in ICMP: probers of one host want different ones.

    Raises PermissionError where neither an unprivileged nor a raw ICMP socket is allowed, ValueError for what makes no
    sense, OSError for what the kernel refuses.
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
        """The samples that have settled since the last call, in that order, as columns of equal length.

        `target` (index), `sequence`, `sent_ns` (CLOCK_MONOTONIC, as `time.monotonic_ns()`), `lateness_ns` (sent after its slot), `rtt_ns` (-1:
        lost), `turned_ns` (on the far end's clock; -1: ICMP, or lost), `loss` (index in LOSSES; -1: not lost). Raises
        RuntimeError if the thread has died.
        """

    def counts(self) -> list[dict[str, int]]:
        """Totals of each target: sent, received, lost, late (replies after the timeout), duplicate, missed (slots that
        passed while this host stood still; nothing was sent)."""

    def stop(self) -> None:
        """Ends the thread. What is on the way is no sample; `take` gives what has settled before."""

def route_device(address: str) -> int:
    """The index of the interface by which packets to this IP address leave. Raises OSError if there is no route."""

def device_bytes(index: int) -> tuple[int, int]:
    """Bytes (received, sent) by the interface with this index since it was made. Raises OSError if there is none."""
