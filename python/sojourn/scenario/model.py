"""The scenario as a frozen value: what its TOML says, checked, defaults filled in, units gone.

Every table of the language is a class here and every key a field; docs/scenario.md is the same in prose. Text becomes integers
(ns, bytes, bit/s) in the field's type, once; the same type writes the canonical text back. What spans several fields is in
`check.py`; what an engine takes is made by `realise.py`.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from sojourn.scenario import realise as _realise
from sojourn.scenario import sweep as _sweep
from sojourn.scenario.check import MAX_FLOWS, check
from sojourn.scenario.errors import CheckError, Key, Problem, ScenarioError, Source
from sojourn.scenario.keys import (
    Delay,
    Dscp,
    Duration,
    FrameList,
    Interval,
    LinkLayerText,
    LinkRate,
    LossText,
    Name,
    OnDraw,
    PacketSize,
    Payload,
    QdiscText,
    Rate,
    Ring,
    Rtt,
    Schedule,
    Seeds,
    ShaperText,
    SizeDraw,
    Start,
    TimeDraw,
    Title,
    TransferSize,
    Warmup,
)
from sojourn.scenario.laws import Draw, Spread
from sojourn.scenario.tcp import Congestion, Profile, TcpSettings
from sojourn.scenario.toml import to_toml
from sojourn.scenario.trace import resolve_traces
from sojourn.scenario.translate import problems_of

MAX_ENTRIES = 10_000
"""Tables [[flow]] or [[link]]."""

Count = Annotated[int, Field(ge=1, le=MAX_FLOWS)]


class Table(BaseModel):
    """A table of the scenario file: frozen, strict, without unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_by_name=False,
        validate_by_alias=True,
    )


# Links ---------------------------------------------------------------------------------------------------------------


class Wire(Table):
    """What a link is made of. Absent keys are those of the common table, or the defaults (`topology.Line`)."""

    rate: LinkRate | None = None
    delay: Delay | None = None
    qdisc: QdiscText | None = None
    link_layer: LinkLayerText | None = None
    loss: LossText | None = None
    schedule: Schedule | None = None
    repeat: Duration | None = None
    shaper: ShaperText | None = None
    ring: Ring | None = None
    bql: bool | None = None
    coalesce: Delay | None = None


class Bottleneck(Wire):
    """`[bottleneck]`: the two links of a dumbbell, alike but for what `up` and `down` say."""

    up: Wire | None = None
    down: Wire | None = None


class LinkEntry(Wire):
    """`[[link]]`: a link between two nodes; both ways unless `duplex = false`."""

    name: Name | None = None
    source: Name = Field(alias="from")
    target: Name = Field(alias="to")
    duplex: bool = True


# Flows ---------------------------------------------------------------------------------------------------------------


class FlowEntry(Table):
    """What every kind of `[[flow]]` has."""

    kind: str
    name: Name | None = None
    count: Count = 1
    direction: Literal["down", "up"] | None = None
    source: Name | None = Field(default=None, alias="from")
    target: Name | None = Field(default=None, alias="to")
    via: Annotated[tuple[Name, ...], Field(strict=False)] | None = None
    rtt: Rtt | None = None
    start: Start = Spread("constant", (0,))
    stop: Start | None = None
    access: Rate | None = None
    jitter: Delay = 0
    dscp: Dscp = 0


class TcpFlow(FlowEntry):
    """What every kind that runs over TCP has."""

    congestion: Congestion | None = None
    profile: Profile = "linux"
    ecn: bool = False
    tcp: TcpSettings = TcpSettings()


class Bulk(TcpFlow):
    """One connection that sends without end, or `size`."""

    kind: Literal["bulk"]
    size: TransferSize | None = None


class Transfers(TcpFlow):
    """One transfer after another, each a new connection, with a pause between."""

    kind: Literal["transfers"]
    size: SizeDraw
    pause: TimeDraw = Draw("exponential", (10**9,))


class Udp(FlowEntry):
    """Datagrams at a constant rate."""

    kind: Literal["udp"]
    rate: Rate
    packet: PacketSize = 1500
    ecn: bool = False


class OnOff(FlowEntry):
    """Datagrams at a constant rate while on."""

    kind: Literal["onoff"]
    rate: Rate
    packet: PacketSize = 1500
    ecn: bool = False
    on: OnDraw = Draw("exponential", (10**9,))
    off: TimeDraw = Draw("exponential", (10**9,))


class Ping(FlowEntry):
    """Echo requests and replies."""

    kind: Literal["ping"]
    interval: Interval = 100_000_000
    packet: PacketSize = 84


class Video(FlowEntry):
    """RTP video at a variable bit rate: modelled, or `frames` as recorded."""

    kind: Literal["video"]
    rate: Rate | None = None
    fps: Annotated[float, Field(gt=0, le=1000)] = 25.0
    gop: Annotated[int, Field(ge=1, le=100_000)] = 25
    i_ratio: Annotated[float, Field(ge=1, le=1000)] = 4.0
    cv: Annotated[float, Field(ge=0, le=10)] = 0.25
    payload: Payload = 1200
    frames: FrameList | None = None
    repeat: Duration | None = None


Flow = Annotated[Bulk | Transfers | Udp | OnOff | Ping | Video, Field(discriminator="kind")]


class Record(Table):
    """`[record]`: intervals of the time lines; None: as the size of the run allows."""

    queue: Interval | None = None
    flow: Interval | None = None
    packets: bool = False


# The scenario --------------------------------------------------------------------------------------------------------


class Scenario(Table):
    """Links, queue disciplines, traffic and probes: everything a run needs but its seed."""

    title: Title = "untitled"
    label: Title = ""
    """What distinguishes this variant of a sweep."""
    duration: Duration
    warmup: Warmup = 0
    seeds: Seeds = (1,)
    offloads: bool = False
    """Hosts hand down packets of up to 64 kB (TSO, GSO)."""
    bottleneck: Bottleneck | None = None
    links: Annotated[tuple[LinkEntry, ...], Field(strict=False, alias="link")] = ()
    flows: Annotated[tuple[Flow, ...], Field(strict=False, alias="flow")] = ()
    record: Record = Record()
    sweep: dict[str, list[Any]] = Field(default_factory=dict)
    _notes: tuple[Problem, ...] = PrivateAttr(())

    def __eq__(self, other: object) -> bool:
        """Of what is run and how it is called; notes are about the words it was written in."""
        if not isinstance(other, Scenario):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in Scenario.model_fields)

    @property
    def notes(self) -> tuple[Problem, ...]:
        """What is taken as it is written and probably means something else, each with its place and what to write instead."""
        return self._notes

    @model_validator(mode="after")
    def _check(self) -> "Scenario":
        problems = check(self)
        if problems:
            raise CheckError(problems)
        return self

    @classmethod
    def from_document(cls, document: Mapping[str, Any], source: Source | None = None) -> "Scenario":
        """The scenario that plain TOML values describe; every problem at once in one ScenarioError."""
        source = source or Source()
        scenario = _validated(cls, document, source)
        notes = {(problem.message, problem.key): problem for problem in _notes(scenario, source)}
        problems: dict[tuple[object, ...], Problem] = {}
        single = {key: value for key, value in document.items() if key != "sweep"}
        for change in _sweep.changes(scenario.sweep, source):
            try:
                variant = _validated(cls, change.apply(single, source), source)
            except ScenarioError as error:
                for problem in error.problems:
                    moved = change.relocate(problem, source)
                    # What is wrong with a key, not with its values, is told once.
                    problems.setdefault((moved.key[:2], moved.message), moved)
                if len(problems) > 100:
                    break
            else:
                for note in _notes(variant, source):
                    moved = change.relocate(note, source)
                    notes.setdefault((note.message, note.key), moved)
        if problems:
            raise ScenarioError(list(problems.values()))
        scenario._notes = tuple(notes.values())
        return scenario

    def document(self) -> dict[str, Any]:
        """The scenario as plain TOML values: everything that is not a default."""
        return self.model_dump(by_alias=True, exclude_defaults=True, exclude_none=True)

    def to_toml(self) -> str:
        """Canonical text: reading it gives an equal Scenario, on any machine (traces are written out)."""
        return to_toml(self.document())

    def with_(self, changes: Mapping[str, Any] | None = None, /, **more: Any) -> "Scenario":
        """The scenario with some keys changed, by dotted key: `scenario.with_({"bottleneck.qdisc": "codel"}, seeds=5)`.

        Values are what the file would hold; None takes the key away. Flows and links are named by position or name, or all by `*`.
        A key that the sweep varies is settled: it leaves the sweep.
        """
        document = self.document()
        wanted = {**(changes or {}), **more}
        for key, value in wanted.items():
            document = _sweep.changed(document, key, value)
        # Of what was not changed the words are gone, and what was to be said of them is kept.
        settled = {path for key in wanted for path in _sweep.paths(document, key)}
        swept = _sweep.unsettled(self.sweep, document, settled)
        if len(swept) < len(self.sweep) and "sweep" in document:
            settled |= {
                note.key for note in self.notes if note.key[:1] == ("sweep",) and note.key[1] not in swept
            }
            document["sweep"] = swept
        kept = [note for note in self.notes if note.key not in settled]
        return Scenario.from_document(document)._with_notes(kept)

    def variants(self) -> tuple["Scenario", ...]:
        """One scenario for each point of the sweep, labelled by what differs; the scenario itself where there is none."""
        if not self.sweep:
            return (self,)
        document = self.document()
        sweep = document.pop("sweep")
        changes = _sweep.changes(sweep, Source())
        return tuple(
            Scenario.from_document({**change.apply(document, Source()), "label": label})._with_notes(
                [note for note in self.notes if note.key[:1] != ("sweep",)]
            )
            for change, label in zip(changes, _sweep.labels(sweep), strict=True)
        )

    def _with_notes(self, notes: Sequence[Problem]) -> "Scenario":
        """Itself, with notes of words that it was made from; those that have a place go before the same without one."""
        self._notes = tuple({(note.key, note.message): note for note in (*self._notes, *notes)}.values())
        return self

    def realise(self, seed: int) -> dict[str, Any]:
        """The run of this scenario with this seed as the engine takes it: integers, every flow and link written out."""
        return _realise.realise(self, seed)

    def fingerprint(self, seeds: Iterable[int] | None = None) -> str:
        """SHA-256 of what an engine is given for each of these seeds, whatever their order; None: the scenario's own.

        Titles and labels have no part in it, nor has the engine.
        """
        digest = hashlib.sha256()
        for variant in self.variants():
            for seed in sorted(set(self.seeds if seeds is None else seeds)):
                realised = json.dumps(variant.realise(seed), sort_keys=True, separators=(",", ":"))
                digest.update(realised.encode())
        return digest.hexdigest()


def _notes(scenario: Scenario, source: Source) -> Iterator[Problem]:
    """What the words of its queue disciplines leave doubtful."""
    tables: list[tuple[Key, Wire]] = [(("link", index), entry) for index, entry in enumerate(scenario.links)]
    if (bottleneck := scenario.bottleneck) is not None:
        tables.append((("bottleneck",), bottleneck))
        own = (("down", bottleneck.down), ("up", bottleneck.up))
        tables += [(("bottleneck", way), wire) for way, wire in own if wire is not None]
    for key, wire in tables:
        for note in wire.qdisc.notes if wire.qdisc is not None else ():
            message, hint, offset = note
            yield source.locate(Problem(message, hint, (*key, "qdisc")), offset)


def _validated(cls: type[Scenario], document: Mapping[str, Any], source: Source) -> Scenario:
    """The document as a scenario, one `seed` being a list of one and traces being read in."""
    values = dict(document)
    for name in ("flow", "link"):
        entries = values.get(name)
        if isinstance(entries, list | tuple) and len(entries) > MAX_ENTRIES:
            hint = f"the most is {MAX_ENTRIES}; an entry may have a count"
            raise ScenarioError([source.locate(Problem(f"{len(entries)} tables [[{name}]]", hint, (name,)))])
    problems = []
    if "seed" in values:
        if "seeds" in values:
            problem = Problem("seed and seeds are both given", "keep one of them", ("seed",))
            problems.append(source.at_name(problem))
        values["seeds"] = [values.pop("seed")]
    if isinstance(values.get("sweep"), Mapping):
        values["sweep"] = _sweep.flat(values["sweep"])
    values, trace_problems = resolve_traces(values, source.folder or Path())
    problems += [source.locate(problem) for problem in trace_problems]
    try:
        scenario = cls.model_validate(values)
    except ValidationError as error:
        raise ScenarioError(problems + problems_of(error, cls, document, source)) from None
    if problems:
        raise ScenarioError(problems)
    return scenario
