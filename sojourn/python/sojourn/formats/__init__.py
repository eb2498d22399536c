"""Reads files of other programs: finds the format and returns the content.

A format is a module of this folder with a tuple `FORMATS`; packages beside this one add theirs by
`Extra.formats`. A file is recognised by its content, never by its name. It yields one of three
things: a measurement (`measured.FileMeasurement`, written as a Run), a scenario or the trace of a line
(`texts.Texts`, written as text files).

To add a format: a module here, and a small file in tests/formats that its test reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sojourn.errors import UserError
from sojourn.formats.content import HEAD, Content, open_file
from sojourn.formats.file_series import Pings, Stream
from sojourn.formats.format import FileFormatError, Format, Measurement, Yields
from sojourn.formats.measured import FileMeasurement
from sojourn.formats.texts import Texts

__all__ = [
    "Content",
    "FileFormatError",
    "FileMeasurement",
    "Format",
    "Measurement",
    "Pings",
    "Stream",
    "Texts",
    "Yields",
    "damage_named",
    "formats",
    "identify",
    "is_measurement",
    "open_file",
    "read",
]


SHARED = (
    "content",
    "file_series",
    "format",
    "measured",
    "packets",
    "resent",
    "run_tables",
    "seen",
    "tc_tree",
    "texts",
)
"""The modules of this folder that contain no format."""


def formats() -> list[Format]:
    """Every format that can be read, sorted by program and name."""
    from importlib import import_module
    from pkgutil import iter_modules

    from sojourn import extras

    known: list[Format] = []
    for module in iter_modules(__path__):
        if module.name not in SHARED:
            known.extend(import_module(f"{__name__}.{module.name}").FORMATS)
    for package in extras.installed():
        if package.formats:
            known.extend(extras.load(package.formats))
    return sorted(known, key=lambda each: (each.program.lower(), each.name))


def identify(content: Content) -> Format:
    """The format of a file.

    Raises:
        UserError: no format, or more than one, recognises it.
    """
    if len(content.first) < HEAD and not content.first.strip():
        raise UserError(f"{content.path} is empty", "give a file that another program wrote")
    fitting = [each for each in formats() if each.recognises(content)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = " and ".join(each.name for each in fitting)
        raise UserError(
            f"{content.path} looks like {names}", "split the file: each part must have one format"
        )
    raise UserError(
        f"{content.path} has no format that sojourn reads",
        "sojourn list formats shows those it reads",
    )


def is_measurement(content: Content) -> bool:
    """Whether exactly one format of measurements recognises a file."""
    try:
        return identify(content).yields is Yields.MEASUREMENT
    except UserError:
        return False


def read(content: Content) -> tuple[Format, Measurement | Texts]:
    """A file's format, and the measurement or the texts that it yields.

    Raises:
        UserError: the file has no known format, or is damaged.
    """
    found = identify(content)
    with damage_named(content, found):
        return found, found.read(content)


@contextmanager
def damage_named(content: Content, found: Format) -> Iterator[None]:
    """Turns errors of a reader into a UserError that names the file, the format and the reason."""
    try:
        yield
    except FileFormatError as error:
        raise UserError(f"{content.path} ({found.name}): {error}", found.hint) from None
    except (
        KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, MemoryError, RecursionError
    ) as error:  # fmt: skip
        raise UserError(
            f"{content.path} is not a complete file of {found.program}: {type(error).__name__}: {error}",
            found.hint,
        ) from None
