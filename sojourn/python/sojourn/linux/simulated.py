"""A shaper's operations as a scenario's `shaper` and `qdisc` for a simulated link. No I/O."""

from __future__ import annotations

from sojourn.linux import tc
from sojourn.linux.operations import WantedShape, plan
from sojourn.linux.rtnl import Former, Interface
from sojourn.scenario.qdisc import Qdisc

ADDRESSES = frozenset({"nat", "nonat"})
"""cake's options about translated addresses. A simulated line translates none."""


def untouched(interface: Interface) -> Former:
    """The state of an interface without installed disciplines."""
    return Former(interface.name, interface.index, interface.queues, interface.queue_length, (), "")


def shaper_and_leaf(wanted: WantedShape, interface: Interface) -> tuple[str, str]:
    """The texts of the shaper and of the discipline; the shaper is `none` if the discipline shapes
    itself. `wanted` has one direction."""
    operations = plan(wanted, interface, untouched(interface)).operations
    class_ = next((one for one in operations if isinstance(one, tc.SetClass)), None)
    leaf = next(
        one.qdisc.text
        for one in operations
        if isinstance(one, tc.AddQdisc) and isinstance(one.qdisc, Qdisc)
    )
    leaf = " ".join(word for word in leaf.split() if word not in ADDRESSES)
    return "none" if class_ is None else _shaper(class_), leaf


def _shaper(class_: tc.SetClass) -> str:
    words = f"htb rate {class_.bps}bit burst {class_.burst_bytes}"
    words += f" overhead {class_.overhead_bytes} mpu {class_.minimum_bytes}"
    return words + (" linklayer atm" if class_.cells == "atm" else "")
