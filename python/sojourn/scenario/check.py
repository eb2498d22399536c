"""What no single key can know: that a flow's RTT is not shorter than its links, that the two forms are not mixed, that names are
unique, that a run's tables stay of a size one can keep.

Each check yields problems with the key they belong to; the loader gives them their line.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sojourn.scenario.amount import check_amount, check_dropped
from sojourn.scenario.errors import Key, Problem
from sojourn.scenario.laws import Spread
from sojourn.scenario.tcp import tcp_params
from sojourn.scenario.topology import Line, NoWayError, Routes, links_of, way_of
from sojourn.units import format_duration, format_rate

if TYPE_CHECKING:
    from sojourn.scenario.model import Bottleneck, Flow, FlowEntry, Scenario, Wire

MAX_FLOWS = 100_000
MAX_HOPS = 250
"""Links in a row: a packet counts its hops in eight bits."""
MAX_ROWS = 20_000_000
"""Rows of one time line: about 1 GB in memory."""


def check(scenario: "Scenario") -> list[Problem]:
    """Everything that is wrong across keys, in the order of the file."""
    problems = [*_whole(scenario), *_form(scenario), *_links(scenario)]
    # Routes and RTTs mean nothing while the links are wrong.
    if not problems:
        problems = [*_flows(scenario), *_record(scenario)]
    return problems


def base_names(flows: "Sequence[FlowEntry]") -> list[str]:
    """A name for each entry: its own, or its kind, or `kind-2` for the second unnamed entry of the kind."""
    seen: Counter[str] = Counter()
    names = []
    for flow in flows:
        kind = str(getattr(flow, "kind", "flow"))
        if flow.name is None:
            seen[kind] += 1
        names.append(flow.name or (kind if seen[kind] == 1 else f"{kind}-{seen[kind]}"))
    return names


def _whole(scenario: "Scenario") -> Iterator[Problem]:
    if scenario.warmup >= scenario.duration:
        lengths = f"{format_duration(scenario.warmup)} of {format_duration(scenario.duration)}"
        yield Problem(
            f"the warm-up leaves nothing of the run: {lengths}", "write a shorter warmup", ("warmup",)
        )
    if not scenario.flows:
        yield Problem("there is no [[flow]]", 'add one: [[flow]] with kind = "bulk"')
    total = sum(flow.count for flow in scenario.flows)
    if total > MAX_FLOWS:
        yield Problem(f"{total} flows are too many", f"the most is {MAX_FLOWS} in all", ("flow",))
    for name, times in Counter(base_names(scenario.flows)).items():
        if times > 1:
            index = max(index for index, each in enumerate(base_names(scenario.flows)) if each == name)
            yield Problem(
                f"{times} flows are called {name!r}", "give each a name of its own", ("flow", index, "name")
            )


def _form(scenario: "Scenario") -> Iterator[Problem]:
    if scenario.bottleneck is None and not scenario.links:
        yield Problem(
            "there is neither a [bottleneck] nor a [[link]]", "add a table [bottleneck] with rate and delay"
        )
    if scenario.bottleneck is not None and scenario.links:
        yield Problem(
            "[bottleneck] and [[link]] are both given", "a scenario has one form; keep one", ("link",)
        )
        return
    dumbbell = scenario.bottleneck is not None
    for index, flow in enumerate(scenario.flows):
        given = {"from": flow.source, "to": flow.target, "via": flow.via, "direction": flow.direction}
        foreign = ("from", "to", "via") if dumbbell else ("direction",)
        for name in foreign:
            if given[name] is not None:
                hint = (
                    'with a [bottleneck] write direction = "up" or "down"'
                    if dumbbell
                    else "write from and to"
                )
                yield Problem(f"{name} belongs to the other form of a scenario", hint, ("flow", index, name))
        for name in () if dumbbell else ("from", "to"):
            if given[name] is None:
                hint = f'write {name} = "..." with a node that a [[link]] names'
                yield Problem(f"{name} is missing", hint, ("flow", index, name))


def _links(scenario: "Scenario") -> Iterator[Problem]:
    if scenario.bottleneck is not None:
        yield from _bottleneck(scenario.bottleneck)
    for index, entry in enumerate(scenario.links):
        yield from _wire(entry, ("link", index))
        yield from _line(Line.of(entry), entry, ("link", index))
        yield from _gate(Line.of(entry), ((("link", index), entry),))
        if entry.source == entry.target:
            yield Problem(
                f"from and to are both {entry.source!r}", "a link joins two nodes", ("link", index, "to")
            )
    names = Counter(link.name for link in links_of(scenario)) if scenario.links else Counter[str]()
    for link in links_of(scenario) if scenario.links else ():
        if names[link.name] > 1:
            names[link.name] = 0
            yield Problem(
                f"several links are called {link.name!r}", "give each a name of its own", (*link.key, "name")
            )


def _bottleneck(bottleneck: "Bottleneck") -> Iterator[Problem]:
    yield from _wire(bottleneck, ("bottleneck",))
    seen: set[object] = set()
    for direction, own in (("down", bottleneck.down), ("up", bottleneck.up)):
        if own is not None:
            yield from _wire(own, ("bottleneck", direction))
        for problem in _line(Line.of(own, bottleneck), bottleneck, ("bottleneck",), own):
            if problem.message not in seen:
                seen.add(problem.message)
                yield problem
        common: Key = ("bottleneck",)
        tables: list[tuple[Key, Wire]] = [(common, bottleneck)]
        if own is not None:
            tables.insert(0, ((*common, direction), own))
        for problem in _gate(Line.of(own, bottleneck), tables):
            if problem not in seen:
                seen.add(problem)
                yield problem


def _wire(wire: "Wire", key: Key) -> Iterator[Problem]:
    """What is wrong within one table."""
    if wire.schedule is None:
        if wire.repeat is not None:
            yield Problem(
                "repeat without a schedule", "give a schedule, or leave repeat out", (*key, "repeat")
            )
        return
    if wire.rate == "unlimited":
        yield Problem(
            "a schedule on an unlimited link", "give a rate, or leave the schedule out", (*key, "schedule")
        )
    if wire.repeat is not None and wire.repeat <= wire.schedule[-1][0]:
        last = format_duration(wire.schedule[-1][0])
        yield Problem(
            f"repeat is not after the last step at {last}", f"write more than {last}", (*key, "repeat")
        )
    if wire.schedule[0][0] > 0 and not isinstance(wire.rate, int):
        first = format_duration(wire.schedule[0][0])
        hint = 'give a rate, or a first step at "0 s"'
        yield Problem(f"the rate before the first step at {first} is missing", hint, (*key, "schedule"))
    if not any(bps for _, bps in wire.schedule) and not wire.rate:
        yield Problem(
            "every step is an outage: nothing is ever sent", "give a step above zero", (*key, "schedule")
        )


def _line(line: Line, wire: "Wire", key: Key, own: "Wire | None" = None) -> Iterator[Problem]:
    """What is missing from a link once all its tables are read."""
    tables = [each for each in (own, wire) if each is not None]
    if not line.steps and not any(each.rate == "unlimited" for each in tables):
        yield Problem("rate is missing", 'write rate = "20 Mbit/s", or "unlimited"', (*key, "rate"))
    if all(each.delay is None for each in tables):
        yield Problem("delay is missing", 'write delay = "10 ms", the propagation one way', (*key, "delay"))
    if line.steps or line.shaper is not None:
        return
    if (refused := line.qdisc.without_a_rate()) is not None:
        yield Problem(*refused, (*key, "qdisc"))


def _gate(line: Line, tables: "Sequence[tuple[Key, Wire]]") -> Iterator[Problem]:
    """What is wrong between discipline and transmitter. `tables`: where the link's keys may stand, its own first."""

    def place(name: str) -> Key:
        said = [key for key, wire in tables if getattr(wire, name) is not None]
        return (*(said or [tables[-1][0]])[0], name)

    if line.ring is None:
        for name, given in (("bql", line.bql), ("coalesce", line.coalesce > 0)):
            if given:
                hint = f"write ring = 256, or leave {name} out"
                yield Problem(f"{name} is of a driver's ring, and this link has none", hint, place(name))
    elif not line.steps and line.shaper is None and any(wire.rate == "unlimited" for _, wire in tables):
        hint = "give the link a rate or a shaper, or leave ring out"
        yield Problem("a ring on an unlimited link is always empty", hint, place("ring"))


def _flows(scenario: "Scenario") -> Iterator[Problem]:
    links = links_of(scenario)
    routes = Routes(links)
    ways = []
    for index, flow in enumerate(scenario.flows):
        key: Key = ("flow", index)
        yield from _flow(flow, key)
        try:
            way = way_of(flow, routes, dumbbell=scenario.bottleneck is not None, probe=flow.kind == "ping")
        except NoWayError as error:
            yield Problem(error.message, error.hint, (*key, error.key))
            continue
        if max(len(way.path), len(way.back)) > MAX_HOPS:
            hops = max(len(way.path), len(way.back))
            yield Problem(f"its way crosses {hops} links", f"at most {MAX_HOPS}", (*key, "to"))
        shortest = way.delay(links)
        if flow.rtt is not None and flow.rtt.least < shortest:
            short, least = format_duration(flow.rtt.least), format_duration(shortest)
            hint = f'write at least "{least}", or shorten the delays'
            yield Problem(f"an RTT of {short} is less than its links take: {least}", hint, (*key, "rtt"))
        too_much = list(check_amount(flow, scenario, way, links, key))
        yield from too_much
        if not too_much:
            ways.append(way)
    if len(ways) == len(scenario.flows):
        yield from check_dropped(scenario.flows, ways, links, scenario.duration)


def _stops_unstarted(start: Spread, stop: Spread, count: int) -> bool:
    """Whether any flow must stop before it starts, however the draws fall."""

    def earliest() -> int:
        return 0

    def latest() -> int:
        return 2**64 - 1

    return any(stop.of(i, count, latest) <= start.of(i, count, earliest) for i in range(count))


def _flow(flow: "Flow", key: Key) -> Iterator[Problem]:
    if flow.stop is not None and _stops_unstarted(flow.start, flow.stop, flow.count):
        yield Problem("it stops before it starts", "write a later stop", (*key, "stop"))
    if flow.rtt is not None and flow.rtt.law == "list" and len(flow.rtt.values) > flow.count:
        hint = f"count is {flow.count}: drop some or raise count"
        yield Problem(f"{len(flow.rtt.values)} RTTs for {flow.count} flows", hint, (*key, "rtt"))
    if flow.start.law == "list" and len(flow.start.values) > flow.count:
        hint = f"count is {flow.count}: drop some or raise count"
        yield Problem(f"{len(flow.start.values)} starts for {flow.count} flows", hint, (*key, "start"))
    match flow.kind:
        case "bulk" | "transfers":
            tcp = flow.tcp
            if tcp.min_rto is not None and tcp.max_rto is not None and tcp.min_rto > tcp.max_rto:
                yield Problem("min_rto is above max_rto", "write a smaller min_rto", (*key, "tcp", "min_rto"))
            small, large = tcp.receive_buffer, tcp.receive_buffer_max
            if small is not None and large is not None and small > large:
                hint = "write the larger of the two as receive_buffer_max"
                yield Problem(
                    "receive_buffer is above receive_buffer_max", hint, (*key, "tcp", "receive_buffer")
                )
            if flow.congestion == "dctcp" and not flow.ecn:
                yield Problem("dctcp without ECN is Reno to Linux", "write ecn = true", (*key, "congestion"))
            full = tcp_params(flow.profile, flow.congestion, flow.ecn, tcp)
            if full["vegas_alpha"] > full["vegas_beta"]:
                named = "vegas_alpha" if tcp.vegas_alpha is not None else "vegas_beta"
                what = f"vegas_alpha {full['vegas_alpha']} is above vegas_beta {full['vegas_beta']}"
                yield Problem(what, "write both, alpha below beta", (*key, "tcp", named))
        case "udp" | "onoff":
            if flow.access is not None and flow.access < flow.rate:
                hint = f'write rate = "{format_rate(flow.access)}" or less'
                yield Problem("the rate is above the access link's, which never drops", hint, (*key, "rate"))
        case "video":
            if (flow.rate is None) == (flow.frames is None):
                what = "rate and recorded frames are both given" if flow.rate else "rate is missing"
                yield Problem(what, 'write rate = "2 Mbit/s", or trace or frames instead', (*key, "rate"))
            if flow.frames is not None and (flow.repeat is None or flow.repeat <= flow.frames[-1][0]):
                last = format_duration(flow.frames[-1][0])
                hint = f"write repeat, a time after the last frame at {last}"
                yield Problem("the frames' repeat is missing or too short", hint, (*key, "repeat"))
            if flow.frames is None and flow.repeat is not None:
                yield Problem("repeat without frames", "leave repeat out", (*key, "repeat"))


def _record(scenario: "Scenario") -> Iterator[Problem]:
    count = sum(flow.count for flow in scenario.flows)
    for name, interval, lines in (
        ("queue", scenario.record.queue, len(links_of(scenario))),
        ("flow", scenario.record.flow, count),
    ):
        rows = lines * (scenario.duration // interval) if interval else 0
        if rows > MAX_ROWS:
            least = format_duration(-(-lines * scenario.duration // MAX_ROWS))
            hint = f'write "{least}" or more, or leave it out'
            yield Problem(f"that makes {rows} rows; the most is {MAX_ROWS}", hint, ("record", name))
