"""Delay that a queue adds, in words: the same for simulations and measurements."""

BLOATED_MS = 30.0
"""Induced delay from which `in_words` finds bufferbloat."""


def in_words(added_ms: float) -> str:
    """Induced delay in words."""
    for most, words in (
        (5, "no bufferbloat"),
        (BLOATED_MS, "hardly any bufferbloat; calls and games run well"),
        (100, "some bufferbloat, which games feel"),
        (300, "bufferbloat: calls suffer"),
    ):
        if added_ms < most:
            return words
    return "severe bufferbloat: calls and games are hopeless while this runs"
