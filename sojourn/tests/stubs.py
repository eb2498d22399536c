"""Compares a stub with its extension: names, parameters and defaults, by mypy's stubtest."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tree import ROOT


def differences(module: str, of_the_stub_alone: Iterable[str], folder: Path) -> str:
    """Returns stubtest's findings, or "". `of_the_stub_alone`: names that only the stub has."""
    allowed = folder / "allowed"
    allowed.write_text("".join(f"{module}.{name}\n" for name in ("__all__", *of_the_stub_alone)))
    # mypy checks the types of other packages elsewhere.
    settings = folder / "mypy.ini"
    settings.write_text(
        "[mypy]\nmypy_path = sojourn/python:sojourn-live/python\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy.stubtest", module]
    command += ["--mypy-config-file", str(settings)]
    command += ["--ignore-disjoint-bases", "--allowlist", str(allowed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
