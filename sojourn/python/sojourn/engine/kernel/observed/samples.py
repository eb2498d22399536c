"""Counters and times over the measured part of a run.

Totals begin after the warm-up. A counter is known at its samples only. If the warm-up ends between
two samples, the counter is interpolated.
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
        """Which of these times are in the window. An event at the very end of the warm-up is in
        it."""
        return (times >= self.warm) & (times <= self.end)

    def overlap(self, begins: Ints, ends: Ints) -> Ints:
        """The length of each span that is in the window."""
        return np.asarray(np.maximum(np.minimum(ends, self.end) - np.maximum(begins, self.warm), 0))


@dataclass(frozen=True)
class Samples:
    """A counter's values at its sample times."""

    times: Ints
    values: Ints

    def since(self, window: Window) -> int:
        """How much the counter grew in the window."""
        if not len(self.times):
            return 0
        at = np.interp([window.warm, window.end], self.times, self.values)
        return round(float(at[1])) - round(float(at[0]))

    def growth(self, edges: Ints) -> Ints:
        """How much the counter grew from each edge to the next."""
        if not len(self.times):
            return np.zeros(len(edges) - 1, dtype=np.int64)
        counted = np.rint(np.interp(edges, self.times, self.values)).astype(np.int64)
        return np.asarray(counted[1:] - counted[:-1])


def nearest(samples: Ints, times: Ints) -> Ints:
    """For each time, the index of the first sample taken at or after it and before the next time;
    -1: none."""
    if not len(samples):
        return np.full(len(times), NEVER, dtype=np.int64)
    at = np.searchsorted(samples, times, side="left")
    following = np.append(times[1:], np.iinfo(np.int64).max)
    here = np.minimum(at, len(samples) - 1)
    return np.where((at < len(samples)) & (samples[here] < following), here, NEVER)


def taken(values: Ints, at: Ints) -> Ints:
    """The values at these indices; `NEVER` where the index is -1."""
    if not len(values):
        return np.full(len(at), NEVER, dtype=np.int64)
    return np.where(at >= 0, values[np.maximum(at, 0)], NEVER)


def joined(parts: Sequence[NDArray[Any]]) -> Ints:
    return np.concatenate([np.empty(0, dtype=np.int64), *parts]).astype(np.int64)


def edges_of(interval: int, end: int) -> Ints:
    """Whole multiples of the interval from 0, and the end."""
    return np.append(np.arange(0, end, interval, dtype=np.int64), end)
