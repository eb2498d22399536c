"""tc(8)'s words: queue disciplines, shapers, link layers.

`Qdisc.parse("fq_codel target 5ms")`, `Shaper.parse("htb rate 1mbit")`,
`LinkLayer.parse("pppoe-ptm")`: a text has the same meaning as in a terminal. `QDISCS` describes
each discipline. crates/tc implements all of it.
"""

from sojourn._core import (
    LINK_LAYERS,
    LINUX_RELEASE,
    QDISCS,
    LinkLayer,
    Police,
    Qdisc,
    QdiscRecord,
    Shaper,
    default_burst,
    read_rate,
    write_rate,
)

__all__ = [
    "LINK_LAYERS",
    "LINUX_RELEASE",
    "QDISCS",
    "WORDS",
    "LinkLayer",
    "Police",
    "Qdisc",
    "QdiscRecord",
    "Shaper",
    "default_burst",
    "is_own",
    "read_rate",
    "write_rate",
]

WORDS = frozenset(
    word
    for record in QDISCS.values()
    for variant in record.variants
    for word, _ in record.words(variant)
) | {"variant"}
"""Every word that can follow the name of some discipline."""


def is_own(words: str) -> bool:
    """Whether these words name a user-defined discipline: `FILE.py:CLASS ...`."""
    return ".py:" in words.partition(" ")[0]
