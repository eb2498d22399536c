"""What is tested is this tree: its Python, and an engine built of its Rust. Never an installed
copy."""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("sojourn", "sojourn-live", "sojourn-papers")
TESTS = (*(ROOT / package / "tests" for package in PACKAGES), ROOT / "tests")
"""Where tests are."""


def build_of(folders: Sequence[str], relative_to: str) -> str:
    """The sources of Rust in these folders, named as a build script names them (`BUILD` in
    sojourn/crates/python/build.rs and sojourn-live/crates/extension/build.rs)."""
    named = {name: ROOT / name for name in ("Cargo.lock", "Cargo.toml")}
    base = ROOT / relative_to
    for folder in folders:
        for kind in ("*.rs", "Cargo.toml"):
            for file in (ROOT / folder).rglob(kind):
                named[file.relative_to(base).as_posix()] = file
    total = hashlib.sha256()
    for name in sorted(map(PurePosixPath, named)):
        if "tests" not in name.parts[:-1]:
            content = named[str(name)].read_bytes()
            total.update(f"{name} {len(content)}\n".encode() + content)
    return total.hexdigest()[:16]


def of_another_tree() -> str | None:
    """Why what `import sojourn` gives is not this tree; None if it is."""
    try:
        import sojourn
        import sojourn_live
        from sojourn import _core
        from sojourn_live import _live
    except ImportError as error:
        return f"the engine is not built ({error})"
    for package in (sojourn, sojourn_live):
        name = package.__name__
        found = Path(package.__file__ or "").parent
        if found != ROOT / name.replace("_", "-") / "python" / name:
            return f"these would be tests of {found}, not of this tree"
    core = build_of(["sojourn/crates"], "sojourn")
    live = build_of(["sojourn/crates", "sojourn-live/crates"], ".")
    if (core, live) != (_core.BUILD, _live.BUILD):
        return "the extensions were built of other sources of Rust than the tree holds now"
    return None


def probe_of_the_tree() -> Path:
    """sojourn-probe for this machine, built of this tree; where there is none the test is left out."""
    target = f"{os.uname().machine}-unknown-linux-musl"
    asked = ["make", "-q", f"target/.probe-{target}"]
    if subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode != 0:
        pytest.skip("there is no sojourn-probe of this tree: make probe")
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return folder / target / "static" / "sojourn-probe"
