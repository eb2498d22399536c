"""Imported by all code that needs Linux: the kernel engines, and sockets of live lines. On other
systems this import fails."""

from sojourn import _core
from sojourn.errors import UserError

if not _core.LINUX:
    raise UserError(
        "the real kernel and live lines need Linux",
        "these run here, with the simulator: check, run, compare, report, reproduce",
    )
