"""The host's own programs that build and run guests. They are looked up in a fixed PATH, whatever
the user's own PATH is."""

import shutil

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def has(program: str) -> bool:
    """Whether the host has this program."""
    return shutil.which(program, path=PATH) is not None
