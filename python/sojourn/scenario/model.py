"""The scenario as a frozen value: what its TOML says, checked, defaults filled in, units gone.

Every table of the language is a class here and every key a field; docs/scenario.md is the same in prose. Text becomes integers
(ns, bytes, bit/s) in the field's type, once; the same type writes the canonical text back. What spans several fields is in
`check.py`; what an engine takes is made by `realise.py`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationError,
    model_validator,
)

from sojourn.scenario import realise as _realise
from sojourn.scenario import sweep as _sweep
from sojourn.scenario.check import check
from sojourn.scenario.errors import CheckError, Problem, ScenarioError, Source
from sojourn.scenario.laws import Draw, Spread, parse_draw, parse_spread
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.tcp import Congestion, Profile, TcpSettings
from sojourn.scenario.toml import to_toml
from sojourn.scenario.trace import resolve_traces
from sojourn.scenario.translate import problems_of
from sojourn.scenario.wire import Framing, Loss, parse_link_layer, parse_loss
from sojourn.units import (
    UnitError,
    format_duration,
    format_rate,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
    quoted,
)

HOUR = 3600 * 10**9
MAX_COUNT = 100_000
"""Flows of one scenario."""
MAX_ROWS = 200_000
"""Rows of a schedule or of a video's frames."""

# The types of the keys: how each is read and written ------------------------------------------------------------------


def _read_duration(value: object) -> int:
    return parse_duration(value, example="60 s", zero=False)


def _read_warmup(value: object) -> int:
    return parse_duration(value, example="5 s")


def _read_time(value: object) -> int:
    return parse_duration(value, example="1 s")


def _read_delay(value: object) -> int:
    return parse_duration(value, what="a delay", example="10 ms", most=HOUR)


def _read_rtt(value: object) -> int:
    return parse_duration(value, what="an RTT", example="50 ms", most=2 * HOUR)


def _read_interval(value: object) -> int:
    ns = parse_duration(value, what="an interval", example="100 ms", zero=False)
    if ns < 1_000:
        raise UnitError(f"an interval of {quoted(value)} is too short", "the least is 1 us")
    return ns


def _read_on(value: object) -> int:
    return parse_duration(value, example="1 s", zero=False)


def _read_link_rate(value: object) -> int | Literal["unlimited"]:
    return "unlimited" if value == "unlimited" else parse_rate(value)


def _write_link_rate(value: int | str) -> str:
    return value if isinstance(value, str) else format_rate(value)


def _read_packet(value: object) -> int:
    return parse_size(value, what="a packet", least=28, most=65_535)


def _read_payload(value: object) -> int:
    return parse_size(value, what="a payload", least=1, most=65_000)


def _read_transfer(value: object) -> int:
    return parse_size(value, what="a transfer", least=1, most=10**12)


def _read_qdisc(value: object) -> Qdisc:
    if isinstance(value, Qdisc):
        return value
    if not isinstance(value, str):
        raise UnitError(
            f"{quoted(value)} is not a queue discipline", 'write tc\'s words in quotes, like "fq_codel"'
        )
    return Qdisc.parse(value)


def _read_seeds(value: object) -> tuple[int, ...]:
    hint = "write a count (seeds = 5 is 1 to 5) or a list (seeds = [3, 8])"
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= 10_000:
            raise UnitError(f"{value} seeds", "give a count from 1 to 10000")
        return tuple(range(1, value + 1))
    if not isinstance(value, list | tuple):
        raise UnitError(f"{quoted(value)} is not a count or a list of seeds", hint)
    for seed in value:
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise UnitError(f"{quoted(seed)} is not a seed", "a seed is a whole number, like 1")
        if not 0 <= seed < 2**63:
            raise UnitError(f"{seed} is not a seed", "a seed is a whole number from 0 to 2^63 - 1")
    if not 1 <= len(value) <= 10_000 or len(set(value)) != len(value):
        raise UnitError(
            f"{len(value)} seeds, {len(set(value))} of them different", "give 1 to 10000 different seeds"
        )
    return tuple(value)


_NAME = re.compile(r"\w[\w .:+-]{0,63}")


def _read_name(value: object) -> str:
    hint = "write letters, digits, spaces and . : + - _, at most 64"
    if not isinstance(value, str) or not _NAME.fullmatch(value) or not value.isprintable():
        raise UnitError(f"{quoted(value)} is not a name", hint)
    if re.search(r"\.[0-9]+$", value) or value != value.strip():
        raise UnitError(
            f"{quoted(value)} is not a name", "the flows of an entry are numbered .1, .2 by themselves"
        )
    return value


def _read_title(value: object) -> str:
    if not isinstance(value, str):
        raise UnitError(
            f"{quoted(value)} is not a title", 'write text in quotes, like "Two uploads and a ping"'
        )
    if len(value) > 300 or not value.isprintable():
        raise UnitError("not a printable line of at most 300 characters", "write one short line")
    return value


Pairs = tuple[tuple[int, int], ...]


def _read_pairs(value: object, what: str, example: str, read: Any) -> Pairs:
    hint = f"write pairs: [{example}, ...]"
    if not isinstance(value, list | tuple) or not value:
        raise UnitError(f"{quoted(value)} is not a list of {what}", hint)
    if len(value) > MAX_ROWS:
        raise UnitError(f"{len(value)} {what}", f"the most is {MAX_ROWS}")
    pairs = []
    for row in value:
        if not isinstance(row, list | tuple) or len(row) != 2:
            raise UnitError(f"{quoted(row)} is not a pair", hint)
        pairs.append((parse_duration(row[0], what="a time", example="10 s"), read(row[1])))
    for (before, _), (after, _) in pairwise(pairs):
        if after <= before:
            times = f"{format_duration(after)} follows {format_duration(before)}"
            raise UnitError(f"times must rise: {times}", "write them in order, each once")
    return tuple(pairs)


def _read_schedule(value: object) -> Pairs:
    return _read_pairs(
        value, "steps", '["0 s", "20 Mbit/s"], ["10 s", "5 Mbit/s"]', lambda x: parse_rate(x, zero=True)
    )


def _write_schedule(pairs: Pairs | None) -> list[list[str]] | None:
    return None if pairs is None else [[format_duration(at), format_rate(bps)] for at, bps in pairs]


def _read_frames(value: object) -> Pairs:
    return _read_pairs(value, "frames", '["0 s", "12 kB"], ["40 ms", "3 kB"]', _read_frame)


def _read_frame(value: object) -> int:
    return parse_size(value, what="a frame", least=1, most=2**31)


def _write_frames(pairs: Pairs | None) -> list[list[str]] | None:
    return None if pairs is None else [[format_duration(at), format_size(size)] for at, size in pairs]


def _write_time(ns: int | None) -> str | None:
    return None if ns is None else format_duration(ns)


def _write_rate(bps: int | None) -> str | None:
    return None if bps is None else format_rate(bps)


def _write_size(size: int | None) -> str | None:
    return None if size is None else format_size(size)


def _write_text(value: Any) -> str | None:
    return None if value is None else str(value.text)


_RTT_EXAMPLE = "50 ms"
Duration = Annotated[int, PlainValidator(_read_duration), PlainSerializer(_write_time)]
Warmup = Annotated[int, PlainValidator(_read_warmup), PlainSerializer(_write_time)]
Moment = Annotated[int, PlainValidator(_read_time), PlainSerializer(_write_time)]
Delay = Annotated[int, PlainValidator(_read_delay), PlainSerializer(_write_time)]
Interval = Annotated[int, PlainValidator(_read_interval), PlainSerializer(_write_time)]
Rate = Annotated[int, PlainValidator(parse_rate), PlainSerializer(_write_rate)]
LinkRate = Annotated[
    int | Literal["unlimited"], PlainValidator(_read_link_rate), PlainSerializer(_write_link_rate)
]
PacketSize = Annotated[int, PlainValidator(_read_packet), PlainSerializer(_write_size)]
Payload = Annotated[int, PlainValidator(_read_payload), PlainSerializer(_write_size)]
TransferSize = Annotated[int, PlainValidator(_read_transfer), PlainSerializer(_write_size)]
Schedule = Annotated[Pairs, PlainValidator(_read_schedule), PlainSerializer(_write_schedule)]
FrameList = Annotated[Pairs, PlainValidator(_read_frames), PlainSerializer(_write_frames)]
Seeds = Annotated[tuple[int, ...], PlainValidator(_read_seeds), PlainSerializer(list)]
Name = Annotated[str, PlainValidator(_read_name)]
Title = Annotated[str, PlainValidator(_read_title)]
QdiscText = Annotated[Qdisc, PlainValidator(_read_qdisc), PlainSerializer(_write_text)]
LinkLayer = Annotated[Framing, PlainValidator(parse_link_layer), PlainSerializer(_write_text)]
LossText = Annotated[Loss, PlainValidator(parse_loss), PlainSerializer(_write_text)]
Rtt = Annotated[
    Spread,
    PlainValidator(lambda value: parse_spread(value, _read_rtt, _RTT_EXAMPLE)),
    PlainSerializer(lambda spread: spread.document(format_duration)),
]
Start = Annotated[
    Spread,
    PlainValidator(lambda value: parse_spread(value, _read_time, "1 s", every=True)),
    PlainSerializer(lambda spread: spread.document(format_duration)),
]
TimeDraw = Annotated[
    Draw,
    PlainValidator(lambda value: parse_draw(value, _read_time, "1 s")),
    PlainSerializer(lambda draw: draw.document(format_duration)),
]
OnDraw = Annotated[
    Draw,
    PlainValidator(lambda value: parse_draw(value, _read_on, "1 s")),
    PlainSerializer(lambda draw: draw.document(format_duration)),
]
SizeDraw = Annotated[
    Draw,
    PlainValidator(lambda value: parse_draw(value, _read_transfer, "50 kB")),
    PlainSerializer(lambda draw: draw.document(format_size)),
]
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]


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
    link_layer: LinkLayer | None = None
    loss: LossText | None = None
    schedule: Schedule | None = None
    repeat: Duration | None = None


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
    stop: Moment | None = None
    access: Rate | None = None
    jitter: Delay = 0


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
    bottleneck: Bottleneck | None = None
    links: Annotated[tuple[LinkEntry, ...], Field(strict=False, alias="link", max_length=10_000)] = ()
    flows: Annotated[tuple[Flow, ...], Field(strict=False, alias="flow", max_length=10_000)] = ()
    record: Record = Record()
    sweep: dict[str, list[Any]] = Field(default_factory=dict)

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
        problems: dict[tuple[object, ...], Problem] = {}
        single = {key: value for key, value in document.items() if key != "sweep"}
        for change in _sweep.changes(scenario.sweep, source):
            try:
                _validated(cls, change.apply(single, source), source)
            except ScenarioError as error:
                for problem in error.problems:
                    moved = change.relocate(problem, source)
                    problems.setdefault((moved.key, moved.message), moved)
                if len(problems) > 100:
                    break
        if problems:
            raise ScenarioError(list(problems.values()))
        return scenario

    def document(self) -> dict[str, Any]:
        """The scenario as plain TOML values: everything that is not a default."""
        return self.model_dump(by_alias=True, exclude_defaults=True, exclude_none=True)

    def to_toml(self) -> str:
        """Canonical text: reading it gives an equal Scenario, on any machine (traces are written out)."""
        return to_toml(self.document())

    def with_(self, **changes: Any) -> "Scenario":
        """The scenario with some keys changed, by dotted key: `scenario.with_(**{"bottleneck.qdisc": "codel"})`.

        Values are what the file would hold; None takes the key away. Flows and links are named by position or name, or all by `*`.
        """
        document = self.document()
        for key, value in changes.items():
            document = _sweep.changed(document, key, value)
        return Scenario.from_document(document)

    def variants(self) -> tuple["Scenario", ...]:
        """One scenario for each point of the sweep, labelled by what differs; the scenario itself where there is none."""
        if not self.sweep:
            return (self,)
        document = self.document()
        sweep = document.pop("sweep")
        changes = _sweep.changes(sweep, Source())
        return tuple(
            Scenario.from_document({**change.apply(document, Source()), "label": label})
            for change, label in zip(changes, _sweep.labels(sweep), strict=True)
        )

    def realise(self, seed: int) -> dict[str, Any]:
        """The run of this scenario with this seed as the engine takes it: integers, every flow and link written out."""
        return _realise.realise(self, seed)

    def fingerprint(self) -> str:
        """SHA-256 of what the engine is given for each seed, and of the engine's revision; the title has no part in it."""
        from sojourn import _core

        digest = hashlib.sha256(f"sojourn {_core.VERSION}\n".encode())
        for variant in self.variants():
            for seed in self.seeds:
                realised = json.dumps(variant.realise(seed), sort_keys=True, separators=(",", ":"))
                digest.update(realised.encode())
        return digest.hexdigest()


def _validated(cls: type[Scenario], document: Mapping[str, Any], source: Source) -> Scenario:
    """The document as a scenario, one `seed` being a list of one and traces being read in."""
    values = dict(document)
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
