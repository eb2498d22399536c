"""Finds what the simulator and the kernel must each run so that their numbers agree.

A `Mechanism` describes a known difference of Linux from its manual page. It selects the affected
scenarios by a predicate, and has the simulator run something else in their place. It excuses no
number: with it, all numbers must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sojourn.scenario import Scenario
from sojourn.scenario.qdisc import Qdisc, is_own


@dataclass(frozen=True)
class Mechanism:
    """A difference of Linux from its manual page. The simulator follows the page, and can be
    configured to behave like Linux."""

    name: str
    says: str
    """What Linux does."""
    evidence: str
    """The experiment that showed it."""
    acts_on: Callable[[Sequence[str]], bool]
    """Whether a discipline, in tc's syntax, is affected."""
    instead: Callable[[Sequence[str]], Sequence[str]]
    """The options for the simulator that describe the kernel's behaviour."""


ASLEEP = Mechanism(
    name="red-adaptive-asleep",
    says="tc 6.1 sets red's `adaptive` in a field that Linux reports but that does not start red's timer, so red does not adapt",
    evidence="with the flag in the field that the kernel reads (the cases `awake`), max_p moves and agrees with the simulator's",
    acts_on=lambda words: (
        words[0] == "red" and "adaptive" in words and not {"ns2", "ns3"} & set(words)
    ),
    instead=lambda words: [word for word in words if word != "adaptive"],
)
MECHANISMS = (ASLEEP,)


@dataclass(frozen=True)
class Sides:
    """A scenario for each side."""

    ours: Scenario
    theirs: Scenario
    setting: Literal["", "asleep", "awake"] = ""
    """How red's `adaptive` is set: "asleep" as tc does it, "awake" with the flag where the kernel
    reads it; "" if no red is adaptive."""

    @property
    def awake(self) -> bool:
        """Whether the kernel's side needs the flag where the kernel reads it."""
        return self.setting == "awake"


def sides(variant: Scenario, profile: str = "linux") -> tuple[Sides, ...]:
    """Returns the ways to compare a scenario (not a sweep) with the kernel: one, or two if a
    mechanism affects one of its disciplines. `profile`: the TCP profile of the kernel. In the
    simulator it replaces the profile `linux`, and `variant linux` of a discipline becomes the
    variant of that kernel.

    In the first way, tc configures the kernel and the simulator does the same. In the second, both
    follow the manual page.
    """
    instead = {
        key: changed
        for key, qdisc in _disciplines(variant)
        if (changed := _instead(qdisc)) != qdisc
    }
    ours = with_profile(variant, profile)
    release = profile.removeprefix("linux-")
    ours = ours.with_(
        {key: dated(Qdisc.parse(words), release).text for key, words in _dated_in(ours, release)}
    )
    if not instead:
        return (Sides(ours, variant),)
    names = {
        setting: f"{variant.label or variant.title}, {setting}" for setting in ("asleep", "awake")
    }
    asleep, awake = (variant.with_(label=name) for name in names.values())
    simulated = [ours.with_(label=name) for name in names.values()]
    return (
        Sides(simulated[0].with_(instead), asleep, "asleep"),
        Sides(simulated[1], awake, "awake"),
    )


def with_profile(variant: Scenario, profile: str) -> Scenario:
    """Returns the scenario with this profile for endpoints of the profile `linux`."""
    if profile == "linux":
        return variant
    flows = variant.realise(variant.seeds[0]).flows
    linux = {flow.group for flow in flows if flow.tcp is not None and flow.tcp.profile == "linux"}
    return variant.with_({f"flow.{group}.profile": profile for group in sorted(linux)})


def dated(qdisc: Qdisc, release: str) -> Qdisc:
    """Returns the discipline with `variant linux` replaced by the variant of this release of Linux,
    such as `7.3`."""
    variant = f"linux{release}"
    if qdisc.variant != "linux" or variant not in qdisc.record.variants:
        return qdisc
    return Qdisc.parse(f"{qdisc.text} variant {variant}")


def _dated_in(scenario: Scenario, release: str) -> Iterator[tuple[str, str]]:
    """The disciplines that differ in this release."""
    for key, words in _disciplines(scenario):
        if not is_own(words):
            qdisc = Qdisc.parse(words)
            if dated(qdisc, release) is not qdisc:
                yield key, words


def _disciplines(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """The dotted key of each discipline in the scenario, and its text."""
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
