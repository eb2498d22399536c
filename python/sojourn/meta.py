"""What was run, as meta.json keeps it: `Meta` and its parts, and `read`, the one reader that checks
them.

A Run folder may come from anywhere and from any version of sojourn. So `read` checks the type and
the bounds of every value that anybody here reads, and that the values fit together: a Meta that it
returns can be relied on. What an older format did not have has its default, which says that it is
not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from sojourn import foreign

FORMAT = 2
"""Version of the folder's layout, in meta.json. A lower one is read as well, a higher one was
written by a newer sojourn.

1, of sojourn 0.1: no `engine_build`, no `checksums`, no SHA256SUMS.
"""

# Within what a column of integers holds: whatever is computed with them stays finite.
_Time = Annotated[int, Field(ge=0, lt=2**63)]
_Count = Annotated[int, Field(ge=0, lt=2**63)]
_Seed = Annotated[int, Field(ge=0, lt=2**63)]
_Real = Annotated[float, Field(allow_inf_nan=False, ge=-1e18, le=1e18)]
_Whole = Annotated[int, Field(gt=-(2**63), lt=2**63)]


@dataclass(frozen=True)
class LinkInfo:
    """A link of the scenario, as meta.json keeps it."""

    name: str
    qdisc: str
    """In tc's words: "fq_codel limit 10240p target 5ms"."""
    rate_bps: _Count | None
    """At the start, the slower of the transmitter's and the shaper's; None: not limited."""
    delay_ns: _Time = 0
    sampled: bool = True
    """It has rows in `queue`; a host's own access link, of which there may be thousands, has
    not."""
    shaper: str | None = None
    """In tc's words: "htb rate 1mbit"; None: no shaper."""
    ring: _Count | None = None
    """The driver's ring, descriptors; None: no ring."""
    bql: bool = False

    @property
    def below(self) -> str:
        """What lies below the queue, in words: "htb rate 1mbit, ring of 256, BQL"; empty where
        nothing does."""
        ring = None if self.ring is None else f"ring of {self.ring}"
        return ", ".join(filter(None, (self.shaper, ring, "BQL" if self.bql else None)))


@dataclass(frozen=True)
class FlowInfo:
    """A flow or probe of the scenario, as meta.json keeps it."""

    name: str
    kind: str
    """bulk, transfers, udp, ping, video"""
    congestion: str | None
    """TCP's congestion control; None: not TCP."""
    group: _Count
    """Number of the scenario's [[flow]] entry it came from."""
    path: tuple[str, ...] = ()
    """Links its packets cross, in order."""
    finite: bool = False
    """It transfers a size and completes."""
    direction: Literal["", "down", "up"] = ""
    """"down" or "up", seen from who measures; "" where the path says it all."""


@dataclass(frozen=True)
class Phase:
    """A span of a measurement under one kind of load; a Run of a simulator has none."""

    name: str
    """Of its own in a seed: "idle", "download", "idle 2"."""
    kind: str
    """idle, download, upload, both"""
    start_ns: _Time
    end_ns: _Time
    """Both on the clock of the seed's tables."""
    seed: _Seed = 1
    complete: bool = True
    """False: the measurement ended in it."""


@dataclass(frozen=True)
class Meta:
    """What was run."""

    title: str
    label: str
    """Tells the Runs of a sweep or comparison apart: "fq_codel"."""
    engine: str
    version: str
    duration_ns: _Time
    warmup_ns: _Time
    seeds_asked: tuple[_Seed, ...]
    links: tuple[LinkInfo, ...]
    flows: tuple[FlowInfo, ...]
    fingerprint: str = ""
    """Of what decides the tables: what is run with each seed asked, and the build of what runs it.
    Equal where they will be."""
    engine_build: str | None = None
    """Names the build of the engine (`Engine.build`); None: not recorded, or a measurement."""
    host: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[_Seed, ...] = ()
    """Seeds that finished, ascending."""
    cpu_s: Mapping[str, _Real] = field(default_factory=dict)
    """CPU seconds that each seed took, by the seed in digits. Here, since a seed's tables are the
    same on every rerun."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each seed's list of SHA-256 sums, by the seed in digits; none: the Run was written
    by sojourn 0.1."""
    phases: tuple[Phase, ...] = ()
    """Of a measurement: those of every seed, each seed's in order of time."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Of a measurement: what else each seed brought back, by the seed in digits
    (`sojourn.live.measure.session.Session.facts`)."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """What held that the scenario does not say: of a kernel its offloads and its HZ. Empty: the
    scenario says everything."""
    invalid: tuple[str, ...] = ()
    """Why this Run's numbers are not to be used, "seed 1: ..." each, in the order of the seeds;
    none: nothing is known against them."""
    format: Annotated[int, Field(ge=1)] = FORMAT
    """Of the folder that it was read from."""

    @property
    def measured_s(self) -> float:
        """Duration less warm-up, in seconds."""
        return (self.duration_ns - self.warmup_ns) / 1e9

    def link(self, name: str) -> LinkInfo:
        """The link of this name."""
        return next(link for link in self.links if link.name == name)

    def phases_of(self, seed: int) -> tuple[Phase, ...]:
        """The phases of one seed."""
        return tuple(phase for phase in self.phases if phase.seed == seed)

    def flow(self, name: str) -> FlowInfo:
        """The flow of this name."""
        return next(flow for flow in self.flows if flow.name == name)


# ------------------------------------------------------------------------------------------ facts


class _Open(BaseModel):
    """What is read of a session's facts. Every key may be missing, unless it has no default here,
    and there may be others."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Host(_Open):
    host: str = ""
    address: str | None = None
    gateway: str | None = None


class _Probe(_Open):
    name: str
    address: str
    how: str = ""
    lost_forward: _Count | None
    lost_backward: _Count | None


class _Clock(_Open):
    by: str
    error_ns: _Real | None
    drift_ppm: _Real | None
    stepped_ns: _Real


class _Lateness(_Open):
    p99: _Real
    max: _Real


class _Interval(_Open):
    connections: _Count
    moving_average_bps: list[_Real]


class _Loaded(_Open):
    directions: list[str]
    start_ns: _Time
    end_ns: _Time
    window_start_ns: _Time
    window_end_ns: _Time
    intervals: list[_Interval]
    goodput_confidence: str
    responsiveness_confidence: str
    unanswered: _Count


class _RpmParameters(_Open):
    tmp: Annotated[float, Field(gt=0, le=1)]


class _Rpm(_Open):
    loaded: list[_Loaded]
    parameters: _RpmParameters
    tls_round_trips: _Real


class _Facts(_Open):
    why: str = ""
    notes: list[str] = []
    # A time of day that `datetime` has: up to the year 9892.
    zero_ns: Annotated[int, Field(ge=0, lt=250_000_000_000 * 10**9)] = 0
    probes: list[_Probe] = []
    clock: _Clock | None = None
    lateness_ns: _Lateness | None = None
    server: _Host = _Host()
    client: _Host = _Host()
    rpm: _Rpm | None = None


# ---------------------------------------------------------------------------------------- reading


class NewerError(Exception):
    """A newer sojourn wrote it; the argument is its version."""


def read(text: bytes) -> Meta:
    """What meta.json says.

    Raises:
        NewerError: its format is one that this version does not know.
        ValueError: it is damaged or none of ours; the sentence says where.
    """
    try:
        raw = TypeAdapter(dict[str, Any]).validate_json(text)
        # Before anything else is judged: what a newer one means is not known.
        if type(raw.get("format")) is int and raw["format"] > FORMAT:
            raise NewerError(str(raw.get("version", "?")))
        if "format" not in raw:
            raise ValueError("it has no format")
        meta = _checked_meta().validate_json(text, strict=True)
        facts = _checked_facts().validate_json(json.dumps(raw.get("facts", {})), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(
            foreign.plain(f"{where}: {first['msg']}" if where else first["msg"])
        ) from None
    for problem in (*_problems(meta), *_problems_of_facts(meta, facts)):
        raise ValueError(problem)
    harmless = foreign.plain_values(raw)
    return (
        meta
        if harmless == raw
        else _checked_meta().validate_json(json.dumps(harmless), strict=True)
    )


@cache
def _checked_meta() -> TypeAdapter[Meta]:
    return TypeAdapter(Meta)


@cache
def _checked_facts() -> TypeAdapter[dict[str, _Facts]]:
    return TypeAdapter(dict[str, _Facts])


def _problems(meta: Meta) -> Iterator[str]:
    """What does not fit together."""
    links, flows = [link.name for link in meta.links], [flow.name for flow in meta.flows]
    for what, names in (("links", links), ("flows", flows)):
        if len(set(names)) < len(names):
            yield f"two {what} have one name"
        # The tables know them by these names, so none can be made harmless here.
        if not all(name and foreign.is_plain(name) for name in names):
            yield f"{what}: a name is empty or has control characters"
    if not {link for flow in meta.flows for link in flow.path} <= set(links):
        yield "flows: a path has a link that is not there"
    if list(meta.seeds) != sorted(set(meta.seeds)):
        yield "seeds: not ascending"
    if not set(map(str, meta.seeds)) <= set(meta.cpu_s):
        yield "cpu_s: a seed is missing"
    if meta.format > 1 and not set(map(str, meta.seeds)) <= set(meta.checksums):
        yield "checksums: a seed is missing"
    if any(phase.end_ns < phase.start_ns for phase in meta.phases):
        yield "phases: one ends before it begins"
    if meta.seeds and not meta.phases and meta.duration_ns < meta.warmup_ns:
        yield "duration_ns: shorter than the warm-up"


def _problems_of_facts(meta: Meta, facts: Mapping[str, _Facts]) -> Iterator[str]:
    for seed, told in facts.items():
        if told.rpm is None:
            continue
        loads = [phase for phase in meta.phases if str(phase.seed) == seed and phase.kind != "idle"]
        if len(loads) != len(told.rpm.loaded):
            yield f"facts.{seed}.rpm: not of these phases"
        for loaded in told.rpm.loaded:
            if any(
                len(each.moving_average_bps) != len(loaded.directions) for each in loaded.intervals
            ):
                yield f"facts.{seed}.rpm: not of these directions"
