"""A measurement of a responsiveness server as a Run.

crates/rpm measures and returns raw samples; `measure.responsiveness` computes the scores.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import sojourn
from sojourn import linux_only as linux_only
from sojourn.arrays import Columns, Tables
from sojourn.facts import RpmFacts
from sojourn.records import Run, nothing
from sojourn.records.measurement import EMPTY, MeasurementSettings, create
from sojourn_live import _live
from sojourn_live.measure import measurement, responsiveness, scores
from sojourn_live.measure.measurement import Keeper, MeasurementOutcome
from sojourn_live.measure.session import LiveError

S = 10**9

NO_ROWS = (*EMPTY, "queue", "links")
"""Tables without rows in such a measurement."""
REPEAT_BYTES = 10_000_000
"""Disk space that a repeat may take. 16 connections and 100 probes a second for three minutes take
2 MB."""

RpmProgress = Callable[[int, int, str, int, float], bool]
"""Called with five arguments: the time reached in ns, the phase from 0, the quantity that must
become stable ("goodput" or "responsiveness"), the phase's intervals so far, and the goodput of the
last second in bit/s. Returning False ends the measurement as Ctrl-C does."""


@dataclass(frozen=True)
class RpmParameters:
    """The draft's parameters under the draft's names."""

    mad: int = scores.MOVING_AVERAGE_DISTANCE
    """Moving average distance, intervals."""
    id_ns: int = int(scores.INTERVAL_S * S)
    """Interval duration."""
    tmp: float = scores.TRIMMED_MEAN_PERCENT / 100
    """Trimmed mean percentage, as a share."""
    sdt: float = scores.TOLERANCE
    """Standard deviation tolerance, as a share."""
    inp: int = 1
    """Connections at the start, of each direction."""
    inc: int = 1
    """Connections added at each interval."""
    mnp: int = 16
    """The most connections, of each direction."""
    mps: float = 100.0
    """The most probes a second, both kinds together."""
    ptc: float = 0.05
    """The share of the capacity that probes may take."""
    stage_intervals: int = 8
    """The most intervals to wait for stable goodput, and then for stable responsiveness. The draft
    leaves this number to the tool."""


SERIAL = (("download",), ("upload",))
"""One direction after the other, with a score for each."""
BOTH = (("download", "upload"),)
"""Both directions at once, with one score."""


@dataclass(frozen=True)
class RpmPlan:
    """The settings of a measurement of responsiveness."""

    url: str
    """A host, host:port, or the URL of a server's document (https)."""
    insecure: bool = False
    """Whether to accept any certificate."""
    ca: Path | None = None
    """A PEM file with the server's certificate or its signer's; None: this system's trusted
    certificates."""
    parameters: RpmParameters = RpmParameters()
    stages: tuple[tuple[str, ...], ...] = SERIAL
    idle_probes: int = 10
    """Foreign probes before any load."""
    seed: int = 1
    """Seed of the choice of connections for self probes."""
    patience_ns: int = 20 * S
    """A probe without an answer after this time has failed."""

    def to_json(self) -> str:
        """The JSON argument of `_live.measure_rpm`."""
        trust: object = "system" if self.ca is None else {"file": str(self.ca)}
        return json.dumps(
            {
                "url": self.url,
                "trust": "anyone" if self.insecure else trust,
                "parameters": dataclasses.asdict(self.parameters),
                "stages": self.stages,
                "idle_probes": self.idle_probes,
                "seed": self.seed,
                "patience_ns": self.patience_ns,
            }
        )

    @property
    def least_ns(self) -> int:
        """The duration if everything is stable at once."""
        return len(self.stages) * 2 * self.parameters.mad * self.parameters.id_ns

    @property
    def most_ns(self) -> int:
        """The longest duration, without the idle phase and delays of the server."""
        return len(self.stages) * 2 * self.parameters.stage_intervals * self.parameters.id_ns


def measure(
    plan: RpmPlan, how: MeasurementSettings | None = None, reached: RpmProgress | None = None
) -> MeasurementOutcome:
    """Measures `how.repeats` times. A repeat that ended early keeps its phases so far.

    Raises:
        LiveError: nothing could be measured: no such host, no responsiveness server there, or no
            trusted certificate.
    """

    def one(repeat: int, keep: Keeper | None) -> tuple[Tables, RpmFacts]:
        asked = dataclasses.replace(plan, seed=plan.seed + repeat)

        def kept(tables: Mapping[str, Columns], facts: str) -> None:
            assert keep is not None, "this callback is passed only with `keep`"
            keep(_all_tables(tables), json.loads(facts))

        try:
            tables, facts = _live.measure_rpm(asked.to_json(), reached, keep and kept)
        except _live.MeasureError as error:
            raise LiveError(*error.args) from None
        return _all_tables(tables), json.loads(facts)

    def begin(facts: RpmFacts, how: MeasurementSettings) -> Run:
        return _start(plan, facts, how)

    return measurement.repeated(how or MeasurementSettings(), REPEAT_BYTES, begin, one)


def to_dict(run: Run, parameters: RpmParameters) -> dict[str, Any]:
    """The scores of a measurement as plain values; NaN becomes None."""
    last = responsiveness.facts_of(run, run.seeds[-1])
    return {
        "title": run.meta.title,
        "draft": scores.DRAFT,
        "server": last["server"],
        "outcome": last["outcome"],
        "why": last["why"],
        "parameters": dataclasses.asdict(parameters),
        "idle_ms": {
            kind: None if math.isnan(ms) else ms for kind, ms in responsiveness.idle_ms(run).items()
        },
        "results": [result.to_dict() for result in responsiveness.results(run)],
    }


def _all_tables(tables: Mapping[str, Columns]) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    """These tables and the tables without rows."""
    empty = {name: nothing(name) for name in NO_ROWS}
    return {**empty, **{name: dict(columns) for name, columns in tables.items()}}


def _start(plan: RpmPlan, facts: RpmFacts, how: MeasurementSettings) -> Run:
    began = measurement.began_at(facts)
    server, parameters = facts["server"], plan.parameters
    asked = [
        ("url", plan.url),
        ("address", server["address"]),
        ("port", server["port"]),
        ("began", began.strftime("%Y-%m-%dT%H:%M:%SZ")),
        ("stages", [" and ".join(stage) for stage in plan.stages]),
        *((name.upper(), value) for name, value in dataclasses.asdict(parameters).items()),
        ("repeats", how.repeats),
    ]
    title = f"Responsiveness of {server['host']}, {began:%Y-%m-%d %H:%M} UTC"
    fingerprint = hashlib.sha256(f"{plan.to_json()} {facts['zero_ns']}".encode()).hexdigest()[:16]
    return create(title, sojourn.__version__, asked, how, fingerprint)
