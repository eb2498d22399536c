"""mtr's raw output (`--raw`), which has each probe to each hop. Its reports (text, JSON, CSV) have
means only, so they are recognised and refused.

Lines of --raw: `x HOP SEQ` a probe was sent, `h HOP ADDRESS`, `p HOP US SEQ` its reply US
microseconds later. The output has no times. A round of probes is placed one second after the
previous one, which is mtr's default (-i).
"""

from __future__ import annotations

import re

from sojourn.formats.content import Content
from sojourn.formats.file_series import Pings
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.measured import FileMeasurement

INTERVAL_S = 1.0


def _is_raw(content: Content) -> bool:
    lines = content.head.splitlines()[:20]
    return bool(lines) and re.match(r"x \d+ \d+$", lines[0]) is not None


def _read_raw(content: Content) -> FileMeasurement:
    sent: dict[int, list[str]] = {}
    rtts: dict[tuple[int, str], float] = {}
    addresses: dict[int, str] = {}
    for row, line in enumerate(content.lines, 1):
        words = line.split()
        match words:
            case ["x", hop, seq]:
                sent.setdefault(int(hop), []).append(seq)
            case ["p", hop, micros, seq]:
                rtts.setdefault((int(hop), seq), int(micros) / 1e3)
            case ["h", hop, address]:
                addresses[int(hop)] = address
            case []:
                pass
            case [kind, *_] if kind in ("d", "t", "m"):
                # Names, and labels of MPLS.
                pass
            case _:
                raise FileFormatError(f"line {row} is not mtr's: {line[:60]!r}")
    pings = []
    taken: set[str] = set()
    for number in sorted(sent):
        if number not in addresses or addresses[number] in taken:
            # This hop did not reply, or it is the target again, which replies for every later hop.
            continue
        taken.add(addresses[number])
        target = Pings(f"hop {number + 1} {addresses[number]}")
        for turn, seq in enumerate(sent[number]):
            target.add(turn * INTERVAL_S, turn, rtts.get((number, seq)))
        pings.append(target)
    if not pings:
        raise FileFormatError("no hop has answered")
    notes = [
        "mtr prints no times: rounds of probes are placed 1 s apart, as mtr sends them unless -i is given."
    ]
    silent = len(sent.keys() - addresses.keys())
    if silent:
        notes.append(f"{silent} hops that never answered are left out.")
    # The target is the last hop; the verdict is about the first series.
    pings.reverse()
    return FileMeasurement("mtr", "", f"{len(pings)} hops", addresses[max(addresses)], None, pings=pings, notes=notes)  # fmt: skip


def _is_report(content: Content) -> bool:
    if content.head.startswith("Mtr_Version,") or re.search(
        r"^HOST: \S+ +Loss%", content.head, re.M
    ):
        return True
    raw = content.json
    return isinstance(raw, dict) and isinstance(raw.get("report"), dict) and "mtr" in raw["report"]


def _read_report(_content: Content) -> FileMeasurement:
    raise FileFormatError(
        "a report of mtr has means, but not the RTT of each probe, so it shows nothing over time; `mtr --raw -c 60 HOST > FILE` writes each RTT"
    )


FORMATS = (
    Format("mtr-raw", "mtr", "mtr --raw -c 60 HOST > FILE", Yields.MEASUREMENT, _is_raw, _read_raw),
    Format("mtr-report", "mtr", "mtr -r HOST > FILE", Yields.MEASUREMENT, _is_report, _read_report, refused=True),
)  # fmt: skip
