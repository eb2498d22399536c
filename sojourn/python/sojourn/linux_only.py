"""Imported by all that only Linux has: the real kernel as an engine, and sockets of live lines.
Elsewhere the import is refused."""

from sojourn import _core
from sojourn.errors import UserError

if not _core.LINUX:
    raise UserError(
        "the real kernel and live lines need Linux",
        "what runs here: check, run, compare, report, reproduce, with the simulator",
    )
