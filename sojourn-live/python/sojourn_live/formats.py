"""The formats of files that this package reads: flent's, and that of sojourn-probe.

`sojourn list` imports this module, so it imports the readers only when a file is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn.formats import Content, Format, Yields

if TYPE_CHECKING:
    from sojourn.records import Run
    from sojourn.records.measurement import MeasurementSettings


@dataclass(frozen=True)
class _File:
    """A measurement that is read from its file."""

    read: Callable[[Path, MeasurementSettings | None], Run]

    def run(self, path: Path, _data: bytes, settings: MeasurementSettings | None = None) -> Run:
        return self.read(path, settings)


def _is_flent(content: Content) -> bool:
    raw = content.json
    return (
        isinstance(raw, dict)
        and isinstance(raw.get("metadata"), dict)
        and ("results" in raw or "raw_values" in raw)
    )


def _read_flent(_content: Content) -> _File:
    from sojourn_live import flent

    return _File(flent.read)


def _is_probe(content: Content) -> bool:
    raw = content.json
    return isinstance(raw, dict) and str(raw.get("format", "")).startswith("sojourn-probe")


def _read_probe(_content: Content) -> _File:
    from sojourn_live.measure import probe_file

    return _File(probe_file.read)


FORMATS = (
    Format("flent", "flent", "flent TEST -H HOST", Yields.MEASUREMENT, _is_flent, _read_flent),
    Format(
        "sojourn-probe",
        "sojourn-probe",
        "sojourn-probe measure HOST -o FILE.json",
        Yields.MEASUREMENT,
        _is_probe,
        _read_probe,
    ),
)
