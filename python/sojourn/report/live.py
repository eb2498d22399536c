"""The sentences and tables of a page of measurements: phases, what the load adds, changes, scores,
and how certain these are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from sojourn.figures.series import number
from sojourn.live.measure import change, findings, sentences
from sojourn.live.measure.change import BeforeAfter
from sojourn.live.measure.findings import Findings, Grade, PhaseRow
from sojourn.live.measure.intervals import Interval
from sojourn.records import Run


class Page:
    """The findings of these measurements, and the changes from the first to each of the others."""

    def __init__(self, runs: Sequence[Run], labels: Sequence[str]) -> None:
        self.labels = list(labels)
        self.found = [findings.find(run) for run in runs]
        self.changes = [
            change.compare(runs[0], run, (labels[0], label))
            for run, label in zip(runs[1:], labels[1:], strict=True)
        ]

    def sentences(self) -> list[str]:
        """The verdict, as plain text."""
        if not self.changes:
            return sentences.sentences(self.found[0])
        return [sentence for one in self.changes for sentence in sentences.compared(one)]

    def numbers(self) -> str:
        """The tables, as HTML."""
        parts = [_changes(one) for one in self.changes]
        several = len(self.found) > 1
        for found, label in zip(self.found, self.labels, strict=True):
            heading = f"<h3>{escape(label)}</h3>" if several else ""
            parts.append(
                heading + _phases(found) + (_targets(found) if len(found.others) > 1 else "")
            )
            if several:
                parts.append(_paragraphs(sentences.sentences(found)))
        parts.append(_scores(self.found, self.labels))
        for found, label in zip(self.found, self.labels, strict=True):
            heading = f"How sure: {escape(label)}" if several else "How sure"
            parts.append(f"<h3>{heading}</h3>" + _paragraphs(sentences.confidence(found)))
        return "\n".join(parts)


def _paragraphs(sentences: Sequence[str]) -> str:
    return "".join(f'<p class="hint">{escape(sentence)}</p>' for sentence in sentences)


def _table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    kinds: Mapping[int, str] | None = None,
) -> str:
    """Cells are HTML. `kinds`: the class of each column that has no numbers."""
    classes = [
        f' class="{(kinds or {})[i]}"' if i in (kinds or {}) else "" for i in range(len(head))
    ]
    header = "".join(
        f'<th scope="col"{kind}>{cell}</th>' for cell, kind in zip(head, classes, strict=True)
    )

    def line(row: Sequence[str]) -> str:
        cells = "".join(
            f"<td{kind}>{cell}</td>" for cell, kind in zip(row[1:], classes[1:], strict=True)
        )
        return f'<tr><th scope="row">{row[0]}</th>{cells}</tr>'

    body = "".join(map(line, rows))
    return (
        f'<div class="scroll spaced" tabindex="0" role="region" aria-label="{escape(caption)}"><table class="numbers">'
        f"<caption>{escape(caption)}</caption><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _phases(found: Findings) -> str:
    head = [
        "Phase", "sent", "lost<small>%</small>", "min", "10 %", "median", "mean", "90 %", "max", "download<small>Mbit/s</small>",
        "upload<small>Mbit/s</small>", "added, median<small>ms, 95 % interval</small>", "added, p95<small>ms, 95 % interval</small>",
    ]  # fmt: skip
    return _table(
        f"RTT to {found.target or 'nobody'} in ms, goodput, and what the load adds to the median idle RTT", head, [_row(row) for row in found.rows]
    )  # fmt: skip


def _row(row: PhaseRow) -> list[str]:
    rtt = row.spread
    return [
        escape(row.phase) + ("" if row.complete else " (cut short)"),
        str(rtt.sent),
        number(100 * rtt.loss),
        *map(number, (rtt.min, rtt.p10, rtt.median, rtt.mean, rtt.p90, rtt.max)),
        *(number(row.mbps[direction]) for direction in ("down", "up")),
        _interval(row.induced.median) if row.induced is not None else "–",
        _interval(row.induced.p95) if row.induced is not None else "–",
    ]


def _interval(interval: Interval) -> str:
    if math.isnan(interval.low):
        return number(interval.value)
    return f'{number(interval.value)} <small class="ci">{number(interval.low)} … {number(interval.high)}</small>'


def _targets(found: Findings) -> str:
    names = [row.phase for row in found.rows]
    rows = [
        [escape(target), *(number(spreads[name].median) for name in names)]
        for target, spreads in found.others.items()
    ]
    return _table("Median RTT of every target, ms", ["Target", *map(escape, names)], rows)


def _changes(one: BeforeAfter) -> str:
    rows = [
        [
            escape(each.phase),
            f"{escape(each.what)} <small>{each.unit}</small>",
            number(each.before),
            number(each.after),
            ("+" if each.difference.value > 0 else "") + _interval(each.difference),
            escape(sentences.WORDS[each.verdict]),
        ]
        for each in one.changes
    ]
    head = [
        "Phase",
        "",
        escape(one.before),
        escape(one.after),
        "change<small>95 % interval</small>",
        "verdict",
    ]
    return _table(f"From {one.before} to {one.after}", head, rows, {1: "words", 5: "words"})


def _scores(found: Sequence[Findings], labels: Sequence[str]) -> str:
    """A row for each score of each measurement; rows of the same score are adjacent."""
    names = list(dict.fromkeys(score.name for one in found for score in one.scores))
    phases = list(
        dict.fromkeys(phase for one in found for score in one.scores for phase in score.phases)
    )
    if not names:
        return ""
    rows = []
    for name in names:
        for one, label in zip(found, labels, strict=True):
            score = next((score for score in one.scores if score.name == name), None)
            if score is not None:
                row = [
                    _grade(score.overall),
                    *(_grade(score.phases.get(phase)) for phase in phases),
                    escape(score.source),
                ]
                rows.append([escape(name), *([escape(label)] if len(labels) > 1 else []), *row])
    several = ["Run"] if len(labels) > 1 else []
    head = ["Score", *several, "overall", *map(escape, phases), "formula"]
    kinds = {**dict.fromkeys(range(1, len(head) - 1), "words"), len(head) - 1: "formula"}
    return _table("Scores, of the same samples", head, rows, kinds)


def _grade(one: Grade | None) -> str:
    if one is None:
        return ""
    shown = "" if math.isnan(one.number) else f"{number(one.number)} {one.unit}"
    return f"{escape(one.word)} <small>{escape(shown)}</small>" if one.word else escape(shown)
