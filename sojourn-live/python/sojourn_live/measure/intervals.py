"""95 % intervals for numbers of a measurement: over repeats, or over blocks of time within one.
Pure.

Successive RTTs are correlated, because a queue fills and drains over seconds. A hundred such RTTs
tell less than a hundred independent ones, so the usual interval would be far too narrow. There are
two methods:

    repeats   each repeat is one independent number. Their mean has Student's t interval. The
              difference of two measurements has Welch's interval. If the repeats were interleaved
              in time (A B A B), it has the interval of the paired differences, which removes a
              drift of the line. This method is used from three repeats on.
    blocks    the circular block bootstrap (Politis and Romano 1992). The samples are resampled in
              blocks of successive samples, and the statistic is computed each time. The blocks are
              so long that neighbouring ones are nearly independent. The interval is from the 2.5th
              to the 97.5th percentile of the results.

Repeats include changes from one measurement to the next (the evening's neighbours). Blocks can't.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from sojourn.arrays import Floats
from sojourn.metrics import Interval as Interval
from sojourn.metrics import over_repeats as over_repeats
from sojourn.metrics import paired as paired
from sojourn.metrics import welch as welch

Statistic = Callable[[Floats], Floats]
"""A function of samples, over the last axis."""

LEAST_REPEATS = 3
"""With at least this many repeats, the interval is over repeats. With two, Student's t would be
12.7."""
RESAMPLES = 2000
SEED = 0x50_0A
"""The seed of the bootstrap. It is fixed, so that the same samples give the same interval."""
MOST_DRAWN = 20_000_000
"""The most numbers drawn in total. A long measurement has fewer resamplings, so it does not take
longer."""
AT_ONCE = 2_000_000
"""The most drawn numbers in memory at once."""
LEAST_BLOCKS = 3
"""A phase has at least this many blocks, even if its samples are correlated for longer than a
block."""


def percentile(q: float) -> Statistic:
    """The q-th percentile (0..100) as a statistic."""
    return lambda values: np.asarray(np.percentile(values, q, axis=-1))


def mean(values: Floats) -> Floats:
    """The mean as a statistic."""
    return np.asarray(values.mean(axis=-1))


# ---------------------------------------------------------------------------------------- repeats


def interleaved(before: Sequence[int], after: Sequence[int]) -> bool:
    """Whether repeats that began at these times took turns: A B A B, or B A B A."""
    if len(before) != len(after) or not before:
        return False
    order = [which for _, which in sorted([*((t, 0) for t in before), *((t, 1) for t in after)])]
    return all(one != other for one, other in pairwise(order))


# ----------------------------------------------------------------------------------------- blocks


def memory(values: Floats) -> float:
    """The integrated autocorrelation time: 1 plus twice the sum of the autocorrelation up to the
    lag at which it first falls below 0. This many successive samples tell as much as one
    independent sample.

    Independent samples have 1 or little more; pings at 20/s over a sawtooth of 5 s have some 30.
    """
    apart = values - values.mean()
    power = float((apart**2).sum())
    if values.size < 4 or power == 0:
        return 1.0
    padded = np.fft.rfft(apart, 2 * values.size)
    correlation = np.fft.irfft(np.abs(padded) ** 2)[: values.size // 2] / power
    below = np.flatnonzero(correlation < 0)
    end = int(below[0]) if below.size else correlation.size
    return float(max(1 + 2 * correlation[1:end].sum(), 1.0))


def block_length(values: Floats) -> int:
    """The number of samples of a block: twice the `memory`, at most a third of all samples."""
    return int(min(max(math.ceil(2 * memory(values)), 1), max(values.size // LEAST_BLOCKS, 1)))


def resampled(
    pieces: Sequence[Floats], statistic: Statistic, rng: np.random.Generator, count: int
) -> Floats:
    """The statistic of `count` resamplings of these pieces. A piece is a phase of one repeat, and
    its blocks are drawn from that piece only."""
    size = sum(piece.size for piece in pieces)
    rows = max(AT_ONCE // max(size, 1), 1)
    lengths = [block_length(piece) for piece in pieces]
    found = []
    for begin in range(0, count, rows):
        some = min(rows, count - begin)
        drawn = [
            _drawn(piece, length, rng, some) for piece, length in zip(pieces, lengths, strict=True)
        ]
        found.append(statistic(np.concatenate(drawn, axis=1)))
    return np.concatenate(found)


def _drawn(piece: Floats, length: int, rng: np.random.Generator, rows: int) -> Floats:
    """Rows as long as the piece, made of blocks that begin anywhere in it and wrap around at its
    end."""
    starts = rng.integers(0, piece.size, (rows, -(-piece.size // length)))
    at = (starts[:, :, None] + np.arange(length)).reshape(rows, -1)[:, : piece.size]
    return np.asarray(piece[at % piece.size])


def over_blocks(
    plus: Sequence[Floats],
    minus: Sequence[Floats],
    statistic: Statistic,
    base: Statistic | None = None,
) -> Interval:
    """statistic(plus) - base(minus), with its interval; only statistic(plus) if `minus` is empty.
    The default of `base` is `statistic`.

    `plus` and `minus` are lists of pieces; the samples of a piece are in order of time.
    """
    plus, minus = ([piece for piece in pieces if piece.size] for pieces in (plus, minus))
    base = statistic if base is None else base
    if not plus:
        return Interval(math.nan, math.nan, math.nan)
    value = float(statistic(np.concatenate(plus))) - (
        float(base(np.concatenate(minus))) if minus else 0.0
    )
    rng = np.random.default_rng(SEED)
    drawn = distribution(plus, minus, statistic, base, rng)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def distribution(
    plus: Sequence[Floats],
    minus: Sequence[Floats],
    statistic: Statistic,
    base: Statistic,
    rng: np.random.Generator,
) -> Floats:
    """statistic(plus) - base(minus) in as many resamplings as `MOST_DRAWN` allows."""
    size = sum(piece.size for piece in (*plus, *minus))
    count = max(min(RESAMPLES, MOST_DRAWN // max(size, 1)), 200)
    drawn = resampled(plus, statistic, rng, count)
    return drawn - resampled(minus, base, rng, count) if minus else drawn
