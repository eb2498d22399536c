"""The compiled core: scenario in, columns out. Private: the public face is `sojourn` itself."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, final

import numpy as np
from numpy.typing import NDArray

Column = (
    NDArray[np.int64]
    | NDArray[np.uint64]
    | NDArray[np.uint32]
    | NDArray[np.uint8]
    | NDArray[np.float64]
)
Columns = dict[str, Column]
QdiscValue = int | float | bool | str | None

VERSION: str
"""Version of the engine, as recorded in every Run."""

ENGINE: str
"""Names the sources of the crates that decide a simulation's bytes: 16 hexadecimal digits
(crates/python/build.rs)."""

TC: str
"""The same of the crates that tc's words and the records of the disciplines are made of."""

FILES: str
"""The same of the crates that write a table's file."""

METRICS: str
"""The same of the crates that make numbers of tables."""

BUILD: str
"""The same of all crates."""

LINUX: bool
"""Whether this build is for Linux, which has the kernel engines. False on macOS and Windows."""
CAUSES: list[str]
"""Words of the drop and mark causes, in the order of their number in the `drops` table."""

UNITS: list[str]
"""Every unit of a quantity but "%"."""
MAX_DURATION: int
MAX_RATE: int
MAX_SIZE: int

def parse_duration(
    value: object, *, what: str, example: str, zero: bool, most: int, days: bool
) -> int:
    """Nanoseconds; `sojourn.units.UnitError` of what is none, as of the other `parse_`."""

def parse_rate(value: object, *, zero: bool) -> int:
    """Bit/s."""

def parse_size(value: object, *, what: str, least: int, most: int) -> int:
    """Bytes."""

def parse_probability(value: object) -> float:
    """A fraction."""

def parse_dscp(value: object) -> int:
    """A codepoint, 0 to 63, by its name or its number."""

def format_dscp(dscp: int) -> str | int:
    """Its name, or the number where it has none."""

def format_duration(ns: int) -> str: ...
def format_rate(bps: int) -> str: ...
def format_size(size: int) -> str: ...
def format_probability(fraction: float) -> str: ...
def nearest(word: str, known: list[str]) -> str | None:
    """The known word that was probably meant, if one is near."""

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

@final
class SeedTables(Mapping[str, Columns]):
    """The tables of a seed by name, kept in Rust: each look makes the arrays anew."""

    def __new__(cls, tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> Self:
        """Of arrays of any width, as an engine hands them over: -1 or NaN for none, numbers for
        names. Raises ValueError when a table is not as declared."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str, /) -> Columns: ...
    def get(self, name: str, default: Any = None, /) -> Any: ...
    def parquet(
        self, links: Sequence[str], flows: Sequence[str], causes: Sequence[str]
    ) -> dict[str, bytes]:
        """Each table as Parquet, the GIL released; the names are those that its numbers stand for.

        Raises ValueError when a number stands for none.
        """
    def numbers(self, about_json: str) -> Numbers:
        """The numbers of this seed, the GIL released.

        `about_json`: what was run, as crates/metrics' `About`. Raises ValueError when a table is
        missing, or a value that its column has to have.
        """
    def equals(self, other: SeedTables, names: Sequence[str]) -> bool:
        """Whether these tables of both are the same, bit by bit."""

@final
class Numbers:
    """The numbers of one seed, kept in Rust."""

    @staticmethod
    def from_bytes(content: bytes) -> Numbers:
        """Those that `to_bytes` gave the content of.

        Raises:
            ValueError: it did not.
        """

    def to_bytes(self) -> bytes:
        """Bit by bit, for this build."""

    def plain(self) -> dict[str, Any]:
        """As `sojourn.numbers.Numbers`, but for `seed` and `cpu_s`."""

LATE_MS: float
"""Packets that take longer one way are late."""

def over_seeds(seeds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Values of equal shape as one, each number as {mean, ci95}. Raises ValueError when there is no
    seed."""

def histogram_quantile(
    lower_ns: NDArray[np.int64], upper_ns: NDArray[np.int64], counts: NDArray[np.int64], q: float
) -> float:
    """The q-quantile (ns) of a histogram, linear inside a bin; NaN if it is empty."""

def late_rate(
    lower_ns: NDArray[np.int64],
    upper_ns: NDArray[np.int64],
    counts: NDArray[np.int64],
    lost: float,
    bound_ms: float,
) -> float:
    """The share of packets that took longer than the bound or were lost; NaN without a packet."""

def distribution(values: NDArray[np.float64]) -> dict[str, float]:
    """min, mean, p50, p95, p99 and max of samples; NaN without one."""

def jain(shares: Sequence[float]) -> float:
    """Jain's fairness index; NaN without a share."""

def utilisation(wire_bytes: float, capacity_bits: float | None) -> float:
    """Bits on the wire over capacity, at most 1; NaN without a capacity."""

def mean_ci95(values: Sequence[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % interval (Student's t); NaN values are left out."""

def welch(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float]:
    """Of after - before: the difference of the means, and where its 95 % interval begins and ends
    (Welch)."""

def student_t975(degrees: int) -> float:
    """The 0.975 quantile of Student's t distribution."""

def wire_bytes(
    overhead_bytes: int, minimum_bytes: int, cells: str, ip_bytes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """What IP packets take on the wire (crates/link, framing.rs). `cells`: "none", "atm" or "ptm",
    else ValueError."""

def bins_of(times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the log-linear bin (crates/tables, histogram.rs) of each time."""

def bins_from(bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each log-linear bin begins, ns."""

class Cancelled(Exception):  # noqa: N818  (a request, not an error)
    """The run was stopped by its progress callback or by Ctrl-C."""

@final
class OwnCode:
    """A discipline of the user's own, compiled: C functions `int64_t (state *, const packet *, const
    link *)` by what they are asked (crates/qdisc, own.rs), and the state at its start. `owner` keeps
    them in memory. The addresses are trusted: `sojourn.own.compiled` alone makes one."""

    def __new__(
        cls,
        functions: dict[str, int],
        state: bytes,
        owner: object,
        *,
        queues: int,
        limit: int,
        timer: int | None = None,
        bypass: bool = False,
    ) -> Self: ...

@final
class OwnControlCode:
    """A congestion control of the user's own, compiled: C functions `int64_t (state *, const ack *,
    const void *)` by what they are asked (crates/tcp, own.rs), and the state at its start, in which
    cwnd, ssthresh and the pacing rate are the words 4 to 6. `paces`: it sets that rate. One with
    `on_delivery` sets cwnd by itself, and is paced."""

    def __new__(
        cls, functions: dict[str, int], state: bytes, owner: object, *, paces: bool
    ) -> Self: ...

class OwnCodeError(Exception):
    """Code of the user's own failed: (file, class, what it was asked, when in ns, its answer or None,
    why by `sojourn.own.checks.WHYS`, line). A congestion control's answer is what it set that makes no
    sense, and to what."""

def run(
    realised: Realised,
    progress: Callable[[int], bool] | None = None,
    own: dict[str, OwnCode] | None = None,
    controls: dict[str, OwnControlCode] | None = None,
) -> SeedTables:
    """Runs a realised scenario to its end, the GIL released. `own`: the code of disciplines of the
    user's own, by their words; `controls`: of congestion controls; raises OwnCodeError where it fails.

    `progress` is called about every 50 ms of wall time with the simulated time reached in ns;
    returning False stops the run. Returns tables by name: each a dict of equally long columns.
    Raises ValueError when a discipline or a congestion control is Linux's alone, Cancelled when
    stopped, KeyboardInterrupt on Ctrl-C in the main thread.
    """

def watch(
    realised: Realised,
    every_ns: int,
    look: Callable[[int, list[int], list[int], list[int | None]], object],
    own: dict[str, OwnCode] | None = None,
    controls: dict[str, OwnControlCode] | None = None,
) -> None:
    """Runs a realised scenario to its end, for `look` alone. It is called soon after the start, after each
    `every_ns` of simulated time, and at the end, with the time in ns, the packets and the bytes that
    wait in each link's queue, and each flow's congestion window in bytes (None: it has none). How
    long it takes is how long the run does. Raises as `run`.
    """

def replay(
    link: Link,
    seed: int,
    t_ns: NDArray[np.int64],
    flow: NDArray[np.int64],
    bytes: NDArray[np.int64],
    ds: NDArray[np.int64],
    after: NDArray[np.int64] | None = None,
    fate: NDArray[np.int64] | None = None,
    hash: NDArray[np.int64] | None = None,
    truesize: NDArray[np.int64] | None = None,
    place: NDArray[np.int64] | None = None,
    source: NDArray[np.int64] | None = None,
    destination: NDArray[np.int64] | None = None,
    unlikely: Sequence[int] | None = None,
    own: dict[str, OwnCode] | None = None,
) -> dict[str, NDArray[Any]]:
    """Sends recorded arrivals through one link, the GIL released.

    One packet per place of the columns, in order of time: when it comes (from 0), its flow (equal
    for one direction of a five-tuple), bytes of the IP packet, DS field. Of another queue, whose
    decisions are to be compared (crates/sim/src/replay.rs): `after`, how many it had sent before
    the packet came, which orders what happens at one instant (-1: not known), and `fate`, what it
    did to it (`engine/recording`), which draws follow; without it ours are drawn from `seed`. For fq_codel `hash`, 32 bits by
    which it tells flows apart (with an unknown one, -1, no two flows share a queue), and
    `truesize`, the bytes that its memory limit counts (-1: those of a datagram). By `place`, how many
    that queue had sent before it let go of the packet, cake's draws are seen. By `source` and
    `destination`, numbers of hosts, cake shares among hosts (-1: not known). Draws that nobody could
    see end as is likelier, but those numbered `unlikely`.

    Returns equally long columns of int64, but for `state` and `chance` (float64, NaN for none):
    `t_ns` and `order` (when it left the queue, sent or dropped, and its place among those that
    left; -1: never), `refused` (1: dropped as it came), `dropped` and `marked` (the cause, in the
    order of CAUSES; -1: it was not), `backlog_packets` and `backlog_bytes` (queued when it came),
    `state` (when it came an average, RED's in bytes, or else a probability; when it left CoDel's
    count), `chance` (with `fate`: how likely a discipline that draws was to drop or mark it, given
    what became of all before it), `drew` (1: it did; -1: as `fate` says). And `unseen`: for each of
    cake's draws that nobody could see, how many packets ours had sent. Raises
    ValueError when the JSON is no link or the columns are no arrivals.
    """

def rng_key(seed: int, name: str) -> int:
    """All that the random stream called `name` in a run with this seed depends on: 64 bits."""

def parse_toml(text: str) -> tuple[dict[str, object], dict[str, tuple[int, int]]]:
    """A TOML document as plain values, and (line, column), both from 1, of every key path
    ("flow.0.rtt").

    Raises ValueError with args (message, line, column) on a syntax error.
    """

MTU: int
"""IP bytes of a full segment."""

def tcp_profiles() -> dict[str, Tcp]:
    """Each profile as a full set of crates/tcp's TcpParams, by its name."""

def scenario_keys() -> dict[str, list[str]]:
    """The keys of each table of a scenario; the file's own under the empty name, a flow's under its
    kind."""

@final
class TrafficKind:
    """A kind of traffic, as crates/traffic declares it."""

    @property
    def word(self) -> str:
        """A [[flow]]'s `kind`."""

    @property
    def also(self) -> list[str]:
        """Other programs' words for it."""

    @property
    def tcp(self) -> bool:
        """Its packets are segments of TCP connections."""

    @property
    def probe(self) -> bool:
        """Its packets are echo requests, which are answered."""

    @property
    def headers(self) -> int | None:
        """Bytes of a datagram that are no payload; None: it sends none."""

    @property
    def greedy(self) -> bool:
        """It sends as fast as its way allows, for as long as it is let."""

    @property
    def speech(self) -> bool:
        """Its quality is told as a mean opinion score."""

    @property
    def in_linux(self) -> bool:
        """Linux's engines can send it."""

    @property
    def told_as(self) -> str:
        """The kind that tables and numbers call it."""

def traffic_kinds() -> list[TrafficKind]:
    """Every kind there is."""

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
    """Links, queue disciplines, traffic and probes: everything a run needs but its seed. Frozen;
    equal to what is run and called alike."""

    @staticmethod
    def read(
        text: str,
        name: str,
        untitled: str | None = None,
        open: Callable[[str], bytes] | None = None,
    ) -> Scenario:
        """The scenario in a text that messages call `name`; `untitled` is its title if it says
        none.

        `open` gives the bytes of a trace by its path and raises OSError. Raises
        sojourn.scenario.ScenarioError with every problem.
        """

    @staticmethod
    def from_document(
        document: Mapping[str, Any], open: Callable[[str], bytes] | None = None
    ) -> Scenario:
        """The scenario that plain TOML values describe. Raises sojourn.scenario.ScenarioError with
        every problem."""

    def document(self) -> dict[str, Any]:
        """The scenario as plain TOML values: everything that is not a default."""

    def to_toml(self) -> str:
        """Canonical text: reading it gives an equal Scenario, on any machine (traces are written
        out)."""

    def with_(self, changes: Mapping[str, Any] | None = None, /, **more: Any) -> Scenario:
        """The scenario with some keys changed, by dotted key:
        `scenario.with_({"bottleneck.qdisc": "codel"}, seeds=5)`.

        Values are what the file would hold; None takes the key away. Flows and links are named by
        position or name, or all by `*`. A key that the sweep varies is settled: it leaves the
        sweep.
        """

    def variants(self) -> tuple[Scenario, ...]:
        """One scenario for each point of the sweep, labelled by what differs; the scenario itself
        where there is none."""

    def realise(self, seed: int) -> Realised:
        """The run of this scenario with this seed as an engine takes it: integers, every flow and
        link written out."""

    def qdisc_key(self, link: str | None = None) -> str:
        """The key by which a discipline competes with others: the bottleneck's, both ways, except a
        way that has one of its own; or that of one `link`.

        Raises:
            ScenarioError: there is no such link, or one has to be named.
        """

    def fingerprint(self, seeds: Iterable[int] | None = None) -> str:
        """SHA-256 of what an engine is given for each of these seeds, whatever their order; None:
        the scenario's own.

        Titles and labels have no part in it, nor has the engine.
        """

    def meaning(self) -> dict[tuple[str, ...], Any]:
        """Every setting of the links and flows by its path, ("link", "up", "rate"); None: there is
        none.

        Links are resolved, defaults filled in, numbers are laws and not drawn. Scenarios of equal
        meaning differ in words only.
        """

    @property
    def title(self) -> str: ...
    @property
    def label(self) -> str:
        """What distinguishes this variant of a sweep."""

    @property
    def settings(self) -> dict[str, Any]:
        """Of a variant: the keys that its sweep varies, in the sweep's order, each with its value
        here. Empty of all else."""

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
    def sweep(self) -> dict[str, Any]:
        """What `[sweep]` says: by dotted key a list of values or a range, and how that is sampled."""

    def _repr_html_(self) -> str:
        """For a notebook: its topology, links and flows (`sojourn.scenario.notebook`)."""

    @property
    def notes(self) -> tuple[Problem, ...]:
        """What is taken as it is written and probably means something else, each with its place and
        what to write instead."""

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

@final
class Realised:
    """A run: a scenario and a seed as integers, every link and every flow written out (crates/sim,
    scenario.rs). Frozen, as are its parts."""

    def __new__(
        cls,
        *,
        duration_ns: int,
        seed: int,
        links: Sequence[Link],
        flows: Sequence[Flow],
        queue_ns: int,
        flow_ns: int,
    ) -> Self:
        """One without warm-up that keeps no packets."""

    @property
    def duration_ns(self) -> int: ...
    @property
    def warmup_ns(self) -> int:
        """Left out of totals and histograms."""

    @property
    def seed(self) -> int: ...
    @property
    def links(self) -> tuple[Link, ...]:
        """Each one direction."""

    @property
    def flows(self) -> tuple[Flow, ...]: ...
    @property
    def record(self) -> Record: ...
    @property
    def offloads(self) -> bool:
        """Hosts hand down packets of up to 64 kB (TSO, GSO)."""

    @property
    def base_rtts_ns(self) -> list[int | None]:
        """Of each flow the round trip of a full packet through empty queues, one way where there
        are no replies; None: a link on the way never sends the packet, or its reply."""

    def to_json(self) -> str:
        """Its text: equal where the values are (but for nodes and profiles, which it leaves
        out)."""

    def to_text(self) -> str:
        """All of it as text, nodes and profiles too: whatever a run of it depends on."""

    def with_seed(self, seed: int) -> Realised:
        """The same with another seed of what is drawn during the run; RTTs and start times, which
        are drawn already, stay."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Record:
    """What a run records."""

    @property
    def queue_ns(self) -> int:
        """Interval of the `queue` table."""

    @property
    def flow_ns(self) -> int:
        """Interval of the `flow` table."""

    @property
    def packets(self) -> bool:
        """Whether each packet is kept."""

    @property
    def headers(self) -> bool:
        """Whether what each packet's headers say is kept."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Link:
    """One direction of a link: a queue, a transmitter, a wire."""

    def __new__(
        cls,
        name: str,
        tail: str,
        head: str,
        *,
        qdisc: Qdisc,
        framing: LinkLayer,
        rate: Sequence[tuple[int, int]],
        delay_ns: int = 0,
        shaper: Shaper | None = None,
    ) -> Self:
        """One without ring and losses. `rate`: steps of (from ns, bit/s), in order, the first at 0;
        else ValueError."""

    @staticmethod
    def from_json(text: str) -> Link:
        """What `to_json` has written; its nodes are "". Raises ValueError."""

    def to_json(self) -> str:
        """Its text, without its nodes."""

    def with_rate(self, rate: Sequence[tuple[int, int]]) -> Link:
        """The same with these steps of (from ns, bit/s), which do not repeat."""

    def with_qdisc(self, qdisc: Qdisc) -> Link:
        """The same with another discipline."""

    @property
    def name(self) -> str:
        """In every table."""

    @property
    def tail(self) -> str:
        """The node that it leaves."""

    @property
    def head(self) -> str:
        """The node that it leads to."""

    @property
    def rate(self) -> tuple[RateStep, ...]:
        """In order of time, the first at 0; empty: no limit."""

    @property
    def rate_period_ns(self) -> int | None:
        """The steps start again after this long; None: they don't."""

    @property
    def delay_ns(self) -> int:
        """Of propagation, one way."""

    @property
    def qdisc(self) -> Qdisc: ...
    @property
    def framing(self) -> LinkLayer: ...
    @property
    def loss(self) -> RandomLoss | GilbertLoss | StateLoss | None:
        """What the wire loses."""

    @property
    def impairments(self) -> Impairments | None:
        """What else its wire does to packets."""

    @property
    def ring(self) -> Ring | None:
        """The driver's, below the discipline."""

    @property
    def shaper(self) -> Shaper | None:
        """Between discipline and ring."""

    @property
    def police(self) -> Police | None:
        """Before the queue."""

    @property
    def replay_window(self) -> int | None:
        """Packets: that of the tunnels' ends behind it."""

    @property
    def queues(self) -> int | None:
        """Its card's transmit queues, for a discipline that is for each of them; None: one."""

    def pinned_to(self, flow: int) -> int | None:
        """The queue of a flow by its number among the scenario's; None: a hash decides."""

    @property
    def sampled(self) -> bool:
        """Whether it has rows in the `queue` table; a host's own access link has none."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class RateStep:
    """From `at_ns` on a link runs at `bps`; 0 is an outage."""

    @property
    def at_ns(self) -> int: ...
    @property
    def bps(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Ring:
    """A driver's ring of descriptors."""

    @property
    def descriptors(self) -> int:
        """Packets that it holds, the one in transmission among them."""

    @property
    def bql(self) -> bool:
        """Byte queue limits bound it further."""

    @property
    def coalesce_ns(self) -> int:
        """The host is told of completions this long after the first that it does not know of."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class RandomLoss:
    """Each packet is lost with the same probability."""

    @property
    def probability(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class GilbertLoss:
    """Gilbert and Elliott's chain with two states, a step a packet."""

    @property
    def p(self) -> float:
        """Good to bad."""

    @property
    def r(self) -> float:
        """Bad to good."""

    @property
    def bad_loss(self) -> float:
        """The probability of loss in the bad state."""

    @property
    def good_loss(self) -> float:
        """The probability of loss in the good state."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class StateLoss:
    """netem's four states, a step a packet: 1 received, 2 received in a burst, 3 lost in a burst, 4
    lost alone."""

    @property
    def p13(self) -> float: ...
    @property
    def p31(self) -> float: ...
    @property
    def p32(self) -> float: ...
    @property
    def p23(self) -> float: ...
    @property
    def p14(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Impairments:
    """What a wire does besides delaying and losing. Probabilities and correlations are in units of
    2^-32; what is 0 is not there."""

    @property
    def jitter_ns(self) -> int: ...
    @property
    def jitter_correlation(self) -> int: ...
    @property
    def jitter_table(self) -> list[int] | None:
        """The distribution's quantiles in 8192ths of the jitter; None: uniform."""

    @property
    def reorder(self) -> int: ...
    @property
    def reorder_correlation(self) -> int: ...
    @property
    def reorder_gap(self) -> int: ...
    @property
    def duplicate(self) -> int: ...
    @property
    def duplicate_correlation(self) -> int: ...
    @property
    def slot_min_ns(self) -> int: ...
    @property
    def slot_max_ns(self) -> int: ...
    @property
    def slot_packets(self) -> int: ...
    @property
    def slot_bytes(self) -> int: ...
    @property
    def delay_steps(self) -> list[tuple[int, int]]:
        """(from ns, ns of delay), the first at 0; empty: the link's delay."""

    @property
    def delay_period_ns(self) -> int | None: ...
    @property
    def overtake(self) -> bool: ...
    @property
    def ecn(self) -> str | None:
        """What becomes of ECN fields: "bleach", "ect1 to ect0", "ce"; None: nothing."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Flow:
    """One flow or probe."""

    def __new__(
        cls,
        name: str,
        traffic: Ping | Udp,
        *,
        group: int,
        path: Sequence[int],
        back: Sequence[int],
        start_ns: int,
        stop_ns: int | None,
    ) -> Self:
        """One whose RTT is that of its links."""

    @property
    def name(self) -> str:
        """In every table, unique."""

    @property
    def kind(self) -> str:
        """As in the scenario, where an on/off flow is a `udp`."""

    @property
    def finite(self) -> bool:
        """It transfers a size and completes."""

    @property
    def group(self) -> int:
        """The [[flow]] entry that it came from, from 0."""

    @property
    def path(self) -> tuple[int, ...]:
        """Links that its packets cross, in order."""

    @property
    def back(self) -> tuple[int, ...]:
        """Links that its replies cross."""

    @property
    def path_extra_ns(self) -> int:
        """Propagation behind the last link of the path."""

    @property
    def back_extra_ns(self) -> int:
        """Propagation behind the last link of the way back."""

    @property
    def start_ns(self) -> int: ...
    @property
    def stop_ns(self) -> int | None:
        """None: at the end, or when its transfer is complete."""

    @property
    def jitter_ns(self) -> int:
        """Each packet leaves its host up to this much later."""

    @property
    def hosts(self) -> tuple[str | None, str | None]:
        """The hosts at its source and its target, where the scenario names them: `home/laptop`."""

    @property
    def ds(self) -> int:
        """The DS field; its ECN bits are of what programs send, and TCP has its own."""

    @property
    def tunnel(self) -> str | None:
        """The tunnel that its packets are in."""

    @property
    def traffic(self) -> Bulk | Transfers | Stream | Udp | Ping | Video:
        """What it sends."""

    @property
    def tcp(self) -> Tcp | None:
        """Its endpoints, where it is TCP."""

    @property
    def packet_bytes(self) -> tuple[int, int | None]:
        """IP bytes of a full packet and of its reply; None: there are no replies."""

    def traffic_plan(self) -> dict[str, Any]:
        """What it sends as plain values, but for `tcp`, as a guest's plan names them."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Bulk:
    """One TCP connection: endless, or a transfer."""

    @property
    def bytes(self) -> int | None:
        """Of the application; None: it never ends."""

    @property
    def tcp(self) -> Tcp: ...

@final
class Transfers:
    """Transfers one after another, each a new TCP connection."""

    @property
    def bytes(self) -> Draw:
        """Of the application, of each."""

    @property
    def pause_ns(self) -> Draw:
        """Between the end of one and the start of the next; of a web page's objects, from page to
        page."""

    @property
    def objects(self) -> int | None:
        """Of a web page: those that come over this connection; None: no page."""

    @property
    def tcp(self) -> Tcp: ...

@final
class Stream:
    """Video that adapts its rate: segments, each a new TCP connection."""

    @property
    def ladder_bps(self) -> tuple[int, ...]:
        """The rates of the payload, rising."""

    @property
    def segment_ns(self) -> int:
        """What a segment plays."""

    @property
    def ahead_ns(self) -> int:
        """The most that is fetched ahead, in time of playing."""

    @property
    def tcp(self) -> Tcp: ...

@final
class Udp:
    """Datagrams at a constant rate, always or on and off."""

    def __new__(cls, bps: int, packet_bytes: int) -> Self:
        """Always on."""

    @property
    def bps(self) -> int:
        """Of IP bytes, while on."""

    @property
    def packet_bytes(self) -> int: ...
    @property
    def on_ns(self) -> Draw | None:
        """None: always on."""

    @property
    def off_ns(self) -> Draw | None: ...

@final
class Ping:
    """Echo requests and replies."""

    def __new__(cls, interval_ns: int, packet_bytes: int) -> Self: ...
    @property
    def interval_ns(self) -> int: ...
    @property
    def packet_bytes(self) -> int: ...

@final
class Video:
    """RTP video: frames, each cut into packets sent back to back."""

    @property
    def frames(self) -> ModelFrames | TraceFrames: ...
    @property
    def payload_bytes(self) -> int:
        """Of a packet at most; 40 bytes of IP, UDP and RTP headers come on top."""

@final
class ModelFrames:
    """Groups of pictures of log-normal size (crates/traffic)."""

    @property
    def bps(self) -> int: ...
    @property
    def fps(self) -> float: ...
    @property
    def gop(self) -> int: ...
    @property
    def i_ratio(self) -> float: ...
    @property
    def cv(self) -> float: ...

@final
class TraceFrames:
    """Recorded frames, repeated from the beginning."""

    @property
    def frames(self) -> tuple[tuple[int, int], ...]:
        """(ns from the start, bytes)."""

    @property
    def period_ns(self) -> int: ...

@final
class Draw:
    """A law by which a number is drawn each time it is needed."""

    @property
    def mean(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Tcp:
    """The endpoints of a TCP flow."""

    @property
    def profile(self) -> str:
        """Whose TCP it is where nothing else is set."""

    @property
    def congestion(self) -> str:
        """The congestion control: its name, or `FILE.py:CLASS ...` of one's own."""

    @property
    def own(self) -> tuple[str, str, str | None, str | None] | None:
        """Of a congestion control of one's own: file, class, what the scenario sets, text."""

    @property
    def mss(self) -> int:
        """Payload bytes of a full segment."""

    @property
    def header_bytes(self) -> int: ...
    @property
    def ack_bytes(self) -> int: ...
    @property
    def timestamps(self) -> bool: ...
    @property
    def ecn(self) -> bool: ...
    @property
    def accecn(self) -> bool: ...
    @property
    def sack(self) -> bool: ...
    @property
    def dsack(self) -> bool: ...
    @property
    def frto(self) -> bool: ...
    @property
    def rack(self) -> bool: ...
    @property
    def tlp(self) -> bool: ...
    @property
    def initial_window(self) -> int:
        """Segments."""

    @property
    def max_window(self) -> int | None:
        """Segments; None: no limit."""

    @property
    def min_rto_ns(self) -> int: ...
    @property
    def sack_delay_ns(self) -> int: ...
    @property
    def receive_buffer(self) -> int:
        """Bytes at the start."""

    @property
    def receive_buffer_max(self) -> int:
        """Bytes at most."""

    @property
    def parameters(self) -> dict[str, Any]:
        """All of them, as crates/tcp's TcpParams names them."""

    def __eq__(self, other: object, /) -> bool: ...

LINUX_RELEASE: str
"""The kernel whose algorithms `variant linux` of the simulator's disciplines are, and which the
built guest runs."""

QDISCS: dict[str, QdiscRecord]
"""Every queue discipline, by kind, in the order in which they are listed."""

@final
class Qdisc:
    """A queue discipline with every parameter filled in, in tc(8)'s words (crates/tc).

    Those that Linux alone has leave to it what was not said (None), and so does a `red` without
    sizes until its link's rate is known (`at`).
    """

    @staticmethod
    def parse(text: str) -> Qdisc:
        """Reads tc's words; raises UnitError with the place of the wrong one, in characters."""

    @staticmethod
    def from_params(params: Mapping[str, QdiscValue]) -> Qdisc:
        """The discipline with these parameters, as the engine names them; raises UnitError if it
        has no such ones."""

    @staticmethod
    def live_cake(words: str, bps: int, link: LinkLayer | None, arriving: bool) -> Qdisc:
        """cake as the shaper of an interface at a rate, bit/s, with every choice made (crates/tc,
        cake.rs).

        `link` is what a packet takes on the line, None for what Linux counts; `arriving`: it shapes
        what is received. Raises UnitError when the words are none of cake's, or say the rate or the
        line.
        """

    @property
    def kind(self) -> str: ...
    @property
    def variant(self) -> str | None:
        """Which algorithm under this name; None where there is only one."""

    @property
    def params(self) -> dict[str, QdiscValue]:
        """What the engine takes: `{"kind": "codel", "limit": 1000, ...}`."""

    @property
    def child(self) -> Qdisc | None:
        """mq's: what is on each queue of the card."""

    @property
    def text(self) -> str:
        """The canonical words: they read back as the same parameters."""

    @property
    def notes(self) -> list[tuple[str, str, int]]:
        """Words that are read as tc reads them and probably mean something else: (message, hint,
        offset in characters)."""

    @property
    def record(self) -> QdiscRecord:
        """What is known of it whatever its parameters."""

    def at(self, rate_bps: int) -> Qdisc:
        """The same on a link of this rate, bit/s: a `red` without sizes takes those that tc-red(8)
        recommends."""

    def with_(self, field: str, value: QdiscValue) -> Qdisc:
        """The same with one parameter of another value; raises ValueError if it has none of this
        name."""

    def command(self, header_bytes: int = ...) -> str:
        """The words with which tc makes Linux's, all spelt out, on a device whose packets have
        Ethernet's header and where tc-stab(8) has it count one of `header_bytes`; raises UnitError
        where Linux has none of these parameters."""

    @property
    def queue_length(self) -> int | None:
        """The device's txqueuelen, packets, where that is its limit in Linux."""

    def options(self) -> list[tuple[str, int]] | None:
        """Its options in a netlink message, as linux/pkt_sched.h names them; None: sojourn does not
        make it so."""

    def tree(self, device: str, handle: str) -> list[str]:
        """tc's lines for its classes and filters, behind that of `command`; mostly none."""

    def packed_options(self) -> bytes | None:
        """Its options as the attributes of a netlink message, where tc has no words for it; None:
        tc makes it."""

    @property
    def packets(self) -> int:
        """How many packets it holds at most, about: where it counts bytes, full packets of them."""

    @property
    def lacking(self) -> str | None:
        """What of it the simulator lacks: `fq`, or `cake ack-filter`; None: nothing."""

    @property
    def shapes(self) -> bool:
        """Whether it may hold packets back by itself, whatever lies below it."""

    def without_a_rate(self) -> tuple[str, str] | None:
        """Why it can't do without a rate of its link, and what to write; None if it can."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

QdiscCounter = tuple[str, list[str], list[str]]
"""A cause, and the discipline's numbers that count it: those added up, and those taken away."""

@final
class QdiscRecord:
    """What is known of a queue discipline (crates/tc/src/disciplines, a file each).

    What is about Linux's raises ValueError where Linux has none.
    """

    @property
    def kind(self) -> str: ...
    @property
    def simulated(self) -> bool:
        """Whether the simulator has it; else Linux alone."""

    @property
    def since(self) -> tuple[int, int] | None:
        """The release of Linux that it came with, where that is younger than the usual guest's."""

    @property
    def for_each_queue(self) -> bool:
        """Whether it is for a card with several queues, of which each has one of it."""

    @property
    def least(self) -> str:
        """The fewest words with which tc takes it."""

    @property
    def nearest(self) -> str | None:
        """The kind of the simulator's that comes nearest to one that Linux alone has."""

    @property
    def counts_bytes(self) -> bool:
        """Whether its limit is in bytes; else in packets."""

    @property
    def variants(self) -> list[str | None]:
        """The first is the default."""

    def in_linux(self, variant: str | None = None) -> bool:
        """Whether Linux has it, in this variant."""

    def usage(self, variant: str | None = None) -> str:
        """`codel [limit PACKETS] [target TIME] ... [ecn] [noecn]`. Raises ValueError if there is no
        such variant."""

    def words(self, variant: str | None = None) -> list[tuple[str, str | None]]:
        """Each word, and the sort of its value (PACKETS, TIME, ...); None: it stands alone."""

    @property
    def in_order(self) -> bool:
        """Whether Linux's sends packets in the order in which they came."""

    @property
    def drops_at(self) -> str:
        """Where Linux's drops: `arrival`, `departure` (and what comes, at its limit), `head`."""

    @property
    def xstats(self) -> tuple[int, list[str]]:
        """Of its own numbers (TCA_STATS_APP): bytes to skip, and the names of the words of 32 bits
        behind them."""

    @property
    def told_options(self) -> list[tuple[str, str, int]]:
        """Numbers among the options that the kernel tells: name, `attribute` or `word` (of a
        struct), number of it."""

    @property
    def drops(self) -> tuple[str, str, list[QdiscCounter]]:
        """Why it drops: the cause of what comes, of what has waited, and the counters that tell, if
        any do."""

    @property
    def marks(self) -> tuple[str, str, list[QdiscCounter]]:
        """Why it marks, likewise."""

    @property
    def state(self) -> list[StateColumn]:
        """Its state at each sample, for the table `queue`."""

@final
class StateColumn:
    """A column of the table `queue`: numbers of a discipline added up and taken away, as a share of
    a whole."""

    @property
    def column(self) -> str: ...
    @property
    def plus(self) -> list[str]: ...
    @property
    def minus(self) -> list[str]: ...
    @property
    def whole(self) -> float:
        """The number that stands for 1."""

    @property
    def while_on(self) -> str | None:
        """Zero where this number is zero."""

    @property
    def else_field(self) -> str | None:
        """The parameter that holds where the kernel tells none (a number below zero)."""

CONGESTION: dict[str, CongestionRecord]
"""Every congestion control, by the kernel's name, in the order in which they are listed."""

CONGESTION_ELSEWHERE: dict[str, str]
"""Congestion controls that people ask for and that neither simulator nor guest has; and what to
write instead."""

@final
class CongestionRecord:
    """What is known of a congestion control (crates/tcp/src/congestion.rs)."""

    @property
    def name(self) -> str: ...
    @property
    def simulated(self) -> bool:
        """Whether the simulator has it; else Linux alone."""

    @property
    def needs_ecn(self) -> bool:
        """Whether its flows have ECN always, of whichever kind. Known of the simulator's."""

    @property
    def needs_accecn(self) -> bool:
        """Whether that is AccECN always."""

    @property
    def in_linux(self) -> bool: ...
    @property
    def nearest(self) -> str | None:
        """What of the simulator's comes nearest to one that it lacks."""

    @property
    def module_settings(self) -> list[str]:
        """Settings that are parameters of Linux's module: one value for all of its flows."""

LINK_LAYERS: dict[str, LinkLayer]
"""Link layers by cake's names."""

@final
class LinkLayer:
    """What a link layer adds to an IP packet (crates/link, framing.rs)."""

    def __new__(
        cls, header_bytes: int, overhead_bytes: int, minimum_bytes: int = 0, cells: str = "none"
    ) -> Self: ...
    @staticmethod
    def parse(value: object) -> LinkLayer:
        """`ethernet`; `pppoe-ptm`; `atm overhead 40 mpu 64 header 14`. Raises UnitError."""

    @property
    def header_bytes(self) -> int:
        """Added in the queue discipline's count."""

    @property
    def overhead_bytes(self) -> int:
        """Added on the wire."""

    @property
    def minimum_bytes(self) -> int:
        """Smallest size on the wire."""

    @property
    def cells(self) -> str:
        """`none`, `atm` or `ptm`."""

    @property
    def text(self) -> str:
        """The link layer's name, or the words for its numbers."""

    @property
    def params(self) -> dict[str, int | str]:
        """What the engine takes."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Shaper:
    """A token bucket in tc's words: `htb rate 125kbps burst 1600` (crates/tc, shaper.rs)."""

    def __new__(
        cls,
        bps: int,
        burst_bytes: int,
        overhead_bytes: int = 0,
        minimum_bytes: int = 0,
        cells: str = "none",
    ) -> Self: ...
    @staticmethod
    def parse(value: object) -> Shaper | None:
        """`htb rate 125kbps`; `none` is None. Raises UnitError."""

    @property
    def bps(self) -> int: ...
    @property
    def burst_bytes(self) -> int: ...
    @property
    def overhead_bytes(self) -> int:
        """Added to the packet as the discipline counts it."""

    @property
    def minimum_bytes(self) -> int: ...
    @property
    def cells(self) -> str:
        """`none` or `atm`."""

    @property
    def text(self) -> str:
        """The canonical words: what differs from tc's defaults."""

    @property
    def params(self) -> dict[str, int | str]:
        """What the engine takes."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Police:
    """A policer in tc's words: `rate 10mbit burst 64k` (crates/tc, police.rs)."""

    @property
    def bps(self) -> int: ...
    @property
    def burst_bytes(self) -> int: ...
    @property
    def mtu_bytes(self) -> int:
        """The largest packet that passes, as the discipline counts it."""

    @property
    def overhead_bytes(self) -> int:
        """Added to the packet as the discipline counts it."""

    @property
    def text(self) -> str:
        """The canonical words: what differs from tc's defaults."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

def read_rate(text: str) -> int:
    """bit/s of a RATE of tc's: `10mbit`; `kbps` is 1000 bytes a second. Raises UnitError."""

def write_rate(bps: int) -> str:
    """`10mbit`: in the largest unit in which it is whole."""

def default_burst(bps: int) -> int:
    """tc's burst of htb for a rate, bytes."""
