"""Linux traffic control in its own syntax: the only module that writes tc(8)'s commands.

A scenario's queue discipline, shaper and wire become lines for `tc -batch`. A discipline's options
are those of its record (crates/tc). All options are written out, so that no default of a kernel or
of a tc matters. The options of disciplines that only Linux has are passed on unchanged. Disciplines
that Linux does not have (adt, ns-2's red, a variant of CoDel) are refused, with what to write
instead.

The tree on a device is the same everywhere: `htb` with the handle 1: limits the rate, and the
discipline has the handle 10:.

    root  10: codel                                     the driver sends at the link's rate
    root   1: htb -- class 1:1 -- 10: codel             a shaper, or htb in the place of a transmitter
    root   1: htb -- class 1:1 -- class 1:2 -- 10: codel    both: the shaper's class borrows nothing

A shaper of a live interface is a list of operations, each a value: `command` writes one as a line
for a terminal, and linux/rtnl sends the same to the kernel.

Source: tc-htb(8), tc-stab(8), tc-police(8), tc-matchall(8), tc-netem(8), tc-codel(8),
tc-fq_codel(8), tc-red(8), tc-mirred(8), tc-cake(8), tc-u32(8), tc-skbedit(8), ip-link(8).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from sojourn.errors import UserError
from sojourn.scenario.qdisc import Police, Qdisc, Shaper, default_burst
from sojourn.scenario.realised import GilbertLoss, RandomLoss, StateLoss, SteppedLoss

ROOT = "1:"
"""Handle of htb."""
DISCIPLINE = "10:"
"""tc's numbers are hexadecimal: the kernel's number of this handle is 0x100000."""
DISCIPLINE_HANDLE = 0x10 << 16
ETHERNET_HEADER = 14
"""The Ethernet header, which Linux includes in a packet's length (skb->len at a qdisc)."""
DELAY_LIMIT = 10_000_000
"""netem's limit in packets. A wire has no limit, so it is large."""
_LEAST_RATE = 8
"""htb's rates are in bytes per second."""
_FULL_PACKET = 1514
_ORDERED = "1tbit"
"""A rate so high that a full packet takes 12 ns. With a rate netem keeps packets in order."""


@dataclass(frozen=True)
class Transmitter:
    """The rate of a transmitter, which htb limits if no driver does, and the bytes charged for an
    IP packet."""

    bps: int
    overhead_bytes: int = 0
    minimum_bytes: int = 0
    cells: str = "none"


# ---------------------------------------------------------------------------------------- devices


def queue(
    device: str,
    qdisc: Qdisc,
    *,
    header_bytes: int,
    shaper: Shaper | None = None,
    transmitter: Transmitter | None = None,
    queues: int = 1,
) -> list[str]:
    """Returns the lines that give a device its queue; for a card with several `queues`, all of
    them.

    `header_bytes`: the bytes that the discipline counts in addition to the IP packet. If these are
    not Linux's own 14, tc-stab(8) corrects the count.

    Raises:
        UserError: Linux has no such discipline, or not this variant of it; or the shaper is faster
            than the transmitter below it.
    """
    words = qdisc.command(header_bytes)
    difference = header_bytes - ETHERNET_HEADER
    stab = f"stab overhead {difference} " if difference else ""
    if qdisc.child is not None:
        # Linux computes a packet's length by the size table of its queue's discipline.
        child = f"{stab}{qdisc.child.command(header_bytes)}"
        lines = [f"qdisc add dev {device} root handle {DISCIPLINE} {words}"]
        return lines + [
            f"qdisc add dev {device} parent {DISCIPLINE}{queue:x} handle {_child_handle(queue)} {child}"
            for queue in range(1, queues + 1)
        ]
    if shaper is None and transmitter is None:
        line = f"qdisc add dev {device} root handle {DISCIPLINE} {stab}{words}"
        return [line, *qdisc.tree(device, DISCIPLINE)]
    lines = [
        f"qdisc add dev {device} root handle {ROOT} {stab}htb default {2 if shaper and transmitter else 1}"
    ]
    parent = ROOT
    if transmitter is not None:
        lines.append(f"class add {_transmission(device, transmitter, header_bytes)}")
        parent = "1:1"
    if shaper is not None:
        if transmitter is not None and shaper.bps > transmitter.bps:
            raise UserError(
                f"the shaper's {shaper.bps} bit/s are above the link's {transmitter.bps}: it would never act",
                "leave the shaper out, or make it slower than the link",
            )
        own = "1:2" if transmitter else "1:1"
        charge = _charge(shaper.overhead_bytes, shaper.minimum_bytes, shaper.cells)
        lines.append(
            f"class add dev {device} parent {parent} classid {own} {_class(shaper.bps, shaper.burst_bytes, charge)}"
        )
        parent = own
    lines.append(f"qdisc add dev {device} parent {parent} handle {DISCIPLINE} {words}")
    return [*lines, *qdisc.tree(device, DISCIPLINE)]


def qdisc_change(
    device: str,
    qdisc: Qdisc,
    *,
    header_bytes: int,
    shaper: Shaper | None = None,
) -> str:
    """The line that gives the discipline of `queue`, on a device without a transmitter of htb, new
    parameters.

    Raises:
        UserError: Linux has no such discipline, or not this variant of it.
    """
    difference = header_bytes - ETHERNET_HEADER
    # A change without tc-stab(8) removes the one of the discipline.
    stab = f"stab overhead {difference} " if difference and shaper is None else ""
    parent = "root" if shaper is None else "parent 1:1"
    return f"qdisc change dev {device} {parent} handle {DISCIPLINE} {stab}{qdisc.change_command()}"


def _child_handle(queue: int) -> str:
    """The handle of the discipline on a card's queue; the first queue is 1."""
    return f"{(DISCIPLINE_HANDLE >> 16) + queue:x}:"


@dataclass(frozen=True)
class Pin:
    """A direction of a flow, and its queue of a card."""

    protocol: str
    port: int
    """Port of the end that listens; a ping's identifier."""
    back: bool
    """Whether the packets come from the end that listens."""
    queue: int
    """The first is 0."""


def pins(device: str, pinned: Iterable[Pin]) -> list[str]:
    """The lines that pin flows to the queues of a card."""
    lines = [f"qdisc add dev {device} clsact"]
    for pin in pinned:
        number, at = _PROTOCOLS[pin.protocol]
        offset = at if pin.protocol == "icmp" or pin.back else at + 2
        match = f"match ip protocol {number} 0xff match u16 {pin.port:#x} 0xffff at {offset}"
        lines.append(
            f"filter add dev {device} egress protocol ip prio 1 u32 {match}"
            f" action skbedit queue_mapping {pin.queue}"
        )
    return lines


_PROTOCOLS = {"tcp": (6, 20), "udp": (17, 20), "icmp": (1, 24)}
"""The number in the IP header, and the position of the source's port or of the identifier."""


def policer(device: str, police: Police, *, header_bytes: int) -> list[str]:
    """Returns the lines that give a device a policer before its queue.

    A policer counts the Ethernet header as the device does: tc-stab(8) only affects the discipline.

    Raises:
        UserError: the policer charges less than a packet with that header, which tc can't
            configure.
    """
    difference = header_bytes - ETHERNET_HEADER
    overhead = difference + police.overhead_bytes
    if overhead < 0:
        raise UserError(
            f"Linux's policer counts at least {ETHERNET_HEADER} bytes of Ethernet in each packet, but this policer counts {header_bytes + police.overhead_bytes}",
            f'write overhead {police.overhead_bytes - overhead} behind police, or link_layer = "linux"',
        )
    words = f"rate {police.bps}bit burst {police.burst_bytes}b mtu {police.mtu_bytes - difference}b"
    words += f" overhead {overhead}" if overhead else ""
    return [
        f"qdisc add dev {device} clsact",
        f"filter add dev {device} egress matchall action police {words} conform-exceed drop",
    ]


def rate_change(device: str, transmitter: Transmitter, *, header_bytes: int) -> str:
    """The line that changes the rate of `queue`'s transmitter."""
    return f"class change {_transmission(device, transmitter, header_bytes)}"


def _transmission(device: str, transmitter: Transmitter, header_bytes: int) -> str:
    if transmitter.bps == 0:
        raise UserError(
            "htb can't stop sending: the schedule has an outage, a rate of 0",
            "write a rate above 0",
        )
    # htb charges the class for the length that the discipline counts, which includes the header
    # already.
    overhead = transmitter.overhead_bytes - header_bytes
    if overhead < 0:
        raise UserError(
            f"the wire adds {transmitter.overhead_bytes} bytes a packet, but the discipline counts {header_bytes}",
            f"write an overhead of at least {header_bytes}",
        )
    charge = _charge(overhead, transmitter.minimum_bytes, transmitter.cells)
    # A host's timer may be late: the burst makes up for up to 0.1 ms.
    burst = max(default_burst(transmitter.bps), transmitter.bps // (8 * 10_000))
    return f"dev {device} parent {ROOT} classid 1:1 {_class(transmitter.bps, burst, charge)}"


def _class(bps: int, burst: int, charge: str, quantum: int = _FULL_PACKET) -> str:
    if bps < _LEAST_RATE:
        raise UserError(f"htb has no rate of {bps} bit/s", f"the least is {_LEAST_RATE} bit/s")
    # ceil and cburst equal rate and burst, because a single class can't borrow. The quantum shares
    # between classes; without it the kernel complains of the one it would choose.
    return (
        f"htb rate {bps}bit ceil {bps}bit burst {burst}b cburst {burst}b quantum {quantum}{charge}"
    )


def _charge(overhead: int, minimum: int, cells: str) -> str:
    if cells == "ptm":
        raise UserError(
            "htb can't describe PTM (65 bytes for each 64)",
            "describe the link by `ethernet` or `atm`",
        )
    words = f" overhead {overhead}" if overhead else ""
    words += f" mpu {minimum}" if minimum else ""
    return words + (" linklayer atm" if cells == "atm" else "")


def elsewhere(line: str, device: str) -> tuple[str, str] | None:
    """Rewrites a line that adds a discipline as the root of another device: returns the
    discipline's name and the line; None for other lines."""
    found = _ADDS.match(line)
    if found is None:
        return None
    return found[
        "kind"
    ], f"qdisc add dev {device} root handle {ROOT} {found['stab'] or ''}{found['rest']}"


@dataclass(frozen=True)
class MadeByNetlink:
    """The netlink message for a discipline that tc may not support."""

    device: str
    parent: int
    """A class, or `AT_ROOT`."""
    handle: int
    kind: str
    overhead: int
    """As in tc-stab(8)."""
    options: bytes


AT_ROOT = 0xFFFF_FFFF


def by_netlink(line: str, qdisc: Qdisc) -> MadeByNetlink:
    """Converts a line of `queue` that adds this discipline."""
    found, options = _ADDS.match(line), qdisc.packed_options()
    assert found is not None, "it is a line of `queue`"
    assert options is not None, "tc has words for the discipline"
    overhead = (found["stab"] or "0").split()[-1]
    parent = AT_ROOT if found["parent"] is None else _number(found["parent"])
    handle = _number(found["handle"])
    return MadeByNetlink(found["device"], parent, handle, qdisc.kind, int(overhead), options)


def _number(name: str) -> int:
    """A handle or a class, `10:` or `1:1`, as the kernel's number."""
    major, _, minor = name.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


_ADDS = re.compile(
    r"qdisc add dev (?P<device>\S+) (root|parent (?P<parent>\S+)) (handle (?P<handle>\S+) )?"
    r"(?P<stab>stab overhead \S+ )?(?P<rest>(?P<kind>\w+).*)"
)


def wire(
    device: str,
    delay_ns: int,
    loss: RandomLoss | GilbertLoss | StateLoss | SteppedLoss | None = None,
    *,
    jitter_ns: int = 0,
) -> str:
    """The line that makes a device delay packets, lose some of them, or jitter them in order. Of
    losses that change over time it has the first."""
    words = [f"qdisc add dev {device} root netem limit {DELAY_LIMIT}"]
    if jitter_ns:
        # Uniform around the middle: from the delay to the delay plus the jitter.
        half = jitter_ns // 2
        words.append(f"delay {_time(delay_ns + half)} {_time(half)} rate {_ORDERED}")
    else:
        words.append(f"delay {_time(delay_ns)}")
    match loss:
        case RandomLoss(probability=p):
            words.append(f"loss random {_percent(p)}")
        case SteppedLoss(steps=steps):
            words.append(f"loss random {_percent(steps[0][1])}")
        case GilbertLoss(p=p, r=r, bad_loss=bad, good_loss=good):
            words.append(f"loss gemodel {' '.join(map(_percent, (p, r, bad, good)))}")
        case StateLoss(p13=p13, p31=p31, p32=p32, p23=p23, p14=p14):
            words.append(f"loss state {' '.join(map(_percent, (p13, p31, p32, p23, p14)))}")
    return " ".join(words)


def _time(ns: int) -> str:
    """A time in microseconds with a fraction. netem counts nanoseconds, and tc accepts fractions
    but not `ns`."""
    return f"{ns // 1000}.{ns % 1000:03}us"


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.10f}".rstrip("0").rstrip(".") + "%"


# ------------------------------------------------------------------------------------- operations


INGRESS = "ffff:"
"""The handle of the ingress discipline, in every kernel."""


@dataclass(frozen=True)
class AddIfb:
    """Adds a device to which another device's arriving packets are redirected, so that they pass a
    queue."""

    device: str


@dataclass(frozen=True)
class SetUp:
    """Switches a device on."""

    device: str


@dataclass(frozen=True)
class DeleteLink:
    """Removes a device that AddIfb made."""

    device: str


@dataclass(frozen=True)
class Htb:
    """The discipline that has classes with rates."""

    default: int
    """The class of packets that no filter sends elsewhere."""
    kind: ClassVar[str] = "htb"

    def command(self) -> str:
        """The discipline in tc's syntax."""
        return f"htb default {self.default}"


@dataclass(frozen=True)
class Ingress:
    """The parent of filters for arriving packets."""

    kind: ClassVar[str] = "ingress"

    def command(self) -> str:
        """The discipline in tc's syntax."""
        return "ingress"


@dataclass(frozen=True)
class AddQdisc:
    """Adds a queue discipline, on a device or in a class."""

    device: str
    parent: str
    """`root`, `ingress`, or a class like `1:1`."""
    handle: str
    qdisc: Qdisc | Htb | Ingress
    extra_bytes: int = 0
    """What tc-stab(8) adds to each packet's length."""


@dataclass(frozen=True)
class DeleteQdisc:
    """Removes the discipline at `root` or `ingress`. The kernel then installs its default at
    `root`."""

    device: str
    parent: str


@dataclass(frozen=True)
class SetClass:
    """Sets a class of htb."""

    device: str
    parent: str
    classid: str
    bps: int
    burst_bytes: int
    quantum: int
    overhead_bytes: int = 0
    minimum_bytes: int = 0
    cells: str = "none"


@dataclass(frozen=True)
class Redirect:
    """Redirects all packets that arrive at `device` through the queue of `to`."""

    device: str
    to: str


Operation = AddIfb | SetUp | DeleteLink | AddQdisc | DeleteQdisc | SetClass | Redirect

PREFERENCE = 10
"""The preference of the redirection among other filters."""


def command(operation: Operation) -> str:
    """The operation as a line for a terminal."""
    match operation:
        case AddIfb(device):
            return f"ip link add name {device} type ifb"
        case SetUp(device):
            return f"ip link set dev {device} up"
        case DeleteLink(device):
            return f"ip link del dev {device}"
        case DeleteQdisc(device, parent):
            return f"tc qdisc del dev {device} {parent}"
        case AddQdisc(device, "ingress", handle, qdisc):
            return f"tc qdisc add dev {device} handle {handle} {qdisc.command()}"
        case AddQdisc(device, parent, handle, qdisc, extra):
            place = "root" if parent == "root" else f"parent {parent}"
            stab = f"stab overhead {extra} " if extra else ""
            return f"tc qdisc add dev {device} {place} handle {handle} {stab}{qdisc.command()}"
        case SetClass(device, parent, classid):
            charge = _charge(operation.overhead_bytes, operation.minimum_bytes, operation.cells)
            words = _class(operation.bps, operation.burst_bytes, charge, operation.quantum)
            return f"tc class add dev {device} parent {parent} classid {classid} {words}"
        case Redirect(device, to):
            return (
                f"tc filter add dev {device} parent {INGRESS} protocol all prio {PREFERENCE} u32 match u32 0 0"
                f" flowid 1:1 action mirred egress redirect dev {to}"
            )
