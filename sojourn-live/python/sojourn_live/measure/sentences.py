"""Findings and comparisons in sentences, for the terminal and the page. Pure.

The first sentence alone describes the line. The others add where the queue is, how deep, and how
certain that is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sojourn.digits import three
from sojourn.facts import MeasurementFacts
from sojourn.judgement import added as judgement
from sojourn_live.measure import findings as of
from sojourn_live.measure import marks
from sojourn_live.measure.change import (
    ADDED_P95,
    RTT_P95,
    WORDS,
    BeforeAfter,
    Change,
)
from sojourn_live.measure.findings import Findings
from sojourn_live.measure.intervals import Interval
from sojourn_live.measure.phases import WHOLE

LATE_MS = 2.0
"""If requests are sent later than this, short delays are uncertain."""

NOTHING_MS = 1.0
"""A smaller added delay can't be distinguished from the time that hosts take to answer."""

WAYS = {"down": "download", "up": "upload"}

_DEEPER = {
    True: "",
    False: ", and may be deeper: TCP retransmitted nothing, so it did not overflow",
    None: ", and may be deeper: TCP's retransmissions are not known, so it is not known whether it overflowed",
}
"""End of the sentence on a queue's depth, by whether the queue overflowed."""


def within(interval: Interval) -> str:
    """`98.1 (95 % interval 90.2 to 107)`; only the number if the interval is not known."""
    if math.isnan(interval.low) or math.isnan(interval.high):
        return three(interval.value)
    return (
        f"{three(interval.value)} (95 % interval {three(interval.low)} to {three(interval.high)})"
    )


def grade(one: of.Grade) -> str:
    """`C, 84.8 ms`, `Good, 1715 RPM`."""
    shown = "" if math.isnan(one.number) else f"{three(one.number)} {one.unit}"
    return ", ".join(filter(None, (one.word, shown)))


def size(byte_count: float) -> str:
    """`126 kB` (10^3), `1.25 MB`."""
    for least, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if byte_count >= least:
            return f"{three(byte_count / least)} {unit}"
    return f"{three(byte_count)} B"


# -------------------------------------------------------------------------------- one measurement


def sentences(found: Findings) -> list[str]:
    """The verdict: what the load adds, how deep the queues are, where they are."""
    said = [_verdict(found)]
    said += [buffer(one) for one in found.buffers]
    said += places(found)
    if found.marks is not None:
        said += marks.sentences(found.marks)
    return said


def _verdict(found: Findings) -> str:
    worst = found.worst
    if worst is None or worst.induced is None:
        if not found.target:
            return "There is no verdict on delay: the measurement has no probes."
        if any(row.kind != "idle" for row in found.rows):
            return "There is no verdict: no idle phase was measured to compare with, or no probe was answered."
        return "There is no verdict: no load was measured."
    added = worst.induced.p95.value
    if added < judgement.BLOATED_MS and (
        cut := [fact for fact in found.facts if fact["outcome"] != "complete"]
    ):
        why = cut[0]["why"] or "it was interrupted"
        return (
            f"There is no verdict: the measurement was cut short ({why}). Until then no load added more than {three(max(added, 0.0))} ms to the "
            "idle RTT at the 95th percentile."
        )
    if added < NOTHING_MS:
        return f"No bufferbloat: no load adds {three(NOTHING_MS)} ms or more to the idle RTT at the 95th percentile."
    words = judgement.in_words(added)
    return (
        f"{words[0].upper()}{words[1:]}. {_load(worst.phase).capitalize()} adds {three(worst.induced.median.value)} ms to the idle RTT at the "
        f"median and {three(added)} ms at the 95th percentile."
    )


def _load(phase: str) -> str:
    """A loaded phase as the subject of a sentence: "upload", "load both ways"."""
    return phase.replace("both", "load both ways")


def buffer(one: of.Buffer) -> str:
    """How deep a direction's buffer is."""
    depth = f"{three(one.ms)} ms, {size(one.bytes)} at {three(one.mbps)} Mbit/s"
    if one.ms < of.LEAST_RISE_MS:
        return f"The {WAYS[one.direction]} has hardly any standing queue: {depth}."
    return f"The standing queue of the {WAYS[one.direction]} is {depth}{_DEEPER[one.overflowed]}."


def places(found: Findings) -> list[str]:
    """Where each load's queue is. Loads with the same place share a sentence."""
    alike: dict[tuple[str | None, str | None], list[of.Place]] = {}
    for place in found.places:
        alike.setdefault((place.after, place.nearest), []).append(place)
    said = [_places(group) for group in alike.values()]
    one_path = any("rpm" in facts or facts.get("one_host") for facts in found.facts)
    if (
        not one_path
        and found.target
        and found.rows
        and not found.places
        and any(row.kind != "idle" for row in found.rows)
    ):
        said.append(
            "The place of the queue is not known: only one target was probed, or only one answered. --ping adds targets."
        )
    return said


def _places(alike: Sequence[of.Place]) -> str:
    under = f"Under {_and([_load(place.phase) for place in alike])}"
    after, nearest = alike[0].after, alike[0].nearest
    if nearest is None:
        return f"{under} the delay rises at no target."
    longer = f"takes {_and([three(place.rises[nearest]) for place in alike])} ms longer"
    if after is None:
        return f"{under} even the nearest target, {nearest}, {longer}: the queue is in this host, in its Wi-Fi or before that target."
    before = max((place.rises[after] for place in alike), key=abs)
    return (
        f"{under} the queue is between {after} and {nearest}: {nearest} {longer}, {after} "
        f"{'at most' if len(alike) > 1 else 'only'} {three(max(before, 0.0))} ms."
    )


def confidence(found: Findings) -> list[str]:
    """How certain the verdict is: samples, lateness, clocks, how the session ended, its notes."""
    sent = sum(row.spread.sent for row in found.rows)
    lost = of.counted(row.spread.lost for row in found.rows)
    repeats = f"{found.repeats} repeat" + ("s" if found.repeats != 1 else "")
    missing = f" of {found.asked}" if found.asked > found.repeats else ""
    over = (
        "over the repeats"
        if found.by == "repeats"
        else "over blocks of time within the phases (block bootstrap)"
    )
    said = (
        [
            f"{sent} probes to {found.target} in {repeats}{missing}, "
            f"{'how many were lost is not known' if lost is None else f'{lost} lost'}; 95 % intervals are {over}."
        ]
        if found.target
        else []
    )
    said += _lost_ways(found)
    late = [fact["lateness_ns"] for fact in found.facts if "lateness_ns" in fact]
    if late:
        p99 = max(each["p99"] for each in late) / 1e6
        most = max(each["max"] for each in late) / 1e6
        warning = (
            " Short delays can't be distinguished from this host's own." if p99 > LATE_MS else ""
        )
        said.append(
            f"99 % of the probes were sent at most {three(p99)} ms late, the worst {three(most)} ms.{warning}"
        )
    said += _clocks(found.facts)
    cut_short = [row.phase for row in found.rows if not row.complete]
    if cut_short:
        said.append(f"Cut short, and not used in scores: {_and(cut_short)}.")
    return said + _notes(found.facts)


def _lost_ways(found: Findings) -> list[str]:
    """How many of the target's probes were lost in each direction, from the server's counts."""
    probes = [
        probe
        for fact in found.facts
        if "probes" in fact
        for probe in fact["probes"]
        if probe["name"] == found.target
    ]
    forward = sum(probe["lost_forward"] or 0 for probe in probes)
    backward = sum(probe["lost_backward"] or 0 for probe in probes)
    if not forward and not backward:
        return []
    return [
        f"In the whole session {forward} probes were lost on the way to the server, {backward} on the way back."
    ]


def _clocks(facts: Sequence[MeasurementFacts]) -> list[str]:
    clocks = [fact["clock"] for fact in facts if "clock" in fact and fact["clock"]["by"]]
    if not clocks:
        return []
    error = max(clock["error_ns"] or 0.0 for clock in clocks) / 1e6
    drift = max((clock["drift_ppm"] or 0.0 for clock in clocks), key=abs)
    stepped = max((clock["stepped_ns"] for clock in clocks), key=abs) / 1e6
    said = f"The server's clock is known to {three(error)} ms and drifts by {three(drift)} ppm"
    if abs(stepped) > 1:
        said += f"; this host's time of day was stepped by {three(stepped)} ms meanwhile, which does not affect the times here"
    return [f"{said}."]


def _notes(facts: Sequence[MeasurementFacts]) -> list[str]:
    notes = [note for fact in facts for note in (*fact["notes"], fact["why"]) if note]
    return [
        f"{note[0].upper()}{note[1:]}" + ("" if note.endswith(".") else ".")
        for note in dict.fromkeys(notes)
    ]


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


# ------------------------------------------------------------------------------- before and after


def compared(found: BeforeAfter) -> list[str]:
    """The verdict on a change: the delay under load, the quantities that got worse, the others that
    got better, and how certain these are."""
    head = found.headline
    if head is None and found.changes:
        return [
            f'"{found.before}" and "{found.after}" have no phase under load in common: only their idle phases are compared.'
        ]
    if head is None:
        return [
            f'"{found.before}" and "{found.after}" have no phase with probes in common, so they can\'t be compared.'
        ]
    goodputs = [change for change in found.changes if change.what.startswith("goodput")]
    others = [*_delays(found, head), *goodputs]
    worse, better = ([one for one in others if one.verdict == word] for word in ("worse", "better"))
    said = [_headline(found, head, better, worse)]
    if worse:
        said.append(f"Worse{_too(head, 'worse')}: {'; '.join(map(_described, worse))}.")
    if better:
        said.append(f"Better{_too(head, 'better')}: {'; '.join(map(_described, better))}.")
    if goodputs and all(one.verdict == "same" for one in goodputs):
        said.append("Goodput: no significant change.")
    return [*said, how(found)]


def _delays(found: BeforeAfter, head: Change) -> list[Change]:
    """The delays that changed: each phase's 95th percentile, and its median if the median alone
    changed or changed in the other direction."""
    delays = [one for one in found.changes if one.unit == "ms"]
    each = {(head.phase, head.verdict): head}
    for change in sorted(delays, key=lambda one: one.what not in (ADDED_P95, RTT_P95)):
        each.setdefault((change.phase, change.verdict), change)
    return [one for one in delays if one is not head and one is each[one.phase, one.verdict]]


def _too(head: Change, verdict: str) -> str:
    return " too" if head.verdict == verdict else ""


def _headline(
    found: BeforeAfter, change: Change, better: Sequence[Change], worse: Sequence[Change]
) -> str:
    """The change of the delay under load; `better` and `worse`: the other changes."""
    what = "delay that the load adds" if change.what.startswith("added") else "RTT"
    whole = f"the {what} ({change.phase}, 95th percentile)"
    if change.verdict == "same":
        if better or worse:
            return f"T{whole[1:]} did not change significantly: {_from_to(change)}."
        apart = change.difference
        return (
            f"No significant change: {whole} changes from {three(change.before)} to {three(change.after)} ms, "
            f"and the 95 % interval of the difference is {three(apart.low)} to {three(apart.high)} ms."
        )
    if change.verdict == "unknown":
        return f"It is not known whether the {what} changed: {three(change.before)} ms before, {three(change.after)} ms after, without an interval."
    word = "shorter" if change.verdict == "better" else "longer"
    begin = (
        "Better and worse" if worse and change.verdict == "better" else change.verdict.capitalize()
    )
    return f'{begin}: {whole} is {word} in "{found.after}" than in "{found.before}": {_from_to(change)}.'


def _described(change: Change) -> str:
    """`goodput up in upload from 1.88 to 0.224 Mbit/s (-88 %, ...)`."""
    if change.what.startswith("goodput"):
        what = change.what if change.phase == WHOLE else f"{change.what} in {change.phase}"
        return f"{what} from {_from_to(change)}"
    quantity, percentile = change.what.split(", ")
    part = "median" if percentile == "median" else "95th percentile"
    return f"{quantity} ({change.phase}, {part}) from {_from_to(change)}"


def _from_to(change: Change) -> str:
    apart = change.difference
    between = (
        f", 95 % interval {three(apart.low)} to {three(apart.high)}"
        if not math.isnan(apart.low)
        else ""
    )
    share = (
        f"{100 * change.share:+.0f} %, "
        if change.what.startswith("goodput") and not math.isnan(change.share)
        else ""
    )
    return (
        f"{three(change.before)} to {three(change.after)} {change.unit} "
        f"({share}{'+' if apart.value > 0 else ''}{three(apart.value)}{between})"
    )


def how(found: BeforeAfter) -> str:
    """The method of the intervals, and its limits."""
    counts = f"{found.repeats[0]} and {found.repeats[1]} repeats"
    if found.by == "paired":
        return f"Intervals: {counts} that took turns in time, compared in pairs."
    if found.by == "repeats":
        return f"Intervals: {counts}, one measurement after the other (Welch): the difference includes other changes in between."
    return (
        f"Intervals: block bootstrap over time within the phases ({counts}): they do not include other changes between the "
        "measurements. Three repeats each, taking turns, would show those."
    )


__all__ = [
    "WORDS",
    "buffer",
    "compared",
    "confidence",
    "how",
    "places",
    "sentences",
    "size",
    "within",
]
