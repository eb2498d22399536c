"""A scenario for a line of which only rates, RTTs and link layer are known.

The queue of such a line is in the modem, out of reach. A slightly slower shaper in front of it
moves the queue to where a discipline can act on it. So each candidate is below a shaper at `SHARE`
of the line's rate, as `sojourn shape` builds it. They are compared with the line as it is: the
modem's own FIFO, at the full rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sojourn.advice.candidates import candidates
from sojourn.linux.operations import LEAVES, WantedShape, plan
from sojourn.linux.rtnl import Interface
from sojourn.linux.simulated import shaper_and_leaf, untouched
from sojourn.scenario import Scenario, loads
from sojourn.scenario.qdisc import LINK_LAYERS, LinkLayer

SHARE = 0.95
"""A shaper's rate as a share of the line's. `sojourn tune` finds the share that a line really
needs."""
UNKNOWN_RTT_NS = (10 * 10**6, 150 * 10**6)
"""RTTs from a server in the same town to one on another continent."""
MODEM = "pfifo limit 1000"
"""The modem's queue: the default of Linux and many devices."""
CALL_BPS = 1_500_000
CALL_SHARE = 8
"""A call uses at most 1 / `CALL_SHARE` of the line."""
DURATION_NS = 30 * 10**9
WARMUP_SHARE = 6
"""The warm-up is 1 / `WARMUP_SHARE` of a run; transfers begin in its first fifth."""
LONG_BPS = 2 * 10**9
"""If the rates of both directions exceed this together, runs are shorter in proportion, because a
run's cost grows with its packets."""
LEAST_DURATION_NS = 3 * 10**9
LEAST_RTTS = 60
"""A run lasts at least this many times the longest RTT, because a window grows once per RTT."""
NO_DELAY_NS = 10_000
MTU = 1500


@dataclass(frozen=True)
class AccessLine:
    """The known properties of the line."""

    up_bps: int
    """The rate from here, including the bytes of the link layer."""
    down_bps: int | None = None
    """The rate to here; None: the same rate, and not shaped."""
    rtt_ns: tuple[int, int] = UNKNOWN_RTT_NS
    """The shortest and the longest RTT without a queue."""
    link: LinkLayer | None = None
    """The bytes that the line adds to a packet; None: packets are counted as Linux counts them."""
    flows: int = 4
    """Transfers that fill each direction."""
    interface: str = "eth0"

    def wanted(self, words: str) -> WantedShape:
        """The shaper with this discipline."""
        down = None if self.down_bps is None else shaped(self.down_bps)
        return WantedShape(shaped(self.up_bps), down, words, self.link)

    @property
    def device(self) -> Interface:
        """The router's interface to the line, for a plan."""
        return Interface(
            name=self.interface,
            index=1,
            kind="ethernet",
            mtu=MTU,
            header_bytes=14,
            queues=1,
            queue_length=1000,
            up=True,
            speed_bps=None,
            offloads=(),
        )

    def commands(self, words: str) -> list[str]:
        """The commands of ip and tc for this discipline."""
        return plan(self.wanted(words), self.device, untouched(self.device)).commands

    @property
    def duration_ns(self) -> int:
        """The length of a run."""
        both = self.up_bps + (self.down_bps or 0)
        least = max(LEAST_DURATION_NS, LEAST_RTTS * self.rtt_ns[1])
        return min(DURATION_NS, max(least, DURATION_NS * LONG_BPS // both))

    @property
    def shortened(self) -> str | None:
        """The message that runs are shorter because the line is fast; None if they are not."""
        if self.duration_ns == DURATION_NS:
            return None
        usual = DURATION_NS // 10**9
        return (
            f"a run lasts {self.duration_ns / 1e9:.3g} s instead of {usual} s, since the line is fast:"
            " longer runs may decide otherwise near a margin\n"
            f'  for longer runs: --set duration="{usual} s" --set warmup="{usual // WARMUP_SHARE} s"'
        )

    def scenario(self) -> Scenario:
        """The line as it is, with transfers that fill it, a call and a ping."""
        return loads(self._text())

    def variants(self, plain: Scenario) -> list[Scenario]:
        """The line as it is, then with each candidate that `sojourn shape` can set. `plain`: the
        result of `scenario`, possibly changed."""
        found = [plain.with_({"label": AS_IT_IS})]
        for candidate in candidates(self.rtt_ns[1]):
            if candidate.words.split()[0] not in (*LEAVES, "cake"):
                continue
            changes: dict[str, str] = {"label": candidate.words}
            for way, bps in self._shaped_ways():
                wanted = WantedShape(bps, None, candidate.words, self.link)
                shaper, leaf = shaper_and_leaf(wanted, self.device)
                changes |= {f"bottleneck.{way}.qdisc": leaf, f"bottleneck.{way}.shaper": shaper}
            found.append(plain.with_(changes))
        return found

    def _shaped_ways(self) -> Iterator[tuple[str, int]]:
        yield "up", shaped(self.up_bps)
        if self.down_bps is not None:
            yield "down", shaped(self.down_bps)

    def _text(self) -> str:
        down = self.down_bps or self.up_bps
        low, high = self.rtt_ns
        rtt = f"{low} ns" if low == high else f"uniform {low} ns .. {high} ns"
        delay = min(NO_DELAY_NS, low // 4)
        layer = (self.link or LINK_LAYERS["linux"]).text
        call = min(CALL_BPS, self.up_bps // CALL_SHARE)
        ways = ["up"] if self.down_bps is None else ["up", "down"]
        warmup = self.duration_ns // WARMUP_SHARE
        start = f"uniform 0 s .. {warmup // 5} ns"
        bulk = "".join(
            f"""
[[flow]]
name = "transfers-{way}"
kind = "bulk"
count = {self.flows}
direction = "{way}"
rtt = "{rtt}"
start = "{start}"
"""
            for way in ways
        )
        return f"""
title = "{self}"
duration = "{self.duration_ns} ns"
warmup = "{warmup} ns"
seeds = 5
[bottleneck]
delay = "{delay} ns"
link_layer = "{layer}"
up.rate = "{self.up_bps} bit/s"
up.qdisc = "{MODEM}"
down.rate = "{down} bit/s"
down.qdisc = "{MODEM}"
{bulk}
[[flow]]
name = "call"
kind = "video"
direction = "up"
rate = "{call} bit/s"
fps = 30
rtt = "{low} ns"
start = "{start}"
[[flow]]
kind = "ping"
interval = "45 ms"
rtt = "{low} ns"
start = "uniform 0 ms .. 45 ms"
"""

    def __str__(self) -> str:
        low, high = (f"{end / 1e6:g}" for end in self.rtt_ns)
        rtt = f"RTT {low} ms" if low == high else f"RTT {low} to {high} ms"
        down = "" if self.down_bps is None else f" up, {mbps(self.down_bps)} down"
        return f"A line of {mbps(self.up_bps)}{down}, {rtt}"


def of_scenario(scenario: Scenario, interface: str) -> AccessLine | None:
    """The line at a scenario's bottleneck, for a router in front of it; None: it has no rate, or
    the scenario has `[[link]]` tables."""
    plain = scenario.variants()[0]
    links = {link.name: link for link in plain.realise(plain.seeds[0]).links}
    ways = [links.get(name) for name in ("up", "down")]
    if scenario.bottleneck is None or any(way is None or not way.rate for way in ways):
        return None
    up, down = (way for way in ways if way is not None)
    return AccessLine(up.rate[0].bps, down.rate[0].bps, link=up.framing, interface=interface)


AS_IT_IS = "as it is"


def shaped(bps: int) -> int:
    """The shaper's rate for a line with this rate."""
    return round(bps * SHARE)


def mbps(bps: int) -> str:
    """A rate in words."""
    return f"{bps / 1e6:g} Mbit/s"
