"""Compares the delay under our load with the delay at a peer: another host near us that probed the
same server at the same time. If the peer's delay rises with ours, the queue is on the shared path.
If it does not, the queue is in our own part: this host or its Wi-Fi. Pure.

Each session knows the server's clock. So the times of the peer's probes can be converted to our
clock, although the two hosts share none. The thresholds are those of `findings.places`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from sojourn.arrays import Floats
from sojourn.digits import three
from sojourn.errors import UserError
from sojourn.facts import SessionClock, SessionFacts
from sojourn.records import Run
from sojourn_live.measure import findings
from sojourn_live.measure.phases import IDLE, cut

Whose: TypeAlias = Literal["shared", "own", "none", "unknown"]
"""The place of the queue. shared: on the shared path; own: in our own part; none: there is no
queue; unknown: not known."""
FEWEST = 10
"""The least number of answered probes of the peer in a phase, for a median."""
MOST_APART_S = 120.0
"""The most that the times of day of the two hosts may differ, compared by the server's clock. A
larger difference shows that the two did not measure with the same server."""


FIRST, PEER = "the first measurement", "the peer's measurement"


@dataclass(frozen=True)
class PeerPhase:
    """A load of ours, as measured at both hosts."""

    phase: str
    our_rise_ms: float
    """The median RTT under the load less the idle median; NaN: not known."""
    peer_rise_ms: float
    peer_probes: int
    """Answered probes of the peer in this phase."""
    whose: Whose


@dataclass(frozen=True)
class PeerView:
    """All loads of a measurement, as measured at both hosts."""

    target: str
    """Our target."""
    peer_target: str
    phases: tuple[PeerPhase, ...]


@dataclass(frozen=True)
class OurTime:
    """Converts the peer's times to ours, in the first repeat of each."""

    rate: float
    """Our seconds in one second of the peer."""
    begin_s: float
    """The peer's time 0 on our clock."""

    def of(self, t_s: Floats) -> Floats:
        """Times of the peer on our clock, s."""
        return t_s * self.rate + self.begin_s


def _session(run: Run, seed: int, whose: str) -> tuple[SessionFacts, SessionClock]:
    facts = run.meta.facts.get(str(seed))
    if facts is None or "clock" not in facts or "probes" not in facts:
        raise UserError(
            f"{whose} is not a measurement with sojourn serve",
            "give a result of sojourn measure or sojourn-probe measure",
        )
    if facts["clock"]["offset_ns"] is None:
        raise UserError(
            f"{whose} has no reading of the server's clock: no UDP probe was answered",
            "measure again, with --ping udp",
        )
    return facts, facts["clock"]


def _of_server(t_s: Floats, clock: SessionClock) -> Floats:
    """Times of a session on the server's clock, s."""
    drift = (clock["drift_ppm"] or 0.0) * 1e-6
    return t_s * (1 + drift) + (clock["offset_ns"] or 0.0) / 1e9


def our_time(ours: Run, peer: Run) -> OurTime:
    """The conversion from the peer's clock to ours, by the server's clock, which both sessions
    know.

    Raises:
        UserError: one of them does not know the server's clock.
    """
    clocks = [_session(run, run.seeds[0], whose)[1] for run, whose in ((ours, FIRST), (peer, PEER))]
    (zero, second), (their_zero, their_second) = (
        _of_server(np.array([0.0, 1.0]), clock) for clock in clocks
    )
    rate = second - zero
    return OurTime(float((their_second - their_zero) / rate), float((their_zero - zero) / rate))


def watching(runs: Sequence[Run]) -> dict[int, PeerView]:
    """The views of the Runs that probed during the load of the first Run, by their positions in the
    list. Such a Run was measured without load, with the same server, at the same time."""
    found: dict[int, PeerView] = {}
    if not runs or not cut(runs[0]).loads:
        return found
    for place, run in enumerate(runs[1:], 1):
        if cut(run).loads:
            continue
        with suppress(UserError):
            found[place] = find(runs[0], run)
    return found


def _probes(run: Run, whose: str) -> tuple[str, Floats, Floats]:
    """Target, times on the server's clock in s, and RTTs in ms (NaN: lost) of all seeds."""
    whole = cut(run)
    if whole.target is None:
        raise UserError(f"{whose} has no probes", "measure again, with --ping udp")
    times, rtts = [], []
    for seed in run.seeds:
        _, clock = _session(run, seed, whose)
        table = run.table("probe", seed)
        table = table.filter(table["probe"] == whole.target)
        times.append(_of_server(table["t_ns"].to_numpy() / 1e9, clock))
        rtts.append(table["rtt_ns"].cast(float).fill_null(math.nan).to_numpy() / 1e6)
    return whole.target, np.concatenate(times), np.concatenate(rtts)


def find(ours: Run, peer: Run) -> PeerView:
    """Our loads, as both hosts measured them.

    Raises:
        UserError: the two did not measure with the same server at the same time.
    """
    whole = cut(ours)
    peer_target, times, rtts = _probes(peer, PEER)
    peer_facts, peer_clock = _session(peer, peer.seeds[0], PEER)
    spans: dict[str, list[tuple[float, float]]] = {}
    for part in whole.parts:
        facts, clock = _session(ours, part.seed, FIRST)
        _check_same(facts, clock, peer_facts, peer_clock)
        ends = np.array([part.phase.start_ns, part.phase.end_ns]) / 1e9
        begin, end = _of_server(ends, clock)
        spans.setdefault(part.phase.name, []).append((float(begin), float(end)))

    def during(phase: str) -> Floats:
        inside = np.zeros(times.size, dtype=bool)
        for begin, end in spans[phase]:
            inside |= (times >= begin) & (times < end)
        return rtts[inside & np.isfinite(rtts)]

    idle = [name for name in whole.names if whole.kind(name) == IDLE]
    base = np.concatenate([during(name) for name in idle]) if idle else np.empty(0)
    if base.size < FEWEST:
        raise UserError(
            f"the peer has {base.size} probes in our idle phases, too few to compare with",
            "start the peer's measurement before ours and end it after ours: --phase idle --idle 90s",
        )
    our_idle = whole.rtts(whole.idle)
    found = []
    for name in whole.loads:
        loaded, at_peer = whole.rtts(name), during(name)
        our_rise = _median(loaded) - _median(our_idle)
        peer_rise = _median(at_peer) - _median(base) if at_peer.size >= FEWEST else math.nan
        found.append(
            PeerPhase(name, our_rise, peer_rise, int(at_peer.size), _whose(our_rise, peer_rise))
        )
    return PeerView(whole.target or "", peer_target, tuple(found))


def _check_same(
    ours: SessionFacts, clock: SessionClock, peer: SessionFacts, peer_clock: SessionClock
) -> None:
    """Refuses measurements with different servers, which differ in the time of day at which the
    server's clock was 0."""
    zeros = [
        facts["zero_ns"] / 1e9 - (known["offset_ns"] or 0.0) / 1e9
        for facts, known in ((ours, clock), (peer, peer_clock))
    ]
    apart = abs(zeros[0] - zeros[1])
    if apart > MOST_APART_S:
        raise UserError(
            f"the two did not measure with the same server, or their times of day are {apart:.0f} s apart",
            "measure both with one server, without restarting it in between",
        )


def _median(values: Floats) -> float:
    return float(np.median(values)) if values.size else math.nan


def _whose(our_rise: float, peer_rise: float) -> Whose:
    if math.isnan(our_rise):
        return "unknown"
    if our_rise < findings.LEAST_RISE_MS:
        return "none"
    if math.isnan(peer_rise):
        return "unknown"
    return "shared" if peer_rise >= findings.RISES * our_rise else "own"


def sentences(view: PeerView) -> list[str]:
    """A sentence for each load."""
    return [_sentence(phase) for phase in view.phases]


def _sentence(phase: PeerPhase) -> str:
    load = phase.phase.replace("both", "load both ways").capitalize()
    ours = f"{load} adds {three(phase.our_rise_ms)} ms here"
    match phase.whose:
        case "none":
            return f"{load} adds hardly any delay here ({three(max(phase.our_rise_ms, 0.0))} ms): there is no queue to locate."
        case "unknown":
            return f"{load}: the place of the queue is not known, because the peer has only {phase.peer_probes} answered probes in this phase."
        case "shared":
            return f"{ours} and {three(phase.peer_rise_ms)} ms at the peer: the queue is on the shared path."
    return (
        f"{ours} and {three(max(phase.peer_rise_ms, 0.0))} ms at the peer: the queue is in our own part, this host or its way to the "
        "shared path (its Wi-Fi)."
    )


def rows(view: PeerView) -> Sequence[tuple[str, float, float, int, str]]:
    """Load, our rise and the peer's in ms, the peer's probes, and the place of the queue."""
    return [
        (phase.phase, phase.our_rise_ms, phase.peer_rise_ms, phase.peer_probes, phase.whose)
        for phase in view.phases
    ]
