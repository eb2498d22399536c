"""sojourn, a bufferbloat laboratory: one scenario (links, queue disciplines, traffic, probes) in, tables out.

    import sojourn

    run = sojourn.run("home-uplink", seeds=3)
    print(sojourn.summary(run).summary["probes"][0]["rtt_ms"]["p95"])    # {'mean': ..., 'ci95': ...}
    run.table("queue")                                                  # a polars DataFrame

Names are imported when first used, so `import sojourn` and `sojourn --help` stay quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sojourn.engine import run, run_all
    from sojourn.metrics import Summary, summary
    from sojourn.records import Run, RunError
    from sojourn.scenario import Scenario, ScenarioError, load, loads

_HOME = {
    "Run": "records",
    "RunError": "records",
    "Scenario": "scenario",
    "ScenarioError": "scenario",
    "Summary": "metrics",
    "load": "scenario",
    "loads": "scenario",
    "run": "engine",
    "run_all": "engine",
    "summary": "metrics",
}

__all__ = [
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Summary",
    "load",
    "loads",
    "run",
    "run_all",
    "summary",
]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("sojourn")
    if name not in _HOME:
        raise AttributeError(f"module 'sojourn' has no attribute {name!r}")
    value = getattr(import_module(f"sojourn.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
