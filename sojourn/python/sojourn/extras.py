"""The packages beside this one. sojourn-live and sojourn-papers add verbs, lists and outputs, and
read measurements. This package runs without them and imports neither.

A package registers an entry point of the group `sojourn.extras`. Its value is an `Extra`, in a
module with quick imports, since `sojourn --help` imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
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
"""The verbs of each package, by the name of the extra that installs it. This table serves only the
message about a missing verb: an installed package declares its verbs itself."""
LISTS = {"papers": ("papers",)}
"""The same for the lists of `sojourn list`."""


@dataclass(frozen=True)
class Extra:
    """The additions of a package. A place is `module:attribute`, imported when it is needed."""

    name: str
    """The name of the distribution."""
    verbs: Mapping[str, Mapping[str, str]]
    """The place of each verb, by section of `sojourn --help` and name."""
    example: str = ""
    """A command for the top of `sojourn --help`."""
    lists: Mapping[str, str] = field(default_factory=dict)
    """The lists for `sojourn list NAME`: the place of a function that returns the lines."""
    outputs: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """The outputs of `--json`, by name: the version of each, and the place of its shape."""
    formats: str = ""
    """The place of the file formats that it reads, a tuple of `formats.Format`."""
    measurements: str = ""
    """The place of an object that reads Runs of measurements; see `Measurements`."""


class Clock(Protocol):
    """Another host's clock."""

    def of(self, t_s: Floats) -> Floats:
        """Converts times of the other host to our clock, s."""


class MeasuredPage(Protocol):
    """The part of a page about measurements."""

    @property
    def clocks(self) -> Mapping[int, Clock]:
        """The clocks of other hosts that probed during the first Run's load, by the position of
        their Runs."""

    def sentences(self) -> list[str]:
        """The verdict, as plain text."""

    def numbers(self) -> Markup:
        """The tables, as HTML."""


class ComparedMeasurement(Protocol):
    """Two measurements, before and after."""

    def to_dict(self) -> dict[str, Any]:
        """An entry of `comparisons` under `sojourn compare --json`."""

    def text(self) -> str:
        """The comparison as text for a terminal."""


class Measurements(Protocol):
    """Reads Runs of measurements."""

    def page(self, runs: Sequence[Run], labels: Sequence[str]) -> MeasuredPage:
        """Makes the part of a page about these Runs."""

    def changes(self, runs: Sequence[Run], labels: Sequence[str]) -> Sequence[ComparedMeasurement]:
        """Compares each of the other Runs with the first one."""

    def text(self, run: Run) -> str:
        """A measurement as text for a terminal."""

    def export(
        self, run: Run, file: Path, *, phase: str | None, repeat: int | None, test: str
    ) -> None:
        """Writes a Run for another program, by the file's ending. `phase`, `repeat` and `test` are
        for flent's files: the load, the repeat, and the name of the test."""


@cache
def installed() -> tuple[Extra, ...]:
    """The installed packages, in the order of `VERBS`. A package whose module is missing, because
    it was removed only in part, is left out."""
    order = list(VERBS)
    places = _entry_points()
    found = []
    for name in sorted(places, key=lambda name: (name not in order, name)):
        package = places[name].partition(":")[0].partition(".")[0]
        try:
            found.append(load(places[name]))
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != package:
                raise
    return tuple(found)


def _entry_points() -> dict[str, str]:
    """The entry points of the group: `module:attribute` by name. They are read from the files that
    pip writes for each package. importlib.metadata would do the same, but it imports the email
    parser. That would cost every command that lists verbs 0.04 s of CPU time.

    Source: the entry points specification of PyPA.
    """
    places: dict[str, str] = {}
    for folder in sys.path:
        for file in Path(folder).glob("*.dist-info/entry_points.txt"):
            # Every package's file is read, also one that is no UTF-8.
            text = file.read_text(encoding="utf-8", errors="replace")
            _, header, rest = text.partition(f"[{GROUP}]\n")
            for line in rest.partition("[")[0].splitlines() if header else ():
                name, sign, place = line.partition("=")
                if sign:
                    places.setdefault(name.strip(), place.strip())
    return places


def load(place: str) -> Any:
    """Imports `module:attribute`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def brings(word: str, words: Mapping[str, Sequence[str]] = VERBS) -> str | None:
    """The extra that installs the package with this verb, or with this entry of `words`; None:
    there is none."""
    return next((extra for extra, known in words.items() if word in known), None)


def install(extra: str) -> str:
    """The command that installs a package."""
    return f"pip install 'sojourn[{extra}]'"


def measurements(task: str) -> Measurements:
    """The reader of Runs of measurements. `task` begins the error message: "reading FILE".

    Raises:
        UserError: sojourn-live is not installed.
    """
    for package in installed():
        if package.measurements:
            found: Measurements = load(package.measurements)
            return found
    raise UserError(f"{task} needs sojourn-live, which is not installed", install("live"))


def read_measurements(runs: Sequence[Run]) -> Measurements:
    """The reader of these Runs of measurements. Raises as `measurements` does."""
    return measurements(f"{runs[0].path} is the Run of a measurement: reading it")
