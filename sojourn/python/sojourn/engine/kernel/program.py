"""The guest's first program, as a file."""

from pathlib import Path

from sojourn.engine.kernel.guest.endings import GuestError
from sojourn.places import make_missing

PROGRAM = "sojourn-guest"
"""The guest's first program (crates/guest), beside this file in an installed sojourn."""


def program() -> Path:
    """Returns the path of the program that sends a plan's traffic and measures it.

    Raises:
        GuestError: it does not exist and could not be built.
    """
    file = Path(__file__).with_name(PROGRAM)
    if not make_missing(file, "the guest's program"):
        raise GuestError(
            f"{PROGRAM}, the guest's program, is not there",
            "make setup builds it; by hand: cargo build --release -p guest, and copy it beside engine/kernel/engine.py",
        )
    return file
