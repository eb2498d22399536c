"""A figure of what a search of a shaper's rate measured, beside what was predicted."""

from __future__ import annotations

from pathlib import Path

from sojourn import digits, figures
from sojourn.errors import UserError
from sojourn.figures.tuning import Tried, Tuning, tuning
from sojourn.scenario.qdisc import write_rate
from sojourn_live.shape.prediction import Point
from sojourn_live.shape.search import NO_SHAPER, RateAnswer


def drawn(one: RateAnswer, host: str, folder: Path) -> Path:
    """Draws the answer of one direction into a file there, and says which.

    Raises:
        UserError: it can't be written.
    """
    choice = one.choice.point
    predicted = sorted(one.predicted[1:], key=lambda point: point.bps)
    what = Tuning(
        f"A shaper with {one.asked.wanted.qdisc} on {one.asked.interface}, {one.asked.direction}, measured to {host}",
        f"line {digits.rate(one.round_line_bps)}, base RTT {one.line.base_rtt_ns / 1e6:.3g} ms, queue {one.line.buffer_bytes / 1e3:.3g} kB ·"
        f" {one.asked.plan.streams} streams, {one.asked.repeats} repeats in turns",
        one.asked.target_ms,
        [_tried(point, write_rate(point.bps)) for point in one.tried],
        [_tried(point, write_rate(point.bps)) for point in predicted],
        (_tried(one.unshaped, NO_SHAPER), _tried(one.predicted[0], NO_SHAPER)),
        write_rate(choice.bps) if choice else None,
    )
    file = folder / f"tune-{one.asked.direction}.svg"
    try:
        figures.save(tuning(what), file)
    except OSError as error:
        raise UserError(
            f"can't draw {file}: {error.strerror or error}", "the Runs are kept"
        ) from None
    return file


def _tried(point: Point, label: str) -> Tried:
    delay, goodput = point.added_ms, point.goodput_mbps
    return Tried(
        label, (delay.value, delay.low, delay.high), (goodput.value, goodput.low, goodput.high)
    )
