"""A measurement as a Run: the tables of sessions, one seed for each repeat.

Figures, reports and comparisons read such a Run like any other. After each phase of a repeat, the
repeat's tables are replaced by longer ones. So the complete phases are a valid Run even if the
process is killed. In meta.json only a measurement has the phases of each seed and their facts
(clocks, lateness, who answered). `scenario.toml` has the settings.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from sojourn.arrays import Tables
from sojourn.facts import MeasurementFacts, SessionFacts
from sojourn.records import MEASUREMENT, Run, check_room, check_vacant, reserved
from sojourn.records.measurement import MeasurementSettings, add, create
from sojourn_live.measure.planned import LiveError

if TYPE_CHECKING:
    from sojourn_live.measure.session import SessionPlan

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
    """The Run; None: the measurement was interrupted before anything was measured."""
    why: str = ""
    """Why it ended early, a sentence; "": it ended normally."""
    interrupted: bool = False
    """Whether Ctrl-C or the progress function ended it."""


def measure(
    plan: SessionPlan,
    how: MeasurementSettings | None = None,
    reached: MeasurementProgress | None = None,
) -> MeasurementOutcome:
    """Measures `how.repeats` times. A repeat that ended early keeps its phases so far.

    Raises:
        LiveError: nothing could be measured.
    """
    from sojourn_live.measure import session

    def one(repeat: int, keep: Keeper | None) -> tuple[Tables, SessionFacts]:
        whole = session.measure(
            plan, _progress(reached, repeat), keep and (lambda part: keep(part.tables, part.facts))
        )
        return whole.tables, whole.facts

    def begin(facts: SessionFacts, how: MeasurementSettings) -> Run:
        return start(plan, facts, how)

    return repeated(how or MeasurementSettings(), REPEAT_BYTES, begin, one)


_Facts = TypeVar("_Facts", bound=MeasurementFacts)
Keeper: TypeAlias = Callable[[Tables, MeasurementFacts], None]
"""Replaces the stored data of a repeat by its data so far."""


def repeated(
    how: MeasurementSettings,
    repeat_bytes: int,
    begin: Callable[[_Facts, MeasurementSettings], Run],
    one: Callable[[int, Keeper | None], tuple[Tables, _Facts]],
) -> MeasurementOutcome:
    """Measures `how.repeats` times, and writes each repeat as it grows.

    `repeat_bytes`: disk space that a repeat may take. `begin`: creates the Run, without a seed yet.
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
            # A temporary Run ends with its process, so partial repeats need no file.
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


def _progress(
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


def began_at(facts: MeasurementFacts) -> datetime:
    """When a session began, UTC."""
    return datetime.fromtimestamp(facts["zero_ns"] / 1e9, UTC)


def _with(plan: SessionPlan, facts: SessionFacts) -> str:
    """The congestion controls of the senders in the plan's phases."""
    congestion = facts["load"]["congestion"]
    senders = {"download": [congestion["server"]], "upload": [congestion["client"]]}
    senders["both"] = senders["download"] + senders["upload"]
    used = {one for phase in plan.phases for one in senders.get(phase.kind, [])} - {""}
    return " " + " and ".join(sorted(used)) if used else ""
