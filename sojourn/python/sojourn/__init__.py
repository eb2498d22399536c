"""sojourn, a bufferbloat laboratory: a scenario (links, queue disciplines, traffic, probes) gives
tables and numbers.

>>> import sojourn
>>> scenario = sojourn.load("home-uplink").with_(duration="3 s", warmup="1 s")
>>> run = sojourn.run(scenario, seeds=2)
>>> sojourn.summary(run).samples
2
>>> "sojourn_mean_ns" in run.table("queue").columns    # a polars DataFrame
True
>>> runs = sojourn.run_all(sojourn.variants(scenario, ["pfifo", "fq_codel"]), seeds=3)
>>> print(sojourn.compare(runs))  # doctest: +ELLIPSIS
fq_codel wins. ...

Names are imported when first used, so `import sojourn` and `sojourn --help` stay quick.
"""

from typing import TYPE_CHECKING

from sojourn import lazy

if TYPE_CHECKING:
    from sojourn.agreement.replaying import ReplayInterrupted, Replays, replay
    from sojourn.agreement.running import AgreeInterrupted, Agreement, agree
    from sojourn.engine import (
        Cancelled,
        ClusterAddress,
        Simulated,
        run,
        run_all,
        simulate,
        variants,
    )
    from sojourn.errors import UserError
    from sojourn.guest_programs import allow_programs
    from sojourn.judgement import Judgement, compare
    from sojourn.metrics import Summary, summary
    from sojourn.records import Run, RunError
    from sojourn.scenario import Scenario, ScenarioError, load, loads
    from sojourn.sweeps.vary import SweepInterrupted, sweep

    __version__: str

_HOME = {
    "AgreeInterrupted": "agreement.running",
    "Agreement": "agreement.running",
    "Cancelled": "engine",
    "ClusterAddress": "engine",
    "Judgement": "judgement",
    "ReplayInterrupted": "agreement.replaying",
    "Replays": "agreement.replaying",
    "Run": "records",
    "RunError": "records",
    "Scenario": "scenario",
    "ScenarioError": "scenario",
    "Simulated": "engine",
    "Summary": "metrics",
    "SweepInterrupted": "sweeps.vary",
    "UserError": "errors",
    "agree": "agreement.running",
    "allow_programs": "guest_programs",
    "compare": "judgement",
    "load": "scenario",
    "loads": "scenario",
    "replay": "agreement.replaying",
    "run": "engine",
    "run_all": "engine",
    "simulate": "engine",
    "summary": "metrics",
    "sweep": "sweeps.vary",
    "variants": "engine",
}

__all__ = [
    "AgreeInterrupted",
    "Agreement",
    "Cancelled",
    "ClusterAddress",
    "Judgement",
    "ReplayInterrupted",
    "Replays",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Simulated",
    "Summary",
    "SweepInterrupted",
    "UserError",
    "agree",
    "allow_programs",
    "compare",
    "load",
    "loads",
    "replay",
    "run",
    "run_all",
    "simulate",
    "summary",
    "sweep",
    "variants",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from sojourn._core import VERSION

        return VERSION
    return lazy.attribute(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
