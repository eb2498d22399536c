"""Runs sojourn's command as on a system that is not Linux: `python other_system.py run FILE`.

Modules and functions that only Unix or Linux has can't be had by sojourn's own modules; what it
depends on keeps them, as its authors see to themselves.
"""

import builtins
import os
import sys
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
    """`__import__`; C code calls it with names (matplotlib's, when it makes its list of fonts)."""
    if name.split(".")[0] in ABSENT and str((globals or {}).get("__name__", "")).startswith(
        "sojourn"
    ):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real(name, globals, *rest, **named)


if __name__ == "__main__":
    builtins.__import__ = without
    for name in ABSENT_OF_OS:
        delattr(os, name)
    from sojourn.__main__ import main

    sys.exit(main())
