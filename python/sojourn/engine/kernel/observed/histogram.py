"""The simulator's histogram of times, bin by bin (crates/sim, histogram.rs): log-linear.

Below 128 ns a bin is one nanosecond; above, each power of two is cut into 128 bins. Bin 128 * e + m, with m from 128 to 255, begins at m * 2^e.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from sojourn import _core
from sojourn.engine.kernel.observed.archive import Ints
from sojourn.engine.kernel.observed.samples import joined

Columns: TypeAlias = "_core.Columns"

_OCTAVE_BITS = 7


@dataclass
class Histogram:
    """Times of several links or flows, counted."""

    owner: list[Ints] = field(default_factory=list)
    bins: list[Ints] = field(default_factory=list)
    counts: list[Ints] = field(default_factory=list)

    def add(self, owner: int, values: Ints) -> None:
        """Counts the values of one link or flow."""
        bins, counts = np.unique(_bin(values), return_counts=True)
        self.owner.append(np.full(len(bins), owner, dtype=np.int64))
        self.bins.append(bins)
        self.counts.append(counts.astype(np.int64))

    def columns(self, owner: str, counted: str) -> Columns:
        """As a table."""
        bins = joined(self.bins)
        return {
            owner: joined(self.owner),
            "lower_ns": _lower(bins),
            "upper_ns": _lower(bins + 1),
            counted: joined(self.counts),
        }


def _bin(values: Ints) -> Ints:
    octave = 1 << _OCTAVE_BITS
    # frexp is exact for what a float holds exactly; the mantissa's carry above 2^53 ns (104 days) does not occur.
    _, exponents = np.frexp(np.maximum(values, 1).astype(np.float64))
    exponent = np.maximum(exponents.astype(np.int64) - 1 - _OCTAVE_BITS, 0)
    return np.where(values < octave, values, exponent * octave + (values >> exponent))


def _lower(bins: Ints) -> Ints:
    octave = 1 << _OCTAVE_BITS
    exponent = np.maximum(bins // octave - 1, 0)
    return np.where(bins < octave, bins, (bins % octave + octave) << exponent)
