"""netperf's interim results (`-D`), of TCP_STREAM (an upload), TCP_MAERTS (a download) and the like.

A line has the goodput of an interval, its length, and the time of day of its end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sojourn.formats.content import Content
from sojourn.formats.file_series import Stream
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import FileMeasurement

if TYPE_CHECKING:
    from sojourn.facts import Direction

_INTERIM = re.compile(
    r"Interim result: +(-?[\d.]+) +(10\^(\d)|[KMG]?)(bits|Bytes)/s over ([\d.]+) seconds ending at ([\d.]+)"
)
_TEST = re.compile(r"MIGRATED (TCP|SCTP|UDP) (STREAM|MAERTS|SENDFILE) TEST from \S+.*? to (\S+)")
_SCALES = {"": 1.0, "K": 2.0**10, "M": 2.0**20, "G": 2.0**30}


def _is_text(content: Content) -> bool:
    return _INTERIM.search(content.head) is not None


def _read_text(content: Content) -> FileMeasurement:
    test = _TEST.search(content.text)
    if not test:
        raise FileFormatError(
            "it does not say which test it is, so the direction is not known: keep netperf's first line (no -P 0)"
        )
    if len(_TEST.findall(content.text)) > 1:
        raise FileFormatError("it has the output of several netperfs: give each a file of its own")
    direction: Direction = "down" if test[2] == "MAERTS" else "up"
    rows = [
        (float(rate) * (10.0 ** int(power) if power else _SCALES[scale]) / (1 if of == "Bytes" else 8), float(took), float(end))
        for rate, scale, power, of, took, end in _INTERIM.findall(content.text)
    ]  # fmt: skip
    began = rows[0][2] - rows[0][1]
    stream = Stream(f"{test[1]} {'download' if direction == 'down' else 'upload'}", direction)
    for rate, took, end in rows:
        # An interval's end minus its length can be a millisecond before the previous end.
        start = max(end - began - took, stream.t[-1] if stream.t else 0.0)
        stream.add(start, max(end - began, start), max(rate, 0.0) * took)
    return FileMeasurement("netperf", "", f"{test[1]}_{test[2]}", test[3], began, streams=[stream])


FORMATS = (
    Format("netperf-text", "netperf", "netperf -D 0.2 -H HOST > FILE", Yields.MEASUREMENT, _is_text, _read_text),
)  # fmt: skip
