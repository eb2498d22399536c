"""One scenario with several queue disciplines at its bottleneck."""

from __future__ import annotations

from collections.abc import Sequence

from sojourn.scenario import Problem, Scenario, ScenarioError
from sojourn.scenario.topology import Line, links_of

AVPKT = 1000
"""tc-red(8): "1000 is a good value"."""
TOLERATED_NS = 20_000_000
"""The queueing delay from which RED begins to drop."""
UNLIMITED_BPS = 10_000_000_000
LEAST_MIN_PACKETS = 5
"""Below a threshold of about five packets RED punishes ordinary bursts (Floyd and Jacobson 1993 use 5)."""


def recommended(qdisc: str, rate_bps: int) -> str:
    """`red` without sizes, completed as tc-red(8) recommends for a link of this rate; other text unchanged.

    min: the tolerated delay times the rate, but five packets at least. max: three times min. limit: four times max.
    burst: (min + min + max) / (3 avpkt). At 20 Mbit/s: 20 ms are 50000 bytes, so min 50000, max 150000,
    limit 600000, burst 83.
    """
    words = qdisc.replace("=", " ").split()
    if not words or words[0] != "red" or {"variant", "limit", "min", "max", "avpkt", "burst"} & set(words):
        return qdisc
    low = max(rate_bps * TOLERATED_NS // (8 * 10**9), LEAST_MIN_PACKETS * AVPKT)
    high = 3 * low
    sizes = f"limit {4 * high} min {low} max {high} avpkt {AVPKT} burst {(2 * low + high) // (3 * AVPKT)}"
    bandwidth = "" if "bandwidth" in words else f" bandwidth {rate_bps}bit"
    return " ".join(["red", f"{sizes}{bandwidth}", *words[1:]])


def variants(scenario: Scenario, qdiscs: Sequence[str], link: str | None = None) -> list[Scenario]:
    """The scenario once with each of these disciplines, labelled as they were written.

    They go to the bottleneck: both ways, except a way that has a discipline of its own; or to one `link`, up or down. A
    scenario made of `[[link]]` tables needs `link`, the name of one. A sweep over the discipline is what this does instead; other sweeps must be
    settled first.
    """
    swept = [key for key in scenario.sweep if not key.endswith("qdisc")]
    if swept:
        raise _refused(
            f"the scenario sweeps over {', '.join(swept)}", "settle that with --set, or use sojourn run"
        )
    twice = sorted({text for text in qdiscs if qdiscs.count(text) > 1})
    if twice:
        raise _refused(f"named twice: {', '.join(twice)}", "name each queue discipline once")
    plain = scenario.variants()[0]
    places = _places(plain, link)
    return [
        plain.with_(label=text, **{key: recommended(text, rate_bps) for key, rate_bps in places.items()})
        for text in qdiscs
    ]


def _places(scenario: Scenario, link: str | None) -> dict[str, int]:
    """The keys to set, each with the rate of its link."""
    rates = {each.name: _bps(each.line) for each in links_of(scenario)}
    both = scenario.bottleneck
    names = (
        [entry.name or f"{entry.source}-{entry.target}" for entry in scenario.links]
        if both is None
        else ["up", "down"]
    )
    if link is not None and link not in names:
        raise _refused(f"no link is called {link!r}", f"links: {', '.join(names)}")
    if link is not None:
        return {f"{'link' if both is None else 'bottleneck'}.{link}.qdisc": rates[link]}
    if both is None:
        raise _refused("the scenario has no [bottleneck]", f"say which link: --link {'|'.join(names)}")
    own = {
        name
        for name, way in (("up", both.up), ("down", both.down))
        if way is not None and way.qdisc is not None
    }
    if len(own) == 2:
        raise _refused("up and down each have a qdisc of their own", "say which to replace: --link up|down")
    if rates["up"] == rates["down"]:
        return {"bottleneck.qdisc": rates["up"]}
    return {f"bottleneck.{name}.qdisc": rates[name] for name in names if name not in own}


def _bps(line: Line) -> int:
    # A link without a limit has no queue: whatever its discipline is set to never acts.
    fastest = max((bps for _, bps in line.steps), default=UNLIMITED_BPS)
    return fastest if line.shaper is None else min(fastest, line.shaper.bps)


def _refused(message: str, hint: str) -> ScenarioError:
    return ScenarioError([Problem(message, hint)])
