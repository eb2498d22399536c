"""Converts times of the monotonic clock to times of day, and detects clock steps and suspensions.

Probes are timed by CLOCK_MONOTONIC. This clock is never stepped, and it stands still while the
machine is suspended. The database has times of day. The difference of the two clocks is read
repeatedly. While it drifts (the time of day is slewed), the drift is followed. When it jumps,
probes sent before the jump keep the old difference, and the jump is reported. CLOCK_BOOTTIME runs
during a suspension, and so distinguishes a suspension from a step of the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

S = 10**9
JUMP_NS = 50_000_000
"""The least change of the difference between two readings that is a jump. Without a jump the
difference drifts by at most 0.5 ms a second (adjtimex(2))."""


@dataclass(frozen=True)
class Reading:
    """The three clocks at one moment, ns."""

    monotonic: int
    day: int
    boot: int


@dataclass(frozen=True)
class Jump:
    """A jump between two readings: the duration of a suspension, and the step of the clock (ns)."""

    slept_ns: int
    stepped_ns: int


def read() -> Reading:
    """Reads the clocks. They are read one after the other, so the quickest of three tries
    counts."""

    def once() -> tuple[int, Reading]:
        before = time.monotonic_ns()
        day, boot = time.time_ns(), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        took = time.monotonic_ns() - before
        return took, Reading(before + took // 2, day, boot)

    return min((once(), once(), once()), key=lambda timed: timed[0])[1]


class DayTime:
    """Converts times of the monotonic clock to times of day."""

    def __init__(self, read: Callable[[], Reading] = read) -> None:
        self._read = read
        self._latest = read()
        self._before = self._now = self._latest.day - self._latest.monotonic
        self.jumped_at = self._latest.monotonic
        """When the latest jump was found, ns of the monotonic clock; if there was none, the time of
        the first reading."""

    def look(self) -> Jump | None:
        """Reads the clocks. Returns the jump since the previous reading, or None."""
        old, self._latest = self._latest, self._read()
        new = self._latest
        slept = new.boot - new.monotonic - (old.boot - old.monotonic)
        stepped = new.day - new.boot - (old.day - old.boot)
        difference = new.day - new.monotonic
        if abs(slept) < JUMP_NS and abs(stepped) < JUMP_NS:
            self._now = difference
            return None
        self._before, self._now, self.jumped_at = self._now, difference, new.monotonic
        return Jump(
            slept if abs(slept) >= JUMP_NS else 0, stepped if abs(stepped) >= JUMP_NS else 0
        )

    @property
    def now_ns(self) -> int:
        """The time of day at the latest reading, UTC since 1970."""
        return self._latest.day

    @property
    def monotonic_ns(self) -> int:
        """The monotonic clock at the latest reading."""
        return self._latest.monotonic

    def of(self, monotonic: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times of the monotonic clock as times of day (ns, UTC since 1970)."""
        return monotonic + np.where(monotonic < self.jumped_at, self._before, self._now)
