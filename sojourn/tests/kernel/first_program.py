"""Compiles a guest's first program for a test, from a C file beside this one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sojourn.engine.kernel.guest import Boot, Booted, Guest, overlay, run


def compiled(source: str, folder: Path) -> Path:
    """Returns the compiled program, in the folder. Without a compiler the test is skipped."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc to compile the guest's program with")
    made = folder / "init"
    file = Path(__file__).parent / source
    command = ["gcc", "-O1", "-Wall", "-Wno-unused-result", "-static", "-o", str(made), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and "-lc" in done.stderr:
        pytest.skip("no static C library (libc6-dev)")
    assert done.returncode == 0, done.stderr
    return made


def boot_mode(
    guest: Guest, program: Path, folder: Path, mode: str, seed: int = 1, limit_s: float = 60.0
) -> Booted:
    """Boots a guest with this program as its first process. init.c lists the modes."""
    folder.mkdir(exist_ok=True)
    added = overlay(program, {"mode": mode.encode()})
    return run(guest, Boot(folder, added, seed=seed, memory_mb=128, pairs=1, wall_limit_s=limit_s))
