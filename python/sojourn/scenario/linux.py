"""What Linux has and the simulator does not: queue disciplines and congestion controls that a scenario may name all the same.

What a discipline's words are, and which Linux alone has, crates/tc says. Congestion controls go by the kernel's names.

Source: the kernel's net/ipv4/Kconfig.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sojourn.scenario.qdisc import LINUX_RELEASE, QDISCS

RELEASE = LINUX_RELEASE
"""The kernel whose algorithms `variant linux` of the simulator's disciplines are, and which the built guest runs."""

CONGESTION = (
    *("bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois", "lp", "nv", "scalable", "veno"),
    *("westwood", "yeah"),
)
"""Congestion controls by the kernel's names. bbr is its version 1."""

NEAREST = {
    **{record.kind: record.nearest for record in QDISCS.values() if record.nearest is not None},
    **dict.fromkeys(("bbr", "bic", "highspeed", "htcp", "hybla", "illinois", "scalable", "yeah"), "cubic"),
    **dict.fromkeys(("dctcp", "westwood"), "reno"),
    **dict.fromkeys(("cdg", "nv", "veno"), "vegas"),
    "lp": "ledbat",
}
"""What of the simulator's comes nearest to a discipline or congestion control that Linux alone has."""

NOT_THERE = {
    "prague": 'the nearest there is: congestion = "dctcp" and ecn = true, with -e kernel; reno, if it need not be scalable',
    **dict.fromkeys(("bbr2", "bbr3", "bbrv2", "bbrv3"), 'congestion = "bbr" is version 1, with -e kernel'),
}
"""Congestion controls that people ask for and that kernel does not have, and what to write instead."""

LACKS = ("ledbat",)
"""Congestion controls of the simulator that Linux does not have."""


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
        if name in CONGESTION and flow["group"] not in told:
            told.add(flow["group"])
            yield f"flow {flow['name']!r}: congestion", name
