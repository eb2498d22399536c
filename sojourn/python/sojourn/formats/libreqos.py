"""LibreQoS' ShapedDevices.csv, with the network.json beside it: a scenario of links, sites and circuits.

Each circuit is a link in each direction: a shaper at its maximum with its discipline (`sqm`; cake
unless it says otherwise). network.json's sites are links above them. LibreQoS queues packets of a
full site at the circuits, by htb's classes; the links of a scenario are in series, so a full site
queues them itself, in fq_codel. Minimum rates are classes' guarantees and are left out.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sojourn.errors import UserError
from sojourn.formats.content import Content, open_file
from sojourn.formats.file_series import unique_names
from sojourn.formats.format import FileFormatError, Format, Yields
from sojourn.formats.texts import LINK_LAYER, TO_RUN, Texts
from sojourn.sanitize import plain, toml

NETWORK = "network.json"
HEADER = ("circuit id", "parent node", "download max mbps", "upload max mbps")
DISCIPLINES = {"cake": "cake diffserv4", "fq_codel": "fq_codel", "none": "pfifo"}
"""LibreQoS' names of disciplines; cake with four tins is its default."""
DEFAULT = "cake"
NET = "net"
MOST_CIRCUITS = 50
DELAY, CORE_DELAY = "1 ms", "10 ms"
"""Guessed delays: of a link in the network, and of the link between the network and the Internet
(the node `net`)."""


@dataclass(frozen=True)
class _Link:
    above: str
    below: str
    down_mbps: float
    up_mbps: float
    sqm: tuple[str, str]
    """The disciplines down and up."""

    def lines(self) -> Iterator[str]:
        for source, target, mbps, sqm in (
            (self.above, self.below, self.down_mbps, self.sqm[0]),
            (self.below, self.above, self.up_mbps, self.sqm[1]),
        ):
            values = {
                "from": source, "to": target, "rate": "unlimited", "delay": CORE_DELAY if self.above == NET else DELAY,
                "link_layer": LINK_LAYER, "qdisc": DISCIPLINES[sqm], "shaper": f"htb rate {round(mbps * 1e6)}bit",
            }  # fmt: skip
            yield from (
                "",
                "[[link]]",
                *(f"{key} = {toml(value)}" for key, value in values.items()),
            )
            yield "duplex = false"


def _is_devices(content: Content) -> bool:
    return _header(content.head.splitlines()) is not None


def _header(lines: list[str]) -> int | None:
    """The number of the line that names the columns, from 0."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith("#") and line.strip():
            names = {name.strip().lower() for name in next(csv.reader([line]))}
            return number if names.issuperset(HEADER) else None
    return None


def _read(content: Content) -> Texts:
    start = _header(content.lines)
    if start is None:
        raise FileFormatError("its first line does not name LibreQoS' columns")
    rows = csv.DictReader(content.lines[start:])
    names = [name.strip().lower() for name in rows.fieldnames or ()]
    needed_fields = 1 + max(names.index(name) for name in HEADER)
    sites, notes = _sites(content)
    parents = {link.below for link in sites}
    circuits: dict[str, tuple[str, float, float, tuple[str, str]]] = {}
    for number, row in enumerate(rows, start + 2):
        values = {
            (name or "").strip().lower(): value
            for name, value in row.items()
            if isinstance(value, str)
        }
        circuit = values.get("circuit id", "").strip()
        if not circuit or circuit.startswith("#") or circuit in circuits:
            continue
        fields = sum(value is not None for value in row.values())
        if fields < needed_fields:
            raise FileFormatError(
                f"line {number}: it has {fields} fields, and the first line names {len(names)}"
            )
        parent = values.get("parent node", "").strip()
        if parent not in parents:
            if parent and sites:
                notes.append(
                    f"Line {number}: {NETWORK} has no node {plain(parent)[:40]}: the circuit is attached to the node `net`, the Internet."
                )
            parent = NET
        down, up = (_mbps(values, f"{way} max mbps", number) for way in ("download", "upload"))
        circuits[circuit] = (parent, down, up, _sqm(values.get("sqm", ""), number))
    if not circuits:
        raise FileFormatError("it has no circuit")
    first = list(circuits.items())[:MOST_CIRCUITS]
    labels = [f"circuit {plain(circuit)[:40]}" for circuit, _ in first]
    names = unique_names([NET, *parents, *labels])[-len(labels) :]
    chosen = [
        _Link(parent, name, down, up, sqm)
        for name, (_, (parent, down, up, sqm)) in zip(names, first, strict=True)
    ]
    if len(circuits) > len(chosen):
        notes.append(f"{len(circuits)} circuits: the first {len(chosen)} are taken.")
    needed = _needed(sites, chosen)
    notes.append(
        "A full site queues packets itself, with fq_codel: LibreQoS queues them at the circuits. Minimum rates are left out."
    )
    notes.append(
        f"The file has neither delays nor traffic: {DELAY} of a link, {CORE_DELAY} to the net and a download of each circuit are guesses."
    )
    text = _scenario(content, [*needed, *chosen], chosen)
    taken = [f"{len(chosen)} circuits below {len(needed)} sites"]
    return Texts({".toml": text}, taken, notes, use=TO_RUN)


def _mbps(values: Mapping[str, str], name: str, row: int) -> float:
    try:
        mbps = float(values.get(name, ""))
    except ValueError:
        raise FileFormatError(f"line {row}: {name} is {values.get(name, '')!r}") from None
    if not 0.001 <= mbps <= 1e6:
        raise FileFormatError(f"line {row}: {name} of {mbps:g} can't be true")
    return mbps


def _sqm(words: str, row: int) -> tuple[str, str]:
    """The disciplines down and up: `cake`, `cake/fq_codel`, `/none`."""
    down, slash, up = words.strip().lower().partition("/")
    chosen = (down.strip() or DEFAULT, (up if slash else down).strip() or DEFAULT)
    for each in chosen:
        if each not in DISCIPLINES:
            raise FileFormatError(f"line {row}: sqm {each[:40]!r} is not cake, fq_codel or none")
    return chosen


def _sites(content: Content) -> tuple[list[_Link], list[str]]:
    """The links of the sites, and the notes on them."""
    path = content.path.parent / NETWORK
    if not path.is_file():
        return [], [
            f"There is no {NETWORK} beside it: all circuits are attached to the node `net`, the Internet."
        ]
    raw = open_file(path).json
    try:
        return list(_below(raw, NET)), []
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{path} is not LibreQoS' {NETWORK}: {type(error).__name__}: {error}",
            "each node has downloadBandwidthMbps, uploadBandwidthMbps and children",
        ) from None


def _below(nodes: Any, above: str) -> Iterator[_Link]:
    for name, node in nodes.items():
        down, up = float(node["downloadBandwidthMbps"]), float(node["uploadBandwidthMbps"])
        if not (0.001 <= down <= 1e6 and 0.001 <= up <= 1e6):
            raise ValueError(f"rates {down:g} and {up:g} of {json.dumps(name)}")
        yield _Link(above, plain(name), down, up, ("fq_codel", "fq_codel"))
        yield from _below(node.get("children") or {}, plain(name))


def _needed(sites: list[_Link], circuits: list[_Link]) -> list[_Link]:
    """The sites above these circuits."""
    by_name = {link.below: link for link in sites}
    needed: dict[str, _Link] = {}
    for circuit in circuits:
        name = circuit.above
        while name in by_name and name not in needed:
            needed[name] = by_name[name]
            name = by_name[name].above
    return list(needed.values())


def _scenario(content: Content, links: list[_Link], circuits: list[_Link]) -> str:
    lines = [f"# The network of {plain(content.path.name)}, of LibreQoS.", 'duration = "30 s"']
    for link in links:
        lines += link.lines()
    for circuit in circuits:
        lines += [
            "",
            "[[flow]]",
            'kind = "bulk"',
            f"name = {toml(circuit.below)}",
            f"from = {toml(NET)}",
            f"to = {toml(circuit.below)}",
        ]
    lines += [
        "",
        "[[flow]]",
        'kind = "ping"',
        f"from = {toml(circuits[0].below)}",
        f"to = {toml(NET)}",
        "",
    ]
    return "\n".join(lines)


def _is_network(content: Content) -> bool:
    raw = content.json
    return (
        isinstance(raw, dict)
        and bool(raw)
        and all(isinstance(node, dict) and "downloadBandwidthMbps" in node for node in raw.values())
    )


def _read_network(_content: Content) -> Texts:
    raise FileFormatError("it has sites, but no circuits: give ShapedDevices.csv, which is read with the network.json beside it")  # fmt: skip


FORMATS = (
    Format("libreqos-network", "LibreQoS", "network.json of LibreQoS", Yields.SCENARIO, _is_network, _read_network, refused=True),
    Format("libreqos", "LibreQoS", "ShapedDevices.csv of LibreQoS, network.json beside it", Yields.SCENARIO, _is_devices, _read),
)  # fmt: skip
