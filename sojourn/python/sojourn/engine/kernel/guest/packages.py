"""Debian packages, fetched and unpacked without root. Nothing is installed.

`apt-get download` works for any user if the lists of packages are there. `dpkg-deb -x` unpacks into
any folder. If a package can't be fetched, the error names it and explains how to get it. A folder
of .deb files that were downloaded elsewhere can replace the network. If the host's apt does not
have a package's suite, separate lists are fetched for that suite (`suites`).
"""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sojourn.engine.kernel.guest import cache, host, suites
from sojourn.engine.kernel.guest.boot import dying_with_us
from sojourn.engine.kernel.guest.endings import GuestError


@dataclass(frozen=True)
class Package:
    """A package file. `version` is Debian's, as in 6.12.117-1~deb12u1."""

    name: str
    version: str
    file: Path


def fetch(name: str, given: Path | None = None, suite: str | None = None) -> Package:
    """The package's file: from the folder `given`, from an earlier download, or downloaded now.
    `suite`: the suite of Debian's archive; None: the suites that the host's apt has.

    Raises:
        GuestError: it can't be fetched; the hint explains how to get it.
    """
    if given is not None and (found := _newest(given, name)):
        return found
    options = [] if suite is None else _lists_of(suite, name)
    candidate = candidate_version(name, options)
    if candidate is None:
        where = "which apt does not know here" if suite is None else f"which {suite} does not have"
        raise GuestError(f"needs the package {name}, {where}", _how_to_get(name, suite))
    folder = cache.downloads()
    folder.mkdir(parents=True, exist_ok=True)
    cached = _newest(folder, name)
    if cached and cached.version == candidate:
        return cached
    done = _run(["apt-get", "-q", *options, *_AS_OURSELVES, "download", name], folder)
    fetched = _newest(folder, name)
    if done.returncode != 0 or fetched is None:
        raise GuestError(
            f"can't download the package {name}: {_complaint(done)}", _how_to_get(name, suite)
        )
    return fetched


_AS_OURSELVES = ("-o", "APT::Sandbox::User=root")
"""Without this option, apt started by root downloads as a user who can't write into the folder."""


def _lists_of(suite: str, name: str) -> list[str]:
    """Fetches a suite's lists, for a package of it; returns the options for apt's commands."""
    if not host.has("apt-get"):
        raise GuestError(
            f"needs the package {name} of {suite}, and there is no apt", _how_to_get(name, suite)
        )
    folder = cache.downloads() / f"apt-{suite}"
    options = suites.configured(suite, folder)
    # Without this option apt treats a list that it could not fetch as empty.
    strictly = ("-o", "APT::Update::Error-Mode=any")
    done = _run(["apt-get", "-q", *options, *_AS_OURSELVES, *strictly, "update"])
    if done.returncode != 0:
        raise GuestError(
            f"can't fetch the lists of {suite}: {_complaint(done)}", _how_to_get(name, suite)
        )
    return options


def candidate_version(name: str, options: Sequence[str] = ()) -> str | None:
    """The version that `apt-get download` would fetch; None if apt is missing or does not know the
    package."""
    if not host.has("apt-cache") or not host.has("apt-get"):
        return None
    done = _run(["apt-cache", *options, "policy", name])
    found = re.search(r"^  Candidate: (\S+)$", done.stdout, re.MULTILINE)
    return found[1] if found and found[1] != "(none)" else None


def libraries_of(name: str) -> list[str]:
    """The packages of shared libraries that a package depends on, directly and indirectly."""
    direct = _libraries(name)
    return sorted({*direct, *(further for library in direct for further in _libraries(library))})


def _libraries(name: str) -> list[str]:
    return [one for one in depends(name) if re.match("z?lib", one)]


def depends(name: str) -> list[str]:
    """The packages that a package names in its Depends."""
    done = _run(["apt-cache", "depends", name])
    return re.findall(r"^  Depends: ([^<\s]+)$", done.stdout, re.MULTILINE)


def unpack(packages: Sequence[Package], into: Path) -> None:
    """Unpacks packages into one folder, as if it were the root."""
    if not host.has("dpkg-deb"):
        raise GuestError("needs dpkg-deb to unpack packages", "install the package dpkg")
    into.mkdir(parents=True, exist_ok=True)
    for package in packages:
        done = _run(["dpkg-deb", "-x", str(package.file), str(into)])
        if done.returncode != 0:
            package.file.unlink(missing_ok=True)
            raise GuestError(
                f"can't unpack {package.file.name}: {_complaint(done)}",
                "run it again: it is then downloaded again",
            )


def _newest(folder: Path, name: str) -> Package | None:
    """The package in a folder of .deb files; the one fetched last."""
    found = []
    for file in folder.glob(f"{name}_*.deb"):
        # linux-source-6.12_6.12.117-1~deb12u1_all.deb; apt writes an epoch's colon as %3a.
        parts = file.stem.split("_")
        if len(parts) == 3 and parts[0] == name:
            found.append((file.stat().st_mtime, Package(name, parts[1].replace("%3a", ":"), file)))
    return max(found, key=lambda one: one[0])[1] if found else None


def _how_to_get(name: str, suite: str | None = None) -> str:
    if not host.has("apt-get"):
        return f"without apt: put {name} and what else is missing, as Debian's .deb files, into a folder, and give it with --from FOLDER"
    if suite is not None:
        return f"put {name}_*.deb of Debian's {suite} into a folder, and give it with --from FOLDER"
    return f"apt-get update (as root) may bring it into the lists; else put {name}_*.deb into a folder and give it with --from FOLDER"


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    lines = [
        line for line in done.stderr.splitlines() if line.startswith(("E:", "Err", "dpkg-deb:"))
    ]
    return (lines or done.stderr.splitlines() or ["it gives no reason"])[-1].removeprefix("E: ")


def _run(command: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    # The output is searched for English words, so no translations.
    environment = {"PATH": host.PATH, "LC_ALL": "C"}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=dying_with_us(),
    )
