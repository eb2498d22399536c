"""A shaper's operations as a simulated link has them: `shaper` and `qdisc` of a scenario. Pure."""

from __future__ import annotations

from sojourn.linux import tc
from sojourn.linux.operations import WantedShape, plan
from sojourn.linux.rtnl import Former, Interface
from sojourn.scenario.qdisc import Qdisc

ADDRESSES = frozenset({"nat", "nonat"})
"""Words of cake about addresses that are translated. On a simulated line none is."""


def untouched(interface: Interface) -> Former:
    """An interface on which nobody has put anything."""
    return Former(interface.name, interface.index, interface.queues, interface.queue_length, (), "")


def shaper_and_leaf(wanted: WantedShape, interface: Interface) -> tuple[str, str]:
    """The words of the shaper, `none` where the discipline shapes itself, and those of the
    discipline. `wanted` has one direction."""
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
