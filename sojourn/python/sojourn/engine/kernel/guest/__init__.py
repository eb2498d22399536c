"""The kernel's guests: building them from packages, caching, booting, and naming their failures.

`guests` is the public interface: `setup` builds a guest once, `choose` picks one, `overlay` adds a
run's program and files to its file system. `boot.run` runs it.
"""

from sojourn import linux_only as linux_only
from sojourn.engine.kernel.guest.boot import Boot, Booted, run
from sojourn.engine.kernel.guest.endings import GuestError, GuestRunError
from sojourn.engine.kernel.guest.guests import (
    NAMES,
    PREFERRED,
    WHAT,
    Guest,
    Name,
    Status,
    choose,
    clean,
    overlay,
    ready,
    setup,
    why_none,
)
from sojourn.engine.kernel.guest.uml import SetupProgress
from sojourn.engine.kernel.releases import PROGRAMS, RELEASES

__all__ = [
    "NAMES",
    "PREFERRED",
    "PROGRAMS",
    "RELEASES",
    "WHAT",
    "Boot",
    "Booted",
    "Guest",
    "GuestError",
    "GuestRunError",
    "Name",
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
