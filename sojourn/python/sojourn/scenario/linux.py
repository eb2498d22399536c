"""What of a scenario needs Linux: disciplines and congestion controls that the simulator does not
have.

What each is, and who has it, the core's records say (crates/tc, crates/tcp/src/congestion.rs).
"""

from collections.abc import Iterator

from sojourn._core import CONGESTION, CONGESTION_ELSEWHERE, LINUX_RELEASE, QDISCS
from sojourn.scenario.realised import Realised

__all__ = ["CONGESTION", "CONGESTION_ELSEWHERE", "LINUX_RELEASE", "as_linux", "nearest", "needed"]


def nearest(name: str) -> str | None:
    """What of the simulator's comes nearest to a discipline or congestion control that it lacks."""
    record = QDISCS.get(name) or CONGESTION.get(name)
    return None if record is None else record.nearest


def as_linux(realised: Realised) -> bool:
    """Whether some link's discipline is `variant linux`."""
    return any(link.qdisc.variant == "linux" for link in realised.links)


def needed(realised: Realised) -> Iterator[tuple[str, str]]:
    """What of a realised scenario needs a Linux kernel: (place, name)."""
    if realised.offloads:
        yield "offloads", "packets of 64 kB"
    for link in realised.links:
        if (lacking := link.qdisc.lacking) is not None:
            yield f"link {link.name!r}: qdisc", lacking
    told: set[int] = set()
    for flow in realised.flows:
        if flow.tcp is None or flow.tcp.own is not None or flow.group in told:
            continue
        if CONGESTION[flow.tcp.congestion].simulated:
            continue
        told.add(flow.group)
        yield f"flow {flow.name!r}: congestion", flow.tcp.congestion
