"""iperf 2: its CSV (`-y C`), TCP and UDP.

A row is an interval of a connection: time, address, port, address, port, number, interval, bytes,
bit/s. A server's row of datagrams also has jitter, lost, total, percentage lost, reordered. The last
row of a connection is about its whole time. The file has neither the version nor the sender. A
connection to the server's port is taken for an upload.
"""

from __future__ import annotations

import calendar
import csv
import re
import time

from sojourn.formats.content import Content
from sojourn.formats.file_series import Stream
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import FileMeasurement

_ROW = re.compile(
    r"\d{14}(?:\.\d+)?,[0-9a-fA-F.:]*,\d+,[0-9a-fA-F.:]*,\d+,-?\d+,\d+\.\d+-\d+\.\d+,-?\d+,-?\d+"
)
PORT = 5001
"""The server's port, unless -p gives another."""


def _is_csv(content: Content) -> bool:
    return _ROW.match(content.head.lstrip()) is not None


def _read_csv(content: Content) -> FileMeasurement:
    rows = [row for row in csv.reader(content.lines) if row]
    by_stream: dict[tuple[str, ...], list[list[str]]] = {}
    for number, row in enumerate(rows, 1):
        if not _ROW.match(",".join(row)):
            raise FileFormatError(f"row {number} is not iperf's: {','.join(row)[:60]!r}")
        if row[5] != "-1":
            by_stream.setdefault(tuple(row[1:6]), []).append(row)
    streams: list[Stream] = []
    notes = []
    began = min(_stamp(row[0]) - _interval(row)[1] for row in rows)
    unknown = 0
    for key, intervals in by_stream.items():
        local, remote = int(key[1]), int(key[3])
        unknown += PORT not in (local, remote)
        stream = Stream(f"upload {len(streams) + 1}", "up")
        # Times of day are whole seconds, so connections that began in the same second are taken to
        # have begun together.
        later = _stamp(intervals[0][0]) - _interval(intervals[0])[1] - began
        first = later if later > 1.5 else 0.0
        for row in intervals if len(intervals) == 1 else intervals[:-1]:
            start, end = _interval(row)
            if end > start:
                stream.add(first + start, first + end, float(row[7]))
        whole = intervals[-1]
        if len(whole) >= 13 and int(whole[11]) > 0:
            stream.lost_packets, stream.sent_packets = int(whole[10]), int(whole[11])
            notes.append(
                f"{stream.name}: {whole[10]} of {whole[11]} datagrams lost, jitter {float(whole[9]):.3g} ms."
            )
        streams.append(stream)
    if any(len(intervals) == 1 for intervals in by_stream.values()):
        notes.append(
            "A connection without intervals (-i) has its mean goodput for all of its time."
        )
    if unknown:
        notes.append(f"iperf's file does not say who sent: {unknown} connections to a port other than {PORT} are taken for uploads.")  # fmt: skip
    notes.append(
        "iperf gives the time of a row to the second, in a time zone that it does not name: it is taken for UTC."
    )
    first_row = rows[0]
    host = first_row[3] if int(first_row[4]) == PORT else first_row[1]
    datagrams = any(len(row) >= 13 for row in rows)
    return FileMeasurement(
        program="iperf", version="", test=f"{len(streams)} {'UDP' if datagrams else 'TCP'} upload{'s' * (len(streams) > 1)}", host=host,
        began_s=began, streams=streams, notes=notes,
    )  # fmt: skip


def _interval(row: list[str]) -> tuple[float, float]:
    start, end = row[6].split("-")
    return float(start), float(end)


def _stamp(text: str) -> float:
    whole, _, part = text.partition(".")
    return calendar.timegm(time.strptime(whole, "%Y%m%d%H%M%S")) + float(f"0.{part or 0}")


_PRINTED = re.compile(
    r"^\[ *\d+\] local \S+ port \d+ connected with \S+ port \d+|^\[ ID\] Interval +Transfer +Bandwidth",
    re.M,
)
_OF_IPERF3 = re.compile(r"^\[ *\d+\]\s+local \S+ port \d+ connected to ", re.M)


def _is_text(content: Content) -> bool:
    return _PRINTED.search(content.head) is not None and not _OF_IPERF3.search(content.head)


def _read_text(_content: Content) -> FileMeasurement:
    raise FileFormatError(
        "it is the text that iperf 2 prints, with three digits: run it again with -y C, which writes the bytes of each interval"
    )


FORMATS = (
    Format("iperf2-text", "iperf", "iperf -c HOST > FILE", Yields.MEASUREMENT, _is_text, _read_text, refused=True),
    Format("iperf2-csv", "iperf", "iperf -c HOST -i 1 -y C > FILE", Yields.MEASUREMENT, _is_csv, _read_csv),
)  # fmt: skip
