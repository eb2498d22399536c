"""The sentences and tables of a page of measurements: phases, what the load adds, changes, scores,
and how certain these are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from sojourn.digits import on_page
from sojourn.records import Run
from sojourn_live.measure import change, findings, peers, rows, sentences
from sojourn_live.measure.change import BeforeAfter
from sojourn_live.measure.findings import Findings, Grade
from sojourn_live.measure.intervals import Interval
from sojourn_live.measure.peers import PeerView


class Page:
    """The findings of these measurements, the changes from the first to each of the others, and what
    watched it: peers, which are not compared with it."""

    def __init__(self, runs: Sequence[Run], labels: Sequence[str]) -> None:
        watched = peers.watching(runs)
        self.clocks = {place: peers.our_time(runs[0], runs[place]) for place in watched}
        self.labels = list(labels)
        self.found = [findings.find(run) for run in runs]
        self.watched = [(labels[place], view) for place, view in watched.items()]
        self.changes = [
            change.compare(runs[0], run, (labels[0], labels[place]))
            for place, run in enumerate(runs)
            if place and place not in watched
        ]

    def sentences(self) -> list[str]:
        """The verdict, as plain text."""
        seen = [sentence for _, view in self.watched for sentence in peers.sentences(view)]
        if not self.changes:
            return sentences.sentences(self.found[0]) + seen
        return [sentence for one in self.changes for sentence in sentences.compared(one)] + seen

    def numbers(self) -> str:
        """The tables, as HTML."""
        parts = [_changes(one) for one in self.changes]
        parts += [_seen(label, view) for label, view in self.watched]
        several = len(self.found) > 1
        for found, label in zip(self.found, self.labels, strict=True):
            heading = f"<h3>{escape(label)}</h3>" if several else ""
            parts.append(heading + _phases(found) + _targets(found))
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
        f"<caption><span>{escape(caption)}</span></caption><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: rows.TableCell) -> str:
    match cell:
        case None:
            return ""
        case Interval():
            return _interval(cell)
        case Grade():
            return _grade(cell)
        case float():
            return on_page(cell)
    return escape(str(cell))


def _phases(found: Findings) -> str:
    head = [
        "Phase", "median", "added, median<small>ms, 95 % interval</small>", "added, p95<small>ms, 95 % interval</small>",
        "download<small>Mbit/s</small>", "upload<small>Mbit/s</small>", "min", "10 %", "mean", "90 %", "max", "sent",
        "lost<small>%</small>",
    ]  # fmt: skip
    whole = []
    for phase, (_, *added) in zip(rows.phases(found), rows.added(found), strict=True):
        name, sent, lost, least, low, median, mean, high, most, down, up = map(_cell, phase)
        more = ["–" if cell is None else _cell(cell) for cell in added]
        whole.append([name, median, *more, down, up, least, low, mean, high, most, sent, lost])
    about = "in ms, goodput, and what the load adds to the median idle RTT"
    table = _table(f"RTT to {found.target or 'nobody'} {about}", head, whole)
    return f'<p class="hint narrow">Tables scroll sideways.</p>{table}'


def _interval(interval: Interval) -> str:
    if math.isnan(interval.low):
        return on_page(interval.value)
    return f'{on_page(interval.value)} <small class="ci">{on_page(interval.low)} … {on_page(interval.high)}</small>'


def _targets(found: Findings) -> str:
    shown = [list(map(_cell, row)) for row in rows.targets(found)]
    head = ["Target", *(escape(row.phase) for row in found.rows), "lost"]
    return _table("Median RTT of every target, ms", head, shown) if shown else ""


def _changes(one: BeforeAfter) -> str:
    rows = [
        [
            escape(each.phase),
            f"{escape(each.what)} <small>{each.unit}</small>",
            on_page(each.before),
            on_page(each.after),
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


def _seen(label: str, view: PeerView) -> str:
    """What the load added here, and at a peer meanwhile."""
    shown = [
        [escape(load), on_page(ours), on_page(theirs), str(probes), escape(whose)]
        for load, ours, theirs, probes, whose in peers.rows(view)
    ]
    head = [
        "Load",
        "adds here<small>ms, median</small>",
        f"adds at {escape(label)}<small>ms, median</small>",
        "its probes",
        "queue",
    ]
    return _table(f"What {label} saw of our load meanwhile", head, shown, {4: "words"})


def _scores(found: Sequence[Findings], labels: Sequence[str]) -> str:
    """A row for each score of each measurement; rows of the same score are adjacent."""
    several = len(labels) > 1
    shown = [
        [_cell(cell) for at, cell in enumerate(row) if several or at != 1]
        for row in rows.scores(found, labels)
    ]
    phases = map(escape, rows.score_phases(found))
    head = ["Score", *(["Run"] if several else []), "overall", *phases, "formula"]
    kinds = {**dict.fromkeys(range(1, len(head) - 1), "words"), len(head) - 1: "formula"}
    return _table("Scores, of the same samples", head, shown, kinds) if shown else ""


def _grade(one: Grade) -> str:
    shown = "" if math.isnan(one.number) else f"{on_page(one.number)} {one.unit}"
    return f"{escape(one.word)} <small>{escape(shown)}</small>" if one.word else escape(shown)
