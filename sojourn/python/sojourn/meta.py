"""What was run, as meta.json keeps it: `Meta` and its parts, and `read`, the one reader that checks
them.

A Run folder may come from anywhere and from any version of sojourn. So `read` checks the type and
the bounds of every value that anybody here reads, and that the values fit together: a Meta that it
returns can be relied on. What an older format did not have has its default, which says that it is
not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import msgspec

from sojourn import facts, sanitize, shapes, traffic
from sojourn.facts import MeasurementFacts
from sojourn.shapes import Count, Real

FORMAT = 2
"""Version of the folder's layout, in meta.json. A lower one is read as well, a higher one was
written by a newer sojourn.

1, of sojourn 0.1: no `engine_build`, no `checksums`, no SHA256SUMS.
"""


@dataclass(frozen=True)
class LinkInfo:
    """A link of the scenario, as meta.json keeps it."""

    name: str
    qdisc: str
    """In tc's words: "fq_codel limit 10240p target 5ms"."""
    rate_bps: Count | None
    """At the start, the slower of the transmitter's and the shaper's; None: not limited."""
    delay_ns: Count = 0
    sampled: bool = True
    """It has rows in `queue`; a host's own access link, of which there may be thousands, has
    not."""
    shaper: str | None = None
    """In tc's words: "htb rate 1mbit"; None: no shaper."""
    police: str | None = None
    """In tc's words: "rate 10mbit burst 65536"; None: no policer."""
    ring: Count | None = None
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
    """That of its [[flow]] entry, but for onoff, whose packets are udp's."""
    congestion: str | None
    """TCP's congestion control; None: not TCP."""
    group: Count
    """Number of the scenario's [[flow]] entry it came from."""
    path: tuple[str, ...] = ()
    """Links its packets cross, in order."""
    finite: bool = False
    """It transfers a size and completes."""
    direction: Literal["", "down", "up"] = ""
    """"down" or "up", seen from who measures; "" where the path says it all."""

    @property
    def probe(self) -> bool:
        """It asks rather than sends."""
        return traffic.is_probe(self.kind)


@dataclass(frozen=True)
class Phase:
    """A span of a measurement under one kind of load; a Run of a simulator has none."""

    name: str
    """Of its own in a seed: "idle", "download", "idle 2"."""
    kind: str
    """idle, download, upload, both"""
    start_ns: Count
    end_ns: Count
    """Both on the clock of the seed's tables."""
    seed: Count = 1
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
    duration_ns: Count
    warmup_ns: Count
    seeds_asked: tuple[Count, ...]
    links: tuple[LinkInfo, ...]
    flows: tuple[FlowInfo, ...]
    fingerprint: str = ""
    """Of what decides the tables: what is run with each seed asked, and the build of what runs it.
    Equal where they will be."""
    engine_build: str | None = None
    """Names the build of the engine (`Engine.build`); None: not recorded, or a measurement."""
    host: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[Count, ...] = ()
    """Seeds that finished, ascending."""
    cpu_s: Mapping[str, Real] = field(default_factory=dict)
    """CPU seconds that each seed took, by the seed in digits. Here, since a seed's tables are the
    same on every rerun."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each seed's list of SHA-256 sums, by the seed in digits; none: the Run was written
    by sojourn 0.1."""
    phases: tuple[Phase, ...] = ()
    """Of a measurement: those of every seed, each seed's in order of time."""
    facts: Mapping[str, MeasurementFacts] = field(default_factory=dict)
    """Of a measurement: what else each seed brought back, by the seed in digits."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """What held that the scenario does not say: of a kernel its offloads and its HZ. Empty: the
    scenario says everything."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of a variant of a sweep: each key that varies, in the sweep's order, with its value here: text,
    a number or true or false. Empty: it is no variant, or an older sojourn wrote the Run."""
    invalid: tuple[str, ...] = ()
    """Why this Run's numbers must not be used, "seed 1: ..." each, in the order of the seeds;
    none: nothing is known against them."""
    format: Annotated[int, msgspec.Meta(ge=1, le=FORMAT)] = FORMAT
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


# ---------------------------------------------------------------------------------------- reading


class NewerError(Exception):
    """A newer sojourn wrote it; the argument is its version."""


def read(text: bytes) -> Meta:
    """What meta.json says.

    Raises:
        NewerError: its format is one that this version does not know.
        ValueError: it is damaged or none of ours; the sentence says where.
    """
    raw = _json(text)
    # Before anything else is judged: what a newer one means is not known.
    if type(raw.get("format")) is int and raw["format"] > FORMAT:
        raise NewerError(str(raw.get("version", "?")))
    if "format" not in raw:
        raise ValueError("it has no format")
    try:
        meta = _read(raw)
    except ValueError as error:
        raise ValueError(sanitize.plain(str(error))) from None
    for problem in (*_problems(meta), *_problems_of_facts(meta)):
        raise ValueError(problem)
    harmless = sanitize.plain_values(raw)
    return meta if harmless == raw else _read(harmless)


def _read(raw: dict[str, Any]) -> Meta:
    meta = shapes.read(Meta, raw)
    told = {seed: facts.read(each, f"facts.{seed}") for seed, each in meta.facts.items()}
    return replace(meta, facts=told)


def _json(text: bytes) -> dict[str, Any]:
    raw = sanitize.read_json(text)
    if not isinstance(raw, dict):
        raise ValueError("not an object")
    return raw


def _problems(meta: Meta) -> Iterator[str]:
    """What does not fit together."""
    links, flows = [link.name for link in meta.links], [flow.name for flow in meta.flows]
    for what, names in (("links", links), ("flows", flows)):
        if len(set(names)) < len(names):
            yield f"two {what} have one name"
        # The tables know them by these names, so none can be made harmless here.
        if not all(name and sanitize.is_plain(name) for name in names):
            yield f"{what}: a name is empty or has control characters"
    if not {link for flow in meta.flows for link in flow.path} <= set(links):
        yield "flows: a path has a link that is not there"
    if not all(isinstance(value, str | int | float) for value in meta.settings.values()):
        yield "settings: a value is neither text nor a number"
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


def _problems_of_facts(meta: Meta) -> Iterator[str]:
    for seed, told in meta.facts.items():
        if "rpm" not in told:
            continue
        loads = [phase for phase in meta.phases if str(phase.seed) == seed and phase.kind != "idle"]
        if len(loads) != len(told["rpm"]["loaded"]):
            yield f"facts.{seed}.rpm: not of these phases"
        for loaded in told["rpm"]["loaded"]:
            directions = len(loaded["directions"])
            if any(len(each["moving_average_bps"]) != directions for each in loaded["intervals"]):
                yield f"facts.{seed}.rpm: not of these directions"
