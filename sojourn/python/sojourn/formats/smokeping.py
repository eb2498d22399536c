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


def _is_xml(content: Content) -> bool:
    return "<rrd>" in content.head


def _read_xml(content: Content) -> FileMeasurement:
    try:
        root = ElementTree.fromstring(content.text.encode())
    except ElementTree.ParseError as error:
        raise FileFormatError(f"its XML is damaged: {error}") from None
    step, updated = int(_text(root, "step")), int(_text(root, "lastupdate"))
    names = [_text(source, "name") for source in root.findall("ds")]
    probes = [at for at, name in enumerate(names) if _PING.match(name)]
    if not probes or "loss" not in names:
        raise FileFormatError("it is not SmokePing's: it has no sources `loss`, `ping1`, ...")
    rows = _rows(root)
    if len(rows) > MOST_ROWS:
        raise FileFormatError(f"it has more than {MOST_ROWS} rows")
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
        f"{len(probes)} probes every {step} s: within a step their order is not known, they are placed a second apart."
    ]
    if unknown:
        notes.append(f"{unknown} steps have no values.")
    return FileMeasurement(
        "smokeping", "", f"every {step} s", "", began, pings=[pings], notes=notes
    )


def _text(element: ElementTree.Element, name: str) -> str:
    found = element.findtext(name)
    if found is None:
        raise FileFormatError(f"it has no <{name}>")
    return found.strip()


def _rows(root: ElementTree.Element) -> list[list[float]]:
    """The rows of the archive of averages with a row for each step."""
    for archive in root.findall("rra"):
        if _text(archive, "cf") == "AVERAGE" and _text(archive, "pdp_per_row") == "1":
            return [
                [float(value.text or "nan") for value in row.findall("v")]
                for row in archive.findall("database/row")
            ]
    raise FileFormatError("it has no archive of averages with a row for each step")


FORMATS = (
    Format("smokeping-xml", "smokeping", "rrdtool dump TARGET.rrd > FILE", Yields.MEASUREMENT, _is_xml, _read_xml),
)  # fmt: skip
