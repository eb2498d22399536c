"""_core.pyi says what the extension is: names, parameters and their defaults, by mypy's
stubtest."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
OF_THE_STUB_ALONE = ("Column", "Columns", "QdiscCounter", "QdiscValue")
"""Names for types."""


def test_the_stub_is_the_extension(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    allowed.write_text(
        "".join(f"sojourn._core.{name}\n" for name in ("__all__", *OF_THE_STUB_ALONE))
    )
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "sojourn._core",
        "--mypy-config-file",
        "pyproject.toml",
    ]
    command += ["--ignore-disjoint-bases", "--allowlist", str(allowed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
