"""Words for the delay that a queue adds, for simulations and measurements."""

BLOATED_MS = 30.0
"""From this induced delay on, `in_words` reports bufferbloat."""


def in_words(added_ms: float) -> str:
    """The induced delay in words."""
    for most, words in (
        (5, "no bufferbloat"),
        (BLOATED_MS, "hardly any bufferbloat; calls and games run well"),
        (100, "some bufferbloat, which games feel"),
        (300, "bufferbloat: calls suffer"),
    ):
        if added_ms < most:
            return words
    return "severe bufferbloat: calls and games are hopeless while this runs"
