"""A measurement as a Run: the tables of sessions, one seed for each repeat.

So figures, reports and comparisons read it as any other Run. A repeat is written after each of its
phases, in the place of what it was before: whatever ends the process, the phases that were complete
are a Run. Two things that only a measurement has
are in meta.json: the phases of each seed, and its facts (clocks, lateness, who answered).
`scenario.toml` has what was asked for.
"""

from __future__ import annotations

import dataclasses
import hashlib
import platform
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import numpy as np

from sojourn.arrays import Columns, Tables
from sojourn.facts import MeasurementFacts, SessionFacts, SessionFlow, SessionLink, SessionPhase
from sojourn.records import (
    MEASUREMENT,
    FlowInfo,
    LinkInfo,
    Meta,
    Phase,
    Run,
    check_room,
    check_vacant,
    names_of,
    nothing,
    reserved,
)
from sojourn.sanitize import plain, plain_values
from sojourn_live.measure.planned import LiveError

if TYPE_CHECKING:
    from sojourn_live.measure.session import SessionPlan

ENGINE = "live"
EMPTY = ("drops", "sojourn", "rtt", "transfers")
"""Tables without rows in a measurement."""
REPEAT_BYTES = 5_000_000
"""Disk space that a repeat may take. A minute of probes at 20/s and samples of 16 connections is
0.5 MB."""

MeasurementProgress = Callable[[int, int, int, str], bool]
"""Called with the repeat (from 0), the time reached and the whole time of the repeat (both ns), and
the phase. Returning False ends the measurement."""


@dataclasses.dataclass(frozen=True)
class MeasurementOutcome:
    """The result of measuring."""

    run: Run | None
    """None: it was interrupted before anything was measured."""
    why: str = ""
    """Why it ended early, a sentence; "": it did not."""
    interrupted: bool = False
    """By Ctrl-C, or by the progress function."""


@dataclasses.dataclass(frozen=True)
class MeasurementSettings:
    """What a measurement needs beside its plan."""

    repeats: int = 1
    out: Path | None = None
    """The Run's folder; None: a temporary one that lives as long as the Run."""
    force: bool = False
    """Whether to replace a Run in `out`."""
    numbered: bool = False
    """Whether the folder is the first of `out`, `out`-2, `out`-3, ... that does not exist."""
    label: str = ""
    """Distinguishes it from others in a comparison."""


def measure(
    plan: SessionPlan,
    how: MeasurementSettings | None = None,
    reached: MeasurementProgress | None = None,
) -> MeasurementOutcome:
    """Measures as often as asked. A repeat that ended early has its phases so far.

    Raises:
        LiveError: nothing could be measured.
    """
    from sojourn_live.measure import session

    def one(repeat: int, keep: Keeper | None) -> tuple[Tables, SessionFacts]:
        got = session.measure(
            plan, _told(reached, repeat), keep and (lambda some: keep(some.tables, some.facts))
        )
        return got.tables, got.facts

    def begin(facts: SessionFacts, how: MeasurementSettings) -> Run:
        return start(plan, facts, how)

    return repeated(how or MeasurementSettings(), REPEAT_BYTES, begin, one)


_Facts = TypeVar("_Facts", bound=MeasurementFacts)
Keeper: TypeAlias = Callable[[Tables, MeasurementFacts], None]
"""Writes what a repeat has so far, in the place of what it had before."""


def repeated(
    how: MeasurementSettings,
    repeat_bytes: int,
    begin: Callable[[_Facts, MeasurementSettings], Run],
    one: Callable[[int, Keeper | None], tuple[Tables, _Facts]],
) -> MeasurementOutcome:
    """Measures as often as asked, and writes each repeat as it grows.

    `repeat_bytes`: disk space that a repeat may take. `begin`: makes the Run, without a seed yet.
    `one`: measures the repeat of this number, from 0.
    """
    if how.out is None:
        return _repeated(how, begin, one)
    if not how.numbered:
        check_vacant(how.out, MEASUREMENT, force=how.force)
    check_room(how.out, repeat_bytes * how.repeats)
    with reserved(how.out, numbered=how.numbered) as folder:
        return _repeated(dataclasses.replace(how, out=folder), begin, one)


def _repeated(
    how: MeasurementSettings,
    begin: Callable[[_Facts, MeasurementSettings], Run],
    one: Callable[[int, Keeper | None], tuple[Tables, _Facts]],
) -> MeasurementOutcome:
    run: Run | None = None

    def write(seed: int, tables: Tables, facts: _Facts) -> None:
        nonlocal run
        run = begin(facts, how) if run is None else run
        add(run, seed, tables, facts)

    for repeat in range(how.repeats):
        put = partial(write, repeat + 1)
        try:
            # A temporary Run goes with its process.
            tables, facts = one(repeat, None if how.out is None else put)
        except KeyboardInterrupt:
            return MeasurementOutcome(run, interrupted=True)
        except LiveError as error:
            if run is None:
                raise
            return MeasurementOutcome(
                run, f"repeat {repeat + 1} could not be measured: {error.problem}"
            )
        interrupted = facts["outcome"] == "interrupted"
        if not interrupted or any(phase["complete"] for phase in facts["phases"]):
            put(tables, facts)
        if interrupted:
            return MeasurementOutcome(run, interrupted=True)
        if facts["outcome"] != "complete":
            return MeasurementOutcome(run, str(facts["why"]))
    return MeasurementOutcome(run)


def _told(
    reached: MeasurementProgress | None, repeat: int
) -> Callable[[int, int, str], bool] | None:
    return None if reached is None else lambda now, whole, phase: reached(repeat, now, whole, phase)


def start(plan: SessionPlan, first: SessionFacts, how: MeasurementSettings) -> Run:
    """The Run of a measurement, without a seed yet, named and described by its first session."""
    began = began_at(first)
    server = first["server"]
    asked = [
        ("host", plan.host),
        ("address", server["address"]),
        ("port", server["port"]),
        ("began", began.strftime("%Y-%m-%dT%H:%M:%SZ")),
        ("streams", plan.streams),
        ("congestion", plan.congestion or "each host's own"),
        *([("dscp", plan.dscp)] if plan.dscp else []),
        ("phases", [f"{phase.kind} {phase.duration_ns / 1e9:g} s" for phase in plan.phases]),
        ("targets", [f"{target.address} by {target.how}" for target in plan.targets]),
        ("probe_interval_ms", plan.probe_interval_ns / 1e6),
        ("repeats", how.repeats),
    ]
    title = f"Measurement of {plan.host}, {plan.streams} streams{_with(plan, first)}, {began:%Y-%m-%d %H:%M} UTC"
    asked_json = dataclasses.replace(plan, secret="").to_json()
    fingerprint = hashlib.sha256(f"{asked_json} {first['zero_ns']}".encode()).hexdigest()[:16]
    version = str(first["client"]["version"])
    return create(title, version, asked, how, fingerprint)


def create(
    title: str,
    version: str,
    asked: Iterable[tuple[str, object]],
    how: MeasurementSettings,
    fingerprint: str,
    engine: str = ENGINE,
) -> Run:
    """An empty Run of a measurement. `asked`: the content of `scenario.toml`."""
    title = plain(title)
    meta = Meta(
        title=title,
        label=plain(how.label or (how.out.name if how.out is not None else "")),
        engine=engine,
        version=plain(version),
        duration_ns=0,
        warmup_ns=0,
        seeds_asked=tuple(range(1, how.repeats + 1)),
        links=(),
        flows=(),
        fingerprint=fingerprint,
        host={
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
        },
    )
    text = _text(title, asked)
    return (
        Run.create_temporary(meta, text)
        if how.out is None
        else Run.create(how.out, meta, text, force=how.force)
    )


def began_at(facts: MeasurementFacts) -> datetime:
    """When a session began, UTC."""
    return datetime.fromtimestamp(facts["zero_ns"] / 1e9, UTC)


def _with(plan: SessionPlan, facts: SessionFacts) -> str:
    """The congestion controls of those who send in the phases that were asked for."""
    told = facts["load"]["congestion"]
    senders = {"download": [told["server"]], "upload": [told["client"]]}
    senders["both"] = senders["download"] + senders["upload"]
    used = {one for phase in plan.phases for one in senders.get(phase.kind, [])} - {""}
    return " " + " and ".join(sorted(used)) if used else ""


def _text(title: str, asked: Iterable[tuple[str, object]]) -> str:
    return "\n".join(
        [
            MEASUREMENT,
            f"title = {_toml(title)}",
            "",
            "[measurement]",
            *(f"{key} = {_toml(value)}" for key, value in asked),
            "",
        ]
    )


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return '"' + plain(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


# ------------------------------------------------------------------------------------- one repeat


def add(
    run: Run,
    seed: int,
    tables: dict[str, dict[str, np.ndarray[Any, Any]]],
    facts: MeasurementFacts,
) -> None:
    """Writes a session into the Run as this seed, in the place of what the seed was before. Its
    flows and links that no other seed has are added to the Run's."""
    # Some of the facts come from a server, or from whoever made the file that is imported.
    facts = cast(MeasurementFacts, plain_values(facts))
    others = {other: told for other, told in run.meta.facts.items() if other != str(seed)}
    known = {flow["name"] for told in others.values() for flow in told["flows"]}
    flows = _joined(
        tuple(flow for flow in run.meta.flows if flow.name in known),
        [_flow(flow) for flow in facts["flows"]],
    )
    known = {link["name"] for told in others.values() for link in told["links"]}
    links = _joined(
        tuple(link for link in run.meta.links if link.name in known),
        [_link(link) for link in facts["links"]],
    )
    own_flows = _numbers((flow.name for flow in flows), (flow["name"] for flow in facts["flows"]))
    own_links = _numbers((link.name for link in links), (link["name"] for link in facts["links"]))
    numbers = {"flow": own_flows, "probe": own_flows, "link": own_links}
    renumbered = {
        name: {
            column: numbers[column][values] if column in numbers and values.size else values
            for column, values in columns.items()
        }
        for name, columns in tables.items()
    }
    for name, column, count in (("flows", "flow", len(flows)), ("links", "link", len(links))):
        renumbered[name] = _padded(name, renumbered[name], column, count)
    run.meta = dataclasses.replace(
        run.meta,
        flows=flows,
        links=links,
        duration_ns=max(run.meta.duration_ns, int(facts["duration_ns"])),
        phases=(
            *(phase for phase in run.meta.phases if phase.seed != seed),
            *_phases(facts["phases"], seed),
        ),
        facts={**others, str(seed): facts},
    )
    run.add_seed(seed, renumbered, ())


def _flow(flow: SessionFlow) -> FlowInfo:
    return FlowInfo(
        flow["name"], flow["kind"], flow["congestion"], flow["group"], direction=flow["direction"]
    )


def _link(link: SessionLink) -> LinkInfo:
    """From the root down: "htb, bfifo" is a bfifo below a shaper. Received packets pass no queue
    that we can observe."""
    kinds = [kind.strip() for kind in link["qdisc"].split(",") if kind.strip()]
    shaper = ", ".join(kinds[:-1]) or None
    return LinkInfo(
        link["name"],
        kinds[-1] if kinds else "",
        None,
        sampled=link["direction"] == "out",
        shaper=shaper,
    )


_Named = TypeVar("_Named", FlowInfo, LinkInfo)


def _joined(known: tuple[_Named, ...], more: Iterable[_Named]) -> tuple[_Named, ...]:
    """The known ones, and those of the others that are new."""
    names = [one.name for one in known]
    return known + tuple(one for one in more if one.name not in names)


def _numbers(known: Iterable[str], names: Iterable[str]) -> np.ndarray[Any, Any]:
    """For each of a session's own numbers the Run's."""
    at = {name: i for i, name in enumerate(known)}
    return np.array([at[name] for name in names], dtype=np.int64)


def _padded(name: str, columns: Columns, key: str, count: int) -> Columns:
    """Totals with a row for each of the Run's flows or links. Nothing was counted of those that
    this session lacked."""
    missing = np.setdiff1d(np.arange(count), columns[key])
    absent = nothing(name, missing.size) | {key: missing}
    return {column: np.concatenate([columns[column], absent[column]]) for column in names_of(name)}


def _phases(told: Sequence[SessionPhase], seed: int) -> tuple[Phase, ...]:
    """The phases with unique names: the second "idle" is "idle 2"."""
    names: list[str] = []
    for phase in told:
        times = sum(name == phase["name"] or name.startswith(phase["name"] + " ") for name in names)
        names.append(phase["name"] if not times else f"{phase['name']} {times + 1}")
    return tuple(
        Phase(name, phase["kind"], phase["start_ns"], phase["end_ns"], seed, phase["complete"])
        for name, phase in zip(names, told, strict=True)
    )
