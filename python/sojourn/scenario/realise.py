"""A scenario and a seed become what an engine takes: plain integers, every link and every flow written out.

The shape is crates/sim's Scenario. What is drawn (RTTs, start times) comes from a random stream named after the flow, so that
adding a flow does not change another's luck. A flow's base RTT is what its links take and the rest split in two halves
behind the last link of each way.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sojourn.scenario.check import base_names
from sojourn.scenario.tcp import tcp_params
from sojourn.scenario.topology import Line, Routes, Way, links_of, way_of

if TYPE_CHECKING:
    from sojourn.scenario.model import Flow, Scenario

ACCESS_LIMIT = 2**32 - 1
"""Packets: an access link has a queue but never drops."""
_MS = 10**6


def realise(scenario: "Scenario", seed: int) -> dict[str, Any]:
    """The run of `scenario` with `seed`."""
    if scenario.sweep:
        raise ValueError("this scenario is a sweep: realise each of its variants()")
    if not 0 <= seed < 2**64:
        raise ValueError(f"a seed is a whole number from 0 to 2^64 - 1, not {seed}")
    shared = links_of(scenario)
    routes = Routes(shared)
    links = [_link(link.name, link.line) for link in shared]
    flows: list[dict[str, Any]] = []
    for group, (flow, base) in enumerate(zip(scenario.flows, base_names(scenario.flows), strict=True)):
        way = way_of(flow, routes, dumbbell=scenario.bottleneck is not None, probe=flow.kind == "ping")
        traffic = _traffic(flow)
        for index in range(flow.count):
            name = base if flow.count == 1 else f"{base}.{index + 1}"
            own = _way_with_access(flow, name, way, links)
            flows.append(_flow(flow, name, group, index, own, way.delay(shared), seed) | {"traffic": traffic})
    return {
        "duration_ns": scenario.duration,
        "warmup_ns": scenario.warmup,
        "seed": seed,
        "links": links,
        "flows": flows,
        "record": {
            "queue_ns": scenario.record.queue or _queue_interval(scenario.duration, len(shared)),
            "flow_ns": scenario.record.flow or _flow_interval(scenario.duration, len(flows)),
            "packets": scenario.record.packets,
        },
        # The simulator has none: it is not told of them.
        **({"offloads": True} if scenario.offloads else {}),
    }


def _link(name: str, line: Line) -> dict[str, Any]:
    return {
        "name": name,
        "rate": [{"at_ns": at, "bps": bps} for at, bps in line.steps],
        "rate_period_ns": line.period,
        "delay_ns": line.delay,
        "qdisc": line.qdisc.params,
        "framing": line.framing.params,
        "loss": line.loss.params,
        "ring": None
        if line.ring is None
        else {"descriptors": line.ring, "bql": line.bql, "coalesce_ns": line.coalesce},
        "shaper": None if line.shaper is None else line.shaper.params,
        "sampled": True,
    }


def _way_with_access(flow: "Flow", name: str, way: Way, links: list[dict[str, Any]]) -> Way:
    """The flow's way; with `access`, from the sender's own link to the network and back over it."""
    if flow.access is None:
        return way
    first = len(links)
    for link in (f"{name}/access", f"{name}/access-back"):
        links.append(
            {
                "name": link,
                "rate": [{"at_ns": 0, "bps": flow.access}],
                "rate_period_ns": None,
                "delay_ns": 0,
                "qdisc": {"kind": "pfifo", "limit": ACCESS_LIMIT},
                "framing": {"header_bytes": 0, "overhead_bytes": 0, "minimum_bytes": 0, "cells": "none"},
                "loss": {"law": "none"},
                "ring": None,
                "shaper": None,
                "sampled": False,
            }
        )
    return Way((first, *way.path), (*way.back, first + 1))


def _flow(
    flow: "Flow", name: str, group: int, index: int, way: Way, links_take: int, seed: int
) -> dict[str, Any]:
    rtt = links_take if flow.rtt is None else flow.rtt.of(index, flow.count, _luck(seed, f"{name}/rtt"))
    rest = rtt - links_take
    return {
        "name": name,
        "group": group,
        "path": list(way.path),
        "back": list(way.back),
        "path_extra_ns": rest - rest // 2,
        "back_extra_ns": rest // 2,
        "start_ns": flow.start.of(index, flow.count, _luck(seed, f"{name}/start")),
        "stop_ns": None
        if flow.stop is None
        else flow.stop.of(index, flow.count, _luck(seed, f"{name}/stop")),
        "jitter_ns": flow.jitter,
        # The byte of the IP header, of which the DSCP is the upper six bits.
        "ds": flow.dscp << 2,
    }


def _luck(seed: int, name: str) -> Callable[[], int]:
    """The first number of the stream called `name`, drawn if it is asked for."""

    def draw() -> int:
        from sojourn import _core

        return int(_core.draw(seed, name, 1)[0])

    return draw


def _traffic(flow: "Flow") -> dict[str, Any]:
    match flow.kind:
        case "bulk":
            tcp = tcp_params(flow.profile, flow.congestion, flow.ecn, flow.tcp)
            return {"kind": "bulk", "bytes": flow.size, "tcp": tcp}
        case "transfers":
            tcp = tcp_params(flow.profile, flow.congestion, flow.ecn, flow.tcp)
            return {"kind": "transfers", "bytes": flow.size.params, "pause_ns": flow.pause.params, "tcp": tcp}
        case "udp" | "onoff":
            on, off = (flow.on.params, flow.off.params) if flow.kind == "onoff" else (None, None)
            periods = {"on_ns": on, "off_ns": off}
            return {"kind": "udp", "bps": flow.rate, "packet_bytes": flow.packet, **periods, "ecn": flow.ecn}
        case "ping":
            return {"kind": "ping", "interval_ns": flow.interval, "packet_bytes": flow.packet}
        case "video":
            frames: dict[str, Any]
            if flow.frames is not None:
                rows = [list(frame) for frame in flow.frames]
                frames = {"source": "trace", "frames": rows, "period_ns": flow.repeat}
            else:
                model = {"fps": flow.fps, "gop": flow.gop, "i_ratio": flow.i_ratio, "cv": flow.cv}
                frames = {"source": "model", "bps": flow.rate, **model}
            return {"kind": "video", "frames": frames, "payload_bytes": flow.payload}


def _queue_interval(duration: int, links: int) -> int:
    """100 ms, or longer so that the table keeps to about 20 000 rows."""
    return _at_least(100 * _MS, duration * links // 20_000)


def _flow_interval(duration: int, flows: int) -> int:
    """100 ms for up to 20 flows, 1 s beyond, or longer so that the table keeps to about 200 000 rows."""
    return _at_least(100 * _MS if flows <= 20 else 1000 * _MS, duration * flows // 200_000)


def _at_least(shortest: int, needed: int) -> int:
    """The next of 1, 2, 5, 10, ... times the shortest."""
    interval, steps = shortest, (2, 5, 10)
    scale = 1
    while interval < needed:
        for step in steps:
            interval = shortest * scale * step
            if interval >= needed:
                break
        scale *= 10
    return interval
