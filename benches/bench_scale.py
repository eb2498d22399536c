"""Generates large scenarios for bench.py: many flows, fast links, many links, an hour.

With many flows the share per flow stays at 1 Mbit/s: 8 packets in 100 ms. The queue's limit grows
with the rate, so that CoDel decides and not the limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from callgrind import Lengths

BRANCHES, LEAVES = 10, 100
HOPS = 100


@dataclass(frozen=True)
class Scale:
    """A row of the table."""

    name: str
    title: str
    text: str
    lengths: Lengths | None
    """The lengths for counting instructions; None where counting would take too long."""
    by_name_only: bool = False
    """A case that finds a limit runs only when it is named."""


def many_flows(count: int, seconds: int) -> str:
    return f"""
title = "{count} Reno flows over CoDel, 1 Mbit/s each"
duration = "{seconds} s"
warmup = "{seconds // 10} s"

[bottleneck]
rate = "{count} Mbit/s"
delay = "10 ms"
qdisc = "codel limit {100 * count}"

[[flow]]
kind = "bulk"
count = {count}
rtt = "100 ms"
start = "uniform 0 s .. 1 s"
congestion = "reno"
"""


def fast_link(gbps: int, seconds: int) -> str:
    # At 20 ms a receive buffer of 6 MiB limits a flow to 1.6 Gbit/s: ten flows fill 10 Gbit/s.
    return f"""
title = "10 CUBIC flows over fq_codel, {gbps} Gbit/s"
duration = "{seconds} s"
warmup = "{seconds // 10} s"

[bottleneck]
rate = "{gbps} Gbit/s"
delay = "5 ms"
qdisc = "fq_codel"

[[flow]]
kind = "bulk"
count = 10
rtt = "20 ms"
start = "uniform 0 s .. 1 s"
congestion = "cubic"
"""


def _link(source: str, target: str, rate: str, delay: str) -> str:
    return f"""
[[link]]
from = "{source}"
to = "{target}"
rate = "{rate}"
delay = "{delay}"
qdisc = "fq_codel"
"""


def chain(hops: int) -> str:
    links = (_link(f"n{i}", f"n{i + 1}", "100 Mbit/s", "200 us") for i in range(hops))
    return f"""
title = "10 CUBIC flows through {hops} links of 100 Mbit/s"
duration = "30 s"
warmup = "3 s"
{"".join(links)}
[[flow]]
kind = "bulk"
from = "n0"
to = "n{hops}"
count = 10
rtt = "50 ms"
start = "uniform 0 s .. 1 s"
congestion = "cubic"
"""


def tree(branches: int, leaves: int) -> str:
    """Builds a server, branches and leaves. Each leaf is the bottleneck of one download."""
    links = [_link("server", "root", "20 Gbit/s", "5 ms")]
    flows = []
    for i in range(branches):
        links.append(_link("root", f"b{i}", "2 Gbit/s", "2 ms"))
        for j in range(leaves):
            leaf = f"b{i}l{j}"
            links.append(_link(f"b{i}", leaf, "10 Mbit/s", "3 ms"))
            flows.append(f"""
[[flow]]
kind = "bulk"
name = "{leaf}"
from = "server"
to = "{leaf}"
rtt = "{20 + (i * leaves + j) % 60} ms"
start = "{i * leaves + j} ms"
congestion = "cubic"
""")
    return f"""
title = "A tree of {branches * leaves} leaves of 10 Mbit/s, a download each"
duration = "10 s"
warmup = "1 s"
{"".join(links)}{"".join(flows)}"""


def all_cases(home_line: str) -> list[Scale]:
    """Returns all cases. `home_line` is the text of an hour of scenarios/home-uplink.toml."""
    flows = [
        (10, 600, Lengths(2, 10, 40)),
        (100, 120, Lengths(2, 5, 15)),
        (1000, 30, Lengths(1, 3, 5)),
        (10_000, 10, Lengths(1, 2, 3)),
    ]
    return [
        *(
            Scale(
                f"flows-{count}",
                f"{count} Reno flows, CoDel, 1 Mbit/s each",
                many_flows(count, seconds),
                lengths,
            )
            for count, seconds, lengths in flows
        ),
        Scale(
            "rate-1g",
            "10 CUBIC flows, fq_codel, 1 Gbit/s",
            fast_link(1, 30),
            Lengths(1, 2, 4),
        ),
        Scale(
            "rate-10g",
            "10 CUBIC flows, fq_codel, 10 Gbit/s",
            fast_link(10, 10),
            Lengths(1, 2, 3),
        ),
        Scale(
            f"chain-{HOPS}",
            f"10 CUBIC flows through {HOPS} links of 100 Mbit/s",
            chain(HOPS),
            Lengths(1, 3, 6),
        ),
        Scale(
            f"tree-{BRANCHES * LEAVES}",
            f"a tree of {BRANCHES * LEAVES} leaves of 10 Mbit/s, a CUBIC download each",
            tree(BRANCHES, LEAVES),
            Lengths(1, 2, 3),
        ),
        Scale(
            "hour",
            "an hour of a home line (scenarios/home-uplink.toml)",
            home_line,
            Lengths(5, 30, 60),
        ),
        Scale(
            "flows-100000",
            "100 000 Reno flows, CoDel, 1 Mbit/s each",
            many_flows(100_000, 10),
            None,
            by_name_only=True,
        ),
        Scale(
            "flows-100001",
            "one flow more than the scenario language has",
            many_flows(100_001, 10),
            None,
            by_name_only=True,
        ),
    ]
