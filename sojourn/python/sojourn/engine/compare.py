"""One scenario with several queue disciplines at its bottleneck, at every point of its sweep."""

from __future__ import annotations

from collections.abc import Sequence

from sojourn.scenario import Problem, Scenario, ScenarioError


def variants(scenario: Scenario, qdiscs: Sequence[str], link: str | None = None) -> list[Scenario]:
    """Returns the scenario with each of these disciplines, at each point of its sweep; see
    `contenders`.

    >>> import sojourn
    >>> [one.label for one in sojourn.variants(sojourn.load("home-uplink"), ["pfifo", "codel"])]
    ['pfifo', 'codel']
    """
    return list(contenders(scenario, qdiscs, link).variants())


def contenders(scenario: Scenario, qdiscs: Sequence[str], link: str | None = None) -> Scenario:
    """Returns the scenario as a sweep over these disciplines, combined with its own sweep. The
    disciplines vary fastest, so that compared variants follow each other.

    They replace the bottleneck's discipline in both directions, except in a direction that has a
    discipline of its own. With `link` they replace the discipline of that link alone: "up", "down",
    or the name of a `[[link]]` table, which a scenario made of such tables needs. If the scenario
    sweeps over the replaced discipline, they replace the sweep's values.
    """
    twice = sorted({text for text in qdiscs if qdiscs.count(text) > 1})
    if twice:
        raise _refused(f"named twice: {', '.join(twice)}", "name each queue discipline once")
    return taking_turns(scenario, scenario.variants()[0].qdisc_key(link), qdiscs)


def with_discipline(scenario: Scenario, qdisc: str) -> Scenario:
    """Returns the scenario with this discipline at its bottleneck, in both directions except one
    that has its own."""
    return scenario.with_({scenario.variants()[0].qdisc_key(): qdisc})


def taking_turns(scenario: Scenario, key: str, texts: Sequence[str]) -> Scenario:
    """Returns the scenario as a sweep over these values of a key, combined with its own sweep. They
    vary fastest."""
    plain = scenario.variants()[0]
    for text in texts:
        # Each value is checked alone, so that an error message quotes the value and not its place
        # in a sweep.
        plain.with_({key: text})
    others = {swept: values for swept, values in scenario.sweep.items() if swept != key}
    # The first value replaces the old one, and any notes about it, before the sweep is set.
    return scenario.with_({key: texts[0]}).with_({"sweep": {**others, key: list(texts)}})


def _refused(message: str, hint: str) -> ScenarioError:
    return ScenarioError([Problem(message, hint)])
