"""_core.pyi says what the extension is: names, parameters and their defaults, by mypy's
stubtest."""

import subprocess
import sys
from pathlib import Path

from tree import ROOT

OF_THE_STUB_ALONE = ("Column", "Columns", "QdiscCounter", "QdiscValue")
"""Names for types."""


def test_the_stub_is_the_extension(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text(
        "".join(f"sojourn._core.{name}\n" for name in ("__all__", *OF_THE_STUB_ALONE))
    )
    # What other packages' types are is mypy's to check, not this.
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\nmypy_path = sojourn/python\nfollow_imports = skip\n")
    command = [sys.executable, "-m", "mypy.stubtest", "sojourn._core"]
    command += ["--mypy-config-file", str(settings)]
    command += ["--ignore-disjoint-bases", "--allowlist", str(allowed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
