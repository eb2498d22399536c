"""A figure of the measured and predicted delay and goodput of a search for a shaper's rate."""

from __future__ import annotations

from pathlib import Path

from sojourn import digits, figures
from sojourn.errors import UserError
from sojourn.figures.tuning import Tried, Tuning, tuning
from sojourn.scenario.qdisc import write_rate
from sojourn_live.shape.prediction import Point
from sojourn_live.shape.search import NO_SHAPER, RateAnswer


def drawn(answer: RateAnswer, host: str, folder: Path) -> Path:
    """Draws the answer of one direction into a file of the folder. Returns the file.

    Raises:
        UserError: it can't be written.
    """
    asked, line, choice = answer.asked, answer.line, answer.choice.point
    predicted = sorted(answer.predicted[1:], key=lambda point: point.bps)
    what = Tuning(
        f"A shaper with {asked.wanted.qdisc} on {asked.interface}, {asked.direction}, measured to {host}",
        f"line {digits.rate(answer.round_line_bps)}, base RTT {line.base_rtt_ns / 1e6:.3g} ms, queue {line.buffer_bytes / 1e3:.3g} kB ·"
        f" {asked.plan.streams} streams, {asked.repeats} repeats in turns",
        asked.target_ms,
        [_tried(point, write_rate(point.bps)) for point in answer.tried],
        [_tried(point, write_rate(point.bps)) for point in predicted],
        (_tried(answer.unshaped, NO_SHAPER), _tried(answer.predicted[0], NO_SHAPER)),
        write_rate(choice.bps) if choice else None,
    )
    file = folder / f"tune-{asked.direction}.svg"
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
