"""Bins of times, as in the tables' histograms (crates/tables, histogram.rs). Below 128 ns a bin is
one nanosecond wide. Above, each power of two has 128 bins: none is wider than 0.8 % of its
values."""

from __future__ import annotations

from sojourn import _core
from sojourn.arrays import Ints


def bins_of(times_ns: Ints) -> Ints:
    """The number of the bin of each time."""
    return _core.bins_of(times_ns)


def bins_from(bins: Ints) -> Ints:
    """The start of each bin, ns; a bin ends where the next one begins."""
    return _core.bins_from(bins)
