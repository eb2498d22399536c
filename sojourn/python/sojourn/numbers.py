"""The shapes of numbers: what crates/metrics makes of a seed's tables, and the same over seeds.

`Numbers[N]`: each number is an N. Of one seed (`SeedNumbers`) a number is a float, NaN where it
can't be said, or an int; over seeds (`OverSeeds`) it is a `MeanAndInterval`. In JSON NaN is null: N
is `Known` there.
"""

from __future__ import annotations

from typing import Generic, NotRequired, TypeAlias, TypeVar

from typing_extensions import TypedDict

N = TypeVar("N")
Known: TypeAlias = float | None
"""Null: it can't be said."""


class MeanAndInterval(TypedDict, Generic[N]):
    """A mean over seeds, and half the width of its 95 % confidence interval (Student's t)."""

    mean: N
    ci95: N


class Percentiles(TypedDict, Generic[N]):
    """Of samples, ms."""

    min: N
    mean: N
    p50: N
    p95: N
    p99: N
    max: N


class Times(TypedDict, Generic[N]):
    """Of all packets, ms."""

    mean: N
    p50: N
    p95: N
    p99: N
    max: N


class MeanAndMax(TypedDict, Generic[N]):
    """A mean over time or packets, and the largest."""

    mean: N
    max: N


class RingNumbers(TypedDict, Generic[N]):
    """The driver's ring below a queue."""

    sojourn_ms: MeanAndMax[N]
    """From the queue to the last bit on the wire."""
    packets: MeanAndMax[N]
    bql_limit_bytes: N | None
    """At the end; None: no BQL."""


class QueueNumbers(TypedDict, Generic[N]):
    """A link's queue."""

    link: str
    qdisc: str
    utilisation: N
    """Bits on the wire / bits that the link could have carried."""
    arrived_packets: N
    dropped_packets: N
    marked_packets: N
    drop_rate: N
    """Dropped over arrived packets."""
    lost_packets: N
    """By the wire."""
    drops: dict[str, N]
    """By cause."""
    marks: dict[str, N]
    """By cause."""
    sojourn_ms: Times[N]
    backlog_packets: MeanAndMax[N]
    ring: RingNumbers[N] | None
    """None: no ring."""
    goodput_mbps: N
    """Of the flows that cross it."""
    jain: N
    """Of the endless TCP flows that cross it."""


class TransferNumbers(TypedDict, Generic[N]):
    """Transfers that began after the warm-up and were completed."""

    completed: N
    completion_ms: Percentiles[N]


class FlowNumbers(TypedDict, Generic[N]):
    """A flow."""

    name: str
    kind: str
    congestion: str | None
    """None: not TCP."""
    goodput_mbps: N
    """Application bytes delivered."""
    delivered_bytes: N
    sent_packets: N
    loss_rate: N
    """Lost / (lost + received) packets."""
    retransmits: N
    timeouts: N
    base_rtt_ms: N
    """Of a full packet and its reply through empty queues; of datagrams one way."""
    rtt_ms: Percentiles[N]
    """TCP's own samples; one-way delays of datagrams."""
    transfers: NotRequired[TransferNumbers[N]]
    """Of flows that transfer a size."""


class GroupNumbers(TypedDict, Generic[N]):
    """The flows of a [[flow]] entry as one."""

    name: str
    flows: N
    """How many."""
    kind: str
    congestion: str | None
    goodput_mbps: N
    """Of all."""
    transfers: NotRequired[TransferNumbers[N]]
    late_rate: NotRequired[N]
    """Of datagrams: the share that came more than 150 ms after it was sent, or never."""
    mos: NotRequired[N]
    """Of calls: how they sound, 1 to 4.5 (ITU-T G.107), at the playout delay that suits them best."""


class ProbeNumbers(TypedDict, Generic[N]):
    """A ping flow."""

    name: str
    sent: N
    received: N
    loss_rate: N
    base_rtt_ms: N
    rtt_ms: Percentiles[N]


class Numbers(TypedDict, Generic[N]):
    """Everything of a seed."""

    seed: NotRequired[int]
    """Not over seeds."""
    queues: list[QueueNumbers[N]]
    flows: list[FlowNumbers[N]]
    groups: list[GroupNumbers[N]]
    probes: list[ProbeNumbers[N]]
    jain: N
    """Over the endless TCP flows."""
    goodput_mbps: N
    """Over all flows."""
    packets: N
    """Data packets delivered."""
    cpu_s: N
    """CPU seconds that the engine took."""


SeedNumbers: TypeAlias = Numbers[float]
OverSeeds: TypeAlias = Numbers[MeanAndInterval[float]]
