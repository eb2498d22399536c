"""One scenario with several queue disciplines at its bottleneck."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sojourn.scenario import Problem, Scenario, ScenarioError


def variants(scenario: Scenario, qdiscs: Sequence[str], link: str | None = None) -> list[Scenario]:
    """The scenario once with each of these disciplines, labelled as they were written.

    They go to the bottleneck: both ways, except a way that has a discipline of its own; or to one
    `link`, up or down. A scenario made of `[[link]]` tables needs `link`, the name of one. A sweep
    over the discipline is what this does instead; other sweeps must be settled first.
    """
    swept = [key for key in scenario.sweep if not key.endswith("qdisc")]
    if swept:
        settled = " ".join(f"--set '{key}={_written(scenario.sweep[key][0])}'" for key in swept)
        raise _refused(
            f"the scenario sweeps over {', '.join(swept)}",
            f"settle that: {settled}; or use sojourn run",
        )
    twice = sorted({text for text in qdiscs if qdiscs.count(text) > 1})
    if twice:
        raise _refused(f"named twice: {', '.join(twice)}", "name each queue discipline once")
    plain = scenario.variants()[0]
    key = _place(plain, link)
    return [plain.with_({"label": text, key: text}) for text in qdiscs]


def _place(scenario: Scenario, link: str | None) -> str:
    """The key to set."""
    both = scenario.bottleneck
    names = (
        [entry.name or f"{entry.source}-{entry.target}" for entry in scenario.links]
        if both is None
        else ["up", "down"]
    )
    if link is not None and link not in names:
        raise _refused(f"no link is called {link!r}", f"links: {', '.join(names)}")
    if link is not None:
        return f"{'link' if both is None else 'bottleneck'}.{link}.qdisc"
    if both is None:
        raise _refused(
            "the scenario has no [bottleneck]", f"say which link: --link {'|'.join(names)}"
        )
    if all(way is not None and way.qdisc is not None for way in (both.up, both.down)):
        raise _refused(
            "up and down each have a qdisc of their own", "say which to replace: --link up|down"
        )
    return "bottleneck.qdisc"


def _written(value: object) -> str:
    """As --set takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def _refused(message: str, hint: str) -> ScenarioError:
    return ScenarioError([Problem(message, hint)])
