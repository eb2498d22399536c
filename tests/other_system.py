"""Runs commands of sojourn as on a system that is not Linux: `python other_system.py '[["list"]]'`.
Each gives a line of JSON: its exit status, stdout and stderr.

Modules and functions that only Unix or Linux has can't be had by sojourn's own modules; what it
depends on keeps them, as its authors see to themselves.
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
    from sojourn import _core

    # What the extension says of itself there.
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
