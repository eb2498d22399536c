"""What is tested is this tree: its Python, and an engine built of its Rust. Never an installed
copy."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def build_of_the_tree() -> str:
    """What crates/python/build.rs calls BUILD, made anew."""
    named = [Path("Cargo.lock"), Path("Cargo.toml")]
    for kind in ("*.rs", "Cargo.toml"):
        named += [file.relative_to(ROOT) for file in (ROOT / "crates").rglob(kind)]
    total = hashlib.sha256()
    for path in sorted(path for path in named if "tests" not in path.parts[:-1]):
        content = (ROOT / path).read_bytes()
        total.update(f"{path.as_posix()} {len(content)}\n".encode() + content)
    return total.hexdigest()[:16]


def of_another_tree() -> str | None:
    """Why what `import sojourn` gives is not this tree; None if it is."""
    try:
        import sojourn
        from sojourn import _core
    except ImportError as error:
        return f"the engine is not built ({error})"
    found = Path(sojourn.__file__ or "").parent
    if found != ROOT / "python" / "sojourn":
        return f"these would be tests of {found}, not of this tree"
    if build_of_the_tree() != _core.BUILD:
        return "the engine was built of other sources than crates/ holds now"
    return None


def probe_of_the_tree() -> Path:
    """sojourn-probe for this machine, built of this tree; where there is none the test is left out."""
    target = f"{os.uname().machine}-unknown-linux-musl"
    asked = ["make", "-q", f"target/.probe-{target}"]
    if subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode != 0:
        pytest.skip("there is no sojourn-probe of this tree: make probe")
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return folder / target / "static" / "sojourn-probe"
