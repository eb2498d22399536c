"""A Run cut into its phases: RTTs of each target and goodput of each direction, as plain arrays.
Pure, except for reading the Run.

A probe belongs to the phase in which it was sent, bytes to the phase in which they arrived. Between
two phases the load's queue drains; that time belongs to no phase. A Run without phases, such as a
simulator's, is one phase: everything after its warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from sojourn.arrays import Floats
from sojourn.records import FlowInfo, Phase, Run

IDLE = "idle"
WHOLE = "whole"
"""The kind of the only phase in a Run without phases."""
UNSAMPLED = 2.0
"""The longest time between a phase's last sample and its end, in sampling intervals, that a mean
leaves out. A longer time is counted: nothing arrived in it."""


@dataclass(frozen=True)
class Pings:
    """The probes of one target that were sent in a phase, in order."""

    t_s: Floats
    """The time at which each was sent, in seconds on the seed's clock."""
    rtt_ms: Floats
    """NaN: lost."""
    forward_ms: Floats
    """The one-way delay from here to the target. Only differences between such delays are
    accurate, because the clocks' offset is not known. NaN: not known."""
    losses_known: bool = True
    """Whether lost probes are included; if not, only answered ones are."""

    @property
    def answered(self) -> Floats:
        """The RTTs of answered probes, in order of sending, ms."""
        return self.rtt_ms[np.isfinite(self.rtt_ms)]

    @property
    def sent(self) -> int:
        """Probes sent."""
        return int(self.rtt_ms.size)

    @property
    def lost(self) -> int | None:
        """Probes without an answer; None: not known."""
        return self.sent - int(self.answered.size) if self.losses_known else None


@dataclass(frozen=True)
class Stream:
    """The samples of one TCP connection in a phase."""

    direction: str
    t_s: Floats
    mbps: Floats
    """Goodput of the interval that ends at t_s."""
    srtt_ms: Floats
    """The sender's smoothed RTT; NaN: not known."""
    cwnd_bytes: Floats
    """The sender's congestion window; NaN: not known."""
    congestion: str
    """Empty if not known."""
    retransmits: int | None
    """Segments retransmitted in this phase; None: not known."""


@dataclass(frozen=True)
class Part:
    """One phase of one seed."""

    seed: int
    phase: Phase
    pings: dict[str, Pings]
    """By target."""
    streams: tuple[Stream, ...]

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.phase.end_ns - self.phase.start_ns) / 1e9

    @property
    def loaded(self) -> bool:
        """Whether anything except probes was sent."""
        return self.phase.kind != IDLE

    def goodput(self, direction: str) -> tuple[Floats, Floats]:
        """(end of each interval in s, Mbit/s of all streams of this direction together)."""
        here = [stream for stream in self.streams if stream.direction == direction]
        if not here:
            return np.empty(0), np.empty(0)
        # Streams are sampled together, but one may have a sample more at either end.
        t = np.unique(np.concatenate([stream.t_s for stream in here]))
        total = np.zeros(t.size)
        for stream in here:
            np.add.at(total, np.searchsorted(t, stream.t_s), stream.mbps)
        return t, total

    def mbps(self, direction: str) -> float:
        """Mean goodput of this direction over the phase; NaN where nothing was sent that way."""
        t, total = self.goodput(direction)
        if t.size == 0:
            return math.nan
        took = np.diff(np.concatenate(([self.phase.start_ns / 1e9], t)))
        measured, rest = float(took.sum()), self.phase.end_ns / 1e9 - float(t[-1])
        if rest > UNSAMPLED * float(np.median(took)):
            # The next sample is overdue, so nothing arrived until the phase's end.
            measured += rest
        return float((total * took).sum()) / measured if measured > 0 else math.nan

    def srtt_ms(self, direction: str | None = None) -> Floats:
        """The smoothed RTTs of the load's connections, all samples of one direction or of both, ms,
        in order of time."""
        here = [stream for stream in self.streams if direction in (None, stream.direction)]
        if not here:
            return np.empty(0)
        t = np.concatenate([stream.t_s for stream in here])
        srtt = np.concatenate([stream.srtt_ms for stream in here])[np.argsort(t, kind="stable")]
        return np.asarray(srtt[np.isfinite(srtt)])


@dataclass(frozen=True)
class Cut:
    """A Run, cut into phases."""

    run: Run
    parts: tuple[Part, ...]
    """Seed by seed, in order of time."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the phases, in order."""
        return tuple(dict.fromkeys(part.phase.name for part in self.parts))

    @cached_property
    def targets(self) -> tuple[str, ...]:
        """The targets, in the order of the Run's flows."""
        return tuple(flow.name for flow in self.run.meta.flows if flow.kind == "ping")

    @cached_property
    def target(self) -> str | None:
        """The target of the verdict and the scores: the first requested one that answered under
        load."""
        answered = [
            name
            for name in self.targets
            if any(part.pings[name].answered.size for part in self.parts if part.loaded)
        ]
        return next(iter(answered or self.targets), None)

    def of(self, name: str) -> list[Part]:
        """This phase in every seed that finished it. If no seed finished it, the unfinished phase
        of each seed."""
        here = [part for part in self.parts if part.phase.name == name]
        return [part for part in here if part.phase.complete] or here

    def complete(self, name: str) -> bool:
        """Whether some seed finished this phase."""
        return any(part.phase.complete for part in self.parts if part.phase.name == name)

    def kind(self, name: str) -> str:
        """idle, download, upload, both; `WHOLE`."""
        return next(part.phase.kind for part in self.parts if part.phase.name == name)

    def first(self, kind: str) -> str | None:
        """The name of the first phase of this kind that some seed finished."""
        return next(
            (name for name in self.names if self.kind(name) == kind and self.complete(name)), None
        )

    @cached_property
    def idle(self) -> str | None:
        """The first idle phase, with which others are compared."""
        return self.first(IDLE)

    @cached_property
    def loads(self) -> tuple[str, ...]:
        """The phases with load, in order."""
        return tuple(name for name in self.names if self.kind(name) != IDLE)

    def rtts(self, name: str | None, target: str | None = None) -> Floats:
        """All RTTs of a phase in all seeds, ms; the default of `target` is the Run's own. Empty
        without the phase."""
        target = self.target if target is None else target
        if name is None or target is None:
            return np.empty(0)
        found = [part.pings[target].answered for part in self.of(name)]
        return np.concatenate(found) if found else np.empty(0)


def cut(run: Run) -> Cut:
    """Reads a Run's tables, phase by phase."""
    return Cut(run, tuple(part for seed in run.seeds for part in _parts(run, seed)))


def _parts(run: Run, seed: int) -> list[Part]:
    probes = _by(run.table("probe", seed), "probe")
    uncounted = run.table("flows", seed).filter(pl.col("lost_packets").is_null())["flow"].to_list()
    flows = _by(run.table("flow", seed), "flow")
    phases: Sequence[Phase] = run.meta.phases_of(seed)
    if not run.meta.phases:
        phases = (Phase(WHOLE, WHOLE, run.meta.warmup_ns, run.meta.duration_ns, seed),)
    return [
        Part(
            seed,
            phase,
            {
                flow.name: _pings(probes.get(flow.name), phase, flow.name not in uncounted)
                for flow in run.meta.flows
                if flow.kind == "ping"
            },
            tuple(
                stream
                for flow in run.meta.flows
                if flow.kind != "ping" and flow.name in flows
                for stream in _stream(flows[flow.name], flow, phase)
            ),
        )
        for phase in phases
    ]


def _by(table: pl.DataFrame, key: str) -> dict[str, pl.DataFrame]:
    return {
        str(name): part.sort("t_ns")
        for (name,), part in table.partition_by(key, as_dict=True).items()
    }


def _pings(table: pl.DataFrame | None, phase: Phase, losses_known: bool) -> Pings:
    if table is None:
        return Pings(np.empty(0), np.empty(0), np.empty(0))
    here = table.filter((pl.col("t_ns") >= phase.start_ns) & (pl.col("t_ns") < phase.end_ns))
    t_s = here["t_ns"].to_numpy() / 1e9
    return Pings(t_s, _ms(here["rtt_ns"]), _ms(here["forward_ns"]), losses_known)


def _stream(table: pl.DataFrame, flow: FlowInfo, phase: Phase) -> list[Stream]:
    """The samples of a connection in this phase; empty without samples, and in an idle phase
    without arrivals. The first interval begins with the phase."""
    t = table["t_ns"].to_numpy()
    inside = (t > phase.start_ns) & (t <= phase.end_ns)
    if not inside.any():
        return []
    delivered = table["delivered_bytes"].to_numpy()
    # The bytes that had arrived when the phase began are interpolated between two samples.
    before = float(np.interp(phase.start_ns, t, delivered, left=0))
    if phase.kind == IDLE and delivered[inside][-1] - before < 1:
        return []
    first = int(np.argmax(inside))
    if inside.sum() > 2 and t[first] - phase.start_ns < np.median(np.diff(t[inside])) / 2:
        # The interval of a sample just after the beginning is too short for a rate, so this sample
        # is merged into the next one.
        inside[first] = False
    began = max(int(t[first - 1]) if first else phase.start_ns, phase.start_ns)
    sent = table["retransmits"].to_list()
    known = [value for value, here in zip(sent, inside, strict=True) if here and value is not None]
    earlier = [value for value in sent[:first] if value is not None]
    took = np.diff(np.concatenate(([began], t[inside]))) / 1e9
    got = np.diff(np.concatenate(([before], delivered[inside])))
    with np.errstate(divide="ignore", invalid="ignore"):
        mbps = np.where(took > 0, got * 8 / took / 1e6, 0.0)
    return [
        Stream(
            flow.direction or "down",
            t[inside] / 1e9,
            mbps,
            _ms(table["srtt_ns"])[inside],
            1e6 * _ms(table["cwnd_bytes"])[inside],
            flow.congestion or "",
            known[-1] - (earlier[-1] if earlier else 0) if known else None,
        )
    ]


def _ms(column: pl.Series) -> Floats:
    return np.asarray(column.cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e6)
