"""sojourn, a bufferbloat laboratory: one scenario (links, queue disciplines, traffic, probes) in,
tables out.

    import sojourn

    run = sojourn.run("home-uplink", seeds=3)
    print(sojourn.summary(run).summary["probes"][0]["rtt_ms"]["p95"])    # {'mean': ..., 'ci95': ...}
    run.table("queue")                                                  # a polars DataFrame

    runs = sojourn.run_all(sojourn.variants(sojourn.load("scenarios/home-uplink.toml"), ["pfifo", "fq_codel"]))
    print(sojourn.compare(runs))                                        # who wins, in what, at what cost

Names are imported when first used, so `import sojourn` and `sojourn --help` stay quick.
"""

from typing import TYPE_CHECKING

from sojourn import lazy

if TYPE_CHECKING:
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
    from sojourn.judgement import Judgement, compare
    from sojourn.metrics import Summary, summary
    from sojourn.records import Run, RunError
    from sojourn.scenario import Scenario, ScenarioError, load, loads
    from sojourn.sweeps.vary import SweepInterrupted, sweep

    __version__: str

_HOME = {
    "Cancelled": "engine",
    "ClusterAddress": "engine",
    "Judgement": "judgement",
    "Run": "records",
    "RunError": "records",
    "Scenario": "scenario",
    "ScenarioError": "scenario",
    "Simulated": "engine",
    "Summary": "metrics",
    "SweepInterrupted": "sweeps.vary",
    "UserError": "errors",
    "compare": "judgement",
    "load": "scenario",
    "loads": "scenario",
    "run": "engine",
    "run_all": "engine",
    "simulate": "engine",
    "summary": "metrics",
    "sweep": "sweeps.vary",
    "variants": "engine",
}

__all__ = [
    "Cancelled",
    "ClusterAddress",
    "Judgement",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Simulated",
    "Summary",
    "SweepInterrupted",
    "UserError",
    "compare",
    "load",
    "loads",
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
