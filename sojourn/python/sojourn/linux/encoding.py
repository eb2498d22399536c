"""Encodes the operations of `tc` for pyroute2 and the kernel: handles, options, size tables.

The arithmetic is tc(8)'s, so that the kernel gets the same bytes as from the command. No I/O.

Source: linux/pkt_sched.h, linux/pkt_cls.h; tc-stab(8) for the size table, which the kernel doesn't
show.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from pyroute2.netlink import nlmsg_atoms
from pyroute2.netlink.rtnl import tcmsg

from sojourn.errors import UserError
from sojourn.linux import tc
from sojourn.scenario.qdisc import Qdisc

# pyroute2 lacks bfifo, whose options are encoded like those of pfifo.
tcmsg.plugins.setdefault("bfifo", tcmsg.plugins["pfifo"])
tcmsg.plugins.setdefault("pfifo_head_drop", tcmsg.plugins["pfifo"])


class _AsItIs:
    """A plugin of pyroute2 for disciplines whose options crates/tc encodes."""

    options = nlmsg_atoms.cdata


# pyroute2 has sfq, but without depth and headdrop.
tcmsg.plugins |= dict.fromkeys(("pie", "fq_pie", "dualpi2", "sfq"), _AsItIs)

# pyroute2 lacks the attributes that Linux 5.17 added. They follow those that it has.
_OPTIONS = tcmsg.plugins["fq_codel"].options
if not any("SELECTOR" in name for name, _ in _OPTIONS.nla_map):
    _OPTIONS.nla_map = (
        *_OPTIONS.nla_map,
        ("TCA_FQ_CODEL_CE_THRESHOLD_SELECTOR", "uint8"),
        ("TCA_FQ_CODEL_CE_THRESHOLD_MASK", "uint8"),
    )

_ATM_CELL, _ATM_PAYLOAD = 53, 48
_SIZES = struct.Struct("BBhiIIII")
"""tc_sizespec: cell_log, size_log, cell_align, overhead, linklayer, mpu, mtu, tsize."""
_LINK_LAYERS = {"none": 1, "atm": 2}
_HTB_INIT = 2
_ASKABLE = 0b10011
"""The flags that may be set: skip_hw, skip_sw, verbose."""


def handle(name: str) -> int:
    """Parses a handle in tc's form: `1:`, `1:10`, hexadecimal."""
    major, _, minor = name.partition(":")
    return int(major, 16) << 16 | int(minor or "0", 16)


def handle_name(handle: int) -> str:
    """Formats a handle in tc's form."""
    return (
        f"{handle >> 16:x}:{handle & 0xFFFF or '':x}" if handle & 0xFFFF else f"{handle >> 16:x}:"
    )


def options(qdisc: Qdisc | tc.Htb) -> dict[str, Any] | bytes:
    """A queue discipline's options, as pyroute2 encodes them; bytes: encoded already."""
    if isinstance(qdisc, tc.Htb):
        glob = {"version": 3, "rate2quantum": 10, "defcls": int(str(qdisc.default), 16), "debug": 0}
        return {"attrs": [["TCA_HTB_INIT", {**glob, "direct_pkts": 0}]]}
    if (packed := qdisc.packed_options()) is not None:
        return packed
    if (known := qdisc.options()) is None:
        raise UserError(
            f"a shaper can't use {qdisc.kind}",
            "use fq_codel, codel, fq_pie, pie, dualpi2, sfq, cake, bfifo or pfifo",
        )
    if any(name.startswith("TCA_") for name, _ in known):
        return {"attrs": [list(each) for each in known]}
    return dict(known)


def htb_class(wanted: tc.SetClass) -> dict[str, Any]:
    """A class's options."""
    bytes_per_second = wanted.bps // 8
    ticks = _ticks(wanted.burst_bytes, bytes_per_second)
    most = 2**32 - 1
    one = {
        "rate": min(bytes_per_second, most),
        "overhead": wanted.overhead_bytes,
        "mpu": wanted.minimum_bytes,
    }
    each = {
        f"{word}{name}": value
        for word in ("rate", "ceil")
        for name, value in (
            ("", one["rate"]),
            ("_overhead", one["overhead"]),
            ("_mpu", one["mpu"]),
            ("___reserved", _LINK_LAYERS[wanted.cells]),
        )
    }
    params = {**each, "buffer": ticks, "cbuffer": ticks, "quantum": wanted.quantum, "prio": 0}
    attributes: list[list[Any]] = [
        ["TCA_HTB_PARMS", params],
        ["TCA_HTB_RTAB", True],
        ["TCA_HTB_CTAB", True],
    ]
    if bytes_per_second > most:
        attributes += [["TCA_HTB_RATE64", bytes_per_second], ["TCA_HTB_CEIL64", bytes_per_second]]
    return {"attrs": attributes}


def _ticks(size: int, bytes_per_second: int) -> int:
    """The time that these bytes take, in the kernel's ticks of 64 ns, rounded to whole microseconds
    as in tc(8)."""
    microseconds = size * 10**6 // bytes_per_second
    return microseconds * 1000 // 64


def stab_of(extra: int) -> bytes:
    """A size table that adds `extra` to each length; an overhead alone needs no entries."""
    return struct.pack("HH", 4 + _SIZES.size, 1) + _SIZES.pack(0, 0, 0, extra, 0, 0, 0, 0)


def everything_to(index: int) -> dict[str, Any]:
    """u32's options for redirecting every packet to a device's egress."""
    action = {"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": index}
    kwargs = {"target": handle("1:1"), "keys": ["0x0/0x0+0"], "action": action}
    options: dict[str, Any] = tcmsg.plugins["u32"].get_parameters(kwargs)
    return options


# ----------------------------------------------------------------------------- restoring


def with_table(stab: bytes) -> bytes:
    """Adds a size table's numbers, which the kernel doesn't show; they follow from the rest as
    tc(8) computes them."""
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
    return (
        stab[: 4 + _SIZES.size]
        + struct.pack("HH", 4 + len(table), 2)
        + table
        + bytes(-len(table) % 4)
    )


def askable(options: bytes, flags_number: int) -> bytes:
    """A filter's options as they can be sent: without the flags that the kernel adds when it
    reports them (in_hw)."""
    out = bytearray(options)
    for number, at in _nested(options):
        if number == flags_number:
            (flags,) = struct.unpack_from("I", out, at)
            struct.pack_into("I", out, at, flags & _ASKABLE)
    return bytes(out)


def of_version(options: bytes) -> bytes:
    """htb's options with the version that the kernel accepts: the upper half of the version that it
    reports."""
    out = bytearray(options)
    for number, at in _nested(options):
        if number == _HTB_INIT:
            (version,) = struct.unpack_from("I", out, at)
            struct.pack_into("I", out, at, version >> 16)
    return bytes(out)


def _nested(attributes: bytes) -> Iterator[tuple[int, int]]:
    """Number and position of each attribute's value."""
    at = 0
    while at + 4 <= len(attributes):
        length, number = struct.unpack_from("HH", attributes, at)
        yield number & 0x3FFF, at + 4
        at += (max(length, 4) + 3) & ~3
