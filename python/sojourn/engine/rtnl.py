"""The kernel's traffic control by netlink: carries out the operations of `tc`, keeps what was on an interface, puts it back.

What an interface has is kept as the kernel says it: each queue discipline, class and filter with its attributes as they came. Putting back is
saying the same to the kernel again, parents before children. What the kernel put there by itself (handle 0:) it puts there by itself again.
Not everything can be put back that way: some disciplines (red) take more than they show. So a state is rehearsed first: in a namespace that
is thrown away, a device of the same name, number and queues gets the same, and must then look the same to tc(8).

Everything else about netlink is pyroute2's.

Source: rtnetlink(7), linux/pkt_sched.h, linux/pkt_cls.h, linux/rtnetlink.h; tc-stab(8) for its table, which the kernel doesn't show.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyroute2 import Ethtool, IPRoute
from pyroute2.netlink import NETLINK_ROUTE, nlmsg, rtnl
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.nlsocket import NetlinkSocket
from pyroute2.netlink.rtnl import tcmsg

from sojourn.engine import tc
from sojourn.engine.netns import PATH
from sojourn.records import RunError
from sojourn.scenario.linux import CAKE_ISOLATIONS

T = TypeVar("T")

ROOT = 0xFFFFFFFF
INGRESS = 0xFFFFFFF1
"""Parents."""
_REQUEST = 0x01
_ACK = 0x04
_DUMP = 0x300
_EXCLUSIVE = 0x200
_CREATE = 0x400
_KIND, _OPTIONS, _CHAIN, _STAB, _INGRESS_BLOCK, _EGRESS_BLOCK = 1, 2, 11, 8, 13, 14
_SAID_AGAIN = {_KIND, _OPTIONS, _CHAIN, _STAB, _INGRESS_BLOCK, _EGRESS_BLOCK}
"""The attributes that are asked for; the others are counted or found out by the kernel."""
_CLASSES = {"htb", "hfsc", "drr", "qfq"}
"""Kinds of classes that somebody made; those of other disciplines come with them."""
_HOOKS = (0xFFFFFFF2, 0xFFFFFFF3)
"""Of clsact: where its filters hang, in place of its handle."""
_FLAGS = {"u32": 11, "flower": 22, "matchall": 3}
"""The attribute of a filter's flags, in which the kernel also answers."""
_HTB_INIT = 2
_ASKABLE = 0b10011
"""skip_hw, skip_sw, verbose."""
_NEW_NAMESPACE = 0x40000000
_DEFAULT = Path("/proc/sys/net/core/default_qdisc")
_MOST_OTHERS = 200
"""Devices that are doubled for a rehearsal."""

# Disciplines that pyroute2 lacks and that look like one it has.
tcmsg.plugins.setdefault("bfifo", tcmsg.plugins["pfifo"])
tcmsg.plugins.setdefault("pfifo_head_drop", tcmsg.plugins["pfifo"])


class RefusedError(RunError):
    """The kernel refused an operation. `words` are its own."""

    def __init__(self, what: str, words: str, code: int = 0) -> None:
        super().__init__(f"{what}: {words}")
        self.what, self.words, self.code = what, words, code


@dataclass(frozen=True)
class Interface:
    """What is known of an interface without asking for any right."""

    name: str
    index: int
    kind: str
    """`ethernet`, `wireless`, `loopback`, `ppp`, or the kind of a virtual one: `wireguard`, `bridge`, `veth`."""
    mtu: int
    header_bytes: int
    """Of its link layer, in the length of a packet at its queue."""
    queues: int
    queue_length: int
    up: bool
    speed_bps: int | None
    offloads: tuple[str, ...]
    """Those by which packets of up to 64 kB pass a queue as one: `gro`, `tso`, `gso`, `lro`."""


@dataclass(frozen=True)
class Thing:
    """A queue discipline, a class or a filter, as the kernel said it."""

    sort: str
    """`qdisc`, `class`, `filter`."""
    family: int
    handle: int
    parent: int
    info: int
    attributes: tuple[tuple[int, int, bytes], ...]
    """Number, flags, value."""

    @property
    def kind(self) -> str:
        return self.attribute(_KIND).rstrip(b"\0").decode("ascii", "replace")

    def attribute(self, number: int) -> bytes:
        """Empty where there is none."""
        return next((value for one, _, value in self.attributes if one == number), b"")

    def to_json(self) -> dict[str, Any]:
        """For a journal."""
        attributes = [[number, flags, value.hex()] for number, flags, value in self.attributes]
        return {**self.__dict__, "attributes": attributes}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Thing:
        """What `to_json` gave."""
        attributes = tuple(
            (number, flags, bytes.fromhex(value)) for number, flags, value in kept["attributes"]
        )
        return cls(**{**kept, "attributes": attributes})


@dataclass(frozen=True)
class Former:
    """What an interface had."""

    name: str
    index: int
    queues: int
    queue_length: int
    things: tuple[Thing, ...]
    """Parents before children."""
    words: str
    """As tc(8) shows it."""

    @property
    def root(self) -> Thing | None:
        return next((one for one in self.things if one.sort == "qdisc" and one.parent == ROOT), None)

    @property
    def has_own_root(self) -> bool:
        """Somebody put it there; else it is the kernel's default."""
        return self.root is not None and self.root.handle != 0

    @property
    def has_ingress(self) -> bool:
        return any(one.sort == "qdisc" and one.parent == INGRESS for one in self.things)

    @property
    def made(self) -> tuple[Thing, ...]:
        """What is to be made again."""
        return tuple(one for one in self.things if _was_made(one))

    def to_json(self) -> dict[str, Any]:
        """For a journal."""
        return {**self.__dict__, "things": [one.to_json() for one in self.things]}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Former:
        """What `to_json` gave."""
        return cls(**{**kept, "things": tuple(Thing.from_json(one) for one in kept["things"])})


def _was_made(thing: Thing) -> bool:
    if thing.sort == "qdisc":
        return thing.handle != 0
    if thing.sort == "class":
        return thing.kind in _CLASSES
    # The first table of u32 comes with its first filter; what has no handle is a heading.
    table = thing.handle >> 20
    return thing.handle != 0 and not (thing.kind == "u32" and table >= 0x800 and thing.handle & 0xFFFFF == 0)


# ---------------------------------------------------------------------------------------------------------- the kernel


class _Message(nlmsg):  # type: ignore[misc]
    """A message of traffic control whose attributes are bytes."""

    prefix = "TCA_"
    fields = (
        ("family", "B"),
        ("pad1", "B"),
        ("pad2", "H"),
        ("index", "i"),
        ("handle", "I"),
        ("parent", "I"),
        ("info", "I"),
    )
    nla_map = (("TCA_0", "none"), *((f"TCA_{number}", "cdata") for number in range(1, 24)))


_SORTS = {
    "qdisc": (rtnl.RTM_NEWQDISC, rtnl.RTM_DELQDISC, rtnl.RTM_GETQDISC),
    "class": (rtnl.RTM_NEWTCLASS, rtnl.RTM_DELTCLASS, rtnl.RTM_GETTCLASS),
    "filter": (rtnl.RTM_NEWTFILTER, rtnl.RTM_DELTFILTER, rtnl.RTM_GETTFILTER),
}


class Kernel:
    """This namespace's network, as long as the block. Of the thread that made it.

    Raises:
        RefusedError: by the kernel, whatever is asked.
    """

    def __init__(self) -> None:
        self._links = IPRoute(ext_ack=True)
        self._tc = NetlinkSocket(family=NETLINK_ROUTE, ext_ack=True, nlm_generator=False)
        for new, _, _ in _SORTS.values():
            self._tc.marshal.msg_map[new] = _Message

    def __enter__(self) -> Kernel:
        return self

    def __exit__(self, *_: object) -> None:
        self._tc.close()
        self._links.close()

    # ------------------------------------------------------------------------------------------------ looking

    def names(self) -> list[str]:
        """Of the interfaces."""
        return [link.get_attr("IFLA_IFNAME") for link in self._links.get_links()]

    def interface(self, name: str) -> Interface | None:
        """None: there is no such interface."""
        link = self._link(name)
        if link is None:
            return None
        info = link.get_attr("IFLA_LINKINFO")
        virtual = info.get_attr("IFLA_INFO_KIND") if info else None
        return Interface(
            name,
            link["index"],
            _kind(name, link["ifi_type"], virtual),
            link.get_attr("IFLA_MTU"),
            tc.ETHERNET_HEADER if link["ifi_type"] in _WITH_ETHERNET_HEADER else 0,
            link.get_attr("IFLA_NUM_TX_QUEUES") or 1,
            link.get_attr("IFLA_TXQLEN") or 0,
            bool(link["flags"] & 1),
            _speed(name),
            _offloads(name),
        )

    def _link(self, name: str) -> Any:
        return next((link for link in self._links.get_links() if link.get_attr("IFLA_IFNAME") == name), None)

    def _index(self, name: str) -> int:
        link = self._link(name)
        if link is None:
            raise RefusedError(name, "no such interface", errno.ENODEV)
        return int(link["index"])

    def former(self, name: str) -> Former:
        """What the interface has now."""
        link = self._link(name)
        if link is None:
            raise RefusedError(name, "no such interface", errno.ENODEV)
        index = link["index"]
        qdiscs = _ordered(self._things("qdisc", index, 0))
        classes = _ordered(self._things("class", index, 0))
        owners = [one for one in (*qdiscs, *classes) if one.handle]
        parents = [hook for one in owners for hook in (_HOOKS if one.kind == "clsact" else (one.handle,))]
        filters = [one for parent in parents for one in self._things("filter", index, parent)]
        return Former(
            name,
            index,
            link.get_attr("IFLA_NUM_TX_QUEUES") or 1,
            link.get_attr("IFLA_TXQLEN") or 0,
            (*_woven(qdiscs, classes), *filters),
            shown(name, parents),
        )

    def _things(self, sort: str, index: int, parent: int) -> list[Thing]:
        message = _Message()
        message["index"], message["parent"] = index, parent
        try:
            answers = self._tc.nlm_request(message, _SORTS[sort][2], _REQUEST | _DUMP)
        except NetlinkError as error:
            raise _refused(
                f"looking at the {sort}es" if sort == "class" else f"looking at the {sort}s", error
            ) from None
        found = []
        for each in answers:
            if each["index"] != index or "attrs" not in each:
                continue
            attributes = tuple(
                (int(cell[0].removeprefix("TCA_")), int(cell.get_flags() or 0), bytes(cell[1]))
                for cell in each["attrs"]
                if cell[0] != "UNKNOWN" and int(cell[0].removeprefix("TCA_")) in _SAID_AGAIN
            )
            info = each["info"] if sort == "filter" else 0
            found.append(Thing(sort, each["family"], each["handle"], each["parent"], info, attributes))
        return found

    # ------------------------------------------------------------------------------------------------- acting

    def do(self, operation: tc.Operation) -> None:
        """Carries out an operation."""
        try:
            self._do(operation)
        except NetlinkError as error:
            raise _refused(tc.command(operation), error) from None

    def _do(self, operation: tc.Operation) -> None:
        match operation:
            case tc.AddIfb(device):
                self._links.link("add", ifname=device, kind="ifb")
            case tc.SetUp(device):
                self._links.link("set", index=self._index(device), state="up")
            case tc.DeleteLink(device):
                self._links.link("del", index=self._index(device))
            case tc.DeleteQdisc(device, parent):
                self._delete(self._index(device), ROOT if parent == "root" else INGRESS)
            case tc.AddQdisc(device, parent, handle, params, extra):
                attributes: list[tuple[str, Any]] = [("TCA_KIND", params["kind"])]
                if parent != "ingress":
                    attributes.append(("TCA_OPTIONS", _options(params)))
                if extra:
                    attributes.append(("TCA_STAB", _stab_of(extra)))
                place = {"root": ROOT, "ingress": INGRESS}.get(parent) or _number(parent)
                self._ask("qdisc", self._index(device), _number(handle), place, attributes)
            case tc.SetClass(device, parent, classid):
                attributes = [("TCA_KIND", "htb"), ("TCA_OPTIONS", _htb_class(operation))]
                self._ask("class", self._index(device), _number(classid), _number(parent), attributes)
            case tc.Redirect(device, to):
                protocol = socket.htons(_EVERY_PROTOCOL)
                attributes = [("TCA_KIND", "u32"), ("TCA_OPTIONS", _everything_to(self._index(to)))]
                index, info = self._index(device), tc.PREFERENCE << 16 | protocol
                self._ask("filter", index, 0, _number(tc.INGRESS), attributes, info)

    def _ask(
        self,
        sort: str,
        index: int,
        handle: int,
        parent: int,
        attributes: Sequence[tuple[str, Any]],
        info: int = 0,
    ) -> None:
        message = tcmsg.tcmsg()
        message["index"], message["handle"], message["parent"], message["info"] = index, handle, parent, info
        message["attrs"] = list(attributes)
        self._tc.nlm_request(message, _SORTS[sort][0], _REQUEST | _ACK | _CREATE | _EXCLUSIVE)

    def _delete(self, index: int, parent: int) -> None:
        message = _Message()
        message["index"], message["parent"] = index, parent
        message["handle"] = _number(tc.INGRESS) if parent == INGRESS else 0
        self._tc.nlm_request(message, rtnl.RTM_DELQDISC, _REQUEST | _ACK)

    # ------------------------------------------------------------------------------------------- putting back

    def put_back(self, former: Former) -> None:
        """Makes the interface what it was."""
        if self.former(former.name).has_ingress:
            self.do(tc.DeleteQdisc(former.name, "ingress"))
        if self.former(former.name).has_own_root:
            self.do(tc.DeleteQdisc(former.name, "root"))
        self.make_again(former)

    def make_again(self, former: Former) -> None:
        """Makes what somebody had made, on an interface that has the kernel's default."""
        index = self._index(former.name)
        # Older kernels change the length when a discipline comes to a device that had none.
        if self._link(former.name).get_attr("IFLA_TXQLEN") != former.queue_length:
            self._links.link("set", index=index, txqlen=former.queue_length)
        for thing in former.made:
            message = _Message()
            message["family"], message["index"], message["handle"] = thing.family, index, thing.handle
            message["parent"], message["info"] = thing.parent, thing.info
            message["attrs"] = [
                (f"TCA_{number}", value, flags) for number, flags, value in _said_again(thing)
            ]
            try:
                self._tc.nlm_request(message, _SORTS[thing.sort][0], _REQUEST | _ACK | _CREATE | _EXCLUSIVE)
            except NetlinkError as error:
                raise _refused(f"{thing.sort} {_name(thing.handle)} {thing.kind}", error) from None

    def double(self, name: str, former: Former) -> None:
        """A device that looks like another: name, number, queues. For rehearsals."""
        asked = {"ifname": name, "kind": "ifb", "num_tx_queues": former.queues, "txqlen": former.queue_length}
        try:
            try:
                self._links.link("add", index=former.index, **asked)
            except NetlinkError:
                # A new namespace has tunnels of its own on some hosts, with low numbers.
                self._links.link("add", **asked)
            self._links.link("set", index=self._index(name), state="up")
        except NetlinkError as error:
            raise _refused(f"ip link add name {name} type ifb", error) from None


def _refused(what: str, error: NetlinkError) -> RefusedError:
    words = str(error.args[1]) if len(error.args) > 1 and error.args[1] else os.strerror(error.code)
    return RefusedError(what, words, error.code)


def _ordered(things: Iterable[Thing]) -> list[Thing]:
    """Each after what it hangs on: a discipline on a class of another, a class on a class."""
    left, done = list(things), []
    while left:
        above = {one.handle for one in left if one.handle}
        # What arrives hangs on itself.
        ready = [one for one in left if _above(one) not in above - {one.handle}] or left
        done += ready
        left = [one for one in left if one not in ready]
    return done


def _above(thing: Thing) -> int:
    return thing.parent if thing.sort == "class" else thing.parent & 0xFFFF0000


def _woven(qdiscs: Sequence[Thing], classes: Sequence[Thing]) -> Iterator[Thing]:
    """A discipline, its classes, the disciplines below those: each after what it hangs on."""
    waiting = list(qdiscs)
    while waiting:
        one = waiting.pop(0)
        yield one
        if one.handle:
            own = [each for each in classes if each.handle >> 16 == one.handle >> 16]
            yield from own


def _said_again(thing: Thing) -> Iterator[tuple[int, int, bytes]]:
    for number, flags, value in thing.attributes:
        if number == _STAB:
            yield number, flags, _with_table(value)
        elif number == _OPTIONS and thing.kind in _FLAGS and thing.sort == "filter":
            yield number, flags, _askable(value, _FLAGS[thing.kind])
        elif number == _OPTIONS and (thing.kind, thing.sort) == ("htb", "qdisc"):
            yield number, flags, _of_version(value)
        else:
            yield number, flags, value


def _askable(options: bytes, flags_number: int) -> bytes:
    """A filter's options without what the kernel answered in its flags (in_hw)."""
    out = bytearray(options)
    for number, at in _nested(options):
        if number == flags_number:
            (flags,) = struct.unpack_from("I", out, at)
            struct.pack_into("I", out, at, flags & _ASKABLE)
    return bytes(out)


def _of_version(options: bytes) -> bytes:
    """htb shows its full version and wants to be asked for the upper half of it."""
    out = bytearray(options)
    for number, at in _nested(options):
        if number == _HTB_INIT:
            (version,) = struct.unpack_from("I", out, at)
            struct.pack_into("I", out, at, version >> 16)
    return bytes(out)


def _nested(attributes: bytes) -> Iterator[tuple[int, int]]:
    """Number and place of each attribute's value."""
    at = 0
    while at + 4 <= len(attributes):
        length, number = struct.unpack_from("HH", attributes, at)
        yield number & 0x3FFF, at + 4
        at += (max(length, 4) + 3) & ~3


# --------------------------------------------------------------------------------------------------- what is asked for

_EVERY_PROTOCOL = 0x0003
_ATM_CELL, _ATM_PAYLOAD = 53, 48
_SIZES = struct.Struct("BBhiIIII")
"""tc_sizespec: cell_log, size_log, cell_align, overhead, linklayer, mpu, mtu, tsize."""
_LINK_LAYERS = {"none": 1, "atm": 2}
_TINS = {"diffserv3": 0, "diffserv4": 1, "diffserv8": 2, "besteffort": 3, "precedence": 4}
_ACK_FILTERS = ("no-ack-filter", "ack-filter", "ack-filter-aggressive")
_CELLS = ("noatm", "atm", "ptm")


def _number(name: str) -> int:
    """A handle as tc writes it: `1:`, `1:10`, hexadecimal."""
    major, _, minor = name.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def _name(handle: int) -> str:
    return f"{handle >> 16:x}:{handle & 0xFFFF or '':x}" if handle & 0xFFFF else f"{handle >> 16:x}:"


def _options(params: Mapping[str, Any]) -> dict[str, Any]:
    """A queue discipline's options, as pyroute2 encodes them."""
    match params["kind"]:
        case "pfifo" | "bfifo" | "pfifo_head_drop":
            return {"limit": params["limit"]}
        case "htb":
            glob = {"version": 3, "rate2quantum": 10, "defcls": int(str(params["default"]), 16), "debug": 0}
            return {"attrs": [["TCA_HTB_INIT", {**glob, "direct_pkts": 0}]]}
        case "codel":
            return _attributes("TCA_CODEL", {"LIMIT": params["limit"], **_control_law(params)})
        case "fq_codel":
            own = {word: params[word.lower()] for word in ("LIMIT", "FLOWS", "QUANTUM", "MEMORY_LIMIT")}
            return _attributes(
                "TCA_FQ_CODEL", {**own, "DROP_BATCH_SIZE": params["drop_batch"], **_control_law(params)}
            )
        case "cake":
            return _attributes("TCA_CAKE", _cake(params))
    raise tc.TcError(f"no shaper is built with {params['kind']}", "use fq_codel, codel, cake, bfifo or pfifo")


def _attributes(prefix: str, values: Mapping[str, int]) -> dict[str, Any]:
    return {"attrs": [[f"{prefix}_{name}", value] for name, value in values.items()]}


def _control_law(params: Mapping[str, Any]) -> dict[str, int]:
    law = {"TARGET": params["target_ns"] // 1000, "INTERVAL": params["interval_ns"] // 1000}
    if params["ce_threshold_ns"] is not None:
        law["CE_THRESHOLD"] = params["ce_threshold_ns"] // 1000
    return {**law, "ECN": int(params["ecn"])}


def _cake(params: Mapping[str, Any]) -> dict[str, int]:
    rtt_us = params["rtt_ns"] // 1000
    values = {
        "BASE_RATE64": params["bandwidth"] // 8,
        "DIFFSERV_MODE": _TINS[params["tins"]],
        "FLOW_MODE": CAKE_ISOLATIONS.index(params["isolation"]),
        "WASH": int(params["wash"] == "wash"),
        "ACK_FILTER": _ACK_FILTERS.index(params["acks"]),
        "SPLIT_GSO": int(params["gso"] == "split-gso"),
        "INGRESS": int(params["shaping"] == "ingress"),
        "RTT": rtt_us,
        # As tc(8) does it: a twentieth.
        "TARGET": max(1, rtt_us // 20),
    }
    if params["nat"]:
        # A kernel without conntrack refuses even to be told no.
        values["NAT"] = 1
    if params["memlimit"] is not None:
        values["MEMORY"] = params["memlimit"]
    if params["overhead"] is None:
        return {**values, "RAW": 0}
    cells = _CELLS.index(params["cells"])
    return {**values, "ATM": cells, "OVERHEAD": params["overhead"], "MPU": params["mpu"]}


def _htb_class(asked: tc.SetClass) -> dict[str, Any]:
    bytes_per_second = asked.bps // 8
    ticks = _ticks(asked.burst_bytes, bytes_per_second)
    most = 2**32 - 1
    one = {"rate": min(bytes_per_second, most), "overhead": asked.overhead_bytes, "mpu": asked.minimum_bytes}
    each = {
        f"{word}{name}": value
        for word in ("rate", "ceil")
        for name, value in (
            ("", one["rate"]),
            ("_overhead", one["overhead"]),
            ("_mpu", one["mpu"]),
            ("___reserved", _LINK_LAYERS[asked.cells]),
        )
    }
    params = {**each, "buffer": ticks, "cbuffer": ticks, "quantum": asked.quantum, "prio": 0}
    attributes: list[list[Any]] = [["TCA_HTB_PARMS", params], ["TCA_HTB_RTAB", True], ["TCA_HTB_CTAB", True]]
    if bytes_per_second > most:
        attributes += [["TCA_HTB_RATE64", bytes_per_second], ["TCA_HTB_CEIL64", bytes_per_second]]
    return {"attrs": attributes}


def _ticks(size: int, bytes_per_second: int) -> int:
    """How long these bytes take, in the kernel's ticks of 64 ns, by way of whole microseconds as in tc(8)."""
    microseconds = size * 10**6 // bytes_per_second
    return microseconds * 1000 // 64


def _stab_of(extra: int) -> bytes:
    """An overhead alone needs no table."""
    return struct.pack("HH", 4 + _SIZES.size, 1) + _SIZES.pack(0, 0, 0, extra, 0, 0, 0, 0)


def _with_table(stab: bytes) -> bytes:
    """The kernel doesn't show a size table's numbers; they follow from the rest as tc(8) computes them."""
    base = stab[4 : 4 + _SIZES.size]
    cell_log, size_log, _, _, layer, least, _, entries = _SIZES.unpack(base)
    if entries == 0:
        return stab
    sizes = []
    for entry in range(entries):
        size = max((entry + 1) << cell_log, least)
        if layer == _LINK_LAYERS["atm"]:
            size = -(-size // _ATM_PAYLOAD) * _ATM_CELL
        sizes.append(min(size >> size_log, 0xFFFF))
    table = struct.pack(f"{entries}H", *sizes)
    return stab[: 4 + _SIZES.size] + struct.pack("HH", 4 + len(table), 2) + table + bytes(-len(table) % 4)


def _everything_to(index: int) -> dict[str, Any]:
    """u32's options: every packet is redirected to a device's egress."""
    action = {"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": index}
    kwargs = {"target": _number("1:1"), "keys": ["0x0/0x0+0"], "action": action}
    options: dict[str, Any] = tcmsg.plugins["u32"].get_parameters(kwargs)
    return options


# -------------------------------------------------------------------------------------------------- what tc(8) shows

_COUNTED = re.compile(r"refcnt \d+ ?|direct_packets_stat \d+|\bref \d+ bind \d+|[ \t]+$", re.MULTILINE)
"""What differs from moment to moment."""
_OWN = re.compile(r"^qdisc \S+ 0: .*\n", re.MULTILINE)
"""The kernel's default."""


def shown(device: str, parents: Sequence[int]) -> str:
    """`tc -d qdisc`, `class` and `filter show` of a device, without what is counted.

    Raises:
        RunError: there is no tc.
    """
    tc_program = shutil.which("tc", path=PATH)
    if tc_program is None:
        raise RunError(f"tc: not in {PATH}", "Debian: apt-get install iproute2")
    asked = [["qdisc", "show", "dev", device], ["class", "show", "dev", device]]
    asked += [
        ["filter", "show", "dev", device, "parent", f"{one >> 16:x}:{one & 0xFFFF:x}"] for one in parents
    ]
    said = []
    for words in asked:
        done = subprocess.run([tc_program, "-d", *words], capture_output=True, text=True, check=False)
        said.append(done.stdout)
    return _COUNTED.sub("", "".join(said))


# ----------------------------------------------------------------------------------------------------------- rehearsal


def rehearse(former: Former, operations: Sequence[tc.Operation]) -> None:
    """Tries in a namespace of its own whether the former state can be put back, then whether the operations can be carried out.

    Where nothing is to be put back and no namespace can be made (a container with CAP_NET_ADMIN alone), nothing is tried.

    Raises:
        NotRestorableError: the former state would not be what it was.
        RefusedError: an operation; by the kernel, in its words.
        NoNamespaceError: none can be made, and one is needed.
    """
    with Kernel() as kernel:
        # What filters send to other devices names these by number.
        others = (
            [kernel.former(name) for name in kernel.names() if name != former.name] if former.made else []
        )

    def work() -> None:
        with Kernel() as scratch:
            _double_all(scratch, former, others)
            if former.made:
                try:
                    scratch.make_again(former)
                except RefusedError as error:
                    raise NotRestorableError(f"{error.what}: {error.words}") from None
                # What is the kernel's own differs between kinds of devices, and stays.
                before, again = (
                    _OWN.sub("", words) for words in (former.words, scratch.former(former.name).words)
                )
                if again != before:
                    raise NotRestorableError(_difference(before, again))
            for operation in operations:
                scratch.do(operation)

    if doubt := _changed_default(former) or _hidden(former):
        raise NotRestorableError(doubt)
    try:
        in_a_namespace(work)
    except NoNamespaceError:
        if former.made:
            raise


def _changed_default(former: Former) -> str:
    """The kernel would put another default there than it did."""
    try:
        default = _DEFAULT.read_text().strip()
    except OSError:
        # Not told in namespaces.
        return ""
    fixed = {"noqueue", "noop", "mq", default}
    kinds = [one.kind for one in former.things if one.sort == "qdisc" and not one.handle]
    found = next((kind for kind in kinds if kind not in fixed), None)
    return f"its default {found} would become {default} (sysctl net.core.default_qdisc)" if found else ""


def _hidden(former: Former) -> str:
    """What the kernel has and does not show. Other disciplines of which it hides something refuse to be made without."""
    for one in former.things:
        # tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
        if one.kind == "netem" and any(one.attribute(_OPTIONS)[20:24]):
            return "netem scatters delays by a table that the kernel does not show"
    return ""


def _double_all(scratch: Kernel, former: Former, others: Sequence[Former]) -> None:
    there = set(scratch.names())
    if former.name not in there:
        scratch.double(former.name, former)
    for other in others[:_MOST_OTHERS]:
        if other.name not in there:
            scratch.double(other.name, other)


class NoNamespaceError(RunError):
    """A network namespace can't be made here."""


class NotRestorableError(RunError):
    """What an interface has could not be put back as it was."""


def difference(before: Former, after: Former) -> str:
    """The first thing that tc(8) shows otherwise; "" if there is none."""
    return "" if before.words == after.words else _difference(before.words, after.words)


def _difference(before: str, after: str) -> str:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    one, other = next(((a, b) for a, b in pairs if a != b), (before.strip(), after.strip()))
    return f"`{one.strip()}` would become `{other.strip()}`"


def in_a_namespace(work: Callable[[], T]) -> T:
    """Calls `work` in a network namespace that is gone afterwards. It is a thread's own, so this process stays where it is."""
    result: list[T] = []
    failed: list[BaseException] = []

    def inside() -> None:
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(_NEW_NAMESPACE) != 0:
                reason = os.strerror(ctypes.get_errno())
                raise NoNamespaceError(
                    f"a scratch network namespace can't be made: {reason}",
                    "run it with CAP_SYS_ADMIN as well",
                )
            result.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return result[0]


# --------------------------------------------------------------------------------------------------------- interfaces

_ETHERNET, _PPP, _LOOPBACK = 1, 512, 772
_WITH_ETHERNET_HEADER = {_ETHERNET, _LOOPBACK}
_SYS = Path("/sys/class/net")
_OFFLOADS = {
    "lro": ("rx-lro",),
    "gro": ("rx-gro", "rx-gro-hw"),
    "tso": ("tx-tcp-segmentation", "tx-tcp6-segmentation"),
    "gso": ("tx-generic-segmentation",),
}


def _kind(name: str, type_: int, virtual: str | None) -> str:
    if type_ == _LOOPBACK:
        return "loopback"
    if (_SYS / name / "phy80211").exists() or (_SYS / name / "wireless").exists():
        return "wireless"
    if virtual:
        return virtual
    return {_ETHERNET: "ethernet", _PPP: "ppp"}.get(type_, "unknown")


def _speed(name: str) -> int | None:
    """What the driver says; none for most virtual devices, or it is made up."""
    if not (_SYS / name / "device").exists():
        return None
    try:
        megabits = int((_SYS / name / "speed").read_text())
    except (OSError, ValueError):
        return None
    return megabits * 10**6 if megabits > 0 else None


def _offloads(name: str) -> tuple[str, ...]:
    try:
        with Ethtool() as ethtool:
            features = ethtool.get_features(name).features
    except (OSError, NetlinkError, KeyError):
        return ()
    return tuple(
        word
        for word, names in _OFFLOADS.items()
        if any(getattr(features.get(one), "enable", False) for one in names)
    )
