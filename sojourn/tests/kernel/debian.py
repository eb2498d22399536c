"""Programs of Debian for the guest: this host's, or, without root, unpacked from their packages."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from sojourn.engine.kernel.guest import packages
from sojourn.engine.kernel.guest.endings import GuestError

FOLDERS = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
_INSTALLED = Path("/var/lib/dpkg/info")


def programs_of(wanted: Mapping[str, str], into: Path) -> tuple[list[str], dict[str, str]]:
    """The folders that a scenario sees and the variables of its programs, so that these are found.
    `wanted`: packages by the program that each has. Skips the test if one can't be fetched."""
    missing = {
        package
        for program, package in wanted.items()
        if not any((Path(folder) / program).exists() for folder in FOLDERS)
    }
    if not missing:
        return ["/usr"], {}
    try:
        names = [
            *missing,
            *(each for package in missing for each in packages.libraries_of(package)),
        ]
        needed = sorted({name for name in names if not _is_installed(name)})
        packages.unpack([packages.fetch(name) for name in needed], into)
    except GuestError as error:
        pytest.skip(f"no {', '.join(sorted(missing))} here: {error.problem}")
    libraries = sorted({str(file.parent) for file in into.glob("usr/lib/**/*.so*")})
    path = [str(into / folder.lstrip("/")) for folder in FOLDERS[:2]]
    variables = {"PATH": ":".join([*path, *FOLDERS]), "LD_LIBRARY_PATH": ":".join(libraries)}
    return ["/usr", str(into)], variables


@cache
def _is_installed(package: str) -> bool:
    # A package of several architectures has the list of its own: libc6:amd64.list.
    return any(_INSTALLED.glob(f"{package}.list")) or any(_INSTALLED.glob(f"{package}:*.list"))
