"""The candidates: their words, their place in a criterion's scenario, and the common buffer.

RFC 7928 section 3.2 asks for the same buffer under every discipline. A suite's scenario states the
buffer as the limit of the discipline that a candidate replaces. Each candidate that has a limit
gets this one, unless its words set another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sojourn.engine import check, taking_turns
from sojourn.errors import UserError
from sojourn.evaluation.suite import Criterion, Suite, names, read
from sojourn.own.compiled import is_control
from sojourn.scenario import Scenario, ScenarioError
from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.qdisc import QDISCS, is_own
from sojourn.units import nearest

FULL_PACKET = 1514
"""Bytes of a full packet, for limits in bytes."""
REST = "the rest"
"""A word in a suite's `others`. It stands for every candidate that sojourn has and `others` does
not name."""


@dataclass(frozen=True)
class LeftOut:
    """A candidate of a suite that is not evaluated."""

    candidate: str
    why: str


def suite_of(words: Sequence[str]) -> str:
    """The suite of sojourn for these candidates; if several fit, the first by name.

    Raises:
        UserError: a word is neither a discipline nor a congestion control, or there are both.
    """
    kinds = {_kind(word) for word in words}
    if len(kinds) > 1:
        raise UserError(
            "queue disciplines and congestion controls have criteria of their own",
            "evaluate one kind at a time",
        )
    kind = kinds.pop() if kinds else "qdisc"
    return next(name for name in names() if read(name).head.of == kind)


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
    """The baseline first, then these candidates.

    Raises:
        UserError: a candidate is not of the suite's kind.
    """
    for word in words:
        if _kind(word) != suite.head.of:
            kind = {"qdisc": "queue disciplines", "congestion": "congestion controls"}
            raise UserError(
                f"{suite.name} is for {kind[suite.head.of]}, and {word} is not one",
                "name the suite that fits: --suite",
            )
    return list(dict.fromkeys((suite.head.baseline, *words)))


def all_of(
    suite: Suite, able: Sequence[Criterion], engine: str
) -> tuple[list[str], tuple[LeftOut, ...]]:
    """The baseline and the suite's own candidates that this engine can run.

    Args:
        able: the criteria that the engine can run.

    Raises:
        UserError: the suite names something that is not a candidate.
    """
    named = [word for word in suite.head.others if word != REST]
    chosen(suite, named)  # Refuses a name that is not a candidate.
    taken, left_out = [suite.head.baseline], []
    for word in _own(suite):
        try:
            check(contending(suite, able[0], [word]), engine)
        except UserError as refused:
            if word in named and isinstance(refused, ScenarioError):
                raise
            left_out.append(LeftOut(word, _why(refused, word, engine)))
        else:
            taken.append(word)
    return taken, tuple(left_out)


def _own(suite: Suite) -> list[str]:
    """The suite's candidates, each once. `the rest` stands for those that the suite does not
    name."""
    named = [suite.head.baseline, *suite.head.others]
    kinds = {word.partition(" ")[0] for word in named if word != REST}
    catalogue: Mapping[str, Any] = QDISCS if suite.head.of == "qdisc" else CONGESTION
    rest = [kind for kind in catalogue if kind not in kinds]
    found = [each for word in suite.head.others for each in (rest if word == REST else [word])]
    return [each for each in dict.fromkeys(found) if each != suite.head.baseline]


def _why(refused: UserError, word: str, engine: str) -> str:
    """The reason why an engine can't run a candidate, without the place in the scenario."""
    kind = word.partition(" ")[0]
    if kind in QDISCS:
        record = QDISCS[kind]
        if record.for_each_queue:
            return "it is for a card with several queues, and each link here has one"
        simulated, in_linux = record.simulated, record.in_linux()
    else:
        simulated, in_linux = CONGESTION[kind].simulated, CONGESTION[kind].in_linux
    if engine == "sim" and not simulated:
        return "only Linux has it"
    if engine != "sim" and not in_linux:
        return "only the simulator has it"
    if isinstance(refused, ScenarioError):
        return f"it has parameters without defaults: {refused.problems[0].message}"
    return refused.problem.rpartition(": ")[2]


def place(suite: Suite, criterion: Criterion) -> str:
    """The key of the scenario that has the candidate."""
    return criterion.at or suite.head.at


def contending(suite: Suite, criterion: Criterion, words: Sequence[str]) -> list[Scenario]:
    """A criterion's scenario with each candidate, at each point of its own sweep.

    A candidate that needs ECN has only the points with ECN.
    """
    scenario, at = suite.scenario(criterion), place(suite, criterion)
    sweeps: list[tuple[Mapping[str, Any], list[str]]] = []
    for word in values(suite, criterion, scenario, words):
        own = _sweep(scenario, at, word)
        same = next((beside for sweep, beside in sweeps if sweep == own), None)
        if same is None:
            sweeps.append((own, [word]))
        else:
            same.append(word)
    return [
        variant
        for sweep, beside in sweeps
        for variant in taking_turns(scenario.with_({"sweep": sweep}), at, beside).variants()
    ]


def _sweep(scenario: Scenario, at: str, word: str) -> Mapping[str, Any]:
    """The scenario's sweep without the points that this candidate refuses because they lack ECN."""
    plain = scenario.variants()[0]

    def refused(key: str) -> bool:
        try:
            plain.with_({key: False}).with_({at: word})
        except ScenarioError:
            return True
        return False

    def allowed(key: str, swept: Sequence[Any]) -> Sequence[Any]:
        if not (key.endswith(".ecn") and False in swept and refused(key)):
            return swept
        return [value for value in swept if value is not False]

    return {key: allowed(key, swept) for key, swept in scenario.sweep.items()}


def values(
    suite: Suite, criterion: Criterion, scenario: Scenario, words: Sequence[str]
) -> list[str]:
    """The candidates as values of this scenario; disciplines get the buffer.

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
            'write it into the discipline that candidates replace: qdisc = "pfifo limit 83"',
        )
    packets = int(rest[1])
    found = []
    for word in words:
        if word == "red":
            # red's parameters depend on the link (tc-red(8)). Its limit is in bytes, and at least
            # its max.
            plain = scenario.variants()[0].with_({place(suite, criterion): word})
            full = _discipline(plain, link).split()
            most = int(full[full.index("max") + 1])
            full[full.index("limit") + 1] = str(max(packets * FULL_PACKET, most))
            found.append(" ".join(full))
        else:
            found.append(with_limit(word, packets))
    return found


def _discipline(scenario: Scenario, link: str) -> str:
    """The discipline of the link under study, in tc's syntax."""
    realised = scenario.realise(scenario.seeds[0])
    known = {each.name: each.qdisc.text for each in realised.links}
    if link not in known:
        raise UserError(
            f"{scenario.title}: no link is called {link!r}",
            f"links: {', '.join(known)}; write one of them in the suite or the criterion: link = ...",
        )
    return known[link]


def with_limit(words: str, packets: int) -> str:
    """A discipline with a limit in packets, unless its words set a limit or it has none.

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
