"""Engines run a Scenario and write a Run. `sim` is the packet simulator, `kernel` the real Linux
kernel in a guest, `netns` this host's own kernel.

Names are imported on first use, because `sojourn list` only asks which engines are ready.
"""

from typing import TYPE_CHECKING

from sojourn import lazy

if TYPE_CHECKING:
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
    from sojourn.engine.request import ClusterAddress, ClusterAt, Progress, seeds_of
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

_HOME = {
    "Cancelled": "protocol",
    "ClusterAddress": "request",
    "ClusterAt": "request",
    "Engine": "protocol",
    "Failure": "runs",
    "Interrupted": "runs",
    "Interruption": "memory",
    "Progress": "request",
    "Simulated": "memory",
    "Summed": "memory",
    "UnfinishedError": "runs",
    "check": "runs",
    "contenders": "compare",
    "find": "registry",
    "find_awake": "registry",
    "fingerprint": "protocol",
    "fits": "registry",
    "folder_names": "runs",
    "lacks": "registry",
    "profile_of": "registry",
    "run": "runs",
    "run_all": "runs",
    "run_each": "runs",
    "run_more": "runs",
    "seeds_of": "request",
    "simulate": "memory",
    "simulate_all": "memory",
    "stands_for": "registry",
    "taking_turns": "compare",
    "variants": "compare",
    "why_not": "registry",
}

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


def __getattr__(name: str) -> object:
    return lazy.attribute(__name__, _HOME, name)
