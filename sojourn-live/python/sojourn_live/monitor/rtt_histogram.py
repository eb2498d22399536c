"""Mergeable histograms of times, from which quantiles over an hour are computed.

A quantile of quantiles is not a quantile of the samples, so each span of time keeps its whole
distribution: log-linear bins as in crates/tables/src/histogram.rs. Below 128 ns a bin is one
nanosecond. Above, each power of two is cut into 128 bins, so no bin is wider than 0.8 % of its
values. Least and greatest are exact. The bytes of a histogram are its non-empty bins, each as two
varints: the bin's number less that of the previous non-empty bin, and the bin's count.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from sojourn.arrays import Floats, Ints
from sojourn.bins import bins_from, bins_of


@dataclass(frozen=True)
class RttHistogram:
    """Counts of times by bin. `bins` are ascending, `counts` above zero; least and greatest are in
    ns."""

    bins: Ints
    counts: Ints
    least: int
    greatest: int

    @property
    def count(self) -> int:
        """The number of all times."""
        return int(self.counts.sum())

    def quantiles(self, levels: Iterable[float]) -> Floats:
        """Times (ns) at these levels (0 to 1): numpy's `quantile` of the times, to within the width
        of a bin.

        NaN if there are no times.
        """
        wanted = np.asarray(list(levels), dtype=np.float64)
        if self.bins.size == 0:
            return np.full(wanted.shape, np.nan)
        place = wanted * (self.count - 1)
        below = np.floor(place)
        part = place - below
        return self._ranked(below) * (1 - part) + self._ranked(np.ceil(place)) * part

    def _ranked(self, rank: Floats) -> Floats:
        """The time of each rank (from 0). Times are taken to be evenly spaced in their bin."""
        up_to = np.cumsum(self.counts)
        at = np.searchsorted(up_to, rank, side="right")
        low, high = edges(self.bins[at])
        inside = (rank - (up_to[at] - self.counts[at]) + 0.5) / self.counts[at]
        time = np.clip(low + inside * (high - low), self.least, self.greatest)
        return np.where(
            rank == 0, self.least, np.where(rank == self.count - 1, self.greatest, time)
        )

    def to_bytes(self) -> bytes:
        """The bins as bytes, without least and greatest."""
        written = bytearray()
        for gap, count in zip(
            np.diff(self.bins, prepend=0).tolist(), self.counts.tolist(), strict=True
        ):
            for number in (gap, count):
                while number > 0x7F:
                    written.append(number & 0x7F | 0x80)
                    number >>= 7
                written.append(number)
        return bytes(written)


def of(times: Ints) -> RttHistogram:
    """The histogram of these times, ns."""
    if times.size == 0:
        return EMPTY
    found, counts = np.unique(bins_of(times), return_counts=True)
    return RttHistogram(found, counts.astype(np.int64), int(times.min()), int(times.max()))


def from_bytes(written: bytes, least: int, greatest: int) -> RttHistogram:
    """The histogram of these bytes. Raises ValueError if they are cut short."""
    numbers: list[int] = []
    number = shift = 0
    for byte in written:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    if shift or len(numbers) % 2:
        raise ValueError("a histogram is cut short")
    pairs = np.array(numbers, dtype=np.int64).reshape(-1, 2)
    return RttHistogram(np.cumsum(pairs[:, 0]), pairs[:, 1], least, greatest)


def merged(histograms: Iterable[RttHistogram]) -> RttHistogram:
    """The histogram of the times of all histograms."""
    filled = [histogram for histogram in histograms if histogram.bins.size]
    if len(filled) < 2:
        return filled[0] if filled else EMPTY
    found, where = np.unique(np.concatenate([each.bins for each in filled]), return_inverse=True)
    counts = np.zeros(found.size, dtype=np.int64)
    np.add.at(counts, where, np.concatenate([each.counts for each in filled]))
    least, greatest = min(each.least for each in filled), max(each.greatest for each in filled)
    return RttHistogram(found, counts, least, greatest)


def edges(which: Ints) -> tuple[Floats, Floats]:
    """The least time (ns) of each bin, and the least time above it."""
    lower, upper = bins_from(which), bins_from(which + 1)
    return lower.astype(np.float64), upper.astype(np.float64)


EMPTY = RttHistogram(np.empty(0, np.int64), np.empty(0, np.int64), 0, 0)
