"""What a link's queue did to each packet, by the kernel's own account.

The taps tell a packet's flow, its DS field on both sides and, to the nanosecond, when it came and went; but of one that was dropped only
that it is missing. The kernel's trace tells the rest. Three of its events, in the order in which they happened:

    net_dev_queue   a packet comes to the device, before its queue
    net_dev_xmit    the device takes it, after its queue
    kfree_skb       a packet is thrown away: between the other two it is the queue that does it

Each names the packet by its address in the kernel, which is its own while it waits. The k-th to come is the k-th that the first tap saw.

A trace's times are whole microseconds, rounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sojourn.engine.kernel.archive import NEVER, Archive, Ints
from sojourn.engine.kernel.errors import GuestError
from sojourn.engine.kernel.graph import has_queue
from sojourn.engine.kernel.passage import Passage, Realised
from sojourn.engine.kernel.plan import Plan
from sojourn.engine.replay import DROPPED, GRAIN_NS, MARKED, REFUSED, SENT, WAITS, Recording, Trace
from sojourn.engine.tc import ETHERNET_HEADER
from sojourn.scenario.tcp import MTU

ICMP_KINDS = ("ping",)
_EVENT = re.compile(
    rb" (\d+)\.(\d{6}): (net_dev_queue|net_dev_xmit|kfree_skb): (?:dev=(\S+) )?skbaddr=([0-9a-f]+)(?: .*?len=(\d+))?"
)
_AGAIN = "run it again; if it stays so, please report it"


@dataclass(frozen=True)
class Comings:
    """Packets of one device, in the order in which they came."""

    came_ns: Ints
    """To the microsecond, on the kernel's monotonic clock, like all times of a trace."""
    bytes: Ints
    """With the Ethernet header."""
    after: Ints
    """How many had been sent before it came."""
    gone_ns: Ints
    """When it was thrown away; `NEVER`: it was not."""
    order: Ints
    """How many were sent before it left; `NEVER`: it waits."""
    at_once: Ints
    """1: thrown away as it came, before another one did."""


def comings(text: bytes, devices: Sequence[str]) -> dict[str, Comings]:
    """Every device's packets, read from a trace."""
    found = {name: _Device() for name in devices}
    waiting: dict[bytes, tuple[_Device, int]] = {}
    by_name = {name.encode(): device for name, device in found.items()}
    for seconds, micros, event, name, packet, size in _EVENT.findall(text):
        now = (int(seconds) * 10**6 + int(micros)) * 1000
        if event == b"net_dev_queue":
            if (device := by_name.get(name)) is not None:
                waiting[packet] = (device, device.come(now, int(size)))
        elif packet in waiting and (event == b"kfree_skb" or waiting[packet][0] is by_name.get(name)):
            device, row = waiting.pop(packet)
            device.leave(row, now if event == b"kfree_skb" else NEVER)
    return {name: device.comings() for name, device in found.items()}


class _Device:
    """Collects a device's packets."""

    def __init__(self) -> None:
        self.came: list[int] = []
        self.bytes: list[int] = []
        self.after: list[int] = []
        self.gone: list[int] = []
        self.order: list[int] = []
        self.at_once: list[int] = []
        self.sent = 0

    def come(self, now: int, size: int) -> int:
        for column, value in (
            (self.came, now),
            (self.bytes, size),
            (self.after, self.sent),
            (self.gone, NEVER),
            (self.order, NEVER),
            (self.at_once, 0),
        ):
            column.append(value)
        return len(self.came) - 1

    def leave(self, row: int, gone: int) -> None:
        self.gone[row], self.order[row] = gone, self.sent
        # What it is refused for may be sent between its coming and its being thrown away: at the same instant.
        at_once = gone != NEVER and row == len(self.came) - 1 and gone - self.came[row] <= GRAIN_NS
        self.at_once[row] = int(at_once)
        self.sent += gone == NEVER

    def comings(self) -> Comings:
        columns = (self.came, self.bytes, self.after, self.gone, self.order, self.at_once)
        return Comings(*(np.array(column, dtype=np.int64) for column in columns))


def recordings(realised: Realised, plan: Plan, archive: Archive, version: str) -> list[Recording]:
    """What every sampled link's queue did: of those that dropped or marked, or else of that which held packets longest.

    Raises:
        GuestError: trace and taps don't tell of the same packets.
    """
    if lost := archive.index["trace"]["lost_events"]:
        raise GuestError(f"the kernel's trace lost {lost} events", "make the run shorter")
    devices = traced_devices(realised, plan)
    told = comings(archive.trace, list(devices.values()))
    found = []
    for link, device in devices.items():
        about = next((tap for tap in archive.index["taps"] if tap["link"] == link), None)
        if about is None:
            continue
        passage = Passage.of(realised["links"][link], about, archive.tables[about["table"]])
        trace = _joined(realised, plan, passage, told[device], archive.index["zero_monotonic_ns"])
        found.append(
            Recording(
                title="",
                seed=int(realised["seed"]),
                version=version,
                zero_ns=int(archive.index["zero_monotonic_ns"]),
                link=realised["links"][link],
                trace=trace,
            )
        )
    busy = [each for each in found if (each.trace.fate != SENT).any()]
    return busy or sorted(found, key=lambda each: -_waited(each.trace))[:1]


def traced_devices(realised: Realised, plan: Plan) -> dict[int, str]:
    """The devices of the sampled links that have queues, by link."""
    links = realised["links"]
    return {
        int(each["link"]): str(each["name"])
        for each in plan["devices"]
        if has_queue(links[int(each["link"])])
    }


def expected_packets(realised: Realised, link: int) -> float:
    """How many come to a link, rather too many: at its rate, half as long as full ones, and half as many again dropped."""
    rates = [step["bps"] for step in realised["links"][link]["rate"]]
    shaper = realised["links"][link]["shaper"]
    rate: float = min([max(rates, default=math.inf), shaper["bps"] if shaper else math.inf])
    return 1.5 * rate / 8 / (MTU / 2) * float(realised["duration_ns"]) / 1e9


def _waited(trace: Trace) -> int:
    left = trace.left_ns >= 0
    return int((trace.left_ns - trace.t_ns)[left].sum())


def _joined(realised: Realised, plan: Plan, passage: Passage, told: Comings, zero_ns: int) -> Trace:
    """The k-th packet of the tap is the k-th of the trace. What happens after the run's end is left out."""
    many = len(passage)
    # The taps leave out what came before the run.
    start = int(np.searchsorted(told.came_ns, zero_ns - 1000))
    rows = slice(start, start + many)
    apart = (
        np.abs(told.came_ns[rows] - zero_ns - passage.before) if start + many <= len(told.came_ns) else None
    )
    if apart is None or (apart > 1000).any() or (told.bytes[rows] != passage.bytes + ETHERNET_HEADER).any():
        raise GuestError("the kernel's trace and the taps don't tell of the same packets", _AGAIN)
    gone, order = told.gone_ns[rows], told.order[rows]
    if ((gone >= 0) & passage.left).any():
        raise GuestError("the kernel's trace has packets thrown away that went on", _AGAIN)
    fate = np.select(
        [(gone >= 0) & (told.at_once[rows] == 1), gone >= 0, ~passage.left, passage.marked],
        [REFUSED, DROPPED, WAITS, MARKED],
        SENT,
    )
    before = int((told.order[:start] >= 0).sum())
    end = int(realised["duration_ns"])
    left = np.where(gone >= 0, gone - zero_ns, passage.after)
    fate[left > end] = WAITS
    refused = fate == REFUSED
    left = np.where(refused, passage.before, left)
    order = np.where(refused, told.after[rows], order)
    waits, kept = fate == WAITS, passage.before <= end
    columns = (
        *(passage.before, _queue_flows(realised, plan, passage), passage.bytes, passage.ds),
        *(
            told.after[rows] - before,
            fate,
            np.where(waits, NEVER, left),
            np.where(waits, NEVER, order - before),
        ),
    )
    return Trace(*(column[kept] for column in columns))


def _queue_flows(realised: Realised, plan: Plan, passage: Passage) -> Ints:
    """Each packet's flow as a queue tells flows apart: by addresses, protocol and ports. Pings between the same hosts are one."""
    names: dict[tuple[object, ...], int] = {}
    many = len(realised["flows"])
    number = np.empty(2 * many + 1, dtype=np.int64)
    for index, flow in enumerate(plan["flows"]):
        kind: Mapping[str, object] = flow["traffic"]
        port = 0 if kind["kind"] in ICMP_KINDS else flow["port"]
        ends = (flow["from"]["address"], flow["to"]["address"])
        protocol = "icmp" if kind["kind"] in ICMP_KINDS else "tcp" if "tcp" in kind else "udp"
        for reverse in (0, 1):
            key = (protocol, ends[:: -1 if reverse else 1], port, reverse if port else 0)
            number[2 * index + reverse] = names.setdefault(key, len(names))
    # What belongs to no flow of the scenario is one of its own.
    number[-1] = len(names)
    return np.where(passage.flow < 0, number[-1], number[2 * np.maximum(passage.flow, 0) + passage.reverse])
