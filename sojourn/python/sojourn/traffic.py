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
    """Whether the packets of such a flow are echo requests, whose RTTs are in the table `probe`."""
    kind = KINDS.get(word)
    return kind is not None and kind.probe


def is_of_programs(word: str) -> bool:
    """Whether programs of the host send the packets of such a flow, by any protocol."""
    kind = KINDS.get(word)
    return kind is not None and not (kind.tcp or kind.probe or kind.headers is not None)


def is_greedy(word: str) -> bool:
    """Whether such a flow sends as fast as it can until it is stopped. The shares of such flows can
    be compared."""
    kind = KINDS.get(word)
    return kind is not None and kind.greedy


def is_kept(word: str) -> bool:
    """Whether the messages of such a flow follow one another over one connection. There are enough
    of them for a 99th percentile."""
    kind = KINDS.get(word)
    return kind is not None and kind.kept
