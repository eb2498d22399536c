"""What of a scenario needs Linux: disciplines and congestion controls that the simulator does not
have.

What each is, and who has it, the core's records say (crates/tc, crates/tcp/src/congestion.rs).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sojourn._core import CONGESTION, CONGESTION_ELSEWHERE, LINUX_RELEASE, QDISCS

__all__ = ["CONGESTION", "CONGESTION_ELSEWHERE", "LINUX_RELEASE", "as_linux", "nearest", "needed"]


def nearest(name: str) -> str | None:
    """What of the simulator's comes nearest to a discipline or congestion control that it lacks."""
    record = QDISCS.get(name) or CONGESTION.get(name)
    return None if record is None else record.nearest


def as_linux(realised: Mapping[str, Any]) -> bool:
    """Whether some link's discipline is `variant linux`."""
    return any(link["qdisc"].get("variant") == "linux" for link in realised["links"])


def needed(realised: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What of a realised scenario needs a Linux kernel: (place, name)."""
    if realised.get("offloads"):
        yield "offloads", "packets of 64 kB"
    for link in realised["links"]:
        if not QDISCS[link["qdisc"]["kind"]].simulated:
            yield f"link {link['name']!r}: qdisc", link["qdisc"]["kind"]
    told: set[int] = set()
    for flow in realised["flows"]:
        name = flow["traffic"].get("tcp", {}).get("congestion")
        if name is not None and not CONGESTION[name].simulated and flow["group"] not in told:
            told.add(flow["group"])
            yield f"flow {flow['name']!r}: congestion", name
