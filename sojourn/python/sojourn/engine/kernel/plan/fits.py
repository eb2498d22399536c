"""Features of a scenario that a Linux kernel lacks: each with its place, the reason, and what to
write instead.

Much of what the simulator's TCP lets one choose is fixed in Linux's. Parameters of Linux's modules
apply to all flows.
"""

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from sojourn.engine.kernel.graph import (
    has_queue,
    transmitter,
    written_steps,
)
from sojourn.engine.kernel.plan.endpoints import TcpSide, tcp_side
from sojourn.engine.kernel.plan.program_plan import missing
from sojourn.engine.kernel.releases import BUILT, PROGRAMS, USUAL, LinuxVersion, version_in
from sojourn.engine.protocol import by_reason
from sojourn.errors import UserError
from sojourn.linux import tc
from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.realised import (
    Flow,
    Link,
    Ping,
    ProgramTraffic,
    Realised,
    SteppedLoss,
    Tcp,
    Udp,
)
from sojourn.scenario.tcp import PROFILES
from sojourn.traffic import KINDS

MOST_FLOWS = 20_000
"""Each flow has a port; the kernel's own choices begin at 32768."""
MOST_RATE = 10**12
MOST_DELAY_NS = 3600 * 10**9
MOST_STEPS = 1_000_000
MOST_RING = 1 << 20
MOST_COALESCE_NS = 10**9
LEAST_DATAGRAM = 32
"""The size of IP and UDP headers and of the number by which the receiver identifies a datagram."""

Wiring = Literal["simnic", "veth"]
TargetKernel: TypeAlias = tuple[Wiring, bool, LinuxVersion]
"""How links are wired, whether the kernel serves this run only (a guest), and its version."""

ACCECN: LinuxVersion = (7, 0)
"""The first Linux with accurate feedback (tcp_ecn 3)."""
RACK_ALONE: LinuxVersion = (6, 17)
"""The first Linux whose TCP with SACK detects losses by RACK alone."""


@dataclass(frozen=True)
class Problem:
    """A feature of the scenario that this kernel lacks."""

    where: str
    """`link 'up': qdisc`, `flow 'backup': tcp.pacing`."""
    why: str
    hint: str


class PlanError(UserError):
    """The scenario needs features that this kernel lacks. The message lists all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = by_reason((each.where, each.why) for each in problems)
        hints = dict.fromkeys(each.hint for each in problems)
        super().__init__("\n".join(lines), "; ".join(hints))
        self.problems = tuple(problems)


def kernel_of(guest: str | None) -> TargetKernel:
    """The kernel of the guest of this name, or of the best one. The guest need not exist yet."""
    built = next((each for each in BUILT if each.guest == guest), USUAL)
    return ("veth" if guest == "qemu" else "simnic", True, version_in(built.name))


def this_kernel() -> TargetKernel:
    """This host's kernel. A run may only make namespaces in it."""
    return ("veth", False, version_in(platform.release()))


_NEWER_WORDS = ("priomap", "weights")
"""Options of fq that iproute2 has since 6.7."""


def problems_of(
    realised: Realised, wiring: Wiring, own: bool, linux: LinuxVersion
) -> Iterator[Problem]:
    """Every feature that the kernel lacks. `own`: only the run uses the kernel, so settings of the
    whole kernel may be written. `linux`: the kernel's release."""
    links, flows = realised.links, realised.flows
    for link in links:
        yield from _link_problems(link, wiring, linux, realised.duration_ns)
        if realised.offloads:
            yield from _offload_problems(link)
    if len(flows) > MOST_FLOWS:
        yield Problem(
            "scenario",
            f"{len(flows)} flows, each with a port of its own",
            f"the most is {MOST_FLOWS}",
        )
    reported: set[int] = set()
    for flow in flows:
        # Flows of one entry have equal problems, so one of them is enough.
        wrong = [] if flow.group in reported else list(_flow_problems(flow, wiring, linux))
        if wrong:
            reported.add(flow.group)
        yield from wrong
    if realised.programs:
        yield from _program_problems(realised, wiring, own, linux)
    yield from _pinned_programs(links, flows)
    yield from _shared_problems(flows, own)
    yield from _host_problems(links, flows)
    for flow in flows:
        for way in (flow.path, flow.back):
            crossed = [links[link].tail for link in way]
            if len(set(crossed)) < len(crossed):
                why = "its path passes a node twice, and a node of the guest has only one route to an address"
                yield Problem(f"flow {flow.name!r}: via", why, "give it a path without a loop")


def _program_problems(
    realised: Realised, wiring: Wiring, own: bool, linux: LinuxVersion
) -> Iterator[Problem]:
    place = f"program {realised.programs[0].name!r}"
    elsewhere = f"-e kernel runs them, in a guest of their own: {PROGRAMS.setup}"
    if not own:
        why = "here it would run as root, with this host's files and network"
        yield Problem(place, why, elsewhere)
    elif wiring != "simnic" or linux != version_in(PROGRAMS.name):
        yield Problem(place, "this guest runs no programs", elsewhere)
    else:
        for folder in missing(realised.program_sees):
            why = f"this host has no folder {folder}"
            yield Problem("programs: sees", why, "leave it out, or make it")


def _pinned_programs(links: Sequence[Link], flows: Sequence[Flow]) -> Iterator[Problem]:
    """A flow is pinned by its port, and programs choose theirs."""
    programs = [flow for flow in flows if isinstance(flow.traffic, ProgramTraffic)]
    crossed = {link for flow in programs for link in (*flow.path, *flow.back)}
    for number in sorted(crossed):
        if links[number].pinned_to(0) is not None:
            why = "programs choose their own ports, by which flows are pinned"
            yield Problem(f"link {links[number].name!r}: pinned", why, "leave pinned out")


def _link_problems(
    link: Link, wiring: Wiring, linux: LinuxVersion, duration_ns: int
) -> Iterator[Problem]:
    place = f"link {link.name!r}"
    if (steps := written_steps(link, duration_ns)) > MOST_STEPS:
        yield Problem(
            f"{place}: schedule",
            f"{steps:.3g} steps of rate, delay, loss and discipline, and a kernel gets each one separately",
            f"at most {MOST_STEPS}: longer steps, a shorter run, or simulate it",
        )
    if link.qdisc_steps and wiring != "simnic":
        why = "behind virtual devices it can't be seen which packets a change drops"
        hint = "leave it out, or use the built guest (uml)"
        yield Problem(f"{place}: qdisc_schedule", why, hint)
    for _, changed in link.qdisc_steps:
        try:
            changed.change_command()
        except UserError as error:
            yield Problem(f"{place}: qdisc_schedule", error.problem, error.hint)
            return
    if has_queue(link):
        try:
            link.qdisc.command()
        except UserError as error:
            yield Problem(f"{place}: qdisc", error.problem, error.hint)
            return
        since = link.qdisc.record.since
        if since is not None and (linux < since or wiring != "simnic"):
            why = "{} came with Linux {}.{}".format(link.qdisc.kind, *since)
            guest = "run it in the guest of a later Linux: -e kernel-7.3"
            yield Problem(f"{place}: qdisc", f"{why}, and only a built guest can set it up", guest)
        dated = version_in(link.qdisc.variant or "")
        if linux < dated:
            why = "it is the variant of Linux {}.{}, and this kernel is {}.{}".format(
                *dated, *linux
            )
            hint = "write variant linux, or run it on that kernel: -e kernel-7.3"
            yield Problem(f"{place}: qdisc", why, hint)
        after = link.qdisc_steps[-1][1] if link.qdisc_steps else link.qdisc
        newer = [word for word in _NEWER_WORDS if after.params.get(word) is not None]
        if wiring == "simnic" and link.qdisc.kind == "fq" and newer:
            why = f"the guest's tc, of iproute2 6.1, has no {' and no '.join(newer)}"
            yield Problem(f"{place}: qdisc", why, "leave it out, or simulate it")
    rates = [step.bps for step in link.rate]
    if any(rate > MOST_RATE for rate in rates):
        yield Problem(f"{place}: rate", "above 1 Tbit/s", "write a rate up to 1 Tbit/s")
    if link.delay_ns > MOST_DELAY_NS:
        yield Problem(f"{place}: delay", "above an hour", "write a delay up to 3600 s")
    ring, simnic = link.ring, wiring == "simnic"
    if link.queues is not None:
        yield from _queue_problems(link, place, wiring)
    if has_queue(link):
        try:
            for rate in [None] if simnic or not rates else rates:
                tc.queue(
                    "v0a",
                    link.qdisc,
                    header_bytes=link.framing.header_bytes,
                    shaper=link.shaper,
                    transmitter=None if simnic else transmitter(link, rate),
                )
        except UserError as error:
            other = "" if simnic else ", or use the built guest (uml)"
            yield Problem(place, error.problem, f"{error.hint}{other}")
    if link.impairments is not None and link.impairments.ecn is not None:
        why = "nothing between two queues of the guest changes ECN fields so far"
        yield Problem(f"{place}: ecn", why, "leave ecn out, or run it on the engine sim")
    if link.replay_window is not None:
        why = "nothing in the guest ends a tunnel so far"
        hint = "leave replay_window out, or run it on the engine sim"
        yield Problem(f"{place}: replay_window", why, hint)
    if link.police is not None:
        if link.qdisc.kind == "gred":
            why = "gred's filters and the policer's need the same place"
            yield Problem(f"{place}: police", why, "leave one of them out, or simulate it")
        try:
            tc.policer("v0a", link.police, header_bytes=link.framing.header_bytes)
        except UserError as error:
            yield Problem(f"{place}: police", error.problem, error.hint)
        if not simnic:
            why = "behind virtual devices a policer's drops can't be distinguished from the discipline's"
            yield Problem(f"{place}: police", why, "leave it out, or use the built guest (uml)")
    if simnic:
        if ring is not None and ring.descriptors > MOST_RING:
            yield Problem(
                f"{place}: ring", f"{ring.descriptors} descriptors", f"the most is {MOST_RING}"
            )
        if ring is not None and ring.coalesce_ns > MOST_COALESCE_NS:
            yield Problem(f"{place}: coalesce", "above a second", "write a time up to 1 s")
        return
    if isinstance(link.loss, SteppedLoss):
        why = "a loss that changes over time needs the built guest's simulated cards"
        hint = "use the built guest (uml), or leave loss_schedule out"
        yield Problem(f"{place}: loss_schedule", why, hint)
    if link.impairments is not None:
        why = "delaying packets one by one, reordering and duplicating need the built guest's simulated cards"
        hint = "use the built guest (uml), or leave out jitter, reorder, duplicate, slot and delay_schedule"
        yield Problem(place, why, hint)
    if ring is not None:
        why = "this kernel's virtual devices have no driver's ring and no byte queue limits"
        yield Problem(
            f"{place}: ring", why, "leave out ring, bql and coalesce, or use the built guest (uml)"
        )


def _offload_problems(link: Link) -> Iterator[Problem]:
    """Problems of a link with offloads, whose queue has packets larger than those on the wire."""
    cake, counted = link.qdisc.child or link.qdisc, link.framing.header_bytes
    # cake splits large packets itself (split-gso), and the pieces do not pass tc-stab(8).
    if cake.kind == "cake" and counted != tc.ETHERNET_HEADER:
        why = f"cake counts {tc.ETHERNET_HEADER} bytes of Ethernet in each piece of a large packet, but this link's link_layer counts {counted}"
        hint = 'write link_layer = "linux", or leave offloads out'
        yield Problem(f"link {link.name!r}: qdisc", why, hint)


def _queue_problems(link: Link, place: str, wiring: Wiring) -> Iterator[Problem]:
    """Problems of a card with several queues."""
    if wiring != "simnic":
        why = "this kernel's virtual devices have one queue"
        hint = "leave queues out, or use the built guest (uml)"
        yield Problem(f"{place}: queues", why, hint)
    if link.police is not None and link.pinned_to(0) is not None:
        why = "the filters that pin flows and the policer's need the same place"
        yield Problem(f"{place}: police", why, "leave out police or pinned, or simulate it")
    counted = link.framing.header_bytes
    if link.qdisc.child is None and counted != tc.ETHERNET_HEADER:
        why = f"its queues count {tc.ETHERNET_HEADER} bytes of Ethernet in each packet, but the link_layer counts {counted}"
        hint = 'write link_layer = "linux", or run it on the engine sim'
        yield Problem(f"{place}: link_layer", why, hint)


def _flow_problems(flow: Flow, wiring: Wiring, linux: LinuxVersion) -> Iterator[Problem]:
    traffic, place = flow.traffic, f"flow {flow.name!r}"
    if not KINDS[flow.kind].in_linux:
        why = f"kind {flow.kind!r} is the simulator's alone so far"
        yield Problem(place, why, "run it on the engine sim, or write transfers in its place")
    if isinstance(traffic, Udp) and traffic.packet_bytes < LEAST_DATAGRAM:
        why = f"{traffic.packet_bytes} bytes have no room for the number that each datagram carries"
        yield Problem(f"{place}: packet", why, f"write at least {LEAST_DATAGRAM}")
    if flow.tunnel is not None:
        why = "nothing in the guest puts packets into a tunnel so far"
        yield Problem(f"{place}: tunnel", why, "leave tunnel out, or run it on the engine sim")
    if isinstance(traffic, Ping) and flow.ds & 0b11:
        why = "the kernel chooses the ECN field of a ping's reply"
        yield Problem(f"{place}: ecn", why, "leave ecn out, or run it on the engine sim")
    if flow.tcp is not None:
        ours = _OURS.get(linux, ()) if wiring == "simnic" else ()
        yield from _tcp_problems(flow.tcp, place, linux, ours)


_OURS = {version_in(release.name): release.congestion for release in BUILT}
"""Our congestion controls in each built guest."""

_FIXED = {
    "undo": "always undoes a needless reduction",
    "fast_recovery": "recovers as in RFC 6582 where it has no SACK",
    "prr": "always does proportional rate reduction",
    "limited_transmit": "always does limited transmit",
    "initial_ssthresh": "begins without a slow-start threshold",
    "packet_counted": "counts bytes",
    "pacing": "paces only for congestion controls that ask for it",
    "handshake": "begins each connection with a handshake",
    "hystart_plus_plus": "has HyStart, which is another algorithm",
    "beta_ecn": "reduces for a mark as for a loss",
    "prague_virtual_rtt_ns": "has our module prague, whose virtual RTT is 25 ms",
    "prague_variant": "has our module prague, which is the variant linux",
    "initial_rto_ns": "has a fixed first timeout",
    "max_rto_ns": "has a fixed longest timeout",
    "tick_ns": "has one clock for its timers",
    "min_rto_on_variance": "bounds the variance, not the sum",
    "delayed_ack_segments": "decides itself when to acknowledge",
    "delayed_ack_ns": "decides itself when to acknowledge",
    "delayed_ack_max_ns": "decides itself when to acknowledge",
    "quick_acks": "decides itself when to acknowledge",
    "write_bytes": "acknowledges at once what the guest's program has pushed, 64 KiB at a time",
    "timer_tick_ns": "has ticks of 4 ms",
    "receive_window_fraction": "measures by itself which share of its buffer is data",
}
"""Parameters that are fixed in Linux's TCP."""


def _tcp_problems(
    tcp: Tcp, place: str, linux: LinuxVersion, ours: Sequence[str]
) -> Iterator[Problem]:
    """`ours`: our congestion controls in this kernel."""
    own, usual = tcp.parameters, PROFILES["linux"].parameters
    if tcp.own is not None:
        why = f"{tcp.congestion} is Python, which no kernel runs"
        yield Problem(f"{place}: congestion", why, "run it in the simulator: -e sim")
    elif not CONGESTION[tcp.congestion].in_linux and tcp.congestion not in ours:
        why = f"Linux has no {tcp.congestion.upper()}"
        known = ", ".join(record.name for record in CONGESTION.values() if record.in_linux)
        hint = f"write {known}"
        if any(tcp.congestion in names for names in _OURS.values()):
            hint = (
                f"run it with -e kernel-7.3, whose guest has sojourn's own module for it; or {hint}"
            )
        yield Problem(f"{place}: congestion", why, hint)
    if tcp.profile == "ns2":
        why = "`ns2` is the TCP of a simulator, which no kernel has"
        yield Problem(
            f"{place}: profile", why, 'write profile = "linux", or run it on the engine sim'
        )
        return
    younger = version_in(tcp.profile)
    if linux < younger:
        why = "it is the TCP of Linux {}.{}, and this kernel is {}.{}".format(*younger, *linux)
        hint = 'write profile = "linux", or run it on that kernel: -e kernel-7.3'
        yield Problem(f"{place}: profile", why, hint)
    for name, what in _FIXED.items():
        if own[name] != usual[name]:
            yield Problem(
                f"{place}: tcp.{name.removesuffix('_ns')}", f"Linux {what}", "leave it out"
            )
    if tcp.sack and not tcp.rack and linux >= RACK_ALONE:
        why = "Linux finds losses by RACK alone since {}.{}".format(*RACK_ALONE)
        yield Problem(
            f"{place}: tcp.rack", why, "leave it out, or run it on Linux 6.12 (-e kernel)"
        )
    if tcp.accecn and linux < ACCECN:
        why = "AccECN came with Linux {}.{}".format(*ACCECN)
        hint = "write ecn = true, or run it on the engine sim or kernel-7.3"
        yield Problem(f"{place}: ecn", why, hint)
    header = 52 if tcp.timestamps else 40
    option = tcp.accecn * 12
    for name in ("header_bytes", "ack_bytes"):
        if own[name] != header + (option if name == "header_bytes" else 0):
            why = f"Linux's headers are {header} bytes {'with' if tcp.timestamps else 'without'} timestamps"
            yield Problem(f"{place}: tcp.{name}", why, "leave it out")
    if tcp.min_rto_ns % 10**6:
        yield Problem(
            f"{place}: tcp.min_rto", "ip counts it in milliseconds", "write whole milliseconds"
        )
    if tcp.receive_buffer_max >= 2**31:
        yield Problem(
            f"{place}: tcp.receive_buffer_max", "Linux's buffers end at 2 GiB", "write less"
        )


def _host_problems(links: Sequence[Link], flows: Sequence[Flow]) -> Iterator[Problem]:
    """A named host is one machine: its TCP settings, its jitter and the route to it are the same
    for all of its flows."""
    settings: dict[str, dict[str, object]] = {}
    nexts: dict[tuple[str, str], int] = {}
    reported: set[tuple[str, str]] = set()

    def report(flow: Flow, name: str, key: str, what: str) -> Iterator[Problem]:
        if (name, key) not in reported:
            reported.add((name, key))
            why = f"the host {name!r} is one machine, and its flows differ in {what}"
            yield Problem(f"flow {flow.name!r}: {key}", why, "give them the same, or other hosts")

    for flow in flows:
        for name, path in zip(flow.hosts, (flow.back, flow.path), strict=True):
            if name is None:
                continue
            has = settings.setdefault(name, {"jitter": flow.jitter_ns})
            if has["jitter"] != flow.jitter_ns:
                yield from report(flow, name, "jitter", "jitter")
            side = None if flow.tcp is None else tcp_side(flow.tcp)
            if side is not None and has.setdefault("tcp", side) != side:
                differing = ", ".join(_differences(has["tcp"], side))
                yield from report(flow, name, "tcp", f"TCP's {differing}")
            for link in path:
                if nexts.setdefault((name, links[link].tail), link) != link:
                    yield from report(flow, name, "via", "the way that leads to it")


def _differences(left: object, right: TcpSide) -> Iterator[str]:
    """The settings that differ."""
    for each in fields(right):
        if getattr(left, each.name) != getattr(right, each.name):
            yield each.name.removesuffix("_ns")


def _shared_problems(flows: Sequence[Flow], own: bool) -> Iterator[Problem]:
    """Problems with settings that a kernel has once, for all flows."""
    for congestion, names in ((each.name, each.module_settings) for each in CONGESTION.values()):
        if not names:
            continue
        users = {
            flow.name: flow.tcp.parameters
            for flow in flows
            if flow.tcp is not None and flow.tcp.congestion == congestion
        }
        values = {tuple(parameters[name] for name in names) for parameters in users.values()}
        usual = PROFILES["linux"].parameters
        keys = ", ".join(f"tcp.{name}" for name in names)
        if len(values) > 1:
            yield Problem(
                f"flow {list(users)[-1]!r}: {keys}",
                f"flows differ, and a kernel has one value for all of its {congestion} flows",
                "give them the same",
            )
        elif users and not own and values != {tuple(usual[name] for name in names)}:
            why = "this host's kernel has one value for all of its flows, and sojourn does not change it"
            yield Problem(
                f"flow {next(iter(users))!r}: {keys}", why, "leave it out, or use a guest"
            )
