"""The kinds of traffic, as crates/traffic declares them, by word.

A Run from elsewhere may have flows of a kind that this sojourn does not know. For such a kind every
function here returns False.
"""

from collections.abc import Mapping

from sojourn import _core
from sojourn._core import TrafficKind

KINDS: Mapping[str, TrafficKind] = {kind.word: kind for kind in _core.traffic_kinds()}
"""Every kind by its word, in the order of lists."""


def is_probe(word: str) -> bool:
    """Whether its packets are echo requests, whose RTTs are in the table `probe`."""
    kind = KINDS.get(word)
    return kind is not None and kind.probe


def is_of_programs(word: str) -> bool:
    """Whether programs of the host send its packets, of any protocol."""
    kind = KINDS.get(word)
    return kind is not None and not (kind.tcp or kind.probe or kind.headers is not None)


def is_greedy(word: str) -> bool:
    """Whether it sends as fast as it can until it is stopped, so that shares of such flows can be
    compared."""
    kind = KINDS.get(word)
    return kind is not None and kind.greedy


def is_kept(word: str) -> bool:
    """Whether its messages follow one another over one connection, enough of them for a 99th
    percentile."""
    kind = KINDS.get(word)
    return kind is not None and kind.kept
