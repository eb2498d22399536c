"""A measurement as people paste it: a line for each phase, what the load adds, where the queue is,
every score, how sure that is.

Pure: findings and comparisons in, text out.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sojourn.cli import text
from sojourn.digits import three

if TYPE_CHECKING:
    from sojourn.live.measure.change import BeforeAfter
    from sojourn.live.measure.findings import Findings

WIDTH = 100


def text_of(found: Findings) -> str:
    """The whole of it."""
    from sojourn.live.measure import sentences

    parts = [
        found.title
        if not found.label or found.label in found.title
        else f"{found.title}: {found.label}",
        _block(sentences.sentences(found)),
        f"RTT to {found.target}, ms; goodput, Mbit/s\n{_phases(found)}"
        if found.target
        else _phases(found),
        *(
            [f"What the load adds to the idle RTT\n{_added(found)}"]
            if any(row.induced for row in found.rows)
            else []
        ),
        *([f"Median RTT of every target, ms\n{_targets(found)}"] if len(found.others) > 1 else []),
        *([f"Scores, of the same samples\n{_scores(found)}"] if found.scores else []),
        f"How sure\n{_block(sentences.confidence(found), '  ')}",
    ]
    return "\n\n".join(parts)


def _phases(found: Findings) -> str:
    """In the order of betterspeedtest.sh: min, 10 %, median, mean, 90 %, max."""
    number = text.number
    header = [
        "phase",
        "sent",
        "loss %",
        "min",
        "10 %",
        "median",
        "mean",
        "90 %",
        "max",
        "down",
        "up",
    ]
    rows = []
    for row in found.rows:
        rtt = row.spread
        rows.append(
            [
                row.phase + ("" if row.complete else " (cut short)"),
                str(rtt.sent),
                number(100 * rtt.loss),
                *map(number, (rtt.min, rtt.p10, rtt.median, rtt.mean, rtt.p90, rtt.max)),
                number(row.mbps["down"]),
                number(row.mbps["up"]),
            ]
        )
    return text.table(header, rows)


def _added(found: Findings) -> str:
    from sojourn.live.measure.sentences import within

    rows = [
        [row.phase, within(row.induced.median), within(row.induced.p95)]
        for row in found.rows
        if row.induced is not None
    ]
    return text.table(["phase", "median, ms", "95th percentile, ms"], rows)


def _targets(found: Findings) -> str:
    phases = [row.phase for row in found.rows]
    rows = [
        [
            target,
            *(text.number(spreads[phase].median) for phase in phases),
            str(sum(spreads[phase].lost for phase in phases)),
        ]
        for target, spreads in found.others.items()
    ]
    return text.table(["target", *phases, "lost"], rows)


def _scores(found: Findings) -> str:
    from sojourn.live.measure.sentences import grade

    phases = list(dict.fromkeys(phase for score in found.scores for phase in score.phases))
    rows = [
        [
            score.name,
            grade(score.overall) if score.overall is not None else "",
            *(grade(score.phases[phase]) if phase in score.phases else "" for phase in phases),
            score.source,
        ]
        for score in found.scores
    ]
    header = ["score", "overall", *phases, "formula"]
    return text.table(header, rows, left=len(header))


def _block(sentences: Sequence[str], indent: str = "") -> str:
    return "\n".join(
        textwrap.fill(sentence, WIDTH, initial_indent=indent, subsequent_indent=indent)
        for sentence in sentences
    )


def too_much(added_ms: float, most_ms: float) -> str:
    """Why --fail-above fails."""
    if math.isinf(added_ms):
        return "failed: what a load adds to the idle RTT could not be measured (--fail-above)"
    return f"failed: a load adds {text.number(added_ms)} ms at the 95th percentile, more than {text.number(most_ms)} ms (--fail-above)"


# ------------------------------------------------------------------------------- before and after


def changes(found: BeforeAfter) -> str:
    """A comparison: its verdict, and a row for each quantity."""
    from sojourn.live.measure import sentences

    rows = []
    for change in found.changes:
        apart = change.difference
        interval = (
            "-"
            if math.isnan(apart.low)
            else f"{three(apart.low)} .. {three(apart.high)}"
        )
        rows.append(
            [
                change.phase,
                f"{change.what} [{change.unit}]",
                three(change.before),
                three(change.after),
                f"{'+' if apart.value > 0 else ''}{three(apart.value)}",
                interval,
                sentences.WORDS[change.verdict],
            ]
        )
    header = ["phase", "what", "before", "after", "change", "95 % interval", "verdict"]
    return "\n\n".join(
        [
            f"before: {found.before}\nafter:  {found.after}",
            _block(sentences.compared(found)),
            *([text.table(header, rows, left=2)] if rows else []),
        ]
    )
