"""The engines by name: `find` returns one, `why_not` explains why one can't be used here.

An engine is imported on first use: the simulator needs the compiled core, the kernel a guest.
"""

from __future__ import annotations

from typing import Literal

from sojourn import _core
from sojourn.defaults import ENGINES
from sojourn.engine.protocol import Engine
from sojourn.errors import UserError
from sojourn.scenario import Scenario

GUESTS: dict[str, Literal["uml", "qemu", "uml-7.3"] | None] = {
    "kernel": None,
    "kernel-uml": "uml",
    "kernel-qemu": "qemu",
    "kernel-7.3": "uml-7.3",
}
"""The guest of each engine that has one; None: the best available."""


def find(name: str) -> Engine:
    """Returns the engine of this name."""
    if name == "sim":
        from sojourn.engine.sim import Simulator

        return Simulator()
    if name in ENGINES:
        from sojourn import linux_only as linux_only
    if name in GUESTS:
        from sojourn.engine.kernel.engine import KernelEngine

        return KernelEngine(name, GUESTS[name])
    if name == "netns":
        from sojourn.engine.netns import Netns

        return Netns()
    raise UserError(f"there is no engine {name!r}", f"engines: {', '.join(ENGINES)}")


def find_awake(name: str) -> Engine:
    """Returns the engine of this name with a kernel whose RED adapts where the scenario enables it.
    Linux's RED never adapts when tc configures it.

    Raises:
        UserError: the engine has no such kernel; the message says why.
    """
    from sojourn.engine.kernel.engine import KernelEngine
    from sojourn.engine.kernel.guest import awake

    if name not in GUESTS:
        raise UserError(f"the engine {name} can't make red adapt", "a guest can: -e kernel")
    if reason := awake.why_not():
        raise UserError(f"red can't be made to adapt: {reason}")
    return KernelEngine(name, GUESTS[name], adapting=True)


def why_not(name: str, *, programs: bool = False) -> str | None:
    """Returns why an engine can't be used here and what to do; None if it can. `programs`: for
    scenarios with programs of the host, which `kernel` runs in another guest."""
    if name != "sim" and not _core.LINUX:
        return "it needs Linux"
    if name == "netns":
        from sojourn.engine import namespaces

        return namespaces.why_not()
    if name not in GUESTS:
        return None
    from sojourn.engine.kernel.guest import PROGRAMS, why_none

    return why_none(PROGRAMS.guest if programs and name == "kernel" else GUESTS[name])


def profile_of(name: str) -> str:
    """The simulator's TCP profile of the kernel that this engine runs."""
    from sojourn.engine.kernel.guest import RELEASES

    guest = GUESTS.get(name)
    return next((each.profile for each in RELEASES if each.guest == guest), "linux")


def fits(name: str, scenario: Scenario) -> bool:
    """Whether the kernel of this engine has all that a scenario (not a sweep) needs. The engine
    need not be ready."""
    from sojourn.engine.kernel.plan.fits import kernel_of, problems_of

    realised = scenario.realise(scenario.seeds[0])
    return not any(problems_of(realised, *kernel_of(GUESTS.get(name))))


def stands_for(name: str) -> str | None:
    """The engine that an ambiguous name selects here; None: the name is an engine itself, or no
    engine can be used."""
    if name != "kernel" or not _core.LINUX:
        return None
    from sojourn.engine.kernel.guest import PREFERRED, ready

    usable = [name for name in PREFERRED if ready(name).why_not is None]
    return f"kernel-{usable[0]}" if usable else None


def lacks(name: str) -> str | None:
    """Features that a usable engine lacks on this host; None if it lacks none."""
    if name != "netns" or not _core.LINUX:
        return None
    from sojourn.engine import namespaces

    return namespaces.lacks()
