"""Aligns the phases of several measurements on one time axis.

Between two phases the load's queue drains, which takes longer with a deep queue. So the phases of
two measurements with the same plan drift apart. Side by side, each phase begins at the same
position. Time within phases is unchanged; time between them is stretched. A peer, which watched one
of the measurements, is drawn on that measurement's clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sojourn.extras import Clock
from sojourn.figures import series
from sojourn.figures.series import Line
from sojourn.records import Run

Spans = list[tuple[str, float, float]]
"""Name, begin and end in seconds, in order."""


def common(runs: Sequence[Run]) -> Spans:
    """The phases to which all repeats of all Runs are aligned. Each phase is as long as in the
    repeat where it is longest, and so is the pause before it. Empty if the repeats don't have the
    same phases."""
    every = [series.spans(run, seed) for run in runs for seed in run.seeds]
    if not every or any(
        [name for name, _, _ in spans] != [name for name, _, _ in every[0]] for spans in every
    ):
        return []
    aligned: Spans = []
    for i, (name, _, _) in enumerate(every[0]):
        pause = max(spans[i][1] - (spans[i - 1][2] if i else 0.0) for spans in every)
        start = (aligned[-1][2] if aligned else 0.0) + pause
        aligned.append((name, start, start + max(spans[i][2] - spans[i][1] for spans in every)))
    return aligned


def aligned(line: Line, own: Spans, to: Spans) -> Line:
    """A line of a repeat with the phases `own`, moved to the common phases."""
    if not to or own == to or line.t.size == 0:
        return line
    here = [0.0, *(t for _, start, end in own for t in (start, end))]
    there = [0.0, *(t for _, start, end in to for t in (start, end))]
    after = max(float(line.t[-1]) - here[-1], 0.0) + 1.0
    return Line(np.interp(line.t, [*here, here[-1] + after], [*there, there[-1] + after]), line.y)


def watched(line: Line, time: Clock, until_s: float) -> Line:
    """A peer's line on the clock of the measurement that it watched, within that measurement's
    time."""
    t = time.of(line.t)
    inside = (t >= 0) & (t <= until_s)
    return Line(t[inside], line.y[inside])


def end_s(runs: Sequence[Run], spans: Spans) -> float:
    """The end of the common axis, seconds."""
    longest = max(run.meta.duration_ns for run in runs) / 1e9
    return max(longest, spans[-1][2]) if spans else longest
