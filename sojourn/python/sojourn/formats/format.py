"""A format's record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sojourn.formats.content import Content
    from sojourn.formats.texts import Texts
    from sojourn.records import Run
    from sojourn.records.measurement import MeasurementSettings


class FileFormatError(ValueError):
    """Why a file of a known format can't be read, as the end of a sentence about the file."""


class Yields(StrEnum):
    """The kind of result that a file gives."""

    MEASUREMENT = "measurement"
    SCENARIO = "scenario"
    TRACE = "trace"


class Measurement(Protocol):
    """A measurement that a file contains; `measured.FileMeasurement` is one."""

    def run(self, content: Content, settings: MeasurementSettings | None = None) -> Run:
        """The Run of it. `content`: the file that it was read from.

        Raises:
            UserError: the folder of `settings` is not empty, and not a Run that may be replaced.
            FileFormatError: there is nothing in it.
        """


@dataclass(frozen=True)
class Format:
    """A format: how it is recognised and read."""

    name: str
    """Unique, as `irtt-json`."""
    program: str
    """The program that writes it."""
    made_by: str
    """The command that writes such a file."""
    yields: Yields
    recognises: Callable[[Content], bool]
    """Whether a file has this format. It must not fail on any content."""
    read: Callable[[Content], Measurement | Texts]
    """Reads the file. Raises FileFormatError if sojourn can't use something in it, and KeyError,
    TypeError, ValueError and the like if it is damaged."""

    refused: bool = False
    """Whether the format is recognised only so that an error can say why it can't be read."""
    takes_time: bool = False
    """Whether one span of its time can be read alone (`Content.span_ns`)."""
    takes_units: bool = False
    """Whether the user can give the units of its columns (`Content.units`)."""

    @property
    def hint(self) -> str:
        """The hint of an error: how such a file is made."""
        if self.refused:
            return "sojourn list formats shows what is read"
        return f"{self.name} is what `{self.made_by}` writes"
