"""The Linux kernels that a guest is built of, a record for each: all in which they differ.

6.12 is the one that `kernel` stands for: Debian 13's kernel, a backport on Debian 12. A later one
is asked for by name, and its package is taken from the suite that has it.
"""

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

LinuxVersion: TypeAlias = tuple[int, int]
"""(6, 12)."""


@dataclass(frozen=True)
class Release:
    """A release of Linux, and what the guest that is built of it needs."""

    name: str
    guest: Literal["uml", "uml-7.3"]
    """The guest that is built of it."""
    profile: Literal["linux", "linux-7.3"]
    """The simulator's TCP that is this kernel's."""
    suite: str | None
    """Debian's suite that has its source; None: whichever this host's apt takes it from."""
    config: tuple[str, ...]
    """Settings of the kernel's configuration beside uml.config, which both have."""
    steps: int
    """About how many lines make prints for one build."""
    arguments: tuple[str, ...] = ()
    """Words on the command line that the other kernels do not have."""
    drivers: tuple[str, ...] = ()
    """Our sources that it has beside those that all have."""
    congestion: tuple[str, ...] = ()
    """Congestion controls of ours that it has and Linux has not."""

    @property
    def package(self) -> str:
        """Debian's package with its source."""
        return f"linux-source-{self.name}"

    @property
    def patch(self) -> str:
        """The file with our edits to it."""
        return f"uml-{self.name}.patch"

    @property
    def setup(self) -> str:
        """The command that makes the guest."""
        return "sojourn kernel setup" + ("" if self is USUAL else f" --linux {self.name}")


USUAL = Release(
    "6.12", guest="uml", profile="linux", suite=None, config=("CONFIG_PROC_SYSCTL=y",), steps=1020
)
"""What is built when no other is asked for."""

RELEASES = (
    USUAL,
    Release(
        "7.3",
        guest="uml-7.3",
        profile="linux-7.3",
        suite="trixie-backports",
        config=("CONFIG_SYSCTL=y", "CONFIG_NET_SCH_DUALPI2=y", "CONFIG_SIMPRAGUE=y"),
        steps=1207,
        # Programs stop at system calls by seccomp, where the host allows it, and not by ptrace: a
        # third less CPU time for the same bytes.
        arguments=("seccomp=auto",),
        drivers=("simprague.c",),
        congestion=("prague",),
    ),
)


def version_in(words: str) -> LinuxVersion:
    """The first version of Linux that these words name; (0, 0) if they name none."""
    found = re.search(r"(\d+)\.(\d+)", words)
    return (int(found[1]), int(found[2])) if found else (0, 0)
