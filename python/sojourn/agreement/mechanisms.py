"""What simulator and kernel are each to run, so that their numbers must agree.

What Linux is known to do otherwise than its manual page says is a `Mechanism`: it names the
scenarios by a predicate, and what the simulator runs in their place. It excuses no number: with it
in place all of them must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sojourn.scenario import Scenario


@dataclass(frozen=True)
class Mechanism:
    """Something that Linux does otherwise than its manual page says, and that the simulator, which
    does as it says, can be told to do."""

    name: str
    says: str
    """What Linux does."""
    evidence: str
    """The experiment that showed it."""
    acts_on: Callable[[Sequence[str]], bool]
    """Whether a discipline, in tc's words, is one of those it acts on."""
    instead: Callable[[Sequence[str]], Sequence[str]]
    """The words of what the kernel then is, for the simulator."""


ASLEEP = Mechanism(
    name="red-adaptive-asleep",
    says="tc 6.1 sets red's `adaptive` where Linux reports it but does not start the timer by it: it is red without the word",
    evidence="with the flag put where the kernel looks (the cases `awake`) max_p moves, and agrees with ours",
    acts_on=lambda words: (
        words[0] == "red" and "adaptive" in words and not {"ns2", "ns3"} & set(words)
    ),
    instead=lambda words: [word for word in words if word != "adaptive"],
)
MECHANISMS = (ASLEEP,)


@dataclass(frozen=True)
class Sides:
    """A scenario as each side is to run it."""

    ours: Scenario
    theirs: Scenario
    setting: Literal["", "asleep", "awake"] = ""
    """Of red's `adaptive`: as tc sets it, or put where the kernel looks for it. Empty: it does not
    occur."""

    @property
    def awake(self) -> bool:
        """Whether the kernel's side needs the flag put where the kernel looks."""
        return self.setting == "awake"


def sides(variant: Scenario) -> tuple[Sides, ...]:
    """The ways to hold a scenario (not a sweep) against the kernel: one, or two where a mechanism
    acts on one of its disciplines.

    The first is the kernel as tc sets it, beside the simulator told to do as it does; the second is
    both as the manual page says.
    """
    instead = {
        key: changed
        for key, qdisc in _disciplines(variant)
        if (changed := _instead(qdisc)) != qdisc
    }
    if not instead:
        return (Sides(variant, variant),)
    names = {
        setting: f"{variant.label or variant.title}, {setting}" for setting in ("asleep", "awake")
    }
    asleep, awake = (variant.with_(label=name) for name in names.values())
    return (Sides(asleep.with_(instead), asleep, "asleep"), Sides(awake, awake, "awake"))


def _disciplines(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The dotted key of each discipline that is written down, and its words."""
    document = scenario.document()
    tables: dict[str, Mapping[str, Any]] = {
        f"link.{at}": link for at, link in enumerate(document.get("link", ()))
    }
    if bottleneck := document.get("bottleneck"):
        ways = {f"bottleneck.{way}": bottleneck[way] for way in ("down", "up") if way in bottleneck}
        tables |= {"bottleneck": bottleneck, **ways}
    for key, table in tables.items():
        if "qdisc" in table:
            yield f"{key}.qdisc", str(table["qdisc"])


def _instead(qdisc: str) -> str:
    words: Sequence[str] = qdisc.split()
    for mechanism in MECHANISMS:
        if mechanism.acts_on(words):
            words = mechanism.instead(words)
    return " ".join(words)
