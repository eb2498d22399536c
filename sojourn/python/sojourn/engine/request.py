"""What is asked for: a scenario, its seeds, where they run, and how a Run describes them; and how far
the work is."""

from __future__ import annotations

import functools
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from sojourn.engine.estimate import slower
from sojourn.engine.protocol import Engine, build_for, fingerprint
from sojourn.records import FlowInfo, LinkInfo, Meta
from sojourn.scenario import Scenario, load
from sojourn.scenario.realised import Realised

if TYPE_CHECKING:
    from distributed import Client

PACKAGES = ("sojourn", "numpy", "polars")
"""Whose versions a Run keeps: what makes its tables and reads them."""


@dataclass(frozen=True)
class Progress:
    """How far the work is."""

    finished: int
    """Seeds."""
    runs: int
    """Seeds in all."""
    fraction: float
    """Of the work: by simulated time and, the more the runs, by how many are written down."""
    failed: int = 0
    """Seeds that the engine could not finish."""
    expected_s: float | None = None
    """About how long it will take to make all; told once, before it begins."""
    stored: bool = False
    """The store may have some of them; told once, before it begins."""
    taken: int = 0
    """Of those finished: from the store."""
    there: int = 0
    """Seeds that the folder had already, beside `runs`; told once, before it begins."""
    news: tuple[str, ...] = ()
    """Sentences for whoever waits, each told once."""


@dataclass(frozen=True)
class ClusterAddress:
    """A scheduler, and the certificates to talk to it with."""

    address: str
    """"tcp://HOST:PORT", "tls://HOST:PORT", or the path of a scheduler file."""
    ca_file: str | None = None
    """Who signed the scheduler's and the workers' certificates (PEM)."""
    cert: str | None = None
    """Our own certificate (PEM)."""
    key: str | None = None
    """Its key, unless it is in the same file."""


ClusterAt: TypeAlias = "str | ClusterAddress | Client"
"""Where a cluster is."""


def loaded(scenario: Scenario | str | os.PathLike[str]) -> Scenario:
    return scenario if isinstance(scenario, Scenario) else load(Path(scenario))


def seeds_of(scenario: Scenario, asked: int | Sequence[int] | None) -> list[int]:
    if asked is None:
        return list(scenario.seeds)
    first = scenario.seeds[0]
    seeds = (
        list(range(first, first + asked)) if isinstance(asked, int) else list(dict.fromkeys(asked))
    )
    if not seeds:
        raise ValueError(f"seeds={asked!r}: at least one is needed")
    return seeds


def meta_of(engine: Engine, scenario: Scenario, seeds: Sequence[int], realised: Realised) -> Meta:
    """What is to be run, as a Run keeps it. `realised`: any seed of the scenario."""
    links = [link.name for link in realised.links]
    return Meta(
        title=scenario.title,
        label=scenario.label,
        engine=engine.name,
        version=engine.version,
        duration_ns=realised.duration_ns,
        warmup_ns=realised.warmup_ns,
        seeds_asked=tuple(seeds),
        links=tuple(
            LinkInfo(
                name=link.name,
                qdisc=link.qdisc.text,
                rate_bps=slower([step.bps for step in link.rate[:1]], link.shaper),
                delay_ns=link.delay_ns,
                sampled=link.sampled,
                shaper=link.shaper.text if link.shaper else None,
                police=link.police.text if link.police else None,
                ring=link.ring.descriptors if link.ring else None,
                bql=link.ring is not None and link.ring.bql,
            )
            for link in realised.links
        ),
        flows=tuple(
            FlowInfo(
                name=flow.name,
                kind=flow.kind,
                congestion=flow.tcp.congestion if flow.tcp else None,
                group=flow.group,
                path=tuple(links[index] for index in flow.path),
                finite=flow.finite,
            )
            for flow in realised.flows
        ),
        fingerprint=fingerprint(scenario.fingerprint(seeds), build_for(engine, realised)),
        engine_build=build_for(engine, realised),
        conditions=engine.conditions(realised),
        settings={key: _setting(value) for key, value in scenario.settings.items()},
        host=dict(_host()),
    )


def _setting(value: object) -> str | int | float:
    """A swept value as a cell of a table takes it."""
    if isinstance(value, str | int | float):
        return value
    return json.dumps(value, ensure_ascii=False)


@functools.cache
def _host() -> Mapping[str, str]:
    """What a Run keeps of where it was made. Packages are looked for on disk: once for hundreds of
    Runs."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{package: _installed(package) for package in PACKAGES},
    }


def _installed(package: str) -> str:
    """The version of an installed package. The name of its folder says it; importlib.metadata reads
    it with a parser of mail, which takes longer to import than a short run does."""
    for place in sys.path:
        for folder in Path(place).glob(f"{package}-*.dist-info"):
            return folder.name.removeprefix(f"{package}-").removesuffix(".dist-info")
    from importlib.metadata import version

    return version(package)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
