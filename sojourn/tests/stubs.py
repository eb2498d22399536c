"""A stub against the extension that it describes: names, parameters and their defaults, by mypy's
stubtest."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tree import ROOT


def differences(module: str, of_the_stub_alone: Iterable[str], folder: Path) -> str:
    """What stubtest finds; "": nothing. `of_the_stub_alone`: names for types."""
    allowed = folder / "allowed"
    allowed.write_text("".join(f"{module}.{name}\n" for name in ("__all__", *of_the_stub_alone)))
    # What other packages' types are is mypy's to check, not this.
    settings = folder / "mypy.ini"
    settings.write_text(
        "[mypy]\nmypy_path = sojourn/python:sojourn-live/python\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy.stubtest", module]
    command += ["--mypy-config-file", str(settings)]
    command += ["--ignore-disjoint-bases", "--allowlist", str(allowed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr
