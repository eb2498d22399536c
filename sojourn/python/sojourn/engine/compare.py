"""One scenario with several queue disciplines at its bottleneck, at every point of its sweep."""

from __future__ import annotations

from collections.abc import Sequence

from sojourn.scenario import Problem, Scenario, ScenarioError


def variants(scenario: Scenario, qdiscs: Sequence[str], link: str | None = None) -> list[Scenario]:
    """The scenario once with each of these disciplines, at each point of its sweep; see
    `contenders`."""
    return list(contenders(scenario, qdiscs, link).variants())


def contenders(scenario: Scenario, qdiscs: Sequence[str], link: str | None = None) -> Scenario:
    """The scenario as a sweep over these disciplines, beside what it sweeps already. They vary
    fastest, so what competes stands together.

    They go to the bottleneck: both ways, except a way that has a discipline of its own; or to one
    `link`, up or down. A scenario made of `[[link]]` tables needs `link`, the name of one. Where
    the scenario sweeps over that discipline itself, these take the place of its values.
    """
    twice = sorted({text for text in qdiscs if qdiscs.count(text) > 1})
    if twice:
        raise _refused(f"named twice: {', '.join(twice)}", "name each queue discipline once")
    return taking_turns(scenario, scenario.variants()[0].qdisc_key(link), qdiscs)


def with_discipline(scenario: Scenario, qdisc: str) -> Scenario:
    """The scenario with this discipline at its bottleneck, both ways except one that has its own."""
    return scenario.with_({scenario.variants()[0].qdisc_key(): qdisc})


def taking_turns(scenario: Scenario, key: str, texts: Sequence[str]) -> Scenario:
    """The scenario as a sweep over these values of a key, beside what it sweeps already. They vary
    fastest."""
    plain = scenario.variants()[0]
    for text in texts:
        # What is wrong with one is told of its words, not of its place in a sweep.
        plain.with_({key: text})
    others = {swept: values for swept, values in scenario.sweep.items() if swept != key}
    # What was there takes no part, nor do notes about it.
    return scenario.with_({key: texts[0]}).with_({"sweep": {**others, key: list(texts)}})


def _refused(message: str, hint: str) -> ScenarioError:
    return ScenarioError([Problem(message, hint)])
