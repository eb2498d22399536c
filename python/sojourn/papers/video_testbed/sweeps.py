"""What is swept: the bottlenecks of the cited studies, CoDel's parameters for the future work, and constant overloads.

The last has a closed form. An excess of x packets a second stays, and in its dropping state CoDel drops sqrt(count) / I a second,
which after a time t is t / (2 I^2). The queue grows until that rate meets x, at t = 2 I^2 x, and is then (x I)^2
packets long; it takes as long again to empty. Twice the overload: twice the time, four times the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sojourn.papers.video_testbed import reading

# ------------------------------------------------------------------------------------------------ the cited studies

RATES = (64, 128, 256, 512, 1000, 2000, 4000)
"""kbit/s."""
FILLED = (64, 128, 256, 512)
"""kbit/s: the bottlenecks that the film of 950 kbit/s overfills."""
CITED_QDISCS = {"Drop Tail": "pfifo limit 50", "RED": "red variant ns2 limit 50", "CoDel": "codel"}
SMALL = 5
"""Packets: a small buffer."""

CITED: dict[str, Mapping[str, Any]] = {
    **{
        f"{rate} {name}": {"bottleneck.rate": f"{rate} kbit/s", "bottleneck.down.qdisc": words}
        for name, words in CITED_QDISCS.items()
        for rate in RATES
    },
    **{
        f"{rate} {name} small": {
            "bottleneck.rate": f"{rate} kbit/s",
            "bottleneck.down.qdisc": f"{words} limit {SMALL}",
        }
        for name, words in (("Drop Tail", "pfifo"), ("RED", "red variant ns2"))
        for rate in (64, 128, 256, 1000)
    },
}
CITED_QUICK = tuple(
    [f"{rate} {name}" for name in CITED_QDISCS for rate in (64, 256, 512, 1000, 2000)]
    + [f"{rate} {name} small" for name in ("Drop Tail", "RED") for rate in (64, 1000)]
)

# --------------------------------------------------------------------------------------------------- the future work

TARGETS_MS = (1, 5, 20, 60, 200, 600)
SETTINGS = {
    "limit 3": ("limit 3", 100),
    "limit 20": ("limit 20", 100),
    "limit 1000": ("limit 1000", 100),
    "limit 1000, interval 20 ms": ("limit 1000", 20),
    "limit 1000, interval 500 ms": ("limit 1000", 500),
}
"""Name -> CoDel's limit in tc's words, and its interval in ms."""


def future(setting: str, target_ms: int) -> str:
    """A variant's name."""
    return f"{setting}, target {target_ms} ms"


FUTURE: dict[str, Mapping[str, Any]] = {
    future(name, target): reading.shaped(250, f"codel {limit} target {target}ms interval {interval}ms")
    for name, (limit, interval) in SETTINGS.items()
    for target in TARGETS_MS
}
FUTURE_QUICK = tuple(future(name, target) for name in ("limit 3", "limit 1000") for target in (5, 60, 600))

# --------------------------------------------------------------------------------------------------------- overload

OVERLOADS = (1.1, 1.25, 1.5, 2.0)
"""Offered over the link's rate."""
CAPACITY = 2_000_000 / (8 * 1370)
"""Packets a second of 1370 B at 2000 kbit/s."""
INTERVAL_S = 0.1


def overload(times: float) -> str:
    """A variant's name."""
    return f"{times:g} times"


def excess(times: float) -> float:
    """Packets a second above what the link carries."""
    return (times - 1) * CAPACITY


def predicted_peak_packets(times: float) -> float:
    """The longest queue of the closed form."""
    return (excess(times) * INTERVAL_S) ** 2


def predicted_seconds(times: float) -> float:
    """From the first drop until the queue is gone, in the closed form."""
    return 4 * INTERVAL_S**2 * excess(times)


OVERLOAD: dict[str, Mapping[str, Any]] = {
    overload(times): {"flow.flood.rate": f"{2e6 * times * 1356 / 1370:.0f} bit/s"} for times in OVERLOADS
}
OVERLOAD_QUICK = (overload(1.25), overload(2.0))
