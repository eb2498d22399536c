"""The packages beside this one. sojourn-live and sojourn-papers add verbs, lists, outputs and the
reading of measurements; this package runs without them and imports neither.

A package names itself by an entry point of the group `sojourn.extras`, whose value is an `Extra`:
a module that imports nothing slow, since `sojourn --help` imports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sojourn.errors import UserError

if TYPE_CHECKING:
    from markupsafe import Markup

    from sojourn.arrays import Floats
    from sojourn.records import Run

GROUP = "sojourn.extras"
VERBS = {
    "live": (
        "measure",
        "history",
        "peer",
        "serve",
        "rpm",
        "monitor",
        "graph",
        "shape",
        "tune",
    ),
    "papers": ("reproduce",),
}
"""The verbs that each package brings, by the name of the extra that installs it. What a verb that is
not there needs is said by this table; a package's own declaration is what runs."""
LISTS = {"papers": ("papers",)}
"""The same of what `sojourn list` takes."""


@dataclass(frozen=True)
class Extra:
    """What a package adds. A place is `module:attribute`, imported when it is needed."""

    name: str
    """The distribution's."""
    verbs: Mapping[str, Mapping[str, str]]
    """By the heading of `sojourn --help`: the place of each verb, by its name."""
    example: str = ""
    """A command for the top of `sojourn --help`."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """What `sojourn list NAME` shows: the place of a function that returns the lines."""
    outputs: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Of each output of `--json` the version and the place of its shape, by its name."""
    formats: str = ""
    """The place of the formats of files that it reads, a tuple of `formats.Format`."""
    measurements: str = ""
    """The place of what reads Runs of measurements; see `Measurements`."""


class Clock(Protocol):
    """Another host's clock."""

    def of(self, t_s: Floats) -> Floats:
        """Its times on our clock, s."""


class MeasuredPage(Protocol):
    """The part of a page that is of measurements."""

    @property
    def clocks(self) -> Mapping[int, Clock]:
        """The clocks of the Runs, by their places, that watched the load of the first."""

    def sentences(self) -> list[str]:
        """The verdict, as plain text."""

    def numbers(self) -> Markup:
        """The tables, as HTML."""


class ComparedMeasurement(Protocol):
    """Two measurements, before and after."""

    def to_dict(self) -> dict[str, Any]:
        """An entry of `comparisons` under `sojourn compare --json`."""

    def text(self) -> str:
        """The same for a terminal."""


class Measurements(Protocol):
    """Reads Runs of measurements."""

    def page(self, runs: Sequence[Run], labels: Sequence[str]) -> MeasuredPage:
        """Their part of a page."""

    def changes(self, runs: Sequence[Run], labels: Sequence[str]) -> Sequence[ComparedMeasurement]:
        """From the first to each of the others."""

    def text(self, run: Run) -> str:
        """The whole of a measurement for a terminal."""

    def export(
        self, run: Run, file: Path, *, phase: str | None, repeat: int | None, test: str
    ) -> None:
        """Writes a Run for another program, by the file's ending. `phase`, `repeat` and `test` are of
        flent's files: which load, which repeat, and the test it goes under."""


@cache
def installed() -> tuple[Extra, ...]:
    """The packages that are there, in the order of `VERBS`."""
    from importlib.metadata import entry_points

    order = list(VERBS)
    points = {point.name: point for point in entry_points(group=GROUP)}
    known = sorted(points, key=lambda name: (name not in order, name))
    found: Iterable[Extra] = (points[name].load() for name in known)
    return tuple(found)


def load(place: str) -> Any:
    """What lies at `module:attribute`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def brings(word: str, words: Mapping[str, Sequence[str]] = VERBS) -> str | None:
    """The extra that installs the package with this verb, or with this one of other words; None: no
    package has it."""
    return next((extra for extra, known in words.items() if word in known), None)


def install(extra: str) -> str:
    """The command that installs a package."""
    return f"pip install 'sojourn[{extra}]'"


def measurements(wanted: str) -> Measurements:
    """What reads Runs of measurements. `wanted`: what it is needed for, as a clause.

    Raises:
        UserError: sojourn-live is not installed.
    """
    for package in installed():
        if package.measurements:
            found: Measurements = load(package.measurements)
            return found
    raise UserError(f"{wanted} by sojourn-live, which is not installed", install("live"))


def read_measurements(runs: Sequence[Run]) -> Measurements:
    """What reads these Runs, which are measurements. Raises as `measurements` does."""
    return measurements(f"{runs[0].path} is the Run of a measurement, which is read")
