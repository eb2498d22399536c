"""The scores of a Run of responsiveness (RPM): for every stage, from its raw samples. Pure.

Such a Run has the probes foreign-tcp, foreign-tls (per round trip of the handshake), foreign-http
and self in its table `probe`. The three parts of one foreign probe have one seq. Every
load-generating connection is in `flow`. The algorithm's decisions are in the facts of each seed
under "rpm". The formulas are those of `scores`, over the probes that were answered in the last MAD
intervals.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import polars as pl

from sojourn.arrays import Floats
from sojourn.facts import RpmDecided, RpmFacts, RpmLoaded
from sojourn.records import Run, RunError
from sojourn_live.measure import scores
from sojourn_live.outputs import RpmStage

FOREIGN = ("foreign-tcp", "foreign-tls", "foreign-http")
SELF = "self"


@dataclass(frozen=True)
class RpmResult:
    """The result of one stage of one seed: a direction, or both at once. Times are in ms; NaN: not
    known."""

    seed: int
    phase: str
    """download, upload or both."""
    complete: bool
    draft: scores.Rpm
    """By draft-ietf-ippm-responsiveness-09."""
    go: scores.Rpm
    """By goresponsiveness's trimmed mean."""
    go_p90: scores.Rpm
    """By goresponsiveness's P90."""
    goodput_mbps: Mapping[str, float]
    """By direction ("download", "upload"): the moving average over the last MAD intervals."""
    goodput_confidence: str
    """The confidence in the goodput: Low, Medium or High."""
    confidence: str
    """The confidence in the responsiveness: Low, Medium or High."""
    intervals: int
    connections: int
    """Connections that carried load at the end."""
    round_trips: Mapping[str, float]
    """Trimmed mean of each kind of probe: foreign-tcp, foreign-tls, foreign-http, self."""
    samples: Mapping[str, int]
    """The number of samples in each trimmed mean, before the trimming."""
    lost: int
    """Failed probes of the whole stage."""
    unanswered: int
    """Probes under way at the end of the stage. They are not samples."""

    @property
    def verdict(self) -> str:
        """The draft's class: Poor, Fair, Good, Excellent; "" without a score."""
        return scores.rpm_class(self.draft.rpm)

    def to_dict(self) -> RpmStage:
        """Plain values; NaN becomes None."""
        return cast(RpmStage, _plain({**dataclasses.asdict(self), "class": self.verdict}))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def measured(run: Run) -> bool:
    """Whether this Run is a measurement of responsiveness."""
    return any("rpm" in facts for facts in run.meta.facts.values())


def facts_of(run: Run, seed: int) -> RpmFacts:
    """The facts of a seed.

    Raises:
        RunError: the Run is not one of responsiveness.
    """
    facts = run.meta.facts.get(str(seed))
    if facts is None or "rpm" not in facts:
        raise RunError(
            f"{run.path} is not a measurement of responsiveness",
            "make one: sojourn rpm measure",
        )
    return facts


def results(run: Run) -> list[RpmResult]:
    """The scores of every stage of every seed, from the raw samples of a Run that `measure` made.

    Raises:
        RunError: the Run is not one of responsiveness.
    """
    found = []
    for seed in run.seeds:
        facts = facts_of(run, seed)
        table = run.table("probe", seed)
        loads = [phase for phase in run.meta.phases_of(seed) if phase.kind != "idle"]
        for phase, loaded in zip(loads, facts["rpm"]["loaded"], strict=True):
            found.append(_result(table, seed, phase.name, phase.complete, loaded, facts["rpm"]))
    return found


def _result(
    table: pl.DataFrame, seed: int, phase: str, complete: bool, loaded: RpmLoaded, facts: RpmDecided
) -> RpmResult:  # fmt: skip
    times = _answered(table, loaded["window_start_ns"], loaded["window_end_ns"])
    tmp = facts["parameters"]["tmp"] * 100
    total = (
        times["foreign-tcp"]
        + times["foreign-tls"] * facts["tls_round_trips"]
        + times["foreign-http"]
    )
    here = table.filter(
        (pl.col("t_ns") >= loaded["start_ns"])
        & (pl.col("t_ns") < loaded["end_ns"])
        & pl.col("rtt_ns").is_null()
        & pl.col("probe").is_in([SELF, FOREIGN[0]])
    )
    last = loaded["intervals"][-1] if loaded["intervals"] else None
    averages = last["moving_average_bps"] if last else [math.nan] * len(loaded["directions"])
    return RpmResult(
        seed=seed,
        phase=phase,
        complete=complete,
        draft=scores.rpm_draft09(
            times["foreign-tcp"], times["foreign-tls"], times["foreign-http"], times[SELF]
        ),
        go=scores.rpm_go(total, times[SELF]),
        go_p90=scores.rpm_go_p90(total, times[SELF]),
        goodput_mbps={
            direction: bps / 1e6
            for direction, bps in zip(loaded["directions"], averages, strict=True)
        },
        goodput_confidence=loaded["goodput_confidence"].capitalize(),
        confidence=loaded["responsiveness_confidence"].capitalize(),
        intervals=len(loaded["intervals"]),
        connections=last["connections"] if last else 0,
        round_trips={kind: scores.trimmed_mean(times[kind], tmp) for kind in times},
        samples={kind: int(times[kind].size) for kind in times},
        lost=here.height,
        unanswered=loaded["unanswered"],
    )


def _answered(table: pl.DataFrame, start_ns: int, end_ns: int) -> dict[str, Floats]:
    """Round trips of the probes that were answered in this span, by kind, ms. Those of foreign
    probes are in the same order for all kinds."""
    over = table.filter(pl.col("probe").is_in([SELF, FOREIGN[-1]]) & pl.col("rtt_ns").is_not_null())
    done = pl.col("t_ns") + pl.col("rtt_ns")
    inside = over.filter((done >= start_ns) & (done <= end_ns))["seq"].to_list()
    return {kind: _ms(table, kind, pl.col("seq").is_in(inside)) for kind in (*FOREIGN, SELF)}


def idle_ms(run: Run) -> dict[str, float]:
    """Median round trips before any load, by kind of foreign probe, ms; NaN without one."""
    found: dict[str, list[Floats]] = {kind: [] for kind in FOREIGN}
    for seed in run.seeds:
        ends = [phase.end_ns for phase in run.meta.phases_of(seed) if phase.kind == "idle"]
        for kind in FOREIGN:
            found[kind].append(
                _ms(run.table("probe", seed), kind, pl.col("t_ns") < max(ends, default=0))
            )
    whole = {kind: np.concatenate(parts) for kind, parts in found.items()}
    return {kind: float(np.median(ms)) if ms.size else math.nan for kind, ms in whole.items()}


def _ms(table: pl.DataFrame, kind: str, which: pl.Expr) -> Floats:
    mine = table.filter((pl.col("probe") == kind) & which & pl.col("rtt_ns").is_not_null()).sort(
        "seq"
    )
    return np.asarray(mine["rtt_ns"].to_numpy() / 1e6)
