"""The kinds of traffic as crates/traffic declares them, and what is asked of one by its word.

A Run may come from elsewhere, so its flows may be of a kind that this sojourn does not know: then
no question is answered with yes.
"""

from collections.abc import Mapping

from sojourn import _core
from sojourn._core import TrafficKind

KINDS: Mapping[str, TrafficKind] = {kind.word: kind for kind in _core.traffic_kinds()}
"""Every kind by its word, in the order in which they are listed."""


def is_probe(word: str) -> bool:
    """Whether its packets are echo requests: its RTTs are in the table `probe`."""
    kind = KINDS.get(word)
    return kind is not None and kind.probe


def is_greedy(word: str) -> bool:
    """Whether it sends as fast as its way allows, for as long as it is let: shares of such flows
    can be compared."""
    kind = KINDS.get(word)
    return kind is not None and kind.greedy
