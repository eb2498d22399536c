"""Responsiveness (RPM): a server for clients of draft-ietf-ippm-responsiveness, and a measurement of such servers as a Run.

All of the measuring is in crates/rpm, which brings raw samples; the scores are `sojourn.live.scores`'s, of the probes that had their
answer in the last MAD intervals. A Run of it has the probes foreign-tcp, foreign-tls (per round trip of the handshake), foreign-http and self in its
table `probe`, the three parts of one foreign probe under one seq, and every load-generating connection in `flow`; what the algorithm decided is
in the facts of each seed under "rpm". docs/live.md says how it works.
"""

from __future__ import annotations

import dataclasses
import hashlib
import ipaddress
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from sojourn import _core
from sojourn.live import measurement, scores
from sojourn.live.measurement import Outcome
from sojourn.live.session import LiveError
from sojourn.records import Run, RunError, check_room, check_vacant, nothing

if TYPE_CHECKING:
    from sojourn.live.measurement import How

PORT = 4043
"""Where responsiveness servers listen that have no web server's port."""
S = 10**9

FOREIGN = ("foreign-tcp", "foreign-tls", "foreign-http")
SELF = "self"
EMPTY = (*measurement.EMPTY, "queue", "links")
"""Tables that such a measurement has no rows of."""
REPEAT_BYTES = 10_000_000
"""What a repeat may take on disk: 16 connections and 100 probes a second for three minutes are 2 MB."""

Reached = Callable[[int, int, str, int, float], bool]
"""Called with the time reached in ns, the phase from 0, what is waited for ("goodput" or "responsiveness"), the phase's intervals so far and the
goodput of the last second in bit/s. False ends the measurement as Ctrl-C does."""


@dataclass(frozen=True)
class Parameters:
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
    """The most intervals to wait for goodput, and then for responsiveness, to be stable. The draft leaves it to the tool."""


SERIAL = (("download",), ("upload",))
"""One direction after the other: a score of each."""
BOTH = (("download", "upload"),)
"""Both at once: one score."""


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    url: str
    """A host, host:port, or the URL of a server's document (https)."""
    insecure: bool = False
    """Take any certificate."""
    ca: Path | None = None
    """A PEM file: the server's certificate, or of who signed it. None: what this system trusts."""
    parameters: Parameters = Parameters()
    stages: tuple[tuple[str, ...], ...] = SERIAL
    idle_probes: int = 10
    """Foreign probes before any load."""
    seed: int = 1
    """Chooses the connections of self probes."""
    patience_ns: int = 20 * S
    """A probe without an answer after this has none."""

    def to_json(self) -> str:
        """As `_core.measure_rpm` takes it."""
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
        """What it takes where everything is stable at once."""
        return len(self.stages) * 2 * self.parameters.mad * self.parameters.id_ns

    @property
    def most_ns(self) -> int:
        """What it takes at most, but for the idle phase and a server's slowness."""
        return len(self.stages) * 2 * self.parameters.stage_intervals * self.parameters.id_ns


# ------------------------------------------------------------------------------------------------------------ measuring


def measure(plan: Plan, how: How | None = None, reached: Reached | None = None) -> Outcome:
    """Measures as often as asked, and keeps each repeat as soon as it is over; of one that ended early what there is.

    Raises:
        LiveError: nothing could be measured: no such host, no responsiveness server there, or none to be trusted.
    """
    how = how or measurement.How()
    if how.out is not None:
        check_vacant(how.out, force=how.force)
        check_room(how.out, REPEAT_BYTES * how.repeats)
    run: Run | None = None
    for repeat in range(how.repeats):
        asked = dataclasses.replace(plan, seed=plan.seed + repeat)
        try:
            tables, told = _core.measure_rpm(asked.to_json(), reached)
        except KeyboardInterrupt:
            return Outcome(run, interrupted=True)
        except _core.MeasureError as error:
            if run is None:
                raise LiveError(*error.args) from None
            return Outcome(run, f"repeat {repeat + 1} could not be measured: {error.args[0]}")
        facts = json.loads(told)
        interrupted = facts["outcome"] == "interrupted"
        if not interrupted or any(phase["complete"] for phase in facts["phases"]):
            run = _start(plan, facts, how) if run is None else run
            measurement.add(run, repeat + 1, _whole(tables), facts)
        if interrupted:
            return Outcome(run, interrupted=True)
        if facts["outcome"] != "complete":
            return Outcome(run, str(facts["why"]))
    return Outcome(run)


def _whole(tables: Mapping[str, _core.Columns]) -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    """With the tables that have no rows."""
    empty = {name: nothing(name) for name in EMPTY}
    return {**empty, **{name: dict(columns) for name, columns in tables.items()}}


def _start(plan: Plan, facts: Mapping[str, Any], how: How) -> Run:
    began = measurement.began_at(dict(facts))
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
    return measurement.create(title, _core.VERSION, asked, how, fingerprint)


# --------------------------------------------------------------------------------------------------------------- scores


@dataclass(frozen=True)
class Result:
    """What one stage of one seed came to: a direction, or both at once. Times in ms; NaN for what can't be said."""

    seed: int
    phase: str
    """download, upload or both."""
    complete: bool
    draft: scores.Rpm
    """By draft-ietf-ippm-responsiveness-09."""
    go: scores.Rpm
    """As goresponsiveness's trimmed mean."""
    go_p90: scores.Rpm
    """As goresponsiveness's P90."""
    goodput_mbps: Mapping[str, float]
    """By direction ("download", "upload"): the moving average over the last MAD intervals."""
    goodput_confidence: str
    """Low, Medium or High."""
    confidence: str
    """The responsiveness's."""
    intervals: int
    connections: int
    """That carried load in the end."""
    round_trips: Mapping[str, float]
    """TM of each kind of probe: foreign-tcp, foreign-tls, foreign-http, self."""
    samples: Mapping[str, int]
    """How many each TM is of, before the trimming."""
    lost: int
    """Probes of the whole stage that failed."""
    unanswered: int
    """Probes under way at its end: they are no samples."""

    @property
    def verdict(self) -> str:
        """The draft's class: Poor, Fair, Good, Excellent; "" without a score."""
        return scores.rpm_class(self.draft.rpm)

    def to_dict(self) -> dict[str, Any]:
        """As plain values; NaN becomes None."""
        plain: dict[str, Any] = _plain({**dataclasses.asdict(self), "class": self.verdict})
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value


def measured(run: Run) -> bool:
    """Whether this Run is a measurement of responsiveness."""
    return any("rpm" in facts for facts in run.meta.facts.values())


def results(run: Run) -> list[Result]:
    """The scores of every stage of every seed, from the raw samples of a Run that `measure` made.

    Raises:
        RunError: the Run is not one of responsiveness.
    """
    found = []
    for seed in run.seeds:
        facts = run.meta.facts.get(str(seed), {})
        if "rpm" not in facts:
            raise RunError(
                f"{run.path} is not a measurement of responsiveness", "make one: sojourn measure --rpm"
            )
        table = run.table("probe", seed)
        loads = [phase for phase in run.meta.phases_of(seed) if phase.kind != "idle"]
        for phase, told in zip(loads, facts["rpm"]["loaded"], strict=True):
            found.append(_result(table, seed, phase.name, phase.complete, told, facts["rpm"]))
    return found


def _result(
    table: pl.DataFrame, seed: int, phase: str, complete: bool, told: Mapping[str, Any], facts: Mapping[str, Any]
) -> Result:  # fmt: skip
    times = _answered(table, told["window_start_ns"], told["window_end_ns"])
    tmp = facts["parameters"]["tmp"] * 100
    total = times["foreign-tcp"] + times["foreign-tls"] * facts["tls_round_trips"] + times["foreign-http"]
    here = table.filter(
        (pl.col("t_ns") >= told["start_ns"])
        & (pl.col("t_ns") < told["end_ns"])
        & pl.col("rtt_ns").is_null()
        & pl.col("probe").is_in([SELF, FOREIGN[0]])
    )
    last = told["intervals"][-1] if told["intervals"] else None
    averages = last["moving_average_bps"] if last else [math.nan] * len(told["directions"])
    return Result(
        seed=seed,
        phase=phase,
        complete=complete,
        draft=scores.rpm_draft09(
            times["foreign-tcp"], times["foreign-tls"], times["foreign-http"], times[SELF]
        ),
        go=scores.rpm_go(total, times[SELF]),
        go_p90=scores.rpm_go_p90(total, times[SELF]),
        goodput_mbps={
            direction: bps / 1e6 for direction, bps in zip(told["directions"], averages, strict=True)
        },
        goodput_confidence=told["goodput_confidence"].capitalize(),
        confidence=told["responsiveness_confidence"].capitalize(),
        intervals=len(told["intervals"]),
        connections=last["connections"] if last else 0,
        round_trips={kind: scores.trimmed_mean(times[kind], tmp) for kind in times},
        samples={kind: int(times[kind].size) for kind in times},
        lost=here.height,
        unanswered=told["unanswered"],
    )


def _answered(table: pl.DataFrame, start_ns: int, end_ns: int) -> dict[str, scores.Floats]:
    """Round trips of the probes that had their answer in this span, by kind, ms; the foreign ones in the same order."""
    over = table.filter(pl.col("probe").is_in([SELF, FOREIGN[-1]]) & pl.col("rtt_ns").is_not_null())
    done = pl.col("t_ns") + pl.col("rtt_ns")
    inside = over.filter((done >= start_ns) & (done <= end_ns))["seq"].to_list()
    return {kind: _ms(table, kind, pl.col("seq").is_in(inside)) for kind in (*FOREIGN, SELF)}


def idle_ms(run: Run) -> dict[str, float]:
    """Median round trips before any load, by kind of foreign probe, ms; NaN without one."""
    found: dict[str, list[scores.Floats]] = {kind: [] for kind in FOREIGN}
    for seed in run.seeds:
        ends = [phase.end_ns for phase in run.meta.phases_of(seed) if phase.kind == "idle"]
        for kind in FOREIGN:
            found[kind].append(_ms(run.table("probe", seed), kind, pl.col("t_ns") < max(ends, default=0)))
    whole = {kind: np.concatenate(parts) for kind, parts in found.items()}
    return {kind: float(np.median(ms)) if ms.size else math.nan for kind, ms in whole.items()}


def _ms(table: pl.DataFrame, kind: str, which: pl.Expr) -> scores.Floats:
    mine = table.filter((pl.col("probe") == kind) & which & pl.col("rtt_ns").is_not_null()).sort("seq")
    return np.asarray(mine["rtt_ns"].to_numpy() / 1e6)


# -------------------------------------------------------------------------------------------------------------- serving


@dataclass(frozen=True)
class Service:
    """What a server offers, and to whom."""

    at: Sequence[str] = ("127.0.0.1",)
    """Addresses to listen at. Loopback: nobody from outside."""
    port: int = PORT
    """0: any that is free."""
    names: tuple[str, ...] = ()
    """For the certificate that is made at start, beside localhost and the addresses."""
    identity: tuple[Path, Path] | None = None
    """PEM files of a certificate chain and its key, instead."""
    seconds: int = 300
    """That a connection may live."""
    bytes: int = 100 * 10**9
    """That a client may move in an hour."""
    connections: int = 256
    """That a client may have at once; all clients together four times as many."""


def server(service: Service) -> _core.RpmServer:
    """A server that answers from now until its `stop`.

    Raises:
        LiveError: it can't listen there, or its certificate can't be read.
    """
    options = {
        "at": [f"[{at}]:{service.port}" if ":" in at else f"{at}:{service.port}" for at in service.at],
        "names": list(service.names),
        "identity": service.identity and [str(file) for file in service.identity],
        "seconds": service.seconds,
        "bytes": service.bytes,
        "connections": service.connections,
    }
    for at in service.at:
        _check_address(at)
    try:
        return _core.RpmServer(json.dumps(options))
    except _core.MeasureError as error:
        raise LiveError(*error.args) from None


def _check_address(text: str) -> None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise LiveError(
            f"{text!r} is not an address to listen at", "write one of this host's, or 0.0.0.0 for all of them"
        ) from None


def url(address: str, port: int) -> str:
    """What to give a client of a server there."""
    return f"https://[{address}]:{port}" if ":" in address else f"https://{address}:{port}"


def is_loopback(address: str) -> bool:
    """Whether only this host reaches it."""
    return ipaddress.ip_address(address).is_loopback
