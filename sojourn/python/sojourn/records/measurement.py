"""The Run of a measurement: an empty one, and a repeat written into it.

`scenario.toml` has the settings; meta.json has the phases and the facts of each repeat.
"""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from sojourn.arrays import Columns
from sojourn.facts import MeasurementFacts, SessionFlow, SessionLink, SessionPhase
from sojourn.meta import FlowInfo, LinkInfo, Meta, Phase
from sojourn.records.disk import MEASUREMENT
from sojourn.records.run import Run
from sojourn.records.schema import names_of, nothing
from sojourn.sanitize import plain, plain_values, toml

ENGINE = "live"
EMPTY = ("drops", "sojourn", "rtt", "transfers")
"""Tables without rows in a measurement."""


@dataclasses.dataclass(frozen=True)
class MeasurementSettings:
    """The options of a measurement in addition to its plan."""

    repeats: int = 1
    out: Path | None = None
    """The Run's folder; None: a temporary one that lives as long as the Run."""
    force: bool = False
    """Whether to replace a Run in `out`."""
    numbered: bool = False
    """Whether the folder is the first of `out`, `out`-2, `out`-3, ... that does not exist."""
    label: str = ""
    """Its name in comparisons."""


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


def _text(title: str, asked: Iterable[tuple[str, object]]) -> str:
    return "\n".join(
        [
            MEASUREMENT,
            f"title = {toml(title)}",
            "",
            "[measurement]",
            *(f"{key} = {toml(value)}" for key, value in asked),
            "",
        ]
    )


# ------------------------------------------------------------------------------------- one repeat


def add(
    run: Run,
    seed: int,
    tables: dict[str, dict[str, np.ndarray[Any, Any]]],
    facts: MeasurementFacts,
) -> None:
    """Writes a session into the Run as this seed, over the seed's former data. Its flows and links
    that no other seed has are added to the Run's."""
    # A server or an imported file may have supplied some of the facts: remove control characters.
    facts = cast(MeasurementFacts, plain_values(facts))
    others = {key: each for key, each in run.meta.facts.items() if key != str(seed)}
    known = {flow["name"] for each in others.values() for flow in each["flows"]}
    flows = _joined(
        tuple(flow for flow in run.meta.flows if flow.name in known),
        [_flow(flow) for flow in facts["flows"]],
    )
    known = {link["name"] for each in others.values() for link in each["links"]}
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
    """A link's qdiscs are listed from the root down: "htb, bfifo" is a bfifo below a shaper.
    Received packets pass no queue that we can observe."""
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
    """The known flows or links, then those of `more` with new names."""
    names = [one.name for one in known]
    return known + tuple(one for one in more if one.name not in names)


def _numbers(known: Iterable[str], names: Iterable[str]) -> np.ndarray[Any, Any]:
    """The Run's number for each of a session's numbers."""
    at = {name: i for i, name in enumerate(known)}
    return np.array([at[name] for name in names], dtype=np.int64)


def _padded(name: str, columns: Columns, key: str, count: int) -> Columns:
    """Totals with a row for each of the Run's flows or links. Counts of flows and links that this
    session lacks are null."""
    missing = np.setdiff1d(np.arange(count), columns[key])
    absent = nothing(name, missing.size) | {key: missing}
    return {column: np.concatenate([columns[column], absent[column]]) for column in names_of(name)}


def _phases(phases: Sequence[SessionPhase], seed: int) -> tuple[Phase, ...]:
    """The phases with unique names: the second "idle" is "idle 2"."""
    names: list[str] = []
    for phase in phases:
        times = sum(name == phase["name"] or name.startswith(phase["name"] + " ") for name in names)
        names.append(phase["name"] if not times else f"{phase['name']} {times + 1}")
    return tuple(
        Phase(name, phase["kind"], phase["start_ns"], phase["end_ns"], seed, phase["complete"])
        for name, phase in zip(names, phases, strict=True)
    )
