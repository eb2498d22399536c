"""The content of a flent file of any version, in the form of version 4.

    none, 1     netperf-wrapper. Columns only, or raw values under SERIES_META. Times are local
    2           raw values under a key of their own. Times are local
    3           times are UTC
    4           raw values have the units of the columns

Before version 4 a raw value of a UDP ping is a rate in transactions per second; from version 4 on
it is ms. Before version 4 a qdisc's counts of drops and marks are cumulative since the test began;
from version 4 on they are counts of an interval. A file may come from anywhere, so its values are
checked before use.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sojourn.arrays import Json
from sojourn.errors import UserError
from sojourn.formats import Content
from sojourn_live.flent.form import VERSION

ZONE_S = 900
"""Time zones differ from UTC by multiples of this."""


def content(file: Content) -> Json:
    """The file's content, not converted.

    Raises:
        UserError: it is not a flent file, or it has a later version.
    """
    raw = file.json
    if raw is None:
        raise damaged(file.path, file.not_json)
    if not isinstance(raw, dict) or not isinstance(raw.get("metadata"), dict):
        raise damaged(file.path, "it has no metadata")
    if type(version := raw.get("version", 1)) is not int or not 1 <= version <= VERSION:
        raise UserError(
            f"{file.path} has version {version!r} of flent's format",
            f"sojourn reads versions 1 to {VERSION}: flent 2.3.0 writes {VERSION}",
        )
    return raw


def damaged(path: Path, why: str) -> UserError:
    """The error for a file that can't be read."""
    return UserError(
        f"{path} is not a flent file that can be read: {why}",
        f"sojourn reads versions 1 to {VERSION}, and netperf-wrapper's files, which have no version",
    )


def modern(raw: Json) -> Json:
    """The content in the form of version 4."""
    version = raw.get("version", 1)
    if version == VERSION:
        return raw
    metadata = raw["metadata"]
    values = raw.get("raw_values") or {}
    if not values:
        about = metadata.get("SERIES_META") or {}
        values = {name: meta["RAW_VALUES"] for name, meta in about.items() if "RAW_VALUES" in meta}
    return {
        **raw,
        "raw_values": {name: _converted(name, points) for name, points in values.items()},
        "metadata": {"FLENT_VERSION": metadata.get("NETPERF_WRAPPER_VERSION", ""), **metadata},
    }


def _converted(name: str, points: list[Json]) -> list[Json]:
    """A series' raw values with the units of version 4."""
    if "UDP" in name:
        return [_round_trip(point) for point in points]
    if not any(key in point for point in points for key in _COUNTED):
        return points
    found: list[Json] = []
    last: dict[str, Any] = {}
    for point in points:
        counted = {key: point[key] for key in _COUNTED if key in point}
        since = {key: value - last.get(key, value) for key, value in counted.items()}
        found.append({**point, **since})
        last |= counted
    return found


_COUNTED = ("dropped", "ecn_mark")


def _round_trip(point: Json) -> Json:
    # Only netperf's values have a `dur`; other programs' values are times already.
    if "dur" not in point or "val" not in point:
        return point
    rate = point["val"]
    return {**point, "val": 1000 / rate if rate else None}


def began(raw: Json) -> tuple[float, bool]:
    """The time of x = 0 in seconds since 1970, and whether the file's time zone is known."""
    metadata = raw["metadata"]
    start = datetime.fromisoformat(metadata.get("T0") or metadata["TIME"])
    if start.tzinfo is not None:
        return start.timestamp(), True
    local = start.replace(tzinfo=UTC).timestamp()
    first = _first(raw["raw_values"])
    if first is None:
        return local, False
    return local + round((first - local) / ZONE_S) * ZONE_S, True


def _first(values: Mapping[str, list[Json]]) -> float | None:
    """The earliest time of the raw values. These are seconds since 1970 whatever the time zone."""
    return min(
        (float(point["t"]) for points in values.values() for point in points if "t" in point),
        default=None,
    )
