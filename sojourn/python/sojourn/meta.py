"""The content of meta.json: `Meta` and its parts, and `read`, which checks them.

A Run folder may come from anywhere and from any version of sojourn. So `read` checks the type and
the bounds of every value that sojourn reads, and that the values fit together. Values that an older
format lacks have defaults that mean "unknown".
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
"""Version of the folder's layout, in meta.json. Lower versions are read as well; a higher version
was written by a newer sojourn.

Format 1 (sojourn 0.1) lacks `engine_build`, `checksums` and the SHA256SUMS files.
"""


@dataclass(frozen=True)
class LinkInfo:
    """A link of the scenario, as in meta.json."""

    name: str
    qdisc: str
    """In tc's syntax: "fq_codel limit 10240p target 5ms"."""
    rate_bps: Count | None
    """The rate at the start of the run: that of the transmitter or of the shaper, whichever is
    lower; None: no limit."""
    delay_ns: Count = 0
    sampled: bool = True
    """Whether the table `queue` has rows for this link. A host's access link has none, because
    there may be thousands of hosts."""
    shaper: str | None = None
    """In tc's syntax: "htb rate 1mbit"; None: no shaper."""
    police: str | None = None
    """In tc's syntax: "rate 10mbit burst 65536"; None: no policer."""
    ring: Count | None = None
    """The descriptors of the driver's ring; None: no ring."""
    bql: bool = False

    @property
    def below(self) -> str:
        """The parts below the queue, in words: "htb rate 1mbit, ring of 256, BQL"; empty if there
        are none."""
        ring = None if self.ring is None else f"ring of {self.ring}"
        return ", ".join(filter(None, (self.shaper, ring, "BQL" if self.bql else None)))


@dataclass(frozen=True)
class FlowInfo:
    """A flow or probe of the scenario, as in meta.json."""

    name: str
    kind: str
    """The kind of its [[flow]] entry, except for onoff, whose packets are those of udp."""
    congestion: str | None
    """TCP's congestion control; None: not TCP."""
    group: Count
    """The number of its [[flow]] entry in the scenario."""
    path: tuple[str, ...] = ()
    """The links that its packets cross, in order."""
    finite: bool = False
    """Whether it transfers a size and completes."""
    direction: Literal["", "down", "up"] = ""
    """The direction for a measurement: "down" (to the measuring host) or "up"; "" if `path` gives
    the direction."""

    @property
    def probe(self) -> bool:
        """Whether it sends requests and waits for replies."""
        return traffic.is_probe(self.kind)

    @property
    def one_way(self) -> bool:
        """Whether the table `rtt` has the one-way delays of its packets; otherwise it has RTTs."""
        return self.congestion is None and not traffic.is_of_programs(self.kind)


@dataclass(frozen=True)
class Phase:
    """A span of a measurement under one kind of load; a Run of a simulator has none."""

    name: str
    """Unique in a seed: "idle", "download", "idle 2"."""
    kind: str
    """idle, download, upload, both"""
    start_ns: Count
    end_ns: Count
    """`start_ns` and `end_ns` are times on the clock of the seed's tables."""
    seed: Count = 1
    complete: bool = True
    """False: the measurement ended in this phase."""


@dataclass(frozen=True)
class Meta:
    """The description of a Run: scenario, engine, seeds."""

    title: str
    label: str
    """Different for each Run of a sweep or comparison: "fq_codel"."""
    engine: str
    version: str
    duration_ns: Count
    warmup_ns: Count
    seeds_asked: tuple[Count, ...]
    links: tuple[LinkInfo, ...]
    flows: tuple[FlowInfo, ...]
    fingerprint: str = ""
    """A hash of everything that determines the tables: the realised scenario of each seed, and the
    engine's build. Equal fingerprints mean equal tables."""
    engine_build: str | None = None
    """The build of the engine (`Engine.build`); None: not recorded, or a measurement."""
    host: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[Count, ...] = ()
    """The finished seeds, ascending."""
    cpu_s: Mapping[str, Real] = field(default_factory=dict)
    """CPU seconds of each seed, by the seed in digits. They are not in the tables, which are the
    same on every rerun."""
    checksums: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each seed's list of SHA-256 sums, by the seed in digits; empty: sojourn 0.1 wrote
    the Run."""
    phases: tuple[Phase, ...] = ()
    """The phases of a measurement, of all seeds, in order of time."""
    facts: Mapping[str, MeasurementFacts] = field(default_factory=dict)
    """The other facts of a measurement, by the seed in digits."""
    conditions: Mapping[str, str] = field(default_factory=dict)
    """Conditions that the scenario does not contain, such as a kernel's offloads and HZ. Empty:
    there are no others."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """For a variant of a sweep: each key that varies, in the sweep's order, with its value: text, a
    number or true or false. Empty: it is not a variant, or an older sojourn wrote the Run."""
    invalid: tuple[str, ...] = ()
    """Why this Run's numbers must not be used, "seed 1: ..." each, in the order of the seeds;
    empty: no reason is known."""
    format: Annotated[int, msgspec.Meta(ge=1, le=FORMAT)] = FORMAT
    """The format of the folder that it was read from."""

    @property
    def measured_s(self) -> float:
        """The duration without the warm-up, in seconds."""
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
    """The file was written by a newer sojourn; the argument is its version."""


def read(text: bytes) -> Meta:
    """Reads and checks meta.json.

    Raises:
        NewerError: this version does not know its format.
        ValueError: the file is damaged, or sojourn did not write it. The message names the place.
    """
    raw = _json(text)
    # This check is first, because the meaning of a newer format is unknown.
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
    checked = {seed: facts.read(each, f"facts.{seed}") for seed, each in meta.facts.items()}
    return replace(meta, facts=checked)


def _json(text: bytes) -> dict[str, Any]:
    raw = sanitize.read_json(text)
    if not isinstance(raw, dict):
        raise ValueError("not an object")
    return raw


def _problems(meta: Meta) -> Iterator[str]:
    """The contradictions between values."""
    links, flows = [link.name for link in meta.links], [flow.name for flow in meta.flows]
    for what, names in (("links", links), ("flows", flows)):
        if len(set(names)) < len(names):
            yield f"two {what} have the same name"
        # The tables use these names, so they can't be sanitized here.
        if not all(name and sanitize.is_plain(name) for name in names):
            yield f"{what}: a name is empty or has control characters"
    if not {link for flow in meta.flows for link in flow.path} <= set(links):
        yield "flows: a path names a link that is not among the links"
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
    for seed, found in meta.facts.items():
        if "rpm" not in found:
            continue
        loads = [phase for phase in meta.phases if str(phase.seed) == seed and phase.kind != "idle"]
        if len(loads) != len(found["rpm"]["loaded"]):
            yield f"facts.{seed}.rpm: one entry for each loaded phase is needed"
        for loaded in found["rpm"]["loaded"]:
            directions = len(loaded["directions"])
            if any(len(each["moving_average_bps"]) != directions for each in loaded["intervals"]):
                yield f"facts.{seed}.rpm: each interval needs one rate for each direction"
