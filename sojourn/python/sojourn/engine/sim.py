"""The simulator as an engine: runs a realised scenario in the compiled core and returns columns."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from sojourn import _core
from sojourn.engine.protocol import Outcome, by_reason
from sojourn.errors import UserError
from sojourn.own import compiled
from sojourn.scenario import linux
from sojourn.scenario.realised import Realised


class Simulator:
    """The packet simulator of crates/sim."""

    name = "sim"
    version = _core.VERSION
    alone = False
    build = _core.ENGINE

    def check(self, realised: Realised) -> None:
        """Refuses features that only Linux has."""
        needed = list(linux.needed(realised))
        if not needed:
            _own_code(realised)
            return
        lines = by_reason(
            (place, f"the simulator has no {name}, Linux has") for place, name in needed
        )
        names = dict.fromkeys(name for _, name in needed)
        nearest = [f"{near} for {name}" for name in names if (near := linux.nearest(name))]
        ready = _ready() if _core.LINUX else ", on Linux"
        here = f"; nearest in the simulator: {', '.join(nearest)}" if nearest else ""
        raise UserError("\n".join(lines), f"run it with -e kernel{ready}{here}")

    def for_programs(self) -> Simulator:
        """The simulator runs no programs: `check` reports that with the other features that it
        lacks."""
        return self

    def conditions(self, realised: Realised) -> Mapping[str, str]:
        """The kernel that `variant linux` models, if a discipline is that variant, and the version
        of numba, if the scenario has user-defined code."""
        conditions = (
            {"variant linux": f"of {linux.LINUX_RELEASE}"} if linux.as_linux(realised) else {}
        )
        if compiled.any_own(realised):
            conditions["numba"] = compiled.numba_version()
        return conditions

    def tables(self, realised: Realised, reached: Callable[[int], bool]) -> Outcome:
        """See `Engine.tables`."""
        # The core runs on this thread, which does nothing else. So the thread's CPU time is that of
        # the run.
        own = _own_code(realised)
        began = time.thread_time_ns()
        try:
            tables = (
                _core.run(realised, reached, *own) if any(own) else _core.run(realised, reached)
            )
        except _core.OwnCodeError as error:
            raise compiled.failed(error, realised.links, realised.flows) from None
        return Outcome(tables, time.thread_time_ns() - began)

    def watch(self, realised: Realised, every_ns: int, look: Glance) -> None:
        """Runs a scenario for a viewer and calls `look` each `every_ns` of simulated time
        (`_core.watch`). Returns no tables."""
        try:
            _core.watch(realised, every_ns, look, *_own_code(realised))
        except _core.OwnCodeError as error:
            raise compiled.failed(error, realised.links, realised.flows) from None


Glance = Callable[[int, list[int], list[int], list[int | None]], object]
"""Called with the time in ns, each link's backlog in packets and in bytes, and each flow's cwnd."""


def _own_code(
    realised: Realised,
) -> tuple[dict[str, _core.OwnCode], dict[str, _core.OwnControlCode]]:
    return compiled.code_of(realised.links), compiled.controls_of(realised.flows)


def _ready() -> str:
    from sojourn.engine.kernel.guest import why_none

    return "" if why_none() is None else ", once sojourn kernel setup has made its guest"
