"""A guest whose RED adapts if `adaptive` is set.

tc 6.1 passes `adaptive` in TCA_RED_FLAGS. Linux 6.12 takes the flag from there and reports it. But
it starts RED's timer by the flags of tc_red_qopt, the older field (`__red_change`,
net/sched/sch_red.c). So a RED that tc has configured never adapts. A library (awake.c), preloaded
under tc, moves the flag. The compiler that built the guest compiles it when it is needed.
"""

import hashlib
import os
import subprocess
from pathlib import Path

from sojourn import cleanup
from sojourn.engine.kernel.guest import host
from sojourn.engine.kernel.guest.endings import GuestError

COMPILER = "gcc"
CONDITION = {"red adaptive": "the flag set where the kernel looks for it"}
"""A condition that is recorded in such a Run."""


def why_not() -> str | None:
    """Why such a guest is impossible here; None if it is possible."""
    if not host.has(COMPILER):
        return f"{COMPILER} is missing, and it has to compile the library under tc: apt-get install {COMPILER}"
    return None


def name() -> str:
    """The library's name, for the build of an engine that uses it."""
    return f"awake {hashlib.sha256(_source()).hexdigest()}"


def library() -> dict[str, bytes]:
    """The files that the guest gets in addition, by their paths in it.

    Raises:
        GuestError: the library can't be compiled.
    """
    with cleanup.temporary_folder() as folder:
        target = Path(folder) / "awake.so"
        command = [COMPILER, "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(target), "-ldl"]
        environment = {**os.environ, "PATH": host.PATH}
        try:
            done = subprocess.run(
                command, input=_source(), env=environment, capture_output=True, check=False
            )
        except OSError as error:
            raise GuestError(
                f"can't run {COMPILER}: {error.strerror or error}", why_not() or ""
            ) from None
        if done.returncode:
            output = done.stderr.decode(errors="replace").strip().splitlines()
            raise GuestError(
                f"{COMPILER} can't compile awake.c: {output[-1] if output else 'it gives no reason'}"
            )
        return {"etc/ld.so.preload": b"/awake.so\n", "awake.so": target.read_bytes()}


def _source() -> bytes:
    return Path(__file__).with_name("awake.c").read_bytes()
