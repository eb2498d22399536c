"""Runs commands of sojourn as on a system that is not Linux: `python other_system.py '[["list"]]'`.
Prints a line of JSON per command: exit status, stdout and stderr.

Modules and functions that exist only on Unix or Linux are hidden from sojourn's own modules. Its
dependencies still see them, because their authors support other systems themselves.
"""

import builtins
import contextlib
import io
import json
import os
import sys
import traceback
from typing import Any

ABSENT = ("fcntl", "resource", "pyroute2", "pwd", "grp", "termios")
ABSENT_OF_OS = (
    "sched_getaffinity",
    "pidfd_open",
    "killpg",
    "geteuid",
    "getuid",
    "fork",
    "O_TMPFILE",
)
real = builtins.__import__


def without(name: str, globals: Any = None, *rest: Any, **named: Any) -> Any:
    """Replaces `__import__`. C code may call it with keyword arguments: matplotlib's does when it
    lists the fonts."""
    if name.split(".")[0] in ABSENT and str((globals or {}).get("__name__", "")).startswith(
        "sojourn"
    ):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real(name, globals, *rest, **named)


if __name__ == "__main__":
    builtins.__import__ = without
    for name in ABSENT_OF_OS:
        delattr(os, name)
    from sojourn import _core

    # The value of this constant on other systems.
    _core.LINUX = False
    from sojourn.cli import status

    for words in json.loads(sys.argv[1]):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                ended = status(words)
            except Exception:
                ended = 1
                traceback.print_exc()
        print(json.dumps([ended, out.getvalue(), err.getvalue()]))
