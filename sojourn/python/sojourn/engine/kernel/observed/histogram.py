"""Histograms of times in the tables' bins (crates/tables, histogram.rs), for times that the guest's
program has not counted itself."""

from dataclasses import dataclass, field

import numpy as np

from sojourn.arrays import Columns, Ints
from sojourn.bins import bins_from, bins_of
from sojourn.engine.kernel.observed.samples import joined


@dataclass
class Histogram:
    """Counted times of several links or flows."""

    owner: list[Ints] = field(default_factory=list)
    bins: list[Ints] = field(default_factory=list)
    counts: list[Ints] = field(default_factory=list)

    def add(self, owner: int, values: Ints) -> None:
        """Counts the values of one link or flow."""
        bins, counts = np.unique(bins_of(values), return_counts=True)
        self.owner.append(np.full(len(bins), owner, dtype=np.int64))
        self.bins.append(bins)
        self.counts.append(counts.astype(np.int64))

    def columns(self, owner: str, counted: str) -> Columns:
        """The histogram as a table."""
        bins = joined(self.bins)
        return {
            owner: joined(self.owner),
            "lower_ns": bins_from(bins),
            "upper_ns": bins_from(bins + 1),
            counted: joined(self.counts),
        }
