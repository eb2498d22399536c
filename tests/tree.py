"""What is tested is this tree: its Python, and an engine built of its Rust. Never an installed
copy."""

import hashlib
from pathlib import Path

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
