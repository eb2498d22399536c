"""The model: BBR beside loss-based flows in a full FIFO.

BBR fills its cap of two products of its bandwidth and its RTT. It measures the RTT while its own
packets have left the queue and the others' have not. A loss-based flow's part p of the queue
follows from that (equation 9). Every ten seconds BBR stops until its packets have left the queue,
and for another 200 ms and a round trip (equations 10 and 11)."""

from __future__ import annotations

PROBE_S = 10.0
PAUSE_S = 0.2
IN_PROBE = 4
"""Packets that a flow has in flight in ProbeRTT."""


def share(
    depth: float,
    bdp_packets: float,
    rtt_s: float,
    flows: int = 1,
    *,
    full: float = 1.0,
    seen: float = 1.0,
    kept: float | None = None,
) -> float:
    """The share of the link that `flows` flows of BBR have together, by the depth of the FIFO in
    bandwidth-delay products.

    The model assumes three measurable factors to be one. `full` is the mean backlog over the
    queue's limit. `seen` is the backlog when BBR measures the RTT, over the mean backlog of the
    other flows. `kept` is BBR's packets in flight over twice the product of its rate and that RTT,
    pauses included.
    """
    queue = full * depth * bdp_packets
    measured = (1 + full * depth) / (2 * (kept or 1.0))
    others = max(0.0, ((measured - 1) * bdp_packets / seen - IN_PROBE * flows) / queue)
    pause = 0.0 if kept else (depth * rtt_s + PAUSE_S + rtt_s) / PROBE_S
    return max(0.0, 1 - others) * max(0.0, 1 - pause)
