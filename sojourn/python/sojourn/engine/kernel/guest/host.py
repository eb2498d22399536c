"""The host's own programs, with which guests are made and run: found where a guest's making and its
run look for them, whatever a user's own PATH says."""

import shutil

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def has(program: str) -> bool:
    """Whether the host has this program."""
    return shutil.which(program, path=PATH) is not None
