"""A shaper for a live interface: computes a list of operations from two rates, a queue discipline
and a link layer. No I/O.

Sent packets pass the shaper on the interface itself. Received packets are redirected to a device of
our own (an IFB) and pass a shaper there. Both have the same tree (linux/tc): htb limits the rate,
the discipline is below it. cake does both. The shaper must be slower than the modem or the
provider's device, so that packets wait here, under our discipline. It must also count what the link
layer adds.

At low rates a full packet takes long: 14 ms at 1 Mbit/s, more than CoDel's usual target. Then the
target is one packet's time, and the interval 95 ms more. The burst of htb is 1 ms at the rate,
because its timer may be that late, and at least one packet in ATM cells.

Source: sqm-scripts' simplest.qos and defaults (behaviour); RFC 8289 §4.4 for the target; tc-htb(8),
tc-cake(8), tc-stab(8). Deviations from sqm-scripts: one class in place of two nested ones, htb's
own overhead in place of tc-stab's table, PTM by 64/65 of the rate.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sojourn.errors import UserError
from sojourn.linux import tc
from sojourn.scenario.qdisc import LinkLayer, Qdisc, read_rate, write_rate
from sojourn.units import UnitError, parse_rate

if TYPE_CHECKING:
    from sojourn.linux.rtnl import Former, Interface

LEAST_BPS = 64_000
"""The least rate. A full packet takes 190 ms at it: no shaper makes that a usable line."""
MOST_BPS = 40 * 10**9
LEAST_MTU = 576
QUANTUM_BELOW_BPS = 100 * 10**6
SMALL_QUANTUM = 300
"""fq_codel's quantum below that rate, so that small packets go before large ones."""
SHORT_NS = 20 * 10**6
"""The queue's length in time, for a discipline that limits delay only by its limit."""
FEWEST_PACKETS = 4
"""The least limit of such a queue. Three packets must fit behind a lost one, so that their ACKs
reveal the loss to the sender."""
SHORT_LIMIT = 1001
"""Limit of fq_codel and codel at home rates, in packets. The usual 10240 need memory that a small
router lacks."""
MANY_QUANTA = 200_000
"""The largest htb quantum, in bytes. The kernel warns of a larger one."""
IFB_PREFIX = "sj-"
NAME_MAX = 15
BURSTY_NS = 10**6
"""A packet of 64 kB that takes longer than this at the shaper's rate gets a note."""
CPU_WALL_BPS = 500 * 10**6
SUPER_PACKET = 65_536
LEAVES = (
    *("fq_codel", "codel", "fq_pie", "pie", "dualpi2", "sfq"),
    *("bfifo", "pfifo", "pfifo_head_drop"),
)
"""The disciplines that may be below htb here."""
BY_ITSELF = ("sfq",)
"""Disciplines that keep the kernel's default limit, because all flows share that limit."""
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
    """The shaper that the user wants."""

    up_bps: int | None
    """Rate of sent packets; None: not shaped."""
    down_bps: int | None
    """Rate of received packets; None: not shaped."""
    qdisc: str = "fq_codel"
    """The discipline in tc's syntax; missing options are chosen for the rate."""
    link: LinkLayer | None = None
    """None: a packet is counted as Linux counts it."""


@dataclass(frozen=True)
class ShapePlan:
    """The operations, and what to report about them."""

    operations: tuple[tc.Operation, ...]
    notes: tuple[str, ...]
    """Notes for the user, each a sentence or two."""
    ifb: str | None
    """The IFB for received packets."""

    @property
    def commands(self) -> list[str]:
        """The operations as commands for a terminal."""
        return [tc.command(operation) for operation in self.operations]


_BITS = re.compile(r"([0-9.]+) ?((?:[kmgt]i?)?bit)", re.IGNORECASE)
_OURS = re.compile(r'"([^" ]+) ([kMGT]?bit)/s"')


def parse_shaped_rate(text: str) -> int:
    """Parses `18mbit` (tc's syntax) or `18 Mbit/s` to bit/s. Refuses rates that no home or office
    has, and texts that a scenario refuses: `18Mbps` means bytes in tc and bits to a provider."""
    if bits := _BITS.fullmatch(text.strip()):
        bps = read_rate("".join(bits.groups()))
    else:
        try:
            bps = parse_rate(text)
        except UnitError as error:
            # On a command line tc's form needs no quotes.
            error.hint = _OURS.sub(lambda found: found[1] + found[2].lower(), error.hint)
            raise
    if not LEAST_BPS <= bps <= MOST_BPS:
        least, most = write_rate(LEAST_BPS), write_rate(MOST_BPS)
        raise UserError(
            f"{write_rate(bps)} is out of range",
            f"write a rate from {least} to {most}",
        )
    return bps


def plan(wanted: WantedShape, interface: Interface, former: Former) -> ShapePlan:
    """Returns the operations for an interface in its present state.

    Raises:
        UnitError: the discipline's text is wrong or not Linux's, or a rate does not fit this
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
        # The redirection is the last step: everything it leads to must be ready.
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
    notes = (*doubts(wanted), *_notes(wanted, interface, former))
    return ShapePlan(tuple(operations), notes, ifb)


def again(wanted: WantedShape, interface: Interface, ifb: str | None) -> list[tc.Operation]:
    """The operations that change the rates of a shaper made by `plan` in the same directions."""
    operations: list[tc.Operation] = []
    for device, bps in ((interface.name, wanted.up_bps), (ifb, wanted.down_bps)):
        if device is not None and bps is not None:
            # Created anew, because target and limit depend on the rate, and not every discipline
            # can change them in place.
            operations.append(tc.DeleteQdisc(device, "root"))
            operations += _tree(device, bps, wanted, interface, arriving=device == ifb)
    return operations


def ifb_name(interface: Interface) -> str:
    """The IFB's name: at most 15 bytes, Linux's limit (IFNAMSIZ)."""
    name = IFB_PREFIX + interface.name
    return name if len(name) <= NAME_MAX else f"{IFB_PREFIX}if{interface.index}"


def _check(wanted: WantedShape, interface: Interface) -> None:
    if wanted.up_bps is None and wanted.down_bps is None:
        raise UserError(
            "neither --up nor --down is given", "give at least one rate, like --up 18mbit"
        )
    if interface.kind == "loopback":
        raise UserError(
            f"{interface.name} is the loopback interface: no line is behind it",
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
    """A shaper and its discipline, on a device that has the kernel's default."""
    if wanted.qdisc.split()[:1] == ["cake"]:
        cake = Qdisc.live_cake(wanted.qdisc, bps, wanted.link, arriving)
        return [tc.AddQdisc(device, "root", tc.ROOT, cake)]
    link = wanted.link
    cells = link.cells if link else "none"
    # PTM sends 65 bytes for each 64, and htb has no option for that.
    shaped = bps * 64 // 65 if cells == "ptm" else bps
    more = link.overhead_bytes - interface.header_bytes if link else 0
    burst = max(shaped // 8000, one_packet(interface))
    return [
        # htb's own overhead can't be negative, which a link layer with less than Ethernet's header
        # needs.
        tc.AddQdisc(device, "root", tc.ROOT, tc.Htb(1), extra_bytes=min(0, more)),
        tc.SetClass(
            device,
            tc.ROOT,
            f"{tc.ROOT}1",
            shaped,
            burst,
            min(burst, MANY_QUANTA),
            overhead_bytes=max(0, more),
            minimum_bytes=link.minimum_bytes if link else 0,
            cells="atm" if cells == "atm" else "none",
        ),
        tc.AddQdisc(device, f"{tc.ROOT}1", tc.DISCIPLINE, leaf(wanted.qdisc, shaped, interface)),
    ]


def one_packet(interface: Interface) -> int:
    """The bytes of a full packet in ATM cells with the largest known overhead: 1749 for 1500."""
    return -(-(max(interface.mtu, LEAST_MTU) + 48) // 48) * 53


def leaf(words: str, bps: int, interface: Interface) -> Qdisc:
    """The discipline below htb; missing options are chosen for the rate."""
    qdisc = Qdisc.parse(words)
    if qdisc.kind not in LEAVES:
        raise UserError(
            f"a shaper can't use {qdisc.kind}", f"use one of {', '.join((*LEAVES, 'cake'))}"
        )
    given = set(re.split(r"[\s=]+", words.strip()))
    full = max(interface.mtu, LEAST_MTU) + interface.header_bytes
    chosen: dict[str, int] = {}
    if "target_ns" in qdisc.params:
        if not given & {"target", "interval", "max_rtt", "typical_rtt"}:
            chosen |= _law(bps, one_packet(interface), codel="interval_ns" in qdisc.params)
        if "limit" not in given and bps <= QUANTUM_BELOW_BPS:
            chosen["limit"] = SHORT_LIMIT
        if "quantum" in qdisc.params and "quantum" not in given:
            chosen["quantum"] = SMALL_QUANTUM if bps < QUANTUM_BELOW_BPS else full
    elif "limit" not in given and qdisc.kind not in BY_ITSELF:
        limit = max(FEWEST_PACKETS * full, bps * SHORT_NS // (8 * 10**9))
        chosen["limit"] = limit if qdisc.record.counts_bytes else -(-limit // full)
    for field, value in chosen.items():
        qdisc = qdisc.with_(field, value)
    # Raises now if Linux lacks this variant.
    qdisc.command()
    return qdisc


def _law(bps: int, packet_bytes: int, *, codel: bool) -> dict[str, int]:
    """CoDel's target and interval, or the target of a PI controller."""
    usual, more = (5 if codel else 15) * 10**6, 95 * 10**6
    # Rounded to whole microseconds, tc's unit.
    target = max(usual, packet_bytes * 8 * 10**6 // bps * 1000)
    return {"target_ns": target} | ({"interval_ns": more + target} if codel else {})


# ------------------------------------------------------------------------------------------ notes


def doubts(wanted: WantedShape) -> list[str]:
    """Notes on options of the discipline that the user probably misunderstood."""
    if wanted.qdisc.split()[:1] == ["cake"]:
        qdisc = Qdisc.live_cake(wanted.qdisc, LEAST_BPS, wanted.link, arriving=False)
    else:
        qdisc = Qdisc.parse(wanted.qdisc)
    return [f"{message}; {hint}" for message, hint, _ in qdisc.notes]


def _notes(wanted: WantedShape, interface: Interface, former: Former) -> Iterator[str]:
    name = interface.name
    slowest = min(bps for bps in (wanted.up_bps, wanted.down_bps) if bps is not None)
    fastest = max(bps for bps in (wanted.up_bps, wanted.down_bps) if bps is not None)
    is_cake = wanted.qdisc.split()[:1] == ["cake"]
    if former.has_own_root and wanted.up_bps is not None:
        yield f"{name} has a queue discipline that another program installed ({former.root.kind if former.root else ''}); --undo restores it"
    if former.has_ingress and wanted.down_bps is not None:
        yield f"{name} has filters for arriving packets; they do not act until --undo"
    if interface.kind == "wireless":
        yield (
            f"{name} is Wi-Fi: its rate changes from second to second, and the shaper helps only while it is the slowest part of the way;"
            " Wi-Fi has queues of its own below this one; shape where the line begins, at the router"
        )
    if interface.kind in TUNNELS:
        yield (
            f"{name} is a tunnel ({interface.kind}): the shaper neither counts the headers that the tunnel adds nor sees other traffic on the line;"
            " shape the interface that carries it"
        )
    if not interface.up:
        yield f"{name} is down"
    if wanted.link is None:
        yield "no --link: the bytes that the line adds to a packet are not counted, so small packets may overfill it (see docs/shape.md)"
    if slow := _bursts(interface, slowest, wanted, is_cake):
        yield slow
    if fastest >= CPU_WALL_BPS:
        yield f"{write_rate(fastest)}: a shaper takes much of a processor; check whether a processor is busy all the time while you measure"
    if not is_cake and wanted.link and wanted.link.cells == "ptm":
        yield "PTM sends 65 bytes for each 64, and htb has no option for that, so htb's rate is 64/65 of the given one"


def _bursts(interface: Interface, bps: int, wanted: WantedShape, is_cake: bool) -> str | None:
    """A note on offloads, by which many packets pass the queue as one, if such a packet takes too
    long to send."""
    acts = {"gro", "lro"} if wanted.down_bps is not None else set()
    acts |= {"tso", "gso"} if wanted.up_bps is not None else set()
    on = [word for word in interface.offloads if word in acts]
    took_ns = SUPER_PACKET * 8 * 10**9 // bps
    if not on or took_ns < BURSTY_NS or is_cake:
        # cake splits them again.
        return None
    return (
        f"{', '.join(on)} of {interface.name}: up to 64 kB pass the queue as one packet, {took_ns / 1e6:.3g} ms at {write_rate(bps)};"
        f" ethtool -K {interface.name} {' '.join(f'{word} off' for word in on)}"
    )


def described(wanted: Mapping[str, Any]) -> str:
    """`up 18mbit, down 90mbit, fq_codel`, from a journal's entry."""
    parts = [
        f"{word} {write_rate(wanted[key])}"
        for word, key in (("up", "up_bps"), ("down", "down_bps"))
        if wanted[key]
    ]
    return ", ".join([*parts, str(wanted["qdisc"])])
