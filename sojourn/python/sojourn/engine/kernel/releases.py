"""The Linux kernels of the guests: a record of their differences.

6.12 is the kernel that `kernel` means: Debian 13's, a backport on Debian 12. A later kernel must be
named, and its package is taken from the suite that has it.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

LinuxVersion: TypeAlias = tuple[int, int]
"""(6, 12)."""


@dataclass(frozen=True)
class Release:
    """A release of Linux, and how its guest is built."""

    name: str
    guest: Literal["uml", "uml-7.3", "uml-programs"]
    """The guest that is built of it."""
    profile: Literal["linux", "linux-7.3"]
    """The simulator's TCP profile of this kernel."""
    suite: str | None
    """Debian's suite with its source; None: the suite that this host's apt uses."""
    config: tuple[str, ...]
    """Settings of the kernel's configuration in addition to uml.config, which both releases use."""
    steps: int
    """Approximate number of lines that make prints in a build."""
    arguments: tuple[str, ...] = ()
    """Arguments on the command line that the other kernels do not have."""
    drivers: tuple[str, ...] = ()
    """Our sources that only this kernel has."""
    congestion: tuple[str, ...] = ()
    """Our congestion controls, which are built into this kernel and which Linux lacks."""
    for_programs: bool = False
    """Whether the guest runs programs of the host, which needs more edits, configuration and
    arguments."""

    @property
    def package(self) -> str:
        """Debian's package with its source."""
        return f"linux-source-{self.name}"

    @property
    def patch(self) -> str:
        """The file with our edits to it."""
        return f"uml-{self.name}.patch"

    @property
    def patches(self) -> tuple[str, ...]:
        """All files with our edits, in the order in which they are applied."""
        more = (f"programs-{self.name}.patch",) if self.for_programs else ()
        return (self.patch, *more)

    @property
    def configs(self) -> tuple[str, ...]:
        """The files of its configuration."""
        return ("uml.config", *(("programs.config",) if self.for_programs else ()))

    @property
    def setup(self) -> str:
        """The command that makes the guest."""
        words = "sojourn kernel setup"
        words += "" if self.name == USUAL.name else f" --linux {self.name}"
        return words + (" --programs" if self.for_programs else "")


USUAL = Release(
    "6.12", guest="uml", profile="linux", suite=None, config=("CONFIG_PROC_SYSCTL=y",), steps=1020
)
"""The default release."""

RELEASES = (
    USUAL,
    Release(
        "7.3",
        guest="uml-7.3",
        profile="linux-7.3",
        suite="trixie-backports",
        config=("CONFIG_SYSCTL=y", "CONFIG_NET_SCH_DUALPI2=y", "CONFIG_SIMPRAGUE=y"),
        steps=1207,
        # Where the host allows it, seccomp stops programs at system calls instead of ptrace. This
        # takes a third less CPU time for the same bytes.
        arguments=("seccomp=auto",),
        drivers=("simprague.c",),
        congestion=("prague",),
    ),
)

PROGRAMS = replace(
    USUAL, guest="uml-programs", for_programs=True, steps=1303, arguments=("ipv6.disable_ipv6=1",)
)
"""The default release in a second guest, for programs of the host. The guests of `RELEASES` are not
changed for this, because another configuration gives another kernel with other random numbers."""

BUILT = (*RELEASES, PROGRAMS)
"""Every guest that can be built."""


def version_in(text: str) -> LinuxVersion:
    """The first version of Linux in this text; (0, 0) if there is none."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)
