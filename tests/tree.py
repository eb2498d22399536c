"""Makes sure that the tests import this tree: its Python code, and an engine built from its Rust
code. An installed copy is an error."""

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
"""The folders with tests."""
INSTALLED = "SOJOURN_TESTS_INSTALLED"
"""Set where the tests check installed packages, some of which may be missing."""


@cache
def hidden_from(file: Path) -> list[str]:
    """Returns the modules that a test of this file, or of a folder, must not import. These are the
    packages that its own package does not depend on, and the modules of their tests. Tests outside
    of the packages may import all."""
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
    """Returns a hash of the Rust sources in these folders, named as a build script names them
    (`BUILD` in sojourn/crates/python/build.rs and sojourn-live/crates/extension/build.rs)."""
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
    """Returns the reason why `import sojourn` does not import this tree, or None if it does. Where
    INSTALLED is set, only an engine built from other sources is a reason."""
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
            return f"{name} was built from other sources than the Rust sources of this tree"
    return None


def probe_of_the_tree() -> Path:
    """Returns sojourn-probe for this machine, built from this tree. Skips the test if it isn't
    built."""
    target = f"{os.uname().machine}-unknown-linux-musl"
    asked = ["make", "-q", f"target/.probe-{target}"]
    if subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode != 0:
        pytest.skip("there is no sojourn-probe of this tree: make probe")
    folder = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return folder / target / "static" / "sojourn-probe"
