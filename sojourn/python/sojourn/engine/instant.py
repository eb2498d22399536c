"""One instant of a Run in the form of `tc -s qdisc show` and `ss -ti`.

The engine runs the seed again up to that instant. So the counters count from the start of the run,
and the time lines end at the instant. A field is left out if the engine doesn't know it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sojourn import cleanup
from sojourn.engine.runs import run_each
from sojourn.engine.verify import engine_of, scenario_of
from sojourn.errors import UserError
from sojourn.records import FlowInfo, LinkInfo, Run
from sojourn.scenario import derived

Row = Mapping[str, Any]
LEAST_NS = 1_000_000
"""The earliest instant that can be shown: before it there is no sample."""
STATE = {
    "limit": "limit",
    "count": "count",
    "probability": "prob",
    "average": "avg",
    "flows": "flows",
    "ring_packets": "ring",
    "bql_limit_bytes": "bql_limit",
}
"""The words for the columns of the table `queue` that only some disciplines have."""


@dataclass(frozen=True)
class Instant:
    """The state of one seed at one instant."""

    at_ns: int
    seed: int
    links: Mapping[str, tuple[LinkInfo, Row, Row | None]]
    """By name: the link, its row of `links`, and its last row of `queue` (None: it has no time line)."""
    parameters: Mapping[str, tuple[str, tuple[derived.Tin, ...]]]
    """By name of the link: its discipline with every parameter, and cake's tins."""
    flows: Mapping[str, tuple[FlowInfo, Row, Row | None, int | None]]
    """By name: the flow, its row of `flows`, its last row of `flow` (None: no sample yet), and TCP's
    MSS (None: not TCP)."""

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "at_ns": self.at_ns,
            "seed": self.seed,
            "links": [
                {"link": name, "qdisc": link.qdisc, "parameters": self.parameters[name][0],
                 "tins": [tin.to_dict() for tin in self.parameters[name][1]], "totals": dict(totals), "queue": None if now is None else dict(now)}
                for name, (link, totals, now) in self.links.items()
            ],
            "flows": [
                {"flow": name, "congestion": flow.congestion, "mss": mss, "totals": dict(totals), "sample": None if now is None else dict(now)}
                for name, (flow, totals, now, mss) in self.flows.items()
            ],
        }  # fmt: skip


def instant(run: Run, at_ns: int, seed: int | None = None) -> Instant:
    """Runs a seed of a Run again up to an instant. `seed`: the first by default.

    Raises:
        UserError: the Run can't be run again, the instant is not in it, or it has no such seed.
        ScenarioError: its scenario.toml is invalid.
    """
    engine = engine_of(run)
    seed = run.seeds[0] if seed is None else seed
    if seed not in run.seeds:
        raise UserError(
            f"{run.path} has no seed {seed}", f"seeds: {', '.join(map(str, run.seeds))}"
        )
    if not LEAST_NS <= at_ns <= run.meta.duration_ns:
        end = run.meta.duration_ns / 1e9
        raise UserError(
            f"the Run has no instant {at_ns / 1e9:g} s", f"it lasts from 1 ms to {end:g} s"
        )
    scenario = scenario_of(run)
    changes = {"duration": f"{at_ns} ns", "warmup": "0 s"}
    with cleanup.temporary_folder() as folder:
        [again] = run_each(
            [scenario.with_(changes, seeds=[seed])], [folder / "run"], engine=engine, fresh=True
        )
        links, queue, flows, flow = (
            again.table(name, seed).to_dicts() for name in ("links", "queue", "flows", "flow")
        )
    realised = scenario.realise(seed)
    tcp = {one.name: one.tcp for one in realised.flows}
    return Instant(
        at_ns,
        seed,
        {
            each.name: (each, _named(links, "link", each.name), _last(queue, "link", each.name))
            for each in again.meta.links
        },
        {
            link.name: (derived.parameters(link), tuple(derived.tins(link)))
            for link in realised.links
        },
        {
            each.name: (
                each,
                _named(flows, "flow", each.name),
                _last(flow, "flow", each.name),
                None if (its := tcp.get(each.name)) is None else its.mss,
            )
            for each in again.meta.flows
        },
    )


def _named(rows: list[dict[str, Any]], column: str, name: str) -> Row:
    return next((row for row in rows if row[column] == name), {})


def _last(rows: list[dict[str, Any]], column: str, name: str) -> Row | None:
    return max(
        (row for row in rows if row[column] == name), key=lambda row: row["t_ns"], default=None
    )


# ------------------------------------------------------------------------------------ as tc and ss


def as_tc(found: Instant) -> Iterator[str]:
    """The lines of `tc -s qdisc show`, for each link with a queue that is sampled."""
    for name, (_, totals, now) in found.links.items():
        if now is None:
            continue
        whole, tins = found.parameters[name]
        kind, _, parameters = whole.partition(" ")
        yield f"qdisc {kind} dev {name} root {parameters}".rstrip()
        yield " " + _words(
            (("Sent {} bytes", totals.get("sent_bytes")), ("{} pkt", totals.get("sent_packets")), ("(dropped {})", totals.get("dropped_packets")))
        )  # fmt: skip
        yield " " + _words(
            (("backlog {}b", now.get("backlog_bytes")), ("{}p", now.get("backlog_packets")))
        )
        marks = totals.get("marked_packets")
        state = [("ecn_mark {}", marks or None)] + [
            (f"{word} {{}}", now.get(column))
            for column, word in STATE.items()
            # A limit that is among the words already is not repeated.
            if column != "limit" or f"limit {_number(now.get(column))}" not in whole
        ]
        if line := _words(state):
            yield f"  {line}"
        yield from derived.tin_lines(tins)


def as_ss(found: Instant) -> Iterator[str]:
    """The lines of `ss -tin`, for each TCP flow that has sent."""
    for name, (flow, totals, now, mss) in found.flows.items():
        if mss is None or now is None or totals.get("sent_packets") == 0:
            continue
        yield f"{name}  {' > '.join(flow.path)}".rstrip()
        sent, ssthresh = now.get("cwnd_bytes"), now.get("ssthresh_bytes")
        inflight, srtt = now.get("inflight_bytes"), now.get("srtt_ns")
        base = totals.get("rtt_min_ns")
        yield "\t " + _words(
            (
                (flow.congestion or "", ""),
                ("rtt:{}", None if srtt is None else f"{srtt / 1e6:.3f}"),
                ("mss:{}", mss),
                ("cwnd:{}", None if sent is None else sent // mss),
                ("ssthresh:{}", None if ssthresh is None else ssthresh // mss),
                ("bytes_acked:{}", now.get("delivered_bytes")),
                ("segs_out:{}", totals.get("sent_packets")),
                ("unacked:{}", None if inflight is None else -(-inflight // mss)),
                ("retrans:{}", None if not now.get("retransmits") else f"0/{now['retransmits']}"),
                ("snd_wnd:{}", now.get("window_bytes")),
                ("minrtt:{}", None if base is None else f"{base / 1e6:.3f}"),
            )
        )


def _words(fields: Any) -> str:
    return " ".join(form.format(_number(value)) for form, value in fields if value is not None)


def _number(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    # -0.0 is a zero, too.
    return f"{value + 0.0:{'.0f' if value.is_integer() else '.6g'}}"
