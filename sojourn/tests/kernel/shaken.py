"""`shaken.py COUNT COMMAND...`: runs QEMU, disturbs it, and writes the number of disturbances to
the file COUNT.

QEMU blocks SIGALRM and reads it from a descriptor. So each alarm only wakes QEMU's main thread, at
a moment of the virtual CPU's work that the host's scheduler chooses. Without the measures of
qemu.py, no two runs disturbed like this give the same bytes.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

MEAN_PAUSE_S = 150e-6


def takes_alarms(process: int) -> bool:
    """Whether the process's main thread blocks SIGALRM. A process about to become QEMU may block
    all signals for a moment."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    blocked = next(
        int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigBlk:")
    )
    return bool(blocked >> (signal.SIGALRM - 1) & 1) and not blocked >> (signal.SIGTERM - 1) & 1


def main(count: str, *command: str) -> int:
    child = subprocess.Popen(command)
    while child.poll() is None and not takes_alarms(child.pid):
        time.sleep(0.01)
    rng = random.Random()
    sent = 0
    while child.poll() is None:
        os.kill(child.pid, signal.SIGALRM)
        sent += 1
        time.sleep(rng.uniform(0, 2 * MEAN_PAUSE_S))
    Path(count).write_text(str(sent), encoding="ascii")
    return child.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
