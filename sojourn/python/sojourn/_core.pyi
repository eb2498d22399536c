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
"""A hash of the sources of the crates that decide a simulation's bytes: 16 hexadecimal digits
(crates/python/build.rs)."""

TC: str
"""The same for the crates that parse tc's syntax and have the records of disciplines."""

FILES: str
"""The same for the crates that write a table's file."""

METRICS: str
"""The same for the crates that compute numbers from tables."""

BUILD: str
"""The same for all crates."""

LINUX: bool
"""Whether this build is for Linux, which has the kernel engines. False on macOS and Windows."""
CAUSES: list[str]
"""Words of the drop and mark causes, in the order of their numbers in the table `drops`."""

UNITS: list[str]
"""Every unit of a quantity except "%"."""
MAX_DURATION: int
MAX_RATE: int
MAX_SIZE: int

def parse_duration(
    value: object, *, what: str, example: str, zero: bool, most: int, days: bool
) -> int:
    """Nanoseconds. Like each `parse_` function, raises `sojourn.units.UnitError` for any other
    value."""

def parse_rate(value: object, *, zero: bool) -> int:
    """Bit/s."""

def parse_size(value: object, *, what: str, least: int, most: int) -> int:
    """Bytes."""

def parse_probability(value: object) -> float:
    """A fraction."""

def parse_dscp(value: object) -> int:
    """A codepoint, 0 to 63, by its name or its number."""

def format_dscp(dscp: int) -> str | int:
    """The name of a codepoint, or the number if it has no name."""

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
        """The column's name. If the column has a unit, the name ends with it."""
    @property
    def unit(self) -> str:
        """ "ns", "bytes", "packets" or "bits"; "" for plain numbers and names."""
    @property
    def kind(self) -> Literal["integer", "real", "link", "flow", "cause"]:
        """The kind of its values. The last three are names; an engine writes numbers that stand for
        them."""
    @property
    def meaning(self) -> str:
        """The meaning of a value."""
    @property
    def null(self) -> str | None:
        """The meaning of a missing value; None: no value is ever missing."""

@final
class TableSchema:
    """A table as crates/tables declares it."""

    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str:
        """The meaning of a row."""
    @property
    def columns(self) -> tuple[ColumnSchema, ...]:
        """The columns in their order."""

TABLES: dict[str, TableSchema]
"""Every table by its name, as crates/tables declares it."""

@final
class SeedTables(Mapping[str, Columns]):
    """The tables of a seed by name, kept in Rust: each access makes new arrays."""

    def __new__(cls, tables: Mapping[str, Mapping[str, NDArray[Any]]]) -> Self:
        """Takes an engine's arrays of any width: -1 or NaN for a missing value, numbers for names.
        Raises ValueError if a table is not as declared."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str, /) -> Columns: ...
    def get(self, name: str, default: Any = None, /) -> Any: ...
    def parquet(
        self, links: Sequence[str], flows: Sequence[str], causes: Sequence[str]
    ) -> dict[str, bytes]:
        """Each table as Parquet, with the GIL released; the arguments are the names for the tables'
        numbers.

        Raises ValueError if a number has no name.
        """
    def numbers(self, about_json: str) -> Numbers:
        """The numbers of this seed, computed with the GIL released.

        `about_json`: the run, as crates/metrics' `About`. Raises ValueError if a table is missing,
        or a value that its column requires.
        """
    def equals(self, other: SeedTables, names: Sequence[str]) -> bool:
        """Whether the named tables of both are the same, bit by bit."""

@final
class Numbers:
    """The numbers of one seed, kept in Rust."""

    @staticmethod
    def from_bytes(content: bytes) -> Numbers:
        """The numbers in the bytes that `to_bytes` returned.

        Raises:
            ValueError: the bytes are not from `to_bytes`.
        """

    def to_bytes(self) -> bytes:
        """The exact bits, for the same build."""

    def plain(self) -> dict[str, Any]:
        """The keys of `sojourn.numbers.Numbers`, without `seed` and `cpu_s`."""

LATE_MS: float
"""Packets with a longer one-way delay are late."""

def over_seeds(seeds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merges values of equal shape into one value in which each number is {mean, ci95}. Raises
    ValueError if there is no seed."""

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
    """after - before: the difference of the means, and the two ends of its 95 % interval
    (Welch)."""

def student_t975(degrees: int) -> float:
    """The 0.975 quantile of Student's t distribution."""

def wire_bytes(
    overhead_bytes: int, minimum_bytes: int, cells: str, ip_bytes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Bytes of IP packets on the wire (crates/link, framing.rs). Raises ValueError if `cells` is
    not "none", "atm" or "ptm"."""

def bins_of(times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the log-linear bin (crates/tables, histogram.rs) of each time."""

def bins_from(bins: NDArray[np.int64]) -> NDArray[np.int64]:
    """The start of each log-linear bin, ns."""

class Cancelled(Exception):  # noqa: N818  (a request, not an error)
    """The run was stopped by its progress callback or by Ctrl-C."""

@final
class OwnCode:
    """A user's discipline, compiled: C functions `int64_t (state *, const packet *, const link *)`
    by the question that each answers (crates/qdisc, own.rs), and the state at its start. `owner`
    keeps them in memory. The addresses are trusted: only `sojourn.own.compiled` makes one."""

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
    """A user's congestion control, compiled: C functions `int64_t (state *, const ack *, const void
    *)` by the question that each answers (crates/tcp, own.rs), and the state at its start. The
    words 4 to 6 of the state are cwnd, ssthresh and the pacing rate. `paces`: it sets the pacing
    rate. A control with `on_delivery` sets cwnd by itself, and is paced."""

    def __new__(
        cls, functions: dict[str, int], state: bytes, owner: object, *, paces: bool
    ) -> Self: ...

class OwnCodeError(Exception):
    """A user's code failed: (file, class, question, time in ns, its answer or None, reason from
    `sojourn.own.checks.WHYS`, line). A congestion control's answer is the name and the value of the
    variable that it set wrongly."""

def run(
    realised: Realised,
    progress: Callable[[int], bool] | None = None,
    own: dict[str, OwnCode] | None = None,
    controls: dict[str, OwnControlCode] | None = None,
) -> SeedTables:
    """Runs a realised scenario to its end, with the GIL released. `own` is the code of the user's
    disciplines, by their words; `controls` of the user's congestion controls. Raises OwnCodeError
    if one fails.

    `progress` is called about every 50 ms of wall time with the simulated time in ns; returning
    False stops the run. Returns tables by name: each a dict of equally long columns. Raises
    ValueError if only Linux has a discipline or a congestion control of the run, Cancelled when
    stopped, KeyboardInterrupt on Ctrl-C in the main thread.
    """

def watch(
    realised: Realised,
    every_ns: int,
    look: Callable[[int, list[int], list[int], list[int | None]], object],
    own: dict[str, OwnCode] | None = None,
    controls: dict[str, OwnControlCode] | None = None,
) -> None:
    """Runs a realised scenario to its end and reports to `look`.

    `look` is called soon after the start, after each `every_ns` of simulated time, and at the end.
    Its arguments are the time in ns, the packets and the bytes in each link's queue, and each
    flow's congestion window in bytes (None: it has none). The run waits while `look` runs. Raises
    as `run`.
    """

def replay(
    link: Link,
    seed: int,
    t_ns: NDArray[np.int64],
    flow: NDArray[np.int64],
    bytes: NDArray[np.int64],
    ds: NDArray[np.int64],
    after: NDArray[np.int64] | None = None,
    verdict: NDArray[np.int64] | None = None,
    hash: NDArray[np.int64] | None = None,
    truesize: NDArray[np.int64] | None = None,
    place: NDArray[np.int64] | None = None,
    source: NDArray[np.int64] | None = None,
    destination: NDArray[np.int64] | None = None,
    unlikely: Sequence[int] | None = None,
    own: dict[str, OwnCode] | None = None,
) -> dict[str, NDArray[Any]]:
    """Sends recorded arrivals through one link, with the GIL released.

    Each column has one value for each packet, in order of time. The first columns are the packet's
    arrival (from 0), its flow (equal for one direction of a five-tuple), the bytes of the IP
    packet, and the DS field. The other columns are about the recorded queue, whose decisions are
    compared (crates/sim/src/replay.rs). `after`: the number of packets that the recorded queue had
    sent before the packet arrived, which orders events of one instant (-1: not known). `verdict`:
    the queue's decision (`engine/recording`), which random draws follow; without it they are drawn
    from `seed`. `hash`, for fq_codel: the 32 bits of the flow (-1: not known; then no two flows
    share a queue). `truesize`, for fq_codel: the bytes that its memory limit counts (-1: those of a
    datagram). `place`: the number of packets that the queue had sent before it sent or dropped the
    packet, which shows cake's draws. `source` and `destination`: numbers of hosts, for cake's
    sharing among hosts (-1: not known). Draws that the recording does not show have their more
    likely outcome, except those numbered `unlikely`.

    Returns equally long columns of int64, except `state` and `chance` (float64, NaN for none).
    `t_ns` and `order`: the time at which the packet was sent or dropped, and its place in that
    order (-1: never). `refused` (1: dropped on arrival), `dropped` and `marked` (the cause, in the
    order of CAUSES; -1: no), `backlog_packets` and `backlog_bytes` (on arrival). `state`: on
    arrival the discipline's average (RED's in bytes), or its probability if it has no average; on
    departure CoDel's count. `chance`, with `verdict`: the probability that a discipline with random
    draws drops or marks the packet, given all earlier decisions. `drew`: 1 if a draw dropped or
    marked the packet; -1: as in `verdict`. And `unseen`: for each of cake's draws that the
    recording does not show, the number of packets sent before it. Raises ValueError if the link or
    the columns are not valid.
    """

def rng_key(seed: int, name: str) -> int:
    """The key of the random stream with this name in a run with this seed: 64 bits."""

def unpack_zstd(packed: bytes, most: int) -> bytes:
    """Unpacks zstd to at most `most` bytes. Raises ValueError if the data is damaged."""

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
    """The keys of each table of a scenario: the top table has the empty name, a flow's table the
    name of its kind."""

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
        """Whether its packets are segments of TCP connections."""

    @property
    def probe(self) -> bool:
        """Whether its packets are echo requests, which are answered."""

    @property
    def headers(self) -> int | None:
        """Bytes of a datagram's headers; None: it sends no datagrams."""

    @property
    def greedy(self) -> bool:
        """Whether it sends as fast as its path allows, until it is stopped."""

    @property
    def kept(self) -> bool:
        """Whether the flow's messages follow one another over one connection."""

    @property
    def speech(self) -> bool:
        """Whether the flow is speech: its quality is reported as a mean opinion score."""

    @property
    def in_linux(self) -> bool:
        """Whether Linux's engines can send it."""

    @property
    def in_simulator(self) -> bool:
        """Whether the simulator can send it."""

    @property
    def listed_as(self) -> str:
        """The kind under which tables and numbers list a realised flow."""

def traffic_kinds() -> list[TrafficKind]:
    """Every kind of traffic."""

def dotted_key(word: str) -> str | None:
    """The key, in a scenario with a [bottleneck], that a word stands for: sojourn's own word or
    another program's."""

@final
class Problem:
    """One problem of a scenario."""

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
        """The path to the value in the document: ("flow", 0, "rtt")."""

    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int | None:
        """Counts from 1; None if there is no text (a missing file, a scenario made in Python)."""

    @property
    def column(self) -> int | None:
        """Counts from 1, in characters."""

    @property
    def source(self) -> str:
        """The line itself."""

    @property
    def dotted(self) -> str:
        """The key as text: `flow.0.rtt`."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Scenario:
    """Links, queue disciplines, traffic and probes: everything a run needs but its seed. Frozen.
    Scenarios are equal if their runs and names are."""

    @staticmethod
    def read(
        text: str,
        name: str,
        untitled: str | None = None,
        open: Callable[[str], bytes] | None = None,
    ) -> Scenario:
        """Parses the scenario in `text`, which messages call `name`; `untitled` is the title of a
        text without one.

        `open` returns the bytes of a trace by its path, or raises OSError. Raises
        sojourn.scenario.ScenarioError with every problem.
        """

    @staticmethod
    def from_document(
        document: Mapping[str, Any], open: Callable[[str], bytes] | None = None
    ) -> Scenario:
        """Reads the scenario from plain TOML values. Raises sojourn.scenario.ScenarioError with
        every problem."""

    def document(self) -> dict[str, Any]:
        """The scenario as plain TOML values: everything that is not a default."""

    def to_toml(self) -> str:
        """Canonical text: reading it returns an equal Scenario on any machine (traces are written
        out)."""

    def with_(self, changes: Mapping[str, Any] | None = None, /, **more: Any) -> Scenario:
        """The scenario with some keys changed, by dotted key: `scenario.with_({"bottleneck.qdisc":
        "codel"}, seeds=5)`.

        Values are those of a file; None removes the key. Flows and links are named by index or
        name, or all by `*`. A change to a swept key removes it from the sweep.
        """

    def variants(self) -> tuple[Scenario, ...]:
        """One scenario for each point of the sweep, labelled by the values that differ; the
        scenario itself if there is no sweep."""

    def realise(self, seed: int) -> Realised:
        """The run of this scenario with this seed, an engine's input: integers, every flow and link
        written out."""

    def qdisc_key(self, link: str | None = None) -> str:
        """The key whose discipline a comparison replaces. Without `link` it is the bottleneck's
        key, for both directions except one that has a discipline of its own.

        Raises:
            ScenarioError: there is no such link, or one has to be named.
        """

    def fingerprint(self, seeds: Iterable[int] | None = None) -> str:
        """SHA-256 of an engine's input for these seeds, in any order; None: the scenario's own
        seeds.

        Titles, labels and the engine do not change it.
        """

    def meaning(self) -> dict[tuple[str, ...], Any]:
        """Every setting of the links and flows by its path, ("link", "up", "rate"); None: no value.

        Links are resolved and defaults filled in. A random number is its law, not a drawn value.
        Scenarios of equal meaning differ only in wording.
        """

    @property
    def title(self) -> str: ...
    @property
    def label(self) -> str:
        """The difference of this variant of a sweep."""

    @property
    def settings(self) -> dict[str, Any]:
        """For a variant: the swept keys in the sweep's order, each with its value here. Empty for
        other scenarios."""

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
        """Hosts send packets of up to 64 kB to their links (TSO, GSO)."""

    @property
    def dumbbell(self) -> bool:
        """Whether it has a [bottleneck] in place of [[link]]."""

    @property
    def bottleneck(self) -> Bottleneck | None: ...
    @property
    def links(self) -> tuple[LinkEntry, ...]: ...
    @property
    def flows(self) -> tuple[FlowEntry, ...]: ...
    @property
    def sweep(self) -> dict[str, Any]:
        """The keys of `[sweep]`: by dotted key a list of values or a range, and how ranges are
        sampled."""

    def _repr_html_(self) -> str:
        """Returns its topology, links and flows for a notebook (`sojourn.scenario.notebook`)."""

    @property
    def notes(self) -> tuple[Problem, ...]:
        """Accepted words that probably mean something else, each with its place and what to write
        instead."""

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
    """The settings of a link in one table."""

    @property
    def qdisc(self) -> str | None:
        """The queue discipline in tc's syntax."""

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
        """Whether its RTT or its start depends on the seed."""

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
        """A run without warm-up that records no packets."""

    @property
    def duration_ns(self) -> int: ...
    @property
    def warmup_ns(self) -> int:
        """Start of the run that totals and histograms leave out."""

    @property
    def seed(self) -> int: ...
    @property
    def links(self) -> tuple[Link, ...]:
        """The links, each one direction."""

    @property
    def flows(self) -> tuple[Flow, ...]: ...
    @property
    def record(self) -> Record: ...
    @property
    def offloads(self) -> bool:
        """Hosts send packets of up to 64 kB to their links (TSO, GSO)."""

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs of the host that run on its nodes."""

    @property
    def program_sees(self) -> tuple[str, ...]:
        """The folders of the host that they may read; empty: there are no programs."""

    @property
    def program_syscall_ns(self) -> int:
        """The guest's time that each of their system calls takes."""

    @property
    def base_rtts_ns(self) -> list[int | None]:
        """For each flow the round trip of a full packet through empty queues; for a flow without
        replies the one-way delay. None: a link on the path never sends the packet, or its reply."""

    def to_json(self) -> str:
        """Its text without nodes and profiles: equal if the values are equal."""

    def to_text(self) -> str:
        """All of it as text, nodes and profiles too: everything that a run depends on."""

    def with_seed(self, seed: int) -> Realised:
        """The same with another seed for draws during the run; RTTs and start times are drawn
        already and stay."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Program:
    """A program of the host that runs on a node."""

    @property
    def name(self) -> str: ...
    @property
    def node(self) -> str:
        """The node on which it runs, or to which its host is attached."""

    @property
    def end(self) -> tuple[int, bool, bool] | None:
        """For a program of a flow: the flow's number, whether it is the flow's server, and whether
        its host is the flow's source. None: it runs on the node itself."""

    @property
    def command(self) -> str:
        """The command as written."""

    @property
    def words(self) -> list[str]:
        """Its words, with the placeholders `{link:NAME}` and `{address:NODE}`; for a flow's
        program, `{server}` and `{address}`."""

    @property
    def start_ns(self) -> int:
        """When it starts. A flow's server ignores this and starts before the run."""

    @property
    def stop_ns(self) -> int | None:
        """When it gets SIGTERM; None: at the end of the run."""

    @property
    def files(self) -> list[tuple[str, str]]:
        """Its files: name and text."""

    @property
    def env(self) -> list[tuple[str, str]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Record:
    """The recorded tables."""

    @property
    def queue_ns(self) -> int:
        """Interval of the table `queue`."""

    @property
    def flow_ns(self) -> int:
        """Interval of the table `flow`."""

    @property
    def packets(self) -> bool:
        """Whether each packet is recorded."""

    @property
    def headers(self) -> bool:
        """Whether each packet's headers are recorded."""

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
        """A link without ring and losses. `rate`: steps of (from ns, bit/s), in order, the first at
        0; else ValueError."""

    @staticmethod
    def from_json(text: str) -> Link:
        """Reads the text of `to_json`; its nodes are "". Raises ValueError."""

    def to_json(self) -> str:
        """Its text, without its nodes."""

    def with_rate(self, rate: Sequence[tuple[int, int]]) -> Link:
        """The same link with these steps of (from ns, bit/s), which do not repeat."""

    def with_qdisc(self, qdisc: Qdisc) -> Link:
        """The same link with another discipline, which keeps the steps if it is of the same kind."""

    @property
    def qdisc_steps(self) -> tuple[tuple[int, Qdisc], ...]:
        """Steps of its discipline's parameters: (at ns, all parameters from then on)."""

    def with_qdisc_steps(self, steps: Sequence[tuple[int, Qdisc]]) -> Link:
        """The same link with these steps of its discipline's parameters: (at ns, all parameters)."""

    def lacking_change(self) -> str | None:
        """What its discipline's steps change that the simulator can't change while a queue stands,
        as `cake besteffort`; None: nothing."""

    @property
    def name(self) -> str:
        """Its name in every table."""

    @property
    def tail(self) -> str:
        """The node where it starts."""

    @property
    def head(self) -> str:
        """The node where it ends."""

    @property
    def rate(self) -> tuple[RateStep, ...]:
        """In order of time, the first at 0; empty: no limit."""

    @property
    def rate_period_ns(self) -> int | None:
        """The steps repeat after this time; None: they don't."""

    @property
    def delay_ns(self) -> int:
        """One-way propagation delay."""

    @property
    def qdisc(self) -> Qdisc: ...
    @property
    def framing(self) -> LinkLayer: ...
    @property
    def loss(self) -> RandomLoss | GilbertLoss | StateLoss | SteppedLoss | None:
        """The losses of the wire."""

    @property
    def impairments(self) -> Impairments | None:
        """The other impairments of the wire."""

    @property
    def ring(self) -> Ring | None:
        """The driver's ring, below the discipline."""

    @property
    def shaper(self) -> Shaper | None:
        """The shaper between discipline and ring."""

    @property
    def police(self) -> Police | None:
        """The policer before the queue."""

    @property
    def replay_window(self) -> int | None:
        """The replay window of the tunnels' ends behind it, packets."""

    @property
    def queues(self) -> int | None:
        """The number of transmit queues of its card, for a discipline with an instance for each
        queue; None: one queue."""

    def pinned_to(self, flow: int) -> int | None:
        """The queue of a flow, by the flow's number in the scenario; None: a hash decides."""

    @property
    def sampled(self) -> bool:
        """Whether it has rows in the `queue` table; a host's own access link has none."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class RateStep:
    """From `at_ns` on a link has the rate `bps`; 0 is an outage."""

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
        """Packets in the ring at most, with the one in transmission."""

    @property
    def bql(self) -> bool:
        """Whether byte queue limits apply, too."""

    @property
    def coalesce_ns(self) -> int:
        """Completions are reported together, this long after the first of them."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class RandomLoss:
    """Each packet is lost with the same probability."""

    @property
    def probability(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class GilbertLoss:
    """Gilbert and Elliott's chain with two states, one step for each packet."""

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
    """netem's four states, one step for each packet: 1 received, 2 received in a burst, 3 lost in a
    burst, 4 lost alone."""

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
class SteppedLoss:
    """Independent losses, with a probability that changes over time."""

    @property
    def steps(self) -> list[tuple[int, float]]:
        """(from ns, the probability from then on), the first at 0."""

    @property
    def period_ns(self) -> int | None:
        """The steps repeat after this many ns."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Impairments:
    """Impairments of a wire besides delay and loss. Probabilities and correlations are in units of
    2^-32; 0 turns one off."""

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
        """The action on ECN fields: "bleach", "ect1 to ect0", "ce"; None: no action."""
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
        """A flow whose RTT is that of its links."""

    @property
    def name(self) -> str:
        """Its name in every table, unique."""

    @property
    def kind(self) -> str:
        """Its kind in the scenario, except that an on/off flow is a `udp`."""

    @property
    def finite(self) -> bool:
        """Whether it transfers a size and completes."""

    @property
    def group(self) -> int:
        """The index of its [[flow]] entry, from 0."""

    @property
    def path(self) -> tuple[int, ...]:
        """The links that its packets cross, in order."""

    @property
    def back(self) -> tuple[int, ...]:
        """Links that its replies cross."""

    @property
    def path_extra_ns(self) -> int:
        """Propagation behind the last link of the path."""

    @property
    def back_extra_ns(self) -> int:
        """Propagation behind the last link of the path back."""

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
        """The hosts at its source and its target, if the scenario names them: `home/laptop`."""

    @property
    def ds(self) -> int:
        """The DS field of its packets. TCP sets the ECN bits itself; other programs send them as
        they are here."""

    @property
    def tunnel(self) -> str | None:
        """The tunnel of its packets."""

    @property
    def traffic(self) -> Bulk | Transfers | Requests | Stream | Udp | Ping | Video | ProgramTraffic:
        """Its traffic."""

    @property
    def tcp(self) -> Tcp | None:
        """Its endpoints, if it is TCP."""

    @property
    def packet_bytes(self) -> tuple[int, int | None]:
        """IP bytes of a full packet and of its reply; None: there are no replies."""

    def traffic_plan(self) -> dict[str, Any]:
        """Its traffic as plain values, without `tcp`, with the names of a guest's plan."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class Bulk:
    """One TCP connection: endless, or a transfer."""

    @property
    def bytes(self) -> int | None:
        """Application bytes; None: it never ends."""

    @property
    def tcp(self) -> Tcp: ...
    def mean_bps(self, span_ns: int) -> float:
        """The mean rate at which its application writes in the first `span_ns`, bit/s; infinite if
        it always has more to write."""

@final
class Transfers:
    """Transfers one after another, each a new TCP connection."""

    @property
    def bytes(self) -> Draw:
        """Application bytes of each transfer."""

    @property
    def pause_ns(self) -> Draw:
        """The pause from the end of one transfer to the start of the next; for a web page, from one
        page to the next."""

    @property
    def objects(self) -> int | None:
        """For a web page: its objects over this connection; None: no page."""

    @property
    def tcp(self) -> Tcp: ...

@final
class Requests:
    """Requests and answers over one kept TCP connection."""

    @property
    def request_bytes(self) -> Draw:
        """Application bytes of each request."""

    @property
    def bytes(self) -> Draw:
        """Application bytes of each answer."""

    @property
    def pause_ns(self) -> Draw:
        """The pause from the end of an answer to the next request."""

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
        """The playing time of a segment."""

    @property
    def ahead_ns(self) -> int:
        """The longest playing time that is fetched ahead."""

    @property
    def tcp(self) -> Tcp: ...

@final
class Udp:
    """Datagrams at a constant rate, always or on and off."""

    def __new__(cls, bps: int, packet_bytes: int) -> Self:
        """A flow that is always on."""

    @property
    def bps(self) -> int:
        """Rate of IP bytes, while on."""

    @property
    def packet_bytes(self) -> int: ...
    @property
    def on_ns(self) -> Draw | None:
        """None: always on."""

    @property
    def off_ns(self) -> Draw | None: ...

@final
class ProgramTraffic:
    """Whatever two programs of the host send each other."""

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
        """Most payload bytes of a packet; IP, UDP and RTP headers add 40 bytes."""

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
    """Recorded frames, which repeat."""

    @property
    def frames(self) -> tuple[tuple[int, int], ...]:
        """(ns from the start, bytes)."""

    @property
    def period_ns(self) -> int: ...

@final
class Draw:
    """A law from which a number is drawn each time it is needed."""

    @property
    def mean(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Tcp:
    """The endpoints of a TCP flow."""

    @property
    def profile(self) -> str:
        """The profile of everything that is not set."""

    @property
    def congestion(self) -> str:
        """The congestion control: its name, or `FILE.py:CLASS ...` for a user-defined one."""

    @property
    def own(self) -> tuple[str, str, str | None, str | None] | None:
        """For a user's congestion control: file, class, the scenario's settings, text."""

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
    def slow_start_after_idle(self) -> bool: ...
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
        """All parameters by the names in crates/tcp's TcpParams."""

    def __eq__(self, other: object, /) -> bool: ...

LINUX_RELEASE: str
"""The kernel release whose algorithms the simulator's `variant linux` follows, and which the built
guest runs."""

QDISCS: dict[str, QdiscRecord]
"""Every queue discipline by kind, in the order of lists."""

@final
class Qdisc:
    """A queue discipline with every parameter filled in; its texts are tc(8)'s words (crates/tc).

    A discipline that only Linux has leaves unset parameters to Linux (None), and so does a `red`
    without sizes until its link's rate is known (`at`).
    """

    @staticmethod
    def parse(text: str) -> Qdisc:
        """Parses a discipline in tc's syntax. Raises UnitError with the place of the wrong word, in
        characters."""

    @staticmethod
    def from_params(params: Mapping[str, QdiscValue]) -> Qdisc:
        """The discipline with these parameters, by the engine's names. Raises UnitError if it does
        not have them."""

    @staticmethod
    def live_cake(words: str, bps: int, link: LinkLayer | None, arriving: bool) -> Qdisc:
        """cake as the shaper of an interface at a rate, bit/s, with every choice made (crates/tc,
        cake.rs).

        `link` is the overhead of a packet on the line, None for Linux's count. `arriving`: whether
        it shapes received packets. Raises UnitError if the words are not cake's, or if they set the
        rate or the link layer.
        """

    @property
    def kind(self) -> str: ...
    @property
    def variant(self) -> str | None:
        """The algorithm under this name; None if there is only one."""

    @property
    def params(self) -> dict[str, QdiscValue]:
        """The engine's parameters: `{"kind": "codel", "limit": 1000, ...}`."""

    @property
    def child(self) -> Qdisc | None:
        """For mq: the discipline on each queue of the card."""

    @property
    def text(self) -> str:
        """The canonical words: parsing them gives the same parameters."""

    def whole_text(self, mtu: int) -> str:
        """The words of every parameter that has a value, defaults included, and what follows from
        them: red's averaging constant (`ewma`) and its cells of idle time, cake's memory on a link
        whose largest packet has `mtu` bytes."""

    def tins(self, mtu: int) -> list[tuple[str, int, int, int, int]]:
        """cake's tins in the order of `tc -s qdisc show`: heading, threshold bit/s (0: none),
        target ns, interval ns, quantum bytes. Empty for other disciplines."""

    @property
    def notes(self) -> list[tuple[str, str, int]]:
        """Words that are read as tc reads them and probably mean something else: (message, hint,
        offset in characters)."""

    @property
    def record(self) -> QdiscRecord:
        """The facts that do not depend on its parameters."""

    def at(self, rate_bps: int) -> Qdisc:
        """The same discipline on a link of this rate, bit/s: a `red` without sizes gets those that
        tc-red(8) recommends."""

    def with_(self, field: str, value: QdiscValue) -> Qdisc:
        """The same discipline with another value of one parameter. Raises ValueError if it has no
        parameter of this name."""

    def command(self, header_bytes: int = ...) -> str:
        """The tc arguments for Linux, all spelt out. The device's packets have an Ethernet header;
        if `header_bytes` is another size, tc-stab(8) makes the discipline count that size. Raises
        UnitError if Linux's discipline can't have these parameters."""

    def change_command(self) -> str:
        """The tc arguments behind `qdisc change DEVICE` that set all its parameters but those that
        can't be changed. Raises UnitError if Linux has none of these parameters."""

    def changed(self, text: str) -> Qdisc:
        """The discipline after `tc qdisc change` with these words: parameters that they do not name
        keep their values, except where Linux sets all at once (red, pfifo). Raises UnitError if the
        words are wrong, or Linux can't change it."""

    @property
    def queue_length(self) -> int | None:
        """The device's txqueuelen, packets, if Linux takes the limit from there; otherwise None."""

    def options(self) -> list[tuple[str, int]] | None:
        """Its options in a netlink message, by the names of linux/pkt_sched.h; None: sojourn
        configures it in another way."""

    def tree(self, device: str, handle: str) -> list[str]:
        """tc's lines for its classes and filters, after that of `command`; mostly none."""

    def packed_options(self) -> bytes | None:
        """Its options as the attributes of a netlink message, if tc has no words for it; None: tc
        configures it."""

    @property
    def packets(self) -> int:
        """About the most packets that it can hold. A limit in bytes is converted to full
        packets."""

    @property
    def lacking(self) -> str | None:
        """The part that the simulator lacks: `fq`, or `cake ack-filter`; None: nothing."""

    @property
    def shapes(self) -> bool:
        """Whether it may hold packets back by itself, on any link."""

    def without_a_rate(self) -> tuple[str, str] | None:
        """Why it needs a rate of its link, and what to write; None if it needs none."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

QdiscCounter = tuple[str, list[str], list[str]]
"""A cause, and the discipline's numbers that count it: those to add, and those to subtract."""

@final
class QdiscRecord:
    """The facts about a queue discipline (crates/tc/src/disciplines, a file each).

    Properties of Linux's discipline raise ValueError if Linux lacks the discipline.
    """

    @property
    def kind(self) -> str: ...
    @property
    def simulated(self) -> bool:
        """Whether the simulator has it; otherwise only Linux has it."""

    @property
    def since(self) -> tuple[int, int] | None:
        """The first release of Linux with it, if that is later than the usual guest's."""

    @property
    def for_each_queue(self) -> bool:
        """Whether it is for a card with several queues, with an instance for each."""

    @property
    def least(self) -> str:
        """The fewest words with which tc accepts it."""

    @property
    def nearest(self) -> str | None:
        """For a discipline that only Linux has: the most similar kind of the simulator."""

    @property
    def counts_bytes(self) -> bool:
        """Whether its limit is in bytes; otherwise it is in packets."""

    @property
    def variants(self) -> list[str | None]:
        """The first is the default."""

    def in_linux(self, variant: str | None = None) -> bool:
        """Whether Linux has it, in this variant."""

    def usage(self, variant: str | None = None) -> str:
        """`codel [limit PACKETS] [target TIME] ... [ecn] [noecn]`. Raises ValueError if there is no
        such variant."""

    def words(self, variant: str | None = None) -> list[tuple[str, str | None]]:
        """Each word, and the sort of its value (PACKETS, TIME, ...); None: it has no value."""

    @property
    def in_order(self) -> bool:
        """Whether Linux's discipline sends packets in the order of their arrival."""

    @property
    def drops_at(self) -> str:
        """Where Linux's discipline drops: `arrival`, `departure` (and on arrival at its limit),
        `head`."""

    @property
    def xstats(self) -> tuple[int, list[str]]:
        """Its own numbers (TCA_STATS_APP): bytes to skip, and the names of the words of 32 bits
        behind them."""

    @property
    def told_options(self) -> list[tuple[str, str, int]]:
        """Numbers among the options that the kernel reports: name, `attribute` or `word` (of a
        struct), its number."""

    @property
    def drops(self) -> tuple[str, str, list[QdiscCounter]]:
        """Why it drops: the cause on arrival, the cause after waiting, and the counters that show
        it, if there are any."""

    @property
    def marks(self) -> tuple[str, str, list[QdiscCounter]]:
        """Why it marks, likewise."""

    @property
    def state(self) -> list[StateColumn]:
        """Its state at each sample, for the table `queue`."""

@final
class StateColumn:
    """A column of the table `queue`: numbers of a discipline added and subtracted, as a share of a
    whole."""

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
        """A number of the discipline; while it is zero, the column is zero too."""

    @property
    def else_field(self) -> str | None:
        """The parameter to use if the kernel reports no value (a number below zero)."""

CONGESTION: dict[str, CongestionRecord]
"""Every congestion control by the kernel's name, in the order of lists."""

CONGESTION_ELSEWHERE: dict[str, str]
"""Congestion controls that users ask for and that neither simulator nor guest has, with what to
write instead."""

@final
class CongestionRecord:
    """The facts about a congestion control (crates/tcp/src/congestion.rs)."""

    @property
    def name(self) -> str: ...
    @property
    def simulated(self) -> bool:
        """Whether the simulator has it; otherwise only Linux has it."""

    @property
    def needs_ecn(self) -> bool:
        """Whether its flows always use ECN, classic or accurate. Known only for the simulator's
        controls."""

    @property
    def needs_accecn(self) -> bool:
        """Whether its flows always use AccECN."""

    @property
    def in_linux(self) -> bool: ...
    @property
    def nearest(self) -> str | None:
        """For a control that the simulator lacks: its most similar one."""

    @property
    def module_settings(self) -> list[str]:
        """Settings that are parameters of Linux's module, so that all of its flows have one
        value."""

LINK_LAYERS: dict[str, LinkLayer]
"""Link layers by cake's names."""

@final
class LinkLayer:
    """The bytes that a link layer adds to an IP packet (crates/link, framing.rs)."""

    def __new__(
        cls, header_bytes: int, overhead_bytes: int, minimum_bytes: int = 0, cells: str = "none"
    ) -> Self: ...
    @staticmethod
    def parse(value: object) -> LinkLayer:
        """`ethernet`; `pppoe-ptm`; `atm overhead 40 mpu 64 header 14`. Raises UnitError."""

    @property
    def header_bytes(self) -> int:
        """Bytes added in the queue discipline's count."""

    @property
    def overhead_bytes(self) -> int:
        """Bytes added on the wire."""

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
        """The engine's parameters."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Shaper:
    """A token bucket in tc's syntax: `htb rate 125kbps burst 1600` (crates/tc, shaper.rs)."""

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
        """The canonical words: those that differ from tc's defaults."""

    @property
    def params(self) -> dict[str, int | str]:
        """The engine's parameters."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Police:
    """A policer in tc's syntax: `rate 10mbit burst 64k` (crates/tc, police.rs)."""

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
        """The canonical words: those that differ from tc's defaults."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

def read_rate(text: str) -> int:
    """bit/s from tc's RATE: `10mbit`; `kbps` is 1000 bytes a second. Raises UnitError."""

def write_rate(bps: int) -> str:
    """tc's RATE in the largest unit in which it is whole: `10mbit`."""

def default_burst(bps: int) -> int:
    """tc's burst of htb for a rate, bytes."""
