"""A round-robin database of SmokePing, as `rrdtool dump` writes it (XML).

Each step has N probes (`ping1` to `pingN`, seconds, sorted by RTT) and how many were lost. The
finest archive is read, the one with a row for each step. Within a step the order of the probes is
not known.
"""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

from sojourn.formats.content import Content
from sojourn.formats.file_series import Pings
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import FileMeasurement

_PING = re.compile(r"ping(\d+)$")
MOST_ROWS = 200_000
_CHUNK = 1 << 16
"""The number of bytes that the parser gets at once. It copies them, so the number bounds its
memory."""


def _is_xml(content: Content) -> bool:
    return "<rrd>" in content.head


def _read_xml(content: Content) -> FileMeasurement:
    database = _Database()
    parser = ElementTree.XMLParser(target=database)
    try:
        for first in range(0, len(content.data), _CHUNK):
            parser.feed(content.data[first : first + _CHUNK])
        parser.close()
    except ElementTree.ParseError as error:
        raise FileFormatError(f"its XML is damaged: {error}") from None
    step, updated = int(database.text("step")), int(database.text("lastupdate"))
    names, rows = database.names, database.rows
    probes = [at for at, name in enumerate(names) if _PING.match(name)]
    if not probes or "loss" not in names:
        raise FileFormatError("SmokePing did not write it: it has no sources `loss`, `ping1`, ...")
    if rows is None:
        raise FileFormatError("it has no archive of averages with a row for each step")
    last = updated - updated % step
    loss = names.index("loss")
    pings = Pings("SmokePing")
    began: float | None = None
    unknown = 0
    for number, row in enumerate(rows):
        if math.isnan(row[loss]):
            unknown += began is not None
            continue
        at = float(last - (len(rows) - 1 - number) * step)
        began = at if began is None else began
        rtts = [row[each] * 1e3 for each in probes if not math.isnan(row[each])]
        lost = round(row[loss])
        for place, rtt in enumerate([*rtts, *[None] * lost]):
            # The probes of a step follow each other a second apart, as fping sends them.
            pings.add(at - began + place, len(pings.sent), rtt)
    if began is None:
        raise FileFormatError("all of its rows are empty")
    notes = [
        f"{len(probes)} probes every {step} s: within a step their order is not known, so they are placed a second apart."
    ]
    if unknown:
        notes.append(f"{unknown} steps have no values.")
    return FileMeasurement(
        "smokeping", "", f"every {step} s", "", began, pings=[pings], notes=notes
    )


class _Database:
    """The target of an XML parser: keeps the sources' names and the rows of the finest archive.

    The archives of coarser steps are many times as large, so no tree is built.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rows: list[list[float]] | None = None
        self._path: list[str] = []
        self._text = ""
        self._texts: dict[str, str] = {}
        """The last text of each element whose path is in `_TEXTS`."""
        self._row: list[float] | None = None
        """The row that is being read, of the finest archive."""

    def text(self, path: str) -> str:
        """The text of the element."""
        found = self._texts.get(f"rrd/{path}")
        if found is None:
            raise FileFormatError(f"it has no <{path}>")
        return found

    def start(self, tag: str, _attributes: object) -> None:
        self._path.append(tag)
        self._text = ""
        place = self._place()
        if place == "rrd/rra/database" and self.rows is None and self._is_finest():
            self.rows = []
        elif place == "rrd/rra/database/row" and self.rows is not None and self._is_finest():
            self._row = []

    def _place(self) -> str:
        """The path of the element; "" below the deepest one that is read."""
        return "/".join(self._path) if len(self._path) <= _DEEPEST else ""

    def _is_finest(self) -> bool:
        return (self.text("rra/cf"), self.text("rra/pdp_per_row")) == ("AVERAGE", "1")

    def data(self, text: str) -> None:
        self._text += text

    def end(self, _tag: str) -> None:
        place = self._place()
        text = self._text.strip()
        if place == "rrd/ds/name":
            self.names.append(text)
        elif place in _TEXTS:
            self._texts[place] = text
        elif place == "rrd/rra/database/row/v" and self._row is not None:
            self._row.append(float(text or "nan"))
        elif place == "rrd/rra/database/row" and self._row is not None and self.rows is not None:
            if len(self.rows) == MOST_ROWS:
                raise FileFormatError(f"it has more than {MOST_ROWS} rows")
            self.rows.append(self._row)
            self._row = None
        self._text = ""
        self._path.pop()

    def close(self) -> None:
        """Does nothing; the parser requires this method."""


_TEXTS = ("rrd/step", "rrd/lastupdate", "rrd/rra/cf", "rrd/rra/pdp_per_row")
_DEEPEST = 5
"""The number of elements from the root to a value: rrd/rra/database/row/v."""


FORMATS = (
    Format("smokeping-xml", "smokeping", "rrdtool dump TARGET.rrd > FILE", Yields.MEASUREMENT, _is_xml, _read_xml),
)  # fmt: skip
