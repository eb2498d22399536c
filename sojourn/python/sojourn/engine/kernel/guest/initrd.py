"""The guest's file system: an initramfs of iproute2 and one program of ours.

`base.cpio` has `ip` and `tc` with their libraries, netem's distribution tables, and folders to
mount on. It is made once, with the guest. Each run appends an archive of its own: `/init`, the
plan, and other files of the run. There is no shell.
"""

from collections.abc import Mapping
from pathlib import Path

from sojourn.engine.kernel.guest import cpio, elf, host, packages
from sojourn.engine.kernel.guest.endings import GuestError

MOUNT_POINTS = ("dev", "proc", "sys", "run", "tmp", "host", "etc", "root")

_TABLES = ("usr/lib/tc", "lib/tc", "usr/lib64/tc", "usr/share/tc")
"""The folders in which iproute2's packages have netem's tables (*.dist)."""


def base(
    extra: Mapping[str, cpio.CpioEntry] | None = None,
    given: Path | None = None,
    scratch: Path | None = None,
) -> bytes:
    """The archive that all runs of a guest begin with. `extra`: additional entries of this guest.

    The guest uses the host's iproute2. If the host has none, its package is fetched (or taken from
    `given`) and unpacked into `scratch`.
    """
    roots = [Path("/")]
    found = [_find(name, roots) for name in ("ip", "tc")]
    if not all(found) and scratch is not None:
        roots = [_fetched(scratch / "iproute2", given), Path("/")]
        found = [_find(name, roots) for name in ("ip", "tc")]
    programs = [path for path in found if path]
    if len(programs) < 2:
        raise GuestError(
            "ip and tc are needed, and neither is here", "install the package iproute2"
        )

    entries = {
        path: cpio.file(file.read_bytes(), executable=True)
        for path, file in elf.closure(programs, roots).items()
    }
    # Programs are called as /bin/NAME. These are links to the original paths, where each program
    # finds its libraries.
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
    """Returns the archive that one run adds: its first program and its files, by path from the
    root."""
    entries = {path.lstrip("/"): cpio.file(data) for path, data in files.items()}
    return cpio.archive({**entries, "init": cpio.file(init, executable=True)})


def init_with_libraries(init: Path) -> dict[str, cpio.CpioEntry]:
    """The libraries of a guest's first program; none if it is static."""
    dependencies = elf.needs(init.read_bytes())
    if dependencies.interpreter is None and not dependencies.libraries:
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
    """Unpacks iproute2 and the packages of its libraries; returns the folder that is their root."""
    names = (
        ["iproute2"]
        if not host.has("apt-cache")
        else ["iproute2", *packages.libraries_of("iproute2")]
    )
    packages.unpack([packages.fetch(name, given) for name in names], into)
    return into


def _tables(roots: list[Path]) -> dict[str, cpio.CpioEntry]:
    """netem's tables, at the place where the guest's tc looks for them."""
    tables = {}
    for root in roots:
        for folder in _TABLES:
            for file in sorted((root / folder).glob("*.dist")):
                tables[f"{folder}/{file.name}"] = cpio.file(file.read_bytes())
        if tables:
            break
    return tables
