"""Measures of one link that several papers have. A paper's `measures` imports those that its
published.toml names."""

from __future__ import annotations

from sojourn import metrics
from sojourn_papers.evidence import Seed


def utilisation(seed: Seed) -> float:
    """Bits that the bottleneck sent over the bits that it could have carried, %."""
    row = seed.link()
    return 100 * metrics.utilisation(row["wire_bytes"], row["capacity_bits"])


def loss(seed: Seed) -> float:
    """Packets that the bottleneck dropped over those that arrived, %."""
    row = seed.link()
    return 100 * metrics.ratio(row["dropped_packets"], row["arrived_packets"])


def delay_ms(seed: Seed) -> float:
    """Mean time from enqueue to dequeue at the bottleneck, ms."""
    row = seed.link()
    return metrics.ratio(row["sojourn_sum_ns"], row["sent_packets"]) / 1e6
