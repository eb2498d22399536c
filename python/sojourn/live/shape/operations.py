"""A shaper for a live interface: from two rates, a queue discipline and a link layer to a list of
operations. Pure.

What is sent passes the shaper on the interface itself; what arrives is redirected to a device of
our own (an IFB) and passes one there. Both have the same tree (linux/tc): htb keeps the rate, the
discipline lies below it. cake is both in one. The shaper must be slower than the modem or the
provider's box, so that packets wait here, where the discipline sees them, and it must count what
the link layer adds.

At low rates a full packet takes long: at 1 Mbit/s 14 ms, more than CoDel's usual target. Then the
target is one packet's time, and the interval 95 ms more. htb's burst is what the rate brings in
1 ms, so that the timer may be late, and at least one packet in ATM cells.

Source: sqm-scripts' simplest.qos and defaults (behaviour); RFC 8289 §4.4 for the target; tc-htb(8),
tc-cake(8), tc-stab(8). Deviations from sqm-scripts: one class in place of two nested ones, htb's
own overhead in place of tc-stab's table, PTM by 64/65 of the rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sojourn.errors import UserError
from sojourn.linux import tc
from sojourn.linux.rtnl import Former, Interface
from sojourn.scenario.qdisc import LinkLayer, Qdisc, read_rate, write_rate
from sojourn.units import parse_rate

LEAST_BPS = 64_000
"""A full packet takes 190 ms: no shaper makes that a usable line."""
MOST_BPS = 40 * 10**9
LEAST_MTU = 576
QUANTUM_BELOW_BPS = 100 * 10**6
SMALL_QUANTUM = 300
"""fq_codel's below that rate: small packets go before large ones."""
SHORT_NS = 20 * 10**6
"""Of a queue that manages itself by its limit alone."""
FEWEST_PACKETS = 4
"""In such a queue: a loss is seen by three packets that follow it."""
SHORT_LIMIT = 1001
"""Packets in fq_codel and codel at home rates, where the usual 10240 are memory that a small router
lacks."""
MANY_QUANTA = 200_000
"""The kernel warns of more."""
IFB_PREFIX = "sj-"
NAME_MAX = 15
BURSTY_NS = 10**6
"""A packet of 64 kB that takes longer than this at the shaper's rate is worth a word."""
CPU_WALL_BPS = 500 * 10**6
SUPER_PACKET = 65_536
LEAVES = ("fq_codel", "codel", "bfifo", "pfifo", "pfifo_head_drop")
"""What htb may have below it here."""
TUNNELS = (
    "wireguard",
    "tun",
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "ipip",
    "sit",
    "ip6tnl",
    "vti",
    "xfrm",
    "vxlan",
    "geneve",
    "ppp",
)


@dataclass(frozen=True)
class WantedShape:
    """What a person asks for."""

    up_bps: int | None
    """What the interface sends; None: left alone."""
    down_bps: int | None
    """What it receives."""
    qdisc: str = "fq_codel"
    """tc's words; what they leave open is chosen for the rate."""
    link: LinkLayer | None = None
    """None: a packet is counted as Linux does, nothing added."""


@dataclass(frozen=True)
class ShapePlan:
    """What will be done, and what is to be said about it."""

    operations: tuple[tc.Operation, ...]
    notes: tuple[str, ...]
    """What the person should know, each a sentence or two."""
    ifb: str | None
    """The device that is made for what arrives."""

    @property
    def commands(self) -> list[str]:
        """For a terminal."""
        return [tc.command(operation) for operation in self.operations]


def parse_shaped_rate(text: str) -> int:
    """Bit/s of `18mbit` (tc's words) or `18 Mbit/s`; refuses what no home or office has."""
    bps = parse_rate(text) if "/" in text else read_rate(text)
    if not LEAST_BPS <= bps <= MOST_BPS:
        least, most = write_rate(LEAST_BPS), write_rate(MOST_BPS)
        raise UserError(
            f"a shaper at {write_rate(bps)} is outside of what this is for",
            f"write a rate from {least} to {most}; bit is bits, bps is bytes a second",
        )
    return bps


def plan(wanted: WantedShape, interface: Interface, former: Former) -> ShapePlan:
    """The operations for an interface in the state that it is in.

    Raises:
        UnitError: the discipline's words are wrong or none of Linux's, or a rate is none for this
            interface.
    """
    _check(wanted, interface)
    operations: list[tc.Operation] = []
    if wanted.up_bps is not None:
        if former.has_own_root:
            operations.append(tc.DeleteQdisc(interface.name, "root"))
        operations += _tree(interface.name, wanted.up_bps, wanted, interface, arriving=False)
    ifb = None
    if wanted.down_bps is not None:
        ifb = ifb_name(interface)
        # The last step sends packets there, when everything is ready for them.
        operations += [
            tc.AddIfb(ifb),
            *_tree(ifb, wanted.down_bps, wanted, interface, arriving=True),
            tc.SetUp(ifb),
        ]
        if former.has_ingress:
            operations.append(tc.DeleteQdisc(interface.name, "ingress"))
        operations += [
            tc.AddQdisc(interface.name, "ingress", tc.INGRESS, tc.Ingress()),
            tc.Redirect(interface.name, ifb),
        ]
    return ShapePlan(tuple(operations), tuple(_notes(wanted, interface, former)), ifb)


def again(wanted: WantedShape, interface: Interface, ifb: str | None) -> list[tc.Operation]:
    """The operations that give other rates to a shaper that `plan` made in the same directions."""
    operations: list[tc.Operation] = []
    for device, bps in ((interface.name, wanted.up_bps), (ifb, wanted.down_bps)):
        if device is not None and bps is not None:
            # Made anew: what is chosen for a rate (target, limit) goes with it, and not every
            # discipline can change that.
            operations.append(tc.DeleteQdisc(device, "root"))
            operations += _tree(device, bps, wanted, interface, arriving=device == ifb)
    return operations


def ifb_name(interface: Interface) -> str:
    """At most 15 bytes, as Linux has it."""
    name = IFB_PREFIX + interface.name
    return name if len(name) <= NAME_MAX else f"{IFB_PREFIX}if{interface.index}"


def _check(wanted: WantedShape, interface: Interface) -> None:
    if wanted.up_bps is None and wanted.down_bps is None:
        raise UserError(
            "neither --up nor --down is given", "say at least one rate, like --up 18mbit"
        )
    if interface.kind == "loopback":
        raise UserError(
            f"{interface.name} is the loopback: what it sends it receives, and no line is behind it",
            "name the interface to the modem or to the internet",
        )
    for word, bps in (("--up", wanted.up_bps), ("--down", wanted.down_bps)):
        if bps is not None and interface.speed_bps is not None and bps >= interface.speed_bps:
            raise UserError(
                f"{word} {write_rate(bps)} is not below the {write_rate(interface.speed_bps)} of {interface.name}: it would never act",
                "write a little less than what the line carries, measured without a shaper: about 90 %",
            )


# ------------------------------------------------------------------------------------- one device


def _tree(
    device: str, bps: int, wanted: WantedShape, interface: Interface, *, arriving: bool
) -> list[tc.Operation]:
    """A shaper and its discipline on a device that has the kernel's default."""
    if wanted.qdisc.split()[:1] == ["cake"]:
        cake = Qdisc.live_cake(wanted.qdisc, bps, wanted.link, arriving)
        return [tc.AddQdisc(device, "root", tc.ROOT, cake)]
    link = wanted.link
    cells = link.cells if link else "none"
    # 65 bytes for each 64: htb has no word for it.
    kept = bps * 64 // 65 if cells == "ptm" else bps
    more = link.overhead_bytes - interface.header_bytes if link else 0
    burst = max(kept // 8000, one_packet(interface))
    return [
        # htb's own overhead can't be below 0, as that of a link layer with less than Ethernet's
        # header.
        tc.AddQdisc(device, "root", tc.ROOT, tc.Htb(1), extra_bytes=min(0, more)),
        tc.SetClass(
            device,
            tc.ROOT,
            f"{tc.ROOT}1",
            kept,
            burst,
            min(burst, MANY_QUANTA),
            overhead_bytes=max(0, more),
            minimum_bytes=link.minimum_bytes if link else 0,
            cells="atm" if cells == "atm" else "none",
        ),
        tc.AddQdisc(device, f"{tc.ROOT}1", tc.DISCIPLINE, leaf(wanted.qdisc, kept, interface)),
    ]


def one_packet(interface: Interface) -> int:
    """A full packet in ATM cells with the largest overhead there is: 1749 bytes of 1500."""
    return -(-(max(interface.mtu, LEAST_MTU) + 48) // 48) * 53


def leaf(words: str, bps: int, interface: Interface) -> Qdisc:
    """The discipline below htb, with what the words leave open chosen for the rate."""
    qdisc = Qdisc.parse(words)
    if qdisc.kind not in LEAVES:
        raise UserError(
            f"no shaper is built with {qdisc.kind}", f"one of {', '.join((*LEAVES, 'cake'))}"
        )
    given = set(re.split(r"[\s=]+", words.strip()))
    full = max(interface.mtu, LEAST_MTU) + interface.header_bytes
    chosen: dict[str, int] = {}
    if "target_ns" in qdisc.params:
        if not given & {"target", "interval"}:
            chosen |= _law(bps, one_packet(interface))
        if "limit" not in given and bps <= QUANTUM_BELOW_BPS:
            chosen["limit"] = SHORT_LIMIT
        if "quantum" in qdisc.params and "quantum" not in given:
            chosen["quantum"] = SMALL_QUANTUM if bps < QUANTUM_BELOW_BPS else full
    elif "limit" not in given:
        limit = max(FEWEST_PACKETS * full, bps * SHORT_NS // (8 * 10**9))
        chosen["limit"] = limit if qdisc.record.counts_bytes else -(-limit // full)
    for field, value in chosen.items():
        qdisc = qdisc.with_(field, value)
    # Refused now, where Linux has no such variant of it.
    qdisc.command()
    return qdisc


def _law(bps: int, packet_bytes: int) -> dict[str, int]:
    usual, more = 5 * 10**6, 95 * 10**6
    # Whole microseconds, in which tc counts.
    target = max(usual, packet_bytes * 8 * 10**6 // bps * 1000)
    return {"target_ns": target, "interval_ns": more + target}


# ------------------------------------------------------------------------------------------ notes


def _notes(wanted: WantedShape, interface: Interface, former: Former) -> Iterator[str]:
    name = interface.name
    slowest = min(bps for bps in (wanted.up_bps, wanted.down_bps) if bps is not None)
    fastest = max(bps for bps in (wanted.up_bps, wanted.down_bps) if bps is not None)
    is_cake = wanted.qdisc.split()[:1] == ["cake"]
    if former.has_own_root and wanted.up_bps is not None:
        yield f"{name} has a queue discipline that somebody put there ({former.root.kind if former.root else ''}); --undo puts it back"
    if former.has_ingress and wanted.down_bps is not None:
        yield f"{name} has filters for what arrives; they are out of action until --undo"
    if interface.kind == "wireless":
        yield (
            f"{name} is Wi-Fi: its rate changes from second to second, and the shaper helps only while it is the slowest part of the way;"
            " Wi-Fi has queues of its own below this one; shape where the line begins, at the router"
        )
    if interface.kind in TUNNELS:
        yield (
            f"{name} is a tunnel ({interface.kind}): what it adds to a packet further down is not counted, and other traffic on the line is not seen;"
            " shape the interface that carries it"
        )
    if not interface.up:
        yield f"{name} is down"
    if wanted.link is None:
        yield "no --link: what the line adds to a packet is not counted; small packets may overfill it (see docs/shape.md)"
    if slow := _bursts(interface, slowest, wanted, is_cake):
        yield slow
    if fastest >= CPU_WALL_BPS:
        yield f"{write_rate(fastest)}: a shaper takes much of a processor; look whether one is busy all the time while measuring"
    if not is_cake and wanted.link and wanted.link.cells == "ptm":
        yield "PTM takes 65 bytes for each 64: htb has no word for that, so its rate is 64/65 of what was given"


def _bursts(interface: Interface, bps: int, wanted: WantedShape, is_cake: bool) -> str | None:
    """Packets that pass the queue as one: how long they take."""
    acts = {"gro", "lro"} if wanted.down_bps is not None else set()
    acts |= {"tso", "gso"} if wanted.up_bps is not None else set()
    on = [word for word in interface.offloads if word in acts]
    took_ns = SUPER_PACKET * 8 * 10**9 // bps
    if not on or took_ns < BURSTY_NS or is_cake:
        # cake takes them apart again.
        return None
    return (
        f"{', '.join(on)} of {interface.name}: up to 64 kB pass the queue as one packet, {took_ns / 1e6:.3g} ms at {write_rate(bps)};"
        f" ethtool -K {interface.name} {' '.join(f'{word} off' for word in on)}"
    )


def described(wanted: Mapping[str, Any]) -> str:
    """`up 18mbit, down 90mbit, fq_codel` of a journal's entry."""
    parts = [
        f"{word} {write_rate(wanted[key])}"
        for word, key in (("up", "up_bps"), ("down", "down_bps"))
        if wanted[key]
    ]
    return ", ".join([*parts, str(wanted["qdisc"])])
