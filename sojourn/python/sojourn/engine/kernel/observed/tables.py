"""From the guest's archive to the tables that crates/tables declares.

links.py and flows.py compute the numbers; this file joins them. Values that can't be observed are
-1 or NaN here, and null on disk. The engine's number of events is one of them: a kernel's events
are not counted.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sojourn.arrays import Columns, Ints, Tables
from sojourn.engine.kernel.graph import has_queue
from sojourn.engine.kernel.observed.archive import NEVER, Archive
from sojourn.engine.kernel.observed.flows import observed_flow
from sojourn.engine.kernel.observed.histogram import Histogram
from sojourn.engine.kernel.observed.links import Drops, ObservedLink
from sojourn.engine.kernel.observed.samples import Window, edges_of, joined
from sojourn.records import nothing
from sojourn.scenario.realised import Realised, Requests


def tables(realised: Realised, archive: Archive) -> Tables:
    """Every table of the run in the simulator's form: numbers in place of names, -1 or NaN for a
    missing value."""
    links = [ObservedLink(number, realised, archive) for number in range(len(realised.links))]
    flows = [observed_flow(number, realised, archive) for number in range(len(realised.flows))]
    record, end = realised.record, realised.duration_ns
    base_rtts = realised.base_rtts_ns
    window = links[0].window
    queue_edges, flow_edges = edges_of(record.queue_ns, end), edges_of(record.flow_ns, end)
    lost = _lost_of_flows(links, realised, window)
    rtt = Histogram()
    for flow in flows:
        rtt.add(flow.number, flow.rtts)
    result: Tables = {
        "links": _stacked([link.totals() for link in links]),
        "flows": _stacked(
            [flow.totals(lost.get(flow.number, 0), base_rtts[flow.number]) for flow in flows]
        ),
        "sojourn": _sojourns(links, archive),
        "rtt": _with_bins(rtt.columns("flow", "samples"), archive, "rtt"),
        "probe": _appended([flow.probes() for flow in flows if flow.probe], "probe"),
        "transfers": dict(archive.tables["transfers"]),
        "queue": _by_time(
            [link.queue(queue_edges) for link in links if link.link.sampled], "queue"
        ),
        "flow": _by_time([flow.line(flow_edges) for flow in flows if not flow.probe], "flow"),
        "drops": _drops_table([(link.number, link.drops) for link in links if link.watched]),
        "engine": {
            "events": np.array([NEVER]),
            "packets": np.array([sum(flow.received() for flow in flows)]),
            "peak_entries": np.array([NEVER]),
        },
    }
    if record.packets:
        result["packets"] = _packets(links)
    if record.headers:
        result["headers"] = dict(archive.tables["headers"])
    return result


def _sojourns(links: Sequence[ObservedLink], archive: Archive) -> Columns:
    without = Histogram()
    for link in links:
        if not has_queue(link.link) and not link.policed:
            # A link without a rate has no queue: a sojourn of 0 for each packet.
            packets = int(link.totals()["sent_packets"])
            without.add(link.number, np.zeros(packets, dtype=np.int64))
    queued = np.array([link.number for link in links if link.queued], dtype=np.int64)
    return _with_bins(without.columns("link", "packets"), archive, "sojourn", queued)


def _with_bins(result: Columns, archive: Archive, name: str, owners: Ints | None = None) -> Columns:
    """A histogram's table, together with the bins that the guest's program counted for these owners
    (None: for all), by owner and bin."""
    counted = archive.tables.get(name)
    if counted is None:
        return result
    columns = list(counted.values())
    chosen = np.full(len(columns[0]), True) if owners is None else np.isin(columns[0], owners)
    both: Columns = {
        title: np.concatenate([column, extra[chosen]])
        for (title, column), extra in zip(result.items(), columns, strict=True)
    }
    owner, lower = list(both.values())[:2]
    order = np.lexsort((lower, owner))
    return {title: column[order] for title, column in both.items()}


def _lost_of_flows(
    links: Sequence[ObservedLink], realised: Realised, window: Window
) -> dict[int, int]:
    """Data packets that queues and wires dropped, by flow. A lost ACK is not a lost segment."""
    # Where data flow both ways, some packets of the source are ACKs without data. The last entry is
    # for packets of no flow, whose number is -1.
    own = [flow.traffic for flow in realised.flows]
    empty = np.array(
        [each.tcp.header_bytes if isinstance(each, Requests) else 0 for each in own] + [0]
    )
    lost: dict[int, int] = {}
    for link in links:
        if not link.watched:
            continue
        drops = link.drops
        forth = (drops.reverse == 0) & (drops.marked == 0) & window.holds(drops.times)
        forth &= drops.bytes > empty[drops.flow]
        for flow, many in zip(*np.unique(drops.flow[forth], return_counts=True), strict=True):
            lost[int(flow)] = lost.get(int(flow), 0) + int(many)
    return lost


def _drops_table(drops: Sequence[tuple[int, Drops]]) -> Columns:
    """All links' drops in order of time."""
    columns: Columns = {
        "t_ns": joined([each.times for _, each in drops]),
        "link": joined([np.full(len(each.times), link) for link, each in drops]),
        "flow": joined([each.flow for _, each in drops]),
        "cause": joined([each.cause for _, each in drops]),
        "marked": joined([each.marked for _, each in drops]),
        "bytes": joined([each.bytes for _, each in drops]),
    }
    return _ordered(columns, columns["t_ns"])


def _packets(links: Sequence[ObservedLink]) -> Columns:
    """A row for each packet that left a queue."""
    parts: list[Columns] = []
    for link in links:
        if not link.queued or link.passage is None:
            continue
        passage = link.passage
        rows = np.flatnonzero(passage.left & (passage.after <= link.end) & (passage.flow >= 0))
        parts.append(
            {
                "t_ns": passage.after[rows],
                "link": np.full(len(rows), link.number, dtype=np.int64),
                "flow": passage.flow[rows],
                "sojourn_ns": (passage.after - passage.before)[rows],
                "bytes": passage.bytes[rows],
            }
        )
    table = _appended(parts, "packets")
    return _ordered(table, table["t_ns"])


def _stacked(rows: Sequence[Mapping[str, int | float]]) -> Columns:
    """Rows as columns."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}


def _appended(parts: Sequence[Columns], name: str) -> Columns:
    """The parts of a table, one below the other."""
    return {
        column: np.concatenate([part[column] for part in parts]) if parts else none
        for column, none in nothing(name).items()
    }


def _by_time(parts: Sequence[Columns], name: str) -> Columns:
    """The parts of a table in order of time."""
    table = _appended(parts, name)
    return _ordered(table, table["t_ns"])


def _ordered(columns: Columns, times: NDArray[Any]) -> Columns:
    order = np.argsort(times, kind="stable")
    return {name: column[order] for name, column in columns.items()}
