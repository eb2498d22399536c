"""Builds wheels for other Linux systems, by cross compilers; `make wheels` calls it.

    python packaging/wheels.py FOLDER [--profile P] [TARGET...]

zig (`ziglang` on PyPI) compiles the C code and links against an old glibc, or musl. The program of
the kernel's guests is built static for the same processor. Each wheel is built from a copy of the
tree, with that program in the place of the tree's own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {
    "x86_64-unknown-linux-gnu": "manylinux2014",
    "aarch64-unknown-linux-gnu": "manylinux2014",
    "x86_64-unknown-linux-musl": "musllinux_1_2",
    "aarch64-unknown-linux-musl": "musllinux_1_2",
}
"""Rust's targets, and the platform tags of their wheels."""
PACKAGES = ("sojourn", "sojourn-live")
"""The packages with compiled code."""
PARTS = ("Cargo.toml", "Cargo.lock", "LICENSE", "README.md", *PACKAGES)
GUEST = Path("sojourn/python/sojourn/engine/kernel/sojourn-guest")


def copied(tree: Path) -> None:
    for part in PARTS:
        if (ROOT / part).is_dir():
            left_out = shutil.ignore_patterns("*.so", "__pycache__", "sojourn-guest")
            shutil.copytree(ROOT / part, tree / part, symlinks=True, ignore=left_out)
        else:
            shutil.copy2(ROOT / part, tree / part)


def run(*words: str, cwd: Path, **more: str) -> None:
    # maturin looks for zig in the first python3 of PATH: this one has it.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    subprocess.run(words, cwd=cwd, env={**os.environ, "PATH": path, **more}, check=True)


def build(target: str, folder: Path, profile: str, objects: Path) -> None:
    static = f"{target.split('-')[0]}-unknown-linux-musl"
    run("rustup", "-q", "target", "add", target, static, cwd=ROOT)
    linker = f"CARGO_TARGET_{static.upper().replace('-', '_')}_LINKER"
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        copied(tree)
        own = {"CARGO_TARGET_DIR": str(objects)}
        guest = ("cargo", "build", "--quiet", "--profile", "guest", "-p", "guest")
        run(*guest, "--target", static, cwd=tree, **own, **{linker: "rust-lld"})
        shutil.copy2(objects / static / "guest" / "sojourn-guest", tree / GUEST)
        maturin = (
            sys.executable,
            "-m",
            "maturin",
            "build",
            "--quiet",
            "--zig",
            "--out",
            str(folder),
        )
        like = ("--target", target, "--compatibility", TARGETS[target], "--profile", profile)
        for package in PACKAGES:
            run(*maturin, *like, cwd=tree / package, **own)


def main() -> None:
    words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    words.add_argument("folder", type=Path)
    words.add_argument("--profile", default="packaged")
    words.add_argument("targets", nargs="*", default=[*TARGETS], metavar="TARGET")
    asked = words.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    objects = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    for target in asked.targets:
        build(target, asked.folder.resolve(), asked.profile, objects.resolve())
    for wheel in sorted(asked.folder.glob("*.whl")):
        print(f"{wheel.name}: {wheel.stat().st_size} bytes")


if __name__ == "__main__":
    main()
