"""A realised scenario: what `Scenario.realise(seed)` gives and an engine takes (crates/sim,
scenario.rs).

Every link and every flow is written out, in integers. All of it is frozen.
"""

from typing import TypeAlias

from sojourn._core import (
    Bulk,
    Draw,
    Flow,
    GilbertLoss,
    Impairments,
    Link,
    ModelFrames,
    Ping,
    RandomLoss,
    RateStep,
    Realised,
    Record,
    Ring,
    StateLoss,
    Stream,
    Tcp,
    TraceFrames,
    Transfers,
    Udp,
    Video,
)

__all__ = [
    "Bulk",
    "Draw",
    "Flow",
    "GilbertLoss",
    "Impairments",
    "Link",
    "ModelFrames",
    "Ping",
    "RandomLoss",
    "RateStep",
    "Realised",
    "Record",
    "Ring",
    "StateLoss",
    "Stream",
    "Tcp",
    "TraceFrames",
    "Traffic",
    "Transfers",
    "Udp",
    "Video",
]

Traffic: TypeAlias = Bulk | Transfers | Stream | Udp | Ping | Video
"""What a flow sends."""
