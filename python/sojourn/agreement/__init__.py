"""Simulator and kernel side by side: `numbers` of whole runs, and what both did to each packet (`decisions`).

docs/agreement.md is its page; `cases` is the standing set.
"""

from sojourn.agreement.mechanisms import ASLEEP, MECHANISMS, Mechanism, Sides, sides
from sojourn.agreement.numbers import (
    TOLERANCE,
    VERDICTS,
    Case,
    Comparison,
    Digest,
    Row,
    Verdict,
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
    "Row",
    "Sides",
    "Verdict",
    "compare",
    "digest",
    "sides",
    "verdicts",
]
