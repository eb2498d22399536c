"""Where this user's own files lie, by the XDG base directories."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """What can be made again: guests, finished seeds."""
    return _folder("XDG_CACHE_HOME", ".cache")


def state() -> Path:
    """What tells of processes."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, usual: str) -> Path:
    home = os.environ.get(variable, "")
    # The specification: a folder that is not absolute is to be ignored.
    base = Path(home) if Path(home).is_absolute() else Path.home() / usual
    return base / "sojourn"
