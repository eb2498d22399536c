"""The tables of a measurement, as rows of values. The terminal (`cli/measurement_text`) and the
page (`measured_page`) show the same rows, each with its own headings and digits. The rows of a
comparison are `change.Change`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sojourn_live.measure.findings import Findings, Grade, counted
from sojourn_live.measure.intervals import Interval

TableCell = str | int | float | Interval | Grade | None
"""None: an empty cell. A real number that is not known is NaN."""
MeasuredRow = list[TableCell]


def phases(found: Findings) -> list[MeasuredRow]:
    """Phase, probes sent, lost in %; RTT in the order of betterspeedtest.sh: min, 10 %, median,
    mean, 90 %, max in ms; goodput down and up in Mbit/s."""
    rows: list[MeasuredRow] = []
    for row in found.rows:
        rtt = row.spread
        name = row.phase + ("" if row.complete else " (cut short)")
        spread = (rtt.min, rtt.p10, rtt.median, rtt.mean, rtt.p90, rtt.max)
        rows.append([name, rtt.sent, 100 * rtt.loss, *spread, row.mbps["down"], row.mbps["up"]])
    return rows


def added(found: Findings) -> list[MeasuredRow]:
    """A row for each of `phases`: its name, what the load adds to the idle RTT at the median and at
    the 95th percentile, ms."""
    return [
        [row.phase, row.induced.median, row.induced.p95] if row.induced else [row.phase, None, None]
        for row in found.rows
    ]


def targets(found: Findings) -> list[MeasuredRow]:
    """Target, its median RTT in each phase in ms, probes lost in all phases. Empty if there is only
    one target."""
    names = [row.phase for row in found.rows]
    return [
        [
            target,
            *(spreads[name].median for name in names),
            counted(spreads[name].lost for name in names),
        ]
        for target, spreads in (found.others.items() if len(found.others) > 1 else ())
    ]


def score_phases(found: Sequence[Findings]) -> list[str]:
    """The phases that have a grade in any score."""
    return list(
        dict.fromkeys(phase for one in found for score in one.scores for phase in score.phases)
    )


def scores(found: Sequence[Findings], labels: Sequence[str]) -> list[MeasuredRow]:
    """Score, label of its measurement, its grade overall and in each of `score_phases`, formula.
    Rows of the same score are adjacent."""
    every = [
        (score, label) for one, label in zip(found, labels, strict=True) for score in one.scores
    ]
    names = list(dict.fromkeys(score.name for score, _ in every))
    phases = score_phases(found)
    return [
        [
            *(score.name, label, score.overall),
            *(score.phases.get(phase) for phase in phases),
            score.source,
        ]
        for score, label in sorted(every, key=lambda each: names.index(each[0].name))
    ]
