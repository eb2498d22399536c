"""The kernel's guests: made of packages, kept in a cache, booted, and how they end.

`setup` makes a guest once, `choose` takes one, `boot.run` runs it on an initial file system that
`overlay` adds a run's program and files to.
"""

from sojourn import linux_only as linux_only
from sojourn.engine.kernel.guest.boot import Boot, Booted, run
from sojourn.engine.kernel.guest.endings import GuestError, GuestRunError
from sojourn.engine.kernel.guest.guests import (
    NAMES,
    WHAT,
    Guest,
    Status,
    choose,
    clean,
    overlay,
    ready,
    setup,
    why_none,
)
from sojourn.engine.kernel.guest.uml import SetupProgress

__all__ = [
    "NAMES",
    "WHAT",
    "Boot",
    "Booted",
    "Guest",
    "GuestError",
    "GuestRunError",
    "SetupProgress",
    "Status",
    "choose",
    "clean",
    "overlay",
    "ready",
    "run",
    "setup",
    "why_none",
]
