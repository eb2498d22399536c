"""A scenario in a notebook: a drawing of its topology, and tables of its links and flows.

A node's column is its distance, in links, from the tail of the first link. A link is an arrow; the
two directions of a link bend away from each other. Hosts' own access links are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sojourn import hypertext
from sojourn._core import Flow, Link, Realised, Scenario
from sojourn.units import format_duration, format_rate

if TYPE_CHECKING:
    from markupsafe import Markup

COLUMN, ROW = 210.0, 150.0
"""Distances between nodes, px."""
MARGIN = 60.0
RADIUS = 22.0
BEND = 26.0
"""Distance of an arrow's middle from the straight line, px."""
MOST_LINKS = 40
"""The largest number of links in a drawing."""

Point = tuple[float, float]


def html(scenario: Scenario) -> Markup:
    """The HTML for `_repr_html_` of a scenario; for a sweep, its first variant is drawn."""
    variants = scenario.variants()
    first = variants[0].realise(scenario.seeds[0])
    links = _own(first)
    seconds = (
        f"{format_duration(scenario.duration)}, of which {format_duration(first.warmup_ns)} warm-up"
    )
    count = len(scenario.seeds)
    swept = (
        f"a sweep of {len(variants)} variants; the first one is shown below"
        if scenario.sweep
        else ""
    )
    heading = hypertext.lines(
        scenario.title, f"{seconds}; {count} {'seed' if count == 1 else 'seeds'}", swept
    )
    return heading + drawn(scenario) + _links(links) + _flows(variants[0])


def drawn(scenario: Scenario) -> str:
    """The topology of the first variant as SVG; empty if there are more links than fit a
    drawing."""
    links = _own(scenario.variants()[0].realise(scenario.seeds[0]))
    return topology(links) if 0 < len(links) <= MOST_LINKS else ""


def senders(scenario: Scenario) -> list[str]:
    """A line for each [[flow]] entry of the first variant, with its direction and the drawn links
    that it crosses. An entry that crosses no drawn link, such as one inside a node, has a line
    too."""
    realised = scenario.variants()[0].realise(scenario.seeds[0])
    entries: dict[int, list[Flow]] = {}
    for flow in realised.flows:
        entries.setdefault(flow.group, []).append(flow)
    return [_sends(flows, realised) for flows in entries.values()]


def _sends(flows: Sequence[Flow], realised: Realised) -> str:
    """The line of an entry; its flows differ only in times."""
    first, last = flows[0], flows[-1]
    name = first.name if first is last else f"{first.name} to {last.name}"
    crossed = [link for link in map(realised.links.__getitem__, first.path) if link.sampled]
    if not crossed:
        return f"{name}: {first.kind}, across no queue"
    queues = ", ".join(link.name for link in crossed)
    return f"{name}: {first.kind}, {crossed[0].tail} → {crossed[-1].head} across {queues}"


def _own(realised: Realised) -> list[Link]:
    return [link for link in realised.links if link.sampled]


def _links(links: Sequence[Link]) -> Markup:
    rows = [
        [
            link.name,
            f"{link.tail} → {link.head}",
            _rate(link),
            format_duration(link.delay_ns),
            link.qdisc.text,
        ]
        for link in links
    ]
    return hypertext.table(["link", "", "rate", "delay", "qdisc"], rows)


def _flows(scenario: Scenario) -> Markup:
    rows = [[flow.name or flow.kind, flow.kind, str(flow.count)] for flow in scenario.flows]
    return hypertext.table(["flows", "kind", "count"], rows)


def _rate(link: Link) -> str:
    if not link.rate:
        return "unlimited"
    steps = len(link.rate)
    return format_rate(link.rate[0].bps) + (f", {steps} steps" if steps > 1 else "")


# -------------------------------------------------------------------------------------- the drawing


def topology(links: Sequence[Link]) -> Markup:
    """Nodes and links as SVG."""
    places = _places(links)
    width = max(x for x, _ in places.values()) + MARGIN
    height = max(y for _, y in places.values()) + MARGIN
    between: dict[tuple[str, str], int] = {}
    arrows = []
    for link in links:
        nth = between[link.tail, link.head] = between.get((link.tail, link.head), 0) + 1
        arrows.append(_arrow(link, places[link.tail], places[link.head], nth))
    nodes = [
        {"name": name, "x": f"{x:.1f}", "y": f"{y:.1f}", "text_y": f"{y + 4:.1f}"}
        for name, (x, y) in places.items()
    ]
    said = ", ".join(f"{link.name}: {link.tail} to {link.head}" for link in links)
    size = (f"{width:.0f}", f"{height:.0f}", f"{RADIUS:.0f}")
    return hypertext.part("sojourn/notebook.html", "topology", *size, said, arrows, nodes)


def _places(links: Sequence[Link]) -> dict[str, Point]:
    """The position of each node."""
    beside: dict[str, list[str]] = {}
    for link in links:
        beside.setdefault(link.tail, []).append(link.head)
        beside.setdefault(link.head, []).append(link.tail)
    columns: dict[str, int] = {}
    for start in beside:
        # A node without a connection to the rest starts a new search.
        found = [] if start in columns else [start]
        columns.setdefault(start, 0)
        for node in found:
            new = [other for other in beside[node] if other not in columns]
            columns.update(dict.fromkeys(new, columns[node] + 1))
            found += dict.fromkeys(new)
    filled: dict[int, int] = {}
    places = {}
    for node, column in columns.items():
        row = filled[column] = filled.get(column, -1) + 1
        places[node] = (MARGIN + column * COLUMN, MARGIN + row * ROW)
    return places


def _arrow(link: Link, tail: Point, head: Point, nth: int) -> dict[str, str]:
    """An arrow from node to node, bent to its right; the `nth` between the same nodes bends
    further."""
    (x0, y0), (x1, y1) = tail, head
    length = max(((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5, 1.0)
    along = ((x1 - x0) / length, (y1 - y0) / length)
    right = (-along[1], along[0])
    bend = BEND * nth
    middle = ((x0 + x1) / 2 + right[0] * bend, (y0 + y1) / 2 + right[1] * bend)
    start = (x0 + along[0] * RADIUS, y0 + along[1] * RADIUS)
    end = (x1 - along[0] * RADIUS, y1 - along[1] * RADIUS)
    return {
        "path": f"M {_at(start)} Q {_at(middle)} {_at(end)}",
        "tip": _tip(middle, end),
        "x": f"{middle[0]:.1f}",
        "y": f"{middle[1] + 3:.1f}",
        "label": f"{link.name}: {_rate(link)}, {format_duration(link.delay_ns)}",
    }


def _at(point: Point) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def _tip(before: Point, end: Point) -> str:
    """The corners of an arrow's tip."""
    dx, dy = end[0] - before[0], end[1] - before[1]
    length = max((dx * dx + dy * dy) ** 0.5, 1.0)
    dx, dy = 9 * dx / length, 9 * dy / length
    corners = (
        end,
        (end[0] - dx - dy / 3, end[1] - dy + dx / 3),
        (end[0] - dx + dy / 3, end[1] - dy - dx / 3),
    )
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
