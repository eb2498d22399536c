"""Traces of rattan and netem-trace as JSON: models of the rate or of the delay over time.

`StaticBwConfig` and `StaticDelayConfig` are a value for a duration, `TraceBwConfig` a list of
durations with values, `Repeated..PatternConfig` a list of models that is repeated. Durations and
rates are texts (`"10ms"`, `"12Mbps"`), or objects with `secs` and `nanos`, `gbps` and `bps`. A
scenario's trace repeats without end, like a model with `count` 0. A list within a list is repeated
`count` times. Models that are drawn at random (`NormalizedBwConfig`, `SawtoothBwConfig`) are
refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sojourn.formats.content import Content
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.irtt import duration_ms
from sojourn.formats.line_table import MOST_ROWS, trace_texts

if TYPE_CHECKING:
    from sojourn.arrays import Json
    from sojourn.formats.texts import Texts

_MODEL = re.compile(r"^(Static|Repeated|Trace|Normalized|Sawtooth)\w*(Bw|Delay)\w*Config$")
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)bps")
_MBPS = {"": 1e-6, "k": 1e-3, "M": 1.0, "G": 1e3, "T": 1e6}
FOREVER_MS = 1000.0
"""The duration of a model that has none."""


def _is_json(content: Content) -> bool:
    raw = content.json
    return isinstance(raw, dict) and len(raw) == 1 and _MODEL.match(next(iter(raw))) is not None


def _read(content: Content) -> Texts:
    name = next(iter(content.json))
    quantity = "delay" if "Delay" in name else "down"
    series: list[tuple[float, float]] = []
    at = 0.0
    for took, value in _steps(content.json):
        if len(series) > MOST_ROWS:
            raise FileFormatError(f"it has more than {MOST_ROWS} steps")
        series.append((at / 1e3, value))
        at += took
    if not series:
        raise FileFormatError("its pattern is empty")
    # The last row of a trace lasts as long as the row before it, so the last step is two rows.
    series.append(((series[-1][0] + at / 1e3) / 2, series[-1][1]))
    notes = [f"{name}: the trace repeats after {at / 1e3:.4g} s."]
    return trace_texts(content, {quantity: series}, {quantity: name}, notes)


def _steps(model: Json, *, outermost: bool = True) -> Iterator[tuple[float, float]]:
    """The duration in ms and the value of each step: Mbit/s or ms."""
    ((name, about),) = model.items()
    found = _MODEL.match(name)
    if not found:
        raise FileFormatError(f"{name!r} is not a model of a rate or a delay")
    kind, of = found.groups()
    if kind == "Static":
        took = about.get("duration")
        key = "bw" if of == "Bw" else "delay"
        value = _mbps(about[key]) if of == "Bw" else _ms(about[key])
        yield (FOREVER_MS if took is None else _ms(took)), value
    elif kind == "Trace":
        pattern = about["pattern"] if isinstance(about, dict) else about
        for took, values in pattern:
            for value in values:
                yield _ms(took), _mbps(value) if of == "Bw" else _ms(value)
    elif kind == "Repeated":
        count = int(about.get("count", 0))
        if not 0 <= count <= MOST_ROWS:
            raise FileFormatError(f"a count of {count} is not from 0 to {MOST_ROWS}")
        # The outermost list is read once, because the scenario repeats the whole trace.
        for _ in range(1 if outermost else max(count, 1)):
            for each in about["pattern"]:
                yield from _steps(each, outermost=False)
        if not outermost and not count:
            raise FileFormatError(
                "a list within a list is repeated without end (count 0), so what follows it is never reached"
            )
    else:
        raise FileFormatError(f"{name} draws its values at random: write a trace of it")


def _ms(value: Json) -> float:
    if isinstance(value, str):
        return duration_ms(value.replace(" ", ""))
    if isinstance(value, dict):
        return float(value["secs"]) * 1e3 + float(value["nanos"]) / 1e6
    return float(value)


def _mbps(value: Json) -> float:
    if isinstance(value, str):
        found = _RATE.fullmatch(value.strip())
        if not found:
            raise FileFormatError(f"{value!r} is not a rate")
        return float(found[1]) * _MBPS[found[2]]
    if isinstance(value, dict):
        return float(value["gbps"]) * 1e3 + float(value["bps"]) / 1e6
    return float(value)


FORMATS = (
    Format("rattan-json", "rattan", "a model of netem-trace as JSON, like RepeatedBwPatternConfig", Yields.TRACE, _is_json, _read),
)  # fmt: skip
