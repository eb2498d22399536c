"""The folders for this user's own files, by the XDG base directories; and files that a source tree
builds when they are first needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def cache() -> Path:
    """The folder for files that can be made again: guests, finished seeds."""
    return _folder("XDG_CACHE_HOME", ".cache")


def state() -> Path:
    """The folder for the records of running processes."""
    return _folder("XDG_STATE_HOME", ".local/state")


def _folder(variable: str, usual: str) -> Path:
    home = os.environ.get(variable, "")
    # By the XDG specification, a folder that is not absolute must be ignored.
    base = Path(home) if Path(home).is_absolute() else Path.home() / usual
    return base / "sojourn"


def make_missing(file: Path, what: str) -> bool:
    """Whether a file of this package exists. In a source tree, `make` builds a missing one and
    reports this on stderr; an installed package has all of its files.

    `what` is the file's description, as "the guest's program".
    """
    tree = Path(__file__).parents[3]
    if not file.is_file() and (tree / "Makefile").is_file() and file.is_relative_to(tree):
        print(f"building {what}, once: about a minute", file=sys.stderr, flush=True)
        subprocess.run(
            ["make", "--no-print-directory", str(file.relative_to(tree))],
            cwd=tree,
            stdout=sys.stderr,
            check=False,
        )
    return file.is_file()
