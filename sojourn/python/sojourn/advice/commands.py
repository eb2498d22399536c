"""The commands for a discipline: those of tc, those of MikroTik's RouterOS, and a section of
OpenWrt's /etc/config/sqm.

Source of SQM's options: sqm-scripts' documentation (behaviour). Rates are in kbit/s, `download` and
`upload` as the device sees them; 0 turns shaping off.
"""

from __future__ import annotations

from sojourn.linux import routeros
from sojourn.linux.operations import WantedShape
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


def sqm(wanted: WantedShape, interface: str) -> list[str] | None:
    """A section of /etc/config/sqm; None: SQM does not offer this discipline."""
    kind, *more = wanted.qdisc.split()
    if kind not in SQM_QDISCS:
        return None
    options = {
        "enabled": "1",
        "interface": interface,
        "download": str((wanted.down_bps or 0) // 1000),
        "upload": str((wanted.up_bps or 0) // 1000),
        "qdisc": kind,
        "script": SQM_SCRIPTS.get(kind, OTHER_SCRIPT),
        **_layer(wanted.link),
    }
    if kind == "cake":
        # As in `operations`, cake for received packets has `ingress`: these packets have crossed
        # the line already.
        words = {"i": ["ingress", *more], "e": more}
    else:
        words = {way: [*more, *_kept(wanted.qdisc, more)] for way in "ie"}
    if any(words.values()):
        options |= {"qdisc_advanced": "1", "qdisc_really_really_advanced": "1"}
    options |= {f"{way}qdisc_opts": " ".join(each) for way, each in words.items() if each}
    return [
        f"config queue '{interface}'",
        *(f"\toption {key} '{value}'" for key, value in options.items()),
    ]


def _kept(words: str, given: list[str]) -> list[str]:
    """The settings of a discipline that SQM would change, since its defaults are not those of Linux."""
    full = Qdisc.parse(words).command().split()
    kept = [
        f"{key} {full[full.index(key) + 1]}"
        for key in ("limit", "target", "interval")
        if key in full and key not in given
    ]
    return kept + [word for word in ("ecn", "noecn") if word in full and word not in given]


def _layer(link: LinkLayer | None) -> dict[str, str]:
    if link is None:
        return {"linklayer": "none"}
    layer = "atm" if link.cells == "atm" else "ethernet"
    found = {"linklayer": layer, "overhead": str(link.overhead_bytes)}
    if link.minimum_bytes:
        found |= {"linklayer_advanced": "1", "tcMPU": str(link.minimum_bytes)}
    return found


def mikrotik(wanted: WantedShape, interface: str) -> list[str] | None:
    """Commands of RouterOS 7 for its terminal; None: it does not have this discipline.

    A simple queue limits both directions of the interface to the line. The packets that come from
    its target are the downloads, so they are first in each pair. RouterOS' queues count no overhead;
    cake does.
    """
    link = wanted.link
    layer = ""
    if link is not None and wanted.qdisc.split()[0] == "cake":
        layer = f" overhead {link.overhead_bytes} mpu {link.minimum_bytes}"
        layer += "" if link.cells == "none" else f" {link.cells}"
    types, lines = [], []
    for way, bps, own in (
        ("down", wanted.down_bps, " dual-dsthost"),
        ("up", wanted.up_bps, " dual-srchost"),
    ):
        kind = wanted.qdisc.split()[0]
        words = wanted.qdisc + layer
        if kind == "cake" and not set(words.split()) & set(routeros.CHOICES["cake"]["flowmode"]):
            # With `nat`, cake shares among the hosts behind the router's address.
            words += f"{own} nat"
        if bps is None:
            types.append("default-small")
            continue
        options = routeros.options(words)
        if options is None:
            return None
        types.append(f"sojourn-{way}")
        said = " ".join(f"{name}={value}" for name, value in options.items())
        lines.append(f"/queue type add name=sojourn-{way} {said}")
    limits = "/".join(str(bps or 0) for bps in (wanted.down_bps, wanted.up_bps))
    lines.append(
        f"/queue simple add name=sojourn target={interface} max-limit={limits} queue={'/'.join(types)}"
    )
    return lines
