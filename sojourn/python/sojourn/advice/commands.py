"""The commands for a discipline: tc's commands, and OpenWrt's SQM in /etc/config/sqm.

Source of SQM's options: sqm-scripts' documentation (behaviour). Rates are in kbit/s, `download` and
`upload` as the device sees them; 0 turns shaping off.
"""

from __future__ import annotations

from sojourn.advice.line import AccessLine
from sojourn.linux.tc import DISCIPLINE
from sojourn.scenario.qdisc import LinkLayer, Qdisc

SQM_SCRIPTS = {"cake": "layer_cake.qos"}
"""With the tins of `diffserv3`, cake's default."""
OTHER_SCRIPT = "simplest.qos"
"""A shaper with one discipline below it."""
SQM_QDISCS = ("fq_codel", "codel", "pie", "cake")
"""The disciplines that SQM offers below its shapers."""


def replacing(words: str, interface: str) -> list[str]:
    """The commands for a device that is the bottleneck itself."""
    qdisc = Qdisc.parse(words)
    tree = [f"tc {line}" for line in qdisc.tree(interface, DISCIPLINE)]
    named = f"handle {DISCIPLINE} " if tree else ""
    return [f"tc qdisc replace dev {interface} root {named}{qdisc.command()}", *tree]


def sqm(line: AccessLine, words: str) -> list[str] | None:
    """A section of /etc/config/sqm; None: SQM does not offer this discipline."""
    kind, *more = words.split()
    if kind not in SQM_QDISCS:
        return None
    wanted = line.wanted(words)
    assert wanted.up_bps is not None
    options = {
        "enabled": "1",
        "interface": line.interface,
        "download": str((wanted.down_bps or 0) // 1000),
        "upload": str(wanted.up_bps // 1000),
        "qdisc": kind,
        "script": SQM_SCRIPTS.get(kind, OTHER_SCRIPT),
        **_layer(line.link),
    }
    if more:
        options |= {
            "qdisc_advanced": "1",
            "qdisc_really_really_advanced": "1",
            "iqdisc_opts": " ".join(more),
            "eqdisc_opts": " ".join(more),
        }
    return [
        f"config queue '{line.interface}'",
        *(f"\toption {key} '{value}'" for key, value in options.items()),
    ]


def _layer(link: LinkLayer | None) -> dict[str, str]:
    if link is None:
        return {"linklayer": "none"}
    layer = "atm" if link.cells == "atm" else "ethernet"
    found = {"linklayer": layer, "overhead": str(link.overhead_bytes)}
    if link.minimum_bytes:
        found |= {"linklayer_advanced": "1", "tcMPU": str(link.minimum_bytes)}
    return found
