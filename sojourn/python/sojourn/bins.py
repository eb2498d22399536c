"""Bins of times, as the tables' histograms have them (crates/tables, histogram.rs). Below 128 ns a bin
is one nanosecond. Above, each power of two is cut into 128 bins: none is wider than 0.8 % of its
values."""

from __future__ import annotations

from sojourn import _core
from sojourn.arrays import Ints


def bins_of(times_ns: Ints) -> Ints:
    """The number of the bin of each time."""
    return _core.bins_of(times_ns)


def bins_from(bins: Ints) -> Ints:
    """Where each bin begins, ns; it ends where the next one begins."""
    return _core.bins_from(bins)
