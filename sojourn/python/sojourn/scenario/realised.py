"""A realised scenario: the result of `Scenario.realise(seed)` and the input of an engine
(crates/sim, scenario.rs).

It lists every link and every flow, in integers. All of it is frozen.
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
    Program,
    ProgramTraffic,
    RandomLoss,
    RateStep,
    Realised,
    Record,
    Requests,
    Ring,
    StateLoss,
    SteppedLoss,
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
    "Program",
    "ProgramTraffic",
    "RandomLoss",
    "RateStep",
    "Realised",
    "Record",
    "Requests",
    "Ring",
    "StateLoss",
    "SteppedLoss",
    "Stream",
    "Tcp",
    "TraceFrames",
    "Traffic",
    "Transfers",
    "Udp",
    "Video",
]

Traffic: TypeAlias = Bulk | Transfers | Requests | Stream | Udp | Ping | Video | ProgramTraffic
"""The traffic of a flow."""
