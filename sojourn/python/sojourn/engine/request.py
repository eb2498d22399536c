"""A request: a scenario, its seeds and where they run; the Meta of its Run; the progress of the
work."""

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
from sojourn.engine.protocol import Engine, build_for, engine_for, fingerprint
from sojourn.records import FlowInfo, LinkInfo, Meta
from sojourn.scenario import Scenario, load
from sojourn.scenario.realised import Realised

if TYPE_CHECKING:
    from distributed import Client

PACKAGES = ("sojourn", "numpy", "polars")
"""Packages whose versions a Run records: they write and read its tables."""


@dataclass(frozen=True)
class Progress:
    """The progress of the work."""

    finished: int
    """Seeds that have finished."""
    runs: int
    """Seeds in all."""
    fraction: float
    """Share of the work that is done, 0 to 1: a weighted mean of two shares, of the simulated time
    and of the ended seeds. The weight of the second grows with the number of runs, up to 0.5."""
    failed: int = 0
    """Seeds that the engine could not finish."""
    expected_s: float | None = None
    """Estimate of the seconds for all seeds; only in the first report, before the work begins."""
    stored: bool = False
    """Whether the store may have some of the seeds; only in the first report."""
    taken: int = 0
    """Finished seeds that came from the store."""
    there: int = 0
    """Seeds that the folder already had, not counted in `runs`; only in the first report."""
    news: tuple[str, ...] = ()
    """Messages for the user, each reported once."""


@dataclass(frozen=True)
class ClusterAddress:
    """A scheduler's address and the certificates for the connection."""

    address: str
    """"tcp://HOST:PORT", "tls://HOST:PORT", or the path of a scheduler file."""
    ca_file: str | None = None
    """Certificate of the authority that signed the scheduler's and the workers' certificates
    (PEM)."""
    cert: str | None = None
    """Our own certificate (PEM)."""
    key: str | None = None
    """Key of our certificate, unless it is in the same file (PEM)."""


ClusterAt: TypeAlias = "str | ClusterAddress | Client"
"""A cluster: the address of its scheduler, or a client."""


def loaded(scenario: Scenario | str | os.PathLike[str]) -> Scenario:
    return scenario if isinstance(scenario, Scenario) else load(Path(scenario))


def seeds_of(scenario: Scenario, wanted: int | Sequence[int] | None) -> list[int]:
    if wanted is None:
        return list(scenario.seeds)
    first = scenario.seeds[0]
    seeds = (
        list(range(first, first + wanted))
        if isinstance(wanted, int)
        else list(dict.fromkeys(wanted))
    )
    if not seeds:
        raise ValueError(f"seeds={wanted!r}: at least one is needed")
    return seeds


def meta_of(engine: Engine, scenario: Scenario, seeds: Sequence[int], realised: Realised) -> Meta:
    """The Meta of a Run that is about to begin. `realised`: any seed of the scenario."""
    links = [link.name for link in realised.links]
    return Meta(
        title=scenario.title,
        label=scenario.label,
        engine=engine.name,
        version=engine_for(engine, realised).version,
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
    """A swept value as a cell of a table."""
    if isinstance(value, str | int | float):
        return value
    return json.dumps(value, ensure_ascii=False)


@functools.cache
def _host() -> Mapping[str, str]:
    """The host as a Run records it. Cached for hundreds of Runs, because the packages are looked up
    on disk."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        **{package: _installed(package) for package in PACKAGES},
    }


def _installed(package: str) -> str:
    """The version of an installed package, read from the name of its folder. importlib.metadata
    would import the email parser, which takes longer than a short run."""
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
