"""What is evaluated: the words of a candidate, its place in a criterion's scenario, and the buffer
that all disciplines share.

RFC 7928 section 3.2 asks for the same buffer under every discipline. A scenario of a suite says it
as the limit of the discipline that gives way, and each candidate that has a limit and does not say
its own gets that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sojourn.engine import taking_turns
from sojourn.errors import UserError
from sojourn.evaluation.suite import Criterion, Suite
from sojourn.own.compiled import is_control
from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.qdisc import QDISCS, is_own
from sojourn.units import nearest

FULL_PACKET = 1514
"""Bytes of a packet, for limits in bytes."""


def suite_of(words: Sequence[str]) -> str:
    """The suite of ours that these candidates are for.

    Raises:
        UserError: a word is neither a discipline nor a congestion control, or there are both.
    """
    kinds = {_kind(word) for word in words}
    if len(kinds) > 1:
        raise UserError(
            "queue disciplines and congestion controls have criteria of their own",
            "evaluate one kind at a time",
        )
    return "rfc9743" if kinds == {"congestion"} else "rfc7928"


def _kind(word: str) -> str:
    if is_own(word):
        return "congestion" if is_control(word) else "qdisc"
    if word.partition(" ")[0] in QDISCS:
        return "qdisc"
    if word in CONGESTION:
        return "congestion"
    guess = nearest(word, [*QDISCS, *CONGESTION])
    raise UserError(
        f"{word!r} is neither a queue discipline nor a congestion control",
        f"did you mean {guess}?" if guess else "sojourn list shows both",
    )


def chosen(suite: Suite, words: Sequence[str]) -> list[str]:
    """The baseline first, then these candidates, or the suite's own.

    Raises:
        UserError: one is of another kind than the suite is of.
    """
    for word in words:
        if _kind(word) != suite.head.of:
            kind = {"qdisc": "queue disciplines", "congestion": "congestion controls"}
            raise UserError(
                f"{suite.name} is of {kind[suite.head.of]}, and {word} is none",
                "name the suite that fits: --suite",
            )
    return list(dict.fromkeys((suite.head.baseline, *(words or suite.head.others))))


def place(suite: Suite, criterion: Criterion) -> str:
    """The key of the scenario that a candidate takes."""
    return criterion.at or suite.head.at


def contending(suite: Suite, criterion: Criterion, words: Sequence[str]) -> Scenario:
    """A criterion's scenario as a sweep over the candidates, beside what it sweeps itself.

    Where it sweeps over ECN and a candidate does not go without, all have ECN.
    """
    scenario, at = suite.scenario(criterion), place(suite, criterion)
    given = values(suite, criterion, scenario, words)
    for key, swept in scenario.sweep.items():
        without = {key: False}
        if key.endswith(".ecn") and False in swept and _is_refused(scenario, at, given, without):
            kept = [value for value in swept if value is not False]
            scenario = scenario.with_({"sweep": {**scenario.sweep, key: kept}})
    return taking_turns(scenario, at, given)


def _is_refused(
    scenario: Scenario, at: str, words: Sequence[str], changes: Mapping[str, object]
) -> bool:
    """Whether these changes are refused of one of the candidates, which is taken without them."""
    plain = scenario.variants()[0].with_(changes)
    for word in words:
        try:
            plain.with_({at: word})
        except ScenarioError:
            return True
    return False


def values(
    suite: Suite, criterion: Criterion, scenario: Scenario, words: Sequence[str]
) -> list[str]:
    """The candidates as this scenario has them: a discipline with the buffer.

    Raises:
        UserError: the scenario states no buffer.
    """
    if suite.head.of != "qdisc":
        return list(words)
    link = criterion.link or suite.head.link
    text = _discipline(scenario.variants()[0], link)
    kind, *rest = text.split()
    if kind != "pfifo" or rest[:1] != ["limit"]:
        raise UserError(
            f"{scenario.title}: {text} states no buffer",
            'the discipline that gives way says it: qdisc = "pfifo limit 83"',
        )
    packets = int(rest[1])
    found = []
    for word in words:
        if word == "red":
            # Its parameters depend on the link (tc-red(8)), its limit is in bytes, and no less
            # than its max.
            plain = scenario.variants()[0].with_({place(suite, criterion): word})
            full = _discipline(plain, link).split()
            most = int(full[full.index("max") + 1])
            full[full.index("limit") + 1] = str(max(packets * FULL_PACKET, most))
            found.append(" ".join(full))
        else:
            found.append(with_limit(word, packets))
    return found


def _discipline(scenario: Scenario, link: str) -> str:
    """That of the link under study, in tc's words."""
    realised = scenario.realise(scenario.seeds[0])
    known = {each.name: each.qdisc.text for each in realised.links}
    if link not in known:
        raise UserError(
            f"{scenario.title}: no link is called {link!r}",
            f"links: {', '.join(known)}; the suite or the criterion says which: link = ...",
        )
    return known[link]


def with_limit(words: str, packets: int) -> str:
    """A discipline with a limit of so many packets, unless it says its own or has none.

    "codel target 20ms", 83: "codel limit 83 target 20ms".
    """
    kind, *rest = words.split()
    if is_own(words):
        return words if "limit" in rest else f"{words} limit {packets}"
    record = QDISCS[kind]
    variant = rest[rest.index("variant") + 1] if "variant" in rest[:-1] else record.variants[0]
    kinds = dict(record.words(variant)) if variant in record.variants else {}
    if "limit" in rest or "limit" not in kinds or kind == "red":
        return words
    amount = packets if kinds["limit"] == "PACKETS" else packets * FULL_PACKET
    return " ".join((kind, "limit", str(amount), *rest))
