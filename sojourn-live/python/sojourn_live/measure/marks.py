"""Whether ECN and DSCP survive the path, from the facts of a measurement with `--ecn`. Pure.

Without load, each DS field was sent several times each way (crates/live, session/marking.rs). Under
load, ECN-capable probes and TCP's ECN counters show whether a queue marks. All repeats are pooled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sojourn import units
from sojourn.facts import ArrivedMarks, MeasurementFacts, SessionMarks

Fate: TypeAlias = Literal["kept", "changed", "mixed", "lost", "unknown"]
"""Outcome of a DS field. kept: all packets arrive with this field; changed: all arrive with another
one; mixed: some arrive with it; lost: none arrives, although unmarked packets do; unknown: neither
these nor unmarked packets arrive."""
WAYS = ("up", "down")
ECN_NAMES = {0b00: "Not-ECT", 0b01: "ECT(1)", 0b10: "ECT(0)", 0b11: "CE"}
ECN_FIELDS = (0b10, 0b01, 0b11)
CE = 0b11
NQB = 45
"""RFC 9956's codepoint. Scenarios have no name for it."""
LOADED = {"download": ("down",), "upload": ("up",), "both": ("down", "up")}


@dataclass(frozen=True)
class FieldOutcome:
    """A DS field that was sent in one direction, and the fields with which its packets arrived."""

    direction: str
    field: str
    """Its name: `ECT(0)`, `EF`."""
    is_ecn: bool
    """Whether only its ECN bits are set, and no DSCP."""
    sent: int
    arrived: Mapping[str, int]
    """Packets by the name of the field that they arrived with."""
    fate: Fate


@dataclass(frozen=True)
class MarkedPhase:
    """Marks in a loaded phase, in one direction of the load."""

    phase: str
    direction: str
    probes: int
    """ECN-capable probes that arrived."""
    probes_marked: int
    """The probes among them that arrived with CE."""
    streams: int
    """TCP connections whose ECN counters are known."""
    streams_ecn: int
    """The connections among them that negotiated ECN."""
    segments: int
    segments_marked: int


@dataclass(frozen=True)
class PathMarks:
    """All findings about ECN and DSCP."""

    answered: bool
    """Whether the server answered any request of this test."""
    path: tuple[FieldOutcome, ...]
    loads: tuple[MarkedPhase, ...]


def find(facts: Sequence[MeasurementFacts]) -> PathMarks | None:
    """The findings of all repeats; None: measured without `--ecn`."""
    marked = [(fact, marks) for fact in facts if (marks := _marks(fact)) is not None]
    if not marked:
        return None
    every = [each for _, each in marked]
    return PathMarks(
        any(each["answered"] for each in every), tuple(_path(every)), tuple(_loads(marked))
    )


def _marks(fact: MeasurementFacts) -> SessionMarks | None:
    return fact.get("marks") if "clock" in fact else None


def name(ds: int) -> str:
    """`ECT(0)`, `EF`, `EF with ECT(0)`, `CS0`."""
    dscp, ecn = ds >> 2, ds & 3
    if dscp == 0:
        return ECN_NAMES[ecn]
    named = units.format_dscp(dscp)
    code = "NQB" if dscp == NQB else named.upper() if isinstance(named, str) else f"DSCP {dscp}"
    return code if ecn == 0 else f"{code} with {ECN_NAMES[ecn]}"


def _counts(arrived: Iterable[ArrivedMarks]) -> Counter[int]:
    counts: Counter[int] = Counter()
    for each in arrived:
        counts[each["ds"]] += each["count"]
    return counts


def _path(marks: Sequence[SessionMarks]) -> list[FieldOutcome]:
    sent: Counter[tuple[str, int]] = Counter()
    arrived: dict[tuple[str, int], Counter[int]] = {}
    for each in marks:
        for field in each["path"]:
            key = (field["direction"], field["ds"])
            sent[key] += field["sent"]
            arrived.setdefault(key, Counter()).update(_counts(field["arrived"]))
    return [
        FieldOutcome(
            direction,
            name(ds),
            ds < 4,
            sent[direction, ds],
            {name(other): count for other, count in sorted(counts.items())},
            _fate(ds, counts, arrived.get((direction, 0), Counter())),
        )
        for (direction, ds), counts in arrived.items()
    ]


def _fate(ds: int, counts: Counter[int], unmarked: Counter[int]) -> Fate:
    total = counts.total()
    if total == 0:
        return "lost" if unmarked.total() else "unknown"
    if counts[ds] == total:
        return "kept"
    return "mixed" if counts[ds] else "changed"


def _loads(marked: Sequence[tuple[MeasurementFacts, SessionMarks]]) -> list[MarkedPhase]:
    found: dict[tuple[str, str], Counter[str]] = {}
    for fact, marks in marked:
        phases = fact["phases"]
        for load in marks["loads"]:
            phase = phases[load["phase"]]
            if load["direction"] not in LOADED.get(phase["kind"], ()):
                continue
            counts = _counts(load["arrived"])
            ce = sum(count for ds, count in counts.items() if ds & 3 == CE)
            found.setdefault((phase["name"], load["direction"]), Counter()).update(
                {"probes": counts.total(), "probes_marked": ce}
            )
        for tcp in marks["tcp"]:
            phase = phases[tcp["phase"]]
            found.setdefault((phase["name"], tcp["direction"]), Counter()).update(
                {
                    "streams": tcp["streams"],
                    "streams_ecn": tcp["ecn"],
                    "segments": tcp["delivered"],
                    "segments_marked": tcp["marked"],
                }
            )
    return [
        MarkedPhase(
            phase,
            direction,
            counts["probes"],
            counts["probes_marked"],
            counts["streams"],
            counts["streams_ecn"],
            counts["segments"],
            counts["segments_marked"],
        )
        for (phase, direction), counts in found.items()
    ]


# -------------------------------------------------------------------------------------- in words

WAY = {"up": "on the way up", "down": "on the way down"}


def sentences(marks: PathMarks) -> list[str]:
    """Whether ECN and DSCP survive, and whether a queue marks."""
    if not marks.answered:
        return [
            "Whether ECN and DSCP survive is not known: the server answered no request of this test. It is an older version, or "
            "the path drops these packets."
        ]
    ecn = [one for one in marks.path if one.is_ecn and one.field != ECN_NAMES[0]]
    dscp = [one for one in marks.path if not one.is_ecn]
    return [
        *_survives("ECN", ecn),
        *_survives("DSCP", dscp),
        *_seen(marks.loads),
    ]


def _survives(what: str, outcomes: Sequence[FieldOutcome]) -> list[str]:
    if all(one.fate == "kept" for one in outcomes):
        names = dict.fromkeys(one.field for one in outcomes)
        return [f"{what} survives both ways: {_and(list(names))} arrive as they are sent."]
    said = []
    for way in WAYS:
        here = [one for one in outcomes if one.direction == way]
        if all(one.fate == "kept" for one in here):
            said.append(f"{what} survives {WAY[way]}.")
            continue
        alike: dict[str, list[str]] = {}
        for one in here:
            if one.fate != "kept":
                alike.setdefault(_became(one), []).append(one.field)
        parts = [f"{_and(names)} {became}" for became, names in alike.items()]
        said.append(f"{WAY[way].capitalize()} {'; '.join(parts)}.")
    return said


def _became(one: FieldOutcome) -> str:
    if one.fate == "lost":
        return "never arrived, though unmarked packets did"
    if one.fate == "unknown":
        return "never arrived, and neither did unmarked packets"
    others = [name for name in one.arrived if name != one.field]
    # A packet that lost its codepoint arrives as CS0.
    shown = _or(["CS0" if not one.is_ecn and name == ECN_NAMES[0] else name for name in others])
    return f"arrived as {shown}" if one.fate == "changed" else f"arrived partly as {shown}"


def _seen(loads: Sequence[MarkedPhase]) -> list[str]:
    """A sentence on marks for each phase and direction, or one for all if no mark was seen."""
    unseen = [one for one in loads if not one.probes_marked and not one.streams_ecn]
    if len(loads) < 2 or len(unseen) < len(loads) or len({one.streams > 0 for one in loads}) > 1:
        return [_marked(one) for one in loads]
    under = _and(list(dict.fromkeys(_load(one) for one in loads)))
    probes = sum(one.probes for one in loads)
    seen = f"none of {probes} ECN-capable probes arrived with CE, and {_without_ecn(loads[0])}"
    return [f"Under {under} no queue was seen to mark: {seen}."]


def _load(one: MarkedPhase) -> str:
    return "load both ways" if one.phase.startswith("both") else one.phase


def _without_ecn(one: MarkedPhase) -> str:
    if one.streams == 0:
        return "TCP's ECN counters are not known"
    return "TCP did not use ECN (sysctl net.ipv4.tcp_ecn=1 at the sender enables it)"


def _marked(one: MarkedPhase) -> str:
    under = f"Under {_load(one)}, {WAY[one.direction]},"
    probes = f"{one.probes_marked} of {one.probes} ECN-capable probes arrived with CE"
    if one.streams_ecn == 0:
        tcp = _without_ecn(one)
    else:
        share = 100 * one.segments_marked / one.segments if one.segments else 0.0
        tcp = f"{one.segments_marked} of TCP's {one.segments} segments ({share:.2g} %) were marked"
    if one.probes_marked or one.segments_marked:
        return f"{under} a queue marks: {probes}, {tcp}."
    if one.streams_ecn:
        return f"{under} no queue marks: {probes}, {tcp}."
    return f"{under} no queue was seen to mark: {probes}, and {tcp}."


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _or(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
