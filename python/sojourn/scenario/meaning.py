"""What a scenario means, key by key: links resolved, defaults filled in, numbers as laws and not as drawn.

Two scenarios with equal meanings differ in words only, like `link_layer = "none"` written out and left out. A path is
(table, name, key, ...): ("link", "up", "rate"), ("flow", "page", "tcp", "min_rto"); of the top table (key,). `realise` says the
same to an engine, with the numbers that a seed draws.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sojourn.scenario.check import base_names
from sojourn.scenario.laws import Spread
from sojourn.scenario.topology import Line, Routes, links_of, way_of
from sojourn.units import format_duration, format_rate

if TYPE_CHECKING:
    from sojourn.scenario.model import Scenario

Path = tuple[str, ...]


def meaning(scenario: "Scenario") -> dict[Path, Any]:
    """Every setting of the links and flows by its path; None: there is none. Values are as a file would hold them."""
    found: dict[Path, Any] = {("offloads",): scenario.offloads}
    links = links_of(scenario)
    for link in links:
        found |= {("link", link.name, key): value for key, value in _line(link.line).items()}
    routes, dumbbell = Routes(links), scenario.bottleneck is not None
    for name, flow in zip(base_names(scenario.flows), scenario.flows, strict=True):
        probe = flow.kind == "ping"
        own = {
            # The name is in the path.
            **{key: value for key, value in flow.model_dump(by_alias=True).items() if key != "name"},
            "start": _law(flow.start),
            "stop": None if flow.stop is None else _law(flow.stop),
        }
        if dumbbell:
            own["direction"] = flow.direction or ("up" if probe else "down")
        # Without an RTT a flow has that of its links.
        links_take = way_of(flow, routes, dumbbell=dumbbell, probe=probe).delay(links)
        rtt = None if flow.rtt is None else _law(flow.rtt)
        own["rtt"] = None if rtt == format_duration(links_take) else rtt
        found.update(_leaves(own, ("flow", name)))
    return found


def _line(line: Line) -> dict[str, Any]:
    steps = [[format_duration(at), format_rate(bps)] for at, bps in line.steps]
    shaper = line.shaper
    return {
        "rate": "unlimited" if not steps else steps[0][1],
        "schedule": steps if len(steps) > 1 else None,
        "repeat": None if line.period is None or len(steps) < 2 else format_duration(line.period),
        "delay": format_duration(line.delay),
        "qdisc": line.qdisc.text,
        "link_layer": line.framing.text,
        "loss": line.loss.text,
        "shaper": None if shaper is None else shaper.text,
        "ring": line.ring,
        "bql": line.bql,
        "coalesce": format_duration(line.coalesce),
    }


def _law(spread: Spread) -> str | list[str]:
    """As it is written; what is the same number for every flow, however it is written, is that number."""
    same = spread.law != "every" and spread.least == max(spread.values)
    return (Spread("constant", (spread.least,)) if same else spread).document(format_duration)


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, (*path, str(key)))
    else:
        yield path, value
