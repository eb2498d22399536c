"""The types of numbers: those of a seed, computed in crates/metrics, and those over seeds.

In `Numbers[N]` each number is an N. For one seed (`SeedNumbers`) a number is an int or a float, NaN
if unknown; over seeds (`OverSeeds`) it is a `MeanAndInterval`. In JSON NaN is null: N is `Known`
there.
"""

from __future__ import annotations

from typing import Generic, NotRequired, TypeAlias, TypeVar

from typing_extensions import TypedDict

N = TypeVar("N")
Known: TypeAlias = float | None
"""Null: unknown."""


class MeanAndInterval(TypedDict, Generic[N]):
    """A mean over seeds, and half the width of its 95 % confidence interval (Student's t)."""

    mean: N
    ci95: N


class Percentiles(TypedDict, Generic[N]):
    """Statistics of samples, ms."""

    min: N
    mean: N
    p50: N
    p95: N
    p99: N
    max: N


class Times(TypedDict, Generic[N]):
    """Statistics of all packets, ms."""

    mean: N
    p50: N
    p95: N
    p99: N
    max: N


class MeanAndMax(TypedDict, Generic[N]):
    """A mean over time or packets, and the maximum."""

    mean: N
    max: N


class RingNumbers(TypedDict, Generic[N]):
    """The driver's ring below a queue."""

    sojourn_ms: MeanAndMax[N]
    """The time from the queue to the last bit on the wire."""
    packets: MeanAndMax[N]
    bql_limit_bytes: N | None
    """The byte limit at the end; None: no BQL."""


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
    """Packets lost on the wire."""
    drops: dict[str, N]
    """By cause."""
    marks: dict[str, N]
    """By cause."""
    sojourn_ms: Times[N]
    backlog_packets: MeanAndMax[N]
    ring: RingNumbers[N] | None
    """None: no ring."""
    goodput_mbps: N
    """Goodput of the flows that cross it."""
    jain: N
    """Jain's index of the endless TCP flows that cross it."""


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
    """Application bytes delivered; of kind `program` the payload on the wire, repeated bytes too."""
    delivered_bytes: N
    sent_packets: N
    loss_rate: N
    """Lost / (lost + received) packets."""
    retransmits: N
    timeouts: N
    base_rtt_ms: N
    """The RTT of a full packet and its reply through empty queues; for datagrams one way."""
    rtt_ms: Percentiles[N]
    """TCP's own samples; for datagrams, one-way delays."""
    transfers: NotRequired[TransferNumbers[N]]
    """For flows that transfer a size."""


class GroupNumbers(TypedDict, Generic[N]):
    """All flows of a [[flow]] entry together."""

    name: str
    flows: N
    """The number of flows."""
    kind: str
    congestion: str | None
    goodput_mbps: N
    """The goodput of all flows."""
    transfers: NotRequired[TransferNumbers[N]]
    late_rate: NotRequired[N]
    """For datagrams: the share that arrived more than 150 ms after it was sent, or never."""
    mos: NotRequired[N]
    """For calls: the sound quality, 1 to 4.5 (ITU-T G.107), at the best playout delay."""


class ProbeNumbers(TypedDict, Generic[N]):
    """A ping flow."""

    name: str
    sent: N
    received: N
    loss_rate: N
    base_rtt_ms: N
    rtt_ms: Percentiles[N]


class Numbers(TypedDict, Generic[N]):
    """All numbers of a seed."""

    seed: NotRequired[int]
    """Only for one seed."""
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
