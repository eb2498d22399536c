"""Sizes of packets on the wire, by the framing of a link layer or of a shaper (crates/link,
framing.rs)."""

from __future__ import annotations

import numpy as np

from sojourn import _core
from sojourn.arrays import Ints
from sojourn.scenario.qdisc import LinkLayer, Shaper


def wire_bytes(framing: LinkLayer | Shaper, ip_bytes: Ints) -> Ints:
    """The bytes on the wire of IP packets with these sizes."""
    return _core.wire_bytes(
        framing.overhead_bytes,
        framing.minimum_bytes,
        framing.cells,
        np.asarray(ip_bytes, np.int64),
    )
