"""The links of a scenario, each one direction, and the routes over them.

A dumbbell is two nodes, `net` and `home`, joined by the links `down` and `up`. In the long form a duplex link is two: its own name,
and that name with `-back`. Routes take the least delay, then the fewest hops, then the links that stand first in the file.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sojourn.scenario.errors import Key
from sojourn.scenario.qdisc import LINK_LAYERS, LinkLayer, Qdisc, Shaper
from sojourn.scenario.wire import Loss

if TYPE_CHECKING:
    from sojourn.scenario.model import FlowEntry, Scenario, Wire

DEFAULT_QDISC = Qdisc.parse("pfifo limit 1000")
"""Linux's pfifo with the default txqueuelen: the bufferbloat one finds."""
UNLIMITED_BPS = 10_000_000_000
"""What a discipline that computes with the rate takes for a link without one: it has no queue and never acts."""


@dataclass(frozen=True)
class Line:
    """One direction of a link with every setting filled in."""

    steps: tuple[tuple[int, int], ...]
    """(from ns, bit/s), the first at 0; empty: unlimited."""
    period: int | None
    delay: int
    qdisc: Qdisc
    framing: LinkLayer
    loss: Loss
    shaper: Shaper | None = None
    ring: int | None = None
    """The driver's ring, descriptors."""
    bql: bool = False
    coalesce: int = 0
    """ns."""

    @classmethod
    def of(cls, *wires: "Wire | None") -> "Line":
        """The settings of the first table that has them; rate, schedule and repeat go together."""
        tables = [wire for wire in wires if wire is not None]

        def first(name: str) -> object:
            return next((value for wire in tables if (value := getattr(wire, name)) is not None), None)

        timed = next((wire for wire in tables if wire.rate is not None or wire.schedule is not None), None)
        steps: tuple[tuple[int, int], ...] = ()
        if timed is not None:
            steps = timed.schedule or ()
            if isinstance(timed.rate, int) and (not steps or steps[0][0] > 0):
                steps = ((0, timed.rate), *steps)
        delay, qdisc, framing, loss = (first(name) for name in ("delay", "qdisc", "link_layer", "loss"))
        shaper, ring, bql, coalesce = (first(name) for name in ("shaper", "ring", "bql", "coalesce"))
        return cls(
            steps=steps,
            period=timed.repeat if timed is not None else None,
            delay=delay if isinstance(delay, int) else 0,
            qdisc=(qdisc if isinstance(qdisc, Qdisc) else DEFAULT_QDISC).at(_fastest(steps, shaper)),
            framing=framing if isinstance(framing, LinkLayer) else LINK_LAYERS["none"],
            loss=loss if isinstance(loss, Loss) else Loss(),
            shaper=shaper if isinstance(shaper, Shaper) else None,
            ring=ring if isinstance(ring, int) else None,
            bql=bql is True,
            coalesce=coalesce if isinstance(coalesce, int) else 0,
        )


def _fastest(steps: tuple[tuple[int, int], ...], shaper: object) -> int:
    """The rate that a link's discipline is made for, bit/s: of a schedule the fastest step."""
    fastest = max((bps for _, bps in steps), default=UNLIMITED_BPS)
    return min(fastest, shaper.bps) if isinstance(shaper, Shaper) else fastest


@dataclass(frozen=True)
class Link:
    """One direction of a link in its place."""

    name: str
    line: Line
    source: str
    target: str
    back: int | None
    """Index of the other direction of the same link."""
    key: Key
    """Where it is written."""


def links_of(scenario: "Scenario") -> tuple[Link, ...]:
    """Every link that flows share."""
    bottleneck = scenario.bottleneck
    if bottleneck is not None:
        down, up = Line.of(bottleneck.down, bottleneck), Line.of(bottleneck.up, bottleneck)
        key: Key = ("bottleneck",)
        return (Link("down", down, "net", "home", 1, key), Link("up", up, "home", "net", 0, key))
    links: list[Link] = []
    for index, entry in enumerate(scenario.links):
        name, line, key = entry.name or f"{entry.source}-{entry.target}", Line.of(entry), ("link", index)
        here = len(links)
        links.append(Link(name, line, entry.source, entry.target, here + 1 if entry.duplex else None, key))
        if entry.duplex:
            links.append(Link(f"{name}-back", line, entry.target, entry.source, here, key))
    return tuple(links)


Path = tuple[int, ...]
"""Links by index, in the order in which a packet crosses them."""


class Routes:
    """Paths between nodes, each found once."""

    def __init__(self, links: Sequence[Link]) -> None:
        self.links = links
        self.nodes = {node for link in links for node in (link.source, link.target)}
        self._from: dict[str, list[int]] = {}
        for index, link in enumerate(links):
            self._from.setdefault(link.source, []).append(index)
        self._found: dict[str, dict[str, Path]] = {}

    def path(self, source: str, target: str) -> Path | None:
        """The route, or None where there is none."""
        if source not in self._found:
            self._found[source] = self._search(source)
        return self._found[source].get(target)

    def _search(self, source: str) -> dict[str, Path]:
        found: dict[str, Path] = {}
        waiting: list[tuple[int, int, Path, str]] = [(0, 0, (), source)]
        while waiting:
            delay, hops, path, node = heapq.heappop(waiting)
            if node in found:
                continue
            found[node] = path
            for index in self._from.get(node, ()):
                link = self.links[index]
                if link.target not in found:
                    heapq.heappush(waiting, (delay + link.line.delay, hops + 1, (*path, index), link.target))
        return found


@dataclass(frozen=True)
class Way:
    """The links a flow's packets cross, there and back."""

    path: Path
    back: Path

    def delay(self, links: Sequence[Link]) -> int:
        """Propagation over both, ns."""
        return sum(links[index].line.delay for index in (*self.path, *self.back))


class NoWayError(Exception):
    """A flow without a path, and why; `key` is the key at fault within the flow's table."""

    def __init__(self, message: str, hint: str, key: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.key = key


def way_of(flow: "FlowEntry", routes: Routes, *, dumbbell: bool, probe: bool) -> Way:
    """Where the flow goes. In a dumbbell a probe leaves from home; everything else comes down unless told otherwise."""
    if dumbbell:
        up = (flow.direction or ("up" if probe else "down")) == "up"
        return Way((1,), (0,)) if up else Way((0,), (1,))
    source, target = flow.source or "", flow.target or ""
    for node, key in ((source, "from"), (target, "to")):
        if node not in routes.nodes:
            raise NoWayError(
                f"no link touches the node {node!r}", f"nodes: {_list(sorted(routes.nodes))}", key
            )
    if source == target:
        raise NoWayError(f"from and to are both {source!r}", "a flow needs two different nodes", "to")
    path = _via(flow.via, source, target, routes) if flow.via else routes.path(source, target)
    if path is None:
        raise NoWayError(f"no route from {source!r} to {target!r}", "add a link, or make one duplex", "to")
    mirrored = [routes.links[index].back for index in reversed(path)] if flow.via else [None]
    whole = tuple(index for index in mirrored if index is not None)
    back = whole if len(whole) == len(mirrored) else routes.path(target, source)
    if back is None:
        raise NoWayError(
            f"no route back from {target!r} to {source!r}", "add a link, or make one duplex", "to"
        )
    return Way(path, back)


def _via(names: Iterable[str], source: str, target: str, routes: Routes) -> Path:
    by_name = {link.name: index for index, link in enumerate(routes.links)}
    node, path = source, []
    for name in names:
        if name not in by_name:
            raise NoWayError(f"no link is called {name!r}", f"links: {_list(by_name)}", "via")
        link = routes.links[by_name[name]]
        if link.source != node:
            hint = f"links from {node!r}: {_list(each.name for each in routes.links if each.source == node)}"
            raise NoWayError(f"the link {name!r} starts at {link.source!r}, not at {node!r}", hint, "via")
        path.append(by_name[name])
        node = link.target
    if node != target:
        raise NoWayError(
            f"the links end at {node!r}, not at {target!r}", "add the links that are missing", "via"
        )
    return tuple(path)


def _list(words: Iterable[str]) -> str:
    known = list(words)
    return ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
