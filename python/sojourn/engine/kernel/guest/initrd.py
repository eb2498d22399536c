"""The guest's file system: an initramfs of iproute2 and one program of ours.

`base.cpio` holds `ip` and `tc` with the libraries they need, netem's distribution tables and the
folders to mount on; it is made once, with the guest. Behind it each run appends an archive of its
own: `/init`, the plan, whatever else it needs. There is no shell and nothing else.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path

from sojourn.engine.kernel.guest import cpio, elf, packages
from sojourn.engine.kernel.guest.endings import GuestError

MOUNT_POINTS = ("dev", "proc", "sys", "run", "tmp", "host", "etc", "root")

_TABLES = ("usr/lib/tc", "lib/tc", "usr/lib64/tc", "usr/share/tc")
"""Where iproute2's packages put netem's tables (*.dist)."""


def base(
    extra: Mapping[str, cpio.CpioEntry] | None = None,
    given: Path | None = None,
    scratch: Path | None = None,
) -> bytes:
    """The archive that all runs of a guest begin with. `extra` is what this guest needs beside it.

    iproute2 is the host's; where it has none, its package is fetched (or taken from `given`) and
    unpacked into `scratch`.
    """
    roots = [Path("/")]
    found = [_find(name, roots) for name in ("ip", "tc")]
    if not all(found) and scratch is not None:
        roots = [_fetched(scratch / "iproute2", given), Path("/")]
        found = [_find(name, roots) for name in ("ip", "tc")]
    programs = [path for path in found if path]
    if len(programs) < 2:
        raise GuestError("needs ip and tc, and found none", "install the package iproute2")

    entries = {
        path: cpio.file(file.read_bytes(), executable=True)
        for path, file in elf.closure(programs, roots).items()
    }
    # A program is asked for by its name in /bin; where it lies it finds its libraries.
    entries |= {
        f"bin/{Path(path).name}": cpio.symlink(f"/{path}")
        for path in programs
        if not path.startswith("bin/")
    }
    entries |= _tables(roots)
    entries["dev/console"] = cpio.character_device(5, 1)
    entries["dev/null"] = cpio.character_device(1, 3)
    return cpio.archive(entries | dict(extra or {}), MOUNT_POINTS[1:])


def run(init: bytes, files: Mapping[str, bytes]) -> bytes:
    """What one run adds: its first program and its files, by their path from the root."""
    entries = {path.lstrip("/"): cpio.file(data) for path, data in files.items()}
    return cpio.archive({**entries, "init": cpio.file(init, executable=True)})


def init_with_libraries(init: Path) -> dict[str, cpio.CpioEntry]:
    """What a program needs to be a guest's first one: nothing if it is static, else its
    libraries."""
    asked = elf.needs(init.read_bytes())
    if asked.interpreter is None and not asked.libraries:
        return {}
    at = str(init.resolve()).lstrip("/")
    needed = elf.closure([at], [Path("/")])
    return {
        path: cpio.file(file.read_bytes(), executable=True)
        for path, file in needed.items()
        if path != at
    }


def _find(name: str, roots: list[Path]) -> str | None:
    for folder in ("usr/sbin", "sbin", "usr/bin", "bin"):
        for root in roots:
            if (root / folder / name).is_file():
                return f"{folder}/{name}"
    return None


def _fetched(into: Path, given: Path | None) -> Path:
    """The root that iproute2's package and those of its libraries make up."""
    names = (
        ["iproute2"]
        if shutil.which("apt-cache") is None
        else ["iproute2", *packages.libraries_of("iproute2")]
    )
    packages.unpack([packages.fetch(name, given) for name in names], into)
    return into


def _tables(roots: list[Path]) -> dict[str, cpio.CpioEntry]:
    """netem's tables, where the guest's tc, made for the same layout, looks for them."""
    tables = {}
    for root in roots:
        for folder in _TABLES:
            for file in sorted((root / folder).glob("*.dist")):
                tables[f"{folder}/{file.name}"] = cpio.file(file.read_bytes())
        if tables:
            break
    return tables
