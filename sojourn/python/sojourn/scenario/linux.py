"""The parts of a scenario that need Linux: disciplines and congestion controls that the simulator
lacks.

The core's records (crates/tc, crates/tcp/src/congestion.rs) describe each. They
record whether the simulator has it and whether Linux has it.
"""

from collections.abc import Iterator

from sojourn._core import CONGESTION, CONGESTION_ELSEWHERE, LINUX_RELEASE, QDISCS
from sojourn.scenario.realised import Realised

__all__ = ["CONGESTION", "CONGESTION_ELSEWHERE", "LINUX_RELEASE", "as_linux", "nearest", "needed"]


def nearest(name: str) -> str | None:
    """The simulator's nearest discipline or congestion control for one that it lacks."""
    record = QDISCS.get(name) or CONGESTION.get(name)
    return None if record is None else record.nearest


def as_linux(realised: Realised) -> bool:
    """Whether the discipline of some link is `variant linux`."""
    return any(link.qdisc.variant == "linux" for link in realised.links)


def needed(realised: Realised) -> Iterator[tuple[str, str]]:
    """The parts of a realised scenario that need a Linux kernel: (place, name)."""
    if realised.offloads:
        yield "offloads", "packets of 64 kB"
    for program in realised.programs:
        yield f"program {program.name!r}", "programs"
    for link in realised.links:
        if (lacking := link.qdisc.lacking) is not None:
            yield f"link {link.name!r}: qdisc", lacking
        if (lacking := link.lacking_change()) is not None:
            yield f"link {link.name!r}: qdisc_schedule", f"steps of {lacking}"
    seen: set[int] = set()
    for flow in realised.flows:
        if flow.tcp is None or flow.tcp.own is not None or flow.group in seen:
            continue
        if CONGESTION[flow.tcp.congestion].simulated:
            continue
        seen.add(flow.group)
        yield f"flow {flow.name!r}: congestion", flow.tcp.congestion
