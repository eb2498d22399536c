"""The training load of `make guided`: every example, and the home uplink with each discipline and
congestion control of the simulator.

The build under this program counts how often each branch is taken. The next build is laid out by
the counts (`pgo-command` in pyproject.toml). The benchmark's cases are not among these scenarios,
so their gain shows that of scenarios without training.
"""

from __future__ import annotations

from collections.abc import Iterator

import sojourn
from sojourn.scenario import Scenario, examples
from sojourn.scenario.linux import CONGESTION
from sojourn.scenario.qdisc import QDISCS


def scenarios() -> Iterator[Scenario]:
    for path in examples.simulated():
        yield from sojourn.load(path).variants()
    home = sojourn.load("home-uplink")
    for qdisc, record in QDISCS.items():
        if record.simulated:
            yield home.with_({"bottleneck.qdisc": qdisc})
    for congestion, control in CONGESTION.items():
        if control.simulated:
            yield home.with_({"flow.backup.congestion": congestion})


def main() -> None:
    for scenario in scenarios():
        sojourn.simulate(scenario, seeds=1).summary  # noqa: B018


if __name__ == "__main__":
    main()
