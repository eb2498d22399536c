"""A measurement as plain text to paste: a line for each phase, what the load adds, where the queue
is, every score, and how sure the findings are.

Pure: findings and comparisons in, text out.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sojourn.cli import text
from sojourn.digits import three

if TYPE_CHECKING:
    from sojourn_live.measure.change import BeforeAfter
    from sojourn_live.measure.findings import Findings
    from sojourn_live.measure.rows import MeasuredRow, TableCell

WIDTH = 100


def text_of(found: Findings) -> str:
    """The whole text of a measurement."""
    from sojourn_live.measure import sentences

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


def next_steps(found: Findings) -> str:
    """Two commands: one tries queue disciplines on a line of the measured rates in the simulator,
    the other sets up a shaper. "" unless both rates were measured.

    The goodput is about 95 % of the line's rate, so it is a usable rate for a shaper.
    """
    from sojourn.scenario.qdisc import write_rate
    from sojourn_live.shape.prediction import round_bps

    options = []
    for way in ("up", "down"):
        rates = [row.mbps.get(way, math.nan) for row in found.rows]
        best = max((rate for rate in rates if rate > 0), default=math.nan)
        if math.isnan(best):
            return ""
        options.append(f"--{way} {write_rate(round_bps(best * 1e6))}")
    rates_of_both = " ".join(options)
    return (
        f"to try queue disciplines on such a line: sojourn advise {rates_of_both}\n"
        f"to shape it here: sojourn shape IFACE {rates_of_both}"
    )


def _cell(cell: TableCell) -> str:
    from sojourn_live.measure import sentences
    from sojourn_live.measure.findings import Grade
    from sojourn_live.measure.intervals import Interval

    match cell:
        case None:
            return ""
        case Interval():
            return sentences.within(cell)
        case Grade():
            return sentences.grade(cell)
        case float():
            return text.number(cell)
    return str(cell)


def _table(header: Sequence[str], rows: Iterable[MeasuredRow], left: int = 1) -> str:
    return text.table(header, [list(map(_cell, row)) for row in rows], left)


def _phases(found: Findings) -> str:
    from sojourn_live.measure import rows

    spread = ("min", "10 %", "median", "mean", "90 %", "max")
    return _table(["phase", "sent", "loss %", *spread, "down", "up"], rows.phases(found))


def _added(found: Findings) -> str:
    from sojourn_live.measure import rows

    known = [row for row in rows.added(found) if row[1] is not None]
    return _table(["phase", "median, ms", "95th percentile, ms"], known)


def _targets(found: Findings) -> str:
    from sojourn_live.measure import rows

    return _table(["target", *(row.phase for row in found.rows), "lost"], rows.targets(found))


def _scores(found: Findings) -> str:
    from sojourn_live.measure import rows

    header = ["score", "overall", *rows.score_phases([found]), "formula"]
    alone = [[name, *rest] for name, _, *rest in rows.scores([found], [""])]
    return _table(header, alone, left=len(header))


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
    from sojourn_live.measure import sentences

    rows = []
    for change in found.changes:
        apart = change.difference
        interval = "-" if math.isnan(apart.low) else f"{three(apart.low)} .. {three(apart.high)}"
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
