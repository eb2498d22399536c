"""Compares the simulator with the kernel: the numbers of whole runs (`side_by_side`), and what both
did to each packet (`decisions`).

docs/agreement.md describes method and results; `cases` is the standing set.
"""

from sojourn.agreement.mechanisms import ASLEEP, MECHANISMS, Mechanism, Sides, sides
from sojourn.agreement.product import combinations
from sojourn.agreement.side_by_side import (
    TOLERANCE,
    VERDICTS,
    Case,
    Comparison,
    Digest,
    NumberRow,
    NumberVerdict,
    compare,
    digest,
    verdicts,
)

__all__ = [
    "ASLEEP",
    "MECHANISMS",
    "TOLERANCE",
    "VERDICTS",
    "Case",
    "Comparison",
    "Digest",
    "Mechanism",
    "NumberRow",
    "NumberVerdict",
    "Sides",
    "combinations",
    "compare",
    "digest",
    "sides",
    "verdicts",
]
