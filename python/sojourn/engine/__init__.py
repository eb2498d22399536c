"""Engines: a Scenario in, a Run out. `sim` is the packet simulator, `kernel` the real Linux kernel
in a guest, `netns` this host's own."""

from sojourn.engine.asked import ClusterAddress, ClusterAt, Progress, seeds_of
from sojourn.engine.compare import contenders, taking_turns, variants
from sojourn.engine.memory import Interruption, Simulated, Summed, simulate, simulate_all
from sojourn.engine.protocol import Cancelled, Engine, fingerprint
from sojourn.engine.registry import (
    find,
    find_awake,
    fits,
    lacks,
    profile_of,
    stands_for,
    why_not,
)
from sojourn.engine.runs import (
    Failure,
    Interrupted,
    UnfinishedError,
    check,
    folder_names,
    run,
    run_all,
    run_each,
    run_more,
)

__all__ = [
    "Cancelled",
    "ClusterAddress",
    "ClusterAt",
    "Engine",
    "Failure",
    "Interrupted",
    "Interruption",
    "Progress",
    "Simulated",
    "Summed",
    "UnfinishedError",
    "check",
    "contenders",
    "find",
    "find_awake",
    "fingerprint",
    "fits",
    "folder_names",
    "lacks",
    "profile_of",
    "run",
    "run_all",
    "run_each",
    "run_more",
    "seeds_of",
    "simulate",
    "simulate_all",
    "stands_for",
    "taking_turns",
    "variants",
    "why_not",
]
