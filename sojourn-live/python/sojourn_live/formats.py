"""The formats of files that this package reads: flent's, and that of sojourn-probe.

`sojourn list` imports this module, so it imports the readers only when a file is read.
"""

from __future__ import annotations

from sojourn.formats import Content, Format, Measurement, Yields


def _is_flent(content: Content) -> bool:
    raw = content.json
    return (
        isinstance(raw, dict)
        and isinstance(raw.get("metadata"), dict)
        and ("results" in raw or "raw_values" in raw)
    )


def _read_flent(content: Content) -> Measurement:
    from sojourn_live import flent

    return flent.measurement(content)


def _is_probe(content: Content) -> bool:
    raw = content.json
    return isinstance(raw, dict) and str(raw.get("format", "")).startswith("sojourn-probe")


def _read_probe(content: Content) -> Measurement:
    from sojourn_live.measure import probe_file

    return probe_file.measurement(content)


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
