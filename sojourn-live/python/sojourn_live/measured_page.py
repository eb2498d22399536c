"""The sentences and tables of a page of measurements: phases, what the load adds, changes, scores,
and how certain these are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from markupsafe import Markup

from sojourn import hypertext
from sojourn.digits import on_page
from sojourn.records import Run
from sojourn_live.measure import change, findings, peers, rows, sentences
from sojourn_live.measure.change import BeforeAfter
from sojourn_live.measure.findings import Findings, Grade
from sojourn_live.measure.intervals import Interval
from sojourn_live.measure.peers import PeerView


class Page:
    """The findings of these measurements, and the changes from the first to each of the others.
    Runs of peers that watched the first one are shown, but they are not compared with it."""

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
        by_peers = [sentence for _, view in self.watched for sentence in peers.sentences(view)]
        if not self.changes:
            return sentences.sentences(self.found[0]) + by_peers
        return [
            sentence for change in self.changes for sentence in sentences.compared(change)
        ] + by_peers

    def numbers(self) -> Markup:
        """The tables, as HTML."""
        measured = [
            {
                "label": label,
                "phases": _phases(found),
                "targets": _targets(found),
                "sentences": sentences.sentences(found),
                "confidence": sentences.confidence(found),
            }
            for found, label in zip(self.found, self.labels, strict=True)
        ]
        return hypertext.filled(
            "sojourn_live/measured.html",
            changes=[_changes(one) for one in self.changes],
            seen=[_seen(label, view) for label, view in self.watched],
            measurements=measured,
            several=len(self.found) > 1,
            scores=_scores(self.found, self.labels),
        )


class Cell(NamedTuple):
    """A cell of a table: a text, and a second one in small print after it."""

    text: str
    small: str = ""
    interval: bool = False
    """Whether `small` is an interval."""


@dataclass(frozen=True)
class Table:
    """Rows below a head of (name, unit); a table without rows is not shown."""

    caption: str
    head: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]
    words: Mapping[int, str] = field(default_factory=dict)
    """The CSS class of each column that has no numbers."""

    @property
    def kinds(self) -> list[str]:
        """The CSS class of each column."""
        return [self.words.get(at, "") for at in range(len(self.head))]


def _plain(*names: str) -> list[tuple[str, str]]:
    """Columns without a unit."""
    return [(name, "") for name in names]


def _cell(cell: rows.TableCell) -> Cell:
    match cell:
        case None:
            return Cell("")
        case Interval():
            return _interval(cell)
        case Grade():
            return _grade(cell)
        case float():
            return Cell(on_page(cell))
    return Cell(str(cell))


def _phases(found: Findings) -> Table:
    head = [
        *_plain("Phase", "median"), ("added, median", "ms, 95 % interval"), ("added, p95", "ms, 95 % interval"),
        ("download", "Mbit/s"), ("upload", "Mbit/s"), *_plain("min", "10 %", "mean", "90 %", "max", "sent"),
        ("lost", "%"),
    ]  # fmt: skip
    whole = []
    for phase, (_, *added) in zip(rows.phases(found), rows.added(found), strict=True):
        name, sent, lost, least, low, median, mean, high, most, down, up = map(_cell, phase)
        more = [Cell("–") if cell is None else _cell(cell) for cell in added]
        whole.append([name, median, *more, down, up, least, low, mean, high, most, sent, lost])
    about = "in ms, goodput, and what the load adds to the median idle RTT"
    return Table(f"RTT to {found.target} {about}" if found.target else "Goodput", head, whole)


def _interval(interval: Interval) -> Cell:
    if math.isnan(interval.low):
        return Cell(on_page(interval.value))
    ends = f"{on_page(interval.low)} … {on_page(interval.high)}"
    return Cell(on_page(interval.value), ends, interval=True)


def _targets(found: Findings) -> Table:
    shown = [list(map(_cell, row)) for row in rows.targets(found)]
    head = _plain("Target", *(row.phase for row in found.rows), "lost")
    return Table("Median RTT of every target, ms", head, shown)


def _changes(one: BeforeAfter) -> Table:
    shown = []
    for each in one.changes:
        change = _interval(each.difference)
        sign = "+" if each.difference.value > 0 else ""
        shown.append(
            [
                Cell(each.phase),
                Cell(each.what, each.unit),
                Cell(on_page(each.before)),
                Cell(on_page(each.after)),
                change._replace(text=sign + change.text),
                Cell(sentences.WORDS[each.verdict]),
            ]
        )
    head = [
        *_plain("Phase", "", one.before, one.after),
        ("change", "95 % interval"),
        ("verdict", ""),
    ]
    return Table(f"From {one.before} to {one.after}", head, shown, {1: "words", 5: "words"})


def _seen(label: str, view: PeerView) -> Table:
    """The delay that the load added here, and at a peer at the same time."""
    shown = [
        list(map(Cell, (load, on_page(ours), on_page(theirs), str(probes), whose)))
        for load, ours, theirs, probes, whose in peers.rows(view)
    ]
    head = [
        ("Load", ""),
        ("adds here", "ms, median"),
        (f"adds at {label}", "ms, median"),
        *_plain("its probes", "queue"),
    ]
    return Table(f"Our load as seen by {label}", head, shown, {4: "words"})


def _scores(found: Sequence[Findings], labels: Sequence[str]) -> Table:
    """A row for each score of each measurement; rows of the same score are adjacent."""
    several = len(labels) > 1
    shown = [
        [_cell(cell) for at, cell in enumerate(row) if several or at != 1]
        for row in rows.scores(found, labels)
    ]
    run = ["Run"] if several else []
    head = _plain("Score", *run, "overall", *rows.score_phases(found), "formula")
    kinds = {**dict.fromkeys(range(1, len(head) - 1), "words"), len(head) - 1: "formula"}
    return Table("Scores, of the same samples", head, shown, kinds)


def _grade(one: Grade) -> Cell:
    shown = "" if math.isnan(one.number) else f"{on_page(one.number)} {one.unit}"
    return Cell(one.word, shown) if one.word else Cell(shown)
