"""The types of a scenario's keys: how the text of each becomes a value and the value becomes its canonical text.

A type is read by a function that raises UnitError (a sentence and a hint) and written by one whose text reads back as the same value.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer, PlainValidator

from sojourn.scenario.dscp import format_dscp, parse_dscp
from sojourn.scenario.laws import Draw, Spread, parse_draw, parse_spread
from sojourn.scenario.qdisc import LinkLayer, Qdisc, Shaper
from sojourn.scenario.trace import MAX_ROWS
from sojourn.scenario.wire import Loss, parse_loss
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
MAX_RING = 65_536
"""Descriptors: hardware has up to some thousands."""


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


def _read_ring(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnitError(
            f"{quoted(value)} is not a number of descriptors", "write a whole number, like ring = 512"
        )
    if value == 0:
        raise UnitError("a ring of 0 descriptors would send nothing", "leave ring out, or write 1: no ring")
    if not 0 < value <= MAX_RING:
        raise UnitError(f"a ring of {quoted(value)} descriptors", f"write a number from 1 to {MAX_RING}")
    return value


def _read_shaper(value: object) -> Shaper | Literal["none"]:
    return Shaper.parse(value) or "none"


def _write_shaper(value: Shaper | str | None) -> str | None:
    return value.text if isinstance(value, Shaper) else value


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


def _read_pairs(value: object, what: str, example: str, read: Callable[[object], int]) -> Pairs:
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
LinkLayerText = Annotated[LinkLayer, PlainValidator(LinkLayer.parse), PlainSerializer(_write_text)]
Dscp = Annotated[int, PlainValidator(parse_dscp), PlainSerializer(format_dscp)]
Ring = Annotated[int, PlainValidator(_read_ring)]
ShaperText = Annotated[Shaper | Literal["none"], PlainValidator(_read_shaper), PlainSerializer(_write_shaper)]
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
