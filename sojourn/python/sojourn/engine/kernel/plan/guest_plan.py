"""From a realised scenario to a plan: namespaces, devices, commands and flows for a real Linux
kernel.

Every node of the scenario is a network namespace that forwards. A link is the egress of one end of
a *cable*, a pair of devices. The other end is the link in the other direction, if there is one.
Flows begin and end in hosts of their own, never in a node: a sender on the same machine as the
queue would learn of its drops at once. As in the simulator, the part of a flow's base RTT that is
not in the links is split into two halves. Each half is behind the last link of a direction, on the
cable to the receiving host. Flows whose ends have the same place, delay, jitter and TCP settings
share hosts. A host that the scenario names is separate and has no such delay, so that flows of any
RTT may lead to it.

Routes lead to addresses, and a host has an address for each path to it, so flows between the same
nodes may take different paths. A named host has one address, by which cake identifies it.

There are two wirings. `simnic`, our driver in the built guest: the card has rate, overhead, delay,
loss, ring and BQL, and the discipline is its root. `veth`, for unmodified kernels: htb limits the
rate above the discipline, and netem delays. Netem is on a device in a namespace of its own behind
the shaper, where it can't push back.

A scenario with features that Linux lacks is refused by one `PlanError`, which lists all of them.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias

from sojourn._core import rng_key
from sojourn.engine.kernel.graph import (
    crossing_of,
    delay_steps,
    has_queue,
    loses,
    loss_steps,
    needs_room,
    rate_steps,
    transmitter,
)
from sojourn.engine.kernel.guest.guests import Guest
from sojourn.engine.kernel.plan import known_traffic, program_plan, sizes
from sojourn.engine.kernel.plan.endpoints import (
    TcpSide,
    module_settings,
    sysctls,
    tcp_side,
)
from sojourn.engine.kernel.plan.fits import (
    MOST_RATE,
    PlanError,
    Problem,
    Wiring,
    problems_of,
    this_kernel,
)
from sojourn.engine.kernel.releases import LinuxVersion
from sojourn.linux import tc
from sojourn.scenario.qdisc import Qdisc
from sojourn.scenario.realised import (
    Flow,
    GilbertLoss,
    Link,
    Ping,
    Program,
    ProgramTraffic,
    RandomLoss,
    Realised,
    Requests,
    StateLoss,
    SteppedLoss,
    Tcp,
)
from sojourn.scenario.tcp import MTU, PROFILES

VERSION = 2
"""Version of the plan's schema (crates/guest, plan.rs)."""
SETTLE_NS = 2100 * 10**6
"""The wait before time 0 in virtual time. It ends at a tick at which all of the kernel's timers of
up to 16 s expire (`Clock::starting_with_tick`)."""
SETTLE_REAL_NS = 300 * 10**6
"""The wait before time 0 in real time. It ends at a tick at which timers of up to 2 s expire."""
SETUP_NS = 300 * 10**9
"""Time for the set-up and the archive; in virtual time they take almost none."""
MOST_NAMESPACES = 4000
FIRST_PORT = 5001
"""Ports count up from here; the kernel's own choices begin at 32768."""
RING_BYTES = 4 << 20
"""The size of a tap's ring, which must hold at most 60 ms of packets. A tap with many points has
smaller rings."""
_QUIET_RING_BYTES = 1 << 18
_PROGRAM_RING_BYTES = 1 << 20
_MOST_SEGMENTS = 65535
"""GSO_MAX_SEGS."""
MOST_RECORDED = 2_000_000
"""The most packets that are recorded, each as a row."""
_TABLE_PART = 512
"""Entries of a table that fit into a page."""
_UNIT = 2.0**53
"""simnic's probabilities are in units of 2^-53."""

Plan: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Machine:
    """The machine that carries out the plan."""

    wiring: Wiring
    own: bool
    """Only the run uses the kernel, so settings of the whole kernel may be written."""
    ipv6: bool
    """It has IPv6, which must be turned off."""
    linux: LinuxVersion = (6, 12)
    rehash: bool = True
    """Its TCP changes a connection's hash at a timeout (since 5.18), which can be turned off."""
    modules: tuple[str, ...] = ()
    """Modules to load first."""
    output: Mapping[str, Any] = field(
        default_factory=lambda: {"modules": [], "mount": None, "path": "results.tar"}
    )
    """Where the archive is written: plan.rs, Output."""


def machine_of(guest: Guest) -> Machine:
    """A guest's kernel."""
    mount, path = guest.results
    about = {"kind": mount, "source": "none", "target": os.path.dirname(path), "options": ""}
    return Machine(
        "simnic" if guest.has_simnic else "veth",
        own=True,
        linux=guest.release,
        # The built kernel has no IPv6.
        ipv6=not guest.has_simnic,
        modules=guest.modules,
        output={
            "modules": list(guest.late_modules),
            "mount": about if mount else None,
            "path": path,
        },
    )


def this_host() -> Machine:
    """This host's kernel. A run may only make namespaces in it."""
    wiring, own, linux = this_kernel()
    return Machine(
        wiring,
        own=own,
        linux=linux,
        ipv6=os.path.isdir("/proc/sys/net/ipv6"),
        rehash=os.path.isfile("/proc/sys/net/core/txrehash"),
    )


@dataclass(frozen=True)
class Planned:
    """A plan and what a guest needs to carry it out."""

    plan: Plan
    pairs: int
    """Pairs of simulated cards."""
    queues: str
    """Cards with several queues, in the driver's syntax."""
    memory_mb: int


def offloads(realised: Realised) -> str:
    """Whether hosts send packets larger than those on the wire (offloads): "on" or "off"."""
    return "on" if realised.offloads else "off"


# ------------------------------------------------------------------------------------- the wiring


@dataclass(frozen=True)
class Port:
    """One end of a cable."""

    namespace: str
    device: str
    address: str
    mac: str


@dataclass(frozen=True)
class Cable:
    """A pair of devices."""

    a: Port
    b: Port

    def leaving(self, namespace: str) -> tuple[Port, Port]:
        """The end in this namespace, and the other end."""
        return (self.a, self.b) if self.a.namespace == namespace else (self.b, self.a)


Hop: TypeAlias = tuple[Port, Port]
"""The port where a packet leaves a namespace, and the port where it enters the next one."""


@dataclass(frozen=True)
class Wire:
    """The cables of a link of the scenario."""

    tail: str
    head: str
    hops: tuple[Hop, ...]

    @property
    def queue(self) -> Port:
        """The device whose queue is the link's."""
        return self.hops[0][0]

    @property
    def end(self) -> Port:
        """The port where its packets arrive."""
        return self.hops[-1][1]


@dataclass(frozen=True)
class HostKind:
    """Properties of a flow's end. Flows whose ends are equal share a host."""

    node: str
    toward_ns: int
    """The delay of packets to it, behind the last link: the part of a flow's RTT that is not in the
    links."""
    jitter_ns: int
    tcp: TcpSide | None
    name: str | None = None
    """The name that the scenario gives the host."""
    flow: int | None = None
    """The flow whose program is alone on the host."""


@dataclass
class Host:
    """A namespace in which flows begin or end."""

    kind: HostKind
    namespace: str
    cable: Cable
    addresses: dict[tuple[int, ...], str]
    """Its addresses, each for the path that leads to it."""


def plan(realised: Realised, machine: Machine, *, rows: bool = False) -> Planned:
    """Returns the plan of a realised scenario for this machine.

    `rows`: record a row of each packet that arrives at a queue, as in a scenario that records
    packets.

    Raises:
        PlanError: the scenario needs features that the machine's kernel lacks.
    """
    problems = list(problems_of(realised, machine.wiring, machine.own, machine.linux))
    if problems:
        raise PlanError(problems)
    run = _Builder(realised, machine, rows=rows)
    planned = run.build()
    # The check's devices have numbers after those of the run, but the check runs first.
    check = _Builder(
        known_traffic.scenario(realised, not machine.own), machine, "c-", len(run.cables)
    ).build()
    check_plan = {**check.plan, "linger_ns": 0, "modules": []}
    deadline = planned.plan["deadline_ns"] + check_plan["settle_ns"] + check_plan["duration_ns"]
    return Planned(
        {**planned.plan, "deadline_ns": deadline, "check": check_plan},
        pairs=planned.pairs + check.pairs,
        queues=planned.queues,
        memory_mb=planned.memory_mb,
    )


def recorded(realised: Realised, machine: Machine, packets: float) -> Planned:
    """Returns the plan with a row of each packet that arrives at a queue (recording.py).

    `packets`: an estimate of their number.

    Raises:
        PlanError: there are more packets than a guest can record, or `plan` refuses the scenario.
    """
    if packets > MOST_RECORDED:
        why = f"about {packets / 1e6:.1f} million packets, each of which would be recorded"
        raise PlanError(
            [Problem("scenario", why, f"at most {MOST_RECORDED // 10**6} million: make it shorter")]
        )
    return plan(realised, machine, rows=True)


class _Builder:
    """Builds a plan."""

    def __init__(
        self,
        realised: Realised,
        machine: Machine,
        prefix: str = "",
        first: int = 0,
        rows: bool = False,
    ) -> None:
        """`prefix`: prefix of its namespaces' names; `first`: the number of its first cable."""
        self.links = realised.links
        self.flows = realised.flows
        self.realised = realised
        self.machine = machine
        self.ports = _ports(self.flows)
        self.simnic = machine.wiring == "simnic"
        self.mtu = sizes.mtu(self.flows)
        self.prefix, self.first = prefix, first
        ends = [(link.tail, link.head) for link in self.links]
        names = dict.fromkeys(node for each in ends for node in each)
        self.numbered = {node: f"{prefix}n{number}" for number, node in enumerate(names)}
        self.nodes = [(self.numbered[tail], self.numbered[head]) for tail, head in ends]
        self.namespaces: list[str] = sorted(
            {node for ends in self.nodes for node in ends}, key=self._number
        )
        self.cables: list[Cable] = []
        self.addresses = 0
        self.ip: dict[str, list[str]] = {name: [] for name in self.namespaces}
        self.tc: dict[str, list[str]] = {}
        self.made: list[tuple[str, tc.MadeByNetlink]] = []
        self.offload = realised.offloads
        # Rows of packets are needed for the table of packets, for the self-check and, in real time,
        # for the check of the run's timing.
        self.rows = rows or realised.record.packets or bool(prefix) or not machine.own
        self.cards: dict[str, dict[str, int | str]] = {}
        self.wires: list[Wire] = self._wires()
        self.hosts: list[Host] = []
        self.ends = self._ends()
        self.node_addresses = self._node_addresses()

    # -------------------------------------------------------------------------------------- cables

    def _number(self, name: str) -> int:
        return int(name.removeprefix(self.prefix)[1:])

    def _namespace(self, kind: str, number: int) -> str:
        name = f"{self.prefix}{kind}{number}"
        self.namespaces.append(name)
        self.ip[name] = []
        return name

    def _cable(self, a: str, b: str) -> Cable:
        """A new pair of devices between two namespaces, with addresses, up."""
        number = self.first + len(self.cables)
        names = [f"{'nic' if self.simnic else 'v'}{number}{end}" for end in "ab"]
        # simnic's own prefix: 02:'s':'j'.
        macs = [f"02:73:6a:{number >> 8:02x}:{number & 255:02x}:{end:02x}" for end in (0, 1)]
        addresses = [_dotted((10 << 24) + 4 * number + 1 + end) for end in (0, 1)]
        ports = [Port(*each) for each in zip((a, b), names, addresses, macs, strict=True)]
        cable = Cable(ports[0], ports[1])
        self.cables.append(cable)
        for here, there in (cable.leaving(a), cable.leaving(b)):
            mtu = f" mtu {self.mtu}" if self.mtu != MTU else ""
            # A card with offload accepts larger packets; this setting makes TCP build them.
            mtu += f" gso_max_segs {_MOST_SEGMENTS}" if self.simnic and self.offload else ""
            self.ip[here.namespace] += [
                f"address add {here.address}/30 dev {here.device}",
                f"link set dev {here.device}{mtu} up",
                # Permanent entries, so that there is no ARP.
                f"neighbour replace {there.address} lladdr {there.mac} dev {here.device} nud permanent",
            ]
        return cable

    def _wires(self) -> list[Wire]:
        """A cable for each link and its other direction, if there is one."""
        wires: dict[int, Wire] = {}
        for index, (tail, head) in enumerate(self.nodes):
            if index in wires:
                continue
            back = next(self._backs(index, wires), None)
            here = (index,) if back is None else (index, back)
            if not self.simnic and any(needs_room(self.links[each]) for each in here):
                middle = self._namespace("m", index)
                near, far = self._cable(tail, middle), self._cable(middle, head)
                wires[index] = Wire(tail, head, (near.leaving(tail), far.leaving(middle)))
                returning: tuple[Hop, ...] = (far.leaving(head), near.leaving(middle))
            else:
                cable = self._cable(tail, head)
                wires[index] = Wire(tail, head, (cable.leaving(tail),))
                returning = (cable.leaving(head),)
            if back is not None:
                wires[back] = Wire(head, tail, returning)
        in_order = [wires[index] for index in range(len(self.links))]
        for link, wire in zip(self.links, in_order, strict=True):
            self._furnish(link, wire)
        return in_order

    def _backs(self, index: int, taken: Mapping[int, Wire]) -> Iterator[int]:
        """Links that may be the other direction of this one. A link whose name says so comes
        first."""
        tail, head = self.nodes[index]
        twins = [
            other
            for other, ends in enumerate(self.nodes)
            if ends == (head, tail) and other != index and other not in taken
        ]
        named = f"{self.links[index].name}-back"
        return iter(sorted(twins, key=lambda other: self.links[other].name != named))

    # --------------------------------------------------------------------------------------- links

    def _furnish(self, link: Link, wire: Wire) -> None:
        """Configures a link's rate, queue, delay and losses."""
        if self.simnic:
            self._card(link, wire.queue)
        if has_queue(link):
            length = link.qdisc.queue_length
            if length is not None:
                self.ip[wire.tail].append(f"link set dev {wire.queue.device} txqueuelen {length}")
            lines = tc.queue(
                wire.queue.device,
                link.qdisc,
                header_bytes=link.framing.header_bytes,
                shaper=link.shaper,
                transmitter=None if self.simnic else transmitter(link),
                queues=link.queues or 1,
            )
            # The guest's tc, of iproute2 6.1, lacks newer disciplines.
            if link.qdisc.record.since is not None:
                self.made.append((wire.tail, tc.by_netlink(lines.pop(), link.qdisc)))
            self._tc(wire.tail, lines)
        self._pin(link, wire)
        if link.police is not None:
            header = link.framing.header_bytes
            lines = tc.policer(wire.queue.device, link.police, header_bytes=header)
            self._tc(wire.tail, lines)
        if not self.simnic and (link.delay_ns or loses(link)):
            last = wire.hops[-1][0]
            self._tc(last.namespace, [tc.wire(last.device, link.delay_ns, link.loss)])

    def _pin(self, link: Link, wire: Wire) -> None:
        """Directs packets to the card's queues to which their flows are pinned."""
        if link.pinned_to(0) is None:
            return
        pinned = []
        for index, back in crossing_of(self.links, self.flows)[self.links.index(link)]:
            queue = link.pinned_to(index)
            assert queue is not None, "a list of queues pins every flow"
            protocol, port = self.ports[index]
            # The port belongs to the end that listens: the far end, but for requests the source.
            listens = isinstance(self.flows[index].traffic, Requests)
            pinned.append(tc.Pin(protocol, port, back != listens, queue))
        self._tc(wire.tail, tc.pins(wire.queue.device, pinned))

    def _card(self, link: Link, port: Port) -> None:
        framing, ring = link.framing, link.ring
        card: dict[str, int | str] = {
            "header": framing.header_bytes,
            "overhead": framing.overhead_bytes,
            "minimum": framing.minimum_bytes,
            "cells": framing.cells,
            "delay_ns": link.delay_ns,
        }
        if link.rate:
            card |= _card_rate(link.rate[0].bps)
        if ring is not None:
            card |= {
                "ring": ring.descriptors,
                "bql": int(ring.bql),
                "coalesce_ns": ring.coalesce_ns,
            }
        card |= self._card_loss(link) | self._card_impairments(link)
        if _watched(link):
            card |= {"log": _in_log(port), "log_out": int(_goes_out(link))}
        self.cards[port.device] = card

    def _card_loss(self, link: Link) -> dict[str, int]:
        match link.loss:
            case RandomLoss(probability=p):
                chances = {"loss_good": p}
            case GilbertLoss(p=p, r=r, bad_loss=bad, good_loss=good):
                chances = {"loss_good": good, "loss_bad": bad, "loss_enter": p, "loss_leave": r}
            case StateLoss(p13=p13, p31=p31, p32=p32, p23=p23, p14=p14):
                chances = {
                    "loss_p13": p13,
                    "loss_p31": p31,
                    "loss_p32": p32,
                    "loss_p23": p23,
                    "loss_p14": p14,
                }
            case SteppedLoss(steps=steps):
                chances = {"loss_good": steps[0][1]}
            case _:
                return {}
        # The card uses the simulator's random stream and rounds the probability so that both lose
        # the same packets.
        key = rng_key(self.realised.seed, f"{link.name}/loss")
        return {name: _chance(chance) for name, chance in chances.items()} | {"loss_key": key}

    def _card_impairments(self, link: Link) -> dict[str, int]:
        """The wire's other impairments, with the simulator's random streams."""
        wire = link.impairments
        if wire is None:
            return {}
        kinds = {
            "jitter": {"jitter_ns": wire.jitter_ns, "jitter_rho": wire.jitter_correlation},
            "reorder": {
                "reorder": wire.reorder,
                "reorder_rho": wire.reorder_correlation,
                "reorder_gap": wire.reorder_gap,
            },
            "duplicate": {
                "duplicate": wire.duplicate,
                "duplicate_rho": wire.duplicate_correlation,
            },
            "slot": {
                "slot_min_ns": wire.slot_min_ns,
                "slot_max_ns": wire.slot_max_ns,
                "slot_packets": wire.slot_packets,
                "slot_bytes": wire.slot_bytes,
            },
        }
        settings = {"overtake": int(wire.overtake)}
        for kind, values in kinds.items():
            if any(values.values()):
                key = rng_key(self.realised.seed, f"{link.name}/{kind}")
                settings |= values | {f"{kind}_key": key}
        return settings

    def _tables(self) -> Iterator[dict[str, Any]]:
        """The distributions of the cards' delays, a page at a time."""
        for link, wire in zip(self.links, self.wires, strict=True):
            table = link.impairments and link.impairments.jitter_table
            for first in range(0, len(table or ()), _TABLE_PART):
                part = (table or [])[first : first + _TABLE_PART]
                text = "".join(f"{entry & 0xFFFF:04x}" for entry in part)
                path = f"/sys/kernel/simnic/{wire.queue.device}/jitter_table"
                yield _write(None, path, f"{first} {text}")

    def _tc(self, namespace: str, lines: Iterable[str]) -> None:
        self.tc.setdefault(namespace, []).extend(lines)

    def _events(self) -> list[dict[str, Any]]:
        """Every change of a rate, a delay, a loss or a discipline's parameters."""
        events: list[dict[str, Any]] = []
        for link, wire in zip(self.links, self.wires, strict=True):
            delay = f"/sys/kernel/simnic/{wire.queue.device}/delay_ns"
            for at, delay_ns in delay_steps(link, self.realised.duration_ns)[1:]:
                events.append({"at_ns": at, "step": _write(None, delay, delay_ns)})
            good = f"/sys/kernel/simnic/{wire.queue.device}/loss_good"
            for at, probability in loss_steps(link, self.realised.duration_ns)[1:]:
                events.append({"at_ns": at, "step": _write(None, good, _chance(probability))})
            for at, bps in rate_steps(link, self.realised.duration_ns)[1:]:
                events += (
                    {"at_ns": at, "step": step} for step in self._rate_change(link, wire, bps)
                )
            for at, qdisc in link.qdisc_steps:
                line = tc.qdisc_change(
                    wire.queue.device,
                    qdisc,
                    header_bytes=link.framing.header_bytes,
                    shaper=link.shaper,
                )
                if at < self.realised.duration_ns:
                    events.append({"at_ns": at, "step": _tc_line(wire.tail, line)})
        return sorted(events, key=lambda event: int(event["at_ns"]))

    def _rate_change(self, link: Link, wire: Wire, bps: int) -> list[dict[str, Any]]:
        if self.simnic:
            # The rate is written first, so that an outage ends at the new rate.
            return [
                _write(None, f"/sys/kernel/simnic/{wire.queue.device}/{name}", value)
                for name, value in sorted(_card_rate(bps).items())
            ]
        changed = transmitter(link, bps)
        assert changed is not None, "a link whose rate changes has one"
        line = tc.rate_change(wire.queue.device, changed, header_bytes=link.framing.header_bytes)
        return [_tc_line(wire.tail, line)]

    # --------------------------------------------------------------------------------------- hosts

    def _ends(self) -> list[tuple[Host, str, Host, str]]:
        """Each flow's ends: hosts and their addresses."""
        hosts: dict[HostKind, Host] = {}
        sharing: dict[HostKind, HostKind] = {}
        ends: list[tuple[Host, str, Host, str] | None] = [None] * len(self.flows)
        # Flows without TCP come last: the TCP settings of a host do not matter to them, so they can
        # use an existing host.
        order = sorted(range(len(self.flows)), key=lambda index: self.flows[index].tcp is None)
        for index in order:
            flow = self.flows[index]
            near, far = self._host_kinds(index)
            pair: list[tuple[Host, str]] = []
            for kind, path in ((near, flow.back), (far, flow.path)):
                plain = replace(kind, tcp=None)
                kind = kind if kind.tcp else sharing.setdefault(plain, plain)
                sharing.setdefault(plain, kind)
                if kind not in hosts:
                    hosts[kind] = self._host(kind)
                pair.append((hosts[kind], self._address(hosts[kind], path)))
            ends[index] = (*pair[0], *pair[1])
        return [each for each in ends if each is not None]

    def _host_kinds(self, index: int) -> tuple[HostKind, HostKind]:
        flow = self.flows[index]
        side = None if flow.tcp is None else tcp_side(flow.tcp)
        alone = None
        if isinstance(flow.traffic, ProgramTraffic):
            # The kernel settings of a host of `bulk`.
            side, alone = tcp_side(PROFILES["linux"]), index
        jitter = flow.jitter_ns
        source, target = self.nodes[flow.path[0]][0], self.nodes[flow.path[-1]][1]
        at_source, at_target = flow.hosts
        near = HostKind(source, flow.back_extra_ns, jitter, side, at_source, alone)
        return near, HostKind(target, flow.path_extra_ns, jitter, side, at_target, alone)

    def _host(self, kind: HostKind) -> Host:
        name = self._namespace("h", len(self.hosts))
        cable = self._cable(kind.node, name)
        inward, outward = cable.a, cable.b
        if self.simnic:
            self.cards[inward.device] = {"delay_ns": kind.toward_ns}
            self.cards[outward.device] = {"delay_ns": 0}
        elif kind.toward_ns:
            self._tc(kind.node, [tc.wire(inward.device, kind.toward_ns)])
        if kind.jitter_ns:
            self._tc(name, [tc.wire(outward.device, 0, jitter_ns=kind.jitter_ns)])
        options = ""
        if kind.tcp is not None:
            options = (
                f" initcwnd {kind.tcp.initial_window} rto_min {kind.tcp.min_rto_ns // 10**6}ms"
            )
        if kind.flow is not None:
            # Programs must send from the address to which the nodes have routes; `_address` adds
            # that address.
            options += f" src {self._next_address()}"
        self.ip[name].append(
            f"route add default via {inward.address} dev {outward.device}{options}"
        )
        host = Host(kind, name, cable, {})
        self.hosts.append(host)
        return host

    def _next_address(self) -> str:
        return _dotted((10 << 24) + (1 << 23) + self.addresses)

    def _address(self, host: Host, path: tuple[int, ...]) -> str:
        """The host's address for this path, with the routes along it."""
        if path in host.addresses:
            return host.addresses[path]
        if host.kind.name is not None and host.addresses:
            address = next(iter(host.addresses.values()))
        else:
            address = self._next_address()
            self.addresses += 1
            self.ip[host.namespace].append(f"address add {address}/32 dev lo")
        host.addresses[path] = address
        hops = [hop for link in path for hop in self.wires[link].hops]
        for here, there in (*hops, (host.cable.a, host.cable.b)):
            line = f"route add {address}/32 via {there.address} dev {here.device}"
            # Paths to a named host may share hops, and with them routes.
            if host.kind.name is None or line not in self.ip[here.namespace]:
                self.ip[here.namespace].append(line)
        return address

    # ------------------------------------------------------------------------------------ programs

    def _node_addresses(self) -> dict[str, str]:
        """Addresses of the nodes that programs use, with routes to them from every node."""
        nodes = program_plan.named_nodes(self.realised.programs)
        first = (10 << 24) + (3 << 22)
        addresses = {node: _dotted(first + number) for number, node in enumerate(nodes)}
        for node, address in addresses.items():
            self.ip[self.numbered[node]].append(f"address add {address}/32 dev lo")
        ends = [(link.tail, link.head) for link in self.links]
        for node, target, number in program_plan.routes(ends, nodes):
            here, there = self.wires[number].hops[0]
            source = f" src {addresses[node]}" if node in addresses else ""
            self.ip[here.namespace].append(
                f"route add {addresses[target]}/32 via {there.address} dev {here.device}{source}"
            )
        return addresses

    def _programs(self) -> Plan:
        """The parts of the plan that only a scenario with programs has."""
        if not self.realised.programs:
            return {}
        devices: dict[tuple[str, str], str] = {}
        for link, wire in zip(self.links, self.wires, strict=True):
            devices[link.tail, link.name] = wire.queue.device
            devices[link.head, link.name] = wire.end.device

        def plan_of(program: Program) -> Plan:
            if program.end is None:
                words = program_plan.words(program, devices, self.node_addresses)
                return program_plan.plan_of(program, self.numbered[program.node], words)
            flow, server, source = program.end
            near, near_address, far, far_address = self.ends[flow]
            host, own, other = (
                (near, near_address, far_address) if source else (far, far_address, near_address)
            )
            words = program_plan.words_of_end(program, own if server else other, own)
            return program_plan.plan_of(program, host.namespace, words)

        return {
            "programs": [plan_of(program) for program in self.realised.programs],
            "program_root": program_plan.root(self.realised),
        }

    # ----------------------------------------------------------------------------------- the whole

    def build(self) -> Planned:
        if len(self.namespaces) > MOST_NAMESPACES:
            why = f"{len(self.namespaces)} network namespaces, of which {len(self.hosts)} are hosts with different delays"
            raise PlanError(
                [Problem("scenario", why, f"the most is {MOST_NAMESPACES}: give flows equal RTTs")]
            )
        realised = self.realised
        settle = SETTLE_NS if self.machine.own else SETTLE_REAL_NS
        duration, linger = realised.duration_ns, sizes.linger_ns(self.links, self.flows)
        return Planned(
            {
                "version": VERSION,
                "seed": realised.seed,
                "duration_ns": duration,
                "warmup_ns": realised.warmup_ns,
                "settle_ns": settle,
                "linger_ns": linger,
                "deadline_ns": settle + duration + linger + SETUP_NS,
                "modules": list(self.machine.modules),
                "namespaces": self.namespaces,
                "setup": self._setup(),
                "events": self._events(),
                "devices": list(self._devices()),
                "taps": list(self._taps()),
                "headers": list(self._headers()),
                "flows": self._flow_plans(),
                "sample": {
                    "queue_ns": realised.record.queue_ns,
                    "flow_ns": realised.record.flow_ns,
                },
                "output": dict(self.machine.output),
                **self._programs(),
            },
            pairs=len(self.cables) if self.simnic else 0,
            queues=",".join(
                f"{wire.queue.device.removeprefix('nic')}:{link.queues}"
                for link, wire in zip(self.links, self.wires, strict=True)
                if link.queues is not None
            ),
            memory_mb=sizes.memory_mb(realised, len(self.namespaces), self.rows or not self.simnic)
            + program_plan.memory_mb(realised.programs),
        )

    def _setup(self) -> list[dict[str, Any]]:
        steps = list(self._settings())
        for device, card in self.cards.items():
            settings = {**card, "offload": 1} if self.offload else card
            steps += [
                _write(None, f"/sys/kernel/simnic/{device}/{name}", value)
                for name, value in settings.items()
            ]
        if self.simnic:
            steps += self._tables()
        ends = [port for cable in self.cables for port in (cable.a, cable.b)]
        if self.simnic:
            moves = [f"link set dev {port.device} netns {port.namespace}" for port in ends]
            steps.append(_batch("ip", None, moves))
        else:
            pairs: dict[str, list[str]] = {}
            for cable in self.cables:
                pairs.setdefault(cable.a.namespace, []).append(_veth(cable, self.offload))
            steps += (_batch("ip", namespace, lines) for namespace, lines in pairs.items())
        for name in self.namespaces:
            if self.ip[name]:
                # Addresses and devices come before the routes that need them.
                steps.append(
                    _batch(
                        "ip", name, sorted(self.ip[name], key=lambda line: line.startswith("route"))
                    )
                )
            if self.tc.get(name):
                steps.append(_batch("tc", name, self.tc[name]))
        steps += (
            {"do": "qdisc", "namespace": name, **asdict(each), "options": list(each.options)}
            for name, each in self.made
        )
        return steps

    def _settings(self) -> Iterator[dict[str, Any]]:
        """Sysctls, of the whole kernel and of each namespace."""
        if self.machine.own:
            # The values are pages, so large that memory limits no flow.
            yield _write(None, "/proc/sys/net/ipv4/tcp_mem", "262144 524288 1048576")
        for path, value in module_settings(self.flows):
            yield _write(None, path, value)
        hosts = {host.namespace: host.kind.tcp for host in self.hosts}
        for name in self.namespaces:
            if self.machine.ipv6:
                for which in ("all", "default"):
                    yield _write(name, f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6", 1)
            for which in ("all", "default"):
                yield _write(name, f"/proc/sys/net/ipv4/conf/{which}/rp_filter", 0)
            if name not in hosts:
                yield _write(name, "/proc/sys/net/ipv4/ip_forward", 1)
            elif (side := hosts[name]) is not None:
                if self.machine.rehash:
                    # On their way through the namespaces of one kernel, packets keep the hash of
                    # the sending socket, by which fq_codel finds their queue. Without this setting
                    # the hash changes after a timeout. Between separate machines the queue would
                    # not change.
                    yield _write(name, "/proc/sys/net/core/txrehash", 0)
                yield from (
                    _write(name, f"/proc/sys/net/ipv4/{key}", value) for key, value in sysctls(side)
                )

    def _devices(self) -> Iterator[dict[str, Any]]:
        for index, (link, wire) in enumerate(zip(self.links, self.wires, strict=True)):
            if not link.sampled:
                continue
            port = wire.queue
            yield {
                "link": index,
                "namespace": port.namespace,
                "name": port.device,
                "gauges": _gauges(link) if self.simnic else [],
            }
            last = wire.hops[-1][0]
            if not self.simnic and loses(link) and last != port:
                yield {
                    "link": index,
                    "namespace": last.namespace,
                    "name": last.device,
                    "gauges": [],
                }

    def _taps(self) -> Iterator[dict[str, Any]]:
        """The queues whose packets are recorded, and the wires that lose some: in the cards' log,
        or by taps."""
        crossing = crossing_of(self.links, self.flows)
        for index, (link, wire) in enumerate(zip(self.links, self.wires, strict=True)):
            if not crossing[index] or not _watched(link):
                continue
            yield {
                "link": index,
                "header_bytes": link.framing.header_bytes,
                "out": _goes_out(link),
                "rows": self.rows,
                "card": _in_log(wire.queue) if self.simnic else None,
                "seen": None if self.simnic else self._stages(link, wire, crossing[index]),
            }

    def _headers(self) -> Iterator[dict[str, Any]]:
        """The points where packets' headers are recorded: behind every link's queue, if the
        scenario records headers."""
        if not self.realised.record.headers:
            return
        for index, wire in enumerate(self.wires):
            port = wire.queue
            yield {
                "link": index,
                "namespace": port.namespace,
                "device": port.device,
                "ring_bytes": _QUIET_RING_BYTES,
            }

    def _stages(
        self, link: Link, wire: Wire, crossing: Sequence[tuple[int, bool]]
    ) -> dict[str, Any]:
        """The points where a link's packets are recorded: before its queue, after it, and at the
        receiving end if packets may be lost between."""
        stages = []
        if has_queue(link):
            own = [
                port
                for cable in self.cables
                for port in (cable.a, cable.b)
                if port.namespace == wire.tail
            ]
            stages.append(("before", [_point(port, "in") for port in own if port != wire.queue]))
        stages.append(("after", [_point(wire.queue, "out")]))
        if _goes_out(link):
            stages.append(("arrived", [_point(wire.end, "in")]))
        points = max(len(where) for _, where in stages)
        memory = RING_BYTES if link.sampled else _QUIET_RING_BYTES
        return {
            "stages": [{"name": name, "points": where} for name, where in stages],
            # A router's ingress gets the packets of all its links.
            "only": [list(each) for each in crossing],
            "ring_bytes": max(memory // points, _QUIET_RING_BYTES),
            "delay_ns": link.delay_ns,
            "loses": loses(link),
            "drops": _drops(link.qdisc),
        }

    def _flow_plans(self) -> list[dict[str, Any]]:
        plans = []
        for flow, (_, port), (near, source, far, target) in zip(
            self.flows, self.ports, self.ends, strict=True
        ):
            tcp = flow.tcp
            traffic = flow.traffic_plan() | ({"tcp": self._tcp(tcp)} if tcp else {})
            if isinstance(flow.traffic, ProgramTraffic):
                devices = [host.cable.b.device for host in (near, far)]
                traffic |= {"devices": devices, "ring_bytes": _PROGRAM_RING_BYTES}
            plans.append(
                {
                    "name": flow.name,
                    "from": {"namespace": near.namespace, "address": source},
                    "to": {"namespace": far.namespace, "address": target},
                    "port": port,
                    "start_ns": flow.start_ns,
                    "stop_ns": flow.stop_ns,
                    "ds": flow.ds,
                    "traffic": traffic,
                }
            )
        return plans

    def _tcp(self, tcp: Tcp) -> dict[str, Any]:
        # TCP_MAXSEG includes the timestamp option.
        largest = tcp.mss + tcp.header_bytes - 40
        window = tcp.max_window
        return {
            "congestion": tcp.congestion,
            "mss": None if largest + 40 == self.mtu else largest,
            "window_bytes": None if window is None else window * tcp.mss,
        }


# ---------------------------------------------------------------------------------------- details


def _ports(flows: Sequence[Flow]) -> list[tuple[str, int]]:
    """Each flow's protocol and port; a ping's identifier. Programs choose theirs."""
    free = {"tcp": FIRST_PORT, "udp": FIRST_PORT, "icmp": FIRST_PORT, "any": FIRST_PORT}
    ports = []
    for flow in flows:
        match flow.traffic:
            case Ping():
                protocol = "icmp"
            case ProgramTraffic():
                protocol = "any"
            case _:
                protocol = "tcp" if flow.tcp else "udp"
        ports.append((protocol, free[protocol]))
        free[protocol] += 1
    return ports


def _gauges(link: Link) -> list[str]:
    """The card's counters, and its ring where there is one."""
    names = ["wire_bytes", "busy_ns", "lost_packets"]
    if link.ring is not None:
        names += ["ring_packets", "ring_bytes", "bql_limit"]
    return [f"simnic/{name}" for name in names]


def _watched(link: Link) -> bool:
    """Whether the link's packets are watched: they may be queued, lost or policed."""
    return has_queue(link) or loses(link) or link.police is not None


def _goes_out(link: Link) -> bool:
    """Whether the end of a transmission is recorded: needed if a loss follows it or a ring precedes
    it."""
    return link.ring is not None or loses(link)


def _in_log(port: Port) -> int:
    """A card's number in the log, counted from 1."""
    number, end = int(port.device[3:-1]), port.device[-1]
    return 1 + 2 * number + "ab".index(end)


def _point(port: Port, direction: str) -> dict[str, str]:
    return {"namespace": port.namespace, "device": port.device, "direction": direction}


def _card_rate(bps: int) -> dict[str, int | str]:
    """The card's settings for a rate. 0 means an outage here but no limit to the card, so the card
    gets some rate and is stopped."""
    return {"rate_bps": bps or MOST_RATE, "stopped": int(bps == 0)}


def _veth(cable: Cable, offload: bool) -> str:
    # One segment a packet: TCP builds no larger ones.
    single = "" if offload else " gso_max_segs 1"
    ends = [f"address {port.mac}{single}" for port in (cable.a, cable.b)]
    peer = f"peer name {cable.b.device} {ends[1]} netns {cable.b.namespace}"
    return f"link add name {cable.a.device} {ends[0]} type veth {peer}"


def _chance(probability: float) -> int:
    """A probability in the card's units."""
    return math.ceil(probability * _UNIT)


def _tc_line(namespace: str, line: str) -> dict[str, Any]:
    return {"do": "run", "namespace": namespace, "argv": ["tc", *line.split()], "stdin": None}


def _batch(program: str, namespace: str | None, lines: Sequence[str]) -> dict[str, Any]:
    text = "".join(f"{line}\n" for line in lines)
    return {"do": "run", "namespace": namespace, "argv": [program, "-batch", "-"], "stdin": text}


def _write(namespace: str | None, path: str, value: int | str) -> dict[str, Any]:
    return {"do": "write", "namespace": namespace, "path": path, "text": str(value)}


def _dotted(address: int) -> str:
    return ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))


def _drops(qdisc: Qdisc) -> dict[str, Any]:
    """How a discipline drops, for a program that observes packets only before and after the queue
    (crates/guest, plan.rs)."""
    record = qdisc.record
    # A discipline that keeps order may also drop packets that it has accepted. Then a packet that
    # is missing behind the queue was refused if the queue was full, and dropped later otherwise.
    # The limit decides which.
    has_limit = record.in_order and record.drops_at != "arrival"
    return {
        "in_order": record.in_order,
        "how": record.drops_at,
        "limit": qdisc.params["limit"] if has_limit else None,
    }
