"""Counters and times over the measured part of a run.

Totals begin after the warm-up. Counters are known at samples; at a warm-up's end between two
samples they are interpolated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sojourn.arrays import Ints, Mask
from sojourn.engine.kernel.observed.archive import NEVER


@dataclass(frozen=True)
class Window:
    """The measured part of the run."""

    warm: int
    end: int

    def holds(self, times: Ints) -> Mask:
        """Which of these lie in it; an event at the warm-up's very end belongs to it."""
        return (times >= self.warm) & (times <= self.end)

    def overlap(self, begins: Ints, ends: Ints) -> Ints:
        """How much of each span lies in it."""
        return np.asarray(np.maximum(np.minimum(ends, self.end) - np.maximum(begins, self.warm), 0))


@dataclass(frozen=True)
class Samples:
    """Counters at their times."""

    times: Ints
    values: Ints

    def since(self, window: Window) -> int:
        """How much it grew in the window."""
        if not len(self.times):
            return 0
        at = np.interp([window.warm, window.end], self.times, self.values)
        return round(float(at[1])) - round(float(at[0]))

    def growth(self, edges: Ints) -> Ints:
        """By how much it grew from each edge to the next."""
        if not len(self.times):
            return np.zeros(len(edges) - 1, dtype=np.int64)
        counted = np.rint(np.interp(edges, self.times, self.values)).astype(np.int64)
        return np.asarray(counted[1:] - counted[:-1])


def nearest(samples: Ints, times: Ints) -> Ints:
    """Of each time the sample that was taken for it: the first one from then on, before the next;
    -1: none."""
    if not len(samples):
        return np.full(len(times), NEVER, dtype=np.int64)
    at = np.searchsorted(samples, times, side="left")
    following = np.append(times[1:], np.iinfo(np.int64).max)
    here = np.minimum(at, len(samples) - 1)
    return np.where((at < len(samples)) & (samples[here] < following), here, NEVER)


def taken(values: Ints, at: Ints) -> Ints:
    """The values at these places; none where there is no place."""
    if not len(values):
        return np.full(len(at), NEVER, dtype=np.int64)
    return np.where(at >= 0, values[np.maximum(at, 0)], NEVER)


def joined(parts: Sequence[NDArray[Any]]) -> Ints:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts]).astype(np.int64)


def edges_of(interval: int, end: int) -> Ints:
    """Whole multiples from 0, and the end."""
    return np.append(np.arange(0, end, interval, dtype=np.int64), end)
