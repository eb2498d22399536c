"""The kernel's traffic control by netlink: carries out the operations of `tc`, saves an interface's
state and restores it.

The state is saved as the kernel reports it: each queue discipline, class and filter with its raw
attributes. Restoring sends the same to the kernel again, parents before children. The kernel makes
its own disciplines (handle 0:) again by itself. Not every state can be restored this way:
`rehearsal` tries it first. `encoding` converts tc's operations to netlink. Everything else about
netlink is pyroute2's.

Source: rtnetlink(7), linux/pkt_sched.h, linux/pkt_cls.h, linux/rtnetlink.h.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import socket
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyroute2 import Ethtool, IPRoute
from pyroute2.netlink import NETLINK_ROUTE, nlmsg, rtnl
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.nlsocket import NetlinkSocket
from pyroute2.netlink.rtnl import tcmsg

from sojourn.errors import UserError
from sojourn.linux import encoding, tc
from sojourn.linux.programs import PATH

ROOT = 0xFFFFFFFF
INGRESS = 0xFFFFFFF1
"""Parents."""
_EVERY_PROTOCOL = 0x0003
_REQUEST = 0x01
_ACK = 0x04
_DUMP = 0x300
_EXCLUSIVE = 0x200
_CREATE = 0x400
_KIND, OPTIONS, _CHAIN, _STAB, _INGRESS_BLOCK, _EGRESS_BLOCK = 1, 2, 11, 8, 13, 14
_SENT_ATTRIBUTES = {_KIND, OPTIONS, _CHAIN, _STAB, _INGRESS_BLOCK, _EGRESS_BLOCK}
"""The attributes to send; the kernel counts or derives the others."""
_CLASSES = {"htb", "hfsc", "drr", "qfq"}
"""Kinds of classes that are created one by one; those of other disciplines come with the
discipline."""
_HOOKS = (0xFFFFFFF2, 0xFFFFFFF3)
"""The parents of clsact's filters. They replace clsact's handle."""
_FIRST_TABLE = 0x800
"""The number of the hash table that the kernel makes for the first preference of u32 on a parent.
The table of the next preference has the next number."""
_LINK = 3
"""The attribute of a u32 filter that links to another table (linux/pkt_cls.h: TCA_U32_LINK)."""
_FLAGS = {"u32": 11, "flower": 22, "matchall": 3}
"""The attribute of a filter's flags, to which the kernel adds flags of its own."""


class RefusedError(UserError):
    """The kernel refused an operation. `words` is its message."""

    def __init__(self, what: str, words: str, code: int = 0) -> None:
        super().__init__(f"{what}: {words}")
        self.what, self.words, self.code = what, words, code


@dataclass(frozen=True)
class Interface:
    """An interface's properties that need no privilege."""

    name: str
    index: int
    kind: str
    """`ethernet`, `wireless`, `loopback`, `ppp`, or the kind of a virtual one: `wireguard`,
    `bridge`, `veth`."""
    mtu: int
    header_bytes: int
    """The bytes of the link-layer header that count in a packet's length at the queue."""
    queues: int
    queue_length: int
    up: bool
    speed_bps: int | None
    offloads: tuple[str, ...]
    """Offloads with which packets of up to 64 kB pass a queue as one: `gro`, `tso`, `gso`,
    `lro`."""


@dataclass(frozen=True)
class TcObject:
    """A queue discipline, a class or a filter, as the kernel reported it."""

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
        """The value of an attribute; empty if it is absent."""
        return next((value for one, _, value in self.attributes if one == number), b"")

    def to_json(self) -> dict[str, Any]:
        """For a journal."""
        attributes = [[number, flags, value.hex()] for number, flags, value in self.attributes]
        return {**self.__dict__, "attributes": attributes}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> TcObject:
        """Reads the result of `to_json`."""
        attributes = tuple(
            (number, flags, bytes.fromhex(value)) for number, flags, value in fields["attributes"]
        )
        return cls(**{**fields, "attributes": attributes})


@dataclass(frozen=True)
class Former:
    """The former state of an interface."""

    name: str
    index: int
    queues: int
    queue_length: int
    things: tuple[TcObject, ...]
    """Parents before children."""
    words: str
    """The output of tc(8)."""

    @property
    def root(self) -> TcObject | None:
        return next(
            (one for one in self.things if one.sort == "qdisc" and one.parent == ROOT), None
        )

    @property
    def has_own_root(self) -> bool:
        """Whether the root discipline was installed; otherwise it is the kernel's default."""
        return self.root is not None and self.root.handle != 0

    @property
    def has_ingress(self) -> bool:
        return any(one.sort == "qdisc" and one.parent == INGRESS for one in self.things)

    @property
    def made(self) -> tuple[TcObject, ...]:
        """The objects to be restored."""
        return tuple(one for one in self.things if _was_made(one))

    def to_json(self) -> dict[str, Any]:
        """For a journal."""
        return {**self.__dict__, "things": [one.to_json() for one in self.things]}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Former:
        """Reads the result of `to_json`."""
        return cls(
            **{**fields, "things": tuple(TcObject.from_json(one) for one in fields["things"])}
        )


def _table(thing: TcObject) -> int | None:
    """The number of the hash table that a filter of u32 stands for; None: it is not a table. The
    kernel makes tables from 0x800 on."""
    return (
        thing.handle >> 20
        if thing.kind == "u32" and thing.handle and not thing.handle & 0xFFFFF
        else None
    )


def _was_made(thing: TcObject) -> bool:
    if thing.sort == "qdisc":
        return thing.handle != 0
    if thing.sort == "class":
        return thing.kind in _CLASSES
    # The kernel makes u32's first table together with u32's first filter. An entry without a handle
    # is only a heading of the listing.
    table = _table(thing)
    return thing.handle != 0 and (table is None or table < _FIRST_TABLE)


# ------------------------------------------------------------------------------------- the kernel


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
    """The network of this thread's namespace, for the duration of the block.

    Raises:
        RefusedError: the kernel refuses any request.
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

    # ------------------------------------------------------------------------------------- looking

    def names(self) -> list[str]:
        """Names of the interfaces."""
        return [link.get_attr("IFLA_IFNAME") for link in self._links.get_links()]

    def interface(self, name: str) -> Interface | None:
        """The interface; None: it does not exist."""
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
        return next(
            (link for link in self._links.get_links() if link.get_attr("IFLA_IFNAME") == name), None
        )

    def _index(self, name: str) -> int:
        link = self._link(name)
        if link is None:
            raise RefusedError(name, "no such interface", errno.ENODEV)
        return int(link["index"])

    def former(self, name: str) -> Former:
        """The present state of an interface."""
        link = self._link(name)
        if link is None:
            raise RefusedError(name, "no such interface", errno.ENODEV)
        index = link["index"]
        qdiscs = _ordered(self._things("qdisc", index, 0))
        classes = _ordered(self._things("class", index, 0))
        owners = [one for one in (*qdiscs, *classes) if one.handle]
        parents = [
            hook for one in owners for hook in (_HOOKS if one.kind == "clsact" else (one.handle,))
        ]
        filters = [
            one
            for parent in parents
            for one in _filters_in_order(self._things("filter", index, parent))
        ]
        return Former(
            name,
            index,
            link.get_attr("IFLA_NUM_TX_QUEUES") or 1,
            link.get_attr("IFLA_TXQLEN") or 0,
            (*_qdiscs_and_classes(qdiscs, classes), *filters),
            shown(name, parents),
        )

    def _things(self, sort: str, index: int, parent: int) -> list[TcObject]:
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
                if cell[0] != "UNKNOWN" and int(cell[0].removeprefix("TCA_")) in _SENT_ATTRIBUTES
            )
            info = each["info"] if sort == "filter" else 0
            found.append(
                TcObject(sort, each["family"], each["handle"], each["parent"], info, attributes)
            )
        return found

    # -------------------------------------------------------------------------------------- acting

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
            case tc.AddQdisc(device, parent, handle, qdisc, extra):
                attributes: list[tuple[str, Any]] = [("TCA_KIND", qdisc.kind)]
                if not isinstance(qdisc, tc.Ingress):
                    attributes.append(("TCA_OPTIONS", encoding.options(qdisc)))
                if extra:
                    attributes.append(("TCA_STAB", encoding.stab_of(extra)))
                place = {"root": ROOT, "ingress": INGRESS}.get(parent) or encoding.handle(parent)
                self._ask("qdisc", self._index(device), encoding.handle(handle), place, attributes)
            case tc.SetClass(device, parent, classid):
                attributes = [("TCA_KIND", "htb"), ("TCA_OPTIONS", encoding.htb_class(operation))]
                self._ask(
                    "class",
                    self._index(device),
                    encoding.handle(classid),
                    encoding.handle(parent),
                    attributes,
                )
            case tc.Redirect(device, to):
                protocol = socket.htons(_EVERY_PROTOCOL)
                attributes = [
                    ("TCA_KIND", "u32"),
                    ("TCA_OPTIONS", encoding.everything_to(self._index(to))),
                ]
                index, info = self._index(device), tc.PREFERENCE << 16 | protocol
                self._ask("filter", index, 0, encoding.handle(tc.INGRESS), attributes, info)

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
        message["index"], message["handle"], message["parent"], message["info"] = (
            index,
            handle,
            parent,
            info,
        )
        message["attrs"] = list(attributes)
        self._tc.nlm_request(message, _SORTS[sort][0], _REQUEST | _ACK | _CREATE | _EXCLUSIVE)

    def _delete(self, index: int, parent: int) -> None:
        message = _Message()
        message["index"], message["parent"] = index, parent
        message["handle"] = encoding.handle(tc.INGRESS) if parent == INGRESS else 0
        self._tc.nlm_request(message, rtnl.RTM_DELQDISC, _REQUEST | _ACK)

    # -------------------------------------------------------------------------------- putting back

    def put_back(self, former: Former) -> None:
        """Restores the interface's former state."""
        if self.former(former.name).has_ingress:
            self.do(tc.DeleteQdisc(former.name, "ingress"))
        if self.former(former.name).has_own_root:
            self.do(tc.DeleteQdisc(former.name, "root"))
        self.make_again(former)

    def make_again(self, former: Former) -> None:
        """Restores installed objects, on an interface that has the kernel's default."""
        index = self._index(former.name)
        # Older kernels change the length when a device without a discipline gets one.
        if self._link(former.name).get_attr("IFLA_TXQLEN") != former.queue_length:
            self._links.link("set", index=index, txqlen=former.queue_length)
        for thing in former.made:
            message = _Message()
            message["family"], message["index"], message["handle"] = (
                thing.family,
                index,
                thing.handle,
            )
            message["parent"], message["info"] = thing.parent, thing.info
            message["attrs"] = [
                (f"TCA_{number}", value, flags) for number, flags, value in _said_again(thing)
            ]
            try:
                self._tc.nlm_request(
                    message, _SORTS[thing.sort][0], _REQUEST | _ACK | _CREATE | _EXCLUSIVE
                )
            except NetlinkError as error:
                raise _refused(
                    f"{thing.sort} {encoding.handle_name(thing.handle)} {thing.kind}", error
                ) from None

    def double(self, name: str, former: Former) -> None:
        """Makes a device with the name, number and queues of another device, for rehearsals."""
        settings = {
            "ifname": name,
            "kind": "ifb",
            "num_tx_queues": former.queues,
            "txqlen": former.queue_length,
        }
        try:
            try:
                self._links.link("add", index=former.index, **settings)
            except NetlinkError:
                # On some hosts a new namespace begins with tunnels that have low numbers.
                self._links.link("add", **settings)
            self._links.link("set", index=self._index(name), state="up")
        except NetlinkError as error:
            raise _refused(f"ip link add name {name} type ifb", error) from None


def _refused(what: str, error: NetlinkError) -> RefusedError:
    words = str(error.args[1]) if len(error.args) > 1 and error.args[1] else os.strerror(error.code)
    return RefusedError(what, words, error.code)


def _ordered(things: Iterable[TcObject]) -> list[TcObject]:
    """Sorts objects so that each follows its parent: a discipline on a class of another, a class on
    a class."""
    left, done = list(things), []
    while left:
        above = {one.handle for one in left if one.handle}
        # The ingress discipline is its own parent.
        ready = [one for one in left if _above(one) not in above - {one.handle}] or left
        done += ready
        left = [one for one in left if one not in ready]
    return done


def _filters_in_order(filters: Sequence[TcObject]) -> list[TcObject]:
    """The filters of one parent in an order in which they can be made. u32's hash tables can be
    filled and linked across preferences.

    The kernel numbers the tables of preferences in the order in which the preferences first appear,
    so that order is restored. Each preference begins with its own tables, of which the kernel shows
    the latest first. A preference without tables begins with a filter, if possible with one that
    does not link to a table. Other filters with links come last.
    """
    u32 = [one for one in filters if one.kind == "u32" and one.handle]
    own = {one.info: _table(one) or 0 for one in u32 if (_table(one) or 0) >= _FIRST_TABLE}
    first: list[TcObject] = []
    for preference in sorted(own, key=lambda info: own[info]):
        mine = [one for one in u32 if one.info == preference and _was_made(one)]
        tables = [one for one in mine if _table(one) is not None]
        first += reversed(tables) if tables else sorted(mine, key=_links)[:1]
    rest = [one for one in u32 if one not in first]
    others = [one for one in filters if one not in u32]
    return [*others, *first, *sorted(rest, key=_links)]


def _links(thing: TcObject) -> bool:
    """Whether it is a filter of u32 that links to another table."""
    if thing.kind != "u32":
        return False
    options, at = thing.attribute(OPTIONS), 0
    while at + 4 <= len(options):
        length, number = struct.unpack_from("=HH", options, at)
        if number & 0x3FFF == _LINK:
            return True
        at += max((length + 3) & ~3, 4)
    return False


def _above(thing: TcObject) -> int:
    return thing.parent if thing.sort == "class" else thing.parent & 0xFFFF0000


def _qdiscs_and_classes(
    qdiscs: Sequence[TcObject], classes: Sequence[TcObject]
) -> Iterator[TcObject]:
    """Each discipline, then its classes, then the disciplines below those, so that each follows its
    parent."""
    waiting = list(qdiscs)
    while waiting:
        one = waiting.pop(0)
        yield one
        if one.handle:
            own = [each for each in classes if each.handle >> 16 == one.handle >> 16]
            yield from own


def _said_again(thing: TcObject) -> Iterator[tuple[int, int, bytes]]:
    for number, flags, value in thing.attributes:
        if number == _STAB:
            yield number, flags, encoding.with_table(value)
        elif number == OPTIONS and thing.kind in _FLAGS and thing.sort == "filter":
            yield number, flags, encoding.askable(value, _FLAGS[thing.kind])
        elif number == OPTIONS and (thing.kind, thing.sort) == ("htb", "qdisc"):
            yield number, flags, encoding.of_version(value)
        else:
            yield number, flags, value


# ------------------------------------------------------------------------------- what tc(8) shows

_COUNTED = re.compile(
    r"refcnt \d+ ?|direct_packets_stat \d+|\bref \d+ bind \d+|[ \t]+$", re.MULTILINE
)
"""Counters, which change all the time."""


def shown(device: str, parents: Sequence[int]) -> str:
    """`tc -d qdisc`, `class` and `filter show` of a device, without counters.

    Raises:
        UserError: there is no tc.
    """
    tc_program = shutil.which("tc", path=PATH)
    if tc_program is None:
        raise UserError(f"tc: not in {PATH}", "Debian: apt-get install iproute2")
    shows = [["qdisc", "show", "dev", device], ["class", "show", "dev", device]]
    shows += [
        ["filter", "show", "dev", device, "parent", f"{one >> 16:x}:{one & 0xFFFF:x}"]
        for one in parents
    ]
    outputs = []
    for words in shows:
        done = subprocess.run(
            [tc_program, "-d", *words], capture_output=True, text=True, check=False
        )
        outputs.append(done.stdout)
    return _COUNTED.sub("", "".join(outputs))


# ------------------------------------------------------------------------------------- interfaces

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
    """The speed that the driver reports; None for most virtual devices, whose drivers invent
    one."""
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
