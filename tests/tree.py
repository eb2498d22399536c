"""What is tested is this tree: its Python, and an engine built of its Rust. Never an installed
copy."""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("sojourn", "sojourn-live", "sojourn-papers")
TESTS = (*(ROOT / package / "tests" for package in PACKAGES), ROOT / "tests")
"""Where tests are."""
INSTALLED = "SOJOURN_TESTS_INSTALLED"
"""Set where what is tested are packages installed elsewhere, some of which may be absent."""


@cache
def hidden_from(file: Path) -> list[str]:
    """What a test of this file, or of a folder, can not import: packages that its own does not
    depend on, and the modules of their tests. Tests of no package see all."""
    own = next((name for name in PACKAGES if file.is_relative_to(ROOT / name)), None)
    if own is None:
        return []
    others = [name for name in PACKAGES if name not in (own, "sojourn")]
    return [name.replace("-", "_") for name in others] + [
        module.stem
        for name in others
        for module in (ROOT / name / "tests").glob("*.py")
        if module.stem != "conftest"
    ]


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
    """Why what `import sojourn` gives is not this tree; None if it is. Where INSTALLED is set, only an
    engine built of other sources is."""
    elsewhere = bool(os.environ.get(INSTALLED))
    built = {
        "sojourn": ("_core", build_of(["sojourn/crates"], "sojourn")),
        "sojourn_live": ("_live", build_of(["sojourn/crates", "sojourn-live/crates"], ".")),
    }
    for name, (extension, build) in built.items():
        try:
            package = import_module(name)
            engine = import_module(f"{name}.{extension}")
        except ImportError as error:
            if elsewhere and error.name == name != "sojourn":
                continue
            return f"the engine is not built ({error})"
        found = Path(package.__file__ or "").parent
        if (found != ROOT / name.replace("_", "-") / "python" / name) != elsewhere:
            return (
                f"these would be tests of {found}, not of {'a wheel' if elsewhere else 'this tree'}"
            )
        if build != engine.BUILD:
            return f"{name} was built of other sources of Rust than the tree holds now"
    return None


def probe_of_the_tree() -> Path:
    """sojourn-probe for this machine, built of this tree; where there is none the test is left out."""
    target = f"{os.uname().machine}-unknown-linux-musl"
    asked = ["make", "-q", f"target/.probe-{target}"]
    if subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode != 0:
        pytest.skip("there is no sojourn-probe of this tree: make probe")
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return folder / target / "static" / "sojourn-probe"
